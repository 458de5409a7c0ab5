#!/usr/bin/env python3
"""Whether traces of few ranks foretell the same program on many: bench/bench_sim_ranks.py --help.

For each MPI library a machine is calibrated on one lab with 4 ranks, and kernels are traced with 4 and 8 ranks, without
a plan. What they would take with 16 and 32 ranks under plans is written to a file; only after that it is measured.

Lives here: the calibrations, the traces, the order, and the section of the page. Not here: labs and runs
(bench_sim_lab.py), errors (sim_lab_page.py).
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
from pathlib import Path

import bench_sim_lab
import launch
import sim_lab_page
from bench_sim_lab import CALIBRATED_ON, OUT, REPEATS, Row, strategies
from ioweir.errors import IoweirError
from ioweir.launch import kernel as kernel_command
from ioweir.predict import calibrate, machine, simulate, workload
from ioweir.targets import lab

TRACED, FORETOLD = (4, 8), (16, 32)
"""Ranks."""
KERNELS = (
    ("coll_perf", "local=64,64,64", "variables=2"),
    ("coll_perf", "local=32,32,32", "variables=16"),
    ("ior-segmented", "data=2MiB", "transfer=512KiB"),
    ("ior-strided", "data=2MiB", "transfer=512KiB", "piece=16KiB"),
)
"""2 MiB a rank. Patterns that can be scaled: boxes of arrays, segments and strides."""
FITTED_KERNELS = (
    bench_sim_lab.FITTED_KERNEL,
    ("ior-strided", "data=1MiB", "transfer=64KiB", "piece=16KiB"),
    ("ior-strided", "data=200000", "transfer=50000", "piece=200"),
    ("coll_perf", "local=24,24,24", "variables=8"),
)
"""Of the calibration: few large calls, and 16 small ones, which show what a call costs ranks that share processors;
small pieces; a view set before each call."""


def machine_file(mpi: str) -> Path:
    """Of a library."""
    return OUT / f"machine-{mpi}.toml"


def calibrated(made: lab.Lab, scratch: Path, mpi: str) -> None:
    """Targets measured, and runs with 4 ranks, which share this machine's processors."""
    runs = OUT / f"runs-{mpi}.jsonl"
    directories = [made.target(number) for number in range(CALIBRATED_ON)]
    with runs.open("w", encoding="utf-8") as out:
        for kernel in FITTED_KERNELS:
            seconds = bench_sim_lab.run(made, scratch, mpi, kernel, REPEATS)
            for one in strategies(directories):
                placed = one.targets if one.targets is not None else tuple(range(CALIBRATED_ON))
                for took in seconds[one.name]:
                    row = {
                        "kernel": kernel[0], "settings": kernel[1:], "ranks": bench_sim_lab.RANKS,
                        "plan": bench_sim_lab.rule(one, "*"), "targets": placed, "write_s": took,
                        "processors": len(os.sched_getaffinity(0)),
                    }  # fmt: skip
                    out.write(json.dumps(row) + "\n")
    options = calibrate.Options(machine_file(mpi), made.root, None, runs, f"the lab, {mpi}", 2, force=True)
    print("\n".join(calibrate.to_text(calibrate.calibrate(options))), flush=True)


def traced(kernel: tuple[str, ...], ranks: int, made: lab.Lab, scratch: Path) -> Path:
    """Without a plan, by either MPI library: what is asked for does not depend on it."""
    trace = scratch / f"trace-{KERNELS.index(kernel)}-{ranks}"
    mpi = next(kind for kind in launch.KINDS if shutil.which(f"mpirun.{kind}"))
    command = [
        f"mpirun.{mpi}", "-n", str(ranks), str(kernel_command.runner(mpi)), *kernel, "--directory",
        str(made.target(0)), "--mode", "mpiio:traced.data", "--sync", "1", "--warm-up", "0", "--repeats", "1",
    ]  # fmt: skip
    launch.run_commands([(launch.under_ioweir(launch.Traced(trace), command), {})])
    return trace


def foretell(
    kernel: tuple[str, ...], traces: Sequence[Path], found: machine.Machine, made: lab.Lab, mpi: str
) -> list[Row]:
    """Seconds to fsync without opening, for each strategy and number of ranks of a library."""
    rows = []
    directories = [made.target(number) for number in range(len(made.rates))]
    shares = bench_sim_lab.shares_of(found)
    for ranks in FORETOLD:
        asked = workload.of_traces(traces, None, ranks, 0.0)
        for one in strategies(directories):
            plan = simulate.PlanRule(bench_sim_lab.rule(one, "*"), "a plan", 0, "a plan")
            times = []
            for number, share in enumerate(shares):
                phase = asked.once(found.drawn(share), [1.0] * len(directories), plan, number + 1)["write"]
                times.append(phase["seconds"] - phase["open_s"])
            times.sort()
            rows.append(
                Row(len(directories), False, mpi, kernel[0], kernel[1:], one.name,
                    statistics.median(times), times[0], times[-1], ranks=ranks)
            )  # fmt: skip
    return rows


