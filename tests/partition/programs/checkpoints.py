"""Writes and reads sets with ioweir.checkpoint: checkpoints.py write|hand|read|wrong BASE.

Part g has 10 + g items g + i / 4.
"""

from __future__ import annotations

import sys

import numpy as np
from ioweir import checkpoint
from mpi4py import MPI

FIELDS = ["solution", "ids"]


def fill(part: int) -> tuple[np.ndarray, np.ndarray]:
    count = 10 + part
    return part + np.arange(count) / 4, np.arange(count, dtype=np.int32) * part


def write(written: checkpoint.Written, parts: range) -> None:
    for index, part in enumerate(parts):
        solution, ids = fill(part)
        written.write("solution", index, solution.reshape(1, -1), [len(solution), part])
        written.write("ids", index, ids)


def main(what: str, base: str) -> None:
    world = MPI.COMM_WORLD
    rank = world.Get_rank()
    mine = range(2 * rank + 1, 2 * rank + 3)
    if what == "write":
        with checkpoint.create(world, base, 7, 2, FIELDS, files=2, keys={"ioweir_layout": "unaligned"}) as written:
            write(written, mine)
    elif what == "hand":
        service = checkpoint.Service(world, 1, {"ioweir_worker_memory": "100000"})
        if service.workers is None:
            service.run()
        else:
            worker = service.workers.Get_rank()
            for step in (1, 2):
                with service.create(base, step, 2, FIELDS) as written:
                    write(written, range(2 * worker + 1, 2 * worker + 3))
            service.wait()
        service.end()
    elif what == "read":
        with checkpoint.open_set(world, base) as last:
            for part in last.my_parts:
                solution, ids = fill(part)
                assert last.query("solution", part) == (8 * len(solution), [len(solution), part])
                assert np.array_equal(last.read("solution", part, np.float64), solution)
                assert np.array_equal(last.read("ids", part, np.int32), ids)
                assert np.array_equal(last.read_all("ids", part, np.int32), ids)
            print(f"rank {rank} read {len(last.my_parts)} of {last.parts} parts, step {last.step}, {last.fields}")
    else:
        for call in (
            lambda: checkpoint.create(world, base, 1, 1, FIELDS, files=99),
            lambda: checkpoint.create(world, base, 1, 1, FIELDS, keys={"ioweir_layuot": "aligned"}),
            lambda: checkpoint.open_set(world, base, 5),
        ):
            try:
                call()
            except checkpoint.CheckpointError as error:
                print(f"rank {rank}: {error.code}: {error}")
        written = checkpoint.create(world, base, 1, 1, FIELDS)
        try:
            written.write("solution", 0, np.arange(3, dtype=np.float32))
        except checkpoint.CheckpointError as error:
            print(f"rank {rank}: {error.code}: {error}")
        written.abandon()


main(*sys.argv[1:])
