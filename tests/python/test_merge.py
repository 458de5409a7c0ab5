"""The master log: every event once, by time, the same in every format and every time."""

from __future__ import annotations

import csv
import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from ioweir import trace
from ioweir.cli import app
from ioweir.errors import IoweirError
from ioweir.trace import merge
from pyarrow import parquet
from traces import EPOCH_NS, NS, Builder, Call


def job(seed: int) -> Builder:
    """Three ranks on two nodes and a shell around them; threads whose calls overlap in time."""
    rng = random.Random(seed)
    builder = Builder()
    builder.process(executable="/bin/sh")
    for rank in range(3):
        builder.rank(rank, 3, host="a" if rank < 2 else "b")
    for thread in range(6):
        process, clock = thread % 4, 0.0
        for _ in range(rng.randrange(1, 60)):
            clock += rng.randrange(4) / 8
            path = rng.choice(["/data/x", "ufs:/data/./x", "/data/y, z"])
            outer = Call(process, "MPI_File_write_at", clock, clock, path, rng.randrange(99), thread=thread)
            inner = outer.inside("pread", clock, clock + rng.randrange(3) / 8, rng.randrange(99))
            outer.end_s = clock = inner.end_s + rng.randrange(2) / 8
            builder.add(outer, inner)
    builder.add(Call(1, "pwrite", 60, 61, "/data/x", failed=True, thread=20))
    return builder


