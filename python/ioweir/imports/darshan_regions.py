"""Whether a log of Darshan 3 is whole: its header's table of regions against the bytes that follow.

Needs no PyDarshan, which takes a region that ends early, or that cannot be expanded, for one without further records.
A log is an uncompressed header, then job, names and the modules' records, one region behind the other without a gap.
A region is a row of compressed streams, one of each process that wrote it; each stream ends with a checksum
(darshan-log-format.h, darshan-logutils.c). What the records say is not judged here.
"""

from __future__ import annotations

import bz2
import os
import struct
import zlib
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, ClassVar, Final

from ioweir.base.guarded_files import open_named
from ioweir.base.units import plural, size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

_MAGIC: Final = 6567223
ZLIB, BZIP2 = 0, 1
"""The third kind is not compressed and has no checksums."""
_PAIR: Final = 16
"""Bytes of a region's offset and length."""
_C_INT: Final = (1 << 32) - 1
"""PyDarshan has lengths as C's int."""
_PIECE: Final = 1 << 20
MOST_EXPANDED: Final = 4 << 30
"""Of a log; more is not expanded to see whether it is whole."""


@dataclass(frozen=True)
class _Layout:
    """Where a header has what; the fields that are not here are not needed."""

    compression_at: ClassVar[int] = 16
    flags_at: int
    flags: str
    names_at: int
    modules: int

    @property
    def table_at(self) -> int:
        return self.names_at + _PAIR

    @property
    def bytes(self) -> int:
        """Of a header; behind the table each module has a version of 4 bytes."""
        return self.table_at + self.modules * (_PAIR + 4)


_SIXTEEN: Final = _Layout(flags_at=20, flags="I", names_at=24, modules=16)
_SIXTY_FOUR: Final = _Layout(flags_at=24, flags="Q", names_at=32, modules=64)
_SINCE_64: Final = 3.41
"""The first format with 64 modules."""


@dataclass(frozen=True)
class Region:
    """A part of a log."""

    name: str
    begin: int
    length: int
    number: int = -1
    """Of a module, in the log."""
    at: int = 0
    """Where the header says begin and length; 0 of the job, which it does not have."""

    @property
    def end(self) -> int:
        """Of the byte behind its last."""
        return self.begin + self.length


@dataclass(frozen=True)
class Header:
    """What the head of a log says."""

    order: str
    layout: _Layout
    compression: int
    regions: list[Region]
    flags: int
    """By the number of a module: it ran out of memory."""


def troubles(
    path: Path, modules: Mapping[str, Mapping[str, Any]], records: Mapping[str, tuple[int, int]] | None = None
) -> list[str]:
    """What of a log is cut off or damaged; empty of a whole log, and of a header that is not understood.

    `modules`: what PyDarshan says of each, of which `idx` and `len` are used. `records`: of modules whose records have
    one length each how many were read, and their bytes in the newest version.
    """
    with open_named(path) as file:
        size_bytes = os.fstat(file.fileno()).st_size
        head = header(file, modules, size_bytes)
        if head is None:
            return []
        found = _placement(head.regions, head.layout.bytes, size_bytes)
        left = MOST_EXPANDED
        for region in head.regions:
            if region.end <= size_bytes:
                why, used = _trouble(file, region, head.compression, left)
                left -= used
                why = why or _left_over(region, used if head.compression in (ZLIB, BZIP2) else region.length, records)
                found += [f"{region.name}: {why}"] if why else []
    return found


def ran_out(path: Path, modules: Mapping[str, Mapping[str, Any]]) -> tuple[set[str], int] | None:
    """Modules that ran out of memory, and how many did of which the log has no records. None: see `troubles`.

    PyDarshan takes the flags as they are in the log: not by its byte order, and not by its version's numbers.
    """
    with open_named(path) as file:
        head = header(file, modules, os.fstat(file.fileno()).st_size)
    if head is None:
        return None
    there = {region.number: region.name for region in head.regions if region.number >= 0}
    set_ones = [number for number in range(head.layout.modules) if head.flags >> number & 1]
    return {there[number] for number in set_ones if number in there}, sum(number not in there for number in set_ones)


