"""Which of several explanations leads, and what is doubted, on small traces."""

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


def ranks(count: int) -> tuple[Builder, list[int]]:
    """A run of so many ranks."""
    builder = Builder()
    return builder, [builder.rank(rank, count) for rank in range(count)]


def found(builder: Builder, **run: object) -> list[Finding]:
    """What is found in a run of 100 s with this in its run.json."""
    return ranking.find(builder.trace(run=run), 100.0, LAYERS).findings


@pytest.mark.parametrize(
    ("processors", "load", "crowded"),
    [(4, 0.0, False), (4, 0.9, False), (4, 1.0, True), (3, 0.0, True), (8, 5.0, True)],
)
def test_ranks_share_processors_where_they_and_the_load_are_more(processors: int, load: float, crowded: bool) -> None:
    builder, _ = ranks(4)
    known = {"host": "node", "processors": processors, "load_before": load}
    assert Columns(builder.trace(run=known), 100.0, LAYERS).crowded is crowded
    assert not Columns(builder.trace(run=known | {"host": "other"}), 100.0, LAYERS).crowded
    assert not Columns(builder.trace(), 100.0, LAYERS).crowded


def test_an_exchange_on_shared_processors_is_doubted() -> None:
    builder, both = ranks(2)
    for rank in both:
        write = Call(rank, "MPI_File_write_at_all", 0, 10, "/dump", 8 * MIB)
        builder.add(write, *([write.inside("pwrite", 8, 10, 16 * MIB, offset=0)] if rank == both[0] else []))
    (alone,) = found(builder, host="node", processors=4)
    (shared,) = found(builder, host="node", processors=1)
    assert (alone.code, alone.severity) == ("exchange-dominates", "medium")
    assert (shared.code, shared.severity) == ("exchange-dominates", "low")
    assert shared.unseen[0].startswith("exchange-dominates: ranks share processors")


@pytest.mark.parametrize(("order", "severity"), [([0, 1, 2], "high"), ([0, 1, 2, 1, 0, 2, 2, 0, 1, 0, 2, 1], "low")])
def test_turns_without_an_order_are_doubted_on_shared_processors(order: list[int], severity: str) -> None:
    """48 writes of 1 s, one at a time."""
    builder, three = ranks(3)
    for at in range(48):
        builder.add(Call(three[order[at % len(order)]], "pwrite", at, at + 1, "/out", MIB, offset=at * MIB))
    (turns,) = [row for row in found(builder, host="node", processors=1) if row.code == "serialised-writes"]
    assert turns.severity == severity


@pytest.mark.parametrize(("writing", "leader"), [(2, "no-overlap"), (8, "checkpoint-too-slow")])
def test_checkpoints_that_cannot_be_hidden_are_too_slow(writing: int, leader: str) -> None:
    """Nine checkpoints, one every 10 s: of 2 s, which pauses of 8 s can hide, or of 8 s, which those of 2 s cannot."""
    builder, both = ranks(2)
    for rank in both:
        for step in range(9):
            builder.add(Call(rank, "MPI_File_write_at", 10 * step, 10 * step + writing, "/c", 64 * MIB, offset=0))
    (first, *_) = found(builder)
    assert first.code == leader


def test_setting_a_size_is_no_opening_of_files() -> None:
    """Four ranks set the size of their own file 100 times, 0.1 s each."""
    builder, four = ranks(4)
    for rank in four:
        builder.add(Call(rank, "open", 0, 0.001, f"/own.{rank}"))
        for at in range(100):
            builder.add(
                Call(rank, "ftruncate", at * 0.9, at * 0.9 + 0.1, f"/own.{rank}", offset=at * MIB),
                Call(rank, "pwrite", at * 0.9 + 0.1, at * 0.9 + 0.1001, f"/own.{rank}", MIB, offset=at * MIB),
            )
    assert [row.code for row in found(builder)] == ["file-extension"]


