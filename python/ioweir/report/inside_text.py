"""What calls were made of, in words: "Inside of 8 HDF5 closes (1.2 s, summed over ranks)".

Reads and writes of MPI-IO are taken apart whatever is around them; of every other operation of MPI-IO and of the
libraries above it those calls that no other call made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ioweir.base.spec_names import DATA_OPS, MPI_IO, POSIX, STDIO, WAITING
from ioweir.base.units import percent, seconds
from ioweir.report.figures import PARTS
from ioweir.report.first_lines import noun

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ioweir.report.model import Decomposition, Inside, Report

Section = tuple[str, list[str]]
"""A title and lines."""

WORTH: Final = 0.02
"""The share of all I/O time from which operations that move no data are taken apart."""

_PART_WORDS: Final = {
    "write": "POSIX writes",
    "read": "POSIX reads",
    "lock": "taking locks",
    "unlock": "giving locks up",
    "posix_other": "other POSIX calls",
    "other": "outside of POSIX calls (exchange, waiting, copying)",
}
_WAITING: Final = "waiting for the last rank to come"


def sections(report: Report) -> Iterator[Section]:
    """All that there is, most time first within each kind."""
    total = report.io.mean_s * max(report.ranks or report.processes, 1)
    for row in report.inside:
        if row.layer in (POSIX, STDIO, WAITING) or (row.layer == MPI_IO and row.op in DATA_OPS):
            continue
        if row.op in DATA_OPS or row.time_s >= WORTH * total > 0:
            yield _inside(report, row)
    for op in DATA_OPS:
        whole = report.decomposition[op]
        if (whole.calls or whole.time_s) and (report.imported is None or whole.parts is not None):
            yield _decomposition(report, op, whole)


def _share(time_s: float, whole_s: float, words: str) -> str:
    return f"{percent(time_s, whole_s):>5}  {seconds(time_s):>8}  {words}"


def _title(calls: int, layer: str, op: str, time_s: float) -> str:
    words = f"{op} calls" if op in DATA_OPS else noun(op)
    return f"Inside of {calls:,} {layer} {words} ({seconds(time_s)}, summed over ranks)"


def _inside(report: Report, row: Inside) -> Section:
    title = _title(row.calls, row.layer, row.op, row.time_s)
    if row.other_s is None:
        return title, ["calls inside of them took longer than they did: what the time went into is not known"]
    lines = [_share(part.time_s, row.time_s, f"{part.layer} {part.op}") for part in row.parts]
    below = [layer for layer in (MPI_IO, POSIX) if layer not in report.layers_recorded and layer != row.layer]
    work = "exchange, waiting, copying" if row.layer == MPI_IO else "conversion, metadata, waiting"
    rest = f"{row.layer} itself: {work}"
    if below:
        rest = f"outside of calls that were recorded ({' and '.join(below)} were not)"
    # Calls of libraries above MPI-IO wait inside of its calls.
    waiting = min(row.waiting_s, row.other_s) if row.layer == MPI_IO else 0.0
    if waiting > 0:
        lines.append(_share(waiting, row.time_s, _WAITING))
    return title, [*lines, _share(row.other_s - waiting, row.time_s, rest)]


def _decomposition(report: Report, op: str, whole: Decomposition) -> Section:
    title = _title(whole.calls, MPI_IO, op, whole.time_s)
    if whole.parts is None:
        known = POSIX in report.layers_recorded
        why = (
            "calls of POSIX inside of them took longer than they did"
            if known
            else "POSIX calls were not recorded (--layers)"
        )
        return title, [f"{why}: what the time went into is not known"]
    lines = []
    for part in PARTS:
        time_s = whole.parts[part]
        if part == "other" and whole.waiting_s > 0:
            lines.append(_share(whole.waiting_s, whole.time_s, _WAITING))
            time_s -= whole.waiting_s
        if time_s > 0:
            lines.append(_share(time_s, whole.time_s, _PART_WORDS[part]))
    if whole.asynchronous_s > 0:
        lines.append(
            f"{seconds(whole.asynchronous_s)} of the POSIX calls are asynchronous: they went on while the rank passed "
            "on data, waited or copied"
        )
    return title, lines
