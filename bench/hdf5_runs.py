"""Kernels over parallel HDF5: what each optimisation of Howison et al. 2010 does to requests and to speed.

Lives here: the applications, the steps of their ladders, and the runs. Not here: tables, pictures and bars
(hdf5_page.py), labs (python/ioweir/targets/lab.py), what the kernels write (kernels/).
"""

from __future__ import annotations

import os
import random
import shutil
import statistics
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import ioweir.trace
import launch
import numpy as np
from ioweir.targets import lab

Way = TypeVar("Way")

RANKS = 4
RANKS_IN_MEMORY = 2
"""As many as processors: MPICH's ranks spin where there are more."""
TARGETS_OF_PLAN = 4
"""In memory, where there are none."""
PARTS = ("lab", "ceph", "memory", "sieving", "btio", "logs")
KIND = "openmpi"
"""On the labs."""
CEPH_REPEATS = 2
"""At most: its daemons share the processors with the ranks, and a run takes three times as long."""
SMALL = 64 << 10
"""Writes below it are called metadata here; the kernels' own are larger."""
CEILING = "uniform"
BY_HAND = "by hand: the same pieces by `pwrite`, one file"
SMALL_STEPS = "GCRM, many small steps"
"""A sixteenth of the paper's bytes in each dataset, so that metadata show: in memory no bar of the paper's."""


@dataclass(frozen=True)
class Step:
    """A way of running an application: what its program asks of HDF5, and what a plan does beneath it."""

    title: str
    hdf5: tuple[str, ...] = ()
    rule: str | None = None
    """Keys of the plan's rule besides the mapping; none: the MPI library itself, where no lab needs a plan."""
    stripe: str = "1 MiB"
    """Of the lab's plan."""
    log: bool = False
    """Each rank to a log of its own."""
    subfiles: bool = False
    """In memory, too, where other steps have one shared file."""
    hints: tuple[str, ...] = ()
    """For MPI-IO; in memory the MPI library does with them what the rule says, which the lab needs for its stripes."""

    def words(self) -> list[str]:
        """For the runner."""
        hints = [word for hint in self.hints for word in ("--hint", hint)]
        return [*(word for setting in self.hdf5 for word in ("--hdf5", setting)), *hints]


@dataclass(frozen=True)
class Application:
    """A kernel with its ladder; the last steps, with a plan, are what a user gets without changing the program."""

    name: str
    kernel: tuple[str, ...]
    in_memory: tuple[str, ...]
    """So much that opening a file through MPI-IO and HDF5, several milliseconds, is little of it."""
    quick: tuple[str, ...]
    steps: tuple[Step, ...]

    def words(self, on_targets: bool, quick: bool) -> tuple[str, ...]:
        """Of the kernel."""
        return self.quick if quick else self.kernel if on_targets else self.in_memory


EVERYONE = 'writers = "everyone"'
AUTO = 'writers = "auto"'
CHUNKS = ("transfer=independent", "layout=chunked", "fill=never")
LESS_METADATA = ("index=large", "evictions=off", "metadata=collective", "meta_block=1 MiB")


HELD = '[file.hdf5]\nhold_metadata = "all"\nmetadata_block = "1 MiB"\ncollective_metadata = "writes"\nfill = "never"\n'
"""Keys that need no stripes and leave datasets contiguous."""
HELD_AND_ALONE = HELD + 'transfer = "auto"\n'
"""For collective calls: those that need no other rank are made independent."""
NEWEST = 'libver = "v110"\n'
"""Groups and indexes of few bytes, which older HDF5 libraries cannot read: for users who allow it."""


def adapted(stripe: str, more: str) -> str:
    """The rule's keys for a program that is not changed: docs/explanation/hdf5.md."""
    return (
        f'{AUTO}\n[file.hdf5]\nalignment = "{stripe}"\nthreshold = "64 KiB"\nhold_metadata = "all"\n'
        f'metadata_block = "1 MiB"\ncollective_metadata = "writes"\nfill = "never"\n{more}'
    )


