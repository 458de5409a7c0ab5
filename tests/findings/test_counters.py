"""Findings of logs that count calls and keep no events: what is sure of counters, and what they accuse nobody of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from ioweir.findings import counted as counters
from ioweir.trace.counted import SHARED, Counted, Counts, Table

if TYPE_CHECKING:
    from ioweir.findings.model import Finding

KIB = 1 << 10
MIB = 1 << 20
WALL_S = 100.0
POSIX = ("POSIX_READS", "POSIX_WRITES", "POSIX_BYTES_READ", "POSIX_BYTES_WRITTEN", "POSIX_MAX_BYTE_READ")


def found(rows: tuple[Counts, ...], ranks: int = 4, **tables: Table) -> dict[str, Finding]:
    """What is found in a log of 100 s, by code."""
    named = {name.replace("_", "-"): table for name, table in tables.items()}
    files = tuple(f"/file.{number}" for number in range(1 + max(row.file for row in rows)))
    log = Counted("Darshan", "log", ranks, files, rows, tables=named)
    return {one.code: one for one in counters.find(log, WALL_S).findings}


@pytest.mark.parametrize("outermost", [True, False])
def test_a_rank_that_writes_for_collective_calls_does_not_do_all_io(outermost: bool) -> None:
    """Rank 0 writes 64 MiB in 20 s: by itself, or as the aggregator of collective calls of all ranks."""
    rows = [Counts("POSIX", "write", 0, 0, calls=64, bytes=64 * MIB, time_s=20, outermost=outermost)]
    if not outermost:
        rows += [Counts("MPI-IO", "write", 0, rank, calls=4, bytes=16 * MIB, time_s=20) for rank in range(4)]
    assert ("rank0-io" in found(tuple(rows))) is outermost


def test_a_rank_that_writes_most_is_not_said_to_write_all() -> None:
    """60 MiB by rank 0, 2 MiB by all together through MPI-IO."""
    finding = found((
        Counts("POSIX", "write", 0, 0, calls=64, bytes=60 * MIB, time_s=20),
        Counts("MPI-IO", "write", 1, SHARED, calls=4, bytes=2 * MIB, time_s=1),
    ))["rank0-io"]  # fmt: skip
    assert finding.summary == "rank 0 writes 60.00 MiB of 62.00 MiB, and 3 others the rest"


@pytest.mark.parametrize(("time_s", "low"), [(0.4, 0.0), (40.0, 5.0)])
def test_files_of_ranks_that_the_node_itself_opened_may_be_right(time_s: float, low: float) -> None:
    """Two ranks make 10,000 files each, in 20 us a call or in 2 ms; of a run of 100 s or of 1 s."""
    rows = []
    for rank in range(2):
        rows.append(Counts("POSIX", "open", rank, rank, calls=10_000))
        rows.append(Counts("POSIX", "write", rank, rank, calls=10_000, bytes=10_000, time_s=time_s / 100))
        rows.append(Counts("POSIX", "meta", rank, rank, calls=0, time_s=time_s / 2))
    log = Counted("Darshan", "log", 2, tuple(f"/own.{at}" for at in range(20_000)), tuple(rows))
    findings = {one.code: one for one in counters.find(log, 100.0 if low else 1.0).findings}
    assert findings["file-per-process"].gain.low == pytest.approx(low)
    assert findings["file-per-process"].seconds == pytest.approx(time_s / 2)


@pytest.mark.parametrize(("wrong", "is_found"), [(900, True), (400, False)])
def test_misaligned_writes_are_counted_beside_reads(wrong: int, is_found: bool) -> None:
    """1,000 writes of 1 MiB and 100 reads: of 900 away from borders 800 are writes, of 400 perhaps none but 300."""
    names = ("POSIX_WRITES", "POSIX_READS", "POSIX_FILE_NOT_ALIGNED", "POSIX_BYTES_WRITTEN", "POSIX_FILE_ALIGNMENT")
    rows = (Counts("POSIX", "write", 0, SHARED, calls=1000, bytes=1000 * MIB, time_s=200),)
    table = Table(names, ((0, SHARED, 1000, 100, wrong, 1000 * MIB, MIB),))
    assert ("misaligned-requests" in found(rows, POSIX=table)) is is_found


@pytest.mark.parametrize(("calls", "independent", "is_found"), [(100, 0, True), (100, 1, False), (10_000, 0, False)])
def test_collective_calls_that_end_in_tiny_requests(calls: int, independent: int, is_found: bool) -> None:
    """10,000 POSIX writes of 1 KiB, 8 s in all, of so many collective writes, 40 s in all of four ranks."""
    how = [f"MPIIO_{kind}_{op}S" for kind in ("COLL", "INDEP", "SPLIT", "NB") for op in ("WRITE", "READ")]
    values = dict.fromkeys(how, 0) | {"MPIIO_COLL_WRITES": calls, "MPIIO_INDEP_WRITES": independent}
    rows = (
        Counts("MPI-IO", "write", 0, SHARED, calls=calls, bytes=10_000 * KIB, time_s=40),
        Counts(
            "POSIX", "write", 0, SHARED, calls=10_000, bytes=10_000 * KIB, time_s=8, outermost=False,
            sizes=((1024, 10_000),),
        ),
    )  # fmt: skip
    findings = found(rows, MPI_IO=Table(tuple(how), ((0, SHARED, *values.values()),)))
    assert ("collective-scattered" in findings) is is_found
    if is_found:
        finding = findings["collective-scattered"]
        assert (finding.seconds, finding.gain.low, finding.gain.high) == pytest.approx((10, 2.5, 10))
        assert finding.summary == "100 collective writes became 10,000 writes of under 100 KiB at the storage"
        assert finding.remedies[0].plan == '[[file]]\nmatch = "file.0"\nwriters = "auto"\n'


@pytest.mark.parametrize(("read", "written", "seconds"), [(10, 0, 18.0), (10, 4, 10.0), (10, 20, None), (1, 0, None)])
def test_more_bytes_than_there_are_were_read_again(read: int, written: int, seconds: float | None) -> None:
    """A rank reads so many MiB of the first MiB in 20 s; what was written meanwhile may be new."""
    rows = (Counts("POSIX", "read", 0, 1, calls=10, bytes=read * MIB, time_s=20),)
    findings = found(rows, POSIX=Table(POSIX, ((0, 1, 10, 0, read * MIB, written * MIB, MIB - 1),)))
    assert ("redundant-read" in findings) is (seconds is not None)
    if seconds is not None:
        assert findings["redundant-read"].seconds == pytest.approx(seconds)
        assert findings["redundant-read"].gain.high <= findings["redundant-read"].seconds


@pytest.mark.parametrize(("each", "is_found"), [(8, True), (2, False), (7, True), (20, False)])
def test_what_every_rank_reads_is_read_once_for_each(each: int, is_found: bool) -> None:
    """Four ranks read so many of 8 MiB each, in the mean, 40 s each: all of it, or a part of their own."""
    rows = (Counts("POSIX", "read", 0, SHARED, calls=64, bytes=4 * each * MIB, time_s=160),)
    findings = found(rows, POSIX=Table(POSIX, ((0, SHARED, 64, 0, 4 * each * MIB, 0, 8 * MIB - 1),)))
    assert ("same-read-by-all" in findings) is is_found
    if is_found:
        finding = findings["same-read-by-all"]
        assert (finding.seconds, finding.gain.low, finding.gain.high) == pytest.approx((40, 7.5, 30))


@pytest.mark.parametrize(("most", "is_found"), [(40, True), (12, False)])
def test_the_slowest_rank_of_a_shared_file_may_have_most_of_it(most: int, is_found: bool) -> None:
    """Of 40 MiB, 10 in the mean, which took 10 s in the mean, the slowest rank wrote so many in 25 s."""
    names = (
        "POSIX_BYTES_READ", "POSIX_BYTES_WRITTEN", "POSIX_SLOWEST_RANK", "POSIX_SLOWEST_RANK_BYTES",
        "POSIX_F_READ_TIME", "POSIX_F_WRITE_TIME", "POSIX_F_META_TIME", "POSIX_F_SLOWEST_RANK_TIME",
    )  # fmt: skip
    rows = (Counts("POSIX", "write", 0, SHARED, calls=4, bytes=40 * MIB, time_s=40),)
    findings = found(rows, POSIX=Table(names, ((0, SHARED, 0, 40 * MIB, 2, most * MIB, 0.0, 40.0, 0.0, 25.0),)))
    assert ("unbalanced-bytes" in findings) is is_found
    if is_found:
        finding = findings["unbalanced-bytes"]
        assert finding.ranks == [2]
        assert finding.seconds == pytest.approx(15)


def test_a_log_without_times_accuses_nobody() -> None:
    """Of small calls, jumps and streams; and of a run that took no time."""
    rows = (
        Counts("POSIX", "write", 0, 0, calls=10_000, bytes=10_000, sizes=((1, 10_000),)),
        Counts("STDIO", "read", 0, 0, calls=10_000, bytes=10 * MIB),
        Counts("POSIX", "open", 0, 0, calls=10_000),
    )
    assert found(rows) == {}
    log = Counted("Darshan", "log", 4, ("/file.0",), rows)
    assert counters.find(log, 1e-9).findings == []


@pytest.mark.parametrize(("calls", "pieces", "is_found"), [(400, 0, True), (40, 0, False), (40, 4000, True)])
def test_a_few_independent_calls_on_a_shared_file_are_no_habit(calls: int, pieces: int, is_found: bool) -> None:
    """Four ranks make so many in all, 100 KiB each, which end in so many requests of 1 KiB."""
    names = tuple(f"MPIIO_{how}_{op}S" for how in ("INDEP", "COLL", "SPLIT") for op in ("WRITE", "READ"))
    rows = (
        Counts("MPI-IO", "write", 0, SHARED, calls=calls, bytes=100 * KIB * calls, time_s=80),
        Counts("POSIX", "write", 0, SHARED, calls=pieces, outermost=False, sizes=((1024, pieces),)),
    )
    findings = found(rows, MPI_IO=Table(names, ((0, SHARED, calls, 0, 0, 0, 0, 0),)))
    assert ("independent-shared-file" in findings) is is_found


@pytest.mark.parametrize("name", ["/tmp/ompi.node.28751/jf.29186/1/out.sm", "<STDOUT>", "/out"])
def test_files_that_are_not_the_programs_accuse_nobody(name: str) -> None:
    """A rank writes 20 MiB through a stream, and in small calls, 30 s each."""
    rows = (
        Counts("STDIO", "write", 0, 0, calls=20_000, bytes=20 * MIB, time_s=30),
        Counts("POSIX", "write", 0, 0, calls=20_000, bytes=20 * MIB, time_s=30, sizes=((1024, 20_000),)),
    )
    findings = counters.find(Counted("Darshan", "log", 1, (name,), rows), WALL_S).findings
    assert {one.code for one in findings} == ({"stdio-data", "small-requests"} if name == "/out" else set())
