"""Steps of datasets through h5py as a solver writes them: every rank a slab of each, a flush after each, read back.

Arguments: FILE STEPS DATASETS MIB independent|collective. Rank 0 prints the seconds of I/O as JSON: of creating and
writing, of flushing, of reading, and of opening and closing, each the slowest rank's.
"""

from __future__ import annotations

import functools
import json
import sys
import time
from collections.abc import Callable
from typing import Any

import h5py
import numpy
from mpi4py import MPI

world = MPI.COMM_WORLD
path, steps, datasets, mib, mode = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]), sys.argv[5]
rows, columns = 512, max(1, int(mib * 2**20 / 8 / 512))
mine = slice(world.rank * rows, (world.rank + 1) * rows)
values = numpy.arange(rows * columns, dtype="f8").reshape(rows, columns) + world.rank
seconds = {"write": 0.0, "flush": 0.0, "read": 0.0, "open and close": 0.0}


def timed(what: str, call: Callable[[], Any]) -> Any:
    """The call's result; its time belongs to `what`."""
    world.Barrier()
    begin = time.perf_counter()
    result = call()
    seconds[what] += time.perf_counter() - begin
    return result


def write(dataset: Any) -> None:
    """This rank's slab."""
    if mode == "collective":
        with dataset.collective:
            dataset[mine, :] = values
    else:
        dataset[mine, :] = values


def read(name: str) -> Any:
    """This rank's slab, from the file."""
    dataset = file[name]
    if mode == "collective":
        with dataset.collective:
            return dataset[mine, :]
    return dataset[mine, :]


file = timed("open and close", lambda: h5py.File(path, "w", driver="mpio", comm=world))
for step in range(steps):
    group = file.create_group(f"step{step}")

    def one_step(group: Any = group) -> None:
        """Makes and writes the step's datasets."""
        for name in range(datasets):
            write(group.create_dataset(f"field{name}", (world.size * rows, columns), dtype="f8"))

    timed("write", one_step)
    timed("flush", file.flush)
timed("open and close", file.close)
file = timed("open and close", lambda: h5py.File(path, "r", driver="mpio", comm=world))
wrong = 0
for step in range(steps):
    for name in range(datasets):
        found = timed("read", functools.partial(read, f"step{step}/field{name}"))
        wrong += int((found != values).sum())
timed("open and close", file.close)
slowest = {name: world.allreduce(value, MPI.MAX) for name, value in seconds.items()}
wrong = world.allreduce(wrong)
if world.rank == 0:
    print(json.dumps({"seconds": slowest, "wrong": wrong}))
sys.exit(1 if wrong else 0)
