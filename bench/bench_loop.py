#!/usr/bin/env python3
"""Whether `ioweir tune` chooses well: its plans against every strategy it tries. `make bench-loop`, or --help.

Lives here: storages, traces, plans, and runs of all strategies in turn. Not here: which cases (loop_cases.py), how
they are judged (loop_page.py), labs (python/ioweir/targets/lab.py).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

import launch
import loop_cases
import loop_page
import run
from ioweir.errors import IoweirError
from ioweir.launch import kernel as kernel_command
from ioweir.predict import calibrate
from ioweir.predict.candidates import candidates
from ioweir.targets import lab
from loop_cases import Case
from loop_page import AS_IT_IS, MEASURED, SIMULATED, Row

TARGETS = 4
RATE = 12_000_000
"""Of a target, bytes a second."""
SLOW = 0.4
"""Of a slow target's rate."""
BUFFERS = (None, "16 MiB")
ROUNDS, MOST_ROUNDS = 5, 25
ROUNDS_ON_TARGETS = 3
"""Devices of a set rate: rounds of a case lie within some per cent, and last long."""
MORE_ROUNDS_S = 15.0
"""Short cases get more rounds, up to so long: the best of many strategies is the luckiest where each has few."""
CALIBRATION_REPEATS = 3
PROBED_REPEATS = 2
"""Of files on targets."""
COMMAND_S = 300


@dataclass(frozen=True)
class Storage:
    """Where the files of a case lie, and what tune knows of it."""

    directory: Path
    out: Path
    targets: int = 1
    machines: dict[str, Path] = field(default_factory=dict)
    """By MPI library."""

    def machine(self, mpi: str) -> Path:
        """The machine file; where it is not there yet, kernels run on this storage, as a user would have them run."""
        if mpi not in self.machines:
            file = self.out / f"loop-machine-{mpi}.toml"
            command = [
                str(launch.IOWEIR), "calibrate", "--kernels", str(self.directory), "--mpi", mpi,
                "--ranks", str(loop_cases.RANKS), "--repeats", str(CALIBRATION_REPEATS), "-o", str(file), "--force",
            ]  # fmt: skip
            done = ran(command)
            print(f"-- {done.stdout.strip()}", flush=True)
            self.machines[mpi] = file
        return self.machines[mpi]


def ran(command: list[str]) -> subprocess.CompletedProcess[str]:
    """A command of ioweir that has to end well."""
    environment = {**os.environ, **launch.LAUNCH_ENVIRONMENT}
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=COMMAND_S, env=environment)
    if done.returncode != 0:
        raise launch.BenchmarkError(f"{' '.join(command)} ended with {done.returncode}: {done.stderr.strip()}")
    return done


@contextlib.contextmanager
def storage(name: str, out: Path) -> Iterator[Storage]:
    """Made, and taken away again."""
    if name in loop_cases.ON_TARGETS:
        made, _ = lab.up(lab.Wanted(f"loop{os.getpid()}", "loop", TARGETS, f"{RATE} B", "512 MiB", memory=True))
        try:
            if name != loop_cases.ON_TARGETS[0]:
                lab.slow(made.name, made.root, TARGETS - 1, f"{int(RATE * SLOW)} B")
            machine = out / "loop-machine.toml"
            calibrate.calibrate(calibrate.Options(machine, made.root, None, None, name, PROBED_REPEATS, force=True))
            yield Storage(made.target(0), out, TARGETS, dict.fromkeys(launch.KINDS, machine))
        finally:
            lab.down(made.name, made.root, True)
        return
    with tempfile.TemporaryDirectory(prefix="ioweir-loop-", dir=run.TMPFS if name == "tmpfs" else out) as folder:
        yield Storage(Path(folder), out)


def kernel_command_line(case: Case, where: Storage, names: list[str], rounds: int, traced: bool = False) -> list[str]:
    """Of a run that moves the kernel's bytes once in each file and round.

    `traced`: the program that is planned for does nothing besides: no warm-up, and it leaves its files.
    """
    return [
        f"mpirun.{case.mpi}", "-n", str(loop_cases.RANKS), str(kernel_command.runner(case.mpi)), case.kernel,
        *case.settings, "--directory", str(where.directory), "--mode", ",".join(f"mpiio:{name}.data" for name in names),
        "--sync", "1", "--warm-up", str(int(not traced)), "--repeats", str(rounds), "--salt", "3",
        "--keep", str(int(traced)),
    ]  # fmt: skip


