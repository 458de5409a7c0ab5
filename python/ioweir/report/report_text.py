"""The report in words and tables. The first lines answer "where did the time go"; figures come from figures.py."""

from __future__ import annotations

import os
import re
from contextlib import contextmanager
from io import StringIO
from typing import IO, TYPE_CHECKING

from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ioweir.base import color, plain_text
from ioweir.base.plain_text import raw
from ioweir.base.spec_names import DATA_OPS, IO_LAYERS, LAYERS, MPI_IO
from ioweir.base.units import bounds, number_list, percent, plural, rate, seconds, size
from ioweir.report import chosen, file_table, first_lines, inside_text, verification, weighed
from ioweir.report.model import Data, Moved, PassedThrough, RankLocks

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ioweir.report.model import Calls, Decomposition, EngineFile, FileLocks, Noted, Plan, Report, Where

FILES_SHOWN = 10
SITES_SHOWN = 15
RANKS_SHOWN = 5
SIZES_SHOWN = 4
STEPS_SHOWN = 5
"""Below `ioweir run`; the report has all."""
WORTH = 0.01
"""The share of a run from which waiting is told of."""
RUNS_SHOWN = 8
"""How many runs of rank numbers a list shows."""
_PLAIN_WIDTH = 160
_PLAIN_HEIGHT = 25
_GAP = 2
"""Blanks between columns."""


@contextmanager
def console_for(stream: IO[str]) -> Iterator[Console]:
    """A console that never cuts figures off: as wide as the terminal, or wide and plain where there is none.

    Coloured on terminals, or as `--color` says.
    """
    if stream.isatty():
        # Colours are written by escape sequences; what stands in the text has been made harmless before.
        kind = color.on_terminal()
        yield Console(file=raw(stream), highlight=False, emoji=False, no_color=color.no_color(), color_system=kind)
        return
    # Tables are padded with blanks; into a file or a log they go without those.
    lines = StringIO()
    columns = os.environ.get("COLUMNS", "")
    width = int(columns) if re.fullmatch("[0-9]{1,4}", columns) else 0
    # With a height as well Rich does not look at the environment, where it takes "²" for a number.
    wide = max(width, _PLAIN_WIDTH)
    yield Console(
        file=lines, highlight=False, emoji=False, width=wide, height=_PLAIN_HEIGHT,
        color_system="standard" if color.always() else None, force_terminal=color.always(), no_color=color.no_color(),
    )  # fmt: skip
    text = "".join(f"{line.rstrip()}\n" for line in lines.getvalue().splitlines())
    if color.always():
        plain_text.write_painted(stream, text)
    else:
        stream.write(text)


def say(console: Console, text: str, style: str | None = None) -> None:
    """Print prose: never folded by us, so that a log line stays one line; markup in it means nothing."""
    console.print(escape(plain_text.line(text)), style=style, soft_wrap=True)


def write(report: Report, stream: IO[str]) -> None:
    """Print the whole report."""
    with console_for(stream) as console:
        print_report(report, console)


def print_report(report: Report, console: Console) -> None:
    """Print the whole report to a console."""
    for line in headline(report):
        say(console, line)
    _print_warnings(report, console)
    if report.steps:
        _title(console, "Programs of the script, one after the other; all else is of all of them together")
        for line in step_lines(report):
            say(console, line)
    _print_layers(report, console)
    for title, lines in inside_text.sections(report):
        _title(console, title)
        for line in lines:
            say(console, f"  {line}")
    _print_locks(report, console)
    _print_files(report, console)
    _print_call_sites(report, console)
    _print_origins(report, console)
    _print_plan(report, console)
    _print_late_ends(report, console)
    _print_not_counted(report, console)
    _print_definitions(report, console)


