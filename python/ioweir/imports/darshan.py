"""From a Darshan log to sums: which counters are which calls, bytes and times. DXT's events are dxt.py's.

Darshan counts by file and rank; where all ranks opened a file it keeps one record for them (rank -1), summed, with the
slowest and the fastest of them. Its time of metadata is one figure for opens, closes, seeks and questions: it stands
at `meta`. docs/reference/import.md has the table.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from ioweir.base.units import plural
from ioweir.trace.counted import MOST_RANKS, SHARED, Counted, Counts, Table, Target

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ioweir.imports.darshan_log import Log, Module, Record

_MOST_BYTES: Final = (1 << 62) - 1
MOST_SECONDS: Final = 1 << 33
"""Of a job, and since 1970."""
_BINS: Final = (
    ("0_100", 0),
    ("100_1K", 100),
    ("1K_10K", 1 << 10),
    ("10K_100K", 10 << 10),
    ("100K_1M", 100 << 10),
    ("1M_4M", 1 << 20),
    ("4M_10M", 4 << 20),
    ("10M_100M", 10 << 20),
    ("100M_1G", 100 << 20),
    ("1G_PLUS", 1 << 30),
)
"""Darshan's bins of sizes, and the least of each."""


class _Kind(NamedTuple):
    """How a module's counters are read. Counters of an operation are added."""

    layer: str
    prefix: str
    calls: Mapping[str, tuple[str, ...]]
    bins: str = ""


_POSIX_CALLS: Final = {
    "write": ("WRITES",),
    "read": ("READS",),
    "open": ("OPENS",),
    "seek": ("SEEKS",),
    "sync": ("FSYNCS", "FDSYNCS"),
    "meta": ("STATS",),
}
_KINDS: Final[dict[str, _Kind]] = {
    "POSIX": _Kind("POSIX", "POSIX", _POSIX_CALLS, "SIZE_{}_"),
    "STDIO": _Kind(
        "STDIO",
        "STDIO",
        {
            "write": ("WRITES",),
            "read": ("READS",),
            "open": ("OPENS",),  # fdopen among them, which FDOPENS counts once more
            "seek": ("SEEKS",),
            "sync": ("FLUSHES",),
            "meta": (),
        },
    ),
    "MPI-IO": _Kind(
        "MPI-IO",
        "MPIIO",
        {
            **{
                op: tuple(f"{how}_{op.upper()}S" for how in ("INDEP", "COLL", "SPLIT", "NB"))
                for op in ("write", "read")
            },
            "open": ("INDEP_OPENS", "COLL_OPENS"),
            "view": ("VIEWS",),
            "sync": ("SYNCS",),
            "meta": (),
        },
        "SIZE_{}_AGG_",
    ),
    "H5F": _Kind("HDF5", "H5F", {"open": ("OPENS",), "sync": ("FLUSHES",), "meta": ()}),
    "H5D": _Kind(
        "HDF5",
        "H5D",
        {"write": ("WRITES",), "read": ("READS",), "sync": ("FLUSHES",), "meta": ("OPENS",)},
        "SIZE_{}_AGG_",
    ),
    "PNETCDF_FILE": _Kind(
        "PnetCDF",
        "PNETCDF_FILE",
        {
            "open": ("CREATES", "OPENS"),
            "sync": ("SYNCS",),
            "meta": ("REDEFS",),
            "wait": ("INDEP_WAITS", "COLL_WAITS"),  # in which non-blocking calls move their bytes
        },
    ),
    "PNETCDF_VAR": _Kind(
        "PnetCDF",
        "PNETCDF_VAR",
        {
            **{op: tuple(f"{how}_{op.upper()}S" for how in ("INDEP", "COLL", "NB")) for op in ("write", "read")},
            "meta": ("OPENS",),
        },
        "SIZE_{}_AGG_",
    ),
}
_OBJECTS: Final = ("H5D", "PNETCDF_VAR")
"""Modules whose records are of parts of files."""
UNSEEN: Final = (
    "Darshan counts calls and keeps no events: what happened between two calls, and in which order, is not in the log",
    "Darshan does not see locks",
    "Darshan keeps one record for all ranks of a file that all of them opened: their single times are not in the log",
    "Darshan's time of fsync is part of its time of writes, and the times of opens, closes, seeks and questions "
    "are one",
    "which calls made which others is taken from the layers that a file was opened by, and from their times",
)


