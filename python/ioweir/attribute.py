"""Which processes and which events count, and for whom.

Processes: the ranks and what they start count; a wrapper, launcher or shell around them is listed but not counted, so
that a bash wrapper's reading of its own script never enters an MPI program's figures. Without any rank, all count.
Events: an event inside another of its own layer (a write_all done through write_at) would be counted twice; and a POSIX
event belongs to the outermost MPI-IO call around it. No sums are made here.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ioweir.trace import MPI_IO, ORIGIN_TRACER, Process, Trace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ioweir.intervals import Indices

Flags = npt.NDArray[np.bool_]

_DENSE_SLACK = 1 << 20


class Role(Enum):
    """What a process image is to the program that was run."""

    RANK = "rank"
    DESCENDANT = "started by a rank"
    ANCESTOR = "wrapper or launcher of ranks"
    OUTSIDE = "outside of the MPI program"
    PROGRAM = "no MPI: everything counts"

    @property
    def counted(self) -> bool:
        """Whether its I/O is the program's."""
        return self in (Role.RANK, Role.DESCENDANT, Role.PROGRAM)


@dataclass(frozen=True)
class Attribution:
    """A role and a unit for every process. A unit is whom times are averaged over: a rank, without MPI a process."""

    roles: tuple[Role, ...]
    units: npt.NDArray[np.intp]
    """Per process image: index into `unit_names`, -1 where it does not count."""
    unit_names: tuple[int, ...]
    """Per unit: the rank, without MPI the pid."""
    has_ranks: bool
    unit_count: int
    """Over how many units a mean is taken: the size of MPI_COMM_WORLD, also when a rank left no trace."""


@dataclass(frozen=True)
class Nesting:
    """How the events lie inside each other."""

    outermost: Flags
    """No event of any layer around it."""
    top_of_layer: Flags
    """No event of its own layer around it."""
    mpi_call: Indices
    """The outermost MPI-IO event around it, -1 without one."""


def attribute_processes(processes: Sequence[Process]) -> Attribution:
    """Decide for every process image whether it counts, and for which unit."""
    ranks = [index for index, process in enumerate(processes) if process.rank >= 0]
    if not ranks:
        return _everything(processes)
    parents = _parents(processes)
    roles = [Role.OUTSIDE] * len(processes)
    for index in ranks:
        roles[index] = Role.RANK
    owner = [_owner(index, parents, processes) for index in range(len(processes))]
    for index, rank in enumerate(owner):
        if rank >= 0 and roles[index] is not Role.RANK:
            roles[index] = Role.DESCENDANT
    for index in ranks:
        for ancestor in _chain(index, parents):
            if roles[ancestor] is Role.OUTSIDE:
                roles[ancestor] = Role.ANCESTOR
    names = sorted({processes[index].rank for index in ranks})
    number = {rank: unit for unit, rank in enumerate(names)}
    units = np.array([number[rank] if rank >= 0 else -1 for rank in owner], dtype=np.intp)
    size = max(processes[index].ranks for index in ranks)
    return Attribution(tuple(roles), units, tuple(names), has_ranks=True, unit_count=max(size, len(names)))


def _everything(processes: Sequence[Process]) -> Attribution:
    keys = [(process.host, process.pid) for process in processes]
    number = {key: unit for unit, key in enumerate(dict.fromkeys(keys))}
    units = np.array([number[key] for key in keys], dtype=np.intp)
    names = tuple(pid for _, pid in number)
    return Attribution((Role.PROGRAM,) * len(processes), units, names, has_ranks=False, unit_count=len(names))


def _parents(processes: Sequence[Process]) -> list[int]:
    """Per image the image it came from: by fork as recorded; by exec what its pid was before, else its parent then."""
    by_pid: dict[tuple[str, int], list[int]] = {}
    for index in sorted(range(len(processes)), key=lambda i: processes[i].start_ns):
        by_pid.setdefault((processes[index].host, processes[index].pid), []).append(index)
    by_image = {(process.host, process.image): index for index, process in enumerate(processes) if process.image}
    parents = [-1] * len(processes)
    for (host, _), images in by_pid.items():
        for position, index in enumerate(images):
            forked_from = by_image.get((host, processes[index].parent_image))
            if processes[index].parent_image and forked_from is not None:
                parents[index] = forked_from
                continue
            previous = images[position - 1] if position else -1
            # An image that ended by exit() cannot have become this one: the pid was used again.
            if previous >= 0 and processes[previous].end_ns < 0:
                parents[index] = previous
                continue
            candidates = by_pid.get((host, processes[index].ppid), [])
            starts = [processes[candidate].start_ns for candidate in candidates]
            before = bisect_right(starts, processes[index].start_ns)
            if before and candidates[before - 1] != index:
                parents[index] = candidates[before - 1]
    return parents


