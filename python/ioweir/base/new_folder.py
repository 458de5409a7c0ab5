"""Directories that a command makes for what it writes, and that hold nothing else."""

from __future__ import annotations

import contextlib
import fnmatch
import os
from typing import TYPE_CHECKING

from ioweir.base.guarded_files import Folder, written_as
from ioweir.errors import EXIT_USAGE, IoweirError, reason

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


def folder_at(path: Path, mode: int = 0o777) -> Folder:
    """The directory that the user named, made where nothing is; what it holds stays."""
    try:
        path.mkdir(mode)
    except FileExistsError:
        pass
    except OSError as error:
        raise IoweirError(f"'{path}' cannot be made: {reason(error)}") from error
    try:
        return Folder.open(path)
    except OSError as error:
        raise IoweirError(f"'{path}' cannot be opened: {reason(error)}", EXIT_USAGE) from error


def new_folder(output: Path, mode: int = 0o777) -> Folder:
    """The directory that the user named for results, made where it is missing; an error where it holds something."""
    try:
        output.mkdir(mode)
    except FileExistsError:
        require_empty(output)
    except OSError as error:
        raise IoweirError(f"'{output}' cannot be made: {reason(error)}") from error
    return Folder.open(output)


@contextlib.contextmanager
def whole_folder(output: Path, own: Sequence[str], mode: int = 0o777) -> Iterator[Folder]:
    """As `new_folder`, but where writing into it fails or is interrupted, nothing of it is left.

    `own`: patterns of the names that are written, of files and of folders with all that is in them.
    """
    is_there = output.exists()
    with new_folder(output, mode) as folder:
        try:
            with written_as(output):
                yield folder
        except BaseException:
            with contextlib.suppress(OSError):
                for name in folder.names():
                    if any(fnmatch.fnmatchcase(name, pattern) for pattern in own):
                        folder.remove_tree(name)
                if not is_there:
                    with Folder.open(output.parent) as above:
                        above.remove_empty(output.name)
            raise


def require_empty(output: Path) -> None:
    """An error where something is there and is no empty directory."""
    if not output.exists():
        return
    if not output.is_dir():
        raise IoweirError(f"'{output}' is not a directory", EXIT_USAGE)
    with Folder.open(output) as folder:
        if folder.names():
            raise IoweirError(f"'{output}' holds something: give a directory that is new or empty", EXIT_USAGE)


def require_writable(directory: Path) -> None:
    """An error where files cannot be made in what --directory names."""
    if not directory.is_dir():
        what = "it is a file; name a directory" if directory.exists() else "there is no such directory; make it first"
        raise IoweirError(f"--directory {directory}: {what}", EXIT_USAGE)
    if not os.access(directory, os.W_OK | os.X_OK):
        raise IoweirError(f"--directory {directory}: you may not write there; name another, or change its rights")
