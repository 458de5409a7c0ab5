"""Ranks by time: what share of its time each rank spent in calls of each kind; and the same summed over all ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ioweir.html import bins as b
from ioweir.html.calls import CATEGORIES, WAIT, Calls, Run
from ioweir.trace.reader import LAYERS, POSIX

if TYPE_CHECKING:
    from ioweir.html.packing import Budget

MOST_ROWS: Final = 128
_STORAGE: Final = ("POSIX writes", "POSIX reads")
"""By WRITE and READ."""


class Timelines:
    """Adds up calls; each kind is a grid of shape (rows, bins), in ns summed over the ranks of a row."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.together, self.rows = b.row_groups(run.units, MOST_ROWS)
        count = b.finest_bins(self.rows)
        self._kinds = b.TimeGrid(len(CATEGORIES) * self.rows, count, run.span_ns)
        self._storage = b.TimeGrid(len(_STORAGE) * self.rows, count, run.span_ns)
        self._bins = count
        posix = run.layer == LAYERS.index(POSIX)
        self._storage_row = np.where(posix & (run.data_op >= 0), run.data_op, -1).astype(np.int64)
        """By function: which of _STORAGE, -1 none."""
        self._seconds = np.zeros((run.units, len(CATEGORIES)))

    def add(self, calls: Calls) -> None:
        """Outermost calls by category, POSIX reads and writes whoever made them."""
        run = self.run
        outer = np.flatnonzero(calls.outermost)
        category = run.category[calls.function[outer]].astype(np.int64)
        unit, start, end = calls.unit[outer], calls.start[outer], calls.end[outer]
        self._kinds.add(category * self.rows + unit // self.together, start, end)
        cell = unit * len(CATEGORIES) + category
        self._seconds += np.bincount(cell, (end - start) / 1e9, minlength=self._seconds.size).reshape(run.units, -1)
        kind = self._storage_row[calls.function]
        data = np.flatnonzero((kind >= 0) & (calls.bytes > 0))
        self._storage.add(
            kind[data] * self.rows + calls.unit[data] // self.together, calls.start[data], calls.end[data]
        )

    def _grids(self) -> b.Floats:
        """Shape (categories, rows, bins)."""
        return self._kinds.sums().reshape(len(CATEGORIES), self.rows, self._bins)

    def result(self, budget: Budget) -> dict[str, Any]:
        """Grids in levels: shares from 0 to 1 of the time of the ranks of a row. Kinds without calls are left out."""
        grids = self._grids()
        storage = self._storage.sums().reshape(len(_STORAGE), self.rows, self._bins)
        sizes = self._row_sizes()[:, None] * self._kinds.bin_ns
        io: b.Floats = np.sum(grids[:WAIT], axis=0)
        named = [("all I/O", io), *zip(CATEGORIES, grids, strict=True)]
        named += zip(_STORAGE, storage, strict=True)
        kinds = [
            {"name": name, **b.levels_of(np.minimum(grid / sizes, 1.0), budget, most=1.0)}
            for name, grid in named
            if grid.any() or name == "all I/O"
        ]
        return {"rows": self.row_names(), "kinds": kinds}

    def _row_sizes(self) -> b.Floats:
        """Ranks in each row; the last may have fewer."""
        row = np.arange(self.run.units) // self.together
        sizes: b.Floats = np.bincount(row, minlength=self.rows).astype(np.float64)
        return sizes

    def row_names(self) -> list[str]:
        """Of each row the ranks in it."""
        names = self.run.unit_names or (0,)
        result = []
        for row in range(self.rows):
            part = names[row * self.together : (row + 1) * self.together]
            result.append(f"{part[0]}" if len(part) == 1 else f"{part[0]}-{part[-1]}")
        return result

    def shares(self) -> dict[str, Any]:
        """I/O against computation. `over_time`: (categories, 512) shares of all ranks' time, `outside` the rest.

        `by_row`: (rows, categories) mean seconds of a rank, and `alive`: mean seconds from its start to its end.
        """
        sums = b.pooled(self._grids().sum(axis=1), b.FIRST_BINS)
        whole = self.run.units * self._kinds.bin_ns
        alive = self._alive()
        sizes = self._row_sizes()
        group = np.arange(self.run.units) // self.together
        by_row = np.stack(
            [np.bincount(group, self._seconds[:, k], minlength=self.rows) / sizes for k in range(len(CATEGORIES))], 1
        )
        return {
            "categories": list(CATEGORIES),
            "over_time": [np.round(np.minimum(one / whole, 1.0), 5).tolist() for one in sums],
            "rows": self.row_names(),
            "by_row": np.round(by_row, 9).tolist(),
            "alive": np.round(np.bincount(group, alive, minlength=self.rows) / sizes, 9).tolist(),
            "waiting_recorded": bool(sums[WAIT].any()),
        }

    def _alive(self) -> b.Floats:
        """Seconds from the first start to the last end of each rank's processes; of killed ones to the run's end."""
        run = self.run
        first = np.full(run.units, run.span_ns, dtype=np.int64)
        last = np.zeros(run.units, dtype=np.int64)
        for process, unit in zip(run.trace.processes, run.who.units, strict=True):
            if unit >= 0:
                end = max(process.end_ns, process.mpi_finalize_ns)
                first[unit] = min(first[unit], process.start_ns - run.begin_ns)
                last[unit] = max(last[unit], end - run.begin_ns if end >= 0 else run.span_ns)
        alive: b.Floats = np.maximum(last - first, 0) / 1e9
        return alive

    def seconds_by_unit(self) -> b.Floats:
        """Shape (ranks, categories)."""
        return self._seconds
