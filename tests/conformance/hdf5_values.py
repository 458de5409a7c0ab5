"""A checksum of all values in an HDF5 file: `hdf5_values.py FILE [BYTES [LEAST]]`, at most so many read at a time.

Nothing is printed where they are fewer than LEAST bytes, however many the file has.

Not those of netCDF's dimensions without a variable of their name: netCDF makes a dataset for each, neither written nor
filled, in which there are whatever bytes the MPI library puts into holes.
"""

from __future__ import annotations

import hashlib
import sys

import h5py
from conformance_objects import pieces

NO_VARIABLE = "This is a netCDF dimension but not a netCDF variable"

digest = hashlib.sha256()
most_bytes = int(sys.argv[2]) if len(sys.argv) > 2 else 16 << 20
least_bytes = int(sys.argv[3]) if len(sys.argv) > 3 else 0
sizes: list[int] = []


def count(_: str, item: object) -> None:
    """One object's bytes."""
    if isinstance(item, h5py.Dataset) and item.shape is not None:
        sizes.append(item.size * item.dtype.itemsize)


def add(name: str, item: object) -> None:
    """One object's."""
    if not isinstance(item, h5py.Dataset) or item.shape is None:
        return
    name_of_scale = item.attrs.get("NAME", "")
    if (name_of_scale if isinstance(name_of_scale, str) else bytes(name_of_scale).decode()).startswith(NO_VARIABLE):
        return
    digest.update(name.encode())
    for piece in pieces(item.shape, item.dtype.itemsize, most_bytes):
        values = item[piece]
        digest.update(repr(values).encode() if item.dtype.hasobject else values.tobytes())


with h5py.File(sys.argv[1], "r") as file:
    file.visititems(count)
    if sum(sizes) >= least_bytes:
        file.visititems(add)
        print(digest.hexdigest())
