#!/usr/bin/env python3
"""What logs with `visibility = "call"` cost Meep and MED, of many small HDF5 writes: bench/bench_call_logs.py --help.

Lives here: the programs, the rounds, and the table that is printed. Not here: MED's program (med_field.c), statistics
(pairs.py), kernels in logs (bench_calls.py, bench_hdf5.py).
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import bench_engine
import bench_hdf5_keys
import hdf5_runs
import launch

RANKS = 2
MEEP = """\
(set! geometry-lattice (make lattice (size 16 8 no-size)))
(set! geometry (list (make block (center 0 0) (size infinity 1 infinity) (material (make dielectric (epsilon 12))))))
(set! sources (list (make source (src (make continuous-src (frequency 0.15))) (component Ez) (center -7 0))))
(set! pml-layers (list (make pml (thickness 1.0))))
(set! resolution 10)
(run-until 40 (at-every 1 output-efield-z))
"""
"""Forty files of a field, which HDF5 writes in pieces of 64 to 512 B."""
WITHOUT, CALL = "traced, no plan", 'logs, visibility = "call"'
PLAN = '[[file]]\nmatch = "*"\nwriters = "everyone"\nmapping = "log"\nvisibility = "call"\n'
Figures = dict[str, float]
"""Seconds of an average rank by HDF5's calls, and of all its I/O."""


@dataclass(frozen=True)
class Program:
    """One that Debian's packages bring, or that is compiled with them."""

    name: str
    needs: str
    """Debian packages."""
    words: tuple[str, ...]


def programs(folder: Path) -> list[Program]:
    """Those that are there; names on standard error what others need."""
    found = []
    if shutil.which("meep") is None:
        print("no Meep: apt-get install meep-mpi-default", file=sys.stderr)
    else:
        (folder / "field.ctl").write_text(MEEP, encoding="utf-8")
        found.append(Program("Meep, 40 files", "meep-mpi-default", ("meep", str(folder / "field.ctl"))))
    built = folder / "med_field"
    hdf5 = ["-I/usr/include/hdf5/openmpi", "-L/usr/lib/x86_64-linux-gnu/hdf5/openmpi"]
    source = launch.ROOT / "bench" / "med_field.c"
    command = ["mpicc.openmpi", "-O2", str(source), "-o", str(built), *hdf5, "-lmedC", "-lhdf5"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print(f"no MED: apt-get install libmed-dev libmedc-dev; {done.stderr[-300:]}", file=sys.stderr)
        return found
    for mode, what in (("full", "pieces of 8 B"), ("none", "pieces of 8 kB")):
        words = (str(built), "field.med", "100", "1000", mode)
        found.append(Program(f"MED, {what}", "libmed-dev libmedc-dev", words))
    return found


def run_once(program: Program, plan: str | None, scratch: Path) -> Figures:
    """Runs a program in a folder of its own, and returns what its trace says."""
    traced = launch.Traced(scratch / "trace", scratch / "plan.toml" if plan is not None else None)
    if traced.plan is not None and plan is not None:
        traced.plan.write_text(plan, encoding="utf-8")
    work = scratch / "work"
    work.mkdir()
    command = launch.under_ioweir(traced, ["mpirun.openmpi", "-n", str(RANKS), *program.words])
    environment = {**os.environ, **launch.LAUNCH_ENVIRONMENT, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=work, capture_output=True, text=True, env=environment, check=False,
                          timeout=launch.TIMEOUT_S)  # fmt: skip
    if done.returncode != 0:
        raise launch.BenchmarkError(f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}")
    report = launch.report(traced.directory)
    if plan is not None and not report["plan"]:
        raise launch.BenchmarkError(f"{program.name}: no plan was applied")
    return figures_of(report)


def figures_of(report: Any) -> Figures:
    """HDF5's calls by kind, and all I/O, of an average rank."""
    kinds = {part["op"]: part["mean_s"] for part in report["io"]["where"] if part["layer"] == "HDF5"}
    return {
        "write": kinds["write"],
        "open and close": kinds["open"] + kinds["close"],
        "all I/O": report["io"]["mean_s"],
    }


def measure(program: Program, folder: Path, rounds: int) -> dict[str, list[Figures]]:
    """Both ways in each round, in another order each time."""
    found: dict[str, list[Figures]] = {WITHOUT: [], CALL: []}
    for number in range(rounds):
        for way in hdf5_runs.in_any_order(list(found), number):
            scratch = Path(tempfile.mkdtemp(prefix="ioweir-bench-", dir=folder))
            try:
                found[way].append(run_once(program, PLAN if way == CALL else None, scratch))
            finally:
                shutil.rmtree(scratch, ignore_errors=True)
    return found


def main() -> int:
    """Measures each program on each storage."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=bench_hdf5_keys.at_least_one, default=7)
    parser.add_argument("--storage", nargs="+", default=["tmpfs"], choices=["tmpfs", "disk"])
    options = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory(prefix="ioweir-bench-") as kept:
            found = programs(Path(kept))
            for storage, folder in bench_engine.storages(options.storage):
                for program in found:
                    print(f"-- {storage}, {program.name}, {RANKS} ranks, {options.rounds} rounds", flush=True)
                    runs = measure(program, folder, options.rounds)
                    print(f"   {CALL}: {bench_hdf5_keys.row(runs[CALL], runs[WITHOUT])}", flush=True)
    except (launch.BenchmarkError, subprocess.TimeoutExpired) as error:
        print(f"bench_call_logs: {error}", file=sys.stderr)
        return 1
    return 0 if found else 1


if __name__ == "__main__":
    sys.exit(main())
