"""sync-cost, close-cost and file-extension: calls that wait for the storage, or change a file's size."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ioweir.base.spec_names import POSIX
from ioweir.base.units import seconds as in_words
from ioweir.base.units import size
from ioweir.findings import spared
from ioweir.findings.intervals import median
from ioweir.findings.model import Evidence, Remedy
from ioweir.findings.rule import CALLS, UNKNOWN, Found, Rule, Threshold
from ioweir.findings.rules.common import (
    CROWDED,
    SMALL,
    VANISH,
    behind,
    counted,
    from_memory,
    hdf5_requests,
    rule_for,
    typical,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ioweir.findings.columns import Columns, Mask

_SYNCS = 4
_MOSTLY = 0.5
_LONG_NS = 20_000_000
"""Shorter ones may be the processor's, where ranks share it (targets.py)."""
_AGAIN = 4
_BEFORE_NOTES = 27
"""Of findings about HDF5's notes that these opens and closes make, the opens and closes are the cause."""
_BEFORE_SIZES = 49
"""A write that waits for the disk does so whatever its size: small-requests follow from it."""
_OPENING = ("H5Fopen", "H5Fcreate", "ncmpi_open", "ncmpi_create", "nc_open", "nc_create")
_CLOSING = ("H5Fclose", "ncmpi_close", "nc_close")
_ENOUGH = 64 << 20
TOGETHER = (
    "; of collective calls in which the ranks wait for each other for longer than they work, low: a quarter, for they "
    "may wait in their next call instead"
)


def _sync(run: Columns) -> Iterator[Found]:
    yield from _asked_for(run)
    yield from _opened_so(run)


def _opened_so(run: Columns) -> Iterator[Found]:
    """Writes that wait for the disk because their file was opened with O_SYNC or O_DSYNC."""
    writes = run.synced
    if not writes.any():
        return
    number = run.count_by_unit(writes)
    written = run.bytes_by_unit(writes)
    often = (number >= _SYNCS) & (written < _ENOUGH * number)
    writes = writes & often[run.unit]
    seconds = run.seconds(writes)
    if not run.worth(seconds):
        return
    each = float(written[often].sum() / max(number[often].sum(), 1))
    yield Found(
        calls=run.roots_of(writes),
        seconds=seconds,
        summary=f"{int(writes.sum()):,} writes wait until the disk has everything, one for every {size(each)}: the "
        "file was opened with O_SYNC or O_DSYNC",
        cause="The program opens the file so that each write ends only when its data is safe on disk.",
        evidence=[
            counted("writes to files opened with O_SYNC or O_DSYNC", writes),
            Evidence("written by each", each, "B"),
            Evidence("median time of one", median(run.duration[writes]) / 1e9, "s"),
        ],
        remedies=[
            Remedy("source", "open the file without O_SYNC and O_DSYNC, and call fsync once, when it is complete"),
            Remedy("source", "where each record has to be safe at once: write several records with one call"),
        ],
        files=run.files_of(writes),
        ranks=run.ranks_of(writes),
        order=_BEFORE_SIZES,
    )


def _asked_for(run: Columns) -> Iterator[Found]:
    # fflush and H5Fflush by themselves end in the page cache: they count where they sync.
    waits = run.topmost((run.is_layer("POSIX") | run.is_layer("MPI-IO")) & run.is_op("sync")) & ~run.engine
    if not waits.any():
        return
    syncs = run.count_by_unit(waits & ~run.completes)
    written = run.bytes_by_unit(run.topmost(run.is_op("write") & (run.bytes > 0)))
    if (waits & run.collective).any():  # the ranks sync together what one of them may have written for all
        written = np.maximum(written, written.sum() / run.unit_count)
    often = (syncs >= _SYNCS) & (written < _ENOUGH * syncs)
    waits &= often[run.unit]
    seconds = _meeting(run, waits)
    if not waits.any() or not run.worth(seconds):
        return
    calls = waits & ~run.completes
    each = float(written[often].sum() / max(syncs[often].sum(), 1))
    files = run.files_of(calls)
    # What is stored into a map is no write that is seen.
    mapped = calls & run.named("msync")
    of_maps = bool(mapped.sum() > _MOSTLY * calls.sum())
    yield Found(
        calls=waits,
        seconds=seconds,
        spares=_spares(run, waits, seconds),
        summary=f"{int(calls.sum()):,} calls wait until the disk has everything "
        + (
            f"(msync), each for {size(typical(run, mapped))} of a mapped file"
            if of_maps
            else f"(fsync), one for every {size(each)} written"
        ),
        cause="The program asks for its data to be safe on disk after little of it, and waits each time.",
        evidence=[
            counted("fsync, MPI_File_sync and the like", calls),
            Evidence("bytes of maps per msync (median)", typical(run, mapped), "B")
            if of_maps
            else Evidence("written per sync", each, "B"),
            Evidence("median time of one", median(run.duration[calls]) / 1e9, "s"),
        ],
        remedies=[
            Remedy("source", "sync once, when the file is complete (HDF5: leave out H5Fflush between data sets)"),
            behind(files),
        ],
        files=files,
        ranks=run.ranks_of(calls),
    )


