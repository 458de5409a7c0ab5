#!/usr/bin/env python3
"""netCDF subfiles on storage targets, as Son et al.'s figures 11 to 16. `make bench-subfiles`, or --help.

Lives here: the page, its pictures, and which bars were missed. Not here: what is run (subfiles_runs.py).
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

import bars
import launch
import run
import subfiles_runs
import targets_runs
from ioweir.base.units import rate
from ioweir.targets import lab, lab_loop
from subfiles_runs import EVERYWHERE, SELECTED, SHARED, TITLES, Clocks, Result, Runs, deviation
from targets_runs import Way

MB = 1_000_000
TARGETS = 8
RATE = 12 * MB
SHARE = 0.9
DEVIATION = 1 / 3
EXCHANGE = 0.01

INTRODUCTION = f"""\
# Results: netCDF subfiles

What [subfiles](../explanation/netcdf-subfiles.md) on [storage targets](../reference/targets.md) are worth to programs
that write through PnetCDF: Son et al. 2016, figures 11 to 16, scaled to one machine. Repeat with

    make bench-subfiles              # builds, measures (20 minutes), writes build/bench/subfiles.{{json,md}}, pictures
    make bench-subfiles RECORD=1     # the same, and into this page
    make bench-subfiles QUICK=1      # one run each of fewer bytes, two minutes: to see that it works, not to quote

{TARGETS} loop devices of {rate(RATE)} (`ioweir lab up`, root), an ext4 on each; {targets_runs.RANKS} ranks, Open MPI.
The programs are kernels (`ioweir kernel NAME --api netcdf`): coll_perf with two arrays of 128^3 integers a rank;
FLASH-IO's checkpoint and two plot files, 20 blocks of 16^3 a rank (a quarter of the paper's), of which only the
unknowns are divided; S3D's restart file with 50^3 points a rank, divided along z; GCRM's 38 record variables on level
4, divided along their second dimension. The time is that of the collective calls and `ncmpi_sync`; opening with its
probe is not in it. No file system stripes over directories: a plan's `mapping = "subfiles:{TARGETS}"` stands in for
the stripes of the shared file.
"""


def share_table(ways: dict[str, Way], ideal: float) -> list[str]:
    """Rows of one program."""
    return [
        f"| {TITLES[name]} | {len(way.written)} | {way.mean:.1f} | {deviation(way):.2f} | {way.mean / ideal:.2f} | "
        f"{statistics.mean(way.spans) / ideal:.2f} |"
        for name, way in ways.items()
    ]


def write_lines(runs: Runs, slow: int) -> list[str]:
    """All targets equal, or one slow: bandwidths."""
    ideal = runs.ideal(slow)
    lines = [
        f"## Writing, one target at {targets_runs.SLOW_SHARE}" if slow else "## Writing, all targets equal",
        "",
        f"Bar: selected targets at {SHARE} of the {ideal:.1f} MiB/s that the {TARGETS - slow} "
        f"{'others' if slow else 'targets'} can give together. Above 1: targets have worked while the program filled "
        "its next buffers; the last column has the time from the beginning of its first call to the end of its last.",
        "",
    ]
    for result in runs.results:
        ways = result.slow if slow else result.equal
        lines += [
            f"### {result.name}, {result.mib:.0f} MiB",
            "",
            "| way | runs | MiB/s, mean | standard deviation | of what is possible | with the program's own work |",
            "|---|---|---|---|---|---|",
            *share_table(ways, ideal),
            "",
        ]
    return lines


def varied_lines(runs: Runs) -> list[str]:
    """Another target is slow in each run."""
    return [
        "## Deviation",
        "",
        "Another target is slow in each run, by a factor of 2 to 9. Bar: a third of the shared file's deviation.",
        "",
        "| program | runs | shared file, MiB/s | deviation | selected, MiB/s | deviation | ratio |",
        "|---|---|---|---|---|---|---|",
        *(
            f"| {result.name} | {len(result.varied[SHARED].written)} | {result.varied[SHARED].mean:.1f} | "
            f"{deviation(result.varied[SHARED]):.2f} | {result.varied[SELECTED].mean:.1f} | "
            f"{deviation(result.varied[SELECTED]):.2f} | {deviation_ratio(result):.3f} |"
            for result in runs.results
        ),
        "",
        "Other targets than the fast ones were chosen for "
        f"{sum(result.wrong for result in runs.results)} files of this page's runs.",
        "",
    ]


def deviation_ratio(result: Result) -> float:
    """Of selected targets' over the shared file's."""
    shared = deviation(result.varied[SHARED])
    return deviation(result.varied[SELECTED]) / shared if shared else 0.0


def clock_lines(runs: Runs) -> list[str]:
    """Exchange and storage."""
    lines = [
        "## Exchange and storage",
        "",
        "With a slow target: the time of all ranks in collective calls that write, and in sync. *Exchange*: cutting "
        "and packing requests, and messages; *processor*: of that, time of the processor. The rest is storage and "
        "waiting for the slowest. Storage of a rank (Son et al., figure 12): the least and the most, means over the "
        f"files. Exchange is mostly waiting for one of {os.cpu_count()} processors, which {targets_runs.RANKS} ranks "
        f"share; bar: its processor time below {100 * EXCHANGE:.0f} per cent (Son et al., section 5.2.1, overhead).",
        "",
        "| program | way | exchange | processor | storage | storage of a rank, s |",
        "|---|---|---|---|---|---|",
    ]
    for result in runs.results:
        for way, clocks in result.clocks.items():
            lines.append(
                f"| {result.name} | {TITLES[way]} | {percent(clocks.exchange, clocks)} | "
                f"{percent(clocks.exchange_processor, clocks)} | {percent(clocks.storage, clocks)} | "
                f"{statistics.mean(clocks.least):.2f} to {statistics.mean(clocks.most):.2f} |"
            )
    return [*lines, ""]


def percent(value: float, clocks: Clocks) -> str:
    """Of the calls' time."""
    return f"{100 * value / clocks.calls:.2f} %"


