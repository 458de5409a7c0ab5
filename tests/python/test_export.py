"""Traces in the forms of other tools, read back by DuckDB, Dask, pyarrow and Perfetto's own protobuf classes."""

from __future__ import annotations

import contextlib
import csv
import errno
import json
import resource
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from ioweir.errors import IoweirError
from ioweir.exports.run import export
from ioweir.trace import reader
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace as PerfettoTrace
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TrackEvent
from traces import Builder, Call

RANKS = 4


def rows_of(query: str) -> list[Any]:
    """What DuckDB answers."""
    return duckdb.connect().execute(query).fetchall()


@contextlib.contextmanager
def smallest_files() -> Iterator[None]:
    """No file may have more than a byte."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two nodes of two ranks that write a shared file through MPI-IO and read their own; one read overlaps another."""
    builder = Builder()
    for rank in range(RANKS):
        process = builder.rank(rank, RANKS, host=f"node{rank // 2}")
        for step in range(10):
            write = Call(process, "MPI_File_write_at_all", 2 * step, 2 * step + 1, "/d/shared", 100 + rank, offset=step)
            builder.add(write, write.inside("pwrite", 2 * step + 0.25, 2 * step + 0.5, 100 + rank, offset=100 * step))
        builder.add(Call(process, "pread", 30, 31, f'/d/own,{rank} "x"', 7, offset=0))
    builder.add(
        Call(0, "pread", 40, 42, "/d/a", 5),
        Call(0, "pread", 41, 43, "/d/a", 6),
        Call(0, "pwrite", 50, 51, "/d/a", failed=True),
    )
    folder = tmp_path_factory.mktemp("trace")
    builder.write(folder)
    (folder / "run.json").write_text(json.dumps({"wall_s": 100.0, "program": "solver", "state": "ended"}))
    return folder


def events_of(trace: Path) -> list[tuple[Any, ...]]:
    """The oracle: the reader's columns one by one."""
    loaded = reader.load(trace)
    events, functions = loaded.events, {function.id: function for function in loaded.functions}
    return [
        (
            loaded.processes[events.process[at]].rank,
            loaded.processes[events.process[at]].host,
            functions[int(events.function[at])].name,
            loaded.paths[events.path[at]],
            int(events.start_ns[at]),
            int(events.duration_ns[at]),
            int(events.bytes[at]),
        )
        for at in range(len(events))
    ]


