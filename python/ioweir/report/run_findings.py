"""The findings of a run: how long it took, which calls were recorded, and what the rules say to that.

Without a report, so that nothing of it is loaded, nor the trace's events gone through where run.json has the time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ioweir.report import lacking

if TYPE_CHECKING:
    from collections.abc import Callable

    from ioweir.findings.model import Findings
    from ioweir.report import model
    from ioweir.trace.reader import Trace


def findings_of(trace: Trace, report: model.Report | None = None) -> Findings:
    """What is wrong with the run; `report`: its figures, where they have been made."""
    from ioweir.findings import ranking  # noqa: PLC0415 (loads every rule)

    wall_s = wall_from(trace, trace.last_end_ns) if report is None else report.wall_s
    return ranking.find(trace, wall_s, lacking.recorded_layers(trace))


def wall_from(trace: Trace, last_end_ns: Callable[[], int | None]) -> float:
    """The run's wall time; without run.json, from the first process's start to the last thing that is known."""
    wall = trace.run.get("wall_s")
    if isinstance(wall, int | float):
        return float(wall)
    ends = [max(process.start_ns, process.end_ns, process.mpi_finalize_ns) for process in trace.processes]
    if (last := last_end_ns()) is not None:
        ends.append(last)
    starts = [process.start_ns for process in trace.processes]
    return (max(ends) - min(starts)) / 1e9 if starts else 0.0
