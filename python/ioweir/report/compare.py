"""`ioweir compare A B`: what changed from one run to another, in sentences and in figures.

Works on two reports (figures.py) and reads nothing else. One pair of runs is not a statistic, and the text says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Final

from ioweir.base.units import number_list, plural, rate, seconds, size
from ioweir.errors import EXIT_DIFFERENT, IoweirError
from ioweir.report import first_lines
from ioweir.report.figures import build
from ioweir.report.model import Data, WhereData
from ioweir.trace.reader import DATA_OPS, LAYERS, POSIX, load

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ioweir.report.model import Calls, Plan, Report

CAUTION: Final = (
    "One pair of runs is not a statistic: repeat both, interleaved, before believing a difference of less than a few "
    "times their scatter."
)
# Below this a difference of times says nothing: clock, scheduling and the file system's mood are of that size.
_NOTICEABLE_RATIO = 1.02
_NOTICEABLE_S = 1e-4


@dataclass
class Change:
    """One figure of both runs. `ratio` is before / after for times, after / before for everything else."""

    what: str
    unit: str
    before: float | None
    after: float | None
    ratio: float | None
    sentence: str


@dataclass
class Run:
    """What is told of each run. `storage`: by operation, the ranks that touched storage; times are seconds."""

    trace: str
    program: str
    command: list[str]
    ranks: int
    wall_s: float
    io_mean_s: float
    exit_code: int | None
    partial: bool
    storage: dict[str, list[int]]
    plan: Plan


@dataclass
class Comparison:
    """Everything that `ioweir compare --json` prints."""

    before: Run
    after: Run
    first_lines: list[str]
    warnings: list[str]
    changes: list[Change]
    caution: str


def compare_directories(before: Path, after: Path, force: bool = False) -> Comparison:
    """Read both traces and compare them."""
    return compare(build(load(before)), build(load(after)), force=force)


def compare(before: Report, after: Report, force: bool = False) -> Comparison:
    """What changed. Runs of different programs, and partial traces, are refused unless `force`."""
    warnings: list[str] = []
    if before.program != after.program:
        what = f"different programs: '{before.program}' in {before.trace}, '{after.program}' in {after.trace}"
        if not force:
            raise IoweirError(
                f"{what}. Their figures say nothing about each other; --force compares them", EXIT_DIFFERENT
            )
        warnings.append(what)
    partial = [
        f"the {name} trace is partial: {'; '.join(run.partial_reasons)}"
        for name, run in (("first", before), ("second", after))
        if run.partial
    ]
    if partial and not force:
        raise IoweirError(
            f"{'. And '.join(partial)}. Figures of what was recorded only say little about the runs; --force compares "
            "them",
            EXIT_DIFFERENT,
        )
    warnings.extend(partial)
    warnings.extend(_warnings(before, after))
    return Comparison(
        before=_run(before),
        after=_run(after),
        first_lines=list(_first_lines(before, after)),
        warnings=warnings,
        changes=list(_changes(before, after)),
        caution=CAUTION,
    )


def _first_lines(before: Report, after: Report) -> Iterator[str]:
    """What has to be known before any figure."""
    runs = (("First", before), ("Second", after))
    for name, run in runs:
        nothing = first_lines.moved_nothing(run.plan)
        if nothing is not None:
            yield f"The plan of the {name.lower()} run did nothing: {nothing}. No difference below is its doing."
    for name, run in runs:
        for line in first_lines.lines(run):
            if not line.startswith("PLAN NOT APPLIED"):
                yield f"{name} run: {line.lstrip()}"


def _warnings(before: Report, after: Report) -> Iterator[str]:
    if before.ranks != after.ranks:
        yield f"different numbers of ranks: {before.ranks} and {after.ranks}"
    for name, run in (("first", before), ("second", after)):
        if run.exit_code:
            yield f"the {name} run returned {run.exit_code}"
        if run.plan.verify.result == "mismatch":
            yield f"the {name} run FAILED its verification: it did not write what the program passed in"
    for name, run, other in (("first", before, after), ("second", after, before)):
        if run.verification.calls and not other.verification.calls:
            back = size(run.verification.bytes)
            yield (
                f"the {name} run verified what it wrote: its close calls read {back} back, and its wall and I/O time "
                "hold that"
            )
    if before.mpi_libraries != after.mpi_libraries:
        yield f"different MPI libraries: {', '.join(before.mpi_libraries)} and {', '.join(after.mpi_libraries)}"
    recorded = _recorded(before, after)
    for name, run in (("first", before), ("second", after)):
        missing = [layer for layer in LAYERS if layer not in run.layers_recorded]
        if missing:
            yield f"the {name} run recorded no calls of {', '.join(missing)} (--layers): their figures are left out"
    for op in DATA_OPS:
        first, second = (_outer_bytes(run, op) for run in (before, after))
        if first != second and len(recorded) == len(LAYERS):
            yield f"the programs did not {op} the same amount: {first:,} and {second:,} bytes"


def _recorded(before: Report, after: Report) -> list[str]:
    """The layers whose calls were recorded in both runs."""
    return [layer for layer in before.layers_recorded if layer in after.layers_recorded]


def _outer_bytes(run: Report, op: str) -> int:
    """Bytes that the program itself moved, by calls of whatever layer inside of no other."""
    return sum(row.bytes for row in run.io.where if row.op == op and isinstance(row, WhereData))


def _run(report: Report) -> Run:
    return Run(
        trace=report.trace,
        program=report.program,
        command=report.command,
        ranks=report.ranks,
        wall_s=report.wall_s,
        io_mean_s=report.io.mean_s,
        exit_code=report.exit_code,
        partial=report.partial,
        storage={op: report.storage[op].ranks for op in DATA_OPS},
        plan=report.plan,
    )


def _changes(before: Report, after: Report) -> Iterator[Change]:
    yield _time("wall time", before.wall_s, after.wall_s)
    unit = before.io.unit
    yield _time(f"I/O time of an average {unit}", before.io.mean_s, after.io.mean_s)
    yield _time(f"I/O time of the slowest {unit}", before.io.max_s, after.io.max_s)
    recorded = _recorded(before, after)
    for layer in recorded:
        for op, first in before.layers[layer].items():
            yield from _layer_changes(f"{layer} {op}", first, after.layers[layer][op])
    for op, words in (("write", "write to"), ("read", "read from")):
        touched = [len(run.storage[op].ranks) for run in (before, after)]
        if any(touched) and POSIX in recorded:
            yield _amount(f"{plural(unit, 2)} that {words} storage", "", *touched)


def _layer_changes(name: str, first: Calls, second: Calls) -> Iterator[Change]:
    if not first.calls and not second.calls:
        return
    yield _time(f"{name} time", first.time_s, second.time_s)
    yield _amount(f"{name} calls", "", first.calls, second.calls)
    if not isinstance(first, Data) or not isinstance(second, Data):
        return
    yield _amount(f"{name} bytes", "B", first.bytes, second.bytes)
    for kind, old, new in (
        ("perceived", first.perceived_bytes_per_s, second.perceived_bytes_per_s),
        ("effective", first.effective_bytes_per_s, second.effective_bytes_per_s),
        ("span", first.span_bytes_per_s, second.span_bytes_per_s),
    ):
        bounds = isinstance(old, list) or isinstance(new, list)
        for position, bound in enumerate(("lower bound", "upper bound") if bounds else ("",)):
            low = old[position] if isinstance(old, list) else old
            high = new[position] if isinstance(new, list) else new
            if low is not None or high is not None:
                label = f"{name} {kind} bandwidth" + (f" ({bound})" if bound else "")
                yield _amount(label, "B/s", low, high)


def _time(what: str, before: float, after: float) -> Change:

    ratio = before / after if after > 0 else None
    sentence = f"{what} {seconds(before)} -> {seconds(after)}: {_faster(before, after)}"
    return Change(what=what, unit="s", before=before, after=after, ratio=ratio, sentence=sentence)


def _faster(before: float, after: float) -> str:
    if before == after:
        return "unchanged"
    if after == 0:
        return "gone"
    if before == 0:
        return "new"
    if abs(before - after) < _NOTICEABLE_S or max(before, after) < _NOTICEABLE_RATIO * min(before, after):
        return "about the same"
    return f"{_factor(before / after)}x faster" if before > after else f"{_factor(after / before)}x slower"


def _factor(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}" if value < 1.1 or value >= 10 else f"{value:.2g}"


def _amount(what: str, unit: str, before: float | None, after: float | None) -> Change:

    def words(value: float | None) -> str:
        if value is None:
            return "none"
        return {"B": size, "B/s": rate}[unit](value) if unit else f"{value:,.0f}"

    ratio = after / before if before and after is not None else None
    if before == after:
        change = "unchanged"
    elif not before:
        change = "new"
    elif not after:
        change = "gone"
    else:
        change = f"{_factor(after / before)}x" if after > before else f"1/{_factor(before / after)}"
    sentence = f"{what} {words(before)} -> {words(after)}: {change}"
    return Change(what=what, unit=unit, before=before, after=after, ratio=ratio, sentence=sentence)


# -------------------------------------------------------------------------------------------------------------- text


def write(comparison: Comparison, stream: IO[str]) -> None:
    """Print what changed: times first, then how, then both runs' plans."""
    from ioweir.report.report_text import console_for, say  # noqa: PLC0415 (rich is not needed for --json)

    with console_for(stream) as console:
        changes = comparison.changes
        for line in comparison.first_lines:
            say(console, line, "bold yellow")
        for change in changes:
            if change.unit == "s":
                say(console, change.sentence)
        for warning in comparison.warnings:
            say(console, f"Warning: {warning}", "bold yellow")
        console.print()
        say(console, "Bandwidths, calls and bytes", "bold")
        for change in changes:
            if change.unit != "s":
                say(console, f"  {change.sentence}")
        for title, run in (("First run", comparison.before), ("Second run", comparison.after)):
            console.print()
            say(console, f"{title}: {run.trace}", "bold")
            for line in run_lines(run):
                say(console, f"  {line}")
        console.print()
        say(console, comparison.caution)


def run_lines(run: Run) -> list[str]:
    """What was special about a run: its command, its plan, what the engine did, who touched storage."""
    from ioweir.report.report_text import plan_lines  # noqa: PLC0415 (rich is not needed for --json)

    lines = [f"command: {' '.join(run.command)}"] if run.command else []
    plan = run.plan
    lines.append(f"plan: {plan.file}" if plan.file else "no plan")
    lines.extend(plan_lines(plan))
    lines.extend(first_lines.plan_lines(plan))
    if plan.verify.result:
        lines.append(f"verification: {plan.verify.result}")
    for op, word in (("write", "wrote to"), ("read", "read from")):
        if run.storage[op]:
            lines.append(f"{number_list(run.storage[op], 'rank' if run.ranks else 'process')} {word} storage")
    return lines
