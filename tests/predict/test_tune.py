"""`ioweir tune`: the plan that it writes helps in the same simulation, and none is written where none does."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from ioweir.errors import IoweirError
from ioweir.predict import simulate, tune

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
    all_of_them = list(tune.candidates(ranks, a_node, targets))
    texts = [one.text("*") for one in all_of_them]
    assert len(set(texts)) == len(texts)
    for one in all_of_them:
        writers = str(one.keys.get("writers", ""))
        if writers.startswith("aggregators:"):
            assert 1 <= int(writers.partition(":")[2]) <= ranks
        assert one.same_form == ("mapping" not in one.keys)


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
    plan.write_text("mine")
    with pytest.raises(IoweirError, match="is there"):
        tune.tune(options(plan))
    assert plan.read_text() == "mine"
    for words, needs in (
        (["tune", tmp_path / "nothing", "-o", tmp_path / "new"], "does not exist"),
        (["tune", tmp_path], "-o PLAN.toml"),
        (["tune", tmp_path, "a=b", "-o", tmp_path / "new"], "--kernel"),
    ):
        done = subprocess.run([*IOWEIR, *map(str, words)], capture_output=True, text=True, check=False)
        assert done.returncode != 0
        assert needs in done.stderr
        assert len(done.stderr.splitlines()) == 1


def test_the_command_of_a_kernel(tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    name, settings = STRIDED
    done = subprocess.run(
        [*IOWEIR, "tune", "--kernel", name, *settings, "--ranks", "16", "--machine", "gigabit12", "--repeat", "3",
         "-o", plan, "--json"],
        capture_output=True, text=True, check=True,
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
        assert tune.pattern_of(name) == pattern
