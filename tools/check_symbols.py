#!/usr/bin/env python3
"""Checks what the preloaded libraries export and what they need.

A preloaded library reaches every process below `ioweir run`: a symbol too many replaces somebody else's function, a
library too many kills shells and launchers, and an undefined symbol of MPI cannot be found where a program loads MPI
RTLD_LOCAL. Lives here: the promise (which symbols, which libraries) and its check. Not here: how the libraries are
linked (src/preload/CMakeLists.txt), the functions themselves (spec/functions.toml).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection, GNUVerSymSection
from elftools.elf.sections import SymbolTableSection

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TOOLS = Path(__file__).resolve().parent
PRELOAD = "libioweir_preload.so"
CONTAINERS = "libioweir_container.so"
BACK_ENDS = ("libioweir_openmpi.so", "libioweir_mpich.so", "libioweir_mpi_abi.so")
# Written by hand: where MPI starts, how programs look functions up, what moves a FILE inline, what makes processes.
HAND_WRITTEN = frozenset(
    {prefix + name for prefix in ("", "P") for name in ("MPI_Init", "MPI_Init_thread", "MPI_Session_init")}
    | {"dlsym", "dlclose", "__overflow", "__uflow", "syscall"}
    | {"_Fork", "clone", "popen", "posix_spawn", "posix_spawnp", "system", "vfork"}
    | {"chmod", "chown", "fchmod", "fchmodat", "fchown", "fchownat", "lchown"}
    | {"fremovexattr", "fsetxattr", "lremovexattr", "lsetxattr", "removexattr", "setxattr"}
    | {"io_uring_peek_batch_cqe", "io_uring_queue_exit"}
    | {"longjmp", "_longjmp", "siglongjmp", "__longjmp_chk"}
)
BACK_END_EXPORTS = frozenset({"ioweir_back_end_start"})
CONTAINER_EXPORTS = frozenset({"ioweir_container_calls"})

# libstdc++ and libgcc are linked statically: a program may bring older ones of its own.
ALLOWED_NEEDED = ("libc.so.", "libm.so.", "libdl.so.", "libpthread.so.", "librt.so.", "ld-linux")
# Weak references that compilers and libstdc++ make; nobody has to define them. __cxa_pure_virtual stands in tables of
# abstract types and is never called; _ITM_.. and _ZGTt.. are transactional memory's, which libstdc++'s exceptions name.
ALLOWED_WEAK = ("__cxa_finalize", "__cxa_pure_virtual", "__gmon_start__", "_ITM_", "_ZGTt")


# The oldest C library that ioweir runs on, when it is built there. What a later one brought is looked up at run time.
OLDEST_GLIBC = (2, 28)
# Functions that exist in it and got a new version since, when glibc 2.33 and 2.34 moved them into libc itself: whoever
# builds on the older system gets the older version.
MOVED = frozenset(
    {"stat", "stat64", "fstat", "fstat64", "lstat", "lstat64", "fstatat", "fstatat64", "mknod", "mknodat"}
    | {"dladdr", "dladdr1", "dlclose", "dlerror", "dlopen", "dlsym", "dlvsym", "dlinfo"}
)
MOVED_PREFIXES = ("pthread_", "__pthread_", "sem_", "aio_", "lio_", "shm_", "timer_")
# Asked for by libstdc++ and libgcc, which are linked in as they were built for that system.
OF_THE_RUNTIME = frozenset({"__libc_single_threaded", "_dl_find_object", "arc4random"})


@dataclass
class Library:
    """What one shared library offers and asks for."""

    path: Path
    exports: set[str] = field(default_factory=set)
    needed: list[str] = field(default_factory=list)
    # Undefined symbols: name -> the library its version names (None: no version, anybody may define it).
    undefined: dict[str, str | None] = field(default_factory=dict)
    weak: set[str] = field(default_factory=set)
    # The version of the C library that an undefined symbol asks for.
    glibc: dict[str, tuple[int, ...]] = field(default_factory=dict)


def read_library(path: Path) -> Library:
    """Reads the dynamic section and the dynamic symbols of an ELF file."""
    library = Library(path)
    with path.open("rb") as stream:
        elf = ELFFile(stream)
        owners = _version_owners(elf)
        versions = next((section for section in elf.iter_sections() if isinstance(section, GNUVerSymSection)), None)
        for section in elf.iter_sections():
            if isinstance(section, DynamicSection):
                tags: Any = section.iter_tags()
                library.needed += [tag.needed for tag in tags if tag.entry.d_tag == "DT_NEEDED"]
            if isinstance(section, SymbolTableSection) and section.name == ".dynsym":
                for index, symbol in enumerate(section.iter_symbols()):
                    _add_symbol(library, symbol, owners, versions, index)
    return library


def _version_owners(elf: ELFFile) -> dict[int, tuple[str, str]]:
    """What each version number means: the library, and the version's name."""
    owners: dict[int, tuple[str, str]] = {}
    for section in elf.iter_sections():
        if isinstance(section, GNUVerNeedSection):
            for needed, auxiliaries in section.iter_versions():
                for auxiliary in auxiliaries:
                    owners[auxiliary.entry.vna_other] = (str(needed.name), str(auxiliary.name))
    return owners


