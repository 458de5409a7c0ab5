"""How much a repair saves, from what a finding costs: the one place where an interval is derived.

A trace is one run, and what was lost in it is an estimate of what a repair saves in another, not the most. Two things
lie above it. Calls that vanish take along what leads to them: the program's own packing and loop, and the wait for a
processor there (`between`). And the next run may have worse luck than the traced one (`varies`). Below it lies what
remains: how much depends on what the repair does (CALLS, EXCESS, UNKNOWN).

Example: calls that a repair does without cost 1.0 s, with pauses of 0.2 s before them, and each rank has a processor
of its own: 0.5 s to 1.27 x 1.2 = 1.52 s. Of a repair that does something else instead: 0.25 s to 1.0 s.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ioweir.base.runs import RUNS_DIFFER
from ioweir.findings.model import SEEMING, Gain
from ioweir.findings.rule import CALLS, UNKNOWN, Threshold

if TYPE_CHECKING:
    from ioweir.findings.columns import Columns
    from ioweir.findings.rule import Found

VARIES: Final = 1.27
SHARED: Final = 2.0
MOST: Final = 2.0
_LEAST: Final = 0.5
_LEAST_UNKNOWN: Final = 0.25
_PHASE: Final = 0.01
_PHASE_NS: Final = 1_000_000
_SLICE_NS: Final = 10_000_000

WHY: Final = (
    Threshold(
        "another run",
        "1.27 times; 2 times where ranks share processors",
        "production runs of one job were seen to differ by up to 27 %; who shares a processor with one other has half "
        "of it, and in the traced run may have had all of it, or the reverse",
    ),
    Threshold(
        "pauses",
        "up to 1 % of the run, or 1 ms where that is more; where ranks share processors also up to a turn (10 ms) of "
        "each that wants one",
        "longer ones separate phases (no-overlap) and are the program's computing; Linux gives a processor for up to "
        "10 ms",
    ),
    Threshold(
        "most",
        "twice what was lost",
        "a loop whose pauses take longer than its calls computes, and a repair of its I/O spares none of that",
    ),
    Threshold(
        "least",
        "a half of what was lost",
        "the traced run may have had half of the processors, and tracing is part of short calls",
    ),
    Threshold(
        "something else instead",
        "a quarter of what was lost to all of it",
        "exchange, copying, or waiting at the storage take more than nothing, how much is not in the trace, and they "
        "vary with what was lost: the most is what was lost, the least another half of the half",
    ),
)


def varies(run: Columns) -> float:
    """How many times as much the same fault may cost in the next run."""
    return SHARED if run.crowded else VARIES


def longest_pause_ns(run: Columns) -> int:
    """Longer pauses separate phases of the program; shorter ones belong to the call behind.

    Example: 20 ms in a run of 2 s; where six ranks want two processors, 30 ms.
    """
    phase = max(int(_PHASE * run.wall_s * 1e9), _PHASE_NS)
    return max(phase, int(_SLICE_NS * run.sharing)) if run.crowded else phase


def between(run: Columns, one: Found, lost: float) -> float:
    """Seconds on the critical path that lead to calls which vanish: the pauses before them, as far as they are lost."""
    if one.spares != CALLS:
        return 0.0
    price = run.seconds(one.calls)
    if price <= 0:
        return 0.0
    pauses = run.price(one.calls, longest_pause_ns(run)).seconds - price
    return max(pauses, 0.0) * min(lost / price, 1.0)


def of_requests(run: Columns, lost: float, *, from_memory: bool) -> Gain:
    """What a remedy saves that puts requests together, and leaves the calls around them.

    Example: requests that cost 1 s: 0.25 s to 1 s; where the node's memory answered them, 0 to 1 s.
    """
    if not from_memory:
        return Gain(_LEAST_UNKNOWN * lost, lost)
    return Gain(0.0, lost, may_cost=max(RUNS_DIFFER * run.wall_s, min((varies(run) - 1) * lost, SEEMING * lost)))


def gain(run: Columns, one: Found) -> Gain:
    """What a repair of it saves, in seconds, and what it may cost where it may save nothing.

    Example: a repair that may save nothing, of 1 s in a run of 20 s: to cost 0.4 s (2 % of the run) is in doubt; where
    ranks share processors the second may be two in the next run, and to cost 1 s is in doubt.
    """
    lost = min(one.seconds if one.high is None else one.high, one.seconds, run.wall_s)
    lost = max(lost, 0.0)
    times = varies(run)
    if one.low is None and one.spares == UNKNOWN:
        low, high = lost * _LEAST_UNKNOWN, lost
    else:
        low = lost * _LEAST if one.low is None else one.low
        high = min((lost + between(run, one, lost)) * times, MOST * lost, run.wall_s)
    may_cost = max(-low * times, RUNS_DIFFER * run.wall_s, min((times - 1) * lost, SEEMING * high)) if low <= 0 else 0.0
    return Gain(min(max(low, 0.0), high), high, may_cost=may_cost)
