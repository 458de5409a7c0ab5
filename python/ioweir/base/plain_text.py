"""Text as it may leave ioweir: without characters that a terminal obeys, that XML forbids, or that hide what is there.

File names are bytes of anybody's choice. One function for text, one for XML, one for JSON; and the streams through
which the command line writes, so that no message gets past them. What a message says is decided elsewhere.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
from typing import IO, TYPE_CHECKING, Any, Final, cast

if TYPE_CHECKING:
    from collections.abc import Iterable

_BYTES_FROM: Final = 0xDC80  # what surrogateescape makes of the bytes 0x80 .. 0xff of a name that is no UTF-8
_BYTES_TO: Final = 0xDCFF
_LATIN_1: Final = 0x100

# C0 and C1 controls, marks and overrides of writing direction, separators of lines and paragraphs, parts of surrogate
# pairs, and the two that are no characters.
_HOSTILE: Final = "\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff"
_IN_TEXT: Final = re.compile(f"[{_HOSTILE}]")
_IN_LINE: Final = re.compile(f"[\t\n{_HOSTILE}]")
_HALF: Final = re.compile("[\ud800-\udfff]")
_NAMED: Final = {"\t": "\\t", "\n": "\\n", "\r": "\\r"}
# In JSON as Python prints it: a backslash, a pair of surrogates, one that stands alone.
_JSON_SURROGATE: Final = re.compile(
    r"\\(?:\\|ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}|u(d[89a-f][0-9a-f]{2}))", re.IGNORECASE
)


def _visible(found: re.Match[str]) -> str:
    character = found[0]
    code = ord(character)
    if _BYTES_FROM <= code <= _BYTES_TO:
        return f"\\x{code - 0xDC00:02x}"  # as the trace's reader writes them
    return _NAMED.get(character) or (f"\\x{code:02x}" if code < _LATIN_1 else f"\\u{code:04x}")


def line(text: str) -> str:
    """The text on one line. Example: "a\\x1b[2Jb\\n" -> "a\\\\x1b[2Jb\\\\n"."""
    return _IN_LINE.sub(_visible, text)


def lines(text: str) -> str:
    """The same for text of several lines: newlines and tabs stay."""
    return _IN_TEXT.sub(_visible, text)


def xml(text: str) -> str:
    """The text as XML's character data: well-formed whatever it holds."""
    # xml.sax.saxutils has a function for this, and loads an HTTP client, upon which every launcher would wait.
    return line(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def without_halves(text: str) -> str:
    """The text, with halves of surrogate pairs, which no file and no table can hold, as `line` shows them."""
    return _HALF.sub(_visible, text)


def json(text: str) -> str:
    """JSON text, with no half of a surrogate pair alone, which strict readers refuse and no file can hold."""

    def replaced(found: re.Match[str]) -> str:
        if found[1] is None:
            return found[0]
        code = int(found[1], 16)
        return f"\\\\x{code - 0xDC00:02x}" if _BYTES_FROM <= code <= _BYTES_TO else "\\ufffd"

    return _JSON_SURROGATE.sub(replaced, text)


def print_lines(texts: Iterable[str]) -> None:
    """Print each text on a line of its own."""
    for text in texts:
        print(line(text))


class Stream:
    """A text stream that shows characters which a terminal would obey, newlines and tabs excepted."""

    def __init__(self, raw: IO[str]) -> None:
        self.raw = raw

    def write(self, text: str) -> int:
        """Write it as `lines` shows it."""
        shown = lines(text)
        encoding = getattr(self.raw, "encoding", None) or "utf-8"
        self.raw.write(shown.encode(encoding, "backslashreplace").decode(encoding))
        return len(text)

    def writelines(self, texts: Iterable[str]) -> None:
        """Write each of them."""
        for text in texts:
            self.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.raw, name)


class _Nowhere(io.TextIOBase):
    """In the place of a stream that the process began without (`>&-`)."""

    def write(self, text: str) -> int:
        return len(text)


def say(text: str) -> None:
    """Print a line on standard error, where somebody still reads it: who does not changes no exit code."""
    try:
        print(line(text), file=sys.stderr, flush=True)
    except OSError:
        forget(sys.stderr)


def forget(stream: IO[str]) -> None:
    """What a stream could not write is not tried again when Python ends, which has an exit code of its own for that."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def write_names(text: str) -> None:
    """Print text that a shell is to read: names that are no UTF-8 as the bytes that they are, whatever the locale."""
    stream = raw(sys.stdout)
    stream.flush()
    binary = getattr(stream, "buffer", None)
    if binary is None:
        stream.write(f"{text}\n")
    else:
        binary.write(os.fsencode(f"{text}\n"))


def write_painted(stream: IO[str], text: str) -> None:
    """Write text of ours that holds a terminal's escape sequences; what it quotes has been made harmless before."""
    out = raw(stream)
    encoding = getattr(out, "encoding", None) or "utf-8"
    out.write(text.encode(encoding, "backslashreplace").decode(encoding))


def raw(stream: IO[str]) -> IO[str]:
    """The stream itself: for what paints a terminal, and shows hostile characters on its own."""
    return stream.raw if isinstance(stream, Stream) else stream


def guard_standard_streams() -> None:
    """From here on whatever is printed goes through a Stream: also messages of exceptions and of other libraries."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if not isinstance(stream, Stream):
            setattr(sys, name, cast("IO[str]", Stream(stream or cast("IO[str]", _Nowhere()))))
