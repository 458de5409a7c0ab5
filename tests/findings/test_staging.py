"""rank0-io: what the others wait while one rank collects, packs and passes on, on small traces.

Every run takes 10 s, so that 100 ms are a pause; copying 64 MiB three times takes 201 ms.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from ioweir.base.spec_names import LAYERS
from ioweir.findings import ranking
from ioweir.findings.intervals import covered
from traces import Builder, Call

if TYPE_CHECKING:
    from ioweir.findings.model import Finding

MIB = 1 << 20
WALL_S = 10.0


def ranks(count: int = 4) -> tuple[Builder, int, list[int]]:
    """A run, its rank 0 and the others."""
    builder = Builder()
    first, *others = (builder.rank(rank, count) for rank in range(count))
    return builder, first, others


def of(builder: Builder) -> Finding:
    """What is found about the rank that does it all."""
    (finding,) = [f for f in ranking.find(builder.trace(), WALL_S, LAYERS).findings if f.code == "rank0-io"]
    return finding


def test_how_much_lies_in_intervals_before_a_time() -> None:
    """0 to 2, 1 to 5 and 7 to 8."""
    until = covered(np.array([7, 0, 1]), np.array([8, 2, 5]))
    assert until(np.array([-1, 0, 1, 4, 6, 7, 9])).tolist() == [0, 0, 1, 4, 5, 5, 6]


def test_every_receive_before_a_write_counts() -> None:
    """Rank 0 receives from one after the other for 0.3 s in all, packs for 0.05 s, and writes for 1 s: 1.35 s."""
    builder, first, others = ranks()
    for at, other in enumerate(others):
        builder.add(
            Call(first, "MPI_Recv", 0.1 * at, 0.1 * at + 0.1),
            Call(other, "MPI_Send", 0, 0.1 * at + 0.1),
            Call(other, "MPI_Barrier", 0.1 * at + 0.1, 1.35),
        )
    builder.add(Call(first, "pwrite", 0.35, 1.35, "/out", 64 * MIB, offset=0))
    finding = of(builder)
    assert finding.seconds == pytest.approx(1.35)
    assert finding.severity == "high"


def test_chunks_that_are_copied_between_receive_and_write_count_whole() -> None:
    """Five times: 0.1 s of receiving, 0.05 s of copying, 0.1 s of writing, 0.01 s until the next: 1.29 s."""
    builder, first, others = ranks(2)
    for at in range(5):
        begin = 0.26 * at
        builder.add(Call(first, "MPI_Recv", begin, begin + 0.1))
        builder.add(Call(first, "pwrite", begin + 0.15, begin + 0.25, "/out", 64 * MIB, offset=64 * MIB * at))
    builder.add(Call(others[0], "MPI_Ssend", 0, 1.3))
    finding = of(builder)
    assert finding.seconds == pytest.approx(5 * 0.25 + 4 * 0.01)
    # Of its own writes, 0.5 s, rank 0 keeps half; the rest is spared.
    assert finding.gain.high <= 2 * (1.29 - 0.25)
    assert finding.gain.low == pytest.approx((1.29 - 0.25) / 4)


def test_receives_too_short_to_be_seen_lie_between_the_writes() -> None:
    """1,000 writes of 2 KiB, 0.5 ms each and 0.02 ms apart, while the others wait: 0.52 s."""
    builder, first, others = ranks()
    for at in range(1000):
        begin = 0.52e-3 * at
        builder.add(Call(first, "pwrite", begin, begin + 0.5e-3, "/out", 2048, offset=2048 * at))
    builder.add(*(Call(other, "MPI_Barrier", 0, 0.52) for other in others))
    assert of(builder).seconds == pytest.approx(0.52, abs=1e-4)


def test_a_rank_that_waits_for_others_to_compute_is_not_waited_for() -> None:
    """Rank 0 is in the gather for 4 s; the others come after 3.9 s, and compute on while it writes for 2 s."""
    builder, first, others = ranks()
    builder.add(Call(first, "MPI_Gather", 0, 4), Call(first, "pwrite", 4, 6, "/out", 64 * MIB, offset=0))
    builder.add(*(Call(other, "MPI_Gather", 3.9, 4) for other in others))
    finding = of(builder)
    assert finding.seconds == pytest.approx(2.1)
    # 21 % of the run, but nobody is seen to wait for it.
    assert (finding.severity, finding.gain.low) == ("medium", 0)


@pytest.mark.parametrize("how", ["MPI_Barrier", "close", "end"])
def test_the_others_wait_in_mpi_at_a_collective_close_or_at_their_end(how: str) -> None:
    builder = Builder()
    first = builder.rank(0, 2)
    other = builder.rank(1, 2)
    builder.add(Call(first, "MPI_File_write_at", 0, 2, "/out", 64 * MIB, offset=0))
    if how == "MPI_Barrier":
        builder.add(Call(other, how, 0, 2))
    elif how == "close":
        builder.add(Call(first, "MPI_File_close", 2, 2.01, "/out"), Call(other, "MPI_File_close", 0, 2.01, "/out"))
    else:
        builder.processes[other] = replace(builder.processes[other], mpi_finalize_ns=1_000)
    finding = of(builder)
    assert finding.severity == "high"
    assert finding.gain.low > 0


def test_computing_after_the_writes_is_not_io() -> None:
    """Rank 0 writes for 0.5 s and computes until 5 s, while the others wait for it."""
    builder, first, others = ranks()
    builder.add(Call(first, "pwrite", 0, 0.5, "/out", 64 * MIB, offset=0))
    builder.add(Call(first, "MPI_Barrier", 5, 5.001), *(Call(other, "MPI_Barrier", 0, 5.001) for other in others))
    assert of(builder).seconds == pytest.approx(0.5)


@pytest.mark.parametrize(("name", "counted"), [("MPI_Waitall", 0.02), ("MPI_Allreduce", 0.0), ("MPI_Recv", 0.29)])
def test_communication_of_the_program_is_no_collecting(name: str, counted: float) -> None:
    """Ten steps of 10 ms of computing and 20 ms in MPI, and then a write of 1 s.

    The last wait may be for what is written; of receives, ten, and 90 ms between them, are within what copying takes.
    """
    builder, first, others = ranks()
    for at in range(10):
        builder.add(Call(first, name, 0.03 * at + 0.01, 0.03 * at + 0.03))
        if name != "MPI_Recv":
            builder.add(*(Call(other, name, 0.03 * at + 0.01, 0.03 * at + 0.03) for other in others))
    if name == "MPI_Recv":
        builder.add(*(Call(other, "MPI_Ssend", 0.01, 0.3) for other in others))
    builder.add(Call(first, "pwrite", 0.3, 1.3, "/out", 64 * MIB, offset=0))
    assert of(builder).seconds == pytest.approx(1 + counted)


def test_what_was_read_is_sent_to_one_after_the_other() -> None:
    """Rank 0 reads for 0.4 s and sends for 0.1 s to each of three, who wait: 0.7 s, in the mean 0.6 s."""
    builder, first, others = ranks()
    builder.add(Call(first, "pread", 0, 0.4, "/in", 64 * MIB, offset=0))
    for at, other in enumerate(others):
        builder.add(Call(first, "MPI_Send", 0.4 + 0.1 * at, 0.5 + 0.1 * at))
        builder.add(Call(other, "MPI_Recv", 0, 0.5 + 0.1 * at))
    # They compute on when they have their part.
    assert of(builder).seconds == pytest.approx(0.4 + (0.1 + 0.2 + 0.3) / 3)


def test_a_broadcast_goes_on_when_the_sender_has_left_it() -> None:
    """Rank 0 is out of the broadcast after 0.05 s, the others after 0.15 s."""
    builder, first, others = ranks()
    builder.add(Call(first, "pread", 0, 0.4, "/in", 64 * MIB, offset=0), Call(first, "MPI_Bcast", 0.4, 0.45))
    builder.add(*(Call(other, "MPI_Bcast", 0, 0.55) for other in others))
    assert of(builder).seconds == pytest.approx(0.55)


def test_a_barrier_on_the_way_is_a_pause() -> None:
    """Rank 0 reads for 0.4 s, is 0.05 s in a barrier, and broadcasts for 0.1 s: the barrier is nobody's cost."""
    builder, first, others = ranks()
    builder.add(Call(first, "pread", 0, 0.4, "/in", 64 * MIB, offset=0))
    builder.add(Call(first, "MPI_Barrier", 0.4, 0.45), Call(first, "MPI_Bcast", 0.45, 0.55))
    for other in others:
        builder.add(Call(other, "MPI_Barrier", 0, 0.45), Call(other, "MPI_Bcast", 0.45, 0.55))
    assert of(builder).seconds == pytest.approx(0.5)


