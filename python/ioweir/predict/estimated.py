"""What findings know and no simulation shows: keys of `hdf5` and `netcdf` tables, other keys of a rule, MPI-IO hints.

The simulator moves the bytes of MPI-IO calls; it knows neither the libraries above these nor the drivers beneath. So
what such a key gains is the finding's own estimate (findings/spared.py), from the one run that was traced. It is said
as such and never added to what was simulated.

A rule of a plan has writers, whatever else it has. Where no writers were found to help, a table's keys leave the bytes
to the MPI library, as without a plan. Any other key needs writers of ioweir's (a carrier): what these are simulated or
measured to cost has to be less than what the key saves at the least.

Lives here: which remedies become proposals, which of these a plan takes, and what is said of them. Not here: what a
finding costs (findings), what is simulated (tune.py), what is replayed (loop/measure.py).
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final

from ioweir.base import toml_text, units
from ioweir.base.compiled import compiled
from ioweir.base.runs import RUNS_DIFFER
from ioweir.predict import kinds, simulate
from ioweir.predict.candidates import TABLES, Candidate

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ioweir.findings.model import Finding, Gain, Remedy
    from ioweir.predict.tune import Part, Picks
    from ioweir.trace.reader import Trace

_BESIDES: Final = (*TABLES, "set_size", "visibility")
"""Keys that say nothing of how bytes are moved."""
_BEHIND: Final = "behind"
REPLAYED: Final = "a replay makes these calls, so that --measure shows it"
NOT_REPLAYED: Final = "a replay makes the MPI-IO and POSIX calls beneath the library again, so that it cannot show it"
HINTS_WHERE: Final = (
    "hints are no keys of a plan: give them to MPI_File_open in its MPI_Info, or to ROMIO as lines `NAME VALUE` of a "
    "file that the variable ROMIO_HINTS names"
)
SAID: Final = "estimated from the trace, not simulated"


@dataclass(frozen=True)
class Proposal:
    """One remedy of a finding that cannot be simulated."""

    code: str
    patterns: tuple[str, ...]
    """Of the finding's files, as rules match them."""
    keys: Mapping[str, Any]
    """Of a rule; none where it is hints."""
    hints: Mapping[str, str]
    gain: Gain
    share: float
    """Of the run: what the finding costs, or the part of it that this mends."""
    doubt: str = ""

    @property
    def low(self) -> float:
        """Seconds that it saves at the least."""
        return 0.0 if self.doubt else self.gain.low

    @property
    def behind(self) -> bool:
        """It is a choice of writers, which go on while the program computes."""
        return str(self.keys.get("writers", "")).startswith(_BEHIND)

    @property
    def replayed(self) -> bool:
        """A replay has what it needs to show it."""
        return not any(name in self.keys for name in TABLES)

    @property
    def text(self) -> str:
        """Keys as a plan has them, or hints."""
        if self.hints:
            return ", ".join(f"{name} = {value}" for name, value in self.hints.items())
        return ", ".join(simulate.key_lines(self.keys))

    def saves(self) -> str:
        """Example: estimated from the trace, not simulated, to save 1.00 s to 2.54 s."""
        high = units.seconds(self.gain.high)
        return f"{SAID}, to save {f'{units.seconds(self.low)} to {high}' if self.low > 0 else f'up to {high}'}"


@dataclass
class Known:
    """What the findings of a trace say."""

    wall_s: float = 0.0
    proposals: list[Proposal] = field(default_factory=list)
    strategies: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)
    """Pattern and keys of a rule: they can be simulated."""
    behinds: Mapping[str, str] = field(default_factory=dict)
    """Why files of a pattern cannot be written behind; empty: that was simulated with the others."""

    def strategies_of(self, pattern: str) -> list[Mapping[str, Any]]:
        """For files of one kind."""
        return [keys for match, keys in self.strategies if match == pattern]


