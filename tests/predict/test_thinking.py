"""What a program computes between its writes, from traces built by hand; and plans that write behind it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from ioweir.base import toml_text
from ioweir.base.compiled import compiled
from ioweir.loop import measure
from ioweir.predict import candidates, kinds, thinking, tune, workload
from ioweir.predict import machine as machines
from traces import Builder, Call

if TYPE_CHECKING:
    from pathlib import Path

PATH = "/data/dump.dat"
WRITE_ONLY, READ_WRITE = 5, 9
"""MPI_MODE_CREATE with MPI_MODE_WRONLY, and with MPI_MODE_RDWR."""
MIB = 1 << 20


def of_one(*calls: tuple[str, float, float], mode: int = WRITE_ONLY, rank_1: tuple[float, ...] = ()) -> Builder:
    """Rank 0 opens the file, makes calls (name, from, to), closes it at 20 s; rank 1 writes for 1 s at these times."""
    builder = Builder()
    builder.rank(0, 2)
    builder.rank(1, 2)
    for rank, mine in enumerate((calls, tuple(("MPI_File_write_at", at, at + 1) for at in rank_1))):
        if not mine:
            continue
        builder.add(Call(rank, "MPI_File_open", 0.0, 0.5, PATH, offset=mode))
        for name, start, end in mine:
            builder.add(Call(rank, name, start, end, PATH, bytes=8 * MIB if "write" in name else 0))
        builder.add(Call(rank, "MPI_File_close", 20.0, 20.5, PATH))
    return builder


def thought(builder: Builder) -> thinking.Thinking:
    trace = builder.trace()
    return thinking.of_file(trace, trace.requests(), PATH)


def test_pauses_reach_to_the_next_write_or_to_the_close() -> None:
    found = thought(of_one(("MPI_File_write_at_all", 1, 3), ("MPI_File_write_at_all", 6, 8)))
    assert found == thinking.Thinking((3.0, 12.0), 4.0, 8 * MIB)


def test_of_the_ranks_the_one_with_the_shortest_pause_counts() -> None:
    found = thought(of_one(("MPI_File_write_at", 1, 3), ("MPI_File_write_at", 6, 8), rank_1=(1.0, 4.0, 18.5)))
    assert found.computing == pytest.approx((2.0, 12.0, 0.5))
    assert found.writing_s == pytest.approx(4.0)


def test_what_waits_for_nothing_is_a_pause_but_for_its_own_time() -> None:
    found = thought(of_one(("MPI_File_write_at", 1, 3), ("MPI_File_set_view", 4, 5), ("MPI_File_write_at", 6, 8)))
    assert found.computing == pytest.approx((2.0, 12.0))
    assert not found.why_not


@pytest.mark.parametrize(
    ("builder", "why"),
    [
        (of_one(("MPI_File_write_at", 1, 3), mode=READ_WRITE), "open for reading, too"),
        (of_one(("MPI_File_write_at", 1, 3), mode=-1), "does not say how the file was opened"),
        (
            of_one(("MPI_File_write_at", 1, 3), ("MPI_File_sync", 4, 5), ("MPI_File_write_at", 6, 8)),
            "calls MPI_File_sync, which waits",
        ),
        (of_one(("MPI_File_write_at", 1, 3), ("stat", 4, 5), ("MPI_File_write_at", 6, 8)), "calls stat, which waits"),
        (of_one(("MPI_File_write_at", 1, 19.99)), "computes next to nothing"),
        (of_one(("MPI_File_read_at", 1, 3)), "nothing is written"),
    ],
)
def test_why_a_file_is_not_written_behind(builder: Builder, why: str) -> None:
    assert why in thought(builder).why_not


def test_a_sync_before_the_close_ends_the_last_pause() -> None:
    found = thought(of_one(("MPI_File_write_at", 1, 3), ("MPI_File_sync", 7, 9)))
    assert (found.computing, found.why_not) == ((4.0,), "")


@pytest.mark.parametrize(
    ("largest", "ranks", "keys"),
    [
        (8 * MIB, 1, [{"writers": "behind:1"}]),
        (20 * MIB, 1, [{"writers": "behind:1"}, {"writers": "behind:1", "buffer": "41 MiB"}]),
        (40 * MIB, 1, [{"writers": "behind:1", "buffer": "41 MiB"}, {"writers": "behind:1", "buffer": "81 MiB"}]),
        (8 * MIB, 4, [{"writers": "behind:1"}, {"writers": "behind:2"}]),
    ],
)
def test_the_memory_takes_a_call_of_each_rank_or_two(largest: int, ranks: int, keys: list[dict[str, str]]) -> None:
    found = list(candidates.behind(largest, ranks))
    assert [one.keys for one in found] == keys
    assert all(one.behind and one.same_form and one.replayed for one in found)
    for one in found:
        compiled().check_plan(one.text("*"), "plan.toml")
    assert "128 MiB on a node" in next(candidates.behind(8 * MIB, 4)).remark


def checkpoints(folder: Path) -> Path:
    """Two ranks write 8 MiB each, five times, and compute for 3 s behind each."""
    builder = Builder()
    for rank in (builder.rank(rank, 2) for rank in range(2)):
        builder.add(Call(rank, "MPI_File_open", 0.0, 0.5, PATH, offset=WRITE_ONLY))
        for at in range(5):
            span = (1 + 4 * at, 2 + 4 * at)
            write = Call(rank, "MPI_File_write_at_all", *span, PATH, 8 * MIB)
            builder.add(write, write.inside("pwrite", *span, 8 * MIB, offset=(2 * at + rank) * 8 * MIB))
        builder.add(Call(rank, "MPI_File_close", 21.0, 21.5, PATH))
    return builder.save(folder, "solver")


def test_a_checkpoint_loop_gets_a_plan_that_writes_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One target of 20 MB/s: a call takes 0.8 s, and other writers cannot make that less."""
    asked = [[[((2 * at + rank) * 8 * MIB, 8 * MIB)] for rank in range(2)] for at in range(5)]
    recorded = workload.Recorded("dump.dat", PATH, 2, False, asked, [], 0.0)
    monkeypatch.setattr(workload, "of_file", lambda *_: recorded)
    machine = tmp_path / "machine.toml"
    machine.write_text("[node]\nranks = 2\n[targets]\ncount = 1\nwrite_bytes_per_s = 2e7\n")
    options = tune.Options(tmp_path / "plan.toml", str(machine), checkpoints(tmp_path / "trace"), repeat=2)
    found = tune.simulated(options)
    result = tune.tune(options)
    (rule,) = toml_text.loads(result["plan"])["file"]
    assert rule["writers"].startswith("behind:")
    assert result["predicted"]["ratio_low"] > 1.5
    row = next(row for row in result["tried"] if row["strategy"].startswith("behind:1"))
    # 4.2 s without. The computing behind the last write hides that, too.
    beside_s = found.parts[0].beside_s
    assert result["before"]["seconds"] - beside_s == pytest.approx(5 * 16 * MIB / 2e7, rel=0.2)
    assert row["seconds"] - beside_s < 1
    assert any("15.00 s that the program computes" in reason for reason in result["reasons"])
    assert any("64.00 MiB on a node" in reason for reason in result["reasons"])
    said = [row["reason"] for row in result["estimated"] if row["keys"] == {"writers": "behind:1"}]
    assert set(said) <= {"it was simulated with the others, and is taken where it is best"}
    # Replays keep the computing where a plan writes meanwhile.
    assert any(map(measure._writes_behind, measure.contenders(found, 2)))


