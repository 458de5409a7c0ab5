"""The figures of one run: what `ioweir report --json` prints and what the text report and `compare` are made from.

Bandwidths follow the definitions in DEFINITIONS and no others. Which processes and events count is decided in
attribute.py; wording and layout are report_text.py's.
"""

from __future__ import annotations

import os.path
import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypedDict

import numpy as np

from ioweir import attribute
from ioweir.intervals import Indices, Int64s, count_by_group, sum_by_group, union_by_group
from ioweir.locate import RUN_FILE
from ioweir.runtime_files import is_runtime_file
from ioweir.trace import FLAG_FAILED, MPI_IO, ORIGIN_ENGINE, POSIX, Trace
from ioweir.units import number_list

if TYPE_CHECKING:
    from collections.abc import Sequence

REPORT_VERSION: Final = 1

OPS: Final = ("write", "read", "lock", "unlock", "open", "close", "view", "sync", "split", "meta")
DATA_OPS: Final = ("write", "read")
PARTS: Final = ("write", "read", "lock", "unlock", "posix_other", "other")
ORIGINS: Final = ("application", "mpi_library", "engine")

DEFINITIONS: Final[dict[str, str]] = {
    "effective": "bytes / sum over ranks of the time spent in that layer's calls (Wright et al. 2013, section 3)",
    "perceived, MPI-IO": "bytes / mean over ranks of the time in MPI-IO calls = ranks x effective (Wright et al. 2013, "
    "Table 5)",
    "perceived, POSIX": "cannot be measured; its bounds are the perceived MPI-IO bandwidth below and ranks x effective "
    "POSIX above (Wright et al. 2013, section 3); without MPI-IO of that kind there is no lower bound",
    "span": "bytes / union of the intervals in which any rank is inside the layer",
    "I/O time of a rank": "union of its time in calls of any layer",
    "other, of an MPI-IO call": "its time outside of any POSIX call: exchange between ranks, waiting, copying",
}


class Data(TypedDict):
    """Reads or writes of one layer."""

    bytes: int
    calls: int
    failed: int
    time_s: float
    perceived_bytes_per_s: float | list[float | None] | None
    effective_bytes_per_s: float | None
    span_bytes_per_s: float | None
    span_s: float


class Calls(TypedDict):
    """Calls that move no bytes."""

    calls: int
    failed: int
    time_s: float


class Decomposition(TypedDict):
    """Where the time of MPI-IO calls of one kind went."""

    calls: int
    time_s: float
    parts: dict[str, float]


class Report(TypedDict):
    """Everything that `ioweir report --json` prints."""

    report_version: int
    trace: str
    command: list[str]
    program: str
    started: float | None
    wall_s: float
    exit_code: int | None
    signal: int | None
    ranks: int
    processes: int
    hosts: list[str]
    mpi_libraries: list[str]
    events: int
    events_counted: int
    dropped: int
    partial: bool
    partial_reasons: list[str]
    damage: list[str]
    io: dict[str, Any]
    layers: dict[str, dict[str, Any]]
    decomposition: dict[str, Decomposition]
    origins: dict[str, dict[str, dict[str, Any]]]
    storage: dict[str, dict[str, Any]]
    plan: dict[str, Any]
    messages: list[str]
    not_counted: list[dict[str, Any]]
    runtime_files: dict[str, int]
    verification: dict[str, Any]
    files: list[dict[str, Any]]
    definitions: dict[str, str]


@dataclass(frozen=True)
class _Events:
    """The events that count, once per layer, ascending by start. A slot is a layer and an operation."""

    slot: Indices
    unit: Indices
    file: Indices
    start: Int64s
    end: Int64s
    duration: Int64s
    moved: Int64s
    begun: Int64s
    """0 where an event ends what another call began, else 1: what counts as calls."""
    failed: Int64s
    origin: Indices
    outermost: attribute.Flags
    part: Indices
    """Position in PARTS of a POSIX event."""
    call_kind: Indices
    """Position in DATA_OPS of the MPI-IO call around a POSIX event, -1 without one."""
    call_file: Indices
    layer_names: tuple[str, ...]
    units: int
    """Over how many ranks (without MPI: processes) a mean is taken."""

    @property
    def slots(self) -> int:
        return len(self.layer_names) * len(OPS)

    def slot_of(self, layer: str, op: str) -> int:
        return self.layer_names.index(layer) * len(OPS) + OPS.index(op)


