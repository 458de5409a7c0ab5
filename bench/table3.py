"""RIOT's Table 3 (Wright et al. 2013, section 5.1): MPI-IO operations untraced, with POSIX traced, traced completely.

The three ways run in turns, each beginning a third of the repetitions; a figure is the median over repetitions, an
overhead the median of the ratios within repetitions.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import launch
import pairs

RANKS = 2
FILES = 5
MIB = 1 << 20
OPERATIONS = {MIB // 4: 100, MIB: 100, 4 * MIB: 100, 16 * MIB: 100}
WAYS = ("none", "POSIX", "complete")
LAYERS = {"POSIX": "posix", "complete": "complete"}


def measure(kind: str, repetitions: int, scratch: Path) -> dict[str, Any]:
    """Runs every way `repetitions` times under one MPI library."""
    seconds: dict[tuple[str, str, int], list[float]] = {}
    trace = scratch / "trace"
    sizes = ",".join(f"{size}:{count}" for size, count in OPERATIONS.items())
    for repetition in range(repetitions):
        for step in range(len(WAYS)):
            way = WAYS[(repetition + step) % len(WAYS)]
            shutil.rmtree(trace, ignore_errors=True)
            traced = None if way == "none" else launch.Traced(trace, layers=LAYERS[way])
            for line in launch.run_program("table3", kind, RANKS, [str(scratch), str(FILES), sizes], traced):
                seconds.setdefault((way, line["function"], line["bytes"]), []).append(line["seconds"])
    shutil.rmtree(trace, ignore_errors=True)
    functions = list(dict.fromkeys(function for _, function, _ in seconds))
    return {
        "mpi": kind,
        "ranks": RANKS,
        "repetitions": repetitions,
        "rows": [
            {
                "function": function,
                "bytes": size,
                "operations": OPERATIONS[size],
                "seconds": {way: pairs.median_interval(seconds[way, function, size]) for way in WAYS},
                "ratio": {
                    way: pairs.median_interval(
                        [
                            after / before
                            for before, after in zip(
                                seconds["none", function, size], seconds[way, function, size], strict=True
                            )
                        ]
                    )
                    for way in WAYS[1:]
                },
            }
            for size in OPERATIONS
            for function in functions
        ],
    }


def percent(ratio: pairs.Interval) -> str:
    """An overhead as tables print it. Example: 1.01 [0.99, 1.03] -> +1.0 % [-1.0, +3.0]."""
    return f"{100 * (ratio.median - 1):+.1f} % [{100 * (ratio.low - 1):+.1f}, {100 * (ratio.high - 1):+.1f}]"


def table(results: list[dict[str, Any]]) -> list[str]:
    """The results as a Markdown table."""
    lines = [
        "| MPI | per process | operations | function | none, s | POSIX, s | complete, s "
        "| POSIX: overhead | complete: overhead |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for result in results:
        for row in result["rows"]:
            size = f"{row['bytes'] // 1024} KiB" if row["bytes"] < MIB else f"{row['bytes'] // MIB} MiB"
            cells = [row["seconds"][way].text(3) for way in WAYS]
            lines.append(
                f"| {launch.KIND_TITLES[result['mpi']]} | {size} | {row['operations']} | {row['function']} | "
                f"{' | '.join(cells)} | {' | '.join(percent(row['ratio'][way]) for way in WAYS[1:])} |"
            )
        for way in WAYS[1:]:
            ratios = [row["ratio"][way].median for row in result["rows"]]
            lines.append(
                f"| {launch.KIND_TITLES[result['mpi']]} | all | | median of all, {way} | | | | "
                f"{100 * (pairs.median(ratios) - 1):+.1f} % | |"
                if way == "POSIX"
                else f"| {launch.KIND_TITLES[result['mpi']]} | all | | median of all, {way} | | | | | "
                f"{100 * (pairs.median(ratios) - 1):+.1f} % |"
            )
    return lines
