#!/usr/bin/env python3
"""Published figures beside simulated ones, with ablations: bench/bench_sim_papers.py --help.

The machines are the package's, made of what the papers say of them; nothing is fitted to the figures that are compared.

Lives here: what was published, and how it is simulated. Not here: machines (python/ioweir/predict/machines).
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sim_lab_page
from ioweir.base import picture
from ioweir.base.compiled import compiled
from ioweir.predict import machine as machines
from ioweir.predict import simulate
from ioweir.predict.simulate import Kernel, PlanRule, called

if TYPE_CHECKING:
    from collections.abc import Iterator

RUNS = 16
"""Of both ways, over seeds and over what the machine file leaves open."""
RUNS_OF = ((100, RUNS), (2_000, 8), (1 << 30, 4))
"""Up to so many ranks."""
ABLATED_RUNS = 3
"""Of each ablation, where there are few ranks; else one."""
LONG_RANKS = 2_000
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
    most: float | None = None
    """A published interval: `value` to `most`; the simulated median must lie in it. None: one value, in the range."""
    kernel_before: tuple[str, ...] | None = None
    """Of `before`, where it is another one."""
    runs: int | None = None
    """None: by the number of ranks. A run of many small pieces takes a second of a processor and more."""
    expected: str = ""
    """Written down before it was simulated for the first time."""
    perceived: bool = False
    own: tuple[tuple[str, float], ...] = ()
    """Figures of this run: how many processes a node had."""
    in_step: tuple[bool, bool] = (False, False)
    """Whether ROMIO carries out `before` and `after`, round by round."""
    own_after: tuple[tuple[str, float], ...] = ()
    """Figures of `after` alone."""
    absolute: tuple[float, float] | None = None
    """What was published of `before` and `after`, MB/s."""

    def holds(self, got: Range) -> bool:
        """What was published is what is simulated."""
        if self.most is None:
            return got.low <= self.value <= got.high
        return self.value <= got.median <= self.most

    def over(self, got: float) -> float:
        """A simulated value over the published one; of an interval, over its nearer end."""
        ends = (self.value, self.value if self.most is None else self.most)
        return got / min(max(got, ends[0]), ends[1])

    def said(self, scale: float) -> str:
        """The published value, or interval."""
        if self.most is None:
            return f"{self.value / scale:,.3g}"
        return f"{self.value:,.3g} .. {self.most:,.3g}" if math.isfinite(self.most) else f"more than {self.value:,.3g}"


def two_phase(nodes: int) -> str:
    """As ROMIO does it."""
    return f'writers = "aggregators:{nodes}"\ndomains = "even"\nbuffer = "16 MiB"\n'


ROMIO_4 = 'writers = "aggregators:6"\ndomains = "even"\nbuffer = "4 MiB"\nstripe = { size = "1 MiB", count = 12 }\n'
IBCS_4 = ROMIO_4 + 'order = "contention-free"\n'
IOR = ("ior-segmented", "data=576MiB", "transfer=48MiB")
SPREAD = (("node.ranks", 1.0),)
"""Six processes on nodes of their own: assumed, the paper does not say."""
BT = ("btio", "class=C", "writes=4")
"""4 of its 40 calls, each of 170 MB."""
FIELD = ("ior-segmented", "data=4MiB", "transfer=4MiB")
"""Aligned writing: 4 MiB a rank, "regardless how much of the buffer holds real data" (section 3.2)."""
PART = ("ior-segmented", "data=447KiB", "transfer=447KiB")
"""Reading is unaligned: 60 GB over all ranks (section 3.2)."""
BUFFER = ("ior-segmented", "data=57220KiB", "transfer=57220KiB")
"""What a writer of rbIO commits in one call: 60 GB over 1,024 writers, each with a file (sections 2.2 and 3.3)."""
WRITERS = (("node.ranks", 1.0), ("client.nodes_of_forwarder", 8.0))
"""Figure 8's best was measured on 32K processors (section 3.3): 128 I/O nodes, over which 1,024 writers are spread."""
VORPAL = ("vorpal", "local=80,80,80", "steps=1")
VORPAL_ALONE = ("ior-segmented", "data=12000KiB", "transfer=12000KiB")
"""A rank's 80^3 as Howison et al. gave it to IOR for a file a process, section VII-C."""
ALONE = 'writers = "everyone"\n'


def log_of(nodes: int) -> str:
    """PLFS's driver in ROMIO: two-phase I/O as elsewhere (`ADIOI_GEN_WriteStridedColl`), and a log an aggregator."""
    return f'mapping = "log"\n{two_phase(nodes)}'


