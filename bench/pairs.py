"""Statistics of interleaved pairs: the median and its confidence interval, free of any assumption on the noise.

Two ways of doing the same work are run in turn, so that whatever else the machine does hits both; each pair gives one
difference or ratio. Not here: running anything (run.py).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Interval:
    """A median with the order statistics that enclose the true median at `confidence`."""

    median: float
    low: float
    high: float
    confidence: float
    count: int

    def text(self, decimals: int) -> str:
        """As tables print it: 48 [45, 52]."""
        return f"{self.median:.{decimals}f} [{self.low:.{decimals}f}, {self.high:.{decimals}f}]"


def median(values: Sequence[float]) -> float:
    """The middle value, or the mean of the two middle ones."""
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def median_interval(values: Sequence[float], confidence: float = 0.95) -> Interval:
    """The narrowest symmetric pair of order statistics that holds the median with at least `confidence`.

    P(x_(k) <= median <= x_(n+1-k)) = 1 - 2 P(Binomial(n, 1/2) < k); with n = 15: k = 4, 96.5 per cent. With too few
    values for the confidence asked (n < 6 at 95 per cent) the extremes are given, and the confidence that they have.
    """
    if not values:
        raise ValueError("the median of no values: measure at least one pair")
    ordered = sorted(values)
    count = len(ordered)
    best, reached = 1, 1 - 2 * _binomial_below(count, 1)
    for k in range(2, (count + 1) // 2 + 1):
        at_k = 1 - 2 * _binomial_below(count, k)
        if at_k < confidence:
            break
        best, reached = k, at_k
    return Interval(median(ordered), ordered[best - 1], ordered[count - best], reached, count)


def _binomial_below(count: int, k: int) -> float:
    return math.ldexp(sum(math.comb(count, i) for i in range(k)), -count)
