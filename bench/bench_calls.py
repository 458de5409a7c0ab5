#!/usr/bin/env python3
"""What one small call costs under a plan: `make bench-calls`, or --help.

Lives here: the plans, calls and sizes, times, and the page. Not here: the loops (call_cost.cpp), how two runs take
turns (turns.hpp), statistics (pairs.py), what callgrind and strace count (call_counts.py).
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import call_counts
import launch
import pairs
import run
from ioweir.base.units import size

INDEPENDENT = (
    "write_at", "read_at", "write_at of doubles", "write by pointer", "read by pointer", "write", "read",
    "write_at of 8 pieces", "read_at of 8 pieces",
)  # fmt: skip
COLLECTIVE = ("write_at_all", "read_at_all", "write_all", "read_all")
OTHERS = ("iwrite_at", "iread_at", "write_at_all_begin", "write_shared")
BY_HAND = ("append", "pread")
COMPUTING = ("compute and memcpy", "compute and write_at")
SAYS = {
    "compute and memcpy": "memcpy by hand, after computing for 5 us",
    "compute and write_at": "write_at, after computing for 5 us",
    "append": "pwrite by hand, at the end of a file of the rank's own",
    "pread": "pread by hand, of a file of the rank's own",
    "write": "write, by pointer in a view: every n-th piece",
    "read": "read, by pointer in a view: every n-th piece",
    "write_all": "write_all, by pointer in the same view",
    "read_all": "read_all, by pointer in the same view",
    "write_at_all_begin": "write_at_all_begin and _end",
    "iwrite_at": "iwrite_at and wait",
    "iread_at": "iread_at and wait",
}


@dataclass(frozen=True)
class Plan:
    """A plan, and whether its file is another one than the library's."""

    title: str
    rule: str
    apart: bool = False


PLANS = {
    "auto": Plan("`auto`", 'writers = "auto"'),
    "everyone": Plan("`everyone`", 'writers = "everyone"'),
    "log-sync": Plan("`log`, visibility `sync`", 'mapping = "log"\nvisibility = "sync"', apart=True),
    "log-call": Plan("`log`, visibility `call`", 'mapping = "log"\nvisibility = "call"', apart=True),
    "behind": Plan("write-behind", 'writers = "behind:1"\nvisibility = "sync"', apart=True),
    "subfiles": Plan("`subfiles:2`", 'mapping = "subfiles:2"', apart=True),
}

INTRODUCTION = """\
# Results: small calls

What a call of few bytes takes under a plan, over what the same call takes traced without a plan: the median of the
ratios within pairs of runs, with its 95 per cent interval (order statistics), and nanoseconds a call without and with
the plan (medians, wall time). Both runs of a pair go on at the same time and take turns on their processors, batch by
batch, so that other load hits both. All files lie in memory (tmpfs); rank r of n has every n-th piece. Repeat with

    make bench-calls              # builds, measures, writes build/bench/calls.{json,md}
    make bench-calls RECORD=1     # the same, and into this page
    make bench-calls ARGS="--mpi mpich --plan auto --ranks 2 --bytes 512"     # a part

A log takes fresh memory where the library writes over a file that is there: its writes compare with `append`, its
reads with `pread`, by hand, in the same runs. What write-behind takes of a call compares with `memcpy` of the same
bytes, both between computations of 5 us that are not counted. Calls with `_all` are collective; a library that lets
ranks go on alone in them (OMPIO with such calls) is compared with as it is.
"""

COUNTS = """\
# Results: what small calls count

The calls of [the page of their times](calls.md), one of each in steady state (480 of each kind and size, after as many
that do not count; traced, in memory): instructions in user space with all that is beneath the call, ioweir's own in
brackets (callgrind); system calls (strace); messages handed to the network (Open MPI), or calls of MPI that
communicate, made by ioweir or by ROMIO (MPICH, whose messages callgrind cannot see): `sent`. Two numbers with `to`
between them are the least and the most of the sizes. A rank that waits for another one counts instructions, so that
those of collective calls on two ranks vary from run to run. Repeat with

    make bench-calls ARGS="--counts only"
"""


