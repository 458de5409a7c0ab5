"""The names of layers and operations. Generated from spec/layers.toml: tools/generate.py --docs docs/reference."""

from __future__ import annotations

from typing import Final

MPI_IO: Final = "MPI-IO"
POSIX: Final = "POSIX"
STDIO: Final = "STDIO"
HDF5: Final = "HDF5"
PNETCDF: Final = "PnetCDF"
NETCDF: Final = "netCDF"
MPI_WAIT: Final = "MPI"

LAYERS: Final = (MPI_IO, POSIX, STDIO, HDF5, PNETCDF, NETCDF, MPI_WAIT)
"""Every layer that a function may belong to."""
IO_LAYERS: Final = (MPI_IO, POSIX, STDIO, HDF5, PNETCDF, NETCDF)
"""Those of I/O: calls of the others are waiting for other ranks."""
WAITING: Final = MPI_WAIT
"""The layer of waiting in MPI outside of I/O."""
LAYER_WORDS: Final = {
    "mpiio": MPI_IO,
    "posix": POSIX,
    "stdio": STDIO,
    "hdf5": HDF5,
    "pnetcdf": PNETCDF,
    "netcdf": NETCDF,
    "mpi": MPI_WAIT,
}
"""The words of --layers."""
OPS: Final = (
    "write",
    "read",
    "lock",
    "unlock",
    "open",
    "close",
    "view",
    "sync",
    "split",
    "seek",
    "meta",
    "wait",
)
"""Every operation that a function may count as."""
DATA_OPS: Final = ("write", "read")
"""Those that move bytes."""
