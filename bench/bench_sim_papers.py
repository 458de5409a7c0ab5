#!/usr/bin/env python3
"""Published figures beside simulated ones, with ablations: bench/bench_sim_papers.py --help.

The machines are the package's, made of what the papers say of them; nothing is fitted to the figures that are compared.

Lives here: what was published, and how it is simulated. Not here: machines (python/ioweir/predict/machines).
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sim_lab_page
from ioweir.base import picture
from ioweir.predict import machine as machines
from ioweir.predict import simulate
from ioweir.predict.simulate import Kernel, PlanRule

RUNS = 3
ABLATIONS: dict[str, dict[str, float]] = {
    "no seek": {"targets.seek_s": 0.0},
    "no shuffle": {"node.nic_bytes_per_s": 1e15, "node.copy_bytes_per_s": 1e15, "node.memory_bytes_per_s": 1e15,
                   "fabric.latency_s": 0.0, "fabric.message_s": 0.0},
    "locks off": {"locks.used": 0.0},
    "no client cache": {"client.cache_bytes": 0.0},
    "256 KiB requests": {"client.rpc_bytes": 262_144.0},
    "not in step": {},
}  # fmt: skip
"""Figures that take a part of the model away. The network interface also carries bytes to storage: without a shuffle
that is free, too, and the servers' interfaces remain. With smaller requests, a node's requests overlap more."""
NOT_IN_STEP = "not in step"
"""Writers of two-phase I/O do not wait for each other between rounds: as ioweir's engine does it, not as ROMIO."""


@dataclass(frozen=True)
class Published:
    """A figure of a paper: the time of one way over that of another, or bytes a second of one."""

    where: str
    machine: str
    kernel: tuple[str, ...]
    ranks: int
    before: str | None
    """A rule; None: `after` in bytes a second."""
    after: str
    direction: str
    value: float
    perceived: bool = False
    own: tuple[tuple[str, float], ...] = ()
    """Figures of this run: how many processes a node had."""
    in_step: tuple[bool, bool] = (False, False)
    """Whether ROMIO carries out `before` and `after`, round by round."""
    own_after: tuple[tuple[str, float], ...] = ()
    """Figures of `after` alone."""
    absolute: tuple[float, float] | None = None
    """What was published of `before` and `after`, MB/s."""


def two_phase(nodes: int) -> str:
    """As ROMIO does it."""
    return f'writers = "aggregators:{nodes}"\ndomains = "even"\nbuffer = "16 MiB"\n'