def gcrm_steps(stripe: str) -> tuple[Step, ...]:
    """Howison et al. 2010, section VII-A: MPI-POSIX, then chunking, then metadata."""
    chunks = (*CHUNKS, f"alignment={stripe}")
    return (
        Step("baseline: independent", ("transfer=independent",)),
        Step(f"chunking: a chunk a rank, aligned to {stripe}", chunks, None, stripe),
        Step("metadata: one index node, no evictions, collective, in blocks", (*chunks, *LESS_METADATA), None, stripe),
        Step("the baseline with a plan: `auto`", ("transfer=independent",), AUTO),
        Step(
            "the baseline with a plan: `auto`, `hdf5`",
            ("transfer=independent",),
            adapted(stripe, 'chunks = "learn"\nistore_k = "auto"'),
            stripe,
        ),
        Step("the baseline with a plan: `auto`, `hdf5` without chunks", ("transfer=independent",), f"{AUTO}\n{HELD}"),
        Step(
            "the baseline with a plan: `auto`, `hdf5` without chunks, newest format",
            ("transfer=independent",),
            f"{AUTO}\n{HELD}{NEWEST}",
        ),
        Step("the baseline with a plan: subfiles", ("transfer=independent",), EVERYONE, stripe, subfiles=True),
        Step("the baseline with a plan: logs", ("transfer=independent",), EVERYONE, log=True),
        Step("the baseline with a plan: logs, `hdf5`", ("transfer=independent",), f"{EVERYONE}\n{HELD}", log=True),
        Step(
            "the baseline with a plan: logs, `hdf5`, newest format",
            ("transfer=independent",),
            f"{EVERYONE}\n{HELD}{NEWEST}",
            log=True,
        ),
    )


def collective_steps(targets: int) -> tuple[Step, ...]:
    """Sections VII-B and VII-C: CB 0, then CB 2 without truncation, then larger stripes.

    Datasets are not aligned: of those that are not much larger than a stripe the first stripes would be full and the
    last ones not, and always on the same targets.
    """
    aggregators = f'writers = "aggregators:{targets}"'
    return (
        Step(
            "baseline: collective, even domains, 16 MiB (CB 0)",
            (),
            f'{aggregators}\ndomains = "even"\nbuffer = "16 MiB"',
            hints=("romio_cb_write=enable", f"cb_nodes={targets}", "cb_buffer_size=16777216"),
        ),
        Step("static-cyclic domains (CB 2)", (), f'{aggregators}\ndomains = "cyclic"'),
        Step("stripes of 4 MiB", (), f'{aggregators}\ndomains = "cyclic"', "4 MiB"),
        Step("stripes of 16 MiB", (), f'{aggregators}\ndomains = "cyclic"', "16 MiB"),
        Step("the baseline with a plan: `auto`", (), AUTO, "4 MiB"),
        Step("the baseline with a plan: `auto`, `hdf5`", (), f"{AUTO}\n{HELD_AND_ALONE}", "4 MiB"),
        Step("the baseline with a plan: subfiles", (), AUTO, "4 MiB", subfiles=True),
        Step("the baseline with a plan: logs", (), EVERYONE, log=True),
        Step("the baseline with a plan: logs, `hdf5`", (), f"{EVERYONE}\n{HELD_AND_ALONE}", log=True),
        Step(
            "the baseline with a plan: logs, `hdf5`, newest format",
            (),
            f"{EVERYONE}\n{HELD_AND_ALONE}{NEWEST}",
            log=True,
        ),
    )


