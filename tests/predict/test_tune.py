"""`ioweir tune`: the plan that it writes helps in the same simulation, and none is written where none does."""

from __future__ import annotations

import dataclasses
import json
import math
import random
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from forked import completed
from ioweir.errors import IoweirError
from ioweir.loop import measure, turns
from ioweir.predict import candidates, gains, kinds, simulate, tune
from ioweir.predict import machine as machines
from traces import Builder, Call

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from pathlib import Path

IOWEIR = [sys.executable, "-m", "ioweir"]
STRIDED = ("ior-strided", ("data=4 MiB", "transfer=2 MiB", "piece=64 KiB"))


def options(output: Path, **more: Any) -> tune.Options:
    name, settings = STRIDED
    given = {"kernel": name, "settings": settings, "ranks": 16, "repeat": 4, **more}
    return tune.Options(output, "gigabit12", **given)


def total(result: dict[str, Any]) -> float:
    return sum(float(result[name]["seconds"]["median"]) for name in simulate.DIRECTIONS)


def test_the_plan_is_the_fastest_that_was_tried_and_simulate_says_so_too(tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    result = tune.tune(options(plan))
    assert result["output"] == str(plan)
    assert plan.read_text() == result["plan"]
    helping = [row for row in result["tried"] if row.get("predicted", {}).get("ratio_low", 0) > 1]
    same_form = [row for row in helping if not row["other_form"]]
    name, settings = STRIDED
    asked = simulate.Options("gigabit12", name, settings, 16, repeat=4)
    before, after = (
        simulate.simulate(asked),
        simulate.simulate(simulate.Options("gigabit12", name, settings, 16, plan=plan, repeat=4)),
    )
    assert total(after) < total(before)
    rule = tomllib.loads(result["plan"])["file"][0]
    best = min(row["seconds"] for row in (helping if "mapping" in rule else same_form))
    assert total(after) == pytest.approx(best, rel=0.05)  # medians of sums, and sums of medians
    assert result["predicted"]["ratio_low"] > 1
    assert result["predicted"]["ratio_low"] <= result["predicted"]["ratio"] <= result["predicted"]["ratio_high"]
    comments = [line for line in result["plan"].splitlines() if line.startswith("#")]
    assert any("fastest" in line for line in comments)
    assert any("SIMULATED" in line for line in comments)


def test_where_nothing_helps_no_plan_is_written(tmp_path: Path) -> None:
    """One rank that writes one large piece: there is nothing to put together, and nobody to share with."""
    plan = tmp_path / "plan.toml"
    asked = tune.Options(
        plan,
        _one_target(tmp_path),
        kernel="ior-segmented",
        settings=("data=8 MiB", "transfer=8 MiB"),
        ranks=1,
        repeat=3,
    )
    result = tune.tune(asked)
    assert (result["plan"], result["output"]) == (None, None)
    assert result["predicted"] == {"ratio_low": 1.0, "ratio": 1.0, "ratio_high": 1.0}
    assert result["reasons"][0].startswith("nothing that was tried")
    assert not plan.exists()
    assert tune.to_text(result)[-1] == "No plan is written."


def _one_target(folder: Path) -> str:
    machine = folder / "machine.toml"
    machine.write_text("[targets]\ncount = 1\n", encoding="utf-8")
    return str(machine)


@pytest.mark.parametrize(
    ("ranks", "a_node", "targets"), [(1, 1, 1), (7, 3, 1), (16, 4, 12), (3, 8, 5), (1000, 24, 156)]
)
def test_candidates_are_different_and_possible(ranks: int, a_node: int, targets: int) -> None:
    all_of_them = list(candidates.candidates(ranks, a_node, targets))
    texts = [one.text("*") for one in all_of_them]
    assert len(set(texts)) == len(texts)
    for one in all_of_them:
        writers = str(one.keys.get("writers", ""))
        if writers.startswith("aggregators:"):
            assert 1 <= int(writers.partition(":")[2]) <= ranks
        assert one.same_form == ("mapping" not in one.keys)


def test_in_folders_spreading_the_file_helps_and_stripes_are_not_tried(tmp_path: Path) -> None:
    machine = tmp_path / "folders.toml"
    text = "[targets]\ncount = 4\nfolders = true\nwrite_bytes_per_s = 1e7\nread_bytes_per_s = 1e7\n"
    machine.write_text(text + "[node]\nranks = 64\n[client]\npage_cache_bytes = 100000000000\n", encoding="utf-8")
    result = tune.tune(dataclasses.replace(options(tmp_path / "plan.toml"), machine=str(machine)))
    rows = {row["strategy"]: row for row in result["tried"]}
    assert not [name for name in rows if "stripes" in name]
    # 64 MiB at 10 MB/s on one target; a quarter of that on each of four, which take 0.4 s to be probed.
    alone, spread = 64 * 1.048576 / 10, 64 * 1.048576 / 40 + 0.4
    assert result["before"]["seconds"] == pytest.approx(alone, rel=0.05)
    for name in ("subfiles:4", "log on the good targets"):
        assert rows[name]["seconds"] == pytest.approx(spread, rel=0.1)
        assert rows[name]["other_form"]
    assert rows["log"]["seconds"] == pytest.approx(alone, rel=0.05)
    assert tomllib.loads(result["plan"])["file"][0]["mapping"] in ("subfiles:4", "log")


def test_gains_are_stated_as_they_came_out_before(tmp_path: Path) -> None:
    machine = tmp_path / "machine.toml"
    text = "unexplained = 5.0\n{}[targets]\ncount = 4\nseek_s = 0.01\n"
    found = []
    for line in ("", "gains = [0.9, 0.95, 2.0]\n", "gains = [1e-3, 0.9, 2.0]\n"):
        machine.write_text(text.format(line), encoding="utf-8")
        asked = dataclasses.replace(options(tmp_path / "plan.toml", force=True), machine=str(machine))
        found.append(tune.tune(asked))
    without, some, few = found
    assert without["plan"] is None
    assert few["plan"] is None
    row = next(row for row in some["tried"] if row["strategy"] == some["files"][0]["strategy"])
    simulated = some["before"]["seconds"] / row["seconds"]
    assert row["predicted"]["ratio_low"] == pytest.approx(0.9 * simulated, rel=0.02)
    assert row["predicted"]["ratio"] == pytest.approx(0.95 * simulated, rel=0.02)
    assert row["predicted"]["ratio_high"] == pytest.approx(2.0 * simulated, rel=0.02)
    assert any("four of five were 0.90 to 2.00 times" in reason for reason in some["reasons"])


def test_what_is_not_simulated_is_in_both_times() -> None:
    vague = machines.parse("gains = [0.5, 1.0, 2.0]\n", "vague")
    # Moving takes 8 s, and 2 s under the plan; opening takes 1 s.
    as_it_is = gains.Beside(1.0, (1.0, 1.0, 1.0))
    assert gains.gain([9.0], [3.0], as_it_is, vague) == pytest.approx(
        {"ratio_low": 9 / 5, "ratio": 9 / 3, "ratio_high": 9 / 2}
    )
    nothing = gains.Beside(0.0, (0.0, 0.0, 0.0))
    assert gains.gain([8.0], [2.0], nothing, vague) == pytest.approx(
        {"ratio_low": 2.0, "ratio": 4.0, "ratio_high": 8.0}
    )
    plain = machines.parse("", "plain")
    assert gains.gain([9.0], [3.0], as_it_is, plain) == pytest.approx(
        dict.fromkeys(("ratio_low", "ratio", "ratio_high"), 3.0)
    )


def test_openings_differ_from_run_to_run_and_under_plans() -> None:
    text = "gains = [0.5, 1.0, 2.0]\n[opening]\nruns = [0.5, 3.0]\nlog = [1.0, 2.0, 4.0]\n"
    known = machines.parse(text, "known")
    # Moving takes 8 s, and 2 s under the plan. Opening took 1 s when recorded, and under the plan 1 to 4 s, here 2 s.
    found = gains.gain([9.0], [4.0], gains.Beside(1.0, known.opening.under("log")), known)
    assert found["ratio"] == pytest.approx(9 / 4)
    assert found["ratio_low"] == pytest.approx((8 + 3 * 1) / (4 + 3 * 4))  # long openings, both times
    assert found["ratio_high"] == pytest.approx((8 + 0.5 * 1) / (1 + 0.5 * 1))  # short ones
    assert known.opening.under("grouped") == (1.0, 1.0, 1.0)


def test_opening_counts_once_for_all_ranks_of_a_file() -> None:
    made = Builder()
    for rank in range(3):
        process = made.rank(rank, 3)
        for number, opened in ((1, (1.0, 2.0, 9.0)), (2, (0.5, 0.5, 0.5))):
            path, at = f"/data/dump.{number}", 20.0 * number
            made.add(
                Call(process, "MPI_File_open", at, at + opened[rank], path),
                Call(process, "MPI_File_write_at_all", at + 10, at + 14, path, 100),
                Call(process, "MPI_File_sync", at + 14, at + 15, path),
                Call(process, "MPI_File_close", at + 15, at + 15.25, path),
            )
        # A file of each rank's own.
        made.add(
            Call(process, "MPI_File_open", 70, 71 + rank, f"/data/own{rank}.dat"),
            Call(process, "MPI_File_write_at", 80, 81, f"/data/own{rank}.dat", 10),
        )
    given = [kinds.Kind(name, "", 1, 1.0, 1.0) for name in ("dump.*", "own*.dat", "none")]
    found = kinds.with_beside(given, made.trace())
    assert [kind.beside_s for kind in found] == pytest.approx([2.0 + 0.5 + 2 * 0.25, 3.0, 0.0])


def test_a_form_of_its_own_has_to_be_faster_in_all_runs() -> None:
    def row(name: str, each: list[float], other: bool) -> dict[str, Any]:
        each_sorted = sorted(each)
        return {
            "strategy": name, "seconds": each_sorted[len(each) // 2], "each": each, "other_form": other,
            "predicted": {"ratio_low": 2.0, "ratio": 2.0, "ratio_high": 2.0},
        }  # fmt: skip

    plain = row("plain", [4.0, 4.0, 4.0], False)
    assert tune._choice([plain, row("log", [3.0, 3.0, 4.5], True)]) is plain
    other = row("log", [3.0, 3.0, 3.5], True)
    assert tune._choice([plain, other]) is other
    slower = {**plain, "predicted": {"ratio_low": 0.9, "ratio": 1.2, "ratio_high": 2.0}}
    assert tune._choice([slower]) is None
    # The ratio of two plans' times may be off by more than what the other form seems to save.
    assert tune._choice([plain, other], 1.05) is other
    assert tune._choice([plain, other], 10.0) is plain
    assert tune._choice([other], 10.0) is other
    assert tune._choice([slower, other]) is other


def test_a_budget_ends_the_search_and_says_so(tmp_path: Path) -> None:
    result = tune.tune(options(tmp_path / "plan.toml", budget_s=0.0))
    assert len(result["tried"]) == 1
    assert any("candidates were left out" in reason for reason in result["reasons"])


def test_bad_input(tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    with pytest.raises(IoweirError, match="one program"):
        tune.tune(tune.Options(plan, "gigabit12"))
    with pytest.raises(IoweirError, match="needs a machine"):
        tune.tune(tune.Options(plan, kernel="btio", ranks=4))
    with pytest.raises(IoweirError, match="give 2 or more"):
        tune.tune(options(plan, repeat=1))
    with pytest.raises(IoweirError, match="unknown kernel"):
        tune.tune(options(plan, kernel="nothing"))
    with pytest.raises(IoweirError, match="--seed -1: give 0 or more"):
        tune.tune(options(plan, seed=-1))
    with pytest.raises(IoweirError, match="its directory is not there"):
        tune.tune(options(tmp_path / "nowhere" / "plan.toml"))
    plan.write_text("mine")
    with pytest.raises(IoweirError, match="is there"):
        tune.tune(options(plan))
    assert plan.read_text() == "mine"
    for words, needs in (
        (["tune", tmp_path / "nothing", "-o", tmp_path / "new"], "does not exist"),
        (["tune", tmp_path], "-o PLAN.toml"),
        (["tune", tmp_path, "a=b", "-o", tmp_path / "new"], "--kernel"),
    ):
        done = completed([*IOWEIR, *map(str, words)])
        assert done.returncode != 0
        assert needs in done.stderr
        assert len(done.stderr.splitlines()) == 1


def test_a_kernel_that_computes_is_written_behind(tmp_path: Path) -> None:
    """Calls of 1 MiB of two ranks on one target; what is computed between them hides all but the last."""
    asked = tune.Options(
        tmp_path / "plan.toml", _one_target(tmp_path), kernel="ior-segmented",
        settings=("data=8 MiB", "transfer=1 MiB"),
        ranks=2, repeat=2, compute_s=10.0,
    )  # fmt: skip
    result = tune.tune(asked)
    rows = [row for row in result["tried"] if row["strategy"].startswith("behind:1")]
    assert [row["strategy"] for row in rows] == ["behind:1, 32.00 MiB a rank"]
    assert rows[0]["seconds"] < result["before"]["seconds"]
    idle = tune.tune(dataclasses.replace(asked, compute_s=0.0, force=True))
    assert not any(row["strategy"].startswith("behind") for row in idle["tried"])
    with pytest.raises(IoweirError, match="--compute is a kernel's"):
        tune.check(tune.Options(tmp_path / "new", trace=tmp_path, compute_s=1.0))


def test_the_command_of_a_kernel(tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    name, settings = STRIDED
    done = completed(
        [*IOWEIR, "tune", "--kernel", name, *settings, "--ranks", "16", "--machine", "gigabit12", "--repeat", "3",
         "-o", plan, "--json"], check=True,
    )  # fmt: skip
    result = json.loads(done.stdout)
    assert {"plan", "predicted", "tried", "reasons"} <= result.keys()
    assert {"ratio_low", "ratio", "ratio_high"} == result["predicted"].keys()
    assert all({"strategy"} <= row.keys() for row in result["tried"])
    assert plan.read_text() == result["plan"]


def test_names_in_numbers_are_one_pattern() -> None:
    for name, pattern in (
        ("dump[1].00042.h5", "dump\\[*\\].*.h5"), ("plot", "plot"), ("chk.0001", "chk.*"), ("step12.nc4", "step*.nc4"),
        ("a*b", "a\\*b"),
    ):  # fmt: skip
        assert kinds.pattern_of(name) == pattern


def _trace(calls: list[tuple[int, str, int, int]]) -> tuple[Any, Any]:
    """Calls: process, path, bytes, nanoseconds."""
    paths = sorted({path for _, path, _, _ in calls})
    process, path, moved, spent = zip(*calls, strict=True)
    requests = SimpleNamespace(
        process=np.array(process), path=np.array([paths.index(one) for one in path]), bytes=np.array(moved),
        duration_ns=np.array(spent),
    )  # fmt: skip
    return SimpleNamespace(paths=paths), requests


def test_files_of_a_loop_are_one_kind_and_what_takes_no_time_is_none(tmp_path: Path) -> None:
    calls = [(rank, f"/d/chk.{step:04}.h5", 100 * (step + 1), 50) for step in range(3) for rank in range(2)]
    calls += [(0, "/d/own.0", 10, 60), (1, "/d/own.1", 10, 60), (0, "/d/log", 1, 1), (0, "/d/empty", 0, 900)]
    found, remarks = kinds.of_trace(*_trace(calls), tmp_path, None)
    assert [(kind.pattern, kind.path, kind.files) for kind in found] == [
        ("chk.*.h5", "/d/chk.0002.h5", 3), ("own.*", "/d/own.1", 2)
    ]  # fmt: skip
    # One after the other: twice what the largest has. At the same time: once.
    assert [kind.times for kind in found] == [2.0, 1.0]
    assert sum(kind.share for kind in found) == pytest.approx(1, abs=0.01)
    assert remarks == ["1 other kinds of files have 0% of the time in MPI-IO data calls: no plan for them"]
    one, _ = kinds.of_trace(*_trace(calls), tmp_path, "chk.0000.h5")
    assert [(kind.path, kind.times) for kind in one] == [("/d/chk.0000.h5", 6.0)]


def _kind(path: str) -> kinds.Kind:
    return kinds.Kind(kinds.pattern_of(path), path, 1, 1.0, 0.5)


def test_the_more_special_rule_comes_first_and_what_it_matches_besides_is_known() -> None:
    wide, narrow, other = _kind("out.1"), _kind("out.1.h5"), _kind("log")
    assert kinds.most_special_first([wide, narrow, other]) == [narrow, wide, other]
    assert kinds.also_matched([wide, narrow, other], {wide.pattern}) == [("out.*", "out.1.h5")]
    assert kinds.also_matched([wide, narrow, other], {wide.pattern, narrow.pattern}) == []


def _part(path: str, before: list[float], **after: list[float]) -> tune.Part:
    rows = [
        {
            "strategy": name, "candidate": candidates.Candidate(name, {"writers": name}), "each": each,
            "beside": (0.0, 0.0, 0.0),
            "seconds": sorted(each)[len(each) // 2], "other_form": False,
            "predicted": gains.range_of([old / new for old, new in zip(before, each, strict=True)]),
        }
        for name, each in after.items()
    ]  # fmt: skip
    program: Any = SimpleNamespace(what=path)
    return tune.Part(_kind(path), program, before, rows)


def test_what_a_machine_leaves_unexplained_widens_the_gain() -> None:
    ratios = [2.0, 2.2, 1.9]
    known, vague = (machines.parse(f"name = 'x'\n{line}\n", "x") for line in ("", "unexplained = 0.25"))
    assert gains.range_of(ratios, known) == {"ratio_low": 1.9, "ratio": 2.0, "ratio_high": 2.2}
    wide = gains.range_of(ratios, vague)
    assert wide["ratio"] == 2.0
    factor = 1.25**1.9
    assert wide["ratio_low"] == pytest.approx(1.9 / factor, rel=0.001)
    assert wide["ratio_high"] == pytest.approx(2.2 * factor, rel=0.001)
    # Of errors whose median is a quarter four of five lie within.
    draw = random.Random(5)
    sigma = math.log(1.25) / 0.6745
    inside = sum(abs(draw.gauss(0, sigma)) <= math.log(factor) for _ in range(20000))
    assert inside / 20000 == pytest.approx(0.8, abs=0.01)


def test_files_of_two_kinds_have_a_rule_each_and_one_prediction() -> None:
    dump = _part("dump.1", [4.0, 4.0, 4.0], everyone=[1.0, 1.0, 1.0], auto=[2.0, 2.0, 2.0])
    chk = _part("chk.1.h5", [2.0, 2.0, 2.0], everyone=[3.0, 3.0, 3.0], auto=[1.0, 2.0, 1.0])
    machine: Any = SimpleNamespace(name="none", open={}, unexplained=0.0, gains=None, plans=1.0)
    found = tune.Simulated(machine, [dump, chk], [], "two")
    picks = [tune._choice(part.good) for part in found.parts]
    assert picks[0] is not None
    assert picks[0]["strategy"] == "everyone"
    assert picks[1] is None, "not faster in all runs"
    assert found.predicted(picks) == {"ratio_low": 2.0, "ratio": 2.0, "ratio_high": 2.0}
    assert found.predicted([picks[0], chk.good[0]]) == {"ratio_low": 2.0, "ratio": 3.0, "ratio_high": 3.0}
    rules = tomllib.loads(found.text([picks[0], chk.good[0]]))["file"]
    assert rules == [{"match": "chk.*.h5", "writers": "auto"}, {"match": "dump.*", "writers": "everyone"}]
    described = found.result(picks)
    assert [(one["match"], one["strategy"]) for one in described["files"]] == [
        ("dump.*", "everyone"), ("chk.*.h5", None)
    ]  # fmt: skip
    assert "dump.* (files: 1), as they are 4.00 s (4.00 s .. 4.00 s)" in tune.to_text({**described, "output": None})

    ways = measure.contenders(found, 2)
    assert [way.name for way in ways] == [
        turns.AS_IT_IS, "dump.*: everyone; chk.*.h5: auto", "dump.*: auto; chk.*.h5: auto"
    ]  # fmt: skip
    assert ways[1].predicted == found.predicted([dump.good[0], chk.good[0]])
    assert [one["strategy"] for one in found.result(ways[2].picks)["files"]] == ["auto", "auto"]


def test_variants_of_what_is_much_slower_are_not_simulated_and_named(tmp_path: Path) -> None:
    """Small pieces under `everyone` on a machine of several targets."""
    settings = ("data=1 MiB", "transfer=1 MiB", "piece=1 KiB")
    asked = tune.Options(
        tmp_path / "plan.toml", "gigabit12", kernel="ior-strided", settings=settings, ranks=8, repeat=2
    )
    result = tune.tune(asked)
    rows = {row["strategy"]: row for row in result["tried"]}
    pruned = [reason for reason in result["reasons"] if reason.startswith("not tried, for without these stripes")]
    variants = [name for name in rows if name.startswith("everyone, stripes")]
    assert len(variants) == (0 if rows["everyone"]["predicted"]["ratio_high"] < 0.5 else 3)
    assert len(pruned) == (0 if variants else 1)
