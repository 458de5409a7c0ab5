"""How tuned plans are judged, on cases whose outcome is known beforehand; and how cases are drawn."""

from __future__ import annotations

import time

import loop_cases
import loop_page
from loop_page import AS_IT_IS, MEASURED, SIMULATED, Row


def row(simulated: str, measured: str, *, drawn: bool = False) -> Row:
    """As it is takes 4 s, `good` 1 s, `near` 1.05 s, `harmful` 6 s."""
    seconds = {AS_IT_IS: [4.0, 4.0, 4.1], "good": [1.0, 1.0, 1.0], "near": [1.0, 1.05, 1.1], "harmful": [6.0, 6.1, 6.0]}
    found = Row(f"case {simulated} {measured}", "tmpfs", drawn, seconds, {SIMULATED: simulated, MEASURED: measured})
    found.predicted = {how: (3.0, 5.0) for how, strategy in found.plans.items() if strategy != AS_IT_IS}
    return found


def test_regret_is_against_the_best_of_all() -> None:
    one = row("good", "near")
    assert one.best() == "good"
    assert one.regret(SIMULATED) == 0
    assert round(one.regret_of_same_rounds(MEASURED), 9) == 0.05
    assert one.gain(SIMULATED) == 4
    assert one.inside(SIMULATED)
    assert row(AS_IT_IS, AS_IT_IS).regret_of_same_rounds(MEASURED) == 3
    assert 3 <= row(AS_IT_IS, AS_IT_IS).regret(MEASURED) < 3.1


def test_harm_and_a_broken_promise_miss_their_bars() -> None:
    lines = loop_page.bars([row("good", "harmful"), row("near", AS_IT_IS)], MEASURED)
    assert "0% of 2 (0% by the same rounds) | missed" in lines[0]
    assert "1 slower | missed" in lines[1]
    assert "0% of 1 plans | missed" in lines[2]
    assert all(
        line.endswith("| met |") for line in loop_page.bars([row("good", "harmful"), row("near", "good")], SIMULATED)
    )


def test_no_plan_anywhere_is_no_promise_kept() -> None:
    assert "- of 0 plans | missed" in loop_page.bars([row(AS_IT_IS, AS_IT_IS)], MEASURED)[2]


def test_the_page_names_what_failed_and_does_not_judge_few_cases() -> None:
    failed = Row("it broke", "disk", True, failed="killed")
    document = {
        "machine": {"processors": 2, "processor": "x", "kernel": "6", "load_before": 0.0},
        "seed": "abc", "rounds": 3, "first": "then", "rows": [row("good", "good"), failed],
    }  # fmt: skip
    page = loop_page.page(document, time.monotonic(), False)
    assert "1 cases of at least 60" in page
    assert "- failed: it broke: killed" in page
    assert "| tmpfs | 1 | 100% | 100% | 1 | 1 | 4.00 | 4.00 |" in page


def test_half_of_the_cases_are_drawn_and_the_seed_repeats_them() -> None:
    found = loop_cases.cases(["mpich", "openmpi"], loop_cases.STORAGES, "a seed")
    assert len(found) == 64
    assert sum(case.drawn for case in found) == 32
    assert found == loop_cases.cases(["mpich", "openmpi"], loop_cases.STORAGES, "a seed")
    others = loop_cases.cases(["mpich", "openmpi"], loop_cases.STORAGES, "another")
    assert [case for case in found if case.drawn] != [case for case in others if case.drawn]
    assert [case for case in found if not case.drawn] == [case for case in others if not case.drawn]
    assert len({case.title for case in found}) == 64
