"""What ioweir's tracer adds to a POSIX call and to an MPI-IO call with the POSIX call inside it, and what it writes.

Calls and sizes are those of the tracer table in the design's MEASUREMENTS (pwrite of 64 B to 4 KiB, MPI_File_write_at),
in five patterns. Each pair runs the program bare and traced at the same time, taking turns batch by batch
(tracer_cost.cpp); a figure is traced minus bare within a pair.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
from pathlib import Path
from typing import Any

import launch
import pairs
import zstandard

RANKS = 2
PATTERNS = ("regular", "constant", "sequential", "random", "varying")
# In turns of 4,000 and 2,000 calls.
POSIX_CALLS = 96_000
MPI_CALLS = 48_000
# Long enough that the first chunks and names do not count.
DISK_CALLS = 384_000
BLOCK = 4096
FIGURES = ("cpu_ns", "whole_cpu_ns", "wall_ns")
TITLES = {"posix": "pwrite", "mpi_io": "MPI_File_write_at and its pwrite"}
POST_PROCESSING_EVENTS = 500_000
POST_PROCESSING_RUNS = 7


def measure(kind: str, count: int, scratch: Path) -> dict[str, Any]:
    """`count` pairs of runs under one MPI library, and then each loop once for its bytes on disk."""
    bare: dict[tuple[str, str], list[float]] = {}
    added: dict[tuple[str, str, str], list[float]] = {}
    trace = scratch / "trace"
    arguments = [str(scratch), ",".join(PATTERNS), str(POSIX_CALLS), str(MPI_CALLS)]
    for index in range(count):
        shutil.rmtree(trace, ignore_errors=True)
        name = f"ioweir-cost-{os.getpid()}-{kind}-{index}"
        turns = ("first", "second") if index % 2 == 0 else ("second", "first")
        before, after = launch.run_together(
            "tracer_cost",
            kind,
            RANKS,
            [
                launch.Run([*arguments, name, turns[0]]),
                launch.Run([*arguments, name, turns[1]], launch.Traced(trace)),
            ],
        )
        for untraced, traced in zip(before, after, strict=True):
            loop = untraced["call"], untraced["pattern"]
            bare.setdefault(loop, []).append(pairs.median([batch for rank in untraced["cpu_ns"] for batch in rank]))
            for figure in FIGURES:
                added.setdefault((*loop, figure), []).append(difference(untraced[figure], traced[figure]))
    rows = [
        {
            "call": call,
            "pattern": pattern,
            "bare_ns": pairs.median(bare[call, pattern]),
            "added_ns": {figure: pairs.median_interval(added[call, pattern, figure]) for figure in FIGURES},
            **on_disk(kind, scratch, call, pattern),
        }
        for call in TITLES
        for pattern in PATTERNS
    ]
    return {"mpi": kind, "ranks": RANKS, "pairs": count, "rows": rows}


def difference(bare: list[list[float]], traced: list[list[float]]) -> float:
    """What one run adds: of each rank the median over its batches, of the ranks the mean.

    Two batches at a time: of the one, the bare run was the first to make it, of the other the traced one.
    """
    medians = []
    for before, after in zip(bare, traced, strict=True):
        added = [b - a for a, b in zip(before, after, strict=True)]
        medians.append(
            pairs.median([sum(two) / len(two) for two in (added[i : i + 2] for i in range(0, len(added), 2))])
        )
    return sum(medians) / len(medians)


def node_file(trace: Path) -> tuple[bytes, int]:
    """What the one node of a trace has written, and how long its file is when the run has ended."""
    files = list(trace.glob("node-*.iowt.zst"))
    if len(files) != 1:
        raise launch.BenchmarkError(f"{len(files)} compressed files of nodes, not one")
    packed = files[0].read_bytes()
    return zstandard.ZstdDecompressor().decompress(packed), len(packed)


def bytes_with_data(content: bytes) -> int:
    """In blocks that are not all zero: what a file takes whose holes were given back."""
    return sum(any(content[at : at + BLOCK]) for at in range(0, len(content), BLOCK)) * BLOCK


def on_disk(kind: str, scratch: Path, call: str, pattern: str) -> dict[str, Any]:
    """Disk space of the trace of one loop, per event: while it runs, and when it has ended."""
    trace = scratch / "trace"
    shutil.rmtree(trace, ignore_errors=True)
    # An MPI-IO call is two events.
    calls = [str(DISK_CALLS), "0"] if call == "posix" else ["0", str(DISK_CALLS // 2)]
    launch.run_program("tracer_cost", kind, RANKS, [str(scratch), pattern, *calls], launch.Traced(trace))
    summary = launch.report(trace)
    content, packed = node_file(trace)
    taken = {"bytes_per_event": bytes_with_data(content), "compressed_bytes_per_event": packed}
    shutil.rmtree(trace, ignore_errors=True)
    if summary["dropped"] != 0 or summary["events"] < RANKS * DISK_CALLS:
        raise launch.BenchmarkError(
            f"{summary['events']} events, {summary['dropped']} dropped: not what the loop makes"
        )
    return {"events": summary["events"]} | {name: count / summary["events"] for name, count in taken.items()}


def post_processing(kind: str, scratch: Path) -> dict[str, Any]:
    """CPU time of `ioweir report --json` for half a million events."""
    trace = scratch / "trace"
    shutil.rmtree(trace, ignore_errors=True)
    calls = str(POST_PROCESSING_EVENTS // RANKS // 4)
    # Half of the events POSIX calls, a quarter MPI-IO calls, a quarter the POSIX calls in them.
    arguments = [str(scratch), "random,sequential", calls, str(int(calls) // 2)]
    launch.run_program("tracer_cost", kind, RANKS, arguments, launch.Traced(trace))
    seconds = []
    for _ in range(POST_PROCESSING_RUNS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([launch.IOWEIR, "report", trace, "--json"], capture_output=True, text=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    shutil.rmtree(trace, ignore_errors=True)
    return {"events": json.loads(done.stdout)["events"], "cpu_s": pairs.median_interval(seconds)}


def tick_ns() -> dict[str, float]:
    """What reading the clock costs here: the smallest part of any tracer with a start and an end for each call."""
    program = launch.PROGRAMS / "clock_cost"
    done = subprocess.run([program], capture_output=True, text=True, check=True, env=dict(os.environ))
    costs = json.loads(done.stdout)
    return {name: float(value) for name, value in costs.items()}


def table(results: list[dict[str, Any]]) -> list[str]:
    """The results as a Markdown table."""
    lines = [
        "| MPI | call | pattern | bare, ns | added process CPU, ns | the same, median of batches "
        "| added wall time, ns | bytes an event on disk | the same, when the run has ended |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for result in results:
        for row in result["rows"]:
            added = " | ".join(row["added_ns"][figure].text(0) for figure in ("whole_cpu_ns", "cpu_ns", "wall_ns"))
            lines.append(
                f"| {launch.KIND_TITLES[result['mpi']]} | {TITLES[row['call']]} | {row['pattern']} "
                f"| {row['bare_ns']:.0f} | {added} "
                f"| {row['bytes_per_event']:.1f} | {row['compressed_bytes_per_event']:.1f} |"
            )
    return lines
