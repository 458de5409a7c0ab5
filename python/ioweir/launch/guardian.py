"""Sees to it that what `ioweir run` has started ends with it, also when it is killed by SIGKILL.

Between `ioweir run` and the command stands a process, the guardian. It adopts whatever the command starts and leaves
behind, hands signals on, and tells how the command ended. When `ioweir run` is gone before that, or the command was
ended by a signal that was handed on, it ends what is left: asks with SIGTERM, upon which launchers end their ranks,
also those on other nodes, and uses SIGKILL where that is not heeded.

Lives here: that process, and starting a command with or without it. Not here: which command (run.py).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ioweir.launch import stuck

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

FORWARDED: Final = frozenset(
    {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2}
)
"""Signals that are handed on to the command."""
SI_KERNEL: Final = 0x80
"""siginfo's si_code of a signal that the kernel sent, here: a terminal to the whole foreground process group."""
GRACE_S: Final = 5.0
"""Between SIGTERM and SIGKILL: launchers end the ranks of other nodes meanwhile."""

_ENDING: Final = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT})
_WATCHED: Final = FORWARDED | {signal.SIGCHLD}
# Python ignores these in its own process, and a child would inherit that.
_PYTHON_IGNORES: Final = (signal.SIGPIPE, signal.SIGXFSZ)
# The kernel says when the parent ends; in case that it does not, it is noticed after this time.
_LOOK_AGAIN_S: Final = 1.0
_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36


@dataclass
class Started:
    """A command that runs."""

    process: int
    """The child of this process: the guardian, or without one the command."""
    _told: int | None = field(default=None, repr=False)
    """Where the guardian tells how the command ended."""

    def hand_on(self, number: int) -> None:
        """Give the command a signal that this process was sent."""
        os.kill(self.process, number)

    def ended(self) -> int | None:
        """The command's status, as waitpid has it, once it has ended."""
        done, status = os.waitpid(self.process, os.WNOHANG)
        if done != self.process:
            return None
        if self._told is None:
            return status
        with os.fdopen(self._told, "rb") as told:  # closes it
            words = told.read()
        # Nothing is told by a guardian that was killed; the command was sent SIGTERM then.
        return int(words) if words else status


def start(
    path: str, words: tuple[str, ...], environment: Mapping[str, str], mask: Iterable[int], *, guarded: bool
) -> Started:
    """Start a command with the signals of `mask` blocked; raises OSError.

    The signals of FORWARDED and SIGCHLD must be blocked in this process, and it should have no other threads yet.
    """
    if not guarded:
        return Started(os.posix_spawn(path, words, environment, setsigmask=mask, setsigdef=_PYTHON_IGNORES))
    failed, fails = os.pipe()
    told, tells = os.pipe()
    parent = os.getpid()
    sys.stdout.flush()
    sys.stderr.flush()
    guardian = os.fork()
    if guardian == 0:
        try:
            os.close(failed)
            os.close(told)
            _guard(parent, path, words, environment, mask, fails, tells)
        finally:
            os._exit(1)
    os.close(fails)
    os.close(tells)
    with os.fdopen(failed, "rb") as problem:
        number = problem.read()
    if number:
        os.waitpid(guardian, 0)
        os.close(told)
        raise OSError(int(number), os.strerror(int(number)), path)
    return Started(guardian, told)


def _prctl(option: int, value: int) -> None:
    # Should it fail, less is known at once: nothing that has to hold depends on it alone.
    ctypes.CDLL(None).prctl(option, ctypes.c_ulong(value), 0, 0, 0)


def _guard(
    parent: int,
    path: str,
    words: tuple[str, ...],
    environment: Mapping[str, str],
    mask: Iterable[int],
    fails: int,
    tells: int,
) -> None:
    """The whole life of the guardian; does not return."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    _prctl(_PR_SET_PDEATHSIG, signal.SIGCHLD)
    command = os.fork()
    if command == 0:
        _become(path, words, environment, mask, fails)
    for number in (int(entry.name) for entry in list(Path("/proc/self/fd").iterdir())):
        # What `ioweir run` has open is not ours; the command has its own copies of what it inherits.
        if number > sys.stderr.fileno() and number != tells:
            with contextlib.suppress(OSError):  # that of the list itself
                os.close(number)
    asked = False
    while True:
        caught = signal.sigtimedwait(_WATCHED, _LOOK_AGAIN_S)
        if os.getppid() != parent:
            end_all()
            os._exit(1)
        if caught is not None and caught.si_signo in FORWARDED and caught.si_pid == parent:
            asked = asked or caught.si_signo in _ENDING
            for process in (command, *(_launchers_of(command) if caught.si_signo == signal.SIGINT else ())):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(process, caught.si_signo)
        status = _reap(command)
        if status is not None:
            # The first process of a script may have gone without those that it waited for.
            if asked or (os.WIFSIGNALED(status) and os.WTERMSIG(status) in _ENDING):
                end_all()
            os.write(tells, str(status).encode())
            os._exit(0)


def _launchers_of(script: int) -> list[int]:
    """The launchers that a script waits for: shells wait until they have ended before they heed SIGINT.

    They rely on a terminal, which sends it to all processes.
    """
    return [process for process, _ in stuck.launchers_below(script) if process != script]


def _become(path: str, words: tuple[str, ...], environment: Mapping[str, str], mask: Iterable[int], fails: int) -> None:
    """Become the command, or tell why not; does not return."""
    try:
        guardian = os.getppid()
        _prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        for number in _PYTHON_IGNORES:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if os.getppid() == guardian:
            os.execve(path, words, environment)
    except OSError as error:
        os.write(fails, str(error.errno).encode())
    finally:
        os._exit(1)


def _reap(command: int | None = None) -> int | None:
    """Takes leave of children that have ended; the status of the command if it is among them."""
    found = None
    with contextlib.suppress(ChildProcessError):
        while True:
            process, status = os.waitpid(-1, os.WNOHANG)
            if process == 0:
                break
            if process == command:
                found = status
    return found


def descendants(process: int) -> set[int]:
    """All processes below one, as far as they can be seen; those that have ended and are not reaped do not count."""
    parents: dict[int, int] = {}
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError):
            _, _, rest = (place / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")
            state, parent, *_ = rest.split(maxsplit=2)
            if state not in "ZX":
                parents[int(place.name)] = int(parent)
    found: set[int] = set()
    reached = {process}
    while reached:
        reached = {child for child, parent in parents.items() if parent in reached} - found
        found |= reached
    return found


def end_all(grace_s: float = GRACE_S) -> None:
    """Ends every process below this one, and returns when none is left."""
    begun = time.monotonic()
    asked: set[int] = set()
    while True:
        _reap()
        left = descendants(os.getpid())
        if not left:
            return
        last = time.monotonic() - begun > grace_s
        for process in left if last else left - asked:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGKILL if last else signal.SIGTERM)
                # One that is stopped hears nothing.
                os.kill(process, signal.SIGCONT)
        asked |= left
        time.sleep(0.02)