def _chain(index: int, parents: Sequence[int]) -> list[int]:
    chain: list[int] = []
    seen = {index}
    while (index := parents[index]) >= 0 and index not in seen:
        seen.add(index)
        chain.append(index)
    return chain


def _owner(index: int, parents: Sequence[int], processes: Sequence[Process]) -> int:
    """The rank that the image is, or that the nearest rank above it is; -1 without one."""
    for candidate in (index, *_chain(index, parents)):
        if processes[candidate].rank >= 0:
            return processes[candidate].rank
    return -1


def counted_events(trace: Trace, attribution: Attribution) -> Flags:
    """Events of processes that count, without what the tracer did on its own behalf."""
    counted: Flags = attribution.units[trace.process] >= 0
    by_program: Flags = trace.origin != ORIGIN_TRACER
    return counted & by_program


def layer_codes(trace: Trace) -> tuple[npt.NDArray[np.int8], tuple[str, ...]]:
    """Per event the number of its layer, and the layers' names."""
    names = tuple(dict.fromkeys((MPI_IO, "POSIX", *(function.layer for function in trace.functions))))
    table = np.zeros(_table_size(trace), dtype=np.int8)
    for function in trace.functions:
        table[function.id] = names.index(function.layer)
    return table[trace.function], names


def op_codes(trace: Trace, ops: Sequence[str]) -> npt.NDArray[np.int8]:
    """Per event the number of its operation in `ops`; what is not in there counts as the last."""
    table = np.full(_table_size(trace), len(ops) - 1, dtype=np.int8)
    for function in trace.functions:
        if function.op in ops:
            table[function.id] = ops.index(function.op)
    return table[trace.function]


def _table_size(trace: Trace) -> int:
    largest = int(trace.function.max()) if trace.function.size else 0
    return max([largest, *(function.id for function in trace.functions)]) + 1


def parent_indices(trace: Trace) -> Indices:
    """Per event the index of the event around it; -1 without one, also when that one was never completed."""
    count = trace.event_count
    result = np.full(count, -1, dtype=np.intp)
    # A call is entered before what it encloses; anything else is damage and must not make a cycle.
    nested = np.flatnonzero((trace.parent > 0) & (trace.parent < trace.seq))
    if nested.size == 0:
        return result
    thread = trace.thread.astype(np.int64)
    last_seq = np.zeros(int(thread.max()) + 1, dtype=np.int64)
    np.maximum.at(last_seq, thread, trace.seq.astype(np.int64))
    room = np.concatenate(([0], np.cumsum(last_seq + 1)))
    if int(room[-1]) <= 4 * count + _DENSE_SLACK:
        table = np.full(int(room[-1]), -1, dtype=np.intp)
        table[room[thread] + trace.seq] = np.arange(count)
        result[nested] = table[room[thread[nested]] + trace.parent[nested]]
        return result
    key = (thread << 32) | trace.seq
    order = np.argsort(key)
    wanted = (thread[nested] << 32) | trace.parent[nested]
    found = np.minimum(np.searchsorted(key, wanted, sorter=order), count - 1)
    hit = key[order[found]] == wanted
    result[nested[hit]] = order[found[hit]]
    return result


def nest(trace: Trace, layers: npt.NDArray[np.int8], mpi_layer: int) -> Nesting:
    """Follow the parents of all events at once, one level a round."""
    parents = parent_indices(trace)
    mpi_call = np.full(trace.event_count, -1, dtype=np.intp)
    repeated = np.zeros(trace.event_count, dtype=np.bool_)
    event = np.flatnonzero(parents >= 0)
    around: npt.NDArray[Any] = parents[event]
    while event.size:
        repeated[event[layers[around] == layers[event]]] = True
        is_mpi = layers[around] == mpi_layer
        mpi_call[event[is_mpi]] = around[is_mpi]
        further = parents[around]
        deeper = further >= 0
        event, around = event[deeper], further[deeper]
    return Nesting(outermost=parents < 0, top_of_layer=~repeated, mpi_call=mpi_call)
