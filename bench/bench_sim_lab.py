#!/usr/bin/env python3
"""Whether `ioweir simulate` foretells kernels on throttled targets: bench/bench_sim_lab.py --help.

A machine is calibrated on one lab, with one kernel. Then, for other kernels, numbers of targets and a slow target, the
predictions are written to a file; only after that the same is measured.

Lives here: the labs, the runs and the order. Not here: how the outcome is judged and shown (sim_lab_page.py), labs
(python/ioweir/targets/lab.py), calibration (python/ioweir/predict).
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
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import launch
import sim_lab_page
from ioweir.base.compiled import compiled
from ioweir.errors import IoweirError
from ioweir.launch import kernel as kernel_command
from ioweir.predict import calibrate, machine
from ioweir.predict.cases import KernelCase, Placed
from ioweir.targets import lab, probe

OUT = launch.ROOT / "build" / "bench" / "sim_lab"
RATE = 12_000_000
"""Of a target: eight of them are below 100 MB/s."""
SLOW = 0.4
"""Of a slow target's rate."""
RANKS = 4
LABS = ((1, False), (2, False), (2, True), (4, False), (4, True), (8, False))
QUICK_LABS = ((2, False), (2, True))
CALIBRATED_ON = 4
REPEATS, QUICK_REPEATS = 3, 1
DRAWS = 40
FITTED_KERNEL = ("ior-strided", "data=16MiB", "transfer=4MiB", "piece=64KiB")
MIB = 1 << 20


def held_out_kernels(targets: int) -> tuple[tuple[str, ...], ...]:
    """About 12 to 16 MiB a target, that a run lasts as long with any number of them."""
    return (
        ("coll_perf", "local=64,64,64", f"variables={3 * targets}"),
        ("lattice", "local=8,8,16,16", f"calls={targets}"),
        ("btio", "class=A", f"writes={max(1, round(1.3 * targets))}"),
    )


@dataclass(frozen=True)
class Strategy:
    """A rule, and on which targets its files lie; None: as probing chooses them."""

    name: str
    rule: str
    targets: tuple[int, ...] | None


@dataclass
class Row:
    """A case: what was foretold, and what came."""

    targets: int
    slow: bool
    mpi: str
    kernel: str
    settings: tuple[str, ...]
    strategy: str
    median: float
    low: float
    high: float
    measured: list[float] = field(default_factory=list)
    ranks: int = RANKS


def strategies(directories: list[Path]) -> list[Strategy]:
    """Rules for files on these targets. What uses one target only would last too long for many."""
    count = len(directories)
    everywhere = "targets = [" + ", ".join(f'"{directory}"' for directory in directories) + "]\n"
    subfiles = f'mapping = "subfiles:{count}"\n{everywhere}stripe = {{ size = "1 MiB" }}\n'
    each = f'writers = "aggregators:{min(RANKS, count)}"\ndomains = "cyclic"\n'
    every = tuple(range(count))
    found = [
        Strategy("everyone", f'{subfiles}writers = "everyone"\n', every),
        Strategy("aggregators", f'{subfiles}writers = "aggregators:2"\ndomains = "even"\n', every),
        Strategy("contention-free", f'{subfiles}{each}order = "contention-free"\n', every),
        Strategy("log", f'mapping = "log"\n{everywhere}', every),
        Strategy("subfiles-auto", f'mapping = "subfiles:auto"\n{everywhere}', None),
    ]
    if count <= 2:
        found.append(Strategy("grouped", 'mapping = "grouped:2"\nwriters = "everyone"\n', (0,)))
    return found


def rule(strategy: Strategy, match: str) -> str:
    """Of a plan."""
    return f'[[file]]\nmatch = "{match}"\n{strategy.rule}'


def run(
    made: lab.Lab, scratch: Path, mpi: str, kernel: tuple[str, ...], repeats: int, ranks: int = RANKS
) -> dict[str, list[float]]:
    """Seconds of each strategy, written to fsync; the strategies take turns."""
    directories = [made.target(number) for number in range(len(made.rates))]
    chosen = strategies(directories)
    plan, trace = scratch / "plan.toml", scratch / "trace"
    plan.write_text("\n".join(rule(one, f"{one.name}.data") for one in chosen), encoding="utf-8")
    shutil.rmtree(trace, ignore_errors=True)
    modes = ",".join(f"mpiio:{one.name}.data" for one in chosen)
    runner = kernel_command.runner(mpi)
    command = [
        f"mpirun.{mpi}", "-n", str(ranks), str(runner), *kernel, "--directory", str(directories[0]), "--mode", modes,
        "--sync", "1", "--warm-up", "1", "--repeats", str(repeats), "--salt", "3",
    ]  # fmt: skip
    traced = launch.Traced(trace, plan, "mpiio")
    lines = launch.run_commands([(launch.under_ioweir(traced, command), {})])[0]
    shutil.rmtree(trace, ignore_errors=True)
    if wrong := [line for line in lines if not line["read_correct"]]:
        raise launch.BenchmarkError(f"what was read is not what was written: {wrong}")
    seconds: dict[str, list[float]] = {one.name: [] for one in chosen}
    for line in lines:
        seconds[line["file"].removesuffix(".data")].append(line["mib"] / line["write_mib_per_s"])
    return seconds


def up(targets: int, slow: bool) -> lab.Lab:
    """A lab; its last target may be slow."""
    made, _ = lab.up(lab.Wanted(f"simlab{targets}", "loop", targets, f"{RATE} B", "768 MiB", memory=True))
    if slow:
        lab.slow(made.name, made.root, targets - 1, f"{int(RATE * SLOW)} B")
    return made


