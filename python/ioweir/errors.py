"""The exit codes of the command line and the error that carries one.

Every message says what went wrong, with which value, and what to do. Nothing here prints or exits; the command line
does both in one place.
"""

from __future__ import annotations

import errno
import os
from typing import Final

EXIT_OK: Final = 0
EXIT_FAILED: Final = 1
"""The command was understood and could not be done (no trace in a directory, a doctor's finding that stops tracing)."""
EXIT_USAGE: Final = 2
EXIT_DIFFERENT: Final = 3
"""`compare` was given runs of different programs, or a partial trace."""
EXIT_VERIFY: Final = 74
"""`run --verify`: not every byte that was passed in was compared and found equal (EX_IOERR of sysexits.h)."""
EXIT_NOT_STARTED: Final = 125
"""`run` failed before the program was started (125, 126 and 127 as env, nohup and timeout use them)."""
EXIT_NOT_EXECUTABLE: Final = 126
EXIT_NOT_FOUND: Final = 127
EXIT_SIGNAL_BASE: Final = 128
"""128 + N: the program was ended by signal N."""

EXIT_CODES: Final[tuple[tuple[str, str], ...]] = (
    ("0", "done; for run: the program returned 0"),
    (
        "1",
        "could not be done: no trace in the directory, or one that cannot be read; "
        "doctor found something that stops tracing; "
        "kernel: a wrong byte; check: a file is not whole; gc: something cannot be removed; "
        "lab status: something is missing",
    ),
    ("2", "the command line or the plan is wrong"),
    (
        "3",
        "compare: the runs are of different programs, or a trace is partial (--force compares them all the same)",
    ),
    ("74", "run --verify: not every byte passed in was compared and equal, and the program itself returned 0"),
    ("125", "run: ioweir failed before the program was started"),
    ("126", "run, lab run, doctor: the command was found but cannot be executed"),
    ("127", "run, lab run, doctor: the command was not found"),
    ("128+N", "run: the program was ended by signal N; others: a signal ended ioweir"),
    ("other", "run: the program's (or its launcher's) own exit code"),
)


class IoweirError(Exception):
    """An error for the user: what, which value, what to do; and the exit code that goes with it."""

    def __init__(self, message: str, exit_code: int = EXIT_FAILED) -> None:
        super().__init__(message)
        self.exit_code = exit_code


_WHAT_TO_DO: Final = {
    errno.ENOENT: "check the path",
    errno.ENOTDIR: "a part of the path is a file: check the path",
    errno.EISDIR: "name a file",
    errno.EACCES: "name another place, or have its owner change the rights",
    errno.EPERM: "name another place, or have its owner change the rights",
    errno.EROFS: "name a place on another file system",
    errno.ENOSPC: "make room, or name a place on another file system",
    errno.EDQUOT: "make room, or name a place on another file system",
    errno.EFBIG: "allow larger files: ulimit -f",
    errno.EMFILE: "allow more open files: ulimit -n",
}


def reason(error: OSError) -> str:
    """Why the system refused, and what to do. Example: "No such file or directory; check the path"."""
    number = error.errno or 0
    if not error.strerror or error.strerror != os.strerror(number) or number not in _WHAT_TO_DO:
        return error.strerror or str(error)  # ioweir's own words, and other libraries', say what they say
    return f"{error.strerror}; {_WHAT_TO_DO[number]}"


def text(error: Exception) -> str:
    """What to say of an error within a sentence: of the system's also which file, and what to do."""
    if not isinstance(error, OSError):
        return str(error)
    return f"{error.filename}: {reason(error)}" if error.filename else reason(error)
