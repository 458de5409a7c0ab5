"""How the plans of `ioweir tune` are judged, and the page about them: docs/results/loop.md.

Not here: the runs (bench_loop.py), the cases (loop_cases.py).
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pairs
import regrets
import run

AS_IT_IS = "as it is"
SIMULATED, MEASURED = "simulated", "measured"
NEAR, NEAR_BAR, INSIDE_BAR, LEAST_CASES = 0.10, 0.90, 0.80, 60
SLOWER = 1.03
"""Time over the time without a plan; wholly above is slower beyond the noise."""

INTRODUCTION = """\
# Results: what `ioweir tune` chooses

Whether the plan that [`ioweir tune`](../how-to/let-ioweir-choose.md) writes is near the best that there is. Repeat with

    make bench-loop              # builds, measures, writes build/bench/loop.{json,md}; root, for the labs
    make bench-loop RECORD=1     # the same, and into this page
    make bench-loop ARGS=--resume   # after an interruption: what is left

A case is a kernel of four ranks on a storage, under one MPI library. It is traced once, and planned for twice: by
simulation alone (`tune`), and with replays (`tune --measure`). What was predicted is written to `build/bench/loop-
predictions.jsonl`, with the time, before the case is measured. Then every strategy that `tune` tries, the program as
it is, and the two plans move the same bytes in one process. They take turns, each with a file of its own. A time is
opening, writing to `fsync`, reading back and closing: the median of the rounds. There are
five rounds, and up to 25 as long as they take less than 15 s; on targets, whose rate is set, there are three.

*Regret* is how much longer the plan takes than the best of all strategies. The best is looked for in half of the
rounds, and compared with the plan in the other half, for all ways to halve them (`bench/regrets.py`): the least of many
noisy times is only the luckiest. A second figure has the best and the comparison in the same rounds.

Half of the cases have parameters that are drawn from a seed. The seed is the commit that is measured, so that nobody
has seen them before. Of buffers one size is tried (16 MiB): no kernel here asks for as much in one call.

Storage: `tmpfs` is memory, `disk` a local file system. `targets` are four loop devices of 12 MB/s each, of which `one
slow` has one at 40 %. There the files lie on the first target. `tune` knows the machine
beforehand: the targets from `ioweir calibrate --targets`, memory and disk from `ioweir calibrate --kernels`, once for
each MPI library.
"""


@dataclass
class Row:
    """A case and what came of it."""

    title: str
    storage: str
    drawn: bool
    seconds: dict[str, list[float]] = field(default_factory=dict)
    """Of each strategy in each round."""
    plans: dict[str, str] = field(default_factory=dict)
    """SIMULATED and MEASURED: the strategy that the plan has; AS_IT_IS where none is written."""
    predicted: dict[str, tuple[float, float]] = field(default_factory=dict)
    """The time without a plan over that with it: the interval stated, where a plan is written."""
    replays: int = 0
    failed: str = ""

    def time(self, strategy: str) -> float:
        """The median of the rounds, in seconds."""
        return statistics.median(self.seconds[strategy])

    def best(self) -> str:
        """The strategy with the least time."""
        return min(self.seconds, key=self.time)

    def regret(self, how: str) -> float:
        """How much longer the plan takes than the best; 0.1 is a tenth, and below 0 it is luck."""
        return regrets.regret(self.seconds, self.plans[how])

    def regret_of_same_rounds(self, how: str) -> float:
        """The same with the best of the rounds in which it is compared: the luckiest strategy."""
        return self.time(self.plans[how]) / self.time(self.best()) - 1

    def gain(self, how: str) -> float:
        """The time without a plan over that with it."""
        return self.time(AS_IT_IS) / self.time(self.plans[how])

    def inside(self, how: str) -> bool:
        """Whether the stated interval holds the gain."""
        low, high = self.predicted[how]
        return low <= self.gain(how) <= high

    def slower(self, how: str) -> pairs.Interval:
        """The plan's time over that without, round by round."""
        both = zip(self.seconds[self.plans[how]], self.seconds[AS_IT_IS], strict=True)
        return pairs.median_interval([new / old for new, old in both])


def share(rows: Sequence[Row], holds: Callable[[Row], bool]) -> float | None:
    """Of rows; None where there are none."""
    return sum(map(holds, rows)) / len(rows) if rows else None


def percent(value: float | None) -> str:
    """A share as tables have it."""
    return "-" if value is None else f"{value:.0%}"


def verdict(met: bool) -> str:
    """A word."""
    return "met" if met else "missed"


