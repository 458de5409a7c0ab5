"""`ioweir tune --measure`: the most promising plans of the simulation, replayed on the real storage.

Each round replays the recorded I/O once as it was and once under each plan that is still in question, in an order that
is drawn anew. What was measured is compared: a plan that is shown to be slower than the program as it was, or than
another plan, is in question no more. It ends when one is shown to be best, or none to be better, or when the rounds or
the budget are used up.

Lives here: which plans, what is made of what was measured. Not here: the rounds (turns.py).
"""

from __future__ import annotations

import os
import shlex
import signal
import sys
import time
from collections import Counter
from dataclasses import asdict, dataclass, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final

from ioweir.base import columns, progress, units
from ioweir.base.compiled import compiled
from ioweir.base.new_folder import require_writable
from ioweir.errors import EXIT_USAGE, IoweirError
from ioweir.launch import forwarding
from ioweir.launch import kernel as kernels
from ioweir.loop import turns
from ioweir.loop.turns import AS_IT_IS, Way
from ioweir.predict import estimated, tune
from ioweir.predict.kinds import pattern_of
from ioweir.predict.simulate import rule_text
from ioweir.replay import from_trace
from ioweir.replay import run as replay_run
from ioweir.report import noise

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ioweir.predict.machine import Machine
    from ioweir.replay.model import Recorded

_ROUND_S: Final = 20.0
"""So long a round may take, by the recorded calls: as many plans are replayed."""
_FEWEST, _MOST = 2, 32
"""Plans."""


@dataclass(frozen=True)
class Options:
    """How is measured."""

    directory: Path | None = None
    """Where the files are made; that of the recorded file where it is not named."""
    rounds: int | None = None
    """At most; None: by how long they take (turns.py)."""
    budget_s: float | None = None
    contenders: int | None = None
    """Plans that are replayed; None: as many as a round has time for."""
    think: str | None = None
    """What becomes of the time between calls. None: it is left out, but kept where a plan writes behind the program."""
    mpi: str | None = None


def tune_measured(asked: tune.Options, options: Options) -> dict[str, Any]:
    """Simulates, measures, and writes the plan that is shown to help, if one is."""
    began = time.monotonic()
    _check(asked, options)
    recorded = _recorded(asked)
    directory = _directory(options, recorded)
    found = tune.simulated(replace(asked, storage=asked.storage or directory))
    budget_s = options.budget_s
    if budget_s is not None:
        options = replace(options, budget_s=max(0.0, budget_s - (time.monotonic() - began)))
    hidden = hidden_kinds(found, recorded)
    ways, expected_s = _ways(found, options, recorded, replay_run.DROP, hidden)
    think = options.think or (replay_run.KEEP if any(map(_writes_behind, ways)) else replay_run.DROP)
    if think != replay_run.DROP:
        ways, expected_s = _ways(found, options, recorded, think, hidden)
    assert asked.trace is not None
    how = replay_run.Options(asked.trace, directory, think=think, mpi=options.mpi, seed=asked.seed)
    replay_run.check(how)
    kernels.refuse_too_many(len(recorded.ranks))
    state = turns.State(asked.output, turns.key(asked, how, ways, recorded))
    resumed = state.load(ways)
    with replay_run.Prepared.make(how, recorded) as prepared:
        measured = turns.Measuring(
            ways, how, prepared, state, rounds=options.rounds, budget_s=options.budget_s, expected_s=expected_s
        )
        with_progress(measured)
    require_compared(ways, budget_s)
    chosen, reasons = judged(ways, found.machine if found.machine.gains is not None else None)
    gain = None if chosen is None else gain_of(ways[0], chosen, None if recorded.plan else _in_calls(recorded))
    if gain is not None and gain.low is not None:
        reasons.append(gain.text())
    none: list[Any] = [None] * len(found.parts)
    # Beside hints that were taken there are no writers of ioweir's: these would take over what the hints change.
    carriers = none if chosen is not None and chosen.hints else _carriers(ways, len(found.parts))
    of_plan = none if chosen is None or chosen.hints else chosen.picks
    picks, decisions = estimated.decided(found.known, found.parts, of_plan, carriers, measured=True)
    result = found.result(picks)
    result["estimated"] = [decision.row() for decision in decisions]
    result["measured"] = {
        "directory": str(directory),
        "rounds": max(len(way.seconds) for way in ways),
        "replays": sum(len(way.seconds) for way in ways),
        "resumed_replays": resumed,
        "seconds": measured.spent_s,
        "ways": [_described(ways[0], way) for way in ways],
    }
    if options.think is None and think == replay_run.KEEP:
        reasons.append("replays waited between calls as the program did, for a plan writes meanwhile")
    reasons += [
        f"{pattern}: not replayed, for its files cannot have their names in a replay, so that no rule matches them"
        for pattern in sorted(hidden)
    ]
    reasons += _not_replayed(found)
    result["reasons"] += [*reasons, *estimated.told(decisions, asked.machine), *tune.of_all(found, picks)]
    result["reasons"].append(
        f"measuring: {result['measured']['replays']} replays in {directory}, {units.seconds(measured.spent_s)}"
        f"{f', {resumed} of them by an earlier command' if resumed else ''}"
    )
    if recorded.left_out:
        calls = sum(recorded.left_out.values())
        result["reasons"].append(f"{calls} recorded calls were not replayed: ioweir replay says which")
    if gain is not None:
        result["measured"] |= asdict(gain)
        result["measured"]["hints"] = list(chosen.hints) if chosen is not None else []
    if any(picks):
        result["predicted"] = found.predicted(picks)
        result["plan"] = _plan_text(asked, result, found.text(picks), measured=any(of_plan))
        tune.write_plan(asked, result["plan"])
        result["output"] = str(asked.output)
    state.forget()
    result["wall_s"] = time.monotonic() - began
    return result


