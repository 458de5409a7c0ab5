"""Builds small traces by hand, call by call, for tests. Times are given in seconds, as a reader thinks of them.

Every trace is written to files and read back, so that whatever is tested with it goes through the reader, too.
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from ioweir import report
from ioweir.base.compiled import compiled
from ioweir.trace.reader import NODE_FILES, EngineWork, Note, Process, Trace, from_core, function_table

NS = 1_000_000_000
EPOCH_NS = 1_700_000_000 * NS

_core = compiled()
FUNCTIONS = function_table(_core.functions())
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
    offset: int = -1
    missing: int = 0
    error: int = 5
    """Of a call that failed: EIO; the class for MPI."""

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
    engine_work: list[EngineWork] = field(default_factory=list)

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
        """The trace; with `shuffle`, its threads in the files in an order that this seed decides."""
        with tempfile.TemporaryDirectory() as folder:
            self.write(Path(folder), shuffle)
            files = [str(path) for path in sorted(Path(folder).glob(NODE_FILES))]
            loaded = from_core(_core.read_traces(files), FUNCTIONS)
        assert not loaded.damage
        assert loaded.processes == tuple(self.processes)
        assert loaded.event_count == sum(call.recorded for call in self.calls)
        run = {
            "wall_s": 100.0,
            "exit_code": 0,
            "signal": None,
            "state": "ended",
            "program": "solver",
            "cwd": "/scratch",
        }
        loaded = replace(loaded, notes=tuple(self.notes), engine_work=tuple(self.engine_work))
        return replace(loaded, run=run | more.pop("run", {}), directory="trace", **more)

    def save(self, folder: Path, program: str = "x") -> Path:
        """A new trace directory, of a run that ended well."""
        folder.mkdir()
        self.write(folder)
        run = {
            "iowt": 1, "state": "ended", "command": [program], "program": program, "wall_s": 100.0, "exit_code": 0,
        }  # fmt: skip
        (folder / "run.json").write_text(json.dumps(run))
        return folder

    def write(self, folder: Path, shuffle: int | None = None) -> None:
        """The trace's files, one a host."""
        next_seq: dict[int, int] = {}
        inside: dict[int, list[Call]] = {}
        outer: dict[int, list[Call]] = {}
        for call in self.calls:
            thread = call.process if call.thread is None else call.thread
            next_seq[thread] = call.seq = next_seq.get(thread, 0) + 1
            siblings = outer.setdefault(thread, []) if call.parent is None else inside.setdefault(id(call.parent), [])
            siblings.append(call)
        paths = list(dict.fromkeys(["", *(call.path for call in self.calls)]))
        writers: dict[str, Any] = {}
        for index, process in enumerate(self.processes):
            if process.host not in writers:
                writers[process.host] = _core.NodeWriter(
                    str(folder / f"node-{process.host}.iowt"), process.host, EPOCH_NS
                )
            _describe(writers[process.host], process, index, paths, {call.site for call in self.calls} - {0})
        threads = list(outer)
        if shuffle is not None:
            threads = [threads[at] for at in np.random.default_rng(shuffle).permutation(len(threads))]
        for thread in threads:
            process = self.processes[outer[thread][0].process]
            writer = writers[process.host]
            handle = writer.begin_thread(_image(process, outer[thread][0].process), thread + 2, 1, 0)
            for call in outer[thread]:
                self._write_call(writer, handle, call, inside, paths)
        for writer in writers.values():
            writer.finish()

    def _write_call(
        self, writer: Any, handle: int, call: Call, inside: dict[int, list[Call]], paths: list[str]
    ) -> None:
        """A call is recorded when it returns: after those that it made."""
        for made in inside.get(id(call), ()):
            self._write_call(writer, handle, made, inside, paths)
        if call.recorded:
            start = round(call.start_s * NS)
            writer.event(
                thread=handle, function=_ID[call.name], origin=ORIGINS[call.origin], failed=call.failed,
                file=paths.index(call.path), seq=call.seq, parent=call.parent.seq if call.parent else 0, start=start,
                end=start + round((call.end_s - call.start_s) * NS), offset=call.offset, site=call.site,
                bytes=-call.error if call.failed else call.bytes, missing=call.missing,
            )  # fmt: skip


def _image(process: Process, index: int) -> int:
    assert process.image, f"process {index} needs an image number"
    return process.image


def _describe(writer: Any, process: Process, index: int, paths: list[str], sites: set[int]) -> None:
    thread = writer.begin_thread(_image(process, index), 1, process.pid, process.start_ns)
    writer.process(
        thread, process.image, process.parent_image, process.pid, process.ppid, process.start_ns, process.executable
    )
    for number, path in enumerate(paths):
        if number:
            writer.file(thread, number, path)
    if sites:
        writer.module(thread, 0, "/usr/bin/solver")
    for site in sorted(sites):
        writer.site(thread, site, [0x1000 + site])
    if process.rank >= 0:
        writer.rank(thread, process.rank, process.ranks, process.mpi_init_ns, process.mpi_library)
    if process.mpi_finalize_ns >= 0:
        writer.finalize(thread, process.mpi_finalize_ns)
    if process.end_ns >= 0:
        writer.end(thread, process.end_ns)


def printed(trace: Trace) -> dict[str, Any]:
    """The report of a trace as `ioweir report --json` prints it."""
    result: dict[str, Any] = report.to_dict(report.build(trace))
    return result
