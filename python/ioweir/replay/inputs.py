"""Which files a program found, and which of their bytes it read: a replay makes these first.

Names come and go: what is renamed keeps its bytes, and what is removed may be made anew by calls of which the trace
holds no flags. Lives here: what each name stands for as the program goes on. Not here: writing the files (write.py).
"""

from __future__ import annotations

import os
from collections import defaultdict
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
_LEAST_HOLE: Final = 16 << 20
"""A shorter stretch between what is read is filled: a hole would be read faster than the file was."""
_MOST_PARTS: Final = 1 << 16
"""Kept of a file before neighbours are put together."""


def find(recorded: Recorded) -> None:
    """Notes them, mends how files are opened that are there no more, and leaves out calls on what nothing has made."""
    _Names(recorded).go()


class _Names:
    def __init__(self, recorded: Recorded) -> None:
        self._recorded = recorded
        self._written: dict[int, int] = {}
        """Of names that were met, how far the file is written."""
        self._found_as: dict[int, int] = {}
        """Of names of renamed files, the name before."""
        self._gone: set[int] = set()
        self._emptying: defaultdict[int, list[Op]] = defaultdict(list)
        """Streams that may have emptied their file."""
        self._missed: list[Op] = []
        """Streams that keep what is in their file, where no call before has made one."""
        self._parts: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
        self._stored: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
        """What is written, by name."""
        self._moved: defaultdict[int, int] = defaultdict(int)
        """Bytes of these calls."""
        self._passing: set[int] = set()
        """Files that their close deletes."""
        self._left_out: set[int] = set()

    def go(self) -> None:
        order = sorted(
            (op.start, rank.rank, number, op)
            for rank in self._recorded.ranks
            for number, op in enumerate(rank.ops)
            if op.file >= 0 and op.use
        )
        for _, _, _, op in order:
            if op.file in self._gone and op.name in _NEEDS_FILE:
                self._left_out.add(id(op))
                self._recorded.left_out[f"{op.name} of a file that is gone by the calls that are replayed"] += 1
            else:
                self._take(op)
        inputs = self._recorded.inputs
        for op in self._missed:
            if op.file not in inputs:
                op.arguments[2] = posix_files.MAKING
        for file, size in inputs.items():
            self._recorded.found_parts[file] = _filled(_clipped(self._parts[file], size), _LEAST_HOLE)
        self._recorded.stored_bytes = self._stored_bytes()
        if self._left_out:
            for rank in self._recorded.ranks:
                rank.ops = [op for op in rank.ops if id(op) not in self._left_out]

    def _take(self, op: Op) -> None:
        file, was_gone = op.file, op.file in self._gone
        made = self._makes(op)
        if file not in self._written:
            self._written[file] = 0
            if not made:
                self._recorded.inputs[file] = 0
        if op.use == "write":
            low = self._written[file] if op.at_end else op.low
            high = low + op.moved if op.at_end else op.high
            self._written[file] = max(self._written[file], high)
            if op.moved:
                self._moved[file] += op.moved
                _add(self._stored[file], low, high, 0)
        elif op.use == "read" and op.moved:
            self._read(op)
        elif op.name == "fopen" and op.arguments[2] in posix_files.EMPTYING and not was_gone:
            self._emptying[file].append(op)
        elif op.use == "remove":
            streams = self._emptying.pop(file, [])
            self._gone.add(file)
            if op.name == "rename":
                self._rename(file, op.arguments[1], streams)

    def _makes(self, op: Op) -> bool:
        """Whether the file need not be there; a name that is gone and is opened is there again."""
        made = op.use in ("make", "write") and op.name != "truncate"
        if op.name == "MPI_File_open":
            made = bool(op.arguments[2] & CREATE)
            if op.arguments[2] & _DELETE_ON_CLOSE:
                self._passing.add(op.file)
        elif op.name == "fopen" and op.use == "make" and op.arguments[2] == posix_files.KEEPING:
            if op.file in self._gone:
                op.arguments[2] = posix_files.MAKING
            elif op.file not in self._written:
                self._missed.append(op)
        elif op.file in self._gone and op.use == "look" and op.name in ("open", "fopen"):
            # Opened and nothing written: the trace holds no flags, and yet it has made the file.
            op.arguments[2] = posix_files.MAKING if op.name == "fopen" else op.arguments[2] | os.O_CREAT
            made = True
        if made and op.name in _MAKES and op.file in self._gone:
            self._gone.discard(op.file)
            self._found_as.pop(op.file, None)
            self._forget_stored(op.file)
        if op.name == "creat":
            self._forget_stored(op.file)
        return made

    def _forget_stored(self, file: int) -> None:
        self._stored.pop(file, None)
        self._moved.pop(file, None)

    def _read(self, op: Op) -> None:
        inputs, source = self._recorded.inputs, self._found_as.get(op.file, op.file)
        if op.high > max(self._written[op.file], inputs.get(source, 0)):
            inputs[source] = op.high
            for stream in self._emptying.pop(op.file, []):
                # What was found is there still: they have not emptied the file.
                stream.arguments[2] = posix_files.KEEPING
        if source in inputs:
            _add(self._parts[source], op.low, op.high, _LEAST_HOLE)

    def _rename(self, file: int, other: int, streams: list[Op]) -> None:
        self._written[other] = self._written[file]
        self._found_as[other] = self._found_as.pop(file, file)
        self._emptying.pop(other, None)
        if streams:
            self._emptying[other] = streams
        self._gone.discard(other)
        for of_name in (self._stored, self._moved):
            of_name.pop(other, None)
            if file in of_name:
                of_name[other] = of_name.pop(file)

    def _stored_bytes(self) -> int:
        """That files which are there at the end need at least, besides what was found."""
        needed = 0
        for file, parts in self._stored.items():
            if file not in self._gone | self._passing:
                found = sum(high - low for low, high in self._recorded.found_parts.get(file, ()))
                span = sum(high - low for low, high in _filled(parts, 0))
                needed += max(0, min(span, self._moved[file]) - found)
        return needed


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
