"""Programs on storage targets, one of them slow: what choosing them at creation is worth. Part of `make bench-targets`.

Lives here: runs of the kernels on labs. Not here: their tables (targets_page.py), whether probing chooses the right
targets and what it costs (bench_targets.py), labs (python/ioweir/targets/lab.py), what is run (kernels/runner).
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
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ioweir.trace
import launch
from ioweir.base.compiled import compiled
from ioweir.targets import lab
from ioweir.trace import EngineWork

MIB = 1 << 20
KIND = "openmpi"
SLOW_SHARE = "1/9"
"""Of one of eight targets, as the slowest of Son et al.'s figure 2."""
RANKS = 8
SEED = 20161002
CHOSEN, SUBFILED, STRIPED = "chosen.data", "subfiled.data", "striped.data"
FREE = {CHOSEN: "chosen-free.data", SUBFILED: "subfiled-free.data"}
TITLES = {
    CHOSEN: "`subfiles:auto`, and nothing else in the rule: probed, a subfile on each good target",
    SUBFILED: "subfiles over all targets, an aggregator for each",
    STRIPED: "one file's stripes over all targets, even domains of 4 aggregators (the shared file)",
}
TITLES |= {
    FREE[CHOSEN]: "`subfiles:auto`, an aggregator for each target, contention-free order",
    FREE[SUBFILED]: TITLES[SUBFILED] + "; contention-free order",
}
KERNEL = ("coll_perf", "local=128,128,128", "variables=2")
KERNEL_MIB = 128
MOVING, STAYING = "moving.data", "staying.data"
APPENDED = ("ior-strided", "transfer=4MiB", "piece=64KiB")
SLOW_AFTER_S = 4.0
LOGGED = "logged.data"
LOG_KERNEL = ("btio", "class=B", "writes=12")
LOG_RANKS = 9
"""BTIO's are square numbers; of these one more than there are targets."""


@dataclass(frozen=True)
class Growth:
    """A file that grows call by call."""

    title: str
    file: str
    each_mib: int
    """What each rank adds to it."""
    slowed: bool


GROWTHS = (
    Growth("`rebalance = true`", MOVING, 128, slowed=True),
    Growth("`rebalance = true`", MOVING, 256, slowed=True),
    Growth("without", STAYING, 128, slowed=True),
    Growth("`rebalance = true`, and no target is slowed", MOVING, 128, slowed=False),
)


@dataclass
class Way:
    """The runs of one way: MiB/s to fsync."""

    written: list[float] = field(default_factory=list)
    spans: list[float] = field(default_factory=list)
    """The same, the time between the program's calls counted, too."""

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
    """Of the time of collective calls that write, all ranks: outside of storage, waiting for others and a processor
    included."""
    work_share: dict[str, float] = field(default_factory=dict)
    """... and time of the processor in that: copying, and telling each other."""
    reading_share: dict[str, float] = field(default_factory=dict)
    """The same of reading back, from the page cache."""
    rebalanced: list[float] = field(default_factory=list)
    """As GROWTHS: what was written over what the targets could have taken."""
    log_share: float = 0.0
    """Speed through logs over the sum of the targets' rates."""
    log_right: bool = False


@dataclass
class Spent:
    """Time in collective calls."""

    exchange_s: float = 0.0
    processor_s: float = 0.0
    storage_s: float = 0.0

    @classmethod
    def of(cls, work: EngineWork) -> Spent:
        """As a rank's record of a file says."""
        names = ("exchange_ns", "exchange_processor_ns", "storage_ns")
        return cls(*(work.figures[name] / 1e9 for name in names))

    def add(self, other: Spent) -> None:
        """Another rank's, or another file's."""
        self.exchange_s += other.exchange_s
        self.processor_s += other.processor_s
        self.storage_s += other.storage_s

    @property
    def total_s(self) -> float:
        """The calls' time, of all ranks."""
        return self.exchange_s + self.storage_s


