"""One test per symbol of unit stdio: see test_symbols.py. And streams in C++ and Python programs."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Final

import pytest
from symbol_calls import OPEN, SYMBOLS, symbols_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from symbol_calls import Both, Seen

SOURCE: Final = "symbols_stdio.c"
TESTED: Final = symbols_of(SOURCE)
FOPEN: Final[Seen] = ("fopen", 0, -1, 0)
FCLOSE: Final[Seen] = ("fclose", 0, -1, 0)


@pytest.fixture(scope="module")
def both(symbol_runs: Callable[[str], Both]) -> Both:
    return symbol_runs(SOURCE)


def moving(name: str, *sizes: int) -> list[Seen]:
    """Calls one after the other, then one on a stream that is not open for it."""
    events = [FOPEN]
    for i, size in enumerate(sizes):
        events.append((name, size, sum(sizes[:i]), 0))
    return [*events, FCLOSE, FOPEN, (name, 0, 0, errno.EBADF), FCLOSE]


def seeking(name: str, first: int, second: int) -> list[Seen]:
    """Two places, ten bytes read from each, and a place that is none."""
    return [
        FOPEN,
        (name, 0, first, 0),
        ("fread", 10, first, 0),
        (name, 0, second, 0),
        ("fread", 10, second, 0),
        (name, 0, second + 10, errno.EINVAL),
        FCLOSE,
    ]


STANDARD_INPUT: Final = {"getchar": 1, "scanf": 9, "vscanf": 9}
STANDARD_OUTPUT: Final = {"putchar": 1, "puts": 10, "printf": 20, "vprintf": 20}
OWN: Final[dict[str, list[Seen]]] = {
    "fopen": [FOPEN, FCLOSE],
    "fdopen": [OPEN, ("lseek", 0, 30, 0), ("fdopen", 0, -1, 0), ("fread", 10, 30, 0), FCLOSE],
    "freopen": [FOPEN, ("freopen (close)", 0, -1, 0)],
    "tmpfile": [],
    "fclose": [FOPEN, FCLOSE],
    "fread": moving("fread", 21, 21),
    "fwrite": moving("fwrite", 21, 21),
    "fgets": moving("fgets", 6, 4),
    "__fgets_chk": moving("fgets", 10, 10),
    "__fgets_unlocked_chk": moving("fgets", 10, 10),
    "getline": moving("getline", 10, 10),
    "getdelim": moving("getdelim", 4, 10),
    "fgetc": moving("fgetc", 1, 1),
    "ungetc": [
        FOPEN,
        ("fread", 10, 0, 0),
        ("ungetc", 0, 10, 0),
        ("ungetc", 0, 9, 0),
        ("fread", 3, 9, 0),
        FCLOSE,
    ],
    "fputs": moving("fputs", 13, 13),
    "fputc": moving("fputc", 1, 1),
    "fprintf": moving("fprintf", 20, 20),
    "fscanf": moving("fscanf", 9, 10),
    "fseek": seeking("fseek", 100, 970),
    "fseeko": seeking("fseeko", 100, 970),
    "fsetpos": seeking("fsetpos", 10, 30),
    "rewind": [FOPEN, ("fread", 10, 0, 0), ("rewind", 0, 0, 0), ("fread", 10, 0, 0), FCLOSE],
    "fflush": [
        FOPEN,
        ("fwrite", 10, 0, 0),
        ("fflush", 0, 10, 0),
        ("fwrite", 10, 10, 0),
        ("fflush", 0, 20, errno.EBADF),
        ("fclose", 0, -1, errno.EBADF),
    ],
    "setvbuf": [FOPEN, ("setvbuf", 512, 0, 0), ("setvbuf", 0, 0, errno.EINVAL), FCLOSE],
    "setbuffer": [FOPEN, ("setbuffer", 0, 0, 0), FCLOSE],
    "setbuf": [FOPEN, ("setbuf", 0, 0, 0), FCLOSE],
    "setlinebuf": [FOPEN, ("setlinebuf", 0, 0, 0), FCLOSE],
}
"""What belongs to the symbol's own file, by symbol or by event."""


def expected(symbol: str) -> list[Seen]:
    plain = symbol.removesuffix("_chk").removesuffix("_unlocked").removeprefix("__isoc99_").removeprefix("__")
    if size := STANDARD_INPUT.get(plain, STANDARD_OUTPUT.get(plain)):
        return moving(SYMBOLS[symbol], size)
    return OWN[symbol] if symbol in OWN else OWN[SYMBOLS[symbol]]


@pytest.mark.parametrize("symbol", TESTED)
def test_events(both: Both, symbol: str) -> None:
    both.need(symbol)
    assert both.seen(symbol) == expected(symbol)
    family = SYMBOLS[symbol]
    if family.startswith("freopen"):
        assert both.seen(f"{symbol}.created") == [
            ("freopen", 0, -1, 0),
            ("fwrite", 10, 0, 0),
            ("freopen (close)", 0, -1, 0),
        ]
        assert both.seen(f"missing/{symbol}") == [("freopen", 0, -1, errno.ENOENT)]
    elif family == "fopen":
        assert both.seen(f"missing/{symbol}") == [("fopen", 0, -1, errno.ENOENT)]


def test_temporary_files_have_the_name_that_the_kernel_gives_them(both: Both) -> None:
    temporary = [event for event in both.traced.trace.events if event.name == "tmpfile"]
    assert len(temporary) == len([symbol for symbol in TESTED if SYMBOLS[symbol] == "tmpfile"])
    assert {event.error for event in temporary} == {0}


def test_layer_is_not_posix(both: Both) -> None:
    """The C library's own system calls are not seen: nothing is counted twice."""
    layers = {
        event.layer for event in both.traced.trace.events if event.name in ("fread", "fwrite", "fprintf", "fclose")
    }
    assert layers == {"STDIO"}
    assert not [event for event in both.traced.trace.events if event.name in ("read", "write", "close")]
    assert both.traced.trace.is_whole()
    assert both.traced.err == ""
