"""A log's rows by what rules on counters ask for, and what these find (counted.py, counted_places.py)."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ioweir.trace.counted import SHARED
from ioweir.trace.runtime_files import is_runtime_file

if TYPE_CHECKING:
    from ioweir.findings.model import Evidence, Remedy
    from ioweir.trace.counted import Counted, Counts, Table

_STREAMS: Final = frozenset({"<STDIN>", "<STDOUT>", "<STDERR>"})
"""As Darshan calls them."""
WORTH: Final = 0.01
STEADY: Final = 0.5
ANSWERED_S: Final = 1e-4
"""Calls that take no longer, in the mean, were answered by the node itself (rules/common.py)."""


@dataclass
class Found:
    """What a rule found. `files`: indexes, most time first; `low`, `high`: None where nothing else is known."""

    code: str
    title: str
    layer: str
    seconds: float
    summary: str
    cause: str
    files: list[int]
    ranks: list[int]
    evidence: list[Evidence]
    remedies: list[Remedy]
    unseen: str
    low: float | None = None
    high: float | None = None


class Run:
    """The rows of a log by what rules ask for."""

    def __init__(self, counted: Counted, wall_s: float) -> None:
        self.counted, self.wall_s = counted, wall_s
        self.ranks = max(counted.ranks, 1)
        self.by_op: dict[tuple[str, str], list[Counts]] = defaultdict(list)
        # Neither what an MPI runtime makes for itself nor standard streams are files of the program.
        others = [is_runtime_file(name) or name in _STREAMS for name in counted.files]
        for row in counted.counts:
            if not others[row.file]:
                self.by_op[row.layer, row.op].append(row)

    def table(self, name: str, needed: tuple[str, ...]) -> tuple[Table, dict[str, int]] | None:
        """Records of a module, and where each counter stands in a row; None where it lacks one that is needed."""
        table = self.counted.tables.get(name)
        if table is None or not set(needed) <= set(table.names):
            return None
        return table, {counter: at + 2 for at, counter in enumerate(table.names)}

    def slowest(self, rows: list[Counts]) -> tuple[float, list[int]]:
        """Seconds of the rank that spent most, and who that is; of shared records the mean, which is a lower bound."""
        spent: dict[int, float] = defaultdict(float)
        together = 0.0
        for row in rows:
            if row.rank == SHARED:
                together += row.time_s / self.ranks
            else:
                spent[row.rank] += row.time_s
        worst = max(spent, key=lambda rank: spent[rank], default=SHARED)
        return min(together + spent.get(worst, 0.0), self.wall_s), [worst] if worst >= 0 else []

    def path(self, file: int) -> str:
        """A file's name."""
        return self.counted.files[file]

    def worth(self, seconds: float) -> bool:
        """Whether so many seconds are to be told of: 1 % of the run."""
        return seconds > 0 and seconds >= WORTH * self.wall_s


def by_time(rows: list[Counts]) -> list[int]:
    """The rows' files, most time first."""
    spent: dict[int, float] = defaultdict(float)
    for row in rows:
        spent[row.file] += row.time_s
    return sorted(spent, key=lambda file: -spent[file])