def counted(log: Log, path: str) -> Counted:
    """Everything that reports and findings are made of."""
    files = _Files(log.names)
    odd = _Odd()
    rows = [row for module in _KINDS if module in log.tables for row in _rows(module, log.tables[module], files, odd)]
    rows = _nested(rows)
    said = int(log.job.get("nprocs", 1))
    ranks = min(max(said, 1), MOST_RANKS)
    busiest, busiest_s = _busiest(log, files, ranks)
    targets, unknown = _targets(log, files)
    partial = [f"Darshan's module {name} ran out of memory: its records are not complete" for name in _cut(log)]
    made = Counted(
        tool=f"Darshan {log.job.get('log_ver', '')}".strip(),
        log=path,
        ranks=ranks,
        files=(),
        counts=tuple(row for row in rows if -1 <= row.rank < MOST_RANKS),
        busiest=busiest,
        busiest_s=busiest_s,
        tables={name: _table(name, module, files) for name, module in log.tables.items()},
        targets=targets,
        heatmaps=tuple(
            {key: row[key] for key in ("rank", "bin_s", "write", "read")} | {"layer": log.names.get(row["heatmap"], "")}
            for row in log.heatmaps.rows()
        ),
        layers=tuple(dict.fromkeys(_KINDS[name].layer for name in _KINDS if name in log.modules)),
        unseen=(*UNSEEN, *log.unseen, *_not_recorded(log), *unknown, *log.heatmaps.words(), *odd.words()),
        partial=(*partial, *log.troubles, *_impossible(log, said, ranks)),
    )
    return replace(made, files=tuple(files.paths))


def _impossible(log: Log, said: int, ranks: int) -> Iterator[str]:
    """What a job cannot have had."""
    if said != ranks:
        yield f"the log says {said:,} ranks, which cannot be: it is read as one of {ranks:,}"
    run_s = float(log.job.get("run_time") or 0)
    if not 0 <= run_s < MOST_SECONDS:
        yield f"the log says that the job ran for {run_s:g} s, which cannot be: it is taken as not known"
    ranks_of = [one.rank for table in log.tables.values() for one in table.records]
    left_out = sum(not -1 <= rank < MOST_RANKS for rank in ranks_of)
    if left_out:
        yield f"left out: {left_out:,} {plural('record', left_out)} of ranks that cannot be"
    beyond = sum(ranks <= rank < MOST_RANKS for rank in ranks_of)
    if beyond:
        yield f"{beyond:,} {plural('record', beyond)} of ranks that a job of {ranks:,} ranks has not"


@dataclass
class _Odd:
    """Values that cannot be. Darshan itself writes some: it takes one time from another."""

    number: int = 0
    first: str = ""

    def words(self) -> Iterator[str]:
        if self.number:
            yield (
                f"negative or too large: {self.number:,} {plural('value', self.number)} of the log, read as 0 or as "
                f"the most that can be; the first: {self.first}"
            )

    def count(self, values: Mapping[str, float], name: str) -> int:
        """Counters and times that a log of an older version has not are -1."""
        value = int(values.get(name, 0))
        return int(self._read(name, value, min(max(value, 0), _MOST_BYTES), value == -1))

    def time(self, values: Mapping[str, float], name: str) -> float:
        value = float(values.get(name, 0.0))
        return self._read(name, value, _time(values, name), value == -1)

    def _read(self, name: str, value: float, found: float, known: bool = False) -> float:
        if found != value and not known:
            self.number += 1
            self.first = self.first or f"{name} {value:g}"
        return found


def _not_recorded(log: Log) -> Iterator[str]:
    for layer in ("MPI-IO", "POSIX", "STDIO", "HDF5"):
        if not any(_KINDS[name].layer == layer for name in log.modules if name in _KINDS):
            yield f"the log has no calls of {layer}: there were none, or they were not recorded"
    for name in log.unread:
        yield f"the log's module {name} is not read"


def _cut(log: Log) -> list[str]:
    return [name for name, module in log.modules.items() if module.get("partial_flag")]


class _Files:
    """Numbers files by Darshan's ids."""

    def __init__(self, names: Mapping[int, str]) -> None:
        self._names = names
        self._by_name = {name: record_id for record_id, name in names.items()}
        self._numbers: dict[int, int] = {}
        self.paths: list[str] = []

    def of(self, module: str, record: Record) -> int:
        """The file that a record is about. Older logs name an object of a file FILE:OBJECT, and say no more."""
        if record.file_id:
            return self.number(record.file_id)
        above, colon, _ = self._names.get(record.id, "").rpartition(":") if module in _OBJECTS else ("", "", "")
        return self.number(self._by_name.get(above, record.id) if colon else record.id)

    def number(self, record_id: int) -> int:
        """Of a file, its own from the first time it is asked for."""
        if record_id not in self._numbers:
            self._numbers[record_id] = len(self.paths)
            self.paths.append(self._names.get(record_id) or f"(name not in the log: {record_id})")
        return self._numbers[record_id]


def _table(name: str, module: Module, files: _Files) -> Table:
    return Table(
        (*module.counters, *module.seconds),
        tuple(
            (files.of(name, one), one.rank, *one.counters, *map(_finite, one.seconds))
            for one in module.records
            if -1 <= one.rank < MOST_RANKS
        ),
    )