def measure(mpi: str, ranks: int, plan: str, options: argparse.Namespace, scratch: Path) -> list[dict[str, Any]]:
    """`options.pairs` pairs of runs, a row for each call and size."""
    what = PLANS[plan]
    usual = (*BY_HAND, *COMPUTING, *INDEPENDENT, *(COLLECTIVE if ranks > 1 else ()), *OTHERS)
    calls = options.call or usual
    found: dict[tuple[str, int], list[tuple[float, float]]] = {}
    plan_file = scratch / "plan.toml"
    plan_file.write_text(f'[[file]]\nmatch = "*.data"\n{what.rule}\n')
    for index in range(options.pairs):
        folders = [Path(tempfile.mkdtemp(dir=scratch)) for _ in range(3)]
        shared = str(folders[0] / "a.data")
        other = str(folders[1] / "a.data") if what.apart else shared
        name = f"ioweir-calls-{os.getpid()}-{mpi}-{ranks}-{plan}-{index}"
        turns = ("first", "second") if index % 2 == 0 else ("second", "first")
        arguments = [",".join(map(str, options.bytes)), ",".join(calls), str(options.calls), name]
        before, after = launch.run_together(
            "call_cost",
            mpi,
            ranks,
            [
                launch.Run([shared, *arguments, turns[0]], launch.Traced(folders[2] / "before")),
                launch.Run([other, *arguments, turns[1]], launch.Traced(folders[2] / "after", plan_file)),
            ],
        )
        for plain, planned in zip(before, after, strict=True):
            found.setdefault((plain["call"], plain["bytes"]), []).append((of_run(plain), of_run(planned)))
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)
    return [
        {
            "mpi": mpi,
            "ranks": ranks,
            "plan": plan,
            "call": call,
            "bytes": bytes_,
            "plain_ns": pairs.median([one for one, _ in both]),
            "planned_ns": pairs.median([other for _, other in both]),
            "ratio": pairs.median_interval([other / one for one, other in both]),
        }
        for (call, bytes_), both in found.items()
    ]


def of_run(line: dict[str, Any]) -> float:
    """Of each rank the median over its batches; of the ranks the mean."""
    return sum(pairs.median(rank) for rank in line["wall_ns"]) / len(line["wall_ns"])


def parse() -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=9, help="of runs, for each plan")
    parser.add_argument("--calls", type=int, default=2400, help="of each kind and size in a run")
    parser.add_argument("--bytes", type=int, nargs="+", default=[100, 512, 4096, 65536], help="of a call")
    parser.add_argument("--mpi", nargs="+", choices=launch.KINDS, default=list(launch.KINDS))
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--plan", nargs="+", choices=list(PLANS), default=list(PLANS))
    parser.add_argument("--call", nargs="+", metavar="CALL", help="only these (call_cost.cpp has their names)")
    parser.add_argument(
        "--counts",
        choices=("also", "only", "no"),
        default="also",
        help="of instructions, system calls and messages: beside times, without them, or none",
    )
    parser.add_argument("--output", type=Path, default=launch.ROOT / "build" / "bench", help="directory of the results")
    parser.add_argument("--record", type=Path, metavar="PAGE", help="also write the page there")
    return parser.parse_args()


def table(rows: list[dict[str, Any]], sizes: list[int]) -> list[str]:
    """A line a call, a column a size."""
    lines = ["| call | " + " | ".join(size(one) for one in sizes) + " |", "|---" * (1 + len(sizes)) + "|"]
    for call in dict.fromkeys(row["call"] for row in rows):
        cells = []
        for one in sizes:
            row = next(row for row in rows if row["call"] == call and row["bytes"] == one)
            cells.append(f"{row['ratio'].text(2)}, {row['plain_ns']:,.0f} → {row['planned_ns']:,.0f}")
        lines.append(f"| {SAYS.get(call, call)} | " + " | ".join(cells) + " |")
    return lines


