"""stdio-data: bulk data through FILE streams."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ioweir.base.units import size
from ioweir.findings.model import Evidence, Remedy
from ioweir.findings.rule import CALLS, Found, Rule, Threshold
from ioweir.findings.rules.common import (
    ABOVE_LARGE,
    MANY,
    MANY_WHY,
    SMALL,
    SMALL_WHY,
    STRIPE,
    VANISH,
    above_large,
    counted,
    op_of,
    sized,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ioweir.findings.columns import Columns, Mask


def _find(run: Columns) -> Iterator[Found]:
    data = run.stdio_data & run.outermost
    flushes = _flushes(run, data)
    if not data.any() or (run.bytes_by_unit(data).max() < STRIPE and not flushes.any()):
        return
    calls = data | flushes
    price = run.price(calls)
    if not run.worth(price.seconds):
        return
    op = op_of(run, data)
    high = above_large(run, calls, op, price.seconds)
    flushed = f", and are flushed {int(flushes.sum()):,} times" if flushes.any() else ""
    yield Found(
        calls=calls,
        seconds=price.seconds,
        high=high,
        spares=CALLS,
        summary=f"{size(float(run.bytes[data].sum()))} go through fread, fwrite, fprintf and their like "
        f"({sized(run, data, op)}){flushed}",
        cause="Each fflush makes a small request of what the stream has gathered, so that the stream gathers nothing."
        if flushes.any()
        else "Bulk data moves through C's FILE streams: everything is copied once more, text is formatted "
        "number by number, and requests reach the storage in 4 KiB pieces.",
        evidence=[
            counted("calls on FILE streams", data),
            Evidence("bytes", float(run.bytes[data].sum()), "B"),
            *([counted("flushes of streams", flushes)] if flushes.any() else []),
        ],
        remedies=[
            *([Remedy("source", "leave out fflush: the close flushes")] if flushes.any() else []),
            Remedy(
                "source", "write binary data with write(), MPI-IO or HDF5; else enlarge the buffer (setvbuf, 1 MiB)"
            ),
        ],
        files=run.files_of(calls),
    )


def _flushes(run: Columns, data: Mask) -> Mask:
    """Flushes of ranks that flush often, after little each time: small requests, which the stream was to prevent."""
    flushes = run.is_layer("STDIO") & run.is_op("sync") & run.outermost
    times = np.bincount(run.unit[flushes], minlength=run.units)
    often = (times >= MANY) & (run.bytes_by_unit(data & run.is_op("write")) < SMALL * times)
    result: Mask = flushes & often[run.unit]
    return result


RULE = Rule(
    code="stdio-data",
    title="Bulk data through FILE streams",
    layer="STDIO",
    order=48,
    definition="A rank moves 1 MiB or more through FILE streams, at 1 % of the run or more. Or it flushes streams 64 "
    "times or more, after under 64 KiB each time; then the flushes count, too.",
    source="glibc manual, Stream Buffering, Flushing Buffers",
    thresholds=(Threshold("bytes", "1 MiB", "logs and parameter files stay below"), MANY_WHY, SMALL_WHY),
    gain=ABOVE_LARGE + VANISH,
    limits="The system calls that the C library makes for a stream are not seen.",
    needs=("STDIO",),
    find=_find,
)
