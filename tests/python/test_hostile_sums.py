"""Sums of logs and nodes that no tool of ours has written: what cannot be is said, figures stay within the run."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
import zstandard
from ioweir.errors import IoweirError
from ioweir.html import page
from ioweir.report import build
from ioweir.report.run_findings import findings_of
from ioweir.trace import counted, merge, node_sums, reader

ROW: dict[str, Any] = {
    "layer": "POSIX", "op": "write", "file": 0, "rank": 0, "calls": 10, "failed": 0, "bytes": 1 << 24, "time_s": 1.0,
    "longest_s": 1.0, "first_s": 0.0, "last_s": 1.0, "outermost": True, "sizes": [],
}  # fmt: skip
SUMS: dict[str, Any] = {
    "sums_version": 1, "tool": "a tool", "log": "a log", "ranks": 4, "files": ["/a"], "busiest_s": 0.0, "busiest": -1,
    "layers": ["POSIX", "MPI-IO"], "unseen": [], "partial": [], "counts": [ROW], "tables": {}, "targets": [],
    "heatmaps": [],
}  # fmt: skip


def table(names: list[str], *rows: list[Any]) -> dict[str, Any]:
    return {"POSIX": {"names": names, "rows": list(rows)}}


@pytest.mark.parametrize(
    "change",
    [
        {"counts": [ROW | {"file": 1}]},
        {"counts": [ROW | {"rank": 1 << 40}]},
        {"counts": [ROW | {"rank": -2}]},
        {"busiest": 1 << 40},
        {"files": []},
        {"targets": [{"file": 1, "stripe_bytes": 1, "targets": [0]}]},
        {"targets": [{"file": 0, "stripe_bytes": 1, "targets": [1 << 80]}]},
        {"tables": table(["a"], [0, 0])},
        {"tables": table(["a"], [0, 0, "many"])},
        {"tables": table(["a"], [0, 0, 10**400])},
        {"tables": table(["a"], [1, 0, 1])},
        {"heatmaps": [3]},
    ],
)
def test_what_cannot_be_is_refused(change: dict[str, Any]) -> None:
    assert counted.from_json(SUMS).files == ("/a",)
    with pytest.raises(ValueError, match=r"."):
        counted.from_json(SUMS | change)


def trace(place: Path, wall_s: float = 2.0, **change: Any) -> reader.Trace:
    place.mkdir(mode=0o700, exist_ok=True)
    (place / "sums.json").write_text(json.dumps(SUMS | change))
    (place / "run.json").write_text(json.dumps({"wall_s": wall_s}))
    return reader.load(place)


EVERY = ("POSIX_READS", "POSIX_WRITES", "POSIX_SEQ_READS", "POSIX_SEQ_WRITES", "POSIX_BYTES_READ",
         "POSIX_BYTES_WRITTEN", "POSIX_FILE_NOT_ALIGNED", "POSIX_FILE_ALIGNMENT")  # fmt: skip


@pytest.mark.parametrize(
    "change",
    [
        {"counts": [ROW | {"time_s": 50.0}]},
        {"counts": [ROW | {"time_s": 50.0}, *({**ROW, "rank": rank, "bytes": 1} for rank in (1, 2, 3))]},
        {"counts": [ROW | {"calls": 0, "bytes": 9, "sizes": [[0, 1000]]}]},
        {"tables": table(["another"], [0, 0, 1])},
        {"tables": table([*EVERY], [0, 0, 0, 900, 0, 1, 0, 900, 900, 4096]), "counts": [ROW | {"calls": 0}]},
        {"tables": {"MPI-IO": {
            "names": ["MPIIO_INDEP_WRITES", "MPIIO_COLL_WRITES", "MPIIO_INDEP_READS", "MPIIO_COLL_READS"],
            "rows": [[0, -1, 9, 0, 9, 0]],
        }}, "counts": [ROW | {"layer": "MPI-IO", "rank": -1, "calls": 0, "bytes": 5}]},
    ],
)  # fmt: skip
def test_findings_cost_no_more_than_the_run(tmp_path: Path, change: dict[str, Any]) -> None:
    loaded = trace(tmp_path, **change)
    assert not loaded.damage
    for one in findings_of(loaded, build(loaded)).findings:
        assert 0 < one.seconds <= 2.0
        assert 0 <= one.gain.low <= one.gain.high <= 2.0
        assert one.evidence[0].figure <= 100


def test_names_with_halves_of_characters_can_be_written(tmp_path: Path) -> None:
    """JSON may hold them, and neither UTF-8 nor Arrow can."""
    place = tmp_path / "trace"
    loaded = trace(place, files=["/data/\ud800"])
    assert loaded.counted is not None
    assert loaded.counted.files == ("/data/\ufffd",)
    (place / "run.json").write_text(json.dumps({"wall_s": 2.0, "cwd": "/\udcff", "command": ["\ud800"]}))
    loaded = reader.load(place)
    assert loaded.run["cwd"] == "/\\xff"
    report = build(loaded)
    page.write(tmp_path / "page.html", loaded, report, findings_of(loaded, report))
    with pytest.raises(IoweirError, match="trace holds sums of calls and no events"):
        merge.merge(place)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"[" * 100_000, "nested too deeply"),
        (b"[" + b"[]," * (16 << 20) + b"[]]", "holds more than"),
        (b'{"node_sums_version": 1}', "is no sums file"),
        (b"\xff", "codec can't decode"),
    ],
)
def test_sums_of_nodes_that_were_made_to_do_harm_are_damage(tmp_path: Path, content: bytes, said: str) -> None:
    """Example: fifty million empty lists in 5 KB take 3 GB as objects."""
    (tmp_path / f"node-a{node_sums.SUFFIX}").write_bytes(zstandard.compress(content))
    (tmp_path / "run.json").write_text("{}")
    del content
    tracemalloc.start()
    try:
        damage = reader.load(tmp_path).damage
        assert tracemalloc.get_traced_memory()[1] < 200 << 20
    finally:
        tracemalloc.stop()
    assert said in damage[0]
