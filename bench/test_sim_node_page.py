"""How predictions of one node are judged, on cases whose outcome is known beforehand."""

from __future__ import annotations

import sim_node_page
from bench_sim_node import Row
from sim_node_page import Facts


def row(strategy: str, direction: str, median: float, measured: float, *, storage: str = "tmpfs") -> Row:
    return Row(storage, "mpich", "btio", (), strategy, direction, median, median * 0.8, median * 1.2, [measured] * 3,
               [measured] * 3)  # fmt: skip


ROWS = [
    row("a", "write", 1.0, 1.1),
    row("a", "read", 1.0, 1.0),
    row("b", "write", 2.0, 2.0),
    row("b", "read", 0.5, 0.5),
    row("a", "write", 1.0, 2.0, storage="disk"),
    row("b", "write", 2.0, 1.0, storage="disk"),
]
FITTED = {"cases": 9, "held_out": {"median": 0.1, "p90": 0.2}, "figures": [{"name": "x", "determined": False}]}
FACTS = Facts("written then", {"tmpfs, mpich": FITTED}, 1.0, 2.0, 3.0, 3, 4, 2)


def test_choices_are_by_writing_and_reading_together() -> None:
    memory, disk = sim_node_page.choices(ROWS)
    assert (memory.first, memory.best, memory.regret) == ("a", "a", 0.0)
    assert (disk.first, disk.best, disk.regret) == ("a", "b", 1.0)
    assert sim_node_page.near([memory, disk]) == 0.5


def test_the_page_judges_each_storage_by_itself() -> None:
    page = sim_node_page.text([*ROWS, Row("disk", "mpich", "flash", (), "a", "read", 1, 1, 1)], FACTS)
    assert "7 cases were predicted, and 6 measured: the time was up" in page
    assert page.count(": missed") == 4, "all bars of the disk"
    assert "| 90th percentile at most 35% | 9.1%: met | 100.0%: missed |" in page
    assert "- disk, mpich, btio: a, 100% slower than b" in page
    assert "Not determined: `x`." in page
