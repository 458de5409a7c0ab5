"""Pictures of bars with their deviation, for pages of results.

Not here: what is measured (targets_reads.py, subfiles_runs.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

WIDTH = 760
LEFT = 20
BAR = 26
TOP = 46


@dataclass(frozen=True)
class Bar:
    """One row."""

    title: str
    value: float
    deviation: float


def to_svg(title: str, rows: Sequence[Bar], bound: float, note: str) -> str:
    """Bars, and a dashed line at `bound`; `note` stands below and says what both are."""
    most = max(bound, *(row.value + row.deviation for row in rows))
    scale = (WIDTH - LEFT - 90) / most
    height = TOP + len(rows) * (BAR + 26) + 34
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
        'font-family="sans-serif" font-size="12">',
        f"<title>{title}</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="10" y="20" font-size="14" font-weight="bold">{title}</text>',
    ]
    for number, row in enumerate(rows):
        y = TOP + number * (BAR + 26)
        end, spread = LEFT + row.value * scale, row.deviation * scale
        lines += [
            f'<text x="{LEFT}" y="{y + 10}">{row.title}</text>',
            f'<rect x="{LEFT}" y="{y + 16}" width="{row.value * scale:.1f}" height="{BAR - 6}" fill="#1a66b3"/>',
            f'<line x1="{end - spread:.1f}" y1="{y + 26}" x2="{end + spread:.1f}" y2="{y + 26}" stroke="#cc0000" '
            'stroke-width="2"/>',
            f'<text x="{end + spread + 6:.1f}" y="{y + 30}">{row.value:.1f}</text>',
        ]
    at = LEFT + bound * scale
    lines += [
        f'<line x1="{at:.1f}" y1="{TOP}" x2="{at:.1f}" y2="{height - 30}" stroke="#444444" stroke-dasharray="4 3"/>',
        f'<text x="{LEFT}" y="{height - 10}" fill="#555555">{note}</text>',
        "</svg>",
    ]
    return "\n".join(lines) + "\n"
