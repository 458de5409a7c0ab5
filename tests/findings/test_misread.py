"""Faults that were taken for others, or for none: seeks, unbuffered streams, O_SYNC, scratch files, broadcasts."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest
from forked import completed
from ioweir.base.spec_names import LAYERS
from ioweir.findings import counted as counters
from ioweir.findings import ranking
from ioweir.trace.counted import Counted, Counts
from traces import Builder, Call

if TYPE_CHECKING:
    from pathlib import Path

    from ioweir.findings.model import Finding

MIB = 1 << 20
WALL_S = 100.0


def found(builder: Builder, **run: object) -> dict[str, Finding]:
    """What is found in a run of 100 s, by code."""
    return {one.code: one for one in ranking.find(builder.trace(run=run), WALL_S, LAYERS).findings}


def figures(finding: Finding) -> dict[str, float]:
    """The evidence."""
    return {row.text: row.figure for row in finding.evidence}


def test_seeks_before_small_writes_cost_as_they_do_and_ask_no_metadata_server() -> None:
    """100 times: a seek of 0.1 s and a write of 0.2 s; and a seek with nothing behind it."""
    builder = Builder()
    rank = builder.rank(0, 1)
    for at in range(100):
        begin = 0.5 * at
        builder.add(Call(rank, "lseek", begin, begin + 0.1, "/records", offset=800 * at))
        builder.add(Call(rank, "write", begin + 0.2, begin + 0.4, "/records", 80, offset=800 * at))
    builder.add(Call(rank, "lseek", 60, 62, "/records", offset=0))
    findings = found(builder)
    assert set(findings) == {"small-requests"}
    assert findings["small-requests"].seconds == pytest.approx(30)
    assert figures(findings["small-requests"])["seeks right before them"] == 100


@pytest.mark.parametrize(("op", "is_storm"), [("seek", False), ("open", True)])
def test_seeks_that_a_log_has_counted_are_no_storm(op: str, is_storm: bool) -> None:
    """1,000 of them, as many as writes, and 20 s for all that is no data."""
    asked = (Counts("POSIX", op, 0, 0, calls=1000), Counts("POSIX", "meta", 0, 0, calls=1, time_s=20))
    made = Counted("Darshan", "log", 1, ("/out",), (*asked, Counts("POSIX", "write", 0, 0, calls=1000, bytes=80_000)))
    codes = [one.code for one in counters.find(made, WALL_S).findings]
    assert ("metadata-storm" in codes) is is_storm


@pytest.mark.parametrize("op", ["fwrite", "fread"])
def test_a_stream_that_seeks_before_each_record_gathers_nothing(op: str) -> None:
    """200 records of 100 B: far from 1 MiB, and no question to anybody."""
    builder = Builder()
    rank = builder.rank(0, 1)
    for at in range(200):
        begin = 0.3 * at
        builder.add(Call(rank, "fseek", begin, begin + 0.1, "/index"))
        builder.add(Call(rank, op, begin + 0.1, begin + 0.15, "/index", 100))
    findings = found(builder)
    assert set(findings) == {"stdio-data"}
    assert findings["stdio-data"].seconds == pytest.approx(30)
    assert ("index) once, at the end" in findings["stdio-data"].remedies[0].text) is (op == "fwrite")


@pytest.mark.parametrize(("first", "is_found"), [(0.01, True), (20.0, False)])
def test_a_stream_without_a_buffer_is_found_by_its_calls_that_are_all_as_long(first: float, is_found: bool) -> None:
    """500 reads of 8 B, 10 ms each; or the first one waits for the storage, and the others find it in the buffer."""
    builder = Builder()
    rank = builder.rank(0, 1)
    builder.add(Call(rank, "fread", 0, first, "/table", 8))
    for at in range(1, 500):
        begin = 20 + 0.02 * at
        builder.add(Call(rank, "fread", begin, begin + (0.01 if is_found else 1e-5), "/table", 8))
    findings = found(builder)
    assert ("stdio-data" in findings) is is_found
    if is_found:
        assert "_IONBF" in findings["stdio-data"].remedies[0].text


@pytest.mark.parametrize(("size", "number"), [(4096, 100), (256 << 10, 100), (128 * MIB, 100), (4096, 3)])
@pytest.mark.parametrize("opened", [-1, -2])
def test_writes_that_wait_for_the_disk_because_of_how_the_file_was_opened(size: int, number: int, opened: int) -> None:
    """Writes of 0.3 s each: as long as they are because of O_SYNC, whatever their size up to 64 MiB."""
    builder = Builder()
    rank = builder.rank(0, 1)
    builder.add(Call(rank, "open", 0, 0.001, "/journal", offset=opened))
    for at in range(number):
        builder.add(Call(rank, "write", at + 0.1, at + 0.4, "/journal", size, offset=at * size))
    findings = found(builder)
    assert ("sync-cost" in findings) is (opened == -2 and size <= 64 * MIB and number >= 4)
    if "sync-cost" in findings:
        leader = findings["sync-cost"]
        assert leader.seconds == pytest.approx(30)
        assert (leader.gain.low, leader.gain.high) == pytest.approx((7.5, 30))
        assert leader.chain == (["small-requests"] if size == 4096 else [])


def test_what_all_read_in_a_row_takes_one_broadcast_and_not_one_for_each_read() -> None:
    """10,000 reads of 512 B, one right after the other, by 4 ranks on one processor: 2 meetings of 4 turns of 10 ms."""
    builder = Builder()
    for rank in [builder.rank(number, 4) for number in range(4)]:
        for at in range(10_000):
            begin = 2e-4 * at
            builder.add(Call(rank, "pread", begin, begin + 1e-4, "/table", 512, offset=512 * at))
    finding = found(builder, host="node", processors=1)["same-read-by-all"]
    # 2 % of the run at least: how much runs differ.
    assert finding.gain.may_cost == pytest.approx(2)


@pytest.mark.parametrize(("message", "severity"), [("MPI_Bcast", "low"), ("MPI_Scatter", "high")])
def test_reading_on_one_rank_what_all_get_is_in_doubt(message: str, severity: str) -> None:
    """Rank 0 reads for 20 s and passes it on for 20 s."""
    builder = Builder()
    first, *others = (builder.rank(number, 4) for number in range(4))
    builder.add(Call(first, "pread", 0, 20, "/table", 64 * MIB, offset=0), Call(first, message, 20, 40))
    builder.add(*(Call(other, message, 0, 40) for other in others))
    finding = found(builder)["rank0-io"]
    assert finding.severity == severity
    assert ("broadcast, as it is now" in finding.remedies[0].text) is (message == "MPI_Bcast")


@pytest.mark.parametrize("is_found", [False, True], ids=["at once", "when the next one is complete"])
def test_scratch_files_are_no_files_of_a_rank_each(is_found: bool) -> None:
    """Each of 2 ranks makes 100 files and removes each, before it makes the next one or after that."""
    builder = Builder()
    for number in range(2):
        rank = builder.rank(number, 2)
        for at in range(100):
            path, older = f"/tmp.{number}.{at}", f"/tmp.{number}.{at - 1}"
            builder.add(Call(rank, "open", at / 2, at / 2 + 0.1, path))
            builder.add(Call(rank, "write", at / 2 + 0.1, at / 2 + 0.11, path, 100, offset=0))
            builder.add(Call(rank, "close", at / 2 + 0.2, at / 2 + 0.21, path))
            builder.add(Call(rank, "unlink", at / 2 + 0.3, at / 2 + 0.31, older if is_found else path))
    findings = found(builder)
    assert ("file-per-process" in findings) is is_found
    if not is_found:
        storm = findings["metadata-storm"]
        assert figures(storm)["files that are made and removed again"] == 200
        assert "keep in memory" in storm.remedies[0].text


@pytest.mark.parametrize(("locked", "words"), [(0, "locks the whole file"), (4096, "the ranks' parts overlap")])
def test_a_lock_of_a_whole_file_is_none_of_parts(locked: int, words: str) -> None:
    builder = Builder()
    for rank in [builder.rank(number, 2) for number in range(2)]:
        builder.add(*(Call(rank, "flock_lock", at, at + 0.5, "/log", locked) for at in range(10)))
    finding = found(builder)["lock-wait"]
    assert words in finding.cause
    assert ("median bytes locked" in figures(finding)) is (locked > 0)


@pytest.mark.parametrize("lost", [False, True])
def test_findings_of_a_trace_that_is_not_whole_say_so(tmp_path: Path, lost: bool) -> None:
    """Two ranks on two nodes, of which one node's file may be lost: "nothing to gain" is of the other only."""
    builder = Builder()
    for number in range(2):
        rank = builder.rank(number, 2, host=f"n{number}")
        builder.add(Call(rank, "pwrite", 1, 1.1, "/out", MIB, offset=number * MIB))
    builder.write(tmp_path)
    if lost:
        (tmp_path / "node-n1.iowt").unlink()
    command = [sys.executable, "-m", "ioweir", "findings", str(tmp_path)]
    text, rows = completed(command), completed([*command, "--json"])
    assert [row["code"] for row in json.loads(rows.stdout)] == []
    for said in (text.stdout, rows.stderr):
        assert ("PARTIAL" in said) is lost
        assert ("left no trace: rank 1 of 2" in said) is lost


