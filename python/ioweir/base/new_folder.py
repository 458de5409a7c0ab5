"""Directories that a command makes for what it writes, and that hold nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ioweir.base.guarded_files import Folder
from ioweir.errors import EXIT_USAGE, IoweirError

if TYPE_CHECKING:
    from pathlib import Path


def folder_at(path: Path, mode: int = 0o777) -> Folder:
    """The directory that the user named, made where nothing is; what it holds stays."""
    try:
        path.mkdir(mode)
    except FileExistsError:
        pass
    except OSError as error:
        raise IoweirError(f"'{path}' cannot be made: {error.strerror}") from error
    try:
        return Folder.open(path)
    except OSError as error:
        raise IoweirError(f"'{path}' cannot be opened: {error.strerror}", EXIT_USAGE) from error


def new_folder(output: Path, mode: int = 0o777) -> Folder:
    """The directory that the user named for results, made where it is missing; an error where it holds something."""
    try:
        output.mkdir(mode)
    except FileExistsError:
        require_empty(output)
    except OSError as error:
        raise IoweirError(f"'{output}' cannot be made: {error.strerror}") from error
    return Folder.open(output)


def require_empty(output: Path) -> None:
    """An error where something is there and is no empty directory."""
    if not output.exists():
        return
    if not output.is_dir():
        raise IoweirError(f"'{output}' is not a directory", EXIT_USAGE)
    with Folder.open(output) as folder:
        if folder.names():
            raise IoweirError(f"'{output}' holds something: give a directory that is new or empty", EXIT_USAGE)