def applications(targets: int) -> tuple[Application, ...]:
    """Five, as the paper's figures 7 to 9, and one with as many steps as Table I has, which makes metadata many."""
    collective = collective_steps(targets)
    return (
        Application("GCRM, cells", ("gcrm-hdf5", "steps=40"), ("gcrm-hdf5", "steps=400"), ("gcrm-hdf5", "steps=4"),
                    gcrm_steps("2 MiB")),
        Application(SMALL_STEPS, ("gcrm-hdf5", "cells=1024", "steps=240"),
                    ("gcrm-hdf5", "cells=1024", "steps=960"), ("gcrm-hdf5", "cells=1024", "steps=120"),
                    gcrm_steps("128 KiB")),
        Application("GCRM, edges", ("gcrm-hdf5", "data=edges", "steps=8"), ("gcrm-hdf5", "data=edges", "steps=32"),
                    ("gcrm-hdf5", "data=edges", "steps=1"), gcrm_steps("10 MiB")),
        Application("Chombo", ("chombo", "boxes=172"), ("chombo", "boxes=688"), ("chombo", "boxes=16"), collective),
        Application("VORPAL, 40^3", ("vorpal", "steps=40"), ("vorpal", "steps=400"), ("vorpal", "steps=4"),
                    collective),
        Application("VORPAL, 80^3", ("vorpal", "local=80,80,80", "steps=5"),
                    ("vorpal", "local=80,80,80", "steps=25"), ("vorpal", "local=80,80,80", "steps=1"), collective),
    )  # fmt: skip


@dataclass
class Requests:
    """Writes to storage, from a trace; the large ones are the program's data."""

    small: int = 0
    small_bytes: int = 0
    large: int = 0
    large_bytes: int = 0
    reads: int = 0
    locks: int = 0

    @property
    def mean_kib(self) -> float:
        """Of the large ones."""
        return self.large_bytes / self.large / 1024 if self.large else 0.0


@dataclass
class Figures:
    """One step of one application."""

    title: str
    written: list[float] = field(default_factory=list)
    """MiB/s, each repetition."""
    requests: Requests = field(default_factory=Requests)
    read: list[float] = field(default_factory=list)

    @property
    def most(self) -> float:
        """As the paper reports it; 0 where nothing was measured."""
        return max(self.written, default=0.0)

    @property
    def median(self) -> float:
        """Of the repetitions."""
        return statistics.median(self.written) if self.written else 0.0

    @property
    def median_read(self) -> float:
        """Of the repetitions in which reading was timed, too."""
        return statistics.median(self.read) if self.read else 0.0


@dataclass
class Ladder:
    """One application in one place."""

    application: str
    place: str
    mib: float = 0.0
    steps: list[Figures] = field(default_factory=list)
    ceiling: Figures = field(default_factory=lambda: Figures("a file for each process, uniform writes"))
    by_hand: Figures = field(default_factory=lambda: Figures(BY_HAND))
    """In memory alone: no file system of the lab stripes a file over its targets."""


@dataclass
class Runs:
    """All of it."""

    target_rate: int
    targets: int
    ceph_rate: int = 0
    on_lab: list[Ladder] = field(default_factory=list)
    on_ceph: list[Ladder] = field(default_factory=list)
    in_memory: list[Ladder] = field(default_factory=list)
    sieving: dict[str, list[Figures]] = field(default_factory=dict)
    """FLASH-IO: MPI library and memory -> its configurations."""
    btio: dict[str, list[Figures]] = field(default_factory=dict)
    """MPI library and ranks -> ways."""
    btio_on_lab: dict[str, list[Figures]] = field(default_factory=dict)
    """Ranks -> ways (btio_targets.py)."""
    btio_calls: dict[str, list[list[float]]] = field(default_factory=dict)
    """Way -> the ranks' writes in one call: rank, begin, end."""

    def parts(self) -> dict[str, Any]:
        """What was measured, by the names of PARTS."""
        all_parts = (self.on_lab, self.on_ceph, self.in_memory, self.sieving, self.btio, self.btio_calls)
        return {name: part for name, part in zip(PARTS, all_parts, strict=True) if part}

    def add(self, earlier: Runs) -> list[str]:
        """Take parts from an earlier run that this one has not, and applications of parts that it has; their names."""
        for mine, others in ((self.on_lab, earlier.on_lab), (self.on_ceph, earlier.on_ceph),
                             (self.in_memory, earlier.in_memory)):  # fmt: skip
            if not mine:
                continue
            known = {(one.application, one.place): one for one in others}
            known |= {(one.application, one.place): one for one in mine}
            mine[:] = known.values()
        missing = [part for part in earlier.parts() if part not in self.parts()]
        for part in missing:
            names = {"lab": "on_lab", "ceph": "on_ceph", "memory": "in_memory", "logs": "btio_on_lab btio_calls"}
            for name in names.get(part, part).split():
                setattr(self, name, getattr(earlier, name))
        return missing

    @property
    def ideal(self) -> float:
        """MiB/s of all the lab's targets together."""
        return self.target_rate * self.targets / (1 << 20)


