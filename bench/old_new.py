#!/usr/bin/env python3
"""One version of ioweir against another, on the rows of the other benchmarks: `make bench-old-new OLD=DIR`, or --help.

The benchmarks run as they are; each of their runs that ioweir has a part in is made twice, one right after the other,
with the other version and with this one, another one first each time. Lives here: making runs twice, and the ratios.
Not here: what is run (the modules of the other benchmarks), statistics (pairs.py).
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import json
import os
import re
import shutil
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import bench_engine
import bench_hdf5
import bench_partition
import bench_subfiles
import bench_targets
import engine_cases
import hdf5_runs
import launch
import pairs
import partition_runs
import run
import subfiles_runs
import targets_reads
import targets_runs
from ioweir.targets import lab

BAR = 1.03
BENCHES = ("engine", "targets", "partition", "subfiles", "hdf5")
OF_OTHERS = (partition_runs.OWN, partition_runs.SHARED, partition_runs.HAND)
"""What partition_sets does without ioweir."""
IGNORED = ("--directory", "--salt", "--mode", "--repeats", "--verify", "--spread", "--warm-up")
"""Options of the runner, with their values, that do not make another row."""

INTRODUCTION = """\
# Results: one version against another

Time with this version over time with an older one, on the rows of the [engine](engine.md), [targets](targets.md),
[partitioned files](partition.md), [netCDF subfiles](subfiles.md) and [HDF5](hdf5.md). Repeat with

    git worktree add build/old COMMIT && make -C build/old package build-bench
    make bench-old-new OLD=build/old                       # writes build/bench/old-new.{json,md}
    make bench-old-new OLD=build/old ARGS="--bench engine --again build/bench/old-new.json"   # the doubtful rows again

Each run is made twice, one right after the other, with either version, another one first each time. The ratio is
taken within such a pair, of the medians of the two runs' repetitions; repetitions of one run are not pairs, for what
disturbs a run disturbs all of them. Rows have the median with its 95 per cent interval (order statistics; below six
pairs, the extremes). Below 1 is faster now. The kernels are those of this version for both; programs that link the
library of partitioned files are each version's own. The bar: no interval wholly above 1.03.
"""


@dataclass(frozen=True)
class Home:
    """Where a version was built."""

    root: Path

    def use(self) -> None:
        """From now on launch.py takes this one's command, and its own programs of partitioned files."""
        launch.IOWEIR = self.root / ".venv" / "bin" / "ioweir"
        launch.PROGRAMS = self.root / "build" / "release" / "bench"


@dataclass
class Row:
    """Seconds of each pair."""

    bench: str
    name: str
    old: list[float] = field(default_factory=list)
    new: list[float] = field(default_factory=list)

    @property
    def interval(self) -> pairs.Interval:
        """Of new over old."""
        return pairs.median_interval([new / old for old, new in zip(self.old, self.new, strict=True)])


def times_of(line: Mapping[str, Any]) -> dict[str, float]:
    """What a line of a benchmark program says of time: what of, and seconds."""
    if "write_mib_per_s" in line:
        return {way: line["mib"] / line[f"{way}_mib_per_s"] for way in ("write", "read") if line[f"{way}_mib_per_s"]}
    if "handing_s" in line:
        return {"handing over": line["handing_s"], "loop": line["loop_s"] + line["drain_s"]}
    return {"all": line["seconds"]}


class NotRun(dict[str, float]):
    """In the place of what a run says that is not measured: nobody looks at it."""

    def __missing__(self, key: str) -> float:
        return 1.0


