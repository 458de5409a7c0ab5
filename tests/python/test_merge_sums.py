"""Sums of nodes: what they say is what the events say, however the nodes were put together; damage is said."""

from __future__ import annotations

import json
import random
import resource
import shutil
import sys
from typing import TYPE_CHECKING, Any, Final

import pytest
import zstandard
from forked import completed
from ioweir.errors import IoweirError
from ioweir.report import merge_sums
from ioweir.trace import reader
from traces import Builder, Call

if TYPE_CHECKING:
    from pathlib import Path

IOWEIR: Final = [sys.executable, "-m", "ioweir"]
EXACT: Final = ("calls", "failed", "bytes", "time_s", "longest_s")


def job(seed: int, hosts: int, ranks: int, shared: bool = True) -> Builder:
    """MPI-IO calls with POSIX calls in them, and POSIX calls of the ranks; some fail."""
    dice = random.Random(seed)
    builder = Builder()
    for rank in range(ranks):
        index = builder.rank(rank, ranks, host=f"n{rank % hosts}")
        own = f"/scratch/own.{rank}"
        at = dice.uniform(0, 1)
        for _ in range(30):
            path = "/scratch/all" if shared and dice.random() < 0.5 else own
            bytes_ = dice.choice((0, 1, 100, 4096, 1 << 20))
            length = dice.uniform(1e-5, 1e-2)
            if dice.random() < 0.5:
                call = Call(index, "MPI_File_write_at", at, at + length, path, bytes_, offset=0)
                builder.add(call)
                builder.add(
                    Call(index, "pwrite", at + length / 4, at + length / 2, path, bytes_, offset=0, parent=call,
                         origin="mpi_library")
                )  # fmt: skip
            else:
                name = dice.choice(("pread", "pwrite", "fsync", "open"))
                failed = dice.random() < 0.1
                builder.add(Call(index, name, at, at + length, path, 0 if failed else bytes_, failed=failed))
            at += length + dice.uniform(0, 1e-3)
    return builder


def written(builder: Builder, place: Path) -> Path:
    """A trace directory with what is known of the run."""
    place.mkdir(mode=0o700, parents=True)
    builder.write(place)
    about = {"wall_s": 100.0, "exit_code": 0, "signal": None, "state": "ended", "program": "solver", "cwd": "/scratch"}
    (place / "run.json").write_text(json.dumps(about))
    return place


def report(place: Path) -> dict[str, Any]:
    """The JSON of a report."""
    done = completed([*IOWEIR, "report", place, "--json"], check=True)
    content: dict[str, Any] = json.loads(done.stdout)
    return content


def check_equal(of_sums: dict[str, Any], of_events: dict[str, Any]) -> None:
    """Everything that sums tell: calls, failures, bytes, times, sizes, by layer, file and rank; who was slowest."""

    def near(a: float, b: float) -> bool:
        return a == pytest.approx(b, rel=1e-9, abs=2e-9)

    for layer, ops in of_events["layers"].items():
        for op, expected in ops.items():
            found = of_sums["layers"][layer][op]
            assert all(near(found[key], expected[key]) for key in EXACT if key in expected), (layer, op)
            assert found.get("sizes") == expected.get("sizes"), (layer, op)
    by_name = {row["path"]: row for row in of_sums["files"]}
    assert by_name.keys() == {row["path"] for row in of_events["files"]}
    for row in of_events["files"]:
        for layer, ops in row["layers"].items():
            for op, expected in ops.items():
                found = by_name[row["path"]]["layers"][layer][op]
                assert all(near(found[key], expected[key]) for key in EXACT if key in expected), (
                    row["path"],
                    layer,
                    op,
                )
    assert near(of_sums["io"]["mean_s"], of_events["io"]["mean_s"])
    assert (of_sums["ranks"], sorted(of_sums["hosts"])) == (of_events["ranks"], sorted(of_events["hosts"]))


@pytest.mark.parametrize(("hosts", "ranks", "shared"), [(1, 1, True), (3, 7, True), (4, 8, False)])
def test_sums_say_what_events_say(tmp_path: Path, hosts: int, ranks: int, shared: bool) -> None:
    place = written(job(hosts, hosts, ranks, shared), tmp_path / "t")
    merged = merge_sums.merge([place], tmp_path / "sums", jobs=2)
    assert (merged.hosts, merged.ranks, merged.partial) == (hosts, ranks, ())
    assert sorted(path.name for path in (tmp_path / "sums").iterdir()) == ["all.sums.zst", "run.json"]
    check_equal(report(tmp_path / "sums"), report(place))