def tuned(trace: Path, plan: Path, machine: Path, measure: bool) -> dict[str, Any]:
    """The JSON of `ioweir tune`."""
    plan.unlink(missing_ok=True)
    command = [str(launch.IOWEIR), "tune", str(trace), "-o", str(plan), "--json", "--machine", str(machine)]
    result: dict[str, Any] = json.loads(ran([*command, *(["--measure"] if measure else [])]).stdout)
    return result


def chosen(result: dict[str, Any]) -> tuple[str, str]:
    """The strategy and its rule; AS_IT_IS and "" where no plan was written."""
    if not result["plan"]:
        return AS_IT_IS, ""
    strategies = [row["strategy"] for row in result["files"] if row["strategy"] is not None]
    if len(strategies) != 1:
        raise launch.BenchmarkError(f"a kernel has one file, but the plan has rules for {strategies}")
    return strategies[0], result["plan"]


def stated(result: dict[str, Any]) -> tuple[float, float] | None:
    """The interval of the gain that the plan promises; None without a plan."""
    if not result["plan"]:
        return None
    found = result.get("measured", {})
    if found.get("low") is not None:
        return found["low"], found["high"]
    return result["predicted"]["ratio_low"], result["predicted"]["ratio_high"]


def planned(case: Case, where: Storage, scratch: Path, row: Row, log: TextIO) -> dict[str, str]:
    """Traces the case, and lets tune plan for it both ways; the plans by strategy. What is promised is logged."""
    trace, machine = scratch / "trace", where.machine(case.mpi)
    shutil.rmtree(trace, ignore_errors=True)
    command = kernel_command_line(case, where, ["traced"], 1, traced=True)
    launch.run_commands([(launch.under_ioweir(launch.Traced(trace), command), {})])
    (where.directory / "traced.data").unlink()
    rules: dict[str, str] = {}
    line: dict[str, Any] = {"case": case.title}
    for how in (SIMULATED, MEASURED):
        result = tuned(trace, scratch / f"{how}.toml", machine, how == MEASURED)
        name, text = chosen(result)
        row.plans[how] = name
        if text:
            rules[name] = text
        interval = stated(result)
        if interval is not None:
            row.predicted[how] = interval
        row.replays += result.get("measured", {}).get("replays", 0)
        line[how] = {"strategy": name, "interval": interval, "seconds": result["wall_s"]}
    line["written"] = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())
    log.write(json.dumps(line) + "\n")
    log.flush()
    return rules


def measured(case: Case, where: Storage, scratch: Path, rules: dict[str, str], rounds: int) -> dict[str, list[float]]:
    """Seconds of every strategy in every round: opening, writing, reading and closing together."""
    ways = {AS_IT_IS: "", **rules}
    for candidate in candidates(loop_cases.RANKS, loop_cases.RANKS, where.targets, folders=where.targets > 1):
        if candidate.keys.get("buffer") in BUFFERS:
            ways.setdefault(candidate.strategy, candidate.text("*"))
    names = {f"way{number}": strategy for number, strategy in enumerate(ways)}
    texts = [re.sub(r"(?m)^match = .*$", f'match = "{name}.data"', ways[strategy]) for name, strategy in names.items()]
    plan, trace = scratch / "all.toml", scratch / "measured"
    plan.write_text("\n".join(text for text in texts if text), encoding="utf-8")
    command = kernel_command_line(case, where, list(names), rounds)
    seconds: dict[str, list[float]] = {strategy: [] for strategy in ways}
    begun, spent, launches = time.monotonic(), 0.0, 0
    while launches == 0 or (
        rounds * (launches + 1) <= MOST_ROUNDS and spent * (launches + 1) / launches < MORE_ROUNDS_S
    ):
        shutil.rmtree(trace, ignore_errors=True)
        for line in launch.run_commands([(launch.under_ioweir(launch.Traced(trace, plan, "mpiio"), command), {})])[0]:
            if not line["read_correct"]:
                raise launch.BenchmarkError(f"what was read is not what was written: {line}")
            moving = line["mib"] / line["write_mib_per_s"] + line["mib"] / line["read_mib_per_s"]
            seconds[names[line["file"].removesuffix(".data")]].append(moving + line["open_close_s"])
        launches += 1
        spent = time.monotonic() - begun
    return seconds


