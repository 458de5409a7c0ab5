"""Text as part of a page: nothing that stands in it becomes a tag, an attribute or a script."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ioweir.base import plain_text

if TYPE_CHECKING:
    from collections.abc import Iterable


def escaped(text: object) -> str:
    """Text between tags, or in an attribute's quotes."""
    return plain_text.xml(str(text)).replace('"', "&quot;").replace("'", "&#39;")


def cards(pairs: Iterable[tuple[str, str]]) -> str:
    """The row of figures at the top of a page: a figure, and of what."""
    boxes = (f'<div class="card"><b>{escaped(value)}</b><span>{escaped(what)}</span></div>' for value, what in pairs)
    return f'<div class="cards">{"".join(boxes)}</div>'