def _targets(log: Log, files: _Files) -> tuple[tuple[Target, ...], list[str]]:
    """Where files lie. Of a file of which one target is not known (-1) none is: it would seem to lie on the others."""
    found: dict[Target, None] = {}
    lacking: set[int] = set()
    for row in log.lustre:
        file = files.number(row["lustre"])
        parts = list(zip(row["stripe_bytes"], row["targets"], strict=True))
        if any(not 0 < size <= _MOST_BYTES or any(not 0 <= one <= _MOST_BYTES for one in on) for size, on in parts):
            lacking.add(file)
        else:
            found.update(dict.fromkeys(Target(file, size, tuple(on)) for size, on in parts if on))
    count = len(lacking)
    words = [f"of {count:,} {plural('file', count)} the log does not say on which storage targets it lies"]
    return tuple(one for one in found if one.file not in lacking), words[: bool(count)]


def _finite(value: float) -> float:
    return value if math.isfinite(value) and abs(value) < _MOST_BYTES else 0.0


def _rows(module: str, table: Module, files: _Files, odd: _Odd) -> Iterator[Counts]:
    kind = _KINDS[module]
    for record in table.records:
        values = table.values(record)
        file = files.of(module, record)
        for op, names in kind.calls.items():
            calls = min(sum(odd.count(values, f"{kind.prefix}_{name}") for name in names), _MOST_BYTES)
            row = Counts(kind.layer, op, file, record.rank, calls)
            if op in ("write", "read"):
                row = _moving(kind, op, row, values, odd)
            elif op == "meta":
                row = replace(row, time_s=odd.time(values, f"{kind.prefix}_F_META_TIME"))
            elif op == "wait":
                row = replace(row, time_s=odd.time(values, f"{kind.prefix}_F_WAIT_TIME"))
            if row.calls or row.time_s or row.bytes:
                yield row


def _moving(kind: _Kind, op: str, row: Counts, values: Mapping[str, float], odd: _Odd) -> Counts:
    upper, p = op.upper(), kind.prefix
    bins = kind.bins.format(upper)
    return replace(
        row,
        bytes=odd.count(values, f"{p}_BYTES_{'WRITTEN' if op == 'write' else 'READ'}"),
        time_s=odd.time(values, f"{p}_F_{upper}_TIME"),
        longest_s=odd.time(values, f"{p}_F_MAX_{upper}_TIME"),
        first_s=odd.time(values, f"{p}_F_{upper}_START_TIMESTAMP"),
        last_s=odd.time(values, f"{p}_F_{upper}_END_TIMESTAMP"),
        sizes=tuple(
            (least, number) for name, least in _BINS if bins and (number := odd.count(values, f"{p}_{bins}{name}"))
        ),
    )


def _time(values: Mapping[str, float], name: str) -> float:
    return max(_finite(float(values.get(name, 0.0))), 0.0)


_ABOVE: Final = ("HDF5", "PnetCDF", "MPI-IO", "POSIX")
"""Of a file that several of these opened the first one made the calls of the others; STDIO is by itself."""
_NEAR: Final = 0.99
"""Of the time of the calls that it made a layer has all, but for what clocks leave."""


def _nested(rows: list[Counts]) -> list[Counts]:
    """With what is outermost: of each file the highest layer that has the time of those below it.

    A higher one without it did not make those calls, or its own were not timed (HDF5's and PnetCDF's by older versions,
    attributes and what ends non-blocking calls by all).
    """
    spent: dict[int, dict[str, float]] = {}
    for row in rows:
        if row.layer in _ABOVE:
            times = spent.setdefault(row.file, {})
            times[row.layer] = times.get(row.layer, 0.0) + row.time_s
    top = {
        file: next(layer for layer in _ABOVE if layer in times and times[layer] >= _NEAR * max(times.values()))
        for file, times in spent.items()
    }
    return [replace(row, outermost=row.layer not in _ABOVE or top[row.file] == row.layer) for row in rows]


def _busiest(log: Log, files: _Files, ranks: int) -> tuple[int, float]:
    """The rank that was the slowest one of shared records for longest; of a file by the layer that says most of it."""
    by_layer: dict[tuple[int, int], dict[str, float]] = {}
    for name, table in log.tables.items():
        layer, prefix, *_ = _KINDS[name]
        for record in table.records:
            if record.rank != SHARED:
                continue
            values = table.values(record)
            rank = int(values.get(f"{prefix}_SLOWEST_RANK", -1))
            if 0 <= rank < ranks:
                times = by_layer.setdefault((rank, files.of(name, record)), {})
                times[layer] = times.get(layer, 0.0) + _time(values, f"{prefix}_F_SLOWEST_RANK_TIME")
    spent: dict[int, float] = {}
    for (rank, _), times in by_layer.items():
        spent[rank] = spent.get(rank, 0.0) + max(times.values())
    rank = max(spent, key=lambda one: spent[one], default=-1)
    return (rank, spent[rank]) if spent.get(rank) else (-1, 0.0)
