"""How commands print what they found. Without the command line's library, which plain reports do without (show.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ioweir.base import plain_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


def print_json(content: object) -> None:
    """As text that is safe on a terminal."""
    from ioweir.base import json_text  # noqa: PLC0415 (text does without)

    print(json_text.text(content, indent=1))


def print_result(as_json: bool, result: object, to_text: Callable[[], Iterable[str]]) -> None:
    """What a command found: as JSON where that is wanted, else the lines that `to_text` makes of it."""
    if as_json:
        print_json(result)
    else:
        plain_text.print_lines(to_text())
