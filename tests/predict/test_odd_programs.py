"""Programs whose calls the simulator must not take for those of all ranks together, and traces that lack something."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ioweir.base import toml_text
from ioweir.base.compiled import compiled
from ioweir.errors import IoweirError
from ioweir.predict import candidates, kinds, simulate, trace_out, tune, workload
from ioweir.predict import machine as machines
from ioweir.trace import pattern, reader
from traces import Builder, Call

MIB = 1 << 20


def strided(ranks: int, *, alone: bool) -> workload.Recorded:
    """Two calls of pieces of 64 KiB that lie in turns."""
    piece = 64 << 10
    calls = [
        [[((at * 16 + number) * ranks * piece + rank * piece, piece) for number in range(16)] for rank in range(ranks)]
        for at in range(2)
    ]
    return workload.Recorded("strided", "/data/strided.dat", ranks, alone, calls, [], 0.0)


def traced(folder: Path, program: workload.Recorded) -> Path:
    """Of a simulated run of it."""
    machine = machines.read("gigabit12")
    rule = simulate.plan_of(simulate.Options("gigabit12", trace=folder), machine, program)
    trace_out.write(folder, program, machine, rule, (dict.fromkeys(machine.open, 0.5), 1))
    return folder


@pytest.mark.parametrize("alone", [False, True])
def test_independent_calls_are_not_promised_what_writers_would_gather(alone: bool, tmp_path: Path) -> None:
    """Under a plan, too, each rank moves the bytes of such calls by itself."""
    trace = traced(tmp_path / "trace", strided(8, alone=alone))
    result = tune.tune(tune.Options(tmp_path / "plan.toml", "gigabit12", trace, repeat=2))
    tried = [row["strategy"] for row in result["tried"]]
    assert any(name.startswith("aggregators") for name in tried) is not alone
    assert ("auto" in tried) is not alone
    assert "everyone" in tried
    assert "log" in tried
    said = [
        reason for reason in result["reasons"] if "each rank makes its calls by itself: no writers gather" in reason
    ]
    assert len(said) == alone
    if alone:
        for rule in toml_text.loads(result["plan"] or "")["file"] if result["plan"] else ():
            assert not str(rule.get("writers", "")).startswith(("aggregators", "auto"))


def test_what_is_left_of_plans_for_independent_calls_can_be_carried_out() -> None:
    kept = list(candidates.of_independent_calls(candidates.candidates(8, 2, 4)))
    assert {one.keys.get("writers") for one in kept} <= {"everyone", None}
    assert {str(one.keys.get("mapping", "shared")).partition(":")[0] for one in kept} == {
        "shared", "subfiles", "grouped", "log",
    }  # fmt: skip
    for one in kept:
        compiled().check_plan(one.text("*"), "plan.toml")


def test_a_plan_that_gathers_independent_calls_is_simulated_with_a_word(tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    said = {}
    for alone in (False, True):
        trace = traced(tmp_path / str(alone), strided(4, alone=alone))
        for writers in ("aggregators:2", "everyone"):
            plan.write_text(f'[[file]]\nmatch = "*"\nwriters = "{writers}"\n')
            result = simulate.simulate(simulate.Options("gigabit12", trace=trace, plan=plan, repeat=1))
            said[alone, writers] = any("in fact no writers gather them" in remark for remark in result["remarks"])
    assert [key for key, found in said.items() if found] == [(True, "aggregators:2")]


def requests_of(ranks: dict[int, list[int]], communicator: int, world: int) -> tuple[Any, Any]:
    """A trace in which these ranks write a call of so many bytes each, opened by a communicator of so many ranks."""
    import numpy as np

    rows = [(rank, size) for rank, sizes in ranks.items() for size in sizes]
    requests = SimpleNamespace(
        process=np.array([rank for rank, _ in rows]), path=np.ones(len(rows), dtype=int),
        bytes=np.array([size for _, size in rows]), write=np.ones(len(rows), dtype=int),
        collective=np.ones(len(rows), dtype=int), function=np.ones(len(rows), dtype=int),
        access=np.ones(len(rows), dtype=int),
        extents=lambda number, _most: (np.array([number * MIB]), np.array([rows[number][1]])),
    )  # fmt: skip
    none = np.zeros(0, dtype=int)
    names = ("MPI_File_write_at_all", "MPI_File_iwrite_at_all")
    trace = SimpleNamespace(
        processes=[SimpleNamespace(rank=rank, ranks=world) for rank in range(world)], paths=["", "/data/a"],
        accesses=[SimpleNamespace(ranks=0, view=None), SimpleNamespace(ranks=communicator, view=None)], views=(),
        datatypes=(), events=SimpleNamespace(function=none, path=none, flags=none, offset=none),
        functions=[SimpleNamespace(id=number, name=name) for number, name in enumerate(names, 1)],
    )  # fmt: skip
    return trace, requests


@pytest.mark.parametrize(
    ("users", "communicator", "ranks", "alone"),
    [
        ({3: [100, 100]}, 1, 1, True),  # MPI_COMM_SELF: 16 ranks had been let to share one rank's bytes
        ({0: [100], 3: [100]}, 1, 16, True),
        ({2: [100], 3: [100]}, 2, 2, False),
        ({2: [100], 3: [100]}, 4, 4, False),
        ({rank: [100] for rank in range(16)}, 16, 16, False),
        ({2: [100], 3: [100]}, 0, 16, False),  # not known
    ],
)
def test_only_ranks_that_opened_a_file_can_share_its_bytes(
    users: dict[int, list[int]], communicator: int, ranks: int, alone: bool
) -> None:
    trace, requests = requests_of(users, communicator, 16)
    program = workload.of_file(trace, requests, "/data/a", Path("trace"), 0.0)
    assert (program.ranks, program.alone) == (ranks, alone)
    assert all(len(call) == ranks for call in program.written)
    assert sum(length for call in program.written for pieces in call for _, length in pieces) == sum(
        map(sum, users.values())
    )
    assert program.by_one is (len(users) == 1)


def test_files_of_single_ranks_are_not_promised_the_help_of_others() -> None:
    trace, requests = requests_of({3: [64 * MIB]}, 1, 16)
    program = workload.of_file(trace, requests, "/data/a", Path("trace"), 0.0)
    machine = machines.read("gigabit12")
    rule = simulate.plan_of(simulate.Options("gigabit12", trace=Path("trace")), machine, program)
    before = simulate.runs_of(program, machine, rule, 1, 1)[0]["write"]
    assert before["writers"] == 1
    parts = simulate.PlanRule('[[file]]\nmatch = "*"\nmapping = "grouped:4"\n', "a plan", 0, "a plan")
    with pytest.raises(IoweirError, match="more files than ranks: grouped:4 with 1 ranks"):
        simulate.runs_of(program, machine, parts, 1, 1)


def programs(*sizes: int, same_file: bool) -> reader.Trace:
    """MPI programs of so many ranks, one after another."""
    made = Builder()
    for number, size in enumerate(sizes):
        for rank in range(size):
            image = made.rank(rank, size, start_s=10.0 * number)
            path = "/data/a.dat" if same_file else f"/data/{'ab'[number]}.dat"
            at = 11 + 10 * number
            write = Call(image, "MPI_File_write_at", at, at + 1, path, 1000, offset=1000 * rank)
            made.add(write, write.inside("pwrite", at, at + 1, 1000, offset=1000 * rank))
    return made.trace()


def test_calls_of_two_programs_are_not_taken_for_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first call of rank 0 was another program's than that of rank 3."""
    monkeypatch.setattr(workload, "_extents", lambda *_: [(0, 1000)])
    trace = programs(2, 4, same_file=True)
    with pytest.raises(IoweirError, match=r"/data/a.dat: MPI programs of 2 and 4 ranks moved its bytes"):
        workload.of_file(trace, trace.requests(), "/data/a.dat", Path("trace"), 0.0)
    trace = programs(2, 4, same_file=False)
    found = [workload.of_file(trace, trace.requests(), f"/data/{name}.dat", Path("trace"), 0.0) for name in "ab"]
    assert [one.ranks for one in found] == [2, 4]