def headline(report: Report) -> list[str]:
    """What ran, and where its time went."""
    io, unit = report.io, report.io.unit
    count = report.ranks or report.processes
    who = f"{count} {plural(unit, count)}"
    code = report.exit_code
    ended = f"signal {report.signal}" if report.signal else f"exit code {'unknown' if code is None else code}"
    on = f", {len(report.hosts)} nodes" if len(report.hosts) > 1 else ""
    lines = [
        f"{report.program or 'unknown program'}: {who}{on}, {seconds(report.wall_s)}, {ended}, {report.events:,} events"
    ]
    lines += first_lines.lines(report)
    if not io.where:
        return [*lines, _nothing_seen(report)]
    mean, share = io.mean_s, io.share_of_wall
    lines.append(
        f"I/O took {seconds(mean)} of {seconds(report.wall_s)} on an average {unit}"
        + (f" ({100 * share:.0f} % of the run)" if share is not None else "")
        + f": {_where(io.where, mean)}"
    )
    if io.slowest is not None and count > 1:
        # Of one that an average hides: helpers and shells that do next to nothing, or one rank that does all.
        much = f" ({percent(io.max_s, report.wall_s)} of the run)" if io.max_s > 2 * mean else ""
        lines.append(f"Longest in I/O: {unit} {io.slowest} with {seconds(io.max_s)}{much}{_late(report)}.")
    if io.mpi_waiting_s >= WORTH * report.wall_s:
        lines.append(
            f"Waiting in MPI outside of I/O: {seconds(io.mpi_waiting_s)} on an average {unit} "
            f"({percent(io.mpi_waiting_s, report.wall_s)} of the run)."
        )
    lines.extend(_storage_lines(report, count))
    return lines


def step_lines(report: Report) -> list[str]:
    """A line for each MPI program of a script."""
    return [
        f"  {number}. {step.program or 'unknown program'}: {step.ranks} {plural('rank', step.ranks)}, "
        f"{seconds(step.wall_s)} from {seconds(step.begin_s)} on; I/O {seconds(step.io.mean_s)}"
        + (
            f" ({percent(step.io.mean_s, step.wall_s)}): {_where(step.io.where, step.io.mean_s)}"
            if step.io.where
            else ""
        )
        for number, step in enumerate(report.steps, 1)
    ]


def _late(report: Report) -> str:
    """That the others waited for the rank that took longest, or that all waited in turns."""
    io = report.io
    if io.waiting_s < 0.05 * io.mean_s:
        return ""
    of = f"{io.collective_calls:,} collective {plural('call', io.collective_calls)}"
    own = next((late for late in io.late if late.rank == io.slowest), None)
    if own is None or own.time_s < 0.5 * io.max_s:
        return f"; {seconds(io.waiting_s)} of an average rank's I/O is waiting for the last one to come to {of}"
    return (
        f": it came last to {own.calls:,} of {of}, and the others waited {seconds(own.time_s)} for it in them "
        f"({seconds(io.waiting_s)} of the I/O of an average rank is such waiting)"
    )


def summary(report: Report) -> list[str]:
    """What ran, what has to be known of it, and how long it was in I/O: what stands above the findings of a run."""
    known = 1 + len(first_lines.lines(report))
    return [*headline(report)[: known + 1], *step_lines(report)[:STEPS_SHOWN], *warnings(report)]


def _nothing_seen(report: Report) -> str:
    if report.damage or report.dropped:
        return "No file I/O was seen in what was recorded and could be read."
    missing = [layer for layer in unrecorded(report) if layer in IO_LAYERS]
    return (
        f"No file I/O was seen; calls of {', '.join(missing)} were not recorded."
        if missing
        else "No file I/O was seen."
    )


def unrecorded(report: Report) -> list[str]:
    """The layers whose calls were not recorded (--layers)."""
    return [layer for layer in LAYERS if layer not in report.layers_recorded]


def _where(kinds: Sequence[Where], total: float) -> str:
    shown = [kind for kind in kinds if kind.mean_s >= 0.01 * total][:4] or list(kinds[:1])
    words = [f"{kind.layer} {kind.op} {seconds(kind.mean_s)}" for kind in shown]
    rest = sum(kind.mean_s for kind in kinds) - sum(kind.mean_s for kind in shown)
    if len(kinds) > len(shown):
        words.append(f"other calls {seconds(rest)}")
    return ", ".join(words) + "."


