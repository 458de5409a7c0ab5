"""Names of files: the preloaded libraries of this installation, and what a trace directory holds. Loads nothing."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

RUN_FILE: Final = "run.json"
MANY_NODES: Final = 256
"""From so many on reports are made of the nodes' sums where all are there (trace/node_sums.py)."""
NODE_FILES: Final = "node-*.iowt"
"""What a traced node leaves, one file each."""
COMPRESSED_SUFFIX: Final = ".zst"
"""Behind the name of such a file, when it is compressed."""
CACHE: Final = "ioweir"
"""In the user's cache folder."""
PRELOAD_LIBRARY: Final = "libioweir_preload.so"
LIBRARY_DIRECTORY_VARIABLE: Final = "IOWEIR_LIBDIR"


def candidate_directories() -> list[Path]:
    """Where the libraries may be: named by the user, beside the compiled module, in this package."""
    named = os.environ.get(LIBRARY_DIRECTORY_VARIABLE)
    if named:
        return [Path(named).resolve()]
    directories: list[Path] = []
    compiled = importlib.util.find_spec("ioweir._core")
    if compiled is not None and compiled.origin:
        directories.append(Path(compiled.origin).absolute().parent / "lib")
    directories.append(Path(__file__).resolve().parents[1] / "lib")
    return list(dict.fromkeys(directories))


def preload_library() -> Path | None:
    """The library to preload, None when it is not installed."""
    for directory in candidate_directories():
        if (directory / PRELOAD_LIBRARY).is_file():
            return directory / PRELOAD_LIBRARY
    return None


def cache_folder(environment: Mapping[str, str]) -> Path | None:
    """The user's, by the XDG base directory specification; None: there is no such place."""
    base = environment.get("XDG_CACHE_HOME", "")
    if base.startswith("/"):
        return Path(base, CACHE)
    home = environment.get("HOME", "")
    return Path(home, ".cache", CACHE) if home.startswith("/") else None
