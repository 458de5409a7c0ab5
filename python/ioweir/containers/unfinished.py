"""`ioweir gc` of sets of partitioned files: what jobs that died left of them (docs/reference/partitioned-files.md).

Lives here: which hidden names are of such sets, and which of them may go. Not here: directories of divided files
(container.py), the command (cli/containers.py).
"""

from __future__ import annotations

import re
import stat
import time
from pathlib import Path
from typing import Any, Final

from ioweir.base.guarded_files import Folder
from ioweir.errors import IoweirError

QUIET_S: Final = 3600
"""What was changed since is taken to be a job's that is writing it: a set's files are locked by nobody."""

_NAME: Final = re.compile(r"\.(?P<stem>.+-dat\.\d+)(?P<file>\.\d+)?\.new-[0-9a-f]{16}")


def unfinished(directory: Path, now: float | None = None) -> list[dict[str, Any]]:
    """Unfinished sets in a tree, a row each as container.orphans() has them; symbolic links are not followed.

    Raises OSError where a directory cannot be read.
    """
    found = []
    with Folder.open(directory) as top:
        for here in top.walk(lambda name: _NAME.fullmatch(name) is None):
            kept = [name for name in here.folders if (match := _NAME.fullmatch(name)) and not match["file"]]
            flat = [name for name in here.files if (match := _NAME.fullmatch(name)) and match["file"]]
            found += [_row(here.folder, name, time.time() if now is None else now) for name in sorted(kept + flat)]
    return found


def _row(folder: Folder, name: str, now: float) -> dict[str, Any]:
    path, match = folder.path / name, _NAME.fullmatch(name)
    assert match is not None
    bytes_there, changed = _extent(folder, name)
    of = match["stem"] + (match["file"] or ".d")
    row = {
        "directory": str(path), "file": str(folder.path / of), "bytes": bytes_there, "problem": "", "in_use": False,
        "set": True,
    }  # fmt: skip
    if now - changed < QUIET_S:
        row["in_use"] = True
        row["problem"] = "changed within the last hour: is a job writing it? Else wait, or remove it yourself"
    elif match["file"]:
        manifest = match["stem"] + ".set"
        if _state(folder, manifest) == "renaming":
            row["problem"] = (
                f"the job died while it renamed the files of {folder.path / manifest}: this one is whole, and kept"
            )
    elif folder.status(of) is None:
        with folder.below((name,)) as inside:
            if _state(inside, "manifest") == "complete":
                row["problem"] = f"a whole set that lacks nothing but its name: rename it to {of}"
    return row


def _extent(folder: Folder, name: str) -> tuple[int, float]:
    """Bytes of all files, and when one was last changed."""
    found = folder.status(name)
    if found is None:
        return 0, 0.0
    total, changed = 0, found.st_mtime
    if not stat.S_ISDIR(found.st_mode):
        return found.st_size, changed
    with folder.below((name,)) as inside:
        for here in inside.walk(lambda _: True):
            for each in (*here.folders, *here.files):
                info = here.folder.status(each)
                if info is not None:
                    total += 0 if stat.S_ISDIR(info.st_mode) else info.st_size
                    changed = max(changed, info.st_mtime)
    return total, changed


def _state(folder: Folder, manifest: str) -> str:
    """What a manifest says of its set; empty: there is none, or no more than a beginning."""
    try:
        lines = folder.read(manifest).decode("ascii", errors="replace").splitlines()
    except OSError:
        return ""
    return next((line.removeprefix("state ") for line in lines if line.startswith("state ")), "")


def remove(directory: Path, row: dict[str, Any]) -> None:
    """Removes what a row is of, a set's folder or a netCDF file; raises IoweirError where it cannot."""
    path = Path(row["directory"])
    try:
        with Folder.open(directory) as top, top.below(path.parent.relative_to(directory).parts) as folder:
            (folder.remove_tree if row["set"] else folder.remove)(path.name)
    except OSError as error:
        raise IoweirError(f"{error.filename or path}: {error.strerror}") from error
