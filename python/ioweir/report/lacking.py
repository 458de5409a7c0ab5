"""Why a trace may lack something, and which calls were recorded at all.

What else it says beside its figures is completeness.py's.
"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Final

from ioweir.base.locate import RUN_FILE
from ioweir.base.spec_names import LAYERS
from ioweir.base.units import gaps, number_list, run_list

if TYPE_CHECKING:
    from ioweir.trace.attribute import Attribution
    from ioweir.trace.reader import Trace


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
    if not trace.processes and not trace.damage and not had_nothing_to_record(trace):
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
    reasons.extend(dict.fromkeys(f"{n.code}: {n.text or n.path}" for n in trace.notes if n.code in PARTIAL_NOTES))
    reasons.extend(_run_reasons(trace))
    return reasons


def had_nothing_to_record(trace: Trace) -> bool:
    """Whether what was started was watched and made no call that is traced: such processes leave a header only.

    Of a launcher's ranks that does not tell anything: it and its helpers are watched as well.
    """
    launcher = trace.run.get("launcher") or {}
    return bool(trace.hosts) and not trace.processes and not launcher.get("path") and not launcher.get("kind")


PARTIAL_NOTES: Final = ("disabled", "untraced")
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
