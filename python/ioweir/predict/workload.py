"""What a recorded program asked of one file, as calls to simulate: the n-th read or write of each rank is one call.

What does not live here: the trace's own reading of requests (trace/pattern.py), running them (simulate.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ioweir.base.compiled import compiled
from ioweir.errors import EXIT_USAGE, IoweirError
from ioweir.predict.simulate import called
from ioweir.trace import pattern, reader

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ioweir.predict.simulate import PlanRule
    from ioweir.trace.reader import Requests, Trace

Calls = list[list[pattern.Extents]]
"""Of each call and rank what it asked for."""


@dataclass(frozen=True)
class Recorded:
    """The calls of one file of a trace."""

    what: str
    path: str
    ranks: int
    alone: bool
    written: Calls
    read: Calls
    compute_s: float

    def once(
        self, figures: dict[str, float], slowdown: list[float], plan: PlanRule, seed: int, recorder: Any = None
    ) -> dict[str, Any]:
        """All that is written, then all that is read."""
        runs = {
            name: called(
                compiled().simulate_extents, figures, slowdown, plan.text, plan.name, plan.rule, calls,
                self.compute_s, name == "write", seed, plan.by_library, recorder,
            )
            for name, calls in (("write", self.written), ("read", self.read)) if calls
        }  # fmt: skip
        first = next(iter(runs.values()))
        phases = {name: runs[name][name] if name in runs else first[name] for name in ("write", "read")}
        return {**first, **phases, "events": sum(run["events"] for run in runs.values())}


def of_trace(directory: Path, file: str | None, ranks: int | None, compute_s: float) -> Recorded:
    """The file that is named, else the one with most bytes. Raises IoweirError where its calls are not known."""
    loaded = reader.read(directory)
    if loaded.unreadable:
        raise IoweirError(f"calls of all ranks are needed, and {'; '.join(loaded.unreadable)}")
    count = pattern.ranks_of(loaded)
    if count == 0:
        raise IoweirError(f"{directory}: there is no MPI program in this trace; simulate takes MPI-IO calls")
    if ranks is not None and ranks != count:
        raise IoweirError(
            f"--ranks {ranks}: the trace has {count}, and recorded programs are not scaled yet. Leave --ranks out, or "
            "take a kernel (--kernel)",
            EXIT_USAGE,
        )
    requests = loaded.requests()
    path = _chosen(loaded, requests, file, directory)
    numbers = _numbers(loaded, requests, path)
    written = _calls(requests, numbers, count, path, writes=True)
    read = _calls(requests, numbers, count, path, writes=False)
    alone = not any(bool(requests.collective[number]) for calls in numbers.values() for number in calls)
    what = f"{path} of {directory}: {len(written)} writes and {len(read)} reads of {count} ranks"
    return Recorded(what, path, count, alone, written, read, compute_s)


def _chosen(trace: Trace, requests: Requests, file: str | None, directory: Path) -> str:
    sums: dict[str, int] = {}
    for path, moved in zip(requests.path.tolist(), requests.bytes.tolist(), strict=True):
        sums[trace.paths[path]] = sums.get(trace.paths[path], 0) + moved
    if not sums or max(sums.values()) == 0:
        raise IoweirError(f"{directory}: no MPI-IO call of this trace moved a byte; simulate takes MPI-IO calls")
    if file is None:
        return max(sums, key=lambda name: sums[name])
    return pattern.file_named(sums, file)


def _numbers(trace: Trace, requests: Requests, path: str) -> dict[int, list[int]]:
    """Of each rank its requests of the file, in order."""
    ranks = [process.rank for process in trace.processes]
    found: dict[int, list[int]] = {}
    columns = zip(requests.process.tolist(), requests.path.tolist(), strict=True)
    for number, (process, its) in enumerate(columns):
        if ranks[process] >= 0 and trace.paths[its] == path:
            found.setdefault(ranks[process], []).append(number)
    return found


def _calls(requests: Requests, numbers: dict[int, list[int]], count: int, path: str, *, writes: bool) -> Calls:
    chosen = {
        rank: [number for number in mine if bool(requests.write[number]) == writes] for rank, mine in numbers.items()
    }
    length = max((len(mine) for mine in chosen.values()), default=0)
    return [[_extents(requests, chosen.get(rank, ()), at, path) for rank in range(count)] for at in range(length)]


def _extents(requests: Requests, mine: Sequence[int], at: int, path: str) -> pattern.Extents:
    if at >= len(mine) or requests.bytes[mine[at]] == 0:
        return []
    found = pattern.extents_of(requests, mine[at])
    if found is None:
        raise IoweirError(
            f"{path}: where a call moved its bytes is not known (through a pointer that ranks share, or a view that "
            f"the trace does not hold), or it asks for more than {pattern.MOST_EXTENTS} pieces. Take the program's "
            "access pattern from a kernel (--kernel)"
        )
    return found
