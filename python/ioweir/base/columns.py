"""Rows of tables as they fit into a terminal of 80 columns."""

from __future__ import annotations

from typing import Final

COLUMNS: Final = 80
_INDENT: Final = 6


def row(first: str, second: str, gap: str = "  ") -> list[str]:
    """Both on one line, or the second on a line of its own below the first."""
    whole = f"{first}{gap}{second}"
    return [whole] if len(whole) <= COLUMNS else [first.rstrip(), f"{'':{_INDENT}}{second}"]
