"""The page of storage targets: every figure is on it, and a bar that is missed is named."""

from __future__ import annotations

import targets_page
from targets_runs import CHOSEN, FREE, GROWTHS, STRIPED, SUBFILED, Runs, Way

MIB = 1 << 20


def some_runs() -> Runs:
    """Each figure is another one."""
    runs = Runs(target_rate=10 * MIB, targets=8, ideal_mib_per_s=70.0, probe_s=[1.0, 1.2])
    for i, file in enumerate((CHOSEN, SUBFILED, STRIPED, *FREE.values())):
        runs.fixed[file] = Way([66.0 + i, 68.0 + i], [63.0, 63.0])
    runs.varied = {CHOSEN: Way([60.0, 61.0], [60.0, 60.0]), SUBFILED: Way([10.0, 40.0], [9.0, 9.0])}
    runs.aggregators = {free: [1.0, 1.5] for free in FREE.values()}
    runs.exchange_share = dict.fromkeys(FREE.values(), 0.34)
    runs.work_share = dict.fromkeys(FREE.values(), 0.004)
    runs.reading_share = dict.fromkeys(FREE.values(), 0.05)
    runs.rebalanced = [0.81, 0.88, 0.18, 0.97]
    runs.log_share, runs.log_right = 0.96, True
    return runs


def test_all_figures_are_on_the_page() -> None:
    text = "\n".join(targets_page.lines_of(some_runs()))
    figures = ["| 67.0 | 1.41 | 0.96 | 0.90 |", "34.0 % | 0.40 % | 5.00 %", "| 1024 | 0.81 |", "| 2048 | 0.88 |"]
    figures.append("0.96 of the sum")
    assert [figure for figure in figures if figure not in text] == []
    assert text.count("`rebalance = true`") == 3
    assert len(GROWTHS) == 4
    assert "is the same, byte for byte" in text


def test_bars_that_are_missed_are_named() -> None:
    runs = some_runs()
    assert targets_page.missed_bars(runs) == []
    runs.fixed[CHOSEN].written = [60.0, 61.0]
    runs.rebalanced[1] = 0.7
    runs.rebalanced[3] = 0.79
    runs.work_share[FREE[CHOSEN]] = 0.02
    runs.log_right = False
    missed = targets_page.missed_bars(runs)
    assert len(missed) == 5
    assert "0.86 of the ideal, not 0.9" in missed[0]
    assert missed[1].startswith("exchange: 2.0 per cent")
    assert "2048 MiB: 0.70 of" in missed[2]
    assert "no target is slowed, 1024 MiB: 0.79 of" in missed[3]
    assert "wrong bytes" in missed[4]
