"""misaligned-requests: large requests that begin and end inside of stripes which others write, too."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ioweir.base.compiled import compiled
from ioweir.findings.model import Evidence, Remedy
from ioweir.findings.rule import Found, Rule, Threshold
from ioweir.findings.rules.common import (
    MEMORY_WHY,
    PAGE,
    PASSING_WHY,
    SMALL,
    STRIPE,
    by_collective,
    counted,
    from_memory,
    learned_chunks,
    rule_for,
    sized,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ioweir.findings.columns import Columns, Mask


def _excess(run: Columns, calls: Mask) -> float:
    """Of all blocks that the calls touch, the share that is touched only because ranks have blocks in common.

    Example: 2 ranks write 1.5 MiB each, behind each other: the stripes 0 and 1, and 1 and 2. Of four one is too many.
    """
    at = np.flatnonzero(calls)
    unit = np.where(run.bytes[at] >= STRIPE, STRIPE, PAGE)
    first, last = run.position[at] // unit, (run.position[at] + run.bytes[at] - 1) // unit
    # Only at its ends can a write share a block with a neighbour's.
    two = last > first
    block, whose = np.r_[first, last[two]], np.r_[at, at[two]]
    kind = 2 * run.file[whose] + np.r_[unit, unit[two]] // STRIPE
    sharers = compiled().sharers(kind, block, run.unit[whose])
    return float((1 - 1 / sharers).sum() / (last - first + 1).sum())


def _find(run: Columns) -> Iterator[Found]:
    calls = run.storage & run.is_op("write") & (run.bytes >= SMALL) & (run.position >= 0)
    if not calls.any():
        return
    shared = np.bincount(run.used(calls)[0], minlength=len(run.files)) > 1
    calls &= shared[run.file]
    crooked = calls & ((run.position % PAGE != 0) | ((run.position + run.bytes) % PAGE != 0))
    crooked &= run.position > 0
    if not calls.any() or crooked.sum() < 0.5 * calls.sum():
        return
    excess = _excess(run, crooked)
    seconds = run.seconds(run.roots_of(crooked)) * excess
    if not run.worth(seconds):
        return
    names = run.files_of(crooked)
    yield Found(
        calls=run.roots_of(crooked),
        seconds=seconds,
        low=-by_collective(run, crooked) if from_memory(run, crooked) else 0.0,
        summary=f"{sized(run, crooked, 'write')} begin or end inside of a block that a neighbour writes, too",
        cause="Requests lie across the borders of the file system's blocks and stripes, so that two ranks change "
        "one block and each waits for the other's lock.",
        evidence=[
            counted("writes across borders", crooked),
            Evidence("blocks touched more than needed", 100 * excess, "%"),
        ],
        remedies=[
            Remedy(
                "plan",
                "let ioweir cut the requests at stripes",
                rule_for(names, 'writers = "auto"', 'domains = "cyclic"', 'stripe = { size = "1 MiB" }'),
            ),
            *([learned_chunks(names, aligned=True)] if _by_hdf5(run, crooked) else []),
            Remedy("source", "make each rank's part begin at a multiple of 1 MiB (HDF5: H5Pset_alignment)"),
        ],
        files=names,
        ranks=run.ranks_of(crooked),
    )


def _by_hdf5(run: Columns, calls: Mask) -> bool:
    """Whether most of the calls' time is spent beneath HDF5."""
    return run.seconds(calls & run.beneath(run.is_layer("HDF5"))) >= 0.5 * run.seconds(calls)


RULE = Rule(
    code="misaligned-requests",
    title="Requests across stripes",
    layer="POSIX",
    order=60,
    definition="At least half of the writes of 64 KiB or more to a file that several ranks write begin or end "
    "away from 4 KiB borders. Its seconds are the share of blocks (1 MiB, of smaller requests 4 KiB) "
    "that a write of another rank touches, too.",
    source="Lustre Operations Manual, section on I/O alignment; Liao and Choudhary 2008 (file domains on lock borders)",
    thresholds=(
        Threshold("block", "4 KiB", "page size: what Linux reads before it changes a part of it"),
        Threshold("stripe", "1 MiB", "Lustre's default stripe, and the largest RPC of most installations"),
        Threshold("share", "50 %", "one crooked header before straight data is no fault"),
        MEMORY_WHY,
        PASSING_WHY,
    ),
    gain="low: 0, for the trace does not show how the file is striped; lost: the seconds. The plan among the remedies "
    "passes bytes between ranks: `may_cost` says what that may cost where the node's memory answered",
    limits="The file's real stripe size is not in the trace. The seconds are arithmetic, not observed, so that "
    "the severity is at most medium.",
    needs=("POSIX",),
    find=_find,
)
