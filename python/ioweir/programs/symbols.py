"""Addresses in executables and libraries to functions and source lines.

Asks llvm-symbolizer or addr2line where one is installed (they know every form of debug information, and separate debug
files), else reads the tables itself with pyelftools. Judges nothing: which call is worth showing is callsites.py's.
"""

from __future__ import annotations

import bisect
import ctypes
import ctypes.util
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import NoteSection, SymbolTableSection

from ioweir.base.guarded_files import open_named
from ioweir.programs.elf import DAMAGE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

TOOLS: Final = {
    "llvm-symbolizer": ("--output-style=GNU", "-f", "-C", "-i", "-a"),
    "addr2line": ("-f", "-C", "-i", "-a"),
}
_TIMEOUT_S: Final = 120
_PLACE: Final = re.compile(r"(?P<file>.*):(?P<line>\d+|\?)(?: \(discriminator \d+\))?$")
_FORTRAN_MODULE: Final = re.compile(r"__(?P<module>[a-z]\w*?)_MOD_(?P<name>\w+)")


@dataclass(frozen=True)
class Location:
    """A place in a program's source. Unknown parts are None."""

    function: str | None = None
    file: str | None = None
    line: int | None = None


# What functions can stand in.
_HOLDERS: Final = frozenset(
    f"DW_TAG_{kind}" for kind in ("lexical_block", "namespace", "module", "class_type", "structure_type")
)

Chain = tuple[Location, ...]
"""What one address stands for: the function that was compiled in place first, the one that holds it last."""
UNKNOWN: Final[Chain] = (Location(),)


def find_tool() -> str | None:
    """The path of the tool that resolves addresses; None when there is none and the tables are read here."""
    return next((path for name in TOOLS if (path := shutil.which(name))), None)


def build_id(path: str) -> str | None:
    """The GNU build id of an ELF file; "" when it has none, None when it cannot be read."""
    try:
        with open_named(path) as stream:
            for section in ELFFile(stream).iter_sections():
                if isinstance(section, NoteSection):
                    for note in section.iter_notes():
                        if note["n_type"] == "NT_GNU_BUILD_ID":
                            return str(note["n_desc"])
    except (OSError, *DAMAGE):
        return None
    return ""


def resolve(path: str, addresses: Iterable[int], tool: str | None = None) -> dict[int, Chain]:
    """What each address in an ELF file stands for."""
    wanted = sorted(set(addresses))
    if not wanted:
        return {}
    found = _ask(tool, path, wanted) if tool else None
    if found is None:
        found = read_tables(path, wanted)
    return {address: found.get(address, UNKNOWN) for address in wanted}


def tidy(name: str) -> str:
    """A function's name as its programmer wrote it. Example: "__output_MOD_write_field" -> "output::write_field"."""
    module = _FORTRAN_MODULE.fullmatch(name)
    if module:
        return f"{module['module']}::{module['name']}"
    return demangle(name)


# --------------------------------------------------------------------------------------------------- by another tool


def _ask(tool: str, path: str, addresses: Sequence[int]) -> dict[int, Chain] | None:
    options = TOOLS[Path(tool).name]
    try:
        said = subprocess.run(
            [tool, *options, "-e", path],
            input="".join(f"{address:#x}\n" for address in addresses),
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_S,
            check=True,
            env={name: value for name, value in os.environ.items() if name not in ("LD_PRELOAD", "DEBUGINFOD_URLS")},
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    return dict(_answers(said.splitlines()))


def _answers(lines: Sequence[str]) -> Iterator[tuple[int, Chain]]:
    """An address on a line of its own, then pairs of lines: function, file:line."""
    at = 0
    while at < len(lines):
        if not re.fullmatch(r"0x[0-9a-fA-F]+", lines[at]):
            at += 1
            continue
        address = int(lines[at], 16)
        at += 1
        chain: list[Location] = []
        while at + 1 < len(lines) and not re.fullmatch(r"0x[0-9a-fA-F]+", lines[at]):
            function, place = lines[at], _PLACE.match(lines[at + 1])
            known = place is not None and not place["file"].startswith("??")
            line = int(place["line"]) if place is not None and place["line"].isdigit() else 0
            chain.append(
                Location(
                    None if function.startswith("??") else tidy(function),
                    os.path.normpath(place["file"]) if place is not None and known else None,
                    line if known and line else None,
                )
            )
            at += 2
        yield address, tuple(chain) or UNKNOWN


# ---------------------------------------------------------------------------------------------------------- by tables


@lru_cache(maxsize=1)
def _demangler() -> Any:
    """The C++ runtime's own; None without one."""
    name = ctypes.util.find_library("stdc++")
    if name is None:
        return None
    demangle_c = ctypes.CDLL(name).__cxa_demangle
    demangle_c.restype = ctypes.c_void_p
    demangle_c.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int)]
    return demangle_c


