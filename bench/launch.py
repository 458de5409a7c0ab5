"""Starting the benchmark programs under each MPI library, with and without ioweir.

Not here: what is compared (tracer_cost.py, lattice.py), statistics (pairs.py).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RELEASE = ROOT / "build" / "release"
PROGRAMS = RELEASE / "bench"
KERNEL_RUNNER = "kernel_runner"
IOWEIR = ROOT / ".venv" / "bin" / "ioweir"
KINDS = ("mpich", "openmpi")
KIND_TITLES = {"mpich": "MPICH", "openmpi": "Open MPI"}
TIMEOUT_S = 600

# Open MPI refuses to run as root and to start more ranks than processors unless told to.
LAUNCH_ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
}


class BenchmarkError(Exception):
    """A benchmark program failed; the message holds the command and what it printed."""


@dataclass(frozen=True)
class Traced:
    """Run under `ioweir run` with the trace in `directory`, with a plan if there is one, and with these layers."""

    directory: Path
    plan: Path | None = None
    layers: str = "complete"


def path_of(program: str, kind: str) -> Path:
    """Where a program for an MPI library was built."""
    return (RELEASE / "kernels" if program == KERNEL_RUNNER else PROGRAMS) / f"{program}_{kind}"


def available(program: str, kind: str) -> bool:
    """Whether the program was built for this MPI library and its launcher is there."""
    return path_of(program, kind).is_file() and shutil.which(f"mpirun.{kind}") is not None


@dataclass(frozen=True)
class Run:
    """One run of a benchmark program; `traced` if ioweir watches it."""

    arguments: Sequence[str]
    traced: Traced | None = None
    environment: Mapping[str, str] = field(default_factory=dict)


def run_program(
    program: str,
    kind: str,
    ranks: int,
    arguments: Sequence[str],
    traced: Traced | None = None,
    environment: Mapping[str, str] | None = None,
) -> list[Any]:
    """Runs a benchmark program and returns the JSON objects that its rank 0 prints, one a line."""
    return run_together(program, kind, ranks, [Run(arguments, traced, environment or {})])[0]


def run_together(program: str, kind: str, ranks: int, runs: Sequence[Run]) -> list[list[Any]]:
    """The same for several runs that go on at the same time."""
    return run_commands([(_command(program, kind, ranks, run), run.environment) for run in runs])


def run_commands(commands: Sequence[tuple[Sequence[str], Mapping[str, str]]]) -> list[list[Any]]:
    """The same of whole commands, each with what it has in its environment beside this process's."""
    processes = [
        subprocess.Popen(
            command,
            env={**os.environ, **LAUNCH_ENVIRONMENT, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for command, environment in commands
    ]
    results = []
    try:
        for (command, _), process in zip(commands, processes, strict=True):
            out, err = process.communicate(timeout=TIMEOUT_S)
            lines = [line for line in out.splitlines() if line.startswith("{")]
            if process.returncode != 0 or not lines:
                raise BenchmarkError(f"{' '.join(command)} ended with {process.returncode}:\n{out}{err}")
            results.append([json.loads(line) for line in lines])
    finally:
        for process in processes:
            process.kill()  # of one that waits for another that failed; the others have ended
            process.wait()
    return results


def _command(program: str, kind: str, ranks: int, run: Run) -> list[str]:
    command = [f"mpirun.{kind}", "-n", str(ranks), str(path_of(program, kind)), *run.arguments]
    return command if run.traced is None else under_ioweir(run.traced, command)


def under_ioweir(traced: Traced, command: Sequence[str]) -> list[str]:
    """The command that runs another under `ioweir run`."""
    plan = ["--plan", str(traced.plan)] if traced.plan is not None else []
    layers = ["--layers", traced.layers]
    return [str(IOWEIR), "run", "-q", *plan, *layers, "-o", str(traced.directory), "--", *command]


def report(directory: Path) -> Any:
    """`ioweir report --json` of a trace."""
    done = subprocess.run([IOWEIR, "report", directory, "--json"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)
