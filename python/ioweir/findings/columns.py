"""The events of a run as rules look at them: whose each call is, what is around it, and what it costs.

Seconds on the critical path. The ranks of a program meet in its collective MPI-IO calls. Between two meetings each
rank works by itself, and the slowest is waited for: so the price of some calls is, summed over the stretches between
meetings, the largest time that one rank spent in them. In a collective call only the time after the last rank's
arrival counts: before it, the others wait for whatever held that rank up. Example: in one stretch rank 0 spends 3 s in
reads and rank 1 2 s, in the next 1 s and 4 s: reading costs 3 + 4 = 7 s. Waiting in MPI outside of I/O (`waits`) is
no price; what is waited for then, staging.py tells. Turns which ranks take by messages look parallel
(serialised_writes.py looks for them). An asynchronous request inside of an MPI-IO call lasts until that call, or the
program's next one, was told of its end.

Works on whole columns: 0.5 million events take less than a second.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from ioweir.base.spec_names import DATA_OPS, LAYERS, MPI_IO, OPS, POSIX, STDIO, WAITING
from ioweir.findings.intervals import covered, union
from ioweir.trace import attribute
from ioweir.trace.paths import files_of
from ioweir.trace.reader import FLAG_FAILED, OPENED_TO_SYNC, Trace
from ioweir.trace.runtime_files import is_runtime_file

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    Mask: TypeAlias = npt.NDArray[np.bool_]
    Numbers: TypeAlias = npt.NDArray[np.int64]
    Floats: TypeAlias = npt.NDArray[np.float64]
else:
    Mask = Numbers = Floats = Any

_TRACER: Final = 3
"""Origin of calls that ioweir makes to verify."""
_ENGINE: Final = 2
"""Origin of calls that ioweir makes to carry out a plan."""
_MOST: Final = 1 << 62
_DEEPEST: Final = 16
"""No call is nested deeper."""
_PAUSE_NS: Final = 5_000
"""A pause between two calls that is no longer belongs to them: a system call alone takes as long, and programs that
compute between calls take more."""
LARGE: Final = 1 << 20
"""Calls of so many bytes show what the storage can do."""


@dataclass(frozen=True)
class Price:
    """Seconds on the critical path, and the ranks that spent them, most first."""

    seconds: float
    units: list[int]
    by_unit: Floats


@dataclass(frozen=True)
class Waits:
    """Long calls of MPI outside of I/O, by unit and start."""

    unit: Numbers
    function: Numbers
    start: Numbers
    end: Numbers


@dataclass(frozen=True)
class Late:
    """One entry a collective MPI-IO call of several ranks that waited for each other."""

    unit: Numbers
    """The one that came last."""
    before: Numbers
    """When the one before it came."""
    arrival: Numbers
    """When the last one came."""
    file: Numbers
    ranks: Numbers
    """How many took part."""


class Columns:
    """The counted calls of a run, ordered by unit (rank) and start. Waiting in MPI is apart: `waits`."""

    def __init__(self, trace: Trace, wall_s: float, recorded: Sequence[str]) -> None:
        self.trace = trace
        self.wall_s = wall_s
        self.recorded = tuple(recorded)
        self.who = attribute.attribute_processes(trace.processes)
        names, file_of_path = files_of(trace.paths, str(trace.run.get("cwd", "")))
        self.files = names
        self._tables()
        self._columns(np.array(file_of_path, dtype=np.int64), np.array([is_runtime_file(name) for name in names]))
        self._ancestors()
        self._requests()
        self._meetings()

    # --------------------------------------------------------------------------------------------------- columns

    def _tables(self) -> None:
        functions = self.trace.functions
        most = max((function.id for function in functions), default=0) + 1
        self._layer = np.zeros(most, dtype=np.int8)
        self._op = np.zeros(most, dtype=np.int8)
        self._collective = np.zeros(most, dtype=bool)
        self._completes = np.zeros(most, dtype=bool)
        self._late = np.zeros(most, dtype=bool)
        self._begins = np.zeros(most, dtype=bool)
        self.names = [""] * most
        for function in functions:
            self._layer[function.id] = LAYERS.index(function.layer)
            self._op[function.id] = OPS.index(function.op)
            self._collective[function.id] = function.collective
            self._completes[function.id] = function.completes
            self._late[function.id] = function.late
            self._begins[function.id] = function.begins
            self.names[function.id] = function.name

    def _columns(self, file_of_path: Numbers, runtime: Mask) -> None:
        events = self.trace.events
        units = np.array(list(self.who.units) or [-1], dtype=np.int64)
        unit = units[events.process]
        file = file_of_path[events.path]
        keep = (unit >= 0) & ~runtime[file] & (events.origin != _TRACER) & ~self._late[events.function]
        waiting = self._layer[events.function] == LAYERS.index(WAITING)
        self._waits(np.flatnonzero(keep & waiting & (events.parent == 0)), unit)
        order = np.flatnonzero(keep & ~waiting)
        order = order[np.lexsort((events.start_ns[order], unit[order]))]
        self.unit = unit[order]
        self.file = file[order]
        self.thread = events.thread[order].astype(np.int64)
        self.function = events.function[order]
        self.layer = self._layer[self.function]
        self.op = self._op[self.function]
        self.collective = self._collective[self.function]
        self.completes = self._completes[self.function]
        self.origin = events.origin[order]
        self.failed = (events.flags[order] & FLAG_FAILED) != 0
        self.start = events.start_ns[order]
        self.duration = np.maximum(events.duration_ns[order], 0)
        self.end = self.start + self.duration
        # What ends a request (MPI_Wait, aio_return) adds time, but neither a call nor bytes.
        self.bytes = np.where(self.failed | self.completes, 0, np.maximum(events.bytes[order], 0))
        self.offset = events.offset[order]
        self.access = events.access[order]
        self._key = (self.thread << 32) + events.seq[order].astype(np.int64)
        above = events.parent[order].astype(np.int64)
        self._parent_key = np.where(above > 0, (self.thread << 32) + above, -1)
        self.units = max(len(self.who.unit_names), 1)
        self.unit_count = max(self.who.unit_count, 1)

    def __len__(self) -> int:
        return int(self.unit.size)

    def _waits(self, chosen: Numbers, unit: Numbers) -> None:
        events = self.trace.events
        chosen = chosen[np.lexsort((events.start_ns[chosen], unit[chosen]))]
        start = events.start_ns[chosen]
        self.waits = Waits(
            unit[chosen], events.function[chosen], start, start + np.maximum(events.duration_ns[chosen], 0)
        )

    def _requests(self) -> None:
        """An asynchronous request inside of an MPI-IO call lasts until something says that it has ended."""
        posix = self.is_layer(POSIX) & ~self.failed
        began = np.flatnonzero(posix & self._begins[self.function] & (self.mpi >= 0))
        ended = np.flatnonzero(posix & self.completes & (self.offset > 0))
        if not began.size or not ended.size:
            return
        keys = (self.thread[ended] << 32) + self.offset[ended]
        order = np.lexsort((self.end[ended], keys))
        keys, ends = keys[order], self.end[ended][order]
        at = np.minimum(np.searchsorted(keys, self._key[began]), keys.size - 1)
        until = np.where(keys[at] == self._key[began], ends[at], self.end[began])
        self.end[began] = np.maximum(self.end[began], np.minimum(until, self.end[self.mpi[began]]))
        self.duration = self.end - self.start

    def _ancestors(self) -> None:
        """Of each call the one around it, the outermost one, and the MPI-IO call around it."""
        order = np.argsort(self._key, kind="stable")
        keys = self._key[order]
        at = np.searchsorted(keys, self._parent_key)
        at = np.minimum(at, max(len(self) - 1, 0))
        known = (self._parent_key >= 0) & (keys[at] == self._parent_key) if len(self) else np.zeros(0, dtype=bool)
        self.parent = np.where(known, order[at] if len(self) else 0, -1).astype(np.int64)
        self.parent[self.parent == np.arange(len(self))] = -1
        root = np.arange(len(self))
        inside = np.full(len(self), -1, dtype=np.int64)
        here = self.parent.copy()
        mpi = LAYERS.index(MPI_IO)
        for _ in range(_DEEPEST):
            going = np.flatnonzero(here >= 0)
            if not going.size:
                break
            above = here[going]
            root[going] = above
            found = (self.layer[above] == mpi) & (inside[going] < 0)
            inside[going[found]] = above[found]
            here[going] = self.parent[above]
        self.root = root
        self.mpi = inside
        """The innermost MPI-IO call around each call; -1 without one."""
        self.outermost = root == np.arange(len(self))

    def _meetings(self) -> None:
        """Which collective calls of the ranks are one call, when the last rank came, and the stretches between."""
        self.arrival_shift = np.zeros(len(self), dtype=np.int64)
        self.meeting = np.full(len(self), -1, dtype=np.int64)
        calls = np.flatnonzero(self.collective & self.is_layer(MPI_IO) & ~self.completes & (self.mpi < 0))
        boundaries = np.zeros(0, dtype=np.int64)
        nobody = np.zeros(0, dtype=np.int64)
        self.late = Late(nobody, nobody, nobody, nobody, nobody)
        if calls.size:
            # Calls are ordered by unit and start: the k-th call of a rank on a file meets the k-th of the others.
            pair = self.file[calls] * self.units + self.unit[calls]
            by_pair = np.argsort(pair, kind="stable")
            sorted_pair = pair[by_pair]
            first = np.r_[True, sorted_pair[1:] != sorted_pair[:-1]]
            begin = np.maximum.accumulate(np.where(first, np.arange(calls.size), 0))
            number = np.empty(calls.size, dtype=np.int64)
            number[by_pair] = np.arange(calls.size) - begin
            _, group = np.unique(self.file[calls] * (int(number.max()) + 1) + number, return_inverse=True)
            group = group.reshape(-1)
            count = np.bincount(group)
            last = np.full(count.size, -_MOST, dtype=np.int64)
            first_end = np.full(count.size, _MOST, dtype=np.int64)
            np.maximum.at(last, group, self.start[calls])
            np.minimum.at(first_end, group, self.end[calls])
            met = (count > 1) & (first_end >= last) & ~self._ahead(calls, group, last)
            self.meeting[calls] = np.where(met[group], group, -1)
            shift = np.where(met[group], last[group] - self.start[calls], 0)
            np.add.at(self.arrival_shift, calls, shift)
            roots = self.root[calls]
            nested = roots != calls
            np.add.at(self.arrival_shift, roots[nested], shift[nested])
            everyone = met & (count >= self.unit_count)
            boundaries = np.sort(last[everyone])
            self._lateness(calls, group, met, count)
        self.boundaries = boundaries
        self.arrival = np.minimum(self.start + self.arrival_shift, self.end)
        """When the call's own work began: for collective ones when the last rank had come."""
        self.phase = np.searchsorted(boundaries, self.arrival, side="right")

    def _lateness(self, calls: Numbers, group: Numbers, met: Mask, count: Numbers) -> None:
        """Of each meeting who came last, and how long after the one before."""
        chosen = met[group]
        order = np.lexsort((self.start[calls[chosen]], group[chosen]))
        of, row = group[chosen][order], calls[chosen][order]
        last = np.flatnonzero(np.r_[of[1:] != of[:-1], True]) if of.size else np.zeros(0, dtype=np.int64)
        self.late = Late(
            self.unit[row[last]],
            self.start[row[last - 1]],
            self.start[row[last]],
            self.file[row[last]],
            count[of[last]],
        )

    def _ahead(self, calls: Numbers, group: Numbers, last: Numbers) -> Mask:
        """Collective calls in which a rank moved data before the last one came: they do not wait for each other."""
        of_call = np.full(len(self), -1, dtype=np.int64)
        of_call[calls] = group
        inner = np.flatnonzero(self.storage & (self.mpi >= 0))
        inner = inner[of_call[self.mpi[inner]] >= 0]
        number = of_call[self.mpi[inner]]
        early = self.is_op(*DATA_OPS)[self.mpi[inner]] & (self.start[inner] < last[number])
        ahead = np.zeros(last.size, dtype=bool)
        ahead[number[early]] = True
        return ahead

    # ---------------------------------------------------------------------------------------------------- masks

    def is_layer(self, layer: str) -> Mask:
        """Calls of a layer."""
        chosen: Mask = self.layer == LAYERS.index(layer)
        return chosen

    def is_op(self, *ops: str) -> Mask:
        """Calls of some operations."""
        chosen = np.zeros(len(self), dtype=bool)
        for op in ops:
            chosen |= self.op == OPS.index(op)
        return chosen

    def named(self, *beginnings: str) -> Mask:
        """Calls of functions whose names begin so."""
        chosen: Mask = np.array([name.startswith(beginnings) for name in self.names], dtype=bool)[self.function]
        return chosen

    @cached_property
    def storage(self) -> Mask:
        """POSIX reads and writes that moved bytes: what reaches the storage."""
        return self.is_layer(POSIX) & self.is_op(*DATA_OPS) & (self.bytes > 0)

    @cached_property
    def synced(self) -> Mask:
        """Of these, writes that wait for the disk: to files that their rank has opened with O_SYNC or O_DSYNC."""
        opens = self.is_layer(POSIX) & self.is_op("open") & ~self.failed & (self.offset == OPENED_TO_SYNC)
        pair = self.file * self.units + self.unit
        return self.storage & self.is_op("write") & np.isin(pair, np.unique(pair[opens]))

    @cached_property
    def engine(self) -> Mask:
        """Calls that a plan makes, and not the program."""
        chosen: Mask = self.origin == _ENGINE
        return chosen

    @cached_property
    def own_storage(self) -> Mask:
        """Of these, those that no MPI-IO call made."""
        return self.storage & (self.mpi < 0)

    @cached_property
    def mpi_data(self) -> Mask:
        """MPI-IO reads and writes."""
        return self.is_layer(MPI_IO) & self.is_op(*DATA_OPS) & (self.mpi < 0)

    @cached_property
    def stdio_data(self) -> Mask:
        """Reads and writes of FILE streams that moved bytes."""
        return self.is_layer(STDIO) & self.is_op(*DATA_OPS) & (self.bytes > 0)

    def topmost(self, mask: Mask) -> Mask:
        """Of the calls of a mask those that no other of it lies around: each piece of work once, whatever the layers.

        Example: of MPI_File_sync and the fsync beneath it MPI_File_sync; of an fsync in MPI_File_close the fsync.
        """
        calls = np.flatnonzero(mask)
        here = self.parent[calls]
        topmost: Mask = mask.copy()
        for _ in range(_DEEPEST):
            going = np.flatnonzero(here >= 0)
            if not going.size:
                break
            calls, here = calls[going], here[going]
            topmost[calls[mask[here]]] = False
            here = self.parent[here]
        return topmost

    def roots_of(self, mask: Mask) -> Mask:
        """The outermost calls around the calls of a mask."""
        roots = np.zeros(len(self), dtype=bool)
        roots[self.root[mask]] = True
        return roots

    def before(self, first: Mask, then: Mask) -> Mask:
        """Of outermost calls those right behind which the thread makes one of `then` on the same file."""
        at = np.flatnonzero(first & (self._following >= 0))
        following = self._following[at]
        result = np.zeros(len(self), dtype=bool)
        result[at[then[following] & (self.file[at] == self.file[following])]] = True
        return result

    def above(self, mask: Mask) -> Mask:
        """The MPI-IO calls around the calls of a mask."""
        around = np.zeros(len(self), dtype=bool)
        calls = self.mpi[mask]
        around[calls[calls >= 0]] = True
        return around

    def count_inside(self, mask: Mask, weights: Numbers | None = None) -> Numbers:
        """Of each MPI-IO call, how many calls of a mask it made, or the sum of their weights."""
        chosen = np.flatnonzero(mask & (self.mpi >= 0))
        sums = np.bincount(self.mpi[chosen], None if weights is None else weights[chosen], minlength=len(self))
        return sums.astype(np.int64)

    @cached_property
    def crowded(self) -> bool:
        """Whether ranks share processors, so that some wait for them and not for I/O: known of the launcher's node.

        They do where they and what ran there before (its load average) are at least one more than the processors.
        """
        node, processors = self.trace.run.get("host"), self.trace.run.get("processors")
        if not node or not processors:
            return False
        here = {
            unit
            for unit, process in zip(self.who.units, self.trace.processes, strict=True)
            if unit >= 0 and process.host == node
        }
        return len(here) + float(self.trace.run.get("load_before", 0)) >= int(processors) + 1

    # --------------------------------------------------------------------------------------------------- prices

    def price(self, mask: Mask, pause_ns: int = 0) -> Price:
        """What the calls cost on the critical path; with the pauses before them that are no longer than `pause_ns`."""
        chosen = np.flatnonzero(mask)
        by_unit = np.zeros(self.units)
        if not chosen.size:
            return Price(0.0, [], by_unit)
        phases = self.phase[chosen]
        until = self._until(mask, chosen)
        since = self.arrival[chosen] - self._pause_before[chosen] * (self._pause_before[chosen] <= pause_ns)
        group, busy = union(phases * self.units + self.unit[chosen], since, until)
        phase, unit = group // self.units, group % self.units
        order = np.lexsort((-busy, phase))
        first = np.r_[True, phase[order][1:] != phase[order][:-1]]
        worst = order[first]
        np.add.at(by_unit, unit[worst], busy[worst] / 1e9)
        ranked = [int(at) for at in np.argsort(-by_unit, kind="stable") if by_unit[at] > 0]
        return Price(min(float(busy[worst].sum()) / 1e9, self.wall_s), ranked, by_unit)

    def _until(self, mask: Mask, chosen: Numbers) -> Numbers:
        """Ends of a mask's calls; of calls one right behind the other, the next one's beginning: calling costs, too.

        `chosen`: where the mask holds.
        """
        until: Numbers = self.end[chosen]
        following = self._following[chosen]
        at = np.flatnonzero(following >= 0)
        at = at[mask[following[at]]]
        after = following[at]
        pause = self.start[after] - until[at]
        close = (pause > 0) & (pause <= _PAUSE_NS) & (self.arrival_shift[after] == 0)
        until[at[close]] = self.start[after[close]]
        return until

    @cached_property
    def _pause_before(self) -> Numbers:
        """Of each outermost call how long its thread was in no call before it; 0 where it waits for other ranks."""
        before = np.zeros(len(self), dtype=np.int64)
        at = np.flatnonzero(self._following >= 0)
        then = self._following[at]
        before[then] = np.maximum(self.start[then] - self.end[at], 0)
        return np.where(self.arrival_shift == 0, before, 0)

    @cached_property
    def _following(self) -> Numbers:
        """Of each outermost call the next outermost one of its thread; -1 without one."""
        outer = np.flatnonzero(self.outermost)
        outer = outer[np.lexsort((self.start[outer], self.thread[outer], self.unit[outer]))]
        same = (self.unit[outer][1:] == self.unit[outer][:-1]) & (self.thread[outer][1:] == self.thread[outer][:-1])
        following = np.full(len(self), -1, dtype=np.int64)
        following[outer[:-1][same]] = outer[1:][same]
        return following

    def seconds(self, mask: Mask) -> float:
        """The price alone."""
        return self.price(mask).seconds

    def busy_by_unit(self, mask: Mask) -> Floats:
        """Seconds that each rank spent in the calls."""
        chosen = np.flatnonzero(mask)
        result = np.zeros(self.units)
        if chosen.size:
            group, busy = union(self.unit[chosen], self.arrival[chosen], self.end[chosen])
            result[group] = busy / 1e9
        return result

    def bytes_by_unit(self, mask: Mask) -> Floats:
        """Bytes that each rank moved."""
        moved: Floats = np.bincount(self.unit[mask], self.bytes[mask], minlength=self.units).astype(np.float64)
        return moved

    def waiting_in(self, unit: Numbers, begin: Numbers, stop: Numbers) -> Numbers:
        """Of stretches, each of a rank, how many nanoseconds the rank's last wait in MPI before their ends takes."""
        nothing = np.zeros(unit.size, dtype=np.int64)
        if not self.waits.unit.size or not unit.size:
            return nothing
        span = int(max(self.waits.end.max(), stop.max())) + 1
        if span * (self.units + 1) >= _MOST:
            return nothing
        keys = self.waits.unit * span + self.waits.start
        at = np.searchsorted(keys, unit * span + stop, side="right") - 1
        known = (at >= 0) & (self.waits.unit[np.maximum(at, 0)] == unit)
        until = np.minimum(self.waits.end[np.maximum(at, 0)], stop)
        since = np.maximum(self.waits.start[np.maximum(at, 0)], begin)
        waited: Numbers = np.where(known, np.maximum(until - since, 0), 0)
        return waited

    def mean_whole(self, mask: Mask) -> float:
        """Seconds that a rank spends in the calls, in the mean of those that make them, waiting for others included."""
        if not mask.any():
            return 0.0
        spent = np.bincount(self.unit[mask], self.duration[mask], minlength=self.units) / 1e9
        return min(float(spent[spent > 0].mean()) if (spent > 0).any() else 0.0, self.wall_s)

    @cached_property
    def sharing(self) -> float:
        """How many runnable ranks, and others' work, there are for each processor: 1 where each has one of its own."""
        if not self.crowded:
            return 1.0
        processors = int(self.trace.run["processors"])
        return max((self.unit_count + float(self.trace.run.get("load_before", 0))) / processors, 1.0)

    def inside_of(self, unit: int, begin: Numbers, stop: Numbers) -> float:
        """How many seconds of some stretches, which do not overlap, a rank spends in outermost calls."""
        chosen = np.flatnonzero(self.outermost & (self.unit == unit))
        if not chosen.size or not begin.size:
            return 0.0
        order = np.argsort(begin, kind="stable")
        edges = np.maximum.accumulate(np.stack([begin[order], stop[order]], axis=1).reshape(-1))
        busy = covered(self.start[chosen], self.end[chosen])(edges)
        return float((busy[1::2] - busy[::2]).sum()) / 1e9

    def span_s(self, mask: Mask) -> float:
        """The time in which any rank was in one of the calls."""
        chosen = np.flatnonzero(mask)
        if not chosen.size:
            return 0.0
        _, busy = union(np.zeros(chosen.size, dtype=np.int64), self.arrival[chosen], self.end[chosen])
        return float(busy.sum()) / 1e9

    def best_rate(self, op: str) -> float | None:
        """Bytes a second of the faster quarter of large calls; None where the run made too few of them."""
        large = self.is_layer(POSIX) & self.is_op(op) & (self.bytes >= LARGE) & (self.duration > 0)
        if large.sum() < 4:
            return None
        return float(np.percentile(self.bytes[large] / self.duration[large] * 1e9, 75))

    def worth(self, seconds: float) -> bool:
        """Whether so many seconds are to be told of: 1 % of the run."""
        return seconds >= 0.01 * self.wall_s and seconds > 0

    # ---------------------------------------------------------------------------------------------------- words

    def ranks(self, units: Sequence[int]) -> list[int]:
        """Their numbers in the program, without MPI process ids."""
        return sorted(self.who.unit_names[unit] for unit in units if unit < len(self.who.unit_names))

    def ranks_of(self, mask: Mask) -> list[int]:
        """The ranks that made the calls."""
        return self.ranks([int(unit) for unit in self.units_of(mask)])

    def units_of(self, mask: Mask) -> Numbers:
        """Who made the calls, rising."""
        made: Numbers = np.flatnonzero(np.bincount(self.unit[mask]))
        return made

    def files_of(self, mask: Mask, most: int = 20) -> list[str]:
        """The files of the calls, most time first."""
        time = np.bincount(self.file[mask], self.duration[mask], minlength=len(self.files))
        used = np.bincount(self.file[mask], minlength=len(self.files)) > 0
        order = np.argsort(-time, kind="stable")
        return [self.files[at] for at in order[: most * 2] if used[at] and self.files[at]][:most]

    @cached_property
    def position(self) -> Numbers:
        """Where in its file a POSIX read or write began; -1 where that is not known.

        Of calls without an offset: from the open or the last seek on, what the calls of the rank on the file moved.
        """
        here: Numbers = self.offset.copy()
        moving = self.is_layer(POSIX) & (self.is_op(*DATA_OPS, "seek") | (self.is_op("open") & ~self.failed))
        calls = np.flatnonzero(moving & ~((self.is_op(*DATA_OPS)) & (self.offset >= 0)))
        if not calls.size:
            return here
        calls = calls[np.argsort(self.unit[calls] * len(self.files) + self.file[calls], kind="stable")]
        data = np.isin(self.op[calls], [OPS.index(op) for op in DATA_OPS])
        pair = self.unit[calls] * len(self.files) + self.file[calls]
        known = np.where(data, 0, np.maximum(self.offset[calls], 0))
        fixed = ~data
        fixed |= np.r_[True, pair[1:] != pair[:-1]]
        moved = np.where(data, self.bytes[calls], 0)
        before = np.cumsum(moved) - moved
        anchor = np.maximum.accumulate(np.where(fixed, np.arange(calls.size), 0))
        here[calls[data]] = (known[anchor] + before - before[anchor])[data]
        return here