def hidden_kinds(found: tune.Simulated, recorded: Recorded) -> frozenset[str]:
    """Patterns of files of which some have a name in a replay that their own rule does not match."""
    names = {path: PurePosixPath(name).name for path, name in zip(recorded.paths, recorded.names, strict=True)}
    hidden = set()
    for part in found.parts:
        pattern = part.kind.pattern
        rule = rule_text({"writers": "everyone"}, pattern)
        mine = (name for path, name in names.items() if pattern_of(PurePosixPath(path).name) == pattern)
        if any(compiled().match_plan(rule, "a rule", name) is None for name in mine):
            hidden.add(pattern)
    return frozenset(hidden)


def _ways(
    found: tune.Simulated, options: Options, recorded: Recorded, think: str, hidden: frozenset[str]
) -> tuple[list[Way], float]:
    """As many plans as a round has time for, and seconds of one replay, by what was recorded."""
    in_calls = _in_calls(recorded)
    expected_s = in_calls + replay_run.think_factor(think) * max(0.0, recorded.seconds() - in_calls)
    most = options.contenders or min(_MOST, max(_FEWEST, int(_ROUND_S / max(expected_s, 1e-9))))
    return contenders(found, most, hidden), expected_s


def _in_calls(recorded: Recorded) -> float:
    """Seconds of the rank that spent most there."""
    return max((sum(op.end - op.start for op in rank.ops) / 1e9 for rank in recorded.ranks), default=0.0)


def contenders(found: tune.Simulated, most: int, hidden: frozenset[str] = frozenset()) -> list[Way]:
    """The program as it is, and the plans that the simulation holds for the fastest, whether or not they help in it.

    The first plan has the fastest candidate for the files of each kind, the second one the second. Of those that differ
    in their buffer alone only the fastest counts. Only the kind with most time is tried with what does not help it.
    MPI-IO hints of findings are one more way, all of them together, without a plan.

    `hidden`: kinds whose rules match nothing in a replay.
    """
    ways = [Way(AS_IT_IS)]
    ranked = [
        [] if part.kind.pattern in hidden else _ranked(part, most, helping=number > 0)
        for number, part in enumerate(found.parts)
    ]
    for number in range(min(most, max(map(len, ranked)))):
        # Where a part has no more, its best stays in the plan.
        picks = [rows[min(number, len(rows) - 1)] if rows else None for rows in ranked]
        named = [
            found.said(part, row["strategy"]) for part, row in zip(found.parts, picks, strict=True) if row is not None
        ]
        other = any(row is not None and row["other_form"] for row in picks)
        ways.append(Way("; ".join(named), found.rules(picks), other, found.predicted(picks), picks))
    if hints := estimated.all_hints(found.known):
        words = tuple(f"{name}={value}" for name, value in hints.items())
        ways.append(Way(f"no plan, hints {', '.join(words)}", hints=words))
    return ways


