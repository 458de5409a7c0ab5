"""Findings in words: at the end of `ioweir run`, of `ioweir findings`, and what a code means."""

from __future__ import annotations

import shlex
import textwrap
from typing import TYPE_CHECKING, Final

from ioweir.base.runs import RUNS_DIFFER
from ioweir.base.units import number_list, seconds
from ioweir.errors import EXIT_USAGE, IoweirError
from ioweir.findings.model import SEEMING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from ioweir.findings.model import Evidence, Finding, Findings, Gain
    from ioweir.findings.rule import Rule

_WIDTH: Final = 110
_LONGEST_NAME: Final = 256
SHORT: Final = 3
"""How many findings stand at the end of a run."""


def explain(code: str) -> list[str]:
    """What a code means, where it comes from, and what it cannot see."""
    from ioweir.findings.table import BY_CODE  # noqa: PLC0415 (loads every rule)

    rule = BY_CODE.get(code)
    if rule is None:
        raise IoweirError(f"no finding is called '{code}'{_nearest(code, BY_CODE)}", EXIT_USAGE)
    return list(_explained(rule))


def _nearest(code: str, known: Collection[str]) -> str:
    """What was probably meant, and what there is. Example: "; did you mean 'sync-cost'? known: ..."."""
    import difflib  # noqa: PLC0415

    near = difflib.get_close_matches(code, known, 1)
    return (f"; did you mean '{near[0]}'?" if near else ";") + f" known: {', '.join(known) or 'none'}"


def _explained(rule: Rule) -> Iterator[str]:
    yield f"{rule.code}: {rule.title}"
    yield ""
    for head, words in sections(rule):
        yield from textwrap.wrap(f"{head}: {words}", _WIDTH, subsequent_indent="  ")


def sections(rule: Rule) -> list[tuple[str, str]]:
    """The parts of a rule's text, for the terminal and for the reference page."""
    parts = [("Definition", rule.definition), ("Source", rule.source)]
    parts += [("Threshold", f"{one.name}: {one.value}. {one.why}") for one in rule.thresholds]
    parts.append(("Gain", rule.gain))
    if rule.limits:
        parts.append(("Limits", rule.limits))
    needs = ", ".join(f"calls of {layer}" for layer in rule.needs) or "a trace of whatever layers"
    parts.append(("Needs", needs + ("; MPI ranks" if rule.of_ranks else "")))
    return parts


def nothing(found: Findings) -> str:
    """That a run is as it should be. Example: Nothing to gain in I/O: 0.4 s of 300 s."""
    share = 100 * found.io_s / found.wall_s if found.wall_s > 0 else 0.0
    return (
        f"Nothing to gain in I/O: {seconds(found.io_s)} of {seconds(found.wall_s)} ({share:.1f} %) are I/O, "
        "and no rule found a fault."
    )


def lacking(reasons: Sequence[str]) -> list[str]:
    """That a trace is not whole, and why: calls that were not recorded are in no finding, nor in "nothing to gain"."""
    if not reasons:
        return []
    return ["PARTIAL: this is of what was recorded only, because:", *(f"  - {reason}" for reason in reasons)]


def short(found: Findings, directory: str, program: str = "CMD") -> list[str]:
    """The most expensive findings in at most 20 lines, and the command for the first remedy."""
    if not found.findings:
        return [nothing(found)] if not blind(found) else [*found.unseen[:2]]
    directory = shlex.quote(directory)
    lines = []
    for at, finding in enumerate(found.findings[:SHORT], 1):
        lines.append(f"{at}. {_head(finding, found.wall_s)}")
        lines += _wrapped(finding.summary, most=2)
        if finding.remedies:
            lines += _wrapped(f"What to do: {finding.remedies[0].text}.", most=2)
    more = len(found.findings) - SHORT
    first = found.findings[0]
    plan = next((remedy for remedy in first.remedies if remedy.plan), None)
    if plan is not None:
        lines.append(f"Try it: ioweir findings {directory} --plan {first.code} > plan.toml")
        lines.append(f"        ioweir run --plan plan.toml -- {program}")
    said = f"{more} more, " if more > 0 else ""
    lines.append(f"All of it: {said}ioweir findings {directory}; what it means: ioweir findings --explain {first.code}")
    return lines


