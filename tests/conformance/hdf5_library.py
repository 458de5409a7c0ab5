"""A parallel HDF5 of another Debian release, built of its source package for each MPI library.

    hdf5_library.py [SUITE]     builds, and prints the directory that IOWEIR_TEST_HDF5 of tests/trace is to name

SUITE is a Debian release (default: trixie, which has HDF5 1.14). Below the printed directory there is a prefix for each
MPI library.
Not here: fetching sources (conformance_fetch.py), the tests (tests/trace/test_hdf5_plan.py).
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from conformance_fetch import FetchError, debian_source

KINDS: Final = ("openmpi", "mpich")
BUILD_S: Final = 3600.0
OPTIONS: Final = (
    "-DCMAKE_BUILD_TYPE=Release", "-DBUILD_SHARED_LIBS=ON", "-DBUILD_STATIC_LIBS=OFF", "-DBUILD_TESTING=OFF",
    "-DHDF5_ENABLE_PARALLEL=ON", "-DHDF5_BUILD_TOOLS=OFF", "-DHDF5_BUILD_EXAMPLES=OFF", "-DHDF5_BUILD_HL_LIB=OFF",
    "-DHDF5_BUILD_CPP_LIB=OFF", "-DHDF5_ENABLE_SZIP_SUPPORT=OFF", "-DHDF5_ENABLE_Z_LIB_SUPPORT=ON",
)  # fmt: skip


def build(cache: Path, suite: str) -> Path:
    """The directory with a prefix for each MPI library; made once."""
    place = cache / "built" / f"hdf5-{suite}"
    source = debian_source("hdf5", cache, suite)
    for kind in KINDS:
        prefix = place / kind
        if (prefix / "lib" / "libhdf5.so").exists():
            continue
        folder = place / f"build-{kind}"
        wrapper = f"-DCMAKE_C_COMPILER=mpicc.{kind}"
        own = (
            f"-DCMAKE_INSTALL_PREFIX={prefix}",
            "-DCMAKE_INSTALL_LIBDIR=lib",
            wrapper,
            f"-DMPI_C_COMPILER=mpicc.{kind}",
        )
        _run("cmake", "-G", "Ninja", "-S", source, "-B", folder, *own, *OPTIONS)
        _run("cmake", "--build", folder, "--parallel", str(os.cpu_count() or 1))
        _run("cmake", "--install", folder)
    return place


def _run(*words: str | Path) -> None:
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=BUILD_S, check=False)
    if done.returncode != 0:
        raise FetchError(
            f"{' '.join(str(word) for word in words)} returned {done.returncode}:\n{done.stdout[-4000:]}{done.stderr}"
        )


if __name__ == "__main__":
    cache = Path(__file__).resolve().parent.parent.parent / "build" / "conformance"
    print(build(cache, sys.argv[1] if len(sys.argv) > 1 else "trixie"))