def plan_text(directories: list[Path]) -> str:
    """A rule for each way."""
    everywhere = "targets = [" + ", ".join(f'"{directory}"' for directory in directories) + "]"
    count = len(directories)
    each_its_own = 'writers = "aggregators:auto"\ndomains = "cyclic"\nstripe = { size = "1 MiB" }'
    even = 'writers = "aggregators:4"\ndomains = "even"\nstripe = { size = "1 MiB" }'
    free = 'order = "contention-free"'
    chosen, everything = 'mapping = "subfiles:auto"', f'mapping = "subfiles:{count}"\n{everywhere}'
    rules = {
        CHOSEN: [chosen],
        SUBFILED: [everything, each_its_own],
        STRIPED: [everything, even],
        FREE[CHOSEN]: [chosen, each_its_own, free],
        FREE[SUBFILED]: [everything, each_its_own, free],
        MOVING: [everything, each_its_own, free, "rebalance = true"],
        STAYING: [everything, each_its_own, free],
        LOGGED: [f'mapping = "log"\nwriters = "aggregators:{count}"', everywhere],
    }
    return "\n".join(f'[[file]]\nmatch = "{file}"\n' + "\n".join(keys) + "\n" for file, keys in rules.items())


def run_ways(
    place: Path, scratch: Path, ways: Sequence[str], repeats: int, salt: int, kernel: Sequence[str] = KERNEL,
    mode: str = "mpiio",
) -> tuple[list[Any], Any, tuple[EngineWork, ...]]:  # fmt: skip
    """Files of these ways in turn, each to fsync: the runner's lines, the report, what the engine did for each rank."""
    trace = scratch / f"trace-{salt}"
    modes = ",".join(f"{mode}:{way}" for way in ways)
    words = [*kernel, "--directory", str(place), "--mode", modes, "--repeats", str(repeats), "--sync", "1",
             "--salt", str(salt)]  # fmt: skip
    lines = launch.run_program(
        launch.KERNEL_RUNNER, KIND, RANKS, words, launch.Traced(trace, scratch / "plan.toml", "mpiio")
    )
    report = launch.report(trace)
    work = ioweir.trace.read(trace).engine_work
    shutil.rmtree(trace)
    wrong = [line for line in lines if not line["read_correct"]]
    if wrong:
        raise launch.BenchmarkError(f"what was read is not what was written: {wrong}")
    return lines, report, work


