"""What a trace says beside its figures: why it may lack something, what a plan did, what the user should know.

Figures are figures.py's; wording and layout of the text report are report_text.py's.
"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Final, TypeVar

from ioweir.base.locate import RUN_FILE
from ioweir.base.spec_names import LAYERS
from ioweir.base.units import gaps, number_list, plural, run_list
from ioweir.report import chosen, engine_work, first_lines, other_form, verification, weighed
from ioweir.report.model import Checked, Noted, PassedThrough, Plan
from ioweir.trace.paths import clean_path

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ioweir.trace.attribute import Attribution
    from ioweir.trace.reader import Trace

Row = TypeVar("Row")


def partial_reasons(trace: Trace, who: Attribution) -> list[str]:
    """Why the trace is not the whole story; empty when it is."""
    reasons: list[str] = []
    if trace.dropped:
        reasons.append(f"{trace.dropped} events were dropped")
    if trace.disabled_processes:
        reasons.append(f"{trace.disabled_processes} processes stopped tracing for want of space")
    reasons.extend(f"damaged: {line}" for line in trace.damage)
    if trace.counted is not None:
        return [*reasons, *trace.counted.partial]
    if (came := trace.run.get("imported")) is not None:
        return [*reasons, *came["partial"]]
    if not trace.processes and not trace.damage and not _had_nothing_to_record(trace):
        reasons.append(
            "no process left a trace: none made a call that ioweir records, none could be watched (`ioweir doctor -- "
            "COMMAND` says why), or ioweir said on stderr what stood in the way"
        )
    ranks = {i: p for i, p in enumerate(trace.processes) if p.rank >= 0}
    # A pid that went on as another program after exec has no end of its own.
    went_on = {(p.host, p.pid): p.start_ns for p in sorted(trace.processes, key=lambda p: p.start_ns)}
    unfinished = {p.rank for p in ranks.values() if p.mpi_finalize_ns < 0}
    not_ended = {
        p.rank
        for p in ranks.values()
        if p.rank not in unfinished and p.end_ns < 0 and went_on[p.host, p.pid] <= p.start_ns
    }
    if unfinished:
        reasons.append(f"never reached MPI_Finalize: {number_list(unfinished)}")
    if not_ended:
        reasons.append(f"did not end normally after MPI_Finalize: {number_list(not_ended)}")
    sampled = trace.run.get("simulated", {"ranks": 0, "ranks_written": 0})
    if sampled["ranks_written"] < sampled["ranks"]:
        reasons.append(
            f"a sample of {sampled['ranks_written']:,} of {sampled['ranks']:,} simulated ranks, numbered anew"
        )
    missing = gaps({p.rank for p in ranks.values()}, who.unit_count) if who.has_ranks else []
    if missing:
        reasons.append(f"left no trace: {run_list(missing)} of {who.unit_count}")
    reasons.extend(dict.fromkeys(f"{n.code}: {n.text or n.path}" for n in trace.notes if n.code in _PARTIAL_NOTES))
    reasons.extend(_run_reasons(trace))
    return reasons


def _had_nothing_to_record(trace: Trace) -> bool:
    """Whether what was started was watched and made no call that is traced: such processes leave a header only.

    Of a launcher's ranks that does not tell anything: it and its helpers are watched as well.
    """
    launcher = trace.run.get("launcher") or {}
    return bool(trace.hosts) and not trace.processes and not launcher.get("path") and not launcher.get("kind")


_PARTIAL_NOTES: Final = ("disabled", "untraced")
# What a shell or a launcher returns when a program it started was ended by such a signal.
_DEADLY: Final = {
    128 + number
    for number in (
        signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGILL, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE,
        signal.SIGKILL, signal.SIGSEGV, signal.SIGPIPE, signal.SIGTERM, signal.SIGXCPU, signal.SIGXFSZ,
    )
}  # fmt: skip


def _run_reasons(trace: Trace) -> list[str]:
    run = trace.run
    if run.get("signal"):
        return [f"the command was ended by signal {run['signal']} ({_signal_name(int(run['signal']))})"]
    if run.get("state") == "running":
        return [f"{RUN_FILE} says that the run has not ended: it is still going on, or ioweir itself was killed"]
    code = run.get("exit_code")
    if isinstance(code, int) and code in _DEADLY:
        return [f"the command returned {code}: something it started was ended by {_signal_name(code - 128)}"]
    return []


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def recorded_layers(trace: Trace) -> list[str]:
    """The layers whose calls were recorded: those of --layers; all where that is not known."""
    if trace.counted is not None:
        return [layer for layer in LAYERS if layer in trace.counted.layers]
    chosen = (trace.run.get("tracing") or {}).get("layers")
    return [layer for layer in LAYERS if layer in chosen] if isinstance(chosen, list) else list(LAYERS)


def was_verified(trace: Trace) -> bool:
    """Whether the engine read back what it had written, by what the run was asked for or the trace says."""
    return bool(trace.run.get("verify") or trace.verdicts) or any(note.code in _VERIFY_NOTES for note in trace.notes)


_VERIFY_NOTES: Final = ("verify_ok", "verify_mismatch")


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
    return reason.startswith(tuple(f"{code}: " for code in _PARTIAL_NOTES))


def messages(trace: Trace, who: Attribution) -> list[str]:
    """What the user should know besides."""
    lines = [f"{note.path}: {note.text}" if note.path else note.text for note in trace.notes if note.code == "message"]
    lines += engine_work.words_of_before(trace)
    if trace.counted is not None:
        lines.append(f"imported from a log of {trace.counted.tool}: {trace.counted.log}")
        return [*lines, *trace.counted.unseen]
    if (came := trace.run.get("imported")) is not None:
        return [*lines, f"imported from a log of {came['tool']}: {came['log']}", *came["unseen"]]
    if _had_nothing_to_record(trace) and not trace.dropped and not trace.damage:
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