@dataclass(frozen=True)
class _Sums:
    """Sums per group and slot, as tables of `groups` rows."""

    calls: Int64s
    failed: Int64s
    moved: Int64s
    time_ns: Int64s
    span_ns: Int64s


def build(trace: Trace) -> Report:
    """All figures of a trace."""
    who = attribute.attribute_processes(trace.processes)
    files, file_of_path = _files(trace)
    of_runtime = np.array([is_runtime_file(name) for name in files], dtype=np.bool_)
    nesting = _nesting(trace)
    program = attribute.counted_events(trace, who)
    own = ~of_runtime[_file_numbers(trace, file_of_path)]
    verifying = program & own & _verifies(trace, nesting)
    events = _select(trace, who, file_of_path, nesting, program & own & ~verifying)
    job = _sums(events, np.zeros(events.slot.size, dtype=np.intp), 1)
    per_file = _sums(events, events.file, len(files))
    job_parts, file_parts = _decomposition(events, 1, None), _decomposition(events, len(files), events.call_file)
    reasons = partial_reasons(trace, who)
    wall_s = _wall_s(trace)
    run = trace.run
    return Report(
        report_version=REPORT_VERSION,
        trace=trace.directory,
        command=list(run.get("command", [])),
        program=str(run.get("program", "")) or _program(trace, who),
        started=run.get("started"),
        wall_s=wall_s,
        exit_code=run.get("exit_code"),
        signal=run.get("signal"),
        ranks=who.unit_count if who.has_ranks else 0,
        processes=len(
            {(trace.processes[i].host, trace.processes[i].pid) for i, r in enumerate(who.roles) if r.counted}
        ),
        hosts=list(trace.hosts),
        mpi_libraries=sorted({process.mpi_library for process in trace.processes if process.mpi_library}),
        events=trace.event_count,
        events_counted=int(events.slot.size),
        dropped=trace.dropped,
        partial=bool(reasons),
        partial_reasons=reasons,
        damage=list(trace.damage),
        io=_io(events, who, wall_s),
        layers=_layers(events, job, 0),
        decomposition=_parts(events, job, 0, job_parts),
        origins=_origins(events),
        storage=_storage(events, who),
        plan=_plan(trace),
        messages=_messages(trace, who),
        not_counted=_not_counted(trace, who),
        runtime_files=_runtime_files(trace, file_of_path, program & ~own),
        verification={
            "calls": int(verifying.sum()),
            "bytes": int(np.maximum(trace.bytes[verifying], 0).sum()),
            "time_s": int(np.maximum(trace.duration_ns[verifying], 0).sum()) / 1e9,
        },
        files=_file_rows(events, per_file, file_parts, files),
        definitions=dict(DEFINITIONS),
    )


# ------------------------------------------------------------------------------------------------------- selection


def _files(trace: Trace) -> tuple[list[str], Indices]:
    """The files' names, and per path of the trace the file it names. Example: ufs:/a/./b and /a/b are one file."""
    directory = str(trace.run.get("cwd", ""))
    number: dict[str, int] = {}
    indices = [number.setdefault(clean_path(path, directory), len(number)) for path in trace.paths]
    return list(number) or [""], np.array(indices or [0], dtype=np.intp)


def clean_path(path: str, directory: str) -> str:
    """A path without ROMIO's file-system prefix, absolute where the run's directory is known."""
    prefix, colon, rest = path.partition(":")
    if colon and "/" not in prefix and prefix.isalpha() and len(prefix) > 1:
        path = rest
    if not path:
        return ""
    if not path.startswith("/") and directory:
        path = os.path.join(directory, path)  # noqa: PTH118 (text of another machine, not a path of this one)
    return os.path.normpath(path)


