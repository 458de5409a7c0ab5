"""Traces that are cut off, damaged or full of rubbish: read up to the damage, said to be so, and never an exception."""

from __future__ import annotations

import io
import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from forked import completed
from ioweir import report, trace
from ioweir.errors import IoweirError
from ioweir.report import report_text
from ioweir.trace import NODE_FILES, merge
from traces import Builder, Call, printed

ALIGNMENT = 65536
IOWEIR = Path(sys.executable).with_name("ioweir")


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


def use(folder: Path, content: bytes) -> dict[str, Any]:
    """Everything that reads traces, on this content."""
    (folder / "node-node.iowt").write_bytes(content)
    loaded = trace.read(folder)
    report_text.write(report.build(loaded), io.StringIO())
    result = printed(loaded)
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


def test_cut_off_in_its_head(tmp_path: Path, whole: bytes) -> None:
    result = use(tmp_path, whole[: ALIGNMENT - 1])
    assert result["partial_reasons"][0].endswith("node-node.iowt: is cut off after 65,535 bytes, before the first call")
    told = io.StringIO()
    report_text.write(report.build(trace.read(tmp_path)), told)
    assert "made no call that is traced" not in told.getvalue()


def test_every_chunk_but_the_damaged_one_is_read(tmp_path: Path, whole: bytes) -> None:
    chunks = range(ALIGNMENT, len(whole), ALIGNMENT)
    for at in chunks:
        broken = bytearray(whole)
        broken[at + 100 : at + 200] = b"\xff" * 100
        result = use(tmp_path, bytes(broken))
        # A chunk holds about a fifth of the events; without a process's first one nothing of it has a name.
        nameless = sum("is not described" in line for line in result["damage"])
        assert result["events"] > 18000 * (1 - 1.5 / len(chunks)) - 9000 * nameless
        assert nameless <= 1
        assert result["left_out"] == {"chunks": 1, "records": 0}
        assert report_text.headline(report.build(trace.read(tmp_path)))[1].startswith(
            "DAMAGED TRACE: left out: 1 chunk whose checksum does not match"
        )
        assert any(f"byte {at} begins a chunk whose checksum does not match" in line for line in result["damage"])


def test_rubbish(tmp_path: Path, whole: bytes) -> None:
    rng = random.Random(3)
    for _ in range(25):
        broken = bytearray(whole)
        for _ in range(rng.choice([1, 10, 300])):
            # The header's constant fields are left alone: a file in which they are damaged is an error.
            broken[rng.randrange(ALIGNMENT, len(broken))] = rng.randrange(256)
        try:
            use(tmp_path, bytes(broken))
        except IoweirError as error:
            pytest.fail(f"not read at all: {error}")


@pytest.mark.parametrize("seed", range(3))
def test_thirty_bytes_flipped_give_no_figure_beyond_the_run(tmp_path: Path, whole: bytes, seed: int) -> None:
    rng = random.Random(seed)
    broken = bytearray(whole)
    for at in rng.sample(range(ALIGNMENT, len(whole)), 30):
        broken[at] ^= 1 << rng.randrange(8)
    clean = use(tmp_path, whole)
    result = use(tmp_path, bytes(broken))
    assert 0 <= result["wall_s"] <= clean["wall_s"] * 1.001
    assert result["io"]["max_s"] <= clean["wall_s"] * 1.001
    for layer in result["layers"].values():
        for row in layer.values():
            assert 0 <= row.get("bytes", 0) <= 18000 << 40
    assert result["partial"]
    assert result["left_out"]["chunks"] or not result["events"]


def test_compare_wants_force_for_damaged_traces(tmp_path: Path) -> None:
    good, bad = tmp_path / "good", tmp_path / "bad"
    for folder in (good, bad):
        folder.mkdir()
        job(10).write(folder)
    content = bytearray((bad / "node-node.iowt").read_bytes())
    content[ALIGNMENT + 200] ^= 1
    (bad / "node-node.iowt").write_bytes(content)
    refused = ioweir("compare", good, bad)
    assert refused.returncode == 3, refused.stdout + refused.stderr
    assert ioweir("compare", "--force", good, bad).returncode != 3
    for command in (("report",), ("timeline",), ("merge-trace",)):
        done = ioweir(*command, bad)
        assert "checksum does not match" in done.stdout, command
        said = json.loads(ioweir(*command, "--json", bad).stdout)
        assert any("checksum does not match" in line for line in said["damage"])


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