def lustre_collective(targets: int, stripe: str) -> str:
    """An aggregator a target, which writes the target's stripes alone: Cray's CB 2, Liao and Choudhary's ROMIO."""
    return (
        f'writers = "aggregators:{targets}"\ndomains = "cyclic"\nstripe = {{ size = "{stripe}", count = {targets} }}\n'
    )


def even(targets: int) -> str:
    """Cray's CB 0: as many aggregators, even domains, 16 MiB a round."""
    return f'{two_phase(targets)}stripe = {{ size = "1 MiB", count = {targets} }}\n'


def a_file_each(ranks: int) -> str:
    """As IOR with a file a process."""
    return f'mapping = "grouped:{ranks}"\n{ALONE}'


def plfs_figures() -> Iterator[Published]:
    """Wright et al. 2013, table 5."""
    for name, ranks, before, after in (
        ("Minerva", 16, 223.36, 276.32), ("Minerva", 64, 53.76, 224.64), ("Minerva", 256, 61.44, 125.44),
        ("Sierra", 16, 222.24, 337.12), ("Sierra", 64, 126.08, 1518.08), ("Sierra", 256, 115.20, 3118.08),
    ):  # fmt: skip
        nodes = -(-ranks // 12)
        yield Published(
            f"Wright et al. 2013, table 5: PLFS over MPI-IO, {name}, {ranks}", name.lower(), BT, ranks,
            two_phase(nodes), log_of(nodes), "write", after / before, in_step=(True, True), absolute=(before, after),
        )  # fmt: skip


SELECTED = (("targets.count", 134.0), ("bursts.between_s", 0.0))
"""134 of 156 targets, as in the run of figure 10, none of them in a burst: as if probing found every slow one."""
COLL_PERF = ("coll_perf", "local=128,128,128", "variables=1")
"""8 MiB a rank, as in section 5.2, but one variable instead of four."""


def subfiling_figures() -> Iterator[Published]:
    """Son et al. 2016, section 5.2, of 1,024 to 8,192 processes; here the fewest."""
    for what, low, high, targets, own, expected in (
        ("all targets", 1.12, 1.94, 156, (), "1.0 to 1.2, below: CB 2 has no locks to save"),
        ("selected targets", 1.36, 2.37, 134, SELECTED, "1.3 to 2.5, inside: no writer waits for a burst"),
    ):
        yield Published(
            f"Son et al. 2016, fig. 11: subfiles on {what}, write, 1,024", "hopper", COLL_PERF, 1024,
            lustre_collective(156, "1 MiB"),
            f'mapping = "subfiles:{targets}"\nwriters = "aggregators:{targets}"\n', "write", low, most=high,
            runs=4, expected=expected, in_step=(True, True), own_after=own,
        )  # fmt: skip


def hdf5_figures() -> Iterator[Published]:
    """Howison et al. 2010, section VII: what does not depend on HDF5's metadata, which is not simulated."""
    targets = 48
    yield Published(
        "Howison et al. 2010, section VII: a shared file (CB 2) over a file a process, VORPAL 80^3, Franklin, 640",
        "franklin", VORPAL, 640, a_file_each(640), lustre_collective(targets, "4 MiB"), "write", 0.5, most=1.0,
        kernel_before=VORPAL_ALONE, runs=4, expected="0.6 to 1, inside", in_step=(False, True),
    )  # fmt: skip
    yield Published(
        "Howison et al. 2010, fig. 9: CB 2 over CB 0, VORPAL 80^3, Franklin, 640", "franklin", VORPAL, 640,
        even(targets), lustre_collective(targets, "1 MiB"), "write", 1.0, most=math.inf,
        runs=4, expected="1.5 to 4, inside: even domains in step meet on targets and locks", in_step=(True, True),
    )  # fmt: skip
    yield Published(
        "Howison et al. 2010, fig. 9: stripes of 16 MiB over 1 MiB with CB 2, VORPAL 80^3, Franklin, 640", "franklin",
        VORPAL, 640, lustre_collective(targets, "1 MiB"), lustre_collective(targets, "16 MiB"), "write", 1.0,
        most=math.inf, runs=4, expected="1.1 to 2, inside: fewer steps", in_step=(True, True),
    )  # fmt: skip


FIGURES = (
    Published("Wang et al. 2014, fig. 8: IBCS, write", "gigabit12", IOR, 6, ROMIO_4, IBCS_4, "write", 1.63, own=SPREAD,
              in_step=(True, True)),
    Published("Wang et al. 2014, fig. 8: IBCS, read", "gigabit12", IOR, 6, ROMIO_4, IBCS_4, "read", 1.47, own=SPREAD,
              in_step=(True, True)),
    *plfs_figures(),
    Published("Liu et al. 2013, figure 8: rbIO, actual, 1,024 writers, GB/s", "intrepid", BUFFER, 1024, None,
              f'mapping = "grouped:1024"\n{ALONE}', "write", 17.8e9, own=WRITERS),
    *hdf5_figures(),
    *subfiling_figures(),
    Published("Liu et al. 2013, figure 4: syncIO, write, GB/s", "intrepid", FIELD, 131_072, None,
              f'mapping = "grouped:1024"\n{ALONE}', "write", 27.5e9),
    Published("Liu et al. 2013, figure 4: syncIO, read, GB/s", "intrepid", PART, 131_072, None,
              'mapping = "grouped:1024"\nwriters = "aggregators:4"\ndomains = "even"\nbuffer = "16 MiB"\n',
              "read", 47.4e9, in_step=(False, True)),
    Published("Liu et al. 2013, figure 9: rbIO, perceived, GB/s", "intrepid", PART, 131_072, None,
              'writers = "behind:1"\n', "write", 166e12, perceived=True),
)  # fmt: skip


@dataclass(frozen=True)
class Range:
    """Of all runs."""

    median: float
    low: float
    high: float
    before_mb_s: float = 0.0
    after_mb_s: float = 0.0
    runs: int = 0

    def text(self, scale: float) -> str:
        """Three digits each."""
        return f"{self.median / scale:,.3g} ({self.low / scale:,.3g} .. {self.high / scale:,.3g})"


class Program(Kernel):
    """A kernel whose file is read only where its reading is in question: written it is in any case."""

    reads = True

    def once(
        self, figures: dict[str, float], slowdown: list[float], plan: PlanRule, seed: int, recorder: Any = None
    ) -> dict[str, Any]:
        """Written, then read."""
        return called(
            compiled().simulate_kernel, figures, slowdown, plan.text, plan.name, plan.rule, self.name, self.ranks,
            list(self.settings), self.compute_s, True, self.reads, seed, plan.by_library, recorder,
        )  # fmt: skip


class Writer(Program):
    """It is never read."""

    reads = False


def simulated(figure: Published, without: dict[str, float] | None = None, *, in_step: bool = True) -> Range:
    """Run by run, both ways with the same seeds and the same places in what is open."""
    found = machines.read(figure.machine)
    given = {**dict(figure.own), **(without or {})}
    opened = {name: ends for name, ends in found.open.items() if name not in given}
    found = dataclasses.replace(found, figures={**found.figures, **given}, open=opened)
    repeat = figure.runs or next(runs for ranks, runs in RUNS_OF if figure.ranks <= ranks)
    if without is not None:
        repeat = ABLATED_RUNS if figure.ranks <= RUNS_OF[0][0] else 1

    program = Program if figure.direction == "read" else Writer

    def runs(
        rule: str, by_library: bool, kernel: tuple[str, ...], own: tuple[tuple[str, float], ...] = ()
    ) -> list[dict[str, Any]]:
        on = dataclasses.replace(found, figures={**found.figures, **dict(own)})
        plan = PlanRule(f'[[file]]\nmatch = "*"\n{rule}', "a paper's", 0, "", by_library and in_step)
        return simulate.runs_of(program(kernel[0], kernel[1:], figure.ranks, 0.0), on, plan, repeat, 1)

    def took(run: dict[str, Any]) -> float:
        # What the program sees is the hand-over, which the paper times by itself: without opening.
        return float(run["perceived_s"] - run["open_s"] if figure.perceived else run["seconds"])

    after = [run[figure.direction] for run in runs(figure.after, figure.in_step[1], figure.kernel, figure.own_after)]
    rates = [sorted(run["bytes"] / took(run) / 1e6 for run in after)]
    if figure.before is None:
        values = [run["bytes"] / took(run) for run in after]
    else:
        before = [
            run[figure.direction]
            for run in runs(figure.before, figure.in_step[0], figure.kernel_before or figure.kernel)
        ]
        # By bytes: those of a kernel of its own may be a few more.
        values = [b["bytes"] / took(b) * took(a) / a["bytes"] for a, b in zip(before, after, strict=True)]
        rates.insert(0, sorted(run["bytes"] / took(run) / 1e6 for run in before))
    values.sort()
    middles = [one[len(one) // 2] for one in rates]
    return Range(values[len(values) // 2], values[0], values[-1], middles[0], middles[-1], repeat)


Row = tuple[Published, Range, dict[str, Range]]


def ablations_of(figure: Published) -> dict[str, dict[str, float]]:
    """Those that say something of it, in a time that can be waited for."""
    found = dict(ABLATIONS)
    if not any(figure.in_step):
        del found[NOT_IN_STEP]
    # Of the long ones the two that say most.
    long = figure.runs is not None or figure.ranks > LONG_RANKS
    return {name: off for name, off in found.items() if not long or name in ("no seek", "locks off")}


def rows(only: str, kept: Path | None) -> list[Row]:
    """Figures whose name has `only`, with ablations of those that do not fit. `kept`: what is done so far."""
    done = json.loads(kept.read_text()) if kept and kept.exists() else {}
    found = []
    for figure in FIGURES:
        if only not in figure.where:
            continue
        if figure.where not in done:
            got = simulated(figure)
            print(f"-- {figure.where}: {got}", flush=True)
            ablated = {
                name: simulated(figure, off, in_step=name != NOT_IN_STEP)
                for name, off in ablations_of(figure).items()
                if not figure.holds(got)
            }
            ranges = {name: dataclasses.asdict(one) for name, one in ablated.items()}
            done[figure.where] = [dataclasses.asdict(got), ranges]
            if kept:
                kept.write_text(json.dumps(done))
        got_now, ablated_now = done[figure.where]
        found.append((figure, Range(**got_now), {name: Range(**one) for name, one in ablated_now.items()}))
    return found


def page(found: list[Row]) -> str:
    """The section."""
    fitting = sum(figure.holds(got) for figure, got, _ in found)
    lines = [
        "## Published and simulated",
        "",
        "`make bench-sim-papers RECORD=1`. The package's machines, made of what the papers say; nothing is fitted",
        f"to these figures. {fitting} of {len(found)} published values lie within the simulated range; of a published",
        "interval, the simulated median must lie in it. Ranges are over seeds, and over what is not published of the",
        "machines. Ratios, or GB/s.",
        "",
        "| figure | published | simulated (range) | runs | over published | within |",
        "|---|---:|---:|---:|---:|---|",
    ]
    for figure, got, _ in found:
        scale = scale_of(figure)
        lines.append(
            f"| {figure.where} | {figure.said(scale)} | {got.text(scale)} | {got.runs} | {figure.over(got.median):.2f} "
            f"| {'yes' if figure.holds(got) else 'NO'} |"
        )
    return "\n".join([*lines, "", *ablated_lines(found), *expected_lines(found), *part_lines(found)]) + "\n"


def scale_of(figure: Published) -> float:
    """Ratios are what they are, rates GB/s."""
    return 1e9 if figure.before is None else 1.0


def ablated_lines(found: list[Row]) -> list[str]:
    """What a part of the model does to the figures that do not fit."""
    lines = [
        f"Of those that do not, what parts of the model do to them: {ABLATED_RUNS} runs without each; of more than 100",
        "ranks one, and its counterpart is not the median.",
        "",
        "| figure | " + " | ".join(ABLATIONS) + " |",
        "|---|" + "---:|" * len(ABLATIONS),
    ]
    for figure, _, ablated in found:
        if ablated:
            scale = scale_of(figure)
            more = [ablated[name].text(scale) if name in ablated else "" for name in ABLATIONS]
            lines.append(f"| {figure.where} | {' | '.join(more)} |")
    return [*lines, ""]


def expected_lines(found: list[Row]) -> list[str]:
    """What was written down beforehand."""
    lines = [
        "What was expected of the model, written down and committed before these figures were first simulated. Since",
        "then Howison et al.'s have another workload: VORPAL's boxes in place of IOR's segments.",
        "",
        "| figure | expected | simulated |",
        "|---|---|---:|",
    ]
    lines += [f"| {figure.where} | {figure.expected} | {got.text(1)} |" for figure, got, _ in found if figure.expected]
    return [*lines, ""]


def part_lines(found: list[Row]) -> list[str]:
    """What ratios are made of."""
    lines = [
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
    return [*lines, "", "![published values and simulated ranges](simulator-papers.svg)"]


def chart(found: list[Row]) -> picture.Chart:
    """Simulated over published, as ranges about 1."""
    values = [
        {"title": figure.where, "low": figure.over(got.low), "high": figure.over(got.high),
         "median": figure.over(got.median), "description": f"{figure.where}: {figure.over(got.median):.2f}"}
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
    parser.add_argument("--only", default="", help="figures whose name has these words; not to be kept")
    parser.add_argument("--kept", type=Path, help="a file for what is done so far: a run that ended goes on from there")
    options = parser.parse_args()
    if options.only and options.record:
        parser.error("--only leaves figures out: it cannot be kept with --record")
    found = rows(options.only, options.kept)
    text = page(found)
    print(text)
    folder = options.record.parent if options.record else Path(tempfile.mkdtemp(prefix="ioweir-bench-"))
    picture.save(folder / "simulator-papers.svg", chart(found))
    if options.record:
        sim_lab_page.put(options.record, text, "papers")
    return 0


if __name__ == "__main__":
    sys.exit(main())
