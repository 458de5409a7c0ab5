"""slow-target on small traces: large calls one by one, small ones by bytes over busy time. No target here is real."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from ioweir.findings import ranking
from ioweir.trace import LAYERS
from traces import Builder, Call

if TYPE_CHECKING:
    from collections.abc import Callable

    from ioweir.findings.model import Finding

MIB = 1 << 20
TARGETS = 4


def run(calls: int, size: int, seconds: Callable[[int, int], float], sizes: dict[int, int] | None = None) -> Builder:
    """One rank writes to all targets in turn; `seconds` of a target and of the number of the call on it."""
    builder = Builder()
    rank, now = builder.rank(0, 1), 0.0
    for at in range(calls):
        for target in range(TARGETS):
            path = f"/data/t{target}/.ioweir-{'0' * 32}/part.{target}"
            length, each = seconds(target, at), (sizes or {}).get(target, size)
            builder.add(Call(rank, "pwrite", now, now + length, path, each, offset=each * at))
            now += length + 1e-5
    return builder


def slow(builder: Builder) -> list[Finding]:
    """What is found about targets in a run of 2 s."""
    return [one for one in ranking.find(builder.trace(), 2.0, LAYERS).findings if one.code == "slow-target"]


def bucket(target: int, at: int) -> float:
    """Every eighth call waits until its target has given out what all eight asked for; the others do not."""
    return (6e-3 if target == 2 else 1e-3) if at % 8 == 7 else 1e-5


def test_small_calls_are_judged_by_what_the_target_moves_while_it_is_busy() -> None:
    """Per eight calls 6.07 ms and 1.07 ms. Seven of eight calls take as long on every target."""
    (finding,) = slow(run(512, 4096, bucket))
    assert finding.summary == "the storage target /data/t2 is 5.7 times as slow as the others"
    assert finding.seconds == pytest.approx(64 * (6.07e-3 - 1.07e-3), rel=1e-3)
    figures = {one.text: one.figure for one in finding.evidence}
    assert figures["spread of its own rate, part by part"] == pytest.approx(0, abs=0.1)
    assert figures["calls on it"] == 512


def test_one_stall_makes_no_slow_target() -> None:
    assert slow(run(512, 4096, lambda target, at: 0.3 if (target, at) == (2, 100) else bucket(0, at))) == []


def test_a_target_that_is_slow_in_few_parts_of_the_run_is_not_accused() -> None:
    """Ten times as slow in 3 of its 16 parts of 32 calls: without one of them 2.2 times, give or take 37 %."""
    assert slow(run(512, 4096, lambda target, at: (10 if target == 2 and at // 32 in (2, 7, 12) else 1) * 1e-4)) == []


def test_smaller_calls_take_longer_a_byte_on_any_target() -> None:
    """Target 2 gets 100 B at a time, in the same 100 us as the others' 4 KiB."""
    assert slow(run(512, 4096, lambda _target, _at: 1e-4, sizes={2: 100})) == []


def test_large_calls_are_judged_one_by_one() -> None:
    """Of 16 calls of 1 MiB each, 3 ms instead of 1 ms: two thirds of 48 ms are lost. Seven stalls change nothing."""

    def seconds(target: int, at: int) -> float:
        return 0.05 if target == 1 and at < 7 else 3e-3 if target == 2 else 1e-3

    (finding,) = slow(run(16, MIB, seconds))
    assert finding.summary == "the storage target /data/t2 is 3.0 times as slow as the others"
    assert finding.seconds == pytest.approx(0.032)
    assert "spread of its own rate, part by part" not in {one.text for one in finding.evidence}
