"""`ioweir timeline`: which file, storage target or rank was written (or read) when, from a trace.

After Son et al. 2016, figures 10 and 12: how even the targets' and the writers' times are. Here: what is counted and
spread over time, as figures and as text. Not here: the picture (timeline_picture.py), sums over a run (figures.py).
"""

from __future__ import annotations

import re
import statistics
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ioweir.base import columns, picture
from ioweir.base.container_parts import part_of
from ioweir.base.spec_names import POSIX, STDIO
from ioweir.base.units import number_list, plural, seconds, size
from ioweir.errors import EXIT_USAGE, IoweirError
from ioweir.report import first_lines, lacking, timeline_picture
from ioweir.report.figures import build
from ioweir.trace import attribute
from ioweir.trace.reader import FLAG_FAILED, load
from ioweir.trace.runtime_files import is_runtime_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy as np
    import numpy.typing as npt

    from ioweir.trace.reader import Events, Trace

    Figures = npt.NDArray[np.float64]

BY: Final = ("file", "target", "rank")
OPS: Final = {"write": ("write", "sync"), "read": ("read",)}
"""What counts: of writes also the waiting for the storage (fsync and its like)."""
BINS: Final = 200
MOST_BINS: Final = 10_000
TEXT_BINS: Final = 40
NAME_WIDTH: Final = 36
MOST_ROWS: Final = 64
SHADES: Final = " .:-=+*#%@"
_MOST_DIGITS: Final = 255
_TRACER: Final = 3
"""Origin of calls that ioweir makes to verify; they are no I/O of the run."""


@dataclass(frozen=True)
class Options:
    """The command line's."""

    op: str = "write"
    by: str = "file"
    bins: int = BINS
    picture: Path | None = None


@dataclass
class Row:
    """One file, target or rank. Times are seconds; `first_s` and `last_s` are counted from `begin_s`.

    `busy`, `moved`: for each bin the share of its time that was spent in calls (1 for each call at a time), and bytes.
    """

    name: str
    bytes: int
    calls: int
    time_s: float
    first_s: float | None
    last_s: float | None
    ranks: list[int]
    busy: list[float]
    moved: list[float]


@dataclass
class LeftOut:
    """Rows that are not shown, and their bytes."""

    rows: int
    bytes: int


@dataclass
class Timeline:
    """Everything that `ioweir timeline --json` prints. Times are seconds; `mean_time_s` is of the time in calls."""

    trace: str
    op: str
    by: str
    ranks_are: str
    """ "rank", or without MPI "process"."""
    bins: int
    bin_s: float
    begin_s: float
    end_s: float
    rows: list[Row]
    left_out: LeftOut
    mean_time_s: float | None
    deviation_s: float | None
    layers_recorded: list[str]
    dropped: int
    damage: list[str]
    unreadable: list[str]
    first_lines: list[str] = field(default_factory=list)
    picture: str | None = None


@dataclass
class _Sum:
    """A row in the making."""

    name: str
    bytes: int = 0
    calls: int = 0
    time_ns: int = 0
    first_ns: int = 0
    last_ns: int = 0
    ranks: set[int] = field(default_factory=set)
    idle: bool = False
    """A rank that made no such call."""


def names_of(files: list[str], by: str) -> list[str]:
    """Of each file, the row that it belongs to."""
    parts = [part_of(file) for file in files]
    if by == "target":
        return [folder or "/" for folder, _, _ in parts]
    several = len({identity for _, identity, _ in parts if identity}) > 1
    return [f"{identity[:8]}: {name}" if identity and several else name for _, identity, name in parts]


class _Selection:
    """Which events count, and which row each belongs to."""

    def __init__(self, trace: Trace, options: Options) -> None:
        import numpy as np  # noqa: PLC0415 (only this command needs it)

        self._trace = trace
        self._by_rank = options.by == "rank"
        who = attribute.attribute_processes(trace.processes)
        self._counted = np.array([role.counted for role in who.roles] or [False])
        self._unit = np.array(list(who.units) or [-1])
        self._unit_names = who.unit_names
        self.noun = "rank" if who.has_ranks else "process"
        files, file_of_path = trace.files
        runtime = np.array([is_runtime_file(name) for name in files])
        wanted = np.zeros(max((f.id for f in trace.functions), default=0) + 1, dtype=bool)
        moves = np.zeros_like(wanted)
        for function in trace.functions:
            storage = function.layer in (POSIX, STDIO) and not function.late
            wanted[function.id] = storage and function.op in OPS[options.op]
            moves[function.id] = function.op == options.op and not function.completes
        self._wanted, self._moves = wanted, moves
        self._path_counts = ~runtime[np.array(file_of_path)]
        if self._by_rank:
            self.names = [f"{self.noun} {name}" for name in who.unit_names]
        else:
            names = names_of(files, options.by)
            numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
            self.names = list(numbers)
            self._row_of_path = np.array([numbers[names[file]] for file in file_of_path])

    def of(self, events: Events) -> tuple[Any, ...]:
        """Rows, starts, durations, bytes, calls (0 or 1) and ranks of the events that count."""
        here = (
            self._counted[events.process] & self._wanted[events.function] & self._path_counts[events.path]
            & (events.flags & FLAG_FAILED == 0) & (events.origin != _TRACER)
        )  # fmt: skip
        units = self._unit[events.process[here]]
        rows = units if self._by_rank else self._row_of_path[events.path[here]]
        moves = self._moves[events.function[here]]
        return rows, events.start_ns[here], events.duration_ns[here], events.bytes[here] * moves, moves, units

    def batches(self) -> Iterator[tuple[Any, ...]]:
        """All of them, so many at a time."""
        for events in self._trace.batches():
            chosen = self.of(events)
            if len(chosen[0]):
                yield chosen

    def ranks(self) -> dict[int, int]:
        """Where rows are ranks: of each row, its rank."""
        return {unit: self.rank(unit) for unit in range(len(self._unit_names))} if self._by_rank else {}

    def rank(self, unit: int) -> int:
        """As the program knows it."""
        return int(self._unit_names[unit])


