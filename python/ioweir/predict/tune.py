"""`ioweir tune`: the plan under which a program is simulated to be fastest, and why; no plan where none helps.

Every candidate is simulated with the same seeds and the same places within what is not known of the machine, and
compared run by run with the program as it is. A plan that leaves a file in another form has to be faster than the best
that does not, in all of these runs. The files of each kind have a rule of their own. Lives here: the choice, the plan's
file. Not here: what is tried (candidates.py), which files are of one kind (kinds.py), one simulation (simulate.py),
on which machine (machine_of_trace.py).
"""

from __future__ import annotations

import math
import shlex
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ioweir.base import columns, toml_text, units
from ioweir.base.compiled import compiled
from ioweir.base.guarded_files import write_named
from ioweir.base.runs import RUNS_DIFFER
from ioweir.errors import EXIT_USAGE, IoweirError, reason
from ioweir.predict import estimated, gains, kinds, machine_of_trace, netcdf_parts, simulate, thinking, workload
from ioweir.predict import machine as machines
from ioweir.predict.candidates import (
    Candidate,
    behind,
    candidates,
    mapping_word,
    of_found_files,
    of_independent_calls,
    with_more,
)
from ioweir.predict.kinds import Kind
from ioweir.predict.simulate import PlanRule
from ioweir.report.lacking import partial_reasons
from ioweir.trace.attribute import attribute_processes
from ioweir.trace.pattern import plan_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ioweir.predict.machine import Machine
    from ioweir.predict.simulate import Program
    from ioweir.trace.reader import Requests, Trace

_OPENING: Final = ("metadata.open_s", "metadata.create_s", "metadata.stat_s")
"""Of machines that say what opening costs."""
_MADE_BY: Final = "made by ioweir tune"
MADE_BY: Final = f"# {_MADE_BY}"
"""A plan's file begins so."""
_MUCH_SLOWER: Final = 0.5
"""In the best of all runs: what differs in the stripes alone does not make up for it."""


@dataclass(frozen=True)
class Options:
    """What the user asked for. One of `trace` and `kernel`."""

    output: Path
    machine: str | None = None
    trace: Path | None = None
    file: str | None = None
    kernel: str | None = None
    settings: tuple[str, ...] = ()
    ranks: int | None = None
    repeat: int = 8
    seed: int = 1
    budget_s: float | None = None
    force: bool = False
    compute_s: float = 0.0
    """Of a kernel, between two calls that write; a trace has its own."""
    storage: Path | None = None
    """Measured where no machine can be fitted to the trace. None: the folder of the file with most time."""


@dataclass
class Part:
    """Files of one kind: what the simulation of one of them found, times what all of them moved."""

    kind: Kind
    program: Program
    before: list[float]
    """Seconds of each run without a plan."""
    rows: list[dict[str, Any]]
    """One a candidate, with `candidate`, and `seconds`, `predicted`, `other_form`, `each` or `error`."""
    left: int = 0
    """Candidates that the budget left out."""
    pruned: list[str] = field(default_factory=list)
    """Those that are variants of one that is much slower than the program as it is."""
    beside_s: float = 0.0
    """Of opening and closing when recorded: in all of these times, without a plan as it is, under one as `beside` of
    its row says (low, middle and high)."""

    @property
    def good(self) -> list[dict[str, Any]]:
        """What could be simulated, the fastest first."""
        return sorted((row for row in self.rows if "error" not in row), key=lambda row: row["seconds"])

    def after(self, row: Mapping[str, Any] | None) -> list[float]:
        """Seconds of each run under a candidate; None: without a plan."""
        return self.before if row is None else row["each"]


Picks = Sequence["dict[str, Any] | None"]
"""Of each part the candidate that is taken; None: no rule for it."""


Rule = tuple[str, Candidate]
"""The pattern of the files' names, and what is done with them."""


