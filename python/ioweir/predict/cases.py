"""Cases for a calibration that are simulated: extents that ranks moved, and kernels that ran under a plan.

Lives here: how a measured case is simulated, on some or all targets of a machine. Not here: measuring (measured.py),
traces (traced.py), the fit (fitting.py).
"""

from __future__ import annotations

import itertools
import json
import math
import statistics
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from ioweir.base.compiled import compiled
from ioweir.base.guarded_files import read_named
from ioweir.errors import EXIT_USAGE, IoweirError, reason
from ioweir.predict.fitting import coverage
from ioweir.predict.machine import SHARE_OF_GAINS
from ioweir.predict.simulate import called, library_rule

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

EVERYONE: Final = '[[file]]\nmatch = "*"\nwriters = "everyone"\n'
SEED: Final = 1
_MOST_RUNS: Final = 64 << 20
_MOST_NUMBER: Final = 1 << 24


@dataclass(frozen=True)
class Placed:
    """Which targets of a machine a file lies on; empty: all. `slowdown`: of the machine's targets."""

    targets: tuple[int, ...] = ()
    slowdown: tuple[float, ...] = ()

    def figures(self, figures: Mapping[str, float]) -> dict[str, float]:
        """Of a machine that has these targets only."""
        if not self.targets:
            return dict(figures)
        return {**figures, "targets.count": len(self.targets)}

    def slow(self) -> list[float]:
        """Of these targets, in their order."""
        if not self.targets:
            return list(self.slowdown)
        return [self.slowdown[target] if target < len(self.slowdown) else 1.0 for target in self.targets]


@dataclass(frozen=True)
class ExtentCase:
    """What ranks moved by themselves: of each call and rank (offset, length)."""

    group: str
    seconds: float
    calls: list[list[list[tuple[int, int]]]]
    writes: bool
    placed: Placed = field(default_factory=Placed)
    own: Mapping[str, float] = field(default_factory=dict)
    """Figures that are this case's: stripes, the size of its requests, whether a write waits for the device."""

    @property
    def held_with(self) -> str:
        """As the other cases of its group."""
        return self.group

    @property
    def bytes(self) -> int:
        """Moved."""
        return sum(length for call in self.calls for rank in call for _, length in rank)

    def simulated_s(self, figures: Mapping[str, float]) -> float:
        """Without opening."""
        run = called(
            compiled().simulate_extents, self.placed.figures({**figures, **self.own}), self.placed.slow(), EVERYONE,
            "a case", 0, self.calls, 0.0, self.writes, SEED,
        )  # fmt: skip
        phase = run["write" if self.writes else "read"]
        return float(phase["seconds"] - phase["open_s"])


@dataclass(frozen=True)
class KernelCase:
    """A kernel under a plan, one direction."""

    group: str
    seconds: float
    kernel: str
    settings: tuple[str, ...]
    ranks: int
    plan: str
    bytes: int
    writes: bool = True
    placed: Placed = field(default_factory=Placed)
    by_library: bool = False
    """Without a plan: `plan` is not used."""
    family: str = ""
    """Of several groups that are held out together; "": the group is by itself."""
    processors: int = 0
    """Of the node whose ranks share them; 0: not said, and the machine says it or does not."""

    @property
    def held_with(self) -> str:
        """What is left out of a fit together."""
        return self.family or self.group

    def simulated_s(self, figures: Mapping[str, float]) -> float:
        """Without opening."""
        plan = library_rule(figures, self.ranks)[0] if self.by_library else self.plan
        if self.processors:
            figures = {**figures, "node.processors": float(self.processors)}
        run = called(
            compiled().simulate_kernel, self.placed.figures(figures), self.placed.slow(), plan, "a case", 0,
            self.kernel, self.ranks, list(self.settings), 0.0, True, not self.writes, SEED, self.by_library,
        )  # fmt: skip
        phase = run["write" if self.writes else "read"]
        return float(phase["seconds"] - phase["open_s"])


@dataclass(frozen=True)
class RatioErrors:
    """Of ratios of times that one machine took, measured over simulated. Times are of writing and reading together."""

    gains: list[float]
    """Of plans: the time without a plan over that under it."""
    plans: list[float]
    """Of two plans of one kernel each; the greater of the ratio and its inverse."""


def ratio_errors(held: Sequence[tuple[Any, float]]) -> RatioErrors:
    """Of kernels that ran without a plan and under plans. `held`: of each case measured over simulated."""
    kernels: dict[tuple[Any, ...], dict[str | None, dict[bool, tuple[float, float]]]] = {}
    for case, ratio in held:
        if isinstance(case, KernelCase):
            ways = kernels.setdefault((case.kernel, case.settings, case.ranks, case.placed), {})
            way = ways.setdefault(None if case.by_library else case.plan, {})
            way[case.writes] = (case.seconds, case.seconds / ratio)
    found = RatioErrors([], [])
    for ways in kernels.values():
        errors = {
            plan: math.fsum(measured for measured, _ in way.values()) / math.fsum(took for _, took in way.values())
            for plan, way in ways.items() if len(way) == 2
        }  # fmt: skip
        without = errors.pop(None, None)
        if without is not None:
            found.gains.extend(without / error for error in errors.values())
        found.plans.extend(max(one / other, other / one) for one, other in itertools.combinations(errors.values(), 2))
    return found


