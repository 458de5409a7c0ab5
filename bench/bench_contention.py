#!/usr/bin/env python3
"""Contention-free against sequential order on throttled targets: `make bench-contention`, or --help.

Figures 8 to 11 of Wang et al. 2014 (IBCS), scaled: on token buckets, or with --devices on the loop devices
of a lab. Lives here: what is varied, and the page. Not here: the strategies (src/planner), the targets
(src/storage/throttle.hpp, python/ioweir/targets/lab.py), one run (launch.py), statistics (pairs.py).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path

import engine_cases
import launch
import pairs
import planned_rounds
import run
from ioweir.targets import lab, lab_loop

SEQUENTIAL = "even"
FREE = "contention-free"
SHORTEST = "shortest"
WAYS = {
    SEQUENTIAL: ("even", "sequential"),
    FREE: ("even", "contention-free"),
    SHORTEST: ("even", "contention-free"),
    "cooperative": ("cooperative", "contention-free"),
    "cyclic": ("cyclic", "sequential"),
}
"""Name -> domains and order. The first is ROMIO's way, the second the paper's, the others go beyond it; the third has
the shortest rounds instead of the fewest."""
MIB_PER_S = 24
"""Of one target, so that a dozen are slower than what two processors move."""
DEVICES = 8
DEVICE_RATE = 12_000_000
PAPER = {"write": 1.63, "read": 1.47}
"""Gains of its figure 8, section IV-B."""

INTRODUCTION = f"""\
# Results: contention-free order

The comparisons of Wang et al. 2014 (IBCS), figures 8 to 11: aggregators that work through their parts in ROMIO's order
(even domains, sequential) against the same domains in contention-free order. Beside them what ioweir has besides: the
shortest rounds instead of the fewest (`rounds = "shortest"`: stripes are put in order, so that all who move something
in a round move about as much). There are cooperative domains (boundaries moved by whole stripes, contention-free,
fewest rounds) and cyclic ones (a target belongs to one aggregator throughout, which costs more exchange). Repeat with

    make bench-contention              # builds, measures, writes build/bench/contention.{{json,md}}
    make bench-contention RECORD=1     # the same, and into this page
    make bench-contention QUICK=1      # three rounds of a few cases: to see that it works, not to quote

**Scaled and throttled.** The targets are token buckets of ioweir's engine over memory (`IOWEIR_TEST_THROTTLE`): each
moves {MIB_PER_S} MiB/s, one transfer after another, stripes of 1 MiB. No device is behind them: writers that meet at a
target wait for each other while other targets stand idle, and that is all contention costs here; seeks and locks of a
real file system, from which the paper gains too, are absent. The exchange is within one node. Each rank moves 96 MiB in
two calls (the paper: 576 MiB in twelve). Open MPI, all ways take turns in one process; medians of ratios within rounds
with their 95 per cent intervals (order statistics); closed files were compared byte by byte in the first round of each.

Collisions: by the plan, how many of the pairs (round, target) in which anything is written have more than one writer,
as a share of all; and the rounds of the longest writer.
"""

DEVICES_INTRODUCTION = f"""\
# Results: contention-free order on devices

The comparisons of Wang et al. 2014 (IBCS), figures 8 to 11, on the loop devices of `ioweir lab`. Aggregators work
through their parts in ROMIO's order (even domains, sequential), or through the same domains in contention-free order,
with the fewest or with the shortest rounds; beside them cooperative domains (boundaries moved by whole stripes) and
cyclic ones (a target belongs to one aggregator throughout). On token buckets the same is measured by `make
bench-contention`. Repeat with

    make bench-contention DEVICES=1             # builds, measures (root), writes build/bench/contention-devices.*
    make bench-contention DEVICES=1 RECORD=1    # the same, and into this page

