"""What a site's runs come to: by program, by finding and by week. Reads no trace.

A node hour is an hour of a node, busy or not: a second of the run on n nodes counts n seconds. What a finding costs a
run is what it costs on the critical path, on which all its nodes wait. Gains of several findings of one run may be of
the same seconds, so each run counts with its largest gain.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ioweir.errors import EXIT_USAGE, IoweirError
from ioweir.site import queries
from ioweir.site.queries import Choice

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ioweir.site.engines import Engine

SITE_VERSION: Final = 1
_DAY_US: Final = 86_400_000_000
_EPOCH: Final = datetime.date(1970, 1, 1)
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


def day(text: str | None, option: str) -> int | None:
    """Days since 1970-01-01 of 2026-11-26."""
    if text is None:
        return None
    try:
        return (datetime.datetime.strptime(text, "%Y-%m-%d").date() - _EPOCH).days
    except ValueError:
        raise IoweirError(f"{option} '{text}' is no day: write it as 2026-11-26", EXIT_USAGE) from None


def chosen(since: str | None = None, until: str | None = None, user: str | None = None) -> Choice:
    """The runs that began on these days, both included, and of one user where that is asked."""
    first, last = day(since, "--since"), day(until, "--until")
    return Choice(None if first is None else first * _DAY_US, None if last is None else (last + 1) * _DAY_US, user)


def of(engine: Engine, since: str | None = None, until: str | None = None) -> Summary:
    """Of the runs that the engine was given."""
    programs = _programs(engine)
    return Summary(
        SITE_VERSION,
        since,
        until,
        sum(one.runs for one in programs),
        sum(one.node_hours for one in programs),
        sum(one.io_node_hours for one in programs),
        programs,
        _codes(engine),
        _weeks(engine),
    )


def _programs(engine: Engine) -> list[Program]:
    worst: dict[str, tuple[float, str]] = {}
    for row in engine.answer(queries.LOSSES):
        costs = (row["lost_hours"], row["code"])
        worst[row["program"]] = max(worst.get(row["program"], (0.0, "")), costs)
    gains = {row["program"]: (row["gain_low_hours"], row["gain_high_hours"]) for row in engine.answer(queries.GAINS)}
    rows = []
    for row in engine.answer(queries.PROGRAMS):
        cost, code = worst.get(row["program"], (0.0, ""))
        low, high = gains.get(row["program"], (0.0, 0.0))
        rows.append(Program(**row, worst=code, worst_node_hours=cost, gain_low=low, gain_high=high))
    return sorted(rows, key=lambda row: (-row.io_node_hours, row.program))


def _codes(engine: Engine) -> list[Code]:
    rows = [
        Code(
            row["code"], row["runs"], row["programs"], row["lost_hours"], row["gain_low_hours"], row["gain_high_hours"]
        )
        for row in engine.answer(queries.CODES)
    ]  # fmt: skip
    return sorted(rows, key=lambda row: (-row.node_hours, row.code))


def _weeks(engine: Engine) -> list[Week]:
    rows = sorted(engine.answer(queries.WEEKS), key=lambda row: int(row["monday"]))
    return [Week(_date(row["monday"]), row["runs"], row["node_hours"], row["io_node_hours"]) for row in rows]


def _date(days: int) -> str:
    """Of days since 1970-01-01. Example: 4 -> "1970-01-05". A damaged file may say any day."""
    first, last = ((end - _EPOCH).days for end in (datetime.date.min, datetime.date.max))
    return (_EPOCH + datetime.timedelta(days=max(first, min(last, days)))).isoformat()


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
