#!/usr/bin/env python3
"""Checkpoints of partitioned solvers: `make bench-partition`, or --help.

Lives here: the order of things and the page's frame. Not here: runs (partition_runs.py), tables and pictures
(partition_page.py), the program (partition_sets.cpp).
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

import launch
import partition_page
import partition_runs
import run
from ioweir.targets import lab, lab_loop
from partition_runs import MIB, Results, Storage

RATE = 12_000_000

INTRODUCTION = """\
# Results: checkpoints of partitioned solvers

The library of [partitioned files](../reference/partitioned-files.md) against a file per process and one plain MPI-IO
file, and what programs have of handing their checkpoints over. After Liu, Fu, Carothers et al., figures 4 to 12,
scaled: one machine, no network. Repeat with

    make bench-partition              # builds, measures (25 minutes, quiet), writes build/bench/partition.{json,md}
    make bench-partition RECORD=1     # the same, and into this page
    make bench-partition QUICK=1      # few runs: to see that it works, not to quote
"""


def parse() -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few runs")
    parser.add_argument("--mpi", default="openmpi", choices=launch.KINDS, help="MPI library")
    parser.add_argument("--beside", default="", help="what else the machine did, for the page")
    parser.add_argument("--output", type=Path, default=launch.ROOT / "build" / "bench", help="directory of the results")
    parser.add_argument("--record", type=Path, metavar="PAGE", help="also write the page and its pictures there")
    return parser.parse_args()


def measure(results: Results, scratch: Path, quick: bool) -> list[str]:
    """Everything; what is missing for the rest."""
    counts = [4, 8] if quick else [4, 8, 16, 32]
    rounds, most_files = (2, 4) if quick else (3, 16)
    memory = Storage("in memory (tmpfs)", scratch / "memory", throttled=False)
    memory.directory.mkdir()
    results.storages.append(memory)
    print("-- handed over, in memory", flush=True)
    partition_runs.perceived(results, memory.directory, quick)
    print("-- by all ranks, in memory", flush=True)
    partition_runs.compare(results, memory, [2, *counts], rounds + 2, most_files)
    missing = lab_loop.LoopBackend().missing()
    if missing:
        return missing
    wanted = lab.Wanted(f"partition-{os.getpid()}", "loop", 1, f"{RATE} B", "512 MiB", scratch / "loop", memory=True)
    made, _ = lab.up(wanted)
    try:
        slow = Storage(f"a slow device ({RATE / MIB:.1f} MiB/s)", made.target(0), throttled=True)
        results.storages.append(slow)
        print("-- by all ranks, slow device", flush=True)
        partition_runs.compare(results, slow, counts, rounds, most_files)
        print("-- handed over, slow device", flush=True)
        partition_runs.modes(results, slow, quick)
        partition_runs.too_slow(results, slow, RATE, quick)
        print("-- reading", flush=True)
        partition_runs.reads(results, slow, quick)
        print("-- activity", flush=True)
        partition_runs.activity(results, slow, scratch)
    finally:
        lab.down(made.name, made.root, force=True)
    return []


def main() -> int:
    """Measures, and writes the page; exit code 1 if a bar is missed."""
    options = parse()
    about = run.machine()
    begin = time.monotonic()
    scratch = Path(tempfile.mkdtemp(prefix="ioweir-bench-", dir=run.TMPFS))
    results = Results(options.mpi, int(about["processors"]))
    try:
        missing = measure(results, scratch, options.quick)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    lines, pictures = partition_page.lines_of(results, "partition")
    if missing:
        lines += [f"Nothing was measured on devices, for want of: {'; '.join(missing)}.", ""]
    text = "\n".join([
        INTRODUCTION,
        run.heading(about, begin, f"{launch.KIND_TITLES[options.mpi]}; "),
        *([f"Beside it ran: {options.beside}."] if options.beside else []),
        *(["", "**A quick run: too few to quote.**"] if options.quick else []),
        "",
        *lines,
    ]).rstrip("\n") + "\n"  # fmt: skip
    document = {
        "machine": about,
        "handed": [asdict(one) for one in results.handed],
        "modes": results.modes,
        "reads": results.reads,
        "slow_share": results.slow_share,
        "lost": results.lost,
        "storages": [
            {"name": one.name, "speeds": [[asdict(way), speeds] for way, speeds in one.speeds.items()]}
            for one in results.storages
        ],
    }
    run.keep("partition", text, document, options, pictures)
    missed = [bar for bar, _, met in partition_page.bars(results) if not met]
    for bar in missed:
        print(f"missed: {bar}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
