"""A child that is told of the signals of its parent, which waits for it.

Not here: `ioweir run`, whose child has this process's own streams (run.py).
"""

from __future__ import annotations

import contextlib
import signal
import subprocess
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ioweir.errors import EXIT_SIGNAL_BASE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_FORWARDED: Final = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT})
_LOOK_AGAIN_S: Final = 0.1
# siginfo's si_code of a signal that the kernel sent, here: a terminal to the whole foreground process group.
_SI_KERNEL: Final = 0x80


@dataclass
class Child:
    """A running child, and the first signal that was meant for it or its parent."""

    process: subprocess.Popen[str]
    ended_by: int | None = None

    def exit_code(self) -> int:
        """The child's, once it has ended; 128 + N where signal N came, whatever a launcher makes of that."""
        code: int = self.process.returncode
        return EXIT_SIGNAL_BASE + (self.ended_by or -code) if self.ended_by or code < 0 else code


def _hand_on(child: Child, done: threading.Event) -> None:
    while not done.is_set():
        caught = signal.sigtimedwait(_FORWARDED, _LOOK_AGAIN_S)
        if caught is None:
            continue
        child.ended_by = child.ended_by or caught.si_signo
        # A terminal sends to the child as well: a second one would make launchers kill at once.
        if caught.si_code != _SI_KERNEL:
            child.process.send_signal(caught.si_signo)


@contextlib.contextmanager
def started(words: Sequence[str], environment: Mapping[str, str]) -> Iterator[Child]:
    """The child, whose standard output is to be read; when this ends, so has the child.

    Without this, a launcher would outlive the one that started it, and its ranks would go on writing.
    """
    previous = signal.pthread_sigmask(signal.SIG_BLOCK, _FORWARDED)
    done = threading.Event()
    try:
        with subprocess.Popen(
            words, env=dict(environment), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
            errors="surrogateescape",
            preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_SETMASK, previous),  # noqa: PLW1509
        ) as process:  # fmt: skip
            child = Child(process)
            hand = threading.Thread(target=_hand_on, args=(child, done))
            hand.start()
            try:
                yield child
                process.wait()
            finally:
                done.set()
                hand.join()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, previous)
