"""`python -m ioweir WORDS` without Python's start and imports: forked from a process that has done both.

The tests start ioweir some thousand times. What they look at is the same: a process and a session of its own,
descriptors, folder, umask, environment, exit code. Not the same are its parent and its /proc/PID/cmdline, and what
Python and the loader of libraries read at their start. So a command whose environment differs in anything but
variables of ioweir's, MPI's and libraries of I/O is started by Python itself, and with IOWEIR_TEST_ALL every command.
"""

from __future__ import annotations

import json
import locale
import os
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType

SERVER: Final = Path(__file__).with_name("command_server.py")
SCRIPT: Final = str(Path(sys.executable).with_name("ioweir"))
ENVIRONMENT: Final = dict(os.environ)
"""Before a test has changed it."""
WITH_THREADS: Final = ("export", "merge-trace", "site")
"""They use pyarrow's threads, which a forked process cannot end."""
HARMLESS: Final = ("IOWEIR_", "OMPI_", "MPICH_", "MPIR_", "ROMIO_", "HDF5_", "PNETCDF_", "SLURM_", "XDG_", "PYTEST_")
"""Variables that begin so are read when they are needed."""


class Server:
    """The process that forks, started when it is first needed; one for each process of the tests."""

    def __init__(self) -> None:
        self.user = os.geteuid()
        self.process = os.getpid()
        self.channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self.child = subprocess.Popen(
                [sys.executable, str(SERVER), str(theirs.fileno())],
                pass_fds=[theirs.fileno()], start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                cwd="/", env={**ENVIRONMENT, "OPENBLAS_NUM_THREADS": "1"},  # a process that forks has one thread
            )  # fmt: skip

    def may_take(self, environment: Mapping[str, str]) -> bool:
        """Whether a command in this environment may do without Python's start."""
        if os.geteuid() != self.user:
            return False
        names = {*environment, *ENVIRONMENT}
        differing = (name for name in names if environment.get(name) != ENVIRONMENT.get(name))
        return all(name.startswith(HARMLESS) for name in differing)

    def is_ours(self) -> bool:
        """It is there, and this is the process that has started it."""
        return self.process == os.getpid() and self.child.poll() is None


_lock: Final = threading.Lock()
_servers: Final[list[Server]] = []


def server() -> Server | None:
    """The one of this process; None where every command is to be started by Python."""
    if os.environ.get("IOWEIR_TEST_ALL"):
        return None
    with _lock:
        if not _servers or not _servers[-1].is_ours():
            _servers[:] = [Server()]
        return _servers[-1]


class Forked:
    """A command that was forked: what `run` needs of subprocess.Popen[str]."""

    def __init__(
        self, source: Server, command: Sequence[str], environment: Mapping[str, str], folder: Path | None
    ) -> None:
        self.command = command
        self.returncode: int | None = None
        pipes = [os.pipe() for _ in range(3)]
        before = os.umask(0)
        os.umask(before)
        request = {
            "words": words_of_ioweir(command), "script": SCRIPT if command[0] == SCRIPT else "",
            "environment": dict(environment), "folder": str(folder or Path.cwd()), "umask": before,
        }  # fmt: skip
        socket.send_fds(source.channel, [json.dumps(request).encode()], [theirs for _, theirs in pipes])
        for _, theirs in pipes:
            os.close(theirs)
        self._received = [bytearray() for _ in pipes]
        self._selector = selectors.DefaultSelector()
        for number, (ours, _) in enumerate(pipes):
            self._selector.register(ours, selectors.EVENT_READ, number)
        status = pipes[2][0]
        while not self._received[2].endswith(b"\n"):
            got = os.read(status, 1)
            if not got:
                raise RuntimeError("the server of commands has ended")
            self._received[2] += got
        self.pid = int(self._received[2])

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """What it has written, once it has ended and nobody can write to it any more."""
        end = None if timeout is None else time.monotonic() + timeout
        while self._selector.get_map():
            ready = self._selector.select(None if end is None else max(0.0, end - time.monotonic()))
            if not ready and end is not None and time.monotonic() >= end:
                raise subprocess.TimeoutExpired(list(self.command), timeout or 0.0)
            for key, _ in ready:
                got = os.read(key.fd, 1 << 16)
                self._received[key.data] += got
                if not got:
                    self._selector.unregister(key.fd)
                    os.close(key.fd)
        self.returncode = int(self._received[2].split()[1])
        out, err = (text(received) for received in self.raw)
        return out, err

    @property
    def raw(self) -> tuple[bytes, bytes]:
        """What it has written so far."""
        out, err, _ = map(bytes, self._received)
        return out, err

    def terminate(self) -> None:
        """Asks it to end."""
        if self.returncode is None:
            os.kill(self.pid, signal.SIGTERM)

    def __enter__(self) -> Forked:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and self.returncode is None:
            self.communicate()
        for key in list(self._selector.get_map().values()):
            os.close(key.fd)
        self._selector.close()


def text(received: bytes) -> str:
    """As subprocess reads it with text=True and errors="replace"."""
    decoded = received.decode(locale.getpreferredencoding(False), "replace")
    return decoded.replace("\r\n", "\n").replace("\r", "\n")


def begun(
    command: Sequence[str], environment: Mapping[str, str], folder: Path | None
) -> subprocess.Popen[str] | Forked:
    """A command in a session of its own: forked where it is `python -m ioweir` and may be."""
    source = server() if words_of_ioweir(command) is not None else None
    if source is not None and source.may_take(environment):
        return Forked(source, command, environment, folder)
    return by_python(command, environment, folder)


def words_of_ioweir(command: Sequence[str]) -> list[str] | None:
    """What stands behind `python -m ioweir` or the installed script; None of commands that are not forked."""
    words = None
    if tuple(command[:3]) == (sys.executable, "-m", "ioweir"):
        words = list(command[3:])
    elif command[0] == SCRIPT:
        words = list(command[1:])
    return None if words and words[0] in WITH_THREADS else words


def by_python(command: Sequence[str], environment: Mapping[str, str], folder: Path | None) -> subprocess.Popen[str]:
    """A command in a session of its own."""
    return subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
        env=environment, cwd=folder, start_new_session=True,
    )  # fmt: skip


def completed(
    command: Sequence[str | os.PathLike[str]],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    check: bool = False,
    timeout: float = 120.0,
) -> subprocess.CompletedProcess[str]:
    """As subprocess.run with capture_output and text."""
    done = completed_in_bytes(command, cwd=cwd, env=env, check=check, timeout=timeout)
    return subprocess.CompletedProcess(done.args, done.returncode, text(done.stdout), text(done.stderr))


def completed_in_bytes(
    command: Sequence[str | os.PathLike[str]],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    check: bool = False,
    timeout: float = 120.0,
) -> subprocess.CompletedProcess[bytes]:
    """As subprocess.run with capture_output."""
    words = [os.fspath(word) for word in command]
    environment = os.environ if env is None else env
    source = server() if words_of_ioweir(words) is not None else None
    if source is None or not source.may_take(environment):
        return subprocess.run(
            words, cwd=cwd, env=env, check=check, timeout=timeout, stdin=subprocess.DEVNULL, capture_output=True
        )
    with Forked(source, words, environment, cwd) as process:
        try:
            process.communicate(timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    assert process.returncode is not None
    done = subprocess.CompletedProcess(words, process.returncode, *process.raw)
    if check:
        done.check_returncode()
    return done