def test_ranks_that_have_all_processors_are_a_doubt() -> None:
    trace = of_one(("MPI_File_write_at", 1, 3), rank_1=(1.0,)).trace(run={"host": "node", "processors": 2})
    assert tune._has_no_spare_processor(trace)
    for run in ({"host": "node", "processors": 3}, {"host": "other", "processors": 2}, {"processors": None}):
        other = of_one(("MPI_File_write_at", 1, 3), rank_1=(1.0,)).trace(run=run)
        assert not tune._has_no_spare_processor(other)


def test_without_computing_nothing_is_simulated_with_it() -> None:
    builder = of_one(("MPI_File_write_at", 1, 3), mode=READ_WRITE)
    trace = builder.trace()
    program = workload.Recorded("x", PATH, 2, True, [[[(0, 8 * MIB)], []]], [], 0.0)
    kind = kinds.Kind("dump.dat", PATH, 1, 1.0, 1.0)
    asked, why, reasons = tune._with_own(trace, trace.requests(), kind, program, machines.read("gigabit12"))
    assert asked.program is program
    assert list(asked.own) == []
    assert "open for reading" in why
    assert reasons == []


def test_what_is_missing_of_a_trace_is_said_beside_the_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = [[[((2 * at + rank) * 8 * MIB, 8 * MIB)] for rank in range(2)] for at in range(5)]
    recorded = workload.Recorded("dump.dat", PATH, 2, False, asked, [], 0.0)
    monkeypatch.setattr(workload, "of_file", lambda *_: recorded)
    folder = checkpoints(tmp_path / "trace")
    options = tune.Options(tmp_path / "plan.toml", "gigabit12", folder, repeat=2)
    assert not [reason for reason in tune.tune(options)["reasons"] if "partial" in reason]
    run = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps({**run, "exit_code": 137}))
    reasons = tune.tune(tune.Options(tmp_path / "again.toml", "gigabit12", folder, repeat=2))["reasons"]
    assert "the trace is partial: the command returned 137: something it started was ended by SIGKILL" in reasons
