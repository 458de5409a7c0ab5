"""How much longer a chosen strategy takes than the best one, where all times are noisy.

The least of many noisy times is the luckiest: of seven strategies that take the same on average, with a standard
deviation of 5 %, the least is 7 % below the others. So the best is looked for in half of the runs, and compared in the
other half, which it was not chosen by.

Not here: what a typical time is, and what is judged by it (loop_page.py, sim_node_page.py).
"""

from __future__ import annotations

import itertools
import math
import random
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence

MOST_SPLITS = 252
"""Those of ten runs; of more runs so many are drawn."""

Typical = Callable[[Sequence[float]], float]


def regret(times: Mapping[str, Sequence[float]], chosen: str, typical: Typical = statistics.median) -> float:
    """How much longer `chosen` takes than the best of all; 0.1 is a tenth, below 0 it is luck.

    `times`: of each strategy in each run, which they all had a part in. The geometric mean over ways to halve the runs.
    """
    runs = len(times[chosen])
    if runs < 2:
        return typical(times[chosen]) / min(map(typical, times.values())) - 1
    logs = []
    for half in _halves(runs):
        others = [run for run in range(runs) if run not in half]
        best = min(times, key=lambda strategy: typical([times[strategy][run] for run in half]))
        logs.append(math.log(_typical(times[chosen], others, typical) / _typical(times[best], others, typical)))
    return math.exp(statistics.fmean(logs)) - 1


def _typical(times: Sequence[float], runs: Sequence[int], typical: Typical) -> float:
    return typical([times[run] for run in runs])


def _halves(runs: int) -> Iterator[frozenset[int]]:
    size = runs // 2
    if math.comb(runs, size) <= MOST_SPLITS:
        yield from map(frozenset, itertools.combinations(range(runs), size))
        return
    rng = random.Random(runs)
    for _ in range(MOST_SPLITS):
        yield frozenset(rng.sample(range(runs), size))
