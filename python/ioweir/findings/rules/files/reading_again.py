"""redundant-read and same-read-by-all: the same bytes, read more than once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ioweir.base.compiled import compiled
from ioweir.base.units import size
from ioweir.findings.intervals import covered, numbered
from ioweir.findings.model import Evidence, Remedy
from ioweir.findings.rule import CALLS, Found, Rule, Threshold
from ioweir.findings.rules.common import (
    MEMORY_WHY,
    PASSING_WHY,
    PYTHONS,
    ROUND,
    STRIPE,
    VANISH,
    from_memory,
    of_python,
    passing,
)
from ioweir.findings.spared import longest_pause_ns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ioweir.findings.columns import Columns, Mask, Numbers

_FAR = 1 << 62


def _distinct(group: Numbers, begin: Numbers, stop: Numbers, groups: int) -> Numbers:
    """Of each group how many different bytes its stretches have. Example: [0, 4) and [2, 6) have 6."""
    distinct: Numbers = compiled().different_bytes(group, begin, stop, groups)
    return distinct


def _reads(run: Columns) -> Mask:
    reads = run.storage & run.is_op("read") & (run.position >= 0) & ~run.notes_of_containers
    return reads & ~run.made_by(run.collective | run.is_op("write"))


def _again(run: Columns) -> Iterator[Found]:
    reads = _reads(run)
    if not reads.any():
        return
    at = np.flatnonzero(reads)
    pairs, dense = numbered(run.unit[at] * len(run.files) + run.file[at])
    begin, moved = run.position[at], run.bytes[at]
    total = np.bincount(dense, moved, minlength=pairs.size)
    distinct = _distinct(dense, begin, begin + moved, pairs.size)
    repeated = total >= 2 * distinct
    if not repeated.any():
        return
    # What was written meanwhile is read anew, and not again.
    distinct = np.minimum(distinct + _written_between(run, at, dense, pairs % len(run.files), repeated), total)
    repeated &= total >= 2 * distinct
    mask = np.zeros(len(run), dtype=bool)
    mask[at[repeated[dense]]] = True
    if not mask.any():
        return
    share = 1 - float(distinct[repeated].sum() / total[repeated].sum())
    roots = run.roots_of(mask)
    lost = run.seconds(roots) * share
    if not run.worth(lost):
        return
    yield Found(
        calls=roots,
        seconds=lost,
        spares=CALLS,
        summary=f"{size(float(total[repeated].sum()))} read, though only {size(float(distinct[repeated].sum()))} are "
        "different bytes: ranks read the same places again",
        cause="A rank reads parts of a file that it has read before, instead of keeping them.",
        evidence=[
            Evidence("bytes read again", float((total - distinct)[repeated].sum()), "B"),
            Evidence(
                "times each byte is read", float(total[repeated].sum() / max(distinct[repeated].sum(), 1)), "times"
            ),
        ],
        remedies=[
            Remedy("source", "keep what was read in memory, or read larger parts at once (HDF5: a larger chunk cache)")
        ],
        files=run.files_of(mask),
        ranks=run.ranks_of(mask),
    )


def _written_between(run: Columns, at: Numbers, of: Numbers, file_of: Numbers, repeated: Mask) -> Numbers:
    """How many bytes anybody wrote to the places that a rank reads on a file, from its first read there to its last.

    `at`: the reads; `of`: of each the number of its rank and file; `file_of`: of each such number the file.
    Example: a rank that writes a block of a scratch file and reads it, ten times: nine blocks.
    """
    result = np.zeros(file_of.size, dtype=np.int64)
    wanted = np.zeros(len(run.files), dtype=bool)
    wanted[file_of[repeated]] = True
    writes = np.flatnonzero(run.storage & run.is_op("write") & (run.position >= 0) & wanted[run.file])
    if not writes.size:
        return result
    reads = at[wanted[run.file[at]]]
    both = np.r_[reads, writes]
    place = run.position[both]
    # All files one behind the other, so that one look-up has all of them.
    span = int((place + run.bytes[both]).max()) + 1
    number = (np.cumsum(wanted) - 1)[run.file[both]]
    overlap = run.bytes[writes]
    if span * (int(number.max()) + 1) < _FAR:
        begin = number * span + place
        stop = begin + run.bytes[both]
        until = covered(begin[: reads.size], stop[: reads.size])
        overlap = until(stop[reads.size :]) - until(begin[reads.size :])
    moment = np.empty(both.size, dtype=np.int64)
    moment[np.argsort(run.start[both], kind="stable")] = np.arange(both.size)
    key = number * both.size + moment
    order = np.argsort(key[reads.size :])
    before = np.r_[0, np.cumsum(overlap[order])]
    first, last = np.full(file_of.size, np.iinfo(np.int64).max), np.full(file_of.size, -1)
    whose = of[wanted[run.file[at]]]
    np.minimum.at(first, whose, key[: reads.size])
    np.maximum.at(last, whose, key[: reads.size])
    written = before[np.searchsorted(key[reads.size :][order], np.stack([first, last]))]
    return np.where(last >= 0, written[1] - written[0], 0)


def _broadcasts(run: Columns, reads: Mask) -> float:
    """What it may cost to send what was read to all others: a broadcast for each row of reads, or for each 16 MiB.

    Example: 1,000 reads of 4 KiB, one right after the other, are one broadcast; with computing between, 1,000.
    """
    at = np.flatnonzero(run.roots_of(reads))
    unit = run.unit[at]
    row = np.r_[True, (unit[1:] != unit[:-1]) | (run.start[at][1:] - run.end[at][:-1] > longest_pause_ns(run))]
    rows = np.bincount(unit[row], minlength=run.units)
    rounds = run.bytes_by_unit(reads) / ROUND
    return passing(run, float(run.bytes[reads].sum()), float(np.maximum(rows, rounds).max()))


def _by_all(run: Columns) -> Iterator[Found]:
    reads = run.topmost(_reads(run) | (run.stdio_data & run.is_op("read") & (run.parent < 0)))
    if not reads.any() or run.unit_count < 2:
        return
    at = np.flatnonzero(reads)
    place = np.maximum(run.position[at], 0)
    moved = run.bytes[at]
    pairs, dense = numbered(run.file[at] * run.units + run.unit[at])
    stdio = run.is_layer("STDIO")[at]
    place = np.where(stdio, _running(dense, moved), place)
    own = _distinct(dense, place, place + moved, pairs.size)
    files, of_pair = numbered(pairs // run.units)
    readers = np.bincount(of_pair)
    all_own = np.bincount(of_pair, own)
    together = _distinct(of_pair[dense], place, place + moved, files.size)
    same = (readers >= max(2, 0.5 * run.unit_count)) & (all_own >= 0.75 * readers * together) & (together > 0)
    mask = np.zeros(len(run), dtype=bool)
    mask[at[same[of_pair[dense]]]] = True
    if not mask.any() or run.bytes[mask].sum() < STRIPE:
        return
    roots = run.roots_of(mask)
    seconds = run.seconds(roots)
    if not run.worth(seconds):
        return
    count = float(readers[same].max())
    high = seconds * (1 - 1 / count)
    yield Found(
        calls=roots,
        seconds=seconds,
        low=-_broadcasts(run, mask) if from_memory(run, mask) else None,
        high=high,
        summary=f"{count:.0f} ranks each read the same {size(float(together[same].sum()))} from {int(same.sum()):,} "
        f"{'file' if same.sum() == 1 else 'files'}",
        cause="Every rank reads the same bytes by itself, so that the storage gives out the same data once for "
        "each rank.",
        evidence=[
            Evidence("ranks that read the same", count, "ranks"),
            Evidence("bytes of it", float(together[same].sum()), "B"),
            Evidence("bytes read altogether", float(run.bytes[mask].sum()), "B"),
        ],
        remedies=[
            *([PYTHONS] if of_python(run, mask) else []),
            Remedy("source", "read on one rank and broadcast (MPI_Bcast), or read collectively (MPI_File_read_all)"),
        ],
        files=run.files_of(mask),
        ranks=run.ranks_of(mask),
    )


def _running(group: Numbers, moved: Numbers) -> Numbers:
    """Where each call of a group begins, if each goes on where the last one ended."""
    order = np.argsort(group, kind="stable")
    total = np.cumsum(moved[order]) - moved[order]
    first = np.r_[True, group[order][1:] != group[order][:-1]]
    anchor = np.maximum.accumulate(np.where(first, np.arange(order.size), 0))
    result = np.empty(order.size, dtype=np.int64)
    result[order] = total - total[anchor]
    return result


AGAIN = Rule(
    code="redundant-read",
    title="Reading the same again",
    layer="POSIX",
    order=35,
    definition="A rank reads at least twice as many bytes of a file as it reads different ones, where what anybody "
    "writes there meanwhile is different from what was there. The seconds are the repeated share.",
    source="NASA, Lustre Best Practices (read a file once, and use the data from memory)",
    thresholds=(Threshold("times", "2", "reading a header again at every open stays far below twice the data"),),
    gain="lost: the repeated bytes' share of the time" + VANISH,
    limits="Reads through FILE streams and memory maps are not looked at.",
    needs=("POSIX",),
    find=_again,
)
BY_ALL = Rule(
    code="same-read-by-all",
    title="Every rank reads the same",
    layer="POSIX",
    order=33,
    definition="At least half of the ranks read the same bytes of a file independently (of their bytes three "
    "quarters are common), 1 MiB or more.",
    source="NASA, Lustre Best Practices (few processes read, and send to the others)",
    thresholds=(
        Threshold("common", "75 %", "halos that neighbours share are under half of the blocks they belong to"),
        Threshold("bytes", "1 MiB", "configuration files are read by every rank of every program"),
        MEMORY_WHY,
        PASSING_WHY,
    ),
    gain="lost: all ranks but one spared, seconds x (1 - 1/ranks); low: a quarter, for the broadcast costs, too",
    limits="Reads of FILE streams are taken to go from the file's beginning.",
    needs=("POSIX",),
    find=_by_all,
    of_ranks=True,
)
