"""A plan's schedule as text and as an SVG picture: storage targets times rounds, in each cell the ranks that are at it.

No plotting library: the picture is rectangles and numbers, and has to be the same everywhere.
"""

from __future__ import annotations

import colorsys
from typing import TYPE_CHECKING, Any, Final

from ioweir.base.plain_text import xml

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Cells = dict[tuple[int, int], dict[int, int]]
"""(target, round) -> rank -> bytes."""

TEXT_ROUNDS: Final = 16
TEXT_TARGETS: Final = 32
PICTURE_ROUNDS: Final = 200
_CELL: Final = 34
_LEFT: Final = 84
_TOP: Final = 62


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


def to_svg(table: Cells, title: str, subtitle: str) -> str:
    """The picture: a row a target, a column a round, a colour a rank; a red frame where several are at a target."""
    targets = sorted({target for target, _ in table})
    rounds = max((number for _, number in table), default=0)
    shown = min(rounds, PICTURE_ROUNDS)
    ranks = sorted({rank for at in table.values() for rank in at})
    colors = {rank: color_of(index) for index, rank in enumerate(ranks)}
    width = max(_LEFT + shown * _CELL + 20, 760)
    height = _TOP + len(targets) * _CELL + 50
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="12">',
        f"<title>{xml(title)}</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        f'<text x="10" y="20" font-size="14" font-weight="bold">{xml(title)}</text>',
        f'<text x="10" y="38">{xml(subtitle)}</text>',
    ]
    for number in range(1, shown + 1):
        x = _LEFT + (number - 1) * _CELL + _CELL / 2
        lines.append(f'<text x="{x:g}" y="{_TOP - 6}" text-anchor="middle" font-size="10">{number}</text>')
    for row, target in enumerate(targets):
        y = _TOP + row * _CELL
        lines.append(f'<text x="{_LEFT - 8}" y="{y + _CELL / 2 + 4:g}" text-anchor="end">target {target}</text>')
        for number in range(1, shown + 1):
            lines += _cell(_LEFT + (number - 1) * _CELL, y, table.get((target, number), {}), colors, target, number)
    note = "columns: rounds; numbers: ranks; red frame: several ranks at one target in a round"
    if rounds > shown:
        note += f"; {rounds - shown} more rounds are not drawn"
    lines += [f'<text x="10" y="{height - 16}" fill="#555555">{xml(note)}</text>', "</svg>"]
    return "\n".join(lines) + "\n"


def _cell(x: int, y: int, ranks: Mapping[int, int], colors: Mapping[int, str], target: int, number: int) -> list[str]:
    edge = _CELL - 2
    if not ranks:
        return [f'<rect x="{x}" y="{y}" width="{edge}" height="{edge}" fill="#f4f4f4"/>']
    who = ", ".join(f"rank {rank}: {amount} B" for rank, amount in sorted(ranks.items()))
    lines = [f"<g><title>target {target}, round {number}: {who}</title>"]
    part = edge / len(ranks)
    for index, rank in enumerate(sorted(ranks)):
        lines.append(f'<rect x="{x}" y="{y + index * part:g}" width="{edge}" height="{part:g}" fill="{colors[rank]}"/>')
        if part >= 10:
            lines.append(
                f'<text x="{x + edge / 2:g}" y="{y + (index + 0.5) * part + 4:g}" text-anchor="middle" '
                f'font-size="{min(12, part):g}">{rank}</text>'
            )
    if len(ranks) > 1:
        lines.append(
            f'<rect x="{x}" y="{y}" width="{edge}" height="{edge}" fill="none" stroke="#cc0000" stroke-width="2"/>'
        )
    return [*lines, "</g>"]
