"""What it costs that one rank does the I/O of all, besides its own calls: the others wait while it collects, packs and
passes on.

The rank's timeline is made of its I/O calls, of the messages by which it collects what it writes (or passes on what it
has read), and of pauses. A stretch is a part of it in which these follow each other without a longer pause than copying
takes. What counts is how long another rank, in the mean, waits in MPI meanwhile. Who computes instead loses nothing,
and a rank that waits for the others, because they still compute, is not what they wait for.

Example: rank 0 gathers from 0 s to 3 s, packs until 4 s and writes until 6 s; rank 1 waits from 1 s to 6 s. Rank 0's
write costs 2 s, and before it rank 1 waits from 1 s to 4 s: 3 s more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from ioweir.findings.intervals import covered
from ioweir.findings.spared import longest_pause_ns

if TYPE_CHECKING:
    import numpy.typing as npt

    from ioweir.findings.columns import Columns, Mask

    Numbers: TypeAlias = npt.NDArray[np.int64]
else:
    Numbers = Any

COLLECTS: Final = ("MPI_Recv", "MPI_Mrecv", "MPI_Probe", "MPI_Mprobe", "MPI_Gather", "MPI_Gatherv")
PASSES: Final = ("MPI_Send", "MPI_Ssend", "MPI_Rsend", "MPI_Bsend", "MPI_Scatter", "MPI_Scatterv", "MPI_Bcast")
_BROADCAST: Final = "MPI_Bcast"
EITHER: Final = ("MPI_Wait", "MPI_Win_", "MPI_Allgather", "MPI_Reduce", "MPI_Sendrecv")
"""They may move this data, or be the program's own communication: beside I/O they count, in a row of messages not."""
COPIES: Final = 3
COPY_NS_PER_BYTE: Final = 1
UNSEEN_NS: Final = 10_000
"""A message that took no longer leaves no event (src/tracer/hooks/waiting.hpp)."""
_CLOSE_NS: Final = 5_000
_IO, _STRONG, _WEAK, _OTHER = range(4)


@dataclass(frozen=True)
class Staging:
    """Seconds of another rank, in the mean, in MPI."""

    beside: float
    """While the rank collects, packs, passes on, or opens and closes: not in its calls that move data or sync."""
    whole: float
    """These calls included."""
    working: float
    """Of `beside`, while the rank is in no call for longer than copying takes: it computes, as if it formats text."""
    broadcast: bool = False
    """Most of the time of the rank's own messages is in MPI_Bcast: all ranks get the same."""


@dataclass(frozen=True)
class _Timeline:
    """A rank's I/O calls and messages, by start."""

    start: Numbers
    end: Numbers
    kind: Numbers
    bytes: Numbers
    """Of the calls that move the data; of the others 0."""
    priced: Mask
    """These calls, and syncs, which are sync-cost's: their time is no staging."""
    idle_start: Numbers
    """When the rank waits in MPI for something else: a pause."""
    idle_end: Numbers


def staging(run: Columns, unit: int, calls: Mask, op: str) -> Staging:
    """What the other ranks wait while one makes `calls` (all of that rank) for them, and what leads to these calls.

    `op`: of "write" the messages before the calls belong to them, of "read" those behind.
    """
    begin, stop = _other_waits(run, unit)
    line = _timeline(run, unit, calls, COLLECTS if op == "write" else PASSES)
    if not begin.size or not (line.bytes > 0).any():
        return Staging(0.0, 0.0, 0.0)
    of_stretches = covered(*_stretches(run, line, op))
    # Nor is a barrier on the way staging: the rank waits for the others there, as they for it.
    apart_from = np.r_[line.start[line.priced], line.idle_start]
    apart_to = np.r_[line.end[line.priced], line.idle_end]

    def waited(start: Numbers, end: Numbers) -> float:
        """How long the others wait in those of the intervals that lie in stretches; nanoseconds, summed over them."""
        within = of_stretches(end) - of_stretches(start) >= end - start
        until = covered(start[within], end[within])
        return float((until(stop) - until(begin)).sum())

    whole = float((of_stretches(stop) - of_stretches(begin)).sum())
    others = run.unit_count - 1
    beside = max(whole - waited(apart_from, apart_to), 0.0) / others
    calling = waited(np.r_[line.start, line.idle_start], np.r_[line.end, line.idle_end])
    copying = float(_copying_ns(run, line.bytes[line.bytes > 0]).sum())
    working = min(max((whole - calling) / others - copying, 0.0), beside)
    return Staging(beside / 1e9, whole / others / 1e9, working / 1e9, op == "read" and _broadcasts(run, unit))