def header(file: IO[bytes], modules: Mapping[str, Mapping[str, Any]], size_bytes: int) -> Header | None:
    """What the head of an open log says; None where it is not understood. `modules`: as of `troubles`."""
    head = file.read(_SIXTY_FOUR.bytes)
    order = next((one for one in "<>" if head[8:16] == struct.pack(f"{one}q", _MAGIC)), None)
    layout = _layout(head)
    if order is None or len(head) < layout.bytes:
        return None
    regions = _regions(head, layout, order, modules, size_bytes)
    if not {*modules} <= {region.name for region in regions}:
        return None
    (flags,) = struct.unpack_from(order + layout.flags, head, layout.flags_at)
    return Header(order, layout, head[layout.compression_at], regions, flags)


def _layout(head: bytes) -> _Layout:
    try:
        return _SIXTEEN if float(head[:8].split(b"\0")[0]) < _SINCE_64 else _SIXTY_FOUR
    except ValueError:
        return _SIXTY_FOUR


def _regions(
    head: bytes, layout: _Layout, order: str, modules: Mapping[str, Mapping[str, Any]], size_bytes: int
) -> list[Region]:
    """In the order of the table. A module's number differs between formats, the order of modules does not."""
    names = struct.unpack_from(f"{order}QQ", head, layout.names_at)
    table = [struct.unpack_from(f"{order}QQ", head, layout.table_at + _PAIR * i) for i in range(layout.modules)]
    known = sorted(modules.items(), key=lambda one: int(one[1].get("idx", 0)))
    found = [Region("names of files", int(names[0]), int(names[1]), at=layout.names_at)] if names[1] else []
    for number, (begin, length) in enumerate(table):
        if length:
            is_known = bool(known) and int(known[0][1].get("len", 0)) & _C_INT == length & _C_INT
            name = known.pop(0)[0] if is_known else "a module that is not known"
            found.append(Region(name, begin, length, number, layout.table_at + _PAIR * number))
    first = min((region.begin for region in found), default=size_bytes)  # a job without files has nothing else
    return [*([Region("job", layout.bytes, first - layout.bytes)] if first > layout.bytes else []), *found]


def _placement(regions: list[Region], at: int, size_bytes: int) -> list[str]:
    """Regions that lie behind the end of the file, and bytes that no region has."""
    cut = [region for region in regions if region.end > size_bytes]
    if cut:
        end, names = max(region.end for region in cut), ", ".join(region.name for region in cut)
        return [f"the log is cut off: it has {size_bytes:,} of {end:,} bytes; not whole: {names}"]
    for region in sorted(regions, key=lambda one: one.begin):
        if region.begin != at:
            return [f"the log's header is damaged: no region begins at byte {at:,}"]
        at = region.end
    return [f"the log's header is damaged: no region has the last {size_bytes - at:,} bytes"] if at < size_bytes else []


def _trouble(file: IO[bytes], region: Region, compression: int, most: int) -> tuple[str, int]:
    """Why a region is not whole, "" where it is; and the bytes that were expanded for that."""
    makes: dict[int, Callable[[], Any]] = {ZLIB: zlib.decompressobj, BZIP2: bz2.BZ2Decompressor}
    if compression not in makes:
        return "", 0
    expanded = 0
    stream: Any = None
    try:
        for piece in pieces(file, region):
            data = piece
            while data or (stream is not None and not stream.eof and _holds_more(stream)):
                stream = makes[compression]() if stream is None else stream
                expanded += len(stream.decompress(data, _PIECE))
                if expanded > most:
                    return f"not checked, as the log holds more than {size(MOST_EXPANDED)}", expanded
                data = stream.unused_data if stream.eof else getattr(stream, "unconsumed_tail", b"")
                stream = None if stream.eof else stream
    except (OSError, ValueError, zlib.error) as error:
        return f"its bytes are damaged ({error}), and what was read of it may be wrong", expanded
    return ("its bytes end too early, and its last records are missing" if stream is not None else ""), expanded


def _left_over(region: Region, total: int, records: Mapping[str, tuple[int, int]] | None) -> str:
    """That a module's bytes are more than its records; "" where they are not, or where that is not known."""
    count, each = (records or {}).get(region.name, (0, 0))
    if each and (total > count * each or (count and total % count)):
        return f"{count:,} {plural('record', count)} of its {total:,} bytes could be read, and the rest is no record"
    return ""


def _holds_more(stream: Any) -> bool:
    """Of bzip2, whose decompressor keeps what it has not expanded yet; zlib's gives it back."""
    return not getattr(stream, "needs_input", True)


def pieces(file: IO[bytes], region: Region) -> Iterator[bytes]:
    """A region's bytes, as far as the file has them."""
    file.seek(region.begin)
    left = region.length
    while left and (piece := file.read(min(left, _PIECE))):
        left -= len(piece)
        yield piece