def _sums(selection: _Selection) -> dict[int, _Sum]:
    """The rows that occur; of ranks all, also those that made no such call."""
    import numpy as np  # noqa: PLC0415

    found: dict[int, _Sum] = {}
    idle = selection.ranks()
    for rows, starts, durations, amounts, moves, units in selection.batches():
        order = np.argsort(rows, kind="stable")
        numbers, edges = np.unique(rows[order], return_index=True)
        columns = (
            np.minimum.reduceat(starts[order], edges),
            np.maximum.reduceat((starts + durations)[order], edges),
            np.add.reduceat(amounts[order], edges),
            np.add.reduceat(moves[order].astype(np.int64), edges),
            np.add.reduceat(durations[order], edges),
        )
        for number, first, last, amount, calls, time in zip(*(map(int, c) for c in (numbers, *columns)), strict=True):
            row = found.setdefault(number, _Sum(selection.names[number], first_ns=first, last_ns=last))
            row.bytes, row.calls, row.time_ns = row.bytes + amount, row.calls + calls, row.time_ns + time
            row.first_ns, row.last_ns = min(row.first_ns, first), max(row.last_ns, last)
        for number, unit in np.unique(np.stack([rows, units]), axis=1).T:
            found[int(number)].ranks.add(selection.rank(int(unit)))
    if found:
        for number, rank in idle.items():
            found.setdefault(number, _Sum(selection.names[number], ranks={rank}, idle=True))
    return found


def _spread(
    selection: _Selection, places: dict[int, int], begin_ns: int, bin_ns: float, bins: int
) -> tuple[Figures, Figures]:
    """Nanoseconds in calls, and bytes, of each row in each bin; a call's bytes evenly over its time."""
    import numpy as np  # noqa: PLC0415

    time = np.zeros((len(places), bins))
    moved = np.zeros((len(places), bins))
    place_of = np.full(max(places) + 1, -1)
    for number, at_row in places.items():
        place_of[number] = at_row
    for rows, starts, durations, amounts, _, _ in selection.batches():
        known = rows < len(place_of)
        place = np.where(known, place_of[np.where(known, rows, 0)], -1)
        shown = place >= 0
        place, start = place[shown], (starts[shown] - begin_ns).astype(float)
        duration, amount = durations[shown].astype(float), amounts[shown].astype(float)
        end = start + duration
        first = np.clip((start / bin_ns).astype(int), 0, bins - 1)
        last = np.clip((end / bin_ns).astype(int), 0, bins - 1)
        for step in range(int((last - first).max(initial=-1)) + 1):
            within = first + step <= last
            at = (first + step)[within]
            part = np.minimum(end[within], (at + 1) * bin_ns) - np.maximum(start[within], at * bin_ns)
            part = np.where(last[within] == first[within], duration[within], np.maximum(part, 0))
            share = np.divide(part, duration[within], out=np.ones_like(part), where=duration[within] > 0)
            np.add.at(time, (place[within], at), part)
            np.add.at(moved, (place[within], at), amount[within] * share)
    return time, moved


def timeline(directory: Path, options: Options) -> Timeline:
    """The figures as one object; draws the picture where one is wanted."""
    if options.by not in BY:
        raise IoweirError(f"--by {options.by}: one of {', '.join(BY)}", EXIT_USAGE)
    if options.op not in OPS:
        raise IoweirError(f"--op {options.op}: one of {', '.join(OPS)}", EXIT_USAGE)
    if not 1 <= options.bins <= MOST_BINS:
        raise IoweirError(f"--bins {options.bins}: 1 to {MOST_BINS} columns", EXIT_USAGE)
    picture.check_name("--picture", options.picture)
    trace = load(directory)
    result = of_trace(trace, options)
    result.first_lines = first_lines.lines(build(trace))
    if options.picture is not None:
        picture.save(options.picture, timeline_picture.chart(result))
        result.picture = str(options.picture)
    return result


