"""POSIX and stdio calls of a rank: which descriptor or stream they mean, and with which flags it was opened.

A trace's calls name the file, not the descriptor, and openings do not tell their flags. Where a file is open twice, a
call at a descriptor's own position means the one whose position that is; flags follow from what was done afterwards.
"""

from __future__ import annotations

import heapq
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ioweir.replay.model import Op
from ioweir.trace.reader import OPENED_TO_SYNC

if TYPE_CHECKING:
    from collections import Counter

    from ioweir.replay.model import RankCalls
    from ioweir.replay.mpi_files import Row

_AT_POSITION: Final = frozenset({"read", "write", "readv", "writev"})
_AT_OFFSET: Final = frozenset({"pread", "pwrite", "preadv", "pwritev", "preadv2", "pwritev2"})
_PLAIN: Final = frozenset({"fsync", "fdatasync", "fstat", "flock_lock", "flock_unlock"})
_BY_NAME: Final = {
    "stat": "stat", "lstat": "stat", "fstatat": "stat", "statx": "stat", "access": "access", "faccessat": "access",
    "unlink": "unlink", "unlinkat": "unlink", "remove": "remove", "truncate": "truncate",
}  # fmt: skip
_RENAMES: Final = ("rename", "renameat", "renameat2")
_OPENS: Final = ("open", "openat", "creat", "mkstemp")
_DUPLICATES: Final = ("dup", "dup2", "dup3", "fcntl_dupfd")
_OF_DESCRIPTOR: Final = frozenset({
    *_AT_POSITION, *_AT_OFFSET, *_PLAIN, *_DUPLICATES,
    "close", "lseek", "ftruncate", "fallocate", "posix_fallocate", "fcntl_lock", "fcntl_unlock",
})  # fmt: skip
"""Calls that are made again where it is known on which descriptor; all others are left out anyway."""
_STREAM_READS: Final = ("fread", "fgets", "getline", "getdelim", "fgetc", "fscanf")
_STREAM_WRITES: Final = ("fwrite", "fputs", "fputc", "fprintf")
_SEEKS: Final = ("fseek", "fseeko", "rewind", "fsetpos")
_MODES: Final = ("r", "w", "a", "r+", "w+", "a+")
EMPTYING: Final = (_MODES.index("w"), _MODES.index("w+"))
"""Modes of `fopen` that empty a file, and the one that does not, and that may write anywhere."""
KEEPING: Final = _MODES.index("r+")
MAKING: Final = _MODES.index("w+")
"""What makes a file for which KEEPING is an error, because it is not there."""


@dataclass
class _Opened:
    """A descriptor or a stream."""

    number: int
    opening: Op
    names: int = 1
    """How many descriptors there are of it."""
    place: int = 0
    reads: bool = False
    writes: bool = False
    appends: bool = False
    sizes: bool = False
    syncs: bool = False
    """Every write waits for the disk."""
    first: str = ""
    """What was done first: `read` or `write`."""
    first_place: int = 0
    keeps: bool = False
    """The file was not emptied when it was opened: what was in it is read later."""


@dataclass
class _Reached:
    """How far a rank has written into a file, which is there since."""

    before: int = 0
    """Until the last stream was opened that begins with a write at place 0, and may have emptied it."""
    since: int = 0
    opened: _Opened | None = None

    def wrote(self, opened: _Opened, end: int, *, may_empty: bool) -> None:
        if may_empty and self.opened is not opened:
            self.before, self.since, self.opened = max(self.before, self.since), 0, opened
        self.since = max(self.since, end)

    def read(self, end: int) -> None:
        if self.opened is not None and self.since < end <= self.before:
            self.opened.keeps = True


@dataclass
class _Numbers:
    free: list[int] = field(default_factory=list)
    used: int = 0

    def take(self) -> int:
        if self.free:
            return heapq.heappop(self.free)
        self.used += 1
        return self.used - 1


