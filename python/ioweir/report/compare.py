"""`ioweir compare A... --to B...`: what changed from some runs to others.

Works on reports (figures.py) and reads nothing else. Figures are medians of a side's runs; whether times differ is
noise.py's to say, how all of it is worded compare_text.py's. With one run a side no difference is claimed.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ioweir.base.units import plural, size
from ioweir.errors import EXIT_DIFFERENT, IoweirError
from ioweir.report import compare_words as words
from ioweir.report import first_lines
from ioweir.report.figures import build
from ioweir.report.model import Data, Report, WhereData
from ioweir.report.noise import Difference, difference, median
from ioweir.report.run_findings import findings_of
from ioweir.trace.reader import DATA_OPS, LAYERS, POSIX, load

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ioweir.report.model import Calls, Plan

CAUTION: Final = (
    "One pair of runs is not a statistic: repeat both, interleaved (ioweir compare A... --to B...), before believing a "
    "difference of less than a few times their scatter."
)
FEW: Final = "Of two runs a side an interval holds the truth less often than it says (91 of 100): make three."
_MOST_OF_ARGUMENTS: Final = 60
"""Characters of each side's."""


@dataclass
class Change:
    """One figure of both sides, each the median of its runs. `ratio` is before / after for times, else after / before.

    `low`, `high`: interval of a time's ratio, where there are several runs a side.
    """

    what: str
    unit: str
    before: float | None
    after: float | None
    ratio: float | None
    sentence: str
    low: float | None = None
    high: float | None = None


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
class Faults:
    """A finding on either side: in how many runs, and the median of its seconds in those."""

    code: str
    title: str
    before_runs: int
    after_runs: int
    before_s: float
    after_s: float


@dataclass
class FindingChanges:
    """Findings that most runs of one side have and most of the other have not, and those that stayed."""

    gone: list[Faults] = field(default_factory=list)
    new: list[Faults] = field(default_factory=list)
    stayed: list[Faults] = field(default_factory=list)


@dataclass
class Comparison:
    """Everything that `ioweir compare --json` prints. `before`, `after`: the run of median wall time of each side."""

    time: Difference
    """Of the wall time."""
    before: Run
    after: Run
    first_lines: list[str]
    warnings: list[str]
    changes: list[Change]
    findings: FindingChanges
    credited: bool
    """False where the plan of a side did nothing, so that no difference is its doing."""
    caution: str
    before_runs: list[Run]
    after_runs: list[Run]


def compare_directories(before: Path | Sequence[Path], after: Path | Sequence[Path], force: bool = False) -> Comparison:
    """Read all traces and compare them."""
    old, new = ([side] if isinstance(side, Path) else side for side in (before, after))
    return compare([_report(path) for path in old], [_report(path) for path in new], force=force)


def _report(directory: Path) -> Report:
    trace = load(directory)
    report = build(trace)
    report.findings = findings_of(trace, report).findings
    return report


def compare(before: Report | Sequence[Report], after: Report | Sequence[Report], force: bool = False) -> Comparison:
    """What changed. Runs of different programs, and partial traces, are refused unless `force`."""
    old = [before] if isinstance(before, Report) else list(before)
    new = [after] if isinstance(after, Report) else list(after)
    warnings = _refusals(old, new, force)
    warnings.extend(_warnings(old, new))
    time = difference([run.wall_s for run in old], [run.wall_s for run in new])
    nothing = [first_lines.moved_nothing(run.plan) is not None for run in (*old, *new)]
    return Comparison(
        time=time,
        before=_run(_middle(old)),
        after=_run(_middle(new)),
        first_lines=list(dict.fromkeys(_first_lines(old, new))),
        warnings=list(dict.fromkeys(warnings)),
        changes=_changes(old, new),
        findings=_findings(old, new),
        credited=not any(nothing),
        caution=CAUTION if min(len(old), len(new)) < 2 else FEW if min(len(old), len(new)) < 3 else "",
        before_runs=[_run(run) for run in old],
        after_runs=[_run(run) for run in new],
    )


