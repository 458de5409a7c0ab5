"""Offset by time of a file: which rank touched which part of it when.

A grid of shape (OFFSETS, TIMES) a file and operation. A cell holds the rank whose call touched it last. How large a
file becomes is not known before: the bins of offsets are a power of two of bytes, and double when the file outgrows
them.
Example: bins of 4096 B hold a file of 512 KiB (128 bins); a write at 600,000 makes them 8192 B, two old bins in each.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ioweir.html.calls import READ, WRITE, Calls, Run
from ioweir.report.timeline import names_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from ioweir.html.packing import Budget

OFFSETS: Final = 128
TIMES: Final = 512
MOST_FILES: Final = 6
_NOBODY: Final = -1
_FIRST_STEP: Final = 512
_MOST_CELLS: Final = 4 << 20
"""Touched by calls at once; more calls are taken in parts."""


@dataclass
class _Grid:
    """Of one file and operation."""

    step: int = _FIRST_STEP
    owner: npt.NDArray[np.int32] = field(default_factory=lambda: np.full((OFFSETS, TIMES), _NOBODY, dtype=np.int32))
    reach: int = 0
    """One behind the last byte touched."""
    calls: int = 0
    unknown: int = 0
    """Calls whose offset is not known."""
    begin_ns: int = 0
    span_ns: int = 1
    """What the TIMES bins cover."""

    def make_room(self, end: int) -> None:
        """Bins large enough for a file of `end` bytes."""
        self.reach = max(self.reach, end)
        while self.step * OFFSETS < end:
            lower, upper = self.owner[0::2], self.owner[1::2]
            merged = np.where(upper != _NOBODY, upper, lower)
            self.owner = np.full((OFFSETS, TIMES), _NOBODY, dtype=np.int32)
            self.owner[: OFFSETS // 2] = merged
            self.step *= 2

    def mark(self, unit: Any, first: Any, last: Any, begin: Any, end: Any) -> None:
        """Calls in the order of time: bins of offsets from first to last, of times from begin to end, inclusive."""
        high, wide = last - first + 1, end - begin + 1
        cells = high * wide
        edges = np.searchsorted(np.cumsum(cells), np.arange(0, int(cells.sum()) + _MOST_CELLS, _MOST_CELLS))
        for low, top in zip(edges, [*edges[1:], cells.size], strict=True):
            part = slice(low, top)
            if low == top:
                continue
            count = cells[part]
            call = np.repeat(np.arange(count.size), count)
            number = np.arange(call.size) - np.repeat(np.cumsum(count) - count, count)
            rows = first[part][call] + number // wide[part][call]
            columns = begin[part][call] + number % wide[part][call]
            self.owner[rows, columns] = unit[part][call]


class Offsets:
    """Adds up POSIX and STDIO reads and writes of the files with most bytes; `weights`: bytes of each file.

    Of a run in memory a picture covers the time from the first to the last of its calls, else the whole run.
    """

    def __init__(self, run: Run, weights: Sequence[int]) -> None:
        self.run = run
        order = sorted((number for number, weight in enumerate(weights) if weight), key=lambda n: -weights[n])
        self.files = order[:MOST_FILES]
        self._grids = {(file, op): _Grid() for file in self.files for op in (WRITE, READ)}
        for grid in self._grids.values():
            grid.span_ns = run.span_ns

    def add(self, calls: Calls) -> None:
        """Those that moved bytes, in the order of their starts."""
        run = self.run
        data = run.storage[calls.function] & (calls.bytes > 0)
        op = run.data_op[calls.function]
        for (file, which), grid in self._grids.items():
            chosen = np.flatnonzero(data & (calls.file == file) & (op == which))
            if not chosen.size:
                continue
            grid.calls += chosen.size
            known = chosen[calls.offset[chosen] >= 0]
            grid.unknown += chosen.size - known.size
            if not known.size:
                continue
            known = known[np.argsort(calls.start[known], kind="stable")]
            begin_byte, end_byte = calls.offset[known], calls.offset[known] + calls.bytes[known]
            grid.make_room(int(end_byte.max()))
            if run.columns is not None:
                grid.begin_ns = int(calls.start[known].min())
                grid.span_ns = max(int(calls.end[known].max()) - grid.begin_ns, TIMES)
            shares = [(at[known] - grid.begin_ns) / grid.span_ns for at in (calls.start, calls.end)]
            times = [np.clip((share * TIMES).astype(np.int64), 0, TIMES - 1) for share in shares]
            grid.mark(calls.unit[known], begin_byte // grid.step, (end_byte - 1) // grid.step, *times)

    def result(self, budget: Budget) -> list[dict[str, Any]]:
        """A picture a file and operation that occurs. `data`: 16-bit cells, 0 nobody, else 1 + number of the rank."""
        found = []
        names = names_of([self.run.files[file] for file in self.files], "file")
        for (file, op), grid in self._grids.items():
            if not grid.calls:
                continue
            packed = budget.pack(np.minimum(grid.owner + 1, 65535).astype("<u2"))
            found.append({
                "file": self.run.files[file] or "(unknown)", "op": "written" if op == WRITE else "read",
                "name": names[self.files.index(file)] or "(unknown)",
                "step_bytes": grid.step, "reach_bytes": grid.reach, "calls": grid.calls, "unknown": grid.unknown,
                "begin_s": grid.begin_ns / 1e9, "span_s": grid.span_ns / 1e9,
                "rows": OFFSETS, "bins": TIMES, "data": packed,
            })  # fmt: skip
        return found
