#!/usr/bin/env python3
"""The engine against MPI libraries and hand-written I/O: `make bench-engine`, or bench/bench_engine.py --help.

Lives here: which comparisons are made, how often, and where the results go. Not here: one round of a comparison
(engine_cases.py), tables and pictures (engine_page.py), what is run (kernels/runner), statistics (pairs.py).
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import engine_cases
import engine_page
import launch
import run

QUICK_PAIRS = 3
THROTTLED_PAIRS = 5
"""At most: what sleeps is hardly disturbed by anything."""
THROTTLED = "throttled targets"

INTRODUCTION = """\
# Results: the engine

How fast programs' MPI-IO is with a plan underneath. Repeat with

    make bench-engine              # builds, measures, writes build/bench/engine.{json,md,svg}
    make bench-engine RECORD=1     # the same, and into this page
    make bench-engine QUICK=1      # two kernels, three rounds: to see that it works, not to quote

MiB/s from barrier to barrier around the calls, without open, close and fsync, at least 16 MiB a rank and call; every
byte that is read is compared with what was written, and in the first rounds the closed file too. All ways take turns
in one process, each with a new file of its own, another way first each time; memory is touched before; a new process
every five rounds. Each ratio is taken within a round, and the tables give medians with their 95 per cent intervals
(order statistics). Above 1 is faster with ioweir. A strategy whose trace says that it was not carried out as planned
has no figure.

- library: ROMIO under MPICH, OMPIO under Open MPI; romio321: Open MPI's copy of ROMIO (`OMPI_MCA_io=romio321`), with
  the strategies beside it in a process of its own;
- library / alone: the library's speed in that process, where ioweir is loaded and leaves its file alone, over that in a
  process without ioweir (not the same process, so noisier);
- pwrite: each rank its own pieces of the shared file, by `pwrite` and `pread`: what a hand-written writer does without
  exchange;
- Alltoallv + pwrite: what a hand-written writer with an exchange does, to as many even parts as there are ranks;
- file per process: one `pwrite` a call into a file of its own: nothing that shares a file can pass it;
- ioweir auto: `writers = "auto"`, nothing else; direct: `writers = "everyone"`; the others: half as many aggregators
  as ranks, two at least, with domains of that name in sequential order, and even domains in contention-free order;
- grouped: `mapping = "grouped:RANKS"`, each rank's bytes go to a file of its own, and the reader sees one file.

Which bars are missed and why: [engine-bars.md](../internal/engine-bars.md).

