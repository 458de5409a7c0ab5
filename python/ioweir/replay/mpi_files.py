"""MPI-IO calls of a rank: which open file, which view, which types and which requests they mean.

A trace's calls name an access (open file, view, type in memory) as soon as one has moved data; before that they name
the file. Lives here: one rank by itself. Not here: which openings of the ranks belong together (groups.py).
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Final, NamedTuple

from ioweir.errors import IoweirError
from ioweir.replay.datatypes import BYTE
from ioweir.replay.model import Handle, Op

if TYPE_CHECKING:
    from collections import Counter

    from ioweir.replay.datatypes import Pieces
    from ioweir.replay.model import RankCalls
    from ioweir.trace.reader import Function, Trace

CREATE: Final = 1
"""MPI_MODE_CREATE, of both libraries."""
_MODES: Final = 0x1FF & ~64
"""All but MPI_MODE_EXCL: the program met no file there, and whoever does the same again may meet the one of before."""
_REPRESENTATIONS: Final = ("native", "external32", "internal")
_NO_VALUE: Final = frozenset(
    f"MPI_File_{name}" for name in (
        "sync", "get_size", "get_position", "get_position_shared", "get_amode", "get_atomicity", "get_info",
        "get_group", "get_view", "get_type_extent", "set_info",
    )
)  # fmt: skip
_VALUE: Final = frozenset(
    f"MPI_File_{name}" for name in ("set_size", "preallocate", "get_byte_offset", "seek", "seek_shared")
)
_WAITS: Final = {"MPI_Wait": "MPI_Wait", "MPI_Waitall": "MPI_Waitall", "MPI_Test": "MPI_Test"}
_KINDS: Final = ("_at", "_at_all", "_at_all_begin")
_UNENDED: Final = "a split collective that does not end"


class Row(NamedTuple):
    """One event of a trace."""

    function: Function
    thread: int
    seq: int
    path: int
    start: int
    end: int
    offset: int
    bytes: int
    access: int
    file: int
    """In the script."""
    low: int
    high: int
    """Of the bytes in the file, where they are known."""


class MpiFiles:
    """Takes a rank's events in the order of time."""

    def __init__(
        self, trace: Trace, pieces: Pieces, calls: RankCalls, left_out: Counter[str], stand_ins: Counter[str]
    ) -> None:
        self._trace = trace
        self._pieces = pieces
        self._calls = calls
        self._left_out = left_out
        self._stand_ins = stand_ins
        self._opened = 0
        self._by_number: dict[int, Handle] = {}
        self._of_file: dict[int, list[Handle]] = {}
        self._free: list[int] = []
        self._requests: dict[tuple[int, int], tuple[Handle, int]] = {}
        self._free_slots: list[int] = []
        self._times_opened: dict[int, int] = {}
        self._last_wait: tuple[int, str, int] | None = None
        self.handles: list[Handle] = []

    def new_process(self) -> None:
        """The numbers of open files begin anew."""
        self._opened = 0
        self._by_number.clear()
        self._requests.clear()

    def take(self, row: Row) -> None:
        """An event of the layer MPI-IO."""
        name = row.function.name
        if row.function.completes:
            self._complete(row)
            return
        if name == "MPI_File_open":
            self._open(row)
            return
        if name == "MPI_File_delete":
            self._calls.ops.append(Op(name, [row.file], row.start, row.end, row.file, use="remove"))
            return
        handle = self._handle(row)
        if handle is None:
            self._left_out[f"{name} on a file whose opening is not in the trace"] += 1
            return
        self._settle(handle, row)
        op = Op(name, [handle.number], row.start, row.end, row.file, handle, row.function.collective)
        if name == "MPI_File_close":
            self._close(handle, op)
        elif name == "MPI_File_set_view":
            op.arguments += [row.offset, BYTE, BYTE, 0]
            op.types = (2, 3)
            handle.unsettled = op
            handle.views.append(op)
        elif name in _NO_VALUE:
            pass
        elif name in _VALUE:
            if row.offset < 0:
                self._left_out[f"{name} with a value that is not known"] += 1
                return
            op.arguments.append(row.offset)
            op.use = "write" if name in ("MPI_File_set_size", "MPI_File_preallocate") else ""
            op.low, op.high = row.offset, row.offset
        elif row.function.op in ("read", "write", "split"):
            self._data(row, handle, op)
        else:
            self._left_out[name] += 1
            return
        self._calls.ops.append(op)

    def end(self) -> None:
        """Requests that nothing completed."""
        for handle, slot in list(self._requests.values()):
            if not handle.bad:
                self._stand_ins["requests that no call completed: MPI_Wait at the end"] += 1
                last = self._calls.ops[-1].end if self._calls.ops else 0
                self._calls.ops.append(Op("MPI_Wait", [slot], last, last, handle.file, handle))
        self._requests.clear()
        for handle in self.handles:
            if handle.begun is not None:
                handle.bad = _UNENDED

    # ---------------------------------------------------------------------------------------------- open and close

    def _open(self, row: Row) -> None:
        if row.offset < 0:
            raise IoweirError(
                f"{self._trace.paths[row.path]}: the trace does not say in which mode MPI_File_open opened it, so that "
                "no replay can open it (simulations by ioweir 0.1.0 wrote no mode: simulate again)"
            )
        self._opened += 1
        ordinal = self._times_opened.get(row.file, 0)
        self._times_opened[row.file] = ordinal + 1
        if self._free:
            number = heapq.heappop(self._free)
        else:
            number = self._calls.handles
            self._calls.handles += 1
        handle = Handle(self._calls.rank, number, row.file, ordinal)
        self.handles.append(handle)
        self._by_number[self._opened] = handle
        self._of_file.setdefault(row.file, []).append(handle)
        op = Op(
            "MPI_File_open", [number, row.file, row.offset & _MODES, -1], row.start, row.end, row.file, handle, True
        )
        op.use = "make" if row.offset & CREATE else "look"
        self._calls.ops.append(op)

    def _close(self, handle: Handle, op: Op) -> None:
        for key, (owner, slot) in list(self._requests.items()):
            if owner is handle:
                self._stand_ins["requests that no call completed: MPI_Wait before the file is closed"] += 1
                self._calls.ops.append(Op("MPI_Wait", [slot], op.start, op.start, handle.file, handle))
                del self._requests[key]
                heapq.heappush(self._free_slots, slot)
        handle.closed = True
        self._of_file[handle.file].remove(handle)
        heapq.heappush(self._free, handle.number)
        if handle.begun is not None:
            handle.bad = _UNENDED

    def _handle(self, row: Row) -> Handle | None:
        if row.access:
            handle = self._by_number.get(self._trace.accesses[row.access].handle)
            return handle if handle is not None and not handle.closed and handle.file == row.file else None
        still_open = self._of_file.get(row.file)
        return still_open[-1] if still_open else None

    def _settle(self, handle: Handle, row: Row) -> None:
        """What a call's access says of its file and its view."""
        if not row.access:
            return
        access = self._trace.accesses[row.access]
        handle.ranks = handle.ranks or access.ranks
        if row.function.op not in ("read", "write", "split"):
            return  # it has the access of the call before it, with the view of then
        op, handle.unsettled = handle.unsettled, None
        if op is None:
            return
        view = self._trace.views[access.view] if access.view is not None else None
        if view is None or not view.set or view.representation not in _REPRESENTATIONS:
            handle.bad = "a view that the trace does not hold"
        elif self._pieces.of(view.etype) is None or self._pieces.of(view.filetype) is None:
            handle.bad = "a view of datatypes that the trace does not hold"
        else:
            op.arguments[2:] = [view.etype, view.filetype, _REPRESENTATIONS.index(view.representation)]

    # ------------------------------------------------------------------------------------------------------- data

    def _data(self, row: Row, handle: Handle, op: Op) -> None:
        name, kind = row.function.name, row.function.op
        if name.endswith("_end"):
            begun, handle.begun = handle.begun, None
            if begun is None:
                handle.bad = "a split collective that does not begin"
            else:
                begun.arguments[-2] = self._count(row.bytes, begun.arguments[-1])
        else:
            memory = self._trace.accesses[row.access].memory if row.access else 0
            if not memory or self._pieces.of(memory) is None:
                memory = BYTE
                if row.bytes:
                    self._stand_ins["types in memory that the trace does not hold: contiguous bytes"] += 1
            explicit = name.removesuffix("_begin").removesuffix("_all").endswith("_at")
            if explicit:
                if row.offset < 0:
                    handle.bad = "an offset that is not known"
                op.arguments.append(row.offset)
            op.arguments += [self._count(row.bytes, memory), memory]
            op.types = (len(op.arguments) - 1,)
            if kind == "split":
                handle.begun = op
            elif name.startswith("MPI_File_i"):
                slot = self._new_slot()
                self._requests[row.thread, row.seq] = (handle, slot)
                op.arguments.append(slot)
        if kind in ("read", "write"):
            op.use, op.low, op.high, op.moved = kind, row.low, row.high, row.bytes

    def _count(self, moved: int, memory: int) -> int:
        """A call that moved less than a whole number of instances was asked for more, and met the end of the file."""
        size = 1 if memory == BYTE else self._trace.datatypes[memory].size
        return -(-moved // size) if size > 0 else 0

    def _new_slot(self) -> int:
        if self._free_slots:
            return heapq.heappop(self._free_slots)
        self._calls.requests += 1
        return self._calls.requests - 1

    def _complete(self, row: Row) -> None:
        found = self._requests.pop((row.thread, row.offset), None)
        base = row.function.name.partition(" ")[0]
        if found is None:
            if row.offset >= 0:
                self._left_out[f"{base} of a request whose beginning is not in the trace"] += 1
            return
        handle, slot = found
        heapq.heappush(self._free_slots, slot)
        ops = self._calls.ops
        # A call that completes several requests leaves an event of each, the later ones without time.
        together = base == "MPI_Waitall" and row.start == row.end and self._last_wait == (row.thread, base, row.start)
        self._last_wait = (row.thread, base, row.end)
        if together and ops and ops[-1].name == "MPI_Waitall":
            ops[-1].arguments.append(slot)
            return
        name = _WAITS.get(base)
        if name is None:
            name = "MPI_Test" if base.startswith("MPI_Test") else "MPI_Wait"
            self._stand_ins[f"{base}: {name} of the requests that it completed"] += 1
        ops.append(Op(name, [slot], row.start, row.end, handle.file, handle))