def _file_numbers(trace: Trace, file_of_path: Indices) -> Indices:
    return file_of_path[np.minimum(trace.path, file_of_path.size - 1)]


def _nesting(trace: Trace) -> attribute.Nesting:
    layers, names = attribute.layer_codes(trace)
    return attribute.nest(trace, layers, names.index(MPI_IO))


def _verifies(trace: Trace, nesting: attribute.Nesting) -> attribute.Flags:
    """What --verify reads back in a close: I/O of neither program nor plan. The engine reads nothing else there."""
    ops = attribute.op_codes(trace, OPS)
    closing = (nesting.mpi_call >= 0) & (ops[nesting.mpi_call] == OPS.index("close"))
    found: attribute.Flags = closing & (trace.origin == ORIGIN_ENGINE) & (ops == OPS.index("read"))
    return found


def _select(
    trace: Trace,
    who: attribute.Attribution,
    file_of_path: Indices,
    nesting: attribute.Nesting,
    counted: attribute.Flags,
) -> _Events:
    layers, names = attribute.layer_codes(trace)
    ops = attribute.op_codes(trace, OPS)
    chosen = np.flatnonzero(counted & nesting.top_of_layer)
    start = trace.start_ns[chosen]
    order = np.argsort(start)
    chosen, start = chosen[order], start[order]
    layer, op = layers[chosen].astype(np.intp), ops[chosen].astype(np.intp)
    duration = np.maximum(trace.duration_ns[chosen], 0)
    files = _file_numbers(trace, file_of_path)
    call = nesting.mpi_call[chosen]
    inside = (call >= 0) & (layer == names.index(POSIX))
    call_op = np.where(inside, ops[call], -1)
    call_kind = np.where(inside & (call_op < len(DATA_OPS)), call_op, -1).astype(np.intp)
    return _Events(
        slot=layer * len(OPS) + op,
        unit=who.units[trace.process[chosen]],
        file=files[chosen],
        start=start,
        end=start + duration,
        duration=duration,
        moved=np.where(op < len(DATA_OPS), np.maximum(trace.bytes[chosen], 0), 0),
        begun=(~np.isin(trace.function[chosen], [f.id for f in trace.functions if f.completes])).astype(np.int64),
        failed=(trace.flags[chosen] & FLAG_FAILED).astype(np.int64),
        origin=trace.origin[chosen].astype(np.intp),
        outermost=nesting.outermost[chosen],
        part=np.minimum(op, PARTS.index("posix_other")),
        call_kind=call_kind,
        call_file=files[call],
        layer_names=names,
        units=max(who.unit_count, 1),
    )


def _sums(events: _Events, group: Indices, groups: int) -> _Sums:
    key = group * events.slots + events.slot
    size = groups * events.slots
    return _Sums(
        calls=sum_by_group(events.begun, key, size),
        failed=sum_by_group(events.failed, key, size),
        moved=sum_by_group(events.moved, key, size),
        time_ns=sum_by_group(events.duration, key, size),
        span_ns=union_by_group(events.start, events.end, key, size),
    )


# --------------------------------------------------------------------------------------------------------- layers


def _layers(events: _Events, sums: _Sums, group: int) -> dict[str, dict[str, Any]]:
    rows: dict[str, dict[str, Any]] = {}
    for layer in events.layer_names:
        row: dict[str, Any] = {}
        for op in OPS:
            at = group * events.slots + events.slot_of(layer, op)
            row[op] = _data(events, sums, layer, op, group) if op in DATA_OPS else _calls(sums, at)
        rows[layer] = row
    return rows


def _calls(sums: _Sums, at: int) -> Calls:
    return Calls(calls=int(sums.calls[at]), failed=int(sums.failed[at]), time_s=int(sums.time_ns[at]) / 1e9)