def test_syncs_are_no_staging() -> None:
    """Rank 0 writes for 0.5 s and syncs for 2 s, while the others wait: that is sync-cost's, where it comes often."""
    builder, first, others = ranks()
    builder.add(Call(first, "pwrite", 0, 0.5, "/out", 64 * MIB, offset=0), Call(first, "fsync", 0.5, 2.5, "/out"))
    builder.add(*(Call(other, "MPI_Barrier", 0, 2.5) for other in others))
    assert of(builder).seconds == pytest.approx(0.5)


@pytest.mark.parametrize("processors", [4, 2])
def test_what_the_rank_computes_between_its_writes_is_shared_and_not_spared(processors: int) -> None:
    """Rank 0 gathers for 0.1 s; then 100 times 5 ms of formatting and 1 ms of writing: 0.7 s, of which it computes 0.5.

    Packing 100 x 16 KiB takes 3 ns a byte and 100 times 30 us: 8 ms are no computing. Of 0.492 s a quarter remains, or
    a half where four ranks share two processors; of the writes, 0.1 s, a quarter.
    """
    builder, first, others = ranks()
    builder.add(Call(first, "MPI_Gather", 0, 0.1))
    for at in range(100):
        begin = 0.105 + 0.006 * at
        builder.add(Call(first, "pwrite", begin, begin + 0.001, "/out", 16384, offset=16384 * at))
    builder.add(*(Call(other, "MPI_Barrier", 0, 0.7) for other in others))
    trace = builder.trace(run={"processors": processors})
    (finding,) = [f for f in ranking.find(trace, WALL_S, LAYERS).findings if f.code == "rank0-io"]
    computing = 0.5 - 100 * (3 * 16384e-9 + 30e-6)
    figures = {row.text: row.figure for row in finding.evidence}
    assert figures["of that while rank 0 computes for longer than packing takes"] == pytest.approx(computing, rel=1e-3)
    lost = 0.7 - 0.1 / 4 - computing / processors
    assert finding.seconds == pytest.approx(0.7)
    # Its writes were answered by memory, or not: a half of the waiting, or a quarter of all.
    assert finding.gain.low == pytest.approx(lost / 4, rel=1e-3)
