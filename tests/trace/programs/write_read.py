"""One rank writes a piece and reads it again, many times: FILE CALLS."""

import sys

from mpi4py import MPI

file = MPI.File.Open(MPI.COMM_SELF, sys.argv[1], MPI.MODE_CREATE | MPI.MODE_RDWR)
for call in range(int(sys.argv[2])):
    file.Write_at(200 * call, bytes([call % 256]) * 100)
    found = bytearray(100)
    file.Read_at(200 * call, found)
    assert found == bytes([call % 256]) * 100
file.Close()
