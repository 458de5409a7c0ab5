"""One test per symbol of aio and of liburing: see test_symbols.py. Submissions, and the calls that see their ends."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Final

import pytest
from symbol_calls import CLOSE, OPEN, SYMBOLS, symbols_of
from tracing import FUNCTIONS

if TYPE_CHECKING:
    from collections.abc import Callable

    from symbol_calls import Both, Seen

SOURCES: Final = ("symbols_aio.c", "symbols_uring.c")
TESTED: Final = [(source, symbol) for source in SOURCES for symbol in symbols_of(source)]
COMPLETING: Final = {row["name"] for row in FUNCTIONS.values() if row["completes"]}


@pytest.fixture(scope="module")
def both(symbol_runs: Callable[[str], Both]) -> dict[str, Both]:
    return {source: symbol_runs(source) for source in SOURCES}


def ending(name: str, kind: str) -> Seen:
    return (f"{name} ({kind})", 0, 0, 0)


OWN: Final[dict[str, list[Seen]]] = {
    "aio_read": [
        OPEN,
        ("aio_read", 100, 200, 0),
        ending("aio_return", "read"),
        ("aio_read", 0, 200, errno.EINVAL),
        CLOSE,
    ],
    "aio_write": [
        OPEN,
        ("aio_write", 100, 200, 0),
        ending("aio_return", "write"),
        ("aio_write", 0, 200, errno.EINVAL),
        CLOSE,
    ],
    "aio_fsync": [
        OPEN,
        ("aio_fsync", 0, -1, 0),
        ending("aio_return", "sync"),
        ("aio_fsync", 0, -1, errno.EINVAL),
        CLOSE,
    ],
    "lio_listio": [
        OPEN,
        ("lio_listio (read)", 100, 200, 0),
        ("lio_listio (write)", 50, 500, 0),
        ("lio_listio (read)", 0, 200, errno.EINVAL),
        CLOSE,
    ],
    "aio_error": [OPEN, ("aio_read", 100, 200, 0), ending("aio_error", "read"), CLOSE],
    "aio_return": [OPEN, ("aio_read", 100, 200, 0), ending("aio_return", "read"), CLOSE],
    "aio_suspend": [
        OPEN,
        ("aio_read", 100, 200, 0),
        ending("aio_suspend", "read"),
        CLOSE,
    ],
}
RING: Final[list[Seen]] = [OPEN, ("io_uring (read)", 100, 200, 0), ending("io_uring_done", "read"), CLOSE]
WAITING: Final = ("io_uring_submit_and_wait", "io_uring_submit_and_wait_timeout", "io_uring_enter", "io_uring_enter2")


@pytest.mark.parametrize(("source", "symbol"), TESTED)
def test_events(both: dict[str, Both], source: str, symbol: str) -> None:
    """A completion has no bytes, and instead of an offset the number of its submission."""
    run = both[source]
    run.need(symbol)
    events = run.events[str(run.data / symbol)]
    begun = [event.seq for event in events if event.name in ("aio_read", "aio_write", "aio_fsync", "io_uring (read)")]
    seen: list[Seen] = []
    for event in events:
        if event.name in COMPLETING:
            assert event.offset == begun[0]
            assert event.seq > begun[0]
        seen.append((event.name, event.bytes, 0 if event.name in COMPLETING else event.offset, event.error))
    expected = RING if source == "symbols_uring.c" else OWN[symbol.removesuffix("64")]
    if source == "symbols_uring.c" and symbol not in WAITING:
        # The request may have ended within the submitting call, or later: then it is found ended.
        seen = [(name.replace("reaped", "done"), size, offset, error) for name, size, offset, error in seen]
    assert seen == expected
    assert SYMBOLS[symbol].split(" ")[0] in {name.split(" ")[0] for name, *_ in seen} or source == "symbols_uring.c"


@pytest.mark.parametrize("source", SOURCES)
def test_trace_is_whole(both: dict[str, Both], source: str) -> None:
    assert both[source].traced.trace.is_whole()
    assert both[source].traced.err == ""
