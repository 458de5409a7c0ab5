"""Which of a trace's paths name the same file."""

from __future__ import annotations

import os.path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def files_of(paths: Sequence[str], directory: str) -> tuple[list[str], list[int]]:
    """The files' names, and per path the file it names. Example: ufs:/a/./b and /a/b are one file."""
    number: dict[str, int] = {}
    indices = [number.setdefault(clean_path(path, directory), len(number)) for path in paths]
    return list(number) or [""], indices


def clean_path(path: str, directory: str) -> str:
    """A path without ROMIO's file-system prefix, absolute where the run's directory is known."""
    prefix, colon, rest = path.partition(":")
    if colon and "/" not in prefix and prefix.isalpha() and len(prefix) > 1:
        path = rest
    if not path:
        return ""
    if not path.startswith("/") and directory:
        path = os.path.join(directory, path)  # noqa: PTH118 (text of another machine, not a path of this one)
    return os.path.normpath(path)
