"""The MPI-IO calls of known_fortran.F90, and a plain file, from Python: known_mpi4py.py SHARED OWN PLAIN.

tests/trace/test_languages.py states the figures.
"""

import sys

from mpi4py import MPI

shared, own, plain = sys.argv[1:]
world = MPI.COMM_WORLD
rank = world.Get_rank()
own, plain = f"{own}.{rank}", f"{plain}.{rank}"
status = MPI.Status()

file = MPI.File.Open(world, shared, MPI.MODE_CREATE | MPI.MODE_RDWR)
# No derived file type: mpi4py 4 makes it by MPI_Type_vector_c, and MPICH 4.0's ROMIO aborts on types made that way.
file.Set_view(240 * rank)
file.Write_at_all(0, b"p" * 120, status)
assert status.Get_count(MPI.BYTE) == 120
file.Write_all(b"q" * 120)
buffer = bytearray(80)
file.Read_at_all(0, buffer, status)
assert buffer == b"q" * 80
file.Close()

file = MPI.File.Open(MPI.COMM_SELF, own, MPI.MODE_CREATE | MPI.MODE_RDWR)
file.Write_at(500, b"r" * (300 + rank))
file.Write_at(500, b"s" * 10)
file.Write(b"t" * 70)
large = bytearray(2000)
file.Read_at(500, large, status)
assert status.Get_count(MPI.BYTE) == 300 + rank
file.Read_at(500, memoryview(large)[:1999])
file.Read(bytearray(30))
file.Read_all(bytearray(31))
file.Close()

with open(plain, "wb", buffering=0) as raw:  # noqa: PTH123 (the built-in is what the figures are about)
    for _ in range(rank + 2):
        raw.write(b"u" * 1000)
with open(plain, "rb", buffering=0) as raw:  # noqa: PTH123
    assert len(raw.read(700)) == 700
