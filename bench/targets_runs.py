"""Programs on storage targets, one of them slow: what choosing them at creation is worth. Part of `make bench-targets`.

Lives here: runs of the kernels on labs, and their tables. Not here: whether probing chooses the right targets and what
it costs (bench_targets.py), labs (python/ioweir/lab.py), what is run (kernels/runner).
"""

from __future__ import annotations

import filecmp
import random
import re
import shutil
import statistics
import subprocess
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import launch
from ioweir import lab
from ioweir.compiled import compiled
from ioweir.units import rate

MB = 1_000_000
MIB = 1 << 20
KIND = "openmpi"
RANKS = 8
SEED = 20161002
CHOSEN, SUBFILED, STRIPED = "chosen.data", "subfiled.data", "striped.data"
FREE = {CHOSEN: "chosen-free.data", SUBFILED: "subfiled-free.data"}
TITLES = {
    CHOSEN: "`subfiles:auto`: probed, a subfile on each good target, an aggregator for each",
    SUBFILED: "subfiles over all targets, an aggregator for each",
    STRIPED: "one file's stripes over all targets, even domains of 4 aggregators (the shared file)",
}
TITLES |= {free: TITLES[file] + "; contention-free order" for file, free in FREE.items()}
KERNEL = ("coll_perf", "local=128,128,128", "variables=2")
KERNEL_MIB = 128
MOVING, STAYING = "moving.data", "staying.data"
APPENDED = ("ior-strided", "transfer=1MiB", "piece=64KiB")
GROWING = ((MOVING, 128), (MOVING, 256), (STAYING, 128))
"""Rule's file and MiB that each rank adds to it."""
SLOW_AFTER_S = 4.0
LOG_KERNEL = ("btio", "class=B", "writes=12")
LOG_RANKS = 4
LOG_STATE = "log-buckets"


@dataclass
class Way:
    """The runs of one way: MiB/s to fsync."""

    written: list[float] = field(default_factory=list)

    @property
    def mean(self) -> float:
        """Of all runs."""
        return statistics.mean(self.written)

    @property
    def deviation(self) -> float:
        """Standard deviation of the runs."""
        return statistics.stdev(self.written)


@dataclass
class Runs:
    """What was measured."""

    target_rate: int
    targets: int
    fixed: dict[str, Way] = field(default_factory=dict)
    ideal_mib_per_s: float = 0.0
    """Of the targets that are not slow, in the fixed lab."""
    probe_s: list[float] = field(default_factory=list)
    wrong: int = 0
    """Files of which other targets were chosen than the fast ones."""
    varied: dict[str, Way] = field(default_factory=dict)
    aggregators: dict[str, list[float]] = field(default_factory=dict)
    """File -> seconds that each aggregator spent writing to storage, contention-free order."""
    exchange_share: dict[str, float] = field(default_factory=dict)
    rebalanced: dict[str, float] = field(default_factory=dict)
    """Rule's file and MiB a rank -> what was written over what the targets could have taken."""
    log_share: float = 0.0
    """Speed through logs over the sum of the targets' rates."""
    log_right: bool = False


def plan_text(directories: list[Path]) -> str:
    """A rule for each way."""
    everywhere = "targets = [" + ", ".join(f'"{directory}"' for directory in directories) + "]\n"
    count = len(directories)
    common = 'domains = "cyclic"\nstripe = { size = "1 MiB" }\n'
    rules = [
        f'[[file]]\nmatch = "{CHOSEN}"\nmapping = "subfiles:auto"\nwriters = "aggregators:auto"\n{common}',
        f'[[file]]\nmatch = "{SUBFILED}"\nmapping = "subfiles:{count}"\nwriters = "aggregators:auto"\n'
        f"{common}{everywhere}",
        f'[[file]]\nmatch = "{STRIPED}"\nmapping = "subfiles:{count}"\nwriters = "aggregators:4"\n'
        f'domains = "even"\nstripe = {{ size = "1 MiB" }}\n{everywhere}',
    ]
    for file in (MOVING, STAYING):
        rules.append(
            f'[[file]]\nmatch = "{file}"\nmapping = "subfiles:{count}"\nwriters = "aggregators:auto"\n'
            f'domains = "cyclic"\norder = "contention-free"\nstripe = {{ size = "128 KiB" }}\n{everywhere}'
            + ("rebalance = true\n" if file == MOVING else "")
        )
    for file, free in FREE.items():
        rule = rules[0 if file == CHOSEN else 1].replace(file, free)
        rules.append(rule + 'order = "contention-free"\n')
    return "\n".join(rules)


