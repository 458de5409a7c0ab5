"""Logs of Darshan 2, written here: places of counters are of another reader's list, not of the one under test."""

from __future__ import annotations

import bz2
import gzip
import random
import struct
from pathlib import Path

import pytest
from ioweir.errors import IoweirError
from ioweir.imports import darshan2
from ioweir.imports.run import import_log
from ioweir.report.figures import build
from ioweir.report.model import Data, Report
from ioweir.report.run_findings import findings_of
from ioweir.trace import load

COUNTERS, SECONDS = 144, 18
COLL_WRITES, NB_READS, SYNCS, POSIX_READS, POSIX_WRITES, POSIX_OPENS, FWRITES, FOPENS = 5, 8, 10, 11, 12, 13, 18, 19
VIEWS, BYTES_READ, BYTES_WRITTEN, SIZE_READ_100, SIZE_WRITE_1M, SIZE_WRITE_AGG_4M = 45, 47, 48, 63, 77, 98
WRITE_START, WRITE_END, POSIX_READ_S, POSIX_WRITE_S, MPI_WRITE_S = 2, 5, 6, 7, 11
MIB = 1 << 20


def record(order: str, file: int, rank: int, name: bytes, counters: dict[int, int], times: dict[int, float]) -> bytes:
    """One of a file and a rank."""
    numbers = [counters.get(i, 0) for i in range(COUNTERS)]
    seconds = [times.get(i, 0.0) for i in range(SECONDS)]
    return struct.pack(f"{order}Qq16s{COUNTERS}q{SECONDS}d", file, rank, name, *numbers, *seconds)


def log_of(order: str, records: list[bytes], version: bytes = b"2.05", magic: int = 6567223) -> bytes:
    """A whole log, not compressed."""
    job = struct.pack(f"{order}8sqqqqqq", version, magic, 1000, 1353000000, 1353000099, 4, 77) + bytes(1024)
    words = b"/home/somebody/a.out -n 3\n15\text4\t/\n"
    return (job + words).ljust(4096, b"\0") + b"".join(records)


def sample(order: str) -> bytes:
    """A file that four ranks write through MPI-IO, one that a rank reads, one by stdio."""
    return log_of(
        order,
        [
            record(
                order, 11, -1, b"eckpoint.000001",
                {COLL_WRITES: 8, VIEWS: 4, SYNCS: 4, POSIX_WRITES: 24, POSIX_OPENS: 4, BYTES_WRITTEN: 48 * MIB,
                 SIZE_WRITE_1M: 24, SIZE_WRITE_AGG_4M: 8},
                {POSIX_WRITE_S: 12.5, MPI_WRITE_S: 20.25, WRITE_START: 1.0, WRITE_END: 9.0},
            ),
            record(
                order, 12, 2, b"t/input.000.dat", {POSIX_READS: 5, POSIX_OPENS: 1, BYTES_READ: 1000, SIZE_READ_100: 5},
                {POSIX_READ_S: 0.5},
            ),
            record(
                order, 13, 0, b"run/output.text", {FWRITES: 7, FOPENS: 1, BYTES_WRITTEN: 700}, {POSIX_WRITE_S: 0.25}
            ),
        ],
    )  # fmt: skip


