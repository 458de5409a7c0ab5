"""What several rules share: what was lost, plans, numbers that are published."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import numpy as np

from ioweir.base.spec_names import HDF5, NETCDF
from ioweir.base.units import size
from ioweir.findings.intervals import median
from ioweir.findings.model import Evidence, Remedy
from ioweir.findings.rule import Threshold

if TYPE_CHECKING:
    from ioweir.findings.columns import Columns, Mask, Numbers

SMALL: Final = 64 << 10
_ALIKE: Final = 0.9
MANY: Final = 64
STRIPE: Final = 1 << 20
PAGE: Final = 4096
CROWDED: Final = (
    "ranks share processors with each other or with other programs, so that they wait for processors, too, and the "
    "trace does not tell which of both it was"
)
_BYTES: Final = re.compile(r"(?:\\x[0-9a-f]{2})+")  # of names that are no UTF-8, as the trace's reader writes them
_PYTHON: Final = re.compile(
    r".*/(?:site-packages|dist-packages|__pycache__|lib(?:64)?/python\d[\d.]*)(?:/.*)?|.*\.(?:pyc?|pth)", re.DOTALL
)
PYTHONS: Final = Remedy(
    "source",
    "put Python's environment where asking costs little: on each node's own storage, or into one file (a container's "
    "image, a zip); and keep PYTHONPATH short, for each of its folders is asked for each module",
)
PYTHONS_CAUSE: Final = "Most of it is Python, which looks for its modules in one folder after the other, on each rank."
_MEMORY_NS: Final = 100_000
_MEMORY_NS_PER_BYTE: Final = 1
_COPIES: Final = 3
ROUND: Final = 16 << 20
_MEETINGS: Final = 2
_SLICE_S: Final = 0.01
PASSING_WHY: Final = Threshold(
    "passing",
    "3 copies of 1 ns a byte; where ranks share processors also 2 turns of 10 ms at each round of 16 MiB",
    "what passing bytes between ranks costs where memory answers: a byte is copied by who sends, who gets and who "
    "gathers it; ROMIO passes cb_buffer_size (16 MiB) a round, in which ranks meet twice; a rank without a processor "
    "then waits for a time slice of Linux (up to 10 ms) of each that has one",
)
ONE_WRITER: Final = Threshold(
    "one writer at a time",
    "where the node's memory answered (100 us and 1 ns a byte, median)",
    "Linux lets one writer at a time into a file of its own file systems (inode lock: generic_file_write_iter in "
    "mm/filemap.c, ext4_buffered_write_iter), and a copy into memory is limited by the memory that all processors "
    "share: ranks that no longer wait for each other may then wait there",
)
MEMORY_WHY: Final = Threshold(
    "memory",
    "100 us and 1 ns a byte",
    "requests that are faster (median) were answered by the node's memory, for storage over a network takes about 0.5 "
    "ms and has about 1 GB/s: passing the bytes to other ranks may then cost more than it saves: the gain begins "
    "at 0, and `may_cost` says what that may cost",
)
SMALL_WHY: Final = Threshold(
    "small",
    "64 KiB",
    "Half of a call's time is fixed cost where its size is fixed cost x bandwidth (Hockney 1982, n-half): 5 us "
    "of a system call x 10 GB/s of a page cache = 50 kB. Storage over a network has 0.5 ms x 1 GB/s = 512 KiB, "
    "so that 64 KiB is the careful side",
)
MANY_WHY: Final = Threshold(
    "many",
    "64 calls of one rank",
    "Headers and the ends of arrays make a few small calls in every program: ROMIO's and HDF5's own are under 20 "
    "a file",
)
ABOVE_LARGE: Final = (
    "lost: the seconds above what the same bytes take at the run's own fast large calls (75th percentile of "
    "those of 1 MiB and more)"
)
INSTEAD: Final = "; low: a quarter, because the repair's own work (exchange, copying) is not in the trace"
VANISH: Final = "; the calls vanish: low: a half, and the pauses before them count in high"
"""What spared.py does with CALLS, for the texts of rules."""
SHOWN: Final = "; low: a half, for the trace shows others that do without"
"""What it does with EXCESS."""


def above_large(run: Columns, calls: Mask, op: str, seconds: float) -> float:
    """What was lost, as ABOVE_LARGE says."""
    rate = run.best_rate(op)
    ideal = 0.0
    if rate:
        moved = run.bytes_by_unit(calls & run.is_op(op))
        ideal = float(moved.max(initial=0)) / rate
    return max(seconds - ideal, 0.05 * seconds)


def from_memory(run: Columns, requests: Mask) -> bool:
    """Whether requests are as fast as the node's memory answers: then passing bytes to other ranks may cost more.

    Example: a median of 20 us for 4 KiB is memory's (100 us and 4 us are allowed), 1 ms for 64 KiB is not.
    """
    if not requests.any():
        return False
    allowed = _MEMORY_NS + run.bytes[requests] * _MEMORY_NS_PER_BYTE
    return bool(median(run.duration[requests] / allowed) <= 1)


def of_python(run: Columns, calls: Mask) -> bool:
    """Whether half of the calls' time or more goes into Python's modules, and the folders that it looks for them in.

    Those of the system (/usr) are in no trace; those of an environment in somebody's home or a shared folder are.
    """
    spent = np.bincount(run.file[calls], run.duration[calls])
    of_modules = sum(float(spent[file]) for file in np.flatnonzero(spent) if _PYTHON.fullmatch(run.files[file]))
    return of_modules > 0 and of_modules >= 0.5 * float(spent.sum())


def quickly_answered(run: Columns, calls: Mask) -> bool:
    """Whether opens and closes took less than a message to another node does: the node itself answered them."""
    return bool(median(run.duration[calls]) <= _MEMORY_NS) if calls.any() else False


def copied(run: Columns, calls: Mask) -> float:
    """What a repair may cost that keeps what it moves in one more buffer: a copy by the rank that moves most.

    Example: 12 MB of a rank at 1 ns a byte: 12 ms.
    """
    return float(run.bytes_by_unit(calls).max(initial=0)) * 1e-9


def passing(run: Columns, moved: float, meetings: float) -> float:
    """What a repair may cost that passes bytes between ranks (PASSING_WHY): the gain's `may_cost`.

    Example: 64 MiB in 4 rounds, 4 ranks on 2 processors: 0.1 s of copying, 2 x 4 x 10 ms x 2 of waiting for processors.
    """
    processors = int(run.trace.run.get("processors") or run.unit_count)
    copying = _COPIES * moved * 1e-9 / min(processors, run.unit_count)
    return copying + (_MEETINGS * meetings * _SLICE_S * run.sharing if run.crowded else 0.0)


def by_collective(run: Columns, calls: Mask) -> float:
    """The same, of calls whose bytes collective calls move instead, in rounds of ROMIO's buffer."""
    moved = float(run.bytes[calls].sum())
    return passing(run, moved, max(moved / ROUND, 1.0))