def test_opening_a_file_again_and_again_leads_what_hdf5_notes_at_each_time() -> None:
    """Ten times an open of 1 s and a close of 2 s with small requests inside: 30 s, nine tenths of it to be saved.

    With as much again at most: there are 19 pauses of 1 s before these calls, and (27 + 17) x 1.27 is more.
    """
    builder, (rank,) = ranks(1)
    for step in range(10):
        start = 5.0 * step
        for name, at, length in (("H5Fopen", start, 1), ("H5Fclose", start + 2, 2)):
            call = Call(rank, name, at, at + length, "/f.h5")
            builder.add(call)
            for piece in range(4):
                begin = at + piece * length / 4
                builder.add(call.inside("pwrite", begin, begin + length / 4, 512, offset=piece * 9999))
    (first, *rest) = found(builder)
    assert first.code == "close-cost"
    assert (first.seconds, first.gain.high) == pytest.approx((30, 2 * 27))
    assert "hdf5-metadata-scattered" in first.chain
    assert not rest


def test_chunks_smaller_than_a_call_are_told_from_pieces_with_gaps() -> None:
    """Each of 8 calls writes 64 pieces of 4,104 B in 8 s: side by side they are chunks, with gaps small requests."""
    for gap, code in ((0, "hdf5-chunk-mismatch"), (512, "small-requests")):
        builder, (rank,) = ranks(1)
        for at in range(8):
            call = Call(rank, "H5Dwrite", 10 * at, 10 * at + 8, "/f.h5", 64 * 4104)
            builder.add(call)
            for piece in range(64):
                begin = 10 * at + piece / 8
                where = (at * 64 + piece) * (4104 + gap)
                builder.add(call.inside("pwrite", begin, begin + 0.12, 4104, offset=where, origin="application"))
        (first, *_) = found(builder)
        assert first.code == code
        assert first.seconds == pytest.approx(64)


@pytest.mark.parametrize(("long", "is_found"), [(40, False), (4, True)])
def test_beside_a_rank_that_writes_far_longer_few_writes_can_be_at_once(long: int, is_found: bool) -> None:
    """Rank 2 writes one second after the other. Ranks 0 and 1 write for 1 s, four times: the first two beside it.

    Of 48 s, 4 s are at once (8 %), but half of all that could be. Of 12 s in which nothing is at once, turns are found.
    """
    builder, three = ranks(3)
    for at in range(long):
        start = at if not is_found else 3 * at + 2
        builder.add(Call(three[2], "pwrite", start, start + 1, "/f.2", MIB, offset=at * MIB))
    for rank in three[:2]:
        for at in range(4):
            start = 3 * at + rank if is_found else (at * 9 + 3 * rank + 1 if at < 2 else long + 2 * at + rank)
            builder.add(Call(rank, "pwrite", start, start + 1, f"/f.{rank}", MIB, offset=at * MIB))
    turns = [row for row in found(builder) if row.code == "serialised-writes"]
    assert bool(turns) is is_found
    assert all("never two at a time" in row.summary for row in turns)


@pytest.mark.parametrize(("pieces", "computes", "is_found"), [(1, 0.0, True), (3, 0.0, True), (3, 5.0, False)])
def test_writes_that_are_waited_for_at_once_overlap_nothing(pieces: int, computes: float, is_found: bool) -> None:
    """Five steps: asynchronous writes of 0.1 s, a wait of 2 s right behind them or 5 s later, and a pause."""
    builder, both = ranks(2)
    for rank in both:
        for step in range(5):
            at = 15.0 * step
            for piece in range(pieces):
                place = (5 * piece + step) * 64 * MIB
                builder.add(Call(rank, "MPI_File_iwrite_at", at, at + 0.1, "/steps", 64 * MIB, offset=place))
                at += 0.1
            builder.add(Call(rank, "MPI_Wait (write)", at + computes, at + computes + 2, "/steps"))
    rows = [row for row in found(builder) if row.code == "no-overlap"]
    assert bool(rows) is is_found
    for row in rows:
        assert row.cause.startswith("The program starts writes in the background, but waits for them right away")
        assert any("not right behind the calls" in remedy.text for remedy in row.remedies)
