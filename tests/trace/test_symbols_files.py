"""One test per symbol of unit files (sizes, names, locks, mappings, copies within the kernel): see test_symbols.py."""

from __future__ import annotations

import errno
import re
from typing import TYPE_CHECKING, Final

import pytest
from symbol_calls import CLOSE, OPEN, SENTINEL, SYMBOLS, symbols_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from symbol_calls import Both, Seen

SOURCE: Final = "symbols_files.c"
TESTED: Final = symbols_of(SOURCE)


@pytest.fixture(scope="module")
def both(symbol_runs: Callable[[str], Both]) -> Both:
    return symbol_runs(SOURCE)


def twice(name: str, count: int, offset: int, error: int) -> list[Seen]:
    """Works once, fails once."""
    return [OPEN, (name, count, offset, 0), (name, 0, offset, error), CLOSE]


def asking(name: str) -> list[Seen]:
    """Of the file itself; neither of the directory nor of what is not there."""
    return [(name, 0, -1, 0)]


def changing(name: str, error: int) -> list[Seen]:
    """Of a name: works once, fails once."""
    return [(name, 0, -1, 0), (name, 0, -1, error)]


SYNC: Final[dict[str, list[Seen]]] = {
    name: [OPEN, (name, 0, -1, 0), CLOSE] for name in ("fsync", "fdatasync", "syncfs")
}
COPIED: Final[list[Seen]] = [
    ("copy_file_range (%s)", 50, 100, 0),
    ("copy_file_range (%s)", 30, 0, 0),
    ("copy_file_range (%s)", 20, 30, 0),
    ("copy_file_range (%s)", 0, 50, errno.EINVAL),
]
NEW_NAMES: Final = ("mkstemp", "mkostemp", "mkstemps", "mkostemps")
OWN: Final[dict[str, list[Seen]]] = SYNC | {
    "sync_file_range": twice("sync_file_range", 20, 10, errno.EINVAL),
    "ftruncate": [OPEN, ("ftruncate", 0, 700, 0), ("ftruncate", 0, -1, errno.EINVAL), CLOSE],
    "truncate": [("truncate", 0, 600, 0)],
    "fallocate": twice("fallocate", 4000, 100, errno.EINVAL),
    "posix_fallocate": twice("posix_fallocate", 4000, 100, errno.EINVAL),
    "posix_fadvise": twice("posix_fadvise", 200, 100, errno.EINVAL),
    "readahead": [OPEN, ("readahead", 500, 0, 0), CLOSE, OPEN, ("readahead", 0, 0, errno.EBADF), CLOSE],
    "fstat": [OPEN, ("fstat", 0, -1, 0), CLOSE],
    "__fxstat": twice("fstat", 0, -1, errno.EINVAL),
    "stat": asking("stat"),
    "lstat": asking("lstat"),
    "fstatat": [*asking("fstatat"), OPEN, ("fstatat", 0, -1, 0), CLOSE],
    "__fxstatat": asking("fstatat"),
    "statx": [*asking("statx"), OPEN, ("statx", 0, -1, 0), CLOSE],
    "unlink": changing("unlink", errno.ENOENT),
    "unlinkat": changing("unlinkat", errno.ENOENT),
    "remove": changing("remove", errno.ENOENT),
    "rename": changing("rename", errno.ENOENT),
    "renameat": changing("renameat", errno.ENOENT),
    "renameat2": changing("renameat2", errno.ENOENT),
    "link": [],
    "linkat": [],
    "symlink": [],
    "symlinkat": [],
    "mkstemp": [],
    "flock": [
        OPEN,
        ("flock_lock", 0, -1, 0),
        ("flock_lock", 0, -1, 0),
        ("flock_unlock", 0, -1, 0),
        ("flock_lock", 0, -1, errno.EINVAL),
        CLOSE,
    ],
    "lockf": [
        OPEN,
        ("lseek", 0, 40, 0),
        ("lockf_lock", 100, 40, 0),
        ("lockf_test", 60, 40, 0),
        ("lockf_unlock", 100, 40, 0),
        ("lockf_lock", 0, 40, errno.EINVAL),
        CLOSE,
    ],
    "sendfile": [OPEN, *[("sendfile (read)", size, at, 0) for size, at in ((50, 100), (30, 0), (20, 30))], CLOSE],
    "copy_file_range": [OPEN, *[(name % "read", count, offset, error) for name, count, offset, error in COPIED], CLOSE],
    "splice": [
        OPEN,
        ("splice (read)", 50, 100, 0),
        ("splice (read)", 30, 0, 0),
        ("splice (read)", 0, 30, errno.EINVAL),
        CLOSE,
    ],
    "dprintf": [
        OPEN,
        ("dprintf", 14, 0, 0),
        ("dprintf", 5, 14, 0),
        CLOSE,
        OPEN,
        ("dprintf", 0, 0, errno.EBADF),
        CLOSE,
    ],
    "close_range": [OPEN, *[("dup2", 0, -1, 0)] * 2, ("pwrite", 5, 0, 0), *[("close_range", 0, -1, 0)] * 2],
    "closefrom": [OPEN, ("dup2", 0, -1, 0), ("closefrom", 0, -1, 0)],
    "mmap": [OPEN, ("mmap", 900, 0, 0), ("munmap", 4096, 0, 0), ("mmap", 0, 7, errno.EINVAL), CLOSE],
    "munmap": [
        OPEN,
        ("mmap", 12288, 0, 0),
        ("munmap", 4096, 4096, 0),
        ("munmap", 0, 8192, errno.EINVAL),
        ("munmap", 12288, 0, 0),
        CLOSE,
    ],
    "msync": [
        OPEN,
        ("mmap", 8192, 0, 0),
        ("msync", 900, 0, 0),
        ("msync", 4096, 4096, 0),
        ("msync", 0, 0, errno.EINVAL),
        ("munmap", 8192, 0, 0),
        CLOSE,
    ],
}  # fmt: skip
"""What belongs to the symbol's own file, by symbol or by event."""

