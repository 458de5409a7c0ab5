"""Machine files that `ioweir calibrate --kernels` made of this node's own storage, kept for `ioweir tune`.

They lie in the user's cache folder, a file for each mounted file system and MPI library of a host. Nobody else's files
are believed (base/guarded_files.py).
"""

from __future__ import annotations

import hashlib
import os
import platform
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ioweir.base import locate
from ioweir.base.guarded_files import Folder
from ioweir.errors import EXIT_USAGE, IoweirError, reason
from ioweir.predict import machine, node

if TYPE_CHECKING:
    from pathlib import Path

    from ioweir.predict.machine import Machine

FOLDER: Final = "machines"
_DAY_S: Final = 86400


@dataclass(frozen=True)
class Kept:
    """One of them."""

    machine: Machine
    path: Path
    kind: str
    """Of the file system."""
    days: int
    """How old it is."""


def keep(text: str, storage: Path, mpi: str) -> Path:
    """Keep the machine file of a folder's storage under an MPI library ("openmpi", "mpich"); where it lies then."""
    cache = locate.cache_folder(os.environ)
    if cache is None:
        raise IoweirError("no home folder to keep the machine in; set XDG_CACHE_HOME, or give --output", EXIT_USAGE)
    folder = cache / FOLDER
    name = _name(storage, mpi)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with Folder.open(folder, own=True) as inside:
            inside.write(name, text, 0o600)
    except OSError as error:
        raise IoweirError(f"{folder}: the machine cannot be kept there: {reason(error)}; give --output") from error
    return folder / name


def find(storage: Path, mpi: str) -> Kept | None:
    """The one that was kept for a folder's storage; None: there is none, or none that can be believed."""
    cache = locate.cache_folder(os.environ)
    if cache is None:
        return None
    name = _name(storage, mpi)
    path = cache / FOLDER / name
    try:
        with Folder.open(cache / FOLDER, own=True) as inside:
            text = inside.read_text(name, own=True)
            found = inside.status(name)
    except OSError:
        return None
    except ValueError as error:
        raise IoweirError(f"{path}: no machine file: {error}; remove it, or calibrate again") from error
    age_s = time.time() - found.st_mtime if found is not None else 0.0
    return Kept(machine.parse(text, str(path)), path, node.mount_at(storage).kind, max(int(age_s / _DAY_S), 0))


def _name(storage: Path, mpi: str) -> str:
    mount = node.mount_at(storage)
    key = "\0".join((platform.node(), mount.place, mount.kind, mpi))
    return f"{mpi}-{hashlib.sha256(key.encode('utf-8', 'surrogateescape')).hexdigest()[:16]}.toml"
