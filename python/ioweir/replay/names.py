"""Which files of a trace are the program's data, and how they are called below a target directory.

Names of a trace may be anything. What comes out of here is relative, can be printed and written in one line, leads
nowhere else, and is different for different files.
"""

from __future__ import annotations

import os
import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from ioweir.trace.runtime_files import is_runtime_file

if TYPE_CHECKING:
    from collections.abc import Sequence

_SYSTEM: Final = (
    "/bin/", "/boot/", "/dev/", "/etc/", "/lib/", "/lib32/", "/lib64/", "/libx32/", "/proc/", "/sbin/", "/sys/",
    "/usr/",
)  # fmt: skip
_MEMORY: Final = "/dev/shm/"
_PROGRAM: Final = re.compile(r"\.(pyc?|pyd|pth|so(\.[0-9.]+)?)$")
_BY_NUMBER: Final = re.compile(r"file-[0-9]+(\..*)?")
_MOST_BYTES: Final = 255
"""Of a file's name."""
_MOST_BYTES_IN_ALL: Final = 2048
"""The target directory has a name, too, and the system takes 4,096 together."""
_MOST_COMPONENTS: Final = 24


def is_data(path: str) -> bool:
    """Whether a file is the program's data: no part of the system, of programs, or of the MPI runtime."""
    if not path.startswith("/") or is_runtime_file(path) or _PROGRAM.search(path):
        return False
    whole = os.path.normpath(path).replace("//", "/")
    return whole.startswith(_MEMORY) or not whole.startswith(_SYSTEM)


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


def renamed(paths: Sequence[str], names: Sequence[str]) -> list[int]:
    """Numbers of the files whose own name, without folders, is another one in the replay."""
    pairs = zip(paths, names, strict=True)
    return [number for number, (path, name) in enumerate(pairs) if PurePosixPath(path).name != PurePosixPath(name).name]


def _is_harmless(name: str) -> bool:
    parts = name.split("/")
    try:
        total = len(os.fsencode(name))
    except UnicodeEncodeError:  # the locale's files cannot have this name
        return False
    return total <= _MOST_BYTES_IN_ALL and len(parts) <= _MOST_COMPONENTS and all(map(_is_good, parts))


def _is_good(part: str) -> bool:
    return (
        part not in ("", ".", "..")
        and part.isprintable()
        and not _BY_NUMBER.fullmatch(part)
        and len(os.fsencode(part)) <= _MOST_BYTES
    )


def _kind(name: str) -> str:
    kind = PurePosixPath(name).suffix
    return kind if re.fullmatch(r"\.[A-Za-z0-9]{1,8}", kind) else ""