def run_ways(place: Path, scratch: Path, ways: list[str], repeats: int, salt: int) -> tuple[list[Any], Any]:
    """Files of these ways in turn, each to fsync: the runner's lines and the report."""
    trace = scratch / f"trace-{salt}"
    modes = ",".join(f"mpiio:{way}" for way in ways)
    words = [*KERNEL, "--directory", str(place), "--mode", modes, "--repeats", str(repeats), "--sync", "1",
             "--salt", str(salt)]  # fmt: skip
    lines = launch.run_program(
        launch.KERNEL_RUNNER, KIND, RANKS, words, launch.Traced(trace, scratch / "plan.toml", "mpiio")
    )
    report = launch.report(trace)
    shutil.rmtree(trace)
    wrong = [line for line in lines if not line["read_correct"]]
    if wrong:
        raise launch.BenchmarkError(f"what was read is not what was written: {wrong}")
    return lines, report


def add_lines(ways: dict[str, Way], lines: list[Any]) -> None:
    """Sorts the runner's lines by their files."""
    for line in lines:
        ways.setdefault(line["file"], Way()).written.append(line["write_mib_per_s"])


def chosen_lines(report: Any) -> list[tuple[float, set[str], set[str]]]:
    """Of each probed file: seconds that probing took, targets chosen, targets left out."""
    found = []
    for line in report["messages"]:
        match = re.search(r"probed in ([0-9.]+) s .* chosen: (.*?)(?:; left out: (.*))?$", line)
        if match is not None:
            names = [set(re.findall(r"\b(t\d+) [0-9(]", part or "")) for part in match.groups()[1:]]
            found.append((float(match[1]), names[0], names[1]))
    return found


def fixed_lab(made: lab.Lab, scratch: Path, runs: Runs, repeats: int) -> None:
    """One target at a ninth; all ways in turn."""
    slow = runs.targets // 2
    for i in range(runs.targets):
        lab.slow(made.name, made.root, i, "1/9" if i == slow else "full")
    lines, report = run_ways(made.root, scratch, [CHOSEN, SUBFILED, STRIPED], repeats, 1)
    add_lines(runs.fixed, lines)
    runs.ideal_mib_per_s = runs.target_rate * (runs.targets - 1) / MIB
    for took, _, left_out in chosen_lines(report):
        runs.probe_s.append(took)
        runs.wrong += left_out != {f"t{slow}"}
    free_runs(made, scratch, runs, repeats)


def free_runs(made: lab.Lab, scratch: Path, runs: Runs, repeats: int) -> None:
    """The same lab in contention-free order, where writing a stripe lasts until it is on the device."""
    lines, report = run_ways(made.root, scratch, list(FREE.values()), repeats, 2)
    add_lines(runs.fixed, lines)
    for row in report["plan"]["engine"]:
        name = Path(row["path"]).name
        if name not in FREE.values():
            continue
        # Ranks that are no aggregator have no storage time; each text is a rank's summary of the file written or read.
        for text in row["texts"]:
            wrote = re.search(r"wrote (\d+) bytes", text)
            storage = re.search(r"storage (\d+) ns", text)
            if wrote and int(wrote[1]) and storage and int(storage[1]):
                runs.aggregators.setdefault(name, []).append(int(storage[1]) / 1e9)
        total = row["exchange_s"] + row["storage_s"]
        runs.exchange_share[name] = row["exchange_s"] / total if total else 0.0


def varied_labs(made: lab.Lab, scratch: Path, runs: Runs, repeats: int) -> None:
    """Another target is slow in each run, by a factor of 2 to 9."""
    dice = random.Random(SEED)
    for i in range(repeats):
        slow, factor = dice.randrange(runs.targets), dice.uniform(2, 9)
        for target in range(runs.targets):
            value = f"{int(runs.target_rate / factor)} B" if target == slow else "full"
            lab.slow(made.name, made.root, target, value)
        lines, report = run_ways(made.root, scratch, [CHOSEN, SUBFILED], 1, 10 + i)
        add_lines(runs.varied, lines)
        runs.wrong += sum(left_out != {f"t{slow}"} for _, _, left_out in chosen_lines(report))


