"""A plan's schedule as text and as a picture: storage targets times rounds, in each cell the ranks that are at it."""

from __future__ import annotations

import colorsys
import json
from typing import TYPE_CHECKING, Any, Final

from ioweir.base import picture

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Cells = dict[tuple[int, int], dict[int, int]]
"""(target, round) -> rank -> bytes."""

TEXT_ROUNDS: Final = 16
TEXT_TARGETS: Final = 32
PICTURE_ROUNDS: Final = 200
_CELL: Final = 34
_READABLE: Final = 3
"""Up to so many ranks of a cell have room for their numbers."""


def cells(steps: Sequence[Mapping[str, Any]]) -> Cells:
    """Who is at which target in which round."""
    table: Cells = {}
    for step in steps:
        for target, amount in step["targets"].items():
            ranks = table.setdefault((target, step["round"]), {})
            ranks[step["rank"]] = ranks.get(step["rank"], 0) + amount
    return table


def crowded(table: Cells) -> int:
    """Cells in which more than one rank is at a target."""
    return sum(len(ranks) > 1 for ranks in table.values())


def to_text(table: Cells) -> list[str]:
    """The table, where it is small enough to be read."""
    if not table:
        return []
    targets = sorted({target for target, _ in table})
    rounds = max(number for _, number in table)
    shown = min(rounds, TEXT_ROUNDS)
    words = {place: "+".join(map(str, sorted(ranks))) for place, ranks in table.items() if place[1] <= shown}
    width = max(5, *(len(word) for word in words.values()))
    lines = ["ranks at each target, by round", " " * 10 + "".join(f" {n:>{width}}" for n in range(1, shown + 1))]
    for target in targets[:TEXT_TARGETS]:
        row = "".join(f" {words.get((target, n), '-'):>{width}}" for n in range(1, shown + 1))
        lines.append(f"target {target:<3}{row}")
    if len(targets) > TEXT_TARGETS:
        lines.append(f"... and {len(targets) - TEXT_TARGETS} more targets")
    if rounds > shown:
        lines.append(f"... and {rounds - shown} more rounds")
    count = crowded(table)
    lines.append(
        "no target has two ranks at it in one round" if count == 0
        else f"in {count} of {len(table)} cells several ranks are at one target"
    )  # fmt: skip
    return lines


def color_of(index: int) -> str:
    """Colours that neighbours can be told apart by: steps of the golden angle on the colour wheel."""
    red, green, blue = colorsys.hls_to_rgb((index * 0.381966) % 1.0, 0.72, 0.6)
    return f"#{round(red * 255):02x}{round(green * 255):02x}{round(blue * 255):02x}"


def chart(table: Cells, title: str, subtitle: str) -> picture.Chart:
    """The picture: a row a target, a column a round, a colour a rank; a red frame where several are at a target."""
    targets = sorted({target for target, _ in table})
    rounds = max((number for _, number in table), default=0)
    shown = min(rounds, PICTURE_ROUNDS)
    colors = {rank: color_of(at) for at, rank in enumerate(sorted({rank for at in table.values() for rank in at}))}
    parts: list[dict[str, Any]] = []
    frames: list[dict[str, Any]] = []
    for row, target in enumerate(targets):
        for number in range(1, shown + 1):
            ranks = table.get((target, number), {})
            said = f"target {target}, round {number}: " + _who(ranks)
            parts += [
                {"round": number - 0.47, "to": number + 0.47, "top": row + 0.94 * at / len(ranks) + 0.03,
                 "bottom": row + 0.94 * (at + 1) / len(ranks) + 0.03, "rank": rank, "color": colors[rank],
                 "middle": number, "center": row + 0.94 * (at + 0.5) / len(ranks) + 0.03,
                 "readable": len(ranks) <= _READABLE, "description": said}
                for at, rank in enumerate(sorted(ranks))
            ]  # fmt: skip
            if len(ranks) > 1:
                frames.append({"round": number - 0.47, "to": number + 0.47, "top": row + 0.03, "bottom": row + 0.97,
                               "description": f"{said}: {len(ranks)} ranks at one target"})  # fmt: skip
    x = picture.axis(
        "round", "quantitative", "round",
        scale={"domain": [0.5, max(shown, 1) + 0.5], "nice": False},
        axis={"tickMinStep": 1, "format": "d", "grid": False, "orient": "top"},
    )  # fmt: skip
    y = picture.axis(
        "top", "quantitative", "storage target",
        scale={"domain": [0, max(len(targets), 1)], "reverse": True, "nice": False},
        axis={"values": [at + 0.5 for at in range(len(targets))], "grid": False, "ticks": False,
              "labelExpr": f"{json.dumps([str(target) for target in targets])}[floor(datum.value)]"},
    )  # fmt: skip
    box = {"x": x, "x2": {"field": "to"}, "y": y, "y2": {"field": "bottom"}, **picture.described()}
    color = {"field": "color", "type": "nominal", "scale": None}
    layers = [
        {"data": {"values": parts}, "mark": "rect", "encoding": {**box, "color": color}},
        {
            "data": {"values": [part for part in parts if part["readable"]]},
            "mark": {"type": "text", "fontSize": 10},
            "encoding": {
                "x": {"field": "middle", "type": "quantitative"},
                "y": {"field": "center", "type": "quantitative"},
                "text": {"field": "rank"},
            },
        },
        {
            "data": {"values": frames},
            "mark": {"type": "rect", "filled": False, "stroke": picture.RED, "strokeWidth": 2},
            "encoding": box,
        },
    ]
    note = "numbers and colours: ranks; red frame: several ranks at one target in a round"
    if rounds > shown:
        note += f"; {rounds - shown} more rounds are not drawn"
    size = {"width": max(shown * _CELL, _CELL), "height": max(len(targets), 1) * _CELL}
    return picture.chart(title, [subtitle, note], {**size, "view": {"fill": "#f4f4f4"}, "layer": layers})


def _who(ranks: Mapping[int, int]) -> str:
    return ", ".join(f"rank {rank}: {amount} B" for rank, amount in sorted(ranks.items()))
