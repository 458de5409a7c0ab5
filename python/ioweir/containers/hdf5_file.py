"""What `ioweir check` says of an HDF5 file: was it closed, or flushed, by the job that wrote it last?

Read from its superblock (HDF5 File Format Specification, version 3.0, II.A) and from the mark that a job under a plan
with `hold_metadata` leaves beside it (src/adapters/hdf5/mark.cpp, docs/explanation/hdf5.md). Not here: whether what is
in the file is sound, which only HDF5 itself can say (h5dump, h5stat).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ioweir.base.guarded_files import open_named
from ioweir.base.units import size
from ioweir.errors import IoweirError

if TYPE_CHECKING:
    from pathlib import Path

MARK: Final = ".ioweir-held"
_SIGNATURE: Final = b"\x89HDF\r\n\x1a\n"
_CONTAINER: Final = b"ioweir container "
_SHORTEST_SUPERBLOCK: Final = 18
_LONGEST_SUPERBLOCK: Final = 128
_FIRST_WITH_FLAGS: Final = 3
_OPEN_FOR_WRITING: Final = 1


@dataclass(frozen=True)
class Superblock:
    """What is read of it."""

    offset: int
    """Where it lies: 0, or behind a user block."""
    version: int
    end: int
    """Of the file, as HDF5 knew it when it last wrote the superblock."""
    open_for_writing: bool
    """Its writer has not closed it; known of version 3 only."""


def _superblock_at(content: bytes, offset: int) -> Superblock | None:
    """Of the bytes at `offset` in a file; None where they are no superblock that is understood."""
    version = content[8]
    at = {0: 24, 1: 28, 2: 12, 3: 12}.get(version)  # base address, free-space or extension address, end of file
    if at is None:
        return None
    bytes_of_offset = content[13] if version < 2 else content[9]
    if bytes_of_offset not in (2, 4, 8) or len(content) < at + 3 * bytes_of_offset:
        return None
    fields = [content[at + i * bytes_of_offset : at + (i + 1) * bytes_of_offset] for i in range(3)]
    end = int.from_bytes(fields[2], "little")  # counted from the beginning of the file, a user block included
    flags = content[11] if version >= _FIRST_WITH_FLAGS else 0
    return Superblock(offset, version, end, bool(flags & _OPEN_FOR_WRITING))


def superblock_of(path: Path) -> Superblock | None:
    """The superblock lies at 0, 512, 1024, 2048 and so on; None where there is none."""
    length = path.stat().st_size
    offset = 0
    with open_named(path) as file:
        while offset + 8 <= length:
            file.seek(offset)
            content = file.read(_LONGEST_SUPERBLOCK)
            if content.startswith(_SIGNATURE):
                return _superblock_at(content, offset) if len(content) >= _SHORTEST_SUPERBLOCK else None
            offset = 2 * offset or 512
    return None


def mark_of(path: Path) -> Path:
    """The file that says that metadata of `path` wait in memory."""
    return path.with_name(path.name + MARK)


def _problems(superblock: Superblock | None, length: int, *, marked: bool) -> list[str]:
    held = "metadata made since then were in memory only"
    if superblock is None:
        return [
            "it has no superblock of HDF5: the job that wrote it held its metadata and has neither flushed nor closed "
            "it; what it wrote cannot be found any more"
        ]
    problems = []
    if length < superblock.end:
        problems.append(f"it is {size(length)} long, and its superblock says {size(superblock.end)}: cut off")
    if superblock.open_for_writing:
        problems.append(
            "its writer has not closed it (if none runs any more: h5clear -s FILE, then look at it with h5dump)"
        )
    if marked:
        beyond = length - superblock.end
        more = f", and {size(beyond)} of data written since then lie where no metadata say so" if beyond > 0 else ""
        problems.append(
            f"a job under ioweir held its metadata and has not closed it: as it was at the last flush, {held}{more} "
            f"(if that job still runs, there is nothing wrong; else remove FILE{MARK} once the file is of use)"
        )
    return problems


def _is_container(path: Path) -> bool:
    with open_named(path) as file:
        return file.read(len(_CONTAINER)) == _CONTAINER


def describe(path: Path) -> dict[str, Any] | None:
    """What can be said of an HDF5 file; None where the path is none."""
    try:
        superblock = superblock_of(path)
        marked = mark_of(path).is_file()
        length = path.stat().st_size
        if superblock is None and (not marked or _is_container(path)):
            return None
    except OSError as error:
        if mark_of(path).is_file():
            raise IoweirError(f"{path}: {error.strerror}, though {mark_of(path)} is there") from error
        return None
    return {
        "path": str(path),
        "format": "hdf5",
        "superblock": superblock.version if superblock else None,
        "bytes": length,
        "held": marked,
        "problems": _problems(superblock, length, marked=marked),
    }
