"""The two curves of a probe as a picture, after Son et al. 2016, figures 4 and 5.

Above: each target's bandwidth, sorted; below: what the first so many targets are worth together, and the slope of that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ioweir.base import picture
from ioweir.base.units import rate, size_unit
from ioweir.targets.probe import how

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_WIDTH: Final = 680
_HEIGHT: Final = 230
_USED: Final = "used"
_LEFT_OUT: Final = "left out"
_TOGETHER: Final = "number of targets x bandwidth of the slowest"
_SLOPE: Final = "its slope: what the last one adds"


def chart(result: Mapping[str, Any]) -> picture.Chart:
    """The whole picture. Targets left out are red, and stand to the right of the line."""
    curve, chosen = result["curve"], len(result["chosen"])
    each = _panel(curve, chosen, "bandwidth of each target", {"bytes_per_second": ""})
    together = _panel(curve, chosen, "bandwidth of the first so many", {"aggregate": _TOGETHER, "slope": _SLOPE})
    heading = [f"{result['probed_at']}; {how(result)}", _sentence(result)]
    return picture.chart(
        f"Storage targets of {result['path']}",
        heading,
        {"vconcat": [each, together], "spacing": 24, "resolve": {"scale": {"stroke": "independent"}}},
    )


def _sentence(result: Mapping[str, Any]) -> str:
    text = f"{len(result['chosen'])} of {len(result['targets'])} targets are used"
    if result["excluded"]:
        left_out = " ".join(result["excluded"][:12]) + (" ..." if len(result["excluded"]) > 12 else "")
        text += f"; left out, for a fall by more than {100 * result['threshold']:g} %: {left_out}"
    return text


def _panel(curve: Sequence[Mapping[str, Any]], chosen: int, title: str, figures: Mapping[str, str]) -> picture.Chart:
    """Lines of the figures, the dots of the first of them, and the line of the cut."""
    unit, unit_bytes = size_unit(max(step[figure] for step in curve for figure in figures))
    dots, *_ = figures
    x = picture.axis(
        "number", "quantitative", "targets, fastest first",
        scale={"domain": [0.5, len(curve) + 0.5], "nice": False},
        axis={"tickMinStep": 1, "format": "d", "grid": False},
    )  # fmt: skip
    y = picture.axis("value", "quantitative", f"{title}, {unit}/s")
    points = [
        {
            "number": number, "value": step[figure] / unit_bytes, "what": words, "figure": figure,
            "of": _USED if number <= chosen else _LEFT_OUT, "description": f"{step['target']}: {rate(step[figure])}",
        }
        for figure, words in figures.items()
        for number, step in enumerate(curve, start=1)
    ]  # fmt: skip
    kinds = {"domain": list(figures.values()), "range": [picture.BLUE, picture.GREY][: len(figures)]}
    legend = {"orient": "bottom", "columns": 1} if len(figures) > 1 else None
    lines = picture.axis("what", "nominal", "lines", scale=kinds, legend=legend)
    state = picture.axis(
        "of", "nominal", "targets",
        scale={"domain": [_USED, _LEFT_OUT], "range": [picture.BLUE, picture.RED]}, legend={"orient": "bottom"},
    )  # fmt: skip
    layers = [
        {"mark": "line", "encoding": {"x": x, "y": y, "stroke": lines}},
        {
            "data": {"values": [point for point in points if point["figure"] == dots]},
            "mark": {"type": "circle", "size": 45, "opacity": 1},
            "encoding": {"x": x, "y": y, "fill": state, **picture.described()},
        },
    ]
    if chosen < len(curve):
        cut = {"number": chosen + 0.5, "description": "targets to the right are left out"}
        layers.append({
            "data": {"values": [cut]},
            "mark": {"type": "rule", "stroke": picture.RED, "strokeDash": [4, 3]},
            "encoding": {"x": x, **picture.described()},
        })  # fmt: skip
    return {"width": _WIDTH, "height": _HEIGHT, "data": {"values": points}, "layer": layers}
