"""Long work under a progress bar: its result, its errors, and an interrupt that ends it."""

from __future__ import annotations

import io
import threading
import time

import pytest
from ioweir.base.progress import beside, watched


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Work:
    """Counts up to its total; every step waits for nothing but being watched."""

    def __init__(self, total: int, fails_at: int = -1, interrupted_at: int = -1) -> None:
        self.total, self.fails_at, self.interrupted_at = total, fails_at, interrupted_at
        self._done = 0
        self.stopped = False

    @property
    def done(self) -> int:
        """Looked at by the thread that shows the bar."""
        if 0 <= self.interrupted_at <= self._done:
            raise KeyboardInterrupt
        return self._done

    def stop(self) -> None:
        self.stopped = True

    def run(self) -> str:
        while self._done < self.total and not self.stopped:
            if self._done == self.fails_at:
                raise ValueError("no more")
            self._done += 1
            time.sleep(0.01)
        return "stopped" if self.stopped else "done"


def test_short_work_and_streams_that_are_no_terminal_show_nothing() -> None:
    for stream, long_work in ((Terminal(), 100), (io.StringIO(), 1), (None, 1)):
        work = Work(5)
        assert watched(work.run, work, 5, "counting", stream, long_work) == "done"
        assert stream is None or stream.getvalue() == ""


def test_a_terminal_sees_what_is_done_and_how_far() -> None:
    stream, work = Terminal(), Work(40)
    assert watched(work.run, work, 40, "counting", stream, 1) == "done"
    assert "counting" in stream.getvalue()
    assert "%" in stream.getvalue()


def test_an_error_is_raised_where_the_work_was_asked_for() -> None:
    work = Work(40, fails_at=7)
    with pytest.raises(ValueError, match="no more"):
        watched(work.run, work, 40, "counting", Terminal(), 1)


def test_an_interrupt_ends_the_work_too() -> None:
    work = Work(10_000, interrupted_at=10)
    with pytest.raises(KeyboardInterrupt):
        watched(work.run, work, 10_000, "counting", Terminal(), 1)
    assert work.stopped
    assert work._done < work.total


def test_work_that_waits_for_processes_stays_in_its_thread() -> None:
    seen: list[threading.Thread] = []
    stream, work = Terminal(), Work(40)

    def run() -> str:
        seen.append(threading.current_thread())
        return work.run()

    assert beside(run, work, 40, "counting", stream) == "done"
    assert seen == [threading.current_thread()]
    assert "counting" in stream.getvalue()
    with pytest.raises(ValueError, match="no more"):
        beside(Work(40, fails_at=7).run, work, 40, "counting", stream)
    assert beside(Work(5).run, work, 5, "counting", io.StringIO()) == "done"
