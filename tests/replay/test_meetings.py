"""Where all ranks waited for each other, a replay has them wait; and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest
import runs
from ioweir.replay import from_trace, order, write
from ioweir.replay.model import Handle, Instance, Op, RankCalls, Recorded
from ioweir.trace import reader
from traces import Builder, Call

RANKS, STEPS = 3, 4
LARGE = 1 << 20
SOURCE = r"""
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char** argv) {
    int rank;
    char path[4096];
    static char data[1 << 20];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    snprintf(path, sizeof path, "%s/%d.bin", argv[1], rank);
    int fd = open(path, O_WRONLY | O_CREAT, 0644);
    int meet = atoi(argv[2]);
    for (int i = 0; i < 4; ++i) {
        for (int n = 0; n < (rank == i % 3 ? 200 : 1); ++n)
            if (pwrite(fd, data, sizeof data, 0) < 0) return 1;
        if (meet) MPI_Barrier(MPI_COMM_WORLD);
        if (pwrite(fd, data, 1000 + i, 0) < 0) return 1;
        if (meet) MPI_Barrier(MPI_COMM_WORLD);
    }
    close(fd);
    MPI_Finalize();
}
"""


@pytest.mark.parametrize("mpi", list(runs.LAUNCHERS))
def test_ranks_wait_where_they_waited(mpi: str, tmp_path: Path) -> None:
    """In each step another rank writes 200 MiB and the others one; then all write a little."""
    (tmp_path / "steps.c").write_text(SOURCE, encoding="utf-8")
    program = runs.compiled(mpi, tmp_path, tmp_path / "steps.c")
    again = tmp_path / "again"
    again.mkdir()
    for name, meet in (("with", 1), ("without", 0)):
        (tmp_path / name).mkdir()
        (tmp_path / f"out-{name}").mkdir()
        trace = tmp_path / f"trace-{name}"
        runs.recorded(mpi, RANKS, [program, tmp_path / name, meet], trace)
        out = tmp_path / f"out-{name}"
        runs.ioweir("replay", trace, "--directory", out, "--think", "drop", "-o", again / name)
        runs.ioweir("replay", trace, "--script", tmp_path / f"script-{name}")
    assert _early(again / "with") == 0
    counts = {_barriers(path) for path in (tmp_path / "script-with").iterdir()}
    assert len(counts) == 1
    assert counts.pop() >= 2 * STEPS
    assert {_barriers(path) for path in (tmp_path / "script-without").iterdir()} == {0}


def _barriers(script: Path) -> int:
    return script.read_text(encoding="utf-8").splitlines().count("MPI_Barrier")


def _early(trace: Path) -> int:
    """Small writes that begin before all ranks have ended their large ones of the step."""
    read = reader.read(trace)
    events = read.events
    names = {function.id: function.name for function in read.functions}
    ends: dict[int, int] = {}
    small: list[tuple[int, int]] = []
    steps: dict[int, int] = {}
    for i in sorted(range(len(events)), key=lambda one: int(events.start_ns[one])):
        rank, start = read.processes[int(events.process[i])].rank, int(events.start_ns[i])
        if rank < 0 or names[int(events.function[i])] != "pwrite":
            continue
        step = steps.setdefault(rank, 0)
        if int(events.bytes[i]) == LARGE:
            ends[step] = max(ends.get(step, 0), start + int(events.duration_ns[i]))
        else:
            assert int(events.bytes[i]) == 1000 + step
            small.append((step, start))
            steps[rank] += 1
    assert len(small) == STEPS * RANKS
    return sum(start < ends[step] for step, start in small)


PATH = "/data/a"


def _found(*, wait: str | None, overlap: bool = False, waiting: tuple[float, float] = (11.5, 19.9)) -> list[int]:
    """Meetings in a trace of two ranks that write at 10 s and 20 s. `overlap`: rank 1 begins its second write early."""
    made = Builder()
    first, second = made.rank(0, 2), made.rank(1, 2)
    made.add(Call(first, "creat", 1, 1.1, PATH), Call(second, "creat", 1, 1.2, PATH))
    made.add(Call(first, "pwrite", 10, 11, PATH, 10, offset=0))
    if wait is not None:
        made.add(Call(first, wait, *waiting))
    made.add(Call(first, "pwrite", 20, 21, PATH, 10, offset=0))
    made.add(Call(second, "pwrite", 10, 12, PATH, 10, offset=10))
    made.add(Call(second, "pwrite", 10.9 if overlap else 20, 21.5, PATH, 10, offset=10))
    return from_trace.of_trace(made.trace(), 2, "a trace").meetings


def test_a_quiet_moment_is_a_meeting_where_somebody_waited_for_all() -> None:
    assert _found(wait="MPI_Barrier") == [20 * 10**9]
    assert _found(wait="MPI_Allreduce") == [20 * 10**9]


@pytest.mark.parametrize("wait", [None, "MPI_Recv", "MPI_Bcast"])
def test_other_waiting_is_no_meeting(wait: str | None) -> None:
    assert _found(wait=wait) == []


def test_a_barrier_beside_a_call_is_no_meeting_of_all() -> None:
    """It may be one of some ranks only: rank 1 wrote meanwhile."""
    assert _found(wait="MPI_Barrier", overlap=True) == []
    assert _found(wait="MPI_Barrier", waiting=(11.2, 11.9)) == []


@pytest.mark.parametrize(("other", "kept"), [(15, [15]), (25, [])])
def test_meetings_that_do_not_fit_are_left_out(other: int, kept: list[int]) -> None:
    """Of nodes whose clocks disagree: both ranks make the second call together, one of them behind a meeting."""

    def op(rank: int, start: int) -> Op:
        return Op("MPI_File_sync", [0], start, start + 1, 0, Handle(rank, 0, 0, 0, instance=one), collective=True)

    one = Instance((0, 2, 0), {0: Handle(0, 0, 0, 0), 1: Handle(1, 0, 0, 0)})
    ranks = [RankCalls(0, [op(0, 0), op(0, 20)]), RankCalls(1, [op(1, 0), op(1, 20 if other == 15 else 10)])]
    recorded = Recorded(ranks, ["/a"], ["a"], (), meetings=[15])
    order.put_in_order(recorded)
    assert recorded.meetings == kept
    counts = [list(write.lines(recorded, rank, 1)).count("MPI_Barrier") for rank in ranks]
    assert counts == [len(kept)] * 2
