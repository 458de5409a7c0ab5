#!/usr/bin/env python3
"""Checks that files which somebody else may have made are opened and removed only as tools/opens.toml allows.

Lives here: finding calls that open, change or remove files by a path in C++, and comparing them with the table. Not
here: the table itself, what to use instead (src/base/guarded_files.hpp), and Python (check_python_opens.py).
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

# Of the C library and the kernel, by name: those that take a path, or a name that they follow links for.
C_CALLS: Final = [
    "access",
    "acl_get_file",
    "acl_set_file",
    "chmod",
    "chown",
    "creat",
    "execve",
    "faccessat",
    "fchmodat",
    "fchownat",
    "fopen",
    "fopen64",
    "freopen",
    "fstatat",
    "getxattr",
    "lchown",
    "lgetxattr",
    "link",
    "linkat",
    "lsetxattr",
    "lstat",
    "mkdir",
    "mkdirat",
    "mkdtemp",
    "mkfifo",
    "mknod",
    "mkostemp",
    "mkstemp",
    "open",
    "open64",
    "openat",
    "openat64",
    "opendir",
    "readlink",
    "readlinkat",
    "realpath",
    "remove",
    "rename",
    "renameat",
    "renameat2",
    "rmdir",
    "scandir",
    "setxattr",
    "stat",
    "statx",
    "symlink",
    "symlinkat",
    "truncate",
    "unlink",
    "unlinkat",
    "utimensat",
]
_C_CALL: Final = re.compile(r"(?<![\w.>:])(?:::|std::|raw::)(" + "|".join(C_CALLS) + r")\s*\(")
_C_UNSCOPED: Final = re.compile(
    r"(?<![\w.>:&~])(" + "|".join(set(C_CALLS) - {"open", "remove", "access", "link"}) + r")\s*\("
)
_CXX: Final = re.compile(r"\b(ifstream|ofstream|fstream|filesystem|fs)\b")
# A backend's open() takes a path.
_BACKEND: Final = re.compile(r"\b(?:\w*below_?|\w*backend_?|posix_?)\s*(?:\.|->)\s*(open|attempt_open)\s*\(")
_CXX_NOISE: Final = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)

SUFFIXES: Final = frozenset({".hpp", ".h", ".cpp", ".c"})


class TableError(Exception):
    """The table names what is not there."""


@dataclass(frozen=True)
class Found:
    """One call."""

    file: PurePosixPath
    line: int
    call: str


@dataclass(frozen=True)
class Table:
    """Where the rule holds, and what is allowed there: so many calls of a name in a file."""

    folders: tuple[PurePosixPath, ...]
    allowed: dict[PurePosixPath, Counter[str]]


def parse_table(document: dict[str, Any]) -> Table:
    """The table; each file stands in it once, with a reason."""
    allowed: dict[PurePosixPath, Counter[str]] = {}
    for entry in document.get("allow", []):
        file = PurePosixPath(entry["file"])
        if file in allowed:
            raise TableError(f"{file} stands there twice")
        if len(entry.get("why", "").split()) < 3:
            raise TableError(f"{file}: say why")
        allowed[file] = Counter(entry["calls"])
    return Table(tuple(PurePosixPath(folder) for folder in document["folders"]), allowed)


def cxx_calls(text: str) -> Iterator[tuple[int, str]]:
    """Line and name of each call in C++ that is not in a comment or a string."""
    quiet = _CXX_NOISE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
    for number, line in enumerate(quiet.splitlines(), start=1):
        if line.lstrip().startswith("#"):
            continue
        for pattern in (_C_CALL, _C_UNSCOPED, _CXX, _BACKEND):
            for found in pattern.finditer(line):
                yield number, found[1]


def calls_in(root: Path, folder: PurePosixPath) -> Iterator[Found]:
    """All calls in the files of a folder, without tests and fuzzers."""
    for path in sorted((root / folder).rglob("*")):
        if path.suffix not in SUFFIXES or path.stem.endswith(("_test", "_fuzz")) or path.name == "testing.hpp":
            continue
        text = path.read_text(encoding="utf-8")
        for line, call in cxx_calls(text):
            yield Found(PurePosixPath(path.relative_to(root).as_posix()), line, call)


def offences(root: Path, table: Table) -> list[str]:
    """What the table does not allow, and what it allows in vain; a line each."""
    wrong = []
    seen: dict[PurePosixPath, Counter[str]] = {}
    for folder in table.folders:
        if not (root / folder).is_dir():
            raise TableError(f"{folder} is no folder of this checkout")
        for found in calls_in(root, folder):
            counts = seen.setdefault(found.file, Counter())
            counts[found.call] += 1
            if counts[found.call] > table.allowed.get(found.file, Counter())[found.call]:
                wrong.append(
                    f"{found.file}:{found.line}: {found.call}: open it through base/guarded_files.hpp, or say in "
                    "tools/opens.toml why not"
                )
    for file, allowed in table.allowed.items():
        for call, count in allowed.items():
            there = seen.get(file, Counter())[call]
            if there < count:
                wrong.append(f"{file}: {call} is allowed {count} times and there {there} times: mend tools/opens.toml")
    return wrong


def main() -> int:
    """Prints each offence; 1 if there are any."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    root = parser.parse_args().root
    table = parse_table(tomllib.loads((root / "tools" / "opens.toml").read_text(encoding="utf-8")))
    wrong = offences(root, table)
    print("\n".join([*wrong, f"opens: {len(table.folders)} folders, {len(wrong)} offences"]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
