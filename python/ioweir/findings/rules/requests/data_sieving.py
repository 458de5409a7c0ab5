"""data-sieving and read-modify-write: reading what is about to be written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ioweir.base.spec_names import DATA_OPS
from ioweir.base.units import size
from ioweir.findings.model import Evidence, Remedy
from ioweir.findings.rule import CALLS, Found, Rule, Threshold
from ioweir.findings.rules.common import (
    ABOVE_LARGE,
    INSTEAD,
    MEMORY_WHY,
    PAGE,
    PASSING_WHY,
    above_large,
    aggregate,
    by_collective,
    from_memory,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ioweir.findings.columns import Columns, Mask

_TIMES = 16


def _reading_writes(run: Columns) -> tuple[Mask, Mask]:
    """MPI-IO writes that read at least half as much as they write, and of these the independent ones and locking ones.

    Example: of 64 rounds of an aggregator one with a gap is no reason for the time of all.
    """
    read, written = (run.bytes_inside(run.storage & run.is_op(op)) for op in ("read", "write"))
    locks = run.count_inside(run.is_op("lock"))
    writes = run.mpi_data & run.is_op("write") & (read > PAGE) & (2 * read >= written)
    return writes, writes & (~run.collective | (locks > 0))


def _report(run: Columns, calls: Mask, summary: str, cause: str, hint: Remedy) -> Iterator[Found]:
    if not calls.any():
        return
    inside = run.storage & run.made_by(calls)
    read, written = (int(run.bytes[inside & run.is_op(op)].sum()) for op in ("read", "write"))
    locks = run.is_op("lock") & run.made_by(calls)
    all_calls = calls | (run.mpi_data & run.met_with(calls))
    price = run.price(all_calls)
    if not run.worth(price.seconds):
        return
    files = run.files_of(calls)
    high = above_large(run, calls, "write", price.seconds)
    yield Found(
        calls=all_calls,
        seconds=price.seconds,
        low=-by_collective(run, calls) if from_memory(run, inside & run.storage) else None,
        high=high,
        summary=f"{int(calls.sum()):,} writes {summary}: {size(read)} read and {size(written)} written for "
        f"{size(int(run.bytes[calls].sum()))} of the program's data",
        cause=cause,
        evidence=[
            Evidence("MPI-IO writes that read", float(calls.sum()), "calls"),
            Evidence("read inside of them", read, "B"),
            Evidence("written by them", written, "B"),
            Evidence("locks taken inside of them", float(locks.sum()), "calls"),
            Evidence("longest rank's time in these locks", float(run.busy_by_unit(locks).max()), "s"),
        ],
        remedies=[aggregate(files), hint],
        files=files,
        ranks=run.ranks_of(calls),
    )


def _sieving(run: Columns) -> Iterator[Found]:
    _, sieving = _reading_writes(run)
    yield from _report(
        run,
        sieving,
        "lock and read the file before they write to it (data sieving)",
        "Each rank writes small pieces with gaps. The MPI library reads the whole stretch, changes the pieces "
        "and writes all of it back, under a lock that keeps the other ranks out.",
        Remedy(
            "hint",
            "romio_ds_write = disable, and collective calls with romio_cb_write = enable",
            hints={"romio_ds_write": "disable", "romio_cb_write": "enable"},
        ),
    )


def _modifying(run: Columns) -> Iterator[Found]:
    writes, sieving = _reading_writes(run)
    yield from _report(
        run,
        writes & ~sieving,
        "read the file before they write to it",
        "What the ranks write together has gaps, so that the aggregators read the file into their buffers, "
        "change it and write it back.",
        Remedy("source", "write whole stretches without gaps, or fill the file once before"),
    )
    yield from _by_program(run)


def _by_program(run: Columns) -> Iterator[Found]:
    """Reads of places that the same rank writes next, outside of MPI-IO."""
    own = run.own_storage & (run.position >= 0)
    if not all((own & run.is_op(op)).any() for op in DATA_OPS):
        return
    calls = run.by_file(own)
    pair = run.unit[calls] * len(run.files) + run.file[calls]
    reads = run.is_op("read")[calls]
    place, stop = run.position[calls], run.position[calls] + run.bytes[calls]
    changes = (pair[1:] == pair[:-1]) & reads[:-1] & ~reads[1:] & (place[1:] < stop[:-1]) & (stop[1:] > place[:-1])
    mask = np.zeros(len(run), dtype=bool)
    mask[calls[:-1][changes]] = True
    if run.count_by_unit(mask).max() < _TIMES:
        return
    read_s = run.seconds(mask)
    if not run.worth(read_s):
        return
    # A write of a block that was read to change a part of it writes more than the part, too.
    both = mask.copy()
    both[calls[1:][changes]] = True
    both = run.roots_of(both)
    seconds = run.seconds(both)
    by_library = run.seconds(mask & ~run.outermost) >= 0.5 * run.seconds(mask)
    yield Found(
        calls=both,
        seconds=seconds,
        # Of its own reads the program may need all to work out what it writes; a library does not.
        low=read_s / 2 if by_library else 0.0,
        high=seconds,
        spares=CALLS,
        summary=f"{int(mask.sum()):,} times a rank reads a place of a file and then writes it",
        cause="The program, or a library that it uses, changes parts of blocks: it reads the block, changes it "
        "and writes it.",
        evidence=[
            Evidence("reads before a write of the same place", float(mask.sum()), "calls"),
            Evidence("bytes read for it", float(run.bytes[mask].sum()), "B"),
            Evidence("time of these reads", read_s, "s"),
            Evidence("time of the writes, too", seconds, "s"),
        ],
        remedies=[
            Remedy(
                "source",
                "write whole blocks, or keep the block in memory (HDF5: a larger chunk cache, H5Pset_chunk_cache; "
                "where the data set has no chunks, whole lines at a time)",
            )
        ],
        files=run.files_of(mask),
        ranks=run.ranks_of(mask),
    )


SIEVING = Rule(
    code="data-sieving",
    title="Reading and locking only to write",
    layer="MPI-IO",
    order=10,
    definition="MPI-IO writes that read the file inside, at least half as much as they write there: independent ones, "
    "or those with locks.",
    source="Thakur, Gropp and Lusk 1999 (data sieving); Wright et al. 2013, section 6.1, figure 5, and section 6.2, "
    "figures 6 and 7",
    thresholds=(
        Threshold(
            "read",
            "more than 4 KiB a call, and half of what is written",
            "reading one block at an end is what every file system does; a gap in one round of many does not make the "
            "time of all",
        ),
        MEMORY_WHY,
        PASSING_WHY,
    ),
    gain=ABOVE_LARGE + INSTEAD,
    limits="A sieving that only reads (for reads with gaps) is not told apart from reading.",
    needs=("MPI-IO", "POSIX"),
    find=_sieving,
)
MODIFYING = Rule(
    code="read-modify-write",
    title="Reading what is then written",
    layer="MPI-IO",
    order=15,
    definition="Collective MPI-IO writes without locks that read the file inside, at least half as much as they write "
    "there; or a rank's read of a place that it writes next, 16 times or more.",
    source="Thakur, Gropp and Lusk 1999 (two-phase writes); HDF5 User Guide, chunk cache",
    thresholds=(
        Threshold("read", "more than 4 KiB a call, and half of what is written", "as for data-sieving"),
        Threshold("times", "16", "updating a header or a time stamp now and then is no fault"),
    ),
    gain=ABOVE_LARGE + INSTEAD + ". Of a program's own reads and writes, lost: both, for who changes a part of a block "
    "writes the rest for nothing, too; low: a half of the reads where a library makes them, for all of the block may "
    "have changed; else 0, for the program may need what it reads to work out what it writes",
    limits="A file mapped into memory is read and written unseen. Whether a program that reads a block, changes it and "
    "writes it keeps more than memory can hold is not in the trace.",
    needs=("POSIX",),
    find=_modifying,
)