def _close(run: Columns) -> Iterator[Found]:
    calls = run.outermost & run.is_op("close")
    if not calls.any():
        return
    longest = float(run.duration[calls].max()) / 1e9
    yield from _reopened(run, longest)
    price = run.price(calls)
    if not run.worth(price.seconds) or run.seconds(calls & (run.duration > 1_000_000)) < 0.5 * price.seconds:
        return
    files = run.files_of(calls)
    # Calls at the storage: where ranks share processors, the rest of a close may be waiting for one.
    beneath = run.is_layer("POSIX") & run.beneath(calls)
    if run.crowded and POSIX in run.recorded and run.span_s(beneath) < 0.5 * price.seconds:
        price = run.price(beneath)
        if not run.worth(price.seconds):
            return
    shown = beneath & (run.duration > _LONG_NS)
    yield Found(
        calls=calls,
        seconds=price.seconds,
        summary=f"closing files takes {in_words(price.seconds)}, the longest close {in_words(longest)}",
        cause="At the close, what was kept back is written: data in caches, and the headers and indexes of "
        "libraries such as HDF5.",
        evidence=[counted("closes", calls), Evidence("longest close", longest, "s")],
        remedies=[
            Remedy("source", "write what is small at once or keep the file open (HDF5: H5Pset_coll_metadata_write)"),
            *_metadata_together(run, calls, files),
        ],
        files=files,
        doubt=CROWDED if run.crowded and run.seconds(shown) < 0.5 * price.seconds else "",
    )


def _reopened(run: Columns, longest: float) -> Iterator[Found]:
    """Files of a library that are closed and opened again after each step: its own notes are written and read anew."""
    libraries = run.outermost & ~run.is_layer("POSIX") & ~run.is_layer("STDIO") & ~run.is_layer("MPI-IO")
    both = libraries & run.is_op("open", "close") & (run.file > 0)
    opens = both & run.is_op("open") & run.named(*_OPENING)
    if not opens.any():
        return
    times = run.times_on_file(opens)
    calls = both & (times >= _AGAIN) & run.named(*_OPENING, *_CLOSING)
    price = run.price(calls)
    if not calls.any() or not run.worth(price.seconds):
        return
    _, first = np.unique(run.file[calls] * run.units + run.unit[calls], return_index=True)
    each = int(median(times[calls][first]))
    files = run.files_of(calls)
    yield Found(
        calls=calls,
        seconds=price.seconds,
        summary=f"a file is opened and closed {each:,} times by each rank that uses it, which takes "
        f"{in_words(price.seconds)}",
        cause="At each close the library writes its headers and indexes, and at the next open it reads them again.",
        high=price.seconds * (1 - 1 / each),
        spares=CALLS,
        evidence=[
            Evidence("opens of one file by a rank", float(each), "opens"),
            Evidence("longest close", longest, "s"),
        ],
        remedies=[
            Remedy("source", "keep the file open from the first step to the last, and flush it where that is needed")
        ],
        files=files,
        order=_BEFORE_NOTES,
    )


def _meeting(run: Columns, calls: Mask) -> float:
    """What calls cost that the program does not need: of collective ones also that the ranks meet in them at all."""
    return max(run.seconds(calls), run.mean_whole(calls & run.collective))


def _spares(run: Columns, calls: Mask, seconds: float) -> str:
    """Whether all of it vanishes: ranks that waited for each other here may do so in their next call instead."""
    return UNKNOWN if seconds > run.seconds(calls) else CALLS