**Scaled.** {DEVICES} devices with an ext4 each, which the kernel limits to {DEVICE_RATE / (1 << 20):.1f} MiB/s. No file
system stripes over directories, so that the file is one of subfiles (`mapping = "subfiles"`), stripes of 1 MiB. Each
rank of IOR moves 12 MiB in two calls (the paper: 576 MiB in twelve). Writing ends when the bytes are on the devices
(`MPI_File_sync` in the last call), and nothing that is read is in the page cache (`--cold`). Each device's bytes a
second are limited: as with token buckets, writers that meet at one cost time only while others stand idle. In
sequential order the page cache takes what is written, and the kernel writes to all devices at once, whoever met where;
contention-free order waits for the devices in each round. So its gain can show in reading, and in writing its price.
Open MPI, all ways take turns in one process; medians of ratios within rounds with their 95 per cent intervals (order
statistics); closed files were compared byte by byte in the first round of each.

Collisions: by the plan, how many of the pairs (round, target) in which anything is written have more than one writer,
as a share of all; and the rounds of the longest writer.
"""


@dataclass(frozen=True)
class Case:
    """One point of a figure."""

    figure: int
    label: str
    kernel: tuple[str, ...]
    ranks: int
    targets: int
    buffer: str = "4 MiB"


@dataclass
class Result:
    """What came of it: MiB/s of each round, by way and direction; rounds and collisions, by way."""

    case: Case
    speeds: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    planned: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    """Way -> rounds, pairs of round and target with more than one writer, all such pairs with a writer."""
    not_as_planned: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Storage:
    """What the targets are: directories of a lab under `root`, or token buckets."""

    mib_per_s: float = MIB_PER_S
    root: Path | None = None
    directories: tuple[Path, ...] = ()


@contextmanager
def devices() -> Iterator[Storage]:
    """A lab of loop devices, as long as it is needed."""
    scratch = Path(tempfile.mkdtemp(prefix="ioweir-bench-", dir=run.TMPFS))
    try:
        wanted = lab.Wanted(
            f"contention-{os.getpid()}", "loop", DEVICES, f"{DEVICE_RATE} B", "512 MiB", scratch / "lab", memory=True
        )
        made, _ = lab.up(wanted)
        try:
            yield Storage(DEVICE_RATE / (1 << 20), made.root, tuple(made.target(i) for i in range(DEVICES)))
        finally:
            lab.down(made.name, made.root, force=True)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def cases_of_devices(quick: bool) -> Iterator[Case]:
    """The paper's, scaled to slow devices."""
    segmented = ("ior-segmented", "data=12MiB", "transfer=6MiB")
    yield Case(8, "IOR segmented, 8 ranks", segmented, 8, 8)
    strided = ("ior-strided", "data=12MiB", "transfer=6MiB", "piece=256KiB")
    yield Case(8, "IOR strided, pieces of 256 KiB, 8 ranks", strided, 8, 8)
    for buffer in ("512 KiB", "2 MiB") if not quick else ("2 MiB",):
        yield Case(9, f"IOR segmented, buffer {buffer}", segmented, 8, 8, buffer)
    for targets in (2, 4) if not quick else (4,):
        yield Case(10, f"IOR segmented, {targets} targets, ranks and aggregators", segmented, targets, targets)
    for ranks in (4, 9, 16) if not quick else (4,):
        yield Case(11, f"BTIO class B, {ranks} ranks", ("btio", "class=B", "writes=2"), ranks, 4)


def cases(quick: bool) -> Iterator[Case]:
    """The paper's, scaled."""
    segmented = ("ior-segmented", "data=96MiB", "transfer=48MiB")
    yield Case(8, "IOR segmented, 6 ranks", segmented, 6, 6)
    strided = ("ior-strided", "data=96MiB", "transfer=48MiB", "piece=256KiB")
    yield Case(8, "IOR strided, pieces of 256 KiB, 6 ranks", strided, 6, 6)
    for buffer in ("512 KiB", "1 MiB", "8 MiB") if not quick else ("1 MiB",):
        yield Case(9, f"IOR segmented, buffer {buffer}", segmented, 6, 6, buffer)
    for targets in (4, 8, 12) if not quick else (4,):
        yield Case(10, f"IOR segmented, {targets} targets, ranks and aggregators", segmented, targets, targets)
    for ranks in (9, 16, 25, 36) if not quick else (9,):
        yield Case(11, f"BTIO class C, {ranks} ranks", ("btio", "class=C", "writes=2"), ranks, 4)


