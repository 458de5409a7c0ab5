"""How predictions of one node are judged, and the section of the page about them.

Not here: storages and runs (bench_sim_node.py).
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ioweir.loop import kernel_runs
from regrets import regret
from sim_lab_page import outcome

if TYPE_CHECKING:
    from bench_sim_node import Row

MEDIAN_BAR, P90_BAR, COVERAGE_BAR, REGRET_BAR, NEAR = 0.15, 0.35, 0.85, 0.90, 0.10


@dataclass(frozen=True)
class Facts:
    """About the measurement."""

    written: str
    fitted: Mapping[str, Mapping[str, Any]]
    """Calibrations, by storage and library."""
    load_before: float
    load_after: float
    took_s: float
    repeats: int
    ranks: int
    processors: int


@dataclass(frozen=True)
class Choice:
    """Of a storage, library and kernel: the strategy that was ranked first, and the best of those measured."""

    storage: str
    what: str
    first: str
    best: str
    regret: float
    """How much longer the first takes than the best, writing and reading together; the best found by other runs."""
    of_same_runs: float
    """The same with the best of the runs in which it is compared: the luckiest strategy."""


def choices(rows: Sequence[Row]) -> list[Choice]:
    """By the sum of writing and reading, which is what `tune` ranks."""
    found = []
    for key in dict.fromkeys((row.storage, row.mpi, row.kernel, row.settings) for row in rows):
        mine = [row for row in rows if (row.storage, row.mpi, row.kernel, row.settings) == key]
        foretold: dict[str, float] = {}
        measured: dict[str, float] = {}
        for row in mine:
            foretold[row.strategy] = foretold.get(row.strategy, 0.0) + row.median
            measured[row.strategy] = measured.get(row.strategy, 0.0) + statistics.median(row.measured)
        first, best = min(foretold, key=foretold.__getitem__), min(measured, key=measured.__getitem__)
        runs = {name: sums([row.runs for row in mine if row.strategy == name]) for name in measured}
        found.append(
            Choice(
                key[0], f"{key[0]}, {key[1]}, {key[2]}", first, best,
                regret(runs, first, kernel_runs.typical), measured[first] / measured[best] - 1,
            )
        )  # fmt: skip
    return found


def sums(directions: Sequence[Sequence[float]]) -> list[float]:
    """Of each run, writing and reading."""
    return [sum(times) for times in zip(*directions, strict=True)]


def near(chosen: Sequence[Choice]) -> float:
    """Share of those that are within NEAR of the best."""
    return sum(one.regret <= NEAR for one in chosen) / len(chosen)


def text(predicted: Sequence[Row], facts: Facts) -> str:
    """The section."""
    rows = [row for row in predicted if row.measured]
    chosen = choices(rows)
    lines = [
        "## Foretold and measured: one node, in memory and on its disk",
        "",
        f"`make bench-sim-node RECORD=1`. {facts.ranks} ranks on {facts.processors} processors, files in memory",
        "(`tmpfs`) and on a local ext4 (`disk`). A case is a kernel under one strategy of `ioweir tune`, or without a",
        "plan (`library`), written to `fsync` or read back, without opening and closing. The strategies take turns.",
        f"The lower quartile of {facts.repeats} runs counts, for other work on the machine only makes a run longer.",
        "The best strategy is looked for in half of the runs and compared in the other half, for all ways to halve",
        "them (`bench/regrets.py`). The least of many noisy times is only the luckiest.",
        "Each storage and library has a machine of its own from `ioweir calibrate --kernels`, which ran `ior-strided`",
        "and `ior-segmented`. The kernels below were not in the",
        f"fit. Predictions were written down before anything of them was measured: {facts.written}.",
        f"Load {facts.load_before:.1f} before, {facts.load_after:.1f} after; {facts.took_s:.0f} s in all.",
        "",
        "| bar | " + " | ".join(storages := list(dict.fromkeys(row.storage for row in rows))) + " |",
        "|---|" + "---:|" * len(storages),
    ]
    lines += bars(rows, chosen, storages)
    lines += [
        "",
        f"{len(predicted)} cases were predicted, and {len(rows)} measured"
        f"{': the time was up' if len(rows) < len(predicted) else ''}. By part:",
        "",
        "| part | cases | median error | 90th percentile | in the interval |",
        "|---|---:|---:|---:|---:|",
    ]
    for name, mine in parts(rows).items():
        one = outcome(mine)
        lines.append(f"| {name} | {one.cases} | {one.median:.1%} | {one.p90:.1%} | {one.covered:.0%} |")
    lines += ["", "Strategies ranked first that were worse than the best by more than that:", ""]
    lines += [
        f"- {one.what}: {one.first}, {one.regret:.0%} slower than {one.best}" for one in chosen if one.regret > NEAR
    ] or ["- none"]
    lines += ["", "Calibrations:", "", *calibrations(facts)]
    return "\n".join(lines) + "\n"


def verdict(met: bool) -> str:
    """Of a bar."""
    return "met" if met else "missed"


def luckiest(chosen: Sequence[Choice]) -> float:
    """The same with the best of the runs in which it is compared."""
    return sum(one.of_same_runs <= NEAR for one in chosen) / len(chosen)


def bars(rows: Sequence[Row], chosen: Sequence[Choice], storages: Sequence[str]) -> list[str]:
    """A line each, a column a storage."""
    outcomes = [outcome([row for row in rows if row.storage == name]) for name in storages]
    first = [[one for one in chosen if one.storage == name] for name in storages]

    def line(said: str, cells: Sequence[tuple[str, bool]]) -> str:
        return f"| {said} | " + " | ".join(f"{cell}: {verdict(met)}" for cell, met in cells) + " |"

    return [
        line(f"median error at most {MEDIAN_BAR:.0%}", [(f"{o.median:.1%}", o.median <= MEDIAN_BAR) for o in outcomes]),
        line(f"90th percentile at most {P90_BAR:.0%}", [(f"{o.p90:.1%}", o.p90 <= P90_BAR) for o in outcomes]),
        line(
            f"interval holds the measured value in at least {COVERAGE_BAR:.0%}",
            [(f"{o.covered:.0%}", o.covered >= COVERAGE_BAR) for o in outcomes],
        ),
        line(
            f"strategy ranked first within {NEAR:.0%} of the best in at least {REGRET_BAR:.0%}",
            [
                (
                    f"{near(mine):.0%} of {len(mine)} ({luckiest(mine):.0%} by the same runs)",
                    near(mine) >= REGRET_BAR,
                )
                for mine in first
            ],
        ),
    ]


def parts(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """By what might matter."""
    found: dict[str, list[Row]] = {}
    for attribute in ("mpi", "direction", "strategy", "kernel"):
        for storage in dict.fromkeys(row.storage for row in rows):
            for name in dict.fromkeys(str(getattr(row, attribute)) for row in rows):
                mine = [row for row in rows if str(getattr(row, attribute)) == name and row.storage == storage]
                if mine:
                    found[f"{storage}, {name}"] = mine
    return found


def calibrations(facts: Facts) -> list[str]:
    """What each says of itself."""
    lines = []
    for name, fitted in facts.fitted.items():
        held = fitted["held_out"]
        unknown = ", ".join(f"`{one['name']}`" for one in fitted["figures"] if not one["determined"]) or "nothing"
        lines.append(
            f"- {name}: {fitted['cases']} cases; held-out error {held['median']:.1%} (median), {held['p90']:.1%} (90th "
            f"percentile), a kernel left out at a time. Not determined: {unknown}."
        )
    return lines
