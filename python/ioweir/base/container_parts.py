"""Names of the files that a container consists of (src/container/files/directory.hpp)."""

from __future__ import annotations

import re
from typing import Final

_PART: Final = re.compile(r"(?P<folder>.*)/\.ioweir-(?P<id>[0-9a-f]{32})(?P<rest>[./].*)")
_PARTS: Final = (
    (re.compile(r"[./]subfile\.(\d+)"), "subfile {0}"),
    (re.compile(r"/group\.(\d+)/data"), "group {0}"),
    (re.compile(r"/logs\.\d+/data\.(\d+)\.(\d+)"), "log of rank {1}, generation {0}"),
)
NOTES_OF_CONTAINERS: Final = "indexes and texts of containers"


def part_of(path: str) -> tuple[str, str, str]:
    """Of a file: the directory that stands for its target, the id of the container that it is a part of, and its
    name. Example: /mnt/t3/.ioweir-ID.subfile.3 -> /mnt/t3, ID, subfile 3."""
    found = _PART.fullmatch(path)
    if found is None:
        return path.rpartition("/")[0], "", path
    for pattern, name in _PARTS:
        if match := pattern.fullmatch(found["rest"]):
            return found["folder"], found["id"], name.format(*match.groups())
    return found["folder"], found["id"], NOTES_OF_CONTAINERS
