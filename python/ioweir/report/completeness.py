"""What a trace says beside its figures: what a plan did, what the user should know.

Why it may lack something is lacking.py's, figures are figures.py's; wording and layout of the text report are
report_text.py's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from ioweir.base.units import plural
from ioweir.report import chosen, engine_work, first_lines, other_form, verification, weighed
from ioweir.report.lacking import PARTIAL_NOTES, had_nothing_to_record, partial_reasons
from ioweir.report.model import Checked, Noted, PassedThrough, Plan
from ioweir.trace.paths import clean_path

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ioweir.trace.attribute import Attribution
    from ioweir.trace.reader import Trace

Row = TypeVar("Row")


def plan_notes(trace: Trace, written: Mapping[str, int], lacking: Sequence[str]) -> Plan:
    """What the engine did and did not do, from the notes. Counts of all ranks are added.

    `written`: bytes that MPI-IO calls wrote, by path; `lacking`: lost_reasons().
    """
    directory = str(trace.run.get("cwd", ""))
    sums: dict[str, dict[tuple[str, str], int]] = {}
    for note in trace.notes:
        path = clean_path(note.path, directory)
        texts = sums.setdefault(note.code, {})
        texts[path, note.text] = texts.get((path, note.text), 0) + note.value

    def rows(code: str, kind: Callable[[str, str, int], Row]) -> list[Row]:
        return [kind(path, text, value) for (path, text), value in sums.get(code, {}).items()]

    passed = rows("passed_through", PassedThrough)
    applied = rows("plan_applied", lambda path, text, _: Noted(path, text))
    engine = engine_work.rows(trace)
    matched = {row.path for row in (*applied, *passed)}
    adapted = dict.fromkeys(
        clean_path(note.path, directory)
        for note in trace.notes
        if note.code == "message" and note.text.startswith("hdf5: applied: ")
    )
    file = trace.run.get("plan")
    return Plan(
        file=file,
        applied=applied,
        passed_through=passed,
        engine=engine,
        verify=verification.judge(
            trace, rows("verify_ok", Checked), rows("verify_mismatch", Checked),
            {path: count for path, count in written.items() if path in matched}, lacking,
        ),
        carried_out=first_lines.carried_out(file, applied, passed, sum(row.bytes for row in engine), list(adapted)),
        weighed=weighed.rows(trace),
        chosen=chosen.rows(trace),
        other_form=other_form.of([*(row.path for row in applied), *written] if file or applied else []),
    )  # fmt: skip


def lost_reasons(trace: Trace, who: Attribution) -> list[str]:
    """Why the trace may lack what a rank has said; empty when nothing is missing."""
    reasons = partial_reasons(trace, who)
    return [] if not reasons else [f"the trace is partial: {reason}" for reason in reasons if not _is_note(reason)]


def _is_note(reason: str) -> bool:
    return reason.startswith(tuple(f"{code}: " for code in PARTIAL_NOTES))


def messages(trace: Trace, who: Attribution) -> list[str]:
    """What the user should know besides."""
    lines = [f"{note.path}: {note.text}" if note.path else note.text for note in trace.notes if note.code == "message"]
    lines += engine_work.words_of_before(trace)
    if trace.counted is not None:
        lines.append(f"imported from a log of {trace.counted.tool}: {trace.counted.log}")
        return [*lines, *trace.counted.unseen]
    if (came := trace.run.get("imported")) is not None:
        return [*lines, f"imported from a log of {came['tool']}: {came['log']}", *came["unseen"]]
    if had_nothing_to_record(trace) and not trace.dropped and not trace.damage:
        lines.append(
            "nothing was recorded: the processes that ioweir watched made no call that is traced (a statically linked "
            "program is watched only if ioweir is linked in)"
        )
    ranks = [process.rank for process in trace.processes if process.rank >= 0]
    if len(ranks) > len(set(ranks)):
        hold = f"{len(ranks)} processes hold {len(who.unit_names)} {plural('rank number', len(who.unit_names))}"
        why = _SEVERAL_WORLDS if len(set(ranks)) > 1 else _RANK_0_EACH
        lines.append(f"{hold}, and their figures are added: {why}")
    lines += _clock_lines(trace, who)
    return list(dict.fromkeys(lines))


_SEVERAL_WORLDS: Final = "several MPI programs ran one after the other or spawned each other"
_RANK_0_EACH: Final = (
    "each was a program of its own. If they should have been one, the launcher is not that of the program's MPI "
    "library (`ioweir doctor -- COMMAND` says so)"
)


def counted_hosts(trace: Trace, who: Attribution) -> set[str]:
    """The nodes on which something ran that is in the figures: not that of a launcher."""
    return {trace.processes[at].host for at, role in enumerate(who.roles) if role.counted}


def _clock_lines(trace: Trace, who: Attribution) -> list[str]:
    """Whether times of different nodes can be compared."""
    counted = counted_hosts(trace, who)
    clocks = zip(trace.hosts, trace.clocks, strict=False)
    own = [host for host, clock in clocks if host in counted and not clock.aligned]
    if len(counted) < 2 or not own:
        return []
    which = "their own clocks" if len(own) == len(counted) else f"the own clocks of {', '.join(own)}"
    return [
        f"the nodes' times are compared by {which} (CLOCK_REALTIME): an order of events across nodes means little. "
        "The clock of the run was not asked (no MPI, a rank's first process was killed) or did not answer"
    ]
