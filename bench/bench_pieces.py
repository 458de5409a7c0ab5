#!/usr/bin/env python3
"""From which size of pieces on is it better not to collect them? `make bench-pieces`, or --help.

Lives here: the sizes, and the page. Not here: the choice itself (src/planner/strategies/automatic.cpp), one run
(planned_rounds.py), statistics (pairs.py).
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import bench_engine
import engine_cases
import launch
import pairs
import planned_rounds
import run
from ioweir.base.units import size

COLLECTED, ALONE = "collected", "alone"
PIECES = {
    "write": (2048, 4096, 8192, 16384, 32768, 65536),
    "read": (512, 1024, 2048, 4096, 8192, 16384, 32768),
}
"""Bytes of a piece; each direction has its own list, around where `writers = "auto"` changes its mind."""
DATA = "4 MiB"
"""Of a rank and call, three calls a round."""

INTRODUCTION = """\
# Results: sizes of pieces

`writers = "auto"` lets ranks write many small pieces through aggregators and everything else directly. Where is the
border? Strided pieces of a size dealt round among the ranks, through aggregators (cyclic domains, half as many as
ranks and two at least, buffers of 1 MiB: what `auto` takes) over each rank alone: ratios of speeds within rounds, with
95 per cent intervals (order statistics). Above 1 it is better to collect. Where ranks share processors they wait for
one in an exchange, so that `auto` has other borders there (src/planner/strategies/automatic.cpp). Repeat with

    make bench-pieces              # builds, measures, writes build/bench/pieces.{json,md}
    make bench-pieces RECORD=1     # the same, and into this page
"""


def rules(ranks: int) -> dict[str, str]:
    """The two ways."""
    aggregators = engine_cases.aggregators_of(ranks)
    return {
        COLLECTED: f'[[file]]\nmatch = "{COLLECTED}.data"\nwriters = "aggregators:{aggregators}"\n'
        'domains = "cyclic"\nbuffer = "1 MiB"\n',
        ALONE: f'[[file]]\nmatch = "{ALONE}.data"\nwriters = "everyone"\n',
    }


def parse() -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15, help="of each size")
    parser.add_argument("--output", type=Path, default=launch.ROOT / "build" / "bench", help="directory of the results")
    parser.add_argument("--record", type=Path, metavar="PAGE", help="also write the page there")
    return parser.parse_args()


def main() -> int:
    """Measures every size on memory and disk, under both libraries, at 2 and 4 ranks."""
    options = parse()
    about = run.machine()
    begin = time.monotonic()
    rows: list[dict[str, Any]] = []
    for storage, folder in bench_engine.storages(["tmpfs", "disk"]):
        for mpi in launch.KINDS:
            if not launch.available(launch.KERNEL_RUNNER, mpi):
                continue
            for ranks in (2, 4):
                row: dict[str, Any] = {"storage": storage, "mpi": mpi, "ranks": ranks, "ratios": {}}
                for piece in sorted({one for sizes in PIECES.values() for one in sizes}):
                    print(
                        f"-- {storage}, {launch.KIND_TITLES[mpi]}, {ranks} ranks, pieces of {size(piece)}", flush=True
                    )
                    scratch = Path(tempfile.mkdtemp(prefix="ioweir-bench-", dir=folder))
                    kernel = ("ior-strided", "data=12MiB", f"transfer={DATA}", f"piece={piece} B")
                    try:
                        speeds, exchanged = planned_rounds.run(
                            scratch, mpi, ranks, kernel, rules(ranks), options.rounds
                        )
                    finally:
                        shutil.rmtree(scratch, ignore_errors=True)
                    if exchanged != {COLLECTED}:
                        print(f"exchanged bytes: {sorted(exchanged)}, not {COLLECTED} alone", file=sys.stderr)
                        return 1
                    for direction, sizes in PIECES.items():
                        if piece in sizes:
                            both = zip(speeds[COLLECTED][direction], speeds[ALONE][direction], strict=True)
                            interval = pairs.median_interval([a / b for a, b in both])
                            row["ratios"].setdefault(direction, {})[piece] = interval
                rows.append(row)
    heading = run.heading(about, begin, f"{options.rounds} rounds; ")
    lines = [INTRODUCTION, heading, ""]
    for direction, sizes in PIECES.items():
        lines += [f"## {'Writing' if direction == 'write' else 'Reading'}", ""]
        lines.append("| storage, library, ranks | " + " | ".join(size(piece) for piece in sizes) + " |")
        lines.append("|---" * (1 + len(sizes)) + "|")
        for row in rows:
            name = f"{row['storage']}, {launch.KIND_TITLES[row['mpi']]}, {row['ranks']}"
            lines.append(f"| {name} | " + " | ".join(row["ratios"][direction][piece].text(2) for piece in sizes) + " |")
        lines.append("")
    text = "\n".join(lines).rstrip("\n") + "\n"
    run.keep("pieces", text, {"machine": about, "rows": rows}, options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
