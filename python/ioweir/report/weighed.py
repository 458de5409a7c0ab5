"""Which calls `auto` leaves to the MPI library, because it was measured to be faster at them, and by how much.

Works on WeighedRecords (spec/records.toml). Wording is here too, for `run` and `report` say the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ioweir.base.units import plural, seconds
from ioweir.report.model import WeighedKind
from ioweir.trace.paths import clean_path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ioweir.trace.reader import Trace

LIBRARY: Final = "library"
_SHOWN: Final = 3


def rows(trace: Trace) -> list[WeighedKind]:
    """A row a file, kind of call and choice; the times are means of the ranks that have measured."""
    directory = str(trace.run.get("cwd", ""))
    kinds: dict[tuple[str, str, str], WeighedKind] = {}
    for said in trace.weighed_calls:
        path = clean_path(said.path, directory)
        row = kinds.setdefault((path, said.call, said.chosen), WeighedKind(path, said.call, said.chosen))
        row.records += 1
        row.pairs = max(row.pairs, said.pairs)
        row.engine_s += (said.engine_ns * 1e-9 - row.engine_s) / row.records
        row.library_s += (said.library_ns * 1e-9 - row.library_s) / row.records
        row.tried += said.tried
        row.left += said.left
    return list(kinds.values())


def lines(weighed: Sequence[WeighedKind]) -> list[str]:
    """One line for what was left to the library, most calls first; none where nothing was."""
    left = sorted((row for row in weighed if row.chosen == LIBRARY and row.left), key=lambda row: -row.left)
    if not left:
        return []
    words = [
        f"{row.left:,} {plural('call', row.left)} of MPI_File_{row.call}, {row.path}: the engine's took "
        f"{row.engine_s / row.library_s:.2f} times as long ({seconds(row.engine_s)} against "
        f"{seconds(row.library_s)}, medians of {row.pairs} pairs)"
        for row in left[:_SHOWN]
        if row.library_s > 0
    ]
    more = len(left) - len(words)
    return [
        "LEFT TO THE MPI LIBRARY by `auto`, which found it faster on the first calls: "
        + "; ".join([*words, *([f"{more} more kinds of calls"] if more else [])])
        + "."
    ]
