"""`ioweir merge-trace DIR`: one time-sorted master log of all ranks and nodes, and its master file database.

What RIOT does after a run (Wright et al. 2013, section 3). The events come in order from the compiled reader, which
merges the threads, a batch at a time: memory does not grow with the trace. docs/reference/master-log.md describes the
columns.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from ioweir.base.csv_cells import guarded
from ioweir.base.guarded_files import writing_named
from ioweir.base.progress import watched
from ioweir.base.spec_names import DATA_OPS, LAYERS, OPS
from ioweir.base.units import plural
from ioweir.errors import EXIT_USAGE, IoweirError, reason
from ioweir.trace import attribute
from ioweir.trace.reader import BATCH_EVENTS, Events, Trace, read
from ioweir.trace.runtime_files import is_runtime_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

FORMAT_VERSION: Final = 1
DEFAULT_NAME: Final = "master.parquet"
ORIGINS: Final = ("application", "mpi_library", "engine", "tracer")
SUFFIXES: Final = (".parquet", ".arrow", ".csv", ".csv.gz", ".csv.zst")


@dataclass(frozen=True)
class Merged:
    """What was written."""

    log: Path
    files: Path
    events: int
    file_count: int
    epoch_ns: int
    """Time 0 of the log: nanoseconds since 1970."""
    damage: tuple[str, ...]
    dropped: int
    unreadable: tuple[str, ...] = ()
    """Nodes of which nothing could be read."""


def to_json(merged: Merged) -> dict[str, Any]:
    """What `--json` prints."""
    return {
        "log": str(merged.log),
        "files": str(merged.files),
        "events": merged.events,
        "file_count": merged.file_count,
        "epoch_ns": merged.epoch_ns,
        "dropped": merged.dropped,
        "damage": list(merged.damage),
        "unreadable": list(merged.unreadable),
    }


def to_text(merged: Merged) -> list[str]:
    """What was written, and what it lacks."""
    lines = [
        f"{merged.log}: {merged.events:,} {plural('event', merged.events)} by time",
        f"{merged.files}: {merged.file_count:,} {plural('file', merged.file_count)}",
    ]
    if merged.dropped:
        lines.append(f"PARTIAL: {merged.dropped:,} events were dropped while the program ran")
    return lines + [f"PARTIAL: damaged: {line}" for line in merged.damage]


def merge(directory: Path, output: Path | None = None, progress: IO[str] | None = None) -> Merged:
    """Write the master log of a trace directory, and its file table beside it."""
    log = output or directory / DEFAULT_NAME
    suffix = _suffix(log)
    files = log.with_name(log.name.removesuffix(suffix) + "-files" + suffix)
    trace = read(directory)
    trace.require_events(directory, "merge-trace")
    merger = Merger(trace)
    with replacing(log) as unfinished_log, replacing(files) as unfinished_files:
        with table_writer(unfinished_log, suffix, merger.metadata()) as write:

            def work() -> None:
                for table in merger.tables():
                    write(table)

            watched(work, merger, trace.event_count, "merging the trace's events", progress)
        with table_writer(unfinished_files, suffix, merger.metadata()) as write:
            write(merger.file_table())
    return Merged(
        log, files, merger.done, merger.file_count, trace.epoch_ns, trace.damage, trace.dropped, trace.unreadable
    )


def _suffix(path: Path) -> str:
    for suffix in SUFFIXES:
        if path.name.endswith(suffix) and len(path.name) > len(suffix):
            return suffix
    raise IoweirError(f"'{path}': the name's end says the format, one of {', '.join(SUFFIXES)}", EXIT_USAGE)


# ---------------------------------------------------------------------------------------------------------- tables


class Merger:
    """Turns batches of events into tables whose codes are words, and adds up what the file table says."""

    def __init__(self, trace: Trace) -> None:
        import numpy as np  # noqa: PLC0415 (only this command needs them)
        import pyarrow as pa  # noqa: PLC0415

        self._np, self._pa = np, pa
        self.trace = trace
        self.done = 0
        self._stopped = False
        who = attribute.attribute_processes(trace.processes)
        self.names, indices = trace.files
        self._file_of_path = np.array(indices or [0], dtype=np.uint32)
        self._rank = np.array(
            [who.unit_names[unit] if who.has_ranks and unit >= 0 else -1 for unit in who.units] or [-1], dtype=np.int32
        )
        self._pid = np.array([process.pid for process in trace.processes] or [0], dtype=np.uint32)
        number = {host: at for at, host in enumerate(trace.hosts)}
        self._host = np.array(
            [number[process.host] for process in trace.processes] or [0],
            dtype=np.int16 if len(number) <= np.iinfo(np.int16).max else np.int32,
        )
        size = max((function.id for function in trace.functions), default=0) + 1
        self._layer, self._op = np.zeros(size, dtype=np.int8), np.zeros(size, dtype=np.int8)
        for function in trace.functions:
            self._layer[function.id] = LAYERS.index(function.layer)
            self._op[function.id] = OPS.index(function.op)
        self._function_names = [""] * size
        for function in trace.functions:
            self._function_names[function.id] = function.name
        count = len(self.names)
        self._events = np.zeros(count, dtype=np.int64)
        self._moved = {op: np.zeros(count, dtype=np.int64) for op in DATA_OPS}
        self._first = np.full(count, np.iinfo(np.int64).max, dtype=np.int64)
        self._last = np.full(count, np.iinfo(np.int64).min, dtype=np.int64)

    def stop(self) -> None:
        """End after the batch that is being worked on."""
        self._stopped = True

    @property
    def file_count(self) -> int:
        """How many files have events."""
        return int(self._np.count_nonzero(self._events))

    def metadata(self) -> dict[str, str]:
        """What every file says of itself, where its format has a place for it."""
        return {
            "ioweir.master_log_version": str(FORMAT_VERSION),
            "ioweir.epoch_ns": str(self.trace.epoch_ns),
            "ioweir.events": str(self.trace.event_count),
            "ioweir.dropped": str(self.trace.dropped),
        }

    def tables(self) -> Iterator[pa.Table]:
        """The events by time of entry; one empty table of a trace without any."""
        if not self.trace.event_count:
            yield self._table(self.trace.events)
        for events in self.trace.batches(BATCH_EVENTS):
            if self._stopped:
                return
            yield self._table(events)
            self.done += len(events)

    def _table(self, events: Events) -> pa.Table:
        file = self._file_of_path[events.path]
        op = self._op[events.function]
        self._add(events, file, op)
        return self._columns(events, file, op)

    def _columns(self, events: Events, file: npt.NDArray[np.uint32], op: npt.NDArray[np.int8]) -> pa.Table:
        return self._pa.table(
            {
                "start_ns": events.start_ns,
                "duration_ns": events.duration_ns,
                "rank": self._rank[events.process],
                "host": self._words(self._host[events.process], self.trace.hosts),
                "pid": self._pid[events.process],
                "thread": events.thread,
                "seq": events.seq,
                "parent": events.parent,
                "layer": self._words(self._layer[events.function], LAYERS),
                "function": self._words(events.function.view(self._np.int16), self._function_names),
                "op": self._words(op, OPS),
                "origin": self._words(self._np.minimum(events.origin, len(ORIGINS) - 1).view(self._np.int8), ORIGINS),
                "file": file,
                "offset": events.offset,
                "bytes": events.bytes,
                "error": events.error,
                "failed": (events.flags & 1).astype(self._np.bool_),
            }
        )

    def file_names(self, numbers: npt.NDArray[np.uint32]) -> pa.DictionaryArray:
        """Names in the place of numbers; only those that occur are in the dictionary."""
        used, places = self._np.unique(numbers, return_inverse=True)
        return self._words(places.reshape(-1).astype(self._np.int32), [self.names[at] for at in used])

    def _words(self, codes: npt.NDArray[Any], words: Sequence[str]) -> pa.DictionaryArray:
        return self._pa.DictionaryArray.from_arrays(
            self._pa.array(codes), self._pa.array(list(words), self._pa.string())
        )

    def _add(self, events: Events, file: npt.NDArray[np.uint32], op: npt.NDArray[np.int8]) -> None:
        np, count = self._np, len(self.names)
        self._events += np.bincount(file, minlength=count)
        for name, sums in self._moved.items():
            chosen = op == OPS.index(name)
            np.add.at(sums, file[chosen], np.maximum(events.bytes[chosen], 0))
        np.minimum.at(self._first, file, events.start_ns)
        np.maximum.at(self._last, file, events.start_ns + events.duration_ns)

    def file_table(self) -> pa.Table:
        """The master file database: every file that has events, by its number in the log."""
        np = self._np
        used = np.flatnonzero(self._events)
        names = [self.names[index] for index in used]
        return self._pa.table(
            {
                "file": used.astype(np.uint32),
                "path": self._pa.array(names, self._pa.string()),
                "mpi_runtime": [is_runtime_file(name) for name in names],
                "events": self._events[used],
                **{f"bytes_{op}": sums[used] for op, sums in self._moved.items()},
                "first_ns": self._first[used],
                "last_ns": self._last[used],
            }
        )


# ----------------------------------------------------------------------------------------------------------- files


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A file to write to, which takes the name's place when all went well and is removed otherwise."""
    with contextlib.ExitStack() as stack:
        try:
            file = stack.enter_context(writing_named(path))
        except OSError as error:
            raise IoweirError(f"'{path}' cannot be written: {reason(error)}") from error
        yield file


