"""From what a finding costs to what its repair saves (spared.py), on made traces with known pauses."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from ioweir.findings import ranking, spared, text
from ioweir.findings.columns import Columns
from ioweir.findings.model import Gain
from ioweir.findings.rule import CALLS, EXCESS, UNKNOWN, Found
from ioweir.trace import LAYERS
from traces import Builder, Call

if TYPE_CHECKING:
    from ioweir.findings.model import Finding

WALL_S = 100.0
CROWDED = {"host": "node", "processors": 1}
QUIET = {"host": "node", "processors": 64}
CALL_S = 0.1


def loop(pause_s: float, calls: int = 100) -> Builder:
    """Two ranks that each make calls of 0.1 s and 1000 B; rank 0 with a pause before each, rank 1 without."""
    builder = Builder()
    for number in range(2):
        rank, now = builder.rank(number, 2), 0.0
        for at in range(calls):
            now += 0.0 if number else pause_s
            builder.add(Call(rank, "pwrite", now, now + CALL_S, f"/out.{number}", 1000, offset=1000 * at))
            now += CALL_S
    return builder


def columns(builder: Builder, run: dict[str, object], wall_s: float = WALL_S) -> Columns:
    """What rules look at."""
    return Columns(builder.trace(run=run), wall_s, LAYERS)


def found(run: Columns, spares: str, low: float | None = None, high: float | None = None) -> Found:
    """All calls of a run as one finding, at their price."""
    return Found(run.outermost, run.seconds(run.outermost), "", "", low=low, high=high, spares=spares)


@pytest.mark.parametrize(
    ("pause_s", "high"),
    [
        (0.0, 1.27 * 10),
        (0.02, 1.27 * (10 + 99 * 0.02)),  # the first call has none before it
        (0.08, 2 * 10),  # 1.27 x (10 + 7.9) is more than twice
        (1.5, 1.27 * 10),  # over 1 % of the run: the program computes
    ],
)
def test_calls_that_vanish_take_the_pauses_before_them_along(pause_s: float, high: float) -> None:
    """100 calls of 0.1 s cost 10 s. The rank with the longest pauses is the one that is waited for."""
    gain = spared.gain(run := columns(loop(pause_s), QUIET), found(run, CALLS))
    assert (gain.low, gain.high, gain.may_cost) == pytest.approx((5, high, 0))


@pytest.mark.parametrize(
    ("spares", "setting", "low", "high"),
    [
        (EXCESS, QUIET, 5, 1.27 * 10),
        (EXCESS, CROWDED, 5, 2 * 10),
        (UNKNOWN, QUIET, 2.5, 10),
        (UNKNOWN, CROWDED, 2.5, 10),
    ],
)
def test_calls_that_stay_keep_their_pauses(spares: str, setting: dict[str, object], low: float, high: float) -> None:
    """Where something else is done instead, what was lost is the most."""
    gain = spared.gain(run := columns(loop(0.02), setting), found(run, spares))
    assert (gain.low, gain.high) == pytest.approx((low, high))


def test_of_a_part_of_the_calls_a_part_of_the_pauses_is_spared() -> None:
    """Of 10 s half is lost: half of the 99 pauses of 20 ms, too."""
    gain = spared.gain(run := columns(loop(0.02), QUIET), found(run, CALLS, high=5.0))
    assert (gain.low, gain.high) == pytest.approx((2.5, 1.27 * (5 + 99 * 0.01)))


def test_where_ranks_share_processors_the_next_run_may_cost_twice_as_much() -> None:
    gain = spared.gain(run := columns(loop(0.0), CROWDED), found(run, CALLS))
    assert run.crowded
    assert (gain.low, gain.high) == pytest.approx((5, 20))


@pytest.mark.parametrize(
    ("run", "wall_s", "longest_ms"),
    [
        (QUIET, 2.0, 20),
        (QUIET, 0.01, 1),
        (CROWDED, 2.0, 20),
        ({**CROWDED, "load_before": 4}, 2.0, 60),  # 2 ranks and 4 others on one processor: 10 ms of each
    ],
)
def test_the_longest_pause_is_1_percent_or_a_turn_of_each_that_wants_the_processor(
    run: dict[str, object], wall_s: float, longest_ms: float
) -> None:
    assert spared.longest_pause_ns(columns(loop(0.0, calls=2), run, wall_s)) == longest_ms * 1_000_000


def test_nothing_is_saved_that_the_run_did_not_take() -> None:
    """10 s of a run of 12 s, and 1.27 x 10 s is more."""
    gain = spared.gain(run := columns(loop(0.0), QUIET, 12.0), found(run, CALLS))
    assert gain.high == pytest.approx(12)


@pytest.mark.parametrize(
    ("run", "low", "may_cost", "told"),
    [
        (QUIET, 0.0, 0.27 * 10, False),  # the 10 s may be 12.7 s in the next run
        (CROWDED, 0.0, 10.0, False),
        (QUIET, -8.0, 1.27 * 8, True),
        (CROWDED, -12.0, 2 * 12.0, True),
    ],
)
def test_what_may_save_nothing_may_seem_to_cost_by_how_much_runs_differ(
    run: dict[str, object], low: float, may_cost: float, told: bool
) -> None:
    seen = columns(loop(0.0), run)
    gain = spared.gain(seen, found(seen, UNKNOWN, low=low))
    assert (gain.low, gain.may_cost) == pytest.approx((0, may_cost))
    assert ("or cost" in text.gain_text(gain, WALL_S)) is told


@pytest.mark.parametrize("spares", [CALLS, EXCESS, UNKNOWN])
def test_nothing_saves_more_than_the_run(spares: str) -> None:
    """Lateness is added up from calls, whose times a wall time that is wrong may contradict."""
    seen = columns(loop(0.0), QUIET, 5.0)
    gain = spared.gain(seen, replace(found(seen, spares), seconds=10.0))
    assert 0 < gain.low <= gain.high <= 5.0


def test_how_runs_differ_is_no_cost_where_the_run_is_the_most_that_can_be_saved() -> None:
    """9 s of a run of 10 s on a shared processor: the high end is the run, and not 18 s."""
    seen = columns(loop(0.0, calls=90), CROWDED, 10.0)
    gain = spared.gain(seen, found(seen, UNKNOWN, low=0.0))
    assert (gain.high, gain.may_cost) == pytest.approx((10, 5))
    assert text.gain_text(gain, 10.0) == "up to 10.00 s"


def small_requests(builder: Builder, wall_s: float) -> Finding:
    """What is found in a run of small writes."""
    rows = ranking.find(builder.trace(run=QUIET), wall_s, LAYERS).findings
    (finding,) = [row for row in rows if row.code == "small-requests"]
    return finding


def test_pauses_change_neither_cost_nor_severity_nor_order() -> None:
    """The same calls with pauses of 0.02 s before them: the same seconds, and a higher upper end."""
    without, with_pauses = small_requests(loop(0.0), WALL_S), small_requests(loop(0.02), WALL_S)
    assert with_pauses.seconds == pytest.approx(without.seconds)
    assert with_pauses.severity == without.severity
    assert with_pauses.gain.low == pytest.approx(without.gain.low)
    assert with_pauses.gain.high == pytest.approx(without.gain.high + 1.27 * 99 * 0.02)


@pytest.mark.parametrize("spares", [CALLS, EXCESS, UNKNOWN])
def test_no_interval_is_wider_than_a_factor_of_4_where_the_rule_knows_no_low_end(spares: str) -> None:
    for run in (QUIET, CROWDED):
        for pause_s in (0.0, 0.03, 0.3):
            seen = columns(loop(pause_s), run)
            one = found(seen, spares)
            for gain in (spared.gain(seen, one), spared.gain(seen, replace(one, high=1.0))):
                assert isinstance(gain, Gain)
                assert 0 < gain.low <= gain.high <= 4 * gain.low * (1 + 1e-9)
