#!/usr/bin/env python3
"""Storage targets: does probing choose the right ones, and what does it cost? `make bench-targets`, or --help.

Lives here: labs of random rates, the cost beside a write, and the page of results. Not here: probing (src/probe,
python/ioweir/targets/probe.py), labs (python/ioweir/targets/lab.py).
"""

from __future__ import annotations

import argparse
import mmap
import os
import random
import shutil
import statistics
import sys
import tempfile
import threading
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import launch
import run
import targets_page
import targets_reads
import targets_runs
import targets_timeline
from ioweir.base.picture import to_svg
from ioweir.base.units import percent, rate, seconds, size
from ioweir.targets import lab, lab_loop, probe, probe_picture

SEED = 20161001
MB = 1_000_000
LOOP_TARGETS = 8
LOOP_RATE = 12 * MB
WHOLE_WRITE = 10_000 * MB
SCALE = 10
PAPER_SIZE = 16 * MB
BLOCK = 1 << 20

INTRODUCTION = """\
# Results: storage targets

Whether probing finds the targets that are worth using, what it costs, and what programs have of it. Repeat with

    make bench-targets              # builds, measures (a quarter of an hour), writes build/bench/targets.{json,md,svg}
    make bench-targets RECORD=1     # the same, and into this page
    make bench-targets QUICK=1      # few labs and runs: to see that it works, not to quote

Targets are of two kinds ([reference](../reference/targets.md)). *Loop devices*: an ext4 on each, which the kernel
limits to a rate (`ioweir lab up`, root). *Token buckets*: directories in memory whose rate ioweir itself
keeps; no device is behind them, and only the choice means anything there. Probing is as `ioweir probe` does it by
default: all targets at a time, 100 ms not counted, 300 ms counted, O_DIRECT.
"""


@dataclass
class Choices:
    """How often the right set was chosen in labs of one kind."""

    kind: str
    labs: int = 0
    right: int = 0
    wrong: list[str] = field(default_factory=list)
    probe_s: list[float] = field(default_factory=list)
    errors: list[float] = field(default_factory=list)
    """Relative error of each target's bandwidth."""


@dataclass
class Cost:
    """A probe beside the write that it serves, on the loop lab with one slow target."""

    probe_s: list[float]
    probe_bytes: int
    paper_s: float
    write_s: float
    write_bytes: int
    chosen: list[str]
    kind: str

    @property
    def whole_write_s(self) -> float:
        """The full size at the speed of the scaled write."""
        return self.write_s * WHOLE_WRITE / self.write_bytes


