"""`ioweir gc` of divided netCDF files: what jobs that died left beside them (docs/explanation/netcdf-subfiles.md).

Lives here: which names are looked at, and which of them may go. Not here: what such files say (src/ncsub/writing.cpp),
the command (cli/containers.py).
"""

from __future__ import annotations

import re
import stat
import time
from pathlib import Path
from typing import Any, Final

from ioweir.base.compiled import compiled
from ioweir.base.guarded_files import Folder
from ioweir.containers.unfinished import QUIET_S

_NAME: Final = re.compile(r".+(\.ioweir-logical|\.ioweir-merging|\.subfile_\d+\.nc)")


def leftovers(directory: Path, now: float | None = None) -> list[dict[str, Any]]:
    """Leftovers in a tree, a row each as container.orphans() has them; symbolic links are not followed.

    Raises OSError where a directory cannot be read.
    """
    found = []
    with Folder.open(directory) as top:
        for here in top.walk(lambda _: True):
            for name in sorted(here.files):
                row = _row(here.folder, name, time.time() if now is None else now) if _NAME.fullmatch(name) else None
                if row is not None:
                    found.append(row)
    return found


def _row(folder: Folder, name: str, now: float) -> dict[str, Any] | None:
    info = folder.status(name)
    if info is None or not stat.S_ISREG(info.st_mode):
        return None
    by_descriptor = folder.path_by_descriptor()
    left = compiled().netcdf_leftover(f"{by_descriptor}/{name}")
    if left is None:
        return None
    left["file"] = str(Path(left["file"].replace(by_descriptor, str(folder.path))))
    left["problem"] = left["problem"].replace(by_descriptor, str(folder.path))
    row = {"directory": str(folder.path / name), "bytes": info.st_size, "set": False, "netcdf": True, **left}
    # Locks hold within a node.
    if not row["problem"] and now - info.st_mtime < QUIET_S:
        row["in_use"] = True
        row["problem"] = "changed within the last hour: is a job writing it? Else wait, or remove it yourself"
    return row
