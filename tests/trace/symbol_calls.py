"""What the tests of single symbols share: programs/symbols*.c run with and without the preload, and what both gave.

Lives here: running and reading. Not here: which events belong to a symbol (test_symbols*.py).
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, Final

import pytest
from tracing import FUNCTIONS, PROGRAMS, Traced, build, preloaded, run

if TYPE_CHECKING:
    from pathlib import Path

    from tracing import Event

SYMBOLS: Final[dict[str, str]] = {
    symbol: row["name"]
    for row in reversed(FUNCTIONS.values())
    if row["layer"] in ("POSIX", "STDIO")
    for symbol in row["symbols"]
}
"""Symbol -> the first of the events it makes."""
SENTINEL: Final = 99
YOUNG: Final = {
    **dict.fromkeys((f"__isoc23_{name}" for name in ("fscanf", "vfscanf", "scanf", "vscanf")), "glibc 2.38"),
    **dict.fromkeys(("io_uring_get_events", "io_uring_submit_and_get_events"), "liburing 2.3"),
}
"""Symbols that a supported system need not have, and what they came with."""
SOURCES: Final = [path.name for path in sorted(PROGRAMS.glob("symbols*.c"))]
LIBRARIES: Final = {"symbols_uring.c": ["-ldl", "-luring"]}

Line = tuple[str, int, int]
"""What was tried, result, errno."""
Seen = tuple[str, int, int, int]
"""Function, bytes, offset, error."""

OPEN: Final[Seen] = ("open", 0, -1, 0)
CLOSE: Final[Seen] = ("close", 0, -1, 0)


def symbols_of(source: str) -> list[str]:
    """The symbols that a program of programs/ calls, in its order."""
    found = re.findall(r'^    \{"(\w+)", do_\w+\}', (PROGRAMS / source).read_text(), re.MULTILINE)
    assert found, source
    return found


def compiled_program(source: str) -> Path:
    """The program, built."""
    return build(source, "gcc", libraries=LIBRARIES.get(source, ["-ldl"]))


class Both:
    """The program's output with and without the preload, and the trace."""

    def __init__(self, source: str, folder: Path) -> None:
        """Run it twice."""
        program = compiled_program(source)
        self.data = folder / "data"
        without, trace = folder / "without", folder / "trace"
        for place in (self.data, without, trace):
            place.mkdir()
        self.without = self.lines(run([program, without]).expect().out)
        self.traced: Traced = preloaded(trace, [program, self.data])
        self.traced.expect()
        self.with_preload = self.lines(self.traced.out)
        self.events: dict[str, list[Event]] = defaultdict(list)
        for event in sorted(self.traced.trace.events, key=lambda event: event.seq):
            self.events[event.path].append(event)

    @staticmethod
    def lines(text: str) -> dict[str, list[Line]]:
        """What was printed, by symbol."""
        table: dict[str, list[Line]] = defaultdict(list)
        for line in text.splitlines():
            symbol, rest = line.split(" ", 1)
            what, result, error = rest.rsplit(" ", 2)
            table[symbol].append((what, int(result), int(error)))
        return table

    def seen(self, name: str) -> list[Seen]:
        """The events of a file in the data directory, in their order."""
        return [(e.name, e.bytes, e.offset, e.error) for e in self.events[str(self.data / name)]]

    def need(self, symbol: str) -> None:
        """Skip the test where the system is older than the symbol; one that is absent for no such reason fails."""
        if self.without[symbol] == [("absent", 0, 0)]:
            assert symbol in YOUNG, f"nothing here defines {symbol}"
            pytest.skip(f"{symbol} came with {YOUNG[symbol]}")

    def same_with_preload(self, symbol: str) -> bool:
        """Results and errno. Worth comparing: one call succeeds, one fails, and errno is not touched without need."""
        lines = self.with_preload[symbol]
        assert any(result >= 0 and error == SENTINEL for _, result, error in lines)
        assert any(result < 0 and error != SENTINEL for _, result, error in lines)
        return lines == self.without[symbol]
