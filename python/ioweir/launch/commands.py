"""Where a command of the user's command line lies, and whether it does its work itself."""

from __future__ import annotations

import os
import shutil
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Final

from ioweir.errors import EXIT_NOT_EXECUTABLE, EXIT_NOT_FOUND, EXIT_USAGE, IoweirError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_SBATCH: Final = "sbatch"
_WAITS: Final = ("-W", "--wait")


def find_command(name: str, environment: Mapping[str, str], hint: str = "Check the command after `--`") -> str:
    """Where a command lies, or the error a shell would give."""
    found = shutil.which(name, path=environment.get("PATH", os.defpath))
    if found is not None:
        return found
    if "/" in name and Path(name).exists():
        what = "is a directory" if Path(name).is_dir() else "is not executable (chmod +x makes it so)"
        raise IoweirError(f"{name}: {what}", EXIT_NOT_EXECUTABLE)
    where = "no such file" if "/" in name else "not found in PATH"
    raise IoweirError(f"{name}: {where}. {hint}", EXIT_NOT_FOUND)


def refuse_queueing(words: Sequence[str]) -> None:
    """Refuse Slurm's sbatch, unless it waits: the job would write into a trace that has been closed."""
    if PurePath(words[0]).name == _SBATCH and not any(word in _WAITS for word in words[1:]):
        raise IoweirError(
            f"{words[0]}: only queues the job, which would run when `ioweir run` has closed the trace. Write "
            'eval "$(ioweir env -o DIR)" into the job\'s script, or let sbatch wait for the job with --wait',
            EXIT_USAGE,
        )
