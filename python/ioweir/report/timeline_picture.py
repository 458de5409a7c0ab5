"""A timeline (timeline.py) as a picture: a row a file, target or rank, time from left to right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ioweir.base import picture
from ioweir.base.units import seconds, size, time_unit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ioweir.report.timeline import Row, Timeline

_ROW: Final = 20
_WIDTH: Final = 640
_NAME: Final = 32
_ROWS: Final = {"file": "file", "target": "storage target (its directory)", "rank": ""}
# Calls at a time, up to each limit (1 and 2 with what rounding adds), and their colours: blue up to one, red above.
_LIMITS: Final = (0.25, 0.5, 0.75, 1.05, 2.05)
_COLORS: Final = {
    "up to 0.25": "#c6dbef",
    "0.5": "#6baed6",
    "0.75": "#2878b8",
    "1": "#08306b",
    "2": "#fb8a6a",
    "more": "#a50f15",
}


def chart(result: Timeline) -> picture.Chart:
    """The picture: blue where bytes move, the darker the more of the time; red where several calls are at it."""
    verb = {"write": "Written", "read": "Read"}[result.op]
    span = result.end_s - result.begin_s
    unit, unit_s = time_unit(span)
    names = [row.name for row in result.rows]
    short = f"length(datum.label) > {_NAME} ? '...' + slice(datum.label, {3 - _NAME}) : datum.label"
    rows = picture.axis(
        "row", "ordinal", _ROWS[result.by] or result.ranks_are,
        sort=None, scale={"domain": names}, axis={"labelExpr": short, "grid": False},
    )  # fmt: skip
    time = picture.axis(
        "from", "quantitative", f"time since the first call, {unit}",
        scale={"domain": [0, max(span / unit_s, 1e-9)], "nice": False},
    )  # fmt: skip
    calls = picture.axis(
        "busy", "nominal", "calls at a time, mean",
        scale={"domain": list(_COLORS), "range": list(_COLORS.values())}, legend={"orient": "bottom"},
    )  # fmt: skip
    sums = [
        {"row": row.name, "sums": f"{size(row.bytes)} in {seconds(row.time_s)}", "description": _named(row, result)}
        for row in result.rows
    ]
    busy = [segment for row in result.rows for segment in _segments(row, result.bin_s, unit_s)]
    layers = [
        {
            "data": {"values": busy},
            "mark": {"type": "rect", "height": {"band": 0.85}},
            "encoding": {"x": time, "x2": {"field": "to"}, "y": rows, "color": calls, **picture.described()},
        },
        {
            "data": {"values": sums},
            "mark": {"type": "text", "align": "left", "dx": 6, "fontSize": 11},
            "encoding": {"x": {"value": _WIDTH}, "y": rows, "text": {"field": "sums"}, **picture.described()},
        },
    ]
    return picture.chart(
        f"{verb} by {result.by}",
        _subtitle(result),
        {"width": _WIDTH, "height": max(len(names), 1) * _ROW, "layer": layers},
    )


def _subtitle(result: Timeline) -> list[str]:
    if not result.rows:
        return ["nothing, by calls of POSIX or STDIO"]
    text = f"time in calls of each: mean {seconds(result.mean_time_s or 0.0)}"
    if result.deviation_s is not None:
        text += f", standard deviation {seconds(result.deviation_s)}"
    lines = [text, "right: bytes, and time in calls"]
    if result.left_out.rows:
        lines.append(f"{result.left_out.rows} more rows, {size(result.left_out.bytes)}, are not drawn")
    return lines


def _named(row: Row, result: Timeline) -> str:
    ranks = ", ".join(map(str, row.ranks[:8])) + (", ..." if len(row.ranks) > 8 else "")
    return f"{row.name}: {result.ranks_are} {ranks}"


def _segments(row: Row, bin_s: float, unit_s: float) -> Iterator[dict[str, Any]]:
    """Neighbours of one colour are one."""
    levels = list(_COLORS)
    colors = [levels[sum(busy > limit for limit in _LIMITS)] if busy > 0 else "" for busy in row.busy]
    begin = 0
    for at in range(1, len(colors) + 1):
        if at < len(colors) and colors[at] == colors[begin]:
            continue
        if colors[begin]:
            start, end = begin * bin_s, at * bin_s
            yield {
                "row": row.name,
                "from": start / unit_s,
                "to": end / unit_s,
                "busy": colors[begin],
                "description": f"{row.name}, {seconds(start)} to {seconds(end)}: {size(sum(row.moved[begin:at]))}",
            }
        begin = at
