"""A program under a plan: what the engine does is traced, what it leaves is said, and verification means something."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import pytest
from test_mpi_calls import READS, WRITES, expected
from test_requests import check_completions
from tracing import IOWEIR, MPIS, Mpi, Traced, build, ioweir_run, run, totals

if TYPE_CHECKING:
    from pathlib import Path

RANKS: Final = 2
# What the engine moves: all but the shared pointer's. Bytes count where a call ends and are moved where it begins.
DIRECT: Final = [name for name in (*WRITES, *READS) if "shared" not in name and "ordered" not in name]
SHARED_POINTER_CALLS: Final = 8


def planned(mpi: Mpi, folder: Path, source: str, pattern: str, *options: str, fault: str = "", code: int = 0) -> Traced:
    """A program with the plan that every rank writes its own bytes."""
    plan = folder / "plan.toml"
    plan.write_text(f'[[file]]\nmatch = "{pattern}"\nwriters = "everyone"\n')
    program = build(source, mpi.cc)
    injected = ["env", f"IOWEIR_TEST_STORAGE={fault}"] if fault else []
    command = mpi.launch(RANKS, *injected, program, folder)
    return ioweir_run(folder / "trace", command, options=["--plan", plan, *options], code=code)


def notes(traced: Traced, code: str) -> list[dict[str, Any]]:
    return [note for note in traced.trace.notes if note["code"] == code]


@pytest.mark.parametrize("mpi", MPIS, ids=lambda mpi: mpi.name)
def test_engine_moves_what_it_can_and_says_what_it_leaves(mpi: Mpi, tmp_path: Path) -> None:
    traced = planned(mpi, tmp_path, "all_mpi_calls.c", "all")
    trace = traced.trace
    path = f"{tmp_path}/all"
    for rank in range(RANKS):
        mine = [event for event in trace.events if event.rank == rank and event.path == path]
        assert totals((e for e in mine if e.layer == "MPI-IO"), "name") == expected(rank)
        engines = [event for event in mine if event.origin == "engine"]
        # Every byte of the calls it handles went through its own descriptor, each call under its MPI-IO parent.
        moved = Counter[str]()
        for event in engines:
            if event.op in ("read", "write"):
                parent = trace.parent_of(event)
                assert parent is not None
                moved[parent.name.removeprefix("MPI_File_")] += event.bytes
        assert moved == {name.replace("_end", "_begin"): (WRITES | READS)[name] for name in DIRECT}
        opened = [event.name for event in engines if event.op == "open"]
        closed = [event.name for event in engines if event.op == "close"]
        assert len(opened) == len(closed) == 1
    applied = notes(traced, "plan_applied")
    assert [note["path"] for note in applied] == [path]
    left = Counter[str]()
    for note in notes(traced, "passed_through"):
        left[note["text"]] += note["value"]
    assert left == {"shared file pointer": RANKS * SHARED_POINTER_CALLS}
    assert sum(row["bytes"] for row in traced.report["plan"]["engine"]) == RANKS * sum(
        (WRITES | READS)[name] for name in DIRECT
    )


@pytest.mark.parametrize("mpi", MPIS, ids=str)
def test_a_rule_may_leave_a_file_to_the_mpi_library(mpi: Mpi, tmp_path: Path) -> None:
    """The rule behind it, for all files, is not for that one."""
    plan = tmp_path / "plan.toml"
    plan.write_text('[[file]]\nmatch = "all"\nwriters = "library"\nstripe = { count = 1 }\n\n[[file]]\nmatch = "*"\n')
    program = build("all_mpi_calls.c", mpi.cc)
    traced = ioweir_run(tmp_path / "trace", mpi.launch(RANKS, program, tmp_path), options=["--plan", plan])
    path = f"{tmp_path}/all"
    mine = [event for event in traced.trace.events if event.path == path]
    assert not any(event.origin == "engine" and event.op in ("read", "write") for event in mine)
    for rank in range(RANKS):
        assert totals((e for e in mine if e.layer == "MPI-IO" and e.rank == rank), "name") == expected(rank)
    (note,) = [note for note in notes(traced, "passed_through") if note["path"] == path]
    assert (note["text"], note["value"]) == ("left to the MPI library by its rule", 0)
    assert not [note for note in notes(traced, "plan_applied") if note["path"] == path]


@pytest.mark.one_of(2)
@pytest.mark.parametrize("mapping", ["grouped:2", "log", "subfiles:2"])
@pytest.mark.parametrize("mpi", MPIS, ids=lambda mpi: mpi.name)
def test_of_a_file_in_several_parts_the_engine_moves_everything(mpi: Mpi, mapping: str, tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(f'[[file]]\nmatch = "all"\nmapping = "{mapping}"\nvisibility = "sync"\n')
    program = build("all_mpi_calls.c", mpi.cc)
    traced = ioweir_run(tmp_path / "trace", mpi.launch(RANKS, program, tmp_path), options=["--plan", plan])
    path = f"{tmp_path}/all"
    for rank in range(RANKS):
        mine = [event for event in traced.trace.events if event.rank == rank and event.path == path]
        assert totals((e for e in mine if e.layer == "MPI-IO"), "name") == expected(rank)
    assert not notes(traced, "passed_through")
    assert sum(row["bytes"] for row in traced.report["plan"]["engine"]) == RANKS * sum((WRITES | READS).values())


@pytest.mark.parametrize("mpi", MPIS, ids=lambda mpi: mpi.name)
def test_aggregators_touch_storage_for_the_others_and_the_report_says_how(mpi: Mpi, tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text('[[file]]\nmatch = "all"\nwriters = "aggregators:1"\nbuffer = 64\n')
    program = build("all_mpi_calls.c", mpi.cc)
    options: list[str | Path] = ["--plan", plan, "--verify"]
    traced = ioweir_run(tmp_path / "trace", mpi.launch(RANKS, program, tmp_path), options=options, code=74)
    # Collective writes: rank 0 writes everybody's bytes, rank 1 none.
    written: dict[int, Counter[str]] = {rank: Counter() for rank in range(RANKS)}
    for event in traced.trace.events:
        parent = traced.trace.parent_of(event)
        if event.origin != "engine" or event.op != "write" or parent is None:
            continue
        written[event.rank][parent.name.removeprefix("MPI_File_").replace("_begin", "_end")] += event.bytes
    together = ("write_at_all", "write_all", "write_at_all_end", "write_all_end")
    assert {name: written[0][name] for name in together} == {name: RANKS * WRITES[name] for name in together}
    assert not set(together) & set(written[1])
    report = traced.report
    (row,) = report["plan"]["engine"]
    assert row["exchanges"] > 0
    assert row["rounds"] >= row["exchanges"]
    assert 0 < row["exchange_processor_s"] <= row["exchange_s"]
    assert row["messages"] == 0
    # The shared pointer's calls are the MPI library's, and not compared.
    verify = report["plan"]["verify"]
    assert verify["result"] == "incomplete"
    assert {(row["outcome"], row["text"]) for row in verify["left_out"]} == {("passed_through", "shared file pointer")}


@pytest.mark.parametrize("mpi", MPIS, ids=lambda mpi: mpi.name)
def test_a_rank_killed_in_an_exchange_leaves_what_was_complete(mpi: Mpi, tmp_path: Path) -> None:
    ranks, block = 3, 1 << 18
    plan = tmp_path / "plan.toml"
    plan.write_text('[[file]]\nmatch = "killed"\nwriters = "aggregators:2"\nbuffer = "64 KiB"\n')
    program = build("killed_in_exchange.c", mpi.cc)
    traced = ioweir_run(tmp_path / "trace", mpi.launch(ranks, program, tmp_path), options=["--plan", plan], code=None)
    assert traced.code != 0
    assert "not reached" not in traced.err
    content = (tmp_path / "killed").read_bytes()
    assert content[: ranks * block] == b"".join(bytes([ord("a") + rank]) * block for rank in range(ranks))
    # Of the second call whatever was moved, and nothing else.
    rest = content[ranks * block :]
    assert len(rest) <= ranks * block
    for rank in range(ranks):
        assert set(rest[rank * block : (rank + 1) * block]) <= {0, ord("A") + rank}


@pytest.mark.parametrize("mpi", MPIS, ids=lambda mpi: mpi.name)
def test_completions_of_the_engines_requests_are_recorded(mpi: Mpi, tmp_path: Path) -> None:
    traced = planned(mpi, tmp_path, "requests.c", "requests.*")
    assert traced.trace.is_whole()
    for rank in range(RANKS):
        events = [event for event in traced.trace.of(f"{tmp_path}/requests.{rank}") if event.layer == "MPI-IO"]
        check_completions(events)
    assert not notes(traced, "passed_through")


@pytest.mark.parametrize("mpi", MPIS, ids=lambda mpi: mpi.name)
def test_verify_accepts_what_was_written_and_refuses_a_flipped_bit(mpi: Mpi, tmp_path: Path) -> None:
    for fault, code in (("", 0), ("flip:1", 74), ("drop:1", 74)):
        folder = tmp_path / (fault.replace(":", "") or "sound")
        folder.mkdir()
        traced = planned(mpi, folder, "one_write.c", "file", "--verify", fault=fault, code=code)
        assert sum(note["value"] for note in notes(traced, "verify_ok")) == (0 if fault else RANKS * 4096)
        assert bool(notes(traced, "verify_mismatch")) == bool(fault)
        assert ("does not hold what the program wrote" in traced.err) == bool(fault)


REFUSED: Final = {
    "a key nobody knows": ('writrs = "everyone"', "did you mean 'writers'"),
    "delegates": ('writers = "delegates:1/2"', "ioweir_split in docs/reference/partitioned-files.md"),
    "dimension": ('writers = "auto"\ndomains = "dimension"', "netcdf = { subfiles = N, par_dim"),
    "group": ('writers = "aggregators:2"\ndomains = "group"', 'mapping = "grouped:N"'),
    "turns of everyone": ('order = "contention-free"', "an order without meaning for its writers"),
    "arrival": ('writers = "aggregators:2"\norder = "arrival"', "an order that only logs have"),
    "behind, in groups": ('mapping = "grouped:2"\nwriters = "behind:1"', "write-behind into several files"),
    "no such folder": ('mapping = "log"\ntargets = ["HERE", "HERE/nowhere"]', "a target that does not exist"),
    "a file": ('mapping = "subfiles:2"\ntargets = ["HERE/file"]', "a target that is not a directory"),
    "a dangling link": ('mapping = "subfiles:2"\ntargets = ["HERE/link"]', "a target that is a link to nothing"),
    "relative": ('mapping = "subfiles:2"\ntargets = ["nowhere"]', "a target that does not exist"),
    "of netCDF subfiles": ('netcdf = { subfiles = 2 }\ntargets = ["HERE/nowhere"]', "a target that does not exist"),
}
"""Lines of a rule that nobody can carry out, and what is said of them."""


@pytest.mark.parametrize("name", REFUSED)
def test_plan_that_cannot_be_followed_is_refused_before_the_program_starts(name: str, tmp_path: Path) -> None:
    lines, words = REFUSED[name]
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("nowhere")
    plan = tmp_path / "plan.toml"
    plan.write_text(f'[[file]]\nmatch = "*.chk"\n\n[[file]]\nmatch = "b*"\n{lines.replace("HERE", str(tmp_path))}\n')
    marker = tmp_path / "started"
    refused = ioweir_run(tmp_path / "trace", ["touch", marker], options=["--plan", plan], code=2, cwd=tmp_path)
    assert words in refused.err
    assert f"{plan}:" in refused.err
    assert len(refused.err.splitlines()) == 1
    assert not marker.exists()
    assert not (tmp_path / "trace").exists()


def test_a_batch_scripts_plan_is_refused_too_but_relative_targets_are_looked_for_where_ranks_run(
    tmp_path: Path,
) -> None:
    plan = tmp_path / "plan.toml"
    for lines, code in (
        ('writers = "delegates:1/2"', 2),
        (f'mapping = "log"\ntargets = ["{tmp_path}/nowhere"]', 2),
        ('mapping = "log"\ntargets = ["nowhere"]', 0),
    ):
        plan.write_text(f'[[file]]\nmatch = "*"\n{lines}\n')
        run([*IOWEIR, "env", "-o", tmp_path / "trace", "--plan", plan], cwd=tmp_path).expect(code)


@pytest.mark.skipif(os.geteuid() == 0 and not shutil.which("setpriv"), reason="needs a user who may not write there")
def test_a_target_that_may_not_be_written_to_is_refused(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0o555)
    plan = tmp_path / "plan.toml"
    plan.write_text(f'[[file]]\nmatch = "*"\nmapping = "log"\ntargets = ["{tmp_path}/closed"]\n')
    # Root may write anywhere, unless that capability is given up.
    less = ["setpriv", "--bounding-set=-dac_override", "--inh-caps=-dac_override"] if os.geteuid() == 0 else []
    refused = run([*less, *IOWEIR, "run", "--plan", plan, "--", "touch", tmp_path / "started"]).expect(2)
    assert "a target that cannot be written to" in refused.err
    assert not (tmp_path / "started").exists()
