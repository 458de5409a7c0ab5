#!/usr/bin/env python3
"""The demonstration, `make demo`: real I/O through ioweir's whole loop, and whatever comes out of it.

LAMMPS from Debian's packages, unmodified, is traced, its findings are shown, plans are simulated and replayed on this
machine's storage, and the one that is shown to be faster is applied, compared and verified. Pairs of runs in turns make
the closing figures medians and not one run's luck. Then BTIO's I/O meets a slow storage target. Everything that is
written is in demo-output/. Not here: any judgement on the figures; they are printed as measured, whichever way they
point.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
OUTPUT = Path("demo-output")
IOWEIR = Path(".venv/bin/ioweir")
INPUT = Path("examples/lammps/in.melt")
PLAN = OUTPUT / "plan.toml"
TARGETS = OUTPUT / "targets"

# Open MPI refuses to run as root and to start more ranks than processors unless told to.
ENVIRONMENT = {
    **os.environ,
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
}


class DemoError(Exception):
    """A step did not work; the message says which and what to do."""


def launcher(program: str) -> str:
    """The mpirun that belongs to the MPI library which the program is linked to."""
    path = shutil.which(program)
    if path is None:
        raise DemoError(f"{program} is not installed; run `make deps`, or install LAMMPS built with MPI")
    libraries = subprocess.run(["ldd", path], capture_output=True, text=True, check=False).stdout
    names = ["mpirun.mpich", "mpirun"] if "libmpich" in libraries else ["mpirun.openmpi", "mpirun"]
    for name in names:
        if shutil.which(name):
            return name
    raise DemoError(f"none of {', '.join(names)} is there to start {program} with; run `make deps`")


def require_mpiio(program: str) -> None:
    """LAMMPS lost its MPIIO package after 2022: newer ones cannot run the example."""
    done = subprocess.run([program, "-h"], capture_output=True, text=True, check=False, env=ENVIRONMENT)
    if "custom/mpiio" not in done.stdout:
        raise DemoError(
            f"this {program} has no `dump custom/mpiio`: its package MPIIO is missing (Debian 12 has it, LAMMPS of "
            "2024 dropped it); every other part of ioweir works: try `ioweir run -- CMD` on a program of yours"
        )


def said(command: Sequence[str | Path], *, shown: bool) -> list[str]:
    """The command as words; printed for the reader where it is shown."""
    words = [str(word) for word in command]
    if shown:
        print(f"\n$ {shlex.join(words)}", flush=True)
    return words


def show(*arguments: str | Path, most_lines: int | None = None) -> None:
    """Runs an ioweir command whose output is for the reader, or the first lines of it."""
    words = said([IOWEIR, *arguments], shown=True)
    if most_lines is None:
        subprocess.run(words, check=True, env=ENVIRONMENT)
        return
    done = subprocess.run(words, check=True, env=ENVIRONMENT, capture_output=True, text=True)
    lines = done.stdout.splitlines()
    print("\n".join([*lines[:most_lines], *(["[...]"] if len(lines) > most_lines else [])]), flush=True)


@dataclass(frozen=True)
class Program:
    """What is run, in fresh folders each time."""

    words: tuple[str, ...]
    files: Path | None
    """The folder of its files, emptied before each run; None: it leaves none."""
    environment: Mapping[str, str]

    def traced(self, name: str, *options: str | Path, shown: bool = False, report: bool = False) -> Path:
        """One run under ioweir; returns the trace directory. `report`: what ioweir says at the end is shown."""
        trace = OUTPUT / name
        shutil.rmtree(trace, ignore_errors=True)
        self.empty()
        quiet = [] if report else ["-q"]
        command = said([IOWEIR, "run", *options, *quiet, "-o", trace, "--", *self.words], shown=shown)
        log = OUTPUT / f"{name}.log"
        with log.open("w", encoding="utf-8") as stream:
            done = subprocess.run(
                command, stdout=stream, stderr=None if report else stream, stdin=subprocess.DEVNULL,
                env=self.environment, check=False,
            )  # fmt: skip
        if done.returncode != 0:
            tail = "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-20:])
            raise DemoError(f"{shlex.join(command)} ended with {done.returncode}; the end of {log}:\n{tail}")
        return trace

    def empty(self) -> None:
        """Of what an earlier run has written."""
        if self.files is not None:
            shutil.rmtree(self.files, ignore_errors=True)
            self.files.mkdir(parents=True)


def figures(trace: Path) -> Any:
    """`ioweir report --json` of a trace."""
    done = subprocess.run([IOWEIR, "report", str(trace), "--json"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def verified(trace: Path) -> str:
    """What the verification found; a run that verified nothing is an error."""
    result = figures(trace)["plan"]["verify"]
    if result["result"] != "ok" or not result["ok"] or result["mismatch"]:
        raise DemoError(f"the verification did not succeed: {result}")
    held = sum(file["bytes"] for file in result["ok"])
    return f"verified: {len(result['ok'])} files hold what the program wrote, {held / 2**20:.0f} MiB compared"


def median(values: Sequence[float]) -> float:
    """Of the middle two where there are two."""
    ordered = sorted(values)
    return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2


def closing_lines(before: list[Any], after: list[Any], ranks: int) -> list[str]:
    """Medians over the pairs: the whole program, and its time in MPI-IO writes on a rank."""

    def row(title: str, old: list[float], new: list[float]) -> str:
        ratios = [o / n for o, n in zip(old, new, strict=True) if n > 0]
        spread = f"{min(ratios):.2f} .. {max(ratios):.2f}" if ratios else "-"
        return f"  {title:<34} {median(old):8.3f} s -> {median(new):8.3f} s   {median(ratios):.2f}x ({spread})"

    def in_writes(run: Any) -> float:
        return float(run["layers"]["MPI-IO"]["write"]["time_s"]) / ranks

    return [
        f"{ranks} ranks, median of {len(before)} pairs run in turns, as it is -> with the plan (least .. greatest):",
        row("whole program", [float(run["wall_s"]) for run in before], [float(run["wall_s"]) for run in after]),
        row(
            "in MPI-IO writes, mean of the ranks", [in_writes(run) for run in before], [in_writes(run) for run in after]
        ),
    ]


def main() -> int:
    """Runs the demonstration from the checkout's directory."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--pairs", type=int, default=3, help="pairs of runs, as it is and with the plan")
    parser.add_argument("--seconds", type=float, default=150, help="no further pair is begun after this time")
    parser.add_argument("--program", default="lmp", help="the LAMMPS executable")
    options = parser.parse_args()
    os.chdir(ROOT)
    started = time.monotonic()
    try:
        OUTPUT.mkdir(exist_ok=True)
        molecules(options, started + options.seconds)
        slow_target()
    except (DemoError, subprocess.CalledProcessError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    print(
        f"\nDone in {time.monotonic() - started:.0f} s. To look at: {OUTPUT}/report.html in a browser; the plan, "
        f"{PLAN}; traces in {OUTPUT}; `{IOWEIR} --help`."
    )
    return 0


def molecules(options: argparse.Namespace, deadline: float) -> None:
    """LAMMPS: watched, explained, a plan chosen by itself, applied, compared, verified, repeated while time allows."""
    require_mpiio(options.program)
    files = OUTPUT / "files"
    own = ["-in", str(INPUT), "-var", "out", str(files), "-log", "none"]
    mpirun = launcher(options.program)
    lammps = Program((mpirun, "-n", str(options.ranks), options.program, *own), files, ENVIRONMENT)

    print("== 1. A program as it is: LAMMPS melts 256,000 atoms and writes them every 10 steps", flush=True)
    before = lammps.traced("before", shown=True, report=True)
    show("report", before, "--html", OUTPUT / "report.html")

    print("\n== 2. Which plan? Simulated, then replayed on this storage until one is shown to be faster, or none")
    show("tune", before, "--measure", "-o", PLAN, "--force", "--budget", "60s")
    if not PLAN.exists():
        print("No plan was shown to be faster on this machine: LAMMPS stays as it is.", flush=True)
        return

    print("\n== 3. The same program under that plan")
    after = lammps.traced("after", "--plan", PLAN, shown=True)
    show("compare", before, after)
    print("\n== 4. Once more, comparing what the files hold with what the program passed in")
    print(verified(lammps.traced("verified", "--plan", PLAN, "--verify", shown=True)))
    print("\n== 5. More pairs, in turns", flush=True)
    in_turns(lammps, options.ranks, options.pairs, deadline, "", [(before, after)])
    # Ranks that wait for a processor look like ranks that wait for I/O: the same again without that.
    processors = len(os.sched_getaffinity(0))
    if 1 < processors < options.ranks:
        print(
            f"{options.ranks} ranks shared {processors} processors: a part of the time in MPI-IO was waiting for a "
            "processor. Without that:",
            flush=True,
        )
        fewer = Program((mpirun, "-n", str(processors), options.program, *own), files, ENVIRONMENT)
        in_turns(fewer, processors, options.pairs, deadline, "fewer-ranks-", [])


def in_turns(
    program: Program, ranks: int, pairs: int, deadline: float, name: str, made: list[tuple[Path, Path]]
) -> None:
    """Pairs of runs, as it is and with the plan, until there are enough or the time is up; says what they came to."""
    while len(made) < pairs and (not made or time.monotonic() < deadline):
        number = len(made) + 1
        made.append(
            (
                program.traced(f"{name}before-{number}"),
                program.traced(f"{name}after-{number}", "--plan", PLAN),
            )
        )
    before, after = zip(*made, strict=True)
    print("\n".join(closing_lines([*map(figures, before)], [*map(figures, after)], ranks)), flush=True)


def slow_target() -> None:
    """BTIO's I/O over four targets, of which one is slow: all of them, and those that probing chooses."""
    print(
        "\n== 6. One slow storage target: four directories stand for targets, ioweir itself limits their speed\n"
        "(token buckets: no device is behind them; the choice is real, the speeds are not)"
    )
    subprocess.run([IOWEIR, "lab", "down", "--directory", TARGETS], capture_output=True, check=False)
    show("lab", "up", "--kind", "bucket", "--targets", "4", "--name", "demo", "--directory", TARGETS)
    try:
        show("lab", "slow", "2", "1/6", "--directory", TARGETS)
        show("probe", TARGETS)
        throttled = {**ENVIRONMENT, "IOWEIR_TEST_THROTTLE": f"targets={TARGETS.resolve()}"}
        kernel = ("kernel", "btio", "class=A", "writes=2", "--ranks", "4", "--mpi", "openmpi")
        rates = []
        for name, targets in (("all-targets", "4"), ("good-targets", "auto")):
            plan = OUTPUT / f"{name}.toml"
            plan.write_text(
                f'[[file]]\nmatch = "*/btio.data"\nmapping = "subfiles:{targets}"\nwriters = "aggregators:2"\n',
                encoding="utf-8",
            )
            words = (str(IOWEIR), *kernel, "--directory", str(TARGETS))
            program = Program(words, None, throttled)
            trace = program.traced(name, "--plan", plan, shown=True)
            print((OUTPUT / f"{name}.log").read_text(encoding="utf-8").strip())
            rates.append(figures(trace)["layers"]["MPI-IO"]["write"]["time_s"])
        print(f"BTIO's writes: {rates[0] / rates[1]:.1f} times as fast on the targets that probing chose, one run each")
    finally:
        show("lab", "down", "--directory", TARGETS)


if __name__ == "__main__":
    sys.exit(main())
