"""Other people's MPI-IO tests, without and with ioweir: `make conformance`.

    conformance.py [--suite NAME]... [--mpi NAME]... [--case TEXT] [--plan FILE] [--write FILE]

Runs ROMIO's tests, MPICH's test/mpi/io, PnetCDF's tests and mpi4py's test_io.py (fetched through apt and pip into
build/conformance) under each MPI library and compares both endings. Further options of `ioweir run` follow `--`. The
last line counts: `N same, M differ`; the exit code is 1 if any differs. --write makes the table of docs/results.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Final

from conformance_run import TIMED_OUT, Verdict, judge
from conformance_suites import LIBRARIES, SUITES

if TYPE_CHECKING:
    from collections.abc import Sequence

CACHE: Final = Path(__file__).resolve().parent.parent.parent / "build" / "conformance"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the options choose."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", action="append", choices=sorted(SUITES))
    parser.add_argument("--mpi", action="append", choices=[library.name for library in LIBRARIES])
    parser.add_argument("--case", default="", help="only cases whose name contains this")
    parser.add_argument("--plan", type=Path)
    parser.add_argument("--write", type=Path)
    parser.add_argument("options", nargs="*", help="of `ioweir run`, after --")
    chosen = parser.parse_args(arguments)
    options = [*chosen.options, *(["--plan", str(chosen.plan.resolve())] if chosen.plan else [])]
    verdicts: list[Verdict] = []
    for library in LIBRARIES:
        if chosen.mpi and library.name not in chosen.mpi:
            continue
        for name, suite in SUITES.items():
            if chosen.suite and name not in chosen.suite:
                continue
            for case in suite(CACHE, library):
                if chosen.case not in case.name:
                    continue
                began = time.monotonic()
                verdict = judge(case, CACHE / "run", options)
                verdicts.append(verdict)
                print(f"{line_of(verdict)} [{time.monotonic() - began:.1f} s]", flush=True)
    if chosen.write:
        chosen.write.write_text(page(verdicts), encoding="utf-8")
    run = [verdict for verdict in verdicts if verdict.plain is not None]
    differ = sum(not verdict.same for verdict in run)
    print(f"{len(run) - differ} same, {differ} differ")
    return 1 if differ or not run else 0


def line_of(verdict: Verdict) -> str:
    """One case in words."""
    case = verdict.case
    word = "not run" if verdict.plain is None else "same" if verdict.same else "DIFFER"
    remark = f": {verdict.remark}" if verdict.remark else ""
    return f"{word:8} {case.library.name:8} {case.suite}/{case.name} ({case.ranks} ranks, {ending(verdict)}){remark}"


def ending(verdict: Verdict) -> str:
    """How the program ended by itself."""
    if verdict.plain is None:
        return "-"
    if verdict.plain.passed():
        return "passes"
    return TIMED_OUT if verdict.plain.code == TIMED_OUT else f"fails untraced too, exit code {verdict.plain.code}"


def page(verdicts: Sequence[Verdict]) -> str:
    """docs/results/conformance.md."""
    suites = list(dict.fromkeys((v.case.library.name, v.case.suite) for v in verdicts))
    out = [
        "# Other people's tests, without and with ioweir", "",
        "Made by `make conformance` (tests/conformance), which fetches the programs of Debian's source packages mpich",
        "and pnetcdf and mpi4py's test_io.py, builds them, and runs each untraced and under `ioweir run` with the",
        "ranks that their own scripts say. Same: exit code, output (without times, addresses and the order of lines)",
        "and the files left behind.", "",
        "openmpi is Debian's Open MPI with its own MPI-IO (OMPIO), openmpi-romio the same with its copy of ROMIO.",
        "coll_perf runs with an array of 128^3 in place of 1200^3 (14 GB). MPICH's, ROMIO's and mpi4py's suites are of",
        "the versions of Debian's mpich and of the locked mpi4py; PnetCDF's `largefile` is left out for its size.", "",
        "| MPI library | suite | same | differ | of these fail untraced too | not run |", "|---|---|---|---|---|---|",
    ]  # fmt: skip
    for library, suite in suites:
        rows = [v for v in verdicts if (v.case.library.name, v.case.suite) == (library, suite)]
        counts = Counter("not run" if v.plain is None else "same" if v.same else "differ" for v in rows)
        failing = sum(v.plain is not None and not v.plain.passed() for v in rows)
        out.append(f"| {library} | {suite} | {counts['same']} | {counts['differ']} | {failing} | {counts['not run']} |")
    named = [v for v in verdicts if v.plain is None or not v.same or v.remark or not v.plain.passed()]
    out += ["", "## Those that differ, fail by themselves, are not steady or are not run", ""]
    out += [f"- {line_of(verdict)}" for verdict in named] + [""]
    return "\n".join(out)


if __name__ == "__main__":
    sys.exit(main())
