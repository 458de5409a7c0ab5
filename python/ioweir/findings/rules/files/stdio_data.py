"""stdio-data: bulk data through FILE streams."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ioweir.base.units import size
from ioweir.findings.model import Evidence, Remedy
from ioweir.findings.rule import Found, Rule, Threshold
from ioweir.findings.rules.common import QUARTER, STRIPE, bounds, counted, op_of, sized

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
    low, high = bounds(run, calls, op, price.seconds)
    yield Found(
        calls, price.seconds, low, high,
        f"{size(float(run.bytes[calls].sum()))} go through fread, fwrite, fprintf and their like ({sized(run, calls, op)})",
        "Bulk data moves through C's FILE streams: everything is copied once more, text is formatted number by number, and "
        "requests reach the storage in 4 KiB pieces.",
        [counted("calls on FILE streams", calls), Evidence("bytes", float(run.bytes[calls].sum()), "B")],
        [Remedy("source", "write binary data with write(), MPI-IO or HDF5; else enlarge the buffer (setvbuf, 1 MiB)")],
        run.files_of(calls), run.ranks_of(calls),
    )  # fmt: skip


RULE = Rule(
    "stdio-data", "Bulk data through FILE streams", "STDIO", 48,
    "A rank moves 1 MiB or more through FILE streams, at 1 % of the run or more.",
    "glibc manual, Stream Buffering; Carns et al. 2011 (STDIO at scale)",
    (Threshold("bytes", "1 MiB", "logs and parameter files stay below"),), QUARTER,
    "The system calls that the C library makes for a stream are not seen.", ("STDIO",), _find,
)  # fmt: skip