def test_of_a_file_of_many_ranks_the_ranks_are_added_up(tmp_path: Path) -> None:
    place = written(job(5, 2, 80), tmp_path / "t")
    merge_sums.merge([place], tmp_path / "sums")
    counted = reader.read(tmp_path / "sums").counted
    assert counted is not None
    shared = counted.files.index("/scratch/all")
    assert {row.rank for row in counted.counts if row.file == shared} == {-1}
    assert {row.rank for row in counted.counts if row.file != shared} == set(range(80))
    check_equal(report(tmp_path / "sums"), report(place))
    spent = counted.spent
    assert (counted.busiest, counted.busiest_s) == max(spent.items(), key=lambda one: one[1])


def test_nodes_one_by_one_then_together_is_all_at_once(tmp_path: Path) -> None:
    """What a job does: each node its own events, then one merge, of merges too."""
    place = written(job(6, 4, 9), tmp_path / "t")
    merge_sums.merge([place], tmp_path / "once")
    for host in range(4):
        merge_sums.merge([place], tmp_path / f"n{host}", hosts=[f"n{host}"])
    merge_sums.merge([tmp_path / "n1", tmp_path / "n3"], tmp_path / "odd")
    merge_sums.merge([tmp_path / "odd", tmp_path / "n2", tmp_path / "n0"], tmp_path / "steps")
    once, steps = report(tmp_path / "once"), report(tmp_path / "steps")
    check_equal(steps, once)
    assert not steps["partial"]


def test_a_missing_node_is_said(tmp_path: Path) -> None:
    place = written(job(7, 3, 6), tmp_path / "t")
    merge_sums.merge([place], tmp_path / "some", hosts=["n0", "n2"])
    found = report(tmp_path / "some")
    assert found["partial_reasons"] == ["2 of 6 ranks are in no sums: a node's are missing"]


def test_what_does_not_belong_together_is_refused(tmp_path: Path) -> None:
    one, other = written(job(8, 2, 4), tmp_path / "a"), written(job(9, 2, 5), tmp_path / "b")
    with pytest.raises(IoweirError, match="sums of different runs: of 4, 5 ranks"):
        merge_sums.merge([one, other], tmp_path / "x")
    with pytest.raises(IoweirError, match="rank 0 is in the sums of n0"):
        merge_sums.merge([one, one], tmp_path / "x")
    with pytest.raises(IoweirError, match="holds neither events of n7 nor sums"):
        merge_sums.merge([one], tmp_path / "x", hosts=["n7"])
    assert not (tmp_path / "x").exists()
    with pytest.raises(IoweirError, match="holds something"):
        merge_sums.merge([one], other)


def test_a_node_without_ranks_is_left_out_and_named(tmp_path: Path) -> None:
    builder = job(10, 1, 2)
    launcher = builder.process(pid=5, host="login", image=70)
    builder.add(Call(launcher, "pread", 1, 2, "/etc/config", 100))
    place = written(builder, tmp_path / "t")
    merged = merge_sums.merge([place], tmp_path / "sums")
    assert merged.without_ranks == (f"{place}/node-login.iowt",)
    check_equal(report(tmp_path / "sums"), report(place) | {"hosts": ["n0"]})


def _with(content: dict[str, Any], column: str, value: Any) -> dict[str, Any]:
    columns = dict(content["columns"])
    columns[column] = [value, *columns[column][1:]]
    return content | {"columns": columns}


def test_damaged_sums_are_refused_with_a_reason(tmp_path: Path) -> None:
    place = written(job(11, 1, 2), tmp_path / "t")
    merge_sums.merge([place], tmp_path / "sums")
    file = tmp_path / "sums" / "all.sums.zst"
    sound = file.read_bytes()
    content = json.loads(zstandard.ZstdDecompressor().decompress(sound))
    packed = zstandard.ZstdCompressor().compress
    broken = {
        "cut off": sound[:-30], "rubbish": b"rubbish", "other": packed(b"[]"), "empty": packed(b"{}"),
        "slot": packed(json.dumps(_with(content, "slot", 10**6)).encode()),
        "file": packed(json.dumps(_with(content, "file", -1)).encode()),
        "rank": packed(json.dumps(_with(content, "rank", 3)).encode()),
        "text": packed(json.dumps(_with(content, "calls", "many")).encode()),
        "sizes": packed(json.dumps(_with(content, "size_bins", 60)).encode()),
        "huge": packed(json.dumps(_with(content, "bytes", 1 << 70)).encode()),
    }  # fmt: skip
    for name, changed in broken.items():
        file.write_bytes(changed)
        with pytest.raises(IoweirError, match=r"all\.sums\.zst"):
            merge_sums.merge([tmp_path / "sums"], tmp_path / f"x {name}")
        done = completed([*IOWEIR, "report", tmp_path / "sums"])
        assert "Traceback" not in done.stderr, name
        assert "all.sums.zst" in done.stdout + done.stderr, name


