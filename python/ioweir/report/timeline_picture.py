"""A timeline (timeline.py) as an SVG picture: a row a file, target or rank, time from left to right.

No plotting library: the picture is rectangles, and has to be the same everywhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ioweir.base.plain_text import xml
from ioweir.base.units import seconds, size

if TYPE_CHECKING:
    from ioweir.report.timeline import Row, Timeline

_LEFT: Final = 210
_PLOT: Final = 640
_RIGHT: Final = 150
_TOP: Final = 62
_ROW: Final = 20
_NAME: Final = 32
_TICKS: Final = 5


def to_svg(result: Timeline) -> str:
    """The picture: blue where bytes move, the darker the more of the time; red where several calls are at it."""
    rows = result.rows
    width, height = _LEFT + _PLOT + _RIGHT, _TOP + max(len(rows), 1) * _ROW + 66
    verb = {"write": "Written", "read": "Read"}[result.op]
    title = f"{verb} by {result.by}"
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="11">',
        f"<title>{xml(title)}</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        f'<text x="10" y="20" font-size="14" font-weight="bold">{xml(title)}</text>',
        f'<text x="10" y="38" fill="#444444">{xml(_subtitle(result))}</text>',
    ]
    for number, row in enumerate(rows):
        lines += _row(row, _TOP + number * _ROW, result.bin_s, result.ranks_are)
    bottom = _TOP + max(len(rows), 1) * _ROW
    span = result.end_s - result.begin_s
    for tick in range(_TICKS + 1):
        x = _LEFT + _PLOT * tick / _TICKS
        lines.append(f'<line x1="{x:g}" y1="{_TOP}" x2="{x:g}" y2="{bottom + 4}" stroke="#bbbbbb"/>')
        lines.append(f'<text x="{x:g}" y="{bottom + 18}" text-anchor="middle">{seconds(span * tick / _TICKS)}</text>')
    note = "darker: more of the time in calls; red: more than one call at a time; right: bytes, and time in calls"
    left_out = result.left_out
    if left_out.rows:
        note += f"; {left_out.rows} more rows, {size(left_out.bytes)}, are not drawn"
    lines += [f'<text x="10" y="{height - 14}" fill="#555555">{xml(note)}</text>', "</svg>"]
    return "\n".join(lines) + "\n"


def _subtitle(result: Timeline) -> str:
    if not result.rows:
        return "nothing, by calls of POSIX or STDIO"
    text = f"time in calls of each: mean {seconds(result.mean_time_s or 0.0)}"
    if result.deviation_s is not None:
        text += f", standard deviation {seconds(result.deviation_s)}"
    return text


def _row(row: Row, y: int, bin_s: float, ranks_are: str) -> list[str]:
    """Equal neighbours are one rectangle."""
    name = row.name if len(row.name) <= _NAME else "..." + row.name[3 - _NAME :]
    ranks = ", ".join(map(str, row.ranks[:8])) + (", ..." if len(row.ranks) > 8 else "")
    lines = [
        f"<g><title>{xml(row.name)}: {ranks_are} {ranks}</title>",
        f'<rect x="{_LEFT}" y="{y}" width="{_PLOT}" height="{_ROW - 3}" fill="#f4f4f4"/>',
        f'<text x="{_LEFT - 6}" y="{y + 12}" text-anchor="end">{xml(name)}</text>',
        f'<text x="{_LEFT + _PLOT + 6}" y="{y + 12}">{size(row.bytes)}, {seconds(row.time_s)}</text>',
    ]
    column = _PLOT / len(row.busy)
    colors = [_color(busy) for busy in row.busy]
    begin = 0
    for at in range(1, len(colors) + 1):
        if at < len(colors) and colors[at] == colors[begin]:
            continue
        if colors[begin]:
            moved = sum(row.moved[begin:at])
            lines.append(
                f'<rect x="{_LEFT + begin * column:.2f}" y="{y}" width="{(at - begin) * column:.2f}" '
                f'height="{_ROW - 3}" fill="{colors[begin]}"><title>{seconds(begin * bin_s)} to {seconds(at * bin_s)}: '
                f"{size(moved)}</title></rect>"
            )
        begin = at
    return [*lines, "</g>"]


def _color(busy: float) -> str:
    """Nothing; blues in eight steps; above one call at a time (and rounding) reds."""
    if busy <= 0:
        return ""
    step = min(8, max(1, round(busy * 8))) if busy <= 1.05 else min(8, max(1, round((busy - 1) * 4)))
    fade = 225 - 25 * step
    return f"#{fade:02x}{min(255, fade + 20):02x}ff" if busy <= 1.05 else f"#ff{fade:02x}{fade:02x}"