def rules_text(rules: Iterable[Rule], folder: str = "") -> str:
    """As a plan's file has them. `folder`: for its files alone, and those of folders in it."""
    places = [f"{folder}/", f"{folder}/*/"] if folder else [""]
    return "\n".join(candidate.text(f"{place}{pattern}") for pattern, candidate in rules for place in places)


@dataclass
class Simulated:
    """What the simulation of all candidates found."""

    machine: Machine
    parts: list[Part]
    """Those with most time first."""
    remarks: list[str]
    what: str
    known: estimated.Known = field(default_factory=estimated.Known)
    """What the trace's findings propose besides."""

    def predicted(self, picks: Picks) -> dict[str, float]:
        """Time before over time after, of all parts together."""
        picked = list(zip(self.parts, picks, strict=True))
        after = _sums(part.after(row) for part, row in picked)
        each = [(part.beside_s,) * 3 if row is None else row["beside"] for part, row in picked]
        low, middle, high = (math.fsum(column) for column in zip(*each, strict=True))
        beside = gains.Beside(math.fsum(part.beside_s for part in self.parts), (low, middle, high))
        return gains.gain(self._before(), after, beside, self.machine)

    def rules(self, picks: Picks) -> tuple[Rule, ...]:
        """Of a plan: the most special first, for the first one that matches a file applies."""
        taken = {part.kind.pattern: row for part, row in zip(self.parts, picks, strict=True) if row is not None}
        return tuple(
            (kind.pattern, taken[kind.pattern]["candidate"])
            for kind in kinds.most_special_first([part.kind for part in self.parts])
            if kind.pattern in taken
        )

    def text(self, picks: Picks) -> str:
        """The rules as a plan's file has them."""
        return rules_text(self.rules(picks))

    def said(self, part: Part, text: str) -> str:
        """Of a part: with its files, where there are others."""
        return text if len(self.parts) == 1 else f"{part.kind.pattern}: {text}"

    def result(self, picks: Picks) -> dict[str, Any]:
        """As JSON, without a plan."""
        hidden = ("candidate", "each", "beside")
        tried = [
            {"match": part.kind.pattern, **{name: value for name, value in row.items() if name not in hidden}}
            for part in self.parts
            for row in part.rows
        ]
        return {
            "simulated": True,
            "what": self.what,
            "machine": self.machine.name,
            "before": _spread(self._before()),
            "plan": None,
            "output": None,
            "predicted": gains.range_of([]),
            "files": [_of_part(part, row) for part, row in zip(self.parts, picks, strict=True)],
            "tried": tried,
            "estimated": [],
            "reasons": list(self.remarks),
        }

    def _before(self) -> list[float]:
        return _sums(part.before for part in self.parts)


def _of_part(part: Part, row: Mapping[str, Any] | None) -> dict[str, Any]:
    return {
        "match": part.kind.pattern,
        "files": part.kind.files,
        "what": part.program.what,
        "before": _spread(part.before),
        "strategy": None if row is None else row["strategy"],
        "predicted": gains.range_of([]) if row is None else row["predicted"],
    }


def _sums(columns: Iterable[Sequence[float]]) -> list[float]:
    """Of each run."""
    return [sum(each) for each in zip(*columns, strict=True)]


def _spread(seconds: Sequence[float]) -> dict[str, float]:
    return {"seconds": statistics.median(seconds), "low": min(seconds), "high": max(seconds)}


def simulated(options: Options) -> Simulated:
    """Simulates all candidates for the files of each kind, or as many as the budget allows."""
    check(options)
    began = time.monotonic()
    machine, remarks = machine_of_trace.machine_of(options)
    programs, left_out, known = _programs(options, machine)
    parts: list[Part] = []
    for asked in programs:
        # Candidates come before parts: the budget of those that are left is shared.
        share = 1 / (len(programs) - len(parts))
        until = None
        if options.budget_s is not None:
            until = time.monotonic() + share * max(0.0, options.budget_s - (time.monotonic() - began))
        more = known.strategies_of(asked.kind.pattern)
        parts.append(_part(options, machine, asked, until, more))
    what = parts[0].program.what
    if len(parts) > 1:
        what = f"{len(parts)} kinds of files of {options.trace}: {', '.join(part.kind.pattern for part in parts)}"
    return Simulated(machine, parts, [*remarks, *left_out], what, known)


