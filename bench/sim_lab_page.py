"""How predictions of the lab are judged, and the section of the page about them.

Not here: labs and runs (bench_sim_lab.py).
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from bench_sim_lab import Row

MEDIAN_BAR, P90_BAR, COVERAGE_BAR, REGRET_BAR, NEAR = 0.10, 0.25, 0.85, 0.90, 0.10
SAME = 1.05
"""Targets that differ by less are as fast as each other."""


@dataclass(frozen=True)
class Facts:
    """About the measurement."""

    written: str
    fitted: dict[str, Any]
    load_before: float
    load_after: float
    took_s: float
    repeats: int


class Foretold(Protocol):
    """A case: the interval that was foretold, and what was measured."""

    median: float
    low: float
    high: float
    measured: list[float]


@dataclass(frozen=True)
class Outcome:
    """Of some cases."""

    cases: int
    median: float
    p90: float
    covered: float


def error(row: Foretold) -> float:
    """Of the predicted median."""
    measured = statistics.median(row.measured)
    return abs(row.median - measured) / measured


def outcome(rows: Sequence[Foretold]) -> Outcome:
    """Median, 90th percentile, and how many lie within their interval."""
    errors = sorted(error(row) for row in rows)
    covered = [row.low <= statistics.median(row.measured) <= row.high for row in rows]
    return Outcome(len(rows), statistics.median(errors), errors[int(0.9 * (len(errors) - 1) + 0.5)],
                   sum(covered) / len(rows))  # fmt: skip


def regrets(rows: Sequence[Row]) -> list[tuple[str, str, str, float]]:
    """Of each lab, MPI library and kernel: what was ranked first, what was best, and how much worse the first was."""
    found = []
    for key in dict.fromkeys((row.targets, row.slow, row.mpi, row.kernel) for row in rows):
        mine = [row for row in rows if (row.targets, row.slow, row.mpi, row.kernel) == key]
        first = min(mine, key=lambda row: row.median)
        best = min(mine, key=lambda row: statistics.median(row.measured))
        worse = statistics.median(first.measured) / statistics.median(best.measured) - 1
        what = f"{key[0]} targets{', one slow' if key[1] else ''}, {key[2]}, {key[3]}"
        found.append((what, first.strategy, best.strategy, worse))
    return found


def verdict(met: bool) -> str:
    """Of a bar."""
    return "met" if met else "missed"


def text(predicted: Sequence[Row], facts: Facts) -> str:
    """The section."""
    rows = [row for row in predicted if row.measured]
    whole, choices = outcome(rows), regrets(rows)
    good = sum(worse <= NEAR for *_, worse in choices) / len(choices)
    fitted = facts.fitted
    lines = [
        "## Foretold and measured: throttled targets",
        "",
        "`make bench-sim-lab RECORD=1` (root). Loop devices of 12 MB/s each, 4 ranks, both MPI libraries; seconds to",
        f"`fsync`, without opening; median of {facts.repeats} runs. One machine is calibrated on 4 equal targets",
        "(`ioweir calibrate`: their files measured, and runs of `ior-strided`). Kernels, numbers of targets and slow",
        "targets below were not in the fit; which target is slow, a probe of each lab said. Predictions were written",
        f"down before anything of them was measured: {facts.written}.",
        f"Load {facts.load_before:.0f} before, {facts.load_after:.0f} after, 2 processors shared with others; "
        f"{facts.took_s:.0f} s in all.",
        "",
        f"Calibration: {fitted['cases']} cases; held-out error {fitted['held_out']['median']:.1%} (median), "
        f"{fitted['held_out']['p90']:.1%} (90th percentile). Not determined by them: "
        + (", ".join(f"`{one['name']}`" for one in fitted["figures"] if not one["determined"]) or "nothing")
        + ".",
        "",
        "| bar | found | |",
        "|---|---:|---|",
        f"| median error at most {MEDIAN_BAR:.0%} | {whole.median:.1%} | {verdict(whole.median <= MEDIAN_BAR)} |",
        f"| 90th percentile at most {P90_BAR:.0%} | {whole.p90:.1%} | {verdict(whole.p90 <= P90_BAR)} |",
        f"| interval holds the measured value in at least {COVERAGE_BAR:.0%} | {whole.covered:.0%} "
        f"| {verdict(whole.covered >= COVERAGE_BAR)} |",
        f"| strategy ranked first within {NEAR:.0%} of the best in at least {REGRET_BAR:.0%} "
        f"| {good:.0%} of {len(choices)} "
        f"| {verdict(good >= REGRET_BAR)} |",
        "",
        f"{len(predicted)} cases were predicted, and {len(rows)} measured"
        + (
            ": the time was up, and the largest labs come last. By part:"
            if len(rows) < len(predicted)
            else ". By part:"
        ),
        "",
        "| part | cases | median error | 90th percentile | in the interval |",
        "|---|---:|---:|---:|---:|",
    ]
    labs = dict.fromkeys((row.targets, row.slow) for row in rows)
    parts = {
        f"{count} targets{', one slow' if slow else ''}": [row for row in rows if (row.targets, row.slow) == lab]
        for lab in labs
        for count, slow in [lab]
    }
    for field in ("strategy", "kernel", "mpi"):
        for name in dict.fromkeys(getattr(row, field) for row in rows):
            parts[name] = [row for row in rows if getattr(row, field) == name]
    for name, mine in parts.items():
        one = outcome(mine)
        lines.append(f"| {name} | {one.cases} | {one.median:.1%} | {one.p90:.1%} | {one.covered:.0%} |")
    lines += ["", "Strategies ranked first that were worse than the best by more than that:", ""]
    lines += [
        f"- {what}: {first}, {worse:.0%} slower than {best}" for what, first, best, worse in choices if worse > NEAR
    ] or ["- none"]
    return "\n".join(lines) + "\n"


def kept(page: Path) -> str:
    """All sections between marks, with the marks: of a page that is written anew otherwise."""
    old = page.read_text(encoding="utf-8") if page.exists() else ""
    found = re.findall(r"<!-- (\w+): begin -->.*?<!-- \1: end -->\n", old, re.DOTALL | re.MULTILINE)
    return "".join(f"\n{_between(old, name)}" for name in found)


def _between(text: str, name: str) -> str:
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    return f"{begin}{text.partition(begin)[2].partition(end)[0]}{end}\n"


def put(page: Path, section: str, name: str = "lab") -> None:
    """In place of what stands between the marks of that name, or at the end."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    old = page.read_text(encoding="utf-8") if page.exists() else ""
    before, _, rest = old.partition(begin)
    after = rest.partition(end)[2].lstrip("\n")
    whole = f"{before.rstrip()}\n\n{begin}\n\n{section}\n{end}\n"
    page.write_text((whole + (f"\n{after}" if after else "")).lstrip(), encoding="utf-8")
