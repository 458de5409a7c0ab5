"""netCDF files on storage targets: one shared file, subfiles on all targets, subfiles on selected ones.

Lives here: the runs of the kernels over PnetCDF. Not here: tables, pictures and bars (bench_subfiles.py), labs
(python/ioweir/targets/lab.py), what the kernels write (kernels/).
"""

from __future__ import annotations

import filecmp
import random
import re
import shutil
import statistics
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import launch
import targets_runs
from ioweir.targets import lab
from targets_runs import KIND, MIB, RANKS, SLOW_SHARE, Way

SHARED, EVERYWHERE, SELECTED = "shared", "all", "selected"
TITLES = {
    SHARED: "one file, its stripes on all targets",
    EVERYWHERE: "subfiles on all targets",
    SELECTED: "subfiles on selected targets",
}
READERS = (1, 3, 4, 7)
SEED = 20161003
SALT = 11
CLOCKS = re.compile(
    r"(\S+): subfiles: all ranks' calls took ([0-9.]+) s, of these exchange ([0-9.]+) s \(([0-9.]+) s of the "
    r"processor\), storage ([0-9.]+) s; storage of a rank ([0-9.]+) to ([0-9.]+) s"
)


@dataclass(frozen=True)
class Program:
    """A kernel over PnetCDF, with one file or several."""

    name: str
    files: tuple[tuple[str, ...], ...]
    """The kernel's words for each."""
    quick: tuple[tuple[str, ...], ...]
    """The same with fewer bytes."""
    key: str = ""
    """More of the plan's key `netcdf`."""

    def kernels(self, quick: bool) -> tuple[tuple[str, ...], ...]:
        """Those of this run."""
        return self.quick if quick else self.files


def flash(blocks: int) -> tuple[tuple[str, ...], ...]:
    """A checkpoint and two plot files."""
    return tuple(("flash", f"output={output}", f"blocks={blocks}") for output in ("checkpoint", "plot", "corners"))


PROGRAMS = (
    Program("coll_perf", (("coll_perf", "local=128,128,128", "variables=2"),),
            (("coll_perf", "local=64,64,64", "variables=4"),)),
    Program("FLASH-IO", flash(20), flash(5), ", min_ndims = 3"),
    Program("S3D", (("s3d",),), (("s3d", "local=32,32,32"),), ', par_dim = "z"'),
    Program("gcrm-pnetcdf", (("gcrm-pnetcdf", "level=4"),), (("gcrm-pnetcdf", "level=3"),)),
)  # fmt: skip


@dataclass
class Clocks:
    """Where the time of collective calls went, all ranks and files together, seconds."""

    calls: float = 0.0
    exchange: float = 0.0
    exchange_processor: float = 0.0
    storage: float = 0.0
    least: list[float] = field(default_factory=list)
    """Storage of the rank that had the least of it, in each file."""
    most: list[float] = field(default_factory=list)


@dataclass
class Result:
    """One program."""

    name: str
    mib: float = 0.0
    equal: dict[str, Way] = field(default_factory=dict)
    slow: dict[str, Way] = field(default_factory=dict)
    varied: dict[str, Way] = field(default_factory=dict)
    clocks: dict[str, Clocks] = field(default_factory=dict)
    """Of the lab with a slow target."""
    wrong: int = 0
    """Files for which other targets were chosen than the fast ones."""
    cold: dict[str, Way] = field(default_factory=dict)
    """Read by as many ranks as have written."""
    readers: dict[int, float] = field(default_factory=dict)
    """Subfiles on selected targets, read by others: MiB/s; every value was compared."""
    merged: bool = False
    """The merged files are those that the program writes without ioweir, byte for byte."""


@dataclass
class Runs:
    """All of it."""

    target_rate: int
    targets: int
    results: list[Result] = field(default_factory=list)

    def ideal(self, slow: int) -> float:
        """MiB/s of the targets that are not slow."""
        return self.target_rate * (self.targets - slow) / MIB


def plan_text(program: Program, directories: list[Path]) -> str:
    """A rule for each way."""
    everywhere = "targets = [" + ", ".join(f'"{directory}"' for directory in directories) + "]"
    count = len(directories)
    rules = {
        SHARED: f'mapping = "subfiles:{count}"\n{everywhere}\nwriters = "aggregators:4"\ndomains = "even"\n'
        'stripe = { size = "1 MiB" }',
        EVERYWHERE: f"netcdf = {{ subfiles = {count}{program.key} }}\n{everywhere}",
        SELECTED: f'netcdf = {{ subfiles = "auto"{program.key} }}',
    }
    return "\n".join(f'[[file]]\nmatch = "*/{way}.nc"\n{keys}\n' for way, keys in rules.items())


def add(ways: dict[str, Way], parts: Iterable[list[Any]], ways_run: Iterable[str], repeats: int) -> None:
    """The files of a program in one repetition count together: their bytes over the time of all."""
    lines = [line for part in parts for line in part]
    for name in ways_run:
        way = ways.setdefault(name, Way())
        for repetition in range(repeats):
            of_run = [line for line in lines if line["file"] == f"{name}.nc" and line["repetition"] == repetition]
            mib = sum(line["mib"] for line in of_run)
            way.written.append(mib / sum(line["mib"] / line["write_mib_per_s"] for line in of_run))
            way.spans.append(mib / sum(line["write_span_s"] for line in of_run))


