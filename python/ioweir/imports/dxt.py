"""DXT's segments as events of a trace: one file a node, a thread a rank.

Which MPI-IO call made a POSIX call is inferred: the one of the same rank on the same file that lies around it in time.
A file whose MPI-IO counters say that all calls were collective has collective events, any other one independent ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ioweir.base.compiled import compiled
from ioweir.imports import node_file
from ioweir.trace.counted import MOST_RANKS
from ioweir.trace.reader import function_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    import numpy as np

    from ioweir.imports.darshan_log import Log

MOST_NODES: Final = 65_536
_MOST_S: Final = 1e8
_FUNCTIONS: Final = {
    ("DXT_POSIX", "write"): "pwrite",
    ("DXT_POSIX", "read"): "pread",
    ("DXT_MPIIO", "write"): "MPI_File_write_at",
    ("DXT_MPIIO", "read"): "MPI_File_read_at",
}


@dataclass
class Written:
    """What became of the segments."""

    events: int = 0
    left_out: int = 0
    """Whose times, sizes or ranks cannot be."""
    last_s: float = 0.0


def write(log: Log, file_of: Callable[[int], str], path_of_node: Callable[[int], str], epoch_ns: int) -> Written:
    """Write a trace file for each host; `file_of`: a file's path by Darshan's id."""
    made = Written()
    hosts: dict[str, dict[int, list[Mapping[str, Any]]]] = {}
    for row in log.segments:
        known = str(row["host"]) in hosts or len(hosts) < MOST_NODES
        if known and 0 <= row["rank"] < MOST_RANKS:
            hosts.setdefault(str(row["host"]), {}).setdefault(int(row["rank"]), []).append(row)
        else:
            made.left_out += len(row["start"])
    functions = {function.name: function.id for function in function_table(compiled().functions())}
    collective = _collective(log)
    end_ns = _ns(_seconds(log.job.get("run_time")) + 1)
    for number, (host, ranks) in enumerate(hosts.items()):
        path = path_of_node(number)
        writer = node_file.create(path, host[:255] or "unknown", epoch_ns)
        paths = {
            file: at for at, file in enumerate(dict.fromkeys(row["id"] for rows in ranks.values() for row in rows), 1)
        }
        for rank, rows in sorted(ranks.items()):
            used = dict.fromkeys(row["id"] for row in rows)
            thread = _begin(writer, rank, log, {paths[file]: file_of(file) for file in used})
            _events(writer, thread, _columns(rows, paths, functions, collective, made), made)
            writer.finalize(thread, end_ns)
            writer.end(thread, end_ns)
        node_file.finish(writer, path)
    return made


def _begin(writer: Any, rank: int, log: Log, paths: Mapping[int, str]) -> int:
    image = rank + 1
    thread: int = writer.begin_thread(image, 1, rank + 1, 0)
    executable = str(log.job.get("exe", "")).split(" ")[0]
    writer.process(thread, image, 0, rank + 1, 0, 0, executable)
    for number, path in paths.items():
        writer.file(thread, number, path)
    writer.rank(thread, rank, min(max(int(log.job.get("nprocs", 1)), rank + 1), MOST_RANKS), 1, "")
    return thread


def _collective(log: Log) -> set[int]:
    """Files whose MPI-IO reads and writes were all collective, of all ranks that have a record."""
    table = log.tables.get("MPI-IO")
    together: dict[int, int] = {}
    by_itself: set[int] = set()
    for record in table.records if table else ():
        values = table.values(record) if table else {}
        data = {
            how: sum(max(values.get(f"MPIIO_{how}_{op}", 0), 0) for op in ("WRITES", "READS"))
            for how in ("INDEP", "COLL", "SPLIT", "NB")
        }
        together[record.id] = together.get(record.id, 0) + int(data["COLL"])
        if data["COLL"] != sum(data.values()):
            by_itself.add(record.id)
    return {file for file, calls in together.items() if calls > 0} - by_itself


def _columns(
    rows: Iterable[Mapping[str, Any]],
    paths: Mapping[int, int],
    functions: Mapping[str, int],
    together: set[int],
    made: Written,
) -> np.ndarray[Any, Any]:
    """The segments of a rank by the order of entry; a call stands before those that it made."""
    import numpy as np  # noqa: PLC0415

    kind = np.dtype(
        [
            ("start", "<i8"),
            ("end", "<i8"),
            ("outer", "<i8"),
            ("file", "<i8"),
            ("function", "<i8"),
            ("offset", "<i8"),
            ("bytes", "<i8"),
        ]
    )
    parts = []
    for row in rows:
        start, end = np.array(row["start"], dtype=float), np.array(row["end"], dtype=float)
        offset, length = np.array(row["offset"], dtype=np.int64), np.array(row["length"], dtype=np.int64)
        good = (
            (start >= 0)
            & (end >= start)
            & (end < _MOST_S)
            & (length >= 0)
            & (length < 1 << 46)
            & (offset >= -1)
            & (offset < 1 << 60)
        )
        part = np.zeros(int(good.sum()), dtype=kind)
        part["start"], part["end"] = np.round(start[good] * 1e9), np.round(end[good] * 1e9)
        part["offset"], part["bytes"] = offset[good], length[good]
        name = _FUNCTIONS[row["dxt"], row["op"]]
        part["outer"] = row["dxt"] != "DXT_MPIIO"
        part["function"] = functions[f"{name}_all" if row["dxt"] == "DXT_MPIIO" and row["id"] in together else name]
        part["file"] = paths[row["id"]]
        made.left_out += int((~good).sum())
        parts.append(part)
    every = np.concatenate(parts)
    return every[np.lexsort((-every["end"], every["outer"], every["start"]))]


def _events(writer: Any, thread: int, rows: np.ndarray[Any, Any], made: Written) -> None:
    """In the order of their ends, each with its number by entry and the number of the call around it."""
    import numpy as np  # noqa: PLC0415

    parent = np.zeros(rows.size, dtype=np.int64)
    open_calls: dict[int, tuple[int, int]] = {}  # by file: number and end of the last MPI-IO call
    for at in range(rows.size):
        file = int(rows["file"][at])
        if not rows["outer"][at]:
            open_calls[file] = (at + 1, int(rows["end"][at]))
        elif (around := open_calls.get(file)) is not None and around[1] >= rows["end"][at]:
            parent[at] = around[0]
    order = np.lexsort((-np.arange(rows.size), rows["end"]))
    for at in order.tolist():
        row = rows[at]
        writer.event(
            thread=thread,
            function=int(row["function"]),
            origin=1 if parent[at] else 0,
            failed=False,
            file=int(row["file"]),
            seq=at + 1,
            parent=int(parent[at]),
            start=int(row["start"]),
            end=int(row["end"]),
            offset=int(row["offset"]),
            bytes=int(row["bytes"]),
        )
    made.events += rows.size
    if rows.size:
        made.last_s = max(made.last_s, float(rows["end"].max()) / 1e9)


def _ns(seconds: float) -> int:
    return round(min(max(seconds, 0.0), _MOST_S) * 1e9)


def _seconds(value: Any) -> float:
    number = float(value or 0)
    return number if math.isfinite(number) else 0.0
