"""Sweeps: the same program simulated with other ranks, targets, files, buffers and strategies, and what of it helps.

Every point is simulated with the same seeds and the same places within what the machine file leaves open, so that a
ratio of two points is not spread by what both have in common: `ratio` is made run by run.

Lives here: axes, points, comparisons. Not here: one simulation (simulate.py), text and picture (sweep_text.py).
"""

from __future__ import annotations

import itertools
import re
import statistics
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from ioweir.base import progress, toml_text
from ioweir.base.compiled import compiled
from ioweir.errors import EXIT_USAGE, IoweirError
from ioweir.predict import simulate
from ioweir.predict.simulate import Kernel, Options, PlanRule

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ioweir.predict.machine import Machine
    from ioweir.predict.simulate import Program

AXES: Final = ("ranks", "targets", "files", "buffer", "strategy")
MOST_POINTS: Final = 400
STRATEGIES: Final[dict[str, dict[str, Any]]] = {
    "everyone": {"writers": "everyone"},
    "aggregators": {"writers": "aggregators:{nodes}", "domains": "even", "buffer": "16 MiB"},
    "cyclic": {"writers": "aggregators:{targets}", "domains": "cyclic"},
    "contention-free": {"writers": "aggregators:{targets}", "domains": "cyclic", "order": "contention-free"},
    "subfiles": {"mapping": "subfiles:{targets}", "writers": "aggregators:{targets}", "domains": "cyclic"},
    "grouped": {"mapping": "grouped:{nodes}", "writers": "everyone"},
    "log": {"mapping": "log"},
}
"""What `strategy=` names: keys of a rule. {nodes}: one a node; {targets}: one a target, at most one a rank."""


@dataclass(frozen=True)
class Axis:
    """What is varied; its first value is what the others are compared with."""

    name: str
    values: tuple[str, ...]


def axes_of(texts: Sequence[str]) -> list[Axis]:
    """From NAME=VALUE,VALUE...; refuses what is no axis and no value of it."""
    axes = []
    for text in texts:
        name, _, values = text.partition("=")
        found = tuple(dict.fromkeys(value.strip() for value in values.split(",") if value.strip()))
        if name not in AXES:
            raise IoweirError(f"--sweep {text}: no axis '{name}'; there are {', '.join(AXES)}", EXIT_USAGE)
        if not found:
            raise IoweirError(f"--sweep {text}: write {name}=VALUE,VALUE,...", EXIT_USAGE)
        for value in found:
            _check(name, value)
        axes.append(Axis(name, found))
    if len({axis.name for axis in axes}) < len(axes):
        raise IoweirError("--sweep: name each axis once", EXIT_USAGE)
    points = 1
    for axis in axes:
        points *= len(axis.values)
    if points > MOST_POINTS:
        raise IoweirError(f"--sweep: {points} points; at most {MOST_POINTS}", EXIT_USAGE)
    return axes


def _check(name: str, value: str) -> None:
    if name == "strategy" and value not in STRATEGIES:
        raise IoweirError(f"--sweep strategy={value}: there are {', '.join(STRATEGIES)}", EXIT_USAGE)
    if name == "buffer":
        try:
            compiled().parse_size(value)
        except ValueError as error:
            raise IoweirError(f"--sweep buffer={value}: {error}", EXIT_USAGE) from error
    if name in ("ranks", "targets", "files"):
        # A file is written by one rank or more.
        most = compiled().most_targets if name == "targets" else compiled().most_ranks
        if not re.fullmatch("[1-9][0-9]{0,8}", value) or int(value) > most:
            raise IoweirError(f"--sweep {name}={value:.60}: give whole numbers from 1 to {most}", EXIT_USAGE)


def sweep(options: Options, axes: Sequence[Axis]) -> dict[str, Any]:
    """All points, and how each compares with the first."""
    if options.kernel is not None and options.ranks is None:
        first = next((axis.values[0] for axis in axes if axis.name == "ranks"), None)
        options = replace(options, ranks=None if first is None else int(first))
    machine, program, plan = simulate.prepared(options)
    if not isinstance(program, Kernel) and any(axis.name == "ranks" for axis in axes):
        raise IoweirError("--sweep ranks: only of kernels; a recorded program has the ranks that it had", EXIT_USAGE)
    points: list[dict[str, Any]] = []
    for values in progress.counted(list(itertools.product(*(axis.values for axis in axes)))):
        at = dict(zip((axis.name for axis in axes), values, strict=True))
        points.append({"point": at, **_simulated(options, machine, program, plan, at)})
    reference = points[0]
    for point in points:
        for name in simulate.DIRECTIONS:
            if "error" not in point and "error" not in reference:
                point[name]["ratio"] = _ratio(reference[name]["each_s"], point[name]["each_s"])
    return {
        "simulated": True,
        "what": program.what,
        "machine": machine.name,
        "plan": plan.where_from,
        "runs": options.repeat,
        "seed": options.seed,
        "axes": {axis.name: list(axis.values) for axis in axes},
        "interval": f"the lowest and the highest of {options.repeat} runs",
        "points": points,
        "helps": _helps(points, axes),
    }


