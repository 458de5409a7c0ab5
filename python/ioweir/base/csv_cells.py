"""Words in CSV that no spreadsheet takes for formulas, and how they become what they were.

A spreadsheet computes a cell that begins with = + - or @, behind a tab or line break, too (OWASP, CSV Injection), and
names of files are anybody's. Such a cell gets an apostrophe in front, as OWASP says. A spreadsheet of a country whose
lists have semicolons splits cells at these, and at tabs and line breaks, whatever the quotes say: before = + - and @
behind them stands an apostrophe, too. What has apostrophes there already gets one more, so that the words as they were
are had by taking one away.

Example: =1+1 becomes '=1+1, a;-1 becomes a;'-1, and '=1 becomes ''=1.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import pyarrow as pa
else:
    pa = Any

_SIGNS: Final = "=+@\uff1d\uff0b\uff20\uff0d-"
"""With their full-width forms, which some spreadsheets turn into the others. The minus ends the class of letters."""
_BEGIN: Final = f"^('*[\t\r\n{_SIGNS}])"
_BEHIND: Final = f"([;\t\r\n])('*[{_SIGNS}])"
_UNDO_BEGIN: Final = re.compile(r"\A'('*[\t\r\n" + _SIGNS + "])")
_UNDO_BEHIND: Final = re.compile("([;\t\r\n])'('*[" + _SIGNS + "])")


def guarded(table: pa.Table) -> pa.Table:
    """The table with all of its words so that they are words in a spreadsheet, too. Numbers stay."""
    import pyarrow as pa  # noqa: PLC0415
    from pyarrow import compute  # noqa: PLC0415

    for index, column in enumerate(table.columns):
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            words = compute.replace_substring_regex(column, pattern=_BEHIND, replacement=r"\1'\2")
            words = compute.replace_substring_regex(words, pattern=_BEGIN, replacement=r"'\1")
            table = table.set_column(index, table.schema.names[index], words)
    return table


def original(cell: str) -> str:
    """What a cell's words were."""
    return _UNDO_BEHIND.sub(r"\1\2", _UNDO_BEGIN.sub(r"\1", cell))
