"""Parallel netCDF: Debian's for Open MPI, and for MPICH one that is built of Debian's source package.

The latter against Debian's HDF5 for MPICH, by netCDF's own CMake files, without what reads no local netCDF-4 files.
Not here: fetching sources (conformance_fetch.py), who uses the library.
"""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from conformance_fetch import FetchError, debian_source

if TYPE_CHECKING:
    from collections.abc import Sequence

BUILD_S: Final = 1200.0
LEFT_OUT: Final = (
    "ENABLE_DAP", "ENABLE_BYTERANGE", "ENABLE_PLUGINS", "ENABLE_NCZARR", "ENABLE_NCZARR_FILTERS", "ENABLE_LIBXML2",
    "ENABLE_EXAMPLES", "ENABLE_TESTS", "ENABLE_FILTER_TESTING", "BUILD_UTILITIES",
)  # fmt: skip


@dataclass(frozen=True)
class Place:
    """The folders of netCDF's headers and of libnetcdf.so."""

    headers: Path
    libraries: Path


def debian() -> Place:
    """Of the package libnetcdf-mpi-dev."""
    found = next(Path("/usr/lib").glob("*/netcdf/mpi"), None)
    if found is None:
        raise FetchError("no parallel netCDF in /usr/lib/*/netcdf/mpi; install libnetcdf-mpi-dev")
    return Place(found / "include", found)


def build(cache: Path) -> Place:
    """For MPICH; made once."""
    folder = cache / "built" / "mpich" / "libnetcdf"
    place = Place(folder / "include", folder / "liblib")
    done = folder / "made"
    if done.exists():
        return place
    top = debian_source("netcdf", cache)
    hdf5 = next(Path("/usr/lib").glob("*/hdf5/mpich"), None)
    if hdf5 is None:
        raise FetchError("no parallel HDF5 in /usr/lib/*/hdf5/mpich; install libhdf5-mpich-dev")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    known = {
        "CMAKE_BUILD_TYPE": "Release",
        "CMAKE_C_COMPILER": "mpicc.mpich",
        "HDF5_C_LIBRARY": str(hdf5 / "libhdf5.so"),
        "HDF5_HL_LIBRARY": str(hdf5 / "libhdf5_hl.so"),
        "HDF5_INCLUDE_DIR": "/usr/include/hdf5/mpich",
        "ENABLE_PARALLEL4": "ON",
        **dict.fromkeys(LEFT_OUT, "OFF"),
    }
    _run(["cmake", "-G", "Ninja", "-S", str(top), "-B", str(folder), *(f"-D{key}={known[key]}" for key in known)])
    _run(["cmake", "--build", str(folder), "--target", "netcdf"])
    done.touch()
    return place


def _run(command: Sequence[str]) -> None:
    finished = subprocess.run(command, capture_output=True, text=True, timeout=BUILD_S, check=False)
    if finished.returncode != 0:
        said = f"{finished.stdout}\n{finished.stderr}"[-4000:]
        raise FetchError(f"{' '.join(command)} returned {finished.returncode}:\n{said}")
