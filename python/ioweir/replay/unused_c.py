"""Takes out of a generated C text what it defines and nowhere uses, so that it compiles without warnings.

Only of texts as benchmark_c.py makes them: a definition begins in the first column, and ends in its line or with a `}`
in the first column.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Final

_SILENT: Final = re.compile(r'"(?:\\.|[^"\\\n])*"|/\*.*?\*/', re.DOTALL)
"""Strings and comments."""
_DEFINITION: Final = re.compile(r"(?:#define (\w+)|static [^=(\[{;]*?(\w+)(?:\[|\(| =|;))")
_WORD: Final = re.compile(r"\w+")


def removed(text: str) -> str:
    """The text without them, and without the comments above them."""
    while True:
        words = Counter(_WORD.findall(_SILENT.sub(" ", text)))
        lines = text.split("\n")
        kept: list[str] = []
        at = 0
        while at < len(lines):
            end = _end(lines, at)
            found = _DEFINITION.match(lines[at])
            name = (found[1] or found[2]) if found is not None else ""
            if not name or words[name] > 1 or name.startswith("_"):
                kept += lines[at:end]
            else:
                while kept and kept[-1].startswith("/*") and kept[-1].endswith("*/"):
                    kept.pop()
            at = end
        if len(kept) == len(lines):
            return text
        text = "\n".join(kept)


def _end(lines: list[str], at: int) -> int:
    """Behind the last line of what begins here."""
    first = _SILENT.sub("", lines[at]).rstrip()
    if not first.startswith("static ") or first.endswith(("}", ";")):
        return at + 1
    for end in range(at + 1, len(lines)):
        if lines[end] == "}" or (lines[end].endswith("};") and not first.endswith("{")):
            return end + 1
    return len(lines)