class PosixFiles:
    """Takes a rank's events in the order of time."""

    def __init__(self, calls: RankCalls, left_out: Counter[str], stand_ins: Counter[str]) -> None:
        self._calls = calls
        self._left_out = left_out
        self._stand_ins = stand_ins
        self._descriptors: dict[int, list[_Opened]] = {}
        self._streams: dict[int, list[_Opened]] = {}
        self._descriptor_numbers = _Numbers()
        self._stream_numbers = _Numbers()
        self._renamed: Row | None = None
        self._reached: dict[int, _Reached] = {}
        self._streams_closed: list[_Opened] = []

    def take(self, row: Row) -> None:
        """An event of the layer POSIX."""
        name = row.function.name
        if name in _OPENS:
            self._open(row)
        elif name in _BY_NAME:
            self._by_name(row, _BY_NAME[name])
        elif name in _RENAMES:
            self._renamed = row
        elif name.endswith(" (to)"):
            self._rename(row)
        else:
            self._of_descriptor(row)

    def take_stream(self, row: Row) -> None:
        """An event of the layer STDIO."""
        name = row.function.name
        if name == "fopen":
            opened = _Opened(self._stream_numbers.take(), self._new(row, "fopen", [], "look"))
            opened.opening.arguments += [opened.number, row.file, 0]
            self._streams.setdefault(row.file, []).append(opened)
            return
        stream = self._last(self._streams, row)
        if stream is None:
            self._left_out[f"{name} of a stream whose opening is not in the trace, or not by fopen"] += 1
        elif name == "fclose":
            self._new(row, "fclose", [stream.number])
            self._close(self._streams, stream, row.file, self._stream_numbers)
        elif name in _STREAM_READS or name in _STREAM_WRITES:
            kind = "fread" if name in _STREAM_READS else "fwrite"
            if name != kind:
                self._stand_ins[f"{name}: {kind} of as many bytes"] += 1
            self._move(row, stream, kind, [stream.number, row.bytes], "read" if kind == "fread" else "write")
        elif name in _SEEKS and (row.offset >= 0 or name == "rewind"):
            if name not in ("fseek", "fseeko"):
                self._stand_ins[f"{name}: fseeko to the same place"] += 1
            stream.place = max(row.offset, 0)  # rewind is told no place
            self._new(row, "fseek", [stream.number, stream.place])
        elif name == "fflush":
            self._new(row, "fflush", [stream.number])
        else:
            self._left_out[name] += 1

    def end(self) -> None:
        """What is open still is finished: how it was opened is known only now."""
        for table, numbers in ((self._descriptors, self._descriptor_numbers), (self._streams, self._stream_numbers)):
            for file, all_opened in table.items():
                for opened in list(all_opened):
                    self._close(table, opened, file, numbers)
        for stream in self._streams_closed:  # what was read later says whether they have emptied their file
            stream.opening.arguments[2] = _MODES.index(_mode(stream))
        self._calls.descriptors = self._descriptor_numbers.used
        self._calls.streams = self._stream_numbers.used

    # ------------------------------------------------------------------------------------------------- descriptors

    def _new(self, row: Row, name: str, arguments: list[int], use: str = "") -> Op:
        op = Op(name, arguments, row.start, row.end, row.file, use=use)
        self._calls.ops.append(op)
        return op

    def _open(self, row: Row) -> None:
        name = row.function.name
        opened = _Opened(self._descriptor_numbers.take(), self._new(row, "open", [], "look"))
        opened.opening.arguments += [opened.number, row.file, 0]
        if name == "creat":
            self._reached.pop(row.file, None)
            opened.opening.name = "creat"
            opened.opening.use = "make"
            opened.opening.arguments.pop()
        elif name != "open":
            self._stand_ins[f"{name}: open"] += 1
        opened.syncs = row.offset == OPENED_TO_SYNC
        if name == "mkstemp":
            opened.sizes = opened.reads = True
        self._descriptors.setdefault(row.file, []).append(opened)

    def _of_descriptor(self, row: Row) -> None:
        name = row.function.name
        descriptor = self._meant(row)
        if descriptor is None:
            can = name in _OF_DESCRIPTOR
            self._left_out[f"{name} of a descriptor whose opening is not in the trace" if can else name] += 1
            return
        number = descriptor.number
        kind = row.function.op
        if name == "close":
            descriptor.names -= 1
            if descriptor.names > 0:
                self._left_out["close of a duplicate descriptor"] += 1
                return
            self._new(row, "close", [number])
            self._close(self._descriptors, descriptor, row.file, self._descriptor_numbers)
        elif name in _DUPLICATES:
            descriptor.names += 1
            self._left_out[f"{name}: calls on the duplicate use the first descriptor"] += 1
        elif name in _AT_POSITION:
            self._move(row, descriptor, name, [number, row.bytes], kind)
        elif name in _AT_OFFSET:
            if row.offset < 0:
                # Past an O_APPEND, or at the position by preadv2 and pwritev2.
                at_position = "read" if kind == "read" else "write"
                self._stand_ins[f"{name} at no offset: {at_position}"] += 1
                self._move(row, descriptor, at_position, [number, row.bytes], kind)
            else:
                self._move(row, descriptor, name, [number, row.bytes, row.offset], kind)
        elif name == "lseek" and row.offset >= 0:
            self._new(row, "lseek", [number, row.offset])
            descriptor.place = row.offset
        elif name == "ftruncate" and row.offset >= 0:
            descriptor.sizes = True
            op = self._new(row, "ftruncate", [number, row.offset], "write")
            op.low = op.high = row.offset
        elif name in ("fallocate", "posix_fallocate") and row.offset >= 0:
            descriptor.sizes = True
            self._new(row, name, [number, row.offset, row.bytes], "write")
        elif name in _PLAIN:
            self._new(row, name, [number])
        elif name in ("fcntl_lock", "fcntl_unlock") and row.offset >= 0:
            descriptor.sizes = True  # a lock to write needs a descriptor to write
            self._new(row, name, [number, row.offset, row.bytes])
        else:
            self._left_out[name] += 1

    def _meant(self, row: Row) -> _Opened | None:
        still_open = self._descriptors.get(row.file)
        if not still_open:
            return None
        if row.function.name in _AT_POSITION and row.offset >= 0:
            for opened in reversed(still_open):
                if opened.place == row.offset:
                    return opened
        return still_open[-1]

    @staticmethod
    def _last(table: dict[int, list[_Opened]], row: Row) -> _Opened | None:
        still_open = table.get(row.file)
        return still_open[-1] if still_open else None

    def _move(self, row: Row, opened: _Opened, name: str, arguments: list[int], kind: str) -> None:
        op = self._new(row, name, arguments, kind)
        place = row.offset if row.offset >= 0 else opened.place
        op.low, op.high, op.moved = place, place + row.bytes, row.bytes
        op.at_end = kind == "write" and row.offset < 0
        opened.reads |= kind == "read"
        opened.writes |= kind == "write"
        if not opened.first:
            opened.first, opened.first_place = kind, place
        if kind == "write" and row.offset < 0:
            opened.appends = True
        if name in _AT_POSITION or name in ("fread", "fwrite"):
            opened.place = place + row.bytes
        if op.at_end:
            self._reached.setdefault(row.file, _Reached()).since += row.bytes
        elif kind == "write":
            may_empty = name == "fwrite" and opened.first == "write" and opened.first_place == 0
            self._reached.setdefault(row.file, _Reached()).wrote(opened, place + row.bytes, may_empty=may_empty)
        elif kind == "read" and row.file in self._reached:
            self._reached[row.file].read(place + row.bytes)

    def _close(self, table: dict[int, list[_Opened]], opened: _Opened, file: int, numbers: _Numbers) -> None:
        table[file].remove(opened)
        heapq.heappush(numbers.free, opened.number)
        op = opened.opening
        if op.name == "fopen":
            self._streams_closed.append(opened)
        elif op.name == "open":
            op.arguments[2] = _flags(opened)
        if opened.writes or opened.sizes:
            op.use = "make"

    # ------------------------------------------------------------------------------------------------------- names

    def _by_name(self, row: Row, name: str) -> None:
        if name != row.function.name:
            self._stand_ins[f"{row.function.name}: {name}"] += 1
        removes = name in ("unlink", "remove")
        if name == "truncate":
            op = self._new(row, name, [row.file, max(row.offset, 0)], "write")
            op.low = op.high = max(row.offset, 0)
        else:
            self._new(row, name, [row.file], "remove" if removes else "look")
            if removes:
                self._reached.pop(row.file, None)

    def _rename(self, row: Row) -> None:
        before, self._renamed = self._renamed, None
        if before is None:
            self._left_out["rename of a file that is not replayed"] += 1
            return
        if before.function.name != "rename":
            self._stand_ins[f"{before.function.name}: rename"] += 1
        op = self._new(row, "rename", [before.file, row.file], "remove")
        self._reached.pop(before.file, None)
        self._reached.pop(row.file, None)
        op.file, op.start = before.file, before.start


def _flags(opened: _Opened) -> int:
    changes = opened.writes or opened.sizes
    if not changes:
        return os.O_RDONLY
    access = os.O_RDWR if opened.reads else os.O_WRONLY
    # Of O_SYNC and O_DSYNC the trace does not say which: the one that costs less.
    return access | os.O_CREAT | (os.O_APPEND if opened.appends else 0) | (os.O_DSYNC if opened.syncs else 0)


def _mode(opened: _Opened) -> str:
    if not opened.writes:
        return "r"
    if opened.appends:
        return "a+" if opened.reads else "a"
    if opened.keeps:
        return "r+"
    if opened.first == "read" or opened.first_place > 0:
        return "r+"
    return "w+" if opened.reads else "w"