def add_lines(ways: dict[str, Way], lines: list[Any]) -> None:
    """Sorts the runner's lines by their files."""
    for line in lines:
        way = ways.setdefault(line["file"], Way())
        way.written.append(line["write_mib_per_s"])
        way.spans.append(line["mib"] / line["write_span_s"])


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
        lab.slow(made.name, made.root, i, SLOW_SHARE if i == slow else "full")
    lines, report, _ = run_ways(made.root, scratch, [CHOSEN, SUBFILED, STRIPED], repeats, 1)
    add_lines(runs.fixed, lines)
    runs.ideal_mib_per_s = runs.target_rate * (runs.targets - 1) / MIB
    for took, _, left_out in chosen_lines(report):
        runs.probe_s.append(took)
        runs.wrong += left_out != {f"t{slow}"}
    free_runs(made, scratch, runs, max(2, repeats // 2))


def free_runs(made: lab.Lab, scratch: Path, runs: Runs, repeats: int) -> None:
    """The same lab in contention-free order, where writing a stripe lasts until it is on the device."""
    lines, _, work = run_ways(made.root, scratch, list(FREE.values()), repeats, 2)
    add_lines(runs.fixed, lines)
    for name in FREE.values():
        writing, reading = Spent(), Spent()
        for one in work:
            if Path(one.path).name != name:
                continue
            rank = Spent.of(one)
            if one.figures["written_bytes"] == 0:
                reading.add(rank)
                continue
            writing.add(rank)
            if rank.storage_s > 0:  # ranks that are no aggregator have none
                runs.aggregators.setdefault(name, []).append(rank.storage_s)
        runs.exchange_share[name] = writing.exchange_s / writing.total_s
        runs.work_share[name] = writing.processor_s / writing.total_s
        runs.reading_share[name] = reading.processor_s / reading.total_s


def varied_labs(made: lab.Lab, scratch: Path, runs: Runs, repeats: int) -> None:
    """Another target is slow in each run, by a factor of 2 to 9."""
    dice = random.Random(SEED)
    for i in range(repeats):
        slow, factor = dice.randrange(runs.targets), dice.uniform(2, 9)
        for target in range(runs.targets):
            value = f"{int(runs.target_rate / factor)} B" if target == slow else "full"
            lab.slow(made.name, made.root, target, value)
        lines, report, _ = run_ways(made.root, scratch, [CHOSEN, SUBFILED], 1, 10 + i)
        add_lines(runs.varied, lines)
        runs.wrong += sum(left_out != {f"t{slow}"} for _, _, left_out in chosen_lines(report))


def turning_slow(made: lab.Lab, scratch: Path, runs: Runs, growths: Sequence[Growth]) -> None:
    """Files that grow call by call, and a target that is slowed to a ninth meanwhile."""
    for growth in growths:
        all_full(made, runs)
        trace = scratch / "trace-growth"
        words = [
            *APPENDED, f"data={growth.each_mib}MiB", "--directory", str(made.root), "--mode", f"mpiio:{growth.file}",
            "--sync", "1", "--salt", "7",
        ]  # fmt: skip
        ended = threading.Event()

        def slow_down(ended: threading.Event = ended, path: Path = made.root / growth.file) -> None:
            while not path.exists() and not ended.is_set():
                time.sleep(0.01)
            if not ended.wait(SLOW_AFTER_S):
                lab.slow(made.name, made.root, 3, SLOW_SHARE)

        thread = threading.Thread(target=slow_down)
        if growth.slowed:
            thread.start()
        try:
            lines = launch.run_program(
                launch.KERNEL_RUNNER, KIND, RANKS, words, launch.Traced(trace, scratch / "plan.toml", "mpiio")
            )
        finally:
            ended.set()
            if growth.slowed:
                thread.join()
        messages = launch.report(trace)["messages"]
        shutil.rmtree(trace)
        if not lines[0]["read_correct"]:
            raise launch.BenchmarkError(f"what was read is not what was written: {lines}")
        left = any("gets no further stripes" in line for line in messages)
        if left != (growth.file == MOVING and growth.slowed):
            raise launch.BenchmarkError(f"not as planned: {growth}: {messages}")
        took = lines[0]["write_span_s"]
        slow_s = max(0.0, took - SLOW_AFTER_S) if growth.slowed else 0.0
        able = runs.target_rate / MIB * (runs.targets * took - slow_s)
        runs.rebalanced.append(growth.each_mib * RANKS / able)


def all_full(made: lab.Lab, runs: Runs) -> None:
    """No target is slow."""
    for target in range(runs.targets):
        lab.slow(made.name, made.root, target, "full")


def through_logs(made: lab.Lab, scratch: Path, runs: Runs) -> None:
    """BTIO's strided pieces into a log on each target, and the merged file against one that the MPI library wrote."""
    all_full(made, runs)
    words = [*LOG_KERNEL, "--keep", "1", "--sync", "1", "--salt", "5"]
    plain = launch.run_program(
        launch.KERNEL_RUNNER, KIND, LOG_RANKS, [*words, "--directory", str(scratch), "--mode", "mpiio:plain.data"]
    )
    traced = launch.Traced(scratch / "trace-log", scratch / "plan.toml", "mpiio")
    lines = launch.run_program(
        launch.KERNEL_RUNNER, KIND, LOG_RANKS,
        [*words, "--directory", str(made.root), "--mode", f"mpiio:{LOGGED}"], traced,
    )  # fmt: skip
    runs.log_share = lines[0]["mib"] / lines[0]["write_span_s"] * MIB / (runs.target_rate * runs.targets)
    whole = compiled().merge_container(str(made.root / LOGGED), str(scratch / "merged.data"))
    runs.log_right = (
        whole == (scratch / "plain.data").stat().st_size
        and plain[0]["read_correct"]
        and lines[0]["read_correct"]
        and filecmp.cmp(scratch / "plain.data", scratch / "merged.data", shallow=False)
    )
    for name in ("plain.data", "merged.data"):
        (scratch / name).unlink()
    compiled().merge_container(str(made.root / LOGGED), str(made.root / LOGGED))
    (made.root / LOGGED).unlink()


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
    turning_slow(made, scratch, runs, GROWTHS)
    print("-- BTIO through logs", flush=True)
    through_logs(made, scratch, runs)
    subprocess.run(["sync"], check=False)
    return runs
