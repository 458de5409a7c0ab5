"""Sees that a launcher hangs although all that it has started is over, and ends it.

Open MPI 4.1's `mpirun` with PMIx 4.2 (Debian 12) now and then waits for itself after MPI_Abort (ioweir is not in it): a
thread holds a lock in the PMIx server that it wants once more, while the main thread waits for it in
PMIx_server_finalize.
Lives here: how that is told from a launcher that works. Not here: waiting for the program (run.py).
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path
from typing import Final

PATIENCE_S: Final = 30.0
"""A launcher that works reaps a rank at once."""
LAUNCHERS: Final = ("mpirun", "mpiexec", "orterun", "prterun")
"""What their names begin with. Other programs may leave their children unreaped for as long as they like."""


class Watch:
    """The launchers among a process and all that it has started."""

    def __init__(self, process: int, patience_s: float = PATIENCE_S) -> None:
        self._process = process
        self._patience_s = patience_s
        self._since: dict[int, float] = {}
        self._asked: set[int] = set()

    def end_stuck(self) -> list[str]:
        """Look once; ends launchers that are stuck, politely the first time. What was done, a line for each."""
        now = time.monotonic()
        idle = {number: name for number, name in launchers_below(self._process) if _only_zombies(number)}
        self._since = {number: self._since.get(number, now) for number in idle}
        said = []
        for number, since in self._since.items():
            if now - since < self._patience_s:
                continue
            with contextlib.suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL if number in self._asked else signal.SIGTERM)
            if number not in self._asked:
                said.append(
                    f"{idle[number]} (process {number}) has not ended {self._patience_s:.0f} s after all of its ranks "
                    "had: it is stuck, and is ended. Open MPI's may be after MPI_Abort"
                )
            self._asked.add(number)
        return said


def _children(process: int) -> list[int]:
    found: list[int] = []
    for thread in Path(f"/proc/{process}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += map(int, thread.read_text(encoding="ascii").split())
    return found


def _name_and_state(process: int) -> tuple[str, str]:
    try:
        text = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "", ""
    return text[text.index("(") + 1 : text.rindex(")")], text[text.rindex(")") + 2]


def launchers_below(process: int) -> list[tuple[int, str]]:
    """Number and name of each launcher at and below a process."""
    name, state = _name_and_state(process)
    found = [(process, name)] if name.startswith(LAUNCHERS) and state != "Z" else []
    for child in _children(process):
        found += launchers_below(child)
    return found


def _only_zombies(process: int) -> bool:
    children = _children(process)
    return bool(children) and all(_name_and_state(child)[1] == "Z" for child in children)