def read_lines(runs: Runs) -> list[str]:
    """Cold reads and merging."""
    counts = ", ".join(f"{count} ranks" if count > 1 else "1 rank" for count in subfiles_runs.READERS)
    return [
        "## Reading back",
        "",
        "Cold: between writing and reading everything goes to the devices, and the page cache is emptied. All targets "
        f"equal; first by the {targets_runs.RANKS} ranks that have written (Son et al., figure 13), then subfiles on "
        f"selected targets by {counts}, each an even part of every array. Every value is compared. *Merged*: `ioweir "
        "merge` gives the file that the program writes without ioweir, header and data byte for byte. The file in one "
        "is not among them: PnetCDF looks at it by POSIX calls first, which makes the ordinary file of it; against one "
        "that a file system stripes, subfiles are read in [targets](targets.md).",
        "",
        "| program | all targets | selected | " + " | ".join(f"by {n}" for n in subfiles_runs.READERS)
        + " | merged |",
        "|---|---|---|" + "---|" * len(subfiles_runs.READERS) + "---|",
        *(
            f"| {result.name} | "
            + " | ".join(f"{result.cold[way].mean:.1f}" for way in (EVERYWHERE, SELECTED))
            + " | " + " | ".join(f"{result.readers[n]:.1f}" for n in subfiles_runs.READERS)
            + f" | {'the same' if result.merged else '**differs**'} |"
            for result in runs.results
        ),
        "",
    ]  # fmt: skip


