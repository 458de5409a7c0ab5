"""The questions that `ioweir site show` asks of a store, once for all engines that answer them (engines.py).

A question groups rows of one table and measures each group. `columns` makes the rows: of a stored file the columns that
questions need, with node hours in place of seconds. What the answers mean: summary.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    import pyarrow as pa

How = Literal["count", "sum", "max", "distinct"]

_HOUR: Final = 3600.0
_DAY_US: Final = 86_400_000_000
_MONDAY: Final = 4
"""Day 0, 1970-01-01, was a Thursday."""
_HOURS: Final = {
    "runs": {"node_hours": "wall_s", "io_node_hours": "io_s"},
    "findings": {"lost_hours": "seconds", "gain_low_hours": "gain_low", "gain_high_hours": "gain_high"},
}
"""Columns in node hours, and the seconds that they are made of."""
_WORDS: Final = {"runs": ("program", "user"), "findings": ("program", "code")}
_NUMBERS: Final = {"runs": ("written_bytes", "read_bytes"), "findings": ()}


@dataclass(frozen=True)
class Measure:
    """A figure of each group: of a column, or with "count" the number of rows."""

    name: str
    how: How
    column: str = ""


@dataclass(frozen=True)
class Query:
    """Groups of the rows of "runs" or "findings", or of another question's answer; a row a group."""

    of: str | Query
    by: tuple[str, ...]
    measures: tuple[Measure, ...]

    def names(self) -> list[str]:
        """Of the answer's columns."""
        return [*self.by, *(measure.name for measure in self.measures)]


@dataclass(frozen=True)
class Choice:
    """Which runs count: begun at `since_us` or later, and before `end_us` (microseconds since 1970, UTC)."""

    since_us: int | None = None
    end_us: int | None = None
    user: str | None = None


def _sums(*columns: str) -> tuple[Measure, ...]:
    return tuple(Measure(column, "sum", column) for column in columns)


PROGRAMS: Final = Query(
    "runs",
    ("program",),
    (
        Measure("runs", "count"), Measure("users", "distinct", "user"),
        *_sums("node_hours", "io_node_hours", "written_bytes", "read_bytes"),
    ),
)  # fmt: skip
LOSSES: Final = Query("findings", ("program", "code"), _sums("lost_hours"))
_LARGEST: Final = Query(
    "findings",
    ("program", "run"),
    tuple(Measure(column, "max", column) for column in ("gain_low_hours", "gain_high_hours")),
)
GAINS: Final = Query(_LARGEST, ("program",), _sums("gain_low_hours", "gain_high_hours"))
"""Gains of several findings of a run may be of the same seconds: each run counts with its largest."""
CODES: Final = Query(
    "findings",
    ("code",),
    (
        Measure("runs", "distinct", "run"), Measure("programs", "distinct", "program"),
        *_sums("lost_hours", "gain_low_hours", "gain_high_hours"),
    ),
)  # fmt: skip
WEEKS: Final = Query("runs", ("monday",), (Measure("runs", "count"), *_sums("node_hours", "io_node_hours")))
ALL: Final = (PROGRAMS, LOSSES, GAINS, CODES, WEEKS)


def stored_columns(table: str) -> list[str]:
    """Those of a stored file that `columns` reads."""
    return ["run", "started", "nodes", *_WORDS[table], *_HOURS[table].values(), *_NUMBERS[table]]


def columns(table: str, part: str, stored: pa.Table) -> pa.Table:
    """The rows of a file. `part`: what tells the two files of one `site add` and month from all others.

    Nothing is null: what a damaged writer left out is "" or 0. `monday` counts days since 1970-01-01.
    """
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.compute as pc  # noqa: PLC0415

    def whole(name: str) -> Any:
        return pc.fill_null(stored.column(name), "" if pa.types.is_string(stored.schema.field(name).type) else 0)

    made: dict[str, Any] = {"run": whole("run"), "part": pa.repeat(pa.scalar(part), stored.num_rows)}
    if table == "runs":
        started = pc.fill_null(stored.column("started").cast(pa.int64()), 0)
        day = pc.floor(pc.divide(started.cast(pa.float64(), safe=False), float(_DAY_US))).cast(pa.int64())
        since = pc.subtract(day, _MONDAY)
        weeks = pc.floor(pc.divide(since.cast(pa.float64()), 7.0)).cast(pa.int64())
        made["started_us"] = started
        made["monday"] = pc.add(pc.multiply(weeks, 7), _MONDAY)
    made |= {name: whole(name) for name in (*_WORDS[table], *_NUMBERS[table])}
    for name, seconds in _HOURS[table].items():
        made[name] = pc.divide(pc.multiply(whole(seconds), whole("nodes").cast(pa.float64(), safe=False)), _HOUR)
    return pa.table(made)