def runs_of(document: dict[str, Any]) -> Runs:
    """What asdict() made of them."""

    def figures(row: dict[str, Any]) -> Figures:
        return Figures(**{**row, "requests": Requests(**row["requests"])})

    def ladder(found: dict[str, Any]) -> Ladder:
        steps = [figures(row) for row in found["steps"]]
        ends = {name: figures(found[name]) for name in ("ceiling", "by_hand")}
        return Ladder(**{**found, "steps": steps, **ends})

    places: dict[str, Any] = {
        name: [ladder(found) for found in document[name]] for name in ("on_lab", "on_ceph", "in_memory")
    }
    names = [name for name in ("sieving", "btio", "btio_on_lab") if name in document]
    tables: dict[str, Any] = {
        name: {title: [figures(row) for row in rows] for title, rows in document[name].items()} for name in names
    }
    return Runs(**{**document, **places, **tables})


@dataclass(frozen=True)
class Place:
    """Where files are: under `root`, and on a lab dealt over directories, one on each target."""

    title: str
    root: Path
    targets: tuple[Path, ...] = ()


def on_devices(made: lab.Lab) -> Place:
    """A directory on each of the lab's devices."""
    return Place("lab", made.root, tuple(made.target(number) for number in range(len(made.rates))))


def on_pools(made: lab.Lab) -> Place:
    """A directory for each pool of the lab's CephFS, whose files lie in that pool."""
    folders = []
    for number in range(len(made.rates)):
        folder = made.target(number) / f"in-t{number}"
        folder.mkdir(exist_ok=True)
        os.setxattr(folder, "ceph.dir.layout.pool", f"t{number}".encode())
        folders.append(folder)
    return Place("CephFS", made.target(0), tuple(folders))


def requests_of(directory: Path, files: Sequence[Path]) -> Requests:
    """What ranks asked of storage in files at or below `files`."""
    trace = ioweir.trace.read(directory)
    events = trace.events
    kinds = {function.id: function.op for function in trace.functions if function.layer == "POSIX"}
    ours = [
        number
        for number, path in enumerate(trace.paths)
        if any(str(path) == str(file) or str(path).startswith(f"{file}.") or file in Path(str(path)).parents
               for file in files)
    ]  # fmt: skip
    in_ranks = np.isin(events.process, [n for n, process in enumerate(trace.processes) if process.rank >= 0])
    chosen = in_ranks & np.isin(events.path, ours)

    def of(operation: str) -> Any:
        return chosen & np.isin(events.function, [number for number, op in kinds.items() if op == operation])

    writes = of("write")
    sizes = events.bytes[writes]
    small = sizes[sizes < SMALL]
    large = sizes[sizes >= SMALL]
    return Requests(
        len(small), int(small.sum()), len(large), int(large.sum()), int(of("read").sum()), int(of("lock").sum())
    )