class table_writer:  # noqa: N801 (used like a function)
    """Appends tables to a file of the format that `suffix` names."""

    def __init__(self, file: IO[bytes], suffix: str, metadata: dict[str, str]) -> None:
        self._file, self._suffix, self._metadata = file, suffix, metadata
        self._open: Any = None
        self._stream: Any = None

    def __enter__(self) -> Callable[[Any], None]:
        return self._write

    def _write(self, table: Any) -> None:
        if self._suffix.startswith(".csv"):
            table = guarded(plain(table))
        else:
            table = table.replace_schema_metadata(self._metadata)
        if self._open is None:
            self._open = self._begin(table.schema)
        self._open.write_table(table)

    def _begin(self, schema: Any) -> Any:
        import pyarrow as pa  # noqa: PLC0415

        if self._suffix == ".parquet":
            from pyarrow import parquet  # noqa: PLC0415

            return parquet.ParquetWriter(self._file, schema, compression="zstd", compression_level=1)
        if self._suffix == ".arrow":
            return pa.ipc.new_file(self._file, schema, options=pa.ipc.IpcWriteOptions(compression="zstd"))
        from pyarrow import csv  # noqa: PLC0415

        compression = {".csv": None, ".csv.gz": "gzip", ".csv.zst": "zstd"}[self._suffix]
        self._stream = pa.output_stream(self._file, compression=compression)
        return csv.CSVWriter(self._stream, schema, write_options=csv.WriteOptions(quoting_style="needed"))

    def __exit__(self, *_: object) -> None:
        for part in (self._open, self._stream):
            if part is not None:
                part.close()


def plain(table: Any) -> Any:
    """Words instead of codes for words: CSV knows no dictionaries."""
    import pyarrow as pa  # noqa: PLC0415

    for index, column in enumerate(table.columns):
        if pa.types.is_dictionary(column.type):
            table = table.set_column(index, table.schema.names[index], column.cast(pa.string()))
    return table