def test_a_file_that_no_rank_moved_is_said() -> None:
    trace = programs(2, same_file=True)
    with pytest.raises(IoweirError, match="/data/b: no rank of an MPI program moved its bytes"):
        workload.of_file(trace, trace.requests(), "/data/b", Path("trace"), 0.0)


def test_what_a_trace_lacks_is_said_beside_its_simulated_time(tmp_path: Path) -> None:
    trace = traced(tmp_path / "trace", strided(4, alone=False))
    options = simulate.Options("gigabit12", trace=trace, repeat=1)
    assert not [one for one in simulate.simulate(options)["remarks"] if "partial" in one]
    about = json.loads((trace / "run.json").read_text())
    (trace / "run.json").write_text(json.dumps({**about, "signal": 9}))
    remarks = simulate.simulate(options)["remarks"]
    assert "the trace is partial: the command was ended by signal 9 (SIGKILL)" in remarks


def test_a_rule_matches_names_that_are_no_utf8() -> None:
    """A trace has `\\xf6` for such a byte, which as a pattern stood for these letters."""
    made = Builder()
    made.rank(0, 1)
    made.add(Call(0, "creat", 1, 2, "/data/gr\udcf6\udcdfe.007.dat"))
    name = Path(made.trace().paths[-1]).name
    assert name == "gr\\xf6\\xdfe.007.dat"
    for one in (name, "gr\udcf6\udcdfe.007.dat"):
        assert kinds.pattern_of(one) == "gr*e.*.dat"
    rule = simulate.rule_text({"writers": "everyone"}, "gr*e.*.dat")
    for one in (name, "gr\udcf6\udcdfe.123.dat"):
        assert compiled().match_plan(rule, "plan.toml", f"/data/{one}") == 0
    assert kinds.pattern_of("a.d\\xf6t7") == "a.d*t*"


