"""A 4-D lattice to one file and back: through the MPI library alone, through ioweir's direct path, and written by hand.

Each pair runs the program bare and under ioweir with a plan, in turns. Both runs also do the hand-written version and a
file per process, so that a ratio to those comes from one run. Every read is checked by the program, and a run in which
the plan was not applied is an error here: it would measure the MPI library twice.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import launch
import pairs

PLAN = Path(__file__).resolve().parent / "lattice-plan.toml"
# MPICH's ranks spin while they wait: with more of them than processors the comparison would measure that.
CONFIGURATIONS = (("mpich", 2), ("openmpi", 2), ("openmpi", 4))
MODES = ("mpiio", "posix", "fpp")
DIRECTIONS = ("write", "read")
REPEATS = 3
SPEED = "{}_mib_per_s"


def one_run(kind: str, ranks: int, scratch: Path, traced: launch.Traced | None) -> dict[str, dict[str, float]]:
    """MiB/s by mode and direction: the medians of one run's repetitions."""
    arguments = ["lattice", "--directory", str(scratch), "--mode", ",".join(MODES), "--repeats", str(REPEATS)]
    lines = launch.run_program(launch.KERNEL_RUNNER, kind, ranks, arguments, traced)
    return {
        mode: {
            direction: pairs.median([line[SPEED.format(direction)] for line in lines if line["mode"] == mode])
            for direction in DIRECTIONS
        }
        for mode in MODES
    }


def require_plan_applied(trace: Path) -> None:
    """Refuses a run whose file the engine left to the MPI library."""
    plan = launch.report(trace)["plan"]
    if not plan["applied"] or plan["passed_through"]:
        raise launch.BenchmarkError(f"the plan {PLAN} was not applied: {plan}")


def measure(kind: str, ranks: int, count: int, scratch: Path) -> dict[str, Any]:
    """`count` interleaved pairs of one MPI library at one number of ranks."""
    bare: list[dict[str, dict[str, float]]] = []
    engine: list[dict[str, dict[str, float]]] = []
    trace = scratch / "trace"
    one_run(kind, ranks, scratch, None)  # warms up: memory touched and freed, libraries read
    for index in range(count):
        for with_ioweir in (False, True) if index % 2 == 0 else (True, False):
            if with_ioweir:
                shutil.rmtree(trace, ignore_errors=True)
                engine.append(one_run(kind, ranks, scratch, launch.Traced(trace, PLAN)))
                require_plan_applied(trace)
            else:
                bare.append(one_run(kind, ranks, scratch, None))
    shutil.rmtree(trace, ignore_errors=True)
    result: dict[str, Any] = {"mpi": kind, "ranks": ranks, "pairs": count}
    for direction in DIRECTIONS:
        result[direction] = {
            "mib_per_s": {
                "mpi_library": pairs.median([run["mpiio"][direction] for run in bare]),
                "ioweir": pairs.median([run["mpiio"][direction] for run in engine]),
                "hand_written": pairs.median([run["posix"][direction] for run in bare]),
                "file_per_process": pairs.median([run["fpp"][direction] for run in bare]),
            },
            "ioweir_over_mpi_library": pairs.median_interval(
                [new["mpiio"][direction] / old["mpiio"][direction] for old, new in zip(bare, engine, strict=True)]
            ),
            "ioweir_over_hand_written": pairs.median_interval(
                [run["mpiio"][direction] / run["posix"][direction] for run in engine]
            ),
            "ioweir_over_file_per_process": pairs.median_interval(
                [run["mpiio"][direction] / run["fpp"][direction] for run in engine]
            ),
        }
    return result


def table(results: list[dict[str, Any]]) -> list[str]:
    """The results as a Markdown table."""
    lines = [
        "MiB/s and ratios; 16 MiB a rank and call in pieces of 4 KiB; above 1 is faster with ioweir.",
        "",
        "| MPI, ranks | | MPI library | ioweir | hand-written | file per process | ioweir / MPI library "
        "| ioweir / hand-written | ioweir / file per process |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for result in results:
        for direction in DIRECTIONS:
            figures = result[direction]
            speeds = " | ".join(f"{speed:.0f}" for speed in figures["mib_per_s"].values())
            ratios = " | ".join(
                figures[f"ioweir_over_{other}"].text(2) for other in ("mpi_library", "hand_written", "file_per_process")
            )
            lines.append(
                f"| {launch.KIND_TITLES[result['mpi']]}, {result['ranks']} | {direction} | {speeds} | {ratios} |"
            )
    return lines