def interleaved(run: Columns, calls: Mask, block: int = 1) -> Mask:
    """Of storage calls those on files in which the stretches of two ranks or more cross, or have a block in common.

    That they cross is no header's doing: in the order of places ranks change twice as often as there are ranks.
    Example: ranks that write the first and the second half of a file do not cross, but may share a block of 1 MiB.
    """
    result = np.zeros(len(run), dtype=bool)
    chosen = run.by_file(calls & (run.position >= 0))
    if not chosen.size:
        return result
    file, unit = run.file[chosen], run.unit[chosen]
    first = np.flatnonzero(np.r_[True, (file[1:] != file[:-1]) | (unit[1:] != unit[:-1])])
    begin = np.minimum.reduceat(run.position[chosen], first) // block
    last = (np.maximum.reduceat(run.position[chosen] + run.bytes[chosen], first) - 1) // block
    order = np.lexsort((begin, file[first]))
    of = file[first][order]
    crossing = (of[1:] == of[:-1]) & (begin[order][1:] <= last[order][:-1])
    shared = np.zeros(len(run.files), dtype=bool)
    shared[of[1:][crossing]] = True
    if block == 1:
        shared &= _changes(run, chosen) >= 2 * np.bincount(file[first], minlength=len(run.files))
    result[chosen] = shared[file]
    return result


def _changes(run: Columns, rows: Numbers) -> Numbers:
    """Of each file how often another rank comes, from request to request in the order of their places.

    Example: of 4 ranks with a part each, and a header and an end by rank 0, 4 times; of pieces in turns always.
    """
    rows = rows[np.lexsort((run.position[rows], run.file[rows]))]
    file, unit = run.file[rows], run.unit[rows]
    other = (file[1:] == file[:-1]) & (unit[1:] != unit[:-1])
    changes: Numbers = np.bincount(file[1:][other], minlength=len(run.files))
    return changes


