"""Calls over time as sums in equal bins.

A call from a to b adds to each bin the part of [a, b) that lies in it. With ends in bins i and j that is a part in i,
a part in j, and whole bins between, which a difference array holds: two entries a call, however long it is.
Example: bins of 10 ns, a call from 5 to 32: 5 ns in bin 0, 10 in 1 and 2 each, 2 in bin 3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from ioweir.html.packing import LINEAR, Budget, quantised

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats: TypeAlias = npt.NDArray[np.float64]
    Numbers: TypeAlias = npt.NDArray[np.int64]
else:
    Floats = Numbers = Any

FIRST_BINS: Final = 512
"""Of the level that is shown first."""
STEP: Final = 8
"""Each level has so many bins for one of the level before."""
MOST_CELLS: Final = 1 << 20
"""Of the finest level."""


class TimeGrid:
    """Sums of shape (rows, bins) over [0, span_ns): nanoseconds in calls, or with `amounts` bytes."""

    def __init__(self, rows: int, bins: int, span_ns: int) -> None:
        self.rows, self.bins, self.span_ns = rows, bins, span_ns
        self.bin_ns = span_ns / bins
        self._parts = np.zeros(rows * bins)
        self._steps = np.zeros(rows * bins + 1)

    def add(self, row: Numbers, start: Numbers, end: Numbers, amounts: Numbers | None = None) -> None:
        """Calls with their rows, in ns. `amounts`: bytes, spread evenly over each call; all in one bin of instants."""
        if not row.size:
            return
        begin = np.clip(start, 0, self.span_ns).astype(np.float64)
        stop = np.clip(end, 0, self.span_ns).astype(np.float64)
        first = np.minimum((begin / self.bin_ns).astype(np.int64), self.bins - 1)
        last = np.minimum((stop / self.bin_ns).astype(np.int64), self.bins - 1)
        duration = stop - begin
        weight = np.ones(row.size) if amounts is None else amounts / np.where(duration > 0, duration, 1.0)
        base = row * self.bins
        whole = first == last
        instant = weight if amounts is not None else np.zeros(row.size)
        alone = np.where(duration > 0, duration * weight, instant)
        head = np.where(whole, alone, ((first + 1) * self.bin_ns - begin) * weight)
        self._parts += np.bincount(base + first, head, minlength=self._parts.size)
        long = ~whole
        if long.any():
            base, first, last, weight = base[long], first[long], last[long], weight[long]
            tail = (stop[long] - last * self.bin_ns) * weight
            self._parts += np.bincount(base + last, tail, minlength=self._parts.size)
            between = self.bin_ns * weight
            self._steps += np.bincount(base + first + 1, between, minlength=self._steps.size)
            self._steps -= np.bincount(base + last, between, minlength=self._steps.size)

    def sums(self) -> Floats:
        """Shape (rows, bins)."""
        whole = np.cumsum(self._steps[:-1].reshape(self.rows, self.bins), axis=1)
        # What sums of many steps leave of nothing is less than a picosecond a call.
        whole[whole < 1e-3] = 0.0
        return np.maximum(self._parts.reshape(self.rows, self.bins) + whole, 0.0)


def finest_bins(rows: int, most_cells: int = MOST_CELLS) -> int:
    """Bins of the finest level for so many rows. Example: 4 rows -> 512 * 8 * 8 = 32768; 1000 rows -> 512."""
    bins = FIRST_BINS
    while rows * bins * STEP <= most_cells and bins < FIRST_BINS * STEP * STEP:
        bins *= STEP
    return bins


def row_groups(units: int, most_rows: int) -> tuple[int, int]:
    """How many ranks share a row, and how many rows that makes. Example: 1000 ranks, 128 rows -> 8 and 125."""
    together = -(-units // most_rows)
    return together, -(-units // together)


def pooled(grid: Floats, bins: int) -> Floats:
    """The mean of neighbouring bins. Shape (rows, n * bins) -> (rows, bins)."""
    mean: Floats = grid.reshape(grid.shape[0], bins, -1).mean(axis=2)
    return mean


def levels_of(grid: Floats, budget: Budget, power: int = LINEAR, most: float | None = None) -> dict[str, Any]:
    """A grid in all levels that there is room for, coarse first: what a heat map of the page is drawn from.

    `most`: the value of the darkest colour; by default the largest of the finest level.
    """
    top = float(grid.max(initial=0.0)) if most is None else most
    result: dict[str, Any] = {"rows": grid.shape[0], "most": top, "power": power, "levels": []}
    bins = min(FIRST_BINS, grid.shape[1])
    while bins <= grid.shape[1]:
        packed = budget.pack(quantised(pooled(grid, bins), top, power))
        if packed is None:
            break
        result["levels"].append({"bins": bins, "data": packed})
        bins *= STEP
    return result
