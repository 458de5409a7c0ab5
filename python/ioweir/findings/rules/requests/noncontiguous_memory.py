"""noncontiguous-memory: the data lies in memory in pieces, and packing them is what takes the time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ioweir.findings.model import Evidence, Remedy
from ioweir.findings.rule import Found, Rule, Threshold
from ioweir.findings.rules.common import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ioweir.findings.columns import Columns


def _has_gaps(run: Columns, number: int, depth: int = 8) -> bool:
    """Whether a datatype's data is no single piece."""
    kind = run.trace.datatypes[number]
    if kind.constructor in ("named", "other") or depth == 0:
        return False
    if kind.size != kind.extent:
        return True
    return any(_has_gaps(run, inner, depth - 1) for inner in kind.types)


def _find(run: Columns) -> Iterator[Found]:
    accesses = run.trace.accesses
    if len(accesses) <= 1:
        return
    known: dict[int, bool] = {}
    gaps = np.zeros(len(accesses), dtype=bool)
    for at, access in enumerate(accesses):
        if access.memory not in known:
            known[access.memory] = access.memory > 0 and _has_gaps(run, access.memory)
        gaps[at] = known[access.memory]
    calls = run.mpi_data & gaps[np.minimum(run.access, len(accesses) - 1)] & (run.bytes > 0)
    if not calls.any():
        return
    roots = run.roots_of(calls)
    inside = run.is_layer("POSIX") & (run.mpi >= 0) & calls[run.mpi]
    seconds = max(run.seconds(roots) - run.span_s(inside), 0.0)
    if not run.worth(seconds):
        return
    pieces = float(inside.sum() / calls.sum())
    yield Found(
        calls=roots,
        seconds=seconds,
        summary=f"{int(calls.sum()):,} MPI-IO calls take their data from pieces in memory; packing takes longer "
        "than storage "
        "shows",
        cause="The program passes a datatype with gaps in memory (an array with ghost cells, a column of a "
        "matrix), and the MPI library copies it piece by piece.",
        evidence=[
            counted("MPI-IO calls with gaps in memory", calls),
            Evidence("POSIX calls each of them made", pieces, "calls"),
        ],
        remedies=[Remedy("source", "pack the data into one buffer (MPI_Pack or a loop) and write that")],
        files=run.files_of(calls),
        ranks=run.ranks_of(calls),
    )


RULE = Rule(
    code="noncontiguous-memory",
    title="Data in pieces in memory",
    layer="MPI-IO",
    order=40,
    definition="MPI-IO calls whose datatype in memory has gaps, and which spend 1 % of the run outside of POSIX calls.",
    source="Ching et al. 2003 (noncontiguous I/O: memory and file); MPI 4.0, section 14.4",
    thresholds=(Threshold("gaps", "size below extent, at any level", "MPI's own definition of a type with holes"),),
    gain="high: the calls' time outside of POSIX calls; low: a quarter, for waiting and exchange are in it, too",
    limits="Exchange between ranks is in the same time: see exchange-dominates. Types of more than 131,072 "
    "arguments are not looked into.",
    needs=("MPI-IO", "POSIX"),
    find=_find,
)
