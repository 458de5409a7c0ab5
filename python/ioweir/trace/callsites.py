"""Which lines of the program made the calls: frames get functions and lines, and one frame of each call site is shown.

The one shown is the innermost that the programmer can change: not the MPI library, not HDF5, netCDF or PnetCDF, not the
C, C++ or Fortran runtime or the Python interpreter, and no function out of a header of the system.
Resolving addresses is symbols.py's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from ioweir.programs import symbols
from ioweir.programs.symbols import Location

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ioweir.trace.reader import Frame, Module


class Owner(IntEnum):
    """Whose code a frame is; the lower, the rather it is shown."""

    PROGRAM = 0
    EXTENSION = 1
    """A compiled module of Python's: where the script's line is not known, this is the nearest thing to it."""
    INTERPRETER = 2
    LIBRARY = 3
    UNKNOWN = 4


_LIBRARIES: Final = re.compile(
    # MPI and what it is made of
    r"lib(mpi|pmpi|open-(pal|rte)|mca_|ompi|oshmem|prrte|pmix|mpich|mpl\.|opa\.|uc[pstm]\.|fabric|psm|romio)|mca_"
    # I/O libraries
    r"|lib(hdf5|netcdf|pnetcdf|adios|sz\.|aec)"
    # runtimes
    r"|lib(c|m|dl|rt|pthread|stdc\+\+|gcc_s|gfortran|quadmath|gomp|ifcore|ifport|imf|svml|irc|flang|pgf90)[.\-_0-9]"
    r"|lib(event|hwloc|z|uring|aio|numa)[.\-_0-9]|ld-linux|linux-vdso|libioweir_"
)
_INTERPRETER: Final = re.compile(r"libpython[0-9.]+|python[0-9.]*$")
_EXTENSION: Final = re.compile(r"\.(cpython-[^/]*|abi3)\.so$|/(site|dist)-packages/")
# Of libraries that are linked into the program itself.
_LIBRARY_FUNCTION: Final = re.compile(
    r"(P?MPI_[A-Z]|ADIOI?_|H5[A-Z]{1,3}_?[a-z_]|ncmpii?_|nc4_|NC4_|ioweir|_start$|__libc_start)"
)
_SYSTEM_SOURCE: Final = re.compile(r"/usr/(include|lib|local/include)/|\.\./(sysdeps|csu)/|.*/libstdc\+\+-v3/")


_PYTHON: Final = "5079"
"""In the place of a module's build id: it is a file of Python code, and addresses in it are lines (python_line.hpp)."""


@dataclass(frozen=True)
class Call:
    """One frame with its meaning."""

    module: str | None
    address: int
    owner: Owner
    location: Location
    inlined: bool = False

    def words(self) -> str:
        """For people: the best that is known. Example: "dump at io.c:42"."""
        place = f"{PurePosixPath(self.location.file).name}:{self.location.line}" if self.location.file else None
        if place is None:
            name = PurePosixPath(self.module).name if self.module else "?"
            place = f"{name}+{self.address:#x}"
        return f"{self.location.function} at {place}" if self.location.function else place


def owner_of(module: str | None, location: Location) -> Owner:
    """Whose code a place is."""
    if module is None:
        return Owner.UNKNOWN
    name = PurePosixPath(module).name
    if _LIBRARIES.match(name) or _LIBRARY_FUNCTION.match(location.function or ""):
        return Owner.LIBRARY
    if _INTERPRETER.match(name):
        return Owner.INTERPRETER
    if location.file is not None and _SYSTEM_SOURCE.match(location.file):
        return Owner.LIBRARY
    return Owner.EXTENSION if _EXTENSION.search(module) else Owner.PROGRAM


def shown(calls: Sequence[Call]) -> Call | None:
    """The innermost call of the best owner there is."""
    return min(calls, key=lambda call: call.owner, default=None)  # min keeps the first of equals


class Resolver:
    """Names the frames of a trace; each module is asked once."""

    def __init__(self, modules: Sequence[Module], frames: Iterable[Frame], tool: str | None) -> None:
        self._modules = modules
        self._chains: dict[Frame, symbols.Chain] = {}
        self.changed: set[str] = set()
        """Modules whose files are not those of the run any more, or gone: nothing can be said about them."""
        wanted: dict[int, set[int]] = {}
        for module, address in frames:
            if module >= 0 and owner_of(modules[module].path, Location()) is not Owner.LIBRARY:
                wanted.setdefault(module, set()).add(address)
        for module, addresses in wanted.items():
            about = modules[module]
            if about.build_id == _PYTHON:
                lines = {(module, line): (Location(None, about.path, line),) for line in addresses}
                self._chains.update(lines)
                continue
            if symbols.build_id(about.path) != about.build_id:
                self.changed.add(about.path)
                continue
            for address, chain in symbols.resolve(about.path, addresses, tool).items():
                self._chains[module, address] = chain

    def calls(self, frames: Sequence[Frame]) -> list[Call]:
        """The calls of a site, innermost first, with the functions that were compiled in place."""
        calls: list[Call] = []
        for module, address in frames:
            path = self._modules[module].path if module >= 0 else None
            chain = self._chains.get((module, address), symbols.UNKNOWN)
            calls += [
                Call(path, address, owner_of(path, location), location, at < len(chain) - 1)
                for at, location in enumerate(chain)
            ]
        return calls
