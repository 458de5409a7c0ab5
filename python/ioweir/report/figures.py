"""The figures of one run: what `ioweir report --json` prints and what the text report and `compare` are made from.

Bandwidths follow the definitions in DEFINITIONS and no others; docs/reference/report.md describes every field. Which
processes count is decided in attribute.py, sums come from sums.py, what is no figure from completeness.py; wording and
layout are report_text.py's.
"""

from __future__ import annotations

import os.path
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ioweir.base.progress import watched
from ioweir.base.spec_names import DATA_OPS, IO_LAYERS, LAYERS, MPI_IO, OPS, POSIX, STDIO, WAITING
from ioweir.base.units import seconds
from ioweir.report import completeness, first_lines, lacking, model, steps
from ioweir.report.run_findings import wall_from
from ioweir.trace import attribute
from ioweir.trace.reader import Trace
from ioweir.trace.runtime_files import is_runtime_file
from ioweir.trace.sums import Amount, Row, Rows, Summation, Sums, Waited, layer_and_op, least_bytes, slot_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import IO

    from ioweir.trace.callsites import Call

REPORT_VERSION: Final = 1

_ALIKE: Final = 0.05
"""Of the time of the rank that took longest."""
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


@dataclass(frozen=True)
class _Run:
    """What every figure needs."""

    who: attribute.Attribution
    sums: Sums
    files: Sequence[str]
    recorded: Sequence[str]
    """The layers whose calls were recorded."""
    without_events: bool
    """Which calls made which others is not known."""
    units: int
    """Over how many ranks (without MPI: processes) a mean is taken."""

    @property
    def unit(self) -> str:
        return "rank" if self.who.has_ranks else "process"

    def name(self, unit: int) -> int:
        return self.who.unit_names[unit]

    def path(self, file: int) -> str:
        return self.files[file] or "(unknown)"


def build(trace: Trace, progress: IO[str] | None = None) -> model.Report:
    """All figures of a trace. `progress`: a terminal that is told how far a long trace has been read."""
    who = attribute.attribute_processes(trace.processes)
    files, sums = _sums(trace, who, progress)
    recorded = lacking.recorded_layers(trace)
    run = _Run(who, sums, files, recorded, trace.counted is not None, max(who.unit_count, 1))
    wall_s = wall_from(trace, lambda: sums.last_end_ns)
    reasons = [*lacking.partial_reasons(trace, who), *_beyond(run, wall_s)]
    call_sites, unresolved = _call_sites(trace, run)
    layers = {layer: {op: _figures(run, sums.job, layer, op) for op in OPS} for layer in LAYERS}
    return model.Report(
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
        left_out=model.LeftOut(trace.left_out_chunks, trace.left_out_records),
        unreadable=list(trace.unreadable),
        io=_io(run, wall_s),
        layers_recorded=list(run.recorded),
        layers=layers,
        slowest=_slowest(run),
        decomposition=_of_run(run),
        inside=_inside(sums),
        origins=_origins(sums),
        storage={op: _storage(run, op) for op in DATA_OPS},
        locks=_locks(run),
        call_sites=call_sites,
        plan=completeness.plan_notes(trace, _written(run), completeness.lost_reasons(trace, who)),
        failures=_failures(trace, sums, layers),
        messages=completeness.messages(trace, who) + unresolved,
        not_counted=_not_counted(trace, run),
        runtime_files=model.RuntimeFiles(sums.runtime_files, sums.runtime.calls, sums.runtime.bytes),
        verification=model.Moved(*_moved(sums.verification)),
        late_ends=model.LateEnds(
            sum(sums.late_ends.values()),
            {run.path(file): calls for file, calls in sorted(sums.late_ends.items())},
        ),
        files=_file_rows(run),
        definitions=dict(DEFINITIONS),
        imported=_imported(trace),
        simulated=_simulated(trace),
        steps=_steps(trace, run),
    )


def _imported(trace: Trace) -> model.Imported | None:
    came, events = trace.counted, trace.run.get("imported")
    if came is not None:
        return model.Imported(came.tool, came.log, list(came.unseen), list(came.heatmaps))
    return model.Imported(events["tool"], events["log"], list(events["unseen"]), []) if events else None


