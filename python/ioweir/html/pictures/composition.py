"""What single MPI-IO calls were made of: their POSIX calls, rank by rank (Wright et al. 2013, figures 6 and 7)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ioweir.trace.reader import DATA_OPS, MPI_IO, OPS, POSIX

if TYPE_CHECKING:
    from ioweir.findings.columns import Columns, Numbers

MOST_PICTURES: Final = 4
MOST_RANKS: Final = 16
MOST_PARTS: Final = 600
"""POSIX calls of a rank that are drawn: of more, those that took longest."""
KINDS: Final = ("write", "read", "lock", "unlock", "other")


def compositions(run: Columns, begin_ns: int) -> list[dict[str, Any]]:
    """Of each MPI-IO data function the call that took longest, of those whose functions took most time.

    Times are seconds from the picture's `start_s`, which is counted from the run's start. `parts` of a rank: rows of
    [kind (index into KINDS), begin, duration, bytes, offset].
    """
    calls = np.flatnonzero(run.is_layer(MPI_IO) & run.is_op(*DATA_OPS) & (run.mpi < 0) & ~run.completes & ~run.failed)
    if not calls.size:
        return []
    inner = np.flatnonzero(run.is_layer(POSIX) & (run.mpi >= 0))
    has_parts = np.zeros(len(run), dtype=bool)
    has_parts[run.mpi[inner]] = True
    time = np.bincount(run.function[calls], run.duration[calls], minlength=len(run.names))
    pictures = []
    for function in np.argsort(-time, kind="stable")[:MOST_PICTURES]:
        own = calls[run.function[calls] == function]
        with_parts = own[has_parts[own]]
        if not with_parts.size:
            continue
        # Of a collective call the time after the last rank came counts, so that no late rank chooses the picture.
        chosen = int(with_parts[np.argmax((run.end - run.arrival)[with_parts])])
        pictures.append(_picture(run, own, inner, chosen, begin_ns))
    return pictures


def _picture(run: Columns, own: Numbers, inner: Numbers, chosen: int, begin_ns: int) -> dict[str, Any]:
    meeting = int(run.meeting[chosen])
    together = own[run.meeting[own] == meeting] if meeting >= 0 else np.array([chosen])
    moved = np.bincount(run.mpi[inner], minlength=len(run))
    shown = together
    if together.size > MOST_RANKS:  # the busiest, in the order of ranks
        shown = np.sort(together[np.argsort(-moved[together], kind="stable")[:MOST_RANKS]])
    start = int(run.start[together].min())
    return {
        "function": run.names[int(run.function[chosen])],
        "file": run.files[int(run.file[chosen])] or "(unknown)",
        "start_s": (start - begin_ns) / 1e9,
        "seconds": (int(run.end[together].max()) - start) / 1e9,
        "of_ranks": int(together.size),
        "ranks": [_rank(run, int(call), inner[run.mpi[inner] == call], start) for call in shown],
    }


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
