#!/usr/bin/env python3
"""Whether `ioweir simulate` foretells kernels on one node whose processors bound it: bench/bench_sim_node.py --help.

For each storage and MPI library a machine is calibrated with some kernels (`ioweir calibrate --kernels`). Then, for
other kernels, the predictions of all strategies and of the library's own way are written to a file; only after that
the same is measured.

Lives here: storages, kernels and the order. Not here: runs (python/ioweir/loop/kernel_runs.py), how the outcome is
judged and shown (sim_node_page.py), calibration (python/ioweir/predict).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import launch
import run
import sim_lab_page
import sim_node_page
from ioweir.errors import IoweirError
from ioweir.loop import kernel_runs
from ioweir.predict import calibrate, machine, simulate
from ioweir.predict.cases import KernelCase

OUT = launch.ROOT / "build" / "bench" / "sim_node"
STORAGES = ("tmpfs", "disk")
RANKS = 4
REPEATS, QUICK_REPEATS = 15, 5
DRAWS = 40
HELD_OUT: tuple[tuple[str, ...], ...] = (
    ("coll_perf", "local=64,64,64", "variables=4"),
    ("lattice", "local=8,8,16,16", "calls=2"),
    ("btio", "class=W", "writes=12"),
    ("s3d", "local=24,24,24", "species=8"),
    ("flash", "output=checkpoint", "local=8,8,8", "blocks=20"),
    ("vorpal", "local=24,24,24", "steps=3"),
    ("chombo", "boxes=6", "components=4"),
    ("phasta", "data=12MB", "parts=3"),
)
QUICK_HELD_OUT = HELD_OUT[:3]


@dataclass
class Row:
    """A case: what was foretold, and what came."""

    storage: str
    mpi: str
    kernel: str
    settings: tuple[str, ...]
    strategy: str
    direction: str
    median: float
    low: float
    high: float
    measured: list[float] = field(default_factory=list)
    """The typical time of the runs."""
    runs: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Storage:
    """Where files are."""

    name: str
    folder: Path


def calibrated(storage: Storage, mpi: str, repeats: int, *, again: bool) -> dict[str, Any]:
    """A machine file from runs of the kernels that calibrate has; `again`: the one of an earlier benchmark."""
    name = f"{storage.name}-{mpi}"
    kept = OUT / f"calibration-{name}.json"
    if again and kept.exists():
        found: dict[str, Any] = json.loads(kept.read_text(encoding="utf-8"))
        return found
    rows = kernel_runs.rows(storage.folder, mpi, RANKS, repeats)
    (OUT / f"runs-{name}.json").write_text(json.dumps(rows, indent=1), encoding="utf-8")
    options = calibrate.Options(
        OUT / f"machine-{name}.toml", name=f"{storage.name}, {mpi}", repeats=max(2, repeats), force=True,
        kernels=storage.folder, kernel_rows=rows,
    )  # fmt: skip
    result = calibrate.calibrate(options)
    kept.write_text(json.dumps(result, default=str), encoding="utf-8")
    return result


def foretell(found: machine.Machine, storage: Storage, mpi: str, kernels: Sequence[Sequence[str]]) -> list[Row]:
    """All cases of a storage and library."""
    drawn = [found.drawn(shares) for shares, _ in simulate.draws(found, DRAWS, 1)]
    rows = []
    for name, *settings in kernels:
        for way in kernel_runs.ways(RANKS):
            for direction in ("write", "read"):
                case = KernelCase(
                    "", 1.0, name, tuple(settings), RANKS, way.rule("*"), 0, direction == "write",
                    by_library=way.keys is None,
                )  # fmt: skip
                times = sorted(case.simulated_s(figures) for figures in drawn)
                rows.append(
                    Row(storage.name, mpi, name, tuple(settings), way.name, direction, statistics.median(times),
                        times[0], times[-1])
                )  # fmt: skip
    return rows


def measure(rows: list[Row], storage: Storage, repeats: int, until: float) -> None:
    """What was foretold of a storage, until the time is up; kept after each step."""
    for mpi, kernel, settings in dict.fromkeys((row.mpi, row.kernel, row.settings) for row in rows):
        if time.monotonic() > until:
            return
        seconds = kernel_runs.measured(storage.folder, mpi, kernel, settings, RANKS, repeats)
        for row in rows:
            if (row.mpi, row.kernel, row.settings) == (mpi, kernel, settings):
                row.runs = seconds[row.strategy][row.direction]
                row.measured = [kernel_runs.typical(row.runs)]
        keep(rows, f"results-{storage.name}.json")


def repeats_of(options: argparse.Namespace) -> int:
    """Runs of each way."""
    return options.repeats or (QUICK_REPEATS if options.quick else REPEATS)


def keep(rows: Sequence[Row], name: str) -> str:
    """As JSON."""
    text = json.dumps([vars(row) for row in rows], indent=1)
    (OUT / name).write_text(text, encoding="utf-8")
    return text


def of_storage(
    storage: Storage, mpis: Sequence[str], options: argparse.Namespace, until: float
) -> tuple[list[Row], dict[str, Any], str]:
    """Calibrated, foretold and measured: cases, calibrations, and when the predictions were written."""
    repeats = repeats_of(options)
    rows: list[Row] = []
    fitted = {}
    for mpi in mpis:
        fitted[f"{storage.name}, {mpi}"] = result = calibrated(storage, mpi, repeats, again=options.calibrated)
        print("\n".join(calibrate.to_text(result)), flush=True)
        found = machine.read(result["output"])
        rows += foretell(found, storage, mpi, QUICK_HELD_OUT if options.quick else HELD_OUT)
    text = keep(rows, f"predictions-{storage.name}.json")
    at = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime())
    written = f"{storage.name} {at} UTC, SHA-256 {hashlib.sha256(text.encode()).hexdigest()}"
    print(f"-- {len(rows)} predictions written: {written}", flush=True)
    measure(rows, storage, repeats, until)
    return rows, fitted, written


def main() -> int:
    """All storages, and a page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few kernels and repetitions: to see that it works")
    parser.add_argument("--repeats", type=int, help=f"runs of each way ({REPEATS}; {QUICK_REPEATS} with --quick)")
    parser.add_argument("--minutes", type=float, default=40.0, help="stop measuring after so long (40)")
    parser.add_argument("--storage", action="append", choices=STORAGES, help="only this; may be repeated")
    parser.add_argument("--mpi", action="append", choices=launch.KINDS, help="only this library; may be repeated")
    parser.add_argument("--calibrated", action="store_true", help="take the calibrations of an earlier run")
    parser.add_argument("--record", type=Path, help="put the outcome into this page")
    options = parser.parse_args()
    OUT.mkdir(parents=True, exist_ok=True)
    mpis = options.mpi or [kind for kind in launch.KINDS if shutil.which(f"mpirun.{kind}")]
    began, load = time.monotonic(), os.getloadavg()[0]
    rows: list[Row] = []
    fitted: dict[str, Any] = {}
    written = []
    try:
        for name in options.storage or STORAGES:
            parent = run.TMPFS if name == STORAGES[0] else OUT
            with tempfile.TemporaryDirectory(prefix="ioweir-bench-", dir=parent) as folder:
                cases, calibrations, at = of_storage(
                    Storage(name, Path(folder)), mpis, options, began + 60 * options.minutes
                )
            rows += cases
            fitted |= calibrations
            written.append(at)
    except (launch.BenchmarkError, IoweirError) as error:
        print(f"bench_sim_node: {error}", file=sys.stderr)
        return 1
    facts = sim_node_page.Facts(
        "; ".join(written), fitted, load, os.getloadavg()[0], time.monotonic() - began,
        repeats_of(options), RANKS, len(os.sched_getaffinity(0)),
    )  # fmt: skip
    page = sim_node_page.text(rows, facts)
    print(page)
    if options.record:
        sim_lab_page.put(options.record, page, "node")
    return 0


if __name__ == "__main__":
    sys.exit(main())
