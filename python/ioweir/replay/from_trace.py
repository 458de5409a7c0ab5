"""Reads a trace as calls to carry out again: the outermost MPI-IO, POSIX and stdio calls of the program, by rank.

Calls inside of others (what the MPI library does beneath, what stdio does) come about by themselves. What HDF5 and its
like do is replayed at their MPI-IO and POSIX calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ioweir.base.units import gaps, plural
from ioweir.errors import IoweirError
from ioweir.programs import linking
from ioweir.replay import groups, inputs, locks, meetings, names, order
from ioweir.replay.datatypes import Pieces
from ioweir.replay.model import RankCalls, Recorded
from ioweir.replay.mpi_files import MpiFiles, Row
from ioweir.replay.posix_files import PosixFiles
from ioweir.report.lacking import partial_reasons
from ioweir.trace import reader
from ioweir.trace.attribute import attribute_processes
from ioweir.trace.pattern import plan_of, ranks_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from ioweir.trace.reader import Column, Trace

MOST_CALLS: Final = 20_000_000
"""Of all ranks: they are kept in memory."""
_LAYERS: Final = (reader.MPI_IO, reader.POSIX, reader.STDIO)


def read(directory: Path) -> Recorded:
    """Raises IoweirError where there is nothing that could be replayed."""
    trace = reader.read(directory)
    if trace.unreadable:
        raise IoweirError(f"{directory}: calls of all ranks are needed, and {'; '.join(trace.unreadable)}")
    count = ranks_of(trace)
    if count == 0:
        raise IoweirError(f"{directory}: there is no MPI program in this trace; replay takes the calls of MPI's ranks")
    trace.require_events(directory, "replay")
    return of_trace(trace, count, str(directory))


def of_trace(trace: Trace, count: int, what: str) -> Recorded:
    """The same of a trace that is read."""
    processes = _processes(trace, count, what)
    chosen, failed = _outermost(trace)
    if chosen.size > MOST_CALLS:
        raise IoweirError(f"{what}: {chosen.size:,} calls; replay takes {MOST_CALLS:,} at most")
    _require_one_after_another(trace, chosen, processes, what)
    paths, number_of = _files(trace, chosen, processes)
    recorded = Recorded([RankCalls(rank) for rank in range(count)], paths, names.names_of(paths), trace.datatypes)
    recorded.mpi, recorded.plan = _library(trace, processes), plan_of(trace)
    ends = _ends(trace)
    pieces = Pieces(trace.datatypes)
    handles = []
    for rank, images in enumerate(processes):
        calls = recorded.ranks[rank]
        mpi = MpiFiles(trace, pieces, calls, recorded.left_out, recorded.stand_ins)
        posix = PosixFiles(calls, recorded.left_out, recorded.stand_ins)
        for image in images:
            mpi.new_process()
            for row in _rows(trace, chosen[trace.events.process[chosen] == image], number_of, ends):
                if row.function.layer == reader.MPI_IO:
                    mpi.take(row)
                elif row.function.layer == reader.POSIX:
                    posix.take(row)
                else:
                    posix.take_stream(row)
            mpi.end()
        posix.end()
        handles += mpi.handles
    groups.put_together(recorded, handles)
    inputs.find(recorded)
    locks.leave_out_shared(recorded)
    meetings.find(trace, recorded, processes)
    order.put_in_order(recorded)
    if count_failed := sum(1 for path in trace.events.path[failed].tolist() if path in number_of):
        recorded.left_out["calls that failed"] += count_failed
    _remark(trace, recorded, chosen, processes)
    if recorded.calls() == 0:
        reasons = "; ".join(f"{reason} ({calls})" for reason, calls in recorded.left_out.most_common(3))
        raise IoweirError(f"{what}: no call of this trace can be replayed{': ' if reasons else ''}{reasons}")
    return recorded


def _processes(trace: Trace, count: int, what: str) -> list[list[int]]:
    """Of each rank its process images, in order of time: a script may start several programs one after another."""
    missing = gaps({process.rank for process in trace.processes}, count)
    if missing:
        lacking = sum(last - first + 1 for first, last in missing)
        raise IoweirError(f"{what}: nothing is known of rank {missing[0][0]} ({lacking} of {count} ranks are missing)")
    found: list[list[int]] = [[] for _ in range(count)]
    sizes = set()
    for index in sorted(range(len(trace.processes)), key=lambda one: trace.processes[one].start_ns):
        process = trace.processes[index]
        if process.rank >= 0:
            sizes.add(process.ranks)
            if process.rank < count:
                found[process.rank].append(index)
    if len(sizes) > 1:
        raise IoweirError(
            f"{what}: MPI programs of {', '.join(str(size) for size in sorted(sizes))} ranks are in this trace; replay "
            "takes programs of one number of ranks. Record each by itself"
        )
    return found


def _require_one_after_another(trace: Trace, chosen: Column, processes: Sequence[Sequence[int]], what: str) -> None:
    """A script may start programs at once, whose ranks have the same numbers: of them no rank's calls have an order."""
    import numpy as np  # noqa: PLC0415

    events = trace.events
    for rank, images in enumerate(processes):
        until = None
        for image in images if len(images) > 1 else ():
            mine = chosen[events.process[chosen] == image]
            if mine.size == 0:
                continue
            starts = events.start_ns[mine]
            if until is not None and int(starts.min()) < until:
                raise IoweirError(
                    f"{what}: this trace holds two MPI programs that ran at the same time (rank {rank} of both made "
                    "calls meanwhile); replay takes programs one after another. Record each by itself"
                )
            until = int(np.max(starts + events.duration_ns[mine]))