def rule_of(step: Step, directories: Sequence[Path]) -> str | None:
    """The plan of a step: with `directories`, the stripes of the shared file on all of them; None: none is needed."""
    places = ", ".join(f'"{directory}"' for directory in directories)
    targets = f"targets = [{places}]\n" if directories else ""
    rule = '[[file]]\nmatch = "*/shared.h5"\n'
    if step.log:
        return f'{rule}mapping = "log"\nvisibility = "sync"\n{targets}{step.rule}\n'
    stripe = f'size = "{step.stripe}"'
    if step.subfiles and not directories:
        return f'{rule}mapping = "subfiles:{TARGETS_OF_PLAN}"\nstripe = {{ {stripe} }}\n{step.rule}\n'
    if directories:
        mapping = f'mapping = "subfiles:{len(directories)}"'
        return f"{rule}{mapping}\n{targets}stripe = {{ {stripe} }}\n{step.rule or EVERYONE}\n"
    if step.rule is None or step.hints:
        return None
    return f'{rule}mapping = "shared"\nstripe = {{ {stripe}, count = {TARGETS_OF_PLAN} }}\n{step.rule}\n'


def written_of(lines: Sequence[Any]) -> list[float]:
    """Every line has to be right."""
    if not all(line["read_correct"] and line["file_correct"] is not False for line in lines):
        raise launch.BenchmarkError(f"what was read is not what was written: {lines}")
    return [line["write_mib_per_s"] for line in lines]


def run_step(
    scratch: Path, place: Path, files: Sequence[Path], kind: str, ranks: int, kernel: Sequence[str], words: list[str],
    rule: str | None, environment: dict[str, str] | None = None,
) -> tuple[Any, Requests]:  # fmt: skip
    """One run, traced; its line, and its requests. POSIX calls alone are traced, which costs less than a per cent."""
    trace, plan = scratch / "trace", scratch / "plan.toml"
    if rule is not None:
        plan.write_text(rule, encoding="utf-8")
    lines = launch.run_program(
        launch.KERNEL_RUNNER, kind, ranks, [*kernel, "--directory", str(place), *words],
        launch.Traced(trace, plan if rule is not None else None, "posix,mpiio"), environment,
    )  # fmt: skip
    requests = requests_of(trace, files)
    shutil.rmtree(trace)
    written_of(lines)
    return lines[0], requests


def climb(
    scratch: Path, application: Application, kernel: Sequence[str], repeats: int, place: Place, kind: str,
) -> Ladder:  # fmt: skip
    """All steps of an application and its ceiling, in any order; on a lab, or in memory under an MPI library."""
    targets = place.targets
    ladder = Ladder(application.name, place.title)
    files = [place.root]
    ranks = RANKS if targets else RANKS_IN_MEMORY
    sync = ["--sync", "1" if targets else "0"]
    # On targets of a lab every step has subfiles.
    steps = [step for step in application.steps if not (targets and step.subfiles)]
    ladder.steps = [Figures(step.title) for step in steps]
    spread = [word for target in targets for word in ("--spread", str(target))]
    ways = [
        (row, [*step.words(), "--mode", "hdf5:shared.h5"], rule_of(step, targets))
        for row, step in zip(ladder.steps, steps, strict=True)
    ]
    ways.append((ladder.ceiling, ["--mode", f"{CEILING}:own", *spread], None))
    if not targets:
        ways.append((ladder.by_hand, ["--mode", "posix:shared.h5"], None))
    for repetition in range(repeats):
        for row, words, rule in in_any_order(ways, repetition):
            line, row.requests = run_step(
                scratch, place.root, files, kind, ranks, kernel, [*words, *sync, "--salt", str(repetition)], rule
            )
            row.written.append(line["write_mib_per_s"])
            ladder.mib = line["mib"] if row in ladder.steps else ladder.mib
    return ladder


def in_any_order(ways: Sequence[Way], repetition: int) -> list[Way]:
    """Another order each repetition, and the same in each run of the benchmark.

    In a fixed order, the fourth of five ways under FLASH-IO had 0.97 [0.92, 0.99] of what the second had, of 15 runs;
    in any order 0.985 [0.96, 1.02] of 31, where a way against itself has 1.01 [0.99, 1.04].
    """
    return random.Random(repetition).sample(ways, len(ways))


