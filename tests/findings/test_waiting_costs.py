"""What waiting in MPI adds to findings, what passing bytes may cost, and whose files are left out, on small traces."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from ioweir.findings import ranking, text
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


def found(builder: Builder, layers: tuple[str, ...] = LAYERS, **run: object) -> dict[str, Finding]:
    """What is found in a run of 100 s, by code."""
    return {one.code: one for one in ranking.find(builder.trace(run=run), 100.0, layers).findings}


def test_what_a_rank_waits_for_what_it_writes_is_its_price() -> None:
    """Rank 0 gathers for 3 s and writes for 2 s, three times; a barrier with no write behind counts nothing."""
    builder, (first, *others) = ranks(4)
    for at in (0, 10, 20):
        builder.add(Call(first, "MPI_Gather", at, at + 3), Call(first, "pwrite", at + 3, at + 5, "/out", MIB, offset=0))
        builder.add(*(Call(other, "MPI_Gather", at, at + 3) for other in others))
    builder.add(*(Call(rank, "MPI_Barrier", 30, 39) for rank in (first, *others)))
    finding = found(builder)["rank0-io"]
    assert (finding.seconds, finding.gain.high) == pytest.approx((15, 15 - 6 / 4))


@pytest.mark.parametrize(("waits", "expected"), [(True, 40), (False, None)])
def test_ranks_with_pauses_take_turns_only_if_they_wait(waits: bool, expected: float | None) -> None:
    """16 writes of 2 s, 0.5 s after each other: turns where the next one waits for 2.5 s, else chance."""
    builder, both = ranks(2)
    for turn in range(16):
        begin = 2.5 * turn
        if waits and turn:
            builder.add(Call(both[turn % 2], "MPI_Recv", begin - 2.5, begin))
        builder.add(Call(both[turn % 2], "pwrite", begin, begin + 2, "/out", MIB, offset=turn * MIB))
    codes = found(builder)
    assert ("serialised-writes" in codes) is waits
    if expected:
        assert codes["serialised-writes"].seconds == pytest.approx(32 + 15 * 0.5)
    # Where waiting was not recorded, turns are turns.
    assert "serialised-writes" in found(builder, tuple(layer for layer in LAYERS if layer != "MPI"))


def test_a_size_that_all_set_costs_that_they_meet() -> None:
    """One rank comes 3 s later to each of 4 calls of which 1 s is work: 4 s and 1 s, in the mean 2.5 s."""
    builder, (first, second) = ranks(2)
    for at in (0, 10, 20, 30):
        builder.add(Call(first, "MPI_File_set_size", at, at + 4, "/out"))
        builder.add(Call(second, "MPI_File_set_size", at + 3, at + 4, "/out"))
    assert found(builder)["file-extension"].seconds == pytest.approx(10)


def pieces(seconds: float) -> Builder:
    """Four ranks deal 64 MiB in pieces of 64 KiB, each by a call of so many seconds."""
    builder, four = ranks(4)
    for at in range(1024):
        rank, begin = four[at % 4], (at // 4) * 2 * seconds
        write = Call(rank, "MPI_File_write_at", begin, begin + seconds, "/out", 65536)
        builder.add(write, write.inside("pwrite", begin, begin + seconds, 65536, offset=at * 65536))
    return builder


def test_passing_bytes_that_memory_took_may_cost_more_than_it_saves() -> None:
    """On 2 processors: 3 copies of 64 MiB at 1 GB/s, and 2 x 4 turns of 10 ms x 4 / 2: more than the run of 0.1 s.

    Where ranks share processors it may be twice as much in the next run.
    """
    builder, copying = pieces(150e-6), 3 * 64 * MIB * 1e-9 / 2
    trace = builder.trace(run={"host": "node", "processors": 2})
    (finding,) = [one for one in ranking.find(trace, 0.1, LAYERS).findings if one.code == "independent-shared-file"]
    assert finding.gain.low == 0
    assert finding.gain.may_cost == pytest.approx(2 * (copying + 0.16))
    assert 0 < finding.gain.high <= 2 * finding.seconds
    assert finding.severity == "medium"
    assert ", or cost up to 521 ms more" in text.gain_text(finding.gain, 0.1)


def test_passing_bytes_costs_copies_alone_where_each_rank_has_a_processor() -> None:
    trace = pieces(150e-6).trace(run={"host": "node", "processors": 8})
    (finding,) = [one for one in ranking.find(trace, 1.0, LAYERS).findings if one.code == "independent-shared-file"]
    assert finding.gain.may_cost == pytest.approx(1.27 * 3 * 64 * MIB * 1e-9 / 4)


def test_storage_that_takes_longer_is_gained_from() -> None:
    trace = pieces(2e-3).trace(run={"host": "node", "processors": 2})
    (finding,) = [one for one in ranking.find(trace, 1.1, LAYERS).findings if one.code == "independent-shared-file"]
    assert finding.gain.low > 0


@pytest.mark.parametrize(("origin", "reported"), [("application", True), ("engine", False)])
def test_files_that_ioweir_makes_are_not_a_file_for_every_rank(origin: str, reported: bool) -> None:
    builder, four = ranks(4)
    for number, rank in enumerate(four):
        log = f"/data/file.{number}"
        builder.add(Call(rank, "open", 0, 4, log, origin=origin))
        builder.add(Call(rank, "pwrite", 5, 6, log, MIB, offset=0, origin=origin))
        builder.add(Call(rank, "close", 7, 9, log, origin=origin))
    assert ("file-per-process" in found(builder)) is reported


def test_asking_about_files_of_ones_own_is_no_file_for_every_rank() -> None:
    builder, four = ranks(4)
    for number, rank in enumerate(four):
        builder.add(Call(rank, "pwrite", 0, 1, f"/data/file.{number}", MIB, offset=0))
        for at in range(100):
            builder.add(Call(rank, "stat", 1 + at / 10, 1.09 + at / 10, f"/data/file.{number}"))
    codes = found(builder)
    assert "file-per-process" not in codes
    assert "metadata-storm" in codes


def test_uneven_shares_of_collective_calls_are_the_writers() -> None:
    """Collective writes that do not wait for each other: the shares are those of the ranks at the storage."""
    builder, both = ranks(2)
    for number, rank in enumerate(both):
        write = Call(rank, "MPI_File_write_at_all", 2 * number, 40 - 30 * number, "/out", (5 - 4 * number) * MIB)
        inner = write.inside("pwrite", 2 * number, 40 - 30 * number, (5 - 4 * number) * MIB, offset=5 * number * MIB)
        builder.add(write, inner)
    codes = found(builder)
    assert "unbalanced-bytes" not in codes
    assert "aggregator-imbalance" in codes


def test_of_a_close_on_shared_processors_only_what_it_does_counts() -> None:
    """A close of 20 s with 2 s of writing inside: 20 s, and 2 s where ranks share processors."""
    builder, both = ranks(2)
    for rank in both:
        close = Call(rank, "MPI_File_close", 0, 20, "/out")
        builder.add(close, close.inside("pwrite", 1, 3, 4096, offset=0))
    assert found(builder)["close-cost"].seconds == pytest.approx(20)
    assert found(builder, host="node", processors=1)["close-cost"].seconds == pytest.approx(2)


def test_how_many_share_a_processor() -> None:
    builder, _ = ranks(4)
    known = {"host": "node", "processors": 2, "load_before": 2.0}
    assert Columns(builder.trace(run=known), 100.0, LAYERS).sharing == pytest.approx(3)
    assert Columns(builder.trace(run=known | {"processors": 8}), 100.0, LAYERS).sharing == 1
