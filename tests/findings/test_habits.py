"""Faults in shapes that mislead: pieces behind one call, lines of small files, flushed streams, collective opens."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from ioweir.findings import ranking
from ioweir.trace import LAYERS
from planted import cases
from traces import Builder, Call

if TYPE_CHECKING:
    from ioweir.findings.model import Finding

MIB = 1 << 20


def found(builder: Builder, wall_s: float = 100.0) -> list[Finding]:
    """What is found in a run of so long."""
    return ranking.find(builder.trace(), wall_s, LAYERS).findings


def figure(finding: Finding, text: str) -> float:
    """A figure of the evidence."""
    (figure,) = [row.figure for row in finding.evidence if row.text == text]
    return figure


def test_no_two_programs_have_one_name() -> None:
    titles = [(case.code, case.name, case.only) for case in cases()]
    assert len(set(titles)) == len(titles)


def through_a_view(ranks: int, pieces: int) -> Builder:
    """Each rank makes two independent calls of 128 KiB, 10 s each, which end in pieces with gaps between."""
    builder = Builder()
    for rank in [builder.rank(number, ranks) for number in range(ranks)]:
        for at in range(2):
            call = Call(rank, "MPI_File_write", 20 * at, 20 * at + 10, "/out", 128 << 10)
            builder.add(call)
            for k in range(pieces):
                begin, place = 20 * at + 10 * k / pieces, ((at * pieces + k) * 2 * ranks + rank) * (128 << 10) // pieces
                builder.add(call.inside("pwrite", begin, begin + 10 / pieces, (128 << 10) // pieces, offset=place))
    return builder


@pytest.mark.parametrize(("ranks", "code"), [(1, "small-requests"), (2, "independent-shared-file")])
def test_one_call_that_ends_in_many_pieces_is_as_many_requests(ranks: int, code: str) -> None:
    (finding, *_) = found(through_a_view(ranks, 256))
    assert finding.code == code
    assert finding.seconds == pytest.approx(20)
    if ranks == 1:
        assert finding.cause.startswith("The program calls MPI-IO 2 times, and MPI-IO makes 512 small requests of that")
        assert "MPI_File_write_all" in finding.remedies[0].text
    else:
        assert figure(finding, "POSIX writes that they made") == 1024


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_call_that_ends_in_few_pieces_is_none_of_these(ranks: int) -> None:
    codes = [finding.code for finding in found(through_a_view(ranks, 8))]
    assert "small-requests" not in codes
    assert "independent-shared-file" not in codes


@pytest.mark.parametrize(("line", "is_storm"), [(16, True), (4096, False)])
def test_lines_of_a_small_file_are_no_requests(line: int, is_storm: bool) -> None:
    """100 times: open and close, 0.1 s each, and ten lines. Of 16 B they are 4 requests in all, of 4 KiB 1,000."""
    builder = Builder()
    rank = builder.rank(0, 1)
    for at in range(100):
        builder.add(Call(rank, "fopen", at, at + 0.1, "/settings"))
        for k in range(10):
            begin = at + 0.2 + k / 100
            builder.add(Call(rank, "fgets", begin, begin + 0.001, "/settings", line))
        builder.add(Call(rank, "fclose", at + 0.5, at + 0.6, "/settings"))
    assert ("metadata-storm" in [finding.code for finding in found(builder)]) is is_storm


@pytest.mark.parametrize(("files", "is_storm"), [(1, True), (40, False)])
def test_a_file_that_all_open_together_again_and_again_is_a_storm(files: int, is_storm: bool) -> None:
    """40 times an open of 0.2 s and a close of 0.1 s, of one file or of one for each time."""
    builder = Builder()
    for rank in [builder.rank(number, 2) for number in range(2)]:
        for at in range(40):
            path = f"/out.{at % files}"
            builder.add(
                Call(rank, "MPI_File_open", 2 * at, 2 * at + 0.2, path),
                Call(rank, "MPI_File_write_at", 2 * at + 0.5, 2 * at + 0.6, path, MIB, offset=rank * MIB),
                Call(rank, "MPI_File_close", 2 * at + 1, 2 * at + 1.1, path),
            )
    storms = [finding for finding in found(builder) if finding.code == "metadata-storm"]
    assert [finding.seconds for finding in storms] == ([pytest.approx(40 * 0.3)] if is_storm else [])


@pytest.mark.parametrize(("every", "expected"), [(1, 0.2 + 40), (10, None)])
def test_a_stream_that_is_flushed_gathers_nothing(every: int, expected: float | None) -> None:
    """200 lines of 100 B, 1 ms each, and flushes of 0.2 s: far from 1 MiB."""
    builder = Builder()
    rank = builder.rank(0, 1)
    for at in range(200):
        begin = 0.4 * at
        builder.add(Call(rank, "fprintf", begin + 0.099, begin + 0.1, "/report", 100))
        if at % every == 0:
            builder.add(Call(rank, "fflush", begin + 0.1, begin + 0.3, "/report"))
    streams = [finding for finding in found(builder) if finding.code == "stdio-data"]
    assert [finding.seconds for finding in streams] == ([pytest.approx(expected)] if expected else [])
    if streams:
        assert streams[0].summary.endswith("(200 writes of 100 B), and are flushed 200 times")
