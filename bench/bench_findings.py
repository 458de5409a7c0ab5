"""How often findings are right, and how much of what they promise is there: planted faults, mended ones, clean ones.

`make bench-findings`: runs tests/findings/cases.toml under both MPI libraries, judges, and prints; --record FILE writes
the page. Each run is one line of --rows FILE, and what stands there is not run again, so that a run that was broken off
goes on. Lives here: running and judging. Not here: the page (findings_page.py), the programs (tests/findings).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).resolve().parents[1]
MEMORY = Path("/dev/shm")
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tests" / "findings"), str(ROOT / "tests" / "trace")]

from findings_page import missed_bars, page  # noqa: E402
from planted import CLEAN, PLANTED, REPAIRED, Case, cases, found, timed, traced  # noqa: E402
from tracing import IOWEIR, run  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tracing import Mpi


def place_for(case: Case) -> str | None:
    """Where it runs: in memory, whose pace others do not change; on the disk where that is what is waited for."""
    return str(MEMORY) if MEMORY.is_dir() and not case.disk else None


def judged(case: Case, mpi: Mpi, kind: str, again: int, keep: Path | None) -> dict[str, Any]:
    """One run, and what was found in it. `keep`: where its trace is to stay."""
    with tempfile.TemporaryDirectory(prefix="findings.", dir=place_for(case)) as place:
        finished = traced(case, mpi, kind, Path(place))
        rows = found(finished)
        if keep is not None:
            shutil.copytree(finished.directory, keep / f"{case.code}.{case.name}.{mpi.name}.{kind}", dirs_exist_ok=True)
    return _row(case, mpi, kind, again, rows)


def _row(case: Case, mpi: Mpi, kind: str, again: int, rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "what": "findings",
        "case": case.title,
        "mpi": mpi.name,
        "kind": kind,
        "again": again,
        "load": os.getloadavg()[0],
        "findings": [
            {key: row[key] for key in ("code", "severity", "seconds", "gain", "chain") if key in row} for row in rows
        ],
    }


def gained(case: Case, mpi: Mpi, rounds: int) -> dict[str, Any]:
    """Seconds of both twins, one after the other, each first in turn, so that what else goes on meets both."""
    seconds: dict[str, list[float]] = {PLANTED: [], REPAIRED: []}
    for at in range(rounds):
        for kind in (PLANTED, REPAIRED) if at % 2 == 0 else (REPAIRED, PLANTED):
            with tempfile.TemporaryDirectory(prefix="findings.", dir=place_for(case)) as place:
                seconds[kind].append(timed(case, mpi, kind, Path(place)))
    return {
        "what": "gain",
        "case": case.title,
        "mpi": mpi.name,
        "kind": "both",
        "again": 0,
        "load": os.getloadavg()[0],
        "seconds": seconds,
    }


def judged_again(kept: Path) -> list[dict[str, Any]]:
    """What the rules of now find in traces that were kept."""
    rows = []
    for case in cases():
        for mpi in case.mpis:
            for kind in (PLANTED, REPAIRED):
                trace = kept / f"{case.code}.{case.name}.{mpi.name}.{kind}"
                if trace.is_dir():
                    printed = run([*IOWEIR, "findings", trace, "--json"]).expect().out
                    rows.append(_row(case, mpi, kind, 0, json.loads(printed)))
    return rows


def tried(make: Callable[[], dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """A row, unless the program failed or took too long: that is said, and the next time it is run again."""
    try:
        yield make()
    except AssertionError as problem:
        print(f"NOT RUN: {str(problem)[:300]}", flush=True, file=sys.stderr)


def work(arguments: argparse.Namespace, done: set[tuple[Any, ...]]) -> Iterator[dict[str, Any]]:
    """What is still to be run, one row each."""
    for case in cases():
        if (arguments.held != "all" and case.held != (arguments.held == "only")) or arguments.match not in case.title:
            continue
        for mpi in case.mpis:
            if arguments.mpi not in ("", mpi.name):
                continue
            for again in range(arguments.repeats):
                for kind in (PLANTED,) if case.code == CLEAN else (PLANTED, REPAIRED):
                    if ("findings", case.title, mpi.name, kind, again) not in done:
                        yield from tried(partial(judged, case, mpi, kind, again, arguments.keep))
            wanted = arguments.gains and case.code != CLEAN and case.gain
            if wanted and ("gain", case.title, mpi.name, "both", 0) not in done:
                yield from tried(partial(gained, case, mpi, arguments.gains))


def main() -> int:
    """Run, judge, print or record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", type=Path, help="write the page here")
    parser.add_argument("--rows", type=Path, help="one line a run; what stands there is not run again")
    parser.add_argument("--repeats", type=int, default=1, help="runs of each program")
    parser.add_argument("--gains", type=int, default=6, help="interleaved pairs, of which six give 95 %%; 0: none")
    parser.add_argument("--held", choices=("all", "only", "none"), default="all", help="cases that were held out")
    parser.add_argument("--bars", action="store_true", help="print no page: fail where findings are right too rarely")
    parser.add_argument("--match", default="", help="only cases with this in CODE/NAME")
    parser.add_argument("--judge", type=Path, help="nothing is run: traces that --keep left here are judged again")
    parser.add_argument("--keep", type=Path, help="where traces stay, for work on rules")
    parser.add_argument("--mpi", choices=("", "openmpi", "mpich"), default="")
    arguments = parser.parse_args()
    rows = judged_again(arguments.judge) if arguments.judge else []
    if arguments.rows and arguments.rows.exists():
        before = [json.loads(line) for line in arguments.rows.read_text(encoding="utf-8").splitlines()]
        rows += [row for row in before if not arguments.judge or row["what"] == "gain"]
    done = {(row["what"], row["case"], row["mpi"], row["kind"], row["again"]) for row in rows}
    for row in () if arguments.judge else work(arguments, done):
        rows.append(row)
        if arguments.rows:
            with arguments.rows.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
        said = row.get("seconds") or [(one["code"], one["severity"]) for one in row["findings"]]
        print(row["mpi"], row["case"], row["kind"], said, flush=True, file=sys.stderr)
    text = page(rows)
    if arguments.bars:
        missed = missed_bars(rows)
        print("\n".join(missed) or "all bars are met", file=sys.stderr)
        return 1 if missed else 0
    if arguments.record:
        arguments.record.write_text(text, encoding="utf-8")
    else:
        print(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
