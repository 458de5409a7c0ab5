"""Programs that are recorded and replayed in tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from forked import completed

IOWEIR: Final = (sys.executable, "-m", "ioweir")
ENVIRONMENT: Final = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
}
LAUNCHERS: Final = {"openmpi": "mpirun.openmpi", "mpich": "mpiexec.mpich"}
SOURCE: Final = Path(__file__).with_name("programs.c")


def ioweir(*words: object, code: int = 0) -> subprocess.CompletedProcess[str]:
    """The command line."""
    done = completed(
        [*IOWEIR, *map(str, words)],
        env={**os.environ, **ENVIRONMENT}, timeout=120,
    )  # fmt: skip
    assert done.returncode == code, f"{done.stdout}{done.stderr}"
    return done


def compiled(mpi: str, folder: Path, source: Path = SOURCE) -> Path:
    """The programs for an MPI library."""
    program = folder / f"{source.stem}-{mpi}"
    subprocess.run([f"mpicc.{mpi}", "-w", "-o", str(program), str(source)], check=True, timeout=120)
    return program


def recorded(mpi: str, ranks: int, words: list[object], trace: Path) -> None:
    """A run's trace."""
    ioweir("run", "-q", "-o", trace, "--", LAUNCHERS[mpi], "-n", ranks, *words)
