"""Writes of a script, by its own lines: python_lines.py FILE [threads]. test_callsites.py states the figures."""

import os
import sys
import threading

from mpi4py import MPI


def dump(fd: int, data: bytes) -> None:
    """Write them."""
    os.write(fd, data)  # LINE dump


name = sys.argv[1]
over = threading.Event()
waiting = threading.Thread(target=over.wait)
if len(sys.argv) > 2:
    waiting.start()
rank = MPI.COMM_WORLD.Get_rank()
fd = os.open(f"{name}.{rank}", os.O_CREAT | os.O_WRONLY)
for _ in range(5):
    dump(fd, b"x" * 100)
os.write(fd, b"y" * 30)  # LINE direct
os.close(fd)
file = MPI.File.Open(MPI.COMM_WORLD, name, MPI.MODE_CREATE | MPI.MODE_WRONLY)
file.Write_at_all(rank * 1000, b"z" * 1000)  # LINE together
for at in range(3):
    file.Write_at(4000 + (3 * rank + at) * 10, b"w" * 10)  # LINE alone
file.Close()
over.set()
