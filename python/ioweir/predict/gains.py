"""How much faster a plan is, as an interval: simulated times, what is not simulated, and how far both are off.

Lives here: ratios of times. Not here: what is simulated and chosen (tune.py), how far simulated times are off
(calibrate.py measures it, machine.py reads it).
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ioweir.predict.machine import Machine

_FOUR_OF_FIVE: Final = 1.2816 / 0.6745
"""Quantiles of the normal distribution: within 80 % and within 50 % of the middle."""


@dataclass(frozen=True)
class Beside:
    """Seconds of opening and closing, which are not simulated."""

    before: float
    """As recorded, without a plan."""
    after: tuple[float, float, float]
    """Under the plan: low, middle, which is in the times of all runs, and high."""


def gain(before: Sequence[float], after: Sequence[float], beside: Beside, machine: Machine) -> dict[str, float]:
    """Time before over time after, both with what is beside; low, middle and high.

    Where it is known how measured gains differ from simulated ones, that says all: errors of two times on one machine
    go together, and what is open of the machine is in them. The next run's opening is to the recorded one as single
    runs were to typical ones: the recorded one is one run.
    """
    if machine.gains is None:
        return range_of([old / new for old, new in zip(before, after, strict=True) if new > 0], machine)
    least, middle, most = beside.after
    moved = statistics.median(before) - beside.before
    ratios = [
        (old - beside.before) / (new - middle) for old, new in zip(before, after, strict=True) if new > middle
    ]  # fmt: skip
    if not ratios or moved <= 0:
        return range_of([])
    simulated = statistics.median(ratios)

    def with_(factor: float, opened: float, run: float = 1.0) -> float:
        return (moved + run * beside.before) / (moved / (simulated * factor) + run * opened)

    runs = (machine.opening.runs[0], 1.0, machine.opening.runs[1])
    low, usual, high = machine.gains
    return {
        "ratio_low": min(with_(low, most, run) for run in runs),
        "ratio": with_(usual, middle),
        "ratio_high": max(with_(high, least, run) for run in runs),
    }


def range_of(ratios: Sequence[float], machine: Machine | None = None) -> dict[str, float]:
    """Of all runs, wider by what the machine's figures leave unexplained."""
    ratios = ratios or [1.0]
    wider = 1.0 if machine is None else wider_by(machine)
    return {"ratio_low": min(ratios) / wider, "ratio": statistics.median(ratios), "ratio_high": max(ratios) * wider}


def wider_by(machine: Machine) -> float:
    """What the interval of a ratio is multiplied by.

    Half of what is not explained is taken to be common to both times, so that it widens their ratio as it widens one
    time; of errors that are normal in their logarithm four of five lie within 1.9 times the median one.
    """
    return float((1 + machine.unexplained) ** _FOUR_OF_FIVE)
