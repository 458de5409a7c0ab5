#!/usr/bin/env python3
"""The demonstration, `make demo`: LAMMPS from Debian's packages, unmodified, through ioweir's whole loop.

Traces a run, reports it, runs the program again with a plan, compares, verifies what the files hold, and repeats the
pair in turns so that the closing figure is a median and not one run's luck. Everything it writes is in demo-output/.
Not here: any judgement on the figures; they are printed as measured, whichever way they point.
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
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
OUTPUT = Path("demo-output")
IOWEIR = Path(".venv/bin/ioweir")
INPUT = Path("examples/lammps/in.melt")
PLAN = Path("examples/lammps/plan.toml")

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


def run_traced(name: str, program: list[str], *options: str, shown: bool = False) -> Path:
    """One run under ioweir with fresh output files; returns the trace directory."""
    files, trace = OUTPUT / "files", OUTPUT / name
    shutil.rmtree(files, ignore_errors=True)
    shutil.rmtree(trace, ignore_errors=True)
    files.mkdir(parents=True)
    command = [str(IOWEIR), "run", *options, "-q", "-o", str(trace), "--", *program]
    if shown:
        print(f"\n$ {shlex.join(command)}", flush=True)
    log = OUTPUT / f"{name}.log"
    with log.open("w", encoding="utf-8") as stream:
        code = subprocess.run(command, stdout=stream, stdin=subprocess.DEVNULL, env=ENVIRONMENT, check=False).returncode
    if code != 0:
        tail = "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-20:])
        raise DemoError(f"{shlex.join(command)} ended with {code}; the end of {log}:\n{tail}")
    return trace


def show(*arguments: str) -> None:
    """Runs an ioweir command whose output is for the reader."""
    print(f"\n$ {IOWEIR} {shlex.join(arguments)}", flush=True)
    subprocess.run([IOWEIR, *arguments], check=True)


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


def closing_lines(before: list[Any], after: list[Any], ranks: int) -> list[str]:
    """Medians over the pairs: the whole program, and its time in MPI-IO writes on a rank."""

    def median(values: list[float]) -> float:
        ordered = sorted(values)
        return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2

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
    parser.add_argument("--seconds", type=float, default=100, help="no further pair is begun after this time")
    parser.add_argument("--program", default="lmp", help="the LAMMPS executable")
    options = parser.parse_args()
    os.chdir(ROOT)
    started = time.monotonic()
    processors = len(os.sched_getaffinity(0))
    try:
        demonstrate(options, processors, started + options.seconds)
    except (DemoError, subprocess.CalledProcessError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    print(
        f"Done in {time.monotonic() - started:.0f} s. Traces: {OUTPUT}/before, {OUTPUT}/after; try `{IOWEIR} --help`."
    )
    return 0


def demonstrate(options: argparse.Namespace, processors: int, deadline: float) -> None:
    """Traced, reported, planned, compared, verified, and repeated as often as time allows."""
    lammps, ranks = options.program, options.ranks
    require_mpiio(lammps)
    arguments = ["-in", str(INPUT), "-var", "out", str(OUTPUT / "files"), "-log", "none"]
    mpirun = launcher(lammps)
    program = [mpirun, "-n", str(ranks), lammps, *arguments]
    plan = ("--plan", str(PLAN))
    OUTPUT.mkdir(exist_ok=True)

    print("== 1. A program as it is, traced: LAMMPS melts 256,000 atoms and writes them every 10 steps")
    before = [run_traced("before", program, shown=True)]
    show("report", str(before[0]))
    print(f"\n== 2. The same program with a plan, {PLAN}")
    after = [run_traced("after", program, *plan, shown=True)]
    print("\n== 3. What changed")
    show("compare", str(before[0]), str(after[0]))
    print("\n== 4. Once more with the plan, comparing what the files hold with what the program passed in")
    print(verified(run_traced("verified", program, *plan, "--verify", shown=True)))

    print("\n== 5. More pairs, in turns", flush=True)
    for index in range(2, options.pairs + 1):
        if time.monotonic() > deadline:
            break
        before.append(run_traced(f"before-{index}", program))
        after.append(run_traced(f"after-{index}", program, *plan))
    print("\n".join(closing_lines([figures(trace) for trace in before], [figures(trace) for trace in after], ranks)))
    # Ranks that wait for a processor look like ranks that wait for I/O: the same again without that.
    if 1 < processors < ranks:
        print(
            f"{ranks} ranks shared {processors} processors: a part of the time in MPI-IO was waiting for a processor. "
            "Without that:",
            flush=True,
        )
        fewer = [mpirun, "-n", str(processors), lammps, *arguments]
        old: list[Any] = []
        new: list[Any] = []
        for index in range(1, options.pairs + 1):
            if old and time.monotonic() > deadline:
                break
            old.append(figures(run_traced(f"fewer-ranks-before-{index}", fewer)))
            new.append(figures(run_traced(f"fewer-ranks-after-{index}", fewer, *plan)))
        print("\n".join(closing_lines(old, new, processors)))


if __name__ == "__main__":
    sys.exit(main())
