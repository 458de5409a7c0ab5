#!/usr/bin/env python3
"""What each key of an `hdf5` table costs a program in Python that writes steps: bench/bench_hdf5_keys.py --help.

Lives here: the ways, the rounds, and the table that is printed. Not here: the program (hdf5_steps.py), statistics
(pairs.py), programs in C and the paper's steps (bench_hdf5.py).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import bench_engine
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
WITHOUT, AUTO, ALL = "traced, no plan", "auto", "auto, all five keys"


def ways() -> dict[str, str | None]:
    """By name, the plan's text."""
    auto = '[[file]]\nmatch = "*.h5"\nwriters = "auto"\n'
    with_keys = {f"auto, {key}": f"{auto}[file.hdf5]\n{key} = {value}\n" for key, value in KEYS.items()}
    every = "".join(f"{key} = {value}\n" for key, value in KEYS.items())
    return {WITHOUT: None, AUTO: auto, **with_keys, ALL: f"{auto}[file.hdf5]\n{every}"}


def run_once(scratch: Path, plan: str | None, options: argparse.Namespace, mode: str) -> dict[str, float]:
    """Seconds by phase."""
    command = [launch.IOWEIR, "run", "-q", "--layers", "mpiio", "-o", scratch / "trace"]
    if plan is not None:
        (scratch / "plan.toml").write_text(plan, encoding="utf-8")
        command += ["--plan", scratch / "plan.toml"]
    command += ["--", "mpirun.openmpi", "-n", options.ranks, PYTHON, launch.ROOT / "bench" / "hdf5_steps.py"]
    command += [scratch / "steps.h5", options.steps, options.datasets, options.mib, mode]
    done = subprocess.run(
        [str(word) for word in command], env={**os.environ, **launch.LAUNCH_ENVIRONMENT, "OMP_NUM_THREADS": "1"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        raise launch.BenchmarkError(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stderr}")
    shutil.rmtree(scratch / "trace")
    (scratch / "steps.h5").unlink()
    seconds = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))["seconds"]
    return {"all": sum(seconds.values()), **seconds}


def parse() -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--datasets", type=int, default=6, help="of a step")
    parser.add_argument("--mib", type=float, default=2, help="of a dataset and rank")
    parser.add_argument("--storage", nargs="+", default=["tmpfs", "disk"], choices=["tmpfs", "disk"])
    parser.add_argument("--mode", nargs="+", default=["independent", "collective"])
    parser.add_argument("--only", nargs="+", metavar="WAY", help="these ways, beside no plan")
    return parser.parse_args()


def main() -> int:
    """Every way in turn in each round, another one first each time; ratios to no plan within the round."""
    options = parse()
    chosen = {name: plan for name, plan in ways().items() if not options.only or name in [WITHOUT, *options.only]}
    for storage, folder in bench_engine.storages(options.storage):
        for mode in options.mode:
            found: dict[str, list[dict[str, float]]] = {name: [] for name in chosen}
            for number in range(options.rounds):
                order = list(chosen)
                for name in order[number % len(order) :] + order[: number % len(order)]:
                    scratch = Path(tempfile.mkdtemp(prefix="ioweir-bench-", dir=folder))
                    try:
                        found[name].append(run_once(scratch, chosen[name], options, mode))
                    finally:
                        shutil.rmtree(scratch, ignore_errors=True)
            what = f"{options.steps} steps of {options.datasets} datasets of {options.mib:g} MiB a rank"
            print(
                f"-- {storage}, {mode}, {options.ranks} ranks, {what}, {options.rounds} rounds: over no plan's seconds"
            )
            for name in chosen:
                texts = []
                for phase in found[name][0]:
                    ratios = [mine[phase] / base[phase] for mine, base in zip(found[name], found[WITHOUT], strict=True)]
                    middle = pairs.median([one[phase] for one in found[name]])
                    texts.append(f"{phase} {pairs.median_interval(ratios).text(2)} ({middle * 1000:.0f} ms)")
                print(f"   {name:28} {'; '.join(texts)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
