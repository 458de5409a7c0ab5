"""`ioweir gc` of sets of partitioned files: what jobs that died left of them (docs/reference/partitioned-files.md).

Lives here: which hidden names are of such sets, and which of them may go. Not here: directories of divided files
(container.py), the command (cli.py).
"""

from __future__ import annotations

import os
import re
import shutil
import time
from pathlib import Path
from typing import Any, Final

from ioweir.errors import IoweirError

QUIET_S: Final = 3600
"""What was changed since is taken to be a job's that is writing it: a set's files are locked by nobody."""

_NAME: Final = re.compile(r"\.(?P<stem>.+-dat\.\d+)(?P<file>\.\d+)?\.new-[0-9a-f]{16}")


def unfinished(directory: Path, now: float | None = None) -> list[dict[str, Any]]:
    """Unfinished sets in a tree, a row each as container.orphans() has them; symbolic links are not followed.

    Raises OSError where a directory cannot be read.
    """

    def fail(error: OSError) -> None:
        raise error

    found = []
    for folder, inside, files in os.walk(directory, onerror=fail):
        here = [name for name in inside if (match := _NAME.fullmatch(name)) and not match["file"]]
        inside[:] = sorted(name for name in inside if name not in here)
        flat = [name for name in files if (match := _NAME.fullmatch(name)) and match["file"]]
        found += [_row(Path(folder, name), time.time() if now is None else now) for name in sorted(here + flat)]
    return found


def _row(path: Path, now: float) -> dict[str, Any]:
    match = _NAME.fullmatch(path.name)
    assert match is not None
    bytes_there, changed = _extent(path)
    of = path.with_name(match["stem"] + (match["file"] or ".d"))
    row = {"directory": str(path), "file": str(of), "bytes": bytes_there, "problem": "", "in_use": False, "set": True}
    if now - changed < QUIET_S:
        row["in_use"] = True
        row["problem"] = "changed within the last hour: is a job writing it? Else wait, or remove it yourself"
    elif match["file"]:
        manifest = path.with_name(match["stem"] + ".set")
        if _state(manifest) == "renaming":
            row["problem"] = f"the job died while it renamed the files of {manifest}: this one is whole, and kept"
    elif _state(path / "manifest") == "complete" and not of.exists():
        row["problem"] = f"a whole set that lacks nothing but its name: rename it to {of.name}"
    return row


def _extent(path: Path) -> tuple[int, float]:
    """Bytes of all files, and when one was last changed."""
    total, changed = 0, path.lstat().st_mtime
    for folder, inside, files in os.walk(path):
        for name in [*inside, *files]:
            info = Path(folder, name).lstat()
            total += info.st_size if name in files else 0
            changed = max(changed, info.st_mtime)
    return (total if path.is_dir() else path.lstat().st_size), changed


def _state(manifest: Path) -> str:
    """What a manifest says of its set; empty: there is none, or no more than a beginning."""
    try:
        lines = manifest.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return ""
    return next((line.removeprefix("state ") for line in lines if line.startswith("state ")), "")


def remove(row: dict[str, Any]) -> None:
    """Removes what a row of unfinished() is of; raises IoweirError where it cannot."""
    path = Path(row["directory"])
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    except OSError as error:
        raise IoweirError(f"{error.filename}: {error.strerror}") from error
