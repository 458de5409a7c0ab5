"""`ioweir tune`: the plan under which a program is simulated to be fastest, and why; no plan where none helps.

Every candidate is simulated with the same seeds and the same places within what is not known of the machine, and
compared run by run with the program as it is. A plan that leaves a file in another form has to be faster than the best
that does not, in all of these runs. Lives here: candidates, the choice, the plan's file. Not here: one simulation
(simulate.py), machines fitted to a trace (calibrate.py).
"""

from __future__ import annotations

import itertools
import re
import statistics
import time
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final

from ioweir.base import toml_text, units
from ioweir.base.guarded_files import write_named
from ioweir.errors import EXIT_USAGE, IoweirError
from ioweir.predict import machine as machines
from ioweir.predict import simulate
from ioweir.predict.simulate import PlanRule

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ioweir.predict.machine import Machine
    from ioweir.predict.simulate import Program

_BUFFERS: Final = ("4 MiB", "16 MiB", "64 MiB")
_CALIBRATION_REPEATS: Final = 2
_SAME_FORM: Final = "shared"
_NUMBER: Final = re.compile(r"\d+")


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
    storage: Path | None = None
    """Measured where no machine can be fitted to the trace; None: that is an error then."""


@dataclass(frozen=True)
class Candidate:
    """A rule of a plan."""

    strategy: str
    keys: Mapping[str, Any]

    @property
    def same_form(self) -> bool:
        """The file is afterwards what it would be without a plan."""
        return str(self.keys.get("mapping", _SAME_FORM)) == _SAME_FORM

    def text(self, match: str) -> str:
        """The rule as a plan's file has it."""
        return simulate.rule_text(self.keys, match)


