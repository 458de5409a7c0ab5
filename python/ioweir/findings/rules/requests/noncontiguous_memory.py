"""noncontiguous-memory: the data lies in memory in pieces, and packing them is what takes the time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ioweir.base.spec_names import HDF5, LAYERS, MPI_IO, NETCDF
from ioweir.findings.datatypes import cell, has_gaps
from ioweir.findings.model import Evidence, Remedy
from ioweir.findings.rule import EXCESS, UNKNOWN, Found, Rule, Threshold
from ioweir.findings.rules.common import counted

_LINE = 64
_BEFORE_EXCHANGE = 37
_NUMBER = 8
_SLOWEST_CELL_S = 1e-6
_SLOWEST_BYTE_S = 1e-8
_VECTOR = ("readv", "writev", "preadv", "pwritev")

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ioweir.findings.columns import Columns, Mask


def _longest_packing_s(run: Columns, calls: Mask, piece: int) -> float:
    """Of the rank with most: what copying its pieces may take at most. `piece`: its bytes; 0: not known."""
    moved = float(run.bytes_by_unit(calls).max())
    return moved * _SLOWEST_BYTE_S + moved / (piece or _NUMBER) * _SLOWEST_CELL_S


def _why(library: str) -> str:
    if library == MPI_IO:
        return (
            "The program passes a datatype with gaps in memory (an array with ghost cells, a column of a matrix), and "
            "the MPI library copies it piece by piece."
        )
    chunks = ", or it makes one call of several chunks, whose parts lie apart" if library in (HDF5, NETCDF) else ""
    return (
        f"{library} passes a datatype with gaps in memory, and the MPI library copies it piece by piece: the program "
        f"gave it a part of an array (without ghost cells, a column){chunks}."
    )


def _repair(library: str) -> str:
    if library == MPI_IO:
        return "pack the data into one buffer (MPI_Pack or a loop) and write that"
    chunks = "; with chunks, let each rank's part be one chunk" if library in (HDF5, NETCDF) else ""
    return f"where the data is a part of an array in memory, copy it into one buffer, and write that{chunks}"


def _find(run: Columns) -> Iterator[Found]:
    accesses, types = run.trace.accesses, run.trace.datatypes
    if len(accesses) <= 1:
        return
    known: dict[int, bool] = {}
    gaps = np.zeros(len(accesses), dtype=bool)
    for at, access in enumerate(accesses):
        if access.memory not in known:
            known[access.memory] = access.memory > 0 and has_gaps(types, access.memory)
        gaps[at] = known[access.memory]
    calls = run.mpi_data & gaps[np.minimum(run.access, len(accesses) - 1)] & (run.bytes > 0)
    # Fill values are HDF5's own: it passes one chunk of them again and again.
    calls &= ~run.beneath(run.named("H5Dcreate", "H5Dset_extent"))
    if not calls.any():
        return
    inside = run.is_layer("POSIX") & run.made_by(calls)
    # A vector call gathers the pieces itself: the packing is in it.
    plain = inside & ~run.named(*_VECTOR)
    together = run.collective & calls
    alone = calls & ~together
    seconds = max(run.seconds(together) - run.span_s(plain & run.made_by(together)), 0.0)
    seconds += max(run.seconds(alone) - run.seconds(plain & run.made_by(alone)), 0.0)
    cells = [cell(types, number) for number, with_gaps in known.items() if with_gaps]
    # What is beyond it is waiting or exchange, which other rules look for.
    seconds = min(seconds, _longest_packing_s(run, calls, min(cells, default=0)))
    if not run.worth(seconds):
        return
    pieces = float(inside.sum() / calls.sum())
    roots = run.layer[run.root[calls]]
    library = LAYERS[int(np.bincount(roots).argmax())]
    tiny = bool(cells) and 0 < max(cells) <= _LINE
    yield Found(
        calls=calls,
        seconds=seconds,
        spares=UNKNOWN if together.any() else EXCESS,
        summary=f"{int(calls.sum()):,} MPI-IO calls take their data from pieces in memory; packing takes longer "
        "than storage "
        "shows",
        cause=_why(library),
        evidence=[
            counted("MPI-IO calls with gaps in memory", calls),
            Evidence("POSIX calls each of them made", pieces, "calls"),
        ],
        remedies=[Remedy("source", _repair(library))],
        files=run.files_of(calls),
        ranks=run.ranks_of(calls),
        order=_BEFORE_EXCHANGE if tiny else None,
    )


RULE = Rule(
    code="noncontiguous-memory",
    title="Data in pieces in memory",
    layer="MPI-IO",
    order=40,
    definition="MPI-IO calls whose datatype in memory has gaps. They spend 1 % of the run outside of POSIX "
    "calls, or in POSIX calls that gather pieces (writev and its like). Open MPI hands pieces to those unpacked. What "
    "packing cannot take is not counted, nor are fill values that HDF5 passes. Of independent calls "
    "a rank's own POSIX calls are taken off, of collective ones those of any rank.",
    source="Ching et al. 2003 (noncontiguous I/O: memory and file)",
    thresholds=(
        Threshold("gaps", "size below extent, at any level", "MPI's own definition of a type with holes"),
        Threshold(
            "longest packing",
            "1 us a piece and 10 ns a byte",
            "ten times what MPI libraries take for small pieces, of the rank with most of them; 8 B where the size of "
            "a piece is not known. Time beyond it is not packing",
        ),
        Threshold(
            "cells",
            "64 B",
            "of smaller ones each moves a whole line of the processor's cache: then it leads where exchange-dominates "
            "explains the same seconds",
        ),
    ),
    gain="lost: the calls' time outside of POSIX calls, and in those that gather pieces; low: a half; of collective "
    "calls a quarter, for waiting and exchange are in it, too",
    limits="Exchange between ranks is in the same time: see exchange-dominates. Types of more than 131,072 "
    "arguments are not looked into.",
    needs=("MPI-IO", "POSIX"),
    find=_find,
)