def _writes_behind(way: Way) -> bool:
    return any(row is not None and row["candidate"].behind for row in way.picks)


def _not_replayed(found: tune.Simulated) -> list[str]:
    """Of each kind of files the fastest that helps in the simulation and that no replay shows."""
    reasons = []
    for part in found.parts:
        rows = (row for row in part.good if not row["candidate"].replayed and row["predicted"]["ratio_low"] > 1)
        if (row := next(rows, None)) is not None:
            reasons.append(found.said(part, f"simulated only: {tune.described(row)}; {estimated.NOT_REPLAYED}"))
    return reasons


def _carriers(ways: Sequence[Way], parts: int) -> list[estimated.Carrier | None]:
    """Of each kind of files what the fastest plan that is not shown to do harm has for it."""
    untouched = ways[0]
    harmless = [
        way
        for way in ways[1:]
        if way.rules and way.seconds and untouched.seconds and not way.other_form
        and noise.difference(untouched.seconds, way.seconds).verdict != noise.SLOWER
    ]  # fmt: skip
    if not harmless:
        return [None] * parts
    best = min(harmless, key=lambda way: noise.median(way.seconds))
    cost = max(noise.median(best.seconds) - noise.median(untouched.seconds), 0.0)
    # The cost is of all kinds together: each of them answers for all of it.
    return [None if row is None else estimated.Carrier(row, cost, "measured") for row in best.picks]


def _ranked(part: tune.Part, most: int, *, helping: bool) -> list[dict[str, Any]]:
    """The fastest candidates that a replay shows, one of a kind."""
    rows: dict[tuple[str, ...], dict[str, Any]] = {}
    for row in part.good:
        kind = tuple(f"{name}={value}" for name, value in row["candidate"].keys.items() if name != "buffer")
        if row["candidate"].replayed and (not helping or row["predicted"]["ratio"] > 1):
            rows.setdefault(kind, row)
    return list(rows.values())[:most]


def judged(ways: Sequence[Way], machine: Machine | None = None) -> tuple[Way | None, list[str]]:
    """The way to take, None for the program as it is; and why.

    `machine`: one of which is known how gains come out. Its simulation decides between plans that replays do not tell
    apart: with few rounds, the fastest in the middle is often the luckiest.
    """
    untouched, plans = ways[0], ways[1:]
    reasons, helping = [], []
    for way in plans:
        found = noise.difference(untouched.seconds, way.seconds) if way.seconds and untouched.seconds else None
        reasons.append(f"measured: {_said(way, found)}")
        if found is not None and found.verdict == noise.FASTER:
            helping.append(way)
    if not helping:
        return None, [*reasons, "no plan was shown to be faster than the program as it is"]
    best = min(helping, key=lambda way: noise.median(way.seconds))
    if machine is not None and not best.hints:
        alike = [way for way in helping if not way.hints and _not_slower(way, best)]
        likeliest = max(alike, key=lambda way: way.predicted["ratio"])
        if likeliest is not best:
            reasons.append(f"{likeliest.name} was not shown to be slower than {best.name}, and is simulated faster")
            best = likeliest
    plain = [way for way in helping if not way.other_form and not way.hints]
    if best not in plain and plain:
        plainest = min(plain, key=lambda way: noise.median(way.seconds))
        # What is out was shown to be slower than a plan, with as many runs as both had then.
        shown = bool(plainest.out) or noise.difference(plainest.seconds, best.seconds).verdict == noise.FASTER
        if machine is not None and not best.hints and _not_slower(best, plainest):
            shown = shown or best.predicted["ratio"] > machine.plans * plainest.predicted["ratio"]
        if not shown:
            why = "is for the user to set" if best.hints else "leaves the file in another form"
            reasons.append(f"{best.name} {why}, and was not shown to be faster than {plainest.name}")
            best = plainest
    reasons.append(f"taken: {best.name}")
    return best, [*reasons, estimated.HINTS_WHERE] if best.hints else reasons


