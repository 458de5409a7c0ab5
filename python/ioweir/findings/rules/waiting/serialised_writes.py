"""serialised-writes: ranks that write one after the other (the stepping of Wright et al. 2013, figure 9)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ioweir.base.spec_names import WAITING
from ioweir.base.units import seconds as in_words
from ioweir.findings.model import Evidence, Remedy
from ioweir.findings.rule import Found, Rule, Threshold
from ioweir.findings.rules.common import CROWDED, ONE_WRITER, aggregate, counted, from_memory

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ioweir.findings.columns import Columns, Floats, Mask, Numbers


_AT_ONCE = 0.1
_TURNS = 8
_ORDERLY = 0.8
_WAITED = 0.5
_PAUSES = 0.1
_OF_POSSIBLE = 0.2
_NEVER = 0.005
_BY_CHANCE = (
    "waiting in MPI was not recorded, so that nothing tells ranks that wait for their turns from ranks that write "
    "rarely, and are apart by chance"
)


def _find(run: Columns) -> Iterator[Found]:
    for op in ("write", "read"):
        ordered = run.named("MPI_File_write_ordered", "MPI_File_read_ordered")
        alone = ~run.made_by(run.collective & ~ordered)
        calls = run.topmost((run.storage | (run.stdio_data & run.outermost)) & run.is_op(op)) & alone
        if run.units_of(calls).size < max(2, 0.5 * run.unit_count):
            continue
        yield from _turns(run, calls, op)


def _turns(run: Columns, calls: Mask, op: str) -> Iterator[Found]:
    spent = run.busy_by_unit(calls)
    union = run.span_s(calls)
    overlap = 1 - union / max(float(spent.sum()), 1e-12)
    # A rank that writes far longer than the others leaves little to be done at once.
    possible = float(spent.sum() - spent.max(initial=0.0))
    if overlap > _AT_ONCE or float(spent.sum()) - union > _OF_POSSIBLE * possible:
        return
    chosen = np.flatnonzero(calls)
    chosen = chosen[np.argsort(run.start[chosen], kind="stable")]
    unit, start, end = run.unit[chosen], run.start[chosen], run.end[chosen]
    reached = np.maximum.accumulate(end)
    # What lies between calls: of one rank it computes, between ranks it is the hand-over.
    gap = float(np.maximum(start[1:] - reached[:-1], 0).sum()) / 1e9
    turns = int((unit[1:] != unit[:-1]).sum())
    writers = int((spent > 0).sum())
    again = turns >= max(_TURNS, 2 * writers)
    if union < gap * 0.5 or not (again or _in_order(unit, writers, overlap)):
        return
    lost = union - float(spent.max())
    # Where the next rank waits in MPI for its turn, handing over is part of the price.
    turn = np.flatnonzero((unit[1:] != unit[:-1]) & (start[1:] > reached[:-1]))
    passed_on = float(run.waiting_in(unit[1:][turn], reached[:-1][turn], start[1:][turn]).sum()) / 1e9
    collective = (run.collective[run.mpi[chosen]] & (run.mpi[chosen] >= 0)).any()
    by_chance = gap > _PAUSES * union and not collective and not _made_to(run, unit, start)
    if by_chance and WAITING in run.recorded:
        return
    lost += passed_on
    if not run.worth(lost):
        return
    files = run.files_of(calls)
    yield Found(
        calls=run.roots_of(calls),
        seconds=min(union + passed_on, run.wall_s),
        low=None if again and not from_memory(run, calls) else 0.0,
        high=lost,
        summary=f"{writers} ranks {op} one after the other, {'never' if overlap < _NEVER else 'hardly ever'} two at a "
        f"time: {in_words(union)} instead of {in_words(float(spent.max()))} for the longest of them",
        cause="The ranks take turns: by messages or barriers in the program, by locks, or by the shared file "
        "pointer. While one writes, the others wait."
        if op == "write"
        else "The ranks take turns in reading, and wait for each other.",
        evidence=[
            counted(f"{op}s", calls),
            Evidence("time in which two ranks do it at once", 100 * max(overlap, 0.0), "%"),
            Evidence("changes from one rank to another", float(turns), "turns"),
            Evidence("waiting in MPI for the turn while nobody does it", passed_on, "s"),
        ],
        remedies=[
            Remedy("source", f"let all ranks {op} at once, each to its own place: MPI_File_{op}_at_all"),
            *([aggregate(files)] if op == "write" else []),
        ],
        files=files,
        ranks=run.ranks_of(calls),
        doubt=_BY_CHANCE
        if by_chance and _expected(spent, union + gap) <= _AT_ONCE
        else CROWDED
        if run.crowded and not (_regular(unit) or _made_to(run, unit, start))
        else "",
    )


def _made_to(run: Columns, unit: Numbers, start: Numbers) -> bool:
    """Whether ranks wait for their turns, in MPI or for locks: of others it is chance that they are apart.

    Example: a rank that computes while the other writes, and writes while the other computes, waits for nobody.
    """
    turn = np.flatnonzero(unit[1:] != unit[:-1])
    waited = run.waiting_in(unit[1:][turn], start[:-1][turn], start[1:][turn]) > 0
    return bool(waited.mean() >= _WAITED) or bool((run.is_op("lock") & ~run.failed).any())


def _expected(spent: Floats, whole: float) -> float:
    """The share of the ranks' time that two would do it at once if each began whenever it likes.

    Example: two ranks, each busy for a quarter of the time: 1 - (1 - 9 / 16) / (1 / 2) = 12.5 %.
    """
    busy = np.minimum(spent / whole, 1.0)
    return 1 - float((1 - np.prod(1 - busy)) / busy.sum())


def _regular(unit: Numbers) -> bool:
    """Whether each rank is followed by the same other one, nearly always: processors do not keep to an order.

    Of two ranks nothing is shown: there is only one other to follow.
    Example: of 0, 1, 2, 0, 1, 2 all four pairs of followers are alike; of 0, 1, 2, 1, 0, 2 they are not.
    """
    turns = unit[np.r_[True, unit[1:] != unit[:-1]]]
    if np.unique(turns).size < 3:
        return False
    most = int(turns.max()) + 1
    pairs, times = np.unique(turns[:-1] * most + turns[1:], return_counts=True)
    usual = np.zeros(most, dtype=np.int64)
    np.maximum.at(usual, pairs // most, times)
    return bool(usual.sum() >= _ORDERLY * times.sum())


def _in_order(unit: Numbers, writers: int, overlap: float) -> bool:
    """Whether the ranks come once each, by their numbers: of four ranks, chance does it one time in twelve."""
    first = unit[np.r_[True, unit[1:] != unit[:-1]]]
    step = np.sign(np.diff(first))
    return writers >= 4 and first.size == writers and overlap < 0.01 and abs(int(step.sum())) == writers - 1


RULE = Rule(
    code="serialised-writes",
    title="Ranks take turns",
    layer="POSIX",
    order=14,
    definition="At least half of the ranks write (or read), under 10 % of that time two at once, with pauses "
    "that are at most twice as long as the writing. Pauses in which the next rank waits in MPI for "
    "its turn are part of "
    "the seconds.",
    source="Wright et al. 2013, section 6.3, figure 9 (the stepping of writes that are queued and complete one by one)",
    thresholds=(
        Threshold(
            "at once",
            "under 10 %",
            "independent ranks that write half of the time are together in far more of it: for two ranks 33 %",
        ),
        Threshold(
            "of what could be",
            "under a fifth",
            "at most what all but the longest rank write can be at once. For two equal ranks it is half of the "
            "writing, of which a fifth is 10 %; beside a rank that writes far longer than the others it is little",
        ),
        Threshold(
            "turns",
            "8, and 2 a rank",
            "ranks that began at different times are apart once, but not again and again; one pass counts where "
            "four ranks or more come in the order of their numbers, and then the gain begins at 0",
        ),
        Threshold(
            "order",
            "80 % the usual follower",
            "asked only where ranks share processors, for three ranks or more that do not wait for their turns: "
            "by chance "
            "one of three other ranks follows in 33 %",
        ),
        Threshold(
            "waiting",
            "half of the turns",
            "asked where waiting in MPI was recorded, outside of collective calls, and where pauses are over 10 % of "
            "the writing: the next rank waits in MPI while the one before it writes, or ranks lock; otherwise they are "
            "apart by chance. Without pauses it is no chance. Where waiting was not recorded, "
            "ranks that write so rarely that under 10 % at once is to be expected are in doubt, and of low severity",
        ),
        ONE_WRITER,
        Threshold("pauses", "twice the writing", "with rarer writes, meeting by chance is rare, too"),
    ),
    gain="lost: the time above that of the longest of them, which remains when all go at once; low: a quarter, for the "
    "storage may not be faster for all at once; 0 where the node's memory answered",
    limits="Turns inside of the file system, where the calls overlap and only complete one by one, look parallel here.",
    needs=("POSIX",),
    find=_find,
    follows=("lock-wait", "data-sieving"),
    of_ranks=True,
)