def _metadata_together(run: Columns, closes: Mask, files: list[str]) -> list[Remedy]:
    """For files that HDF5 closes with small requests of its own."""
    small = hdf5_requests(run) & run.beneath(closes) & run.is_op("write") & (run.bytes < SMALL)
    if not small.any():
        return []
    return [
        Remedy(
            "plan",
            "let ioweir write HDF5 metadata collectively",
            rule_for(files, 'hdf5 = { collective_metadata = "writes" }'),
            saves=spared.of_requests(run, run.seconds(small), from_memory=from_memory(run, small)),
        )
    ]


def _extension(run: Columns) -> Iterator[Found]:
    calls = run.topmost(
        run.named("ftruncate", "truncate", "fallocate", "posix_fallocate", "MPI_File_set_size", "MPI_File_preallocate")
    )
    if not calls.any():
        return
    seconds = _meeting(run, calls)
    if not run.worth(seconds):
        return
    files = run.files_of(calls)
    yield Found(
        calls=calls,
        seconds=seconds,
        spares=_spares(run, calls, seconds),
        summary=f"{int(calls.sum()):,} calls change the size of a file or reserve space for it",
        cause="The file grows in steps, or its space is reserved beforehand, and each time all ranks wait for "
        "the file system.",
        evidence=[
            counted("calls that set a size or reserve space", calls),
            Evidence("longest of them", float(run.duration[calls].max()) / 1e9, "s"),
        ],
        remedies=[
            Remedy("source", "set the final size once, or leave it to the writes"),
            Remedy(
                "plan", "let ioweir put off MPI_File_set_size until the close", rule_for(files, 'set_size = "deferred"')
            ),
        ],
        files=files,
    )


SYNC = Rule(
    code="sync-cost",
    title="Waiting for the disk",
    layer="POSIX",
    order=52,
    definition="A rank that syncs 4 times or more, with under 64 MiB written for each. A sync is an fsync, a "
    "call of its kind, or an MPI_File_sync, whatever lies beneath it; or each write to a file "
    "that the rank has opened with O_SYNC or O_DSYNC. fflush and H5Fflush count where they make one. "
    "Before MPI_File_sync, at least the mean of all ranks counts as written; its seconds have the "
    "waiting for other ranks "
    "in it, which meet for it alone.",
    source="POSIX fsync; Prabhakaran et al. 2005 (cost of flushing journals)",
    thresholds=(
        Threshold("times", "4", "one sync each for data, header, and close is what careful programs do"),
        Threshold(
            "bytes", "under 64 MiB", "so much a disk writes in half a second: beyond it, the time is the data's own"
        ),
    ),
    gain="lost: the calls' time" + VANISH + TOGETHER + "; of writes to files opened with O_SYNC, low: a quarter, for "
    "they stay, and go to memory instead",
    limits="What a crash would cost without the syncs only the program's author knows. That a file was opened with "
    "O_SYNC or O_DSYNC is in traces of this version on, and not in imported logs.",
    needs=("POSIX",),
    find=_sync,
)
CLOSE = Rule(
    code="close-cost",
    title="Slow closes",
    layer="MPI-IO",
    order=65,
    definition="Outermost closes that cost 1 % of the run, at least half of it in closes longer than 1 ms; or opens "
    "and closes of a library's file that a rank opens 4 times or more. Where ranks share processors "
    "and the POSIX calls "
    "beneath take less than half of the closes' time, only these calls count.",
    source="Howison et al. 2010 (HDF5 flushes its metadata cache when a file is closed)",
    thresholds=(
        Threshold("1 ms", "1 ms", "a close without work is a system call and a message: under 0.1 ms"),
        Threshold("opens", "4", "as for file-per-process: written, closed and read again is no fault"),
    ),
    gain="lost: the closes' time, of n opens and closes all but one; low: a quarter, for the data that is flushed must "
    "be written",
    limits="Whether data or metadata was flushed is seen only where the library's own calls are recorded.",
    needs=(),
    find=_close,
)
EXTENSION = Rule(
    code="file-extension",
    title="Changing a file's size",
    layer="POSIX",
    order=58,
    definition="Calls that set a file's size or reserve space, at 1 % of the run or more. Of collective ones "
    "the waiting "
    "for other ranks counts, too: they meet for it alone.",
    source="Howison et al. 2010 (MPI_File_set_size took tens of seconds on Lustre); ROMIO's ADIOI_GEN_Prealloc",
    thresholds=(),
    gain="lost: the calls' time" + VANISH + TOGETHER,
    limits="A file that grows by writes alone pays in these writes, which cannot be told apart.",
    needs=("POSIX",),
    find=_extension,
)
