"""A trace file that an import writes, and errors of the system in writing it."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Any

from ioweir.base.compiled import compiled

if TYPE_CHECKING:
    from collections.abc import Callable


def create(path: str, host: str, epoch_ns: int) -> Any:
    """The writer of a file; OSError where it cannot be made."""
    return _asked(lambda: compiled().NodeWriter(path, host, epoch_ns), path)


def finish(writer: Any, path: str) -> None:
    """Write the rest and close; OSError where anything since `create` could not be written."""
    _asked(writer.finish, path)


def _asked(call: Callable[[], Any], path: str) -> Any:
    try:
        return call()
    except ValueError as error:
        # The writer's message ends with the system's words; of several that fit, the longest are those.
        words = str(error)
        numbers = [number for number in errno.errorcode if words.endswith(os.strerror(number))]
        if not numbers:
            raise
        number = max(numbers, key=lambda one: len(os.strerror(one)))
        raise OSError(number, os.strerror(number), path) from error
