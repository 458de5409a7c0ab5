#!/usr/bin/env python3
"""What a simulation costs, from 1,024 to 131,072 ranks: bench/bench_sim.py --help.

Lives here: the runs, the bars and the page. Not here: whether predictions fit measurements.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import launch
import sim_lab_page

RANKS = (1024, 4096, 16384, 65536, 131_072)
MACHINE = "jaguarpf"
TARGETS = 672
KERNEL = ("ior-segmented", "data=4 MiB", "transfer=4 MiB")
"""A checkpoint of 4 MiB a rank, one call."""
PLANS = {
    "everyone": '[[file]]\nmatch = "*"\nwriters = "everyone"\n',
    "subfiles": f'[[file]]\nmatch = "*"\nmapping = "subfiles:{TARGETS}"\nwriters = "aggregators:{TARGETS}"\n'
    'domains = "cyclic"\nstripe = { size = "4 MiB" }\n',
    "shared, contention-free": '[[file]]\nmatch = "*"\nwriters = "aggregators:160"\ndomains = "cyclic"\n'
    'order = "contention-free"\nstripe = { size = "4 MiB", count = 160 }\n',
}
MOST_CPU_S, MOST_MIB = 10.0, 1024.0
"""At 131,072 ranks: written and read."""
SMALL_CPU_S = 0.1
"""At 1,024, without starting Python and loading the package."""


@dataclass(frozen=True)
class Row:
    """One simulation, of writing and reading."""

    ranks: int
    plan: str
    cpu_s: float
    """Of the process."""
    simulation_s: float
    """CPU time of the simulation alone."""
    mib: float
    """Most memory."""
    events: int
    write_s: float
    """Simulated."""


def measure(ranks: int, name: str, folder: Path) -> Row:
    """One run in a process of its own."""
    plan = folder / "plan.toml"
    plan.write_text(PLANS[name], encoding="utf-8")
    words = [
        launch.IOWEIR,
        "simulate",
        "--machine",
        MACHINE,
        "--kernel",
        *KERNEL,
        "--ranks",
        str(ranks),
        "--plan",
        plan,
    ]
    with (folder / "out").open("w+b") as out:
        process = subprocess.Popen([*map(str, words), "--repeat", "1", "--json"], stdout=out)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        if process.returncode != 0:
            raise launch.BenchmarkError(f"{words}: exit code {process.returncode}")
        result = json.load(out)
    return Row(
        ranks, name, used.ru_utime + used.ru_stime, result["cpu_s"], used.ru_maxrss / 1024, result["events"],
        result["write"]["seconds"]["median"],
    )  # fmt: skip


def page(rows: list[Row]) -> str:
    """The page that is kept."""
    largest = [row for row in rows if row.ranks == RANKS[-1]]
    lines = [
        "# What a simulation costs",
        "",
        f"`make bench-sim RECORD=1`, {datetime.datetime.now(tz=datetime.timezone.utc):%Y-%m-%d}, load "
        f"{os.getloadavg()[0]:.0f} on {os.cpu_count()} processors. `ioweir simulate --machine {MACHINE}` "
        f"({TARGETS} targets), one checkpoint of 4 MiB a rank, written",
        "and read, one run, locks on. CPU time and memory are the process's, with Python; events a second, and how the",
        "cost grows, are the simulation's alone.",
        "",
        "| ranks | plan | CPU s | most MiB | events | million events a s "
        "| cost over ranks log2 ranks, 1,024 ranks = 1 | simulated writing, s |",
        "|---:|---|---:|---:|---:|---:|---:|---:|",
    ]
    first = {row.plan: row for row in rows if row.ranks == RANKS[0]}
    for row in rows:
        base = first[row.plan]
        grown = (row.simulation_s / base.simulation_s) / (
            row.ranks * math.log2(row.ranks) / (base.ranks * math.log2(base.ranks))
        )
        lines.append(
            f"| {row.ranks:,} | {row.plan} | {row.cpu_s:.2f} | {row.mib:.0f} | {row.events:,} | "
            f"{row.events / row.simulation_s / 1e6:.1f} | {grown:.2f} | {row.write_s:.3f} |"
        )
    met = all(row.cpu_s <= MOST_CPU_S and row.mib <= MOST_MIB for row in largest)
    small = max(row.simulation_s for row in rows if row.ranks == RANKS[0])
    lines += [
        "",
        f"Bar, {RANKS[-1]:,} ranks x {TARGETS} targets: under {MOST_CPU_S:.0f} s and {MOST_MIB:.0f} MiB on one "
        f"processor: {'met' if met else 'MISSED'} (most {max(row.cpu_s for row in largest):.1f} s, "
        f"{max(row.mib for row in largest):.0f} MiB).",
        f"Bar, {RANKS[0]:,} ranks: under {SMALL_CPU_S} s: {'met' if small < SMALL_CPU_S else 'MISSED'} "
        f"(most {small:.3f} s; starting Python and loading the package comes on top).",
    ]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Runs all, prints the page, and keeps it where that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", type=Path, help="write the page there")
    options = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory(prefix="ioweir-bench-") as folder:
            rows = [measure(ranks, name, Path(folder)) for name in PLANS for ranks in RANKS]
    except launch.BenchmarkError as error:
        print(f"bench_sim: {error}", file=sys.stderr)
        return 1
    text = page(rows)
    print(text)
    if options.record:
        options.record.write_text(text + sim_lab_page.kept(options.record), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
