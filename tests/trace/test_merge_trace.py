"""The master log of a real run: every event of every rank once, in order of time, calls inside of their parents."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from pyarrow import parquet
from tracing import IOWEIR, Mpi, build, ioweir_run, run


def test_master_log_of_a_run(mpi: Mpi, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    traced = ioweir_run(tmp_path / "trace", mpi.launch(3, build("known.c", mpi.cc), data))
    said = json.loads(run([*IOWEIR, "merge-trace", traced.directory, "--json"]).expect().out)
    log = parquet.read_table(said["log"]).to_pylist()
    paths = {row["file"]: row["path"] for row in parquet.read_table(said["files"]).to_pylist()}
    assert said["events"] == len(log) == traced.report["events"]
    starts = [row["start_ns"] for row in log]
    assert starts == sorted(starts)
    recorded = Counter((event.rank, event.name, event.bytes) for event in traced.trace.under(data))
    found = Counter(
        (row["rank"], row["function"], row["bytes"]) for row in log if paths[row["file"]].startswith(f"{data}/")
    )
    assert found == recorded
    calls = {(row["thread"], row["seq"]): row for row in log}
    inside = [row for row in log if row["parent"]]
    assert inside
    for row in inside:
        parent = calls[row["thread"], row["parent"]]
        assert parent["start_ns"] <= row["start_ns"]
        assert row["start_ns"] + row["duration_ns"] <= parent["start_ns"] + parent["duration_ns"]
        assert parent["rank"] == row["rank"]
    again = run([*IOWEIR, "merge-trace", traced.directory, "-o", tmp_path / "again.parquet"]).expect()
    assert "events by time" in again.out
    assert (tmp_path / "again.parquet").read_bytes() == Path(said["log"]).read_bytes()
