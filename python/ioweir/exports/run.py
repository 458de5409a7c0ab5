"""`ioweir export DIR --format FORMAT -o OUT`: which writer makes what. Every one goes through the trace in batches."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ioweir.base.units import plural
from ioweir.errors import EXIT_USAGE, IoweirError
from ioweir.trace.reader import read

if TYPE_CHECKING:
    from pathlib import Path
    from typing import IO

FORMATS: Final = ("perfetto", "parquet", "csv")


@dataclass
class Exported:
    """What was written."""

    output: str
    format: str
    events: int
    counts: int = 0
    """Rows of sums, of imported logs."""
    partial: list[str] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    """Nodes of which nothing could be read."""


def export(directory: Path, form: str, output: Path, progress: IO[str] | None = None) -> Exported:
    """Write a trace in another form."""
    if form not in FORMATS:
        raise IoweirError(f"'{form}' is no format: one of {', '.join(FORMATS)}", EXIT_USAGE)
    trace = read(directory)
    made = Exported(str(output), form, trace.event_count, partial=[*trace.damage], unreadable=[*trace.unreadable])
    if trace.dropped:
        made.partial.append(f"{trace.dropped:,} events were dropped while the program ran")
    if form == "perfetto":
        from ioweir.exports import perfetto  # noqa: PLC0415

        if not trace.event_count:
            raise IoweirError(
                f"'{directory}' has no events: perfetto shows nothing else (parquet and csv have its sums)"
            )
        perfetto.write(trace, output, progress)
    else:
        from ioweir.exports import tables  # noqa: PLC0415 (pyarrow)

        made.counts = (tables.parquet if form == "parquet" else tables.csv)(trace, output, progress)
    return made


def to_text(made: Exported) -> list[str]:
    """What there is now, and what it lacks."""
    counts = f", {made.counts:,} {plural('row', made.counts)} of sums" if made.counts else ""
    lines = [f"{made.output}: {made.events:,} {plural('event', made.events)}{counts}"]
    return [*lines, *(f"PARTIAL: {why}" for why in made.partial)]