def _outermost(trace: Trace) -> tuple[Column, Column]:
    """Indexes of the calls that the program made, and no other call of these layers; then of those that failed."""
    import numpy as np  # noqa: PLC0415

    events = trace.events
    functions = np.zeros(max(function.id for function in trace.functions) + 1, dtype=bool)
    functions[[function.id for function in trace.functions if function.layer in _LAYERS]] = True
    ours = functions[events.function]
    chosen = ours & (events.origin == 0)
    # Where each (thread, seq) is.
    key = events.thread.astype(np.uint64) << np.uint64(32) | events.seq.astype(np.uint64)
    order = np.argsort(key, kind="stable")
    ordered = key[order]
    above = np.where(events.parent != 0, events.thread.astype(np.uint64) << np.uint64(32) | events.parent, 0)
    current = np.flatnonzero(chosen & (events.parent != 0))
    at = current.copy()
    while current.size:
        wanted = above[at]
        place = np.minimum(np.searchsorted(ordered, wanted), len(ordered) - 1)
        there = ordered[place] == wanted
        current, parent = current[there], order[place[there]]
        inside = ours[parent]
        chosen[current[inside]] = False
        # A parent comes before its children; what does not is damage.
        goes_on = ~inside & (events.parent[parent] != 0) & (events.parent[parent] < events.seq[parent])
        current, at = current[goes_on], parent[goes_on]
    failed = (events.flags & reader.FLAG_FAILED) != 0
    return np.flatnonzero(chosen & ~failed), np.flatnonzero(chosen & failed)


def _files(trace: Trace, chosen: Column, processes: Sequence[Sequence[int]]) -> tuple[list[str], dict[int, int]]:
    """The files that are replayed, and their numbers by the trace's."""
    import numpy as np  # noqa: PLC0415

    mine = np.isin(trace.events.process[chosen], [image for images in processes for image in images])
    used = sorted(set(trace.events.path[chosen[mine]].tolist()))
    whole, file_of = trace.files
    kept = [path for path in used if names.is_data(whole[file_of[path]])]
    paths = list(dict.fromkeys(whole[file_of[path]] for path in kept))
    numbers = {path: number for number, path in enumerate(paths)}
    return paths, {path: numbers[whole[file_of[path]]] for path in kept}


def _library(trace: Trace, processes: Sequence[Sequence[int]]) -> str:
    said = trace.processes[processes[0][0]].mpi_library
    return linking.OPEN_MPI if "Open MPI" in said else linking.MPICH if said else ""


def _ends(trace: Trace) -> dict[tuple[int, int], tuple[int, int]]:
    """By thread and number of a call the first byte of the file that it asked for and the one behind the last."""
    requests = trace.requests()
    _, begins, ends = requests.spans()
    rows = zip(requests.thread.tolist(), requests.seq.tolist(), begins.tolist(), ends.tolist(), strict=True)
    return {(thread, seq): (begin, end) for thread, seq, begin, end in rows if begin >= 0}


def _rows(
    trace: Trace, chosen: Column, number_of: dict[int, int], ends: dict[tuple[int, int], tuple[int, int]]
) -> Iterator[Row]:
    import numpy as np  # noqa: PLC0415

    events = trace.events
    functions = {function.id: function for function in trace.functions}
    # Calls of one thread that began at once are in the order of their numbers.
    chosen = chosen[np.lexsort((events.seq[chosen], events.start_ns[chosen]))]
    columns = (
        getattr(events, name)[chosen].tolist()
        for name in ("function", "thread", "seq", "path", "start_ns", "duration_ns", "offset", "bytes", "access")
    )
    for function, thread, seq, path, start, duration, offset, moved, access in zip(*columns, strict=True):
        file = number_of.get(path)
        if file is None:
            continue
        low, high = ends.get((thread, seq), (0, 0))
        yield Row(functions[function], thread, seq, path, start, start + duration, offset, max(moved, 0), access, file,
                  low, high)  # fmt: skip


def _remark(trace: Trace, recorded: Recorded, chosen: Column, processes: Sequence[Sequence[int]]) -> None:
    events = trace.events
    if simulated := trace.run.get("simulated"):
        machine = simulated.get("machine") if isinstance(simulated, dict) else None
        recorded.remarks.append(f"nothing was recorded: the trace is SIMULATED, on {machine}, and so are its times")
    if recorded.plan:
        recorded.remarks.append(
            f"the run was recorded under {recorded.plan}, and so are its times; its own calls are replayed"
        )
    who = attribute_processes(trace.processes)
    recorded.remarks += [f"the trace is partial: {why}" for why in partial_reasons(trace, who)]
    moving = {op.file for rank in recorded.ranks for op in rank.ops if op.moved}
    if others := [file for file in names.renamed(recorded.paths, recorded.names) if file in moving]:
        recorded.remarks.append(
            f"{len(others)} {plural('file', len(others))} cannot have the recorded name here, so that a plan's pattern "
            f"may miss what it is for: {recorded.paths[others[0]]} is {recorded.names[others[0]]}"
        )
    ours = {image for images in processes for image in images}
    threads = {trace.threads[thread].process for thread in set(events.thread[chosen].tolist())} & ours
    used = sum(1 for thread in set(events.thread[chosen].tolist()) if trace.threads[thread].process in ours)
    if used > len(threads):
        recorded.remarks.append(f"calls of {used} threads in {len(threads)} processes are made one after another")
    above = sorted(
        {
            function.layer
            for function in trace.functions
            if function.layer not in (*_LAYERS, "MPI") and bool((events.function == function.id).any())
        }
    )
    if above:
        recorded.remarks.append(
            f"what {', '.join(above)} did is replayed as its MPI-IO and POSIX calls: the trace holds no data sets, "
            "types or selections"
        )
