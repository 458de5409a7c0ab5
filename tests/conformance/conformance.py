"""Other people's MPI-IO tests, without and with ioweir: `make conformance`.

    conformance.py [--suite NAME]... [--mpi NAME]... [--case TEXT] [--plan FILE] [--strategy NAME]... [--limit S]
                   [--write FILE]

Runs ROMIO's tests, MPICH's test/mpi/io, PnetCDF's, HDF5's and netCDF-4's parallel tests and mpi4py's test_io.py
(fetched through apt and pip into build/conformance) under each MPI library and compares both endings. Only where
--suite names them: hdf5-files, each of HDF5's tests alone with what it leaves behind, and hdf5-1.14, hdf5-1.14-files,
the same of the next Debian release, on a library built for them. --strategy forces a strategy of the engine on every
file (`all`: each in turn, compared with the same runs without ioweir); --plan a plan of one's own. Further options of
`ioweir run` follow `--`. The last line counts: `N same, M differ`; the exit code is 1 if any differs, or cannot be
started. --write makes the table of docs/internal; --save adds the verdicts to a file, --load writes it from such;
with --resume too, what is in that file already is not run again.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from conformance_case import LIBRARIES, build_yields
from conformance_page import BROKEN, DIFFER, NOT_RUN, Row, keep, kept, page, row_of
from conformance_plans import ONLY, OWN_PLANS, RULES, plan_text
from conformance_run import Way, judge_all
from conformance_suites import BY_DEFAULT, SUITES

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
    parser.add_argument("--strategy", action="append", choices=[*RULES, "all"])
    parser.add_argument("--limit", type=float, default=0.0, help="seconds that every program has at least")
    parser.add_argument("--save", type=Path)
    parser.add_argument("--resume", action="store_true", help="leave out what --save's file has already")
    parser.add_argument("--load", type=Path)
    parser.add_argument("--write", type=Path)
    parser.add_argument("options", nargs="*", help="of `ioweir run`, after --")
    chosen = parser.parse_args(arguments)
    if chosen.resume and not chosen.save:
        parser.error("--resume needs --save FILE, the file of the run that was broken off")
    if chosen.load:
        rows = kept(chosen.load)
    else:
        build_yields()
        scratch = Path(tempfile.mkdtemp(prefix="run-", dir=CACHE))  # two runs at a time do not meet
        try:
            rows = _run(chosen, scratch)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    if chosen.write:
        chosen.write.write_text(page(rows), encoding="utf-8")
    run = [row for row in rows if row.result != NOT_RUN]
    differ, broken = (sum(row.result == result for row in run) for result in (DIFFER, BROKEN))
    if broken:
        print(f"{broken} could not be started")
    print(f"{len(run) - differ - broken} same, {differ} differ")
    return 1 if differ or broken or not run else 0


def _run(chosen: argparse.Namespace, scratch: Path) -> list[Row]:
    ways = _ways(chosen, scratch)
    before = kept(chosen.save) if chosen.resume and chosen.save.exists() else []
    there = {(row.library, row.suite, row.name, row.ranks, row.way) for row in before}
    rows = list(before)
    for library in LIBRARIES:
        if chosen.mpi and library.name not in chosen.mpi:
            continue
        for name, suite in SUITES.items():
            if name not in (chosen.suite or BY_DEFAULT):
                continue
            for each in suite(CACHE, library):
                if chosen.case not in each.name:
                    continue
                case = replace(each, limit_s=max(each.limit_s, chosen.limit))
                case_is = (library.name, case.suite, case.name, case.ranks)
                missing = [
                    way for way in ways if (*case_is, way.name) not in there and name in ONLY.get(way.name, (name,))
                ]
                if not missing:
                    continue
                began = time.monotonic()
                new = [row_of(verdict) for verdict in judge_all(case, scratch / "run", missing)]
                for row in new:
                    print(row.line())
                print(f"[{time.monotonic() - began:.1f} s]", flush=True)
                rows += new
                if chosen.save:
                    keep(chosen.save, new)
    return rows


def _ways(chosen: argparse.Namespace, scratch: Path) -> list[Way]:
    """Each strategy with its plan, or what the options say."""
    names = list(RULES) if "all" in (chosen.strategy or ()) else (chosen.strategy or [])
    if not names:
        own = ["--plan", str(chosen.plan.resolve())] if chosen.plan else []
        return [Way("", (*chosen.options, *own))]
    ways = []
    for name in names:
        plans = {}
        for program in ("", *OWN_PLANS):
            path = scratch / f"{name}-{program}.toml"
            path.write_text(plan_text(name, program), encoding="utf-8")
            plans[program] = (*chosen.options, "--plan", str(path))
        ways.append(Way(name, plans.pop(""), plans))
    return ways


if __name__ == "__main__":
    sys.exit(main())