@dataclass(frozen=True)
class _Asked:
    """What is simulated of one kind of files."""

    kind: Kind
    program: Program
    own: Sequence[Candidate] = ()
    """Candidates that suit this program, besides those for any."""


def _programs(options: Options, machine: Machine) -> tuple[list[_Asked], list[str], estimated.Known]:
    """What is simulated, what is to be said of what is not, and what the trace's findings propose."""
    asked = simulate.Options(
        options.machine or machine.name, options.kernel, options.settings, options.ranks, options.trace,
        compute_s=options.compute_s,
    )  # fmt: skip
    if options.trace is None:
        program = simulate.program_of(asked)
        return [_Asked(Kind("*", "", 1, 1.0, 1.0), program, _behind_kernel(program, machine))], [], estimated.Known()
    loaded = workload.loaded_whole(options.trace)
    requests = loaded.requests()
    found, remarks = kinds.of_trace(loaded, requests, options.trace, options.file)
    found = kinds.with_beside(found, loaded)
    who = attribute_processes(loaded.processes)
    remarks += [f"the trace is partial: {why}" for why in partial_reasons(loaded, who)]
    if plan := plan_of(loaded):
        remarks.append(
            f"the run was recorded under {plan}: what is taken from its times, as by findings, is under that plan"
        )
    programs: list[_Asked] = []
    behinds: dict[str, str] = {}
    for kind in found:
        try:
            program = workload.of_file(loaded, requests, kind.path, options.trace, 0.0)
        except IoweirError as error:
            if len(found) == 1:
                raise
            remarks.append(f"not simulated: {error}")
            continue
        asked_of, why_not_behind, reasons = _with_own(loaded, requests, kind, program, machine)
        programs.append(asked_of)
        behinds[kind.pattern] = why_not_behind
        reasons += workload.of_independent_calls(program, requests, loaded)
        reasons += workload.of_atomic_mode(loaded, kind.path)
        if not program.made:
            reasons.append("the program does not make the file: plans that divide or stripe new files were not tried")
        remarks += reasons if len(found) == 1 else [f"{kind.pattern}: {reason}" for reason in reasons]
    if not programs:
        raise IoweirError(f"{options.trace}: {'; '.join(remarks)}")
    known = estimated.of_trace(loaded, [asked.kind for asked in programs])
    return programs, remarks, replace(known, behinds=behinds)


def _behind_kernel(program: Program, machine: Machine) -> list[Candidate]:
    """Where it computes between its calls."""
    if program.compute_s <= 0:
        return []
    assert isinstance(program, simulate.Kernel)
    largest = compiled().kernel_largest(program.name, program.ranks, list(program.settings))
    return list(behind(largest, min(program.ranks, _nodes_and_targets(machine)[0])))


def _with_own(
    loaded: Trace, requests: Requests, kind: Kind, program: workload.Recorded, machine: Machine
) -> tuple[_Asked, str, list[str]]:
    """With what the program computes between its writes; why it cannot be written behind, and what is to be said."""
    ranks_of_node, targets = _nodes_and_targets(machine)
    own: list[Candidate] = []
    reasons = []
    found = thinking.of_file(loaded, requests, kind.path)
    why_not = found.why_not
    if not why_not and len(found.computing) != len(program.written):
        why_not = "not all of its calls are known"
    if not why_not:
        program = replace(program, computing=found.computing)
        own += behind(found.largest, min(program.ranks, ranks_of_node))
        reasons.append(
            f"simulated with the {units.seconds(sum(found.computing))} that the program computes between its writes, "
            "which no candidate is charged for"
        )
        if _has_no_spare_processor(loaded):
            reasons.append(
                "ranks have all processors of a node: threads that write behind them take time from them, which is "
                "not simulated"
            )
    divided, why_not_divided = netcdf_parts.proposed(loaded, program, targets)
    if why_not_divided:
        reasons.append(why_not_divided)
    return _Asked(kind, program, [*own, *divided]), why_not, reasons


