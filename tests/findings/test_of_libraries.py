"""What HDF5, netCDF and MPI libraries add is not said of the program, and what is the program's is not said of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from ioweir.findings import ranking
from ioweir.findings.columns import Columns
from ioweir.findings.rules.requests import noncontiguous_memory
from ioweir.findings.rules.waiting import locks
from ioweir.trace import LAYERS
from ioweir.trace.reader import Access, Datatype
from traces import Builder, Call

if TYPE_CHECKING:
    from ioweir.findings.model import Finding

KIB = 1 << 10
MIB = 1 << 20


def found(builder: Builder) -> dict[str, Finding]:
    """What is found in a run of 100 s, by code."""
    return {finding.code: finding for finding in ranking.find(builder.trace(), 100.0, LAYERS).findings}


def said(finding: Finding) -> str:
    """Cause and remedies."""
    return " ".join([finding.cause, *(remedy.text for remedy in finding.remedies)])


def chunked(builder: Builder, op: str, calls: int, asked: int, requests: int, each: int) -> None:
    """Calls of 1 s on a data set, each in so many requests side by side, which take half of it."""
    rank = builder.rank(0, 1)
    for at in range(calls):
        whole = Call(rank, f"H5D{op}", at, at + 1, "/data.h5", asked)
        builder.add(whole)
        for number in range(requests):
            begin = at + 0.5 * number / requests
            place = each * (number if op == "read" else at * requests + number)
            builder.add(whole.inside(f"p{op}", begin, begin + 0.5 / requests, each, offset=place, origin="application"))


@pytest.mark.parametrize("op", ["write", "read"])
def test_large_chunks_that_compression_makes_small_are_no_small_chunks(op: str) -> None:
    """16 MiB a call in 64 chunks of 256 KiB, of which 20 KiB each reach the file."""
    builder = Builder()
    chunked(builder, op, 8, 16 * MIB, 64, 20 * KIB)
    assert "hdf5-chunk-mismatch" not in found(builder)


@pytest.mark.parametrize(("each", "seconds"), [(16 * KIB, 8.0), (4 * KIB, 4.0)])
def test_of_small_chunks_that_are_compressed_the_requests_are_the_price(each: int, seconds: float) -> None:
    """8 calls of 1 s, each of 64 chunks of 16 KiB; compressed to 4 KiB, the half that the requests take counts."""
    builder = Builder()
    chunked(builder, "write", 8, MIB, 64, each)
    finding = found(builder)["hdf5-chunk-mismatch"]
    assert finding.seconds == pytest.approx(seconds)
    assert "in chunks of 16.00 KiB" in finding.cause
    assert ("(4.00 KiB in the file)" in finding.cause) is (each == 4 * KIB)


def test_whole_chunks_for_parts_of_them_are_not_called_small() -> None:
    """For 512 KiB a call HDF5 reads 64 compressed chunks of 40,000 B."""
    builder = Builder()
    chunked(builder, "read", 8, 512 * KIB, 64, 40_000)
    finding = found(builder)["hdf5-chunk-mismatch"]
    assert "whole chunks for parts of them" in finding.summary
    assert finding.seconds == pytest.approx(8 * (1 - 512 * KIB / (64 * 40_000)))


@pytest.mark.parametrize("compressed", [False, True])
def test_compressing_is_no_price_of_small_requests(compressed: bool) -> None:
    """100 calls of 0.5 s, each with requests of 0.1 s for all of 20,000 B, or for 2,000 B that are left of them."""
    builder = Builder()
    rank = builder.rank(0, 1)
    for at in range(100):
        whole = Call(rank, "H5Dwrite", at, at + 0.5, "/data.h5", 20_000)
        builder.add(whole)
        each = 2_000 if compressed else 20_000
        builder.add(whole.inside("pwrite", at, at + 0.1, each, offset=30_000 * at, origin="application"))
    assert found(builder)["small-requests"].seconds == pytest.approx(10 if compressed else 50)


@pytest.mark.parametrize("pieces", [1, 10])
def test_small_calls_of_the_program_are_not_called_the_librarys_pieces(pieces: int) -> None:
    """100 calls of netCDF, each of which becomes one request, or ten."""
    builder = Builder()
    rank = builder.rank(0, 1)
    for at in range(100):
        whole = Call(rank, "nc_put_vara", at, at + 0.5, "/cells.nc", 8 * pieces)
        builder.add(whole)
        for number in range(pieces):
            begin = at + 0.05 * number
            place = 1000 * (at * pieces + number)
            builder.add(whole.inside("pwrite", begin, begin + 0.05, 8, offset=place, origin="application"))
    words = said(found(builder)["small-requests"])
    assert ("lies in the file in many pieces" in words) is (pieces > 1)
    assert ("moves 8 B at a time" in words) is (pieces == 1)
    assert ("a block of the array" in words) is (pieces == 1)


@pytest.mark.parametrize(
    ("name", "reads", "words", "hint"),
    [
        ("MPI_File_write_shared", False, "the file's shared pointer", False),
        ("MPI_File_write_at", True, "locks stretches of the file", True),
        ("MPI_File_write_at", False, "MPI_File_set_atomicity", False),
    ],
)
def test_locks_of_the_mpi_library_are_mended_by_what_takes_them(name: str, reads: bool, words: str, hint: bool) -> None:
    """Two ranks make 10 calls, each with 0.5 s of waiting for a lock: of the pointer's file, or of the file."""
    builder = Builder()
    for rank in [builder.rank(number, 2) for number in range(2)]:
        for at in range(10):
            write = Call(rank, name, at, at + 0.9, "/events", 100)
            builder.add(write)
            locked = "/.events.shfp" if "shared" in name else "/events"
            builder.add(write.inside("fcntl_lock", at, at + 0.5, 8, path=locked))
            if reads:
                builder.add(write.inside("pread", at + 0.5, at + 0.6, 8192, offset=8192 * (2 * at + rank)))
            builder.add(write.inside("pwrite", at + 0.6, at + 0.9, 8192, offset=8192 * (2 * at + rank)))
    trace = builder.trace()
    findings = ranking.find(trace, 100.0, LAYERS).findings
    chosen = [row for row in findings if row.code in ("lock-wait", "data-sieving")]
    assert chosen
    run = Columns(trace, 100.0, LAYERS)
    (lock,) = locks.WAIT.find(run)
    text = " ".join([lock.cause, *(remedy.text for remedy in lock.remedies)])
    assert words in text
    assert any(remedy.hints for remedy in lock.remedies) is hint


