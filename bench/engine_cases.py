"""What `make bench-engine` compares: the kernels, the ways of moving their bytes, and rounds of all ways.

All ways take turns inside one process, each with a file of its own, so that what disturbs one disturbs the others too.
Lives here: cases, strategies, running them, and whether a strategy ran as planned (the trace says so). Not here: how
many rounds, and what comes of them (bench_engine.py), tables and pictures (engine_page.py).
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import launch

DIRECTIONS = ("write", "read")
LIBRARY = "library"
ROMIO = "romio321"
ALONE = "library alone"
"""The library in a process of its own, without ioweir: what loading ioweir does to it."""
BY_HAND = ("posix", "exchange", "fpp")
DIRECT = "direct"
AGGREGATED = ("even", "aligned", "cyclic", "group-cyclic", "cooperative", "contention-free")
AUTO = "auto"
"""Which of the two it is, the engine finds in each call."""
GROUPED = "grouped"
"""A file for each rank beneath the one that the program sees."""
STRATEGIES = (AUTO, DIRECT, *AGGREGATED, GROUPED)
ROUNDS_OF_A_PROCESS = 5
LIBRARY_TITLES = {"mpich": "ROMIO", "openmpi": "OMPIO"}


@dataclass(frozen=True)
class Case:
    """A kernel with parameters that give every rank at least 16 MiB a call."""

    name: str
    title: str
    words: tuple[str, ...]
    square: bool = False

    def runs_on(self, ranks: int) -> bool:
        """Whether the kernel exists for so many ranks."""
        return not self.square or int(ranks**0.5) ** 2 == ranks


CASES = (
    Case("contiguous", "IOR segmented: 16 MiB in one piece", ("ior-segmented", "data=16MiB", "transfer=16MiB")),
    Case(
        "strided-64K",
        "IOR strided: pieces of 64 KiB dealt round",
        ("ior-strided", "data=16MiB", "transfer=16MiB", "piece=64KiB"),
    ),
    Case(
        "strided-4K",
        "IOR strided: pieces of 4 KiB dealt round",
        ("ior-strided", "data=16MiB", "transfer=16MiB", "piece=4KiB"),
    ),
    Case("lattice", "4-D lattice: 16^4 sites of 256 B a rank", ("lattice",)),
    Case(
        "coll_perf",
        "coll_perf: 128 x 128 x 256 integers a rank, 3-D",
        ("coll_perf", "local=128,128,256", "variables=1"),
    ),
    Case("btio", "BTIO class C, one solution: 162 MiB", ("btio", "class=C", "writes=1"), square=True),
)
QUICK_CASES = ("strided-64K", "lattice")
THROTTLED_CASES = ("strided-64K", "lattice")
THROTTLED_MIB_PER_S = 50
"""Of one target; two of them are as fast as a slow disk, far below what memory gives on any machine."""


def aggregators_of(ranks: int) -> int:
    """Half as many aggregators as ranks, two at least: also the number of targets."""
    return max(2, ranks // 2)


def plan_text(ranks: int) -> str:
    """One rule for each strategy; each has a file of its own, so that one run compares them all.

    Stripes of 1 MiB on as many targets as there are aggregators stand in for a parallel file system's layout.
    """
    aggregators = aggregators_of(ranks)
    stripe = f'stripe = {{ size = "1 MiB", count = {aggregators} }}'
    rules = [
        f'[[file]]\nmatch = "{AUTO}.data"\nwriters = "auto"\n',
        f'[[file]]\nmatch = "{DIRECT}.data"\nwriters = "everyone"\n',
    ]
    for domains in AGGREGATED:
        free = domains == "contention-free"
        rules.append(
            f'[[file]]\nmatch = "{domains}.data"\nwriters = "aggregators:{aggregators}"\n'
            f'domains = "{"even" if free else domains}"\n'
            f'order = "{"contention-free" if free else "sequential"}"\n{stripe}\n'
        )
    rules.append(f'[[file]]\nmatch = "{GROUPED}.data"\nmapping = "grouped:{ranks}"\n')
    return "\n".join(rules)


@dataclass
class Measured:
    """All rounds of one kernel, MPI library, number of ranks and storage."""

    storage: str
    mpi: str
    ranks: int
    case: str
    speeds: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    """Way -> direction -> MiB/s of each round."""
    not_as_planned: dict[str, str] = field(default_factory=dict)
    """Strategy -> why it is not quoted."""
    failed: str = ""
    """Why there are no figures at all."""
    nominal_mib_per_s: float = 0.0
    """Throttled storage: the sum of its targets' rates."""

    posix_calls: dict[str, dict[str, int]] = field(default_factory=dict)
    """Way -> direction -> reads or writes of all ranks in one round, of a run that traces them."""

    def add(self, way: str, line: Mapping[str, Any]) -> None:
        """One line of the runner's."""
        directions = self.speeds.setdefault(way, {direction: [] for direction in DIRECTIONS})
        for direction in DIRECTIONS:
            directions[direction].append(line[f"{direction}_mib_per_s"])


def beside(way: str, library: str) -> str:
    """The name of a strategy's rounds in the process of that library."""
    return f"{way} beside {library}" if library == ROMIO and way in STRATEGIES else way


def rotated(ways: Sequence[str], by: int) -> list[str]:
    """Another way first in each round: what comes first may find other memory."""
    at = by % len(ways)
    return [*ways[at:], *ways[:at]]


