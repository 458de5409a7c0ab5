"""Gains on the page of `make bench-findings`: judged by the median of pairs, and by the interval of that median."""

from __future__ import annotations

from typing import Any

import findings_page
import pytest
from planted import Case

CASE = Case(code="small-requests", name="of-64", words={})
KNOWN = {CASE.title: CASE}


def rows(planted: list[float], repaired: list[float], low: float, high: float, may_cost: float = 0.0) -> list[Any]:
    """A traced run with a finding, and runs of both twins in turn."""
    gain = {"low": low, "high": high, "may_cost": may_cost}
    same = {"case": CASE.title, "mpi": "mpich"}
    found = {"what": "findings", "kind": "planted", "findings": [{"code": CASE.code, "gain": gain}], **same}
    return [found, {"what": "gain", "kind": "both", "seconds": {"planted": planted, "repaired": repaired}, **same}]


def test_what_slows_both_runs_of_a_pair_down_changes_no_gain() -> None:
    """Differences are 1, 1, 1, 1, 1 and 2 s, though the machine was ten times as slow in between."""
    (gain,) = findings_page.gains(rows([2, 20, 2, 30, 2, 4], [1, 19, 1, 29, 1, 2], 0.5, 1.5), KNOWN)
    assert (gain.measured, gain.spread.low, gain.spread.high) == (1, 1, 2)
    assert gain.inside
    assert gain.reached


@pytest.mark.parametrize(("high", "inside", "reached"), [(1.5, False, True), (0.5, False, False), (2.5, True, True)])
def test_inside_is_the_median_and_the_second_figure_is_its_interval(high: float, inside: bool, reached: bool) -> None:
    """Differences of 1 to 3 s, 2 s in the median."""
    (gain,) = findings_page.gains(rows([2, 3, 4], [1, 1, 1], 0.2, high), KNOWN)
    assert (gain.inside, gain.reached) == (inside, reached)
    said = "\n".join(findings_page._gains([gain]))
    assert f"Inside of the interval: {int(inside)} of 1" in said
    assert f"The measured interval meets the stated one: {int(reached)} of 1" in said
    assert f"Above it: {int(not inside)}, below: 0." in said


def test_where_a_repair_may_cost_the_stated_interval_begins_below_0() -> None:
    (gain,) = findings_page.gains(rows([1, 1, 1], [2, 2, 2], 0.0, 1.0, may_cost=1.5), KNOWN)
    assert (gain.low, gain.measured, gain.inside, gain.narrow) == (-1.5, -1, True, False)