def measure(rows: list[Row], made: lab.Lab, scratch: Path) -> None:
    """What was foretold; kept after each run."""
    for ranks, mpi, kernel, settings in dict.fromkeys((row.ranks, row.mpi, row.kernel, row.settings) for row in rows):
        seconds = bench_sim_lab.run(made, scratch, mpi, (kernel, *settings), REPEATS, ranks)
        for row in rows:
            if (row.ranks, row.mpi, row.kernel, row.settings) == (ranks, mpi, kernel, settings):
                row.measured = seconds[row.strategy]
        print(f"-- {ranks} ranks, {mpi}, {kernel}: {seconds}", flush=True)
        (OUT / "ranks-results.json").write_text(json.dumps([vars(row) for row in rows], indent=1), encoding="utf-8")


def text(rows: Sequence[Row], written: str, loads: tuple[float, float], took_s: float) -> str:
    """The section."""
    whole = sim_lab_page.outcome(rows)
    bars = (
        ("median error", sim_lab_page.MEDIAN_BAR, whole.median),
        ("90th percentile", sim_lab_page.P90_BAR, whole.p90),
    )
    lines = [
        "## Foretold from few ranks, and measured on many",
        "",
        f"`make bench-sim-ranks RECORD=1` (root). {CALIBRATED_ON} loop devices of 12 MB/s each. For each MPI library a",
        "machine is calibrated with 4 ranks. Kernels are traced without a plan, on 4 and 8 ranks. Both traces foretell",
        "what 16 and 32 ranks take to write to `fsync` under each strategy. Predictions were written down before",
        f"anything of them was measured: {written}. Median of {REPEATS} runs.",
        f"Load {loads[0]:.0f} before, {loads[1]:.0f} after, {os.cpu_count()} processors; {took_s:.0f} s in all.",
        "",
        "| bar | found | |",
        "|---|---:|---|",
        *(
            f"| {name} at most {bar:.0%} | {value:.1%} | {sim_lab_page.verdict(value <= bar)} |"
            for name, bar, value in bars
        ),
        f"| interval holds the measured value in at least {sim_lab_page.COVERAGE_BAR:.0%} | {whole.covered:.0%} "
        f"| {sim_lab_page.verdict(whole.covered >= sim_lab_page.COVERAGE_BAR)} |",
        "",
        "| part | cases | median error | 90th percentile | in the interval |",
        "|---|---:|---:|---:|---:|",
    ]
    for name in ("ranks", "mpi", "kernel", "strategy"):
        for value in dict.fromkeys(getattr(row, name) for row in rows):
            one = sim_lab_page.outcome([row for row in rows if getattr(row, name) == value])
            title = f"{value} ranks" if name == "ranks" else value
            lines.append(f"| {title} | {one.cases} | {one.median:.1%} | {one.p90:.1%} | {one.covered:.0%} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Calibrates, traces, foretells, measures, and judges."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mpi", action="append", choices=launch.KINDS, help="only this library; may be repeated")
    parser.add_argument("--calibrated", action="store_true", help="take the machines of an earlier run")
    parser.add_argument("--record", type=Path, help="put the outcome into this page")
    options = parser.parse_args()
    mpis = options.mpi or [kind for kind in launch.KINDS if shutil.which(f"mpirun.{kind}")]
    OUT.mkdir(parents=True, exist_ok=True)
    began, load = time.monotonic(), os.getloadavg()[0]
    rows: list[Row] = []
    try:
        with tempfile.TemporaryDirectory(prefix="ioweir-bench-") as folder:
            scratch = Path(folder)
            made = bench_sim_lab.up(CALIBRATED_ON, slow=False)
            try:
                for mpi in mpis:
                    if not (options.calibrated and machine_file(mpi).exists()):
                        calibrated(made, scratch, mpi)
                for kernel in KERNELS:
                    traces = [traced(kernel, ranks, made, scratch) for ranks in TRACED]
                    for mpi in mpis:
                        rows += foretell(kernel, traces, machine.read(str(machine_file(mpi))), made, mpi)
                predictions = json.dumps([vars(row) for row in rows], indent=1)
                (OUT / "ranks-predictions.json").write_text(predictions, encoding="utf-8")
                digest = hashlib.sha256(predictions.encode()).hexdigest()
                written = f"{time.strftime('%Y-%m-%d %H:%M:%S', time.gmtime())} UTC, SHA-256 {digest}"
                print(f"-- {len(rows)} predictions written {written}", flush=True)
                measure(rows, made, scratch)
            finally:
                lab.down(made.name, made.root, True)
    except (launch.BenchmarkError, IoweirError) as error:
        print(f"bench_sim_ranks: {error}", file=sys.stderr)
        return 1
    page = text(rows, written, (load, os.getloadavg()[0]), time.monotonic() - began)
    print(page)
    if options.record:
        sim_lab_page.put(options.record, page, "ranks")
    return 0


if __name__ == "__main__":
    sys.exit(main())