class Twice:
    """Stands in the place of launch.run_program."""

    def __init__(
        self, old: Home, new: Home, only: frozenset[tuple[str, str]] | None, kinds: Sequence[str],
        storages: list[str] | None,
    ) -> None:  # fmt: skip
        self.old, self.new, self.only = old, new, only
        self.kinds, self.storages = kinds, storages
        self.number = 0
        self.rows: dict[tuple[str, str], Row] = {}
        self.bench = self.place = ""
        self.runs: collections.Counter[str] = collections.Counter()
        self.run_once = launch.run_program

    def __call__(
        self, program: str, kind: str, ranks: int, arguments: Sequence[str], traced: launch.Traced | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> list[Any]:  # fmt: skip
        """Runs it with both versions where ioweir has a part in it; what this version's run printed."""

        def once() -> list[Any]:
            return self.run_once(program, kind, ranks, arguments, traced, environment)

        own = traced is not None and traced.plan is not None
        library = program == partition_runs.PROGRAM and arguments[0] not in OF_OTHERS
        what = self.title(kind, ranks, arguments)
        if not (own or library) or not self.wanted(what):
            # Of partitioned files nothing is left behind that another run needs.
            return [NotRun()] if program == partition_runs.PROGRAM else once()
        homes = [self.old, self.new] if self.runs[what] % 2 else [self.new, self.old]
        self.runs[what] += 1
        found: dict[Home, list[Any]] = {}
        for number, home in enumerate(homes):
            home.use()
            found[home] = once()
            if traced is not None and home is self.new:
                traced.directory.rename(self.kept(traced))  # the benchmark goes on with this version's trace
            if number == 0:
                self.clear(arguments, traced, environment)
        self.new.use()
        if traced is not None:
            shutil.rmtree(traced.directory, ignore_errors=True)
            self.kept(traced).rename(traced.directory)
        self.add(what, found[self.old], found[self.new])
        return found[self.new]

    @staticmethod
    def kept(traced: launch.Traced) -> Path:
        """Where a trace lies meanwhile."""
        return traced.directory.with_name(traced.directory.name + ".kept")

    def wanted(self, what: str) -> bool:
        """Whether a row is to be measured whose name begins so."""
        return self.only is None or any(b == self.bench and name.startswith(what) for b, name in self.only)

    def title(self, kind: str, ranks: int, arguments: Sequence[str]) -> str:
        """Of the run."""
        words: list[str] = []
        rest = iter(arguments)
        for word in rest:
            if word in IGNORED:
                next(rest, None)
            elif "/" not in word:
                words.append(word)
        return f"{self.place}, {launch.KIND_TITLES[kind]}, {ranks} ranks: {' '.join(words)}"

    def add(self, what: str, old: Sequence[Any], new: Sequence[Any]) -> None:
        """A pair of each row, of the medians of the runs' repetitions: what disturbs a run disturbs all of its own."""
        for version, lines in (("old", old), ("new", new)):
            spent: dict[str, list[float]] = {}
            for line in lines:
                for name, taken in times_of(line).items():
                    spent.setdefault(f"{what}, {line.get('file', '')} {name}".replace(",  ", ", "), []).append(taken)
            for name, taken_all in spent.items():
                row = self.rows.setdefault((self.bench, name), Row(self.bench, name))
                getattr(row, version).append(statistics.median(taken_all))

    def clear(
        self, arguments: Sequence[str], traced: launch.Traced | None, environment: Mapping[str, str] | None
    ) -> None:
        """Of the first run of a pair: its trace, its sets, what it has of the throttle's rates."""
        if traced is not None:
            shutil.rmtree(traced.directory, ignore_errors=True)
        elif len(arguments) > 1 and Path(arguments[1]).is_dir():
            partition_runs.empty(Path(arguments[1]))
        state = re.search(r"state=(\S+)", (environment or {}).get("IOWEIR_TEST_THROTTLE", ""))
        if state:
            Path(state[1]).unlink(missing_ok=True)


@contextlib.contextmanager
def devices(count: int, bytes_per_s: int, scratch: Path) -> Iterator[lab.Lab]:
    """Throttled loop devices, taken down again."""
    name, place = f"old-new-{os.getpid()}", scratch / "loop"
    made, _ = lab.up(lab.Wanted(name, "loop", count, f"{bytes_per_s} B", "512 MiB", place, memory=True))
    try:
        yield made
    finally:
        lab.down(made.name, made.root, force=True)


def engine(twice: Twice, scratch: Path) -> None:
    """Every kernel with the library and all strategies, as bench-engine; nothing that has no part of ioweir."""
    for storage, folder in bench_engine.storages(twice.storages):
        place = Path(tempfile.mkdtemp(prefix="old-new-", dir=folder))
        twice.place = storage
        for case in engine_cases.CASES:
            for kind in twice.kinds:
                for ranks in (2, 4):
                    throttled = storage == bench_engine.THROTTLED
                    if not case.runs_on(ranks) or (throttled and case.name not in engine_cases.THROTTLED_CASES):
                        continue
                    measured = engine_cases.Measured(storage, kind, ranks, case.name)
                    if throttled:
                        measured.nominal_mib_per_s = 1
                    plan = scratch / "plan.toml"
                    plan.write_text(engine_cases.plan_text(ranks), encoding="utf-8")
                    ways = [*([] if throttled else [engine_cases.LIBRARY]), *engine_cases.STRATEGIES]
                    title = twice.title(kind, ranks, case.words)
                    ways = [way for way in ways if twice.wanted(f"{title}, {way.replace(' ', '-')}.data")]
                    if not ways:
                        continue
                    rounds = 1 if throttled else 4
                    engine_cases.run_ways(measured, case, ways, place, twice.number, rounds, plan)
        shutil.rmtree(place)


def targets(twice: Twice, scratch: Path) -> None:
    """Programs on targets, one of them slow; files on which a target turns slow meanwhile are not in it."""
    twice.place = "targets"
    count, speed = bench_targets.LOOP_TARGETS, bench_targets.LOOP_RATE
    with devices(count, speed, scratch) as made:
        runs = targets_runs.Runs(speed, count)
        text = targets_runs.plan_text([made.root / f"t{i}" for i in range(count)])
        (scratch / "plan.toml").write_text(text, encoding="utf-8")
        targets_runs.fixed_lab(made, scratch, runs, 2)
        targets_runs.varied_labs(made, scratch, runs, 1)
        targets_runs.through_logs(made, scratch, runs)
    targets_reads.measure(scratch, speed, count, quick=True)


def partition(twice: Twice, scratch: Path) -> None:
    """Checkpoints of partitioned solvers."""
    for kind in twice.kinds:
        results = partition_runs.Results(kind, hdf5_runs.processors())
        memory = partition_runs.Storage("memory", scratch / "memory", throttled=False)
        memory.directory.mkdir(exist_ok=True)
        twice.place = "memory"
        partition_runs.perceived(results, memory.directory, quick=True)
        partition_runs.compare(results, memory, [2, 4], 1, 4)
        with devices(1, bench_partition.RATE, scratch) as made:
            twice.place = "a slow device"
            slow = partition_runs.Storage("slow", made.target(0), throttled=True)
            partition_runs.compare(results, slow, [4, 8], 1, 4)
            partition_runs.modes(results, slow, quick=True)
            partition_runs.reads(results, slow, quick=True)


def subfiles(twice: Twice, scratch: Path) -> None:
    """netCDF subfiles."""
    twice.place = "targets"
    with devices(bench_subfiles.TARGETS, bench_subfiles.RATE, scratch) as made:
        subfiles_runs.measure(made, scratch, bench_subfiles.RATE, bench_subfiles.TARGETS, quick=True)


def hdf5(twice: Twice, scratch: Path) -> None:
    """Programs on HDF5, on devices and in memory; CephFS is not in it."""
    twice.place = "devices and memory"
    runs = hdf5_runs.Runs(bench_hdf5.RATE, bench_hdf5.TARGETS, bench_hdf5.CEPH_RATE)
    with devices(bench_hdf5.TARGETS, bench_hdf5.RATE, scratch) as made:
        hdf5_runs.measure(runs, made, scratch, 1, ("lab", "memory", "sieving", "btio"), quick=True)


RUNNERS: dict[str, Callable[[Twice, Path], None]] = {
    "engine": engine,
    "targets": targets,
    "partition": partition,
    "subfiles": subfiles,
    "hdf5": hdf5,
}


def lines_of(rows: Sequence[Row]) -> list[str]:
    """For each benchmark how rows are spread, and every row above the bar."""
    lines = [
        "| benchmark | rows | pairs a row | median of the rows | middle 80 % of the rows | intervals wholly below 1 | "
        "intervals wholly above 1.03 |",
        "|---|---|---|---|---|---|---|",
    ]
    for bench in dict.fromkeys(row.bench for row in rows):
        of_bench = [row for row in rows if row.bench == bench]
        middle = sorted(row.interval.median for row in of_bench)
        tenth = len(middle) // 10
        counts = sorted({len(row.old) for row in of_bench})
        lines.append(
            f"| {bench} | {len(of_bench)} | {counts[0]} to {counts[-1]} | {pairs.median(middle):.3f} | "
            f"{middle[tenth]:.3f} to {middle[-1 - tenth]:.3f} | {sum(row.interval.high < 1 for row in of_bench)} | "
            f"{sum(row.interval.low > BAR for row in of_bench)} |"
        )
    above = [row for row in rows if row.interval.low > BAR]
    lines += ["", "Wholly above 1.03:" if above else "No interval lies wholly above 1.03.", ""]
    lines += [f"- {row.bench}: {row.name}: {row.interval.text(3)}, {len(row.old)} pairs" for row in above]
    return lines


def parse() -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--old", type=Path, required=True, help="directory in which the other version was built")
    parser.add_argument("--bench", action="append", choices=BENCHES, help="only this one; may be repeated")
    parser.add_argument("--mpi", action="append", choices=launch.KINDS, help="only this MPI library; may be repeated")
    storages = ("tmpfs", "disk", "throttled")
    parser.add_argument("--storage", action="append", choices=storages, help="of engine: only this; may be repeated")
    parser.add_argument("--pairs", type=int, default=6, help="how often it goes through the rows (default 6)")
    parser.add_argument("--minutes", type=float, default=1e9, help="begin no pass after so long")
    parser.add_argument("--again", type=Path, metavar="JSON", help="only rows that lie above the bar there, anew")
    parser.add_argument("--output", type=Path, default=launch.ROOT / "build" / "bench", help="directory of the results")
    parser.add_argument("--record", type=Path, metavar="PAGE", help="also write the page there")
    options = parser.parse_args()
    options.bench = options.bench or list(BENCHES)
    options.mpi = [kind for kind in options.mpi or launch.KINDS if launch.available(launch.KERNEL_RUNNER, kind)]
    return options


def rows_of(path: Path) -> list[Row]:
    """Of an earlier run."""
    return [Row(**row) for row in json.loads(path.read_text(encoding="utf-8"))["rows"]]


def main() -> int:
    """Measures; exit code 1 where an interval lies wholly above the bar."""
    options = parse()
    old, new = Home(options.old.resolve()), Home(launch.ROOT)
    for needed in (old.root / ".venv" / "bin" / "ioweir", new.root / ".venv" / "bin" / "ioweir"):
        if not needed.exists():
            print(f"{needed} is not there: run make package build-bench in both directories", file=sys.stderr)
            return 2
    earlier = {(row.bench, row.name): row for row in rows_of(options.again)} if options.again else {}
    doubtful = frozenset(key for key, row in earlier.items() if row.interval.low > BAR) if options.again else None
    twice = Twice(old, new, doubtful, options.mpi, options.storage)
    launch.run_program = twice
    about, begin = run.machine(), time.monotonic()
    options.output.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # labs are taken down, also where a shell ignores SIGINT
    for number in range(options.pairs):
        if time.monotonic() - begin > 60 * options.minutes:
            break
        twice.number = number
        for bench in options.bench:
            if doubtful is not None and not any(key[0] == bench for key in doubtful):
                continue
            twice.bench = bench
            print(f"== {bench}, pass {number + 1} of {options.pairs}, {time.monotonic() - begin:.0f} s", flush=True)
            scratch = Path(tempfile.mkdtemp(prefix="ioweir-bench-", dir=run.TMPFS))
            try:
                RUNNERS[bench](twice, scratch)
            finally:
                shutil.rmtree(scratch, ignore_errors=True)
            rows = list((earlier | twice.rows).values())
            document = {"machine": about, "old": options.old.name, "rows": [asdict(row) for row in rows]}
            (options.output / "old-new.json").write_text(json.dumps(document, indent=1), encoding="utf-8")
    rows = list((earlier | twice.rows).values())
    text = "\n".join([INTRODUCTION, run.heading(about, begin), "", *lines_of(rows)]) + "\n"
    document = {"machine": about, "old": options.old.name, "rows": [asdict(row) for row in rows]}
    run.keep("old-new", text, document, options)
    return 1 if any(row.interval.low > BAR for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
