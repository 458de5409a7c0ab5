"""Runs with more events than columns have room for are looked at in stretches: compared with whole runs."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

import numpy as np
import pytest
from ioweir.base.spec_names import LAYERS, MPI_IO
from ioweir.findings import columns, ranking
from ioweir.findings.columns import Columns
from ioweir.findings.text import full
from traces import Builder, Call

if TYPE_CHECKING:
    from ioweir.trace.reader import Trace

RANKS = 4
STEPS = 400


def checkpoints(seed: int, *, skew: float = 0.0) -> Trace:
    """Steps of a second: a collective write with pwrites inside, to which rank 1 comes 0.3 s late, and reads.

    `skew`: a rank that waits for nobody may be so many seconds away from the others. Each call's offset tells its step.
    """
    chance = random.Random(seed)
    builder = Builder()
    processes = [builder.rank(rank, RANKS, end_s=STEPS + 10.0) for rank in range(RANKS)]
    for rank, process in enumerate(processes):
        away = chance.uniform(0, skew)
        for step in range(STEPS):
            begin = 1.0 * step + away
            start = begin + (0.3 if rank == 1 else 0.0)
            name = f"/out/{step // 50}"
            write = Call(process, "MPI_File_write_at_all", start, begin + 0.5, name, 4096, offset=step)
            pieces = [
                write.inside("pwrite", begin + 0.3 + 0.02 * at, begin + 0.31 + 0.02 * at, 512, offset=step)
                for at in range(1 + chance.randrange(3))
            ]
            builder.add(*pieces, write)
            for at in range(3):
                since = begin + 0.6 + 0.1 * at
                builder.add(Call(process, "pread", since, since + 0.05 * chance.random(), "/in", 100, offset=step))
    return builder.trace()


def trees(run: Columns) -> dict[tuple[int, ...], Counter[tuple[int, ...]]]:
    """Of each outermost call, by rank, step, function and duration, the calls in it, and when in it they began."""
    result: dict[tuple[int, ...], Counter[tuple[int, ...]]] = defaultdict(Counter)
    for row in range(len(run)):
        root = int(run.root[row])
        key = tuple(int(column[root]) for column in (run.unit, run.offset, run.function, run.duration))
        call = (run.start[row] - run.start[root], run.function[row], run.bytes[row], run.duration[row])
        result[key][tuple(map(int, call))] += 1
    return result


@pytest.mark.parametrize("most", [400, 2000])
@pytest.mark.parametrize("skew", [0.0, 30.0])
def test_outermost_calls_are_there_with_all_that_they_made_or_not_at_all(most: int, skew: float) -> None:
    trace = checkpoints(1, skew=skew)
    whole, some = Columns(trace, 410.0, LAYERS), Columns(trace, 410.0, LAYERS, most=most)
    of_whole, of_some = trees(whole), trees(some)
    assert whole.stretches == 0
    assert some.stretches == 8
    assert most / 2 < len(some) < 1.5 * most
    assert all(of_whole[key] == calls for key, calls in of_some.items())
    # Stretches have all ranks: as many calls of each.
    made = np.bincount(some.unit[some.outermost], minlength=RANKS)
    assert made.min() > 0.6 * made.max()


@pytest.mark.parametrize("skew", [0.0, 0.2, 30.0])
def test_ranks_meet_in_the_calls_in_which_they_meet_in_the_whole_run(skew: float) -> None:
    """Also where a stretch has a call of one rank and not the call of another that it is one with."""
    some = Columns(checkpoints(2, skew=skew), 410.0, LAYERS, most=3000)
    steps: dict[int, set[tuple[int, int]]] = defaultdict(set)
    for row in np.flatnonzero(some.meeting >= 0):
        steps[int(some.meeting[row])].add((int(some.file[row]), int(some.offset[row])))
    assert all(len(calls) == 1 for calls in steps.values())
    if skew < 0.3:
        collective = some.is_layer(MPI_IO) & some.outermost
        assert (some.meeting[collective] >= 0).mean() > 0.8


def test_stretches_follow_each_other_as_if_there_were_nothing_between_them() -> None:
    """Else what was left out would be the program's computing."""
    whole, some = (Columns(checkpoints(3), 410.0, LAYERS, most=most) for most in (None, 1000))

    def pauses(run: Columns) -> list[int]:
        rows = np.flatnonzero(run.following >= 0)
        return [int(pause) for pause in run.start[run.following[rows]] - run.end[rows]]

    assert max(pauses(some)) <= 2 * max(pauses(whole))
    assert (some.end.max() - some.start.min()) / 1e9 == pytest.approx(410 / some.whole_over_rows, rel=0.1)
    for unit in range(RANKS):
        starts = some.start[some.unit == unit]
        assert (np.diff(starts) >= 0).all()


def test_what_is_found_in_stretches_costs_what_it_does_in_the_whole_run(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = checkpoints(4)
    whole = {one.code: one for one in ranking.find(trace, 410.0, LAYERS).findings}
    monkeypatch.setattr(columns, "MOST_EVENTS", 5000)
    monkeypatch.setattr(columns, "MOST_IN_STRETCHES", 2000)
    found = ranking.find(trace, 410.0, LAYERS)
    some = {one.code: one for one in found.findings}
    assert found.findings[0].code == next(iter(whole))
    assert set(some) == set(whole)
    for code, one in some.items():
        assert one.seconds == pytest.approx(whole[code].seconds, rel=0.15), code
        assert one.gain.high == pytest.approx(whole[code].gain.high, rel=0.25), code
        assert one.severity == whole[code].severity
        assert any("outside of 8 stretches" in words for words in one.unseen)
    assert any("outside of 8 stretches" in line for line in full(found, "run"))


def test_a_burst_has_its_part_of_the_stretches() -> None:
    """Half of the events lie in a hundredth of the run."""
    builder = Builder()
    process = builder.rank(0, 1, end_s=1000.0)
    for at in range(2000):
        builder.add(Call(process, "pread", 0.4 * at, 0.4 * at + 0.1, "/in", 8, offset=8 * at))
        builder.add(Call(process, "pwrite", 900 + 0.005 * at, 900.004 + 0.005 * at, "/out", 8, offset=8 * at))
    some = Columns(builder.trace(), 1000.0, LAYERS, most=400)
    assert some.is_op("write").sum() == pytest.approx(200, abs=30)
    assert some.is_op("read").sum() == pytest.approx(200, abs=30)


def test_a_call_with_more_inside_than_there_is_room_for() -> None:
    """The outermost call is kept, with what fits; time in all calls is still that of the run."""
    builder = Builder()
    process = builder.rank(0, 1)
    write = Call(process, "MPI_File_write_at_all", 1, 90, "/out", 1 << 20, offset=0)
    pieces = [write.inside("pwrite", 1 + 0.01 * at, 1.005 + 0.01 * at, 8, offset=8 * at) for at in range(5000)]
    builder.add(*pieces, write, Call(process, "pread", 95, 96, "/in", 8, offset=0))
    some = Columns(builder.trace(), 100.0, LAYERS, most=100)
    assert len(some) <= 150
    assert some.whole_over_rows >= 1


def test_no_event_of_a_rank() -> None:
    builder = Builder()
    builder.rank(0, 2)
    busy = builder.rank(1, 2)
    for at in range(1000):
        builder.add(Call(busy, "pwrite", 0.05 * at, 0.05 * at + 0.04, "/out", 8, offset=8 * at))
    some = Columns(builder.trace(), 100.0, LAYERS, most=100)
    assert set(some.unit.tolist()) == {1}
    assert some.whole_over_rows == pytest.approx(1000 / len(some), rel=0.01)