def _storage_lines(report: Report, count: int) -> Iterable[str]:
    unit = report.io.unit
    for op, verb in (("write", "wrote to"), ("read", "read from")):
        touched = report.storage[op]
        slowest = touched.slowest
        if slowest is not None:
            yield (
                f"Storage: {_who(touched.ranks, unit, count)} {verb} it; slowest {unit} {slowest.rank}: "
                f"{seconds(slowest.time_s)} for {size(slowest.bytes)} (mean {seconds(slowest.mean_time_s)})."
            )
        if 0 < len(touched.aggregators) < count:
            yield (
                f"Aggregators: {_who(touched.aggregators, unit, count)} did the storage {op}s of collective MPI-IO "
                "calls for all."
            )
        if touched.stdio_ranks:
            through = {"write": "wrote", "read": "read"}[op]
            yield f"STDIO: {_who(touched.stdio_ranks, unit, count)} {through} through FILE streams."


def _who(numbers: Sequence[int], unit: str, count: int) -> str:
    if len(numbers) == count > 1:
        return f"all {count} {plural(unit, count)}"
    return number_list(numbers, unit, RUNS_SHOWN) + (f" (of {count})" if count > 1 else "")


def warnings(report: Report) -> list[str]:
    """What is missing, and what ioweir has to say besides."""
    lines = []
    if report.partial:
        lines.append("PARTIAL: every figure is of what was recorded only, because:")
        lines += [f"  - {reason}" for reason in report.partial_reasons]
    lines.append(f"Dropped events: {report.dropped}.")
    return lines + [f"Note: {line}" for line in report.messages]


def _print_warnings(report: Report, console: Console) -> None:
    for line in warnings(report):
        say(console, line, "bold yellow" if line.startswith("PARTIAL") else None)


def _title(console: Console, text: str) -> None:
    console.print()
    say(console, text, "bold")


