"""The functions through which a program can reach a file: the one table that `ioweir doctor` audits imports against.

Which of them are recorded is not said here: what the preload stands in for is no gap, all else is. Functions that
move their bytes through others in this table are not in it: C++ file streams (fopen and descriptors), liburing's inline
functions.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable


@dataclass(frozen=True)
class Family:
    """Functions of one interface."""

    name: str
    moves_data: bool
    """Whether bytes of files move through them: a gap here makes the figures too low."""
    functions: frozenset[str]


def _family(name: str, moves_data: bool, functions: str) -> Family:
    return Family(name, moves_data, frozenset(functions.split()))


FAMILIES: Final = (
    _family("POSIX opening and closing", True, """
        open open64 __open_2 __open64_2 openat openat64 __openat_2 __openat64_2 creat creat64 close close_range
        closefrom dup dup2 dup3 fcntl fcntl64 openat2 memfd_create mkstemp mkstemp64 mkostemp mkostemp64 mkstemps
        mkstemps64 mkostemps mkostemps64"""),
    _family("POSIX data", True, """
        read __read_chk pread pread64 __pread_chk __pread64_chk readv preadv preadv64 preadv2 preadv64v2
        write pwrite pwrite64 writev pwritev pwritev64 pwritev2 pwritev64v2
        copy_file_range sendfile sendfile64 splice vmsplice tee"""),
    _family("memory-mapped files", True, "mmap mmap64 msync mremap"),
    _family("POSIX asynchronous I/O", True, """
        aio_read aio_read64 aio_write aio_write64 lio_listio lio_listio64 aio_fsync aio_fsync64 aio_return aio_return64
        aio_suspend aio_suspend64"""),
    _family("libaio and io_uring", True, """
        io_submit io_getevents io_pgetevents io_uring_submit io_uring_submit_and_wait io_uring_queue_init
        io_uring_queue_init_params io_uring_setup io_uring_enter"""),
    _family("raw system calls", True, "syscall"),
    _family("STDIO", True, """
        fopen fopen64 fdopen freopen freopen64 fclose fread __fread_chk fwrite fread_unlocked fwrite_unlocked fputs
        fgets __fgets_chk fgetc fputc getc putc getline getdelim fprintf __fprintf_chk vfprintf __vfprintf_chk fscanf
        __isoc99_fscanf __isoc23_fscanf vfscanf fflush setvbuf fseek fseeko fseeko64 rewind tmpfile tmpfile64"""),
    _family("STDIO of wide characters", True, """
        fgetwc getwc fputwc putwc fgetws fputws ungetwc fwprintf vfwprintf __fwprintf_chk __vfwprintf_chk
        fwscanf vfwscanf __isoc99_fwscanf __isoc23_fwscanf"""),
    _family("HDF5 drivers", True, """
        H5FDread H5FDread_vector H5FDread_selection H5FDwrite H5FDwrite_vector H5FDwrite_selection"""),
    _family("file locks", False, "flock lockf lockf64"),
    _family("sizes, positions and synchronisation", False, """
        lseek lseek64 fsync fdatasync sync syncfs sync_file_range ftruncate ftruncate64 truncate truncate64 fallocate
        fallocate64 posix_fallocate posix_fallocate64 posix_fadvise posix_fadvise64 readahead"""),
    _family("names and metadata", False, """
        stat stat64 fstat fstat64 lstat lstat64 fstatat fstatat64 statx __xstat __xstat64 __fxstat __fxstat64 __lxstat
        __lxstat64 __fxstatat __fxstatat64 access faccessat unlink unlinkat rename renameat renameat2 link linkat
        symlink symlinkat mkdir mkdirat rmdir opendir readdir readdir64 remove chmod fchmod chown fchown utimensat
        statfs statfs64 fstatfs fstatfs64 statvfs statvfs64 fstatvfs fstatvfs64"""),
)  # fmt: skip

_MPI_C: Final = re.compile(r"P?MPI_File_\w+$")
_MPI_FORTRAN: Final = re.compile(r"p?mpi_file_\w+?(?:_f08ts|_f08|_f90|_fts)?_{0,2}$", re.IGNORECASE)
_MPI_DATA: Final = re.compile(r"MPI_File_i?(?:read|write)", re.IGNORECASE)
MPI_DATA: Final = Family("MPI-IO data", True, frozenset())
MPI_OTHER: Final = Family("other MPI-IO calls", False, frozenset())


@dataclass(frozen=True)
class Gap:
    """Imported I/O functions of one family that are not recorded."""

    family: str
    moves_data: bool
    functions: tuple[str, ...]


def mpi_base_name(symbol: str) -> str | None:
    """The C name, in lower case and without a P, of an MPI-IO symbol in any language.

    Example: mpi_file_write_at_all_f08ts_ -> mpi_file_write_at_all; None for symbols that are none.
    """
    if _MPI_C.match(symbol):
        return symbol.lower().removeprefix("p")
    if _MPI_FORTRAN.match(symbol):
        name = symbol.lower().rstrip("_").removeprefix("p")
        for suffix in ("_f08ts", "_f08", "_f90", "_fts"):
            name = name.removesuffix(suffix)
        return name
    return None


def is_mpi_io(symbol: str) -> bool:
    """Whether a symbol is an MPI-IO call in C or Fortran."""
    return mpi_base_name(symbol) is not None


def gaps(imported: Iterable[str], recorded: Collection[str]) -> list[Gap]:
    """The I/O functions among `imported` that are not `recorded`, by family; those that move data come first."""
    known = frozenset(recorded)
    known_mpi = {mpi_base_name(symbol) for symbol in known}
    found: dict[Family, set[str]] = {}
    for symbol in imported:
        family = _family_of(symbol)
        if family is None or symbol in known:
            continue
        base = mpi_base_name(symbol)
        # Fortran entries arrive at the C hooks of the same call.
        if base is not None and base in known_mpi:
            continue
        found.setdefault(family, set()).add(symbol)
    rows = [Gap(family.name, family.moves_data, tuple(sorted(symbols))) for family, symbols in found.items()]
    return sorted(rows, key=lambda gap: (not gap.moves_data, gap.family))


def _family_of(symbol: str) -> Family | None:
    if is_mpi_io(symbol):
        return MPI_DATA if _MPI_DATA.search(symbol) else MPI_OTHER
    return next((family for family in FAMILIES if symbol in family.functions), None)