def moved(report: Report, layer: str, operation: str) -> Data:
    """Figures of an operation that moves bytes."""
    figures = report.layers[layer][operation]
    assert isinstance(figures, Data)
    return figures


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress])
def test_figures_are_those_of_the_log(tmp_path: Path, order: str, pack: type) -> None:
    path = tmp_path / "old.darshan.gz"
    path.write_bytes(pack(sample(order)))
    made = import_log(path, tmp_path / "out")
    assert (made.tool, made.ranks, made.files, made.partial) == ("Darshan 2.05", 4, 3, [])
    trace = load(tmp_path / "out")
    report = build(trace)
    written, read = moved(report, "POSIX", "write"), moved(report, "POSIX", "read")
    assert (written.calls, written.bytes) == (24, 48 * MIB)
    assert (read.calls, read.bytes) == (5, 1000)
    assert (moved(report, "STDIO", "write").calls, moved(report, "STDIO", "write").bytes) == (7, 700)
    of_mpi = report.layers["MPI-IO"]
    assert (of_mpi["write"].calls, of_mpi["view"].calls, of_mpi["sync"].calls) == (8, 4, 4)
    assert written.time_s == pytest.approx(12.5)
    assert of_mpi["write"].time_s == pytest.approx(20.25)
    assert {Path(row.path).name for row in report.files} == {"...eckpoint.000001", "input.000.dat", "output.text"}
    found = findings_of(trace, report)
    assert any("MPI-IO's calls moved" in line for line in made.unseen)
    assert all("last 15 bytes" in " ".join(one.unseen) for one in found.findings)


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    cases = {
        "2.02": (gzip.compress(log_of("<", [], version=b"2.02")), "format 2.02"),
        "magic": (gzip.compress(log_of("<", [], magic=5)), "no log of Darshan 2"),
        "other": (gzip.compress(b"something else" * 1000), "no log of Darshan 2"),
        "short": (gzip.compress(sample("<")[:100]), "no log of Darshan 2"),
        "cut head": (gzip.compress(sample("<"))[:12], "no log of Darshan 2"),
    }
    for name, (data, words) in cases.items():
        path = tmp_path / name
        path.write_bytes(data)
        with pytest.raises(IoweirError, match=words):
            import_log(path, tmp_path / f"out-{name}")
        assert not (tmp_path / f"out-{name}").exists()


def test_a_log_that_is_cut_off_is_partial(tmp_path: Path) -> None:
    whole = gzip.compress(sample("<"), compresslevel=0)
    path = tmp_path / "cut"
    path.write_bytes(whole[: 4096 + 1328 * 2])
    made = import_log(path, tmp_path / "out")
    assert made.files == 1
    assert made.partial
    assert build(load(tmp_path / "out")).partial


def test_wild_numbers_harm_nobody(tmp_path: Path) -> None:
    dice = random.Random(2)
    for number in range(20):
        records = [struct.pack("<Qq16s", dice.getrandbits(64), dice.choice([-1, 0, 3, 1 << 40]), dice.randbytes(16))
                   + dice.randbytes(8 * (COUNTERS + SECONDS)) for _ in range(6)]  # fmt: skip
        path = tmp_path / f"wild{number}"
        path.write_bytes(bz2.compress(log_of("<", records)))
        import_log(path, tmp_path / f"out{number}")
        trace = load(tmp_path / f"out{number}")
        assert (trace.damage, trace.counted is None) == ((), False)
        findings_of(trace, build(trace))


def test_what_a_job_cannot_have_had_is_said(tmp_path: Path) -> None:
    """Numbers that are put right are no figures of the log: nobody shall take them for such."""
    one = record("<", 11, 2**50, b"x", {POSIX_WRITES: 3}, {})
    beyond = record("<", 12, 9, b"y", {POSIX_WRITES: -7, POSIX_OPENS: 1, BYTES_WRITTEN: 5}, {POSIX_WRITE_S: -4.0})
    log = log_of("<", [one, beyond])
    ranks_at, end_at = 8 + 4 * 8, 8 + 3 * 8
    path = tmp_path / "odd"
    path.write_bytes(gzip.compress(log))
    made = import_log(path, tmp_path / "out")
    assert made.partial == [
        "left out: 1 record of ranks that cannot be",
        "1 record of ranks that a job of 4 ranks has not",
    ]
    assert made.unseen[-1].startswith("negative or too large: 2 values of the log")
    assert made.unseen[-1].endswith("the first: POSIX_WRITES -7")
    for at, value, said in (
        (ranks_at, 0, "the log says 0 ranks, which cannot be: it is read as one of 1"),
        (ranks_at, 1 << 60, f"the log says {1 << 60:,} ranks, which cannot be: it is read as one of 16,777,216"),
        (end_at, 1352999999, "the log says that the job ran for -1 s, which cannot be: it is taken as not known"),
    ):
        data = bytearray(log_of("<", []))
        struct.pack_into("<q", data, at, value)
        path.write_bytes(gzip.compress(bytes(data)))
        made = import_log(path, tmp_path / f"out{at}-{value}")
        assert made.partial == [said]
        assert build(load(tmp_path / f"out{at}-{value}")).partial


def test_a_bomb_is_left_out_beyond_the_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(darshan2, "MOST_BYTES", 4 << 20)
    path = tmp_path / "bomb"
    path.write_bytes(gzip.compress(log_of("<", []) + bytes(64 << 20)))
    made = import_log(path, tmp_path / "out")
    assert any("the rest is left out" in line for line in made.partial)