@dataclass(frozen=True)
class Decision:
    """Whether the plan has it."""

    proposal: Proposal
    taken: bool
    reason: str

    def row(self) -> dict[str, Any]:
        """As JSON."""
        one = self.proposal
        return {
            "code": one.code,
            "files": list(one.patterns),
            "keys": dict(one.keys),
            "hints": dict(one.hints),
            "gain": {"low": one.low, "high": one.gain.high, "method": "bound", "may_cost": one.gain.may_cost},
            "taken": self.taken,
            "replay_shows_it": one.replayed,
            "reason": self.reason,
        }

    def said(self) -> str:
        """For a person."""
        one = self.proposal
        begin = "taken" if self.taken else "not taken"
        return f"{begin}: {one.text} ({one.code}, {', '.join(one.patterns)}): {one.saves()}; {self.reason}"


@dataclass(frozen=True)
class Carrier:
    """Writers for a rule that is there for other keys."""

    row: dict[str, Any]
    cost_s: float
    """At most, in any run."""
    how: str = "simulated"
    is_library: bool = False
    """The bytes are moved as without a plan."""

    def said(self, pattern: str) -> str:
        """Of the files of a rule."""
        if self.is_library:
            return f"{pattern} stays with the MPI library's own writers"
        cost = f"up to {units.seconds(self.cost_s)}" if self.cost_s > 0 else "nothing"
        return f"{pattern} has {self.row['strategy']} for its sake, {self.how} to cost {cost}"


def of_trace(trace: Trace, known_kinds: Sequence[kinds.Kind]) -> Known:
    """What the findings propose for files of these kinds."""
    from ioweir.report import run_findings  # noqa: PLC0415

    found = run_findings.findings_of(trace)
    return of_findings(found.findings, found.wall_s, [kind.pattern for kind in known_kinds])


def of_findings(findings: Iterable[Finding], wall_s: float, patterns: Sequence[str]) -> Known:
    """The same of findings that are there; most seconds first, as they are. `patterns`: of the kinds."""
    known = Known(wall_s)
    seen: set[tuple[str, tuple[str, ...]]] = set()
    for finding in findings:
        its = {kinds.pattern_of(PurePosixPath(file).name) for file in finding.files}
        mine = tuple(pattern for pattern in patterns if pattern in its)
        if not mine:
            continue
        for remedy in finding.remedies:
            share = finding.seconds / wall_s if wall_s > 0 else 0.0
            keys = _keys(remedy)
            besides = {name: value for name, value in keys.items() if name in _BESIDES}
            moving = {name: value for name, value in keys.items() if name not in _BESIDES}
            if str(moving.get("writers", "")).startswith(_BEHIND):
                besides, moving = keys, {}
            if moving:
                known.strategies += [(pattern, moving) for pattern in mine]
            if not besides and not remedy.hints:
                continue
            own = remedy.saves
            if own is not None:
                share = own.high / wall_s if wall_s > 0 else 0.0
            gain = finding.gain if own is None else own
            one = Proposal(finding.code, mine, besides, dict(remedy.hints), gain, share, remedy.doubt)
            if (one.text, mine) not in seen:
                seen.add((one.text, mine))
                known.proposals.append(one)
    return known


def _keys(remedy: Remedy) -> dict[str, Any]:
    """Of the first rule: those of one remedy differ in the files alone."""
    if not remedy.plan:
        return {}
    rule: dict[str, Any] = toml_text.loads(remedy.plan)["file"][0]
    return {name: value for name, value in rule.items() if name != "match"}


def simulated_carriers(parts: Sequence[Part]) -> list[Carrier | None]:
    """Of each part the fastest candidate that leaves the file as it would be, whether or not it helps."""
    carriers: list[Carrier | None] = []
    for part in parts:
        row = next((row for row in part.good if not row["other_form"]), None)
        if row is None:
            carriers.append(None)
            continue
        cost = max(new - old for old, new in zip(part.before, row["each"], strict=True))
        carriers.append(Carrier(row, max(cost, 0.0)))
    return carriers


def decided(
    known: Known, parts: Sequence[Part], picks: Picks, carriers: Sequence[Carrier | None], *, measured: bool = False
) -> tuple[list[dict[str, Any] | None], list[Decision]]:
    """The candidates of a plan with the keys that it takes, and what becomes of each proposal."""
    chosen = list(picks)
    decisions = []
    for one in known.proposals:
        reason = _refused(one, known, measured=measured)
        if not reason:
            merged, reason = _merged(one, parts, chosen, carriers)
            if merged:
                for place, row in merged.items():
                    chosen[place] = row
                decisions.append(Decision(one, True, reason))
                continue
        decisions.append(Decision(one, False, reason))
    return chosen, decisions


