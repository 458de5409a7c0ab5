"""How comparisons are worded: a figure that changed, and the text of `ioweir compare`, at most MOST_LINES long."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Final

from ioweir.base.units import number_list, rate, seconds, size
from ioweir.report import noise

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ioweir.report.compare import Change, Comparison, Run

MOST_LINES: Final = 15
_FIRST: Final = 3
"""Lines of what has to be known before any figure."""
_WARNINGS: Final = 2
_FAULTS: Final = 4
_KINDS: Final = 6
_SHORT_S: Final = 1e-3
"""Below this a time says nothing: clock, scheduling and the file system's mood are of that size."""
_SAME_RATIO: Final = 1.02
_MOST_TIMES: Final = 1000
"""Larger factors are of a time that has gone, whose exact rest means nothing."""


def time_sentence(what: str, before: float, after: float, found: noise.Difference) -> str:
    """Example: wall time 3.00 s -> 1.50 s: 2x faster (1.8x to 2.3x)."""
    return f"{what} {seconds(before)} -> {seconds(after)}: {_judged(before, after, found)}"


def _judged(before: float, after: float, found: noise.Difference) -> str:
    said = _faster(before, after)
    if found.low is None or found.high is None:
        return said
    if found.verdict == noise.NOT_SHOWN:
        return f"{noise.NOT_SHOWN} ({_factor(found.low)}x to {_factor(found.high)}x)"
    low, high = (found.low, found.high) if found.verdict == noise.FASTER else (1 / found.high, 1 / found.low)
    return f"{said} ({_factor(low)}x to {_factor(high)}x)" if "x " in said else said


def _faster(before: float, after: float) -> str:
    if before == after:
        return "unchanged"
    if after == 0:
        return "gone"
    if before == 0:
        return "new"
    longer, shorter = max(before, after), min(before, after)
    if longer < _SHORT_S:
        return "too short to compare"
    if longer < _SAME_RATIO * shorter:
        return "about the same"
    word = "faster" if before > after else "slower"
    if longer > _MOST_TIMES * shorter:
        return f"over {_MOST_TIMES:,}x {word}"
    return f"{_factor(longer / shorter)}x {word}"


def _factor(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}" if value < 1.1 or value >= 10 else f"{value:.2g}"


def amount_sentence(what: str, unit: str, before: float | None, after: float | None) -> str:
    """Example: POSIX write calls 768 -> 12: 1/64."""

    if before == after:
        change = "unchanged"
    elif not before:
        change = "new"
    elif not after:
        change = "gone"
    else:
        change = f"{_factor(after / before)}x" if after > before else f"1/{_factor(before / after)}"
    return f"{what} {value_words(before, unit)} -> {value_words(after, unit)}: {change}"


def value_words(value: float | None, unit: str) -> str:
    """A figure of one side with its unit."""
    if value is None:
        return "none"
    return {"B": size, "B/s": rate, "s": seconds}[unit](value) if unit else f"{value:,.0f}"


# -------------------------------------------------------------------------------------------------------------- text


def write(comparison: Comparison, stream: IO[str]) -> None:
    """Print what changed, the largest difference in seconds first, in MOST_LINES lines at most."""
    from ioweir.report.report_text import console_for, say  # noqa: PLC0415 (rich is not needed for --json)

    with console_for(stream) as console:
        for line, style in lines(comparison):
            say(console, line, style)


def lines(comparison: Comparison) -> list[tuple[str, str | None]]:
    """Every line with its style."""
    warning = "bold yellow"
    top = [(line, warning) for line in _most(comparison.first_lines, _FIRST, "more such lines")]
    verdict: list[tuple[str, str | None]] = [(headline(comparison), "bold")]
    bottom: list[tuple[str, str | None]] = [(line, None) for line in _came_and_gone(comparison)]
    bottom += [(line, None) for line in _fault_lines(comparison)]
    bottom += [(line, None) for line in _run_lines(comparison)]
    bottom += [
        (line, warning)
        for line in _most([f"Warning: {one}" for one in comparison.warnings], _WARNINGS, "more warnings")
    ]
    if comparison.caution:
        bottom.append((comparison.caution, None))
    room = MOST_LINES - len(top) - len(verdict) - len(bottom)
    changes: list[tuple[str, str | None]] = [(line, None) for line in list(_change_lines(comparison))[: max(room, 1)]]
    return [*top, *verdict, *changes, *bottom]


def _most(said: Sequence[str], most: int, rest: str) -> list[str]:
    if len(said) <= most:
        return list(said)
    return [*said[: most - 1], f"{said[most - 1]} (and {len(said) - most} {rest}: --json)"]


