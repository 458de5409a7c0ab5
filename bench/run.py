#!/usr/bin/env python3
"""Runs the benchmarks and writes their results: `make bench`, or bench/run.py --help.

Lives here: which benchmarks there are, and the two files of results (JSON with every figure, Markdown for people).
Not here: the benchmarks (tracer_cost.py, lattice.py, report_speed.py), the programs they run (build/release).
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import lattice
import launch
import report_speed
import tracer_cost

TMPFS = Path("/dev/shm")
BENCHMARKS = ("tracer", "lattice", "report")

# A benchmark: its figures, and its tables as lines of Markdown.
Runner = Callable[[argparse.Namespace, Path], tuple[Any, list[str]]]


def machine() -> dict[str, Any]:
    """What the figures depend on, as far as a program can tell."""
    model = "unknown processor"
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    clock = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
    return {
        "processor": model,
        "processors": os.cpu_count(),
        "kernel": platform.release(),
        "clock_source": clock.read_text(encoding="utf-8").strip() if clock.is_file() else "unknown",
        "load_before": os.getloadavg()[0],
    }


def heading(about: dict[str, Any], begun: float, more: str = "") -> str:
    """When and where a page's figures were measured, since `begun` (time.monotonic); `more` follows the load."""
    return (
        f"{time.strftime('%Y-%m-%d')}: {about['processors']} processors ({about['processor']}), Linux "
        f"{about['kernel']}, load {about['load_before']:.1f} before and {os.getloadavg()[0]:.1f} after; {more}"
        f"{time.monotonic() - begun:.0f} s in all."
    )


def opening(introduction: str, heading_line: str, quick: str, missed: Sequence[str], met: str) -> list[str]:
    """How a page begins: what it is about, when it was measured, and its bars.

    `quick`: what a quick run is too small for; empty: it was none. `met`: said where no bar is missed.
    """
    return [
        introduction,
        heading_line,
        *(["", f"**A quick run: {quick}**"] if quick else []),
        "",
        "## Bars",
        "",
        *([f"- missed: {line}" for line in missed] or [met]),
    ]


def to_json(value: object) -> object:
    """Dataclasses as objects, paths as text."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    return str(value)


def run_tracer(options: argparse.Namespace, scratch: Path) -> tuple[list[dict[str, Any]], list[str]]:
    """The tracer's cost under every MPI library that is there."""
    results = []
    for kind in launch.KINDS:
        if launch.available("tracer_cost", kind):
            print(f"-- tracer cost, {launch.KIND_TITLES[kind]}, {options.pairs} pairs", flush=True)
            results.append(tracer_cost.measure(kind, options.pairs, scratch))
    return results, ["## Added cost of a traced call", "", *tracer_cost.table(results)]


def run_lattice(options: argparse.Namespace, scratch: Path) -> tuple[list[dict[str, Any]], list[str]]:
    """The 4-D lattice under every MPI library that is there."""
    results = []
    for kind, ranks in lattice.CONFIGURATIONS:
        if launch.available(launch.KERNEL_RUNNER, kind):
            print(f"-- 4-D lattice, {launch.KIND_TITLES[kind]}, {ranks} ranks, {options.pairs} pairs", flush=True)
            results.append(lattice.measure(kind, ranks, options.pairs, scratch))
    return results, ["## 4-D lattice", "", *lattice.table(results)]


def run_report(options: argparse.Namespace, scratch: Path) -> tuple[list[report_speed.Cost], list[str]]:
    """What reading traces costs."""
    print("-- reading traces of half a million and of fifty million events", flush=True)
    results = report_speed.measure(scratch, runs=min(options.pairs, 5)) if report_speed.available() else []
    return results, ["## Reading a trace", "", *report_speed.table(results)]