The MPI-IO layer is traced (`--layers mpiio`), for the library too; what tracing every layer costs is on the
[tracer's page](tracer.md).

Throttled targets are no devices: a test backend of ioweir's engine (`IOWEIR_TEST_THROTTLE`) lets each of them move so
many bytes a second, one transfer after another, over files in memory. Nobody else's I/O can be throttled by it, so that
strategies are compared with each other and with the sum of the rates, and only such differences mean anything.
"""


def storages(wanted: list[str] | None) -> Iterator[tuple[str, Path]]:
    """The places to write to: memory, the file system of the checkout, and memory behind slow targets."""
    build = launch.ROOT / "build" / "bench"
    build.mkdir(parents=True, exist_ok=True)
    for name, folder in (("tmpfs", run.TMPFS), ("disk", build)):
        if wanted is None or name in wanted:
            kind = subprocess.run(
                ["stat", "-f", "-c", "%T", folder], capture_output=True, text=True, check=True
            ).stdout.strip()
            yield (
                f"{'ext4' if kind == 'ext2/ext3' else kind} ({'memory' if name == 'tmpfs' else 'the build folder'})",
                folder,
            )
    if wanted is None or "throttled" in wanted:
        yield THROTTLED, run.TMPFS


def measure(
    case: engine_cases.Case, mpi: str, ranks: int, storage: str, folder: Path, rounds: int
) -> engine_cases.Measured:
    """All rounds of one comparison. What fails is said on the page; the other comparisons go on."""
    measured = engine_cases.Measured(storage, mpi, ranks, case.name)
    if storage == THROTTLED:
        rounds = min(rounds, THROTTLED_PAIRS)
        measured.nominal_mib_per_s = engine_cases.THROTTLED_MIB_PER_S * engine_cases.aggregators_of(ranks)
    scratch = Path(tempfile.mkdtemp(prefix="ioweir-bench-", dir=folder))
    plan = scratch / "plan.toml"
    plan.write_text(engine_cases.plan_text(ranks), encoding="utf-8")
    try:
        for number in range(0, rounds, engine_cases.ROUNDS_OF_A_PROCESS):
            some = min(engine_cases.ROUNDS_OF_A_PROCESS, rounds - number)
            engine_cases.some_rounds(measured, case, number, some, scratch, plan)
        if not measured.nominal_mib_per_s:
            engine_cases.count_calls(measured, case, scratch, plan)
    except (launch.BenchmarkError, subprocess.TimeoutExpired) as error:
        measured.failed = str(error).strip().splitlines()[-1]
        print(error, file=sys.stderr)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return measured


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """The options."""
    names = [case.name for case in engine_cases.CASES]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="two kernels, three rounds, memory only, no spinning MPICH"
    )
    parser.add_argument("--pairs", type=int, help="rounds of each comparison (default 15)")
    parser.add_argument("--mpi", action="append", choices=launch.KINDS, help="only this MPI library; may be repeated")
    parser.add_argument("--ranks", action="append", type=int, help="number of ranks (default 2 and 4); may be repeated")
    parser.add_argument("--kernel", action="append", choices=names, help="only this kernel; may be repeated")
    parser.add_argument(
        "--storage", action="append", choices=("tmpfs", "disk", "throttled"), help="only this storage; may be repeated"
    )
    parser.add_argument("--output", type=Path, default=launch.ROOT / "build" / "bench", help="directory of the results")
    parser.add_argument("--record", type=Path, metavar="PAGE", help="also write the page and its picture there")
    options = parser.parse_args(arguments)
    options.pairs = options.pairs or (QUICK_PAIRS if options.quick else 15)
    options.kernel = options.kernel or (list(engine_cases.QUICK_CASES) if options.quick else names)
    options.storage = options.storage or (["tmpfs"] if options.quick else None)
    options.mpi = options.mpi or list(launch.KINDS)
    options.ranks = options.ranks or [2, 4]
    return options


def main() -> int:
    """Measures what was asked for; an exit code of 1 when something failed or a byte was wrong."""
    options = parse()
    if not launch.IOWEIR.exists():
        print(f"{launch.IOWEIR} is not there; run make bench-engine, which builds it", file=sys.stderr)
        return 1
    kinds = [kind for kind in options.mpi if launch.available(launch.KERNEL_RUNNER, kind)]
    started = time.monotonic()
    about = run.machine()
    results = []
    for storage, folder in storages(options.storage):
        for case in engine_cases.CASES:
            for kind in kinds:
                for ranks in options.ranks:
                    if case.name not in options.kernel or not case.runs_on(ranks):
                        continue
                    if storage == THROTTLED and case.name not in engine_cases.THROTTLED_CASES:
                        continue
                    if options.quick and kind == "mpich" and ranks > (os.cpu_count() or 1):
                        continue  # its ranks spin: seconds a call
                    print(f"-- {case.name}, {launch.KIND_TITLES[kind]}, {ranks} ranks, {storage}", flush=True)
                    results.append(measure(case, kind, ranks, storage, folder, options.pairs))
    document: dict[str, Any] = {
        "date": time.strftime("%Y-%m-%d"),
        "machine": about,
        "load_after": os.getloadavg()[0],
        "pairs": options.pairs,
        "elapsed_s": round(time.monotonic() - started, 1),
        "results": results,
    }
    run.keep("engine", page(document, options.quick), document, options, {"": engine_page.picture(results)})
    return 1 if any(result.failed for result in results) else 0


def page(document: dict[str, Any], quick: bool) -> str:
    """The page of results."""
    results: list[engine_cases.Measured] = document["results"]
    about = document["machine"]
    lines = [
        INTRODUCTION,
        f"{document['date']}: {about['processors']} processors ({about['processor']}), Linux {about['kernel']}, load "
        f"{about['load_before']:.1f} before and {document['load_after']:.1f} after; {document['pairs']} rounds; "
        f"{document['elapsed_s']:.0f} s in all.",
        "",
    ]
    if quick:
        lines += ["**A quick run: too few rounds to quote.**", ""]
    lines += ["![speed with ioweir over the best MPI-IO](engine.svg)", ""]
    lines += [*engine_page.bars(results), *engine_page.departures(results), *engine_page.tables(results)]
    return "\n".join(lines).rstrip("\n") + "\n"


if __name__ == "__main__":
    sys.exit(main())