class _Table:
    """Rows of text under column names. Too wide for the terminal, it is printed as several tables, one below the other.

    The first `names` columns are words and come again in each of them; figures are never folded or cut off.
    """

    def __init__(self, columns: Sequence[str], names: int = 2) -> None:
        self._columns, self._names = list(columns), names
        self._rows: list[Sequence[str]] = []

    def add(self, *cells: str) -> None:
        """Add a row."""
        self._rows.append([plain_text.line(cell) for cell in cells])

    def __bool__(self) -> bool:
        return bool(self._rows)

    def print(self, console: Console) -> None:
        """Print it in as many parts as the width asks for."""
        used = [at for at in range(len(self._columns)) if at < self._names or any(row[at] for row in self._rows)]
        widths = [max(cell_len(cell) for cell in (self._columns[at], *(row[at] for row in self._rows))) for at in used]
        room = max(console.width - sum(min(width, console.width // 2) + _GAP for width in widths[: self._names]), 1)
        parts: list[list[int]] = [[]]
        left = room
        for at, width in zip(used[self._names :], widths[self._names :], strict=True):
            if parts[-1] and width > left:
                parts.append([])
                left = room
            parts[-1].append(at)
            left -= width + _GAP
        for part in parts:
            self._print_part(console, [*range(self._names), *part])

    def _print_part(self, console: Console, columns: Sequence[int]) -> None:
        table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0))
        for at in columns:
            word = at < self._names
            table.add_column(
                self._columns[at], justify="left" if word else "right", no_wrap=not word, overflow="fold",
                max_width=max(console.width // 2, 1) if word and len(columns) > self._names else None,
            )  # fmt: skip
        for row in self._rows:
            table.add_row(*(escape(row[at]) for at in columns))
        console.print(table)


def _occurs(figures: Calls | Decomposition) -> bool:
    """Whether there was any call, or a completion of one that was begun elsewhere."""
    return bool(figures.calls or figures.time_s)


def _print_layers(report: Report, console: Console) -> None:
    data = _Table(["layer", "", "bytes", "calls", "time (sum)", "slowest", "perceived", "effective", "span bandwidth"])
    other = _Table(["layer", "", "calls", "failed", "time (sum)", "slowest", "longest call"])
    sizes = _Table(["layer", "", "sizes of calls, most frequent first"], names=3)
    unit = report.io.unit
    for layer, ops in report.layers.items():
        for op, row in ops.items():
            if not _occurs(row):
                continue
            worst = report.slowest.get(layer, {}).get(op)
            slowest = f"{unit} {worst.rank}: {seconds(worst.time_s)}" if worst is not None else "-"
            if isinstance(row, Data):
                data.add(
                    layer, op, size(row.bytes), f"{row.calls:,}", seconds(row.time_s), slowest,
                    bounds(row.perceived_bytes_per_s), rate(row.effective_bytes_per_s),
                    rate(row.span_bytes_per_s),
                )  # fmt: skip
                sizes.add(layer, op, _sizes(row))
            else:
                other.add(
                    layer, op, f"{row.calls:,}", str(row.failed or ""), seconds(row.time_s), slowest,
                    seconds(row.longest_s),
                )  # fmt: skip
    for title, table in ((f"Data, times summed over {plural(unit, 2)}", data), ("", sizes), ("Other calls", other)):
        if table:
            if title:
                _title(console, title)
            else:
                console.print()
            table.print(console)


def _sizes(row: Data) -> str:
    """The sizes that most calls have. Example: {"0": 1, "64": 9}, all of 100 B -> "100 B 90 %, 0 B 10 %"."""
    histogram = row.sizes
    total = sum(histogram.values())
    order = sorted(histogram.items(), key=lambda item: (-item[1], int(item[0])))
    words = [f"{_range(row, key)} {percent(calls, total)}" for key, calls in order[:SIZES_SHOWN]]
    rest = sum(calls for _, calls in order[SIZES_SHOWN:])
    return ", ".join([*words, f"others {percent(rest, total)}"] if rest else words)


def _range(row: Data, key: str) -> str:
    if key not in row.size_ranges:
        return f"from {size(int(key))}"  # a bin of another tool: what lies in it is not known
    least, most = row.size_ranges[key]
    return size(least) if size(least) == size(most) else f"{size(least)} to {size(most)}"


def _print_locks(report: Report, console: Console) -> None:
    locks = report.locks
    longest = locks.longest
    if longest is None:
        return
    unit = report.io.unit
    _title(console, f"Waiting for locks: {seconds(locks.time_s)} in {locks.calls:,} calls")
    say(
        console,
        f"  longest: {seconds(longest.time_s)}, {unit} {longest.rank} on {longest.path}, "
        f"{seconds(longest.start_s)} after the start",
    )
    groups: tuple[tuple[str, str, Sequence[RankLocks | FileLocks]], ...] = (
        (unit, plural(unit, 2), locks.by_rank),
        ("file", "files", locks.by_file),
    )
    for name, words, rows in groups:
        if len(rows) < 2:
            continue
        table = _Table([name, "calls", "failed", "time", "longest"], names=1)
        for row in rows[:RANKS_SHOWN]:
            table.add(
                str(row.rank) if isinstance(row, RankLocks) else row.path, f"{row.calls:,}", str(row.failed or ""),
                seconds(row.time_s), seconds(row.longest_s),
            )  # fmt: skip
        table.print(console)
        if len(rows) > RANKS_SHOWN:
            rest = rows[RANKS_SHOWN:]
            say(
                console,
                f"  and {len(rest):,} more {words}: {sum(row.calls for row in rest):,} calls, "
                f"{seconds(sum(row.time_s for row in rest))}",
            )


def _print_files(report: Report, console: Console) -> None:
    groups = file_table.groups(report)
    if not groups:
        return
    shown = f", {FILES_SHOWN} of {len(groups):,} rows" if len(groups) > FILES_SHOWN else ""
    _title(console, f"Files, most time in all first{shown}")
    table = _Table(["file", "in all", "layer", "", "bytes", "calls", "time (sum)", "perceived", "effective"], names=4)
    for group in groups[:FILES_SHOWN]:
        cells = [group.name, seconds(group.time_s)]
        for layer, op, figures in file_table.rows(group, report):
            data = figures if isinstance(figures, Data) else None
            table.add(
                *cells, layer, op, size(data.bytes) if data else "", f"{figures.calls:,}", seconds(figures.time_s),
                bounds(data.perceived_bytes_per_s) if data else "", rate(data.effective_bytes_per_s) if data else "",
            )  # fmt: skip
            cells = ["", ""]
    table.print(console)
    rest = groups[FILES_SHOWN:]
    if rest:
        files = sum(len(group.files) for group in rest)
        moved = f"{size(sum(group.moved('read') for group in rest))} read and "
        moved += f"{size(sum(group.moved('write') for group in rest))} written"
        say(console, f"  and {files:,} more {plural('file', files)}: {moved} (--json lists all)")


_ORIGIN_WORDS = {
    "application": "the program itself",
    "mpi_library": "the MPI library",
    "engine": "ioweir's engine",
}


def _print_call_sites(report: Report, console: Console) -> None:
    rows = report.call_sites
    if not rows:
        return
    _title(console, "Call sites: the innermost line of the program above each call, its time summed over ranks")
    table = _Table(["where", "layer", "", "bytes", "calls", "time"], names=3)
    for row in rows[:SITES_SHOWN]:
        moved = size(row.bytes) if row.op in DATA_OPS else ""
        table.add(row.where, row.layer, row.op, moved, f"{row.calls:,}", seconds(row.time_s))
    table.print(console)
    if len(rows) > SITES_SHOWN:
        say(console, f"  and {len(rows) - SITES_SHOWN:,} more (--json lists all, with the calls above each)")


def _print_origins(report: Report, console: Console) -> None:
    table = _Table(["", "written", "calls", "time", "read", "calls", "time", "locks", "time"], names=1)
    for origin, ops in report.origins.items():
        if any(row.calls for row in ops.values()):
            cells: list[str] = []
            for row in (ops[op] for op in ("write", "read", "lock")):
                cells += [size(row.bytes)] if isinstance(row, Moved) else []
                cells += [f"{row.calls:,}", seconds(row.time_s)]
            table.add(_ORIGIN_WORDS.get(origin, origin), *cells)
    if table:
        _title(console, "Who made the POSIX calls")
        table.print(console)


def plan_lines(plan: Plan) -> list[str]:
    """What a plan did, a line for all files that it did the same to."""
    lines: list[str] = []
    noted: tuple[tuple[str, Sequence[Noted]], ...] = (
        ("applied", plan.applied),
        ("passed through", plan.passed_through),
    )
    for word, all_rows in noted:
        groups: dict[str, list[Noted]] = {}
        for row in all_rows:
            groups.setdefault(row.text, []).append(row)
        for text, rows in groups.items():
            calls = sum(row.calls for row in rows if isinstance(row, PassedThrough))
            counted = f", {calls:,} {plural('call', calls)}" if calls else ""
            lines.append(f"{word}: {text} ({_some([row.path for row in rows])}{counted})")
    if plan.engine:
        moved = sum(row.bytes for row in plan.engine)
        lines.append(f"engine: moved {size(moved)} ({_some([row.path for row in plan.engine])})")
        if alone := [row for row in plan.engine if row.alone_by_choice]:
            calls = round(sum(row.alone_by_choice / row.ranks for row in alone))
            lines.append(f"engine: each rank moved its own bytes in {calls:,} collective {plural('call', calls)}")
        if together := [row for row in plan.engine if row.exchanges]:
            lines.append(_exchange_line(together))
        if behind := [row for row in plan.engine if row.handed_bytes]:
            lines.append(_behind_line(behind))
    return lines


def _exchange_line(rows: list[EngineFile]) -> str:
    """Of files whose collective calls went through aggregators; `rounds` and `exchanges` are counted by every rank."""
    calls = round(sum(row.exchanges / row.ranks for row in rows))
    rounds = round(sum(row.rounds / row.ranks for row in rows))
    ranks = max(row.ranks for row in rows)
    exchange = seconds(sum(row.exchange_s for row in rows) / ranks)
    storage = seconds(sum(row.storage_s for row in rows) / ranks)
    work = sum(row.exchange_processor_s for row in rows) / ranks  # 0: a trace of an earlier version
    packets, sent = sum(row.messages for row in rows), sum(row.sent_bytes for row in rows)
    apart = round(sum(row.in_subgroups / row.ranks for row in rows))
    return (
        f"exchange: {calls:,} collective {plural('call', calls)} in {rounds:,} {plural('round', rounds)}; "
        f"mean of ranks {exchange} exchanging and waiting"
        + (f" ({seconds(work)} of it on the processor)" if work > 0 else "")
        + f", {storage} in storage; "
        f"{packets:,} {plural('packet', packets)} of together {size(sent)} between nodes"
        + (f"; {apart:,} {plural('call', calls)} in subgroups of the ranks" if apart else "")
    )


def _behind_line(rows: list[EngineFile]) -> str:
    """Of files that were written behind, with the two bandwidths of rbIO (Liu et al.): of workers and of storage."""
    handed = sum(row.handed_bytes for row in rows)
    hand = sum(row.hand_s / row.ranks for row in rows)
    writer = sum(row.writer_s for row in rows)
    waits, waited = sum(row.room_waits for row in rows), sum(row.room_wait_s for row in rows)
    perceived, actual = (rate(handed / spent if spent > 0 else None) for spent in (hand, writer))
    return (
        f"write-behind: handed over {size(handed)} in {seconds(hand)} (mean of ranks; perceived {perceived}); slowest "
        f"writer {seconds(writer)} (actual {actual}); {waits:,} {plural('wait', waits)} for room, "
        f"{seconds(waited)}"
    )


def _some(paths: Sequence[str]) -> str:
    """A few of many names. Example: four paths -> "a, b and 2 more files"."""
    names = list(dict.fromkeys(path or "(unknown file)" for path in paths))
    if len(names) <= 2:
        return " and ".join(names)
    return f"{names[0]}, {names[1]} and {len(names) - 2} more {plural('file', len(names) - 2)}"


def _print_plan(report: Report, console: Console) -> None:
    plan = report.plan
    if not (plan.file or plan.applied or plan.passed_through or plan.engine):
        return
    _title(console, f"Plan {plan.file or ''}".rstrip())
    for line in plan_lines(plan):
        say(console, f"  {line}")
    for line in (
        *first_lines.plan_lines(plan),
        *weighed.lines(plan.weighed),
        *chosen.lines(plan.chosen),
        *verification.lines(plan.verify),
    ):
        say(console, f"  {line}")
    back = report.verification
    if back.calls:
        say(
            console,
            f"  verification read back {size(back.bytes)} in {seconds(back.time_s)} inside of MPI-IO calls; "
            "these reads are in no figure, the longer calls are",
        )


def _print_late_ends(report: Report, console: Console) -> None:
    late = report.late_ends
    if not late.calls:
        return
    files = sorted(late.files.items(), key=lambda row: (-row[1], row[0]))
    shown = ", ".join(f"{path} ({calls:,})" for path, calls in files[:FILES_SHOWN])
    more = f" and {len(files) - FILES_SHOWN} more files" if len(files) > FILES_SHOWN else ""
    say(
        console,
        f"Upper bounds: of {late.calls:,} io_uring {plural('request', late.calls)} only a time is known by which "
        f"they had ended, since the program took them from the ring by itself: {shown}{more}.",
    )


def _print_not_counted(report: Report, console: Console) -> None:
    rows, runtime = report.not_counted, report.runtime_files
    if not rows and not runtime.files:
        return
    _title(console, "Not counted above")
    for row in rows[:FILES_SHOWN]:
        images = f"{row.images} times, " if row.images > 1 else ""
        say(
            console,
            f"  {row.executable or '(unknown)'}: {images}{row.reason}; {row.events:,} events, {size(row.bytes)}",
        )
    if len(rows) > FILES_SHOWN:
        say(console, f"  and {len(rows) - FILES_SHOWN} more (--json lists all)")
    if runtime.files:
        say(
            console,
            f"  the MPI runtime's own files (shared memory, sessions): {runtime.files} "
            f"{plural('file', runtime.files)}, {runtime.events:,} events, {size(runtime.bytes)}",
        )


def _print_definitions(report: Report, console: Console) -> None:
    if not report.io.where:
        return
    _title(console, "Definitions")
    for name, text in report.definitions.items():
        if name in _OF_MPI_IO and not any(_occurs(row) for row in report.layers[MPI_IO].values()):
            continue
        say(console, f"  {name}: {text}")


_OF_MPI_IO = ("other, of an MPI-IO call",)
"""Definitions that a run without MPI-IO has no use for."""
