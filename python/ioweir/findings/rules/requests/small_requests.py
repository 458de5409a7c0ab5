"""small-requests: calls so small that their fixed cost outweighs their bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ioweir.base.spec_names import HDF5, LAYERS, MPI_IO, NETCDF, POSIX
from ioweir.base.units import size
from ioweir.findings.intervals import median
from ioweir.findings.model import Evidence, Remedy
from ioweir.findings.rule import CALLS, Found, Rule, Threshold
from ioweir.findings.rules.common import (
    ABOVE_LARGE,
    MANY,
    MANY_WHY,
    PYTHONS,
    SMALL,
    SMALL_WHY,
    VANISH,
    above_large,
    alike,
    copied,
    counted,
    interleaved,
    learned_chunks,
    made_smaller,
    of_python,
    sized,
    typical,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ioweir.findings.columns import Columns, Mask

_SCATTERED = 16
"""As in collective_scattered.py."""
_OF_FILE = 2
_TOGETHER = (
    "where a rank's pieces lie between those of others in one file: MPI_File_{op}_at_all, parallel HDF5 or PnetCDF, "
    "which put the pieces of all ranks together"
)


def _find(run: Columns) -> Iterator[Found]:
    independent = run.mpi_data & ~run.collective & (run.bytes > 0)
    for op in ("write", "read"):
        calls = (run.own_storage | independent) & run.is_op(op) & (run.bytes < SMALL)
        calls |= _pieces(run, independent & run.is_op(op) & (run.bytes >= SMALL), op)
        if run.count_by_unit(calls).max() < MANY:
            continue
        seeks = run.before(run.is_layer(POSIX) & run.is_op("seek"), calls & run.outermost)
        smaller = calls & made_smaller(run, op)
        spent = run.roots_of(calls & ~smaller) | smaller | seeks
        price = run.price(spent)
        if not run.worth(price.seconds):
            continue
        high = above_large(run, calls, op, price.seconds)
        files = run.files_of(calls)
        each = typical(run, calls)
        whole_files = median(run.times_on_file(calls)[calls]) <= _OF_FILE
        cause, remedy = _of_program(op, each, all_alike=alike(run, calls), whole_files=whole_files)
        remedies = [*([PYTHONS] if of_python(run, calls) else []), Remedy("source", remedy)]
        if run.seconds(interleaved(run, calls & run.storage)) >= 0.5 * run.seconds(calls):
            remedies.append(Remedy("source", _TOGETHER.format(op=op)))
        inside = calls & ~run.outermost
        if run.seconds(inside) >= 0.5 * run.seconds(calls):
            cause, remedies = _of_library(run, inside, op, files)
        yield Found(
            calls=spent,
            seconds=price.seconds,
            high=high,
            spares=CALLS,
            summary=f"{sized(run, calls, op)}{' each' if alike(run, calls) else ''}: most of the time is the cost of "
            "asking, not of moving bytes",
            cause=cause,
            evidence=[
                counted(f"{op}s under {size(SMALL)}", calls),
                Evidence(f"median size of these {op}s", each, "B"),
                Evidence("median time of one", median(run.duration[calls]) / 1e9, "s"),
                *([counted("seeks right before them", seeks)] if seeks.any() else []),
            ],
            remedies=remedies,
            files=files,
            ranks=run.ranks_of(calls),
        )
    yield from _kept_by_library(run)


def _kept_by_library(run: Columns) -> Iterator[Found]:
    """Small calls of HDF5 and netCDF that end in its cache: they make no request, and each has the library's cost."""
    library = run.outermost & (run.is_layer(HDF5) | run.is_layer(NETCDF)) & ~run.named("H5A")
    if not library.any():
        return
    library &= (run.bytes > 0) & (run.bytes < SMALL) & ~run.roots_of(run.storage | run.is_layer(MPI_IO))
    for op in ("write", "read"):
        calls = library & run.is_op(op)
        if run.count_by_unit(calls).max() < MANY:
            continue
        seconds = run.seconds(calls) - copied(run, calls)
        if not run.worth(seconds):
            continue
        name = LAYERS[int(np.bincount(run.layer[calls]).argmax())]
        yield Found(
            calls=calls,
            seconds=seconds,
            spares=CALLS,
            summary=f"{sized(run, calls, op)}{' each' if alike(run, calls) else ''} end in {name}'s cache: most of the "
            "time is the cost of calling it, not of moving bytes",
            cause=f"The program calls {name} for each piece. Checking what is asked for, and finding its place, costs "
            "the same for an element as for a block.",
            evidence=[
                counted(f"{op}s under {size(SMALL)} that make no request", calls),
                Evidence("median time of one", median(run.duration[calls]) / 1e9, "s"),
            ],
            remedies=[
                Remedy(
                    "source",
                    f"collect the data in memory and {op} more of it in one call: a block of the array, not its "
                    "elements or lines",
                )
            ],
            files=run.files_of(calls),
            ranks=run.ranks_of(calls),
        )


