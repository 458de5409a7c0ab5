"""From what the rules found to findings: what explains the same seconds becomes one, most seconds first.

Of two that explain the same seconds the one whose rule has the smaller `order` leads (a cause before what follows from
it), and names the other in its chain. Severity is the share of the run: SEVERITIES.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ioweir.base.runs import RUNS_DIFFER
from ioweir.base.spec_names import LAYERS, MPI_IO, POSIX
from ioweir.findings import spared
from ioweir.findings.columns import Columns
from ioweir.findings.model import HIGH, LOW, MEDIUM, Evidence, Finding, Findings, Gain, Remedy
from ioweir.findings.rules.common import pattern
from ioweir.findings.table import RULES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ioweir.findings.columns import Mask
    from ioweir.findings.rule import Found, Rule
    from ioweir.trace.counted import Counted
    from ioweir.trace.reader import Trace

SEVERITIES: Final = ((HIGH, 0.10), (MEDIUM, RUNS_DIFFER))
"""10 %: above how much a run on a shared machine varies by itself (Wright et al. 2013, section 5.1: about 10 %), so
that it shows without statistics. 2 %: the least by which repeated production runs were seen to vary. What the trace
does not prove to be lost (gain from 0 seconds) is medium at most."""
SAME: Final = 0.5
"""Findings of which one has half of its seconds in common with another explain the same."""


def find(trace: Trace, wall_s: float, recorded: Sequence[str]) -> Findings:
    """All findings of a trace. `recorded`: layers whose calls were recorded."""
    if trace.counted is not None:
        return _of_log(trace, trace.counted, wall_s)
    found = _of_events(trace, wall_s, recorded)
    if (came := trace.run.get("imported")) is not None:
        for one in found.findings:
            one.unseen += [f"{one.code}: {words}" for words in came["unseen"]]
    if (simulated := trace.run.get("simulated")) is not None:
        found.simulated = simulated["machine"]
        for one in found.findings:
            one.unseen.insert(0, f"{one.code}: simulated on {simulated['machine']}, nothing of it was measured")
    return found


def _of_log(trace: Trace, log: Counted, wall_s: float) -> Findings:
    """Of counters, and of the events beside them what counters do not tell."""
    from ioweir.findings import counted  # noqa: PLC0415 (of logs alone)

    if wall_s <= 0:
        return Findings([], 0.0, wall_s, ["the log says that the run took no time"])
    found = counted.find(log, wall_s)
    if trace.event_count:
        known = {one.code for one in found.findings}
        layers = [layer for layer in (MPI_IO, POSIX) if layer in log.layers]
        more = [one for one in _of_events(trace, wall_s, layers).findings if one.code not in known]
        for one in more:
            one.unseen += [f"{one.code}: {words}" for words in log.unseen[1:]]
        found.findings = sorted([*found.findings, *more], key=lambda one: -one.seconds)
    return found


def _of_events(trace: Trace, wall_s: float, recorded: Sequence[str]) -> Findings:
    run = Columns(trace, wall_s, recorded)
    unseen = [
        f"{rule.code}: calls of {', '.join(lacking)} were not recorded"
        for rule in RULES
        if (lacking := _lacking(rule, run))
    ]
    if run.stretches:
        unseen.append(_outside(run))
    if not len(run) or wall_s <= 0:
        return Findings([], 0.0, wall_s, unseen)
    rules = [rule for rule in RULES if not _lacking(rule, run) and (run.who.has_ranks or not rule.of_ranks)]
    found = [(rule, one) for rule in rules for one in rule.find(run) if one.calls.any()]
    merged = _merge(run, found)
    merged.sort(key=lambda finding: -finding.seconds)
    if run.stretches:
        merged = [_of_whole_run(run, one, wall_s) for one in merged]
    unit = "rank" if run.who.has_ranks else "process"
    io_s = min(run.seconds(run.outermost) * run.whole_over_rows, wall_s)
    return Findings(merged, io_s, wall_s, unseen, unit)


def _outside(run: Columns) -> str:
    return (
        f"calls outside of {run.stretches} stretches of the run, which have {len(run):,} calls of its "
        f"{run.trace.event_count:,} events and are spread evenly over these. Counts and bytes are of the stretches, "
        f"seconds of the run (those of the stretches times {run.whole_over_rows:.3g})"
    )


def _of_whole_run(run: Columns, one: Finding, wall_s: float) -> Finding:
    """What was found in stretches of a run, with the seconds of all of it."""

    def scaled(gain: Gain) -> Gain:
        times = run.whole_over_rows
        return replace(gain, low=gain.low * times, high=gain.high * times, may_cost=gain.may_cost * times)

    return replace(
        one,
        seconds=min(one.seconds * run.whole_over_rows, wall_s),
        gain=scaled(one.gain),
        remedies=[replace(each, saves=each.saves and scaled(each.saves)) for each in one.remedies],
        unseen=[*one.unseen, f"{one.code}: {_outside(run)}"],
    )


def _lacking(rule: Rule, run: Columns) -> list[str]:
    return [layer for layer in rule.needs if layer not in run.recorded]


def _merge(run: Columns, found: list[tuple[Rule, Found]]) -> list[Finding]:
    """Leaders in the order of their rules take what shares its seconds with them."""
    leaders: list[tuple[Rule, Found, list[tuple[Rule, Found]]]] = []
    withins: list[Mask] = []
    for rule, one in sorted(found, key=_leads):
        whole = run.seconds(one.calls) if leaders else 0.0
        for (above, leader, followers), within in zip(leaders, withins, strict=True):
            follows = above.code in rule.follows and not set(leader.files).isdisjoint(one.files)
            # What a leader explains a small part of stays a finding of its own.
            may_explain = not one.apart and not leader.apart and leader.seconds >= SAME * one.seconds
            if follows or (may_explain and run.seconds(one.calls & within) >= SAME * whole):
                followers.append((rule, one))
                break
        else:
            leaders.append((rule, one, []))
            withins.append(run.beneath(run.roots_of(one.calls)))
    plans = any(remedy.plan for _, leader, _ in leaders for remedy in leader.remedies)
    names = _names(run) if plans and MPI_IO in run.recorded else set()
    return [_finding(run, *leader, names) for leader in leaders]


def _leads(entry: tuple[Rule, Found]) -> tuple[int, float]:
    rule, one = entry
    # What is in doubt takes nothing from what is not.
    return (rule.order if one.order is None else one.order) + 1000 * bool(one.doubt), -one.seconds


def _names(run: Columns) -> set[str]:
    """Of the files that plans have an effect on: those that the program uses through MPI-IO or PnetCDF."""
    through = run.is_layer(MPI_IO) | run.is_layer("PnetCDF")
    return {pattern(file) for file in run.files_of(through, most=len(run.files))}


def _remedies(run: Columns, one: Found, names: set[str]) -> list[Remedy]:
    """Plans only for files with these names."""
    if MPI_IO not in run.recorded:
        return one.remedies
    remedies = []
    for remedy in one.remedies:
        if not remedy.plan:
            remedies.append(remedy)
        elif names and (plan := _rules_of(remedy.plan, names)):
            remedies.append(replace(remedy, plan=plan))
    return remedies


def _rules_of(plan: str, names: set[str]) -> str:
    """The rules of a plan that match one of these names."""
    rules = [f"[[file]]{rule}" for rule in plan.split("[[file]]")[1:]]
    kept = "".join(rule for rule in rules if any(f'match = "{name}"' in rule for name in (*names, "*")))
    return kept.rstrip("\n") + "\n" if kept else ""


def _finding(run: Columns, rule: Rule, one: Found, followers: list[tuple[Rule, Found]], names: set[str]) -> Finding:
    wall_s = run.wall_s
    seconds = min(one.seconds, wall_s)
    gain = spared.gain(run, one)
    share = seconds / wall_s
    severity = next((name for name, least in SEVERITIES if share >= least), LOW)
    if severity == HIGH and gain.low <= 0:
        severity = MEDIUM
    if one.doubt:
        severity = LOW
    evidence = [Evidence("share of the run", 100 * share, "%"), *one.evidence]
    cause = one.cause
    told: list[str] = []
    for other, follower in followers:
        if other.code in told or other.code == rule.code:
            continue
        told.append(other.code)
        cause += f" With it comes: {follower.summary} ({other.code})."
        evidence += follower.evidence[:1]
    unseen = [f"{rule.code}: {text}" for text in (one.doubt, rule.limits) if text]
    if lacking := [layer for layer in LAYERS if layer not in run.recorded]:
        unseen.append(f"{rule.code}: calls of {', '.join(lacking)} were not recorded")
    return Finding(
        rule.code,
        severity,
        rule.layer,
        one.files,
        run.ranks_of(one.calls) if one.ranks is None else one.ranks,
        seconds,
        gain,
        one.summary,
        cause,
        evidence,
        _remedies(run, one, names),
        unseen,
        told,
        rule.title,
    )