def turning_slow(made: lab.Lab, scratch: Path, runs: Runs) -> None:
    """A file that grows call by call, and a target that is slowed to a ninth meanwhile."""
    for file, each in GROWING:
        for target in range(runs.targets):
            lab.slow(made.name, made.root, target, "full")
        trace = scratch / f"trace-{file}"
        words = [
            *APPENDED,
            f"data={each}MiB",
            "--directory",
            str(made.root),
            "--mode",
            f"mpiio:{file}",
            "--sync",
            "1",
            "--salt",
            "7",
        ]
        begun = threading.Event()

        def slow_down(begun: threading.Event = begun, file: str = file) -> None:
            while not (made.root / file).exists() and not begun.is_set():
                time.sleep(0.01)
            time.sleep(SLOW_AFTER_S)
            lab.slow(made.name, made.root, 3, "1/9")

        thread = threading.Thread(target=slow_down)
        thread.start()
        try:
            lines = launch.run_program(
                launch.KERNEL_RUNNER, KIND, RANKS, words, launch.Traced(trace, scratch / "plan.toml", "mpiio")
            )
        finally:
            begun.set()
            thread.join()
        messages = launch.report(trace)["messages"]
        shutil.rmtree(trace)
        if not lines[0]["read_correct"]:
            raise launch.BenchmarkError(f"what was read is not what was written: {lines}")
        if (file == MOVING) != any("gets no further stripes" in line for line in messages):
            raise launch.BenchmarkError(f"not as planned: {file}: {messages}")
        took = each * RANKS / lines[0]["write_mib_per_s"]
        able = runs.target_rate / MIB * (runs.targets * took - max(0.0, took - SLOW_AFTER_S))
        runs.rebalanced[f"{file} {each}"] = each * RANKS / able


def through_logs(scratch: Path, runs: Runs) -> None:
    """BTIO's strided pieces into logs on token buckets, and the merged file against one that the MPI library wrote."""
    rates = ",".join([f"{runs.target_rate} B".replace(" ", "")] * runs.targets)
    throttle = f"stripe=64KiB rates={rates} state={scratch / LOG_STATE}"
    plan = scratch / "log.toml"
    plan.write_text(
        f'[[file]]\nmatch = "log.data"\nmapping = "log"\nwriters = "aggregators:{LOG_RANKS}"\n', encoding="utf-8"
    )
    words = [*LOG_KERNEL, "--directory", str(scratch), "--keep", "1", "--salt", "5", "--mode"]
    plain = launch.run_program(launch.KERNEL_RUNNER, KIND, LOG_RANKS, [*words, "mpiio:plain.data"])
    traced = launch.Traced(scratch / "trace-log", plan, "mpiio")
    lines = launch.run_program(
        launch.KERNEL_RUNNER, KIND, LOG_RANKS, [*words, "mpiio:log.data"], traced, {"IOWEIR_TEST_THROTTLE": throttle}
    )
    runs.log_share = lines[0]["write_mib_per_s"] * MIB / (runs.target_rate * runs.targets)
    whole = compiled().merge_container(str(scratch / "log.data"), str(scratch / "merged.data"))
    runs.log_right = (
        whole == (scratch / "plain.data").stat().st_size
        and plain[0]["read_correct"]
        and filecmp.cmp(scratch / "plain.data", scratch / "merged.data", shallow=False)
    )


def measure(made: lab.Lab, scratch: Path, target_rate: int, targets: int, quick: bool) -> Runs:
    """All of it, on a loop lab that is up."""
    runs = Runs(target_rate, targets)
    repeats = 2 if quick else 10
    (scratch / "plan.toml").write_text(plan_text([made.root / f"t{i}" for i in range(targets)]), encoding="utf-8")
    print("-- coll_perf, one target slow", flush=True)
    fixed_lab(made, scratch, runs, repeats)
    print("-- coll_perf, another target slow in each run", flush=True)
    varied_labs(made, scratch, runs, repeats)
    print("-- a target that turns slow", flush=True)
    turning_slow(made, scratch, runs)
    print("-- BTIO through logs", flush=True)
    through_logs(scratch, runs)
    subprocess.run(["sync"], check=False)
    return runs


# ------------------------------------------------------------------------------------------------------------- page


def table(ways: dict[str, Way], ideal: float | None) -> list[str]:
    """Mean and deviation of each way."""
    share = " | of what the good targets can give" if ideal else ""
    lines = [f"| way | runs | MiB/s, mean | standard deviation{share} |"]
    lines.append("|---|---|---|---|" + ("---|" if ideal else ""))
    for name, way in ways.items():
        of_ideal = f" {way.mean / ideal:.2f} |" if ideal else ""
        lines.append(f"| {TITLES[name]} | {len(way.written)} | {way.mean:.1f} | {way.deviation:.2f} |{of_ideal}")
    return lines