def of_trace(trace: Trace, options: Options) -> Timeline:
    """The same of a trace that is open, without a picture."""
    trace.require_events(trace.directory, "timeline")
    selection = _Selection(trace, options)
    sums = _sums(selection)
    shown = sorted(sums, key=lambda number: (-sums[number].bytes, -sums[number].time_ns, sums[number].name))[:MOST_ROWS]
    shown.sort(key=lambda number: as_people_count(sums[number].name))
    active = [sums[number] for number in shown if not sums[number].idle]
    begin_ns = min((row.first_ns for row in active), default=0)
    end_ns = max((row.last_ns for row in active), default=0)
    bin_ns = max(end_ns - begin_ns, 1) / options.bins
    rows = []
    if shown:
        time, moved = _spread(
            selection, {number: at for at, number in enumerate(shown)}, begin_ns, bin_ns, options.bins
        )
        for at, number in enumerate(shown):
            row = sums[number]
            rows.append(Row(
                row.name, row.bytes, row.calls, row.time_ns / 1e9,
                None if row.idle else (row.first_ns - begin_ns) / 1e9,
                None if row.idle else (row.last_ns - begin_ns) / 1e9,
                sorted(row.ranks), (time[at] / bin_ns).tolist(), moved[at].tolist(),
            ))  # fmt: skip
    left_out = [sums[number] for number in sums if number not in set(shown)]
    # Of ranks all count; files and targets that moved nothing are not meant to be even with the others.
    mean_s, deviation_s = evenness(row.time_ns / 1e9 for row in sums.values() if row.bytes or options.by == "rank")
    return Timeline(
        trace=trace.directory, op=options.op, by=options.by, ranks_are=selection.noun, bins=options.bins,
        bin_s=bin_ns / 1e9, begin_s=begin_ns / 1e9, end_s=end_ns / 1e9, rows=rows,
        left_out=LeftOut(len(left_out), sum(row.bytes for row in left_out)), mean_time_s=mean_s,
        deviation_s=deviation_s, layers_recorded=lacking.recorded_layers(trace), dropped=trace.dropped,
        damage=list(trace.damage), unreadable=list(trace.unreadable),
    )  # fmt: skip


def evenness(times_s: Iterable[float]) -> tuple[float | None, float | None]:
    """Mean and standard deviation of the time in calls."""
    times = list(times_s)
    return statistics.mean(times) if times else None, statistics.stdev(times) if len(times) > 1 else None


def as_people_count(name: str) -> list[str | int]:
    """A key to sort names by. Example: "t10" -> ["t", 10, ""], so that it comes behind "t9"."""
    # Texts and numbers in turn, beginning with a text. Python reads no number of thousands of digits.
    return [int(part[-_MOST_DIGITS:]) if at % 2 else part for at, part in enumerate(re.split(r"(\d+)", name))]


# ------------------------------------------------------------------------------------------------------------- text


def to_text(result: Timeline) -> list[str]:
    """For a person: a line a row, darker where more of the time was spent in calls."""
    rows = result.rows
    first: list[str] = list(result.first_lines)
    verb = {"write": "written", "read": "read"}[result.op]
    if not rows:
        missing = [layer for layer in (POSIX, STDIO) if layer not in result.layers_recorded]
        unknown = f"; calls of {' and '.join(missing)} were not recorded (--layers)" if missing else ""
        return [*first, f"nothing was {verb} by calls of POSIX or STDIO{unknown}"]
    width = min(max(len(row.name) for row in rows), NAME_WIDTH)
    span = result.end_s - result.begin_s
    lines = [
        *first,
        f"{verb} by {result.by}, {seconds(span)} from left to right; darker: more of that time in calls",
    ]
    for row in rows:
        name = row.name if len(row.name) <= width else "..." + row.name[3 - width :]
        lines += columns.row(
            f"{name:<{width}} |{shades(row.busy)}|",
            f"{size(row.bytes):>10} in {row.calls} {plural('call', row.calls)}, {seconds(row.time_s)}, "
            f"{number_list(row.ranks, result.ranks_are, most=4)}",
            " ",
        )
    if result.left_out.rows:
        lines.append(f"... and {result.left_out.rows} more, {size(result.left_out.bytes)}")
    if result.mean_time_s is not None and result.deviation_s is not None:
        lines.append(
            f"time in calls: mean {seconds(result.mean_time_s)}, standard deviation {seconds(result.deviation_s)}"
            + (f" (of all {plural(result.ranks_are, 2)})" if result.by == "rank" else "")
        )
    if result.dropped or result.damage:
        lines.extend(f"PARTIAL: damaged: {line}" for line in result.damage)
        lines.append("the trace is not complete; ioweir report says more")
    if result.picture:
        lines.append(f"picture: {result.picture}")
    return lines


def shades(busy: list[float]) -> str:
    """So many letters, each of the mean of its part; anything above nothing is seen."""
    count = min(TEXT_BINS, len(busy))
    text = ""
    for at in range(count):
        part = busy[at * len(busy) // count : (at + 1) * len(busy) // count]
        mean = min(1.0, sum(part) / len(part))
        text += SHADES[0] if mean <= 0 else SHADES[max(1, round(mean * (len(SHADES) - 1)))]
    return text
