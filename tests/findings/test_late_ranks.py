"""Who is waited for, worked out on small traces: rank0-io with what others wait, late-rank, asynchronous requests."""

from __future__ import annotations

import pytest
from ioweir.base.spec_names import LAYERS
from ioweir.findings import ranking
from ioweir.findings.columns import Columns
from traces import Builder, Call

MIB = 1 << 20


def reading_for_all(ranks: int = 4) -> Builder:
    """Rank 0 reads from 10 to 13 s and sends until 22 s; the others are in a broadcast from 5 s on."""
    builder = Builder()
    for rank in range(ranks):
        process = builder.rank(rank, ranks)
        if rank == 0:
            builder.add(Call(process, "pread", 10, 13, "/in", 64 * MIB, offset=0))
            builder.add(Call(process, "MPI_Bcast", 13, 22))
        else:
            builder.add(Call(process, "MPI_Bcast", 5, 22))
    return builder


def test_reading_for_all_costs_what_the_others_wait_for_it() -> None:
    """From where their waiting meets the read, at 10 s, to its end at 22 s. Of the read, 3 s, a quarter stays."""
    (finding,) = [f for f in ranking.find(reading_for_all().trace(), 100.0, LAYERS).findings if f.code == "rank0-io"]
    assert finding.seconds == pytest.approx(12.0)
    assert finding.ranks == [0]
    assert finding.gain.high == pytest.approx(12 - 3 / 4)


def test_without_the_layer_the_reads_alone_count() -> None:
    builder = reading_for_all()
    builder.calls = [call for call in builder.calls if not call.name.startswith("MPI_")]
    (finding,) = [f for f in ranking.find(builder.trace(), 100.0, LAYERS).findings if f.code == "rank0-io"]
    assert finding.seconds == pytest.approx(3.0)


def test_waiting_in_mpi_is_no_price_of_calls() -> None:
    run = Columns(reading_for_all().trace(), 100.0, LAYERS)
    assert len(run) == 1
    assert run.waits.unit.tolist() == [0, 1, 2, 3]
    assert run.seconds(run.outermost) == pytest.approx(3.0)


def late(ranks: int, rounds: int, *, busy: bool = False, turns: bool = False) -> Builder:
    """Collective writes that a rank comes to 2 s late; `turns`: another each time; `busy`: it writes before."""
    builder = Builder()
    processes = [builder.rank(rank, ranks) for rank in range(ranks)]
    for at in range(rounds):
        begin = 5.0 * at
        last = at % ranks if turns else 1
        for rank, process in enumerate(processes):
            if rank == last and busy:
                builder.add(Call(process, "pwrite", begin, begin + 2, "/own", MIB, offset=at * MIB))
            start = begin + (2 if rank == last else 0)
            call = Call(process, "MPI_File_write_at_all", start, begin + 2.5, "/out", MIB)
            builder.add(call, call.inside("pwrite", begin + 2.2, begin + 2.5, MIB))
    return builder


def codes(builder: Builder) -> list[str]:
    return [finding.code for finding in ranking.find(builder.trace(), 100.0, LAYERS).findings]


def test_one_rank_that_comes_late_is_named_with_the_time_that_the_others_wait() -> None:
    findings = ranking.find(late(4, 6).trace(), 100.0, LAYERS).findings
    (finding,) = [f for f in findings if f.code == "late-rank"]
    assert finding.ranks == [1]
    assert finding.seconds == pytest.approx(12.0)
    assert finding.severity == "medium"  # 12 %, but whether its work can be shared out is not in the trace
    assert finding.gain.low == 0.0
    assert finding.gain.high == pytest.approx(1.27 * 12)
    assert "computes" in finding.cause


def test_a_rank_that_is_late_for_its_own_writes_is_told_so() -> None:
    (finding,) = [
        f for f in ranking.find(late(4, 6, busy=True).trace(), 100.0, LAYERS).findings if f.code == "late-rank"
    ]
    assert "does I/O of its own" in finding.cause
    assert finding.severity == "high"
    assert finding.gain.low == pytest.approx(3.0)


def test_ranks_that_take_turns_and_chance_are_no_late_rank() -> None:
    assert "late-rank" not in codes(late(4, 8, turns=True))
    assert "late-rank" in codes(late(4, 5))
    assert "late-rank" not in codes(late(4, 3))  # 4 x 1/64: one in sixteen runs
    assert "late-rank" not in codes(late(2, 7))  # 2 x 1/128
    assert "late-rank" in codes(late(2, 8))


def test_who_leaves_a_collective_call_last_is_not_late_for_the_next() -> None:
    """Rank 1 writes for all: it is in each call 2 s longer, and comes 2 s later to the next, at once after the last."""
    builder = Builder()
    processes = [builder.rank(rank, 4) for rank in range(4)]
    for at in range(8):
        for rank, process in enumerate(processes):
            start, stop = (4.0 * at + 2, 4.0 * at + 6) if rank == 1 else (4.0 * at, 4.0 * at + 4)
            builder.add(Call(process, "MPI_File_write_at_all", start, stop, "/out", MIB))
    run = Columns(builder.trace(), 100.0, LAYERS)
    assert run.late.unit.tolist() == [1] * 8
    assert "late-rank" not in codes(builder)


@pytest.mark.parametrize("around", ["H5Dwrite", "ncmpi_put_vara_all"])
def test_who_leaves_a_collective_call_last_inside_of_another_is_not_late(around: str) -> None:
    """Each call of 4 s has a view and a write inside. Rank 1 leaves the view 1 s later, and comes to the write then."""
    builder = Builder()
    processes = [builder.rank(rank, 3) for rank in range(3)]
    for at in range(8):
        for rank, process in enumerate(processes):
            whole = Call(process, around, 5.0 * at, 5.0 * at + 4, "/out", MIB)
            came, left = (0.002, 2.0) if rank == 1 else (0.001, 1.0)
            left += 5.0 * at
            view = whole.inside("MPI_File_set_view", 5.0 * at + came, left, origin="application")
            write = whole.inside("MPI_File_write_at_all", left, 5.0 * at + 4, MIB, origin="application")
            builder.add(whole, view, write)
    run = Columns(builder.trace(), 100.0, LAYERS)
    assert run.late.unit.tolist() == [1] * 16
    assert "late-rank" not in codes(builder)


def test_asynchronous_requests_are_storage_and_no_exchange() -> None:
    """Open MPI's way: submitted, looked at now and then, and told of at the end of the call."""
    builder = Builder()
    for rank in range(2):
        process = builder.rank(rank, 2)
        call = Call(process, "MPI_File_write_at_all", 0, 10, "/out", 64 * MIB)
        builder.add(
            call,
            call.inside("aio_write", 1, 1.001, 64 * MIB, offset=rank * 64 * MIB),
            call.inside("aio_error (write)", 9.499, 9.5, offset=2),
            call.inside("aio_return (write)", 9.5, 9.501, offset=2),
        )
    run = Columns(builder.trace(), 100.0, LAYERS)
    assert run.span_s(run.storage) == pytest.approx(8.5)
    assert "exchange-dominates" not in codes(builder)
