"""Which files of a trace are the program's data, and how they are called below a target directory.

Names of a trace may be anything. What comes out of here is relative, of harmless characters, leads nowhere else, and
is different for different files.
"""

from __future__ import annotations

import os
import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from ioweir.trace.runtime_files import is_runtime_file

if TYPE_CHECKING:
    from collections.abc import Sequence

_SYSTEM: Final = ("/bin/", "/boot/", "/dev/", "/etc/", "/lib", "/proc/", "/sbin/", "/sys/", "/usr/")
_MEMORY: Final = "/dev/shm/"
_PROGRAM: Final = re.compile(r"\.(pyc?|pyd|pth|so(\.[0-9.]+)?)$")
_COMPONENT: Final = re.compile(r"[A-Za-z0-9._+=,@%#~:-]{1,120}")
_MOST_COMPONENTS: Final = 24


def is_data(path: str) -> bool:
    """Whether a file is the program's data: no part of the system, of programs, or of the MPI runtime."""
    if not path.startswith("/") or is_runtime_file(path) or _PROGRAM.search(path):
        return False
    return path.startswith(_MEMORY) or not path.startswith(_SYSTEM)


def names_of(paths: Sequence[str]) -> list[str]:
    """Names below the target: as below the folder that holds all of them, where that is possible, else by number."""
    whole = [os.path.normpath(path) for path in paths]
    folders = {str(PurePosixPath(path).parent) for path in whole}
    common = os.path.commonpath(folders) if folders else "/"
    wanted = [os.path.relpath(path, common) for path in whole]
    folders_wanted = {str(parent) for name in wanted for parent in PurePosixPath(name).parents}
    taken: set[str] = set()
    names = []
    for number, name in enumerate(wanted):
        good = _is_harmless(name) and name not in folders_wanted and name not in taken
        names.append(name if good else f"file-{number}{_kind(name)}")
        taken.add(names[-1])
    return names


def _is_harmless(name: str) -> bool:
    parts = name.split("/")
    return len(parts) <= _MOST_COMPONENTS and all(
        _COMPONENT.fullmatch(part) and part not in (".", "..") and not part.startswith("file-") for part in parts
    )


def _kind(name: str) -> str:
    kind = PurePosixPath(name).suffix
    return kind if re.fullmatch(r"\.[A-Za-z0-9]{1,8}", kind) else ""