def headline(comparison: Comparison) -> str:
    """What the wall time shows."""
    time = comparison.time
    old, new = noise.median(time.before), noise.median(time.after)
    said = f"wall time {seconds(old)} -> {seconds(new)}: "
    if time.low is None or time.high is None:
        fewest = min(len(time.before), len(time.after))
        why = "one run a side" if fewest < noise.LEAST_RUNS else "a time of 0 s"
        pair = f"{_faster(old, new)} in this pair; " if fewest < noise.LEAST_RUNS else ""
        return f"{said}{pair}{noise.NOT_SHOWN}: {why} allows no interval"
    runs = f"medians of {len(time.before)} and {len(time.after)} runs, which vary by {100 * (time.noise or 0):.2g} %"
    interval = f"{100 * time.confidence:.0f} % interval of before / after: {time.low:.3g} to {time.high:.3g}"
    not_its = "" if comparison.credited else ", and not by a plan, for it did nothing"
    verdict = time.verdict if time.verdict == noise.NOT_SHOWN else f"{_faster(old, new)}{not_its}"
    return f"{said}{verdict} ({interval}; {runs})"


def _change_lines(comparison: Comparison) -> Iterator[str]:
    """I/O of an average rank; then layers' operations, most seconds of a rank first; then calls that came or went."""
    by_name = {change.what: change for change in comparison.changes}
    for change in comparison.changes:
        if change.what.startswith("I/O time of an average"):
            yield change.sentence
    ranks = max(comparison.before.ranks, comparison.after.ranks, 1)
    rows = []
    for change in comparison.changes:
        name = change.what.removesuffix(" time")
        calls = by_name.get(f"{name} calls")
        if change.unit != "s" or calls is None:
            continue
        lost = abs((change.before or 0) - (change.after or 0)) / ranks
        rows.append((lost if max(change.before or 0, change.after or 0) / ranks >= _SHORT_S else 0.0, change, calls))
    rows.sort(key=lambda row: -row[0])
    for lost, change, calls in rows:
        if lost > 0 or calls.before != calls.after:
            yield _change_line(change, calls, by_name.get(f"{change.what.removesuffix(' time')} bytes"), ranks)


def _change_line(time: Change, calls: Change, moved: Change | None, ranks: int) -> str:
    summed = " (sum over ranks)" if ranks > 1 else ""
    said = time.sentence.replace(" time ", f" time{summed} ", 1)
    said += f"; {calls.sentence.removeprefix(time.what.removesuffix(' time')).strip()}"
    if moved is not None and moved.before != moved.after:
        said += f"; {moved.sentence.removeprefix(time.what.removesuffix(' time')).strip()}"
    return said


def _came_and_gone(comparison: Comparison) -> Iterator[str]:
    """Calls of which one side made none. Example: Calls gone: POSIX lock (20), POSIX unlock (20)."""
    calls = [change for change in comparison.changes if change.what.endswith(" calls")]
    for word, side, other in (("gone", "before", "after"), ("new", "after", "before")):
        rows = [change for change in calls if getattr(change, side) and not getattr(change, other)]
        if rows:
            names = [f"{row.what.removesuffix(' calls')} ({getattr(row, side):,.0f})" for row in rows[:_KINDS]]
            more = f" and {len(rows) - _KINDS} more" if len(rows) > _KINDS else ""
            yield f"Calls {word}: {', '.join(names)}{more}"


def _fault_lines(comparison: Comparison) -> Iterator[str]:
    found = comparison.findings
    for word, rows, after in (("gone", found.gone, False), ("new", found.new, True)):
        if rows:
            names = [f"{row.code} ({seconds(row.after_s if after else row.before_s)})" for row in rows[:_FAULTS]]
            more = f" and {len(rows) - _FAULTS} more" if len(rows) > _FAULTS else ""
            yield f"Findings {word}: {', '.join(names)}{more}"


def _run_lines(comparison: Comparison) -> Iterator[str]:
    """A line for a run that was special: its plan, what the engine did, who touched storage."""
    for name, run, other in (
        ("First", comparison.before, comparison.after),
        ("Second", comparison.after, comparison.before),
    ):
        if run.plan.file or other.plan.file or run.plan.passed_through or run.plan.verify.result:
            yield f"{name} run: {'; '.join(run_words(run))}"


def run_words(run: Run) -> list[str]:
    """What was special about a run."""
    from ioweir.report.report_text import plan_lines  # noqa: PLC0415 (rich is not needed for --json)

    said = [f"plan {run.plan.file}" if run.plan.file else "no plan"]
    told = plan_lines(run.plan)
    said.extend(told[:2])
    if len(told) > 2:
        said.append(f"{len(told) - 2} more of the plan: ioweir report")
    if run.plan.verify.result:
        said.append(f"verification: {run.plan.verify.result}")
    for op, verb in (("write", "wrote to"), ("read", "read from")):
        if run.storage[op]:
            unit = "rank" if run.ranks else "process"
            said.append(f"{number_list(run.storage[op], unit, most=3)} {verb} storage")
    return said
