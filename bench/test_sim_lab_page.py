"""How predictions are judged, on cases whose outcome is known beforehand."""

from __future__ import annotations

from pathlib import Path

import sim_lab_page
from bench_sim_lab import Row
from sim_lab_page import Facts


def row(strategy: str, median: float, measured: list[float], *, kernel: str = "btio", half: float = 0.2) -> Row:
    return Row(2, False, "mpich", kernel, (), strategy, median, median * (1 - half), median * (1 + half), measured)


ROWS = [
    row("a", 1.0, [1.0, 1.0, 5.0]),
    row("b", 1.1, [1.2, 1.0, 1.1]),
    row("a", 1.0, [2.0, 2.0, 2.0], kernel="flash"),
    row("b", 2.0, [1.0, 1.0, 1.0], kernel="flash"),
]
FACTS = Facts("written then", {"cases": 9, "held_out": {"median": 0.1, "p90": 0.2}, "figures": []}, 1.0, 2.0, 3.0, 3)


def test_errors_and_intervals() -> None:
    assert [round(sim_lab_page.error(one), 9) for one in ROWS] == [0, 0, 0.5, 1]
    whole = sim_lab_page.outcome(ROWS)
    assert whole.median == 0.25
    assert whole.covered == 0.5


def test_regret_is_of_the_choice_alone() -> None:
    (_, first, best, worse), (_, other, better, much) = sim_lab_page.regrets(ROWS)
    assert (first, best, worse) == ("a", "a", 0.0)
    assert (other, better, much) == ("a", "b", 1.0)


def test_the_page_says_what_is_missed_and_what_was_not_measured() -> None:
    page = sim_lab_page.text([*ROWS, row("c", 1.0, [])], FACTS)
    assert "5 cases were predicted, and 4 measured" in page
    assert page.count("| missed |") == 4
    assert "a, 100% slower than b" in page


def test_sections_stay_where_a_page_is_written_anew(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Top\n", encoding="utf-8")
    sim_lab_page.put(page, "one\n", "lab")
    sim_lab_page.put(page, "two\n", "papers")
    sim_lab_page.put(page, "three\n", "lab")
    text = page.read_text(encoding="utf-8")
    assert "one" not in text
    assert text.index("# Top") < text.index("three") < text.index("two")
    page.write_text("# New\n" + sim_lab_page.kept(page), encoding="utf-8")
    assert page.read_text(encoding="utf-8").count("three") == 1
    assert page.read_text(encoding="utf-8").count("two") == 1