def _not_slower(way: Way, other: Way) -> bool:
    """Replays do not show that it is."""
    return noise.difference(other.seconds, way.seconds).verdict != noise.SLOWER


@dataclass(frozen=True)
class Gain:
    """Of the program under the plan: its time in calls before over that after. Above 1 is faster."""

    ratio: float
    low: float | None
    high: float | None
    """The ends hold what the replays leave open, and how they differ from the program. None where each ran once."""
    recorded_in_calls_s: float | None
    """Of the rank that spent most there. None: another plan was in force then, and it says nothing."""
    replayed_in_calls_s: float
    """The same of the replays without a plan, their median."""

    def text(self) -> str:
        """For the reasons."""
        if self.recorded_in_calls_s is None:
            return (
                f"in the program {self.low:.2f} to {self.high:.2f} times as fast as without a plan, as far as replays "
                "show it: the run was recorded under one, so that its own time says nothing"
            )
        return (
            f"in the program {self.low:.2f} to {self.high:.2f} times as fast: its calls took "
            f"{units.seconds(self.recorded_in_calls_s)} when recorded, {units.seconds(self.replayed_in_calls_s)} in "
            "replays without a plan, and how much of that difference a plan saves is not known"
        )


def gain_of(untouched: Way, chosen: Way, recorded_in_calls_s: float | None) -> Gain:
    """What replays say of the program.

    The program's calls took R, and in the replays T. A plan that gains g there takes T / g. Of what R is longer, the
    program under the plan may keep nothing, so that it gains R / (T / g), or all, so that it gains R / (T / g + R - T).
    Where R is shorter, the replays' own surplus may be what the plan has saved, so that it gains R / (T / g).
    """
    found = noise.difference(untouched.seconds, chosen.seconds)
    assert found.ratio is not None
    replayed = noise.median(untouched.in_calls)
    if found.low is None or found.high is None:
        return Gain(found.ratio, None, None, recorded_in_calls_s, replayed)
    if recorded_in_calls_s is None:
        return Gain(found.ratio, found.low, found.high, None, replayed)
    ends = [found.low, found.high]
    for end in (found.low, found.high):
        ends.append(recorded_in_calls_s / (replayed / end))
        if recorded_in_calls_s > replayed:
            ends.append(recorded_in_calls_s / (replayed / end + recorded_in_calls_s - replayed))
    return Gain(found.ratio, min(ends), max(ends), recorded_in_calls_s, replayed)


def _said(way: Way, found: noise.Difference | None) -> str:
    if found is None or found.ratio is None:
        return f"{way.name}: not at all{f' ({way.out})' if way.out else ''}"
    interval = "" if found.low is None else f" ({found.low:.2f} .. {found.high:.2f})"
    return (
        f"{way.name}, {units.seconds(noise.median(way.seconds))}, {units.times(found.ratio)} as without a plan"
        f"{interval}, {len(way.seconds)} runs each: {found.verdict}{f'; {way.out}' if way.out else ''}"
    )


def _described(untouched: Way, way: Way) -> dict[str, Any]:
    row: dict[str, Any] = {"strategy": way.name, "seconds": way.seconds, "out": way.out or None}
    if way is not untouched and way.seconds and untouched.seconds:
        found = noise.difference(untouched.seconds, way.seconds)
        row |= {"ratio": found.ratio, "low": found.low, "high": found.high, "verdict": found.verdict}
    return row


def _check(asked: tune.Options, options: Options) -> None:
    tune.check(asked)
    if asked.trace is None:
        raise IoweirError(
            f"--measure replays a trace, and --kernel {asked.kernel} has none: record it with "
            f"`ioweir run -o DIR -- ioweir kernel {asked.kernel}`, then `ioweir tune DIR --measure`",
            EXIT_USAGE,
        )
    for name, value in (("--rounds", options.rounds), ("--contenders", options.contenders)):
        if value is not None and value < 1:
            raise IoweirError(f"{name} {value}: write a number from 1 on", EXIT_USAGE)
    if options.directory is not None:
        require_writable(options.directory)


def _recorded(asked: tune.Options) -> Recorded:
    assert asked.trace is not None
    return from_trace.read(asked.trace)


