"""Rounds of a kernel under several plans, in turn in one process, so that what disturbs one disturbs the others too.

Not here: what is compared (bench_contention.py, bench_pieces.py), comparison with MPI libraries (engine_cases.py).
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import engine_cases
import launch

Speeds = dict[str, dict[str, list[float]]]
"""Way -> direction -> MiB/s of each round."""


def run(
    scratch: Path,
    mpi: str,
    ranks: int,
    kernel: Sequence[str],
    rules: Mapping[str, str],
    rounds: int,
    environment: Mapping[str, str] | None = None,
    *,
    directory: Path | None = None,
    options: Sequence[str] = (),
) -> tuple[Speeds, set[str]]:
    """Speeds, and the ways in which ranks exchanged bytes (by the traces of all processes).

    `rules`: for each way the rule of a plan, for the file WAY.data. The closed files of the first round are compared
    byte by byte with what was written, and what is read in every round. `directory`: of the files, if not `scratch`.
    `options`: more of the kernel runner's.
    """
    plan, trace = scratch / "plan.toml", scratch / "trace"
    speeds: Speeds = {way: {direction: [] for direction in engine_cases.DIRECTIONS} for way in rules}
    plan.write_text("\n".join(rules.values()), encoding="utf-8")
    exchanged = set(rules)
    done = 0
    while done < rounds:
        some = 1 if done == 0 else rounds - done
        arguments = [
            *kernel, "--directory", str(directory or scratch), "--mode", engine_cases.modes_of(rules), "--warm-up", "1",
            "--verify", str(int(done == 0)), "--repeats", str(some), "--salt", str(done), *options,
        ]  # fmt: skip
        shutil.rmtree(trace, ignore_errors=True)
        traced = launch.Traced(trace, plan, "mpiio")
        lines = launch.run_program(launch.KERNEL_RUNNER, mpi, ranks, arguments, traced, environment)
        for line in sorted(lines, key=lambda line: int(line["repetition"])):
            for direction, values in speeds[line["file"].removesuffix(".data")].items():
                values.append(line[f"{direction}_mib_per_s"])
        moved = launch.report(trace)["plan"]["engine"]
        exchanged &= {Path(row["path"]).stem for row in moved if row["exchanges"]}
        done += some
    shutil.rmtree(trace, ignore_errors=True)
    return speeds, exchanged