def demangle(name: str) -> str:
    """A C++ name in words. Example: "_ZN3app4dumpEi" -> "app::dump(int)"."""
    if not name.startswith("_Z") or _demangler() is None:
        return name
    status = ctypes.c_int()
    text = _demangler()(name.encode(), None, None, ctypes.byref(status))
    if not text:
        return name
    try:
        return ctypes.string_at(text).decode(errors="replace")
    finally:
        free = ctypes.CDLL(None).free
        free.argtypes = [ctypes.c_void_p]
        free(text)


def _debug_file(path: str) -> str:
    """Where the debug information of a file lies: in it, or where distributions put it."""
    number = build_id(path)
    if number:
        separate = Path("/usr/lib/debug/.build-id") / number[:2] / f"{number[2:]}.debug"
        if separate.is_file():
            return str(separate)
    return path


def read_tables(path: str, addresses: Sequence[int]) -> dict[int, Chain]:
    """The same as the tools say, from the tables of the file; what cannot be read is left out."""
    found: dict[int, Chain] = {}
    try:
        with open_named(path) as stream:
            names = _SymbolTable(ELFFile(stream))
        with open_named(_debug_file(path)) as stream:
            elf = ELFFile(stream)
            lines = _Dwarf(elf.get_dwarf_info()) if elf.has_dwarf_info() else None
            for address in addresses:
                symbol = names.at(address)
                chain: Chain = ()
                if lines is not None:
                    try:
                        chain = lines.at(address, symbol)
                    except DAMAGE:
                        chain = ()
                found[address] = chain or (Location(symbol),)
    except (OSError, *DAMAGE):
        return found
    return found


class _SymbolTable:
    """Functions of .symtab, else of .dynsym."""

    def __init__(self, elf: ELFFile) -> None:
        rows: list[tuple[int, int, str]] = []
        for name in (".symtab", ".dynsym"):
            section = elf.get_section_by_name(name)
            if isinstance(section, SymbolTableSection) and not rows:
                rows = [
                    (symbol["st_value"], symbol["st_size"], symbol.name)
                    for symbol in section.iter_symbols()
                    if symbol["st_info"]["type"] in ("STT_FUNC", "STT_GNU_IFUNC") and symbol["st_value"]
                ]
        self._rows = sorted(rows)
        self._starts = [row[0] for row in self._rows]

    def at(self, address: int) -> str | None:
        at = bisect.bisect_right(self._starts, address) - 1
        if at < 0:
            return None
        start, length, name = self._rows[at]
        return tidy(name) if address < start + max(length, 1) else None


