"""The figures of one run: what `ioweir report --json` prints and what the text report and `compare` are made from.

Bandwidths follow the definitions in DEFINITIONS and no others; docs/reference/report.md describes every field. Which
processes count is decided in attribute.py, sums come from sums.py, what is no figure from completeness.py; wording and
layout are report_text.py's.
"""

from __future__ import annotations

import os.path
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypedDict

from ioweir.base.progress import watched
from ioweir.base.units import seconds
from ioweir.report import completeness, first_lines
from ioweir.trace import attribute
from ioweir.trace.paths import files_of
from ioweir.trace.reader import DATA_OPS, LAYERS, MPI_IO, OPS, POSIX, STDIO, Trace
from ioweir.trace.runtime_files import is_runtime_file
from ioweir.trace.sums import Amount, Row, Rows, Summation, Sums, layer_and_op, slot_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import IO

REPORT_VERSION: Final = 1

PARTS: Final = ("write", "read", "lock", "unlock", "posix_other", "other")
ORIGINS: Final = ("application", "mpi_library", "engine")
FILE_OPS: Final = (*DATA_OPS, "lock")
"""What a file's layers always have, also without any call."""

DEFINITIONS: Final[dict[str, str]] = {
    "effective": "bytes / sum over ranks of the time spent in that layer's calls (Wright et al. 2013, section 3)",
    "perceived, MPI-IO": "bytes / mean over ranks of the time in MPI-IO calls = ranks x effective (Wright et al. 2013, "
    "Table 5); the same for every layer but POSIX",
    "perceived, POSIX": "cannot be measured; its bounds are the perceived MPI-IO bandwidth below and ranks x effective "
    "POSIX above (Wright et al. 2013, section 3); without MPI-IO of that kind, and where POSIX calls besides those of "
    "MPI-IO were slower, there is no lower bound",
    "span": "bytes / union of the intervals in which any rank is inside the layer",
    "I/O time of a rank": "union of its time in calls of any layer",
    "other, of an MPI-IO call": "its time outside of any POSIX call: exchange between ranks, waiting, copying",
    "layers": "a call of one layer is made of calls of the layers below it, so layers are never added up; STDIO's own "
    "system calls happen inside the C library and appear in no other layer",
    "sizes": "bytes that one call moved, in powers of two: 4 KiB stands for 4096 to 8191 bytes",
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
    longest_s: float
    sizes: dict[str, int]


class Calls(TypedDict):
    """Calls that move no bytes."""

    calls: int
    failed: int
    time_s: float
    longest_s: float


class Decomposition(TypedDict):
    """Where the time of MPI-IO calls of one kind went.

    `parts` is None where POSIX calls were not recorded, or took longer than the calls.
    """

    calls: int
    time_s: float
    parts: Any
    """By PARTS, in seconds."""


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
    clocks: list[dict[str, Any]]
    mpi_libraries: list[str]
    events: int
    events_counted: int
    dropped: int
    partial: bool
    partial_reasons: list[str]
    damage: list[str]
    left_out: dict[str, int]
    unreadable: list[str]
    io: dict[str, Any]
    layers_recorded: list[str]
    layers: dict[str, dict[str, Any]]
    slowest: dict[str, dict[str, dict[str, Any]]]
    decomposition: dict[str, Decomposition]
    inside: list[dict[str, Any]]
    origins: dict[str, dict[str, dict[str, Any]]]
    storage: dict[str, dict[str, Any]]
    locks: dict[str, Any]
    call_sites: list[dict[str, Any]]
    plan: dict[str, Any]
    failures: list[dict[str, Any]]
    messages: list[str]
    not_counted: list[dict[str, Any]]
    runtime_files: dict[str, int]
    verification: dict[str, Any]
    late_ends: dict[str, Any]
    files: list[dict[str, Any]]
    definitions: dict[str, str]


@dataclass(frozen=True)
class _Run:
    """What every figure needs."""

    who: attribute.Attribution
    sums: Sums
    files: Sequence[str]
    recorded: Sequence[str]
    """The layers whose calls were recorded."""
    units: int
    """Over how many ranks (without MPI: processes) a mean is taken."""

    @property
    def unit(self) -> str:
        return "rank" if self.who.has_ranks else "process"

    def name(self, unit: int) -> int:
        return self.who.unit_names[unit]

    def path(self, file: int) -> str:
        return self.files[file] or "(unknown)"


def build(trace: Trace, progress: IO[str] | None = None) -> Report:
    """All figures of a trace. `progress`: a terminal that is told how far a long trace has been read."""
    who = attribute.attribute_processes(trace.processes)
    files, file_of_path = files_of(trace.paths, str(trace.run.get("cwd", "")))
    runtime = [is_runtime_file(name) for name in files]
    summation = Summation(trace, who, file_of_path, runtime, verified=completeness.was_verified(trace))
    sums = watched(summation.run, summation, summation.events, "adding up the trace's events", progress)
    run = _Run(who, sums, files, completeness.recorded_layers(trace), max(who.unit_count, 1))
    wall_s = _wall_s(trace, sums)
    reasons = [*completeness.partial_reasons(trace, who), *_beyond(run, wall_s)]
    call_sites, unresolved = _call_sites(trace, run)
    layers = {layer: {op: _figures(run, sums.job, layer, op) for op in OPS} for layer in LAYERS}
    return Report(
        report_version=REPORT_VERSION,
        trace=trace.directory,
        command=list(trace.run.get("command", [])),
        program=str(trace.run.get("program", "")) or _program(trace, who),
        started=trace.run.get("started"),
        wall_s=wall_s,
        exit_code=trace.run.get("exit_code"),
        signal=trace.run.get("signal"),
        ranks=who.unit_count if who.has_ranks else 0,
        processes=len(
            {(trace.processes[i].host, trace.processes[i].pid) for i, r in enumerate(who.roles) if r.counted}
        ),
        clocks=_clocks(trace, who),
        hosts=list(trace.hosts),
        mpi_libraries=sorted({process.mpi_library for process in trace.processes if process.mpi_library}),
        events=trace.event_count,
        events_counted=sums.counted,
        dropped=trace.dropped,
        partial=bool(reasons),
        partial_reasons=reasons,
        damage=list(trace.damage),
        left_out={"chunks": trace.left_out_chunks, "records": trace.left_out_records},
        unreadable=list(trace.unreadable),
        io=_io(run, wall_s),
        layers_recorded=list(run.recorded),
        layers=layers,
        slowest=_slowest(run),
        decomposition=_decomposition(run, sums.job, sums.parts),
        inside=_inside(sums),
        origins=_origins(sums),
        storage={op: _storage(run, op) for op in DATA_OPS},
        locks=_locks(run),
        call_sites=call_sites,
        plan=completeness.plan_notes(trace, _written(run), completeness.lost_reasons(trace, who)),
        failures=_failures(trace, sums, layers),
        messages=completeness.messages(trace, who) + unresolved,
        not_counted=_not_counted(trace, run),
        runtime_files={"files": sums.runtime_files, "events": sums.runtime.calls, "bytes": sums.runtime.bytes},
        verification={
            "calls": sums.verification.calls,
            "bytes": sums.verification.bytes,
            "time_s": sums.verification.time_ns / 1e9,
        },
        late_ends={
            "calls": sum(sums.late_ends.values()),
            "files": {run.path(file): calls for file, calls in sorted(sums.late_ends.items())},
        },
        files=_file_rows(run),
        definitions=dict(DEFINITIONS),
    )


# --------------------------------------------------------------------------------------------------------- layers


def _figures(run: _Run, rows: Rows, layer: str, op: str) -> Data | Calls:
    row = rows.get(slot_of(layer, op))
    return _data(run, rows, row, layer, op) if op in DATA_OPS else _calls(row)


def _calls(row: Row | None) -> Calls:
    if row is None:
        return Calls(calls=0, failed=0, time_s=0.0, longest_s=0.0)
    return Calls(calls=row.calls, failed=row.failed, time_s=row.time_ns / 1e9, longest_s=row.longest_ns / 1e9)


def _data(run: _Run, rows: Rows, row: Row | None, layer: str, op: str) -> Data:
    lower = None
    if layer == POSIX and (above := rows.get(slot_of(MPI_IO, op))) is not None:
        lower = _rate(run.units * above.bytes, above.time_ns / 1e9)
    if row is None:
        return Data(
            bytes=0, calls=0, failed=0, time_s=0.0, perceived_bytes_per_s=[lower, None] if layer == POSIX else None,
            effective_bytes_per_s=None, span_bytes_per_s=None, span_s=0.0, longest_s=0.0, sizes={},
        )  # fmt: skip
    time_s, span_s = row.time_ns / 1e9, row.span_ns / 1e9
    perceived = _rate(run.units * row.bytes, time_s)
    if lower is not None and perceived is not None and lower > perceived:
        lower = None  # there are POSIX calls besides those that MPI-IO made, and they were slower
    return Data(
        bytes=row.bytes,
        calls=row.calls,
        failed=row.failed,
        time_s=time_s,
        perceived_bytes_per_s=[lower, perceived] if layer == POSIX else perceived,
        effective_bytes_per_s=_rate(row.bytes, time_s),
        span_bytes_per_s=_rate(row.bytes, span_s),
        span_s=span_s,
        longest_s=row.longest_ns / 1e9,
        sizes={str(1 << number >> 1): calls for number, calls in row.sizes},
    )


def _rate(moved: int, seconds: float) -> float | None:
    return moved / seconds if seconds > 0 else None


def _decomposition(run: _Run, rows: Rows, parts: Sequence[Sequence[int]] | None) -> dict[str, Decomposition]:
    result: dict[str, Decomposition] = {}
    for kind, op in enumerate(DATA_OPS):
        row = rows.get(slot_of(MPI_IO, op))
        times = dict.fromkeys(PARTS, 0)
        for posix_op, time_ns in zip(OPS, parts[kind], strict=True) if parts else ():
            times[posix_op if posix_op in PARTS else "posix_other"] += time_ns
        times["other"] = (row.time_ns if row else 0) - sum(times.values())
        known = POSIX in run.recorded and times["other"] >= 0
        result[op] = Decomposition(
            calls=row.calls if row else 0,
            time_s=row.time_ns / 1e9 if row else 0.0,
            parts={name: time / 1e9 for name, time in times.items()} if known else None,
        )
    return result


def _failures(trace: Trace, sums: Sums, layers: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    return first_lines.failures(
        layers,
        {layer_and_op(slot): errors for slot, errors in sums.errors.items()},
        dict(zip(DATA_OPS, sums.unreported, strict=True)),
        {layer_and_op(slot): less for slot, less in sums.less.items()},
        dict(zip(DATA_OPS, sums.unreported_less, strict=True)),
        [process.mpi_library for process in trace.processes if process.mpi_library],
    )


def _inside(sums: Sums) -> list[dict[str, Any]]:
    """What calls with no call around them were made of, one layer down, most time first."""
    rows: list[dict[str, Any]] = []
    for outer, made in sums.inside.items():
        layer, op = layer_and_op(outer)
        whole = sums.outermost[outer]
        parts = [
            {"layer": below, "op": kind, "calls": amount.calls, "bytes": amount.bytes, "time_s": amount.time_ns / 1e9}
            for (below, kind), amount in sorted(
                ((layer_and_op(slot), amount) for slot, amount in made.items()), key=lambda item: -item[1].time_ns
            )
        ]
        other_ns = whole.time_ns - sum(amount.time_ns for amount in made.values())
        rows.append(
            {"layer": layer, "op": op, "calls": whole.calls, "time_s": whole.time_ns / 1e9, "parts": parts}
            | {"other_s": other_ns / 1e9 if other_ns >= 0 else None}
        )
    return sorted(rows, key=lambda row: -row["time_s"])


def _origins(sums: Sums) -> dict[str, dict[str, dict[str, Any]]]:
    result: dict[str, dict[str, dict[str, Any]]] = {}
    for origin, amounts in zip(ORIGINS, sums.origins, strict=False):
        result[origin] = {}
        for op, amount in zip(OPS, amounts, strict=True):
            row: dict[str, Any] = {"calls": amount.calls, "time_s": amount.time_ns / 1e9}
            if op in DATA_OPS:
                row["bytes"] = amount.bytes
            result[origin][op] = row
    return result


def _file_rows(run: _Run) -> list[dict[str, Any]]:
    """One row a file that has counted events, most time in one layer first (layers hold each other's time)."""
    layers = [
        layer
        for layer in LAYERS
        if layer in (MPI_IO, POSIX) or any(layer_and_op(slot)[0] == layer for slot in run.sums.job)
    ]
    # Every layer's operations in order, with whether a file has them always.
    columns = [(layer, [(op, slot_of(layer, op), op in FILE_OPS) for op in OPS]) for layer in layers]
    order = sorted(run.sums.by_file.items(), key=lambda item: (-_most_time(item[1]), run.files[item[0]]))
    return [
        {
            "path": run.path(file),
            "layers": {
                layer: {op: _figures(run, rows, layer, op) for op, slot, always in ops if always or slot in rows}
                for layer, ops in columns
            },
            "decomposition": _decomposition(run, rows, run.sums.file_parts.get(file)),
        }
        for file, rows in order
    ]


def _written(run: _Run) -> dict[str, int]:
    """Bytes that MPI-IO calls wrote, by path."""
    slot = slot_of(MPI_IO, "write")
    return {run.path(file): rows[slot].bytes for file, rows in run.sums.by_file.items() if slot in rows}


def _most_time(rows: Rows) -> int:
    times: dict[int, int] = {}
    for slot, row in rows.items():
        layer = slot // len(OPS)
        times[layer] = times.get(layer, 0) + row.time_ns
    return max(times.values())


# ---------------------------------------------------------------------------------------------- ranks and wall time


def _wall_s(trace: Trace, sums: Sums) -> float:
    """The run's wall time; without run.json, from the first process's start to the last thing that is known."""
    wall = trace.run.get("wall_s")
    if isinstance(wall, int | float):
        return float(wall)
    ends = [max(process.start_ns, process.end_ns, process.mpi_finalize_ns) for process in trace.processes]
    if sums.last_end_ns is not None:
        ends.append(sums.last_end_ns)
    starts = [process.start_ns for process in trace.processes]
    return (max(ends) - min(starts)) / 1e9 if starts else 0.0


def _beyond(run: _Run, wall_s: float) -> list[str]:
    """That somebody was in calls for longer than the run took, which only damage and wrong clocks say."""
    longest_s = max(run.sums.unit_io_ns) / 1e9
    if longest_s <= wall_s * 1.001 + 0.001:
        return []
    return [
        f"damaged: times cannot be right: {seconds(longest_s)} in calls of one {run.unit}, "
        f"in a run of {seconds(wall_s)}"
    ]


def _program(trace: Trace, who: attribute.Attribution) -> str:
    for process, role in zip(trace.processes, who.roles, strict=True):
        if role in (attribute.Role.RANK, attribute.Role.PROGRAM) and process.executable:
            return os.path.basename(process.executable)  # noqa: PTH119 (text of another machine)
    return ""


def _io(run: _Run, wall_s: float) -> dict[str, Any]:
    """How much of the wall time the ranks spent in I/O, and in what: only calls with no other call around them."""
    union = run.sums.unit_io_ns
    mean_s = sum(union) / 1e9 / run.units
    slowest = max(range(len(union)), key=lambda unit: union[unit])
    order = sorted(enumerate(run.sums.outermost), key=lambda item: -item[1].time_ns)
    return {
        "unit": run.unit,
        "mean_s": mean_s,
        "max_s": union[slowest] / 1e9,
        "slowest": run.name(slowest) if union[slowest] > 0 else None,
        "share_of_wall": mean_s / wall_s if wall_s > 0 and not _beyond(run, wall_s) else None,
        "where": [_where(run, slot, amount) for slot, amount in order if amount.time_ns > 0],
    }


def _where(run: _Run, slot: int, amount: Amount) -> dict[str, Any]:
    layer, op = layer_and_op(slot)
    row: dict[str, Any] = {"layer": layer, "op": op, "mean_s": amount.time_ns / 1e9 / run.units, "calls": amount.calls}
    if op in DATA_OPS:
        row["bytes"] = amount.bytes
    return row


def _slowest(run: _Run) -> dict[str, dict[str, dict[str, Any]]]:
    """Per layer and operation that occur, the rank that spent most time in it; means hide it."""
    worst: dict[int, tuple[int, int]] = {}
    for unit, rows in run.sums.by_unit.items():
        for slot, row in rows.items():
            if slot not in worst or (row.time_ns, -unit) > (worst[slot][0], -worst[slot][1]):
                worst[slot] = (row.time_ns, unit)
    result: dict[str, dict[str, dict[str, Any]]] = {}
    for slot in sorted(worst):
        layer, op = layer_and_op(slot)
        time_ns, unit = worst[slot]
        result.setdefault(layer, {})[op] = {
            "rank": run.name(unit),
            "time_s": time_ns / 1e9,
            "mean_s": run.sums.job[slot].time_ns / 1e9 / run.units,
        }
    return result


def _storage(run: _Run, op: str) -> dict[str, Any]:
    """Which ranks touched storage, in what way, who took longest, and who did it for others."""
    slot, stdio = slot_of(POSIX, op), slot_of(STDIO, op)
    rows = {unit: rows[slot] for unit, rows in sorted(run.sums.by_unit.items()) if slot in rows and rows[slot].bytes}
    slowest = None
    if rows:
        unit = max(rows, key=lambda unit: rows[unit].time_ns)
        slowest = {
            "rank": run.name(unit),
            "time_s": rows[unit].time_ns / 1e9,
            "bytes": rows[unit].bytes,
            "mean_time_s": sum(row.time_ns for row in rows.values()) / 1e9 / len(rows),
        }
    kind = DATA_OPS.index(op)
    collective = run.sums.collective
    return {
        "ranks": [run.name(unit) for unit in rows],
        "slowest": slowest,
        "aggregators": [run.name(unit) for unit in sorted(collective) if collective[unit][kind].bytes],
        "by_rank": [
            {"rank": run.name(unit), "bytes": row.bytes, "calls": row.calls, "time_s": row.time_ns / 1e9}
            for unit, row in rows.items()
        ],
        "stdio_ranks": [
            run.name(unit) for unit, own in sorted(run.sums.by_unit.items()) if stdio in own and own[stdio].bytes
        ],
    }


def _locks(run: _Run) -> dict[str, Any]:
    """Time in calls that take locks, which is the waiting for them."""
    slot = slot_of(POSIX, "lock")
    row = run.sums.job.get(slot)
    if row is None:
        return {"calls": 0, "failed": 0, "time_s": 0.0, "longest": None, "by_file": [], "by_rank": []}
    return {
        "calls": row.calls,
        "failed": row.failed,
        "time_s": row.time_ns / 1e9,
        "longest": {
            "time_s": row.longest_ns / 1e9,
            "start_s": row.longest_start_ns / 1e9,
            "rank": run.name(row.longest_unit),
            "path": run.path(row.longest_file),
        },
        "by_file": [
            {"path": run.path(row.group)} | _lock_row(row) for row in _by_time(run.sums.by_file.values(), slot)
        ],
        "by_rank": [
            {"rank": run.name(row.group)} | _lock_row(row) for row in _by_time(run.sums.by_unit.values(), slot)
        ],
    }


def _by_time(groups: Iterable[Rows], slot: int) -> list[Row]:
    return sorted((rows[slot] for rows in groups if slot in rows), key=lambda row: (-row.time_ns, row.group))


def _lock_row(row: Row) -> dict[str, Any]:
    return {
        "calls": row.calls,
        "failed": row.failed,
        "time_s": row.time_ns / 1e9,
        "longest_s": row.longest_ns / 1e9,
    }


def _clocks(trace: Trace, who: attribute.Attribution) -> list[dict[str, Any]]:
    counted = completeness.counted_hosts(trace, who)
    return [
        {
            "host": host,
            "aligned": clock.aligned,
            "offset_s": [clock.first_offset_ns / 1e9, clock.last_offset_ns / 1e9],
            "uncertainty_s": clock.uncertainty_ns / 1e9,
        }
        for host, clock in zip(trace.hosts, trace.clocks, strict=False)
        if host in counted
    ]


def _call_sites(trace: Trace, run: _Run) -> tuple[list[dict[str, Any]], list[str]]:
    """Who made the calls, most time first: a row a line of the program, layer and operation. Empty without --callsites.

    And what has to be said about lines that are unknown.
    """
    if not any(run.sums.by_site):
        return [], []
    from ioweir.programs import symbols  # noqa: PLC0415 (only traces with call sites need it)
    from ioweir.trace import callsites  # noqa: PLC0415 (only traces with call sites need it)

    used = [site for site in run.sums.by_site if trace.sites[site]]
    frames = {frame for site in used for frame in trace.sites[site]}
    resolver = callsites.Resolver(trace.modules, frames, symbols.find_tool())
    rows: dict[Any, dict[str, Any]] = {}
    for site in used:
        calls = resolver.calls(trace.sites[site])
        place = callsites.shown(calls)
        if place is None:
            continue
        for slot, sums in run.sums.by_site[site].items():
            layer, op = layer_and_op(slot)
            # Places of one line are one row: they differ in the column, or in what the compiler made of a loop.
            known = place.location.line is not None
            key = (place.module, place.location if known else place.address, layer, op)
            row = rows.setdefault(
                key,
                {"layer": layer, "op": op, "calls": 0, "bytes": 0, "time_s": 0.0, "where": place.words()}
                | place.described()
                | {"chains": []},
            )
            row["calls"] += sums.calls
            row["bytes"] += sums.bytes
            row["time_s"] += sums.time_ns / 1e9
            row["chains"].append([call.described() for call in calls])
    said = [
        f"call sites in {path} are addresses only: the file is gone, or not the one that ran (its build id differs)"
        for path in sorted(resolver.changed)
        if callsites.owner_of(path, symbols.Location()) is callsites.Owner.PROGRAM
    ]
    return sorted(rows.values(), key=lambda row: (-row["time_s"], row["where"], row["layer"], row["op"])), said


def _not_counted(trace: Trace, run: _Run) -> list[dict[str, Any]]:
    """The process images whose I/O is in no figure, by executable and reason."""
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for process, role, amount in zip(trace.processes, run.who.roles, run.sums.by_process, strict=True):
        if role.counted:
            continue
        row = rows.setdefault(
            (process.executable, role.value),
            {"executable": process.executable, "reason": role.value, "images": 0, "events": 0, "bytes": 0},
        )
        row["images"] += 1
        row["events"] += amount.calls
        row["bytes"] += amount.bytes
    return sorted(rows.values(), key=lambda row: (-row["events"], row["executable"]))