def pictures(runs: Runs) -> dict[str, str]:
    """Writing and reading, as bars."""
    found = {}
    for name, slow in (("equal", 0), ("slow", 1)):
        rows = [
            bars.Bar(f"{result.name}: {TITLES[way]}", figures.mean, deviation(figures))
            for result in runs.results
            for way, figures in (result.slow if slow else result.equal).items()
        ]
        found[f"-{name}"] = bars.to_svg(
            "Writing through PnetCDF, MiB/s, " + ("one target slow" if slow else "all targets equal"), rows,
            runs.ideal(slow),
            f"dashed: the {TARGETS - slow} fast targets, {runs.ideal(slow):.1f} MiB/s; red: standard deviation",
        )  # fmt: skip
    rows = [
        bars.Bar(f"{result.name}: {TITLES[way]}", figures.mean, 0.0)
        for result in runs.results
        for way, figures in result.cold.items()
    ]
    found["-reads"] = bars.to_svg(
        "Cold reads through PnetCDF, MiB/s", rows, runs.ideal(0),
        f"dashed: all targets together, {runs.ideal(0):.1f} MiB/s",
    )  # fmt: skip
    return found


def missed_bars(runs: Runs) -> list[str]:
    """For a person."""
    missed = []
    for result in runs.results:
        for ways, slow in ((result.equal, 0), (result.slow, 1)):
            share = ways[SELECTED].mean / runs.ideal(slow)
            if share < SHARE:
                missed.append(f"{result.name}, {slow} slow: {share:.2f} of what is possible, not {SHARE}")
        if deviation_ratio(result) > DEVIATION:
            missed.append(f"{result.name}: deviation {deviation_ratio(result):.2f} of the shared file's, not a third")
        clocks = result.clocks[SELECTED]
        if clocks.exchange_processor > EXCHANGE * clocks.calls:
            of_calls = percent(clocks.exchange_processor, clocks)
            missed.append(f"{result.name}: exchange {of_calls} of collective time, not 1 %")
        if not result.merged:
            missed.append(f"{result.name}: the merged file differs")
    return missed


def page(runs: Runs, heading: str, quick: bool) -> str:
    """The page of results."""
    too_small = "too few runs of too few bytes to quote." if quick else ""
    lines = [
        *run.opening(INTRODUCTION, heading, too_small, missed_bars(runs), "All are met."),
        "",
        *write_lines(runs, 1),
        "![writing, one target slow](subfiles-slow.svg)",
        "",
        *write_lines(runs, 0),
        "![writing, all targets equal](subfiles-equal.svg)",
        "",
        *varied_lines(runs),
        *clock_lines(runs),
        *read_lines(runs),
        "![cold reads](subfiles-reads.svg)",
    ]
    return "\n".join(lines) + "\n"


def parse() -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one run each, of fewer bytes")
    parser.add_argument("--output", type=Path, default=launch.ROOT / "build" / "bench", help="directory of the results")
    parser.add_argument("--record", type=Path, metavar="PAGE", help="also write the page and its pictures there")
    parser.add_argument("--beside", default="", help="what else ran on the machine, for the page")
    return parser.parse_args()


def main() -> int:
    """Measures, and writes the page; exit code 1 if a bar is missed, unless it is a quick run."""
    options = parse()
    missing = lab_loop.LoopBackend().missing()
    if missing or not launch.available(launch.KERNEL_RUNNER, targets_runs.KIND):
        print(f"nothing can be measured: {'; '.join(missing) or 'there is no Open MPI'}")
        return 1
    about = run.machine()
    begin = time.monotonic()
    options.output.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix="ioweir-bench-", dir=run.TMPFS))
    try:
        wanted = lab.Wanted(
            f"subfiles-{os.getpid()}", "loop", TARGETS, f"{RATE} B", "512 MiB", scratch / "loop", memory=True
        )
        made, _ = lab.up(wanted)
        try:
            runs = subfiles_runs.measure(made, scratch, RATE, TARGETS, options.quick)
        finally:
            lab.down(made.name, made.root, force=True)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    heading = run.heading(about, begin) + (f" Beside it ran {options.beside}." if options.beside else "")
    document = {"machine": about, "date": time.strftime("%Y-%m-%d"), "runs": asdict(runs)}
    run.keep("subfiles", page(runs, heading, options.quick), document, options, pictures(runs))
    return 1 if missed_bars(runs) and not options.quick else 0


if __name__ == "__main__":
    sys.exit(main())