def add_clocks(clocks: dict[str, Clocks], report: Any) -> None:
    """What the adapter said of each file; those that were only read have no storage time in writing."""
    for line in report["messages"]:
        match = CLOCKS.search(line)
        if match is None:
            continue
        one = clocks.setdefault(Path(match[1]).stem, Clocks())
        calls, exchange, processor, storage, least, most = map(float, match.groups()[1:])
        one.calls += calls
        one.exchange += exchange
        one.exchange_processor += processor
        one.storage += storage
        one.least.append(least)
        one.most.append(most)


def set_rates(made: lab.Lab, runs: Runs, slow: int | None, factor: float = 0.0) -> None:
    """One target is slow, or none; `factor` 0: as SLOW_SHARE."""
    for target in range(runs.targets):
        value = "full"
        if target == slow:
            value = f"{int(runs.target_rate / factor)} B" if factor else SLOW_SHARE
        lab.slow(made.name, made.root, target, value)


def write(
    made: lab.Lab, scratch: Path, result: Result, kernels: Iterable[tuple[str, ...]], ways: list[str], repeats: int,
    salt: int, slow: int | None,
) -> tuple[list[list[Any]], list[Any]]:  # fmt: skip
    """The program's files in these ways, in turn. Counts the files for which the choice was wrong."""
    parts, reports = [], []
    for kernel in kernels:
        lines, report, _ = targets_runs.run_ways(
            made.root, scratch, [f"{way}.nc" for way in ways], repeats, salt, kernel, "netcdf"
        )
        parts.append(lines)
        reports.append(report)
        wanted = set() if slow is None else {f"t{slow}"}
        result.wrong += sum(left_out != wanted for _, _, left_out in targets_runs.chosen_lines(report))
    result.mib = sum(lines[0]["mib"] for lines in parts)
    return parts, reports


def read_back(made: lab.Lab, scratch: Path, result: Result, kernels: Iterable[tuple[str, ...]]) -> None:
    """Cold reads of subfiles, by as many ranks as have written and by others; then merged, and compared."""
    result.merged = True
    spent: dict[str | int, float] = {}
    for kernel in kernels:
        words = [*kernel, "--salt", str(SALT), "--keep", "1"]
        plain = [*words, "--directory", str(scratch), "--mode", "netcdf:plain.nc"]
        launch.run_program(launch.KERNEL_RUNNER, KIND, RANKS, plain)
        for way in (EVERYWHERE, SELECTED):
            here = [*words, "--directory", str(made.root), "--mode", f"netcdf:{way}.nc", "--sync", "1", "--cold", "1"]
            (written,) = traced(scratch, RANKS, here)
            spent[way] = spent.get(way, 0.0) + written["mib"] / written["read_mib_per_s"]
            for readers in READERS if way == SELECTED else READERS[1:2]:
                (read,) = traced(scratch, readers, [*here, "--written-by", str(RANKS)])
                if way == SELECTED:
                    spent[readers] = spent.get(readers, 0.0) + read["mib"] / read["read_mib_per_s"]
            merged = scratch / "merged.nc"
            subprocess.run([launch.IOWEIR, "merge", made.root / f"{way}.nc", "-o", merged], check=True,
                           capture_output=True)  # fmt: skip
            result.merged = result.merged and filecmp.cmp(scratch / "plain.nc", merged, shallow=False)
            merged.unlink()
        (scratch / "plain.nc").unlink()
    for what, seconds in spent.items():
        if isinstance(what, int):
            result.readers[what] = result.mib / seconds
        else:
            result.cold[what] = Way([result.mib / seconds])


def traced(scratch: Path, ranks: int, words: list[str]) -> list[Any]:
    """Under ioweir, with the plan; every value that is read is compared."""
    trace = scratch / "trace-read"
    lines = launch.run_program(
        launch.KERNEL_RUNNER, KIND, ranks, words, launch.Traced(trace, scratch / "plan.toml", "mpiio")
    )
    shutil.rmtree(trace)
    if not all(line["read_correct"] for line in lines):
        raise launch.BenchmarkError(f"what was read is not what was written: {lines}")
    return lines


def measure(made: lab.Lab, scratch: Path, target_rate: int, targets: int, quick: bool) -> Runs:
    """On a loop lab that is up."""
    runs = Runs(target_rate, targets)
    repeats = 1 if quick else 5
    dice = random.Random(SEED)
    slow = targets // 2
    all_ways = [SHARED, EVERYWHERE, SELECTED]
    for program in PROGRAMS:
        print(f"-- {program.name}", flush=True)
        kernels = program.kernels(quick)
        plan = plan_text(program, [made.target(i) for i in range(targets)])
        (scratch / "plan.toml").write_text(plan, encoding="utf-8")
        result = Result(program.name)
        runs.results.append(result)
        set_rates(made, runs, None)
        parts, _ = write(made, scratch, result, kernels, all_ways, repeats, SALT, None)
        add(result.equal, parts, all_ways, repeats)
        read_back(made, scratch, result, kernels)
        set_rates(made, runs, slow)
        parts, reports = write(made, scratch, result, kernels, all_ways, repeats, SALT + 1, slow)
        add(result.slow, parts, all_ways, repeats)
        for report in reports:
            add_clocks(result.clocks, report)
        for number in range(2 if quick else 6):
            another = dice.randrange(targets)
            set_rates(made, runs, another, dice.uniform(2, 9))
            parts, _ = write(made, scratch, result, kernels, [SHARED, SELECTED], 1, SALT + 2 + number, another)
            add(result.varied, parts, [SHARED, SELECTED], 1)
    subprocess.run(["sync"], check=False)
    return runs


def deviation(way: Way) -> float:
    """Standard deviation; 0 of a single run."""
    return statistics.stdev(way.written) if len(way.written) > 1 else 0.0
