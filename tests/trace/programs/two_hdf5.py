"""h5py and netCDF4 at once, each with an HDF5 library of its own. Arguments: DIRECTORY and the order of the imports."""

import ctypes
import importlib
import sys
from pathlib import Path

import numpy

for name in sys.argv[2].split(","):
    importlib.import_module(name)
import h5py  # noqa: E402
import netCDF4  # noqa: E402

directory = Path(sys.argv[1])
loaded = {line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "libhdf5-" in line}
assert len(loaded) == 2, loaded
with h5py.File(directory / "own.h5", "w") as file:
    file["x"] = numpy.arange(100.0)  # 800 bytes
    grid = file.create_dataset("group/grid", (50, 50), chunks=(10, 10), dtype="i4", compression="gzip")
    with netCDF4.Dataset(str(directory / "other.nc"), "w") as other:
        other.createDimension("x", 10)
        other.createVariable("v", "f8", ("x",))[:] = numpy.ones(10)  # 80
        grid[:] = 7  # 10000
with h5py.File(directory / "own.h5") as file, netCDF4.Dataset(str(directory / "other.nc")) as other:
    print(file["x"][50:60].sum(), file["group/grid"][5:15].sum(), other["v"][:].sum())  # 80, 2000, 80
# Through ctypes, calls of the first library that is asked are recorded, and those of the second work all the same.
for path in sorted(loaded):
    library = ctypes.CDLL(path)
    library.H5Fopen.restype = ctypes.c_int64
    library.H5Fopen.argtypes = [ctypes.c_char_p, ctypes.c_uint, ctypes.c_int64]
    library.H5Fclose.argtypes = [ctypes.c_int64]
    opened = library.H5Fopen(str(directory / "own.h5").encode(), 0, 0)
    print(opened > 0, library.H5Fclose(opened))