def _simulated(trace: Trace) -> model.Simulated | None:
    said = trace.run.get("simulated")
    if said is None:
        return None
    keys = ("machine", "what", "plan", "strategy", "ranks", "ranks_written", "sums")
    return model.Simulated(**{key: said[key] for key in keys})


def _steps(trace: Trace, run: _Run) -> list[model.Step]:
    if trace.counted is not None:
        return []
    files, file_of_path = trace.files
    runtime = [is_runtime_file(name) for name in files]

    def io_of(who: attribute.Attribution, sums: Sums, wall_s: float) -> model.Io:
        return _io(_Run(who, sums, files, run.recorded, False, max(who.unit_count, 1)), wall_s)

    return steps.of(trace, run.who, file_of_path, runtime, io_of)


def _sums(trace: Trace, who: attribute.Attribution, progress: IO[str] | None) -> tuple[Sequence[str], Sums]:
    """The files, and what the calls on them come to: as they came with the trace, or added up from its events."""
    if trace.counted is not None:
        sums = trace.counted.sums(who.unit_names, len(LAYERS) * len(OPS), wall_from(trace, lambda: None))
        return trace.counted.files, sums
    files, file_of_path = trace.files
    runtime = [is_runtime_file(name) for name in files]
    summation = Summation(trace, who, file_of_path, runtime, verified=lacking.was_verified(trace))
    return files, watched(summation.run, summation, summation.events, "adding up the trace's events", progress)


# --------------------------------------------------------------------------------------------------------- layers


def _figures(run: _Run, rows: Rows, layer: str, op: str) -> model.Calls:
    row = rows.get(slot_of(layer, op))
    if op in DATA_OPS:
        return _data(run, rows, row, layer, op)
    return model.Calls(*_calls(row)) if row is not None else model.Calls()


def _calls(row: Row) -> tuple[int, int, float, float]:
    """The fields of Calls."""
    return row.calls, row.failed, row.time_ns / 1e9, row.longest_ns / 1e9


def _data(run: _Run, rows: Rows, row: Row | None, layer: str, op: str) -> model.Data:
    lower = None
    if layer == POSIX and (above := rows.get(slot_of(MPI_IO, op))) is not None:
        lower = _rate(run.units * above.bytes, above.time_ns / 1e9)
    if row is None:
        return model.Data(perceived_bytes_per_s=[lower, None] if layer == POSIX else None)
    time_s, span_s = row.time_ns / 1e9, row.span_ns / 1e9
    perceived = _rate(run.units * row.bytes, time_s)
    if lower is not None and perceived is not None and lower > perceived:
        lower = None  # there are POSIX calls besides those that MPI-IO made, and they were slower
    return model.Data(
        *_calls(row),
        bytes=row.bytes,
        perceived_bytes_per_s=[lower, perceived] if layer == POSIX else perceived,
        effective_bytes_per_s=_rate(row.bytes, time_s),
        span_bytes_per_s=_rate(row.bytes, span_s),
        span_s=span_s,
        sizes={str(least_bytes(number)): calls for number, calls, _, _ in row.sizes},
        size_ranges={str(least_bytes(number)): [least, most] for number, _, least, most in row.sizes if most >= 0},
        asynchronous_s=row.behind_ns / 1e9,
    )


def _moved(sums: Row | Amount) -> tuple[int, float, int]:
    """The fields of Moved."""
    return sums.calls, sums.time_ns / 1e9, sums.bytes


def _rate(moved: int, seconds: float) -> float | None:
    return moved / seconds if seconds > 0 else None


