"""TOML: the standard library's reader, or where Python is older than 3.11 the package it was made from.

What both let through is refused here: whole numbers of more than 64 bits, which TOML does not have, and tables in
tables without end, for which every reader of the content would run out of stack. Texts for TOML: `quoted`, `comment`.
"""

from __future__ import annotations

import json
import re
import sys
from typing import Any, Final

from ioweir.base import plain_text

if sys.version_info >= (3, 11):
    from tomllib import TOMLDecodeError
    from tomllib import loads as _loads
else:
    from tomli import TOMLDecodeError
    from tomli import loads as _loads

__all__ = ["TOMLDecodeError", "comment", "loads", "quoted"]

_DEEPEST: Final = 32
_LARGEST: Final = 1 << 63
_PAIR: Final = re.compile(r"\\(?:u(d[89ab][0-9a-f]{2})\\u(d[c-f][0-9a-f]{2})|.)")


def loads(text: str) -> dict[str, Any]:
    """The content of a document; TOMLDecodeError, which is a ValueError, for all that it cannot be."""
    try:
        content: dict[str, Any] = _loads(text)
    except TOMLDecodeError:
        raise
    except (ValueError, RecursionError) as error:  # a number of thousands of digits; thousands of brackets
        raise TOMLDecodeError(str(error)) from error
    waiting: list[tuple[Any, int]] = [(content, 0)]
    while waiting:
        value, depth = waiting.pop()
        if depth > _DEEPEST:
            raise TOMLDecodeError(f"tables and lists lie in each other more than {_DEEPEST} deep")
        if isinstance(value, int) and not -_LARGEST <= value < _LARGEST:
            raise TOMLDecodeError(f"the whole number {str(value)[:20]}... does not fit 64 bits")
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        waiting += [(one, depth + 1) for one in inner]
    return content


def quoted(text: str) -> str:
    """A text as a value or a key. JSON's form, but for characters beyond 16 bits, of which TOML takes no halves."""

    def whole(found: re.Match[str]) -> str:
        if found[1] is None:
            return found[0]
        return f"\\U{0x10000 + ((int(found[1], 16) & 0x3FF) << 10) + (int(found[2], 16) & 0x3FF):08x}"

    return _PAIR.sub(whole, json.dumps(plain_text.without_halves(text)))


def comment(text: str) -> str:
    """A line of comment: TOML forbids characters that a terminal would obey there, too."""
    return f"# {plain_text.line(' '.join(text.split()))}"
