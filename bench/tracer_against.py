"""What the tracer of one installation costs against another's: bench/tracer_against.py OLD NEW [PAIRS].

OLD and NEW: the `ioweir` command of each. Both trace the program of tracer_cost.cpp at the same time, taking turns
batch by batch, under Open MPI; printed is new minus old, ns of process CPU a call. Needs `make build-bench`.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

import launch
import pairs
import run
import tracer_cost

KIND = "openmpi"


def main(old: str, new: str, count: int) -> None:
    """Runs `count` pairs, and prints the median of each pattern with its interval."""
    found: dict[tuple[str, str], list[float]] = {}
    with tempfile.TemporaryDirectory(prefix="ioweir-against-", dir=run.TMPFS) as folder:
        sizes = [str(tracer_cost.POSIX_CALLS), str(tracer_cost.MPI_CALLS)]
        arguments = [folder, ",".join(tracer_cost.PATTERNS), *sizes]
        program = [f"mpirun.{KIND}", "-n", str(tracer_cost.RANKS), str(launch.path_of("tracer_cost", KIND)), *arguments]
        for index in range(count):
            name = f"ioweir-against-{os.getpid()}-{index}"
            turns = ("first", "second") if index % 2 == 0 else ("second", "first")
            commands: list[tuple[list[str], dict[str, str]]] = []
            for ioweir, turn in zip((old, new), turns, strict=True):
                trace = Path(folder) / turn
                shutil.rmtree(trace, ignore_errors=True)
                commands.append(([ioweir, "run", "-q", "-o", str(trace), "--", *program, name, turn], {}))
            for before, after in zip(*launch.run_commands(commands), strict=True):
                added = tracer_cost.difference(before["cpu_ns"], after["cpu_ns"])
                found.setdefault((before["call"], before["pattern"]), []).append(added)
    for (call, pattern), values in found.items():
        middle = pairs.median_interval(values)
        print(f"{tracer_cost.TITLES[call]}, {pattern}: {middle.median:.0f} [{middle.low:.0f}, {middle.high:.0f}] ns")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 10)
