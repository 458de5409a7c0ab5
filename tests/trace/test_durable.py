"""What a program has made durable with MPI_File_sync is durable under a plan, too: whoever wrote it for the program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest
from ioweir.launch import kernel
from tracing import MPIS, Mpi, ioweir_run

if TYPE_CHECKING:
    from pathlib import Path

RANKS: Final = 3
KERNEL: Final = ("ior-strided", "data=128 KiB", "transfer=64 KiB", "piece=4 KiB")
SYNCS: Final = ("fsync", "fdatasync")
WRITERS: Final = ("everyone", "auto", "aggregators:1", "aggregators:2", "behind:1")


@pytest.mark.both_mpis
@pytest.mark.one_of(2)
@pytest.mark.parametrize("writers", WRITERS)
@pytest.mark.parametrize("mode", ["mpiio", "independent"])
@pytest.mark.parametrize("mpi", MPIS, ids=lambda mpi: mpi.name)
def test_every_writer_syncs_after_its_last_write(mpi: Mpi, mode: str, writers: str, tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(f'[[file]]\nmatch = "a.dat"\nwriters = "{writers}"\n')
    data = tmp_path / "data"
    data.mkdir()
    words = [*KERNEL, "--directory", data, "--mode", f"{mode}:a.dat", "--sync", "1"]
    command = mpi.launch(RANKS, kernel.runner(mpi.name), *map(str, words))
    trace = ioweir_run(tmp_path / "trace", command, options=["--plan", plan]).trace
    posix = [event for event in trace.events if event.layer == "POSIX" and event.path == f"{data}/a.dat"]
    written: dict[int, int] = {}
    for event in posix:
        if event.op == "write":
            written[event.rank] = max(written.get(event.rank, 0), event.start_ns)
    assert written, "the kernel writes"
    ends = [event.start_ns + event.duration_ns for event in trace.events if event.name == "MPI_File_sync"]
    assert len(ends) == RANKS
    for rank, last in written.items():
        # A thread of rank 0 writes behind the others of its node, each of which syncs what was its own.
        syncs = [e.start_ns for e in posix if e.name in SYNCS and (e.rank == rank or writers.startswith("behind"))]
        assert any(last < start < max(ends) for start in syncs), f"rank {rank} has written and not synced"
