"""Which processes count, and for whom.

The ranks and what they start count; a wrapper, launcher or shell around them is listed but not counted, so that a bash
wrapper's reading of its own script never enters an MPI program's figures. Without any rank, all count.
Which of their events count is src/analysis's: an event inside another of its own layer (a write_all done through
write_at) would be counted twice.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ioweir.trace.reader import Process


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
    units: tuple[int, ...]
    """Per process image: index into `unit_names`, -1 where it does not count."""
    unit_names: tuple[int, ...]
    """Per unit: the rank, without MPI the pid."""
    has_ranks: bool
    unit_count: int
    """Over how many units a mean is taken: the size of MPI_COMM_WORLD, also when a rank left no trace."""


def attribute_processes(processes: Sequence[Process]) -> Attribution:
    """Decide for every process image whether it counts, and for which unit."""
    ranks = [index for index, process in enumerate(processes) if process.rank >= 0]
    if not ranks:
        return _everything(processes)
    parents = _parents(processes)
    roles = [Role.OUTSIDE] * len(processes)
    for index in ranks:
        roles[index] = Role.RANK
    owner = _owners(parents, processes)
    for index, rank in enumerate(owner):
        if rank >= 0 and roles[index] is not Role.RANK:
            roles[index] = Role.DESCENDANT
    walked: set[int] = set()
    for index in ranks:
        ancestor = parents[index]
        while ancestor >= 0 and ancestor not in walked:
            walked.add(ancestor)
            if roles[ancestor] is Role.OUTSIDE:
                roles[ancestor] = Role.ANCESTOR
            ancestor = parents[ancestor]
    names = sorted({processes[index].rank for index in ranks})
    number = {rank: unit for unit, rank in enumerate(names)}
    units = tuple(number[rank] if rank >= 0 else -1 for rank in owner)
    size = max(processes[index].ranks for index in ranks)
    return Attribution(tuple(roles), units, tuple(names), has_ranks=True, unit_count=max(size, len(names)))


def _everything(processes: Sequence[Process]) -> Attribution:
    keys = [(process.host, process.pid) for process in processes]
    number = {key: unit for unit, key in enumerate(dict.fromkeys(keys))}
    units = tuple(number[key] for key in keys)
    names = tuple(pid for _, pid in number)
    return Attribution((Role.PROGRAM,) * len(processes), units, names, has_ranks=False, unit_count=len(names))


def _parents(processes: Sequence[Process]) -> list[int]:
    """Per image the image it came from: by fork as recorded; by exec what its pid was before, else its parent then."""
    by_pid: dict[tuple[str, int], list[int]] = {}
    for index in sorted(range(len(processes)), key=lambda i: processes[i].start_ns):
        by_pid.setdefault((processes[index].host, processes[index].pid), []).append(index)
    by_image = {(process.host, process.image): index for index, process in enumerate(processes) if process.image}
    starts = {key: [processes[index].start_ns for index in images] for key, images in by_pid.items()}
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
            above = (host, processes[index].ppid)
            candidates = by_pid.get(above, [])
            before = bisect_right(starts.get(above, ()), processes[index].start_ns)
            if before and candidates[before - 1] != index:
                parents[index] = candidates[before - 1]
    return parents


def _owners(parents: Sequence[int], processes: Sequence[Process]) -> list[int]:
    """Of each image the rank that it is, or that the nearest rank above it is; -1 without one.

    Each is gone through once: a script may start tens of thousands one from the other, and damage makes circles.
    """
    owners = [process.rank if process.rank >= 0 else None for process in processes]
    for index in range(len(processes)):
        walked: list[int] = []
        at = index
        while at >= 0 and owners[at] is None:
            owners[at] = -1  # so that a circle ends
            walked.append(at)
            at = parents[at]
        found = owners[at] if at >= 0 else -1
        for one in walked:
            owners[one] = found
    return [-1 if owner is None else owner for owner in owners]
