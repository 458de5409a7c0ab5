#!/usr/bin/env python3
"""What each key of an `hdf5` table costs a program in Python that writes steps: bench/bench_hdf5_keys.py --help.

Lives here: the ways, the rounds, and the table that is printed. Not here: the program (hdf5_steps.py), statistics
(pairs.py), programs in C and the paper's steps (bench_hdf5.py).
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import bench_engine
import hdf5_runs
import launch
import pairs

PYTHON = "/usr/bin/python3"
"""With Debian's h5py for Open MPI (python3-h5py-mpi)."""
KEYS = {
    "alignment": '"auto"',
    "hold_metadata": '"64 MiB"',
    "metadata_block": '"1 MiB"',
    "collective_metadata": '"writes"',
    "chunks": '"learn"',
}
"""The example of docs/reference/plan-file.md."""
MODES = ("independent", "collective")
Runs = list[dict[str, float]]
"""Seconds by phase, of each round."""
WITHOUT, AUTO, ALL = "traced, no plan", "auto", "auto, all five keys"


def ways() -> dict[str, str | None]:
    """By name, the plan's text."""
    auto = '[[file]]\nmatch = "*.h5"\nwriters = "auto"\n'
    with_keys = {f"auto, {key}": f"{auto}[file.hdf5]\n{key} = {value}\n" for key, value in KEYS.items()}
    every = "".join(f"{key} = {value}\n" for key, value in KEYS.items())
    return {WITHOUT: None, AUTO: auto, **with_keys, ALL: f"{auto}[file.hdf5]\n{every}"}


def run_once(scratch: Path, plan: str | None, options: argparse.Namespace, mode: str) -> dict[str, float]:
    """Seconds by phase."""
    traced = launch.Traced(scratch / "trace", scratch / "plan.toml" if plan is not None else None, "mpiio")
    if traced.plan is not None and plan is not None:
        traced.plan.write_text(plan, encoding="utf-8")
    command = ["mpirun.openmpi", "-n", str(options.ranks), PYTHON, str(launch.ROOT / "bench" / "hdf5_steps.py")]
    command += [str(scratch / "steps.h5"), str(options.steps), str(options.datasets), str(options.mib), mode]
    environment = {"OMP_NUM_THREADS": "1"}
    line = launch.run_commands([(launch.under_ioweir(traced, command), environment)])[0][0]
    return {"all": sum(line["seconds"].values()), **line["seconds"]}


def measure(chosen: dict[str, str | None], folder: Path, options: argparse.Namespace, mode: str) -> dict[str, Runs]:
    """Every way once in each round, in another order each time."""
    found: dict[str, Runs] = {name: [] for name in chosen}
    for number in range(options.rounds):
        for name in hdf5_runs.in_any_order(list(chosen), number):
            scratch = Path(tempfile.mkdtemp(prefix="ioweir-bench-", dir=folder))
            try:
                found[name].append(run_once(scratch, chosen[name], options, mode))
            finally:
                shutil.rmtree(scratch, ignore_errors=True)
    return found


def row(mine: Runs, without: Runs) -> str:
    """Of each phase the ratio to no plan, taken within the round, and the median of its milliseconds."""
    texts = []
    for phase in without[0]:
        ratio = pairs.median_interval([one[phase] / base[phase] for one, base in zip(mine, without, strict=True)])
        middle = pairs.median([one[phase] for one in mine]) * 1000
        texts.append(f"{phase} {ratio.text(2)} ({middle:.0f} ms)")
    return "; ".join(texts)


def parse() -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=at_least_one, default=9)
    parser.add_argument("--ranks", type=at_least_one, default=2)
    parser.add_argument("--steps", type=at_least_one, default=10)
    parser.add_argument("--datasets", type=at_least_one, default=6, help="of a step")
    parser.add_argument("--mib", type=at_least_one, default=2, help="of a dataset and rank")
    parser.add_argument("--storage", nargs="+", default=["tmpfs", "disk"], choices=["tmpfs", "disk"])
    parser.add_argument("--mode", nargs="+", default=MODES, choices=MODES)
    parser.add_argument("--only", nargs="+", choices=[name for name in ways() if name != WITHOUT], metavar="WAY",
                        help="beside no plan: %(choices)s")  # fmt: skip
    return parser.parse_args()


def at_least_one(text: str) -> int:
    """A number of something, for argparse."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: give a whole number, 1 or more")
    return int(text)


def main() -> int:
    """Measures each way on each storage, in each mode."""
    options = parse()
    chosen = {name: plan for name, plan in ways().items() if not options.only or name in [WITHOUT, *options.only]}
    what = f"{options.ranks} ranks, {options.steps} steps of {options.datasets} datasets of {options.mib} MiB a rank"
    try:
        for storage, folder in bench_engine.storages(options.storage):
            for mode in options.mode:
                print(f"-- {storage}, {mode}, {what}, {options.rounds} rounds: over no plan's seconds", flush=True)
                found = measure(chosen, folder, options, mode)
                for name, mine in found.items():
                    print(f"   {name:28} {row(mine, found[WITHOUT])}", flush=True)
    except (launch.BenchmarkError, subprocess.TimeoutExpired) as error:
        print(f"bench_hdf5_keys: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