def candidates(ranks: int, ranks_a_node: int, targets: int) -> Iterator[Candidate]:
    """What is tried, the likeliest first. `targets`: of the machine."""
    nodes = -(-ranks // ranks_a_node)
    writers = sorted({nodes, min(ranks, max(nodes, targets)), min(ranks, 2 * nodes)})
    yield Candidate("everyone", {"writers": "everyone"})
    for count, buffer in itertools.product(writers, _BUFFERS):
        keys = {"writers": f"aggregators:{count}", "domains": "even", "buffer": buffer}
        yield Candidate(f"aggregators:{count}, even domains, {buffer}", keys)
    if targets > 1:
        count = min(ranks, targets)
        cyclic = {"writers": f"aggregators:{count}", "domains": "cyclic"}
        yield Candidate(f"aggregators:{count}, cyclic domains", cyclic)
        yield Candidate(f"aggregators:{count}, contention-free", {**cyclic, "order": "contention-free"})
        yield Candidate(f"subfiles:{targets}", {"mapping": f"subfiles:{targets}", **cyclic})
    groups = nodes if nodes > 1 else min(2, ranks)
    if groups > 1:
        yield Candidate(f"grouped:{groups}", {"mapping": f"grouped:{groups}", "writers": "everyone"})
    if ranks > 1:
        yield Candidate("log", {"mapping": "log"})


@dataclass
class Simulated:
    """What the simulation of all candidates found."""

    machine: Machine
    program: Program
    before: list[float]
    """Seconds of each run without a plan."""
    rows: list[dict[str, Any]]
    """One a candidate, with `candidate`, and `seconds`, `predicted`, `other_form`, `each` or `error`."""
    remarks: list[str]
    left: int
    """Candidates that the budget left out."""
    pattern: str
    """Which files a plan is for: the program's, and those that differ from it in numbers."""

    def result(self) -> dict[str, Any]:
        """As JSON, before a plan is chosen."""
        hidden = ("candidate", "each")
        return {
            "simulated": True,
            "what": self.program.what,
            "machine": self.machine.name,
            "before": {"seconds": statistics.median(self.before), "low": min(self.before), "high": max(self.before)},
            "plan": None,
            "output": None,
            "predicted": {"ratio_low": 1.0, "ratio": 1.0, "ratio_high": 1.0},
            "tried": [{name: value for name, value in row.items() if name not in hidden} for row in self.rows],
            "reasons": list(self.remarks),
        }


def simulated(options: Options) -> Simulated:
    """Simulates all candidates, or as many as the budget allows."""
    check(options)
    began = time.monotonic()
    machine, remarks = _machine(options)
    asked = simulate.Options(
        options.machine or machine.name, options.kernel, options.settings, options.ranks, options.trace, options.file,
        repeat=options.repeat, seed=options.seed,
    )  # fmt: skip
    program = simulate.program_of(asked)
    before = _seconds(simulate.runs_of(program, machine, simulate.plan_of(asked, machine, program), *_draws(options)))
    rows: list[dict[str, Any]] = []
    left = 0
    for candidate in candidates(
        program.ranks, int(machine.figures.get("node.ranks", 1)), int(machine.figures["targets.count"])
    ):
        if options.budget_s is not None and time.monotonic() - began > options.budget_s and rows:
            left += 1
            continue
        rows.append(_tried(options, machine, program, candidate, before))
    pattern = "*" if options.trace is None else pattern_of(PurePosixPath(program.path).name)
    return Simulated(machine, program, before, rows, remarks, left, pattern)


def tune(options: Options) -> dict[str, Any]:
    """Chooses by simulation alone; writes the plan where one helps."""
    began = time.monotonic()
    found = simulated(options)
    chosen = _choice([row for row in found.rows if "error" not in row])
    result = found.result()
    result["reasons"] += _reasons(found.rows, chosen, found.left, found.machine)
    if chosen is not None:
        result["predicted"] = chosen["predicted"]
        text = _plan_text(options, chosen, result, found.pattern)
        write_plan(options, text)
        result["plan"] = text
        result["output"] = str(options.output)
    result["wall_s"] = time.monotonic() - began
    return result


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
    if options.repeat < 2:
        raise IoweirError(f"--repeat {options.repeat}: give 2 or more; one run has no range", EXIT_USAGE)
    if options.output.exists() and not options.force:
        raise IoweirError(f"{options.output} is there; name another --output, or --force", EXIT_USAGE)


def _machine(options: Options) -> tuple[Machine, list[str]]:
    """The one that was named, else one fitted to what the trace met."""
    if options.machine is not None:
        return machines.read(options.machine), []
    from ioweir.predict import calibrate  # noqa: PLC0415 (loads an optimiser)

    assert options.trace is not None
    try:
        fitted = calibrate.fit_machine(calibrate.of_trace(options.trace), f"fitted to {options.trace}")
    except IoweirError as error:
        if options.storage is not None:
            measured = calibrate.fit_machine(calibrate.of_storage(options.storage, _CALIBRATION_REPEATS), "measured")
            return machines.parse(measured["machine"], "the machine measured on the spot"), [
                f"the machine is measured at {options.storage}, held-out error {measured['held_out']['median']:.0%} "
                f"(median); to the trace none can be fitted: {error}"
            ]
        raise IoweirError(
            f"no machine can be fitted to {options.trace}: {error}. Or name one: --machine "
            f"{'|'.join(machines.names())}, or what `ioweir calibrate --targets PATH` makes",
            error.exit_code,
        ) from error
    held = fitted["held_out"]
    said = f", held-out error {held['median']:.0%} (median)" if held["cases"] else ""
    return machines.parse(fitted["machine"], "the machine fitted to the trace"), [
        f"the machine is fitted to the trace's own calls{said}: it knows one node and one target"
    ]


def _draws(options: Options) -> tuple[int, int]:
    return options.repeat, options.seed


def _seconds(runs: Sequence[dict[str, Any]]) -> list[float]:
    """Of each run, writing and reading together."""
    return [sum(run[name]["seconds"] for name in simulate.DIRECTIONS) for run in runs]


def _tried(
    options: Options, machine: Machine, program: Program, candidate: Candidate, before: Sequence[float]
) -> dict[str, Any]:
    row: dict[str, Any] = {"strategy": candidate.strategy, "candidate": candidate}
    try:
        rule = PlanRule(candidate.text("*"), "a candidate of tune", 0, "a candidate of tune")
        runs = simulate.runs_of(program, machine, rule, *_draws(options))
    except IoweirError as error:
        return {**row, "error": str(error)}
    each = _seconds(runs)
    ratios = [old / new for old, new in zip(before, each, strict=True) if new > 0] or [1.0]
    return {
        **row,
        "seconds": statistics.median(each),
        "predicted": {"ratio_low": min(ratios), "ratio": statistics.median(ratios), "ratio_high": max(ratios)},
        "other_form": not candidate.same_form,
        "each": each,
    }


def _choice(rows: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """The fastest that helps in all runs; one that leaves the file's form, where that is no slower in any run."""
    helping = [row for row in rows if row["predicted"]["ratio_low"] > 1]
    if not helping:
        return None
    best = min(helping, key=lambda row: row["seconds"])
    plain = [row for row in helping if not row["other_form"]]
    if not best["other_form"] or not plain:
        return best
    plainest = min(plain, key=lambda row: row["seconds"])
    always = all(new < old for new, old in zip(best["each"], plainest["each"], strict=True))
    return best if always else plainest


def _reasons(tried: Sequence[dict[str, Any]], chosen: dict[str, Any] | None, left: int, machine: Machine) -> list[str]:
    good = sorted((row for row in tried if "error" not in row), key=lambda row: row["seconds"])
    reasons = []
    if chosen is None:
        reasons.append("nothing that was tried is faster than the program as it is in all simulated runs")
        if good:
            reasons.append(f"the nearest: {_said(good[0])}")
    else:
        reasons.append(f"fastest: {_said(chosen)}")
        others = [row for row in good if row is not chosen]
        if others:
            reasons.append(f"second: {_said(others[0])}")
        if chosen["other_form"]:
            reasons.append("the file has another form afterwards: programs read it under ioweir, or after ioweir merge")
        elif good[0] is not chosen:
            reasons.append(
                f"{good[0]['strategy']} is faster in the mean, but not in all runs, and leaves the file in another form"
            )
    reasons += [f"not possible: {row['strategy']}: {row['error']}" for row in tried if "error" in row]
    if left:
        reasons.append(f"{left} candidates were left out: the budget was used up")
    if machine.open:
        reasons.append(f"not known of the machine, and varied from run to run: {', '.join(sorted(machine.open))}")
    return reasons


def _said(row: Mapping[str, Any]) -> str:
    ratio = row["predicted"]
    return (
        f"{row['strategy']}, {units.seconds(row['seconds'])}, {ratio['ratio']:.2f} times as fast as without a plan "
        f"({ratio['ratio_low']:.2f} .. {ratio['ratio_high']:.2f})"
    )


def pattern_of(name: str) -> str:
    """Example: dump.00042.h5 -> dump.*.h5: what says the kind of a file stays."""
    kind = PurePosixPath(name).suffix
    if not kind[1:2].isalpha():
        kind = ""
    escaped = (re.sub(r"([\\*?\[\]])", r"\\\1", part) for part in (name.removesuffix(kind), kind))
    return _NUMBER.sub("*", next(escaped)) + next(escaped)


def _plan_text(options: Options, chosen: Mapping[str, Any], result: Mapping[str, Any], match: str) -> str:
    candidate: Candidate = chosen["candidate"]
    lines = [f"made by ioweir tune for {result['what']}", f"machine: {result['machine']}", *result["reasons"]]
    lines.append(f"SIMULATED, {options.repeat} runs; measure it: ioweir run --plan {options.output} -- CMD")
    comments = "".join(f"{toml_text.comment(line)}\n" for line in lines)
    return comments + "\n" + candidate.text(match)


def write_plan(options: Options, text: str) -> None:
    """Into the file that the user named."""
    try:
        write_named(options.output, text)
    except OSError as error:
        raise IoweirError(f"{options.output} cannot be written: {error.strerror}", EXIT_USAGE) from error


def to_text(result: Mapping[str, Any]) -> list[str]:
    """For a person."""
    before = result["before"]
    lines = [
        f"SIMULATED {result['what']}",
        f"machine   {result['machine']}",
        f"as it is  {units.seconds(before['seconds'])} ({units.seconds(before['low'])} .. "
        f"{units.seconds(before['high'])})",
        "",
    ]
    for row in sorted(result["tried"], key=lambda one: one.get("seconds", float("inf"))):
        if "error" in row:
            continue
        ratio = row["predicted"]
        lines.append(
            f"  {row['strategy']:<44} {units.seconds(row['seconds']):>9}  {ratio['ratio']:.2f} times as fast "
            f"({ratio['ratio_low']:.2f} .. {ratio['ratio_high']:.2f})"
        )
    lines += ["", *result["reasons"]]
    if result["output"]:
        return [*lines, "", f"{result['output']} is written: ioweir run --plan {result['output']} -- CMD"]
    return [*lines, "", "No plan is written."]
