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
        self._time = b.TimeGrid(len(LINES), BINS, run.span_ns)
        self._bytes = b.TimeGrid(2, BINS, run.span_ns)

    def add(self, calls: Calls) -> None:
        """Data calls that moved bytes."""
        layer = self.run.layer[calls.function]
        op = self.run.data_op[calls.function]
        for row, (name, which, _) in enumerate(LINES):
            chosen = (layer == LAYERS.index(name)) & (op == which) & (calls.bytes > 0)
            if chosen.any():
                at = np.full(int(chosen.sum()), row)
                self._time.add(at, calls.start[chosen], calls.end[chosen])
                if name == POSIX:
                    at = np.full(int(chosen.sum()), which)
                    self._bytes.add(at, calls.start[chosen], calls.end[chosen], calls.bytes[chosen])

    def result(self) -> dict[str, Any]:
        """Lines that have calls, and the storage's bandwidth in bytes a second, shape (BINS,) each."""
        at_once = self._time.sums() / self._time.bin_ns
        rates = self._bytes.sums() / (self._bytes.bin_ns / 1e9)
        return {
            "lines": [
                {"name": name, "values": np.round(at_once[row], 4).tolist()}
                for row, (_, _, name) in enumerate(LINES)
                if at_once[row].any()
            ],
            "rates": [
                {"name": name, "values": np.round(rates[op]).tolist()}
                for op, name in ((WRITE, "written"), (READ, "read"))
                if rates[op].any()
            ],
        }
