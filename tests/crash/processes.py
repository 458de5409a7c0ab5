"""A job and its processes: who is a rank, who launched it, who is left.

All processes of a job carry a word in their environment, so that they are found whoever their parent has become.
Not here: what is written (cases.py).
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import tracing

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MARK: Final = "IOWEIR_TEST_CRASH_JOB"
LIMIT_S: Final = 180.0
"""Within which everything ends on a machine that others use, too: a hang is a finding, a slow machine is none."""

ALONE_S: Final = 30.0
"""A launcher whose ranks have all ended ends within that, or never."""


class HangError(Exception):
    """Processes that do not end."""


@dataclass(frozen=True)
class Process:
    """One of a job's."""

    pid: int
    words: tuple[str, ...]
    program: str

    def kill(self, number: int = signal.SIGKILL) -> bool:
        """False: it has ended already."""
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            return False
        return True


def marked(mark: str) -> Iterator[Process]:
    """The processes that carry the word, but for those that have ended and are not waited for."""
    wanted = f"{MARK}={mark}".encode()
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if wanted not in (place / "environ").read_bytes().split(b"\0"):
                continue
            words = tuple((place / "cmdline").read_text(errors="replace").rstrip("\0").split("\0"))
            yield Process(int(place.name), words, str((place / "exe").readlink()))
        except OSError:  # it has ended meanwhile
            continue


class Job:
    """A command that runs, with all that it has started."""

    def __init__(self, mark: str, command: Sequence[str], output: Path) -> None:
        self.mark = mark
        self.output = output
        self.stuck = False
        """Open MPI's launcher had not ended after all ranks had, and was ended (ioweir.launch.stuck does that, too)."""
        self.began = time.monotonic()
        with output.open("wb") as stream:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream, start_new_session=True,
                env=tracing.plain_environment({MARK: mark}),
            )  # fmt: skip

    def has_ended(self) -> bool:
        """The command itself."""
        return self.process.poll() is not None

    def ranks(self, program: Path) -> list[Process]:
        """Those that run that program."""
        return [one for one in marked(self.mark) if one.program == str(program)]

    def launchers(self) -> list[Process]:
        """mpirun or mpiexec, without what stands between it and the ranks."""
        names = {"mpirun", "orterun", "prterun", "mpiexec", "mpirun.openmpi", "mpiexec.mpich", "mpiexec.hydra"}
        return [one for one in marked(self.mark) if Path(one.program).name in names]

    def end(self) -> int:
        """Waits for all of it; what has not ended in time is ended, and is a HangError. The exit code."""
        code = self._wait()
        last = time.monotonic() + LIMIT_S
        while any(True for _ in marked(self.mark)):
            if time.monotonic() > last:
                raise self._hang("what the command has started")
            time.sleep(0.05)
        return code

    def _wait(self) -> int:
        """For the command, but not for a launcher that has no process left to wait for."""
        last = time.monotonic() + LIMIT_S
        alone_since = 0.0
        while self.process.poll() is None:
            now = time.monotonic()
            if now > last:
                raise self._hang("the command")
            launchers = self.launchers()
            own = {self.process.pid, *(one.pid for one in launchers)}
            if any(one.pid not in own for one in marked(self.mark)) or not launchers:
                alone_since = 0.0
            elif not alone_since:
                alone_since = now
            elif now - alone_since > ALONE_S:
                self.stuck = True
                for one in launchers:
                    one.kill()
            time.sleep(0.05)
        return self.process.returncode

    def _hang(self, what: str) -> HangError:
        left = list(marked(self.mark))
        waits = [f"{one.pid} {' '.join(one.words)[:200]}: {_waits_in(one.pid)}" for one in left]
        for one in left:
            one.kill()
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        return HangError(f"{what} does not end within {LIMIT_S:.0f} s:\n" + "\n".join(waits))

    def said(self) -> str:
        """What it has printed so far."""
        return self.output.read_text(errors="replace")


def _waits_in(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/wchan").read_text()
    except OSError:
        return "?"
