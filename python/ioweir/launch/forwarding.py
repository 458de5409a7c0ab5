"""A child that is told of the signals of its parent, which waits for it; and work that signals end in order.

The kernel gives a signal to any thread that does not block it: libraries have threads of their own, and the main one
may wait for the child's output meanwhile. So signals are taken from the wake-up descriptor of Python's handlers.

Not here: `ioweir run`, whose child has this process's own streams (run.py).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ioweir.errors import EXIT_SIGNAL_BASE, IoweirError
from ioweir.launch import guardian

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

GRACE_S: Final = 15.0
"""Between the first signal and SIGKILL; `ioweir run` and launchers take up to 5 s to end their ranks."""
_FORWARDED: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_ENDED: Final = 0
"""No signal: the child has ended."""
_PR_SET_PDEATHSIG: Final = 1
_LIBC: Final = ctypes.CDLL(None)


class SignalError(IoweirError):
    """A signal was sent to end this work."""

    def __init__(self, number: int, message: str) -> None:
        super().__init__(message, EXIT_SIGNAL_BASE + number)
        self.number = number


@dataclass
class Child:
    """A running child, and the first signal that was meant for it or its parent."""

    process: subprocess.Popen[str]
    ended_by: int | None = None

    def exit_code(self) -> int:
        """The child's, once it has ended; 128 + N where signal N came, whatever a launcher makes of that."""
        code: int = self.process.returncode
        return EXIT_SIGNAL_BASE + (self.ended_by or -code) if self.ended_by or code < 0 else code

    def kill(self) -> None:
        """With all below it: ranks have process groups of their own."""
        if self.process.poll() is not None:
            return
        for process in (*guardian.descendants(self.process.pid), self.process.pid):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGKILL)


class _Once:
    """A handler that raises at the first signal; what is cleaned up after it no further one disturbs."""

    def __init__(self) -> None:
        self.caught: int | None = None

    def __call__(self, number: int, _: object) -> None:
        if self.caught is None:
            self.caught = number
            raise SignalError(number, f"ended by signal {number}")


def _not_ignored() -> list[signal.Signals]:
    """Those that may end this process. Only the main thread may handle signals."""
    if threading.current_thread() is not threading.main_thread():
        return []
    return [number for number in _FORWARDED if signal.getsignal(number) not in (signal.SIG_IGN, None)]


@contextlib.contextmanager
def _handled(handler: Any) -> Iterator[list[Any]]:
    """The handlers that there were before."""
    previous: dict[signal.Signals, Any] = {}
    try:
        for number in _not_ignored():
            previous[number] = signal.signal(number, handler)
        yield list(previous.values())
    finally:
        for number, before in previous.items():
            signal.signal(number, before)


@contextlib.contextmanager
def ending_in_order() -> Iterator[None]:
    """Raises SignalError at the first signal that would end this process."""
    with _handled(_Once()):
        yield


def _hand_on(child: Child, noticed: int) -> None:
    """Until the child has ended."""
    last: float | None = None
    while True:
        left = None if last is None else max(0.0, last - time.monotonic())
        if not select.select([noticed], [], [], left)[0]:
            child.kill()
            last = None
            continue
        for number in os.read(noticed, 64):
            if number == _ENDED:
                return
            if number in _FORWARDED:
                child.ended_by = child.ended_by or number
                child.process.send_signal(number)
                last = last or time.monotonic() + GRACE_S


def _end_with(parent: int) -> None:
    """In the child, before it is executed."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGTERM), 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


@contextlib.contextmanager
def _wake_up(noticer: int) -> Iterator[None]:
    """The numbers of handled signals are written to `noticer` at once, whichever thread they arrive in."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.set_wakeup_fd(noticer, warn_on_full_buffer=False)
    try:
        yield
    finally:
        signal.set_wakeup_fd(previous)


def _once_more(noticed: int) -> None:
    """Signals that came after the child had ended, for the handlers that there were before it."""
    os.set_blocking(noticed, False)
    with contextlib.suppress(BlockingIOError):
        for number in os.read(noticed, 64):
            if number in _FORWARDED:
                signal.raise_signal(number)


@contextlib.contextmanager
def started(words: Sequence[str], environment: Mapping[str, str]) -> Iterator[Child]:
    """The child, whose standard output is to be read; when this ends, so has the child.

    Without this, a launcher would outlive the one that started it, and its ranks would go on writing. The child has a
    session of its own: a terminal's signals would reach it twice, and a second one makes launchers kill at once.
    """
    with contextlib.ExitStack() as stack:
        noticed, noticer = os.pipe()
        stack.callback(os.close, noticed)
        stack.callback(os.close, noticer)
        os.set_blocking(noticer, False)
        stack.callback(_once_more, noticed)
        # What arrives before there is a child is handed on to it.
        stack.enter_context(_wake_up(noticer))
        before = stack.enter_context(_handled(lambda *_: None))
        parent = os.getpid()
        with subprocess.Popen(
            words, env=dict(environment), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
            errors="surrogateescape", start_new_session=True,
            preexec_fn=lambda: _end_with(parent),  # noqa: PLW1509
        ) as process:  # fmt: skip
            child = Child(process)
            hand = threading.Thread(target=_hand_on, args=(child, noticed))
            hand.start()
            try:
                yield child
                process.wait()
            except BaseException:
                process.terminate()
                try:
                    process.wait(GRACE_S)
                except subprocess.TimeoutExpired:
                    child.kill()
                raise
            finally:
                process.wait()
                os.write(noticer, bytes([_ENDED]))
                hand.join()
                for handler in before:
                    if isinstance(handler, _Once):
                        handler.caught = handler.caught or child.ended_by
