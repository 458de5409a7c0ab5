"""Long work under a progress bar: its result, its errors, and an interrupt that ends it."""

from __future__ import annotations

import io
import threading
import time

import pytest
from ioweir.base import progress
from ioweir.base.progress import beside, counted, shown, watched


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(progress, "APPEARS_AFTER_S", 0.0)


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


def test_loops_within_shown_work_are_counted_and_the_outer_one_counts() -> None:
    stream = Terminal()
    with shown("looping", stream):
        assert progress._steps is not None
        for at, _ in enumerate(counted([1, 2, 3, 4])):
            assert (progress._steps.done, progress._steps.total) == (at, 4)
            assert list(counted(iter("ab"), 2)) == ["a", "b"]
            assert progress._steps.done == at
            time.sleep(0.15)
    assert vars(progress)["_steps"] is None
    assert "looping" in stream.getvalue()
    assert "75%" in stream.getvalue()
    assert list(counted([1, 2])) == [1, 2]


def test_work_that_counts_nothing_shows_that_it_goes_on() -> None:
    stream = Terminal()
    with shown("waiting", stream), shown("inside", stream):
        time.sleep(0.3)
    assert "waiting" in stream.getvalue()
    assert "0:00:00" in stream.getvalue()
    assert "inside" not in stream.getvalue()


@pytest.mark.parametrize("stream", [io.StringIO(), None], ids=["log", "none"])
def test_shown_work_leaves_no_trace_in_logs(stream: io.StringIO | None) -> None:
    with shown("waiting", stream):
        assert list(counted("ab")) == ["a", "b"]
    assert stream is None or stream.getvalue() == ""


def test_short_work_shows_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "APPEARS_AFTER_S", 60.0)
    stream, work = Terminal(), Work(5)
    with shown("waiting", stream):
        pass
    assert watched(work.run, work, 5, "counting", stream, 1) == "done"
    assert beside(Work(5).run, Work(5), 5, "counting", stream) == "done"
    assert stream.getvalue() == ""


def test_a_terminal_that_cannot_repaint_shows_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    stream = Terminal()
    with shown("waiting", stream):
        time.sleep(0.2)
    assert stream.getvalue() == ""


def test_an_error_within_shown_work_ends_the_bar() -> None:
    with pytest.raises(ValueError, match="no more"), shown("waiting", Terminal()):
        raise ValueError("no more")
    assert vars(progress)["_steps"] is None
