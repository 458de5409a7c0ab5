"""The access patterns of the collective MPI-IO calls in a trace, as far as the trace knows their extents.

A trace holds a call's own offset (in etypes of its view) and the bytes it moved, not the view. So extents are known
- of calls with an explicit offset on a file whose default view was never changed, and
- of calls that ioweir's direct path moved (writers = "everyone"): from the engine's own operations inside them.
What does not live here: what a plan makes of a pattern (explain.py).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ioweir.trace.reader import DATA_OPS, FLAG_FAILED, MPI_IO, POSIX

if TYPE_CHECKING:
    from ioweir.trace.reader import Events, Trace

APPLICATION: Final = 0
ENGINE: Final = 2
DIRECT: Final = "writers everyone"

Extents = list[tuple[int, int]]


@dataclass
class Collective:
    """One collective call as all ranks made it together."""

    op: str
    function: str
    extents: dict[int, Extents] = field(default_factory=dict)
    """Of each rank."""


@dataclass
class FilePattern:
    """The collective data calls on one file, in order; a call that is not known entirely is left out and counted."""

    path: str
    calls: list[Collective] = field(default_factory=list)
    unknown: Counter[str] = field(default_factory=Counter)
    """Calls of ranks left out, by reason."""


def ranks_of(trace: Trace) -> int:
    """The size of MPI_COMM_WORLD."""
    return max((process.ranks for process in trace.processes if process.rank >= 0), default=0)


def patterns(trace: Trace) -> dict[str, FilePattern]:
    """The patterns of every file on which there are MPI-IO data calls, by path."""
    direct = {note.path for note in trace.notes if note.code == "plan_applied" and DIRECT in note.text}
    rank_of = {index: process.rank for index, process in enumerate(trace.processes) if process.rank >= 0}
    files: dict[str, FilePattern] = {}
    for path, ranks in _calls_by_rank(trace.events, trace, rank_of).items():
        files[path] = _together(path, ranks, any(path.endswith(name) for name in direct))
    return files


@dataclass
class _Call:
    op: str
    function: str
    collective: bool
    offset: int
    bytes: int
    viewed: bool
    moved: Extents
    """By the engine, inside the call."""


def _calls_by_rank(events: Events, trace: Trace, rank_of: dict[int, int]) -> dict[str, dict[int, list[_Call]]]:
    """The data calls of each rank on each path, by time."""
    mpi = {function.id: function for function in trace.functions if function.layer == MPI_IO}
    posix = {function.id for function in trace.functions if function.layer == POSIX and function.op in DATA_OPS}
    viewed: set[tuple[int, int]] = set()
    calls: dict[str, dict[int, list[_Call]]] = {}
    inside: dict[tuple[int, int], Extents] = {}
    for at in events.start_ns.argsort(kind="stable").tolist():
        rank = rank_of.get(int(events.process[at]))
        if rank is None or int(events.flags[at]) & FLAG_FAILED:
            continue
        number, origin = int(events.function[at]), int(events.origin[at])
        if number in posix and origin == ENGINE and int(events.parent[at]):
            parent = (int(events.thread[at]), int(events.parent[at]))
            if parent in inside:
                inside[parent].append((int(events.offset[at]), int(events.bytes[at])))
            continue
        function = mpi.get(number)
        if function is None or origin != APPLICATION:
            continue
        file = int(events.path[at])
        if function.op == "view":
            viewed.add((rank, file))
        elif function.op in DATA_OPS and not function.completes:
            moved: Extents = []
            inside[int(events.thread[at]), int(events.seq[at])] = moved
            calls.setdefault(trace.paths[file], {}).setdefault(rank, []).append(
                _Call(
                    function.op, function.name, function.collective, int(events.offset[at]), int(events.bytes[at]),
                    (rank, file) in viewed, moved,
                )
            )  # fmt: skip
    return calls


def _extents(call: _Call, direct: bool) -> Extents | str:
    """Where the call's bytes lie, or why that is not known."""
    if call.bytes == 0:
        return []
    if direct and call.moved and sum(length for _, length in call.moved) == call.bytes:
        return call.moved
    if call.viewed:
        return "through a file view, which a trace does not hold"
    if call.offset < 0:
        return "at an individual or shared file pointer"
    return [(call.offset, call.bytes)]


def _together(path: str, ranks: dict[int, list[_Call]], direct: bool) -> FilePattern:
    """The n-th collective call of every rank is one call."""
    pattern = FilePattern(path)
    collective = {rank: [call for call in calls if call.collective] for rank, calls in ranks.items()}
    alone = sum(len(calls) for calls in ranks.values()) - sum(len(calls) for calls in collective.values())
    if alone:
        pattern.unknown["independent: each rank moves its bytes by itself, nothing is planned together"] += alone
    for number in range(max((len(calls) for calls in collective.values()), default=0)):
        members = {rank: calls[number] for rank, calls in collective.items() if number < len(calls)}
        first = next(iter(members.values()))
        known = Collective(first.op, first.function)
        for rank, call in members.items():
            extents = _extents(call, direct)
            if isinstance(extents, str):
                pattern.unknown[extents] += 1
            elif call.op != first.op:
                pattern.unknown["the ranks do different things at the same time"] += 1
            else:
                known.extents[rank] = extents
        if len(known.extents) == len(members):
            pattern.calls.append(known)
    return pattern
