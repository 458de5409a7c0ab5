"""Storage targets, and files, by time: how many calls each had at once, and how fast bytes went.

A target is the folder that stands for it, as in `ioweir timeline --by target`; where everything lies in one folder
there is one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ioweir.html import bins as b
from ioweir.html.packing import SQUARE
from ioweir.report.timeline import as_people_count, names_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ioweir.html.calls import Calls, Run
    from ioweir.html.packing import Budget

MOST_ROWS: Final = 48
BINS: Final = 512


class Places:
    """Adds up POSIX and STDIO reads, writes and syncs by target, or by file, in grids of shape (places, BINS).

    Syncs count, for on many targets they are where writes are waited for.

    `weights`: bytes of each file; of more places than MOST_ROWS those with most bytes have rows.
    """

    def __init__(self, run: Run, by: str, weights: Sequence[int]) -> None:
        self.run = run
        self.by = by
        names = names_of(list(run.files), by)
        total: dict[str, int] = {}
        for name, weight in zip(names, weights, strict=True):
            if weight:
                total[name] = total.get(name, 0) + weight
        chosen = sorted(total, key=lambda name: (-total[name], name))[:MOST_ROWS]
        self.left_out = len(total) - len(chosen)
        self.left_out_bytes = sum(total.values()) - sum(total[name] for name in chosen)
        self.names = sorted(chosen, key=as_people_count)
        row = {name: number for number, name in enumerate(self.names)}
        self._row_of_file = np.array([row.get(name, -1) for name in names], dtype=np.int64)
        self._sums = b.TimeGrid(max(len(self.names), 1), BINS, run.span_ns, amounts=True)
        self._calls = np.zeros((len(self.names), 3))
        """Calls, seconds, bytes."""

    def add(self, calls: Calls) -> None:
        """Those that moved bytes or waited until they are on the disk."""
        chosen = np.flatnonzero(self.run.storage[calls.function] & (calls.bytes > 0) | self.run.syncs[calls.function])
        row = self._row_of_file[calls.file[chosen]]
        chosen, row = chosen[row >= 0], row[row >= 0]
        start, end, moved = calls.start[chosen], calls.end[chosen], calls.bytes[chosen]
        self._sums.add(row, start, end, moved)
        for column, values in enumerate((np.ones(row.size), (end - start) / 1e9, moved)):
            self._calls[:, column] += np.bincount(row, values, minlength=len(self.names))

    def result(self, budget: Budget) -> dict[str, Any]:
        """Calls at once, and bytes a second; of each place its calls, their seconds, its bytes."""
        if not self.names:
            return {"by": self.by, "rows": [], "kinds": [], "sums": [], "left_out": 0, "left_out_bytes": 0}
        at_once = self._sums.sums() / self._sums.bin_ns
        rates = self._sums.amounts() / (self._sums.bin_ns / 1e9)
        return {
            "by": self.by,
            "rows": self.names,
            "kinds": [
                {"name": "reads, writes and syncs at once", "unit": "calls", **b.levels_of(at_once, budget, SQUARE)},
                {"name": "bytes a second", "unit": "B/s", **b.levels_of(rates, budget, SQUARE)},
            ],
            "sums": [[int(calls), seconds, int(moved)] for calls, seconds, moved in self._calls.tolist()],
            "left_out": self.left_out,
            "left_out_bytes": self.left_out_bytes,
        }
