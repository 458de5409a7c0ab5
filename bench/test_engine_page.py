"""`make bench-engine` without measuring: plans and cases are what they say; nothing is quoted that did not happen."""

from __future__ import annotations

import json
from typing import Any

import bench_engine
import engine_cases
import engine_page
import pytest
import run
from engine_cases import AGGREGATED, AUTO, CASES, DIRECT, GROUPED, LIBRARY, ROMIO, STRATEGIES, Measured
from ioweir.base.compiled import compiled
from picture_marks import said


@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_every_strategy_has_its_own_rule(ranks: int) -> None:
    text = engine_cases.plan_text(ranks)
    rules = compiled().parse_plan(text, "plan.toml")
    assert [rule["not_executable"] for rule in rules] == [None] * len(STRATEGIES)
    for way in STRATEGIES:
        rule = rules[compiled().match_plan(text, "plan.toml", f"/scratch/{way}.data")]
        assert rule["match"] == f"{way}.data"
        keys = {name: value.strip('"') for name, value in rule["keys"].items()}
        if way == AUTO:
            assert (keys["writers"], keys["domains"]) == ("auto", "cyclic")
        elif way in {DIRECT, GROUPED}:
            assert keys["writers"] == "everyone"
            assert keys["mapping"] == (f"grouped:{ranks}" if way == GROUPED else "shared")
        else:
            assert keys["writers"] == f"aggregators:{max(2, ranks // 2)}"
            domains, order = ("even", "contention-free") if way == "contention-free" else (way, "sequential")
            assert (keys["domains"], keys["order"]) == (domains, order)
    assert compiled().match_plan(text, "plan.toml", "/scratch/lattice.data") is None  # the library's own


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_rank_moves_16_mib_a_call(case: engine_cases.Case) -> None:
    ranks = 4
    plan = '[[file]]\nmatch = "*"\n'
    made = compiled().explain_kernel(
        plan, "p", 0, case.words[0], ranks, list(case.words[1:]), 1, compiled().Machine(), True, False
    )
    assert made["summary"]["bytes_requested"] >= ranks * (16 << 20)
    assert case.runs_on(4)
    assert case.runs_on(2) == (case.name != "btio")


