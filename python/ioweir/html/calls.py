"""The calls of a run as the plots take them: the same columns of a whole trace in memory, and of one read in batches.

Shapes: every column has one entry a call. Times are nanoseconds since the first process started.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ioweir.base.spec_names import IO_LAYERS
from ioweir.trace import attribute
from ioweir.trace.reader import DATA_OPS, FLAG_FAILED, LAYERS, POSIX, STDIO, Events, Trace
from ioweir.trace.runtime_files import is_runtime_file

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from ioweir.findings.columns import Columns

WRITE: Final = 0
READ: Final = 1
METADATA: Final = 2
ORDER: Final = 3
WAIT: Final = 4
CATEGORIES: Final = (
    "writing",
    "reading",
    "opening, closing, metadata",
    "locks and syncs",
    "waiting in MPI",
)
"""What a rank does in a call: every operation of every layer is one of these."""
_OF_OP: Final = {"write": WRITE, "read": READ, "lock": ORDER, "unlock": ORDER, "sync": ORDER}
_IO_LAYERS: Final = frozenset(IO_LAYERS)
_TRACER: Final = 3
"""Origin of calls that ioweir makes to verify; they are no I/O of the run."""


@dataclass(frozen=True)
class Calls:
    """Columns of calls."""

    unit: npt.NDArray[np.int64]
    """Whose: index into Run.unit_names."""
    file: npt.NDArray[np.int64]
    """Index into Run.files."""
    function: npt.NDArray[Any]
    start: npt.NDArray[np.int64]
    end: npt.NDArray[np.int64]
    bytes: npt.NDArray[np.int64]
    """Moved; 0 of calls that failed or only complete another."""
    offset: npt.NDArray[np.int64]
    """In the file, -1 where it is not known."""
    outermost: npt.NDArray[np.bool_]
    """No other call is around it."""

    def __len__(self) -> int:
        return int(self.unit.size)


class Run:
    """What all calls of a run have in common, and the calls themselves in batches.

    `columns`: the whole run in memory; None: it is read in batches, and offsets of calls that name none stay unknown.
    """

    def __init__(self, trace: Trace, wall_s: float, columns: Columns | None) -> None:
        self.trace = trace
        self.columns = columns
        self.who = attribute.attribute_processes(trace.processes)
        names, file_of_path = trace.files
        self.files = names
        self._file_of_path = np.array(file_of_path, dtype=np.int64)
        self._runtime = np.array([is_runtime_file(name) for name in names])
        self.unit_names = self.who.unit_names
        self.units = max(len(self.unit_names), 1)
        self.noun = "rank" if self.who.has_ranks else "process"
        self.begin_ns, self.span_ns = self._span(wall_s)
        self._tables()

    def _span(self, wall_s: float) -> tuple[int, int]:
        """When the first process that counts started, and nanoseconds from there to the end of the last.

        Where one was killed its end is not known: then to the end of the wall time.
        """
        counted = [p for p, role in zip(self.trace.processes, self.who.roles, strict=True) if role.counted]
        begin = min((process.start_ns for process in counted), default=0)
        ends = [max(process.end_ns, process.mpi_finalize_ns) for process in counted]
        end = max(ends, default=begin)
        if not ends or min(ends) < 0 or end <= begin:
            end = max(end, begin + round(wall_s * 1e9))
        return begin, max(end - begin, 1)

    def _tables(self) -> None:
        """Of each function: its category, whether it moves bytes to or from storage, whether it only ends another."""
        functions = self.trace.functions
        most = max((function.id for function in functions), default=0) + 1
        self.category = np.full(most, METADATA, dtype=np.int8)
        self.layer = np.zeros(most, dtype=np.int8)
        self.data_op = np.full(most, -1, dtype=np.int8)
        """WRITE or READ of what moves bytes and does not only complete."""
        self.storage = np.zeros(most, dtype=bool)
        self.syncs = np.zeros(most, dtype=bool)
        self._completes = np.zeros(most, dtype=bool)
        self._late = np.zeros(most, dtype=bool)
        self.names = [""] * most
        self.ops = [""] * most
        for function in functions:
            here = function.id
            self.names[here], self.ops[here] = function.name, function.op
            self.layer[here] = LAYERS.index(function.layer)
            self.category[here] = _category(function.layer, function.op, function.name)
            if function.op in DATA_OPS and not function.completes:
                self.data_op[here] = DATA_OPS.index(function.op)
                self.storage[here] = function.layer in (POSIX, STDIO)
            self.syncs[here] = function.op == "sync" and function.layer == POSIX
            self._completes[here] = function.completes
            self._late[here] = function.late

    def batches(self) -> Iterator[Calls]:
        """All calls that count; of a trace in memory in one batch, with waiting in MPI in a second, else by time."""
        if self.columns is not None:
            yield self._of_columns(self.columns)
            if self.columns.waits.unit.size:
                yield self._of_waits(self.columns)
            return
        for events in self.trace.batches():
            calls = self._of_events(events)
            if len(calls):
                yield calls

    def _of_columns(self, run: Columns) -> Calls:
        return Calls(
            unit=run.unit, file=run.file, function=run.function, start=run.start - self.begin_ns,
            end=run.end - self.begin_ns, bytes=run.bytes, offset=np.where(self.storage[run.function], run.position, -1),
            outermost=run.outermost,
        )  # fmt: skip

    def _of_waits(self, run: Columns) -> Calls:
        waits = run.waits
        none = np.zeros(waits.unit.size, dtype=np.int64)
        return Calls(
            unit=waits.unit, file=none, function=waits.function, start=waits.start - self.begin_ns,
            end=waits.end - self.begin_ns, bytes=none, offset=none - 1, outermost=np.ones(none.size, dtype=bool),
        )  # fmt: skip

    def _of_events(self, events: Events) -> Calls:
        units = np.array(list(self.who.units) or [-1], dtype=np.int64)[events.process]
        file = self._file_of_path[events.path]
        keep = (
            (units >= 0) & ~self._runtime[file] & (events.origin != _TRACER) & ~self._late[events.function]
        )  # fmt: skip
        function = events.function[keep]
        start = events.start_ns[keep] - self.begin_ns
        idle = ((events.flags[keep] & FLAG_FAILED) != 0) | self._completes[function]
        return Calls(
            unit=units[keep], file=file[keep], function=function, start=start,
            end=start + np.maximum(events.duration_ns[keep], 0),
            bytes=np.where(idle, 0, np.maximum(events.bytes[keep], 0)),
            offset=np.where(self.storage[function], events.offset[keep], -1), outermost=events.parent[keep] == 0,
        )  # fmt: skip

    @property
    def span_s(self) -> float:
        """Seconds from the first process's start to the last one's end."""
        return self.span_ns / 1e9


def _category(layer: str, op: str, name: str) -> int:
    if layer not in _IO_LAYERS:
        return WAIT
    if op == "split":
        return WRITE if "write" in name else READ
    return _OF_OP.get(op, METADATA)