def _data(events: _Events, sums: _Sums, layer: str, op: str, group: int) -> Data:
    at = group * events.slots + events.slot_of(layer, op)
    moved, time_s, span_s = int(sums.moved[at]), int(sums.time_ns[at]) / 1e9, int(sums.span_ns[at]) / 1e9
    perceived: float | list[float | None] | None = _rate(events.units * moved, time_s)
    if layer == POSIX:
        mpi = group * events.slots + events.slot_of(MPI_IO, op)
        lower = _rate(events.units * int(sums.moved[mpi]), int(sums.time_ns[mpi]) / 1e9)
        perceived = [lower, _rate(events.units * moved, time_s)]
    return Data(
        bytes=moved,
        calls=int(sums.calls[at]),
        failed=int(sums.failed[at]),
        time_s=time_s,
        perceived_bytes_per_s=perceived,
        effective_bytes_per_s=_rate(moved, time_s),
        span_bytes_per_s=_rate(moved, span_s),
        span_s=span_s,
    )


def _rate(moved: int, seconds: float) -> float | None:
    return moved / seconds if seconds > 0 else None


def _decomposition(events: _Events, groups: int, group: Indices | None) -> Int64s:
    """Time of POSIX calls inside MPI-IO calls: a table of group, kind of MPI-IO call, part."""
    inside = np.flatnonzero(events.call_kind >= 0)
    key = events.call_kind[inside] * len(PARTS) + events.part[inside]
    if group is not None:
        key = key + group[inside] * (len(DATA_OPS) * len(PARTS))
    return sum_by_group(events.duration[inside], key, groups * len(DATA_OPS) * len(PARTS))


def _parts(events: _Events, sums: _Sums, group: int, parts: Int64s) -> dict[str, Decomposition]:
    result: dict[str, Decomposition] = {}
    for kind, op in enumerate(DATA_OPS):
        at = group * events.slots + events.slot_of(MPI_IO, op)
        first = (group * len(DATA_OPS) + kind) * len(PARTS)
        times = [int(value) for value in parts[first : first + len(PARTS)]]
        times[PARTS.index("other")] = int(sums.time_ns[at]) - sum(times)
        result[op] = Decomposition(
            calls=int(sums.calls[at]),
            time_s=int(sums.time_ns[at]) / 1e9,
            parts={name: time / 1e9 for name, time in zip(PARTS, times, strict=True)},
        )
    return result


