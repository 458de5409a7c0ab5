"""A sweep for a person: a table, what would help, and a picture. Not here: simulating it (sweep.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ioweir.base import columns, picture, units
from ioweir.predict.simulate import DIRECTIONS

if TYPE_CHECKING:
    from collections.abc import Mapping

_WIDTH, _HEIGHT = 460, 260
_NUMBERS: Final = ("ranks", "targets", "files")


def to_text(result: Mapping[str, Any]) -> list[str]:
    """Lines of at most 80 columns, where values are short."""
    lines = [
        f"SIMULATED {result['what']}",
        f"machine   {result['machine']}",
        f"range     {result['interval']}",
        "",
    ]
    names = list(result["axes"])
    wide = {name: max(len(name), *(len(value) for value in result["axes"][name])) for name in names}
    head = "  ".join(f"{name:<{wide[name]}}" for name in names)
    lines.append(f"  {head}  {'':<7}  time")
    for point in result["points"]:
        row = "  ".join(f"{point['point'][name]:<{wide[name]}}" for name in names)
        if "error" in point:
            lines.append(f"  {row}  {point['error']}")
            continue
        for name, verb in (("write", "writing"), ("read", "reading")):
            if point[name]["bytes"]:
                lines.append(f"  {row}  {verb}  {_time(point[name])}")
                row = " " * len(row)
    lines += ["", "what would help, one change from the first row at a time:"]
    for row in result["helps"]:
        ratio = row["ratio"]
        lines += columns.row(
            f"  {row['change']:<30}",
            f"{row['verdict']}: {units.times(ratio['median'])} ({ratio['low']:.2f} .. {ratio['high']:.2f})",
        )
    return lines + ([] if result["helps"] else ["  nothing else was simulated"])


def _time(phase: Mapping[str, Any]) -> str:
    seconds = phase["seconds"]
    span = f"{units.seconds(seconds['median'])} ({units.seconds(seconds['low'])} .. {units.seconds(seconds['high'])})"
    return f"{span:<28}  {units.size(phase['bytes_per_s']):>10}/s"


def chart(result: Mapping[str, Any]) -> picture.Chart:
    """Bytes a second against the first axis, a line for each combination of the others, writing and reading."""
    first, *others = result["axes"]
    number = first in _NUMBERS
    rows = [
        {
            "x": int(point["point"][first]) if number else point["point"][first],
            "what": ", ".join(f"{name} {point['point'][name]}" for name in others) or "all",
            "rate": phase["bytes_per_s"] / 1e9, "low": phase["bytes"] / phase["seconds"]["high"] / 1e9,
            "high": phase["bytes"] / phase["seconds"]["low"] / 1e9, "direction": name,
            "description": f"{name}, {point['point']}: {units.size(phase['bytes_per_s'])}/s",
        }
        for point in result["points"] if "error" not in point
        for name in DIRECTIONS
        for phase in [point[name]] if phase["bytes"]
    ]  # fmt: skip
    x = picture.axis("x", "quantitative" if number else "nominal", first, sort=None)
    if number:
        x["scale"] = {"type": "log", "base": 2}
    y = picture.axis("rate", "quantitative", "GB/s, simulated")
    colour = picture.axis("what", "nominal", ", ".join(others), legend={"orient": "bottom"} if others else None)
    panels = []
    for name in DIRECTIONS:
        mine = [row for row in rows if row["direction"] == name]
        if not mine:
            continue
        spread = {"x": x, "y": picture.axis("low", "quantitative", ""), "y2": {"field": "high"}, "stroke": colour}
        layers = [
            {"mark": {"type": "line", "point": True}, "encoding": {"x": x, "y": y, "stroke": colour}},
            {"mark": {"type": "rule", "opacity": 0.5}, "encoding": spread},
            {"mark": {"type": "circle", "size": 40}, "encoding": {"x": x, "y": y, "fill": colour,
                                                                   **picture.described()}},
        ]  # fmt: skip
        panels.append({"title": f"{name[0].upper()}{name[1:]}", "width": _WIDTH, "height": _HEIGHT,
                       "data": {"values": mine}, "layer": layers})  # fmt: skip
    return picture.chart(f"Simulated: {result['what']}", [result["machine"], result["interval"]], {"vconcat": panels})
