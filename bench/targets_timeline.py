"""When each target was written: coll_perf on a lab with a slow target, as `ioweir timeline` draws it.

Part of `make bench-targets`, after Son et al. 2016, figures 10 and 12. Not here: speeds (targets_runs.py), the drawing
(python/ioweir/report/timeline.py).
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path

import launch
import targets_runs
from ioweir.base.picture import to_svg
from ioweir.base.units import seconds
from ioweir.report import timeline, timeline_picture
from ioweir.targets import lab
from ioweir.trace import load

WAYS = {
    "chosen": targets_runs.FREE[targets_runs.CHOSEN],
    "all": targets_runs.FREE[targets_runs.SUBFILED],
    "shared": targets_runs.STRIPED,
}
"""Picture -> file of a rule in targets_runs.plan_text()."""


@dataclass
class Activity:
    """What was drawn, by picture."""

    pictures: dict[str, str] = field(default_factory=dict)
    """SVG."""
    mean_s: dict[str, float] = field(default_factory=dict)
    """Of the time that a target was in calls."""
    deviation_s: dict[str, float] = field(default_factory=dict)
    targets: dict[str, int] = field(default_factory=dict)
    """That were written."""


def measure(made: lab.Lab, scratch: Path) -> Activity:
    """A run of each way on the lab whose plan is there, one target at a ninth."""
    activity = Activity()
    count = len(made.rates)
    for i in range(count):
        lab.slow(made.name, made.root, i, "1/9" if i == count // 2 else "full")
    for picture, file in WAYS.items():
        trace = scratch / f"trace-{picture}"
        words = [*targets_runs.KERNEL, "--directory", str(made.root), "--mode", f"mpiio:{file}", "--sync", "1"]
        traced = launch.Traced(trace, scratch / "plan.toml")
        launch.run_program(launch.KERNEL_RUNNER, targets_runs.KIND, targets_runs.RANKS, words, traced)
        result = timeline.of_trace(load(trace), timeline.Options(by="target"))
        shutil.rmtree(trace)
        # Targets only; the directory of the lab has the container's texts.
        result.rows = [row for row in result.rows if Path(row.name).parent == made.root]
        for row in result.rows:
            row.name = Path(row.name).name
        result.mean_time_s, result.deviation_s = timeline.evenness(row.time_s for row in result.rows if row.bytes)
        activity.pictures[picture] = to_svg(timeline_picture.chart(result))
        activity.mean_s[picture] = result.mean_time_s or 0.0
        activity.deviation_s[picture] = result.deviation_s or 0.0
        activity.targets[picture] = len(result.rows)
    return activity


def lines_of(activity: Activity, page: str) -> list[str]:
    """The page's part; pictures are PAGE-NAME.svg beside it."""
    lines = [
        "## When each target was written",
        "",
        "One run of coll_perf each, one target at 1/9, as `ioweir timeline --by target --picture` draws it from the "
        "run's trace: dark where calls write to a target or wait for it. Son et al., figures 10 and 12.",
        "",
        "| way | targets written | seconds in calls, mean | standard deviation |",
        "|---|---|---|---|",
        *(
            f"| {targets_runs.TITLES[file]} | {activity.targets[picture]} | {seconds(activity.mean_s[picture])} | "
            f"{seconds(activity.deviation_s[picture])} |"
            for picture, file in WAYS.items()
        ),
        "",
    ]
    for picture, file in WAYS.items():
        lines += [f"![{targets_runs.TITLES[file]}]({page}-{picture}.svg)", ""]
    return lines