def bars(rows: Sequence[Row], how: str) -> list[str]:
    """Lines of the table of bars."""
    close = share(rows, lambda row: row.regret(how) <= NEAR)
    luckiest = share(rows, lambda row: row.regret_of_same_rounds(how) <= NEAR)
    both = f"{percent(close)} of {len(rows)} ({percent(luckiest)} by the same rounds)"
    harmed = [row for row in rows if row.slower(how).low > SLOWER]
    stated = [row for row in rows if how in row.predicted]
    inside = share(stated, lambda row: row.inside(how))
    title = "simulation alone" if how == SIMULATED else "with replays"
    found = [
        (f"within {NEAR:.0%} of the best in {NEAR_BAR:.0%} of the cases", both,
         close is not None and close >= NEAR_BAR),
        (f"never slower than without, beyond noise (interval wholly above {SLOWER})", f"{len(harmed)} slower",
         not harmed),
        (f"the stated interval holds the gain in {INSIDE_BAR:.0%}", f"{percent(inside)} of {len(stated)} plans",
         inside is not None and inside >= INSIDE_BAR),
    ]  # fmt: skip
    return [f"| {title} | {bar} | {value} | {verdict(met)} |" for bar, value, met in found]


def parts(rows: Sequence[Row]) -> list[str]:
    """A table by storage, and by whether the parameters were drawn."""
    groups = {name: [row for row in rows if row.storage == name] for name in dict.fromkeys(row.storage for row in rows)}
    groups["parameters as always"] = [row for row in rows if not row.drawn]
    groups["parameters drawn"] = [row for row in rows if row.drawn]
    titles = ("part", "cases", "near, simulated", "near, replayed", "plans, simulated", "plans, replayed",
              "median gain, replayed", "best possible")  # fmt: skip
    lines = [f"| {' | '.join(titles)} |", "|---|---:|---:|---:|---:|---:|---:|---:|"]
    for name, mine in groups.items():
        if mine:
            possible = statistics.median(row.time(AS_IT_IS) / row.time(row.best()) for row in mine)
            cells = [name, str(len(mine)), near(mine, SIMULATED), near(mine, MEASURED)]
            cells += [str(sum(row.plans[how] != AS_IT_IS for row in mine)) for how in (SIMULATED, MEASURED)]
            cells += [f"{statistics.median(row.gain(MEASURED) for row in mine):.2f}", f"{possible:.2f}"]
            lines.append(f"| {' | '.join(cells)} |")
    return lines


def near(rows: Sequence[Row], how: str) -> str:
    """The share of rows whose plan is near the best."""
    return percent(share(rows, lambda row: row.regret(how) <= NEAR))


def all_cases(rows: Sequence[Row]) -> list[str]:
    """One line a case."""
    lines = [
        "| case | best | gain of the best | simulated | regret | replayed | regret | stated | found |",
        "|---|---|---:|---|---:|---|---:|---:|---:|",
    ]
    for row in rows:
        stated = row.predicted.get(MEASURED)
        text = "-" if stated is None else f"{stated[0]:.2f} to {stated[1]:.2f}"
        best = f"{row.best()} | {row.time(AS_IT_IS) / row.time(row.best()):.2f}"
        simulated, measured = (f"{row.plans[how]} | {row.regret(how):.0%}" for how in (SIMULATED, MEASURED))
        lines.append(f"| {row.title} | {best} | {simulated} | {measured} | {text} | {row.gain(MEASURED):.2f} |")
    return lines


def page(document: dict[str, Any], begun: float, quick: bool) -> str:
    """The whole page."""
    rows: list[Row] = [row for row in document["rows"] if not row.failed]
    failed: list[Row] = [row for row in document["rows"] if row.failed]
    about = f"seed {document['seed']}; predictions from {document['first']} on; "
    lines = [INTRODUCTION, run.heading(document["machine"], begun, about), ""]
    if quick or len(rows) < LEAST_CASES:
        lines += [f"**{len(rows)} cases of at least {LEAST_CASES}: the bars are not judged by so few.**", ""]
    lines += ["## Bars", "", "| plans by | bar | found | |", "|---|---|---|---|"]
    lines += [*bars(rows, SIMULATED), *bars(rows, MEASURED), "", "## By part", "", *parts(rows), ""]
    lines += [f"- failed: {row.title}: {row.failed}" for row in failed]
    lines += ["", "## All cases", "", *all_cases(rows)]
    return "\n".join(lines) + "\n"
