"""Builds small traces by hand, event by event, for tests. Times are given in seconds, as a reader thinks of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from ioweir.trace import COLUMN_TYPES, Function, Note, Process, Trace

NS = 1_000_000_000

_NAMES = {
    "POSIX": {
        "open": "open",
        "close": "close",
        "read": "read",
        "pread": "read",
        "write": "write",
        "pwrite": "write",
        "fcntl_lock": "lock",
        "fcntl_unlock": "unlock",
        "fcntl_getlk": "meta",
    },
    "MPI-IO": {
        "MPI_File_open": "open",
        "MPI_File_close": "close",
        "MPI_File_set_view": "view",
        "MPI_File_read_at": "read",
        "MPI_File_read_at_all": "read",
        "MPI_File_write_at": "write",
        "MPI_File_write_at_all": "write",
        "MPI_File_write_all": "write",
    },
}

FUNCTIONS = tuple(
    Function(number, name, layer, op, name.endswith("_all"))
    for number, (layer, name, op) in enumerate(
        ((layer, name, op) for layer, functions in _NAMES.items() for name, op in functions.items()), start=1
    )
)
_ID = {function.name: function.id for function in FUNCTIONS}
ORIGINS = {"application": 0, "mpi_library": 1, "engine": 2, "tracer": 3}


@dataclass
class Call:
    """One event on its way into the columns."""

    process: int
    name: str
    start_s: float
    end_s: float
    path: str = ""
    bytes: int = 0
    parent: Call | None = None
    origin: str = "application"
    thread: int | None = None
    failed: bool = False
    seq: int = 0
    recorded: bool = True
    site: int = 0

    def inside(self, name: str, start_s: float, end_s: float, bytes: int = 0, **more: Any) -> Call:  # noqa: A002
        """A call that this one makes; by default of the MPI library, on the same file."""
        more.setdefault("origin", "mpi_library")
        more.setdefault("path", self.path)
        return Call(self.process, name, start_s, end_s, bytes=bytes, parent=self, thread=self.thread, **more)


@dataclass
class Builder:
    """Collects processes and calls, gives every thread its sequence numbers, and makes a Trace."""

    processes: list[Process] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)

    def process(self, pid: int = 0, start_s: float = 0.0, end_s: float | None = 100.0, **more: Any) -> int:
        """Add a process image; returns its index."""
        index = len(self.processes)
        more.setdefault("host", "node")
        self.processes.append(
            Process(
                pid=pid or 1000 + index,
                image=more.pop("image", index + 1),
                start_ns=round(start_s * NS),
                end_ns=-1 if end_s is None else round(end_s * NS),
                **more,
            )
        )
        return index

    def rank(self, rank: int, ranks: int, finalized: bool = True, **more: Any) -> int:
        """Add a rank that ran from start to end."""
        return self.process(
            rank=rank, ranks=ranks, mpi_init_ns=1, mpi_finalize_ns=99 * NS if finalized else -1,
            mpi_library="Open MPI v4", executable=more.pop("executable", "/usr/bin/solver"), **more,
        )  # fmt: skip

    def add(self, *calls: Call) -> None:
        """Add events; a parent has to be added before what lies inside it."""
        self.calls.extend(calls)

    def trace(self, shuffle: int | None = None, **more: Any) -> Trace:
        """The trace; with `shuffle`, its events in an order that this seed decides."""
        next_seq: dict[int, int] = {}
        for call in self.calls:
            thread = call.process if call.thread is None else call.thread
            next_seq[thread] = call.seq = next_seq.get(thread, 0) + 1
        calls = [call for call in self.calls if call.recorded]
        if shuffle is not None:
            order = np.random.default_rng(shuffle).permutation(len(calls))
            calls = [calls[at] for at in order]
        paths = list(dict.fromkeys(["", *(call.path for call in calls)]))
        rows = {
            "process": [c.process for c in calls],
            "thread": [c.process if c.thread is None else c.thread for c in calls],
            "seq": [c.seq for c in calls],
            "parent": [c.parent.seq if c.parent else 0 for c in calls],
            "function": [_ID[c.name] for c in calls],
            "origin": [ORIGINS[c.origin] for c in calls],
            "flags": [int(c.failed) for c in calls],
            "path": [paths.index(c.path) for c in calls],
            "start_ns": [round(c.start_s * NS) for c in calls],
            "duration_ns": [round((c.end_s - c.start_s) * NS) for c in calls],
            "offset": [-1 for _ in calls],
            "bytes": [c.bytes for c in calls],
            "error": [5 if c.failed else 0 for c in calls],
            "site": [c.site for c in calls],
        }
        columns: dict[str, Any] = {name: np.array(rows[name], dtype=kind) for name, kind in COLUMN_TYPES.items()}
        run = {
            "wall_s": 100.0,
            "exit_code": 0,
            "signal": None,
            "state": "ended",
            "program": "solver",
            "cwd": "/scratch",
        }
        return Trace(
            **columns,
            processes=tuple(self.processes),
            paths=tuple(paths),
            functions=FUNCTIONS,
            notes=tuple(self.notes),
            hosts=tuple(dict.fromkeys(process.host for process in self.processes)),
            run=run | more.pop("run", {}),
            directory="trace",
            **more,
        )