def _broadcasts(run: Columns, unit: int) -> bool:
    """Whether half or more of the time of a rank's messages is in MPI_Bcast, and none in calls that deal out parts."""
    waits = np.flatnonzero(run.waits.unit == unit)
    names = [run.names[of] for of in run.waits.function[waits]]
    spent = dict.fromkeys((_IO, _STRONG, _WEAK, _OTHER), 0)
    together = 0
    for name, took in zip(names, (run.waits.end - run.waits.start)[waits].tolist(), strict=True):
        if name == _BROADCAST:
            together += took
        else:
            spent[_kind(name, PASSES)] += took
    return together > 0 and not spent[_STRONG] and together >= spent[_WEAK]


def _other_waits(run: Columns, unit: int) -> tuple[Numbers, Numbers]:
    """When the other ranks wait: in MPI, in collective MPI-IO calls for who comes last, or with nothing left to do.

    A rank's waits do not overlap.
    """
    waits = run.waits
    in_mpi = np.flatnonzero(waits.unit != unit)
    in_io = np.flatnonzero((run.meeting >= 0) & (run.arrival_shift > 0) & (run.unit != unit))
    done = _ends(run)
    early = np.array([at for at in done if at != unit and done[at] < done.get(unit, -1)], dtype=np.int64)
    who = np.r_[waits.unit[in_mpi], run.unit[in_io], early]
    begin = np.r_[waits.start[in_mpi], run.start[in_io], np.array([done[int(at)] for at in early], dtype=np.int64)]
    stop = np.r_[waits.end[in_mpi], run.arrival[in_io], np.full(early.size, done.get(unit, 0), dtype=np.int64)]
    order = np.lexsort((begin, who))
    who, begin, stop = who[order], begin[order], stop[order]
    for at in np.unique(who[1:][(who[1:] == who[:-1]) & (begin[1:] < stop[:-1])]):
        own = who == at
        reached = np.r_[begin[own][:1], np.maximum.accumulate(stop[own])[:-1]]
        begin[own] = np.maximum(begin[own], reached)
        stop[own] = np.maximum(stop[own], begin[own])
    return begin, stop


def _ends(run: Columns) -> dict[int, int]:
    """When each rank came to MPI_Finalize, where it did."""
    return {
        unit: process.mpi_finalize_ns
        for unit, process in zip(run.who.units, run.trace.processes, strict=True)
        if unit >= 0 and process.mpi_finalize_ns >= 0
    }


def _timeline(run: Columns, unit: int, calls: Mask, messages: tuple[str, ...]) -> _Timeline:
    io = np.flatnonzero(run.outermost & (run.unit == unit))
    kinds = np.array([_kind(name, messages) for name in run.names], dtype=np.int64)
    waits = np.flatnonzero(run.waits.unit == unit)
    kind = kinds[run.waits.function[waits]]
    own, idle = waits[kind != _OTHER], waits[kind == _OTHER]
    start = np.r_[run.start[io], run.waits.start[own]]
    order = np.argsort(start, kind="stable")
    return _Timeline(
        start=start[order],
        end=np.r_[run.end[io], run.waits.end[own]][order],
        kind=np.r_[np.full(io.size, _IO), kind[kind != _OTHER]][order],
        bytes=np.r_[np.where(calls[io], np.maximum(run.bytes[io], 1), 0), np.zeros(own.size, dtype=np.int64)][order],
        priced=np.r_[(calls | run.is_op("sync"))[io], np.zeros(own.size, dtype=bool)][order],
        idle_start=run.waits.start[idle],
        idle_end=run.waits.end[idle],
    )


def _kind(name: str, messages: tuple[str, ...]) -> int:
    if name in messages:
        return _STRONG
    return _WEAK if name.startswith(EITHER) and not name.startswith("MPI_Reduce_") else _OTHER


