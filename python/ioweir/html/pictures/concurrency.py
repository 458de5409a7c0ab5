"""How many calls were under way at once, over time (Wright et al. 2013, figure 9)."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ioweir.html import bins as b
from ioweir.html.calls import READ, WRITE, Calls, Run
from ioweir.trace.reader import LAYERS, MPI_IO, POSIX

BINS: Final = 1024
LINES: Final = (
    (POSIX, WRITE, "POSIX writes"),
    (POSIX, READ, "POSIX reads"),
    (MPI_IO, WRITE, "MPI-IO writes"),
    (MPI_IO, READ, "MPI-IO reads"),
)


class Concurrency:
    """Adds up calls; a line of shape (BINS,) for each of LINES: the mean number of calls at once in each bin."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self._sums = b.TimeGrid(len(LINES), BINS, run.span_ns, amounts=True)
        self._line = np.full(run.layer.size, -1, dtype=np.int64)
        """By function: which of LINES, -1 none."""
        for line, (layer, op, _) in enumerate(LINES):
            self._line[(run.layer == LAYERS.index(layer)) & (run.data_op == op)] = line

    def add(self, calls: Calls) -> None:
        """Data calls that moved bytes."""
        line = self._line[calls.function]
        chosen = np.flatnonzero((line >= 0) & (calls.bytes > 0))
        self._sums.add(line[chosen], calls.start[chosen], calls.end[chosen], calls.bytes[chosen])

    def result(self) -> dict[str, Any]:
        """Lines that have calls, and the storage's bandwidth in bytes a second, shape (BINS,) each."""
        at_once = self._sums.sums() / self._sums.bin_ns
        rates = self._sums.amounts() / (self._sums.bin_ns / 1e9)
        return {
            "lines": [
                {"name": name, "values": np.round(at_once[row], 4).tolist()}
                for row, (_, _, name) in enumerate(LINES)
                if at_once[row].any()
            ],
            "rates": [
                {"name": name, "values": np.round(rates[op]).tolist()}
                for op, name in ((WRITE, "written"), (READ, "read"))  # the first two of LINES
                if rates[op].any()
            ],
        }
