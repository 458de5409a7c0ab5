"""metadata-storm and file-per-process: opening, asking about and closing files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ioweir.base.units import size
from ioweir.findings.model import Evidence, Remedy
from ioweir.findings.rule import CALLS, Found, Rule, Threshold
from ioweir.findings.rules.common import (
    MANY,
    MANY_WHY,
    PASSING_WHY,
    PYTHONS,
    PYTHONS_CAUSE,
    VANISH,
    counted,
    of_python,
    passing,
    quickly_answered,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ioweir.findings.columns import Columns, Floats, Mask


_IN_MEMORY = (
    "keep in memory what is needed for a moment only, or use one scratch file again and again, on the node's own "
    "storage (TMPDIR, /dev/shm)"
)
_OPENS = 4
_BUFFER = 4096
"""What the C library asks a file for at a time, unless it is told otherwise (st_blksize of most file systems)."""


def _resizing(run: Columns) -> Mask:
    """Calls that set a file's size: file-extension's."""
    return run.named("ftruncate", "fallocate", "posix_fallocate", "MPI_File_set_size", "MPI_File_preallocate")


def _asking(run: Columns) -> Mask:
    """Outermost opens, closes and questions; collective ones where a rank opens the same file over and over."""
    together = run.is_layer("MPI-IO") & (run.meeting >= 0)
    plain = run.is_layer("POSIX") | run.is_layer("STDIO") | (run.is_layer("MPI-IO") & ~together)
    plain |= _opened_again(run, together)
    # A seek asks nobody: it sets a number in the kernel, or empties a stream (small-requests, stdio-data).
    asking = run.outermost & plain & run.is_op("open", "close", "meta")
    plainly: Mask = asking & ~_resizing(run)
    return plainly


def _opened_again(run: Columns, calls: Mask) -> Mask:
    """Calls on files that their rank opens 4 times or more."""
    if not calls.any():
        return calls
    again: Mask = calls & (run.times_on_file(calls & run.is_op("open")) >= _OPENS)
    return again


def _own_files(run: Columns) -> Mask:
    """Files that one rank alone writes, as many as there are ranks or more."""
    writes = (run.storage | run.stdio_data) & run.is_op("write") & ~run.engine
    file, unit = run.used(writes)
    alone = np.bincount(file, minlength=len(run.files)) == 1
    own: Mask = alone & ~_scratch(run, alone)
    busy = np.count_nonzero(np.bincount(unit[alone[file]]))
    if busy < 2 or busy < 0.75 * run.unit_count or own.sum() < run.unit_count:
        own[:] = False
    return own


def _scratch(run: Columns, own: Mask) -> Mask:
    """Of files those that their rank removes before it opens its next one: what they hold is for nobody else.

    Example: of a rank that makes and removes one file after the other all of them; of one that removes its last
    checkpoint when the new one is complete none.
    """
    far = np.iinfo(np.int64).max
    result = np.zeros(len(run.files), dtype=bool)
    known = own[run.file] & (run.file > 0) & ~run.failed
    opens = np.flatnonzero(known & run.outermost & run.is_op("open"))
    removals = np.flatnonzero(known & run.named("unlink", "remove"))
    if not removals.size or not opens.size:
        return result
    _, first = np.unique(run.file[opens], return_index=True)
    opens = opens[np.sort(first)]
    opened, removed = np.full(len(run.files), far), np.full(len(run.files), far)
    opened[run.file[opens]] = run.start[opens]
    removals = removals[run.start[removals] > opened[run.file[removals]]]
    np.minimum.at(removed, run.file[removals], run.start[removals])
    same = run.unit[opens][1:] == run.unit[opens][:-1]
    until = np.r_[np.where(same, run.start[opens][1:], far), far]
    result[run.file[opens]] = removed[run.file[opens]] < until
    return result


def _own(run: Columns) -> Iterator[Found]:
    own = _own_files(run)
    if not own.any():
        return
    # Of HDF5 and its like, opening and closing files; not what they hold.
    plain = run.is_layer("POSIX") | run.is_layer("STDIO") | run.is_layer("MPI-IO")
    plain |= run.named("H5Fcreate", "H5Fopen", "H5Fclose", "nc_create", "nc_open", "nc_close")
    opens = run.outermost & plain & run.is_op("open", "close") & own[run.file] & (run.meeting < 0) & ~run.engine
    price = run.price(opens)
    if not run.worth(price.seconds) or (opens & run.is_op("open")).sum() > _OPENS * own.sum():
        return
    files = run.files_of(opens)
    yield Found(
        calls=opens,
        seconds=price.seconds,
        # A shared file is opened and closed together: a round of two meetings.
        low=-passing(run, 0.0, 1.0) if quickly_answered(run, opens) else None,
        summary=f"{int(own.sum()):,} files, each written by one rank: making and closing them takes the time",
        cause="Every rank makes files of its own. The file system makes each of them by itself, and at many "
        "ranks they queue for its metadata server.",
        evidence=[
            Evidence("files that one rank writes", float(own.sum()), "files"),
            counted("opens and closes of them", opens),
        ],
        remedies=[
            # No plan: ioweir's plans are for shared files, and this program has none yet.
            Remedy("source", "write one shared file with MPI-IO, HDF5 or PnetCDF, or one file a node"),
        ],
        files=files,
    )


def _requests(run: Columns, data: Mask) -> Floats:
    """Of each rank how many requests reads and writes are; of FILE streams one for each buffer that their bytes fill.

    Example: 8 lines of 16 B that are read from a file after each of 200 opens: 25,600 B, 6.25 requests.
    """
    streams = data & run.is_layer("STDIO")
    return run.count_by_unit(data & ~streams) + run.bytes_by_unit(streams) / _BUFFER


def _storm(run: Columns) -> Iterator[Found]:
    calls = _asking(run)
    data = run.outermost & run.is_op("write", "read")
    asked = run.count_by_unit(calls)
    # By rank: one that asks over and over is waited for, however much the others read and write.
    busy = (asked >= MANY) & (asked >= 0.5 * _requests(run, data))
    calls &= busy[run.unit]
    data &= busy[run.unit]
    price = run.price(calls)
    if not calls.any() or not run.worth(price.seconds):
        return
    of_modules = of_python(run, calls)
    moved = float(run.bytes[data].sum() / max((calls & run.is_op("open")).sum(), 1))
    scratch = int(_scratch(run, np.ones(len(run.files), dtype=bool)).sum())
    yield Found(
        calls=calls,
        seconds=price.seconds,
        spares=CALLS,
        summary=f"{int(calls.sum()):,} calls that open, close or ask about files, with {size(moved)} moved for "
        "each open",
        cause="The program opens, closes or looks at files over and over. Each call is a question to the file "
        f"system's metadata server, which all jobs share.{f' {PYTHONS_CAUSE}' if of_modules else ''}",
        evidence=[
            counted("opens, closes and questions", calls),
            counted("of these opens", calls & run.is_op("open")),
            Evidence("files", float(np.unique(run.used(calls)[0]).size), "files"),
            *([Evidence("files that are made and removed again", float(scratch), "files")] if scratch >= MANY else []),
        ],
        remedies=[
            *([PYTHONS] if of_modules else []),
            *([Remedy("source", _IN_MEMORY)] if scratch >= MANY else []),
            Remedy(
                "source",
                "open a file once and keep it open; ask on one rank and broadcast; put many small files into one",
            ),
        ],
        files=run.files_of(calls),
        ranks=run.ranks_of(calls),
    )


OWN = Rule(
    code="file-per-process",
    title="A file for every rank",
    layer="POSIX",
    order=54,
    definition="At least as many files as ranks, each written by one rank, whose opening and closing costs 1 % "
    "of the run. Files that ioweir itself makes for a plan (logs, containers) are none of the program's. Nor are "
    "scratch files counted, which their rank removes before it opens its next file.",
    source="Carns et al. 2009 (small-file access); Bent et al. 2009 (PLFS: N-N against N-1); Frings et al. 2009 "
    "(SIONlib)",
    thresholds=(
        Threshold("ranks", "75 % of all", "with fewer, it is not the program's pattern"),
        Threshold(
            "opens",
            "at most 4 a file",
            "files that are opened over and over are a metadata-storm, however many there are",
        ),
        PASSING_WHY,
    ),
    gain="lost: the opens' and closes' time; low: a quarter, for a shared file is opened and closed, too; 0 where "
    "the node itself answered the opens (median under 100 us): no metadata server is asked, and the ranks' writes "
    "to one file may wait for each other instead (lock-wait, one writer at a time); `may_cost` is then that the ranks "
    "meet to open and to close it",
    limits="What thousands of files cost other users, backups and quotas is not in a trace.",
    needs=("POSIX",),
    find=_own,
    of_ranks=True,
)
STORM = Rule(
    code="metadata-storm",
    title="Opening and asking about files, over and over",
    layer="POSIX",
    order=56,
    definition="At least 64 opens, closes and questions of a rank, half as many as its reads and writes or more, "
    "that cost 1 % of the run. Seeks are no questions. Collective opens and closes count where a rank opens the same "
    "file 4 times or more.",
    source="NASA, Lustre Best Practices (avoid repetitive open, close and stat)",
    thresholds=(
        MANY_WHY,
        Threshold(
            "half of the data calls",
            "50 %",
            "a program that moves data makes two metadata calls a file; of FILE streams one call is counted for 4 KiB, "
            "their usual buffer, for the lines of a small file are no requests",
        ),
        Threshold("together", "4 opens of one file by a rank", "collective opens of ever new files are checkpoints"),
    ),
    gain="lost: the calls' time" + VANISH,
    limits="",
    needs=("POSIX",),
    find=_storm,
)
