#!/usr/bin/env python3
"""Programs on parallel HDF5, as figures 7 to 9 of Howison et al. 2010 and 8 of Wright et al. 2013: `make bench-hdf5`.

Lives here: the options, the lab, writing the results. Not here: what is run (hdf5_runs.py), its page (hdf5_page.py).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import btio_targets
import hdf5_page
import hdf5_runs
import launch
import run
from ioweir.targets import lab

TARGETS = 4
RATE = 24_000_000
CEPH_RATE = 12_000_000


def parse() -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one run each, of fewer bytes")
    parser.add_argument("--repeats", type=int, default=3, help="of each step, unless it is a quick run")
    parser.add_argument(
        "--part", action="append", choices=hdf5_runs.PARTS, help="only this part; as often as needed, all by default"
    )
    parser.add_argument(
        "--application", action="append", default=[], metavar="NAME", help="only this one, named as on the page",
        choices=[one.name for one in hdf5_runs.applications(TARGETS)],
    )  # fmt: skip
    parser.add_argument("--output", type=Path, default=launch.ROOT / "build" / "bench", help="directory of the results")
    parser.add_argument("--record", type=Path, metavar="PAGE", help="also write the page and its pictures there")
    parser.add_argument(
        "--add", type=Path, metavar="JSON", help="results of an earlier run, for what this one leaves out"
    )
    parser.add_argument("--beside", default="", help="what else ran on the machine, for the page")
    return parser.parse_args()


def measure(options: argparse.Namespace, scratch: Path) -> hdf5_runs.Runs:
    """With labs where they can be made, which is said where not."""
    parts = options.part or hdf5_runs.PARTS
    repeats = 1 if options.quick else options.repeats
    runs = hdf5_runs.Runs(RATE, TARGETS, CEPH_RATE)
    with a_lab("loop", RATE, scratch / "loop", "lab" in parts or "logs" in parts) as made:
        hdf5_runs.measure(runs, made, scratch, repeats, parts, options.quick, options.application)
        if made is not None and "logs" in parts:
            place = hdf5_runs.on_devices(made)
            runs.btio_on_lab = btio_targets.on_targets(place, scratch, repeats, options.quick)
    if "logs" in parts:
        runs.btio_calls = btio_targets.calls(scratch)
    with a_lab("ceph", CEPH_RATE, scratch / "ceph", "ceph" in parts) as made:
        if made is not None:
            hdf5_runs.measure_ceph(runs, made, scratch, repeats, options.quick, options.application)
    return runs


@contextlib.contextmanager
def a_lab(kind: str, rate: int, place: Path, wanted: bool) -> Iterator[lab.Lab | None]:
    """A lab that is taken down again; None if it is not wanted, or cannot be made here, which is said."""
    missing = lab.backend_of(kind).missing() if wanted else []
    if missing:
        print(f"-- without the lab of kind {kind}: {'; '.join(missing)}", flush=True)
    if missing or not wanted:
        yield None
        return
    name = f"hdf5-{kind}-{os.getpid()}"
    made, _ = lab.up(lab.Wanted(name, kind, TARGETS, f"{rate} B", "768 MiB", place, memory=True))
    try:
        yield made
    finally:
        lab.down(made.name, made.root, force=True)


def run_texts(headings: dict[str, str]) -> str:
    """What is said of a run, with its parts where there are several runs."""
    texts = sorted(set(headings.values()), key=list(headings.values()).index)
    if len(texts) == 1:
        return texts[0]
    return "\n\n".join(
        f"Of {', '.join(part for part, said in headings.items() if said == text)}: {text}" for text in texts
    )


def main() -> int:
    """Measures, and writes the page; exit code 1 if a bar is missed, unless it is a quick run."""
    options = parse()
    if not launch.available(launch.KERNEL_RUNNER, hdf5_runs.KIND):
        print("nothing can be measured: there is no Open MPI")
        return 1
    about = run.machine()
    begin = time.monotonic()
    scratch = Path(tempfile.mkdtemp(prefix="ioweir-bench-", dir=run.TMPFS))
    try:
        runs = measure(options, scratch)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    heading = (
        run.heading(about, begin)
        + " Ways in another order each time."
        + (f" Beside it ran {options.beside}." if options.beside else "")
    )
    headings = dict.fromkeys(runs.parts(), heading)
    if options.add:
        earlier = json.loads(options.add.read_text(encoding="utf-8"))
        added = runs.add(hdf5_runs.runs_of(earlier["runs"]))
        if options.application:
            only = f"Of {', '.join(options.application)}: {heading} Of the others: "
            headings = {part: only + earlier["headings"].get(part, "not measured.") for part in headings}
        headings |= {part: earlier["headings"][part] for part in added}
    heading = run_texts(headings)
    document = {"machine": about, "date": time.strftime("%Y-%m-%d"), "headings": headings, "runs": asdict(runs)}
    run.keep("hdf5", hdf5_page.page(runs, heading, options.quick), document, options, hdf5_page.pictures(runs))
    return 1 if hdf5_page.missed_bars(runs) and not options.quick else 0


if __name__ == "__main__":
    sys.exit(main())
