"""A comparison as one web page that needs nothing else: `ioweir compare A... --to B... --html FILE`.

What it says is ioweir.report.compare's, in the words of compare_words.py; page.py puts pages together.
"""

from __future__ import annotations

import math
import shlex
from typing import TYPE_CHECKING, Any, Final

from ioweir.base.guarded_files import write_named
from ioweir.base.units import seconds
from ioweir.html import markup
from ioweir.html.markup import escaped as _t
from ioweir.html.packing import script_json
from ioweir.html.page import asset, filled, head, own_script
from ioweir.html.tables import table
from ioweir.report import compare_words, noise

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ioweir.report.compare import Comparison, Run

SCRIPTS: Final = ("words.js", "theme.js", "tables.js", "compare.js")
_MOST: Final = 2000
_WIDTH: Final = 900
_LEFT: Final = 110
_RIGHT: Final = 30
_ROW: Final = 54
_TICKS: Final = 5


def write(path: Path, comparison: Comparison) -> None:
    """Write the page of a comparison."""
    write_named(path, page(comparison))


def page(comparison: Comparison) -> str:
    """The page of a comparison."""
    own, style = own_script(SCRIPTS), asset("page.css")
    run = comparison.before
    program = shlex.join(run.command) if run.command else run.program or "PROGRAM"
    counts = f"{len(comparison.before_runs)} and {len(comparison.after_runs)} runs"
    said = [*comparison.first_lines, *(f"Warning: {one}" for one in comparison.warnings)]
    name = _t(run.program.rpartition("/")[2] or "a program")
    values = {
        "head": head(f"{name}: comparison", [own], style),
        "title": name,
        "command": _t(program),
        "about": _t(f"{counts}; first side: {run.trace}, second side: {comparison.after.trace}"),
        "cards": _cards(comparison),
        "warnings": f'<div class="warning">{"".join(f"<p>{_t(line)}</p>" for line in said)}</div>' if said else "",
        "verdict": _t(_sentence(compare_words.headline(comparison))),
        "picture": _picture(comparison.time.before, comparison.time.after),
        "caution": _t(comparison.caution),
        "plans": _plans(comparison),
        "data": script_json(_model(comparison)),
        "script": own,
    }
    return filled(asset("compare.html"), values)


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _cards(comparison: Comparison) -> str:
    time, found = comparison.time, comparison.findings
    old, new = noise.median(time.before), noise.median(time.after)
    interval = "no interval" if time.low is None or time.high is None else f"{time.low:.3g} to {time.high:.3g}"
    cards = [
        (time.verdict, "wall time of the second side"),
        (f"{seconds(old)} to {seconds(new)}", "wall time, medians"),
        ("-" if time.ratio is None else f"{time.ratio:.3g}", f"first / second ({interval})"),
        (f"{len(found.gone)} gone, {len(found.new)} new", "findings"),
    ]
    return markup.cards(cards)


def _model(comparison: Comparison) -> dict[str, Any]:
    """The tables."""
    return {
        "imported": None,
        "changes": _changes(comparison),
        "findings": _faults(comparison),
        "runs": _runs(comparison),
    }


def _changes(comparison: Comparison) -> dict[str, Any]:
    rows = [
        [
            one.what,
            _value(one.before, one.unit),
            _value(one.after, one.unit),
            one.ratio,
            one.low,
            one.high,
            one.sentence.rpartition(": ")[2],
        ]
        for one in comparison.changes
    ]
    columns = (
        ("figure", "text"), ("first side", "text"), ("second side", "text"), ("ratio", "ratio"),
        ("ratio, from", "ratio"), ("ratio, to", "ratio"), ("change", "text"),
    )  # fmt: skip
    return table(columns, rows, _MOST)


def _value(value: float | None, unit: str) -> str:
    return compare_words.value_words(value, unit)


