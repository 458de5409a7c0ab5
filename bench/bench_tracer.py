#!/usr/bin/env python3
"""What tracing costs, in three parts: `make bench-tracer`, or bench/bench_tracer.py --help.

Lives here: the order of the parts, the page of results and what it says about the machine. Not here: the parts
(table3.py, tracer_cost.py), the programs they run (*.cpp, built in build/release), statistics (pairs.py).
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Any

import launch
import run
import table3
import tracer_cost

PARTS = ("cost", "table3", "reading")

INTRODUCTION = """\
# Results: the tracer

What watching costs. Repeat with

    make bench-tracer              # builds, measures, writes build/bench/tracer.{json,md}
    make bench-tracer RECORD=1     # the same, and into this page

All figures are of runs that take turns, the cost of a call batch by batch, the rest run by run; each difference or
ratio is taken within one turn, and the tables give the median with its 95 per cent interval (order statistics, no
assumption on the noise).
Differences within a run are meaningful, absolute speeds depend on the machine. Files and traces lie in memory.

No other tracer takes part: neither Debian nor PyPI has one that can be run beside ioweir (`apt-cache search darshan`
finds nothing; PyPI's `darshan` holds the tools that read its logs, not the library that writes them).
"""


COST = """\
## Added cost of a traced call

Process CPU time with all helper threads, the same loop untraced and traced; two ranks, each on a processor of
its own; {posix_calls:,} `pwrite` and {mpi_calls:,} `MPI_File_write_at` a rank and pattern, always on the same
file. The untraced and the traced run go on at the same time and take turns on their processor, some thousand calls
each. So other load, caches and memory are the same for both; they are half a round of the file apart, so that
neither finds in the caches what the other wrote before it. Patterns: regular (4 KiB every 64 KiB), constant
(4 KiB, always there), sequential (4 KiB after 4 KiB); random (64 B to 4 KiB anywhere in 16 MiB), varying (64 B to
4 KiB, one after the other). Bars: 60 ns for a POSIX
call and 110 ns for an MPI-IO call with its POSIX call, where the clock is the time stamp counter. One reading
of it takes {counter:.0f} ns on this machine (`clock_gettime`: {monotonic:.0f} ns): two readings, {two:.0f} ns,
are in every POSIX figure, four, {four:.0f} ns, in every MPI-IO figure. Plain `rdtsc` is used, without fences;
every reading is the start or the end of a call that a report shows, and none can be saved. Bytes an event: disk
space of the trace of one such loop alone, with names, clock samples and unused space."""

TABLE3 = """\
## RIOT's Table 3

Seconds for a hundred operations over five files by two ranks, without tracing, with POSIX calls traced, and
with MPI-IO and POSIX calls traced. (Wright et al. 2013, section 5.1, have 24 to 128 ranks on parallel file
systems.) An overhead is real where its interval leaves out 0."""


def cost(options: argparse.Namespace, scratch: Path) -> tuple[Any, list[str]]:
    """Added nanoseconds a call, and bytes an event."""
    clock = tracer_cost.tick_ns()
    results = []
    for kind in kinds("tracer_cost"):
        print(f"-- cost of a call, {launch.KIND_TITLES[kind]}, {options.pairs} pairs", flush=True)
        results.append(tracer_cost.measure(kind, options.pairs, scratch))
    counter, monotonic = clock["time_stamp_counter"], clock["clock_monotonic"]
    lines = [
        *COST.format(
            counter=counter,
            monotonic=monotonic,
            two=2 * counter,
            four=4 * counter,
            posix_calls=tracer_cost.POSIX_CALLS,
            mpi_calls=tracer_cost.MPI_CALLS,
        ).splitlines(),
        "",
        *tracer_cost.table(results),
    ]
    return {"clock_ns": clock, "results": results}, lines


def riot(options: argparse.Namespace, scratch: Path) -> tuple[Any, list[str]]:
    """RIOT's Table 3."""
    results = []
    for kind in kinds("table3"):
        print(f"-- Table 3, {launch.KIND_TITLES[kind]}, {options.repetitions} repetitions", flush=True)
        results.append(table3.measure(kind, options.repetitions, scratch))
    lines = [
        *TABLE3.splitlines(),
        "",
        *table3.table(results),
    ]
    return results, lines


def reading(_: argparse.Namespace, scratch: Path) -> tuple[Any, list[str]]:
    """Post-processing."""
    kind = kinds("tracer_cost")[0]
    print("-- post-processing", flush=True)
    result = tracer_cost.post_processing(kind, scratch)
    lines = [
        "## Post-processing",
        "",
        f"`ioweir report --json` of {result['events']:,} events: {result['cpu_s'].text(2)} s of CPU time "
        f"({tracer_cost.POST_PROCESSING_RUNS} runs; bar: 1 s).",
    ]
    return result, lines


def kinds(program: str) -> list[str]:
    """The MPI libraries that are there."""
    found = [kind for kind in launch.KINDS if launch.available(program, kind)]
    if not found:
        raise launch.BenchmarkError(f"{program} was built for no MPI library: make build-bench")
    return found


def main() -> int:
    """Runs the parts that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", default=list(PARTS), help=f"of {', '.join(PARTS)}")
    parser.add_argument("--pairs", type=int, default=40, help="interleaved pairs for the cost of a call (default 40)")
    parser.add_argument("--repetitions", type=int, default=6, help="repetitions of Table 3 (default 6)")
    parser.add_argument("--output", type=Path, default=launch.ROOT / "build" / "bench", help="directory of the results")
    parser.add_argument("--scratch", type=Path, default=run.TMPFS, help="where the programs write (default: memory)")
    parser.add_argument("--record", type=Path, metavar="PAGE", help="also write the results as a page")
    options = parser.parse_args()
    runners = dict(zip(PARTS, (cost, riot, reading), strict=True))
    unknown = set(options.parts) - runners.keys()
    if unknown:
        parser.error(f"unknown part: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    if options.record is not None and set(options.parts) != set(PARTS):
        parser.error("--record needs all parts: a page of some would look like one of all")
    if not launch.IOWEIR.exists():
        parser.error(f"{launch.IOWEIR} is not there; run make bench-tracer, which builds it")

    about = run.machine()
    document: dict[str, Any] = {"date": time.strftime("%Y-%m-%d"), "machine": about}
    try:
        text = run.run_all([(part, runners[part]) for part in options.parts], options, document)
    except launch.BenchmarkError as error:
        print(error, file=sys.stderr)
        return 1
    text += [
        f"{document['date']}: {about['processors']} processors ({about['processor']}), Linux {about['kernel']},",
        f"clock source {about['clock_source']}, load {about['load_before']:.1f} before and",
        f"{os.getloadavg()[0]:.1f} after (two ranks make 2);",
        f"{options.pairs} pairs, {options.repetitions} repetitions; files in {options.scratch};",
        f"{document['elapsed_s'] / 60:.0f} minutes in all.",
    ]
    run.keep("tracer", INTRODUCTION + "\n" + "\n".join(text) + "\n", document, options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
