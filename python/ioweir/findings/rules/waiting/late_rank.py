"""late-rank: one rank comes last to the collective calls, and the others wait for it in them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ioweir.base.spec_names import MPI_IO
from ioweir.base.units import seconds as in_words
from ioweir.findings.intervals import median
from ioweir.findings.model import Evidence, Remedy
from ioweir.findings.rule import Found, Rule, Threshold

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ioweir.findings.columns import Columns, Late, Numbers

_CHANCE = 0.01


def _find(run: Columns) -> Iterator[Found]:
    late = run.late
    if run.unit_count < 2 or not late.unit.size:
        return
    # What a rank does in an earlier collective call, others do there too: who leaves it last need not have come late.
    begin = np.maximum(late.before, _last_left(run, late))
    alone = np.maximum(late.arrival - begin, 0)
    held = np.bincount(late.unit, alone / 1e9, minlength=run.units)
    unit = int(held.argmax())
    lost = float(held[unit])
    if lost < 0.5 * held.sum() or not run.worth(lost):
        return
    own = (late.unit == unit) & (2 * alone >= late.arrival - late.before)
    times, calls = int(own.sum()), int(late.unit.size)
    chance = run.unit_count * _at_least(times, calls, 1 / median(late.ranks))
    if chance > _CHANCE:
        return
    busy = run.inside_of(unit, begin[own], late.arrival[own])
    in_io = busy >= 0.5 * lost
    (rank,) = run.ranks([unit]) or (unit,)
    mask = (run.meeting >= 0) & run.collective & (run.unit != unit)
    files = [run.files[at] for at in dict.fromkeys(late.file[own].tolist()) if run.files[at]]
    does = "does I/O of its own" if in_io else "computes, or waits for something else than files"
    yield Found(
        calls=mask,
        seconds=lost,
        low=None if in_io else 0.0,
        summary=f"rank {rank} comes last to {times:,} of {calls:,} collective calls, and the other ranks wait "
        f"{in_words(lost)} for it in them",
        cause=f"Before these calls rank {rank} {does} for longer than the others. Their time in the calls is waiting: "
        "no faster storage shortens it.",
        evidence=[
            Evidence("collective calls that it came last to", float(times), "calls"),
            Evidence("collective calls in which ranks waited for each other", float(calls), "calls"),
            Evidence("how often chance would have it so", chance, "times"),
            Evidence("of the waiting, while the rank was in I/O calls of its own", busy, "s"),
        ],
        remedies=[
            Remedy("source", f"share out over all ranks what rank {rank} reads or writes before the collective calls")
            if in_io
            else Remedy("source", f"give rank {rank} less to do, or look at its node: its work takes longest")
        ],
        files=files[:20],
        ranks=[rank],
        apart=True,
    )


def _last_left(run: Columns, late: Late) -> Numbers:
    """When each last rank has left its collective call before; 0: there is none. Nanoseconds, of shape (calls,)."""
    # Those that HDF5 and its like make as well: their own calls may hold several.
    calls = np.flatnonzero(run.is_layer(MPI_IO) & run.collective & (run.mpi < 0))
    if not calls.size:
        return np.zeros_like(late.arrival)
    # Calls are ordered by rank and start: one number has both.
    first = int(min(run.start[calls].min(), late.arrival.min()))
    room = int(max(run.start[calls].max(), late.arrival.max())) - first + 1
    starts = run.unit[calls] * room + (run.start[calls] - first)
    at = np.searchsorted(starts, late.unit * room + (late.arrival - first)) - 1
    before = calls[np.maximum(at, 0)]
    there = (at >= 0) & (run.unit[before] == late.unit)
    return np.where(there, run.end[before], 0)


def _at_least(times: int, calls: int, share: float) -> float:
    """The chance that so many of `calls` equal lots, or more, fall on one rank: the binomial distribution's tail."""
    if share >= 1:
        return 1.0

    def log_of(k: int) -> float:
        ways = math.lgamma(calls + 1) - math.lgamma(k + 1) - math.lgamma(calls - k + 1)
        return ways + k * math.log(share) + (calls - k) * math.log1p(-share)

    return min(1.0, math.fsum(math.exp(log_of(k)) for k in range(times, calls + 1)))


RULE = Rule(
    code="late-rank",
    title="One rank comes late",
    layer=MPI_IO,
    order=63,
    definition="Of all collective MPI-IO calls in which ranks wait for each other, one rank comes last to so many "
    "that it is no chance. Half of all such waiting, or more, is for it. The seconds are those from the arrival "
    "of the rank before it to its own, without what the late rank spent in the collective call before.",
    source="Böhme, Geimer, Wolf and Arnold 2010 (root causes of wait states: who is waited for, not who waits); "
    "Clopper and Pearson 1934 (binomial tail)",
    thresholds=(
        Threshold("half", "50 % of the waiting", "below it, ranks take turns in being late"),
        Threshold(
            "chance",
            "1 %",
            "that some rank is last so often where all are alike: 5 of 5 calls of 4 ranks, 8 of 8 calls of 2",
        ),
    ),
    gain="lost: the time above the rank before it; low: 0 where it computes, for whether that can be shared "
    "out is not in the trace; a quarter where it does I/O of its own",
    limits="Barriers and other calls outside of I/O are not looked at: there, waiting is none of I/O's.",
    needs=(MPI_IO,),
    find=_find,
)