def full(found: Findings, directory: str) -> list[str]:
    """Every finding with its evidence, cause and remedies."""
    lines = [f"SIMULATED on {found.simulated}: nothing in here was measured."] if found.simulated is not None else []
    if not found.findings:
        return [*lines, nothing(found) if not blind(found) else "No finding.", *_unseen(found.unseen)]
    directory = shlex.quote(directory)
    lines.append(f"I/O takes {seconds(found.io_s)} of {seconds(found.wall_s)} on the critical path.")
    for at, finding in enumerate(found.findings, 1):
        lines += ["", f"{at}. {_head(finding, found.wall_s)}"]
        lines += _wrapped(finding.summary)
        lines += _wrapped(f"Why: {finding.cause}")
        lines += [f"   - {evidence_text(evidence)}" for evidence in finding.evidence]
        if finding.files:
            more = f" and {len(finding.files) - 3} more" if len(finding.files) > 3 else ""
            lines.append(f"   Files: {', '.join(map(_short_name, finding.files[:3]))}{more}")
        if finding.ranks:
            lines.append(f"   By {number_list(finding.ranks, found.unit, most=6)}")
        for remedy in finding.remedies:
            lines += _wrapped(f"{_KINDS[remedy.kind]}: {remedy.text}")
            if remedy.plan:
                lines += [f"       {line}" for line in remedy.plan.rstrip().splitlines()]
            if remedy.saves is not None:
                lines += _wrapped(f"This alone may save {gain_text(remedy.saves, found.wall_s)}")
            if remedy.doubt:
                lines += _wrapped(f"It may change nothing: {remedy.doubt}")
        if any(remedy.plan for remedy in finding.remedies):
            lines.append(f"   The plan as a file: ioweir findings {directory} --plan {finding.code} > plan.toml")
        for words in finding.unseen:
            lines += _wrapped(f"Not seen: {words.partition(': ')[2]}")
    return [*lines, "", *_unseen(found.unseen)]


_KINDS: Final = {"plan": "Plan", "hint": "Hint", "source": "In the program", "striping": "Striping"}


def plan_of(found: Findings, code: str) -> str:
    """The first plan among a finding's remedies."""
    for finding in found.findings:
        if finding.code == code:
            for remedy in finding.remedies:
                if remedy.plan:
                    return remedy.plan
            raise IoweirError(f"no plan helps against '{code}': see `ioweir findings` for what does", EXIT_USAGE)
    codes = list(dict.fromkeys(finding.code for finding in found.findings))
    raise IoweirError(f"this run has no finding '{code}'{_nearest(code, codes)}", EXIT_USAGE)


def blind(found: Findings) -> bool:
    """Whether too little is known for "nothing to gain" to be said."""
    return bool(found.unseen) and (found.io_s == 0 or found.unseen[0].startswith("all codes: "))


def _head(finding: Finding, wall_s: float) -> str:
    share = 100 * finding.seconds / wall_s if wall_s > 0 else 0.0
    return (
        f"{finding.title} [{finding.severity}, {finding.code}]: costs {seconds(finding.seconds)} ({share:.0f} % of "
        "the run); "
        f"a repair may save {gain_text(finding.gain, wall_s)}"
    )


def gain_text(gain: Gain, wall_s: float) -> str:
    """What a repair may save. Example: Gain(0, 2.5) -> "up to 2.50 s". By how much runs differ is no cost."""
    if gain.may_cost > max(RUNS_DIFFER * wall_s, SEEMING * gain.high) * (1 + 1e-9):
        return f"up to {seconds(gain.high)}, or cost up to {seconds(gain.may_cost)} more"
    return f"{seconds(gain.low)} to {seconds(gain.high)}" if gain.low > 0 else f"up to {seconds(gain.high)}"


def _short_name(path: str) -> str:
    """A file's name without the middle, where it is very long; JSON has all of it."""
    return path if len(path) <= _LONGEST_NAME else f"{path[: _LONGEST_NAME // 2]}...{path[-_LONGEST_NAME // 2 :]}"


def evidence_text(evidence: Evidence) -> str:
    """A figure with its unit."""
    value, unit = evidence.figure, evidence.unit
    if unit == "s":
        return f"{evidence.text}: {seconds(value)}"
    number = f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}"
    return f"{evidence.text}: {number} {unit}"


def _wrapped(words: str, most: int = 99) -> list[str]:
    sentence = words[:1].upper() + words[1:]
    return textwrap.wrap(
        sentence,
        _WIDTH,
        initial_indent="   ",
        subsequent_indent="     ",
        max_lines=most,
        placeholder=" ...",
        break_on_hyphens=False,
    )


def _unseen(unseen: Sequence[str]) -> list[str]:
    return [f"Not looked for: {words}" for words in unseen]