SIEVING = (
    ("original: sieving, no collective buffering", ("romio_ds_write=enable", "romio_cb_write=disable"), None),
    ("no sieving", ("romio_ds_write=disable", "romio_cb_write=disable"), None),
    ("collective buffering, no sieving", ("romio_ds_write=disable", "romio_cb_write=enable"), None),
    ("original, with a plan", ("romio_ds_write=enable", "romio_cb_write=disable"), EVERYONE),
)
"""Wright et al. 2013, figure 8, and what ioweir makes of the first."""
IO_OF_OPEN_MPI = {"Open MPI, ROMIO": {"OMPI_MCA_io": "romio321"}, "Open MPI, OMPIO": {"OMPI_MCA_io": "ompio"}}


def sieve(runs: Runs, scratch: Path, quick: bool, repeats: int) -> None:
    """FLASH-IO on two ranks, with packed memory and with guard cells, in any order."""
    kernel = ("flash", "variables=4") if quick else ("flash", "local=24,24,24", "variables=24")
    libraries: dict[str, tuple[str, dict[str, str]]] = {"MPICH": ("mpich", {})}
    libraries |= {name: ("openmpi", environment) for name, environment in IO_OF_OPEN_MPI.items()}
    for name, (kind, environment) in libraries.items():
        if not launch.available(launch.KERNEL_RUNNER, kind):
            continue
        for memory in ("packed", "guarded"):
            rows, by_hand = [Figures(title) for title, _, _ in SIEVING], Figures(BY_HAND)
            program = ["--mode", "hdf5:flash.h5", "--hdf5", f"memory={memory}"]
            ways = [
                (row, [*program, *(word for hint in hints for word in ("--hint", hint))], flash_rule(rule))
                for row, (_, hints, rule) in zip(rows, SIEVING, strict=True)
            ]
            ways.append((by_hand, ["--mode", "posix:flash.h5"], None))
            for repetition in range(repeats):
                for row, words, rule in in_any_order(ways, repetition):
                    line, row.requests = run_step(
                        scratch, scratch, [scratch / "flash.h5"], kind, 2, kernel,
                        [*words, "--salt", str(repetition)], rule, environment,
                    )  # fmt: skip
                    row.written.append(line["write_mib_per_s"])
            runs.sieving[f"{name}, {memory} memory"] = [*rows, by_hand]


def flash_rule(rule: str | None) -> str | None:
    """A plan for its file."""
    return f'[[file]]\nmatch = "*/flash.h5"\nmapping = "shared"\n{rule}\n' if rule else None


BTIO_WAYS = {"collective": ("mpiio", AUTO), "independent": ("independent", EVERYONE)}
"""How the program calls MPI-IO: the runner's mode, and the plan's writers."""
BTIO_IO: dict[str, dict[str, dict[str, str]]] = {
    "mpich": {"ROMIO": {}},
    "openmpi": {"ROMIO": {"OMPI_MCA_io": "romio321"}, "OMPIO": {"OMPI_MCA_io": "ompio"}},
}
BTIO_COLUMNS = tuple(f"{way}, {by}" for way in BTIO_WAYS for by in ("ROMIO", "OMPIO", "a plan"))


def bt(runs: Runs, scratch: Path, quick: bool, repeats: int) -> None:
    """BTIO class A and B on square numbers of ranks: 40 writes of class A, as it is, where that is soon done."""
    for kind in launch.KINDS:
        if not launch.available(launch.KERNEL_RUNNER, kind):
            continue
        for name in ("A",) if quick else ("A", "B"):
            for ranks in (1, 4) if quick else (1, 4, 9, 16):
                alone = ranks <= processors()
                writes = 2 if quick else {"A": 40, "B": 12}[name] if alone else {"A": 8, "B": 2}[name]
                kernel = ("btio", f"class={name}", f"writes={writes}")
                print(f"   {launch.KIND_TITLES[kind]}, class {name}, {ranks} ranks", flush=True)
                often = 1 if quick else repeats if kind == "mpich" and not alone else 2 * repeats + 1
                runs.btio[f"{launch.KIND_TITLES[kind]}, class {name}, {ranks} ranks"] = list(
                    bt_rows(scratch, kind, ranks, kernel, often).values()
                )


