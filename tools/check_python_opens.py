#!/usr/bin/env python3
"""Checks that the command line opens, writes and removes files through ioweir.base.guarded_files only.

Lives here: which calls touch files by a path, and which of them stay, each with its reason. Not here: the same for the
compiled part.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

GUARD: Final = "base/guarded_files.py"

FUNCTIONS: Final = frozenset(
    {"open", "io.open", "codecs.open", "gzip.open", "bz2.open", "lzma.open", "np.load", "np.fromfile", "np.memmap"}
    | {"numpy.load", "numpy.fromfile", "numpy.memmap", "h5py.File", "zipfile.ZipFile", "tarfile.open"}
    | {"tempfile.mktemp", "tempfile.NamedTemporaryFile", "tempfile.mkstemp", "pa.memory_map", "pa.OSFile"}
    | {f"os.{name}" for name in (
        "open", "remove", "unlink", "rename", "renames", "replace", "rmdir", "removedirs", "mkdir", "makedirs", "link",
        "symlink", "truncate", "chmod", "chown", "lchown", "mkfifo", "mknod", "walk", "fwalk", "scandir", "listdir",
        "utime", "setxattr", "removexattr", "creat",
    )}
    | {f"shutil.{name}" for name in (
        "rmtree", "copy", "copy2", "copyfile", "copymode", "copystat", "copytree", "move", "chown", "unpack_archive",
    )}
)  # fmt: skip
"""Called by these names."""

METHODS: Final = frozenset(
    {"read_text", "read_bytes", "write_text", "write_bytes", "unlink", "rmdir", "touch", "chmod", "lchmod", "mkdir"}
    | {"symlink_to", "hardlink_to", "iterdir", "glob", "rglob", "walk"}
)
"""Of pathlib.Path, whatever they are called on; rename, replace and open are told apart by their arguments."""

OF_GUARD: Final = frozenset({"Folder", "folder", "top", "inside", "run", "self"})
"""Names of guarded_files.Folder in this package, which has methods of the same names."""

_KERNEL: Final = "of the kernel, under /proc, /sys or a mount of cgroups: nobody else makes files there"
_EMPTY: Final = "makes an empty folder, and believes nothing of one that is there"

ALLOWED: Final[dict[tuple[str, str], str]] = {
    ("targets/lab_limits.py", "read_text"): _KERNEL,
    ("targets/lab_limits.py", "write_text"): _KERNEL,
    ("targets/lab_limits.py", "mkdir"): _KERNEL,
    ("targets/lab_limits.py", "rmdir"): _KERNEL,
    ("targets/lab_loop.py", "read_text"): _KERNEL,
    ("targets/lab_loop.py", "iterdir"): _KERNEL,
    ("targets/lab_loop.py", "glob"): _KERNEL,
    ("targets/lab_ceph.py", "read_bytes"): _KERNEL,
    ("site/retention.py", "os.scandir"): _KERNEL,
    ("launch/clock.py", "read_text"): _KERNEL,
    ("launch/given_environment.py", "read_bytes"): _KERNEL,
    ("launch/clock.py", "os.open"): "/dev/null",
    ("base/plain_text.py", "os.open"): "/dev/null",
    ("launch/stuck.py", "read_text"): _KERNEL,
    ("launch/stuck.py", "glob"): _KERNEL,
    ("launch/guardian.py", "read_text"): _KERNEL,
    ("launch/guardian.py", "iterdir"): _KERNEL,
    ("launch/guardian.py", "glob"): _KERNEL,
    ("launch/doctor.py", "read_text"): _KERNEL,
    (
        "launch/doctor.py",
        "rglob",
    ): "lists the modules of a Python package that the interpreter has named; none is opened",
    ("targets/lab.py", "os.open"): "the lock in the registry, beneath its descriptor, a file of the user's own",
    ("targets/lab.py", "mkdir"): "a lab's folder; whose it is, and who else may write there, is checked right after",
    ("targets/lab.py", "rmdir"): "a lab's folder, if it is empty",
    ("targets/lab_bucket.py", "mkdir"): "in a lab's folder, which is the user's alone",
    ("targets/lab_loop.py", "mkdir"): "in a lab's folder, or of a random name in memory; an error where it is there",
    (
        "targets/lab_loop.py",
        "chmod",
    ): "the root of a file system that was made and mounted in a lab's folder just before",
    ("targets/lab_ceph.py", "mkdir"): "in a lab's folder, which is the user's alone",
    (
        "targets/lab_ceph.py",
        "chmod",
    ): "the root of a file system that was made and mounted in a lab's folder just before",
    ("base/version.py", "os.listdir"): "the directory into which the package is installed; none is opened",
    ("cli/start.py", "open"): "a text of the package's own, beside its code",
    ("launch/options.py", "read_text"): "a table of the package's own, beside its code",
    ("replay/benchmark_c.py", "read_text"): "a text of the package's own, beside its code",
    ("predict/machine.py", "read_text"): "machine files of the package's own, beside its code",
    ("predict/machine.py", "iterdir"): "the same",
    ("targets/probe.py", "mkdir"): _EMPTY,
    ("launch/run.py", "mkdir"): "a trace's folder; whose it is, and who else may write there, is checked right after",
    ("launch/run.py", "rmdir"): "a trace's folder that was made just before, if it is empty",
    ("base/new_folder.py", "mkdir"): _EMPTY,
    ("launch/shim.py", "mkdir"): "in a trace's folder, which is the user's alone",
    (
        "containers/partitioned_convert.py",
        "h5py.File",
    ): "beneath the descriptor of a new folder that is the user's alone",
}
"""By module and call: why it may stay."""


@dataclass(frozen=True)
class Offence:
    """One call that touches a file by its path."""

    path: Path
    line: int
    call: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.call}() opens or changes a file by its path; see {GUARD}"


def calls_of(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and name of every call that touches files by a path."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (name := _name_of(node)):
            yield node.lineno, name


def _name_of(call: ast.Call) -> str | None:
    words = _dotted(call.func)
    if words in FUNCTIONS:
        return words
    if not isinstance(call.func, ast.Attribute):
        return None
    name, of = call.func.attr, _dotted(call.func.value)
    if of is not None and of.rpartition(".")[2] in OF_GUARD:
        return None
    plain = len(call.args) == 1 and not call.keywords
    if name in METHODS:
        return name
    if name in ("rename", "replace") and plain:  # of texts, `replace` takes two
        return name
    if name == "open" and _is_mode(call):
        return name
    return None


def _is_mode(call: ast.Call) -> bool:
    """Path.open("rb"), and not Folder.open(path)."""
    first = call.args[0] if call.args else next((word.value for word in call.keywords if word.arg == "mode"), None)
    return isinstance(first, ast.Constant) and isinstance(first.value, str) and set(first.value) <= set("rwaxbt+")


def _dotted(node: ast.expr) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        before = _dotted(node.value)
        return f"{before}.{node.attr}" if before else node.attr
    return None


def check(folder: Path, allowed: dict[tuple[str, str], str] = ALLOWED) -> tuple[list[Offence], list[str]]:
    """What is not allowed, and what is allowed without being there."""
    offences: list[Offence] = []
    used: set[tuple[str, str]] = set()
    for path in sorted(folder.rglob("*.py")):
        module = path.relative_to(folder).as_posix()
        if module == GUARD:
            continue
        for line, call in calls_of(ast.parse(path.read_text(encoding="utf-8"), str(path))):
            if (module, call) in allowed:
                used.add((module, call))
            else:
                offences.append(Offence(path, line, call))
    return offences, [f"{name}: {call} is allowed and not there" for name, call in allowed if (name, call) not in used]


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=Path(__file__).parent.parent / "python/ioweir")
    offences, stale = check(parser.parse_args().folder)
    for text in (*map(str, offences), *stale):
        print(text)
    return 1 if offences or stale else 0


if __name__ == "__main__":
    sys.exit(main())