def test_parquet_by_duckdb(trace: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert export(trace, "parquet", out).events == len(events_of(trace))
    parts = sorted(str(path.parent.relative_to(out)) for path in out.rglob("*.parquet"))
    assert parts == [f"node=node{rank // 2}/rank={rank}" for rank in range(RANKS)]
    found = rows_of(
        "select rank, node, function, file, start_ns, duration_ns, bytes from "
        f"read_parquet('{out}/*/*/*.parquet', hive_partitioning=true)"
    )
    assert sorted(found) == sorted(events_of(trace))
    sums = rows_of(
        f"select layer, op, sum(bytes) from read_parquet('{out}/*/*/*.parquet', hive_partitioning=true) group by all"
    )
    wanted = Counter()  # type: Counter[tuple[str, str]]
    layers = {function.name: (function.layer, function.op) for function in reader.load(trace).functions}
    for _, _, name, _, _, _, moved in events_of(trace):
        wanted[layers[name]] += moved
    assert {(layer, op): moved for layer, op, moved in sums} == dict(wanted)


def test_parquet_by_dask_on_several_workers(trace: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    export(trace, "parquet", out)
    code = (
        "import sys, json, dask, dask.dataframe as dd\n"
        "if __name__ == '__main__':\n"
        "    table = dd.read_parquet(sys.argv[1])\n"
        "    assert table.npartitions > 1\n"
        "    with dask.config.set(scheduler='processes', num_workers=2):\n"
        "        sums = table.groupby('rank')['bytes'].sum().compute()\n"
        "        print(json.dumps({str(rank): int(moved) for rank, moved in sums.items()}))\n"
    )
    script = tmp_path / "query.py"
    script.write_text(code)
    said = subprocess.run([sys.executable, str(script), str(out)], capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr
    wanted: dict[str, int] = {}
    for rank, *_, moved in events_of(trace):
        wanted[str(rank)] = wanted.get(str(rank), 0) + moved
    assert json.loads(said.stdout) == wanted


def test_csv(trace: Path, tmp_path: Path) -> None:
    out = tmp_path / "events.csv"
    export(trace, "csv", out)
    with out.open(newline="") as file:
        rows = list(csv.DictReader(file))
    found = [
        (
            int(r["rank"]),
            r["node"],
            r["function"],
            r["file"],
            int(r["start_ns"]),
            int(r["duration_ns"]),
            int(r["bytes"]),
        )
        for r in rows
    ]
    assert sorted(found) == sorted(events_of(trace))
    assert [row["start_ns"] for row in rows] == [str(start) for start in sorted(int(row["start_ns"]) for row in rows)]


def slices_of(packets: Any) -> tuple[list[tuple[Any, ...]], dict[int, Any]]:
    """Slices and tracks as Perfetto's classes read them: what is interned looked up, begins and ends matched."""
    names: dict[int, str] = {}
    words: dict[int, str] = {}
    notes: dict[int, str] = {}
    tracks: dict[int, Any] = {}
    events = []
    for packet in packets:
        for kind, table in (
            ("event_names", names),
            ("debug_annotation_names", notes),
            ("debug_annotation_string_values", words),
        ):
            for entry in getattr(packet.interned_data, kind):
                table[entry.iid] = entry.str.decode() if kind == "debug_annotation_string_values" else entry.name
        if packet.HasField("track_descriptor"):
            tracks[packet.track_descriptor.uuid] = packet.track_descriptor
        if packet.HasField("track_event"):
            event = packet.track_event
            annotations = {
                notes[one.name_iid]: words[one.string_value_iid] if one.HasField("string_value_iid") else one.int_value
                for one in event.debug_annotations
            }
            events.append((packet.timestamp, event.type, event.track_uuid, names.get(event.name_iid), annotations))
    stacks: dict[int, list[Any]] = {}
    slices = []
    # As the trace processor does: by time, in the order of the file where times are equal.
    for time, kind, track, name, annotations in sorted(events, key=lambda event: event[0]):
        stack = stacks.setdefault(track, [])
        if kind == TrackEvent.TYPE_SLICE_BEGIN:
            stack.append((time, name, annotations))
        else:
            begin, name_, notes_ = stack.pop()
            slices.append((track, name_, begin, time - begin, notes_))
    assert not any(stacks.values())
    return slices, tracks


def test_perfetto(trace: Path, tmp_path: Path) -> None:
    out = tmp_path / "trace.pftrace"
    export(trace, "perfetto", out)
    read = PerfettoTrace()
    read.ParseFromString(out.read_bytes())
    slices, tracks = slices_of(read.packet)
    parents = {uuid: track.parent_uuid for uuid, track in tracks.items()}
    ranks = {}
    for uuid in tracks:
        thread = parents[uuid] or uuid
        process = next(
            (t for t in tracks.values() if t.HasField("process") and t.process.pid == tracks[thread].thread.pid), None
        )
        ranks[uuid] = process.process.process_name if process else ""
    found = [
        (ranks[track].split(",")[0], name, notes["file"], begin, length, notes["bytes"])
        for track, name, begin, length, notes in slices
    ]
    wanted = [
        (f"rank {rank}", name, file, start, length, moved)
        for rank, _, name, file, start, length, moved in events_of(trace)
    ]
    assert sorted(found) == sorted(wanted)
    assert any(track.name == "overlapping calls 1" for track in tracks.values())
    assert all(packet.trusted_packet_sequence_id == 1 for packet in read.packet)
    failed = [notes for _, name, _, _, notes in slices if "error" in notes]
    assert [one["error"] for one in failed] == [5]


def test_what_cannot_be_exported_is_said(trace: Path, tmp_path: Path) -> None:
    with pytest.raises(IoweirError, match="is no format"):
        export(trace, "xml", tmp_path / "x")
    with pytest.raises(IoweirError, match=r"NAME.csv"):
        export(trace, "csv", tmp_path / "x")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("x")
    with pytest.raises(IoweirError, match="holds something"):
        export(trace, "parquet", tmp_path / "full")


@pytest.mark.parametrize("kind", ["parquet", "csv", "perfetto"])
@pytest.mark.parametrize("is_there", [False, True])
def test_without_room_nothing_is_left_and_the_place_is_named(
    trace: Path, tmp_path: Path, kind: str, is_there: bool
) -> None:
    name = "out.csv" if kind == "csv" else "out"
    out = tmp_path / name
    if is_there and kind == "parquet":
        out.mkdir()
    with smallest_files(), pytest.raises(OSError, match="File too large") as caught:
        export(trace, kind, out)
    assert caught.value.errno == errno.EFBIG
    assert caught.value.filename == str(out)
    assert [path.name for path in tmp_path.rglob("*")] == ([name] if is_there and kind == "parquet" else [])


def test_sums_of_an_imported_log(tmp_path: Path) -> None:
    import darshan
    from ioweir.imports.run import import_log

    log = Path(darshan.__file__).parent / "tests/input/sample-goodost.darshan"
    import_log(log, tmp_path / "imported")
    made = export(tmp_path / "imported", "parquet", tmp_path / "out")
    assert (made.events, made.counts > 0) == (0, True)
    total = rows_of(f"select sum(bytes) from '{tmp_path}/out/_counts.parquet' where layer = 'POSIX' and op = 'write'")
    assert total == [(48 << 30,)]
    with pytest.raises(IoweirError, match="has no events"):
        export(tmp_path / "imported", "perfetto", tmp_path / "p")
