"""Regret where times are noisy: of strategies whose means are known."""

from __future__ import annotations

import random
import statistics

import pytest
from regrets import regret


def noisy(means: dict[str, float], runs: int, rng: random.Random, spread: float = 0.05) -> dict[str, list[float]]:
    return {name: [mean * rng.lognormvariate(0, spread) for _ in range(runs)] for name, mean in means.items()}


def test_times_without_noise() -> None:
    times = {"a": [1.0] * 4, "b": [1.3] * 4, "c": [2.0] * 4}
    assert regret(times, "a") == 0
    assert regret(times, "b") == pytest.approx(0.3)
    assert regret({name: values[:1] for name, values in times.items()}, "c") == 1


@pytest.mark.parametrize("runs", [3, 7, 25])
def test_strategies_that_are_the_same_have_no_regret_on_average(runs: int) -> None:
    rng = random.Random(runs)
    same = dict.fromkeys("abcdefg", 1.0)
    found, naive = [], []
    for _ in range(200):
        times = noisy(same, runs, rng)
        found.append(regret(times, "a"))
        typical = {name: statistics.median(values) for name, values in times.items()}
        naive.append(typical["a"] / min(typical.values()) - 1)
    assert abs(statistics.fmean(found)) < 0.01
    assert statistics.fmean(naive) > 0.015, "the luckiest looks better than it is"


def test_a_strategy_that_is_worse_is_seen_to_be() -> None:
    rng = random.Random(1)
    found = [regret(noisy({"a": 1.2, **dict.fromkeys("bcdef", 1.0)}, 7, rng), "a") for _ in range(50)]
    assert statistics.fmean(found) == pytest.approx(0.2, abs=0.03)
