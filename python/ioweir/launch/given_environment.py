"""The environment that this process was given, for the programs that it starts.

Python changes its own in the C locale, where jobs of `sbatch --export=NONE` and of cron run: it sets LC_CTYPE, also for
what it starts (PEP 538). A program would then print and sort by another locale than without ioweir.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

_SET_BY_PYTHON: Final = "LC_CTYPE"
_COERCED: Final = ("C.UTF-8", "C.utf8", "UTF-8")
_FIRST: Final = Path("/proc/self/environ")
"""What the kernel handed over; nothing that a process sets later stands there."""


def given_environment() -> dict[str, str]:
    """`os.environ` without what Python itself has put there."""
    variables = dict(os.environ)
    if variables.get(_SET_BY_PYTHON) not in _COERCED:
        return variables
    try:
        first = _FIRST.read_bytes()
    except OSError:
        return variables
    wanted = f"{_SET_BY_PYTHON}=".encode()
    given = next((entry for entry in first.split(b"\0") if entry.startswith(wanted)), None)
    if given is None:
        del variables[_SET_BY_PYTHON]
    else:
        variables[_SET_BY_PYTHON] = os.fsdecode(given.removeprefix(wanted))
    return variables
