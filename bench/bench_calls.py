#!/usr/bin/env python3
"""What one small call costs under a plan: `make bench-calls`, or --help.

Lives here: the plans, calls and sizes, and the page. Not here: the loops (call_cost.cpp), how two runs take turns
(turns.hpp), statistics (pairs.py).
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import launch
import pairs
import run
from ioweir.base.units import size

BATCHES = 24  # of call_cost.cpp
INDEPENDENT = (
    "write_at", "read_at", "write_at of doubles", "write by pointer", "read by pointer", "write", "read",
    "write_at of 8 pieces", "read_at of 8 pieces",
)  # fmt: skip
COLLECTIVE = ("write_at_all", "read_at_all", "write_all", "read_all")
OTHERS = ("iwrite_at", "iread_at", "write_at_all_begin")
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


def system_calls(mpi: str, plan: str, call: str, scratch: Path) -> str | None:
    """What a call makes in steady state, by strace, in one rank: `1 pwrite64`. Nothing where strace cannot be used."""
    if shutil.which("strace") is None:
        return None
    counts = []
    plan_file = scratch / "plan.toml"
    plan_file.write_text(f'[[file]]\nmatch = "*.data"\n{PLANS[plan].rule}\n')
    many = 10 * BATCHES
    for calls in (many, 3 * many):
        folder = Path(tempfile.mkdtemp(dir=scratch))
        log = folder / "strace"
        program = [str(launch.path_of("call_cost", mpi)), str(folder / "a.data"), "512", call, str(calls)]
        command = [f"mpirun.{mpi}", "-n", "1", "strace", "-f", "-o", str(log), *program]
        done = subprocess.run(
            launch.under_ioweir(launch.Traced(folder / "trace", plan_file), command),
            env={**os.environ, **launch.LAUNCH_ENVIRONMENT},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            return None
        names = re.findall(r"^\d+ +(?:\[pid +\d+\] )?(\w+)\(", log.read_text(errors="replace"), re.MULTILINE)
        counts.append(Counter(names))
        shutil.rmtree(folder, ignore_errors=True)
    more = {name: (counts[1][name] - counts[0][name]) / (2 * many) for name in counts[1]}
    # What comes with time and not with calls is less than one in twenty.
    each = {name: number for name, number in sorted(more.items()) if number >= 0.05}
    return ", ".join(f"{number:.2g} {name}" for name, number in each.items()) or "none"


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


def main() -> int:
    """Every plan, library and number of ranks."""
    options = parse()
    about = run.machine()
    begin = time.monotonic()
    rows: list[dict[str, Any]] = []
    made: dict[str, str | None] = {}
    sections: list[str] = []
    scratch = Path(tempfile.mkdtemp(prefix="ioweir-bench-", dir=run.TMPFS))
    try:
        for plan in options.plan:
            for mpi in options.mpi:
                if not launch.available("call_cost", mpi):
                    continue
                for ranks in options.ranks:
                    title = f"{PLANS[plan].title}, {launch.KIND_TITLES[mpi]}, {ranks} rank{'s' if ranks > 1 else ''}"
                    print(f"-- {title}", flush=True)
                    new = measure(mpi, ranks, plan, options, scratch)
                    rows += new
                    sections += [f"## {title}", "", *table(new, options.bytes), ""]
                for call in () if options.call else INDEPENDENT:
                    made[f"{plan}, {mpi}, {call}"] = system_calls(mpi, plan, call, scratch)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    sections += ["## System calls", "", "Of one call of 512 B in steady state, in one rank, counted by strace.", ""]
    sections += ["| call | " + " | ".join(PLANS[plan].title for plan in options.plan) + " |"]
    sections += ["|---" * (1 + len(options.plan)) + "|"]
    for mpi in options.mpi:
        for call in INDEPENDENT:
            cells = [made.get(f"{plan}, {mpi}, {call}") or "not counted" for plan in options.plan]
            sections.append(f"| {launch.KIND_TITLES[mpi]}: {SAYS.get(call, call)} | " + " | ".join(cells) + " |")
    heading = run.heading(about, begin, f"{options.pairs} pairs of {options.calls:,} calls; ")
    text = "\n".join([INTRODUCTION, heading, "", *sections]).rstrip("\n") + "\n"
    run.keep("calls", text, {"machine": about, "rows": rows, "system_calls": made}, options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
