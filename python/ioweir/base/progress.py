"""Shows how far long work is, on terminals only. What the work is lies with the caller."""

from __future__ import annotations

import threading
from typing import IO, TYPE_CHECKING, Final, Protocol, TypeVar

from ioweir.base import plain_text

if TYPE_CHECKING:
    from collections.abc import Callable

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


# Less is done before anybody wonders.
LONG_WORK: Final = 5_000_000
LOOK_S: Final = 0.1


def watched(
    work: Callable[[], T], watch: Watch, total: int, text: str, stream: IO[str] | None, long_work: int = LONG_WORK
) -> T:
    """What `work` returns or raises. A terminal sees a bar meanwhile if there are many units of work in `total`."""
    if stream is None or total < long_work or not stream.isatty():
        return work()
    from rich.console import Console  # noqa: PLC0415 (only for terminals that wait)
    from rich.progress import Progress  # noqa: PLC0415

    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:
            errors.append(error)

    worker = threading.Thread(target=run)
    with Progress(console=Console(file=plain_text.raw(stream)), transient=True) as bar:
        task = bar.add_task(text, total=total)
        worker.start()
        try:
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


def beside(work: Callable[[], T], counted: Counted, total: int, text: str, stream: IO[str] | None) -> T:
    """As `watched`, but the work is done in this thread: what waits for processes has to hear of signals itself."""
    if stream is None or not stream.isatty():
        return work()
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import Progress  # noqa: PLC0415

    ended = threading.Event()
    with Progress(console=Console(file=plain_text.raw(stream)), transient=True) as bar:
        task = bar.add_task(text, total=total)

        def look() -> None:
            while not ended.wait(LOOK_S):
                bar.update(task, completed=counted.done)

        looker = threading.Thread(target=look)
        looker.start()
        try:
            return work()
        finally:
            ended.set()
            looker.join()