def count(mpi: str, ranks: int, options: argparse.Namespace, scratch: Path) -> tuple[list[dict[str, Any]], list[str]]:
    """What calls count without a plan and with each: rows, and a section of the page."""
    title = f"## Counts: {launch.KIND_TITLES[mpi]}, {ranks} rank{'s' if ranks > 1 else ''}"
    print(f"-- {title[3:]}", flush=True)
    calls = options.call or (*BY_HAND, *INDEPENDENT, *(COLLECTIVE if ranks > 1 else ()), *OTHERS)
    found: dict[str, dict[call_counts.Key, call_counts.Counts]] = {}
    try:
        for plan in (None, *options.plan):
            rule = "" if plan is None else PLANS[plan].rule
            counts = call_counts.count(mpi, ranks, rule, calls, options.bytes, scratch)
            found["without a plan" if plan is None else PLANS[plan].title] = counts
    except call_counts.NotCountedError as problem:
        return [], [title, "", f"Not counted: {problem}.", ""]
    rows = [
        {"mpi": mpi, "ranks": ranks, "plan": plan, "call": call, "bytes": bytes_, **asdict(counts)}
        for plan, by_key in found.items()
        for (call, bytes_), counts in by_key.items()
    ]
    lines = [title, "", *call_counts.table(found, SAYS), ""]
    return rows, lines


def profile(rows: list[dict[str, Any]], plan: str, call: str) -> list[str]:
    """Where the instructions of one call of the first size lie, library by library."""
    lines = []
    for row in rows:
        if (row["ranks"], row["plan"], row["call"], row["bytes"]) != (1, plan, call, rows[0]["bytes"]):
            continue
        library = launch.KIND_TITLES[row["mpi"]]
        lines += [f"{library}, one rank: {row['instructions']:,.0f} instructions of `{call}` under {plan}, of them", ""]
        lines += [f"- {number:,.0f} in {name}" for name, number in row["functions"]]
        lines.append("")
    return ["## What is left", "", *lines] if lines else []


def keep(name: str, lines: list[str], figures: dict[str, Any], options: argparse.Namespace) -> None:
    """A page and its figures."""
    run.keep(name, "\n".join(lines).rstrip("\n") + "\n", figures, options)


def main() -> int:
    """Every plan, library and number of ranks."""
    options = parse()
    about = run.machine()
    begin = time.monotonic()
    rows: list[dict[str, Any]] = []
    counted: list[dict[str, Any]] = []
    sections: list[str] = []
    pages: list[str] = []
    kinds = [mpi for mpi in options.mpi if launch.available("call_cost", mpi)]
    scratch = Path(tempfile.mkdtemp(prefix="ioweir-bench-", dir=run.TMPFS))
    try:
        for plan in options.plan if options.counts != "only" else ():
            for mpi in kinds:
                for ranks in options.ranks:
                    title = f"{PLANS[plan].title}, {launch.KIND_TITLES[mpi]}, {ranks} rank{'s' if ranks > 1 else ''}"
                    print(f"-- {title}", flush=True)
                    new = measure(mpi, ranks, plan, options, scratch)
                    rows += new
                    sections += [f"## {title}", "", *table(new, options.bytes), ""]
        for mpi in kinds if options.counts != "no" else ():
            for ranks in options.ranks:
                new, lines = count(mpi, ranks, options, scratch)
                pages += lines
                counted += new
        pages += profile(counted, PLANS["auto"].title, "write_at")
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    if sections:
        heading = run.heading(about, begin, f"{options.pairs} pairs of {options.calls:,} calls; ")
        keep("calls", [INTRODUCTION, heading, "", *sections], {"machine": about, "rows": rows}, options)
    if pages:
        if options.record:
            options.record = options.record.with_name("call-counts.md")
        sizes = ", ".join(map(size, options.bytes))
        heading = run.heading(about, begin, f"calls of {sizes}; ")
        keep("call-counts", [COUNTS, heading, "", *pages], {"machine": about, "counts": counted}, options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
