"""What reading a trace costs: processor time and peak memory of whole commands, interpreter start and imports included.

Lives here: which traces and commands, measuring them. Not here: making traces (make_trace.cpp), recording (run.py).
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from launch import IOWEIR, PROGRAMS, BenchmarkError

MAKE_TRACE = PROGRAMS / "make_trace"
PAGE = "page.html"
"""Written into the scratch directory."""
# Events, ranks, files, pattern.
TRACES = (
    (500_000, 4, 20, "regular"),
    (500_000, 4, 20, "random"),
    (500_000, 4, 10_000, "regular"),
    (50_000_000, 4, 200, "regular"),
    (50_000_000, 4, 200, "random"),
    (50_000_000, 1024, 1000, "regular"),
)
COMMANDS = (("report",), ("report", "--json"), ("report", "--html", PAGE), ("findings",), ("merge-trace",))
LONG_EVENTS = 10_000_000
LIMITS = {
    ("report", 500_000): (1.0, None),
    ("report", 50_000_000): (60.0, 4 << 30),
    ("findings", 500_000): (1.0, None),
    (f"report --html {PAGE}", 500_000): (3.0, None),
}
"""Processor seconds and bytes of memory, of a command on so many events."""


@dataclass(frozen=True)
class Cost:
    """One command on one trace: the median of its runs."""

    events: int
    ranks: int
    files: int
    pattern: str
    trace_bytes: int
    command: str
    runs: int
    cpu_s: float
    cpu_spread_s: float
    """Largest minus smallest."""
    wall_s: float
    peak_bytes: int

    @property
    def within_limits(self) -> bool | None:
        """Whether the command keeps to LIMITS; None where there is none."""
        limit = LIMITS.get((self.command, round(self.events, -5)))
        if limit is None:
            return None
        cpu_s, peak_bytes = limit
        return self.cpu_s < cpu_s and (peak_bytes is None or self.peak_bytes < peak_bytes)


def available() -> bool:
    """Whether the generator of traces was built."""
    return MAKE_TRACE.is_file()


def measure(scratch: Path, traces: tuple[tuple[int, int, int, str], ...] = TRACES, runs: int = 5) -> list[Cost]:
    """Every command on every trace; long ones once."""
    results: list[Cost] = []
    for events, ranks, files, pattern in traces:
        directory = Path(tempfile.mkdtemp(prefix="report-speed-", dir=scratch))
        try:
            made = subprocess.run(
                [MAKE_TRACE, directory, str(events), str(ranks), str(files), pattern],
                capture_output=True, text=True, check=False,
            )  # fmt: skip
            if made.returncode != 0:
                raise BenchmarkError(f"{MAKE_TRACE}: {made.stderr}")
            size = sum(path.stat().st_size for path in directory.iterdir())
            for command in COMMANDS:
                repeat = 1 if events >= LONG_EVENTS else runs
                rows = [run_once(command, directory) for _ in range(repeat)]
                cpu = [row[0] for row in rows]
                results.append(
                    Cost(
                        events=int(made.stdout), ranks=ranks, files=files, pattern=pattern, trace_bytes=size,
                        command=" ".join(command), runs=repeat, cpu_s=statistics.median(cpu),
                        cpu_spread_s=max(cpu) - min(cpu), wall_s=statistics.median(row[1] for row in rows),
                        peak_bytes=max(row[2] for row in rows),
                    )
                )  # fmt: skip
        finally:
            shutil.rmtree(directory)
    return results


def run_once(command: tuple[str, ...], directory: Path) -> tuple[float, float, int]:
    """Processor seconds, elapsed seconds and peak resident bytes of one command."""
    begun = time.monotonic()
    words = [str(IOWEIR), command[0], str(directory), *command[1:]]
    child = subprocess.Popen(words, stdout=subprocess.DEVNULL, cwd=directory.parent)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise BenchmarkError(f"ioweir {' '.join(command)} ended with {child.returncode}")
    return usage.ru_utime + usage.ru_stime, time.monotonic() - begun, usage.ru_maxrss * 1024


def table(results: list[Cost]) -> list[str]:
    """The results as Markdown."""
    lines = [
        "| events | ranks | files | pattern | bytes an event | command | CPU s (spread, runs) | ns an event | peak MiB "
        "| within the limit |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for cost in results:
        limit = {True: "yes", False: "NO", None: ""}[cost.within_limits]
        lines.append(
            f"| {cost.events:,} | {cost.ranks:,} | {cost.files:,} | {cost.pattern} "
            f"| {cost.trace_bytes / cost.events:.1f} | {cost.command} | {cost.cpu_s:.2f} ({cost.cpu_spread_s:.2f}, "
            f"{cost.runs}) | {1e9 * cost.cpu_s / cost.events:.0f} | {cost.peak_bytes / 2**20:.0f} | {limit} |"
        )
    return lines
