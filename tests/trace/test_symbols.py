"""One test per intercepted POSIX symbol: result and errno as without the preload, and exactly the events that belong.

programs/symbols.c calls each symbol through dlsym, so that aliases and fortified entries are reached whatever compiler
flags would choose. A symbol that is added to spec/functions.toml and not to that program fails here.
"""

from __future__ import annotations

import errno
import signal
from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import pytest
from tracing import FUNCTIONS, Traced, build, preloaded, run

if TYPE_CHECKING:
    from pathlib import Path

    from tracing import Event

SYMBOLS: Final[dict[str, str]] = {
    symbol: row["name"] for row in FUNCTIONS.values() if row["layer"] == "POSIX" for symbol in row["symbols"]
}
"""Symbol -> an event it makes (fcntl: one of several)."""
SENTINEL: Final = 99
GUARDED: Final = [symbol for symbol in SYMBOLS if symbol.endswith("_chk")]

Line = tuple[str, int, int]
"""What was tried, result, errno."""
Seen = tuple[str, int, int, int]
"""Function, bytes, offset, error."""

OPEN: Final[Seen] = ("open", 0, -1, 0)
CLOSE: Final[Seen] = ("close", 0, -1, 0)


class Both:
    """The program's output with and without the preload, and the trace."""

    def __init__(self, folder: Path) -> None:
        self.program = build("symbols.c", "gcc", libraries=["-ldl"])
        self.data = folder / "data"
        without, trace = folder / "without", folder / "trace"
        for place in (self.data, without, trace):
            place.mkdir()
        self.without = self.lines(run([self.program, without]).expect().out)
        self.traced: Traced = preloaded(trace, [self.program, self.data])
        self.traced.expect()
        self.with_preload = self.lines(self.traced.out)
        self.events: dict[str, list[Event]] = defaultdict(list)
        for event in sorted(self.traced.trace.events, key=lambda event: event.seq):
            self.events[event.path].append(event)

    @staticmethod
    def lines(text: str) -> dict[str, list[Line]]:
        table: dict[str, list[Line]] = defaultdict(list)
        for line in text.splitlines():
            symbol, rest = line.split(" ", 1)
            what, result, error = rest.rsplit(" ", 2)
            table[symbol].append((what, int(result), int(error)))
        return table

    def seen(self, name: str) -> list[Seen]:
        """The events of a file in the data directory, in their order."""
        return [(e.name, e.bytes, e.offset, e.error) for e in self.events[str(self.data / name)]]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Both:
    return Both(tmp_path_factory.mktemp("symbols"))


def test_program_knows_every_symbol() -> None:
    listing = run([build("symbols.c", "gcc", libraries=["-ldl"]), "/", "list"]).expect()
    assert sorted(listing.out.split()) == sorted(SYMBOLS)


@pytest.mark.parametrize("symbol", SYMBOLS)
def test_results_and_errno_are_those_without_the_preload(both: Both, symbol: str) -> None:
    if both.without[symbol] == [("absent", 0, 0)]:
        pytest.skip(f"this C library has no {symbol}")
    assert both.with_preload[symbol] == both.without[symbol]
    assert any(result >= 0 and error == SENTINEL for _, result, error in both.with_preload[symbol])
    assert any(result < 0 and error != SENTINEL for _, result, error in both.with_preload[symbol])


def opening(name: str, also_created: bool) -> tuple[list[Seen], list[Seen]]:
    """Events of the file, and of the one that is created."""
    pair: list[Seen] = [(name, 0, -1, 0), CLOSE]
    return ([] if name == "creat" else pair), (pair if also_created else [])


def transfer(symbol: str, name: str) -> list[Seen]:
    """Once it works, once the descriptor does not allow it. Reads at 950 of 1000 bytes are short."""
    offset = 950 if name.startswith("p") else -1
    moved = 50 if name in ("pread", "preadv") else 100
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
}


@pytest.mark.parametrize("symbol", SYMBOLS)
def test_events(both: Both, symbol: str) -> None:
    if both.without[symbol] == [("absent", 0, 0)]:
        pytest.skip(f"this C library has no {symbol}")
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
    expected = {str(both.data / symbol) for symbol in SYMBOLS if SYMBOLS[symbol] != "creat"}
    for symbol in SYMBOLS:
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
    program = build("symbols.c", "gcc", libraries=["-ldl"])
    trace = tmp_path / "trace"
    trace.mkdir()
    without = run([program, tmp_path, "overflow", symbol])
    assert without.code == -signal.SIGABRT
    traced = preloaded(trace, [program, tmp_path, "overflow", symbol])
    assert traced.code == -signal.SIGABRT
    assert traced.err == without.err