def lines_of(runs: Runs) -> list[str]:
    """The page's part."""
    fixed, varied = runs.fixed, runs.varied
    lines = [
        "## Programs: coll_perf on the good targets",
        "",
        f"{RANKS} ranks (Open MPI), {KERNEL_MIB} MiB a file in two collective calls and `MPI_File_sync`, whose time is "
        f"in the figures; opening with its probe is not. {runs.targets} loop devices of {rate(runs.target_rate)}, one "
        "at 1/9. No file system stripes over directories: a subfile on each target stands in for the shared file's "
        "stripes. "
        f"Bars: 0.9 of the {runs.ideal_mib_per_s:.1f} MiB/s of the seven others.",
        "",
        *table(fixed, runs.ideal_mib_per_s),
        "",
        f"Probing took {statistics.median(runs.probe_s):.2f} s (median of {len(runs.probe_s)} files); "
        f"other targets than the fast ones were chosen for {runs.wrong} files of this page's runs.",
        "",
        "This lab's rates are kept by the kernel to the per cent, so that the deviation of the ways without "
        "choice says "
        "little. In the next table another target is slow in each run, by a factor of 2 to 9: what a program meets "
        "that does not know. Bar: a third of the deviation of writing to all.",
        "",
        *table(varied, None),
        "",
        f"Deviation: {varied[CHOSEN].deviation / varied[SUBFILED].deviation:.2f} of that of writing to all.",
        "",
        "### Aggregators",
        "",
        "In contention-free order, where a round ends when its bytes have reached the device: seconds that each "
        "aggregator spent writing (Son et al., figure 12), and what of the collective calls' time is exchange "
        "(all ranks' time; waiting for the slowest aggregator counts as exchange).",
        "",
        "| way | aggregators, all runs | seconds, mean | standard deviation | exchange and waiting |",
        "|---|---|---|---|---|",
    ]
    for file, free in FREE.items():
        each = runs.aggregators.get(free, [])
        if len(each) > 1:
            lines.append(
                f"| {TITLES[file]} | {len(each)} | {statistics.mean(each):.2f} | {statistics.stdev(each):.2f} | "
                f"{100 * runs.exchange_share[free]:.1f} % |"
            )
    lines += [
        "",
        "## A target that turns slow",
        "",
        f"{RANKS} ranks add to a file of subfiles on all {runs.targets} targets, 1 MiB a rank and call, in "
        f"contention-free order. {SLOW_AFTER_S:.0f} s after the file was made one target is slowed to 1/9. Bytes "
        "written over what the targets could have taken in that time, the slow one counted as nothing from then on "
        "(bar: 0.8). Three calls with the slow target pass before it is left:",
        "",
        "| rule | MiB in all | share |",
        "|---|---|---|",
        *(
            f"| {'`rebalance = true`' if file == MOVING else 'without'} | {each * RANKS} | "
            f"{runs.rebalanced[f'{file} {each}']:.2f} |"
            for file, each in GROWING
        ),
    ]
    return [
        *lines,
        "",
        "## Programs: BTIO through logs",
        "",
        f'BTIO class B, 12 solutions (509 MB), {LOG_RANKS} ranks, `mapping = "log"` with as many aggregators, on '
        f"{runs.targets} token buckets of {rate(runs.target_rate)} over memory (no devices; each log is "
        "striped over all "
        f"of them): {runs.log_share:.2f} of the sum of their rates (bar: 0.95). Merged by one process the file "
        + (
            "is the same, byte for byte, as the MPI library's."
            if runs.log_right
            else "**differs** from the MPI library's."
        ),
        "",
    ]


def missed_bars(runs: Runs) -> list[str]:
    """Bars that were missed, for a person."""
    missed = []
    best = max(runs.fixed[way].mean for way in (CHOSEN, FREE[CHOSEN]))
    if best < 0.9 * runs.ideal_mib_per_s:
        missed.append(f"chosen targets: {best / runs.ideal_mib_per_s:.2f} of the ideal, not 0.9")
    if runs.varied[CHOSEN].deviation > runs.varied[SUBFILED].deviation / 3:
        missed.append("chosen targets: deviation above a third")
    moved = max(share for file, share in runs.rebalanced.items() if file.startswith(MOVING))
    if moved < 0.8:
        missed.append(f"rebalance: {moved:.2f} of what the targets could take, not 0.8")
    if runs.log_share < 0.95 or not runs.log_right:
        missed.append(f"logs: {runs.log_share:.2f} of the sum, not 0.95, or wrong bytes")
    return missed