def report(**rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {"plan": {"applied": [], "passed_through": [], "engine": [], **rows}}


def test_a_strategy_counts_only_if_the_trace_says_it_ran() -> None:
    direct = {
        "path": "/x/direct.data",
        "text": 'rule "direct.data": mapping shared, writers everyone, order sequential',
    }
    even = {"path": "/x/even.data", "text": 'rule "even.data": mapping shared, writers aggregators:2, domains even'}
    moved = [
        {"path": "/x/direct.data", "bytes": 5, "exchanges": 0},
        {"path": "/x/even.data", "bytes": 5, "exchanges": 1},
    ]
    ways = (DIRECT, "even")
    assert engine_cases.departures(report(applied=[direct, even], engine=moved), ways) == {}
    passed = [{"path": "/x/even.data", "text": "not executed by this version", "calls": 3}]
    assert engine_cases.departures(report(applied=[direct], passed_through=passed, engine=moved), ways) == {
        "even": "not executed by this version"
    }
    assert engine_cases.departures(report(applied=[direct, even], engine=moved[:1]), ways) == {
        "even": "the engine moved no byte"
    }
    assert engine_cases.departures(report(applied=[direct], engine=moved), ways) == {
        "even": "the trace does not say that the rule was applied"
    }
    alone = [moved[0], {**moved[1], "exchanges": 0}]
    assert engine_cases.departures(report(applied=[direct, even], engine=alone), ways) == {
        "even": "no exchange took place"
    }
    wrong = {"path": "/x/even.data", "text": "writers everyone"}
    assert engine_cases.departures(report(applied=[direct, wrong], engine=moved), ways) == {
        "even": "applied was: writers everyone"
    }


def test_ways_take_turns() -> None:
    assert engine_cases.rotated("abc", 0) == ["a", "b", "c"]
    assert engine_cases.rotated("abc", 4) == ["b", "c", "a"]
    assert engine_cases.modes_of([LIBRARY, "posix"]) == "mpiio:library.data,posix:posix.data"
    assert engine_cases.modes_of([ROMIO, engine_cases.ALONE]) == "mpiio:romio321.data,mpiio:library-alone.data"
    assert engine_cases.modes_of([DIRECT, "cyclic"]) == "mpiio:direct.data,mpiio:cyclic.data"


def measured(rounds: int = 15) -> Measured:
    """Rounds in which the machine's speed doubles each time; the ways keep their ratios."""
    factors = {LIBRARY: 1.0, ROMIO: 2.0, "posix": 4.0, "exchange": 3.0, "fpp": 8.0, AUTO: 3.5, DIRECT: 3.5, "even": 1.5}
    factors |= {engine_cases.beside(way, ROMIO): 3.0 for way in (AUTO, DIRECT)}
    factors |= {engine_cases.beside("even", ROMIO): 1.0}
    speeds = {
        way: {direction: [factor * 2.0**number for number in range(rounds)] for direction in engine_cases.DIRECTIONS}
        for way, factor in factors.items()
    }
    speeds[engine_cases.ALONE] = speeds[LIBRARY]
    lost = {way: "passed through" for way in AGGREGATED if way != "even"}
    return Measured("tmpfs (memory)", "openmpi", 4, "lattice", speeds, lost)


def test_ratios_are_of_rounds_and_to_the_better_library() -> None:
    result = measured()
    assert engine_page.best_library(result, "write") == ROMIO
    against_romio = engine_page.ratio(result, DIRECT, ROMIO, "write")
    assert against_romio is not None
    assert (against_romio.median, against_romio.low, against_romio.high) == (1.5, 1.5, 1.5)  # in one process
    assert engine_page.ratio(result, "cyclic", ROMIO, "write") is None


def test_the_page_says_what_was_missed_and_what_was_not_done() -> None:
    failed = Measured("tmpfs (memory)", "mpich", 2, "lattice", failed="it ended with 1")
    document = {
        "date": "2026-01-01", "machine": {"processors": 2, "processor": "x", "kernel": "6", "load_before": 0.0},
        "load_after": 0.0, "pairs": 15, "elapsed_s": 1.0, "results": [measured(), failed],
    }  # fmt: skip
    text = bench_engine.page(document, quick=False)
    # 3.5 of 4.0 is below 0.9, in both directions; 3.5 is above 2.0 and 3.0.
    assert "Of 6 comparisons: 4 held, 0 open, 2 missed." in text
    assert "- lattice, Open MPI, 4 ranks, tmpfs (memory), write: 0.88 [0.88, 0.88] of pwrite, bar 0.9" in text
    assert "- `cyclic`, lattice, Open MPI, 4 ranks, tmpfs (memory): passed through" in text
    assert "| Open MPI, 4 | write | 1.50 [1.50, 1.50] | 0.50 [0.50, 0.50] |" + " not as planned |" * 5 in text
    assert "MPICH, 2 ranks: no figures: it ended with 1" in text
    assert "too few rounds" not in text
    assert "too few rounds" in bench_engine.page(document, quick=True)


def test_throttled_targets_are_compared_with_the_sum_of_their_rates() -> None:
    result = measured()
    result.storage, result.nominal_mib_per_s = bench_engine.THROTTLED, 100.0
    result.speeds = {
        way: {direction: [50.0, 90.0, 98.0] for direction in engine_cases.DIRECTIONS} for way in STRATEGIES
    }
    text = "\n".join(engine_page.tables([result]))
    assert f"## Files on {bench_engine.THROTTLED}" in text
    assert "| Open MPI, 4 | write | 100 |" + " 0.90 [0.50, 0.98] |" * 3 + " not as planned |" * 5 in text
    assert "Of 0 comparisons" in "\n".join(engine_page.bars([result]))
    assert said(engine_page.picture([result])) == []


def test_the_picture_has_a_dot_for_each_ratio() -> None:
    assert said(engine_page.picture([measured()])) == [
        f"lattice, Open MPI, 4 ranks, tmpfs, {direction}: {way}"
        for direction in engine_cases.DIRECTIONS
        for way in ("auto 1.50 [1.50, 1.50]", "direct 1.50 [1.50, 1.50]", "even 0.50 [0.50, 0.50]")
    ]


def test_quick_is_small_and_results_can_be_written() -> None:
    options = bench_engine.parse(["--quick"])
    assert (options.pairs, options.kernel, options.storage) == (3, ["strided-64K", "lattice"], ["tmpfs"])
    assert bench_engine.parse([]).pairs == 15
    assert bench_engine.parse(["--ranks", "8"]).ranks == [8]
    assert json.loads(json.dumps(measured(2), default=run.to_json))["case"] == "lattice"
