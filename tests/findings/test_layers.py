"""Work that is recorded at several layers counts once: its calls, its bytes and its seconds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from ioweir.findings import ranking
from ioweir.findings.columns import Columns
from ioweir.trace import LAYERS
from traces import Builder, Call

if TYPE_CHECKING:
    from ioweir.findings.model import Finding

MIB = 1 << 20


def one(builder: Builder, code: str) -> Finding:
    """The finding with this code in a run of 100 s."""
    rows = [row for row in ranking.find(builder.trace(), 100.0, LAYERS).findings if row.code == code]
    assert len(rows) == 1
    return rows[0]


def codes(builder: Builder) -> list[str]:
    """All that is found in a run of 100 s."""
    return [row.code for row in ranking.find(builder.trace(), 100.0, LAYERS).findings]


def figure(finding: Finding, text: str) -> float:
    """A figure of the evidence."""
    (found,) = [row.figure for row in finding.evidence if row.text == text]
    return found


def test_of_calls_within_each_other_the_topmost_counts() -> None:
    """A sync in a sync is one; a sync in a close is one, too, for the close is none."""
    builder = Builder()
    rank = builder.rank(0, 1)
    flush = Call(rank, "H5Fflush", 0, 9, "/out")
    sync = flush.inside("MPI_File_sync", 1, 8)
    close = Call(rank, "MPI_File_close", 10, 12, "/out")
    builder.add(flush, sync, sync.inside("fsync", 2, 7), close, close.inside("fsync", 10, 11))
    run = Columns(builder.trace(), 100.0, LAYERS)
    assert [run.names[at] for at in run.function[run.topmost(run.is_op("sync"))]] == ["H5Fflush", "fsync"]
    waiting = run.is_op("sync") & ~run.is_layer("HDF5")
    assert [run.names[at] for at in run.function[run.topmost(waiting)]] == ["MPI_File_sync", "fsync"]


@pytest.mark.parametrize("around", ["", "H5Fflush"])
def test_a_sync_and_the_fsync_beneath_it_are_one(around: str) -> None:
    """Two ranks sync 4 times, 2 s each with 1.5 s of fsync inside, after 1 MiB each: 8 syncs, 4 x 2 s = 8 s."""
    builder = Builder()
    for rank in [builder.rank(number, 2) for number in range(2)]:
        for at in range(0, 40, 10):
            write = Call(rank, "MPI_File_write_at", at, at + 1, "/out", MIB)
            builder.add(write, write.inside("pwrite", at, at + 1, MIB, offset=(at // 10 * 2 + rank) * MIB))
            sync = Call(rank, "MPI_File_sync", at + 2, at + 4, "/out")
            if around:
                flush = Call(rank, around, at + 2, at + 4, "/out")
                builder.add(flush)
                sync = flush.inside("MPI_File_sync", at + 2, at + 4)
            builder.add(sync, sync.inside("fsync", at + 2, at + 3.5))
    finding = one(builder, "sync-cost")
    assert finding.summary == "8 calls wait until the disk has everything (fsync), one for every 1.00 MiB written"
    assert finding.seconds == pytest.approx(8)
    assert figure(finding, "fsync, MPI_File_sync and the like") == 8
    assert figure(finding, "written per sync") == MIB
    assert figure(finding, "median time of one") == pytest.approx(2)


def test_bytes_of_a_stream_and_of_its_system_call_count_once() -> None:
    """Each of 4 times: fwrite of 1 MiB with its write beneath, fsync of 2 s: 1 MiB a sync."""
    builder = Builder()
    rank = builder.rank(0, 1)
    for at in range(4):
        write = Call(rank, "fwrite", 10 * at, 10 * at + 1, "/out", MIB)
        builder.add(write, write.inside("write", 10 * at, 10 * at + 1, MIB, origin="application"))
        builder.add(Call(rank, "fsync", 10 * at + 1, 10 * at + 3, "/out"))
    assert figure(one(builder, "sync-cost"), "written per sync") == MIB


def test_flushing_a_stream_is_no_waiting_for_the_disk() -> None:
    """fflush and H5Fflush end in the page cache."""
    builder = Builder()
    rank = builder.rank(0, 1)
    for at in range(8):
        builder.add(Call(rank, "fwrite", 10 * at, 10 * at + 0.01, "/log", 100))
        builder.add(Call(rank, "fflush", 10 * at + 1, 10 * at + 3, "/log"))
        builder.add(Call(rank, "H5Fflush", 10 * at + 4, 10 * at + 6, "/h5"))
    assert "sync-cost" not in codes(builder)


def test_what_an_aggregator_wrote_for_all_is_synced_by_all() -> None:
    """Rank 0 writes 256 MiB before each sync of both: 128 MiB a rank, which takes its time."""
    builder = Builder()
    first, second = (builder.rank(number, 2) for number in range(2))
    for at in range(4):
        builder.add(Call(first, "MPI_File_write_at", 10 * at, 10 * at + 1, "/out", 256 * MIB))
        for rank in (first, second):
            builder.add(Call(rank, "MPI_File_sync", 10 * at + 2, 10 * at + 4, "/out"))
    assert "sync-cost" not in codes(builder)


def test_a_size_set_by_mpi_io_and_beneath_it_is_set_once() -> None:
    """4 times 2 s, with ftruncate of 1 s inside: 4 calls, 8 s."""
    builder = Builder()
    rank = builder.rank(0, 1)
    for at in range(4):
        grow = Call(rank, "MPI_File_set_size", 10 * at, 10 * at + 2, "/out")
        builder.add(grow, grow.inside("ftruncate", 10 * at, 10 * at + 1))
    finding = one(builder, "file-extension")
    assert finding.summary == "4 calls change the size of a file or reserve space for it"
    assert finding.seconds == pytest.approx(8)


def test_reads_of_a_stream_and_of_its_system_call_count_once() -> None:
    """Four ranks each read the same 2 MiB with fread, and read beneath: 8 MiB altogether."""
    builder = Builder()
    for rank in [builder.rank(number, 4) for number in range(4)]:
        read = Call(rank, "fread", 0, 4, "/in", 2 * MIB)
        builder.add(read, read.inside("read", 1, 3, 2 * MIB, origin="application"))
    finding = one(builder, "same-read-by-all")
    assert figure(finding, "bytes read altogether") == 8 * MIB
    assert figure(finding, "ranks that read the same") == 4
    assert (finding.seconds, finding.gain.high) == pytest.approx((4, 3))


def test_taking_turns_counts_a_stream_or_its_system_call() -> None:
    """Two ranks take 16 turns of 1 s with fwrite, and write beneath: 16 writes."""
    builder = Builder()
    both = [builder.rank(number, 2) for number in range(2)]
    for turn in range(16):
        write = Call(both[turn % 2], "fwrite", turn, turn + 1, "/out", MIB)
        builder.add(write, write.inside("write", turn, turn + 1, MIB, origin="application"))
    finding = one(builder, "serialised-writes")
    assert figure(finding, "writes") == 16
    assert figure(finding, "changes from one rank to another") == 15


def test_a_request_and_what_completes_it_move_their_bytes_once() -> None:
    """Rank 0 posts 3 MiB and waits; rank 1 posts 1 MiB: 3 MiB are 1.5 times the mean of 2 MiB."""
    builder = Builder()
    for rank, size in zip([builder.rank(number, 2) for number in range(2)], (3 * MIB, MIB), strict=True):
        builder.add(
            Call(rank, "MPI_File_iwrite_at", 0, 4 * size / MIB, "/out", size),
            Call(rank, "MPI_Wait (write)", 20, 21, "/out", size),
        )
    run = Columns(builder.trace(), 100.0, LAYERS)
    assert run.bytes_by_unit(run.outermost).tolist() == [3 * MIB, MIB]
    finding = one(builder, "unbalanced-bytes")
    assert figure(finding, "most bytes of a rank, above the mean") == pytest.approx(1.5)


def test_hdf5_data_counts_at_one_of_its_layers() -> None:
    """Rank 0 of 2 writes 4 MiB with H5Dwrite, MPI_File_write_at and pwrite: 4 MiB, 6 s, of which half may be saved."""
    builder = Builder()
    first, second = (builder.rank(number, 2) for number in range(2))
    builder.add(Call(second, "MPI_Barrier", 0, 6))
    data = Call(first, "H5Dwrite", 0, 6, "/out.h5", 4 * MIB)
    inner = data.inside("MPI_File_write_at", 1, 5, 4 * MIB)
    builder.add(data, inner, inner.inside("pwrite", 2, 4, 4 * MIB, offset=0))
    finding = one(builder, "rank0-io")
    assert finding.summary == "rank 0 writes everything (4.00 MiB) while 1 other rank has nothing to do with the files"
    assert (finding.seconds, finding.gain.high) == pytest.approx((6, 3))
    assert figure(finding, "its writes") == 1


def test_one_rank_that_writes_nearly_everything() -> None:
    """Rank 0 of 2 writes 31 MiB of 32, and 10 KiB of a file of its own."""
    builder = Builder()
    first, second = (builder.rank(number, 2) for number in range(2))
    builder.add(
        Call(first, "pwrite", 0, 6, "/out", 31 * MIB, offset=0),
        Call(first, "pwrite", 6, 6.1, "/log", 10240, offset=0),
        Call(second, "pwrite", 0, 0.1, "/log.1", MIB, offset=0),
        Call(second, "MPI_Barrier", 0.1, 6),
    )
    finding = one(builder, "rank0-io")
    assert finding.summary == "rank 0 writes 97 % of all bytes (31.01 MiB of 32.01 MiB), and 1 other rank the rest"
    assert finding.files == ["/out"]


def test_opening_is_no_part_of_what_could_be_written_meanwhile() -> None:
    """Three times: open 1 s, write 1 MiB in 2 s, then 20 s of computing: 6 s could be written meanwhile, not 9 s."""
    builder = Builder()
    rank = builder.rank(0, 1)
    for at in (0, 30, 60):
        builder.add(
            Call(rank, "open", at, at + 1, f"/out.{at}"),
            Call(rank, "pwrite", at + 1, at + 3, f"/out.{at}", MIB, offset=0),
        )
    finding = one(builder, "no-overlap")
    assert (finding.seconds, finding.gain.low, finding.gain.high) == pytest.approx((6, 0, 1.27 * 6))


def test_small_requests_of_a_library_are_not_called_the_programs() -> None:
    """Two H5Dwrite of 10 s make 80 writes of 8 B each."""
    builder = Builder()
    rank = builder.rank(0, 1)
    for at in (0, 20):
        data = Call(rank, "H5Dwrite", at, at + 10, "/out.h5", 640)
        builder.add(data)
        builder.add(
            *(
                data.inside("pwrite", at + k / 8, at + (k + 1) / 8, 8, offset=8192 * k, origin="application")
                for k in range(80)
            )
        )
    finding = one(builder, "small-requests")
    assert finding.seconds == pytest.approx(20)
    assert finding.cause.startswith("The program calls HDF5 2 times, and HDF5 makes 160 small requests of that: ")
    assert "H5Pset_chunk" in finding.remedies[0].text
