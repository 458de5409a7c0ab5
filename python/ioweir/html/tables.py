"""The page's tables: files, call sites, ranks, sizes of calls; each bounded, and what is left out is counted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ioweir.trace.reader import DATA_OPS, STDIO

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ioweir.html.bins import Floats
    from ioweir.html.calls import Run
    from ioweir.report import model

MOST_FILES: Final = 2000
MOST_SITES: Final = 500
MOST_RANKS: Final = 4096
_MOST_TEXT: Final = 400
_META: Final = ("open", "close", "view", "sync", "seek", "meta", "lock", "unlock", "split")
_PREFERRED: Final = ("POSIX", STDIO, "MPI-IO")
"""Bytes of a file are counted at the first of these layers that has any: at the storage."""


def storage_bytes(row: model.FileRow) -> int:
    """Bytes that calls of POSIX and STDIO moved; 0 where neither was recorded."""
    total = 0
    for layer in ("POSIX", STDIO):
        for op in DATA_OPS:
            total += int(getattr(row.layers.get(layer, {}).get(op), "bytes", 0))
    return total


def files(report: model.Report) -> dict[str, Any]:
    """A row a file, most seconds first: all columns are of the lowest layer that touched it, never of two added up."""
    rows = sorted((_file(row) for row in report.files), key=lambda row: -sum(row[2:6]))
    columns = (
        ("file", "text"), ("layer", "text"), ("time writing", "s"), ("time reading", "s"),
        ("time in open, close, sync, metadata", "s"), ("time at locks", "s"), ("written", "B"), ("read", "B"),
        ("calls", "n"),
    )  # fmt: skip
    return table(columns, rows, MOST_FILES)


def _file(row: model.FileRow) -> list[Any]:
    layer = next((name for name in (*_PREFERRED, *row.layers) if _calls(row.layers.get(name, {}))), "POSIX")
    ops = row.layers.get(layer, {})
    meta = sum(ops[op].time_s for op in _META if op in ops and op not in ("lock", "unlock"))
    lock = sum(ops[op].time_s for op in ("lock", "unlock") if op in ops)
    written, read = (ops.get(op) for op in DATA_OPS)
    return [
        _short(row.path), layer, getattr(written, "time_s", 0.0), getattr(read, "time_s", 0.0), meta, lock,
        getattr(written, "bytes", 0), getattr(read, "bytes", 0), _calls(ops),
    ]  # fmt: skip


def _calls(ops: Mapping[str, model.Calls]) -> int:
    return sum(one.calls for one in ops.values())


def sites(report: model.Report) -> dict[str, Any]:
    """Lines of the program that call, most seconds first."""
    rows = sorted(report.call_sites, key=lambda site: -site.time_s)
    columns = (
        ("place", "text"),
        ("layer", "text"),
        ("operation", "text"),
        ("time", "s"),
        ("bytes", "B"),
        ("calls", "n"),
    )
    return table(
        columns,
        [[_short(one.where), one.layer, one.op, one.time_s, one.bytes, one.calls] for one in rows],
        MOST_SITES,
    )


def locks(report: model.Report) -> dict[str, Any]:
    """A row a file on which locks were taken, most seconds first."""
    rows = sorted(report.locks.by_file, key=lambda one: -one.time_s)
    columns = (("file", "text"), ("time at locks", "s"), ("longest", "s"), ("locks", "n"), ("failed", "n"))
    found = [[_short(one.path), one.time_s, one.longest_s, one.calls, one.failed] for one in rows]
    return table(columns, found, MOST_FILES)


def ranks(run: Run, report: model.Report, seconds: Floats, categories: Sequence[str]) -> dict[str, Any]:
    """A row a rank: seconds by category, bytes at the storage."""
    moved: dict[int, list[int]] = {}
    for column, op in enumerate(DATA_OPS):
        if op in report.storage:
            for one in report.storage[op].by_rank:
                moved.setdefault(one.rank, [0, 0])[column] = one.bytes
    used = [k for k in range(len(categories)) if seconds[:, k].any()]
    rows: list[list[Any]] = [
        [name, *(float(seconds[unit, k]) for k in used), *moved.get(name, [0, 0])]
        for unit, name in enumerate(run.unit_names)
    ]
    rows.sort(key=lambda row: -sum(row[1:-2]))
    columns = (
        (run.noun, "id"), *((categories[k], "s") for k in used), ("written to storage", "B"), ("read from storage", "B")
    )  # fmt: skip
    return table(columns, rows, MOST_RANKS)


def sizes(report: model.Report) -> list[dict[str, Any]]:
    """Calls by how many bytes they moved, a histogram a layer and operation: [least bytes of the bin, calls]."""
    found = []
    for layer, ops in report.layers.items():
        for op in DATA_OPS:
            bins = getattr(ops.get(op), "sizes", {})
            if bins:
                counts = sorted((int(least), calls) for least, calls in bins.items())
                found.append({"layer": layer, "op": op, "counts": [list(pair) for pair in counts]})
    return found


def table(columns: Sequence[tuple[str, str]], rows: Sequence[Sequence[Any]], most: int) -> dict[str, Any]:
    """`columns`: heading and unit: text, id, n, s, B, ratio."""
    kept = [[float(f"{value:.6g}") if isinstance(value, float) else value for value in row] for row in rows[:most]]
    return {"columns": [list(column) for column in columns], "rows": kept, "left_out": max(0, len(rows) - most)}


def _short(text: str) -> str:
    """A name without its middle, where it is very long."""
    return text if len(text) <= _MOST_TEXT else f"{text[: _MOST_TEXT // 2]}...{text[-_MOST_TEXT // 2 :]}"