def bt_rows(scratch: Path, kind: str, ranks: int, kernel: Sequence[str], repeats: int) -> dict[str, Figures]:
    """All ways of one MPI library, in any order; by their titles in BTIO_COLUMNS."""
    rows: dict[str, Figures] = {}
    ways = []
    for way, (mode, writers) in BTIO_WAYS.items():
        rule = f'[[file]]\nmatch = "*/btio.data"\nmapping = "shared"\n{writers}\n'
        for by, environment in {**BTIO_IO[kind], "a plan": {}}.items():
            row = rows.setdefault(f"{way}, {by}", Figures(f"{way}, {by}"))
            ways.append((row, mode, rule if by == "a plan" else None, environment))
    for repetition in range(repeats):
        for row, mode, plan, environment in in_any_order(ways, repetition):
            line, row.requests = run_step(
                scratch, scratch, [scratch / "btio.data"], kind, ranks, kernel, ["--mode", f"{mode}:btio.data"],
                plan, environment,
            )  # fmt: skip
            row.written.append(line["write_mib_per_s"])
            row.read.append(line["read_mib_per_s"])
    return rows


def measure(
    runs: Runs, made: lab.Lab | None, scratch: Path, repeats: int, parts: Sequence[str], quick: bool,
    names: Sequence[str] = (),
) -> None:  # fmt: skip
    """Some parts, into `runs`; the lab's only where there is one. CephFS comes by itself: `measure_ceph`.

    `names`: of applications; all by default.
    """
    kinds = [kind for kind in launch.KINDS if launch.available(launch.KERNEL_RUNNER, kind)]
    for application in applications(runs.targets):
        if names and application.name not in names:
            continue
        if made is not None and "lab" in parts:
            print(f"-- {application.name}: {runs.targets} targets", flush=True)
            kernel = application.words(on_targets=True, quick=quick)
            runs.on_lab.append(climb(scratch, application, kernel, repeats, on_devices(made), KIND))
        kernel = application.words(on_targets=False, quick=quick)
        for kind in kinds if "memory" in parts else []:
            title = launch.KIND_TITLES[kind]
            print(f"-- {application.name}: in memory, {title}", flush=True)
            often = 1 if quick else 2 * repeats - 1
            runs.in_memory.append(climb(scratch, application, kernel, often, Place(title, scratch), kind))
    if "sieving" in parts:
        print("-- FLASH-IO and data sieving", flush=True)
        sieve(runs, scratch, quick, 1 if quick else 2 * repeats - 1)
    if "btio" in parts:
        print("-- BTIO", flush=True)
        bt(runs, scratch, quick, repeats)
    if made is not None:
        subprocess.run(["sync"], check=False)


def measure_ceph(
    runs: Runs, made: lab.Lab, scratch: Path, repeats: int, quick: bool, names: Sequence[str] = (),
) -> None:  # fmt: skip
    """The applications, or those with these names, on a CephFS whose pools are the targets."""
    place = on_pools(made)
    for application in applications(runs.targets):
        if names and application.name not in names:
            continue
        print(f"-- {application.name}: CephFS, {runs.targets} pools", flush=True)
        kernel = application.words(on_targets=True, quick=quick)
        runs.on_ceph.append(climb(scratch, application, kernel, min(repeats, CEPH_REPEATS), place, KIND))


def processors() -> int:
    """Of this machine."""
    return os.cpu_count() or 1