@pytest.mark.parametrize(
    ("sizes", "words"), [((16, 40), "200 writes of 16 B in the median: "), ((16, 16), "200 writes of 16 B each: ")]
)
def test_of_writes_that_differ_none_is_called_of_a_size_that_no_write_has(sizes: tuple[int, int], words: str) -> None:
    """The median of as many writes of 16 B as of 40 B is neither 28 B, nor the size of each."""
    builder = Builder()
    rank = builder.rank(0, 1)
    place = 0
    for at in range(200):
        builder.add(Call(rank, "pwrite", at * 0.1, at * 0.1 + 0.09, "/log", sizes[at % 2], offset=place))
        place += sizes[at % 2]
    finding = found(builder)["small-requests"]
    assert finding.summary.startswith(words)
    assert ("for every 16 B" in finding.cause) is (sizes == (16, 16))


def test_what_is_stored_into_a_map_is_not_said_to_be_nothing() -> None:
    builder = Builder()
    rank = builder.rank(0, 1)
    builder.add(*(Call(rank, "msync", at, at + 0.5, "/map", 16384, offset=16384 * at) for at in range(20)))
    finding = found(builder)["sync-cost"]
    assert finding.summary.endswith("(msync), each for 16.00 KiB of a mapped file")
    assert "written per sync" not in figures(finding)


def test_a_share_that_is_not_all_is_not_rounded_to_all() -> None:
    """64 MiB by one rank, and 15 B by the other."""
    builder = Builder()
    first, second = [builder.rank(number, 2) for number in range(2)]
    builder.add(*(Call(first, "pwrite", at, at + 0.9, "/out", 16 * MIB, offset=16 * MIB * at) for at in range(4)))
    builder.add(Call(second, "pwrite", 5, 5.1, "/note", 15, offset=0))
    assert "rank 0 writes over 99.9 % of all bytes" in found(builder)["rank0-io"].summary