def _origins(events: _Events) -> dict[str, dict[str, dict[str, Any]]]:
    posix = np.flatnonzero(events.slot // len(OPS) == events.layer_names.index(POSIX))
    key = events.origin[posix] * len(OPS) + events.slot[posix] % len(OPS)
    size = (int(events.origin.max(initial=0)) + len(ORIGINS)) * len(OPS)
    calls = count_by_group(key, size)
    moved = sum_by_group(events.moved[posix], key, size)
    times = sum_by_group(events.duration[posix], key, size)
    result: dict[str, dict[str, dict[str, Any]]] = {}
    for number, origin in enumerate(ORIGINS):
        result[origin] = {}
        for position, op in enumerate(OPS):
            at = number * len(OPS) + position
            row: dict[str, Any] = {"calls": int(calls[at]), "time_s": int(times[at]) / 1e9}
            if op in DATA_OPS:
                row["bytes"] = int(moved[at])
            result[origin][op] = row
    return result


def _file_rows(events: _Events, sums: _Sums, parts: Int64s, files: Sequence[str]) -> list[dict[str, Any]]:
    """One row a file that has counted events, most time first."""
    used = sums.calls.reshape(len(files), events.slots).sum(axis=1)
    time = sums.time_ns.reshape(len(files), events.slots).sum(axis=1)
    rows: list[dict[str, Any]] = []
    for index in sorted(np.flatnonzero(used).tolist(), key=lambda i: (-int(time[i]), files[i])):
        rows.append(
            {
                "path": files[index] or "(unknown)",
                "layers": _layers(events, sums, index),
                "decomposition": _parts(events, sums, index, parts),
            }
        )
    return rows


# ---------------------------------------------------------------------------------------------- ranks and wall time


def _wall_s(trace: Trace) -> float:
    """The run's wall time; without run.json, from the first process's start to the last thing that is known."""
    wall = trace.run.get("wall_s")
    if isinstance(wall, int | float):
        return float(wall)
    ends = [max(process.start_ns, process.end_ns, process.mpi_finalize_ns) for process in trace.processes]
    if trace.event_count:
        ends.append(int((trace.start_ns + np.maximum(trace.duration_ns, 0)).max()))
    starts = [process.start_ns for process in trace.processes]
    return (max(ends) - min(starts)) / 1e9 if starts else 0.0


def _program(trace: Trace, who: attribute.Attribution) -> str:
    for process, role in zip(trace.processes, who.roles, strict=True):
        if role in (attribute.Role.RANK, attribute.Role.PROGRAM) and process.executable:
            return os.path.basename(process.executable)  # noqa: PTH119 (text of another machine)
    return ""


def _io(events: _Events, who: attribute.Attribution, wall_s: float) -> dict[str, Any]:
    """How much of the wall time the ranks spent in I/O, and in what: only calls with no other call around them."""
    names = len(who.unit_names)
    outer = np.flatnonzero(events.outermost)
    union = union_by_group(events.start[outer], events.end[outer], events.unit[outer], max(names, 1))
    where = sum_by_group(events.duration[outer], events.slot[outer], events.slots)
    mean_s = int(union.sum()) / 1e9 / events.units
    slowest = int(union.argmax())
    kinds = [
        {
            "layer": events.layer_names[at // len(OPS)],
            "op": OPS[at % len(OPS)],
            "mean_s": int(where[at]) / 1e9 / events.units,
        }
        for at in np.argsort(-where, kind="stable").tolist()
        if where[at] > 0
    ]
    return {
        "unit": "rank" if who.has_ranks else "process",
        "mean_s": mean_s,
        "max_s": int(union[slowest]) / 1e9,
        "slowest": who.unit_names[slowest] if names and union[slowest] > 0 else None,
        "share_of_wall": mean_s / wall_s if wall_s > 0 else None,
        "where": kinds,
    }


def _storage(events: _Events, who: attribute.Attribution) -> dict[str, dict[str, Any]]:
    """Which ranks touched storage, in what way, and who took longest."""
    units = max(len(who.unit_names), 1)
    key = events.unit * events.slots + events.slot
    moved = sum_by_group(events.moved, key, units * events.slots).reshape(units, events.slots)
    times = sum_by_group(events.duration, key, units * events.slots).reshape(units, events.slots)
    result: dict[str, dict[str, Any]] = {}
    for op in DATA_OPS:
        at = events.slot_of(POSIX, op)
        touched = np.flatnonzero(moved[:, at] > 0)
        slowest = None
        if touched.size:
            unit = int(touched[times[touched, at].argmax()])
            slowest = {
                "rank": who.unit_names[unit],
                "time_s": int(times[unit, at]) / 1e9,
                "bytes": int(moved[unit, at]),
                "mean_time_s": int(times[touched, at].sum()) / 1e9 / int(touched.size),
            }
        result[op] = {"ranks": [who.unit_names[unit] for unit in touched.tolist()], "slowest": slowest}
    return result


# ------------------------------------------------------------------------------------------- completeness and notes


def partial_reasons(trace: Trace, who: attribute.Attribution) -> list[str]:
    """Why the trace is not the whole story; empty when it is."""
    reasons: list[str] = []
    if trace.dropped:
        reasons.append(f"{trace.dropped} events were dropped")
    if trace.disabled_processes:
        reasons.append(f"{trace.disabled_processes} processes stopped tracing for want of space")
    reasons.extend(f"damaged: {line}" for line in trace.damage)
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
    missing = set(range(who.unit_count)) - {p.rank for p in ranks.values()} if who.has_ranks else set()
    if missing:
        reasons.append(f"left no trace: {number_list(missing)} of {who.unit_count}")
    reasons.extend(dict.fromkeys(f"{n.code}: {n.text or n.path}" for n in trace.notes if n.code in _PARTIAL_NOTES))
    reasons.extend(_run_reasons(trace))
    return reasons


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


def _plan(trace: Trace) -> dict[str, Any]:
    """What the engine did and did not do, from the notes. Counts of all ranks are added."""
    directory = str(trace.run.get("cwd", ""))
    sums: dict[str, dict[tuple[str, str], int]] = {}
    engine: dict[str, dict[str, Any]] = {}
    for note in trace.notes:
        path = clean_path(note.path, directory)
        if note.code == "engine_summary":
            row = engine.setdefault(path, {"path": path, "ranks": 0, "bytes": 0, "texts": []})
            row["ranks"] += 1
            row["bytes"] += note.value
            row["texts"].append(note.text)
            continue
        texts = sums.setdefault(note.code, {})
        texts[path, note.text] = texts.get((path, note.text), 0) + note.value

    def rows(code: str, value: str) -> list[dict[str, Any]]:
        return [{"path": p, "text": t, value: v} for (p, t), v in sums.get(code, {}).items()]

    ok, bad = rows("verify_ok", "bytes"), rows("verify_mismatch", "bytes")
    return {
        "file": trace.run.get("plan"),
        "applied": [{"path": p, "text": t} for p, t in sums.get("plan_applied", {})],
        "passed_through": rows("passed_through", "calls"),
        "engine": list(engine.values()),
        "verify": {
            "requested": bool(trace.run.get("verify", False)),
            "result": "mismatch" if bad else "ok" if ok else "nothing verified" if trace.run.get("verify") else None,
            "ok": ok,
            "mismatch": bad,
        },
    }


def _messages(trace: Trace, who: attribute.Attribution) -> list[str]:
    lines = [f"{note.path}: {note.text}" if note.path else note.text for note in trace.notes if note.code == "message"]
    ranks = [process.rank for process in trace.processes if process.rank >= 0]
    if len(ranks) > len(set(ranks)):
        lines.append(
            f"{len(ranks)} processes hold {len(who.unit_names)} rank numbers: several MPI programs ran one after the "
            "other or spawned each other, and their figures are added"
        )
    return list(dict.fromkeys(lines))


def _not_counted(trace: Trace, who: attribute.Attribution) -> list[dict[str, Any]]:
    """The process images whose I/O is in no figure, by executable and reason."""
    events = np.bincount(trace.process, minlength=len(trace.processes))
    moved = sum_by_group(
        np.where(attribute.op_codes(trace, OPS) < len(DATA_OPS), np.maximum(trace.bytes, 0), 0),
        trace.process.astype(np.intp),
        max(len(trace.processes), 1),
    )
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for index, (process, role) in enumerate(zip(trace.processes, who.roles, strict=True)):
        if role.counted:
            continue
        row = rows.setdefault(
            (process.executable, role.value),
            {"executable": process.executable, "reason": role.value, "images": 0, "events": 0, "bytes": 0},
        )
        row["images"] += 1
        row["events"] += int(events[index])
        row["bytes"] += int(moved[index])
    return sorted(rows.values(), key=lambda row: (-row["events"], row["executable"]))


def _runtime_files(trace: Trace, file_of_path: Indices, chosen: attribute.Flags) -> dict[str, int]:
    """How much of the trace concerns files that the MPI runtime made for itself."""
    data = attribute.op_codes(trace, OPS)[chosen] < len(DATA_OPS)
    return {
        "files": int(np.unique(_file_numbers(trace, file_of_path)[chosen]).size),
        "events": int(chosen.sum()),
        "bytes": int(np.maximum(trace.bytes[chosen], 0)[data].sum()),
    }