def modes_of(ways: Iterable[str]) -> str:
    """The runner's --mode for ways of one process; each has a file of its own."""
    return ",".join(f"{way if way in BY_HAND else 'mpiio'}:{way.replace(' ', '-')}.data" for way in ways)


def run_ways(
    measured: Measured, case: Case, ways: Sequence[str], scratch: Path, number: int, rounds: int, plan: Path | None
) -> None:
    """Runs ways in one process, in turn, and keeps their speeds; `number` is that of the first round."""
    environment = {"OMPI_MCA_io": "romio321"} if ROMIO in ways else {}
    if measured.nominal_mib_per_s:
        state = scratch / "targets"
        state.unlink(missing_ok=True)
        rates = ",".join([f"{THROTTLED_MIB_PER_S}MiB"] * aggregators_of(measured.ranks))
        environment["IOWEIR_TEST_THROTTLE"] = f"stripe=1MiB rates={rates} state={state}"
    arguments = [
        *case.words, "--directory", str(scratch), "--mode", modes_of(rotated(ways, number)), "--warm-up", "1",
        "--verify", str(int(number == 0)), "--repeats", str(rounds), "--salt", str(number),
    ]  # fmt: skip
    trace = scratch / "trace"
    shutil.rmtree(trace, ignore_errors=True)
    traced = launch.Traced(trace, plan, "mpiio") if plan is not None else None
    lines = launch.run_program(launch.KERNEL_RUNNER, measured.mpi, measured.ranks, arguments, traced, environment)
    way_of = {f"{way.replace(' ', '-')}.data": way for way in ways}
    library = ROMIO if ROMIO in ways else LIBRARY
    for line in sorted(lines, key=lambda line: int(line["repetition"])):
        measured.add(beside(way_of[line["file"]], library), line)
    if plan is not None:
        for way, reason in departures(launch.report(trace), [way for way in ways if way in STRATEGIES]).items():
            measured.not_as_planned.setdefault(way, reason)
        shutil.rmtree(trace, ignore_errors=True)


def count_calls(measured: Measured, case: Case, scratch: Path, plan: Path) -> None:
    """One round with every layer traced and nothing timed: how many system calls move the bytes of each way."""
    processes: list[tuple[Sequence[str], dict[str, str]]] = [((LIBRARY, AUTO), {})]
    if measured.mpi == "openmpi":
        processes.append(((ROMIO,), {"OMPI_MCA_io": "romio321"}))
    for ways, environment in processes:
        trace = scratch / "trace"
        arguments = [*case.words, "--directory", str(scratch), "--mode", modes_of(ways)]
        traced = launch.Traced(trace, plan)
        launch.run_program(launch.KERNEL_RUNNER, measured.mpi, measured.ranks, arguments, traced, environment)
        for way in ways:
            measured.posix_calls[way] = dict.fromkeys(DIRECTIONS, 0)
        for row in launch.report(trace)["files"]:
            way = Path(row["path"]).stem
            for direction in DIRECTIONS if way in ways else ():
                calls = row["layers"].get("POSIX", {}).get(direction, {}).get("calls", 0)
                measured.posix_calls[way][direction] += calls
        shutil.rmtree(trace, ignore_errors=True)


def departures(report: Mapping[str, Any], ways: Iterable[str]) -> dict[str, str]:
    """Which strategies did not run as planned in a traced run, and why: to be said instead of a figure."""
    plan = report["plan"]
    wrong = {}
    for way in ways:
        name = f"{way}.data"
        applied = [row["text"] for row in plan["applied"] if os.path.basename(row["path"]) == name]  # noqa: PTH119
        passed = [row for row in plan["passed_through"] if os.path.basename(row["path"]) == name]  # noqa: PTH119
        moved = [row for row in plan["engine"] if os.path.basename(row["path"]) == name]  # noqa: PTH119
        wanted = "writers aggregators" if way in AGGREGATED else "writers everyone"
        wanted = {GROUPED: "mapping grouped", AUTO: "writers auto"}.get(way, wanted)
        if passed:
            wrong[way] = "; ".join(dict.fromkeys(str(row["text"]) for row in passed))
        elif not applied:
            wrong[way] = "the trace does not say that the rule was applied"
        elif wanted not in applied[0]:
            wrong[way] = f"applied was: {applied[0]}"
        elif not any(row["bytes"] for row in moved):
            wrong[way] = "the engine moved no byte"
        elif way in AGGREGATED and not any(row["exchanges"] for row in moved):
            wrong[way] = "no exchange took place"
    return wrong


def some_rounds(measured: Measured, case: Case, number: int, rounds: int, scratch: Path, plan: Path) -> None:
    """Every way `rounds` times: the library, what is written by hand, and ioweir with each strategy in one process; the
    strategies beside Open MPI's other library in a second one; the library without ioweir in a third.

    Only ioweir's engine can be throttled: on throttled targets its strategies are compared with each other.
    """
    if measured.nominal_mib_per_s:
        run_ways(measured, case, STRATEGIES, scratch, number, rounds, plan)
        return
    processes: list[tuple[Sequence[str], Path | None]] = [
        ((LIBRARY, *BY_HAND, *STRATEGIES), plan),
        ((ALONE,), None),
    ]
    if measured.mpi == "openmpi":
        processes.append(((ROMIO, *STRATEGIES), plan))
    at = number // ROUNDS_OF_A_PROCESS % len(processes)
    for ways, applied in [*processes[at:], *processes[:at]]:
        run_ways(measured, case, ways, scratch, number, rounds, applied)
