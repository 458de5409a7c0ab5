"""Which calls `auto` leaves to the MPI library, because it was measured to be faster, and which a plan slows down.

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
PLAN: Final = "plan"
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
    """One line for what was left to the library, most calls first, and one for what the plan made slower."""
    timed = [row for row in weighed if row.library_s > 0 and row.engine_s > 0]
    left = sorted((row for row in timed if row.chosen == LIBRARY and row.left), key=lambda row: -row.left)
    slower = sorted((row for row in timed if row.chosen == PLAN), key=lambda row: row.library_s / row.engine_s)
    return [
        *_line(
            "LEFT TO THE MPI LIBRARY by `auto`, which found it faster on the first calls: ",
            [
                f"{row.left:,} {plural('call', row.left)} of {_name(row)}: the engine's took {_times(row)}"
                for row in left
            ],
        ),
        *_line(
            "SLOWER WITH THE PLAN than without, as far as was measured: ",
            [f"a call of {_name(row)} takes {_times(row)}" for row in slower],
        ),
    ]


def _name(row: WeighedKind) -> str:
    return f"MPI_File_{row.call}, {row.path}"


def _times(row: WeighedKind) -> str:
    return (
        f"{row.engine_s / row.library_s:.2f} times as long as the library's ({seconds(row.engine_s)} against "
        f"{seconds(row.library_s)}, medians of {row.pairs} pairs)"
    )


def _line(begin: str, kinds: Sequence[str]) -> list[str]:
    more = len(kinds) - _SHOWN
    shown = [*kinds[:_SHOWN], *([f"{more} more {plural('kind', more)} of calls"] if more > 0 else [])]
    return [begin + "; ".join(shown) + "."] if kinds else []
