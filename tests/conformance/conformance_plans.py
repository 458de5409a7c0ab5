"""The plans that `make conformance` forces on every file of other people's programs, one after the other.

Buffers and stripes are far smaller than the defaults, so that the programs' small files take several rounds and parts.
Not here: running (conformance_run.py), which programs there are (conformance_suites.py).
"""

from __future__ import annotations

from typing import Final

_STRIPES: Final = 'stripe = { size = "1 KiB", count = 3 }'
_BUFFER: Final = 'buffer = "4 KiB"'

RULES: Final[dict[str, tuple[str, ...]]] = {
    "direct": ('writers = "everyone"',),
    "even": ('writers = "aggregators:auto"', 'domains = "even"', _BUFFER, _STRIPES),
    "aligned": ('writers = "aggregators:2"', 'domains = "aligned"', _BUFFER, _STRIPES),
    "cyclic": ('writers = "aggregators:2"', 'domains = "cyclic"', _BUFFER, _STRIPES),
    "group-cyclic": ('writers = "aggregators:4"', 'domains = "group-cyclic"', _BUFFER, _STRIPES),
    "cooperative": (
        'writers = "aggregators:2"', 'domains = "cooperative"', 'order = "contention-free"', _BUFFER, _STRIPES,
    ),
    "contention-free": (
        'writers = "aggregators:3"', 'domains = "even"', 'order = "contention-free"', _BUFFER, _STRIPES,
    ),
    "behind": ('writers = "behind:1"', 'visibility = "sync"', _BUFFER),
    "grouped": ('mapping = "grouped:2"', 'visibility = "sync"'),
    "log": ('mapping = "log"', 'visibility = "sync"'),
    "grouped-call": ('mapping = "grouped:2"', 'visibility = "call"'),
    "log-call": ('mapping = "log"', 'visibility = "call"'),
    "subfiles": ('mapping = "subfiles:3"', _STRIPES),
    "auto": ('writers = "auto"', _BUFFER, _STRIPES),
    "netcdf": ("netcdf = { subfiles = 2 }",),
    "hdf5": (
        'writers = "auto"', _BUFFER, _STRIPES,
        'hdf5 = { alignment = 1024, threshold = 512, hold_metadata = "all", metadata_block = 8192, '
        'small_data_block = 8192, collective_metadata = "writes", chunks = "learn", istore_k = "auto", '
        'transfer = "auto" }',
    ),
}  # fmt: skip

ONLY: Final = {"netcdf": ("pnetcdf",), "hdf5": ("hdf5", "netcdf4")}
"""Strategies that do something for the programs of these suites alone."""

OTHER_BYTES: Final = ("hdf5",)
"""Strategies that lay out a file's objects differently: what is in HDF5 files is compared, and not their bytes."""

BY_LAYOUT: Final = {"testphdf5": ("-x", "bigdset", "-x", "actualio", "-x", "nocolcause")}
"""Programs that check a file's exact size or how the library moved its bytes, which those strategies change: the words
that leave these of their tests out."""


BY_HINTS: Final = ("file_info",)
"""Programs that check which hints are in effect: what a rule says would win over theirs."""

BY_STRIPES: Final = {"pnetcdf": {"PNETCDF_HINTS": "striping_unit=1024"}}
"""Suites whose library aligns a file's contents to the stripes that it is told of, and how to tell it of those above
without ioweir: what it leaves then is right with a plan that has them, too."""

UNDEFINED_BYTES: Final = {
    "add_var": "files not compared: OMPIO says that reads beyond the end of a file got bytes, and PnetCDF writes them",
    "tst_simplerw_coll_r": "files not compared: every 16th element is never written, and nothing fills it (NC_NOFILL)",
    "atomicity": "files not compared: ROMIO leaves uninitialised memory in holes that nobody writes, ioweir zeros",
}
"""Programs that leave behind bytes of which MPI says nothing, and which a plan changes."""


def has_stripes(name: str) -> bool:
    """Does a strategy say how files are striped?"""
    return _STRIPES in RULES[name]


def plan_text(name: str, *, sizes: bool = True) -> str:
    """The plan file that applies a strategy to every file; without `sizes` it leaves buffer and stripes to hints."""
    rule = [line for line in RULES[name] if sizes or not line.startswith(("buffer", "stripe"))]
    return "\n".join(["[[file]]", 'match = "*"', *rule, ""])
