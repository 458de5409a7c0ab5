"""Where a command of the user's command line lies."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from ioweir.errors import EXIT_NOT_EXECUTABLE, EXIT_NOT_FOUND, IoweirError

if TYPE_CHECKING:
    from collections.abc import Mapping


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
