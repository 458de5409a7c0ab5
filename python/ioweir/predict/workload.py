"""What a recorded program asked of one file, as calls to simulate: the n-th read or write of each rank is one call.

What does not live here: the trace's own reading of requests (trace/pattern.py), running them (simulate.py).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from ioweir.base.compiled import compiled
from ioweir.base.runs import RUNS_DIFFER
from ioweir.base.units import plural
from ioweir.errors import EXIT_USAGE, IoweirError
from ioweir.predict import scaling
from ioweir.predict.simulate import called
from ioweir.report.lacking import partial_reasons
from ioweir.trace import pattern, reader
from ioweir.trace.attribute import attribute_processes

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ioweir.predict.simulate import PlanRule
    from ioweir.trace.reader import Requests, Trace

_CREATE: Final = 1
"""MPI_MODE_CREATE, of both libraries."""
_NONBLOCKING: Final = "MPI_File_i"

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
    by_one: bool = False
    """One rank alone moves the file's bytes."""
    dimensions: int = 0
    """Of arrays, as the program's datatypes have them; 0: not known."""
    computing: tuple[float, ...] = ()
    """Seconds behind each call that writes, where they are not all `compute_s`."""
    remarks: tuple[str, ...] = ()
    """What the trace lacks."""
    made: bool = True
    """The program may make the file; else it was there before."""

    def once(
        self, figures: dict[str, float], slowdown: list[float], plan: PlanRule, seed: int, recorder: Any = None
    ) -> dict[str, Any]:
        """All that is written, then all that is read."""
        runs = {
            name: called(
                compiled().simulate_extents, figures, slowdown, plan.text, plan.name, plan.rule, calls,
                self.compute_s, name == "write", seed, plan.by_library, recorder,
                list(self.computing) if name == "write" else [],
            )
            for name, calls in (("write", self.written), ("read", self.read)) if calls
        }  # fmt: skip
        first = next(iter(runs.values()))
        phases = {name: runs[name][name] if name in runs else first[name] for name in ("write", "read")}
        return {**first, **phases, "events": sum(run["events"] for run in runs.values())}


def of_traces(directories: Sequence[Path], file: str | None, ranks: int | None, compute_s: float) -> Recorded:
    """As recorded, or scaled to another number of ranks, which several traces tell more of than one."""
    all_recorded = [of_trace(directory, file, compute_s) for directory in directories]
    remarks = tuple(dict.fromkeys(remark for one in all_recorded for remark in one.remarks))
    largest = replace(max(all_recorded, key=lambda one: one.ranks), remarks=remarks)
    if ranks is not None and any(one.by_one for one in all_recorded):
        raise IoweirError(
            f"--ranks {ranks}: {largest.path} is used by one rank alone; a file a rank is not scaled. Simulate a "
            'kernel (--kernel ior-segmented) under mapping = "grouped:N"',
            EXIT_USAGE,
        )
    scaling.require_different([one.ranks for one in all_recorded], scaling.SIMULATE)
    if ranks is None and len(all_recorded) > 1:
        raise IoweirError("several traces are there to be scaled: say to how many ranks, --ranks N", EXIT_USAGE)
    if ranks is None or (ranks == largest.ranks and len(all_recorded) == 1):
        return largest
    if len({one.alone for one in all_recorded}) > 1:
        raise IoweirError("--trace: in one trace the ranks' calls are collective, in another not", EXIT_USAGE)
    dimensions = max(one.dimensions for one in all_recorded)
    written, read, how = scaling.scaled(
        largest.path, [(one.ranks, one.written, one.read) for one in all_recorded], ranks, dimensions
    )
    what = (
        f"{largest.path} of {', '.join(map(str, directories))}, scaled to {ranks} ranks: {how}; {len(written)} writes "
        f"and {len(read)} reads"
    )
    return replace(largest, what=what, ranks=ranks, written=written, read=read)


def of_trace(directory: Path, file: str | None, compute_s: float) -> Recorded:
    """The file that is named, else the one with most bytes. Raises IoweirError where its calls are not known."""
    loaded = loaded_whole(directory)
    requests = loaded.requests()
    found = of_file(loaded, requests, _chosen(loaded, requests, file, directory), directory, compute_s)
    why = partial_reasons(loaded, attribute_processes(loaded.processes))
    return replace(found, remarks=tuple(f"the trace is partial: {one}" for one in why))


def loaded_whole(directory: Path) -> Trace:
    """A trace with the calls of all ranks of an MPI program. Raises IoweirError where it is not."""
    loaded = reader.read(directory)
    if loaded.unreadable:
        raise IoweirError(f"calls of all ranks are needed, and {'; '.join(loaded.unreadable)}")
    if pattern.ranks_of(loaded) == 0:
        raise IoweirError(f"{directory}: there is no MPI program in this trace; simulate takes MPI-IO calls")
    pattern.all_ranks_of(loaded)
    return loaded


def of_file(loaded: Trace, requests: Requests, path: str, directory: Path, compute_s: float) -> Recorded:
    """The calls of one file. Raises IoweirError where they are not known."""
    numbers = _numbers(loaded, requests, path)
    count = _program_of(loaded, requests, path)
    together, by_one = _opened_by(loaded, requests, numbers), count > 1 and len(numbers) == 1
    if len(numbers) <= together < count:
        # Others have no part in what these ranks do with the file, under a plan either.
        count, numbers = together, {place: numbers[rank] for place, rank in enumerate(sorted(numbers))}
    written = _calls(requests, numbers, count, path, writes=True)
    read = _calls(requests, numbers, count, path, writes=False)
    gathered = _gathered(loaded, requests)
    together_made = any(bool(gathered[number]) for calls in numbers.values() for number in calls)
    what = f"{path} of {directory}: {len(written)} writes and {len(read)} reads of {count} {plural('rank', count)}"
    return Recorded(
        what, path, count, not together_made or together == 1, written, read, compute_s, by_one,
        _dimensions(loaded, requests, path), made=bool(written) and _is_made(loaded, path),
    )  # fmt: skip


