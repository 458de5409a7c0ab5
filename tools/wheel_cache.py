#!/usr/bin/env python3
"""Keeps the wheels that tools/package.sh has built: for another clone, or after `make clean`, with nothing to compile.

A wheel is found by a key: the hash of all that it is made of. That is every source, the Python packages that build it,
the interpreter, the compiler, the words given to CMake, and each header outside of the checkout that a source may
include: the standard library's, the MPI libraries', toml++'s and xxhash's.

The folder is $IOWEIR_WHEEL_CACHE, else ioweir/wheels below $XDG_CACHE_HOME or ~/.cache. IOWEIR_WHEEL_CACHE=off: none.
What lies there is installed without a further question. So it has to be the user's own, and nobody else may be able to
write into it. Runs before any package is installed, so that it needs nothing but Python.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import shutil
import stat
import subprocess
import sys
import sysconfig
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

ROOT: Final = Path(__file__).resolve().parent.parent
VARIABLE: Final = "IOWEIR_WHEEL_CACHE"
KEPT: Final = 6
"""Wheels that stay, the last used ones."""
BUILD_PACKAGES: Final = ("scikit-build-core", "nanobind")
VARIABLES: Final = ("AR", "CC", "CXX", "CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS", "CMAKE_ARGS", "CMAKE_PREFIX_PATH")
"""Those that compilers, CMake and scikit-build-core read. And all that begin with SKBUILD_."""
HEADERS: Final = "#include <toml++/toml.h>\n#include <xxhash.h>\n"
MPI_WRAPPERS: Final = (("mpicc.openmpi", "--showme"), ("mpicc.mpich", "-show"), ("mpicc", "-show"))


def folder(environment: Mapping[str, str]) -> Path | None:
    """Where wheels are kept; None where they are not."""
    if (named := environment.get(VARIABLE)) is not None:
        return None if named in ("", "off") else Path(named).absolute()
    base = environment.get("XDG_CACHE_HOME") or (f"{home}/.cache" if (home := environment.get("HOME")) else "")
    return Path(base) / "ioweir" / "wheels" if base.startswith("/") else None


def problem(place: Path) -> str | None:
    """Why wheels of this folder must not be believed. A folder that is not there is made."""
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        about = place.lstat()
    except OSError as error:
        return f"{place}: {error.strerror}"
    if not stat.S_ISDIR(about.st_mode):
        return f"{place}: is no directory"
    if about.st_uid != os.geteuid():
        return f"{place}: belongs to another user"
    if about.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"{place}: others can write into it (chmod go-w)"
    for parent in place.resolve().parents:
        mode = parent.stat().st_mode
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            return f"{parent}: others can put another folder into the place of {place}"
    return None


def key(sources: Iterable[Path], words: Iterable[str]) -> str:
    """Of files, by their names below the checkout and what they hold, and of words."""
    total = hashlib.sha256()
    for word in words:
        total.update(f"word {len(word)} {word}\n".encode(errors="surrogateescape"))
    names = {os.path.relpath(path, ROOT) if path.is_relative_to(ROOT) else str(path): path for path in sources}
    for name, path in sorted(names.items()):  # by name: a checkout's path must not change the order
        total.update(f"file {name} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode(errors="surrogateescape"))
    return total.hexdigest()


def found(place: Path, key_: str) -> Path | None:
    """The wheel of this key. It counts as used now. One that somebody else has put there is none."""
    for wheel in sorted((place / key_).glob("*.whl")):
        about = wheel.lstat()
        others_write = about.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        if stat.S_ISREG(about.st_mode) and about.st_uid == os.geteuid() and not others_write:
            os.utime(place / key_)
            return wheel
    return None


def keep(place: Path, key_: str, wheel: Path) -> None:
    """Put a copy of the wheel into the folder, whole or not at all. Those that were not used for longest go."""
    beside = place / f".{key_}.{os.getpid()}"
    beside.mkdir(mode=0o700)
    try:
        shutil.copyfile(wheel, beside / wheel.name)
        (beside / wheel.name).chmod(0o600)
        if not (place / key_).exists():
            beside.rename(place / key_)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    kept = sorted((path for path in place.iterdir() if path.is_dir()), key=lambda path: path.stat().st_mtime)
    for old in kept[:-KEPT]:
        shutil.rmtree(old, ignore_errors=True)


def said(command: Sequence[str], given: str = "") -> str:
    """What a command prints; nothing where it is not there."""
    try:
        done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout


def headers(compiler: Sequence[str], text: str) -> set[Path]:
    """What a source with this text includes, on this machine."""
    rule = said([*compiler, "-M", "-"], text).replace("\\\n", " ")
    return {Path(word) for word in rule.partition(":")[2].split() if word != "-"}


def standard_headers() -> str:
    """A source with what the package's sources include of the standard library and the system."""
    lines: set[str] = set()
    for path in source_files():
        if path.suffix in (".cpp", ".hpp", ".c", ".h"):
            text = path.read_text(encoding="utf-8")
            lines |= {line for line in text.splitlines() if line.startswith("#include <") and "nanobind" not in line}
    # Each where it is there: some are for one system or one library.
    return "".join(f"#if __has_include({line[9:]})\n{line}\n#endif\n" for line in sorted(lines) if "mpi.h" not in line)


def source_files() -> list[Path]:
    """What the package is made from."""
    names = said([str(ROOT / "tools" / "package_sources.sh")]).splitlines()
    library = ROOT / "build" / "web" / "echarts.min.js"
    return [*(ROOT / name for name in names), *([library] if library.exists() else [])]


def surroundings(environment: Mapping[str, str]) -> tuple[set[Path], list[str]]:
    """Files and words that say with what the package would be built here."""
    compiler = (environment.get("CXX") or "c++").split()
    files = headers([*compiler, "-std=c++20", "-x", "c++"], HEADERS + standard_headers())
    words = [said([*compiler, "--version"]), said([*compiler, "-dumpfullversion", "-dumpmachine"])]
    for wrapper, show in MPI_WRAPPERS:
        words += [wrapper, said([wrapper, show])]
        files |= headers([wrapper, "-x", "c"], "#include <mpi.h>\n")
    words += [said(["ldd", "--version"]), said(["cmake", "--version"])]
    words += [sys.version, sysconfig.get_config_var("EXT_SUFFIX") or "", platform.machine()]
    words += [f"{name} {metadata.version(name)}" for name in BUILD_PACKAGES]
    words += [
        f"{name}={value}" for name, value in sorted(environment.items()) if name in VARIABLES or name[:7] == "SKBUILD"
    ]
    return files, words


def main() -> None:
    """`key WORD...` prints the key, `get KEY` the wheel, `put KEY WHEEL` keeps one. Without a folder: nothing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("do", choices=["key", "get", "put"])
    parser.add_argument("words", nargs="*")
    asked = parser.parse_args()
    try:
        _carry_out(asked.do, asked.words)
    except OSError as error:  # a full disk is no reason not to build
        print(f"-- no wheel is kept or taken from the cache: {error}", file=sys.stderr)


def _carry_out(do: str, given: Sequence[str]) -> None:
    place = folder(os.environ)
    if place is None:
        return
    if (why := problem(place)) is not None:
        print(f"-- no wheel is kept or taken from the cache: {why}", file=sys.stderr)
        return
    if do == "key":
        files, words = surroundings(os.environ)
        print(key({*source_files(), *files}, [*words, *given]))
    elif do == "get":
        print(found(place, given[0]) or "")
    else:
        keep(place, given[0], Path(given[1]))


if __name__ == "__main__":
    main()
