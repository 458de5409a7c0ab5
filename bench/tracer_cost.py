"""What ioweir's tracer adds to a POSIX call and to an MPI-IO call with the POSIX call inside it.

The loop is that of MEASUREMENTS in the design: 200,000 pwrite of 64 B to 4 KiB and 20,000 MPI_File_write_at of 4 KiB a
rank. Each pair runs the program bare and traced, in turns; a figure is traced minus bare within a pair.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import launch
import pairs

RANKS = 2
CALLS = ("posix", "mpi_io")
FIGURES = ("cpu_p10_ns", "cpu_median_ns", "wall_median_ns", "process_cpu_ns")
TITLES = {"posix": "POSIX pwrite", "mpi_io": "MPI_File_write_at with its pwrite"}


def measure(kind: str, count: int, scratch: Path) -> dict[str, Any]:
    """Runs `count` interleaved pairs under one MPI library."""
    bare: list[Any] = []
    traced: list[Any] = []
    trace = scratch / "trace"
    for index in range(count):
        for with_ioweir in (False, True) if index % 2 == 0 else (True, False):
            if with_ioweir:
                shutil.rmtree(trace, ignore_errors=True)
            (result,) = launch.run_program(
                "tracer_cost", kind, RANKS, [str(scratch)], launch.Traced(trace) if with_ioweir else None
            )
            (traced if with_ioweir else bare).append(result)
    summary = launch.report(trace)
    bytes_on_disk = sum(file.stat().st_blocks * 512 for file in trace.glob("*.iowt"))
    shutil.rmtree(trace, ignore_errors=True)
    return {
        "mpi": kind,
        "ranks": RANKS,
        "pairs": count,
        "events": summary["events"],
        "dropped": summary["dropped"],
        "trace_bytes_per_event": bytes_on_disk / max(1, summary["events"]),
        "bare_ns": {
            call: {figure: pairs.median([run[call][figure] for run in bare]) for figure in FIGURES} for call in CALLS
        },
        "added_ns": {
            call: {
                figure: pairs.median_interval(
                    [after[call][figure] - before[call][figure] for before, after in zip(bare, traced, strict=True)]
                )
                for figure in FIGURES
            }
            for call in CALLS
        },
    }


def table(results: list[dict[str, Any]]) -> list[str]:
    """The results as a Markdown table."""
    lines = [
        "| MPI | call | bare, CPU ns | added CPU ns (p10 of batches) | added CPU ns (median of batches) "
        "| added wall ns | added process CPU ns | trace bytes an event |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for result in results:
        for call in CALLS:
            added = result["added_ns"][call]
            cells = [added[figure].text(0) for figure in FIGURES]
            lines.append(
                f"| {launch.KIND_TITLES[result['mpi']]} | {TITLES[call]} "
                f"| {result['bare_ns'][call]['cpu_median_ns']:.0f} | {' | '.join(cells)} "
                f"| {result['trace_bytes_per_event']:.1f} |"
            )
    return lines