def test_the_command(tmp_path: Path) -> None:
    place = written(job(12, 3, 6), tmp_path / "t")
    shutil.copytree(place, tmp_path / "packed")
    completed([*IOWEIR, "compress", tmp_path / "packed"], check=True)
    for source in (place, tmp_path / "packed"):
        out = tmp_path / f"sums of {source.name}"
        done = completed([*IOWEIR, "merge-sums", source, "-o", out, "--jobs", "2"], check=True)
        assert f"{out}: 3 nodes, 6 ranks, 7 files, " in done.stdout
        findings = completed([*IOWEIR, "findings", out, "--json"], check=True)
        assert isinstance(json.loads(findings.stdout), list)


def test_a_run_whose_time_nobody_took_lasts_from_the_first_start_to_the_last_end(tmp_path: Path) -> None:
    """As under `ioweir env`, which starts nothing itself. Sums that are older do not know it."""
    builder = Builder()
    for rank, (start_s, end_s) in enumerate([(3.0, 20.0), (2.0, 19.0), (2.5, 42.0)]):
        index = builder.rank(rank, 3, host=f"n{rank % 2}", start_s=start_s, end_s=end_s, finalized=False)
        builder.add(Call(index, "pwrite", 5, 6, "/scratch/all", 4096, offset=rank * 4096))
    trace = written(builder, tmp_path / "trace")
    (trace / "run.json").write_text(json.dumps({"state": "environment", "cwd": "/scratch", "command": []}))
    merge_sums.merge([trace], tmp_path / "merged")
    found = report(tmp_path / "merged")
    assert found["wall_s"] == pytest.approx(40.0)
    assert found["program"] == "solver"
    assert found["io"]["mean_s"] == pytest.approx(1.0)
    place = tmp_path / "merged" / "all.sums.zst"
    content = json.loads(zstandard.ZstdDecompressor().decompressobj().decompress(place.read_bytes()))
    for name in ("began_ns", "ended_ns", "program"):
        del content[name]
    place.write_bytes(zstandard.ZstdCompressor().compress(json.dumps(content).encode()))
    older = report(tmp_path / "merged")
    assert older["wall_s"] == 0
    assert older["layers"] == found["layers"]


@pytest.mark.parametrize(("began", "ended"), [(-1, 5), (7, 6), (0, 1 << 63)])
def test_times_that_cannot_be_are_damage(began: int, ended: int, tmp_path: Path) -> None:
    merge_sums.merge([written(job(5, 2, 3), tmp_path / "trace")], tmp_path / "merged")
    place = tmp_path / "merged" / "all.sums.zst"
    content = json.loads(zstandard.ZstdDecompressor().decompressobj().decompress(place.read_bytes()))
    content |= {"began_ns": began, "ended_ns": ended}
    place.write_bytes(zstandard.ZstdCompressor().compress(json.dumps(content).encode()))
    done = completed([*IOWEIR, "report", tmp_path / "merged"])
    assert f"ranks that started at {began} ns ended at {ended} ns" in done.stdout + done.stderr


def test_without_room_nothing_is_left_and_the_place_is_named(tmp_path: Path) -> None:
    trace = written(job(1, 1, 2), tmp_path / "trace")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1, before[1]))
    try:
        with pytest.raises(OSError, match="File too large") as caught:
            merge_sums.merge([trace], tmp_path / "sums")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert caught.value.filename == str(tmp_path / "sums/all.sums.zst")
    assert not (tmp_path / "sums").exists()


WITH_EVENTS: Final = {
    "timeline": [],
    "merge-trace": ["-o", "log.csv"],
    "explain": ["--plan", "plan.toml", "--trace"],
    "simulate": ["--machine", "hopper", "--trace"],
    "tune": ["--machine", "hopper", "-o", "new.toml"],
    "calibrate": ["-o", "machine.toml", "--trace"],
    "replay": [],
}


@pytest.mark.parametrize("command", WITH_EVENTS)
def test_sums_are_not_taken_for_a_run_without_calls(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    merge_sums.merge([written(job(1, 1, 2), tmp_path / "trace")], tmp_path / "sums")
    (tmp_path / "plan.toml").write_text('[[file]]\nmatch = "*"\nwriters = "everyone"\n')
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    done = completed([*IOWEIR, command, *WITH_EVENTS[command], "sums"])
    message = f"ioweir: sums holds sums of calls and no events; {command} needs a trace of `ioweir run`\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", message)
    assert sorted(tmp_path.iterdir()) == before
