"""lock-handover on small traces: stripes that change hands, told from writers that wait for each other anyway."""

from __future__ import annotations

import numpy as np
import pytest
from ioweir.findings import ranking
from ioweir.findings.intervals import at_once
from ioweir.trace import LAYERS
from traces import Builder, Call

MIB = 1 << 20
HALF = MIB // 2


def found(builder: Builder) -> dict[str, float]:
    """Codes and their seconds in a run of 1 s."""
    return {one.code: one.seconds for one in ranking.find(builder.trace(), 1.0, LAYERS).findings}


def test_how_many_are_at_once() -> None:
    """0 to 4, 2 to 4, and 10 to 11 alone."""
    assert at_once(np.array([0, 2, 10]), np.array([4, 4, 11])).tolist() == pytest.approx([1.5, 2, 1])


def test_a_stripe_that_changes_hands_costs_its_second_writer() -> None:
    """40 stripes, whose halves two ranks write one after the other: in 2 ms who comes first, in 6 ms the other.

    Both are always at work, so that there are two writers at once.
    """
    builder = Builder()
    ranks = [builder.rank(rank, 2) for rank in range(2)]
    for at in range(40):
        first, second = ranks if at % 2 else ranks[::-1]
        builder.add(Call(first, "pwrite", 8e-3 * at, 8e-3 * at + 2e-3, "/out", HALF, offset=at * MIB))
        builder.add(Call(second, "pwrite", 8e-3 * at, 8e-3 * at + 2e-3, "/out", HALF, offset=(at + 100) * MIB))
        begin = 8e-3 * at + 2e-3
        builder.add(Call(second, "pwrite", begin, begin + 6e-3, "/out", HALF, offset=at * MIB + HALF))
        builder.add(Call(first, "pwrite", begin, begin + 6e-3, "/out", HALF, offset=(at + 100) * MIB + HALF))
    codes = found(builder)
    assert codes["lock-handover"] == pytest.approx(40 * 6e-3 * (1 - 2 / 6))


def test_who_is_ahead_alone_is_no_sign_of_stripes() -> None:
    """A file that lets in one writer at a time: rank 0 ahead of all writes in 2 ms, and four at once in 8 ms each."""
    builder = Builder()
    ranks = [builder.rank(rank, 4) for rank in range(4)]
    now = 0.0
    for at in range(20):
        base = at * 8 * MIB
        for alone in range(2):
            place = base + alone * 4 * MIB
            builder.add(Call(ranks[0], "pwrite", now, now + 2e-3, "/out", MIB, offset=place + HALF))
            now += 2e-3
        for rank in ranks[1:]:
            builder.add(Call(rank, "pwrite", now, now + 8e-3, "/out", MIB, offset=base + rank * MIB + HALF))
        builder.add(Call(ranks[0], "pwrite", now, now + 8e-3, "/out", MIB, offset=base + 5 * MIB + HALF))
        now += 8e-3
    assert "lock-handover" not in found(builder)
