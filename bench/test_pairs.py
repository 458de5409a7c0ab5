"""The interval of the median: textbook values, and its coverage on random samples."""

import random
import statistics

import pairs
import pytest
from hypothesis import given
from hypothesis import strategies as st


def test_textbook_ranks() -> None:
    # Conover, Practical Nonparametric Statistics: n = 15 at 95 per cent takes the 4th and 12th; n = 6 the extremes.
    fifteen = pairs.median_interval([float(i) for i in range(1, 16)])
    assert (fifteen.median, fifteen.low, fifteen.high) == (8, 4, 12)
    assert fifteen.confidence == pytest.approx(0.96484, abs=1e-5)
    six = pairs.median_interval([6.0, 1.0, 5.0, 2.0, 4.0, 3.0])
    assert (six.median, six.low, six.high) == (3.5, 1, 6)
    assert six.confidence == pytest.approx(0.96875)


def test_too_few_values_say_so() -> None:
    assert pairs.median_interval([1.0, 2.0, 3.0]).confidence == pytest.approx(0.75)
    with pytest.raises(ValueError, match="no values"):
        pairs.median_interval([])


@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=60))
def test_median_lies_within(values: list[float]) -> None:
    interval = pairs.median_interval(values)
    assert interval.median == statistics.median(values)
    assert interval.low <= interval.median <= interval.high


def test_coverage_of_a_skewed_distribution() -> None:
    source = random.Random(5)
    true_median = 0.6931471805599453  # of the exponential distribution with mean 1
    trials = 2000
    held = 0
    for _ in range(trials):
        interval = pairs.median_interval([source.expovariate(1) for _ in range(15)])
        held += interval.low <= true_median <= interval.high
    assert held / trials == pytest.approx(0.965, abs=0.02)
