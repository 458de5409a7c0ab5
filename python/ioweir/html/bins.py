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
    """Sums of shape (rows, bins) over [0, span_ns): nanoseconds in calls, and with `amounts` bytes, too.

    A call's bytes are spread evenly over it; those of an instant lie in one bin.
    """

    def __init__(self, rows: int, bins: int, span_ns: int, *, amounts: bool = False) -> None:
        self.rows, self.bins, self.span_ns = rows, bins, span_ns
        self.bin_ns = span_ns / bins
        self._time = _Sums(rows * bins)
        self._amounts = _Sums(rows * bins) if amounts else None

    def add(self, row: Numbers, start: Numbers, end: Numbers, amounts: Numbers | None = None) -> None:
        """Calls with their rows and times in ns; `amounts`: their bytes."""
        if not row.size:
            return
        begin = np.clip(start, 0, self.span_ns).astype(np.float64)
        stop = np.clip(end, 0, self.span_ns).astype(np.float64)
        per_ns = self.bins / self.span_ns
        first = np.minimum((begin * per_ns).astype(np.int64), self.bins - 1)
        last = np.minimum((stop * per_ns).astype(np.int64), self.bins - 1)
        duration = stop - begin
        base = row * self.bins
        at, until = base + first, base + last
        long = np.flatnonzero(last > first)
        head = duration.copy()
        head[long] = (first[long] + 1) * self.bin_ns - begin[long]
        tail = stop[long] - last[long] * self.bin_ns
        at_long, until_long = at[long], until[long]
        self._time.add(at, head, at_long, until_long, tail, self.bin_ns)
        if amounts is not None and self._amounts is not None:
            # Bytes a nanosecond; of calls that take no time, all at once.
            pace = amounts / np.where(duration > 0, duration, 1.0)
            whole = np.where(duration > 0, head, 1.0) * pace
            self._amounts.add(at, whole, at_long, until_long, tail * pace[long], self.bin_ns * pace[long])

    def sums(self) -> Floats:
        """Nanoseconds, shape (rows, bins)."""
        return self._time.result(self.rows, self.bins)

    def amounts(self) -> Floats:
        """Bytes, shape (rows, bins)."""
        assert self._amounts is not None
        return self._amounts.result(self.rows, self.bins)


class _Sums:
    """Parts in the first and the last bin of each call, and steps between."""

    def __init__(self, size: int) -> None:
        self._parts = np.zeros(size)
        self._steps = np.zeros(size + 1)

    def add(
        self, at: Numbers, head: Floats, begin: Numbers, end: Numbers, tail: Floats, between: Floats | float
    ) -> None:
        """`head` at `at`; of calls that go on `between` in each bin from `begin` to `end`, and `tail` in `end`."""
        size = self._parts.size
        if at.size * 4 < size:  # a few calls: going through all bins would cost more
            np.add.at(self._parts, at, head)
        else:
            self._parts += np.bincount(at, head, minlength=size)
        np.add.at(self._parts, end, tail)
        np.add.at(self._steps, begin + 1, between)
        np.subtract.at(self._steps, end, between)

    def result(self, rows: int, bins: int) -> Floats:
        """Shape (rows, bins)."""
        whole = np.cumsum(self._steps[:-1].reshape(rows, bins), axis=1)
        # What sums of many steps leave of nothing is less than a picosecond a call.
        whole[whole < 1e-3] = 0.0
        return np.maximum(self._parts.reshape(rows, bins) + whole, 0.0)


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
