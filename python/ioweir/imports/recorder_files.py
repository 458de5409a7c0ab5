"""The files of a trace of Recorder, in whichever of three ways they lie in its directory.

Up to 3.0 there is a file VERSION, and recorder.mt has the names of functions as lines. Later there is no VERSION:
recorder.mt begins with the version, and names have 64 bytes each. Or recorder.dat holds all files as sections
(tools/reader.c and tools/verifyio/recorder_reader.py in Recorder's repository).
"""

from __future__ import annotations

import errno
import os
import re
import struct
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ioweir.base.guarded_files import Folder

COMBINED: Final = "recorder.dat"
HEAD: Final = "recorder.mt"
MOST_FILE: Final = 1 << 30
_MAGIC: Final = b"RECORDER"
_FIRST: Final = struct.Struct("<8sII")
_SECTION: Final = struct.Struct("<IiQQ")
_MOST_SECTIONS: Final = 1 << 22
_OF_ALL: Final = {HEAD: 0, "recorder.ts": 1, "recorder.cst": 2, "ug.cfg": 3, "ug.mt": 4}
_OF_A_RANK: Final = {"cst": 5, "cfg": 6}


class Files:
    """Read by the names that they have where each is one."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._whole = b""
        self._sections: dict[tuple[int, int], tuple[int, int]] = {}
        self.says_its_version = folder.status("VERSION") is None
        """The head begins with it."""
        if folder.status(COMBINED) is not None:
            self.says_its_version = True
            self._whole = folder.read(COMBINED, MOST_FILE)
            self._index()

    def _index(self) -> None:
        magic, _, count = _FIRST.unpack_from(self._whole)
        if magic != _MAGIC or count > _MOST_SECTIONS:
            raise ValueError(f"{COMBINED} begins with {magic!r} and says it has {count:,} sections")
        for number in range(count):
            kind, rank, begin, length = _SECTION.unpack_from(self._whole, _FIRST.size + number * _SECTION.size)
            if begin > len(self._whole) or length > len(self._whole) - begin:
                raise ValueError(f"{COMBINED} is cut off: section {number} ends at byte {begin + length:,}")
            self._sections.setdefault((kind, rank), (begin, length))

    def read(self, name: str, most: int = MOST_FILE) -> bytes:
        """The whole of a file; OSError where it is not there."""
        if not self._sections:
            return self._folder.read(name, most)
        part = re.fullmatch(r"(\d+)\.(cst|cfg)", name)
        kind, rank = (_OF_A_RANK[part[2]], int(part[1])) if part else (_OF_ALL.get(name, -1), -1)
        if (kind, rank) not in self._sections:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), f"{COMBINED}:{name}")
        begin, length = self._sections[kind, rank]
        return self._whole[begin : begin + length]


def is_there(folder: Folder) -> bool:
    """Whether a directory looks like one of Recorder's."""
    return any(folder.status(name) is not None for name in (HEAD, COMBINED))
