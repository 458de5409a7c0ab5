"""The events of a run as rules look at them: whose each call is, what is around it, and what it costs.

Seconds on the critical path. The ranks of a program meet in its collective MPI-IO calls. Between two meetings each
rank works by itself, and the slowest is waited for: so the price of some calls is, summed over the stretches between
meetings, the largest time that one rank spent in them. In a collective call only the time after the last rank's
arrival counts: before it, the others wait for whatever held that rank up. Example: in one stretch rank 0 spends 3 s in
reads and rank 1 2 s, in the next 1 s and 4 s: reading costs 3 + 4 = 7 s. Waiting in MPI outside of I/O (`waits`) is
no price; what is waited for then, staging.py tells. Turns which ranks take by messages look parallel
(serialised_writes.py looks for them). An asynchronous request inside of an MPI-IO call lasts until that call, or the
program's next one, was told of its end.

A run of more than MOST_EVENTS events is looked at in stretches of it, some MOST_IN_STRETCHES events with all ranks:
the columns are those of a run that consists of these alone, and `wall_s` is shortened as much as the time in I/O is.
What is found then is of the whole run once its seconds are multiplied by `whole_over_rows`.

The columns are made, and prices worked out, by the compiled module (src/analysis/call_table.hpp, prices.hpp).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from ioweir.base.compiled import compiled
from ioweir.base.container_parts import NOTES_OF_CONTAINERS, part_of
from ioweir.base.spec_names import DATA_OPS, LAYERS, MPI_IO, OPS, POSIX, STDIO, WAITING
from ioweir.findings.intervals import covered, numbered
from ioweir.trace import attribute
from ioweir.trace.reader import OPENED_TO_SYNC, Trace
from ioweir.trace.runtime_files import is_runtime_file

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    Mask: TypeAlias = npt.NDArray[np.bool_]
    Numbers: TypeAlias = npt.NDArray[np.int64]
    Floats: TypeAlias = npt.NDArray[np.float64]
else:
    Mask = Numbers = Floats = Any

_ENGINE: Final = 2
"""Origin of calls that ioweir makes to carry out a plan."""
_MOST: Final = 1 << 62
MOST_EVENTS: Final = 10_000_000
"""Columns of more, and what rules make of them, would take over 4 GB."""
MOST_IN_STRETCHES: Final = 8_000_000
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
    """The counted calls of a run, ordered by unit (rank) and start. Waiting in MPI is apart: `waits`.

    `most`: of a run with more events stretches are looked at, with about so many; None: see MOST_EVENTS.
    """

    def __init__(self, trace: Trace, wall_s: float, recorded: Sequence[str], most: int | None = None) -> None:
        self.trace = trace
        self.recorded = tuple(recorded)
        self.who = attribute.attribute_processes(trace.processes)
        self.units = max(len(self.who.unit_names), 1)
        self.unit_count = max(self.who.unit_count, 1)
        self.names = [""] * (max((function.id for function in trace.functions), default=0) + 1)
        for function in trace.functions:
            self.names[function.id] = function.name
        self.files, file_of_path = trace.files
        self._calls = compiled().Calls(
            trace.core,
            layers=list(LAYERS),
            ops=list(OPS),
            mpi_layer=MPI_IO,
            posix_layer=POSIX,
            wait_layer=WAITING,
            data_ops=list(DATA_OPS),
            open_op="open",
            seek_op="seek",
            unit_of_process=list(self.who.units),
            units=self.units,
            unit_count=self.unit_count,
            file_of_path=file_of_path,
            runtime_file=[is_runtime_file(name) for name in self.files],
            most=most if most is not None else MOST_IN_STRETCHES if trace.event_count > MOST_EVENTS else 0,
        )
        self.stretches = int(self._calls.stretches)
        """In how many stretches of the run the calls lie; 0: they are all calls of the run."""
        self.whole_over_rows = float(self._calls.whole_over_rows)
        """Time in outermost calls of the run over that in those of the stretches."""
        self.wall_s = wall_s / self.whole_over_rows
        columns = self._calls.columns
        self.unit: Numbers = columns["unit"]
        self.file: Numbers = columns["file"]
        self.function: Numbers = columns["function"]
        self.layer: Numbers = columns["layer"]
        self.op: Numbers = columns["op"]
        self.collective: Mask = columns["collective"]
        self.completes: Mask = columns["completes"]
        """What ends a request (MPI_Wait, aio_return) adds time, but neither a call nor bytes."""
        self.origin: Numbers = columns["origin"]
        self.failed: Mask = columns["failed"]
        self.start: Numbers = columns["start"]
        self.duration: Numbers = columns["duration"]
        self.end: Numbers = columns["end"]
        self.bytes: Numbers = columns["bytes"]
        self.offset: Numbers = columns["offset"]
        self.access: Numbers = columns["access"]
        self.parent: Numbers = columns["parent"]
        """The call right around each call; -1 without one."""
        self.root: Numbers = columns["root"]
        """The outermost one."""
        self.outermost: Mask = columns["outermost"]
        self.mpi: Numbers = columns["mpi"]
        """The innermost MPI-IO call around each call; -1 without one."""
        self.meeting: Numbers = columns["meeting"]
        """Which collective calls of the ranks are one call, in which they waited for each other; -1 of all others."""
        self.arrival_shift: Numbers = columns["arrival_shift"]
        self.arrival: Numbers = columns["arrival"]
        """When the call's own work began: for collective ones when the last rank had come."""
        self.following: Numbers = columns["following"]
        """Of each outermost call the next outermost one of its thread; -1 without one."""
        self._kept: dict[str | tuple[str, ...], Mask] = {}
        self._rates: dict[str, float | None] = {}
        self.waits = Waits(**self._calls.waits)
        self.late = Late(**self._calls.late)

    def __len__(self) -> int:
        return int(self.unit.size)

    # ---------------------------------------------------------------------------------------------------- masks

    def is_layer(self, layer: str) -> Mask:
        """Calls of a layer. Made once, so that nobody may change it."""
        known = self._kept.get(layer)
        if known is None:
            known = self._kept[layer] = _fixed(self.layer == LAYERS.index(layer))
        return known

    def is_op(self, *ops: str) -> Mask:
        """Calls of some operations. Made once, so that nobody may change it."""
        known = self._kept.get(ops)
        if known is None:
            chosen = self.op == OPS.index(ops[0])
            for op in ops[1:]:
                chosen |= self.op == OPS.index(op)
            known = self._kept[ops] = _fixed(chosen)
        return known

    def named(self, *beginnings: str) -> Mask:
        """Calls of functions whose names begin so."""
        of_name = np.zeros(len(self.names), dtype=bool)
        of_name[[number for number in self._functions if self.names[number].startswith(beginnings)]] = True
        chosen: Mask = of_name[self.function] if of_name.any() else np.zeros(len(self), dtype=bool)
        return chosen

    @cached_property
    def _functions(self) -> list[int]:
        """Those that were called."""
        called: list[int] = np.flatnonzero(np.bincount(self.function)).tolist()
        return called

    @cached_property
    def storage(self) -> Mask:
        """POSIX reads and writes that moved bytes: what reaches the storage."""
        return self.is_layer(POSIX) & self.is_op(*DATA_OPS) & (self.bytes > 0)

    @cached_property
    def synced(self) -> Mask:
        """Of these, writes that wait for the disk: to files that their rank has opened with O_SYNC or O_DSYNC."""
        opens: Mask = self.is_layer(POSIX) & self.is_op("open") & ~self.failed & (self.offset == OPENED_TO_SYNC)
        if not opens.any():
            return opens
        pair = self.file * self.units + self.unit
        return self.storage & self.is_op("write") & np.isin(pair, np.unique(pair[opens]))

    @cached_property
    def engine(self) -> Mask:
        """Calls that a plan makes, and not the program."""
        chosen: Mask = self.origin == _ENGINE
        return chosen

    @cached_property
    def notes_of_containers(self) -> Mask:
        """Of these, those on the indexes and texts that a container has beside the program's bytes."""
        notes = np.array([part_of(file)[2] == NOTES_OF_CONTAINERS for file in self.files], dtype=bool)
        chosen: Mask = self.engine & notes[self.file]
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
        topmost: Mask = self._calls.topmost(mask)
        return topmost

    def roots_of(self, mask: Mask) -> Mask:
        """The outermost calls around the calls of a mask."""
        roots: Mask = self._calls.roots(mask)
        return roots

    def beneath(self, mask: Mask) -> Mask:
        """Calls whose outermost calls are in a mask; calls of the mask themselves where they are outermost."""
        beneath: Mask = self._calls.beneath(mask)
        return beneath

    def made_by(self, mask: Mask) -> Mask:
        """Calls right around which an MPI-IO call of a mask lies."""
        made: Mask = self._calls.made_by(mask)
        return made

    @cached_property
    def in_collective(self) -> Mask:
        """Calls that collective MPI-IO calls made."""
        return _fixed(self.made_by(self.collective))

    def met_with(self, mask: Mask) -> Mask:
        """The calls of all ranks that are one collective call with one of a mask."""
        met = self.meeting[mask]
        chosen = np.zeros(int(self.meeting.max(initial=-1)) + 2, dtype=bool)
        chosen[met[met >= 0]] = True
        together: Mask = chosen[self.meeting]  # of those that met nobody the last one
        return together

    def used(self, mask: Mask) -> tuple[Numbers, Numbers]:
        """Which ranks made calls of a mask on which files: file and rank of each such pair, by file and rank."""
        pairs, _ = numbered(self.file[mask] * self.units + self.unit[mask])
        return pairs // self.units, pairs % self.units

    def times_on_file(self, mask: Mask) -> Numbers:
        """Of each call how many calls of a mask its rank made on its file."""
        pairs, of = numbered(self.file * self.units + self.unit)
        made: Numbers = np.bincount(of[mask], minlength=pairs.size)[of]
        return made

    def before(self, first: Mask, then: Mask) -> Mask:
        """Of outermost calls those right behind which the thread makes one of `then` on the same file."""
        at = np.flatnonzero(first & (self.following >= 0))
        following = self.following[at]
        result = np.zeros(len(self), dtype=bool)
        result[at[then[following] & (self.file[at] == self.file[following])]] = True
        return result

    def above(self, mask: Mask) -> Mask:
        """The MPI-IO calls around the calls of a mask."""
        around: Mask = self._calls.mpi_around(mask)
        return around

    def count_inside(self, mask: Mask) -> Numbers:
        """Of each MPI-IO call, how many calls of a mask it made."""
        made: Numbers = self._calls.count_inside(mask)
        return made

    def bytes_inside(self, mask: Mask) -> Numbers:
        """Of each MPI-IO call, how much the calls of a mask that it made moved."""
        moved: Numbers = self._calls.bytes_inside(mask)
        return moved

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
        spent_ns, by_unit = self._calls.price(mask, pause_ns)
        ranked = [int(at) for at in np.argsort(-by_unit, kind="stable") if by_unit[at] > 0]
        return Price(min(spent_ns / 1e9, self.wall_s), ranked, by_unit)

    def seconds(self, mask: Mask) -> float:
        """The price alone."""
        return self.price(mask).seconds

    def busy_by_unit(self, mask: Mask) -> Floats:
        """Seconds that each rank spent in the calls."""
        busy: Floats = self._calls.busy_by_unit(mask) / 1e9
        return busy

    def count_by_unit(self, mask: Mask) -> Numbers:
        """How many of the calls each rank made."""
        made: Numbers = self._calls.count_by_unit(mask)
        return made

    def bytes_by_unit(self, mask: Mask) -> Floats:
        """Bytes that each rank moved."""
        moved: Floats = self._calls.bytes_by_unit(mask)
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
        spent = self._calls.time_by_unit(mask) / 1e9
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
        return float(self._calls.span(mask)) / 1e9

    def best_rate(self, op: str) -> float | None:
        """Bytes a second of the faster quarter of large calls; None where the run made too few of them."""
        if op not in self._rates:
            self._rates[op] = self._best_rate(op)
        return self._rates[op]

    def _best_rate(self, op: str) -> float | None:
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
        made: Numbers = np.flatnonzero(self.count_by_unit(mask))
        return made

    def files_of(self, mask: Mask, most: int = 20) -> list[str]:
        """The files of the calls, most time first."""
        time = self._calls.time_by_file(mask)
        used = self._calls.count_by_file(mask) > 0
        order = np.argsort(-time, kind="stable")
        return [self.files[at] for at in order[: most * 2] if used[at] and self.files[at]][:most]

    @cached_property
    def position(self) -> Numbers:
        """Where in its file a POSIX read or write began; -1 where that is not known.

        Of calls without an offset: from the open or the last seek on, what the calls of the rank on the file moved.
        """
        positions: Numbers = self._calls.positions()
        return positions

    def by_file(self, mask: Mask) -> Numbers:
        """The rows of a mask rank by rank, in each file by file, and of each file by start."""
        rows: Numbers = self._by_unit_and_file[mask[self._by_unit_and_file]]
        return rows

    def jumps(self, mask: Mask) -> Mask:
        """Reads and writes that neither go on where the rank's last one of the file ended, nor keep its stride."""
        jumps: Mask = self._calls.jumps(mask, self._by_unit_and_file, self.position)
        return jumps

    @cached_property
    def _by_unit_and_file(self) -> Numbers:
        rows: Numbers = self._calls.by_unit_and_file()
        return rows


def _fixed(mask: Mask) -> Mask:
    mask.flags.writeable = False
    return mask
