"""The access patterns of the collective MPI-IO calls in a trace: which bytes each rank asked for, call by call.

What does not live here: what a plan makes of a pattern (plan/explain.py), extents of single calls (Trace.requests).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ioweir.base.units import few, gaps, run_list
from ioweir.errors import EXIT_USAGE, IoweirError

if TYPE_CHECKING:
    from collections.abc import Collection

    from ioweir.trace.reader import Requests, Trace

Extents = list[tuple[int, int]]

FIRST_WITH_ACCESSES: Final = 3
"""The format version that came with views and datatypes."""
MOST_EXTENTS: Final = 1 << 20
"""Of one rank's call."""


@dataclass
class Collective:
    """One collective call as all ranks made it together."""

    op: str
    function: str
    requests: Requests = field(repr=False)
    numbers: dict[int, int] = field(default_factory=dict)
    """Of each rank the number of its request."""

    def extents(self, rank: int) -> Extents | None:
        """What a rank asked for, in the order of its data; None where that is more than 2^20 pieces."""
        if rank not in self.numbers:
            return []
        return extents_of(self.requests, self.numbers[rank])


@dataclass
class FilePattern:
    """The collective data calls on one file, in order; a call that is not known entirely is left out and counted."""

    path: str
    calls: list[Collective] = field(default_factory=list)
    unknown: Counter[str] = field(default_factory=Counter)
    """Calls of ranks left out, by reason."""


def extents_of(requests: Requests, number: int) -> Extents | None:
    """What a request asked for, in the order of its data; None where that is not known, or more than 2^20 pieces."""
    found = requests.extents(number, MOST_EXTENTS + 1)
    if found is None or found[0].size > MOST_EXTENTS:
        return None
    return list(zip(found[0].tolist(), found[1].tolist(), strict=True))


def file_named(paths: Collection[str], wanted: str) -> str:
    """The path that a user means by it, or by its end."""
    named = [path for path in paths if path == wanted or path.endswith("/" + wanted)]
    if len(named) != 1:
        found, known = "several files" if named else "no file", few(sorted(paths))
        raise IoweirError(
            f"--file {wanted}: {found} of that name with MPI-IO data calls; there are {known}", EXIT_USAGE
        )
    return named[0]


def ranks_of(trace: Trace) -> int:
    """The size of MPI_COMM_WORLD."""
    return max((process.ranks for process in trace.processes if process.rank >= 0), default=0)


def plan_of(trace: Trace) -> str:
    """The plan under which files of the run were moved; empty: none was in force."""
    applied = "simulated" in trace.run or any(note.code == "plan_applied" for note in trace.notes)
    named = trace.run.get("plan")
    return str(named or "a plan") if applied and (named or "simulated" not in trace.run) else ""


def all_ranks_of(trace: Trace) -> int:
    """The same where each rank has left a trace: what others moved is not known, and would be taken for nothing."""
    count = ranks_of(trace)
    missing = gaps({process.rank for process in trace.processes}, count)
    if missing:
        raise IoweirError(
            f"calls of all ranks are needed, and {run_list(missing, most=4)} of {count:,} left no trace: record the "
            "program anew"
        )
    return count


def patterns(trace: Trace) -> dict[str, FilePattern]:
    """The patterns of every file on which there are MPI-IO data calls, by path."""
    requests = trace.requests()
    ranks = [process.rank for process in trace.processes]
    by_rank: dict[str, dict[int, list[int]]] = {}
    files: dict[str, FilePattern] = {}
    columns = zip(requests.process.tolist(), requests.path.tolist(), requests.collective.tolist(), strict=True)
    for number, (process, path, collective) in enumerate(columns):
        if ranks[process] < 0:
            continue
        name = trace.paths[path]
        pattern = files.setdefault(name, FilePattern(name))
        if collective:
            by_rank.setdefault(name, {}).setdefault(ranks[process], []).append(number)
        else:
            pattern.unknown["independent: each rank moves its bytes by itself, nothing is planned together"] += 1
    for name, numbers in by_rank.items():
        _put_together(files[name], numbers, requests, trace)
    return files


def _put_together(pattern: FilePattern, numbers: dict[int, list[int]], requests: Requests, trace: Trace) -> None:
    """The n-th collective call of every rank is one call."""
    names = {function.id: function.name for function in trace.functions}
    for at in range(max(map(len, numbers.values()))):
        members = {rank: calls[at] for rank, calls in numbers.items() if at < len(calls)}
        first = next(iter(members.values()))
        op = "write" if requests.write[first] else "read"
        known: dict[int, int] = {}
        for rank, number in members.items():
            function = names[int(requests.function[number])]
            if bool(requests.write[number]) != bool(requests.write[first]):
                pattern.unknown["the ranks do different things at the same time"] += 1
            elif requests.bytes[number] != 0 and requests.extents(number, 0) is None:
                pattern.unknown[_why(function, trace)] += 1
            else:
                known[rank] = number
        if len(known) == len(members):
            function = names[int(requests.function[first])].removesuffix("_end")
            pattern.calls.append(Collective(op, function, requests, known))


def _why(function: str, trace: Trace) -> str:
    if trace.version < FIRST_WITH_ACCESSES:
        return "in a trace of before format version 3, which does not hold views and datatypes"
    if "ordered" in function or "shared" in function:
        return "at the pointer that ranks share"
    return "through a view or a pointer that the trace does not know"