def _simulated(
    options: Options, machine: Machine, program: Program, plan: PlanRule, point: Mapping[str, str]
) -> dict[str, Any]:
    """One point; what cannot be there, such as more files than ranks, says why."""
    if "targets" in point:
        count = int(point["targets"])
        slow = {number: factor for number, factor in machine.slow_targets.items() if number < count}
        figures = {**machine.figures, "targets.count": float(count)}
        opened = {name: ends for name, ends in machine.open.items() if name != "targets.count"}
        machine = replace(machine, figures=figures, slow_targets=slow, open=opened)
    try:
        if "ranks" in point and isinstance(program, Kernel):
            program = replace(program, ranks=int(point["ranks"]))
            simulate.check_kernel(program)
        rule = _rule(plan, machine, program.ranks, point)
        runs = simulate.runs_of(program, machine, rule, options.repeat, options.seed)
    except IoweirError as error:
        return {"error": str(error)}
    row: dict[str, Any] = {"strategy": runs[0]["strategy"]}
    for name in simulate.DIRECTIONS:
        phase = simulate.phase(runs, name)
        row[name] = {
            "bytes": phase["bytes"], "seconds": phase["seconds"], "bytes_per_s": phase["bytes_per_s"],
            "perceived_bytes_per_s": phase["perceived_bytes_per_s"], "each_s": [run[name]["seconds"] for run in runs],
        }  # fmt: skip
    return row


def _rule(plan: PlanRule, machine: Machine, ranks: int, point: Mapping[str, str]) -> PlanRule:
    """The plan's rule, or a named strategy, with the point's files and buffer."""
    if not {"strategy", "files", "buffer"} & set(point):
        return plan
    nodes = -(-ranks // int(machine.figures.get("node.ranks", 1)))
    targets = min(ranks, int(machine.figures.get("targets.count", 1)))
    if "strategy" in point:
        keys = {key: value.format(nodes=nodes, targets=targets) for key, value in STRATEGIES[point["strategy"]].items()}
    else:
        keys = dict(toml_text.loads(plan.text)["file"][plan.rule])
        keys.pop("match", None)
    if "files" in point:
        kind = str(keys.get("mapping", "shared")).partition(":")[0]
        keys["mapping"] = f"{kind if kind in ('grouped', 'subfiles') else 'grouped'}:{point['files']}"
    if "buffer" in point:
        keys["buffer"] = point["buffer"]
    return PlanRule(simulate.rule_text(keys), "the sweep's plan", 0, "the sweep's plan")


def _ratio(before: Sequence[float], after: Sequence[float]) -> dict[str, float]:
    """Time before over time after, run by run."""
    ratios = sorted(a / b for a, b in zip(before, after, strict=True) if b > 0)
    if not ratios:
        return {"median": 1.0, "low": 1.0, "high": 1.0}
    return {"median": statistics.median(ratios), "low": ratios[0], "high": ratios[-1]}


def _helps(points: Sequence[dict[str, Any]], axes: Sequence[Axis]) -> list[dict[str, Any]]:
    """Changes of one axis from the first point, by how much less time the write (else the read) takes.

    More ranks write more: of them the bytes a second are compared.
    """
    first = points[0]
    if "error" in first:
        return []
    start = {axis.name: axis.values[0] for axis in axes}
    direction = "write" if first["write"]["bytes"] else "read"
    rows = []
    for point in points[1:]:
        changed = [name for name, value in point["point"].items() if value != start[name]]
        if len(changed) != 1 or "error" in point:
            continue
        more = point[direction]["bytes"] / max(1, first[direction]["bytes"])
        ratio = {name: value * more for name, value in point[direction]["ratio"].items()}
        verdict = "helps" if ratio["low"] > 1 else "harms" if ratio["high"] < 1 else "no difference shown"
        rows.append({"change": f"{changed[0]} {start[changed[0]]} -> {point['point'][changed[0]]}", "of": direction,
                     "ratio": ratio, "verdict": verdict})  # fmt: skip
    return sorted(rows, key=lambda row: -row["ratio"]["median"])