def one_case(case: Case, where: Storage, log: TextIO, rounds: int) -> Row:
    """Traced, planned, then measured."""
    row = Row(case.title, case.storage, case.drawn)
    with tempfile.TemporaryDirectory(prefix="ioweir-bench-") as folder:
        try:
            rules = planned(case, where, Path(folder), row, log)
            row.seconds = measured(case, where, Path(folder), rules, rounds)
        except (launch.BenchmarkError, subprocess.TimeoutExpired) as error:
            row.failed = str(error).strip().splitlines()[-1]
    return row


def seed_of_now() -> str:
    """The commit that is measured; drawn parameters are new with each."""
    command = ["git", "rev-parse", "--short=12", "HEAD"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=launch.ROOT)
    return done.stdout.strip() or time.strftime("%Y-%m-%d")


def parse() -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one kernel of each half on memory: to see that it works")
    parser.add_argument("--mpi", action="append", choices=launch.KINDS, help="only this library; may be repeated")
    parser.add_argument("--storage", action="append", choices=loop_cases.STORAGES, help="only this; may be repeated")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"of all strategies ({ROUNDS})")
    parser.add_argument("--seed", default="", help="of the parameters that are drawn (the commit)")
    parser.add_argument(
        "--resume", action="store_true", help="leave out the cases that --output has already, and add to them"
    )
    parser.add_argument("--minutes", type=float, default=120.0, help="begin no case after so long (120)")
    parser.add_argument("--output", type=Path, default=launch.ROOT / "build" / "bench", help="directory of the results")
    parser.add_argument("--record", type=Path, metavar="PAGE", help="also write the page there")
    options = parser.parse_args()
    options.mpi = options.mpi or [kind for kind in launch.KINDS if shutil.which(f"mpirun.{kind}")]
    options.storage = options.storage or list(loop_cases.STORAGES[:1] if options.quick else loop_cases.STORAGES)
    return options


def kept_in(options: argparse.Namespace) -> Path:
    """Where results are, after each case."""
    output: Path = options.output
    return output / "loop.json"


def earlier(options: argparse.Namespace) -> dict[str, Any] | None:
    """What an interrupted run left, if it is to go on."""
    kept = kept_in(options)
    if not options.resume or not kept.exists():
        return None
    document: dict[str, Any] = json.loads(kept.read_text(encoding="utf-8"))
    document["rows"] = [Row(**row) for row in document["rows"] if not row["failed"]]
    return document


def main() -> int:
    """Measures all cases; exit code 1 where one failed."""
    options = parse()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # labs are taken down
    options.output.mkdir(parents=True, exist_ok=True)
    before = earlier(options)
    begun = time.monotonic() - (before or {}).get("spent_s", 0.0)
    document = before or {
        "machine": run.machine(), "seed": options.seed or seed_of_now(), "rounds": options.rounds, "rows": [],
        "first": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
    }  # fmt: skip
    rows: list[Row] = document["rows"]
    there = {row.title for row in rows}
    each = 1 if options.quick else len(loop_cases.FIXED)
    wanted = [
        case
        for case in loop_cases.cases(options.mpi, options.storage, document["seed"], each)
        if case.title not in there
    ]
    until: float = time.monotonic() + 60 * options.minutes

    def late() -> bool:
        return time.monotonic() > until

    try:
        with (options.output / "loop-predictions.jsonl").open("a" if before else "w", encoding="utf-8") as log:
            for name in options.storage:
                cases = [case for case in wanted if case.storage == name]
                if late() or not cases:
                    continue
                with storage(name, options.output) as where:
                    for case in cases:
                        if late():
                            break
                        on_targets = case.storage in loop_cases.ON_TARGETS
                        rounds = min(document["rounds"], ROUNDS_ON_TARGETS if on_targets else MOST_ROUNDS)
                        rows.append(row := one_case(case, where, log, rounds))
                        said = row.failed or row.plans
                        print(f"-- {time.monotonic() - begun:.0f} s: {case.title}: {said}", flush=True)
                        document["spent_s"] = time.monotonic() - begun
                        kept_in(options).write_text(json.dumps(document, default=run.to_json), encoding="utf-8")
    except (launch.BenchmarkError, IoweirError) as error:
        print(f"bench_loop: {error}; what was measured is kept, and --resume goes on", file=sys.stderr)
        return 1
    run.keep("loop", loop_page.page(document, begun, options.quick), document, options)
    return 1 if any(row.failed for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