def rule(case: Case, way: str, directories: tuple[Path, ...] = ()) -> str:
    """The rule of one way, for a file of its own; of subfiles where there are directories."""
    domains, order = WAYS[way]
    buffer = f'buffer = "{case.buffer}"\n' if domains != "cyclic" else ""
    text = (
        f'[[file]]\nmatch = "{way}.data"\nwriters = "aggregators:{case.targets}"\ndomains = "{domains}"\n'
        f'order = "{order}"\n{buffer}'
    )
    if way == SHORTEST:
        text += 'rounds = "shortest"\n'
    if not directories:
        return text + f'stripe = {{ size = "1 MiB", count = {case.targets} }}\n'
    names = ", ".join(f'"{directory}"' for directory in directories[: case.targets])
    return text + f'stripe = {{ size = "1 MiB" }}\nmapping = "subfiles:{case.targets}"\ntargets = [{names}]\n'


def collisions(case: Case, way: str, scratch: Path) -> tuple[int, int, int]:
    """Rounds, collisions and pairs of round and target of the first call, by the plan."""
    plan = scratch / "explain.toml"
    plan.write_text(rule(case, way), encoding="utf-8")
    name, *parameters = case.kernel
    done = subprocess.run(
        [launch.IOWEIR, "explain", "--plan", plan, "--kernel", name, "--file", f"{way}.data",
         "--ranks", str(case.ranks), "--json", "--all", *parameters],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    document = json.loads(done.stdout)
    if not document["complete"]:
        raise launch.BenchmarkError(f"ioweir explain left steps out of {case.label}")
    writers = Counter((step["round"], target) for step in document["steps"] for target in step["targets"])
    return document["summary"]["rounds"], sum(count > 1 for count in writers.values()), len(writers)


def measure(result: Result, rounds: int, scratch: Path, storage: Storage) -> None:
    """All ways in turn in one process."""
    case = result.case
    rules = {way: rule(case, way, storage.directories) for way in WAYS}
    if storage.root is None:
        rates = ",".join([f"{MIB_PER_S}MiB"] * case.targets)
        environment = {"IOWEIR_TEST_THROTTLE": f"stripe=1MiB rates={rates} state={scratch / 'targets'}"}
        options: tuple[str, ...] = ()
    else:
        environment, options = {}, ("--sync", "1", "--cold", "1")
    result.speeds, exchanged = planned_rounds.run(
        scratch, "openmpi", case.ranks, case.kernel, rules, rounds, environment, directory=storage.root, options=options
    )
    result.not_as_planned = {way: "no exchange took place" for way in WAYS if way not in exchanged}


# ------------------------------------------------------------------------------------------------------------- page


def share(value: float, whole: float) -> str:
    """Per cent without decimals."""
    return f"{100 * value / whole:.0f} %" if whole else "-"


def table(results: list[Result], direction: str, mib_per_s: float) -> list[str]:
    """Speeds, ratios and collisions of the cases of one figure."""
    lines = [
        f"### {'Writing' if direction == 'write' else 'Reading'}",
        "",
        "| case | targets together, MiB/s | sequential, of that | contention-free, of that | contention-free / "
        "sequential | the same, shortest rounds | cooperative / sequential | cyclic / sequential |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for result in results:
        nominal = mib_per_s * result.case.targets
        base = result.speeds[SEQUENTIAL][direction]
        cells = [result.case.label, f"{nominal:.0f}", share(pairs.median(base), nominal)]
        cells.append(share(pairs.median(result.speeds[FREE][direction]), nominal))
        for way in (FREE, SHORTEST, "cooperative", "cyclic"):
            speeds = result.speeds[way][direction]
            ratio = pairs.median_interval([a / b for a, b in zip(speeds, base, strict=True)])
            cells.append(result.not_as_planned.get(way) or ratio.text(2))
        lines.append("| " + " | ".join(cells) + " |")
    return [*lines, ""]


def plan_table(results: list[Result]) -> list[str]:
    """Rounds and collisions."""
    lines = [
        "### Rounds and collisions of a call",
        "",
        "| case | " + " | ".join(WAYS) + " |",
        "|---" * (1 + len(WAYS)) + "|",
    ]
    for result in results:
        cells = [
            f"{rounds} rounds, {share(met, places)} of {places}" for rounds, met, places in result.planned.values()
        ]
        lines.append("| " + " | ".join([result.case.label, *cells]) + " |")
    return [*lines, ""]


def to_page(results: list[Result], heading: str, quick: bool, storage: Storage) -> str:
    """The page of results."""
    titles = {
        8: "Figure 8: both strategies",
        9: "Figure 9: sizes of the buffer",
        10: "Figure 10: numbers of targets",
        11: "Figure 11: BTIO, 4 aggregators on 4 targets",
    }
    lines = [INTRODUCTION if storage.root is None else DEVICES_INTRODUCTION, heading, ""]
    if quick:
        lines += ["**A quick run: too few rounds to quote.**", ""]
    for figure, title in titles.items():
        rows = [result for result in results if result.case.figure == figure]
        if not rows:
            continue
        lines += [f"## {title}", ""]
        if figure == 8:
            lines += [f"The paper measured {PAPER['write']} in writing and {PAPER['read']} in reading.", ""]
        if figure == 9:
            rows = [results[0], *rows]
        for direction in engine_cases.DIRECTIONS:
            lines += table(rows, direction, storage.mib_per_s)
        lines += plan_table(rows)
    return "\n".join(lines).rstrip("\n") + "\n"


def parse() -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a few cases, three rounds")
    parser.add_argument("--devices", action="store_true", help="on loop devices (root) instead of token buckets")
    parser.add_argument("--rounds", type=int, help="of each case (default 7)")
    parser.add_argument("--output", type=Path, default=launch.ROOT / "build" / "bench", help="directory of the results")
    parser.add_argument("--record", type=Path, metavar="PAGE", help="also write the page there")
    return parser.parse_args()


def main() -> int:
    """Measures; exit code 1 if something failed."""
    options = parse()
    rounds = options.rounds or (3 if options.quick else 7)
    if not launch.available(launch.KERNEL_RUNNER, "openmpi"):
        print("Open MPI's kernel runner is not there; run make bench-contention, which builds it", file=sys.stderr)
        return 1
    missing = lab_loop.LoopBackend().missing() if options.devices else []
    if missing:
        print(f"--devices needs more: {'; '.join(missing)}", file=sys.stderr)
        return 1
    about = run.machine()
    begin = time.monotonic()
    results = []
    with devices() if options.devices else nullcontext(Storage()) as storage:
        for case in cases_of_devices(options.quick) if options.devices else cases(options.quick):
            print(f"-- figure {case.figure}: {case.label}", flush=True)
            scratch = Path(tempfile.mkdtemp(prefix="ioweir-bench-", dir=run.TMPFS))
            result = Result(case)
            try:
                result.planned = {way: collisions(case, way, scratch) for way in WAYS}
                measure(result, rounds, scratch, storage)
            finally:
                shutil.rmtree(scratch, ignore_errors=True)
            results.append(result)
    heading = run.heading(about, begin, f"{rounds} rounds; ")
    name = "contention-devices" if options.devices else "contention"
    text = to_page(results, heading, options.quick, storage)
    document = {"machine": about, "rounds": rounds, "results": [asdict(result) for result in results]}
    run.keep(name, text, document, options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