def random_rates(dice: random.Random, most: int, fast: float, exact: bool) -> tuple[list[float], set[int]]:
    """Rates (bytes a second) of 4 to `most` targets and the set that is right: up to a third are slower by a factor of
    2 to 12, the others equal to 3 per cent (`exact`: to the byte)."""
    count = dice.randint(4, most)
    slow = dice.randint(0, count // 3)
    rates = [
        fast * (1 if exact else dice.uniform(0.97, 1.03)) / (dice.uniform(2, 12) if i < slow else 1)
        for i in range(count)
    ]
    dice.shuffle(rates)
    return rates, {i for i, value in enumerate(rates) if value > 0.9 * fast}


def judge(choices: Choices, found: dict[str, Any], rates: list[float], right: set[int]) -> None:
    """Counts one lab."""
    chosen = {i for i, row in enumerate(found["targets"][: len(rates)]) if row["chosen"]}
    choices.labs += 1
    choices.probe_s.append(found["seconds"])
    choices.errors += [
        abs(row["bytes_per_second"] / value - 1) for row, value in zip(found["targets"], rates, strict=False)
    ]
    if chosen == right:
        choices.right += 1
    else:
        choices.wrong.append(
            "rates " + " ".join(f"{value / MB:.1f}" for value in rates)
            + " MB/s, found " + " ".join(f"{row['bytes_per_second'] / MB:.1f}" for row in found["targets"])
        )  # fmt: skip


def bucket_labs(count: int, scratch: Path) -> Choices:
    """Token buckets: 4 to 16 targets, 20 to 100 MB/s."""
    choices = Choices("token buckets")
    dice = random.Random(SEED)
    for number in range(count):
        rates, right = random_rates(dice, 16, dice.uniform(20, 100) * MB, exact=False)
        folder = scratch / f"lab{number}"
        folder.mkdir()
        text = f'state = "{folder}/buckets"\n'
        for i, value in enumerate(rates):
            (folder / f"t{i}").mkdir()
            text += f'[[target]]\nname = "t{i}"\ndirectory = "t{i}"\nrate = "{int(value)} B"\n'
        (folder / lab.MANIFEST).write_text(text, encoding="utf-8")
        judge(choices, probe.probe(folder, probe.Options(), None), rates, right)
        shutil.rmtree(folder)
    return choices


def loop_labs(count: int, made: lab.Lab) -> Choices:
    """Loop devices: always eight, 2 of them slower at most; 12 MB/s."""
    choices = Choices("loop devices")
    dice = random.Random(SEED)
    for _ in range(count):
        rates, right = random_rates(dice, LOOP_TARGETS, LOOP_RATE, exact=True)
        rates += [float(LOOP_RATE)] * (LOOP_TARGETS - len(rates))
        right = {i for i, value in enumerate(rates) if value > 0.9 * LOOP_RATE}
        for i, value in enumerate(rates):
            lab.slow(made.name, made.root, i, f"{int(value)} B")
        judge(choices, probe.probe(made.root, probe.Options(), None), rates, right)
    return choices


def write_direct(directory: Path, amount: int) -> None:
    """Writes an amount past the page cache, and leaves nothing."""
    block = mmap.mmap(-1, BLOCK)
    block.write(os.urandom(BLOCK))
    descriptor = os.open(directory, os.O_TMPFILE | os.O_WRONLY | os.O_DIRECT, 0o600)
    try:
        for at in range(0, amount, BLOCK):
            os.pwrite(descriptor, block, at)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def cost(made: lab.Lab, repeats: int) -> Cost:
    """One target at a ninth: the probe, the paper's by size, and a tenth of a 10 GB write to the chosen targets."""
    for i in range(LOOP_TARGETS):
        lab.slow(made.name, made.root, i, targets_runs.SLOW_SHARE if i == LOOP_TARGETS // 2 else "full")
    probes = [probe.probe(made.root, probe.Options(), None) for _ in range(repeats)]
    by_size = probe.probe(made.root, probe.Options(bytes=PAPER_SIZE, confirmations=0), None)
    chosen = probes[-1]["chosen"]
    each = WHOLE_WRITE // SCALE // len(chosen) // BLOCK * BLOCK
    writers = [threading.Thread(target=write_direct, args=(made.root / name, each)) for name in chosen]
    begin = time.monotonic()
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    return Cost(
        [found["seconds"] for found in probes], probes[-1]["bytes"], by_size["seconds"], time.monotonic() - begin,
        each * len(chosen), chosen, made.backend,
    )  # fmt: skip


# ------------------------------------------------------------------------------------------------------------- page


def choice_lines(all_choices: list[Choices]) -> list[str]:
    """The table of the labs."""
    lines = [
        "## The right set",
        "",
        "Random labs: 4 to 16 targets (token buckets) or 8 (loop devices), up to a third slower by a factor of 2 to "
        "12, the others equal to 3 per cent. What is right is known from how the lab was made. The bar is 99 of 100.",
        "",
        "| targets | labs | right set chosen | a probe took (median) | error of a bandwidth (median, largest) |",
        "|---|---|---|---|---|",
    ]
    for one in all_choices:
        lines.append(
            f"| {one.kind} | {one.labs} | {one.right} | {seconds(statistics.median(one.probe_s))} | "
            f"{100 * statistics.median(one.errors):.1f} %, {100 * max(one.errors):.0f} % |"
        )
    wrong = [f"- {one.kind}: {text}" for one in all_choices for text in one.wrong]
    return [*lines, "", *(["Wrong:", "", *wrong, ""] if wrong else [])]


def cost_lines(found: Cost) -> list[str]:
    """What probing costs beside a write."""
    probe_s = statistics.median(found.probe_s)
    return [
        "## What probing costs",
        "",
        f"{LOOP_TARGETS} loop devices of {rate(LOOP_RATE)}, one of them at {targets_runs.SLOW_SHARE} of that. The "
        f"write is scaled: {size(found.write_bytes)} to the {len(found.chosen)} chosen targets past the page cache "
        f"took {seconds(found.write_s)}; 10 GB at that speed are {seconds(found.whole_write_s)}. "
        "The bar is below 1 per cent.",
        "",
        "| probe | time | share of a 10 GB write |",
        "|---|---|---|",
        f"| windows (default), {size(found.probe_bytes)} written in all | {seconds(probe_s)} | "
        f"{100 * probe_s / found.whole_write_s:.2f} % |",
        f"| {size(PAPER_SIZE)} to each, as the paper (`--size`) | {seconds(found.paper_s)} | "
        f"{percent(found.paper_s, found.whole_write_s)} |",
        "",
        f"Chosen: {' '.join(found.chosen)}. By size the slowest target decides how long a probe takes; "
        "by windows it does not.",
        "",
    ]


def parse() -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few labs")
    parser.add_argument("--output", type=Path, default=launch.ROOT / "build" / "bench", help="directory of the results")
    parser.add_argument("--record", type=Path, metavar="PAGE", help="also write the page and its picture there")
    return parser.parse_args()


def main() -> int:
    """Measures, and writes the page; exit code 1 if a bar is missed."""
    options = parse()
    about = run.machine()
    begin = time.monotonic()
    scratch = Path(tempfile.mkdtemp(prefix="ioweir-bench-", dir=run.TMPFS))
    missing = lab_loop.LoopBackend().missing()
    lines: list[str] = []
    document: dict[str, Any] = {"machine": about, "date": time.strftime("%Y-%m-%d")}
    found: Cost | None = None
    picture = ""
    runs: targets_runs.Runs | None = None
    activity: targets_timeline.Activity | None = None
    reads: targets_reads.Reads | None = None
    try:
        print("-- labs of token buckets", flush=True)
        choices = [bucket_labs(10 if options.quick else 100, scratch)]
        if not missing:
            wanted = lab.Wanted(
                f"bench-{os.getpid()}", "loop", LOOP_TARGETS, f"{LOOP_RATE} B", "512 MiB", scratch / "loop", memory=True
            )
            made, _ = lab.up(wanted)
            try:
                print("-- labs of loop devices", flush=True)
                choices.append(loop_labs(5 if options.quick else 100, made))
                print("-- cost", flush=True)
                found = cost(made, 3 if options.quick else 15)
                found_now = {**probe.probe(made.root, probe.Options(), None), "path": "the lab"}
                picture = to_svg(probe_picture.chart(found_now))
                if launch.available(launch.KERNEL_RUNNER, targets_runs.KIND):
                    runs = targets_runs.measure(made, scratch, LOOP_RATE, LOOP_TARGETS, options.quick)
                    print("-- timelines", flush=True)
                    activity = targets_timeline.measure(made, scratch)
            finally:
                lab.down(made.name, made.root, force=True)
            if runs is not None:
                print("-- cold reads", flush=True)
                reads = targets_reads.measure(scratch, LOOP_RATE, LOOP_TARGETS, options.quick)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    lines += choice_lines(choices)
    if found is not None:
        lines += [*cost_lines(found), "![bandwidth of each target, and of all together](targets.svg)", ""]
    else:
        lines += [f"Nothing was measured on devices, for want of: {'; '.join(missing)}.", ""]
    if runs is not None:
        lines += targets_page.lines_of(runs)
    pictures = {"": picture} if found is not None else {}
    if activity is not None:
        lines += targets_timeline.lines_of(activity, "targets")
        pictures |= {f"-{name}": svg for name, svg in activity.pictures.items()}
    if reads is not None:
        lines += targets_reads.lines_of(reads, "targets-reads.svg")
        pictures["-reads"] = targets_reads.to_svg(reads)
    document |= {
        "runs": runs and asdict(runs),
        "choices": [asdict(one) for one in choices],
        "cost": found and asdict(found),
        "activity": activity and asdict(activity),
        "reads": reads and asdict(reads),
    }
    text = "\n".join([
        INTRODUCTION,
        run.heading(about, begin),
        *(["", "**A quick run: too few labs to quote.**"] if options.quick else []),
        "",
        *lines,
    ]).rstrip("\n") + "\n"  # fmt: skip
    run.keep("targets", text, document, options, pictures)
    missed = targets_page.missed_bars(runs) if runs is not None else []
    for line in missed:
        print(f"missed: {line}")
    return 0 if all(one.right * 100 >= one.labs * 99 for one in choices) and not missed else 1


if __name__ == "__main__":
    sys.exit(main())
