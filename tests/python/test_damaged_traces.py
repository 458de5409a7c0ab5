"""Traces that are cut off, damaged or full of rubbish: read up to the damage, said to be so, and never an exception."""

from __future__ import annotations

import io
import json
import random
from pathlib import Path

import pytest
from ioweir import merge, report, report_text, trace
from ioweir.errors import IoweirError
from ioweir.trace import NODE_FILES
from traces import Builder, Call

ALIGNMENT = 65536


def job(calls: int = 9000) -> Builder:
    """Two ranks whose events fill several chunks each."""
    builder = Builder()
    for rank in range(2):
        builder.rank(rank, 2)
    rng = random.Random(1)
    for number in range(calls):
        outer = Call(number % 2, "MPI_File_write_at", number, number + 0.75, f"/d/{number % 7}", rng.getrandbits(40))
        builder.add(outer, outer.inside("pwrite", number, number + 0.5, rng.getrandbits(40)))
    return builder


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("whole")
    job().write(folder)
    content = (folder / "node-node.iowt").read_bytes()
    assert len(content) > 5 * ALIGNMENT
    return content


def use(folder: Path, content: bytes) -> report.Report:
    """Everything that reads traces, on this content."""
    (folder / "node-node.iowt").write_bytes(content)
    loaded = trace.read(folder)
    result = report.build(loaded)
    report_text.write(result, io.StringIO())
    json.dumps(result)
    merged = merge.merge(folder)
    assert merged.events == loaded.event_count == len(loaded.events) == result["events"]
    assert sum(len(batch) for batch in loaded.batches(1000)) == loaded.event_count
    return result


def test_cut_off_anywhere(tmp_path: Path, whole: bytes) -> None:
    events = use(tmp_path, whole)["events"]
    assert events == 18000
    rng = random.Random(2)
    for size in sorted(rng.sample(range(ALIGNMENT, len(whole)), 12)):
        result = use(tmp_path, whole[:size])
        assert result["events"] < events or size > len(whole) - ALIGNMENT
        assert result["partial"], size
        assert any(
            "cut off" in reason or "never" in reason or "left no" in reason for reason in result["partial_reasons"]
        )


def test_every_chunk_but_the_damaged_one_is_read(tmp_path: Path, whole: bytes) -> None:
    chunks = range(ALIGNMENT, len(whole), ALIGNMENT)
    for at in chunks:
        broken = bytearray(whole)
        broken[at + 5000 : at + 5100] = b"\xff" * 100
        result = use(tmp_path, bytes(broken))
        # A chunk holds about a fifth of the events; those before the damage are kept.
        assert result["events"] > 18000 * (1 - 1.5 / len(chunks))
        for line in result["damage"]:
            assert "is no record; the rest of its chunk is left out" in line or "not described" in line


def test_rubbish(tmp_path: Path, whole: bytes) -> None:
    rng = random.Random(3)
    for _ in range(25):
        broken = bytearray(whole)
        for _ in range(rng.choice([1, 10, 300])):
            # The header's mark and version are left alone: without them it is no trace file.
            broken[rng.randrange(12, len(broken))] = rng.randrange(256)
        try:
            use(tmp_path, bytes(broken))
        except IoweirError as error:
            pytest.fail(f"not read at all: {error}")


def test_a_file_of_rubbish_does_not_make_a_report_of_its_own(tmp_path: Path, whole: bytes) -> None:
    result = use(tmp_path, whole[:ALIGNMENT] + b"\x55" * (500 * ALIGNMENT))
    assert len(result["damage"]) == 21
    assert "and 480 more places" in result["damage"][-1]


def test_a_node_that_is_no_trace_file_is_left_out(tmp_path: Path) -> None:
    job(10).write(tmp_path)
    (tmp_path / "node-other.iowt").write_bytes(b"no trace at all" * 100)
    loaded = trace.read(tmp_path)
    assert loaded.event_count == 20
    assert len(list(tmp_path.glob(NODE_FILES))) == 2
    (said,) = loaded.damage
    assert said.count("node-other.iowt") == 1


def test_a_damaged_file_is_not_said_to_be_none(tmp_path: Path) -> None:
    (tmp_path / "node-other.iowt").write_bytes(b"no trace at all" * 100)
    result = report.build(trace.read(tmp_path))
    (reason,) = result["partial_reasons"]
    assert "not a trace file" in reason
    assert "exit code unknown" in report_text.headline(result)[0]


def test_an_empty_directory_is_an_error_that_says_what_to_give(tmp_path: Path) -> None:
    with pytest.raises(IoweirError, match=r"is no trace.*Give the directory that `ioweir run` wrote"):
        trace.read(tmp_path)
    with pytest.raises(IoweirError, match="does not exist"):
        trace.read(tmp_path / "nowhere")