def _decomposition(run: _Run, rows: Rows, parts: Sequence[Sequence[int]] | None) -> dict[str, model.Decomposition]:
    result: dict[str, model.Decomposition] = {}
    for kind, op in enumerate(DATA_OPS):
        row = rows.get(slot_of(MPI_IO, op))
        times = dict.fromkeys(PARTS, 0)
        for posix_op, time_ns in zip(OPS, parts[kind], strict=True) if parts else ():
            times[posix_op if posix_op in PARTS else "posix_other"] += time_ns
        times["other"] = (row.time_ns if row else 0) - sum(times.values())
        known = POSIX in run.recorded and times["other"] >= 0 and not run.without_events
        result[op] = model.Decomposition(
            calls=row.calls if row else 0,
            time_s=row.time_ns / 1e9 if row else 0.0,
            parts={name: time / 1e9 for name, time in times.items()} if known else None,
        )
    return result


def _of_run(run: _Run) -> dict[str, model.Decomposition]:
    """The decomposition of the run, with what is known of all files together only."""
    result = _decomposition(run, run.sums.job, run.sums.parts)
    for kind, op in enumerate(DATA_OPS):
        waiting_s = _waiting_s(run.sums, slot_of(MPI_IO, op))
        parts = result[op].parts
        result[op].waiting_s = waiting_s if parts is None else min(waiting_s, parts["other"])
        result[op].asynchronous_s = run.sums.behind[kind] / 1e9
    return result


def _waiting_s(sums: Sums, slot: int) -> float:
    """How long ranks waited for the last one to come, in calls of a slot."""
    return sum(waited.wait_ns for waited in sums.waited_by_slot.get(slot, {}).values()) / 1e9


def _failures(trace: Trace, sums: Sums, layers: dict[str, model.Operations]) -> list[model.Failure]:
    return first_lines.failures(
        layers,
        {layer_and_op(slot): errors for slot, errors in sums.errors.items()},
        dict(zip(DATA_OPS, sums.unreported, strict=True)),
        {layer_and_op(slot): less for slot, less in sums.less.items()},
        dict(zip(DATA_OPS, sums.unreported_less, strict=True)),
        [process.mpi_library for process in trace.processes if process.mpi_library],
    )


def _inside(sums: Sums) -> list[model.Inside]:
    """What calls with no call around them were made of, one layer down, most time first."""
    rows: list[model.Inside] = []
    for outer, made in sums.inside.items():
        whole = sums.outermost[outer]
        order = sorted(made.items(), key=lambda item: -item[1].time_ns)
        parts = [model.Part(*_moved(below), *layer_and_op(slot)) for slot, below in order]
        other_ns = whole.time_ns - sum(amount.time_ns for amount in made.values())
        other_s = other_ns / 1e9 if other_ns >= 0 else None
        rows.append(
            model.Inside(
                whole.calls, whole.time_ns / 1e9, *layer_and_op(outer), parts, other_s, _waiting_s(sums, outer)
            )
        )
    return sorted(rows, key=lambda row: -row.time_s)


def _origins(sums: Sums) -> dict[str, dict[str, model.Made]]:
    return {
        origin: {
            op: model.Moved(*_moved(amount)) if op in DATA_OPS else model.Made(*_moved(amount)[:2])
            for op, amount in zip(OPS, amounts, strict=True)
        }
        for origin, amounts in zip(ORIGINS, sums.origins, strict=False)
    }


