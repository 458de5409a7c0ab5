"""What a site's runs come to: by program, by finding and by week. Reads no trace.

A node hour is an hour of a node, busy or not: a second of the run on n nodes counts n seconds. What a finding costs a
run is what it costs on the critical path, on which all its nodes wait. Gains of several findings of one run may be of
the same seconds, so each run counts with its largest gain.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from ioweir.errors import EXIT_USAGE, IoweirError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from ioweir.site.store import Tables

SITE_VERSION: Final = 1
_HOUR: Final = 3600.0
_WIDTH: Final = 24


@dataclass
class Program:
    """Runs of one program. `worst`: the code that costs it most node hours, "" where none was found."""

    program: str
    runs: int
    users: int
    node_hours: float
    io_node_hours: float
    written_bytes: int
    read_bytes: int
    worst: str
    worst_node_hours: float
    gain_low: float
    gain_high: float


@dataclass
class Code:
    """A finding in all runs that have it. `gain_low`, `gain_high`: node hours that its repair saves."""

    code: str
    runs: int
    programs: int
    node_hours: float
    gain_low: float
    gain_high: float


@dataclass
class Week:
    """Runs that began in a week; `monday` is its first day, in UTC."""

    monday: str
    runs: int
    node_hours: float
    io_node_hours: float


@dataclass
class Summary:
    """All of it, most node hours first."""

    site_version: int
    since: str | None
    until: str | None
    runs: int
    node_hours: float
    io_node_hours: float
    programs: list[Program] = field(default_factory=list)
    findings: list[Code] = field(default_factory=list)
    weeks: list[Week] = field(default_factory=list)


def day(text: str | None, option: str) -> datetime.datetime | None:
    """Midnight, UTC, of 2026-11-26."""
    if text is None:
        return None
    try:
        return datetime.datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=datetime.timezone.utc)
    except ValueError:
        raise IoweirError(f"{option} '{text}' is no day: write it as 2026-11-26", EXIT_USAGE) from None


def of(tables: Tables, since: str | None = None, until: str | None = None, user: str | None = None) -> Summary:
    """Of the runs that began on these days, both included, and of one user where that is asked."""
    import pyarrow.compute as pc  # noqa: PLC0415

    runs = tables.runs
    first, last = day(since, "--since"), day(until, "--until")
    if first is not None:
        runs = runs.filter(pc.greater_equal(runs.column("started"), first))
    if last is not None and last.date() < datetime.date.max:
        runs = runs.filter(pc.less(runs.column("started"), last + datetime.timedelta(days=1)))
    if user is not None:
        runs = runs.filter(pc.equal(runs.column("user"), user))
    runs = runs.append_column("node_hours", _node_hours(runs, "wall_s"))
    runs = runs.append_column("io_node_hours", _node_hours(runs, "io_s"))
    found = tables.findings.filter(pc.is_in(tables.findings.column("run"), runs.column("run").combine_chunks()))
    for name in ("seconds", "gain_low", "gain_high"):
        found = found.append_column(f"{name}_hours", _node_hours(found, name))
    return Summary(
        SITE_VERSION,
        since,
        until,
        runs.num_rows,
        _total(runs, "node_hours"),
        _total(runs, "io_node_hours"),
        _programs(runs, found),
        _codes(found),
        _weeks(runs),
    )


def _node_hours(table: pa.Table, seconds: str) -> Any:
    import pyarrow.compute as pc  # noqa: PLC0415

    return pc.divide(pc.multiply(table.column(seconds), table.column("nodes")), _HOUR)


def _total(table: pa.Table, column: str) -> float:
    import pyarrow.compute as pc  # noqa: PLC0415

    return float(pc.sum(table.column(column)).as_py() or 0.0)


def _programs(runs: pa.Table, found: pa.Table) -> list[Program]:
    sums = runs.group_by("program").aggregate(
        [
            ("run", "count"), ("user", "count_distinct"), ("node_hours", "sum"), ("io_node_hours", "sum"),
            ("written_bytes", "sum"), ("read_bytes", "sum"),
        ]
    )  # fmt: skip
    worst: dict[str, tuple[float, str]] = {}
    by_code = found.group_by(["program", "code"]).aggregate([("seconds_hours", "sum")])
    for row in by_code.to_pylist():
        costs = (row["seconds_hours_sum"], row["code"])
        worst[row["program"]] = max(worst.get(row["program"], (0.0, "")), costs)
    largest = found.group_by(["program", "run"]).aggregate([("gain_low_hours", "max"), ("gain_high_hours", "max")])
    gains = {
        row["program"]: (row["gain_low_hours_max_sum"], row["gain_high_hours_max_sum"])
        for row in largest.group_by("program")
        .aggregate([("gain_low_hours_max", "sum"), ("gain_high_hours_max", "sum")])
        .to_pylist()
    }
    rows = [
        Program(
            row["program"], row["run_count"], row["user_count_distinct"], row["node_hours_sum"],
            row["io_node_hours_sum"], row["written_bytes_sum"], row["read_bytes_sum"],
            worst.get(row["program"], (0.0, ""))[1], worst.get(row["program"], (0.0, ""))[0],
            *gains.get(row["program"], (0.0, 0.0)),
        )
        for row in sums.to_pylist()
    ]  # fmt: skip
    return sorted(rows, key=lambda row: (-row.io_node_hours, row.program))


def _codes(found: pa.Table) -> list[Code]:
    sums = found.group_by("code").aggregate(
        [
            ("run", "count_distinct"), ("program", "count_distinct"), ("seconds_hours", "sum"),
            ("gain_low_hours", "sum"), ("gain_high_hours", "sum"),
        ]
    )  # fmt: skip
    rows = [
        Code(
            row["code"], row["run_count_distinct"], row["program_count_distinct"], row["seconds_hours_sum"],
            row["gain_low_hours_sum"], row["gain_high_hours_sum"],
        )
        for row in sums.to_pylist()
    ]  # fmt: skip
    return sorted(rows, key=lambda row: (-row.node_hours, row.code))


def _weeks(runs: pa.Table) -> list[Week]:
    import pyarrow.compute as pc  # noqa: PLC0415

    monday = pc.strftime(pc.floor_temporal(runs.column("started"), unit="week"), format="%Y-%m-%d")
    sums = (
        runs.append_column("monday", monday)
        .group_by("monday")
        .aggregate([("run", "count"), ("node_hours", "sum"), ("io_node_hours", "sum")])
    )
    rows = [
        Week(row["monday"], row["run_count"], row["node_hours_sum"], row["io_node_hours_sum"])
        for row in sums.to_pylist()
    ]
    return sorted(rows, key=lambda row: row.monday)


def to_text(summary: Summary, top: int) -> Iterator[str]:
    """Three tables, of at most `top` rows each, 80 columns wide."""
    share = summary.io_node_hours / summary.node_hours if summary.node_hours else 0.0
    yield (
        f"{summary.runs:,} runs, {hours(summary.node_hours)} node hours, of these {hours(summary.io_node_hours)} "
        f"in I/O ({share:.0%})"
    )
    if not summary.runs:
        return
    yield ""
    yield f"{'program':<{_WIDTH}} {'runs':>6} {'node h':>8} {'in I/O':>8}  most of it lost to"
    for one in summary.programs[:top]:
        worst = f"{one.worst} {hours(one.worst_node_hours)}" if one.worst else "-"
        yield (
            f"{_cut(one.program):<{_WIDTH}} {one.runs:>6,} {hours(one.node_hours):>8} "
            f"{hours(one.io_node_hours):>8}  {worst}"
        )
    yield from _rest(len(summary.programs), top, "program")
    yield ""
    yield f"{'finding':<{_WIDTH}} {'runs':>6} {'programs':>8} {'node h':>8}  a repair saves, node h"
    for code in summary.findings[:top]:
        yield (
            f"{_cut(code.code):<{_WIDTH}} {code.runs:>6,} {code.programs:>8,} {hours(code.node_hours):>8}  "
            f"{hours(code.gain_low)} to {hours(code.gain_high)}"
        )
    if not summary.findings:
        yield "none in any run"
    yield from _rest(len(summary.findings), top, "finding")
    yield ""
    yield f"{'week from':<{_WIDTH}} {'runs':>6} {'node h':>8} {'in I/O':>8}"
    for week in summary.weeks[-top:]:
        yield (f"{week.monday:<{_WIDTH}} {week.runs:>6,} {hours(week.node_hours):>8} {hours(week.io_node_hours):>8}")


def hours(value: float) -> str:
    """Three figures that mean something. Example: 1234.5 -> "1,234", 0.01234 -> "0.0123"."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _cut(text: str) -> str:
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 3]}..."


def _rest(count: int, top: int, what: str) -> Iterator[str]:
    if count > top:
        yield f"  and {count - top:,} more {what}{'s' if count - top > 1 else ''} (--top, --json)"
