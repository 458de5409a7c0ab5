"""A site's runs as one web page that needs nothing else: `ioweir site show STORE --html FILE`.

What it says is ioweir.site.summary's; page.py puts pages together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ioweir.base.guarded_files import write_named
from ioweir.html import markup
from ioweir.html.markup import escaped as _t
from ioweir.html.packing import script_json
from ioweir.html.page import asset, filled, head, own_script
from ioweir.html.tables import table
from ioweir.site.summary import hours

if TYPE_CHECKING:
    from pathlib import Path

    from ioweir.site.summary import Summary, Week

SCRIPTS: Final = ("words.js", "theme.js", "tables.js", "site.js")
_MOST: Final = 2000
_WEEKS: Final = 104
_LABELS: Final = 6
_WIDTH: Final = 900
_HEIGHT: Final = 220
_LEFT: Final = 70
_BASE: Final = 180


def write(path: Path, summary: Summary) -> None:
    """Write the page of a site."""
    write_named(path, page(summary))


def page(summary: Summary) -> str:
    """The page of a site."""
    own, style = own_script(SCRIPTS), asset("page.css")
    share = summary.io_node_hours / summary.node_hours if summary.node_hours else 0.0
    cards = (
        (f"{summary.runs:,}", "runs"),
        (hours(summary.node_hours), "node hours"),
        (hours(summary.io_node_hours), f"node hours in I/O ({share:.0%})"),
        (f"{len(summary.programs):,}", "programs"),
    )
    days = [
        word for word in (summary.since and f"from {summary.since}", summary.until and f"to {summary.until}") if word
    ]
    values = {
        "head": head("I/O of a site", [own], style),
        "about": _t(" ".join(days) or "all runs that are kept"),
        "cards": markup.cards(cards),
        "picture": _picture(summary.weeks[-_WEEKS:]),
        "data": script_json(_model(summary)),
        "script": own,
    }
    return filled(asset("site.html"), values)


def _model(summary: Summary) -> dict[str, Any]:
    programs = [
        [
            one.program, one.runs, one.users, one.node_hours, one.io_node_hours, one.worst, one.worst_node_hours,
            one.gain_low, one.gain_high, one.written_bytes, one.read_bytes,
        ]
        for one in summary.programs
    ]  # fmt: skip
    findings = [
        [one.code, one.runs, one.programs, one.node_hours, one.gain_low, one.gain_high] for one in summary.findings
    ]
    weeks = [[one.monday, one.runs, one.node_hours, one.io_node_hours] for one in summary.weeks]
    gain = (("a repair saves, node hours, from", "ratio"), ("to", "ratio"))
    hours_of = (("node hours", "ratio"), ("node hours in I/O", "ratio"))
    of_program = (
        ("program", "text"), ("runs", "n"), ("users", "n"), *hours_of, ("most of it lost to", "text"),
        ("node hours of that", "ratio"), *gain, ("written", "B"), ("read", "B"),
    )  # fmt: skip
    of_finding = (("finding", "text"), ("runs", "n"), ("programs", "n"), hours_of[0], *gain)
    return {
        "imported": None,
        "programs": table(of_program, programs, _MOST),
        "findings": table(of_finding, findings, _MOST),
        "weeks": table((("week from", "text"), ("runs", "n"), *hours_of), weeks, _MOST),
    }


def _picture(weeks: list[Week]) -> str:
    """Node hours in I/O, a bar a week."""
    if not weeks:
        return ""
    most = max(week.io_node_hours for week in weeks) or 1.0
    step = (_WIDTH - _LEFT - 10) / len(weeks)
    bars, labels = [], []
    every = -(-len(weeks) // _LABELS)
    for at, week in enumerate(weeks):
        height = week.io_node_hours / most * (_BASE - 20)
        x = _LEFT + at * step
        title = _t(f"week from {week.monday}: {hours(week.io_node_hours)} of {hours(week.node_hours)} node hours")
        bars.append(
            f'<rect class="bar" x="{x + step * 0.1:.1f}" y="{_BASE - height:.1f}" width="{step * 0.8:.1f}" '
            f'height="{height:.1f}"><title>{title}</title></rect>'
        )
        if at % every == 0:
            labels.append(f'<text x="{x:.1f}" y="{_BASE + 18}">{_t(week.monday)}</text>')
    axis = (
        f'<text x="4" y="24">{hours(most)}</text><text x="4" y="{_BASE}">0</text>'
        f'<text x="{_LEFT}" y="{_HEIGHT - 4}">node hours in I/O, by week</text>'
        f'<line class="axis" x1="{_LEFT}" y1="{_BASE}" x2="{_WIDTH - 10}" y2="{_BASE}"/>'
    )
    return (
        f'<svg class="runs" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'aria-label="Node hours in I/O, by week">{"".join(bars)}{"".join(labels)}{axis}</svg>'
    )