def rows(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = parquet.read_table(path).to_pylist()
    return found


@pytest.mark.parametrize("seed", range(5))
def test_every_call_once_and_by_time(tmp_path: Path, seed: int) -> None:
    builder = job(seed)
    builder.write(tmp_path, shuffle=seed)
    merged = merge.merge(tmp_path)
    log = rows(merged.log)
    assert (merged.events, merged.damage, merged.epoch_ns) == (len(log), (), EPOCH_NS)
    assert [row["start_ns"] for row in log] == sorted(row["start_ns"] for row in log)
    names = {row["file"]: row["path"] for row in rows(merged.files)}
    ranks = [process.rank for process in builder.processes]

    def key(row: dict[str, Any]) -> tuple[Any, ...]:
        return (row["rank"], row["host"], row["pid"], row["seq"], row["parent"], row["function"], row["start_ns"],
                row["duration_ns"], names[row["file"]], row["bytes"], row["failed"], row["error"])  # fmt: skip

    expected = [
        (ranks[c.process], builder.processes[c.process].host, builder.processes[c.process].pid, c.seq,
         c.parent.seq if c.parent else 0, c.name, round(c.start_s * NS), round((c.end_s - c.start_s) * NS),
         c.path.replace("ufs:/data/./x", "/data/x"), c.bytes, c.failed, 5 if c.failed else 0)
        for c in builder.calls
    ]  # fmt: skip
    assert sorted(map(key, log)) == sorted(expected)
    assert {row["layer"] for row in log} == {"MPI-IO", "POSIX"}
    assert {(row["function"], row["op"]) for row in log} >= {("pread", "read"), ("MPI_File_write_at", "write")}
    # In a thread the order is that of entry: a call stands before those that it makes.
    for thread in {row["thread"] for row in log}:
        sequence = [row["seq"] for row in log if row["thread"] == thread]
        assert sequence == sorted(sequence)


def test_the_file_table_adds_up(tmp_path: Path) -> None:
    builder = job(1)
    builder.write(tmp_path)
    merged = merge.merge(tmp_path)
    files = {row["path"]: row for row in rows(merged.files)}
    assert set(files) == {"/data/x", "/data/y, z"}
    for path, row in files.items():
        calls = [c for c in builder.calls if c.path.replace("ufs:/data/./x", "/data/x") == path]
        assert row["events"] == len(calls)
        assert row["bytes_write"] == sum(c.bytes for c in calls if c.name == "MPI_File_write_at")
        assert row["bytes_read"] == sum(c.bytes for c in calls if c.name == "pread")
        assert row["first_ns"] == min(round(c.start_s * NS) for c in calls)
        assert row["last_ns"] == max(round(c.end_s * NS) for c in calls)
        assert row["mpi_runtime"] is False


def test_all_formats_hold_the_same_and_the_same_every_time(tmp_path: Path) -> None:
    builder = job(2)
    builder.write(tmp_path)
    log = parquet.read_table(merge.merge(tmp_path).log)
    assert log.schema.metadata[b"ioweir.epoch_ns"] == str(EPOCH_NS).encode()
    arrow = merge.merge(tmp_path, tmp_path / "log.arrow").log
    assert pa.ipc.open_file(str(arrow)).read_all().to_pylist() == log.to_pylist()
    words = [{name: str(value).lower() for name, value in row.items()} for row in log.to_pylist()]
    for name in ("log.csv", "log.csv.gz", "log.csv.zst"):
        path = merge.merge(tmp_path, tmp_path / name).log
        with pa.input_stream(str(path), compression="detect") as stream:
            text = stream.read().decode()
        assert [{n: v.lower() for n, v in row.items()} for row in csv.DictReader(text.splitlines())] == words
        again = path.read_bytes()
        assert merge.merge(tmp_path, tmp_path / name).log.read_bytes() == again
    assert (tmp_path / "log-files.csv.gz").is_file()


def test_more_events_than_a_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    builder = job(3)
    builder.write(tmp_path)
    whole = rows(merge.merge(tmp_path).log)
    monkeypatch.setattr(merge, "BATCH_EVENTS", 7)
    assert rows(merge.merge(tmp_path).log) == whole
    batches = list(trace.read(tmp_path).batches(7))
    assert [len(batch) for batch in batches[:-1]] == [7] * (len(batches) - 1)


def test_more_nodes_than_fit_sixteen_bits(tmp_path: Path) -> None:
    job(0).write(tmp_path)
    loaded = trace.read(tmp_path)
    many = replace(loaded, hosts=(*(f"n{number}" for number in range(40_000)), *loaded.hosts))
    names = next(merge.Merger(many).tables()).column("host").to_pylist()
    assert names == next(merge.Merger(loaded).tables()).column("host").to_pylist()


def test_a_trace_without_events(tmp_path: Path) -> None:
    builder = Builder()
    builder.rank(0, 1)
    builder.write(tmp_path)
    merged = merge.merge(tmp_path)
    assert (rows(merged.log), rows(merged.files)) == ([], [])
    assert merged.events == 0


def test_a_name_without_a_known_end_is_refused(tmp_path: Path) -> None:
    job(0).write(tmp_path)
    for name in ("log.txt", "log", ".csv"):
        with pytest.raises(IoweirError, match=r"\.parquet, \.arrow, \.csv"):
            merge.merge(tmp_path, tmp_path / name)


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    job(0).write(tmp_path)
    with pytest.raises(IoweirError, match=r"nowhere/log.csv' cannot be written: No such file or directory"):
        merge.merge(tmp_path, tmp_path / "nowhere" / "log.csv")


def test_what_fails_leaves_nothing_and_keeps_the_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job(0).write(tmp_path)
    log = merge.merge(tmp_path).log
    old, listing = log.read_bytes(), sorted(tmp_path.iterdir())

    def broken(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(merge.Merger, "_add", broken)
    with pytest.raises(OSError, match="No space"):
        merge.merge(tmp_path)
    assert log.read_bytes() == old
    assert sorted(tmp_path.iterdir()) == listing


def test_the_command_says_what_it_wrote(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    builder = job(0)
    builder.write(tmp_path)
    monkeypatch.setattr("sys.argv", ["ioweir", "merge-trace", str(tmp_path), "--json"])
    with pytest.raises(SystemExit) as ended:
        app.main()
    assert ended.value.code == 0
    said = json.loads(capsys.readouterr().out)
    assert said["events"] == len(builder.calls)
    assert said["file_count"] == 2
    assert Path(said["log"]).is_file()
    # Damage is read up to, and said.
    node = tmp_path / "node-a.iowt"
    node.write_bytes(node.read_bytes()[:-65536])
    monkeypatch.setattr("sys.argv", ["ioweir", "merge-trace", str(tmp_path)])
    with pytest.raises(SystemExit):
        app.main()
    assert "events by time" in capsys.readouterr().out
