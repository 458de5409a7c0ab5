"""JSON of whatever ioweir prints: dictionaries, and dataclasses, whose fields become keys.

Long documents have a line for each key and for each entry of long lists, so that people and diff can read them.
Python's own indentation puts every figure on a line of its own and is several times slower, for it is not done in C.
"""

from __future__ import annotations

import json
import math
from dataclasses import is_dataclass
from typing import TYPE_CHECKING, Any

from ioweir.base import plain_text

if TYPE_CHECKING:
    from collections.abc import Iterator


def text(value: object, indent: int | None = None) -> str:
    """The value as JSON, safe on a terminal. A dataclass, at whatever depth, is an object of its fields.

    JSON has no infinite numbers and none that are none: they are null.
    """
    try:
        written = json.dumps(value, indent=indent, default=vars, allow_nan=False)
    except ValueError:
        written = json.dumps(_finite(value), indent=indent)
    return plain_text.json(written)


def _finite(value: Any) -> Any:
    """The same with null in the place of what JSON has not."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(entry) for entry in value]
    return value if value is None or isinstance(value, str | int) else _finite(vars(value))


def to_dict(value: object) -> Any:
    """The value as json.loads gives it back: dictionaries in place of dataclasses."""
    return json.loads(text(value))


def lines(document: object) -> Iterator[str]:
    """The document line by line. Example: {"a": 1, "b": [{}]} -> "{", ' "a": 1,', ' "b": [', "  {}", " ]", "}"."""
    items = document if isinstance(document, dict) else vars(document)
    yield "{"
    last = len(items) - 1
    for at, (key, value) in enumerate(items.items()):
        comma = "," if at < last else ""
        entries = _entries(value)
        if entries is None:
            yield f" {text(key)}: {text(value)}{comma}"
            continue
        opening, entry_texts, closing = entries
        yield f" {text(key)}: {opening}"
        final = len(entry_texts) - 1
        for number, entry in enumerate(entry_texts):
            yield f"  {entry}," if number < final else f"  {entry}"
        yield f" {closing}{comma}"
    yield "}"


def _entries(value: Any) -> tuple[str, list[str], str] | None:
    """What stands on lines of its own: entries of lists of objects, of objects of objects."""
    if isinstance(value, list) and value and _is_object(value[0]):
        return "[", [text(entry) for entry in value], "]"
    fields = value if isinstance(value, dict) else vars(value) if is_dataclass(value) else {}
    if any(_is_object(entry) for entry in fields.values()):
        return "{", [f"{text(key)}: {text(entry)}" for key, entry in fields.items()], "}"
    return None


def _is_object(value: object) -> bool:
    return isinstance(value, dict) or is_dataclass(value)
