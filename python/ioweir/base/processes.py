"""Processes of ioweir's own: its command line once more, and workers. None imports what lies in the current folder.

Python puts that in front of where it looks (`-m`, `-c`), and anybody may have put a module into a folder for all.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_SAFE_PATH: Final = "PYTHONSAFEPATH"
"""Since Python 3.11; before, workers are not kept from it."""
_CODE: Final = (
    "import sys; sys.path[:] = [*filter(None, sys.path), {package!r}]; from ioweir.cli.app import main; main()"
)


def ioweir(*words: str) -> list[str]:
    """A command of this installation's command line."""
    return [sys.executable, "-c", _CODE.format(package=str(Path(__file__).resolve().parents[2])), *words]


@contextlib.contextmanager
def workers(count: int) -> Iterator[ProcessPoolExecutor]:
    """So many, spawned: threads of numpy and pyarrow do not outlive a fork."""
    before = os.environ.get(_SAFE_PATH)
    os.environ[_SAFE_PATH] = "1"
    try:
        with ProcessPoolExecutor(count, multiprocessing.get_context("spawn")) as pool:
            yield pool
    finally:
        if before is None:
            del os.environ[_SAFE_PATH]
        else:
            os.environ[_SAFE_PATH] = before