def test_files_without_a_name_get_no_rule() -> None:
    made = Builder()
    made.rank(0, 1)
    for at, (path, moved) in enumerate((("/data/a", 10), ("", 1000))):
        write = Call(0, "MPI_File_write_at", at, at + 0.5, path, moved, offset=0)
        made.add(write, write.inside("pwrite", at, at + 0.5, moved, offset=0))
    trace = made.trace()
    found, remarks = kinds.of_trace(trace, trace.requests(), Path("trace"), None)
    assert [kind.pattern for kind in found] == ["a"]
    assert remarks == ["1 MPI-IO data calls are on files without a name in the trace: no plan for them"]
    assert workload._chosen(trace, trace.requests(), None, Path("trace")) == "/data/a"


def test_the_share_of_independent_calls_is_said() -> None:
    trace, requests = requests_of({0: [100, 300], 1: [600]}, 2, 2)
    requests.collective[0] = 0
    program = replace(strided(2, alone=False), path="/data/a")
    (said,) = workload.of_independent_calls(program, requests, trace)
    assert said.startswith("10% of the bytes move in independent calls")


def test_collective_calls_that_do_not_block_are_not_gathered() -> None:
    """Under a plan each rank moves its own bytes in them."""
    trace, requests = requests_of({0: [100, 300], 1: [100, 300]}, 2, 2)
    assert not workload.of_file(trace, requests, "/data/a", Path("trace"), 0.0).alone
    requests.function[0] = requests.function[2] = 2
    program = workload.of_file(trace, requests, "/data/a", Path("trace"), 0.0)
    assert not program.alone
    begun, share = workload.of_independent_calls(program, requests, trace)
    assert begun.startswith("some of its calls do not block")
    assert share.startswith("25% of the bytes")
    requests.function[:] = 2
    program = workload.of_file(trace, requests, "/data/a", Path("trace"), 0.0)
    assert program.alone
    assert len(workload.of_independent_calls(program, requests, trace)) == 2