def _stretches(run: Columns, line: _Timeline, op: str) -> tuple[Numbers, Numbers]:
    """Beginnings and ends of the stretches that have a call which moves the data."""
    reached = np.maximum.accumulate(line.end)
    gap = np.maximum(line.start[1:] - reached[:-1], 0)
    copying = _copying_ns(run, _led_to(line, op))
    # Before an I/O call a pause may also be the program's own preparing, as everywhere (spared.py).
    preparing = np.maximum(_copying_ns(run, _moved_next(line)), longest_pause_ns(run))
    joined = _joined(line, gap, preparing, copying, op)
    number = np.cumsum(np.r_[0, ~joined])
    count = int(number[-1]) + 1
    io = np.flatnonzero(line.kind == _IO)
    far = np.iinfo(np.int64).max
    # Messages behind the last write pass nothing on, and those before the first read collect nothing for it.
    of_start, of_end = (slice(None), io) if op == "write" else (io, slice(None))
    begin, stop = np.full(count, far), np.full(count, -far)
    np.minimum.at(begin, number[of_start], line.start[of_start])
    np.maximum.at(stop, number[of_end], line.end[of_end])
    if op == "read":  # what has left this rank is still on its way to the others
        largest = np.zeros(count, dtype=np.int64)
        np.maximum.at(largest, number, line.bytes)
        stop += _copying_ns(run, largest)
    moves = np.bincount(number, line.bytes, minlength=count) > 0
    return begin[moves], stop[moves]


def _copying_ns(run: Columns, moved: Numbers) -> Numbers:
    """How long the rank may be in no call that it knows of while it copies so many bytes: messages may be too short."""
    copying: Numbers = COPIES * COPY_NS_PER_BYTE * moved + UNSEEN_NS * (run.unit_count - 1)
    return copying


def _moved_next(line: _Timeline) -> Numbers:
    """Of each entry the bytes of the next call that moves data, itself included; 0 behind the last one."""
    at = np.arange(line.bytes.size)
    following = np.minimum.accumulate(np.where(line.bytes > 0, at, at.size)[::-1])[::-1]
    moved: Numbers = np.r_[line.bytes, 0][following]
    return moved


def _led_to(line: _Timeline, op: str) -> Numbers:
    """Of each entry how many bytes the messages around it lead to (written next), or come from (read before)."""
    io = line.kind == _IO
    turn = io[:-1] & ~io[1:] if op == "write" else ~io[:-1] & io[1:]
    number = np.cumsum(np.r_[0, turn])
    sums: Numbers = np.bincount(number, line.bytes)[number].astype(np.int64)
    return sums


def _joined(line: _Timeline, gap: Numbers, before_io: Numbers, by_message: Numbers, op: str) -> Mask:
    """Of each entry but the first whether it goes on with what the one before it did.

    `before_io`: the longest pause before each entry, if it is an I/O call; `by_message`: all pauses of the messages.
    """
    first, second = line.kind[:-1], line.kind[1:]
    weak = (first == _WEAK) | ((second == _WEAK) & (first != _IO))
    enough = by_message[1:] if op == "write" else by_message[:-1]
    to_message = np.where(weak, gap <= _CLOSE_NS, _in_row(line, gap, op) <= enough)
    joined: Mask = np.where(second == _IO, gap <= before_io[1:], to_message)
    return joined


def _in_row(line: _Timeline, gap: Numbers, op: str) -> Numbers:
    """Of each gap before a message the sum of the gaps between it and the I/O call that the messages belong to."""
    io = line.kind == _IO
    inner = np.where(io[1:], 0, gap)  # what lies right before an I/O call is judged by itself
    if op == "write":
        after = np.cumsum(inner[::-1])[::-1]
        at = np.arange(io.size)
        call = np.minimum.accumulate(np.where(io, at, io.size)[::-1])[::-1][1:]
        behind: Numbers = after - np.r_[after, 0][np.minimum(call, after.size)]
        return behind
    before = np.cumsum(inner)
    call = np.maximum.accumulate(np.where(io, np.arange(io.size), -1))[:-1]
    since: Numbers = before - np.r_[0, before][np.maximum(call, 0)]
    return since
