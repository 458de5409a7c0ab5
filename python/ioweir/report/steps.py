"""The steps of a script that starts several MPI programs one after the other.

Rank r of the k-th program is the k-th process that was rank r. Where programs ran at the same time there are no steps.
"""

from __future__ import annotations

import os.path
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ioweir.report import model
from ioweir.trace.sums import Summation

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ioweir.trace.attribute import Attribution
    from ioweir.trace.reader import Process, Trace
    from ioweir.trace.sums import Sums

MOST_STEPS: Final = 32
"""Each costs a pass over the trace."""


def of(
    trace: Trace,
    who: Attribution,
    file_of_path: Sequence[int],
    runtime: Sequence[bool],
    io_of: Callable[[Attribution, Sums, float], model.Io],
) -> list[model.Step]:
    """A row a program; none where there is one program only."""
    groups = _groups(trace.processes)
    if not 1 < len(groups) <= MOST_STEPS:
        return []
    begins = [min(trace.processes[at].start_ns for at in group) for group in groups]
    ends = [max(_end(trace.processes[at]) for at in group) for group in groups]
    if any(end > begin for end, begin in zip(ends, begins[1:], strict=False)):
        return []
    rows = []
    for number, group in enumerate(groups):
        members = set(group)
        until = begins[number + 1] if number + 1 < len(begins) else None
        units = tuple(
            unit if at in members or (process.rank < 0 and _started(process, begins[number], until)) else -1
            for at, (unit, process) in enumerate(zip(who.units, trace.processes, strict=True))
        )
        first = trace.processes[group[0]]
        of_step = replace(who, units=units, unit_count=max(trace.processes[at].ranks for at in group))
        sums = Summation(trace, of_step, file_of_path, runtime, verified=False).run()
        wall_s = (ends[number] - begins[number]) / 1e9
        rows.append(
            model.Step(
                os.path.basename(first.executable),  # noqa: PTH119 (text of another machine)
                of_step.unit_count,
                begins[number] / 1e9,
                wall_s,
                io_of(of_step, sums, wall_s),
            )
        )
    return rows


def _groups(processes: Sequence[Process]) -> list[list[int]]:
    """The processes of each program, in the order of their beginnings."""
    by_rank: dict[int, list[int]] = {}
    for at in sorted(range(len(processes)), key=lambda at: processes[at].start_ns):
        if processes[at].rank >= 0:
            by_rank.setdefault(processes[at].rank, []).append(at)
    most = max((len(images) for images in by_rank.values()), default=0)
    return [[images[k] for images in by_rank.values() if k < len(images)] for k in range(most)]


def _end(process: Process) -> int:
    return max(process.end_ns, process.mpi_finalize_ns, process.start_ns)


def _started(process: Process, begin: int, until: int | None) -> bool:
    return process.start_ns >= begin and (until is None or process.start_ns < until)
