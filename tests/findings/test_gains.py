"""What a repair saves at most and at least, on small traces with the arithmetic beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from ioweir.base.units import seconds
from ioweir.findings import ranking, text
from ioweir.trace import LAYERS
from traces import Builder, Call

if TYPE_CHECKING:
    from ioweir.findings.model import Finding

MIB = 1 << 20
WALL_S = 100.0


def ranks(count: int) -> tuple[Builder, list[int]]:
    """A run of so many ranks."""
    builder = Builder()
    return builder, [builder.rank(rank, count) for rank in range(count)]


def one(builder: Builder, code: str, wall_s: float = WALL_S) -> Finding:
    """The finding with this code."""
    rows = ranking.find(builder.trace(), wall_s, LAYERS).findings
    assert code in [row.code for row in rows]
    (finding,) = [row for row in rows if row.code == code]
    return finding


@pytest.mark.parametrize(("piece", "touched"), [(3 * MIB // 2, 40), (MIB, 32), (3 * MIB, 64)])
def test_misaligned_writes_cost_the_stripes_that_two_ranks_have_in_common(piece: int, touched: int) -> None:
    """2 x 8 writes behind each other, after 512 B, ten seconds each: 15 stripes in which one ends and another begins.

    Of 1.5 MiB the writes touch 2 and 3 stripes in turn, 40 in all.
    """
    builder, both = ranks(2)
    for at in range(16):
        begin = 10.0 * (at // 2)
        builder.add(Call(both[at % 2], "pwrite", begin, begin + 10, "/out", piece, offset=512 + at * piece))
    finding = one(builder, "misaligned-requests")
    assert finding.seconds == pytest.approx(80 * 15 / touched)
    # Seconds, and not microseconds, as memory takes: cutting costs nothing that shows, but runs differ by 27 %.
    assert (finding.gain.low, finding.gain.may_cost) == pytest.approx((0, 0.27 * finding.seconds))
    assert text.gain_text(finding.gain, WALL_S) == f"up to {seconds(finding.gain.high)}"


def test_whole_stripes_are_straight_whatever_the_blocks_size() -> None:
    """Blocks of 3 MiB and 1000 B, each at a multiple of 4 MiB: no two ranks have a stripe in common."""
    builder, both = ranks(2)
    for at in range(16):
        begin = 5.0 * (at // 2)
        builder.add(Call(both[at % 2], "pwrite", begin, begin + 5, "/out", 3 * MIB + 1000, offset=4 * at * MIB))
    assert "misaligned-requests" not in {row.code for row in ranking.find(builder.trace(), 100.0, LAYERS).findings}


@pytest.mark.parametrize(("each", "low"), [(1e-3, 0.0), (0.1, 0.5)])
def test_uneven_shares_gain_from_0_where_memory_answers(each: float, low: float) -> None:
    """Rank 0 makes 300 writes of 1 MiB, the others 100 each: 1 ms is memory's pace (100 us and 1 ns a byte)."""
    builder, four = ranks(4)
    for rank in four:
        for at in range(300 if rank == four[0] else 100):
            builder.add(Call(rank, "pwrite", at * each, (at + 1) * each, f"/out.{rank}", MIB, offset=at * MIB))
    finding = one(builder, "unbalanced-bytes", 400 * each)
    assert finding.gain.high == pytest.approx(1.27 * (300 - 150) * each)
    assert finding.gain.low == pytest.approx(low * (300 - 150) * each)


def test_locks_that_guard_writes_into_memory_gain_from_0() -> None:
    """Each rank waits 1 ms for the lock and holds it for a write of 1 MiB, 0.5 ms."""
    builder, both = ranks(2)
    for at in range(64):
        rank, begin = both[at % 2], 2e-3 * (at // 2)
        builder.add(
            Call(rank, "fcntl_lock", begin, begin + 1e-3, "/out", MIB),
            Call(rank, "pwrite", begin + 1e-3, begin + 1.5e-3, "/out", MIB, offset=at * MIB),
            Call(rank, "fcntl_unlock", begin + 1.5e-3, begin + 1.6e-3, "/out", MIB),
        )
    gain = one(builder, "lock-wait", 0.1).gain
    assert (gain.low, gain.high, gain.may_cost) == pytest.approx((0, 1.27 * 0.032, 0.27 * 0.032))


def test_what_is_read_and_scattered_is_gained_with_its_messages() -> None:
    """Rank 0 reads for 1 s and scatters for 3 s, four times: of the reads a quarter stays, of the messages nothing."""
    builder, (first, *others) = ranks(4)
    for at in (0, 10, 20, 30):
        builder.add(Call(first, "pread", at, at + 1, "/in", 4 * MIB, offset=at * MIB))
        builder.add(Call(first, "MPI_Scatter", at + 1, at + 4), Call(first, "MPI_Barrier", at + 6, at + 9))
        for other in others:
            builder.add(Call(other, "MPI_Scatter", at, at + 4), Call(other, "MPI_Barrier", at + 6, at + 9))
    finding = one(builder, "rank0-io")
    assert (finding.seconds, finding.gain.high) == pytest.approx((16, 15))


@pytest.mark.parametrize(("by_library", "low"), [(True, 10), (False, 0)])
def test_blocks_that_are_changed_in_part_are_written_for_nothing_too(by_library: bool, low: float) -> None:
    """20 blocks: 1 s of reading and 1 s of writing each. The part that changed may be all of the block.

    Ten seconds of reading are half of what is sure of a library; a program may need what it reads. The pauses of 2 s
    before each read are longer than 1 % of the run.
    """
    builder, (rank,) = ranks(1)
    for at in range(20):
        read = Call(rank, "pread", 4 * at, 4 * at + 1, "/f", 65536, offset=at * 65536)
        write = Call(rank, "pwrite", 4 * at + 1, 4 * at + 2, "/f", 65536, offset=at * 65536)
        if by_library:
            read.parent = write.parent = Call(rank, "nc_put_vara", 4 * at, 4 * at + 2, "/f", 100)
            builder.add(read.parent)
        builder.add(read, write)
    finding = one(builder, "read-modify-write")
    assert (finding.gain.low, finding.gain.high) == pytest.approx((low, 1.27 * 40))
    assert finding.severity == ("high" if by_library else "medium")


def test_objects_cost_what_hdf5_does_for_them_in_memory() -> None:
    """100 attributes, each made in 0.2 s without a request; the close writes them in 1 s with requests of 8 KiB."""
    builder, (rank,) = ranks(1)
    for at in range(100):
        builder.add(Call(rank, "H5Acreate2", 0.5 * at, 0.5 * at + 0.2, "/f.h5"))
    close = Call(rank, "H5Fclose", 60, 61, "/f.h5")
    builder.add(close)
    for at in range(4):
        builder.add(close.inside("pwrite", 60 + at / 4, 60.2 + at / 4, 8192, offset=at * 8192, origin="application"))
    finding = one(builder, "hdf5-metadata-scattered")
    assert finding.seconds == pytest.approx(21)
    assert "100 calls make, open, describe or close objects" in finding.summary
