"""Findings and the summary as HTML: what the page says without any script, so that it can be read and printed by all.

Every text is escaped where it enters (`_t`); tags are written here alone.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Final

from ioweir.base import plain_text
from ioweir.base.units import number_list, plural, seconds, size
from ioweir.findings import text as finding_text
from ioweir.findings.text import evidence_text, gain_text
from ioweir.html.markup import escaped as _t
from ioweir.report import first_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ioweir.findings.model import Finding, Findings, Remedy
    from ioweir.report import model

_KINDS: Final = {"plan": "Plan", "hint": "Hint", "source": "In the program", "striping": "Striping"}
_MOST_NAMES: Final = 5
_LONGEST: Final = 200


def summary(report: model.Report, found: Findings) -> str:
    """What ran, how long, how much of it was I/O, and what the figures lack."""
    share = 100 * found.io_s / report.wall_s if report.wall_s > 0 else 0.0
    who = f"{report.ranks} {plural('rank', report.ranks)}" if report.ranks else _processes(report.processes)
    cards = [
        (
            "Wall time",
            seconds(report.wall_s),
            who + (f" on {len(report.hosts)} nodes" if len(report.hosts) > 1 else ""),
        ),
        ("I/O on the critical path", seconds(found.io_s), f"{share:.1f} % of the run"),
        ("Written", size(_moved(report, "write")), "to files"),
        ("Read", size(_moved(report, "read")), "from files"),
        ("Findings", str(len(found.findings)), _worst(found)),
    ]
    boxes = "".join(
        f'<div class="card"><span class="what">{_t(what)}</span><b>{_t(value)}</b><span>{_t(more)}</span></div>'
        for what, value, more in cards
    )
    lines = "".join(f"<li>{_t(reason)}</li>" for reason in [*report.partial_reasons, *report.damage])
    partial = f'<div class="warning" role="note"><b>The trace is partial:</b><ul>{lines}</ul></div>' if lines else ""
    return f'<div class="cards">{boxes}</div>{_simulated(report)}{_imported(report)}{partial}'


def _simulated(report: model.Report) -> str:
    """That nothing was measured, and of which ranks the plots are; empty for a real run."""
    if report.simulated is None:
        return ""
    first, *more = (_t(line) for line in first_lines.simulated_lines(report.simulated))
    words = "".join(f" {line}" for line in more)
    what = f"{_t(report.simulated.what)}; {_t(report.simulated.plan)}."
    return f'<div class="warning" role="note"><b>{first}</b>{words} {what}</div>'


def _imported(report: model.Report) -> str:
    """That the figures come from another tool's log, and what it does not record; empty for a trace of ioweir's."""
    if report.imported is None:
        return ""
    lines = "".join(f"<li>{_t(words)}</li>" for words in report.imported.unseen)
    said = f"Imported from a log of {_t(report.imported.tool)}: {_t(report.imported.log)}."
    return f'<div class="warning" role="note"><b>{said}</b> Plots show what the log holds alone.<ul>{lines}</ul></div>'


def _processes(count: int) -> str:
    return f"{count} {plural('process', count)} without MPI"


def _moved(report: model.Report, op: str) -> int:
    """Bytes at the storage; where those calls were not recorded, of the highest layer that was."""
    amounts = {layer: int(getattr(ops.get(op), "bytes", 0)) for layer, ops in report.layers.items()}
    lowest = amounts.get("POSIX", 0) + amounts.get("STDIO", 0)
    return lowest or max(amounts.values(), default=0)


def _worst(found: Findings) -> str:
    if not found.findings:
        return "nothing to mend"
    return f"worst: {found.findings[0].severity}"


def findings(found: Findings, directory: str, program: str) -> str:
    """Every finding with price, gain, cause, evidence, remedies, plan and command; or that there is none."""
    parts = [_finding(at, one, found, directory, program) for at, one in enumerate(found.findings, 1)]
    if not parts:
        said = "No finding." if finding_text.blind(found) else finding_text.nothing(found)
        parts = [f'<p class="clean">{_t(said)}</p>']
    if found.unseen:
        rows = "".join(f"<li>{_t(words)}</li>" for words in found.unseen)
        parts.append(f"<details><summary>Not looked for ({len(found.unseen)})</summary><ul>{rows}</ul></details>")
    return "".join(parts)


def _finding(at: int, one: Finding, found: Findings, directory: str, program: str) -> str:
    share = 100 * one.seconds / found.wall_s if found.wall_s > 0 else 0.0
    evidence = "".join(f"<li>{_t(evidence_text(entry))}</li>" for entry in one.evidence)
    where = _t(f"By {number_list(one.ranks, found.unit, most=8)}") if one.ranks else ""
    names = "".join(f"<li><code>{_t(_short(name))}</code></li>" for name in one.files[:_MOST_NAMES])
    if len(one.files) > _MOST_NAMES:
        names += f"<li>and {len(one.files) - _MOST_NAMES} more</li>"
    remedies = "".join(_remedy(at, number, remedy, found.wall_s) for number, remedy in enumerate(one.remedies))
    unseen = "".join(f"<li>{_t(words.partition(': ')[2])}</li>" for words in one.unseen)
    return (
        f'<article class="finding {_t(one.severity)}" id="finding-{at}" data-code="{_t(one.code)}">'
        f'<h3>{at}. {_t(one.title or one.code)} <span class="severity">{_t(one.severity)}</span> '
        f'<code class="code">{_t(one.code)}</code></h3>'
        f'<p class="price"><b>Costs {_t(seconds(one.seconds))}</b> ({share:.0f} % of the run). '
        f"A repair may save {_t(gain_text(one.gain, found.wall_s))} ({_t(one.gain.method)}).</p>"
        f"<p>{_t(_sentence(one.summary))}</p><p><b>Why.</b> {_t(_sentence(one.cause))}</p>"
        f'<div class="two"><div><h4>Evidence</h4><ul>{evidence}</ul></div>'
        f'<div><h4>Where</h4><p>{where}</p><ul class="names">{names}</ul></div></div>'
        f"<h4>What to do</h4><ol>{remedies}</ol>{''.join(_commands(at, one, directory, program))}"
        + (f"<details><summary>What this rule could not see</summary><ul>{unseen}</ul></details>" if unseen else "")
        + "</article>"
    )


def _remedy(at: int, number: int, remedy: Remedy, wall_s: float) -> str:
    said = remedy.text if remedy.kind == "hint" else _sentence(remedy.text)  # hints begin with their names
    words = f"<b>{_t(_KINDS.get(remedy.kind, remedy.kind))}.</b> {_t(said)}"
    saves = "" if remedy.saves is None else f" This alone may save {_t(gain_text(remedy.saves, wall_s))}."
    doubt = f" It may change nothing: {_t(remedy.doubt)}." if remedy.doubt else ""
    return f"<li>{words}{saves}{doubt}{_copied(f'plan-{at}-{number}', 'plan', remedy.plan)}</li>"


def _copied(name: str, what: str, text: str) -> str:
    """A text with a button that copies it; nothing for an empty one."""
    if not text:
        return ""
    lines = "\n".join(_t(line) for line in text.rstrip().splitlines())
    return (
        f'<div class="copied"><pre id="{name}" tabindex="0">{lines}</pre>'
        f'<button type="button" data-copies="{name}">Copy {what}</button></div>'
    )


def _commands(at: int, one: Finding, directory: str, program: str) -> Iterator[str]:
    """How to try the first plan."""
    if any(remedy.plan for remedy in one.remedies):
        text = (
            f"ioweir findings {shlex.quote(plain_text.line(directory))} --plan {one.code} > plan.toml\n"
            f"ioweir run --plan plan.toml -- {plain_text.line(program)}"
        )
        yield f"<h4>Try it</h4>{_copied(f'command-{at}', 'commands', text)}"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]}...{text[-_LONGEST // 2 :]}"