def _is_made(trace: Trace, path: str) -> bool:
    """Whether some rank opened the file to make it, or the trace does not say how it was opened."""
    import numpy as np  # noqa: PLC0415

    events = trace.events
    opens = [function.id for function in trace.functions if function.name == "MPI_File_open"]
    mine = [number for number, name in enumerate(trace.paths) if name == path]
    good = (events.flags & reader.FLAG_FAILED) == 0
    modes = events.offset[np.isin(events.function, opens) & np.isin(events.path, mine) & good].tolist()
    return not modes or any(mode < 0 or mode & _CREATE for mode in modes)


def _gathered(trace: Trace, requests: Requests) -> Any:
    """Of each request whether ranks make it together, so that writers may gather their bytes under a plan.

    A call that does not block moves its rank's own bytes there, if it is collective, too.
    """
    import numpy as np  # noqa: PLC0415

    begun = [function.id for function in trace.functions if function.name.startswith(_NONBLOCKING)]
    return (requests.collective != 0) & ~np.isin(requests.function, begun)


def _opened_by(trace: Trace, requests: Requests, numbers: dict[int, list[int]]) -> int:
    """How many ranks the largest communicator has that opened the file; the most there are where that is not known."""
    used = {int(requests.access[number]) for calls in numbers.values() for number in calls}
    sizes = {trace.accesses[access].ranks if access else 0 for access in used}
    return max(sizes) if sizes and min(sizes) > 0 else pattern.ranks_of(trace)


def _program_of(trace: Trace, requests: Requests, path: str) -> int:
    """How many ranks the program has that uses the file: a script may start several, of other numbers of ranks."""
    columns = zip(requests.process.tolist(), requests.path.tolist(), strict=True)
    users = {
        process for process, its in set(columns) if trace.processes[process].rank >= 0 and trace.paths[its] == path
    }
    sizes = sorted({trace.processes[process].ranks for process in users})
    if len(sizes) != 1:
        what = f"MPI programs of {' and '.join(map(str, sizes))} ranks" if sizes else "no rank of an MPI program"
        raise IoweirError(
            f"{path}: {what} moved its bytes in this trace; simulate takes the calls of one program. Record each by "
            "itself"
        )
    return int(sizes[0])


def of_independent_calls(program: Recorded, requests: Requests, trace: Trace) -> list[str]:
    """What is to be said of calls that each rank makes by itself."""
    import numpy as np  # noqa: PLC0415

    mine = np.isin(requests.path, [number for number, name in enumerate(trace.paths) if name == program.path])
    begun = [function.id for function in trace.functions if function.name.startswith(_NONBLOCKING)]
    said = []
    if np.isin(requests.function[mine], begun).any():
        said.append(
            "some of its calls do not block; under a plan they have ended when they return, and what they hid behind "
            "computing is not simulated"
        )
    if program.alone:
        return [
            *said,
            "each rank makes its calls by itself: no writers gather them, so that only plans were tried under which "
            "ranks move their own bytes",
        ]
    moved = int(requests.bytes[mine].sum())
    share = int(requests.bytes[mine & ~_gathered(trace, requests)].sum()) / moved if moved else 0.0
    if share < RUNS_DIFFER:
        return said
    return [
        *said,
        f"{share:.0%} of the bytes move in independent calls, which no writers gather: the simulation gathers them, "
        "too, and states gains too large",
    ]


def of_atomic_mode(trace: Trace, path: str) -> list[str]:
    """What is to be said of a file in atomic mode."""
    import numpy as np  # noqa: PLC0415

    sets = [function.id for function in trace.functions if function.name == "MPI_File_set_atomicity"]
    used = trace.events.path[np.isin(trace.events.function, sets)]
    if not any(trace.paths[number] == path for number in set(used.tolist())):
        return []
    return [
        "the program calls MPI_File_set_atomicity; in atomic mode the MPI library makes all calls on one file, so that "
        "only plans that divide it gain anything"
    ]


def _dimensions(trace: Trace, requests: Requests, path: str) -> int:
    """Of the arrays that the program itself speaks of in the file's views: at most; 0 where it does not."""
    most = 0
    accesses, views, datatypes = trace.accesses, trace.views, trace.datatypes
    used = {
        accesses[access].view
        for access, its in set(zip(requests.access.tolist(), requests.path.tolist(), strict=True))
        if trace.paths[its] == path
    }
    for view in used - {None}:
        assert view is not None
        kind = datatypes[views[view].filetype]
        if kind.constructor in ("subarray", "darray"):
            # The first value of a subarray, the third of a darray (MPI 4.0, section 5.1.13).
            most = max(most, int(kind.values[0 if kind.constructor == "subarray" else 2]))
    return most


def _chosen(trace: Trace, requests: Requests, file: str | None, directory: Path) -> str:
    sums: dict[str, int] = {}
    for path, moved in zip(requests.path.tolist(), requests.bytes.tolist(), strict=True):
        if trace.paths[path]:
            sums[trace.paths[path]] = sums.get(trace.paths[path], 0) + moved
    if not sums or max(sums.values()) == 0:
        trace.require_events(directory, "simulate")
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