def _has_no_spare_processor(loaded: Trace) -> bool:
    """As far as is known: of the launcher's node."""
    host, processors = loaded.run.get("host"), loaded.run.get("processors")
    here = {process.rank for process in loaded.processes if process.rank >= 0 and process.host == host}
    return bool(processors) and len(here) >= int(processors or 0)


def _nodes_and_targets(machine: Machine) -> tuple[int, int]:
    """Ranks of a node, and targets."""
    return int(machine.figures.get("node.ranks", 1)), int(machine.figures.get("targets.count", 1))


def _part(
    options: Options, machine: Machine, asked: _Asked, until: float | None, more: Sequence[Mapping[str, Any]]
) -> Part:
    kind, program = asked.kind, asked.program
    of_simulation = simulate.Options(options.machine or machine.name, trace=options.trace)
    rule = simulate.plan_of(of_simulation, machine, program)
    beside_s = 0.0 if any(machine.figures.get(name) for name in _OPENING) else kind.beside_s
    before = _seconds(simulate.runs_of(program, machine, rule, *_draws(options)), kind.times, beside_s)
    part = Part(kind, program, before, [], beside_s=beside_s)
    slow: set[str] = set()
    folders = bool(machine.figures.get("targets.folders"))
    usual = candidates(program.ranks, *_nodes_and_targets(machine), folders=folders)
    tried = with_more([*asked.own, *usual], more)
    if program.alone:
        tried = of_independent_calls(tried)
    for candidate in tried if program.made else of_found_files(tried):
        if until is not None and time.monotonic() > until and part.rows:
            part.left += 1
            continue
        if candidate.variant_of in slow:
            part.pruned.append(candidate.strategy)
            continue
        row = _tried(options, machine, part, candidate)
        part.rows.append(row)
        if "error" not in row and row["predicted"]["ratio_high"] < _MUCH_SLOWER:
            slow.add(candidate.strategy)
    return part


def tune(options: Options) -> dict[str, Any]:
    """Chooses by simulation, and by estimates of what it does not know; writes the plan where one helps."""
    began = time.monotonic()
    found = simulated(options)
    picks = [_choice(part.good, found.machine.plans) for part in found.parts]
    reasons = [
        found.said(part, reason)
        for part, chosen in zip(found.parts, picks, strict=True)
        for reason in _reasons(part, chosen)
    ]
    if found.machine.gains is not None:
        low, _, high = found.machine.gains
        reasons.append(
            "gains are stated as they came out of kernels that this machine had not seen: four of five were "
            f"{low:.2f} to {high:.2f} times what was simulated"
        )
    elif found.machine.unexplained and None in picks:
        reasons.append(
            f"simulated times of this machine are off by {found.machine.unexplained:.0%} (median), so that they "
            f"do not show gains below {gains.wider_by(found.machine):.2f} times; replays do: --measure"
        )
    picks, decisions = estimated.decided(found.known, found.parts, picks, estimated.simulated_carriers(found.parts))
    result = found.result(picks)
    result["estimated"] = [decision.row() for decision in decisions]
    result["reasons"] += [*reasons, *estimated.told(decisions, options.machine)]
    result["reasons"] += of_all(found, picks)
    if any(picks):
        result["predicted"] = found.predicted(picks)
        text = _plan_text(options, result, found.text(picks))
        write_plan(options, text)
        result["plan"] = text
        result["output"] = str(options.output)
    result["wall_s"] = time.monotonic() - began
    return result


