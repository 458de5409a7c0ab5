"""What a report of very many nodes costs: sums of generated nodes, merged and reported. No program ran."""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import launch
import numpy as np
import run
from ioweir.base.guarded_files import Folder
from ioweir.base.spec_names import LAYERS, OPS
from ioweir.trace import node_sums

NODES: Final = 4096
RANKS_A_NODE: Final = 64
CALLS: Final = (("MPI-IO", "open"), ("MPI-IO", "write"), ("MPI-IO", "close"), ("POSIX", "open"), ("POSIX", "write"))
START_NS: Final = 1_790_000_000_000_000_000

PAGE: Final = """\
# Results: reports of thousands of nodes

Sums of {nodes:,} generated nodes with {ranks:,} ranks each (no program ran): a checkpoint that all ranks share, a
file of each node, and an input that every rank reads: {rows:,} rows. Each node's sums are a file, as
`ioweir merge-sums --host` writes them. Repeat with

    make bench-merge-sums              # measures, writes build/bench/merge-sums.{{json,md}}
    make bench-merge-sums RECORD=1     # the same, and into this page

Bars: the report in 10 s and 1 GB.

| command | processor time, s | wall, s | most memory, MiB |
|---|---|---|---|
{lines}

{date}: {processors} processors ({processor}), load {load:.1f} before.
"""


def generate(place: Path) -> int:
    """A directory for each node; returns how many rows."""
    dice = np.random.default_rng(20260101)
    rows = 0
    for node in range(NODES):
        ranks = np.arange(node * RANKS_A_NODE, (node + 1) * RANKS_A_NODE)
        table = []
        for layer, op in CALLS:
            slot = LAYERS.index(layer) * len(OPS) + OPS.index(op)
            table += [(slot, 0, rank, int(layer == "MPI-IO")) for rank in ranks]
            table.append((slot, 1, ranks[0], int(layer == "MPI-IO")))
        table += [(LAYERS.index("POSIX") * len(OPS) + OPS.index("read"), 2, rank, 1) for rank in ranks]
        count = len(table)
        slot, file, rank, outermost = np.array(table, dtype=np.int64).T
        first = START_NS + dice.integers(0, 10**9, count)
        time_ns = dice.integers(10**6, 10**9, count)
        moves = np.isin(slot % len(OPS), [OPS.index("read"), OPS.index("write")])
        calls = dice.integers(1, 100, count)
        columns = {
            "slot": slot, "file": file, "rank": rank, "outermost": outermost, "calls": calls,
            "failed": np.zeros(count, dtype=np.int64), "bytes": calls * 4096 * moves, "time_ns": time_ns,
            "longest_ns": time_ns, "first_ns": first, "last_ns": first + time_ns, "size_bins": moves.astype(np.int64),
            "size_least": np.full(int(moves.sum()), 4096), "size_calls": calls[moves],
        }  # fmt: skip
        sums = node_sums.NodeSums(
            (f"n{node}",), NODES * RANKS_A_NODE, tuple(int(rank) for rank in ranks), ("MPI-IO", "POSIX"),
            ("/scratch/checkpoint", f"/scratch/node.{node}", "/scratch/input"), columns,
        )  # fmt: skip
        folder = place / f"n{node}"
        folder.mkdir(mode=0o700)
        with Folder.open(folder) as opened:
            node_sums.write(opened, f"n{node}{node_sums.SUFFIX}", sums)
        (folder / "run.json").write_text(json.dumps({"wall_s": 100.0, "state": "ended", "program": "generated"}))
        rows += count
    return rows


def cost(command: list[str | Path]) -> tuple[float, float, float]:
    """Processor and wall seconds, and MiB."""
    program = (
        "import resource, subprocess, sys, time\n"
        "begun = time.monotonic()\n"
        "subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)\n"
        "used = resource.getrusage(resource.RUSAGE_CHILDREN)\n"
        "print(used.ru_utime + used.ru_stime, time.monotonic() - begun, used.ru_maxrss / 1024)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, *command], capture_output=True, text=True, check=True)
    cpu, wall, memory = map(float, done.stdout.split())
    return cpu, wall, memory


def main() -> int:
    """Generates, merges, reports."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=launch.ROOT / "build" / "bench", help="directory of the results")
    parser.add_argument("--record", type=Path, metavar="PAGE", help="also write the results as a page")
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    about = run.machine()
    with tempfile.TemporaryDirectory(prefix="ioweir-bench-", dir=run.TMPFS) as scratch:
        place = Path(scratch)
        (place / "nodes").mkdir()
        rows = generate(place / "nodes")
        nodes = sorted((place / "nodes").iterdir())
        all_sums = place / "all"
        figures: dict[str, Any] = {
            "`ioweir merge-sums n* -o all`": cost([launch.IOWEIR, "merge-sums", *nodes, "-o", all_sums]),
            "`ioweir report all`": cost([launch.IOWEIR, "report", all_sums]),
            "`ioweir findings all`": cost([launch.IOWEIR, "findings", all_sums]),
            "`ioweir report all --html`": cost([launch.IOWEIR, "report", all_sums, "--html", place / "page.html"]),
        }
    lines = "\n".join(
        f"| {name} | {cpu:.1f} | {wall:.1f} | {memory:.0f} |" for name, (cpu, wall, memory) in figures.items()
    )
    text = PAGE.format(
        nodes=NODES, ranks=RANKS_A_NODE, rows=rows, lines=lines, date=time.strftime("%Y-%m-%d"),
        processors=about["processors"], processor=about["processor"], load=about["load_before"],
    )  # fmt: skip
    document = {"machine": about, "rows": rows, "figures": figures}
    run.keep("merge-sums", text, document, options)
    print(lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