def _pieces(run: Columns, large: Mask, op: str) -> Mask:
    """Small POSIX requests that the MPI library makes of independent calls which are not small: 16 or more of each."""
    if not large.any():
        return large
    inner = run.storage & run.is_op(op) & (run.bytes < SMALL) & (run.mpi >= 0)
    scattered = large & (run.count_inside(inner) >= _SCATTERED)
    pieces: Mask = inner & run.made_by(scattered)
    return pieces


def _of_program(op: str, each: int, *, all_alike: bool, whole_files: bool) -> tuple[str, str]:
    if whole_files:
        return (
            f"The program {op}s many small files, most of them with one request or two. Each one has a fixed cost, "
            "whatever its size, and opening the file comes on top.",
            f"put many small files into one, and {op} that in pieces of 1 MiB or more",
        )
    pieces = f"every {size(each)}" if all_alike else f"each piece, of {size(each)} in the median"
    return (
        f"The program makes a request of its own for {pieces}. Each one has a fixed cost, whatever its size.",
        f"collect the data in memory and {op} it in pieces of 1 MiB or more",
    )


def _of_library(run: Columns, inside: Mask, op: str, files: list[str]) -> tuple[str, list[Remedy]]:
    """Calls of HDF5 and its like that end in small requests."""
    roots = run.root[inside]
    made = np.bincount(roots)
    made = made[made > 0]
    layer = LAYERS[int(np.bincount(run.layer[roots]).argmax())]
    # Pieces of a call are the library's work; a call for each request is the program's own.
    piecewise = median(made) > 1
    remedy = Remedy(
        "source",
        f"call the collective function (MPI_File_{op}_all), which puts neighbouring pieces together, or {op} at a time "
        "what lies together in the file"
        if layer == MPI_IO
        else f"collect the data in memory and {op} more of it in one call: a block of the array, not its elements or "
        "lines (HDF5: in chunks that hold such a block, H5Pset_chunk)"
        if not piecewise
        else f"{op} at a time what lies together in the file (HDF5: chunks of the shape of one access, H5Pset_chunk, "
        "and a chunk cache that holds them, H5Pset_chunk_cache)",
    )
    learned = [learned_chunks(files)] if layer == HDF5 and op == "write" else []
    calls = (
        f"The program calls {layer} {made.size:,} times, and {layer} makes {int(inside.sum()):,} small requests of that"
    )
    why = (
        "what the program moves at a time lies in the file in many pieces."
        if piecewise
        else f"the program moves {size(typical(run, inside))} at a time, and most calls become one request."
    )
    return f"{calls}: {why}", [remedy, *learned]


RULE = Rule(
    code="small-requests",
    title="Many small requests",
    layer="POSIX",
    order=50,
    definition="Reads or writes under 64 KiB, outside of collective calls, that cost 1 % of the run or more. Of an "
    "independent MPI-IO call that is larger, the requests count which the MPI library makes of it, where these are 16 "
    "or more. Seeks right before them count as well. Where HDF5 makes the data smaller (compression), only the "
    "requests count, not its work. Apart from these, calls of HDF5 and netCDF that end in the library's cache, "
    "above what a copy of their bytes takes (1 ns each).",
    source="Hockney 1982 (n-half)",
    thresholds=(
        SMALL_WHY,
        MANY_WHY,
        Threshold("pieces", "16 a call", "as for collective-scattered: fewer are no scattering yet"),
    ),
    gain=ABOVE_LARGE + VANISH,
    limits="Calls through FILE streams are gathered by the C library: see stdio-data. Where one size is all that "
    "a run has, the rate of large calls is not known and the upper bound is the whole time.",
    needs=("POSIX",),
    find=_find,
)