def of_all(found: Simulated, picks: Picks) -> list[str]:
    """What is to be said of the plan as a whole."""
    taken = {part.kind.pattern for part, row in zip(found.parts, picks, strict=True) if row is not None}
    reasons = []
    if beside_s := sum(part.beside_s for part in found.parts):
        reasons.append(
            f"opening, closing and the like took {units.seconds(beside_s)} when recorded: added to all times, "
            + ("under plans as measured of this machine" if found.machine.opening.plans else "as if no plan changed it")
        )
    reasons += [
        f"the rule for {match} matches {path}, too, for which nothing was found to help"
        for match, path in kinds.also_matched([part.kind for part in found.parts], taken)
    ]
    if found.machine.open:
        reasons.append(f"not known of the machine, and varied from run to run: {', '.join(sorted(found.machine.open))}")
    return reasons


def check(options: Options) -> None:
    """Mistakes of the command line."""
    if (options.kernel is None) == (options.trace is None):
        raise IoweirError("tune needs one program: a trace's DIR, or --kernel NAME --ranks N", EXIT_USAGE)
    if options.kernel is not None and options.machine is None:
        raise IoweirError(
            f"--kernel {options.kernel} needs a machine: --machine {'|'.join(machines.names())}, or a file that "
            "`ioweir calibrate` made",
            EXIT_USAGE,
        )
    if options.trace is not None and options.compute_s > 0:
        raise IoweirError("--compute is a kernel's; what a recorded program computes is in its trace", EXIT_USAGE)
    if options.repeat < 2:
        raise IoweirError(f"--repeat {options.repeat}: give 2 or more; one run has no range", EXIT_USAGE)
    simulate.check_repeat(options.repeat)
    if options.seed < 0:
        raise IoweirError(f"--seed {options.seed}: give 0 or more", EXIT_USAGE)
    if not options.output.parent.is_dir():
        raise IoweirError(f"{options.output}: its directory is not there; make it first", EXIT_USAGE)
    if options.output.exists() and not options.force:
        raise IoweirError(f"{options.output} is there; name another --output, or --force", EXIT_USAGE)


def _draws(options: Options) -> tuple[int, int]:
    return options.repeat, options.seed


def _seconds(runs: Sequence[dict[str, Any]], times: float, beside_s: float) -> list[float]:
    """Of each run, writing and reading together, of all files, and what is not simulated."""
    return [beside_s + times * sum(run[name]["seconds"] for name in simulate.DIRECTIONS) for run in runs]


def _tried(options: Options, machine: Machine, part: Part, candidate: Candidate) -> dict[str, Any]:
    row: dict[str, Any] = {"strategy": candidate.strategy, "candidate": candidate}
    try:
        rule = PlanRule(candidate.simulated, "a candidate of tune", 0, "a candidate of tune")
        program = part.program if candidate.instead is None else candidate.instead.program
        runs = simulate.runs_of(program, machine, rule, *_draws(options))
    except IoweirError as error:
        return {**row, "error": str(error)}
    low, middle, high = (part.beside_s * ratio for ratio in machine.opening.under(mapping_word(candidate.keys)))
    each = _seconds(runs, part.kind.times, middle)
    return {
        **row,
        "seconds": statistics.median(each),
        "beside": (low, middle, high),
        "predicted": gains.gain(part.before, each, gains.Beside(part.beside_s, (low, middle, high)), machine),
        "other_form": not candidate.same_form,
        "each": each,
    }


def _choice(rows: Sequence[dict[str, Any]], doubt: float = 1.0) -> dict[str, Any] | None:
    """The fastest that helps in all runs; one that leaves the file's form, where that is faster in all runs.

    `doubt`: in the middle run it has to be faster by this factor, too, for the ratio of two plans may be off so far.
    """
    helping = [
        row for row in rows if row["predicted"]["ratio_low"] > 1 and row["predicted"]["ratio"] >= 1 + RUNS_DIFFER
    ]
    if not helping:
        return None
    best = min(helping, key=lambda row: row["seconds"])
    plain = [row for row in helping if not row["other_form"]]
    if not best["other_form"] or not plain:
        return best
    plainest = min(plain, key=lambda row: row["seconds"])
    always = all(new < old for new, old in zip(best["each"], plainest["each"], strict=True))
    return best if always and plainest["seconds"] > doubt * best["seconds"] else plainest