def storage_of(recorded: Recorded) -> Path:
    """The folder of the file that most bytes were moved to and from."""
    moved: Counter[int] = Counter()
    for rank in recorded.ranks:
        for op in rank.ops:
            moved[op.file] += op.moved
    return Path(PurePosixPath(recorded.paths[moved.most_common(1)[0][0]]).parent)


def storage_if_known(trace: Path) -> Path | None:
    """The same of a trace; None where no replay can be made of it, which simulations may still take."""
    try:
        return storage_of(from_trace.read(trace))
    except IoweirError:
        return None


def _directory(options: Options, recorded: Recorded) -> Path:
    """The storage that the program wrote to."""
    if options.directory is not None:
        return options.directory
    folder = storage_of(recorded)
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise IoweirError(
            f"{folder}, where the program's file was, is not there or may not be written into; say where to measure: "
            "--directory WHERE",
            EXIT_USAGE,
        )
    return folder


def with_progress(measuring: turns.Measuring) -> None:
    """With a bar, where somebody looks on; what was measured is kept when it is interrupted."""
    try:
        progress.beside(measuring.run, measuring.watch, measuring.most, "replaying", sys.stderr)
    except (KeyboardInterrupt, forwarding.SignalError) as interrupt:
        number = interrupt.number if isinstance(interrupt, forwarding.SignalError) else signal.SIGINT
        measured = _kept(measuring.ways)
        raise forwarding.SignalError(
            number, f"interrupted after {measured}, which are kept: the same command goes on"
        ) from interrupt


def _kept(ways: Sequence[Way]) -> str:
    """Example: 3 replays."""
    replays = sum(len(way.seconds) for way in ways)
    return f"{replays} {'replay' if replays == 1 else 'replays'}"


def require_compared(ways: Sequence[Way], budget_s: float | None) -> None:
    """IoweirError where a budget ended before the program as it is and a plan have a time each.

    `budget_s` is what the user gave.
    """
    untouched, plans = ways[0], ways[1:]
    untried = any(not way.out and not way.seconds for way in plans)
    compared = untouched.seconds and (not untried or any(way.seconds for way in plans))
    if budget_s is not None and plans and not compared:
        raise IoweirError(
            f"--budget {units.seconds(budget_s)} is too short: it ended before a plan could be compared with the "
            f"program as it is ({_kept(ways)}, kept: the same command goes on). No plan is written. Give a larger "
            "--budget, or leave out --measure"
        )


def _plan_text(asked: tune.Options, result: dict[str, Any], rules: str, *, measured: bool) -> str:
    ratio = result["predicted"]
    shown = "MEASURED by replays" if measured else "NOT MEASURED to be faster by replays, ESTIMATED from the trace"
    lines = [
        f"made by ioweir tune --measure for {result['what']}", f"machine: {result['machine']}", *result["reasons"],
        f"simulated before: {units.times(ratio['ratio'])} ({ratio['ratio_low']:.2f} .. {ratio['ratio_high']:.2f})",
        f"{shown}; the program itself: ioweir run --plan {shlex.quote(str(asked.output))} -- CMD",
    ]  # fmt: skip
    return tune.commented(lines, rules)


def _times(seconds: Sequence[float]) -> str:
    """Example: 33.8 ms (31.2 ms .. 46 ms, 20 runs)."""
    if len(seconds) < 2:
        return f"{units.seconds(seconds[0])} (one run)" if seconds else "not at all"
    least, most = (units.seconds(one) for one in (min(seconds), max(seconds)))
    return f"{units.seconds(noise.median(seconds))} ({least} .. {most}, {len(seconds)} runs)"


def to_text(result: dict[str, Any]) -> list[str]:
    """For a person."""
    lines = [f"MEASURED by replays of {result['what']}", ""]
    ways = result["measured"]["ways"]
    wide = max((len(row["strategy"]) for row in ways), default=0)
    for row in ways:
        time = f"  {row['strategy']:<{wide}} {_times(row['seconds'])}"
        ratio = row.get("ratio")
        lines += [time] if ratio is None else columns.row(time, f"{units.times(ratio)}: {row['verdict']}")
    lines += ["", *result["reasons"]]
    if result["output"]:
        return [*lines, "", f"{result['output']} is written: ioweir run --plan {shlex.quote(result['output'])} -- CMD"]
    return [*lines, "", "No plan is written."]