class _Dwarf:
    """Lines and compiled-in functions, unit by unit as they are asked for."""

    def __init__(self, dwarf: Any) -> None:
        self._dwarf = dwarf
        self._lines: dict[int, list[tuple[int, int, str, int]]] = {}
        self._units = list(dwarf.iter_CUs())
        self._ranges = dwarf.range_lists()

    def at(self, address: int, symbol: str | None) -> Chain:
        for unit in self._units:
            place = self._line(unit, address)
            if place is None:
                continue
            calls = self._calls(unit, unit.get_top_DIE(), address)
            if not calls:
                return (Location(symbol, *place),)
            # Inlined functions know where they were called; the innermost place is the line table's.
            chain: list[Location] = []
            here: tuple[str | None, int | None] = place
            for depth, (name, call) in enumerate(reversed(calls)):
                outermost = depth == len(calls) - 1
                chain.append(Location((symbol or name) if outermost else name, *here))
                here = call or (None, None)
            return tuple(chain)
        return ()

    def _line(self, unit: Any, address: int) -> tuple[str, int] | None:
        if unit.cu_offset not in self._lines:
            self._lines[unit.cu_offset] = sorted(self._rows(unit))
        rows = self._lines[unit.cu_offset]
        at = bisect.bisect_right(rows, (address, 2**64, "", 0)) - 1
        if at < 0 or address >= rows[at][1]:
            return None
        return rows[at][2], rows[at][3]

    def _rows(self, unit: Any) -> Iterator[tuple[int, int, str, int]]:
        program = self._dwarf.line_program_for_CU(unit)
        if program is None:
            return
        before: Any = None
        for entry in program.get_entries():
            state = entry.state
            if state is None:
                continue
            if before is not None and state.address > before.address and before.line:
                yield before.address, state.address, self._file(unit, program, before.file), before.line
            before = None if state.end_sequence else state

    def _file(self, unit: Any, program: Any, number: int) -> str:
        top = unit.get_top_DIE()
        folder = _text(top, "DW_AT_comp_dir")
        files = program["file_entry"]
        # DWARF 5 counts files from 0, earlier versions from 1, where 0 is the unit itself (DWARF 5, section 6.2.4).
        if program["version"] < 5:
            if number == 0:
                return _joined(folder, _text(top, "DW_AT_name"))
            number -= 1
        entry = files[number]
        folders = [part.decode(errors="replace") for part in program["include_directory"]]
        index = entry.dir_index
        if program["version"] >= 5:
            base = folders[index] if index < len(folders) else ""
        else:
            base = folders[index - 1] if 0 < index <= len(folders) else ""
        return _joined(folder, base, entry.name.decode(errors="replace"))

    def _calls(self, unit: Any, die: Any, address: int) -> list[tuple[str | None, tuple[str, int] | None]]:
        """The functions around an address, outermost first: name, and where it was called if compiled in place."""
        for child in die.iter_children():
            inside = child.tag in ("DW_TAG_subprogram", "DW_TAG_inlined_subroutine")
            if not inside and child.tag not in _HOLDERS:
                continue
            if inside or child.tag == "DW_TAG_lexical_block":
                if not self._covers(unit, child, address):
                    continue
                row: list[tuple[str | None, tuple[str, int] | None]] = []
                if inside:
                    call = None
                    if child.tag == "DW_TAG_inlined_subroutine" and "DW_AT_call_line" in child.attributes:
                        program = self._dwarf.line_program_for_CU(unit)
                        number = child.attributes["DW_AT_call_file"].value
                        call = (self._file(unit, program, number), child.attributes["DW_AT_call_line"].value)
                    row = [(_name(child), call)]
                return row + self._calls(unit, child, address)
            deeper = self._calls(unit, child, address)
            if deeper:
                return deeper
        return []

    def _covers(self, unit: Any, die: Any, address: int) -> bool:
        attributes = die.attributes
        if "DW_AT_low_pc" in attributes and "DW_AT_high_pc" in attributes:
            low, high = attributes["DW_AT_low_pc"].value, attributes["DW_AT_high_pc"]
            end = high.value if high.form == "DW_FORM_addr" else low + high.value
            return bool(low <= address < end)
        if "DW_AT_ranges" not in attributes or self._ranges is None:
            return False
        top = unit.get_top_DIE().attributes
        base = top["DW_AT_low_pc"].value if "DW_AT_low_pc" in top else 0
        for entry in self._ranges.get_range_list_at_offset(attributes["DW_AT_ranges"].value, unit):
            if hasattr(entry, "base_address"):
                base = entry.base_address
            else:
                start = entry.begin_offset + (0 if entry.is_absolute else base)
                if start <= address < entry.end_offset + (0 if entry.is_absolute else base):
                    return True
        return False


def _joined(*parts: str) -> str:
    """A path without "..", which need not exist here."""
    return os.path.normpath(PurePosixPath(*parts))


def _text(die: Any, name: str) -> str:
    value = die.attributes[name].value if name in die.attributes else b""
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _name(die: Any) -> str | None:
    """The name of a function, which a copy compiled in place refers to."""
    for _ in range(4):
        name = _text(die, "DW_AT_linkage_name") or _text(die, "DW_AT_name")
        if name:
            return tidy(name)
        for link in ("DW_AT_abstract_origin", "DW_AT_specification"):
            if link in die.attributes:
                die = die.get_DIE_from_attribute(link)
                break
        else:
            return None
    return None