def _reasons(part: Part, chosen: dict[str, Any] | None) -> list[str]:
    good = part.good
    reasons = []
    if chosen is None:
        reasons.append(
            "nothing that was tried is faster than the program as it is in all simulated runs, by 2 % or more"
        )
        if good:
            reasons.append(f"the nearest: {described(good[0])}")
    else:
        reasons.append(f"fastest: {described(chosen)}")
        others = [row for row in good if row is not chosen]
        if others:
            reasons.append(f"second: {described(others[0])}")
        if chosen["candidate"].remark:
            reasons.append(chosen["candidate"].remark)
        if chosen["other_form"]:
            reasons.append("the file has another form afterwards: programs read it under ioweir, or after ioweir merge")
        elif good[0] is not chosen:
            form = ", and leaves the file in another form" if good[0]["other_form"] else ""
            reasons.append(f"{good[0]['strategy']} is faster in the mean, but not surely{form}")
    reasons += [f"not possible: {row['strategy']}: {row['error']}" for row in part.rows if "error" in row]
    if part.pruned:
        reasons.append(f"not tried, for without these stripes it is much slower: {'; '.join(part.pruned)}")
    if part.left:
        reasons.append(f"{part.left} candidates were left out: the budget was used up")
    return reasons


def described(row: Mapping[str, Any]) -> str:
    """Of a candidate: how long it takes, and against none."""
    ratio = row["predicted"]
    return (
        f"{row['strategy']}, {units.seconds(row['seconds'])}, {units.times(ratio['ratio'])} as without a plan "
        f"({ratio['ratio_low']:.2f} .. {ratio['ratio_high']:.2f})"
    )


def _plan_text(options: Options, result: Mapping[str, Any], rules: str) -> str:
    lines = [f"{_MADE_BY} for {result['what']}", f"machine: {result['machine']}", *result["reasons"]]
    shown = shlex.quote(str(options.output))
    lines.append(f"SIMULATED, {options.repeat} runs; measure it: ioweir run --plan {shown} -- CMD")
    return commented(lines, rules)


def commented(lines: Sequence[str], rules: str) -> str:
    """A plan's file: why, and the rules."""
    return "".join(f"{toml_text.comment(line)}\n" for line in lines) + "\n" + rules


def write_plan(options: Options, text: str) -> None:
    """Into the file that the user named."""
    try:
        write_named(options.output, text)
    except OSError as error:
        raise IoweirError(f"{options.output} cannot be written: {reason(error)}", EXIT_USAGE) from error


def to_text(result: Mapping[str, Any]) -> list[str]:
    """For a person."""
    before = _seconds_text(result["before"])
    lines = [f"SIMULATED {result['what']}", f"machine   {result['machine']}", f"as it is  {before}", ""]
    several = len(result["files"]) > 1
    for files in result["files"]:
        if several:
            lines.append(f"{files['match']} (files: {files['files']}), as they are {_seconds_text(files['before'])}")
        rows = [row for row in result["tried"] if row["match"] == files["match"] and "error" not in row]
        wide = max((len(row["strategy"]) for row in rows), default=0)
        wide_time = max((len(units.seconds(row["seconds"])) for row in rows), default=0)
        for row in sorted(rows, key=lambda one: one["seconds"]):
            ratio = row["predicted"]
            lines += columns.row(
                f"  {row['strategy']:<{wide}} {units.seconds(row['seconds']):>{wide_time}}",
                f"{units.times(ratio['ratio'])} ({ratio['ratio_low']:.2f} .. {ratio['ratio_high']:.2f})",
            )
        lines.append("")
    lines += result["reasons"]
    if result["output"]:
        return [*lines, "", f"{result['output']} is written: ioweir run --plan {shlex.quote(result['output'])} -- CMD"]
    return [*lines, "", "No plan is written."]


def _seconds_text(spread: Mapping[str, float]) -> str:
    return f"{units.seconds(spread['seconds'])} ({units.seconds(spread['low'])} .. {units.seconds(spread['high'])})"