SECOND: Final[dict[str, list[Seen]]] = {
    "sendfile": [
        OPEN,
        *[("sendfile (write)", count, offset, 0) for count, offset in ((50, 0), (30, 50), (20, 80))],
        ("sendfile (write)", 0, 100, errno.EBADF),
        CLOSE,
    ],
    "copy_file_range": [
        OPEN,
        ("copy_file_range (write)", 50, 7, 0),
        ("copy_file_range (write)", 30, 0, 0),
        ("copy_file_range (write)", 20, 30, 0),
        ("copy_file_range (write)", 0, 50, errno.EINVAL),
        CLOSE,
    ],
    **{name: [("stat", 0, -1, 0)] for name in NEW_NAMES},
    "splice": [
        OPEN,
        ("splice (write)", 60, 0, 0),
        ("splice (write)", 20, 60, 0),
        ("splice (write)", 0, 80, errno.EINVAL),
        CLOSE,
    ],
}
"""What belongs to the other file (SYMBOL.created) of a copy, or to what became of a file of a new name."""
NAMES: Final = ("rename (to)", "renameat (to)", "renameat2 (to)", "link", "linkat", "symlink", "symlinkat")


@pytest.mark.parametrize("symbol", TESTED)
def test_events(both: Both, symbol: str) -> None:
    both.need(symbol)
    base = symbol.removesuffix("64")
    expected = OWN[base] if base in OWN else OWN[SYMBOLS[symbol].split(" ")[0].split("_lock")[0]]
    assert both.seen(symbol) == expected
    assert both.seen(f"{symbol}.created") == SECOND.get(base, [])
    links = [name for name in NAMES if name.split(" ")[0] == symbol]
    error = errno.ENOENT if "rename" in symbol else errno.EEXIST
    assert both.seen(f"{symbol}.new") == [event for name in links for event in changing(name, error)]
    missing = {"truncate": [("truncate", 0, 600, errno.ENOENT)]}
    assert both.seen(f"missing/{symbol}") == missing.get(base, [])


@pytest.mark.parametrize("symbol", [symbol for symbol in TESTED if symbol.removesuffix("64") in NEW_NAMES])
def test_files_of_a_new_name(both: Both, symbol: str) -> None:
    """The event has the name that the call has made; of a failed call the template."""
    tail = ".end" if symbol.removesuffix("64").endswith("s") else ""
    template = "newXXXXXX.end" if tail else "newXXXXX"
    appends = symbol.removesuffix("64") == "mkostemp"
    assert both.seen(f"{symbol}.{template}") == [("mkstemp", 0, -1, errno.EINVAL)]
    made = re.compile(rf"{re.escape(f'{both.data}/{symbol}.new')}(?!XXXXXX)[0-9A-Za-z]{{6}}{re.escape(tail)}")
    (path,) = filter(made.fullmatch, both.events)
    assert both.seen(path) == [
        ("mkstemp", 0, -1, 0),
        ("pwrite", 10, -1 if appends else 20, 0),
        ("write", 5, -1 if appends else 0, 0),
        CLOSE,
    ]
    # Linux appends with pwrite too.
    assert (both.data / f"{symbol}.created").stat().st_size == (15 if appends else 30)
    assert ("mode", 0o600, SENTINEL) in both.with_preload[symbol]


def test_asking_about_a_link_that_leads_to_a_file(both: Both) -> None:
    """The answer of stat is a regular file, that of lstat is a link."""
    assert both.seen("stat.link") == [("stat", 0, -1, 0)]
    assert both.seen("lstat.link") == []


def test_folders_are_recorded_when_they_are_made_and_removed(both: Both) -> None:
    assert str(both.data) not in {event.path for event in both.traced.trace.events}
    assert both.seen("unlinkat.folder") == [("mkdir", 0, -1, 0), ("unlinkat", 0, -1, 0)]
    assert both.traced.trace.is_whole()
    assert both.traced.err == ""
