"""JSON of long documents: a line for each key and for each entry of long lists, so that people and diff can read it.

Python's own indentation puts every figure on a line of its own and is several times slower, for it is not done in C.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ioweir.base import plain_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def lines(document: Mapping[str, Any]) -> Iterator[str]:
    """The document line by line. Example: {"a": 1, "b": [{}]} -> "{", ' "a": 1,', ' "b": [', "  {}", " ]", "}"."""
    yield "{"
    last = len(document) - 1
    for at, (key, value) in enumerate(document.items()):
        comma = "," if at < last else ""
        entries = _entries(value)
        if entries is None:
            yield f" {_text(key)}: {_text(value)}{comma}"
            continue
        opening, texts, closing = entries
        yield f" {_text(key)}: {opening}"
        final = len(texts) - 1
        for number, text in enumerate(texts):
            yield f"  {text}," if number < final else f"  {text}"
        yield f" {closing}{comma}"
    yield "}"


def _text(value: Any) -> str:
    return plain_text.json(json.dumps(value))


def _entries(value: Any) -> tuple[str, list[str], str] | None:
    """What stands on lines of its own: entries of lists of objects, of objects of objects."""
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return "[", [_text(entry) for entry in value], "]"
    if isinstance(value, dict) and any(isinstance(entry, dict) for entry in value.values()):
        return "{", [f"{_text(key)}: {_text(entry)}" for key, entry in value.items()], "}"
    return None
