"""Ranks write over each other, cut and read, a barrier apart, and compare with memory: FILE SEED. No sync."""

import random
import sys

from mpi4py import MPI

LENGTH = 3000
comm = MPI.COMM_WORLD
drawn = random.Random(int(sys.argv[2]))
file = MPI.File.Open(comm, sys.argv[1], MPI.MODE_CREATE | MPI.MODE_RDWR)
expected, end = bytearray(LENGTH), 0
for step in range(700):
    writer, reader = drawn.randrange(comm.size), drawn.randrange(comm.size)
    at, count, value, action = (
        drawn.randrange(LENGTH - 200),
        drawn.randrange(1, 200),
        drawn.randrange(1, 256),
        drawn.random(),
    )
    if action < 0.04:
        end = drawn.randrange(LENGTH)
        file.Set_size(end)
        expected[end:] = bytes(LENGTH - end)
    else:
        if comm.rank == writer:
            file.Write_at(at, bytes([value]) * count)
        expected[at : at + count] = bytes([value]) * count
        end = max(end, at + count)
    comm.Barrier()
    if (action > 0.5 and comm.rank == reader) or action > 0.9:
        found = bytearray(LENGTH)
        file.Read_at(0, found)
        assert found == expected, (step, comm.rank)
    if action > 0.8:
        assert file.Get_size() == end, (step, comm.rank)
    comm.Barrier()
file.Close()
print("the same")