def keep(
    name: str, text: str, document: object, options: argparse.Namespace, pictures: Mapping[str, str] | None = None
) -> None:
    """Writes NAME.json, the page NAME.md and its pictures into `options.output`, page and pictures also to
    `options.record`, and says so.

    Of pictures: what follows NAME in the file's name, and the SVG. Pages name them so wherever they lie.
    """
    drawn = {f"{name}{ending}.svg": svg for ending, svg in (pictures or {}).items()}
    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / f"{name}.json").write_text(json.dumps(document, indent=1, default=to_json), encoding="utf-8")
    for place in [options.output / f"{name}.md", *([options.record] if options.record else [])]:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
        for file, svg in drawn.items():
            place.with_name(file).write_text(svg, encoding="utf-8")
    print(text.partition("\n## ")[2])
    print(f"written: {options.output}/{name}.json, " + ", ".join([f"{name}.md", *drawn]))


def record(page: Path, text: list[str]) -> None:
    """Writes the tables below the introduction of the page, which ends at the first `##`."""
    old = page.read_text(encoding="utf-8") if page.is_file() else f"# Results: {page.stem.replace('-', ' ')}\n\n"
    introduction = old.partition("\n## ")[0].rstrip("\n")
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(introduction + "\n\n" + "\n".join(text) + "\n", encoding="utf-8")


def run_all(runners: Iterable[tuple[str, Runner]], options: argparse.Namespace, document: dict[str, Any]) -> list[str]:
    """Runs one after the other in a scratch directory: figures go into the document, tables are returned."""
    started = time.monotonic()
    text: list[str] = []
    scratch = Path(tempfile.mkdtemp(prefix="ioweir-bench-", dir=options.scratch))
    try:
        for name, runner in runners:
            document[name], lines = runner(options, scratch)
            text += [*lines, ""]
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    document["elapsed_s"] = round(time.monotonic() - started, 1)
    return text


def main() -> int:
    """Runs what was asked for; the results lie in build/bench."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("benchmarks", nargs="*", default=list(BENCHMARKS), help=f"of {', '.join(BENCHMARKS)}")
    parser.add_argument("--pairs", type=int, default=15, help="interleaved pairs a comparison (default 15)")
    parser.add_argument("--output", type=Path, default=launch.ROOT / "build" / "bench", help="directory of the results")
    parser.add_argument("--scratch", type=Path, default=TMPFS, help="where the programs write (default: memory)")
    parser.add_argument("--record", type=Path, metavar="PAGE", help="also write the tables as a page of docs/internal")
    options = parser.parse_args()
    runners: dict[str, Runner] = {
        "tracer": run_tracer,
        "lattice": run_lattice,
        "report": run_report,
    }
    unknown = set(options.benchmarks) - runners.keys()
    if unknown:
        parser.error(f"unknown benchmark: {', '.join(sorted(unknown))}; there are {', '.join(runners)}")
    if not launch.IOWEIR.exists():
        parser.error(f"{launch.IOWEIR} is not there; run make bench, which builds it")

    document: dict[str, Any] = {"date": time.strftime("%Y-%m-%d"), "machine": machine(), "pairs": options.pairs}
    try:
        text = run_all([(name, runners[name]) for name in options.benchmarks], options, document)
    except launch.BenchmarkError as error:
        print(error, file=sys.stderr)
        return 1

    about = document["machine"]
    text.append(
        f"{document['date']}: {about['processors']} processors ({about['processor']}), Linux {about['kernel']}, "
        f"clock source {about['clock_source']}, load {about['load_before']:.1f} before; medians of {options.pairs} "
        f"interleaved pairs with their 95 per cent interval; files in {options.scratch}; "
        f"{document['elapsed_s']:.0f} s in all."
    )
    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / "results.json").write_text(json.dumps(document, indent=1, default=to_json), encoding="utf-8")
    (options.output / "results.md").write_text("\n".join(text) + "\n", encoding="utf-8")
    if options.record is not None:
        record(options.record, text)
    print("\n".join(text))
    print(f"written: {options.output}/results.json, {options.output}/results.md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