def calibrated(scratch: Path, mpis: list[str], repeats: int) -> dict[str, Any]:
    """A machine file from one lab: its targets measured, and one kernel's runs."""
    made = up(CALIBRATED_ON, slow=False)
    try:
        runs = OUT / "runs.jsonl"
        with runs.open("w", encoding="utf-8") as out:
            for mpi in mpis:
                seconds = run(made, scratch, mpi, FITTED_KERNEL, repeats)
                for one in strategies([made.target(number) for number in range(CALIBRATED_ON)]):
                    placed = one.targets if one.targets is not None else tuple(range(CALIBRATED_ON))
                    for took in seconds[one.name]:
                        row = {
                            "kernel": FITTED_KERNEL[0], "settings": FITTED_KERNEL[1:], "ranks": RANKS,
                            "plan": rule(one, "*"), "targets": placed, "write_s": took,
                        }  # fmt: skip
                        out.write(json.dumps(row) + "\n")
        options = calibrate.Options(OUT / "machine.toml", made.root, None, runs, "the lab", 2, force=True)
        return calibrate.calibrate(options)
    finally:
        lab.down(made.name, made.root, True)


def foretell(found: machine.Machine, made: lab.Lab, slow: bool, mpis: list[str]) -> list[Row]:
    """All cases of a lab. Which targets are slow is probed, as for a new file."""
    rates = [row["bytes_per_second"] for row in probe.probe(made.root, probe.Options(), None)["targets"]]
    middle = statistics.median_high(rates)
    slowdown = tuple(middle / rate if middle / rate > sim_lab_page.SAME else 1.0 for rate in rates)
    good = tuple(sorted(compiled().select_targets(rates, compiled().default_threshold)["chosen"]))
    directories = [made.target(number) for number in range(len(made.rates))]
    rows = []
    for kernel in held_out_kernels(len(rates)):
        for one in strategies(directories):
            placed = Placed(good if one.targets is None else one.targets, slowdown)
            case = KernelCase("", 1.0, kernel[0], kernel[1:], RANKS, rule(one, "*"), 0, True, placed)
            times = sorted(case.simulated_s(found.drawn(shares)) for shares in shares_of(found))
            rows += [
                Row(len(rates), slow, mpi, kernel[0], kernel[1:], one.name, statistics.median(times), times[0],
                    times[-1])
                for mpi in mpis
            ]  # fmt: skip
    return rows


def shares_of(found: machine.Machine) -> list[dict[str, float]]:
    """Places within what the machine file leaves open, as `ioweir simulate --repeat` draws them."""
    from ioweir.predict import simulate  # noqa: PLC0415

    return [shares for shares, _ in simulate.draws(found, DRAWS, 1)]


def measure(rows: list[Row], scratch: Path, repeats: int, until: float) -> None:
    """What was foretold, lab by lab, until the time is up; kept after each step."""
    for targets, slow in dict.fromkeys((row.targets, row.slow) for row in rows):
        made = up(targets, slow)
        try:
            mine = [row for row in rows if (row.targets, row.slow) == (targets, slow)]
            for mpi, kernel, settings in dict.fromkeys((row.mpi, row.kernel, row.settings) for row in mine):
                if time.monotonic() > until:
                    return
                seconds = run(made, scratch, mpi, (kernel, *settings), repeats)
                for row in mine:
                    if (row.mpi, row.kernel) == (mpi, kernel):
                        row.measured = seconds[row.strategy]
                print(f"-- {targets} targets, slow: {slow}, {mpi}, {kernel}: {seconds}", flush=True)
                text = json.dumps([vars(row) for row in rows], indent=1)
                (OUT / "results.json").write_text(text, encoding="utf-8")
        finally:
            lab.down(made.name, made.root, True)


def main() -> int:
    """Calibrates, foretells, measures, and judges."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one number of targets: to see that it works")
    parser.add_argument("--minutes", type=float, default=60.0, help="stop measuring after so long (60)")
    parser.add_argument("--record", type=Path, help="put the outcome into this page")
    options = parser.parse_args()
    OUT.mkdir(parents=True, exist_ok=True)
    repeats = QUICK_REPEATS if options.quick else REPEATS
    mpis = [kind for kind in launch.KINDS if shutil.which(f"mpirun.{kind}")]
    began, load = time.monotonic(), os.getloadavg()[0]
    try:
        with tempfile.TemporaryDirectory(prefix="ioweir-bench-") as folder:
            fitted = calibrated(Path(folder), mpis, repeats)
            print("\n".join(calibrate.to_text(fitted)), flush=True)
            found = machine.read(str(OUT / "machine.toml"))
            rows = []
            for targets, slow in QUICK_LABS if options.quick else LABS:
                made = up(targets, slow)
                try:
                    rows += foretell(found, made, slow, mpis)
                finally:
                    lab.down(made.name, made.root, True)
            text = json.dumps([vars(row) for row in rows], indent=1)
            (OUT / "predictions.json").write_text(text, encoding="utf-8")
            written = (
                f"{time.strftime('%Y-%m-%d %H:%M:%S', time.gmtime())} UTC, SHA-256 "
                + hashlib.sha256(text.encode()).hexdigest()
            )
            print(f"-- {len(rows)} predictions written {written}", flush=True)
            measure(rows, Path(folder), repeats, began + 60 * options.minutes)
    except (launch.BenchmarkError, IoweirError) as error:
        print(f"bench_sim_lab: {error}", file=sys.stderr)
        return 1
    facts = sim_lab_page.Facts(written, fitted, load, os.getloadavg()[0], time.monotonic() - began, repeats)
    page = sim_lab_page.text(rows, facts)
    print(page)
    if options.record:
        sim_lab_page.put(options.record, page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
