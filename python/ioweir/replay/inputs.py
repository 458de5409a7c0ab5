"""Which files a program found, and which of their bytes it read: a replay makes these first.

Names come and go: what is renamed keeps its bytes, and what is removed may be made anew by calls of which the trace
holds no flags. Lives here: what each name stands for as the program goes on. Not here: writing the files (write.py).
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ioweir.replay import posix_files
from ioweir.replay.mpi_files import CREATE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ioweir.replay.model import Op, Recorded

_NEEDS_FILE: Final = frozenset({"stat", "access", "unlink", "remove", "truncate", "rename", "MPI_File_delete"})
"""By name, and none of them makes the file."""
_MAKES: Final = frozenset({"creat", "open", "fopen", "MPI_File_open"})
_DELETE_ON_CLOSE: Final = 16
"""MPI_MODE_DELETE_ON_CLOSE, of both libraries."""
_OF_STREAMS: Final = frozenset({"fopen", "fread", "fwrite"})
_LEAST_HOLE: Final = 16 << 20
"""A shorter stretch between what is read is filled: a hole would be read faster than the file was."""
_MOST_PARTS: Final = 1 << 16
"""Kept of a file before neighbours are put together."""


def find(recorded: Recorded) -> None:
    """Notes them, mends how files are opened that are there no more, and leaves out calls on what nothing has made."""
    _Names(recorded).go()


@dataclass
class _File:
    """What a name stands for, until another file gets the name."""

    source: int
    """Under this name it was found or made."""
    written: int = 0
    """How far."""
    emptying: list[Op] = field(default_factory=list)
    """Streams that may have emptied it."""
    read: list[tuple[int, int]] = field(default_factory=list)
    stored: list[tuple[int, int]] = field(default_factory=list)
    """What is written, from byte to byte."""
    moved: int = 0
    """Bytes of these calls."""
    passing: bool = False
    """Its close deletes it."""


class _Names:
    def __init__(self, recorded: Recorded) -> None:
        self._recorded = recorded
        self._files: dict[int, _File] = {}
        """By name."""
        self._gone: set[int] = set()
        """Names that had a file, and have none."""
        self._opened: dict[tuple[int, str, int], _File] = {}
        """By rank, what it is (descriptor, stream, MPI file), and number."""
        self._missed: list[Op] = []
        """Streams that keep what is in their file, where no call before has made one."""
        self._found: dict[int, _File] = {}
        self._left_out: set[int] = set()

    def go(self) -> None:
        order = sorted(
            (op.start, rank.rank, number, op)
            for rank in self._recorded.ranks
            for number, op in enumerate(rank.ops)
            if op.file >= 0 and op.use
        )
        for _, rank, _, op in order:
            if op.file in self._gone and op.name in _NEEDS_FILE:
                self._left_out.add(id(op))
                self._recorded.left_out[f"{op.name} of a file that is gone by the calls that are replayed"] += 1
            else:
                self._take(op, rank)
        inputs = self._recorded.inputs
        for op in self._missed:
            if op.file not in inputs:
                op.arguments[2] = posix_files.MAKING
        for name, size in inputs.items():
            self._recorded.found_parts[name] = _filled(_clipped(self._found[name].read, size), _LEAST_HOLE)
        self._recorded.stored_bytes = sum(self._needed(file) for file in self._files.values())
        if self._left_out:
            for calls in self._recorded.ranks:
                calls.ops = [op for op in calls.ops if id(op) not in self._left_out]

    def _take(self, op: Op, rank: int) -> None:
        was_gone = op.file in self._gone
        if op.name in _MAKES:
            file = self._open(op)
            self._opened[rank, _kind(op), op.arguments[0]] = file
        elif op.name in _NEEDS_FILE or not (known := self._opened.get((rank, _kind(op), op.arguments[0]))):
            file = self._named(op, made=op.use == "write" and op.name != "truncate")
        else:
            file = known
        if op.use == "write":
            low = file.written if op.at_end else op.low
            high = low + op.moved if op.at_end else op.high
            file.written = max(file.written, high)
            if op.moved:
                file.moved += op.moved
                _add(file.stored, low, high, 0)
        elif op.use == "read" and op.moved:
            self._read(op, file)
        elif op.name == "fopen" and op.arguments[2] in posix_files.EMPTYING and not was_gone:
            file.emptying.append(op)
        elif op.use == "remove" and op.file in self._files:
            del self._files[op.file]
            self._gone.add(op.file)
            if op.name == "rename":
                self._files[op.arguments[1]] = file
                self._gone.discard(op.arguments[1])

    def _open(self, op: Op) -> _File:
        """What is opened; a name that is gone is there again."""
        made = op.use == "make"
        if op.name == "MPI_File_open":
            made = bool(op.arguments[2] & CREATE)
        elif op.name == "fopen" and made and op.arguments[2] == posix_files.KEEPING:
            if op.file in self._gone:
                op.arguments[2] = posix_files.MAKING
            elif op.file not in self._files:
                self._missed.append(op)
        elif op.file in self._gone and not made:
            # Opened and nothing written: the trace holds no flags, and yet it has made the file.
            op.arguments[2] = posix_files.MAKING if op.name == "fopen" else op.arguments[2] | os.O_CREAT
            op.use = "make"  # other ranks wait for it
            made = True
        file = self._named(op, made=made)
        if op.name == "MPI_File_open" and op.arguments[2] & _DELETE_ON_CLOSE:
            file.passing = True
        elif op.name == "creat":
            file.stored, file.moved = [], 0
        return file

    def _named(self, op: Op, *, made: bool) -> _File:
        """What has the name; where nothing has, it was found, or is made now."""
        file = self._files.get(op.file)
        if file is None:
            file = self._files[op.file] = _File(op.file)
            self._found.setdefault(op.file, file)
            if not made and op.file not in self._gone:
                self._recorded.inputs[op.file] = 0
            self._gone.discard(op.file)
        return file

    def _read(self, op: Op, file: _File) -> None:
        inputs = self._recorded.inputs
        if op.high > max(file.written, inputs.get(file.source, 0)):
            inputs[file.source] = op.high
            for stream in file.emptying:
                # What was found is there still: they have not emptied the file.
                stream.arguments[2] = posix_files.KEEPING
            file.emptying.clear()
        if file.source in inputs:
            _add(self._found[file.source].read, op.low, op.high, _LEAST_HOLE)

    def _needed(self, file: _File) -> int:
        """Bytes that a file which is there at the end takes at least, besides what was found."""
        if file.passing:
            return 0
        found = sum(high - low for low, high in self._recorded.found_parts.get(file.source, ()))
        span = sum(high - low for low, high in _filled(file.stored, 0))
        return max(0, min(span, file.moved) - found)


def _kind(op: Op) -> str:
    """What a call's first number counts. Names are numbers of their own."""
    if op.handle is not None:
        return "MPI file"
    return "stream" if op.name in _OF_STREAMS else "descriptor"


def _add(parts: list[tuple[int, int]], low: int, high: int, hole: int) -> None:
    """A part more; what follows the last one makes it longer."""
    if parts and parts[-1][0] <= low <= parts[-1][1]:
        parts[-1] = (parts[-1][0], max(parts[-1][1], high))
        return
    parts.append((low, high))
    if len(parts) >= _MOST_PARTS:
        parts[:] = _filled(parts, hole)
        if len(parts) >= _MOST_PARTS // 2:
            parts[:] = [(parts[0][0], max(high for _, high in parts))]


def _clipped(parts: Iterable[tuple[int, int]], size: int) -> list[tuple[int, int]]:
    return [(low, min(high, size)) for low, high in parts if low < size]


def _filled(parts: Iterable[tuple[int, int]], hole: int) -> list[tuple[int, int]]:
    """In order, without stretches between them, and before the first, that are shorter than a hole."""
    filled: list[tuple[int, int]] = []
    for low, high in sorted(parts):
        if filled and (low <= filled[-1][1] or low - filled[-1][1] < hole):
            filled[-1] = (filled[-1][0], max(filled[-1][1], high))
        else:
            filled.append((0 if not filled and low < hole else low, high))
    return filled
