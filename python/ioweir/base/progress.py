"""Shows how far long work is: on terminals only, once it has lasted a moment. What the work is lies with the caller.

`shown` is a bar around work, whose loops say by `counted` how far they are. `watched` and `beside` are for work that
counts by itself.
"""

from __future__ import annotations

import threading
from collections.abc import Sized
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, Final, Protocol, TypeVar

from ioweir.base import color, plain_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

T = TypeVar("T")


class Counted(Protocol):
    """Long work."""

    @property
    def done(self) -> int:
        """Units of work done so far."""


class Watch(Counted, Protocol):
    """Long work in another thread."""

    def stop(self) -> None:
        """Make the work end soon."""


# Less is done before a bar would appear.
LONG_WORK: Final = 1_000_000
LOOK_S: Final = 0.1
APPEARS_AFTER_S = 2.0
"""What is done sooner shows no bar."""


@dataclass
class Steps:
    """How far work is that is done in steps."""

    done: int = 0
    total: int | None = None
    """None: nobody knows, and the bar only moves."""


_steps: Steps | None = None
"""Of the bar that is shown, for `counted`."""


@contextmanager
def shown(text: str, stream: IO[str] | None) -> Iterator[None]:
    """Around long work that may take steps (`counted`): a terminal sees a bar meanwhile."""
    global _steps  # noqa: PLW0603 (a terminal has one bar)
    if stream is None or not stream.isatty() or _steps is not None:
        yield
        return
    _steps = steps = Steps()
    ended = threading.Event()
    looker = threading.Thread(target=_look, args=(ended, steps, steps, text, stream), daemon=True)
    looker.start()
    try:
        yield
    finally:
        _steps = None
        ended.set()
        looker.join()


def counted(items: Iterable[T], total: int | None = None) -> Iterator[T]:
    """The items, one after the other; the bar that is shown counts them. Of loops within each other the outer counts.

    `total`: how many there are of what has no length.
    """
    steps = _steps
    if steps is None or steps.total is not None:
        yield from items
        return
    steps.done, steps.total = 0, len(items) if isinstance(items, Sized) else total
    try:
        for item in items:
            yield item
            steps.done += 1
    finally:
        steps.total = None


def watched(
    work: Callable[[], T], watch: Watch, total: int, text: str, stream: IO[str] | None, long_work: int = LONG_WORK
) -> T:
    """What `work` returns or raises. A terminal sees a bar meanwhile if there are many units of work in `total`."""
    if stream is None or total < long_work or not stream.isatty():
        return work()
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:
            errors.append(error)

    worker = threading.Thread(target=run)
    worker.start()
    try:
        worker.join(APPEARS_AFTER_S)
        if worker.is_alive():
            with _bar(stream) as bar:
                task = bar.add_task(text, total=total)
                while worker.is_alive():
                    worker.join(LOOK_S)
                    bar.update(task, completed=watch.done)
    except BaseException:
        # An interrupt arrives here, not in the worker.
        watch.stop()
        worker.join()
        raise
    if errors:
        raise errors[0]
    return results[0]


def beside(work: Callable[[], T], counts: Counted, total: int, text: str, stream: IO[str] | None) -> T:
    """As `watched`, but the work is done in this thread: what waits for processes has to hear of signals itself."""
    if stream is None or not stream.isatty():
        return work()
    ended = threading.Event()
    looker = threading.Thread(target=_look, args=(ended, counts, Steps(total=total), text, stream))
    looker.start()
    try:
        return work()
    finally:
        ended.set()
        looker.join()


def _look(ended: threading.Event, counts: Counted, of: Steps, text: str, stream: IO[str]) -> None:
    """The bar of work that another thread does."""
    if ended.wait(APPEARS_AFTER_S):
        return
    with _bar(stream) as bar:
        task = bar.add_task(text, total=of.total)
        while not ended.wait(LOOK_S):
            bar.update(task, completed=counts.done, total=of.total)


def _bar(stream: IO[str]) -> Any:
    """Gone when the work has ended. Where no total is known, the time tells that it goes on."""
    from rich.console import Console  # noqa: PLC0415 (only for terminals that wait)
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    console = Console(file=plain_text.raw(stream), no_color=color.no_color())
    return Progress(*columns, console=console, transient=True, disable=console.is_dumb_terminal)
