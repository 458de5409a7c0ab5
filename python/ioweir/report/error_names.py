"""What failed calls returned, in words: errno of POSIX and STDIO, error classes of MPI.

Which calls failed, and with what, is sums.py's.
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Final

from ioweir.base.spec_names import MPI_IO, POSIX, STDIO

if TYPE_CHECKING:
    from collections.abc import Sequence

# Their numbers differ. What calls on files return, from the mpi.h of Open MPI 4 and 5 and of MPICH 3 and 4.
_CLASSES: Final[dict[str, dict[int, str]]] = {
    "Open MPI": {
        2: "COUNT", 3: "TYPE", 13: "ARG", 15: "TRUNCATE", 16: "OTHER", 17: "INTERN", 20: "ACCESS", 21: "AMODE",
        23: "BAD_FILE", 28: "FILE_EXISTS", 29: "FILE_IN_USE", 30: "FILE", 35: "IO", 39: "NO_MEM", 41: "NO_SPACE",
        42: "NO_SUCH_FILE", 44: "QUOTA", 45: "READ_ONLY", 52: "UNSUPPORTED_OPERATION",
    },
    "MPICH": {
        2: "COUNT", 3: "TYPE", 12: "ARG", 14: "TRUNCATE", 15: "OTHER", 16: "INTERN", 20: "ACCESS", 21: "AMODE",
        22: "BAD_FILE", 25: "FILE_EXISTS", 26: "FILE_IN_USE", 27: "FILE", 32: "IO", 34: "NO_MEM", 36: "NO_SPACE",
        37: "NO_SUCH_FILE", 39: "QUOTA", 40: "READ_ONLY", 44: "UNSUPPORTED_OPERATION",
    },
}  # fmt: skip


def name_of(layer: str, error: int, mpi_libraries: Sequence[str]) -> str | None:
    """Example: POSIX, 28 -> "ENOSPC". None where nobody knows, as of HDF5's, which have no numbers."""
    if layer in (POSIX, STDIO):
        return errno.errorcode.get(error)
    if layer != MPI_IO:
        return None
    found = {next((name for name in _CLASSES if line.startswith(name)), "") for line in mpi_libraries}
    word = _CLASSES.get(found.pop(), {}).get(error) if len(found) == 1 else None
    return f"MPI_ERR_{word}" if word else None
