"""stdio-data: bulk data through FILE streams."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ioweir.base.units import size
from ioweir.findings.model import Evidence, Remedy
from ioweir.findings.rule import CALLS, Found, Rule, Threshold
from ioweir.findings.rules.common import ABOVE_LARGE, STRIPE, VANISH, above_large, counted, op_of, sized

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ioweir.findings.columns import Columns


def _find(run: Columns) -> Iterator[Found]:
    calls = run.stdio_data & run.outermost
    if not calls.any() or run.bytes_by_unit(calls).max() < STRIPE:
        return
    price = run.price(calls)
    if not run.worth(price.seconds):
        return
    op = op_of(run, calls)
    high = above_large(run, calls, op, price.seconds)
    yield Found(
        calls=calls,
        seconds=price.seconds,
        high=high,
        spares=CALLS,
        summary=f"{size(float(run.bytes[calls].sum()))} go through fread, fwrite, fprintf and their like "
        f"({sized(run, calls, op)})",
        cause="Bulk data moves through C's FILE streams: everything is copied once more, text is formatted "
        "number by number, and requests reach the storage in 4 KiB pieces.",
        evidence=[counted("calls on FILE streams", calls), Evidence("bytes", float(run.bytes[calls].sum()), "B")],
        remedies=[
            Remedy("source", "write binary data with write(), MPI-IO or HDF5; else enlarge the buffer (setvbuf, 1 MiB)")
        ],
        files=run.files_of(calls),
    )


RULE = Rule(
    code="stdio-data",
    title="Bulk data through FILE streams",
    layer="STDIO",
    order=48,
    definition="A rank moves 1 MiB or more through FILE streams, at 1 % of the run or more.",
    source="glibc manual, Stream Buffering",
    thresholds=(Threshold("bytes", "1 MiB", "logs and parameter files stay below"),),
    gain=ABOVE_LARGE + VANISH,
    limits="The system calls that the C library makes for a stream are not seen.",
    needs=("STDIO",),
    find=_find,
)