def opening(
    rows: Sequence[Mapping[str, Any]],
) -> tuple[dict[str, tuple[float, float, float]], tuple[float, float]]:
    """What plans make of opening and closing, by mapping, and what single runs are of the typical one.

    Of `rows` as loop/kernel_runs.py makes them, those with `openings_s`: seconds of each run. All that is known of a
    kernel's ways is from one job, so that what disturbed one disturbed the others.
    """
    kernels: dict[tuple[str, ...], dict[str, list[list[float]]]] = {}
    for row in rows:
        if row.get("openings_s"):
            of_kernel = kernels.setdefault((row["kernel"], *row["settings"]), {})
            of_kernel.setdefault(row["mapping"], []).append(row["openings_s"])
    ratios: dict[str, list[float]] = {}
    spread = []
    for of_kernel in kernels.values():
        for runs in itertools.chain.from_iterable(of_kernel.values()):
            typical = statistics.median(runs)
            spread += [run / typical for run in runs]
        for without in of_kernel.pop("", []):
            for mapping, ways in of_kernel.items():
                of_mapping = ratios.setdefault(mapping, [])
                of_mapping += [statistics.median(runs) / statistics.median(without) for runs in ways]
    plans = {
        mapping: (low, statistics.median(some), high)
        for mapping, some in ratios.items()
        for low, high in [coverage(some, SHARE_OF_GAINS)]
    }
    return plans, coverage(spread, SHARE_OF_GAINS) if spread else (1.0, 1.0)


def of_runs(file: Path, slowdown: Sequence[float] = ()) -> list[KernelCase]:
    """Runs of kernels: a JSON object a line, with kernel, settings, ranks, plan (text), write_s and read_s."""
    try:
        lines = [line for line in read_named(file, _MOST_RUNS).decode("utf-8").splitlines() if line.strip()]
    except OSError as error:
        raise IoweirError(f"--runs {file}: cannot be read: {reason(error)}", EXIT_USAGE) from error
    except UnicodeDecodeError as error:
        raise IoweirError(f"--runs {file}: is no text; write a JSON object a line, in UTF-8", EXIT_USAGE) from error
    cases = [case for number, line in enumerate(lines, 1) for case in _of_line(line, f"{file}:{number}", slowdown)]
    if not cases:
        raise IoweirError(
            f"--runs {file}: no runs; write a JSON object a line: "
            '{"kernel": "ior-strided", "settings": ["data=8 MiB"], "ranks": 4, "plan": "[[file]]...", "write_s": 1.5}',
            EXIT_USAGE,
        )
    return cases


def of_rows(rows: Sequence[Mapping[str, Any]]) -> list[KernelCase]:
    """The same of rows that are at hand; all runs of a kernel are left out of a fit together."""
    return [
        replace(case, family=json.dumps([case.kernel, case.settings]))
        for number, row in enumerate(rows)
        for case in _of_row(row, f"run {number}", ())
    ]


def _of_line(line: str, where: str, slowdown: Sequence[float]) -> list[KernelCase]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise _no_run(where, error) from error
    return _of_row(row, where, slowdown)


def _no_run(where: str, error: Exception) -> IoweirError:
    return IoweirError(
        f"{where}: not a run: {error}; give kernel, ranks, write_s or read_s, and settings, plan, targets", EXIT_USAGE
    )


def _of_row(row: Any, where: str, slowdown: Sequence[float]) -> list[KernelCase]:
    try:
        kernel, settings, ranks = str(row["kernel"]), tuple(map(str, row.get("settings", []))), int(row["ranks"])
        by_library = row.get("library", False) is True
        plan = EVERYONE if by_library else str(row.get("plan", EVERYONE))
        targets = tuple(map(int, row.get("targets", [])))
        seconds = {name: _seconds(row[f"{name}_s"]) for name in ("write", "read") if row.get(f"{name}_s") is not None}
        slow = tuple(float(value) for value in row.get("slowdown", slowdown))
        processors = int(row.get("processors", 0))
        for number in (ranks, *targets, processors):
            if not 0 <= number <= _MOST_NUMBER:
                raise ValueError(f"{str(number)[:20]} ranks, targets or processors")
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
        raise _no_run(where, error) from error
    group = json.dumps([kernel, settings, ranks, "library" if by_library else plan, targets, slow])
    # One simulation says whether it can be simulated, and how much it moves.
    run = called(
        compiled().simulate_kernel, {"targets.count": float(max(targets, default=0) + 1)}, [], plan, where, 0, kernel,
        ranks, list(settings), 0.0, True, False, SEED,
    )  # fmt: skip
    moved = int(run["write"]["bytes"])
    return [
        KernelCase(
            f"{name} {group}",
            took,
            kernel,
            settings,
            ranks,
            plan,
            moved,
            name == "write",
            Placed(targets, slow),
            by_library,
            processors=processors,
        )
        for name, took in seconds.items()
    ]


def _seconds(value: Any) -> float:
    number = float(value)
    if not math.isfinite(number) or number <= 0:
        raise ValueError(f"{value} is no time")
    return number
