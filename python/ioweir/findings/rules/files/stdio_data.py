"""stdio-data: bulk data through FILE streams."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ioweir.base.units import size
from ioweir.findings.intervals import median
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

_HALF = 0.5
_IN_ORDER = {
    "write": "write in the order of the file, and what changes (counts, an index) once, at the end",
    "read": "read in the order of the file, or the whole file at once, and look things up in memory",
}


def _find(run: Columns) -> Iterator[Found]:
    every = run.stdio_data & run.outermost
    # Of larger ones the C library makes requests of that size, and copies nothing.
    data = every & (run.bytes < SMALL)
    if not data.any():
        return
    flushes = _often(run, every & run.is_op("write"), "sync")
    seeks = _often(run, every, "seek")
    calls = data | flushes | seeks
    price = run.price(calls)
    each = _by_each(run, data, price.seconds)
    little = run.bytes_by_unit(data).max() < STRIPE
    if (little and not flushes.any() and not seeks.any() and not each) or not run.worth(price.seconds):
        return
    op = op_of(run, data)
    high = above_large(run, calls, op, price.seconds)
    emptied = "".join(
        f", and are {done} {int(mask.sum()):,} times"
        for mask, done in ((flushes, "flushed"), (seeks, "sent to another place (fseek)"))
        if mask.any()
    )
    cause, remedies = _words(op, bool(flushes.any()), bool(seeks.any()), bool(little and each))
    yield Found(
        calls=calls,
        seconds=price.seconds,
        high=high,
        spares=CALLS,
        summary=f"{size(float(run.bytes[data].sum()))} go through fread, fwrite, fprintf and their like "
        f"({sized(run, data, op)}){emptied}",
        cause=cause,
        evidence=[
            counted("calls on FILE streams", data),
            Evidence("bytes", float(run.bytes[data].sum()), "B"),
            *([counted("flushes of streams", flushes)] if flushes.any() else []),
            *([counted("seeks in streams", seeks)] if seeks.any() else []),
            *([Evidence("median time of one call", median(run.duration[data]) / 1e9, "s")] if each else []),
        ],
        remedies=remedies,
        files=run.files_of(calls),
    )


def _words(op: str, flushed: bool, sought: bool, each: bool) -> tuple[str, list[Remedy]]:
    """Why it takes so long, and what helps."""
    bulk = Remedy("source", f"{op} binary data with {op}(), MPI-IO or HDF5; else enlarge the buffer (setvbuf, 1 MiB)")
    remedies = [
        *([Remedy("source", "leave out fflush: the close flushes")] if flushed else []),
        *([Remedy("source", _IN_ORDER[op])] if sought else []),
    ]
    if flushed or sought:
        which = "fflush and each fseek" if flushed and sought else "fflush" if flushed else "fseek"
        return (
            f"Each {which} makes a small request of what the stream has gathered, so that the stream gathers nothing."
            if op == "write" or flushed
            else "Each fseek may throw away what the stream has read ahead, so that it asks for the same again."
        ), [*remedies, bulk]
    if each:
        return (
            "The calls themselves take the time, each as long as the other: each is a request of its own where the "
            "stream has no buffer or a small one (setvbuf), or formats its numbers."
        ), [Remedy("source", "leave the stream its buffer (no setvbuf with _IONBF), and move more at a time"), bulk]
    return (
        "Bulk data moves through C's FILE streams: everything is copied once more, text is formatted "
        "number by number, and requests reach the storage in 4 KiB pieces."
    ), [bulk]


def _often(run: Columns, data: Mask, op: str) -> Mask:
    """Calls that empty streams, of ranks that do so often, after little data each time.

    They make small requests, which the stream was to prevent.
    """
    calls = run.is_layer("STDIO") & run.is_op(op) & run.outermost
    times = run.count_by_unit(calls)
    often = (times >= MANY) & (run.bytes_by_unit(data) < SMALL * times)
    result: Mask = calls & often[run.unit]
    return result


def _by_each(run: Columns, data: Mask, seconds: float) -> bool:
    """Whether many calls take the time, each about as long, and not the few in which the stream asks the storage.

    Example: 25,000 calls of 5 us in 0.2 s; not 100 lines in 0.2 s, of which the first took all but 1 ms.
    """
    most = int(run.count_by_unit(data).max())
    return most >= MANY and most * median(run.duration[data]) / 1e9 >= _HALF * seconds


RULE = Rule(
    code="stdio-data",
    title="Bulk data through FILE streams",
    layer="STDIO",
    order=48,
    definition="A rank moves 1 MiB or more through FILE streams in calls under 64 KiB, at 1 % of the run or more. Or "
    "it flushes streams, or seeks in them, 64 times or more, after under 64 KiB each time; then the flushes and seeks "
    "count, too. Or it makes 64 calls or more whose median, times their number, is half of the time or more.",
    source="glibc manual, Stream Buffering, Flushing Buffers",
    thresholds=(
        Threshold("bytes", "1 MiB", "logs and parameter files stay below"),
        MANY_WHY,
        SMALL_WHY,
        Threshold(
            "calls",
            "under 64 KiB",
            "what is larger than a stream's buffer (4 KiB) goes past it: glibc asks the storage for all of it at once, "
            "as read() and write() do (_IO_new_file_xsputn, _IO_file_xsgetn)",
        ),
        Threshold("each", "50 % of the time", "of a stream with a buffer, few calls ask the storage and take the time"),
    ),
    gain=ABOVE_LARGE + VANISH,
    limits="The system calls that the C library makes for a stream are not seen.",
    needs=("STDIO",),
    find=_find,
)
