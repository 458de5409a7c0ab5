"""A log of Darshan 3 compressed by bzip2 (`darshan-convert --bzip2`) as one compressed by zlib.

PyDarshan as PyPI has it is built without bzip2, and refuses such logs. Whether they are whole is darshan_regions.py's
question: here a region that is damaged or cut off is what could be expanded of it.
"""

from __future__ import annotations

import bz2
import os
import struct
import tempfile
import zlib
from typing import IO, TYPE_CHECKING, Any, Final

from ioweir.base.guarded_files import open_named
from ioweir.base.units import size
from ioweir.errors import IoweirError, reason
from ioweir.imports import darshan_regions
from ioweir.imports.darshan_regions import BZIP2, ZLIB, header

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from ioweir.imports.darshan_regions import Header

MOST_EXPANDED: Final = 1 << 30
_PIECE: Final = 1 << 20
_FASTEST: Final = 1


def as_zlib(path: Path) -> tuple[IO[bytes], list[str]] | None:
    """A file without a name that holds the log, and what it lacks; None of a log that is not compressed by bzip2."""
    with open_named(path) as file:
        found = header(file, {}, os.fstat(file.fileno()).st_size)
        if found is None or found.compression != BZIP2:
            return None
        try:
            return _written(file, found)
        except OSError as error:
            raise IoweirError(
                f"'{path}' cannot be expanded in {tempfile.gettempdir()}: {reason(error)}; name a folder with room: "
                "TMPDIR=DIR"
            ) from error


def _written(file: IO[bytes], found: Header) -> tuple[IO[bytes], list[str]]:
    file.seek(0)
    head = bytearray(file.read(found.layout.bytes))
    head[found.layout.compression_at] = ZLIB
    made = tempfile.TemporaryFile()  # noqa: SIM115 (the caller closes it)
    try:
        made.write(head)
        left = MOST_EXPANDED
        for region in found.regions:
            begin, packer = made.tell(), zlib.compressobj(_FASTEST)
            for data in _expanded(file, region, left):
                left -= len(data)
                made.write(packer.compress(data))
            made.write(packer.flush())
            if region.at:
                struct.pack_into(f"{found.order}QQ", head, region.at, begin, made.tell() - begin)
        made.seek(0)
        made.write(head)
        made.flush()
    except BaseException:
        made.close()
        raise
    return made, [f"the log holds more than {size(MOST_EXPANDED)}: the rest is left out"] if left <= 0 else []


def _expanded(file: IO[bytes], region: darshan_regions.Region, most: int) -> Iterator[bytes]:
    """A row of streams; as much as can be expanded, and no more than a piece beyond `most`."""
    stream: Any = None
    for piece in darshan_regions.pieces(file, region):
        data = piece
        while most > 0 and (data or (stream is not None and not stream.needs_input)):
            stream = bz2.BZ2Decompressor() if stream is None else stream
            try:
                found = stream.decompress(data, _PIECE)
            except (OSError, ValueError):
                return
            most -= len(found)
            yield found
            data = stream.unused_data if stream.eof else b""
            stream = None if stream.eof else stream


def lengths(path: Path, made: IO[bytes], modules: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """What PyDarshan says of the modules of the file that was made, with the lengths that they have in the log."""
    made.seek(0)
    there = header(made, modules, os.fstat(made.fileno()).st_size)
    with open_named(path) as file:
        here = header(file, {}, os.fstat(file.fileno()).st_size)
    if there is None or here is None:
        return {name: dict(module) for name, module in modules.items()}
    own = {region.number: region.length for region in here.regions}
    known = {region.name: own.get(region.number, 0) for region in there.regions if region.number >= 0}
    return {name: {**module, "len": known.get(name, module.get("len", 0))} for name, module in modules.items()}
