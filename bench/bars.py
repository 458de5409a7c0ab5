"""Pictures of bars with their deviation, for pages of results.

Not here: what is measured (targets_reads.py, subfiles_runs.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ioweir.base import picture

_WIDTH = 460
_ROW = 24


@dataclass(frozen=True)
class Bar:
    """One row."""

    title: str
    value: float
    deviation: float


def to_svg(title: str, rows: Sequence[Bar], bound: float, note: str) -> str:
    """Bars, and a dashed line at `bound`; `note` says what both are."""
    values = [
        {
            "title": row.title, "value": row.value, "text": f"{row.value:.1f}",
            "from": row.value - row.deviation, "to": row.value + row.deviation,
            "description": f"{row.title}: {row.value:.1f}",
        }
        for row in rows
    ]  # fmt: skip
    y = picture.axis("title", "nominal", "", sort=None)
    x = picture.axis("value", "quantitative", "")
    spread = {"y": y, "x": picture.axis("from", "quantitative", ""), "x2": {"field": "to"}}
    beside = picture.axis("to", "quantitative", "")
    layers = [
        {"mark": {"type": "bar", "fill": picture.BLUE}, "encoding": {"y": y, "x": x, **picture.described()}},
        {"mark": {"type": "rule", "stroke": picture.RED, "strokeWidth": 2}, "encoding": spread},
        {
            "mark": {"type": "text", "align": "left", "dx": 6},
            "encoding": {"y": y, "x": beside, "text": {"field": "text", "type": "nominal"}},
        },
        {
            "data": {"values": [{"value": bound, "description": note}]},
            "mark": {"type": "rule", "stroke": picture.GREY, "strokeDash": [4, 3]},
            "encoding": {"x": x, **picture.described()},
        },
    ]
    content = {"width": _WIDTH, "height": {"step": _ROW}, "data": {"values": values}, "layer": layers}
    return picture.to_svg(picture.chart(title, [note], content))