def _add_symbol(library: Library, symbol: Any, owners: dict[int, tuple[str, str]], versions: Any, index: int) -> None:
    if not symbol.name or symbol.entry.st_info.bind == "STB_LOCAL":
        return
    if symbol.entry.st_shndx != "SHN_UNDEF":
        if symbol.entry.st_other.visibility in ("STV_DEFAULT", "STV_PROTECTED"):
            library.exports.add(symbol.name)
        return
    version = versions.get_symbol(index).entry.ndx if versions is not None else None
    owner = owners.get(version & 0x7FFF) if isinstance(version, int) else None
    library.undefined[symbol.name] = owner[0] if owner else None
    if owner and owner[1].removeprefix("GLIBC_").replace(".", "").isdigit():
        library.glibc[symbol.name] = tuple(int(part) for part in owner[1].removeprefix("GLIBC_").split("."))
    if symbol.entry.st_info.bind == "STB_WEAK":
        library.weak.add(symbol.name)


def library_exports(table: Path) -> set[str]:
    """Every symbol of spec/libraries.toml; its families of functions are what the generator makes of them."""
    sys.path.insert(0, str(TOOLS))
    from generator import libraries  # noqa: PLC0415 (found only now)
    from generator.spec import Names  # noqa: PLC0415 (found only now)

    names = Names(tomllib.loads((table.parent / "layers.toml").read_text(encoding="utf-8")))
    functions, _ = libraries.load(tomllib.loads(table.read_text(encoding="utf-8")), names, 1, 1 << 15)
    return {function.symbol for function in functions}


def expected_exports(functions: dict[str, Any]) -> set[str]:
    """Every symbol that a table of functions says is intercepted."""
    names: set[str] = set()
    for table in functions.values():
        for entry in table if isinstance(table, list) else []:
            names |= {symbol["name"] for symbol in entry.get("symbols", [])}
            if entry["name"].startswith("MPI_"):
                forms = [entry["name"]] + ([entry["name"] + "_c"] if entry.get("large_count") else [])
                names |= {prefix + form for form in forms for prefix in ("", "P")}
    return names


def judge(library: Library, exports: Iterable[str]) -> list[str]:
    """What is wrong with a library that ought to export exactly `exports`."""
    wanted = set(exports)
    faults = [f"exports {name}, which is not on the list" for name in sorted(library.exports - wanted)]
    faults += [f"does not export {name}" for name in sorted(wanted - library.exports)]
    faults += [f"needs the library {name}" for name in library.needed if not name.startswith(ALLOWED_NEEDED)]
    for name, version in sorted(library.glibc.items()):
        if version > OLDEST_GLIBC and not (name in MOVED | OF_THE_RUNTIME or name.startswith(MOVED_PREFIXES)):
            wanted_version = ".".join(map(str, version))
            faults.append(f"needs {name} of glibc {wanted_version}, which is newer than 2.28: look it up at run time")
    for name, owner in sorted(library.undefined.items()):
        if name in library.weak and name.startswith(ALLOWED_WEAK):
            continue
        if owner is None or not owner.startswith(ALLOWED_NEEDED):
            kind = "weak undefined" if name in library.weak else "undefined"
            faults.append(f"has the {kind} symbol {name}, which the C library does not define")
    return faults


def main(arguments: list[str] | None = None) -> int:
    """Checks the libraries in the directories given; the exit code is 1 if anything is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directories", nargs="+", type=Path, help="directories that hold the libraries")
    parser.add_argument("--spec", type=Path, default=TOOLS.parent / "spec", help="the directory of functions*.toml")
    options = parser.parse_args(arguments)
    hooks = library_exports(options.spec / "libraries.toml") | HAND_WRITTEN
    for table in options.spec.glob("functions*.toml"):
        hooks |= expected_exports(tomllib.loads(table.read_text(encoding="utf-8")))
    checked = 0
    faults: list[str] = []
    for directory in options.directories:
        if not (directory / PRELOAD).is_file():
            faults.append(f"{directory}: {PRELOAD} is not there; build it first")
        if not any((directory / name).is_file() for name in BACK_ENDS):
            faults.append(f"{directory}: there is no MPI back end; install an MPI library's headers and build again")
        for name, exports in (
            (PRELOAD, hooks), (CONTAINERS, CONTAINER_EXPORTS), *((name, BACK_END_EXPORTS) for name in BACK_ENDS),
        ):  # fmt: skip
            path = directory / name
            if path.is_file():
                faults += [f"{path}: {fault}" for fault in judge(read_library(path), exports)]
                checked += 1
    for fault in faults:
        print(fault, file=sys.stderr)
    print(f"symbols: {checked} libraries, {len(hooks)} hooks, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
