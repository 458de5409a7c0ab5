"""What an executable is linked to and what it imports, read from its ELF tables; nothing is loaded or run.

Libraries are looked up as ld.so does it: RPATH, LD_LIBRARY_PATH, RUNPATH, its cache, the default directories.
"""

from __future__ import annotations

import os
import re
import struct
import subprocess
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from elftools.common.exceptions import DWARFError, ELFError
from elftools.elf.elffile import ELFFile

from ioweir.base.guarded_files import open_named

if TYPE_CHECKING:
    from collections.abc import Mapping

_MAGIC = b"\x7fELF"
_SYMBOL_64 = struct.Struct("<IBBHQQ")
DAMAGE: Final = (
    ELFError, DWARFError, ArithmeticError, AssertionError, AttributeError, LookupError, MemoryError, RecursionError,
    TypeError, ValueError, struct.error,
)  # fmt: skip
"""What pyelftools raises at tables that lead nowhere, besides OSError of places that no file has."""
_DEFAULT_DIRECTORIES = ("/lib64", "/usr/lib64", "/lib", "/usr/lib")


@dataclass(frozen=True)
class Binary:
    """The tables of one ELF file."""

    path: str
    machine: str
    bits: int
    interpreter: str | None
    """The dynamic linker; a library has none, a static executable neither."""
    is_dynamic: bool
    needed: tuple[str, ...] = ()
    rpath: tuple[str, ...] = ()
    runpath: tuple[str, ...] = ()
    undefined: frozenset[str] = frozenset()
    defined: frozenset[str] = frozenset()
    notes: frozenset[int] = frozenset()
    """Types of ioweir's own ELF notes: see linking.py."""


@dataclass(frozen=True)
class Closure:
    """An executable with everything it needs, directly or not."""

    binary: Binary
    libraries: dict[str, Binary] = field(default_factory=dict)
    """By soname."""
    missing: tuple[str, ...] = ()


def is_elf(path: str) -> bool:
    """Whether a file begins as an ELF file does."""
    try:
        with open_named(path) as file:
            return file.read(4) == _MAGIC
    except OSError:
        return False


@lru_cache(maxsize=512)
def read(path: str) -> Binary:
    """Read one ELF file; ValueError when it is damaged."""
    with open_named(path) as file:
        try:
            return _read(path, ELFFile(file))
        except (OSError, *DAMAGE) as error:
            raise ValueError(f"{path}: not a readable ELF file: {error}") from error


def _read(path: str, elf: Any) -> Binary:
    interpreter = None
    for segment in elf.iter_segments(type="PT_INTERP"):
        interpreter = segment.get_interp_name()
    lists: dict[str, list[str]] = {"DT_NEEDED": [], "DT_RPATH": [], "DT_RUNPATH": []}
    dynamic = elf.get_section_by_name(".dynamic")
    for tag in dynamic.iter_tags() if dynamic is not None else ():
        if tag.entry.d_tag == "DT_NEEDED":
            lists["DT_NEEDED"].append(tag.needed)
        elif tag.entry.d_tag in ("DT_RPATH", "DT_RUNPATH"):
            value = tag.rpath if tag.entry.d_tag == "DT_RPATH" else tag.runpath
            lists[tag.entry.d_tag].extend(part for part in value.split(":") if part)
    undefined, defined = _symbols(elf, elf.get_section_by_name(".dynsym" if dynamic is not None else ".symtab"))
    return Binary(
        path=path,
        machine=str(elf.get_machine_arch()),
        bits=int(elf.elfclass),
        interpreter=interpreter,
        is_dynamic=dynamic is not None,
        needed=tuple(lists["DT_NEEDED"]),
        rpath=tuple(lists["DT_RPATH"]),
        runpath=tuple(lists["DT_RUNPATH"]),
        undefined=undefined,
        defined=defined,
        notes=frozenset(
            note["n_type"]
            for segment in elf.iter_segments(type="PT_NOTE")
            for note in segment.iter_notes()
            if note["n_name"] == "ioweir"
        ),
    )


def _symbols(elf: Any, table: Any) -> tuple[frozenset[str], frozenset[str]]:
    if table is None:
        return frozenset(), frozenset()
    undefined: set[str] = set()
    defined: set[str] = set()
    if elf.elfclass == 64 and elf.little_endian:
        # pyelftools builds an object a symbol, a hundred times slower on large libraries.
        names = elf.get_section(table["sh_link"]).data()
        for name, _, _, section, _, _ in _SYMBOL_64.iter_unpack(table.data()):
            text = names[name : names.index(b"\0", name)].decode("utf-8", "replace")
            (defined if section else undefined).add(text)
    else:
        for symbol in table.iter_symbols():
            (undefined if symbol["st_shndx"] == "SHN_UNDEF" else defined).add(symbol.name)
    return frozenset(undefined - {""}), frozenset(defined - {""})


@lru_cache(maxsize=1)
def cached_libraries() -> dict[str, list[str]]:
    """What ld.so's cache holds: soname to paths."""
    for tool in ("ldconfig", "/sbin/ldconfig", "/usr/sbin/ldconfig"):
        try:
            listing = subprocess.run(
                [tool, "-p"], capture_output=True, text=True, errors="surrogateescape", check=False, timeout=30
            ).stdout
        except (OSError, subprocess.TimeoutExpired):
            continue
        result: dict[str, list[str]] = {}
        for match in re.finditer(r"^\s+(\S+) \(.*\) => (\S+)$", listing, re.MULTILINE):
            result.setdefault(match.group(1), []).append(match.group(2))
        return result
    return {}


def find_library(soname: str, user: Binary, executable: Binary, environment: Mapping[str, str]) -> str | None:
    """Where ld.so would take a library from, None when nowhere."""
    if "/" in soname:
        return soname if is_elf(soname) else None
    directories: list[str] = []
    if not user.runpath:
        directories += _expand(user.rpath, user.path)
        directories += _expand(executable.rpath, executable.path) if not executable.runpath else []
    directories += [entry for entry in environment.get("LD_LIBRARY_PATH", "").split(":") if entry]
    directories += _expand(user.runpath, user.path)
    candidates = [str(Path(directory) / soname) for directory in directories]
    candidates += cached_libraries().get(soname, [])
    candidates += [f"{directory}/{soname}" for directory in _DEFAULT_DIRECTORIES]
    for candidate in candidates:
        if is_elf(candidate):
            try:
                found = read(candidate)
            except ValueError:
                continue
            if (found.machine, found.bits) == (executable.machine, executable.bits):
                return candidate
    return None


def _expand(entries: tuple[str, ...], path: str) -> list[str]:
    origin = str(Path(os.path.realpath(path)).parent)
    return [entry.replace("${ORIGIN}", origin).replace("$ORIGIN", origin) for entry in entries]


def closure(path: str, environment: Mapping[str, str]) -> Closure:
    """Walk the libraries that an executable needs, breadth first as ld.so does."""
    executable = read(path)
    libraries: dict[str, Binary] = {}
    missing: dict[str, None] = {}
    queue = [(soname, executable) for soname in executable.needed]
    while queue:
        soname, user = queue.pop(0)
        if soname in libraries or soname in missing:
            continue
        found = find_library(soname, user, executable, environment)
        if found is None:
            missing[soname] = None
            continue
        libraries[soname] = read(found)
        queue += [(name, libraries[soname]) for name in libraries[soname].needed]
    return Closure(executable, libraries, tuple(missing))