@pytest.mark.parametrize(("name", "each", "is_found"), [
    ("H5Dcreate2", MIB, True), ("H5Dset_extent", MIB, True), ("H5Dcreate2", 2 * KIB, False), ("H5Dwrite", MIB, False),
])  # fmt: skip
def test_data_sets_that_are_filled_before_they_are_written(name: str, each: int, is_found: bool) -> None:
    """Two ranks make 8 data sets, 1 s each, in which HDF5 writes; and write them, 2 s each."""
    builder = Builder()
    for rank in [builder.rank(number, 2) for number in range(2)]:
        for at in range(8):
            for start, call in ((4 * at, name), (4 * at + 1.5, "H5Dwrite")):
                place = (2 * at + rank) * MIB
                outer = Call(rank, call, start, start + (1 if call == name else 2), "/plot.h5", MIB)
                inner = outer.inside("MPI_File_write_at", start, start + 0.8, each, origin="application")
                builder.add(outer, inner, inner.inside("pwrite", start, start + 0.7, each, offset=place))
    rows = found(builder)
    assert ("hdf5-fill-values" in rows) is is_found
    if is_found:
        finding = rows["hdf5-fill-values"]
        assert finding.seconds == pytest.approx(8)
        assert finding.summary.startswith("16.00 MiB of fill values are written by 16 calls")
        assert any('fill = "never"' in remedy.plan for remedy in finding.remedies)


@pytest.mark.parametrize("root", ["", "H5Dwrite", "H5Dcreate2"])
def test_pieces_in_memory_are_said_of_who_passes_them(root: str) -> None:
    """One call of 50 s without any at the storage, of doubles with gaps between them."""
    builder = Builder()
    rank = builder.rank(0, 1)
    around = Call(rank, root, 0, 50, "/out", 16 * MIB) if root else None
    if around:
        builder.add(around)
        write = around.inside("MPI_File_write_at", 0, 50, 16 * MIB, origin="application")
    else:
        write = Call(rank, "MPI_File_write_at", 0, 50, "/out", 16 * MIB)
    builder.add(write, write.inside("pwrite", 49, 50, 16 * MIB, offset=0))
    double = Datatype(constructor="named", name="MPI_DOUBLE", size=8, extent=8)
    spaced = Datatype(constructor="resized", size=8, extent=16, types=(1,))
    accesses = tuple(Access(process=0, path=0, handle=0, view=None, memory=kind, ranks=1) for kind in (0, 2))
    trace = builder.trace()
    vars(trace).update(datatypes=(Datatype(), double, spaced), accesses=accesses)
    run = Columns(trace, 100.0, LAYERS)
    run.access = np.where(run.is_layer("MPI-IO"), 1, 0)
    rows = list(noncontiguous_memory.RULE.find(run))
    assert len(rows) == (0 if root == "H5Dcreate2" else 1)
    for row in rows:
        assert row.cause.startswith("HDF5 passes" if root else "The program passes")
        assert ("chunk" in row.remedies[0].text) is bool(root)


@pytest.mark.parametrize(
    ("calls", "each", "tiny"), [(100, 2 * KIB, True), (100, 128 * KIB, False), (10, 2 * KIB, False)]
)
def test_many_tiny_collective_calls_are_told_to_be_put_together(calls: int, each: int, tiny: bool) -> None:
    """Two ranks call together; of each call's 0.8 s, 0.05 s are at the storage."""
    builder = Builder()
    both = [builder.rank(number, 2) for number in range(2)]
    for at in range(calls):
        for rank in both:
            write = Call(rank, "MPI_File_write_at_all", at, at + 0.8, "/record.nc", each)
            builder.add(write)
            if rank == 0:
                builder.add(write.inside("pwrite", at + 0.7, at + 0.75, 2 * each, offset=2 * each * at))
    finding = found(builder)["exchange-dominates"]
    assert ("ncmpi_wait_all" in said(finding)) is tiny
    assert ("all ranks agree" in finding.cause) is tiny
    (number,) = [row.figure for row in finding.evidence if row.text == "collective writes"]
    assert number == 2 * calls