def hdf5_requests(run: Columns) -> Mask:
    """Requests that HDF5 makes: MPI-IO calls, or POSIX calls without any around them."""
    under = ~run.outermost & run.beneath(run.is_layer(HDF5))
    requests: Mask = under & (run.mpi_data | run.own_storage) & (run.bytes > 0)
    return requests


def made_smaller(run: Columns, op: str) -> Mask:
    """Requests of HDF5 on files of which it moves fewer bytes than the program gives it or gets: it compresses.

    Of whole files, because a chunk cache keeps bytes of one call for a later one. Filters work on every byte, however
    many requests there are, so that only the requests are a price.
    Example: 16 MiB written, of which 2 MiB reach the file.
    """
    library = run.is_layer(HDF5) | run.is_layer(NETCDF)
    data = library & run.outermost & run.is_op(op)
    requests = hdf5_requests(run) & run.is_op(op)
    files = len(run.files)
    asked = np.bincount(run.file[data], run.bytes[data], minlength=files)
    moved = np.bincount(run.file[requests], run.bytes[requests], minlength=files)
    smaller: Mask = requests & (moved < asked)[run.file]
    return smaller


def op_of(run: Columns, calls: Mask) -> str:
    """Whether the calls mostly write or read, by time."""
    return "write" if run.seconds(calls & run.is_op("write")) >= run.seconds(calls & run.is_op("read")) else "read"


def typical(run: Columns, calls: Mask) -> int:
    """The median size: of an even number of calls the lower one in the middle, for another has no call."""
    if not calls.any():
        return 0
    sizes = run.bytes[calls]
    middle = (sizes.size - 1) // 2
    return int(np.partition(sizes, middle)[middle])


def alike(run: Columns, calls: Mask) -> bool:
    """Whether nine calls of ten have the typical size."""
    return bool((run.bytes[calls] == typical(run, calls)).mean() >= _ALIKE) if calls.any() else True


def sized(run: Columns, calls: Mask, op: str) -> str:
    """Example: "20,000 writes of 512 B"; where sizes differ "20,000 writes of 512 B in the median"."""
    more = "" if alike(run, calls) else " in the median"
    return f"{int(calls.sum()):,} {op}s of {size(typical(run, calls))}{more}"


def counted(text: str, calls: Mask) -> Evidence:
    """How many calls there are."""
    return Evidence(text, float(calls.sum()), "calls")


def pattern(path: str) -> str:
    """A plan's pattern for a file: its name, with what stands for something else made harmless.

    Beyond ASCII, programs take a character for one byte or for several, as their locale says: `*` matches both.
    """
    name = path.rpartition("/")[2]
    return "*".join("".join(map(_harmless, part)) for part in _BYTES.split(name)) or "*"


def _harmless(letter: str) -> str:
    if not (letter.isprintable() or letter.isascii()):
        return "*"
    return "?" if letter in '*?[]\\"' or not letter.isprintable() else letter


def rule_for(files: list[str], *lines: str) -> str:
    """TOML with one rule a file, of at most four; of more files one for all of them."""
    names = list(dict.fromkeys(pattern(file) for file in files)) or ["*"]
    names = names if len(names) <= 4 else ["*"]
    return "\n".join("\n".join(["[[file]]", f'match = "{name}"', *lines, ""]) for name in names)


def aggregate(files: list[str]) -> Remedy:
    """Collective buffering by ioweir's engine."""
    return Remedy(
        "plan",
        "let ioweir gather the ranks' pieces and write them in large requests",
        rule_for(files, 'writers = "auto"'),
    )


def learned_chunks(files: list[str], *, aligned: bool = False) -> Remedy:
    """Chunks for HDF5's data sets, each rank's part one of them; `aligned`: each begins at a stripe."""
    alignment = 'hdf5 = { chunks = "learn", alignment = "auto" }'
    return Remedy(
        "plan",
        f"let ioweir give new data sets chunks of the part that each rank writes{', at stripes' if aligned else ''}",
        rule_for(files, alignment if aligned else 'hdf5 = { chunks = "learn" }'),
        doubt="chunks are learned from the first data set of a shape, for the later ones, where every rank writes one "
        "box of a grid to a contiguous data set: the trace does not tell whether that is so",
    )


def behind(files: list[str]) -> Remedy:
    """Writing behind the program's back."""
    return Remedy(
        "plan",
        "let ioweir write while the program goes on",
        rule_for(files, 'writers = "behind:1"'),
    )
