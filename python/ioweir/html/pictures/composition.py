"""What single MPI-IO calls were made of: their POSIX calls, rank by rank (Wright et al. 2013, figures 6 and 7)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ioweir.trace.reader import DATA_OPS, MPI_IO, OPS, POSIX

if TYPE_CHECKING:
    from ioweir.findings.columns import Columns, Floats, Numbers

MOST_FUNCTIONS: Final = 3
MOST_RANKS: Final = 16
MOST_PARTS: Final = 600
"""POSIX calls of a rank that are drawn: of more, those that took longest."""
KINDS: Final = ("write", "read", "lock", "unlock", "other")


def compositions(run: Columns, begin_ns: int) -> list[dict[str, Any]]:
    """Of each MPI-IO data function the call whose POSIX calls took longest, and the one whose moved most bytes.

    A collective call's count for all ranks together. Functions come in the order of all the time in their POSIX calls.

    Times are seconds from the picture's `start_s`, which is counted from the run's start. `parts` of a rank: rows of
    [kind (index into KINDS), begin, duration, bytes, offset].
    """
    calls = np.flatnonzero(run.is_layer(MPI_IO) & run.is_op(*DATA_OPS) & (run.mpi < 0) & ~run.completes & ~run.failed)
    if not calls.size:
        return []
    inner = np.flatnonzero(run.is_layer(POSIX) & (run.mpi >= 0))
    inside: Floats = np.bincount(run.mpi[inner], run.duration[inner], minlength=len(run)).astype(np.float64)
    moved: Floats = np.bincount(run.mpi[inner], run.bytes[inner], minlength=len(run)).astype(np.float64)
    weights = (("longest", _of_all_ranks(run, inside)), ("most bytes", _of_all_ranks(run, moved)))
    time = np.bincount(run.function[calls], inside[calls], minlength=len(run.names))
    pictures: list[dict[str, Any]] = []
    for function in np.argsort(-time, kind="stable")[:MOST_FUNCTIONS]:
        if time[function] <= 0:
            break
        own = calls[run.function[calls] == function]
        chosen: list[Numbers] = []
        for why, weight in weights:
            order = np.lexsort((weights[0][1][own], weight[own]))  # of equal ones the longest
            together = _together(run, own, int(own[order[-1]]))
            if not any(np.array_equal(together, other) for other in chosen):
                pictures.append({"why": why, **_picture(run, together, inner, begin_ns)})
            chosen.append(together)
    return pictures


def _of_all_ranks(run: Columns, weight: Floats) -> Floats:
    """Of each call its weight, of one that ranks made together the sum of all."""
    met = run.meeting >= 0
    sums = np.bincount(np.maximum(run.meeting, 0), weight * met)
    whole: Floats = np.where(met, sums[np.maximum(run.meeting, 0)], weight)
    return whole


def _picture(run: Columns, together: Numbers, inner: Numbers, begin_ns: int) -> dict[str, Any]:
    moved = np.bincount(run.mpi[inner], minlength=len(run))
    shown = together
    if together.size > MOST_RANKS:  # the busiest, in the order of ranks
        shown = np.sort(together[np.argsort(-moved[together], kind="stable")[:MOST_RANKS]])
    start = int(run.start[together].min())
    return {
        "function": run.names[int(run.function[together[0]])],
        "file": run.files[int(run.file[together[0]])] or "(unknown)",
        "start_s": (start - begin_ns) / 1e9,
        "seconds": (int(run.end[together].max()) - start) / 1e9,
        "of_ranks": int(together.size),
        "ranks": [_rank(run, int(call), inner[run.mpi[inner] == call], start) for call in shown],
    }


def _together(run: Columns, own: Numbers, chosen: int) -> Numbers:
    """The ranks' calls that belong to one of the function: of a collective one the same, else what they did then.

    A collective call in which ranks did not wait for each other is found by its number among a rank's on the file.
    """
    meeting = int(run.meeting[chosen])
    same: Numbers
    if meeting >= 0:
        same = own[run.meeting[own] == meeting]
        return same
    here = own[run.file[own] == run.file[chosen]]
    if run.collective[chosen]:
        by_unit = np.searchsorted(run.unit[here], run.unit[here])  # ordered by unit and start
        number = np.arange(here.size) - by_unit
        same = here[number == number[here == chosen]]
        return same
    other = here[run.unit[here] != run.unit[chosen]]
    during = np.minimum(run.end[other], run.end[chosen]) - np.maximum(run.start[other], run.start[chosen])
    order = np.lexsort((-during, run.unit[other]))
    first = np.r_[True, np.diff(run.unit[other][order]) != 0] if order.size else np.zeros(0, dtype=bool)
    longest = order[first]
    same = np.sort(np.r_[other[longest[during[longest] > 0]], chosen])
    return same


def _rank(run: Columns, call: int, parts: Numbers, start: int) -> dict[str, Any]:
    """One rank's call: when it was in it, its POSIX calls, and seconds by kind, the rest as `outside`."""
    kind = np.array([_kind(op) for op in run.op[parts]], dtype=np.int64)
    sums = np.bincount(kind, run.duration[parts], minlength=len(KINDS)) / 1e9
    drawn = np.arange(parts.size)
    if parts.size > MOST_PARTS:
        drawn = np.sort(np.argsort(-run.duration[parts], kind="stable")[:MOST_PARTS])
    return {
        "rank": run.who.unit_names[int(run.unit[call])],
        "begin": (int(run.start[call]) - start) / 1e9,
        "seconds": int(run.duration[call]) / 1e9,
        "bytes": int(run.bytes[call]),
        "by_kind": sums.tolist(),
        "calls_by_kind": np.bincount(kind, minlength=len(KINDS)).tolist(),
        "bytes_by_kind": np.bincount(kind, run.bytes[parts], minlength=len(KINDS)).astype(np.int64).tolist(),
        "outside": max(0.0, int(run.duration[call]) / 1e9 - float(sums.sum())),
        "left_out": int(parts.size - drawn.size),
        "parts": [
            [int(kind[at]), (int(run.start[p]) - start) / 1e9, int(run.duration[p]) / 1e9, int(run.bytes[p]),
             int(run.offset[p])]
            for at, p in zip(drawn.tolist(), parts[drawn].tolist(), strict=True)
        ],
    }  # fmt: skip


def _kind(op: int) -> int:
    name = OPS[op]
    return KINDS.index(name) if name in KINDS else KINDS.index("other")
