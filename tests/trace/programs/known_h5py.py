"""Known h5py calls, of each rank: test_library_programs.py states what must be recorded. Arguments: FILE."""

import sys

import h5py
import numpy
from mpi4py import MPI

rank, ranks = MPI.COMM_WORLD.rank, MPI.COMM_WORLD.size
with h5py.File(sys.argv[1], "w", driver="mpio", comm=MPI.COMM_WORLD) as file:
    data = file.create_dataset("x", (ranks, 500), dtype="f8")
    data[rank, :] = numpy.full(500, float(rank))  # 4000 bytes
    with data.collective:
        data[rank, 100:200] = numpy.full(100, -1.0)  # 800 bytes
with h5py.File(sys.argv[1], "r", driver="mpio", comm=MPI.COMM_WORLD) as file:
    row = file["x"][rank, :]  # 4000 bytes
assert row[99] == rank
assert row[100] == -1
