#!/usr/bin/env python3
"""`choose = "auto"` against each static choice of writers: `make bench-auto`, or bench/bench_auto.py --help.

Lives here: loops of kernels, the storage beneath them, how they compare, the page. Not here: how choices are made
(src/engine/choice), starting programs (launch.py).
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import launch
import run

FILES = 20
QUICK_FILES = 12
ROUNDS = 3
LIBRARY = "library"
AUTO = "auto"
SLOW_LIBRARY = launch.ROOT / "tests" / "trace" / "programs" / "slow_library.c"

INTRODUCTION = """\
# Results: writers chosen while the program runs

What [`choose = "auto"`](../explanation/engine.md#whole-files-of-a-loop) costs and gains over a loop of files, against
the best writers named beforehand, and against the MPI library. Repeat with

    make bench-auto              # builds, measures, writes build/bench/auto.{json,md}
    make bench-auto RECORD=1     # the same, and into this page

Seconds in the collective writes of all files, from barrier to barrier, without open and close. Each way is a process
of its own, one after the other, in several rounds, traced at the MPI-IO layer; nothing of earlier runs is known. A
figure is the median over the rounds. "/ best" is auto over the best of the others, "/ library" auto over the MPI
library: below 1 is less time.

Storage: `tmpfs` is memory. `slow engine`: a test backend lets the engine move 100 MB a second, and the library's calls
go past it. `slow library`: each of the library's collective writes takes 5 ms longer.
"""


@dataclass(frozen=True)
class Kernel:
    """A kernel with its settings."""

    name: str
    settings: tuple[str, ...]

    @property
    def title(self) -> str:
        """With its settings."""
        return " ".join([self.name, *self.settings])


KERNELS = (
    Kernel("ior-segmented", ("data=4MiB", "transfer=256KiB")),
    Kernel("ior-segmented", ("data=16MiB", "transfer=2MiB")),
    Kernel("lattice", ()),
)


@dataclass
class Loop:
    """Seconds of each way over one loop."""

    kernel: str
    mpi: str
    ranks: int
    storage: str
    runs: dict[str, list[float]] = field(default_factory=dict)
    said: str = ""
    failed: str = ""

    @property
    def seconds(self) -> dict[str, float]:
        """The median of each way."""
        return {way: statistics.median(times) for way, times in self.runs.items()}

    def best(self) -> tuple[str, float]:
        """The way that is best, of those that try nothing."""
        ways = {way: time_s for way, time_s in self.seconds.items() if way != AUTO}
        return min(ways.items(), key=lambda item: item[1])


def plans(ranks: int) -> dict[str, str]:
    """The rules by way; what the engine chooses from (alternatives_for in src/engine/choice)."""
    ways = {"everyone": 'writers = "everyone"'}
    for count in ("auto", str((ranks + 1) // 2), str(ranks)):
        ways[f"aggregators:{count}"] = f'writers = "aggregators:{count}"'
    ways["writers auto"] = 'writers = "auto"'
    ways[AUTO] = 'choose = "auto"'
    return ways


def storages(mpi: str, scratch: Path) -> dict[str, dict[str, str]]:
    """Variables of the ranks by storage."""
    library = scratch / f"slow_{mpi}.so"
    subprocess.run([f"mpicc.{mpi}", "-shared", "-fPIC", "-o", library, SLOW_LIBRARY], check=True)
    return {
        "tmpfs": {},
        "slow engine": {"IOWEIR_TEST_THROTTLE": f"stripe=1MiB rates=100MB state={scratch}/throttle"},
        "slow library": {"LD_PRELOAD": str(library), "SLOW_MS": "5"},
    }


def measure(loop: Loop, kernel: Kernel, variables: dict[str, str], files: int, scratch: Path, rounds: int) -> None:
    """All ways of one loop, each round in the reverse order of the one before."""
    ways = list({LIBRARY: "", **plans(loop.ranks)}.items())
    for way, rule in [one for number in range(rounds) for one in (ways if number % 2 == 0 else reversed(ways))]:
        plan = scratch / "plan.toml"
        plan.write_text(f'[[file]]\nmatch = "*"\n{rule}\n', encoding="utf-8")
        trace = scratch / "trace"
        arguments = [
            kernel.name, *kernel.settings, "--directory", str(scratch), "--mode", "mpiio", "--repeats", str(files),
        ]  # fmt: skip
        traced = launch.Traced(trace, plan if rule else None, "mpiio")
        try:
            rows = launch.run_program(launch.KERNEL_RUNNER, loop.mpi, loop.ranks, arguments, traced, variables)
            loop.runs.setdefault(way, []).append(sum(row["mib"] / row["write_mib_per_s"] for row in rows))
            if way == AUTO:
                loop.said = said(launch.report(trace))
        except (launch.BenchmarkError, subprocess.TimeoutExpired) as error:
            loop.failed = str(error).strip().splitlines()[-1]
            print(error, file=sys.stderr)
        finally:
            shutil.rmtree(trace, ignore_errors=True)


def said(report: Any) -> str:
    """Who moved how many files of the series that took most time."""
    series = max(report["plan"]["chosen"], key=lambda row: row["elapsed_s"], default=None)
    if series is None:
        return "nothing"
    return ", ".join(f"{row['writers']} {row['files']}" for row in series["writers"])


def page(document: dict[str, Any]) -> str:
    """The page of results."""
    loops: list[Loop] = document["loops"]
    about = document["machine"]
    lines = [
        INTRODUCTION,
        f"{document['date']}: {about['processors']} processors ({about['processor']}), Linux {about['kernel']}, load "
        f"{about['load_before']:.1f} before and {document['load_after']:.1f} after; {document['files']} files a loop, "
        f"{document['rounds']} rounds. The last column is of one round.",
        "",
        "| storage | kernel | MPI | ranks | library | best | auto | / best | / library | files by |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for loop in loops:
        where = f"| {loop.storage} | {loop.kernel} | {launch.KIND_TITLES[loop.mpi]} | {loop.ranks} "
        if loop.failed or AUTO not in loop.seconds:
            lines.append(f"{where}| failed: {loop.failed} | | | | | |")
            continue
        way, best = loop.best()
        auto, library = loop.seconds[AUTO], loop.seconds[LIBRARY]
        lines.append(
            f"{where}| {library:.3f} | {best:.3f} ({way}) | {auto:.3f} | {auto / best:.2f} | {auto / library:.2f} "
            f"| {loop.said} |"
        )
    return "\n".join(lines) + "\n"


def main() -> int:
    """Measures what was asked for; an exit code of 1 when something failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer files, one kernel")
    parser.add_argument("--mpi", action="append", choices=launch.KINDS, help="only this MPI library; may be repeated")
    parser.add_argument("--ranks", action="append", type=int, help="number of ranks (default 2 and 4); may be repeated")
    parser.add_argument("--storage", action="append", help="only this storage; may be repeated")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"runs of each way (default {ROUNDS})")
    parser.add_argument("--output", type=Path, default=launch.ROOT / "build" / "bench", help="directory of the results")
    parser.add_argument("--record", type=Path, metavar="PAGE", help="also write the page there")
    options = parser.parse_args()
    files, rounds = (QUICK_FILES, 1) if options.quick else (FILES, options.rounds)
    loops = []
    about = run.machine()
    scratch = Path(tempfile.mkdtemp(prefix="ioweir-auto-", dir=run.TMPFS))
    try:
        for mpi in [kind for kind in options.mpi or launch.KINDS if launch.available(launch.KERNEL_RUNNER, kind)]:
            for storage, variables in storages(mpi, scratch).items():
                if options.storage and storage not in options.storage:
                    continue
                for kernel in KERNELS[:1] if options.quick else KERNELS:
                    for ranks in options.ranks or [2, 4]:
                        print(f"-- {kernel.title}, {launch.KIND_TITLES[mpi]}, {ranks} ranks, {storage}", flush=True)
                        loops.append(Loop(kernel.title, mpi, ranks, storage))
                        measure(loops[-1], kernel, variables, files, scratch, rounds)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    document = {
        "date": time.strftime("%Y-%m-%d"), "machine": about, "load_after": os.getloadavg()[0], "files": files,
        "rounds": rounds, "loops": loops,
    }  # fmt: skip
    run.keep("auto", page(document), document, options)
    return 1 if any(loop.failed for loop in loops) else 0


if __name__ == "__main__":
    sys.exit(main())
