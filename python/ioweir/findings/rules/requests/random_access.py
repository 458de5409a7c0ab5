"""random-access: small calls that jump about in their file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ioweir.base.spec_names import DATA_OPS
from ioweir.findings.model import Evidence, Remedy
from ioweir.findings.rule import Found, Rule, Threshold
from ioweir.findings.rules.common import (
    ABOVE_LARGE,
    INSTEAD,
    MANY,
    MANY_WHY,
    STRIPE,
    above_large,
    copied,
    counted,
    from_memory,
    sized,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ioweir.findings.columns import Columns, Mask

_SHARE = 0.5
_STREAMS = 8


def _find(run: Columns) -> Iterator[Found]:
    for op in ("read", "write"):
        calls = run.own_storage & run.is_op(op) & (run.bytes < STRIPE)
        calls |= run.storage & (run.mpi >= 0) & ~run.in_collective & run.is_op(op) & (run.bytes < STRIPE)
        # What HDF5 notes for itself is hdf5-metadata-scattered's.
        if run.is_layer("HDF5").any():
            calls &= ~run.beneath(run.is_layer("HDF5") & (~run.is_op(*DATA_OPS) | run.named("H5A")))
        if run.count_by_unit(calls).max() < MANY:
            continue
        jumping = run.jumps(calls) & ~_in_streams(run, calls)
        # By rank and file: what others do in order, or the same rank elsewhere, makes nothing of it better.
        calls &= run.times_on_file(jumping) >= _SHARE * run.times_on_file(calls)
        jumping &= calls
        if run.count_by_unit(calls).max() < MANY:
            continue
        backward = jumping.sum() / calls.sum()
        roots = run.roots_of(jumping)
        price = run.price(roots)
        if not run.worth(price.seconds):
            continue
        high = above_large(run, jumping, op, price.seconds)
        yield Found(
            calls=roots,
            seconds=price.seconds,
            low=-copied(run, jumping) if from_memory(run, jumping) else None,
            high=high,
            summary=f"{sized(run, jumping, op)} in no order: {100 * backward:.0f} % jump to another place of the file",
            cause="Requests jump about in the file, so that neither the file system's read-ahead nor its "
            "gathering of writes can help, and disks must seek.",
            evidence=[counted(f"{op}s that jump", jumping), Evidence("share of jumps", float(100 * backward), "%")],
            remedies=[Remedy("source", f"sort the requests by their place in the file, and {op} neighbours together")],
            files=run.files_of(jumping),
            ranks=run.ranks_of(jumping),
        )


def _in_streams(run: Columns, calls: Mask) -> Mask:
    """Requests that go on where one of the last few of their rank on the file ended: arrays that are moved in turns.

    The system reads ahead of, and gathers, each of such streams as it does of one.
    """
    rows = run.by_file(calls)
    begin, stop = run.position[rows], run.position[rows] + run.bytes[rows]
    pair = run.unit[rows] * len(run.files) + run.file[rows]
    result = np.zeros(len(run), dtype=bool)
    for back in range(2, _STREAMS + 1):
        goes_on = (begin[back:] == stop[:-back]) & (pair[back:] == pair[:-back]) & (begin[back:] > 0)
        result[rows[back:][goes_on]] = True
    return result


RULE = Rule(
    code="random-access",
    title="Requests in no order",
    layer="POSIX",
    order=45,
    definition="Of a rank's requests under 1 MiB to a file, at least half neither go on where one of the last 8 ended "
    "nor keep the last one's stride. Ranks and files of which this is true count together, and no others.",
    source="Wright et al. 2013, section 5.2 (seek times of disks among the two main causes)",
    thresholds=(
        Threshold(
            "jumps", "50 %", "read-ahead of Linux switches itself off where most reads do not go on (mm/readahead.c)"
        ),
        Threshold(
            "size",
            "under 1 MiB",
            "a disk moves 1 MiB in about the time of one seek, so that larger ones pay for theirs",
        ),
        MANY_WHY,
        Threshold(
            "streams",
            "8",
            "arrays of one file that are moved in turns, a piece of each: read-ahead of Linux tells such streams apart "
            "by marks in its pages",
        ),
    ),
    gain=ABOVE_LARGE
    + INSTEAD
    + ". Where the node's memory answered the requests (100 us and 1 ns a byte, median) the gain begins at "
    "0: memory has no seeks, and only larger requests save anything; `may_cost` is then a copy of the bytes (1 ns "
    "each), "
    "for what is sorted has to be kept",
    limits="Requests of several threads of a rank are taken as one order. What the page cache holds costs no seek.",
    needs=("POSIX",),
    find=_find,
)