NO_TRACES = {
    "no trace": b"no trace at all" * 100,
    "empty": b"",
    "cut within the header": b"IOWEIRT1\x01\0\0\0",
    "of a newer version": b"IOWEIRT1" + (1 << 20).to_bytes(4, "little") + bytes(ALIGNMENT - 12),
}


def ioweir(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return completed([IOWEIR, *words], timeout=120)


def test_a_copy_of_a_nodes_file_counts_once(tmp_path: Path, whole: bytes) -> None:
    """It had doubled every figure without a word."""
    (tmp_path / "node-a.iowt").write_bytes(whole)
    once = trace.read(tmp_path)
    (tmp_path / "node-b.iowt").write_bytes(whole)
    (tmp_path / "run.json").write_text("{}")
    twice = trace.read(tmp_path)
    assert (twice.event_count, len(twice.processes)) == (once.event_count, len(once.processes))
    (said,) = twice.damage
    assert said == f"{tmp_path}/node-b.iowt: is a copy of {tmp_path}/node-a.iowt, and left out; move one of both away"


@pytest.mark.parametrize("content", NO_TRACES.values(), ids=NO_TRACES)
def test_what_cannot_be_read_is_an_error(tmp_path: Path, content: bytes) -> None:
    """And not "No file I/O was seen", with exit code 0."""
    good, bad = tmp_path / "good", tmp_path / "bad"
    for folder in (good, bad):
        folder.mkdir()
    job(10).write(good)
    (bad / "node-other.iowt").write_bytes(content)
    with pytest.raises(IoweirError, match=r"the trace cannot be read: .*node-other\.iowt"):
        trace.read(bad)
    for command in (
        ("report", bad), ("report", "--json", bad), ("timeline", bad), ("merge-trace", bad), ("compare", good, bad),
        ("compare", "--force", bad, good),
    ):  # fmt: skip
        done = ioweir(*command)
        assert done.returncode == 1, command
        assert "the trace cannot be read" in done.stderr
        assert done.stdout == ""


def test_nodes_that_are_missing_are_said_and_fail(tmp_path: Path) -> None:
    job(10).write(tmp_path)
    (tmp_path / "run.json").write_text(json.dumps({"state": "ended", "nodes": ["node-node.iowt", "node-gone.iowt"]}))
    export = ("export", "--format", "csv", "-o", tmp_path / "events.csv")
    for command in (("report",), ("report", "--json"), ("timeline",), ("merge-trace",), export):
        done = ioweir(*command, tmp_path)
        assert done.returncode == 1, command
        assert "node-gone.iowt: is missing" in done.stderr
        assert done.stdout
    loaded = trace.read(tmp_path)
    assert len(loaded.unreadable) == 1
    assert "node-gone.iowt: is missing" in loaded.unreadable[0]
    result = printed(loaded)
    assert result["partial"]
    assert result["unreadable"] == list(loaded.unreadable)
    (tmp_path / "node-node.iowt").unlink()
    with pytest.raises(
        IoweirError, match=r"cannot be read: .*node-node\.iowt: is missing.*node-gone\.iowt: is missing"
    ):
        trace.read(tmp_path)


@pytest.mark.parametrize(("host", "later_s", "said"), [
    ("node", 86400.0, True), ("node", -86400.0, True), ("node", 0.0, False), ("node", 1.0, False),
    ("elsewhere", 86400.0, False),
])  # fmt: skip
def test_the_run_of_another_trace_is_said(tmp_path: Path, host: str, later_s: float, said: bool) -> None:
    job(10).write(tmp_path)
    began = trace.read(tmp_path).epoch_ns / 1e9 + later_s
    (tmp_path / "run.json").write_text(json.dumps({"host": host, "started": began, "ended": began + 100}))
    damage = trace.read(tmp_path).damage
    assert any("run.json: is of another run" in line for line in damage) == said, damage


def test_what_could_not_be_read_is_not_said_to_be_nothing(tmp_path: Path) -> None:
    job(10).write(tmp_path)
    whole = (tmp_path / "node-node.iowt").read_bytes()
    (tmp_path / "node-node.iowt").write_bytes(whole[:ALIGNMENT] + b"\x55" * ALIGNMENT)
    lines = report_text.headline(report.build(trace.read(tmp_path)))
    assert lines[1] == "No file I/O was seen in what was recorded and could be read."


def test_an_empty_directory_is_an_error_that_says_what_to_give(tmp_path: Path) -> None:
    with pytest.raises(IoweirError, match=r"is no trace.*Give the directory that `ioweir run` wrote"):
        trace.read(tmp_path)
    with pytest.raises(IoweirError, match="does not exist"):
        trace.read(tmp_path / "nowhere")
