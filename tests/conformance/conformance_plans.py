"""The plans that `make conformance` forces on every file of other people's programs, one after the other.

Buffers and stripes are far smaller than the defaults, so that the programs' small files take several rounds and parts.
Not here: running (conformance_run.py), which programs there are (conformance_suites.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

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
    "hdf5-paged": (
        'writers = "auto"', _BUFFER, _STRIPES,
        'hdf5 = { page = 4096, hold_metadata = "64 KiB", collective_metadata = "writes", libver = "v110", '
        'memory_shape = "file" }',
    ),
}  # fmt: skip

_OF_HDF5: Final = ("hdf5", "hdf5-files", "hdf5-1.14", "hdf5-1.14-files", "netcdf4")
ONLY: Final = {"netcdf": ("pnetcdf",), "hdf5": _OF_HDF5, "hdf5-paged": _OF_HDF5}
"""Strategies that do something for the programs of these suites alone."""

OTHER_BYTES: Final = ("hdf5", "hdf5-paged")
"""Strategies that lay out a file's objects differently: what is in HDF5 files is compared, and not their bytes."""


@dataclass(frozen=True)
class LeftOut:
    """Tests of one program that are not run with a strategy, because they check what it changes."""

    option: str
    """The program's own, which leaves out the test named behind it."""
    reasons: Mapping[str, str]
    """Why, of each test."""

    def words(self) -> tuple[str, ...]:
        """What the program is started with, with and without ioweir."""
        return tuple(word for name in self.reasons for word in (self.option, name))

    def remark(self) -> str:
        """For the table of results."""
        return "without " + ", ".join(f"{name} ({why})" for name, why in self.reasons.items())


_BY_LAYOUT: Final = {
    "bigdset": "checks the exact size of a file, which has an alignment or pages now",
    "actualio": "checks in which mode the library moved bytes",
    "nocolcause": "checks why the library did not move bytes collectively",
}
_BY_FORMAT: Final = {
    "fiodc": "HDF5 cannot open the image of an open file in the newer format, without ioweir neither",
}
LEFT_OUT: Final[Mapping[str, Mapping[str, LeftOut]]] = {
    "hdf5": {"testphdf5": LeftOut("-x", _BY_LAYOUT)},
    "hdf5-paged": {"testphdf5": LeftOut("-x", {**_BY_LAYOUT, **_BY_FORMAT})},
}
"""Of programs run with a strategy the tests left out, of the runs with it and of those that these are compared with."""

_BY_PLACE: Final = "it checks that the space that it allots begins at 1024 at most"
_BY_MODE: Final = "it checks in which mode the library moved bytes, and why"
WITHOUT_KEYS: Final[Mapping[str, Mapping[str, str]]] = {
    "t_cache": {
        "alignment": _BY_PLACE,
        "threshold": _BY_PLACE,
        "page": _BY_PLACE,
        'hold_metadata = "64 KiB"': "it moves entries that so small a cache has let go; it fails alike without ioweir",
    },
    "t_select_io_dset": {"chunks": _BY_MODE, "transfer": _BY_MODE},
}
"""Keys of `hdf5`, or keys with one value, that are left out of the plan for a program, and why."""

BY_HINTS: Final = ("file_info",)
"""Programs that check which hints are in effect: what a rule says would win over theirs."""

BY_STRIPES: Final = {"pnetcdf": {"PNETCDF_HINTS": "striping_unit=1024"}}
"""Suites whose library aligns a file's contents to the stripes that it is told of, and how to tell it of those above
without ioweir: what it leaves then is right with a plan that has them, too."""

OWN_PLANS: Final = (*BY_HINTS, *WITHOUT_KEYS)
"""Programs whose plans are not quite the strategy's."""

UNDEFINED_BYTES: Final = {
    "add_var": "files not compared: OMPIO says that reads beyond the end of a file got bytes, and PnetCDF writes them",
    "tst_simplerw_coll_r": "files not compared: every 16th element is never written, and nothing fills it (NC_NOFILL)",
    "atomicity": "files not compared: ROMIO leaves uninitialised memory in holes that nobody writes, ioweir zeros",
}
"""Programs that leave behind bytes of which MPI says nothing, and which a plan changes."""


def has_stripes(name: str) -> bool:
    """Does a strategy say how files are striped?"""
    return _STRIPES in RULES[name]


def plan_text(name: str, program: str = "") -> str:
    """The plan file that applies a strategy to every file: as it is, or as one of OWN_PLANS has it."""
    keys = WITHOUT_KEYS.get(program, {})
    rule = [_without_keys(line, keys) for line in RULES[name]]
    if program in BY_HINTS:
        rule = [line for line in rule if not line.startswith(("buffer", "stripe"))]
    return "\n".join(["[[file]]", 'match = "*"', *rule, ""])


def _without_keys(line: str, keys: Iterable[str]) -> str:
    """A rule's line, of a table only the other keys."""
    name, brace, table = line.partition("{ ")
    if not brace:
        return line
    pairs = [pair for pair in table.removesuffix(" }").split(", ") if not _is_one_of(pair, keys)]
    return f"{name}{{ {', '.join(pairs)} }}"


def _is_one_of(pair: str, keys: Iterable[str]) -> bool:
    return any(pair == key or pair.startswith(f"{key} =") for key in keys)


def without(strategy: str, program: str) -> str:
    """Which keys the program's plan does not have of the strategy's, for the table of results."""
    reasons: dict[str, list[str]] = {}
    for key, why in WITHOUT_KEYS.get(program, {}).items():
        if any(_without_keys(line, (key,)) != line for line in RULES.get(strategy, ())):
            reasons.setdefault(why, []).append(key)
    return "; ".join(f"without {', '.join(keys)} ({why})" for why, keys in reasons.items())