ROMIO_4 = 'writers = "aggregators:6"\ndomains = "even"\nbuffer = "4 MiB"\nstripe = { size = "1 MiB", count = 12 }\n'
IBCS_4 = ROMIO_4 + 'order = "contention-free"\n'
IOR = ("ior-segmented", "data=576MiB", "transfer=48MiB")
SPREAD = (("node.ranks", 1.0),)
"""Six processes on nodes of their own: assumed, the paper does not say."""
BT = ("btio", "class=C", "writes=2")
FIELD = ("ior-segmented", "data=4MiB", "transfer=4MiB")
PROCESS_OF_16 = (("client.process_bytes_per_s", 337.12e6 / 16),)
"""What a process writes through PLFS: from the figure of 16 ranks, for those of 64 and 256."""
ALONE = 'writers = "everyone"\n'
FIGURES = (
    Published("Wang et al. 2014, fig. 8: IBCS, write", "gigabit12", IOR, 6, ROMIO_4, IBCS_4, "write", 1.63, own=SPREAD,
              in_step=(True, True)),
    Published("Wang et al. 2014, fig. 8: IBCS, read", "gigabit12", IOR, 6, ROMIO_4, IBCS_4, "read", 1.47, own=SPREAD,
              in_step=(True, True)),
    *(
        Published(f"Wright et al. 2013, table 5: PLFS over MPI-IO, {name}, {ranks}", name.partition(",")[0].lower(), BT,
                  ranks, two_phase(-(-ranks // 12)), 'mapping = "log"\n', "write", after / before,
                  in_step=(True, False), own_after=own, absolute=(before, after))
        for name, ranks, before, after, own in (
            ("Minerva", 256, 61.44, 125.44, ()), ("Sierra", 16, 222.24, 337.12, ()),
            ("Sierra", 64, 126.08, 1518.08, ()), ("Sierra", 256, 115.20, 3118.08, ()),
            ("Sierra, processes bounded", 64, 126.08, 1518.08, PROCESS_OF_16),
            ("Sierra, processes bounded", 256, 115.20, 3118.08, PROCESS_OF_16),
        )
    ),
    Published("Liu et al. 2013, figure 4: syncIO, write, GB/s", "intrepid", FIELD, 131_072, None,
              f'mapping = "grouped:1024"\n{ALONE}', "write", 27.5e9),
    Published("Liu et al. 2013, figure 4: syncIO, read, GB/s", "intrepid", FIELD, 131_072, None,
              f'mapping = "grouped:1024"\n{ALONE}', "read", 47.4e9),
    Published("Liu et al. 2013, figure 9: rbIO, perceived, GB/s", "intrepid", FIELD, 131_072, None,
              'writers = "behind:1"\n', "write", 166e12, perceived=True),
    Published("Liu et al. 2013: rbIO, actual, GB/s", "intrepid", FIELD, 131_072, None,
              'writers = "behind:1"\n', "write",
              17.8e9),
)  # fmt: skip


@dataclass(frozen=True)
class Range:
    """Of all runs."""

    median: float
    low: float
    high: float
    before_mb_s: float = 0.0
    after_mb_s: float = 0.0

    def text(self, scale: float) -> str:
        """Three digits each."""
        return f"{self.median / scale:,.3g} ({self.low / scale:,.3g} .. {self.high / scale:,.3g})"


def simulated(figure: Published, without: dict[str, float] | None = None, *, in_step: bool = True) -> Range:
    """Run by run, both ways with the same seeds and the same places in what is open."""
    found = machines.read(figure.machine)
    given = {**dict(figure.own), **(without or {})}
    opened = {name: ends for name, ends in found.open.items() if name not in given}
    found = dataclasses.replace(found, figures={**found.figures, **given}, open=opened)
    repeat = RUNS if figure.ranks < 10_000 else 3

    def runs(rule: str, by_library: bool, own: tuple[tuple[str, float], ...] = ()) -> list[dict[str, Any]]:
        on = dataclasses.replace(found, figures={**found.figures, **dict(own)})
        plan = PlanRule(f'[[file]]\nmatch = "*"\n{rule}', "a paper's", 0, "", by_library and in_step)
        return simulate.runs_of(Kernel(figure.kernel[0], figure.kernel[1:], figure.ranks, 0.0), on, plan, repeat, 1)

    def took(run: dict[str, Any]) -> float:
        # What the program sees is the hand-over, which the paper times by itself: without opening.
        return float(run["perceived_s"] - run["open_s"] if figure.perceived else run["seconds"])

    after = [run[figure.direction] for run in runs(figure.after, figure.in_step[1], figure.own_after)]
    rates = [sorted(run["bytes"] / took(run) / 1e6 for run in after)]
    if figure.before is None:
        values = [run["bytes"] / took(run) for run in after]
    else:
        before = [run[figure.direction] for run in runs(figure.before, figure.in_step[0])]
        values = [took(a) / took(b) for a, b in zip(before, after, strict=True)]
        rates.insert(0, sorted(run["bytes"] / took(run) / 1e6 for run in before))
    values.sort()
    middles = [one[len(one) // 2] for one in rates]
    return Range(values[len(values) // 2], values[0], values[-1], middles[0], middles[-1])


def rows() -> list[tuple[Published, Range, dict[str, Range]]]:
    """All figures; ablations of those that the range does not hold."""
    found = []
    for figure in FIGURES:
        got = simulated(figure)
        fits = got.low <= figure.value <= got.high
        print(f"-- {figure.where}: {got}", flush=True)
        ablated = {
            name: simulated(figure, off, in_step=name != NOT_IN_STEP)
            for name, off in ABLATIONS.items()
            if not fits and (name != NOT_IN_STEP or any(figure.in_step))
        }
        found.append((figure, got, ablated))
    return found


def page(found: list[tuple[Published, Range, dict[str, Range]]]) -> str:
    """The section."""
    fitting = sum(got.low <= figure.value <= got.high for figure, got, _ in found)
    lines = [
        "## Published and simulated",
        "",
        "`make bench-sim-papers RECORD=1`. The package's machines, made of what the papers say; nothing is fitted",
        'to these figures, but of "processes bounded" what one process writes, to the figure of 16 ranks.',
        f"{fitting} of {len(found)} published values lie within the simulated range. Of the others,",
        "ablations say what a part of the model does to them. Ratios, or GB/s.",
        "",
        "| figure | published | simulated (range) | over published | within | " + " | ".join(ABLATIONS) + " |",
        "|---|---:|---:|---:|---|" + "---:|" * len(ABLATIONS),
    ]
    for figure, got, ablated in found:
        scale = 1e9 if figure.before is None else 1.0
        more = [ablated[name].text(scale) if name in ablated else "" for name in ABLATIONS]
        within = "yes" if got.low <= figure.value <= got.high else "NO"
        lines.append(
            f"| {figure.where} | {figure.value / scale:,.3g} | {got.text(scale)} | {got.median / figure.value:.2f} "
            f"| {within} | {' | '.join(more)} |"
        )
    lines += [
        "",
        "Of ratios, what they are made of, MB/s (medians):",
        "",
        "| figure | published: before, after | simulated: before, after | simulated over published |",
        "|---|---:|---:|---:|",
    ]
    for figure, got, _ in found:
        if figure.before is None:
            continue
        known = figure.absolute
        said = f"{known[0]:.0f}, {known[1]:.0f}" if known else "not in numbers"
        over = f"{got.before_mb_s / known[0]:.2f}, {got.after_mb_s / known[1]:.2f}" if known else ""
        lines.append(f"| {figure.where} | {said} | {got.before_mb_s:.0f}, {got.after_mb_s:.0f} | {over} |")
    lines += ["", "![published values and simulated ranges](simulator-papers.svg)"]
    return "\n".join(lines) + "\n"


def chart(found: list[tuple[Published, Range, dict[str, Range]]]) -> picture.Chart:
    """Simulated over published, as ranges about 1."""
    values = [
        {"title": figure.where, "low": got.low / figure.value, "high": got.high / figure.value,
         "median": got.median / figure.value, "description": f"{figure.where}: {got.median / figure.value:.2f}"}
        for figure, got, _ in found
    ]  # fmt: skip
    y = picture.axis("title", "nominal", "", sort=None, axis={"labelLimit": 480})
    x = picture.axis("low", "quantitative", "simulated over published", scale={"type": "log"})
    layers = [
        {"mark": {"type": "rule", "strokeWidth": 3, "stroke": picture.BLUE},
         "encoding": {"y": y, "x": x, "x2": {"field": "high"}}},
        {"mark": {"type": "circle", "size": 60, "fill": picture.BLUE},
         "encoding": {"y": y, "x": {**x, "field": "median"}, **picture.described()}},
        {"data": {"values": [{"low": 1}]}, "mark": {"type": "rule", "stroke": picture.RED, "strokeDash": [4, 3]},
         "encoding": {"x": x}},
    ]  # fmt: skip
    content = {"width": 460, "height": {"step": 24}, "data": {"values": values}, "layer": layers}
    return picture.chart("Simulated over published", ["1: as published; lines: lowest to highest run"], content)


def main() -> int:
    """Simulates all, prints the section, and keeps it where that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", type=Path, help="put the section into this page, and the picture beside it")
    options = parser.parse_args()
    found = rows()
    text = page(found)
    print(text)
    folder = options.record.parent if options.record else Path(tempfile.mkdtemp(prefix="ioweir-bench-"))
    picture.save(folder / "simulator-papers.svg", chart(found))
    if options.record:
        sim_lab_page.put(options.record, text, "papers")
    return 0


if __name__ == "__main__":
    sys.exit(main())