def test_a_run_under_a_plan_is_said_to_be_one(tmp_path: Path) -> None:
    """Its own time is that under the plan, and was taken for that without."""
    trace = programs(2, same_file=False)
    assert pattern.plan_of(trace) == ""
    assert pattern.plan_of(replace(trace, run={**trace.run, "plan": "p.toml"})) == ""  # no rule has matched a file
    planned = replace(trace, run={**trace.run, "plan": "p.toml"}, notes=(reader.Note(0, "plan_applied", "/data/a"),))
    assert pattern.plan_of(planned) == "p.toml"
    assert pattern.plan_of(replace(planned, run=trace.run)) == "a plan"
    folder = traced(tmp_path / "trace", strided(4, alone=False))
    said = "the run was recorded under q.toml: what is taken from its times"
    about = json.loads((folder / "run.json").read_text())
    for plan in (None, "q.toml"):
        (folder / "run.json").write_text(json.dumps({**about, "plan": plan}))
        found = tune.simulated(tune.Options(tmp_path / "plan.toml", "gigabit12", folder, repeat=2))
        assert any(remark.startswith(said) for remark in found.remarks) is (plan is not None)


def test_atomic_mode_is_a_doubt() -> None:
    made = Builder()
    made.rank(0, 1)
    for at, (name, path) in enumerate((("set_atomicity", "/data/a"), ("write_at", "/data/a"), ("write_at", "/data/b"))):
        made.add(Call(0, f"MPI_File_{name}", at, at + 0.5, path, 10 if at else 0, offset=0))
    trace = made.trace()
    (said,) = workload.of_atomic_mode(trace, "/data/a")
    assert said.startswith("the program calls MPI_File_set_atomicity; in atomic mode the MPI library")
    assert workload.of_atomic_mode(trace, "/data/b") == []


def test_files_that_are_there_before_are_not_promised_to_be_divided(tmp_path: Path) -> None:
    """A plan divides new files alone. Programs that only read had been promised what logs and subfiles gain."""
    program = strided(8, alone=False)
    reads = replace(program, written=[], read=program.written)
    for name, made, asked in (("reads", False, reads), ("writes", True, program)):
        trace = traced(tmp_path / name, asked)
        loaded = reader.read(trace)
        found = workload.of_file(loaded, loaded.requests(), asked.path, trace, 0.0)
        assert found.made is made
        result = tune.tune(tune.Options(tmp_path / f"{name}.toml", "gigabit12", trace, repeat=2))
        tried = [row["strategy"] for row in result["tried"]]
        divides = [one for one in tried if one.startswith(("log", "grouped", "subfiles")) or "stripes" in one]
        assert bool(divides) is made
        assert "everyone" in tried
        assert any("the program does not make the file" in reason for reason in result["reasons"]) is not made
        plan = tmp_path / "log.toml"
        plan.write_text('[[file]]\nmatch = "*"\nmapping = "log"\n')
        remarks = simulate.simulate(simulate.Options("gigabit12", trace=trace, plan=plan, repeat=1))["remarks"]
        assert any("no plan divides one that is there before" in remark for remark in remarks) is not made


@pytest.mark.parametrize(("modes", "made"), [([5], True), ([8], False), ([8, 9], True), ([-1], True), ([], True)])
def test_a_file_is_new_where_it_was_opened_to_be_made(modes: list[int], made: bool) -> None:
    builder = Builder()
    builder.rank(0, 1)
    for at, mode in enumerate(modes):
        builder.add(Call(0, "MPI_File_open", at, at + 0.5, "/data/a", offset=mode))
    builder.add(Call(0, "MPI_File_open", 50, 51, "/data/a", offset=1, failed=True))
    assert workload._is_made(builder.trace(), "/data/a") is made
