"""One test per symbol of unit names (folders, questions, links, who may use a file): see test_symbols.py."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Final

import pytest
from symbol_calls import CLOSE, OPEN, SYMBOLS, symbols_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from symbol_calls import Both, Seen

SOURCE: Final = "symbols_names.c"
TESTED: Final = symbols_of(SOURCE)


@pytest.fixture(scope="module")
def both(symbol_runs: Callable[[str], Both]) -> Both:
    return symbol_runs(SOURCE)


def once(name: str, error: int = 0) -> Seen:
    return (name, 0, -1, error)


ASKING: Final = ("access", "faccessat", "statfs", "statvfs")
"""Recorded when there is an answer."""
OF_FILE: Final[dict[str, list[Seen]]] = {
    **{name: [once(name)] for name in ASKING},
    **{name: [OPEN, once(name), CLOSE] for name in ("fstatfs", "fstatvfs")},
    "chmod": [once("chmod"), once("stat")],
    "fchmod": [OPEN, once("fchmod"), CLOSE],
    "fchmodat": [once("fchmodat")],
    "chown": [once("chown")],
    "lchown": [once("lchown")],
    "fchown": [OPEN, once("fchown"), CLOSE],
    "fchownat": [once("fchownat")],
}
MISSING: Final = ("chmod", "fchmodat", "chown", "lchown", "fchownat")
"""What changes something is recorded when it fails, too."""
NEW: Final[dict[str, list[Seen]]] = {
    "mkdir": [once("mkdir"), once("mkdir", errno.EEXIST)],
    "mkdirat": [once("mkdirat"), once("mkdirat", errno.EEXIST)],
    "rmdir": [once("rmdir"), once("rmdir", errno.ENOENT)],
}
FAILED_CLOSE: Final = once("closedir", errno.EBADF)
OF_FOLDER: Final[dict[str, list[Seen]]] = {
    "opendir": [once("opendir"), once("closedir")],
    "fdopendir": [once("fdopendir"), once("closedir")],
    "readdir": [
        once("opendir"), *[once("readdir")] * 4, once("closedir"),
        once("opendir"), once("readdir"), FAILED_CLOSE,
    ],
    "readdir_r": [
        once("opendir"), *[once("readdir_r")] * 4, once("closedir"),
        once("opendir"), once("readdir_r", errno.EBADF), FAILED_CLOSE,
    ],
    "closedir": [once("opendir"), once("closedir"), once("opendir"), FAILED_CLOSE],
}  # fmt: skip


@pytest.mark.parametrize("symbol", TESTED)
def test_events(both: Both, symbol: str) -> None:
    both.need(symbol)
    event = SYMBOLS[symbol]
    assert both.seen(symbol) == OF_FILE.get(event, [])
    assert both.seen(f"missing/{symbol}") == ([once(event, errno.ENOENT)] if event in MISSING else [])
    assert both.seen(f"{symbol}.new") == NEW.get(event, [])
    assert both.seen(f"{symbol}.folder") == OF_FOLDER.get(event, [])
    assert both.seen(f"{symbol}.link") == ([once(event)] if event in ("readlink", "readlinkat") else [])


def test_nothing_is_said(both: Both) -> None:
    assert both.traced.trace.is_whole()
    assert both.traced.err == ""
