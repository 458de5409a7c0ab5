"""The two curves of a probe as an SVG picture, after Son et al. 2016, figures 4 and 5.

Above: each target's bandwidth, sorted; below: what the first so many targets are worth together, and the slope of that.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from ioweir.base.plain_text import xml
from ioweir.base.units import rate
from ioweir.targets.probe import how

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_WIDTH: Final = 760
_PANEL: Final = 230
_LEFT: Final = 80
_RIGHT: Final = 20
_GAP: Final = 70
_TOP: Final = 66
_IN: Final = "#1a66b3"
_OUT: Final = "#cc0000"
_SLOPE: Final = "#888888"


def to_svg(result: Mapping[str, Any]) -> str:
    """The whole picture. Targets left out are red, and stand to the right of the line."""
    height = _TOP + 2 * _PANEL + _GAP + 46
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" '
        f'viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif" font-size="11">',
        f"<title>Storage targets of {xml(result['path'])}</title>",
        f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="10" y="18" font-size="14" font-weight="bold">Storage targets of {xml(result["path"])}</text>',
        f'<text x="10" y="34" fill="#444444">{xml(result["probed_at"])}; {xml(how(result))}</text>',
    ]
    curve = result["curve"]
    chosen = len(result["chosen"])
    bandwidths = [step["bytes_per_second"] for step in curve]
    lines += _panel(_TOP, "bandwidth of each target, sorted", (0.0, max(bandwidths)), chosen, len(curve))
    lines += _dots(curve, bandwidths, _TOP, (0.0, max(bandwidths)), chosen)
    top = _TOP + _PANEL + _GAP
    aggregates = [step["aggregate"] for step in curve]
    slopes = [step["slope"] for step in curve]
    bounds = (min(0.0, *slopes, 0.0), max(aggregates))
    lines += _panel(
        top,
        "together: number of targets x bandwidth of the slowest (blue); its slope (grey)",
        bounds,
        chosen,
        len(curve),
    )
    lines += [_line(slopes, top, bounds, _SLOPE), _line(aggregates, top, bounds, _IN)]
    lines += _dots(curve, aggregates, top, bounds, chosen)
    lines.append(f'<text x="{_LEFT}" y="{height - 10}">{xml(_sentence(result))}</text>')
    return "\n".join([*lines, "</svg>"]) + "\n"


def _sentence(result: Mapping[str, Any]) -> str:
    text = f"{len(result['chosen'])} of {len(result['targets'])} targets are used"
    if result["excluded"]:
        left_out = " ".join(result["excluded"][:12]) + (" ..." if len(result["excluded"]) > 12 else "")
        text += f"; left out, for a fall by more than {100 * result['threshold']:g} %: {left_out}"
    return text


def _x(number: float, count: int) -> float:
    return _LEFT + (_WIDTH - _LEFT - _RIGHT) * (number - 0.5) / count


def _y(value: float, top: float, bounds: tuple[float, float]) -> float:
    low, high = bounds
    return top + _PANEL * (1 - (value - low) / (high - low))


def _panel(top: float, title: str, bounds: tuple[float, float], chosen: int, count: int) -> list[str]:
    """Frame, title, five lines of a grid with their values, numbers of targets, and the line of the cut."""
    lines = [f'<text x="{_LEFT}" y="{top - 8}" font-weight="bold">{xml(title)}</text>']
    step = _round_step((bounds[1] - bounds[0]) / 5)
    value = math.ceil(bounds[0] / step) * step
    while value <= bounds[1]:
        y = _y(value, top, bounds)
        stroke = "#444444" if abs(value) < step / 2 else "#dddddd"
        lines.append(f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{_WIDTH - _RIGHT}" y2="{y:.1f}" stroke="{stroke}"/>')
        label = ("-" if value < -step / 2 else "") + rate(abs(value))
        lines.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{label}</text>')
        value += step
    every = max(1, math.ceil(count / 20))
    for number in range(1, count + 1):
        if number == 1 or number % every == 0:
            lines.append(
                f'<text x="{_x(number, count):.1f}" y="{top + _PANEL + 14}" text-anchor="middle">{number}</text>'
            )
    if chosen < count:
        at = _x(chosen + 0.5, count)
        lines.append(
            f'<line x1="{at:.1f}" y1="{top}" x2="{at:.1f}" y2="{top + _PANEL}" stroke="{_OUT}" stroke-dasharray="4 3"/>'
        )
    return lines


def _round_step(value: float) -> float:
    """The next of 1, 2 and 5 times a power of ten, in binary units."""
    unit = 1024.0 ** max(0, math.floor(math.log(max(value, 1.0), 1024)))
    value = max(value / unit, 1e-3)
    power = 10.0 ** math.floor(math.log10(value))
    return unit * power * next(factor for factor in (1, 2, 5, 10) if factor * power >= value * 0.999)


def _dots(
    curve: Sequence[Mapping[str, Any]], values: Sequence[float], top: float, bounds: tuple[float, float], chosen: int
) -> list[str]:
    return [
        f'<circle cx="{_x(number, len(values)):.1f}" cy="{_y(value, top, bounds):.1f}" r="3" '
        f'fill="{_IN if number <= chosen else _OUT}"><title>{xml(step["target"])}: {rate(value)}</title></circle>'
        for number, (step, value) in enumerate(zip(curve, values, strict=True), start=1)
    ]


def _line(values: Sequence[float], top: float, bounds: tuple[float, float], color: str) -> str:
    points = " ".join(
        f"{_x(number, len(values)):.1f},{_y(value, top, bounds):.1f}" for number, value in enumerate(values, start=1)
    )
    return f'<polyline points="{points}" fill="none" stroke="{color}"/>'