def _middle(side: Sequence[Report]) -> Report:
    return sorted(side, key=lambda run: run.wall_s)[(len(side) - 1) // 2]


def _named(old: Sequence[Report], new: Sequence[Report]) -> Iterator[tuple[str, Report]]:
    """Every run with what it is called: "first" and "second" where there are two."""
    for name, side in (("first", old), ("second", new)):
        for number, run in enumerate(side, 1):
            yield (name if len(side) == 1 else f"{name} side's {number}."), run


def _refusals(old: Sequence[Report], new: Sequence[Report], force: bool) -> list[str]:
    """Why runs cannot be compared: an error, with `force` warnings."""
    warnings: list[str] = []
    one = old[0]
    for other in (*old[1:], *new):
        if other.program != one.program:
            what = f"different programs: '{one.program}' in {one.trace}, '{other.program}' in {other.trace}"
            if not force:
                raise IoweirError(
                    f"{what}. Their figures say nothing about each other; --force compares them", EXIT_DIFFERENT
                )
            warnings.append(what)
    partial = [
        f"the {name} trace is partial: {'; '.join(run.partial_reasons)}"
        for name, run in _named(old, new)
        if run.partial
    ]
    if partial and not force:
        raise IoweirError(
            f"{'. And '.join(partial)}. Figures of what was recorded only say little about the runs; --force compares "
            "them",
            EXIT_DIFFERENT,
        )
    return warnings + partial


def _first_lines(old: Sequence[Report], new: Sequence[Report]) -> Iterator[str]:
    """What has to be known before any figure."""
    for name, run in _named(old, new):
        nothing = first_lines.moved_nothing(run.plan)
        if nothing is not None:
            yield f"The plan of the {name} run did nothing: {nothing}. No difference below is its doing."
    said: dict[str, list[str]] = {}
    for name, run in _named(old, new):
        for line in first_lines.lines(run):
            if not line.startswith("PLAN NOT APPLIED"):
                said.setdefault(line.lstrip(), []).append(name)
    everyone = len(old) + len(new)
    for line, names in said.items():
        if len(names) == everyone:
            yield f"{'Both' if everyone == 2 else 'All'} runs: {line}"
        else:
            yield from (f"{name[:1].upper()}{name[1:]} run: {line}" for name in names)


def _warnings(old: Sequence[Report], new: Sequence[Report]) -> Iterator[str]:
    before, after = old[0], new[0]
    counts = [sorted({run.ranks for run in side}) for side in (old, new)]
    if counts[0] != counts[1] or len(counts[0]) > 1:
        yield f"different numbers of ranks: {' and '.join('/'.join(map(str, side)) for side in counts)}"
    yield from _other_arguments(before, after)
    for name, run in _named(old, new):
        if run.exit_code:
            yield f"the {name} run returned {run.exit_code}"
        if run.plan.verify.result == "mismatch":
            yield f"the {name} run FAILED its verification: it did not write what the program passed in"
    verified = [any(run.verification.calls for run in side) for side in (old, new)]
    for name, run in _named(old, new):
        if run.verification.calls and not all(verified):
            back = size(run.verification.bytes)
            yield (
                f"the {name} run verified what it wrote: its close calls read {back} back, and its wall and I/O time "
                "hold that"
            )
    if before.mpi_libraries != after.mpi_libraries:
        yield f"different MPI libraries: {', '.join(before.mpi_libraries)} and {', '.join(after.mpi_libraries)}"
    recorded = _recorded(old, new)
    for name, run in _named(old, new):
        missing = [layer for layer in LAYERS if layer not in run.layers_recorded]
        if missing:
            yield f"the {name} run recorded no calls of {', '.join(missing)} (--layers): their figures are left out"
    for op in DATA_OPS:
        first, second = (median([_outer_bytes(run, op) for run in side]) for side in (old, new))
        if first != second and len(recorded) == len(LAYERS):
            yield f"the programs did not {op} the same amount: {first:,.0f} and {second:,.0f} bytes"
    if _one_after_the_other(old, new):
        yield "all runs of one side were made before all of the other: a machine that changes looks like a difference"


def _other_arguments(before: Report, after: Report) -> Iterator[str]:
    """What was asked of the programs in one run alone, but for the number of ranks, which is told apart."""
    only = []
    for run, other in ((before, after), (after, before)):
        left = Counter(run.command) - Counter(other.command) - Counter([str(run.ranks)])
        only.append(" ".join(word for word in run.command if word in left))
    if any(only):
        first, second = (_shortened(arguments) or "none" for arguments in only)
        yield f"different arguments: {first} and {second}"


def _shortened(text: str) -> str:
    return text if len(text) <= _MOST_OF_ARGUMENTS else f"{text[: _MOST_OF_ARGUMENTS - 3]}..."


def _one_after_the_other(old: Sequence[Report], new: Sequence[Report]) -> bool:
    sides = [[run.started for run in side if run.started is not None] for side in (old, new)]
    if min(map(len, sides)) < 2:
        return False
    first, second = sides
    return max(first) < min(second) or max(second) < min(first)


def _recorded(old: Sequence[Report], new: Sequence[Report]) -> list[str]:
    """The layers whose calls were recorded in all runs."""
    return [layer for layer in LAYERS if all(layer in run.layers_recorded for run in (*old, *new))]


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


# ----------------------------------------------------------------------------------------------------------- figures

Figures = dict[str, tuple[str, "float | None"]]
"""By name: unit and value."""


def _changes(old: Sequence[Report], new: Sequence[Report]) -> list[Change]:
    recorded = _recorded(old, new)
    made = [
        (layer, op)
        for layer in recorded
        for op in old[0].layers[layer]
        if any(run.layers[layer][op].calls for run in (*old, *new))
    ]
    unit = old[0].io.unit
    sides = [[_figures(run, unit, recorded, made) for run in side] for side in (old, new)]
    changes = []
    for what in dict.fromkeys(what for side in sides for run in side for what in run):
        before, after = ([run[what][1] for run in side if what in run] for side in sides)
        old_values, new_values = ([value for value in side if value is not None] for side in (before, after))
        measure = next(run[what][0] for side in sides for run in side if what in run)
        if measure == "s":
            changes.append(_time(what, old_values, new_values))
        elif old_values or new_values:
            changes.append(_amount(what, measure, *(median(v) if v else None for v in (old_values, new_values))))
    return [one for one in changes if not one.what.endswith(" storage") or one.before or one.after]


def _figures(run: Report, unit: str, recorded: Sequence[str], made: Sequence[tuple[str, str]]) -> Figures:
    figures: Figures = {
        "wall time": ("s", run.wall_s),
        f"I/O time of an average {unit}": ("s", run.io.mean_s),
        f"I/O time of the slowest {unit}": ("s", run.io.max_s),
    }
    for layer, op in made:
        figures.update(_layer_figures(f"{layer} {op}", run.layers[layer][op]))
    for op, verb in (("write", "write to"), ("read", "read from")):
        if POSIX in recorded:
            figures[f"{plural(unit, 2)} that {verb} storage"] = ("", len(run.storage[op].ranks))
    return figures


def _layer_figures(name: str, calls: Calls) -> Figures:
    figures: Figures = {f"{name} time": ("s", calls.time_s), f"{name} calls": ("", calls.calls)}
    if not isinstance(calls, Data):
        return figures
    figures[f"{name} bytes"] = ("B", calls.bytes)
    for kind, value in (
        ("perceived", calls.perceived_bytes_per_s),
        ("effective", calls.effective_bytes_per_s),
        ("span", calls.span_bytes_per_s),
    ):
        if isinstance(value, list):
            for bound, one in zip(("lower bound", "upper bound"), value, strict=True):
                figures[f"{name} {kind} bandwidth ({bound})"] = ("B/s", one)
        else:
            figures[f"{name} {kind} bandwidth"] = ("B/s", value)
    return figures


def _time(what: str, before: Sequence[float], after: Sequence[float]) -> Change:
    found = difference(before, after)
    old, new = median(before), median(after)
    return Change(
        what=what,
        unit="s",
        before=old,
        after=new,
        ratio=found.ratio,
        sentence=words.time_sentence(what, old, new, found),
        low=found.low,
        high=found.high,
    )


def _amount(what: str, unit: str, before: float | None, after: float | None) -> Change:
    return Change(
        what=what,
        unit=unit,
        before=before,
        after=after,
        ratio=after / before if before and after is not None else None,
        sentence=words.amount_sentence(what, unit, before, after),
    )


# ---------------------------------------------------------------------------------------------------------- findings


def _findings(old: Sequence[Report], new: Sequence[Report]) -> FindingChanges:
    """By code: most runs of a side have a finding or they have not."""
    result = FindingChanges()
    titles = {one.code: one.title for run in (*old, *new) for one in run.findings}
    for code, title in titles.items():
        sides = [[cost for run in side if (cost := _cost(run, code)) is not None] for side in (old, new)]
        runs = [len(side) for side in sides]
        row = Faults(code, title, *runs, *(median(side) if side else 0.0 for side in sides))
        had, has = 2 * runs[0] > len(old), 2 * runs[1] > len(new)
        if had and has:
            result.stayed.append(row)
        elif had:
            result.gone.append(row)
        elif has:
            result.new.append(row)
    for rows in (result.gone, result.new, result.stayed):
        rows.sort(key=lambda row: -max(row.before_s, row.after_s))
    return result


def _cost(run: Report, code: str) -> float | None:
    """What a fault costs a run, of writes and reads together; None: the run has it not.

    In another finding's chain it is there as well, and explains the same seconds: who leads the other may change.
    """
    own = [one.seconds for one in run.findings if one.code == code]
    if own:
        return min(sum(own), run.wall_s)
    return max((one.seconds for one in run.findings if code in one.chain), default=None)
