"""What a site keeps of a run: one row, and one row of each finding. How rows are stored is store.py's.

Times are seconds, of an average rank where ranks differ. Bytes are those that calls at the storage moved (POSIX and
STDIO), or the lowest layer that was recorded.
"""

from __future__ import annotations

import contextlib
import pwd
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ioweir.errors import IoweirError
from ioweir.report import figures, run_findings
from ioweir.trace.reader import DATA_OPS, STDIO, load

if TYPE_CHECKING:
    from pathlib import Path

    from ioweir.report.model import Report

_LOWEST_FIRST: Final = (("POSIX", STDIO), ("MPI-IO",), ("PnetCDF", "HDF5", "netCDF"))


@dataclass(frozen=True)
class RunRow:
    """A run. `run`: its key, the same whenever its trace is read; `exit_code`: None where nobody saw its end."""

    run: str
    started: float
    program: str
    user: str
    source: str
    mpi: str
    ranks: int
    nodes: int
    wall_s: float
    io_s: float
    waiting_s: float
    read_bytes: int
    written_bytes: int
    events: int
    partial: bool
    exit_code: int | None


@dataclass(frozen=True)
class FindingRow:
    """A finding of a run; `nodes` and `program` are the run's."""

    run: str
    started: float
    program: str
    nodes: int
    code: str
    severity: str
    layer: str
    seconds: float
    gain_low: float
    gain_high: float


@dataclass(frozen=True)
class Collected:
    """What a trace comes to."""

    run: RunRow
    findings: list[FindingRow]


def of_trace(directory: Path, key: str) -> Collected:
    """Reads a trace, or an imported log, whose key that is. IoweirError where it cannot be read."""
    trace = load(directory, sums_of_many=True)
    if trace.unreadable and not trace.event_count and trace.counted is None:
        raise IoweirError("; ".join(trace.unreadable))
    report = figures.build(trace)
    found = run_findings.findings_of(trace, report)
    read, written = _moved(report, "read"), _moved(report, "write")
    run = RunRow(
        run=key,
        started=report.started or 0.0,
        program=report.program.rpartition("/")[2] or "unknown",
        user=_owner(directory),
        source="ioweir" if report.imported is None else report.imported.tool,
        mpi=report.mpi_libraries[0] if report.mpi_libraries else "",
        ranks=report.ranks or report.processes,
        nodes=max(1, len(report.hosts)),
        wall_s=report.wall_s,
        io_s=report.io.mean_s,
        waiting_s=report.io.waiting_s,
        read_bytes=read,
        written_bytes=written,
        events=report.events,
        partial=report.partial,
        exit_code=report.exit_code,
    )
    findings = [
        FindingRow(
            run=run.run, started=run.started, program=run.program, nodes=run.nodes, code=one.code,
            severity=one.severity, layer=one.layer, seconds=one.seconds, gain_low=max(0.0, one.gain.low),
            gain_high=max(0.0, one.gain.high),
        )
        for one in found.findings
    ]  # fmt: skip
    return Collected(run, findings)


def _moved(report: Report, op: str) -> int:
    assert op in DATA_OPS
    for layers in _LOWEST_FIRST:
        total = sum(int(getattr(report.layers.get(layer, {}).get(op), "bytes", 0)) for layer in layers)
        if total:
            return total
    return 0


def _owner(directory: Path) -> str:
    number = directory.stat().st_uid
    with contextlib.suppress(KeyError):
        return pwd.getpwuid(number).pw_name
    return str(number)