def _refused(one: Proposal, known: Known, *, measured: bool) -> str:
    """Why a plan cannot or should not have it; empty where nothing stands against it."""
    if one.hints:
        return f"{HINTS_WHERE}; {REPLAYED}"
    if one.behind:
        said = {known.behinds.get(pattern) or "" for pattern in one.patterns}
        return "; ".join(sorted(said - {""})) or "it was simulated with the others, and is taken where it is best"
    if one.low <= 0:
        return one.doubt or "the trace does not show that it saves anything"
    if one.share < RUNS_DIFFER:
        return f"what it mends costs less than {100 * RUNS_DIFFER:.0f} % of the run"
    if measured and one.replayed:
        return "every plan that is replayed has it, and what replays show is what counts"
    return ""


def _merged(
    one: Proposal, parts: Sequence[Part], chosen: Picks, carriers: Sequence[Carrier | None]
) -> tuple[dict[int, dict[str, Any]], str]:
    """By part the candidate with the proposal's keys, and what is to be said of it; none, and why not."""
    rows: dict[int, dict[str, Any]] = {}
    carried: list[tuple[str, Carrier]] = []
    for place, part in enumerate(parts):
        if part.kind.pattern not in one.patterns:
            continue
        row = chosen[place]
        if row is None:
            needs_none = all(name in TABLES for name in one.keys)
            carrier = _library(part) if needs_none else carriers[place]
            if carrier is None:
                return {}, "a rule has writers, too, and there are none for it that do no harm"
            carried.append((part.kind.pattern, carrier))
            row = carrier.row
        keys = _with(row["candidate"].keys, one.keys)
        if keys is None:
            return {}, "another finding's remedy sets the same key otherwise"
        candidate = replace(row["candidate"], keys=keys)
        try:
            compiled().check_plan(candidate.text(part.kind.pattern), "the plan")
        except ValueError as error:
            return {}, f"not with {row['strategy']}: {error}"
        rows[place] = {**row, "candidate": candidate}
    if not rows:
        return {}, "no file of these has a rule"
    cost = sum(carrier.cost_s for _, carrier in carried)
    if cost >= one.low:
        how = " and ".join(sorted({carrier.how for _, carrier in carried}))
        return {}, f"a rule has writers, too, and the best of them are {how} to cost up to {units.seconds(cost)}"
    shown = REPLAYED if one.replayed else NOT_REPLAYED
    return rows, "; ".join([*(carrier.said(pattern) for pattern, carrier in carried), shown])


def _library(part: Part) -> Carrier:
    """As it is, in a rule."""
    row = {
        "strategy": "library",
        "candidate": Candidate("library", {"writers": "library"}),
        "seconds": statistics.median(part.before),
        "predicted": {"ratio_low": 1.0, "ratio": 1.0, "ratio_high": 1.0},
        "other_form": False,
        "each": part.before,
        "beside": (part.beside_s, part.beside_s, part.beside_s),
    }
    return Carrier(row, 0.0, is_library=True)


def _with(keys: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any] | None:
    """Both together; None where they contradict each other."""
    both = dict(keys)
    for name, value in more.items():
        if name not in both:
            both[name] = value
        elif isinstance(value, dict) and isinstance(both[name], dict):
            table = _with(both[name], value)
            if table is None:
                return None
            both[name] = table
        elif both[name] != value:
            return None
    return both


def told(decisions: Sequence[Decision], machine_named: str | None) -> list[str]:
    """What is to be said beside what was simulated."""
    lines = [decision.said() for decision in decisions]
    if lines and machine_named is not None:
        lines.append(f"these estimates are of the storage that the trace met, not of {machine_named}")
    if any(decision.taken for decision in decisions):
        lines.append("the prediction is of the writers alone: what was estimated is not in it")
    return lines


def all_hints(known: Known) -> dict[str, str]:
    """Of all findings together; of two values of one hint that of the finding with more seconds."""
    hints: dict[str, str] = {}
    for one in known.proposals:
        for name, value in one.hints.items():
            hints.setdefault(name, value)
    return hints
