"""Whether two groups of runs differ in a time: a ratio of medians, its interval, and the runs' own noise.

The interval is a percentile bootstrap of the ratio of medians (scipy.stats.bootstrap), on logarithms since noise
multiplies. Of few runs a bootstrap is too narrow by known factors (Hesterberg 2015, section 4.2: sqrt((n - 1) / n),
and the normal quantile in the place of Student's); it is widened by them about its middle. Of runs without a
difference this finds one in at most 5 of 100 cases from three runs a side on, of two in up to 9 (cli.md has more).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

FASTER: Final = "faster"
SLOWER: Final = "slower"
NOT_SHOWN: Final = "no difference shown"
CONFIDENCE: Final = 0.95
LEAST_RUNS: Final = 2
"""A side, for an interval."""
_RESAMPLES: Final = 9999
_SEED: Final = 0
"""The same runs give the same interval."""


@dataclass
class Difference:
    """A time before / after, so that above 1 is faster. Without an interval `low`, `high` and `noise` are None."""

    ratio: float | None
    low: float | None
    high: float | None
    verdict: str
    before: list[float]
    after: list[float]
    noise: float | None
    """Standard deviation of the runs of one side, as a share of the time."""
    confidence: float = CONFIDENCE


def median(values: Sequence[float]) -> float:
    """The middle one, of an even number the mean of the middle two."""
    import statistics  # noqa: PLC0415 (0.01 s, for a comparison only)

    return statistics.median(values)


def difference(before: Sequence[float], after: Sequence[float]) -> Difference:
    """What the times of two groups of runs show."""
    old, new = list(before), list(after)
    middle = median(old) / median(new) if median(new) > 0 else None
    if min(len(old), len(new)) < LEAST_RUNS or min(*old, *new) <= 0 or middle is None:
        return Difference(middle, None, None, NOT_SHOWN, old, new, None)
    low, high = _interval(old, new)
    verdict = FASTER if low > 1 else SLOWER if high < 1 else NOT_SHOWN
    return Difference(middle, low, high, verdict, old, new, _noise(old, new))


def _interval(before: list[float], after: list[float]) -> tuple[float, float]:
    import warnings  # noqa: PLC0415

    import numpy as np  # noqa: PLC0415 (0.5 s with scipy, for several runs a side only)
    from scipy import stats  # noqa: PLC0415

    old, new = np.log(before), np.log(after)
    middle = float(np.median(old) - np.median(new))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of runs that all took the same time
        found = stats.bootstrap(
            (old, new),
            lambda one, other, axis: np.median(one, axis=axis) - np.median(other, axis=axis),
            n_resamples=_RESAMPLES,
            confidence_level=CONFIDENCE,
            method="percentile",
            vectorized=True,
            rng=np.random.default_rng(_SEED),
        ).confidence_interval
    tail = (1 + CONFIDENCE) / 2
    fewer = min(old.size, new.size)
    wider = float(stats.t.ppf(tail, old.size + new.size - 2) / stats.norm.ppf(tail)) * (fewer / (fewer - 1)) ** 0.5
    low, high = (middle + wider * (float(end) - middle) for end in (found.low, found.high))
    return float(np.exp(min(low, middle))), float(np.exp(max(high, middle)))


def _noise(before: list[float], after: list[float]) -> float:
    """Pooled over both sides, of logarithms. Example: 1.0 and 1.1 s, 2.0 and 2.2 s -> 0.07."""
    import math  # noqa: PLC0415

    squares = 0.0
    for side in (before, after):
        logs = [math.log(value) for value in side]
        mean = sum(logs) / len(logs)
        squares += sum((value - mean) ** 2 for value in logs)
    return math.exp(math.sqrt(squares / (len(before) + len(after) - 2))) - 1
