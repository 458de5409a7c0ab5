"""What a case of `make conformance` is, the MPI libraries, and how a program is compiled for one of them.

Not here: which programs there are (conformance_suites.py, conformance_netcdf4.py).
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

BUILD_S: Final = 900.0
DATA: Final = "@DATA@"
"""Stands in arguments for the run's own directory."""


TESTS: Final = Path(__file__).resolve().parent.parent
YIELDS: Final = TESTS.parent / "build" / "conformance" / "built" / "mpich_yields.so"


def build_yields() -> None:
    """What MPICH's ranks are preloaded with."""
    YIELDS.parent.mkdir(parents=True, exist_ok=True)
    source = TESTS / "mpi_cases" / "mpich_yields.c"
    new = YIELDS.with_suffix(f".{os.getpid()}")  # another run may be loading it
    command = ["cc", "-D_GNU_SOURCE", "-O1", "-shared", "-fPIC", "-o", str(new), str(source), "-ldl"]
    subprocess.run(command, check=True, timeout=BUILD_S)
    new.replace(YIELDS)


@dataclass(frozen=True)
class Library:
    """An MPI library with its compilers and its launcher."""

    name: str
    compilers: Mapping[str, str]
    launcher: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)


LIBRARIES: Final = (
    Library(
        "openmpi",
        {"c": "mpicc.openmpi", "fortran": "mpifort.openmpi"},
        ("mpirun.openmpi", "--allow-run-as-root", "--oversubscribe"),
    ),
    # Open MPI's copy of ROMIO, in place of its OMPIO.
    Library(
        "openmpi-romio",
        {"c": "mpicc.openmpi", "fortran": "mpifort.openmpi"},
        ("mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "--mca", "io", "romio321"),
    ),
    # MPICH's ranks spin while they wait, and take minutes where there are more of them than processors: these give way.
    Library("mpich", {"c": "mpicc.mpich", "fortran": "mpifort.mpich"}, ("mpiexec.mpich",), {"LD_PRELOAD": str(YIELDS)}),
)


@dataclass(frozen=True)
class Case:
    """One program under one MPI library."""

    suite: str
    name: str
    library: Library
    ranks: int
    command: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    limit_s: float = 60.0
    not_run: str = ""
    """Why it cannot be run; empty when it can."""


def compiled(
    library: Library, sources: Sequence[Path], target: Path, flags: Sequence[str], libraries: Sequence[str] = ()
) -> str:
    """Compile unless it was done before; what went wrong, or nothing."""
    if target.exists():
        return ""
    target.parent.mkdir(parents=True, exist_ok=True)
    fortran = any(path.suffix.lower() in (".f", ".f90") for path in sources)
    compiler = library.compilers["fortran" if fortran else "c"]
    legacy = ["-std=legacy", "-fallow-argument-mismatch"] if fortran else []
    command = [compiler, "-w", "-O1", *legacy, *flags, "-o", str(target), *map(str, sources), *libraries]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=BUILD_S, check=False, cwd=target.parent)
    if finished.returncode == 0:
        return ""
    wrong = [line for line in finished.stderr.splitlines() if "error" in line.lower() or "undefined" in line]
    return f"not built: {(wrong or finished.stderr.splitlines() or ['?'])[0].split(': ', 1)[-1]}"