def _file_rows(run: _Run) -> list[model.FileRow]:
    """One row a file that has counted events, most time in one layer first (layers hold each other's time)."""
    layers = [
        layer
        for layer in IO_LAYERS
        if layer in (MPI_IO, POSIX) or any(layer_and_op(slot)[0] == layer for slot in run.sums.job)
    ]
    # Every layer's operations in order, with whether a file has them always.
    columns = [(layer, [(op, slot_of(layer, op), op in FILE_OPS) for op in OPS]) for layer in layers]
    order = sorted(run.sums.by_file.items(), key=lambda item: (-_most_time(item[1]), run.files[item[0]]))
    return [
        model.FileRow(
            run.path(file),
            {
                layer: {op: _figures(run, rows, layer, op) for op, slot, always in ops if always or slot in rows}
                for layer, ops in columns
            },
            _decomposition(run, rows, run.sums.file_parts.get(file)),
        )
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


def _io(run: _Run, wall_s: float) -> model.Io:
    """How much of the wall time the ranks spent in I/O, and in what: only calls with no other call around them."""
    union, waited = run.sums.unit_io_ns, run.sums.waited
    mean_s = (sum(union) + run.sums.unlisted_io_ns) / 1e9 / run.units
    # Who comes late is short in I/O, and those that wait for it are long.
    cost = [time_ns + _shifted(waited.get(unit)) for unit, time_ns in enumerate(union)]
    slowest = max(range(len(cost)), key=lambda unit: cost[unit])
    # Most of it are shares of what ranks did together: none is known to be the slowest.
    alike = run.sums.shared_io and cost[slowest] - min(cost) <= _ALIKE * cost[slowest]
    order = sorted(enumerate(run.sums.outermost), key=lambda item: -item[1].time_ns)
    in_mpi = run.sums.job.get(slot_of(WAITING, "wait"))
    return model.Io(
        unit=run.unit,
        mean_s=mean_s,
        max_s=max(cost[slowest], 0) / 1e9,
        slowest=run.name(slowest) if cost[slowest] > 0 and not alike else None,
        share_of_wall=mean_s / wall_s if wall_s > 0 and not _beyond(run, wall_s) else None,
        where=[_where(run, slot, amount) for slot, amount in order if amount.time_ns > 0],
        waiting_s=sum(one.wait_ns for one in waited.values()) / 1e9 / run.units,
        collective_calls=sum(one.last for one in waited.values()),
        late=[
            model.LateRank(run.name(unit), one.last, one.held_ns / 1e9)
            for unit, one in sorted(waited.items(), key=lambda item: (-item[1].held_ns, item[0]))
            if one.last
        ],
        mpi_waiting_s=in_mpi.time_ns / 1e9 / run.units if in_mpi else 0.0,
    )


def _shifted(waited: Waited | None) -> int:
    """What the time of a rank in calls is to be changed by, so that whom the others wait for has their time."""
    return waited.held_ns - waited.wait_ns if waited is not None else 0


def _where(run: _Run, slot: int, amount: Amount) -> model.Where:
    layer, op = layer_and_op(slot)
    row = model.WhereData if op in DATA_OPS else model.Where
    return row(layer, op, amount.time_ns / 1e9 / run.units, amount.calls, amount.bytes)


def _slowest(run: _Run) -> dict[str, dict[str, model.Slowest]]:
    """Per layer and operation that occur, the rank that it took longest with; means hide it."""
    worst: dict[int, tuple[int, int]] = {}
    for unit, rows in run.sums.by_unit.items():
        for slot, row in rows.items():
            time_ns = row.time_ns + _shifted(run.sums.waited_by_slot.get(slot, {}).get(unit))
            if slot not in worst or (time_ns, -unit) > (worst[slot][0], -worst[slot][1]):
                worst[slot] = (time_ns, unit)
    result: dict[str, dict[str, model.Slowest]] = {}
    for slot in sorted(worst):
        layer, op = layer_and_op(slot)
        time_ns, unit = worst[slot]
        mean_s = run.sums.job[slot].time_ns / 1e9 / run.units
        if not _all_apart(run, slot) and time_ns <= mean_s * 1e9:
            continue  # it is the slowest of those that can be told apart, and another one was slower
        result.setdefault(layer, {})[op] = model.Slowest(run.name(unit), max(time_ns, 0) / 1e9, mean_s)
    return result


def _all_apart(run: _Run, slot: int) -> bool:
    """Whether all calls of a layer's operation are known by rank: records of several ranks together are not."""
    whole = run.sums.job.get(slot)
    if not run.without_events or whole is None:
        return True
    return whole.calls == sum(rows[slot].calls for rows in run.sums.by_unit.values() if slot in rows)


def _storage(run: _Run, op: str) -> model.Storage:
    """Which ranks touched storage, in what way, who took longest, and who did it for others.

    None of it where some ranks cannot be told apart: those that can would seem to be all.
    """
    slot, stdio = slot_of(POSIX, op), slot_of(STDIO, op)
    apart = {one: _all_apart(run, one) for one in (slot, stdio)}
    rows = {
        unit: rows[slot]
        for unit, rows in sorted(run.sums.by_unit.items())
        if apart[slot] and slot in rows and rows[slot].bytes
    }
    slowest = None
    if rows:
        unit, row = max(rows.items(), key=lambda item: item[1].time_ns)
        mean_s = sum(row.time_ns for row in rows.values()) / 1e9 / len(rows)
        slowest = model.SlowestStorage(run.name(unit), row.time_ns / 1e9, row.bytes, mean_s)
    kind = DATA_OPS.index(op)
    return model.Storage(
        ranks=[run.name(unit) for unit in rows],
        slowest=slowest,
        aggregators=[run.name(unit) for unit, moved in sorted(run.sums.collective.items()) if moved[kind].bytes],
        by_rank=[model.RankStorage(*_moved(row), run.name(unit)) for unit, row in rows.items()],
        stdio_ranks=[
            run.name(unit)
            for unit, own in sorted(run.sums.by_unit.items())
            if apart[stdio] and stdio in own and own[stdio].bytes
        ],
    )


def _locks(run: _Run) -> model.Locks:
    slot = slot_of(POSIX, "lock")
    row = run.sums.job.get(slot)
    if row is None:
        return model.Locks()
    by_file, by_rank = (_by_time(groups.values(), slot) for groups in (run.sums.by_file, run.sums.by_unit))
    return model.Locks(
        row.calls,
        row.failed,
        row.time_ns / 1e9,
        model.LongestLock(
            row.longest_ns / 1e9, row.longest_start_ns / 1e9, run.name(row.longest_unit), run.path(row.longest_file)
        ),
        [model.FileLocks(*_calls(row), path=run.path(row.group)) for row in by_file],
        [model.RankLocks(*_calls(row), rank=run.name(row.group)) for row in by_rank],
    )


def _by_time(groups: Iterable[Rows], slot: int) -> list[Row]:
    return sorted((rows[slot] for rows in groups if slot in rows), key=lambda row: (-row.time_ns, row.group))


def _clocks(trace: Trace, who: attribute.Attribution) -> list[model.Clock]:
    counted = completeness.counted_hosts(trace, who)
    return [
        model.Clock(
            host,
            clock.aligned,
            [clock.first_offset_ns / 1e9, clock.last_offset_ns / 1e9],
            clock.uncertainty_ns / 1e9,
        )
        for host, clock in zip(trace.hosts, trace.clocks, strict=False)
        if host in counted
    ]


def _call_sites(trace: Trace, run: _Run) -> tuple[list[model.CallSite], list[str]]:
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
    rows: dict[Any, model.CallSite] = {}
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
            row = rows.get(key)
            if row is None:
                row = rows[key] = model.CallSite(**vars(_place(place)), layer=layer, op=op, where=place.words())
            row.calls += sums.calls
            row.bytes += sums.bytes
            row.time_s += sums.time_ns / 1e9
            row.chains.append([_place(call) for call in calls])
    said = [
        f"call sites in {path} are addresses only: the file is gone, or not the one that ran (its build id differs)"
        for path in sorted(resolver.changed)
        if callsites.owner_of(path, symbols.Location()) is callsites.Owner.PROGRAM
    ]
    return sorted(rows.values(), key=lambda row: (-row.time_s, row.where, row.layer, row.op)), said


def _place(call: Call) -> model.Place:
    return model.Place(call.location.function, call.location.file, call.location.line, call.module, call.address)


def _not_counted(trace: Trace, run: _Run) -> list[model.NotCounted]:
    """The process images whose I/O is in no figure, by executable and reason."""
    rows: dict[tuple[str, str], model.NotCounted] = {}
    if run.without_events:
        return []
    for process, role, amount in zip(trace.processes, run.who.roles, run.sums.by_process, strict=True):
        if role.counted:
            continue
        key = (process.executable, role.value)
        row = rows.setdefault(key, model.NotCounted(*key))
        row.images += 1
        row.events += amount.calls
        row.bytes += amount.bytes
    return sorted(rows.values(), key=lambda row: (-row.events, row.executable))