def _faults(comparison: Comparison) -> dict[str, Any]:
    found = comparison.findings
    rows = [
        [word, one.title or one.code, one.code, one.before_runs, one.before_s, one.after_runs, one.after_s]
        for word, faults in (("gone", found.gone), ("new", found.new), ("stayed", found.stayed))
        for one in faults
    ]
    columns = (
        ("", "id"), ("finding", "text"), ("code", "text"), ("runs of the first side", "n"), ("costs there", "s"),
        ("runs of the second side", "n"), ("costs there ", "s"),
    )  # fmt: skip
    return table(columns, rows, _MOST)


def _runs(comparison: Comparison) -> dict[str, Any]:
    rows = [
        [
            f"{name} {number}", run.trace, run.ranks, run.wall_s, run.io_mean_s, len(run.storage["write"]),
            len(run.storage["read"]), "-" if run.exit_code is None else str(run.exit_code), run.plan.file or "none",
        ]
        for name, side in (("first", comparison.before_runs), ("second", comparison.after_runs))
        for number, run in enumerate(side, 1)
    ]  # fmt: skip
    columns = (
        ("run", "id"), ("trace", "text"), ("ranks", "n"), ("wall time", "s"), ("I/O of an average rank", "s"),
        ("ranks that write to storage", "n"), ("ranks that read from it", "n"), ("exit code", "id"), ("plan", "text"),
    )  # fmt: skip
    return table(columns, rows, _MOST)


def _plans(comparison: Comparison) -> str:
    lines = "".join(
        f"<li>{_t(name)} side: {_t('; '.join(compare_words.run_words(run)))}</li>"
        for name, run in (("First", comparison.before), ("Second", comparison.after))
        if _special(run)
    )
    return f"<ul>{lines}</ul>" if lines else ""


def _special(run: Run) -> bool:
    return bool(run.plan.file or run.plan.passed_through or run.plan.verify.result)


# ----------------------------------------------------------------------------------------------------------- picture


def _picture(before: Sequence[float], after: Sequence[float]) -> str:
    """Each run a ring on an axis of seconds from 0, each side's median a bar. Drawn here: it needs no script."""
    longest = max(*before, *after, 1e-9)
    step = _step(longest / _TICKS)
    end = step * math.ceil(longest / step)
    height = 2 * _ROW + 60

    def place(value: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * value / end

    parts = []
    for tick in range(round(end / step) + 1):
        x = f"{place(tick * step):.1f}"
        parts.append(f'<line class="grid" x1="{x}" x2="{x}" y1="8" y2="{2 * _ROW + 10}"/>')
        parts.append(f'<text x="{x}" y="{2 * _ROW + 28}" text-anchor="middle">{tick * step:.6g}</text>')
    for row, (name, values) in enumerate((("first", before), ("second", after))):
        y = 8 + _ROW * row + _ROW / 2
        middle = place(noise.median(values))
        parts.append(f'<text x="{_LEFT - 12}" y="{y + 5:.1f}" text-anchor="end">{name} side</text>')
        parts += [
            f'<circle class="run {name}" cx="{place(value):.1f}" cy="{y:.1f}" r="7">'
            f"<title>{_t(seconds(value))}</title></circle>"
            for value in values
        ]
        parts.append(
            f'<line class="middle {name}" x1="{middle:.1f}" x2="{middle:.1f}" y1="{y - 20:.1f}" y2="{y + 20:.1f}"/>'
        )
    axis = (
        f'<text x="{(_LEFT + _WIDTH - _RIGHT) / 2:.1f}" y="{height - 8}" text-anchor="middle">'
        "wall time (s); rings: runs, bars: medians</text>"
    )
    said = "; ".join(
        f"{name} side: {', '.join(seconds(value) for value in values)}"
        for name, values in (("first", before), ("second", after))
    )
    return (
        f'<svg class="runs" viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="Wall times of the runs. {_t(said)}">'
        f"{''.join(parts)}{axis}</svg>"
    )


def _step(least: float) -> float:
    """The smallest of 1, 2, 5 times a power of ten that is no less. Example: 0.3 -> 0.5."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(power * times for times in (1, 2, 5, 10) if power * times >= least * (1 - 1e-9))
