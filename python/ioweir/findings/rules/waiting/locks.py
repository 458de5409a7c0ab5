"""lock-wait and lock-handover: ranks that wait for each other's locks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ioweir.base.compiled import compiled
from ioweir.base.units import seconds as in_words
from ioweir.findings.intervals import at_once, median
from ioweir.findings.model import Evidence, Remedy
from ioweir.findings.rule import EXCESS, Found, Rule, Threshold
from ioweir.findings.rules.common import (
    MEMORY_WHY,
    ONE_WRITER,
    PAGE,
    SHOWN,
    STRIPE,
    aggregate,
    counted,
    from_memory,
    interleaved,
    op_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ioweir.findings.columns import Columns, Floats, Mask, Numbers

_WAIT_NS = 20_000
_MOSTLY = 0.5
_OWN_STRIPES = (
    "give each rank stripes of its own: one large part that begins at a multiple of the stripe (1 MiB), not many "
    "between those of others; or write collectively (MPI_File_write_at_all)"
)
_SHARED_POINTER = (
    "MPI_File_write_shared",
    "MPI_File_read_shared",
    "MPI_File_iwrite_shared",
    "MPI_File_iread_shared",
    "MPI_File_write_ordered",
    "MPI_File_read_ordered",
)


def _wait(run: Columns) -> Iterator[Found]:
    if not run.is_op("lock").any():
        return
    locks = run.topmost(run.is_op("lock")) & ~run.failed
    waits = locks & (run.duration > _WAIT_NS)
    if not waits.any():
        return
    price = run.price(waits)
    if not run.worth(price.seconds):
        return
    files = run.files_of(waits)
    pair, waited = _worst_pair(run, waits)
    evidence = [
        counted("locks that had to be waited for", waits),
        Evidence("longest wait", float(run.duration[waits].max()) / 1e9, "s"),
    ]
    # flock locks all of a file, and fcntl does so where the length is 0 (to the end, wherever that will be).
    whole = bool((run.bytes[waits] == 0).mean() > _MOSTLY)
    if not whole:
        evidence.append(Evidence("median bytes locked", median(run.bytes[waits]), "B"))
    if pair:
        evidence.append(Evidence(f"rank {pair[0]} waited for rank {pair[1]}", waited, "s"))
    locked = np.zeros(len(run.files), dtype=bool)
    locked[run.file[waits]] = True
    inside = (run.mpi[waits] >= 0).mean() > _MOSTLY
    cause, remedies = _of_library(run, waits, files) if inside else _of_program(whole=whole)
    yield Found(
        calls=waits,
        seconds=price.seconds,
        low=0.0 if from_memory(run, run.storage & locked[run.file]) else None,
        summary=f"ranks wait {in_words(price.seconds)} for locks on {'a file' if whole else 'parts of a file'} that "
        "other ranks hold",
        cause=cause,
        evidence=evidence,
        remedies=remedies,
        files=files,
    )


def _of_program(*, whole: bool) -> tuple[str, list[Remedy]]:
    if whole:
        return (
            "The program locks the whole file, so that the ranks go one by one.",
            [
                Remedy(
                    "source",
                    "gather lines or records in each rank, and lock once for many of them; or give each rank a part of "
                    "the file of its own, or a file, and no lock",
                )
            ],
        )
    return (
        "The program locks parts of a file, and the ranks' parts overlap, so that they go one by one.",
        [Remedy("source", "lock only the bytes that are written, or give each rank a part of its own and no lock")],
    )


def _of_library(run: Columns, waits: Mask, files: list[str]) -> tuple[str, list[Remedy]]:
    """Locks of MPI-IO calls: around the shared file pointer, around what is sieved, or around every access."""
    around = run.above(waits)
    shared = run.seconds(waits & run.made_by(run.named(*_SHARED_POINTER)))
    if shared > _MOSTLY * run.seconds(waits):
        op = op_of(run, around)
        return (
            "Each call moves the file's shared pointer on, which the MPI library keeps in a file of its own and locks "
            "meanwhile.",
            [
                Remedy(
                    "source",
                    f"gather more for each call; or let the ranks work out their places (MPI_Exscan of the bytes) and "
                    f"call MPI_File_{op}_at_all, or MPI_File_{op}_ordered once for all ranks",
                )
            ],
        )
    sieved = (run.count_inside(run.storage & run.is_op("read"))[around] > 0).mean() > _MOSTLY
    hint = Remedy("hint", "romio_ds_write = disable", hints={"romio_ds_write": "disable"})
    # Disabling data sieving leaves the locks of atomic mode, and of file systems without coherent caches (NFS).
    plain = Remedy("source", "leave MPI's atomic mode where it is set (MPI_File_set_atomicity) and no rank needs it")
    return (
        "The MPI library locks stretches of the file before it writes to them, and the stretches of the ranks overlap.",
        [aggregate(files), hint if sieved else plain],
    )


def _worst_pair(run: Columns, waits: Mask) -> tuple[tuple[int, int] | None, float]:
    """Who waited longest for whom: the one whose lock on the file was given up last before the wait ended."""
    unlocks = run.is_op("unlock")
    gave = np.flatnonzero(unlocks)
    ended = np.flatnonzero(waits)
    if not gave.size:
        return None, 0.0
    span = int(max(run.end[gave].max(), run.end[ended].max())) + 1
    if span * (len(run.files) + 1) >= 1 << 62:
        return None, 0.0
    key = run.file[gave] * span + run.start[gave]
    order = np.argsort(key)
    at = np.searchsorted(key[order], run.file[ended] * span + run.end[ended]) - 1
    holder = gave[order[np.maximum(at, 0)]]
    known = (at >= 0) & (run.file[holder] == run.file[ended]) & (run.unit[holder] != run.unit[ended])
    if not known.any():
        return None, 0.0
    pairs = run.unit[ended][known] * run.units + run.unit[holder][known]
    names, dense = np.unique(pairs, return_inverse=True)
    waited = np.bincount(dense.reshape(-1), run.duration[ended][known])
    worst = int(names[waited.argmax()])
    return (run.ranks([worst // run.units])[0], run.ranks([worst % run.units])[0]), float(waited.max()) / 1e9


def _handover(run: Columns) -> Iterator[Found]:
    writes = run.storage & run.is_op("write") & (run.position >= 0) & (run.bytes >= PAGE)
    shared = np.flatnonzero(interleaved(run, writes, STRIPE))
    if shared.size < 16:
        return
    calls = np.flatnonzero(writes)
    # The stripes at a write's beginning and end; those between are the rank's alone in this write.
    shared = shared[np.argsort(run.start[shared], kind="stable")]
    first = run.position[shared] // STRIPE
    last = (run.position[shared] + run.bytes[shared] - 1) // STRIPE
    mask = np.zeros(len(run), dtype=bool)
    mask[shared] = compiled().changed_hands(run.file[shared], first, last, run.unit[shared], run.start[shared])
    other = mask[calls]
    if other.sum() < 16 or (~other).sum() < 16:
        return
    # The node's memory has no stripes: there, others' work makes writes slow.
    if not run.worth(run.seconds(mask)) or from_memory(run, mask):
        return
    pace = run.duration[calls] / run.bytes[calls] / _writers_at_once(run, calls)
    slow, usual = median(pace[other]), median(pace[~other])
    if usual <= 0 or slow < 2 * usual:
        return
    lost = run.seconds(mask) * (1 - usual / slow)
    if not run.worth(lost):
        return
    files = run.files_of(mask)
    yield Found(
        calls=run.roots_of(mask),
        seconds=lost,
        spares=EXCESS,
        summary=f"{int(other.sum()):,} writes to a stripe that another rank wrote last are {slow / usual:.1f} "
        "times as slow "
        "as others",
        cause="Ranks take turns in writing the same stripes, and the file system hands the stripe's lock from "
        "one to the other, each time with everything that was not written yet.",
        evidence=[
            counted("writes after another rank's to the same 1 MiB", mask),
            Evidence("slower than other writes", slow / usual, "times"),
        ],
        remedies=[aggregate(files), Remedy("source", _OWN_STRIPES)],
        files=files,
        ranks=run.ranks_of(mask),
    )


def _writers_at_once(run: Columns, calls: Numbers) -> Floats:
    """Of each write how many writes of the file there are meanwhile: each may have waited for all others.

    Without it whoever writes while the others do not seems to be faster because it comes first to its stripes.
    """
    result = np.ones(calls.size)
    by_file = np.argsort(run.file[calls], kind="stable")
    edges = np.flatnonzero(np.diff(run.file[calls][by_file])) + 1
    for rows in np.split(by_file, edges):
        unit = run.unit[calls[rows]]
        if (unit != unit[0]).any():
            result[rows] = at_once(run.start[calls[rows]], run.end[calls[rows]])
    return result


WAIT = Rule(
    code="lock-wait",
    title="Waiting for locks",
    layer="POSIX",
    order=12,
    definition="Calls that take a lock (fcntl, flock, lockf) and last longer than 20 us, at 1 % of the run.",
    source="Wright et al. 2013, section 6.1, figure 5 (locks slow HDF5 down by up to 30 % on one node)",
    thresholds=(
        Threshold(
            "wait",
            "20 us",
            "a free lock is one system call of 1-5 us, on shared storage one message of under 20 us on the node",
        ),
        ONE_WRITER,
    ),
    gain="lost: the waiting; low: a quarter, for the writes beneath the locks may queue at the storage instead; 0 "
    "where "
    "the node's memory answered the requests on these files: there they do",
    limits="Locks inside of the file system (Lustre, GPFS) are not calls: see lock-handover and serialised-writes.",
    needs=("POSIX",),
    find=_wait,
)
HANDOVER = Rule(
    code="lock-handover",
    title="Stripes that change hands",
    layer="POSIX",
    order=42,
    definition="Writes that begin or end in a stretch of 1 MiB that another rank wrote last. They are at least twice "
    "as slow a byte (median) as all others with as many writers at once. They are slower than the node's memory, which "
    "has no stripes.",
    source="Schmuck and Haskin 2002 (GPFS tokens); Liao and Choudhary 2008 (Lustre extent locks)",
    thresholds=(
        Threshold(
            "slower",
            "2 times",
            "the medians of 16 or more calls differ by less without a cause: a hand-over is a flush and a round trip",
        ),
        Threshold("calls", "16 of each kind", "below it a median says nothing"),
        Threshold(
            "at once",
            "divided by how many writes of the file there are meanwhile",
            "file systems that let in one writer at a time make all wait for all: without stripes, too, the ranks that "
            "are behind are slower than those that are alone ahead of them",
        ),
        MEMORY_WHY,
    ),
    gain="lost: what the writes cost above the pace of the others" + SHOWN,
    limits="The file's real stripes are not in the trace: 1 MiB is assumed.",
    needs=("POSIX",),
    find=_handover,
)
