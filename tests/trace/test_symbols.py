"""One test per symbol of unit posix: result and errno as without the preload, and exactly the events that belong.

programs/symbols.c calls each symbol through dlsym, so that aliases and fortified entries are reached whatever compiler
flags would choose. A symbol that is added to spec/functions_*.toml and to none of these programs fails here.
"""

from __future__ import annotations

import errno
import signal
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import pytest
from symbol_calls import CLOSE, OPEN, SOURCES, SYMBOLS, Both, Seen, compiled_program, symbols_of
from tracing import preloaded, run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SOURCE: Final = "symbols.c"
TESTED: Final = symbols_of(SOURCE)
GUARDED: Final = [symbol for symbol in TESTED if symbol.endswith("_chk")]


@pytest.fixture(scope="module")
def both(symbol_runs: Callable[[str], Both]) -> Both:
    return symbol_runs(SOURCE)


def test_programs_know_every_symbol() -> None:
    assert sorted(symbol for source in SOURCES for symbol in symbols_of(source)) == sorted(SYMBOLS)
    listing = run([compiled_program(SOURCE), "/", "list"]).expect()
    assert listing.out.split() == TESTED


@pytest.mark.parametrize(("source", "symbol"), [(source, name) for source in SOURCES for name in symbols_of(source)])
def test_results_and_errno_are_those_without_the_preload(
    symbol_runs: Callable[[str], Both], source: str, symbol: str
) -> None:
    runs = symbol_runs(source)
    runs.need(symbol)
    assert runs.same_with_preload(symbol)


def opening(name: str, also_created: bool) -> tuple[list[Seen], list[Seen]]:
    """Events of the file, and of the one that is created, whose mode the program asks for."""
    pair: list[Seen] = [(name, 0, -1, 0), CLOSE]
    return ([] if name == "creat" else pair), ([*pair, ("stat", 0, -1, 0)] if also_created else [])


def transfer(symbol: str, name: str) -> list[Seen]:
    """Once it works, once the descriptor does not allow it. Reads at 950 of 1000 bytes are short."""
    offset = 950 if name.startswith("p") else 0
    moved = 50 if name in ("pread", "preadv", "preadv2") else 100
    assert symbol
    return [OPEN, (name, moved, offset, 0), CLOSE, OPEN, (name, 0, offset, errno.EBADF), CLOSE]


COPY: Final[list[Seen]] = [("pwrite", 10, 0, 0), CLOSE]
OTHERS: Final[dict[str, list[Seen]]] = {
    "close": [OPEN, CLOSE],
    "dup": [OPEN, ("dup", 0, -1, 0), *COPY, ("dup", 0, -1, errno.EMFILE), CLOSE],
    "dup2": [OPEN, ("dup2", 0, -1, 0), *COPY, ("dup2", 0, -1, errno.EBADF), CLOSE],
    "dup3": [OPEN, ("dup3", 0, -1, 0), *COPY, ("dup3", 0, -1, errno.EINVAL), CLOSE],
    "fcntl": [
        OPEN,
        ("fcntl_lock", 100, 8, 0),
        ("fcntl_lock", 50, 8, 0),
        ("fcntl_getlk", 7, 8, 0),
        ("fcntl_unlock", 50, 8, 0),
        ("fcntl_lock", 0, -1, errno.EINVAL),
        ("fcntl_lock", 3, 0, 0),
        ("fcntl_unlock", 3, 0, 0),
        ("fcntl_dupfd", 0, -1, 0),
        *COPY,
        ("fcntl_dupfd", 0, -1, errno.EINVAL),
        CLOSE,
    ],
    "lseek": [
        OPEN,
        ("lseek", 0, 300, 0),
        ("read", 100, 300, 0),
        ("lseek", 0, 350, 0),
        ("write", 10, 350, 0),
        ("lseek", 0, 1024, 0),
        ("write", 10, 1024, 0),
        ("lseek", 0, -1, errno.EINVAL),
        CLOSE,
    ],
}


@pytest.mark.parametrize("symbol", TESTED)
def test_events(both: Both, symbol: str) -> None:
    both.need(symbol)
    name = SYMBOLS[symbol]
    family = "fcntl" if name.startswith("fcntl") else name
    if family in ("open", "openat", "creat"):
        # Entries that end in _2 never create: they have no mode.
        own, created = opening(family, also_created=not symbol.endswith("_2"))
        assert both.seen(symbol) == own
        assert both.seen(f"{symbol}.created") == created
        assert both.seen(f"missing/{symbol}") == [(family, 0, -1, errno.ENOENT)]
    else:
        assert both.seen(symbol) == OTHERS.get(family, transfer(symbol, family))


def test_nothing_else_is_recorded(both: Both) -> None:
    """No directory, no device, nothing of a descriptor whose opening was not seen."""
    expected = {str(both.data / symbol) for symbol in TESTED if SYMBOLS[symbol] != "creat"}
    for symbol in TESTED:
        if SYMBOLS[symbol] in ("open", "openat", "creat"):
            expected.add(str(both.data / "missing" / symbol))
            if not symbol.endswith("_2"):
                expected.add(str(both.data / f"{symbol}.created"))
    assert {event.path for event in both.traced.trace.events} == expected
    assert both.traced.trace.is_whole()
    assert both.traced.err == ""


def test_events_carry_times_in_order(both: Both) -> None:
    events = sorted(both.traced.trace.events, key=lambda event: event.seq)
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    for earlier, later in pairwise(events):
        assert earlier.end_ns <= later.start_ns
    assert {event.origin for event in events} == {"application"}
    assert {event.parent for event in events} == {0}


@pytest.mark.parametrize("symbol", GUARDED)
def test_overflow_is_still_caught(symbol: str, tmp_path: Path) -> None:
    """A fortified entry with too small a buffer ends the program, as it does without the preload."""
    program = compiled_program(SOURCE)
    trace = tmp_path / "trace"
    trace.mkdir()
    without = run([program, tmp_path, "overflow", symbol])
    assert without.code == -signal.SIGABRT
    traced = preloaded(trace, [program, tmp_path, "overflow", symbol])
    assert traced.code == -signal.SIGABRT
    assert traced.err == without.err
