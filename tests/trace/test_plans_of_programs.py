"""Unchanged programs on HDF5, PnetCDF, netCDF, mpi4py, h5py and Fortran's three interfaces under every strategy.

Each runs without ioweir and then under a plan: exit code, output and every byte of every file are the same, and the
engine has moved bytes in the way that the plan says (seen in its own events, so that a plan that was not applied is no
success). Files in groups are compared once `ioweir merge` has made them one. IOWEIR_TEST_ALL=1 runs each program with
each strategy; otherwise each library meets some, and HDF5 and PnetCDF all.
Not here: what the calls are recorded as (test_library_programs.py, test_languages.py).
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import pytest
from test_languages import python_with
from test_library_programs import PYTHON, fortran_program, hdf5_program, library_directory
from tracing import IOWEIR, MPICH, OPEN_MPI, PROGRAMS, Mpi, Traced, build, ioweir_run, run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from tracing import Event

RANKS: Final = 3
STRIPE: Final = 512
BUFFER: Final = 1024
LONGEST_HEADER_FILE: Final = 512
TWO: Final = ('writers = "aggregators:2"', f"buffer = {BUFFER}", f"stripe = {{ size = {STRIPE}, count = 3 }}")
AT_SYNC: Final = 'visibility = "sync"'
SUBFILE_HEADER: Final = 4096
LOG_HEADER: Final = 4096
GROUP_HEADER: Final = 1 << 20
IN_PARTS: Final = ("grouped", "log", "subfiles")

# Buffers and stripes are small, so that the programs' small files take several rounds and parts. Not smaller: PnetCDF
# begins its first variable at a multiple of the stripe, and without a plan at one of 512 bytes.
STRATEGIES: Final[dict[str, tuple[str, ...]]] = {
    "everyone": ('writers = "everyone"',),
    "even": (*TWO, 'domains = "even"'),
    "cyclic": (*TWO, 'domains = "cyclic"'),
    "cooperative": (*TWO, 'domains = "cooperative"', 'order = "contention-free"'),
    "contention-free": (*TWO, 'domains = "even"', 'order = "contention-free"'),
    "behind": ('writers = "behind:1"', AT_SYNC),
    "grouped": ('mapping = "grouped:2"', AT_SYNC),
    "auto": ('writers = "auto"', f"buffer = {BUFFER}", f"stripe = {{ size = {STRIPE}, count = 3 }}"),
    "log": ('mapping = "log"', AT_SYNC),
    "subfiles": ('mapping = "subfiles:2"', f"stripe = {{ size = {STRIPE} }}"),
}


# --------------------------------------------------------------------------------------------------------- programs


@dataclass(frozen=True)
class Case:
    """A program that writes into a folder of its own."""

    command: tuple[str | Path, ...]
    shared: str
    """The file that all ranks open, and write to in collective calls among others."""
    environment: Mapping[str, str]
    alone: int
    """Bytes of it that each rank writes through a handle that it has opened by itself."""


def case(shared: str, *command: str | Path, env: Mapping[str, str] | None = None, alone: int = 0) -> Case:
    return Case(command, shared, env or {}, alone)


def hdf5(mpi: Mpi, data: Path, _: Path) -> Case:
    return case("file.h5", hdf5_program("known_hdf5.c", mpi.name, mpi.cc, "-DPARALLEL"), data / "file.h5")


def hdf5_fortran(mpi: Mpi, data: Path, _: Path) -> Case:
    names = (f"hdf5_{mpi.name}_fortran", f"hdf5_{mpi.name}")
    program = fortran_program("known_fortran_hdf5.F90", mpi, f"/usr/include/hdf5/{mpi.name}", *names)
    return case("file.h5", program, data / "file.h5")


def pnetcdf(mpi: Mpi, data: Path, _: Path) -> Case:
    return case("file.nc", build("known_pnetcdf.c", mpi.cc, libraries=["-lpnetcdf"]), data / "file.nc", alone=8)


def pnetcdf_fortran(mpi: Mpi, data: Path, _: Path) -> Case:
    modules = library_directory() / "fortran" / "gfortran-mod-15"
    program = fortran_program("known_fortran_pnetcdf.F90", mpi, str(modules), "pnetcdf")
    return case("file.nc", program, data / "file.nc")


def netcdf(mpi: Mpi, data: Path, _: Path) -> Case:
    include = library_directory() / "netcdf" / "mpi" / "include"
    program = build("known_netcdf.c", mpi.cc, "-DPARALLEL", f"-I{include}", libraries=["-lnetcdf_mpi"])
    return case("four.nc", program, data / "four.nc", data / "three.nc")


def fortran(interface: str) -> Callable[[Mpi, Path, Path], Case]:
    def made(mpi: Mpi, data: Path, _: Path) -> Case:
        program = build("known_fortran.F90", mpi.fortran, f"-DUSE_{interface}")
        return case("shared", program, data / "shared", data / "own")

    return made


def mpi4py(mpi: Mpi, data: Path, scratch: Path) -> Case:
    python, variables = python_with(mpi, scratch)
    files = (data / "shared", data / "own", data / "plain")
    return case("shared", python, PROGRAMS / "known_mpi4py.py", *files, env=variables)


def h5py(_: Mpi, data: Path, __: Path) -> Case:
    return case("file.h5", PYTHON, PROGRAMS / "known_h5py.py", data / "file.h5")


CASES: Final = {
    "hdf5": hdf5, "hdf5-fortran": hdf5_fortran, "pnetcdf": pnetcdf, "pnetcdf-fortran": pnetcdf_fortran,
    "netcdf": netcdf, "mpif": fortran("MPIF"), "use-mpi": fortran("MPI"), "mpi-f08": fortran("MPI_F08"),
    "mpi4py": mpi4py, "h5py": h5py,
}  # fmt: skip
ONLY_OPEN_MPI: Final = ("pnetcdf", "pnetcdf-fortran", "netcdf", "h5py")
"""Those whose library Debian builds for Open MPI alone."""

ALL: Final = [
    (mpi, name, strategy)
    for mpi in (OPEN_MPI, MPICH)
    for name in CASES
    for strategy in STRATEGIES
    if mpi is OPEN_MPI or name not in ONLY_OPEN_MPI
]
EVERY_STRATEGY: Final = {("openmpi", "hdf5"), ("openmpi", "pnetcdf")}
SOME: Final = {
    ("openmpi", "hdf5-fortran"): ("behind",),
    ("openmpi", "pnetcdf-fortran"): ("grouped",),
    ("openmpi", "netcdf"): ("cyclic", "grouped", "log"),
    ("openmpi", "mpif"): ("everyone", "subfiles"),
    ("openmpi", "use-mpi"): ("contention-free", "log"),
    ("openmpi", "mpi-f08"): ("grouped",),
    ("openmpi", "mpi4py"): ("cooperative", "behind"),
    ("openmpi", "h5py"): ("even", "grouped"),
    ("mpich", "hdf5"): ("cyclic", "behind", "grouped"),
    ("mpich", "mpi-f08"): ("cooperative", "subfiles"),
    ("mpich", "mpi4py"): ("contention-free", "log"),
}


def chosen() -> list[Any]:
    """What this session runs."""
    everything = bool(os.environ.get("IOWEIR_TEST_ALL"))
    return [
        pytest.param(mpi, name, strategy, id=f"{mpi.name}-{name}-{strategy}")
        for mpi, name, strategy in ALL
        if everything or (mpi.name, name) in EVERY_STRATEGY or strategy in SOME.get((mpi.name, name), ())
    ]


# -------------------------------------------------------------------------------------------------------- comparing

MODIFIED: Final = re.compile(rb"(\x12\x00\x08\x00.\x00\x00\x00\x01\x00\x00\x00).{4}", re.DOTALL)
"""HDF5's message of when an object was modified (format 1.1, IV.A.2.s), with its header: the seconds come last."""


@dataclass(frozen=True)
class Ending:
    """How a program ended, and what it left behind."""

    code: int
    out: str
    err: str
    files: dict[str, bytes]


def ending(code: int, out: str, err: str, data: Path) -> Ending:
    """Without the folder's name, and without the times in HDF5's files."""
    files = {str(path.relative_to(data)): path.read_bytes() for path in data.rglob("*") if path.is_file()}
    files = {name: MODIFIED.sub(rb"\1____", text) if name.endswith(".h5") else text for name, text in files.items()}
    return Ending(code, out.replace(str(data), "DATA"), err.replace(str(data), "DATA"), files)


_plain: dict[tuple[str, str], Ending] = {}


def without_a_plan(mpi: Mpi, name: str, folder: Path) -> Ending:
    """The program by itself, once a session."""
    key = mpi.name, name
    if key not in _plain:
        data = folder / "plain"
        data.mkdir(parents=True)
        one = CASES[name](mpi, data, folder)
        done = run(mpi.launch(RANKS, *one.command), env=one.environment).expect()
        _plain[key] = ending(done.code, done.out, done.err, data)
        assert len(_plain[key].files[one.shared]) > 0
    return _plain[key]


@pytest.mark.one_of(16)
@pytest.mark.parametrize(("mpi", "name", "strategy"), chosen())
def test_program_under_a_plan_does_what_it_does_without(mpi: Mpi, name: str, strategy: str, tmp_path: Path) -> None:
    (tmp_path / "first").mkdir()
    plain = without_a_plan(mpi, name, tmp_path / "first")
    data = tmp_path / "data"
    data.mkdir()
    plan = tmp_path / "plan.toml"
    plan.write_text("\n".join(["[[file]]", f'match = "{data}/*"', *STRATEGIES[strategy], ""]))
    one = CASES[name](mpi, data, tmp_path)
    command = mpi.launch(RANKS, *one.command)
    traced = ioweir_run(tmp_path / "trace", command, options=["--plan", plan], env=one.environment, code=None)
    if strategy in IN_PARTS:
        merge_all(data, one.shared)
    assert ending(traced.code, traced.out, traced.err, data) == plain
    expect_strategy(traced, data / one.shared, strategy, one.alone)


def merge_all(data: Path, shared: str) -> None:
    """Makes ordinary files of the containers in a folder, the shared file among them."""
    containers = [
        path for path in data.iterdir() if path.is_file() and path.read_bytes().startswith(b"ioweir container ")
    ]
    assert data / shared in containers
    for path in containers:
        run([*IOWEIR, "merge", path]).expect()
    assert not list(data.glob(".ioweir-*"))


# ----------------------------------------------------------------------------------------- that the plan was applied


TOGETHER: Final = f"buffer {BUFFER // 1024} KiB, stripe size {STRIPE} B, stripe count 3"
APPLIED: Final = {
    "everyone": "mapping shared, writers everyone, order sequential",
    "even": f"mapping shared, writers aggregators:2, domains even, order sequential, {TOGETHER}",
    "cyclic": f"mapping shared, writers aggregators:2, domains cyclic, order sequential, {TOGETHER}",
    "cooperative": f"mapping shared, writers aggregators:2, domains cooperative, order contention-free, {TOGETHER}",
    "contention-free": f"mapping shared, writers aggregators:2, domains even, order contention-free, {TOGETHER}",
    "behind": "mapping shared, writers behind:1, domains even, order sequential",
    "grouped": "mapping grouped:2, writers everyone, order sequential",
    "auto": f"mapping shared, writers auto, domains cyclic, order sequential, {TOGETHER}",
    "log": "mapping log, writers everyone, order sequential",
    "subfiles": f"mapping subfiles:2, writers everyone, order sequential, stripe size {STRIPE} B, stripe count 2",
}
"""What the report says of each."""


def expect_strategy(traced: Traced, path: Path, strategy: str, alone: int) -> None:
    """By the report and by the engine's own events: the bytes were moved in this way and in no other."""
    plan = json.loads((traced.directory / "report.json").read_text(encoding="utf-8"))["plan"]
    assert [row["text"] for row in plan["passed_through"] if row["path"] == str(path)] == []
    (applied,) = {row["text"].split(": ", 1)[1] for row in plan["applied"] if row["path"] == str(path)}
    assert applied == APPLIED[strategy]
    (row,) = [row for row in plan["engine"] if row["path"] == str(path)]
    if strategy == "auto":
        assert row["exchanges"] + row["alone_by_choice"] > 0
    else:
        assert bool(row["exchanges"]) == ("aggregators:2" in applied)

    calls = [e for e in traced.trace.of(path) if e.layer == "MPI-IO" and e.op in {"read", "write"}]
    wanted = bytes_of_ranks(e for e in calls if e.op == "write")
    assert set(wanted) == set(range(RANKS))
    assert row["bytes"] == sum(e.bytes for e in calls)
    written = [e for e in traced.trace.events if (e.origin, e.layer, e.op) == ("engine", "POSIX", "write")]
    there = [e for e in written if e.path == str(path)]
    if strategy in IN_PARTS:
        {"grouped": expect_groups, "log": expect_logs, "subfiles": expect_subfiles}[strategy](path, written, wanted)
        assert sum(e.bytes for e in there) <= LONGEST_HEADER_FILE
        return
    assert sum(e.bytes for e in there) == wanted.total()
    assert row["handed_bytes"] == (wanted.total() if strategy == "behind" else 0)
    if strategy == "behind":
        # The node's writer, and each rank's own for the file that it has to itself.
        others = {rank: alone for rank in range(1, RANKS) if alone}
        assert bytes_of_ranks(there) == others | {0: wanted.total() - sum(others.values())}
    elif strategy == "everyone":
        assert bytes_of_ranks(there) == wanted
    elif strategy != "auto":  # which ranks write, each call says anew
        expect_aggregators(traced, path, there, strategy)


def bytes_of_ranks(events: Iterable[Event]) -> Counter[int]:
    """How many each rank moved."""
    moved = Counter[int]()
    for event in events:
        moved[event.rank] += event.bytes
    return moved


def expect_groups(path: Path, written: list[Event], wanted: Counter[int]) -> None:
    """Ranks 0 and 1 have written all of their bytes to the first group's file, rank 2 to the second's."""
    of_group = re.compile(re.escape(str(path.parent)) + r"/\.ioweir-([0-9a-f]{32})/group\.(\d)/data")
    moved = Counter[tuple[str, int, int]]()
    for event in written:
        if (match := of_group.fullmatch(event.path)) and event.offset >= GROUP_HEADER:
            moved[match[1], int(match[2]), event.rank] += event.bytes
    shared = {(group, rank): moved[at, group, rank] for at, group, rank in moved if (at, 1, RANKS - 1) in moved}
    assert shared == {(rank * 2 // RANKS, rank): wanted[rank] for rank in range(RANKS)}


def expect_logs(path: Path, written: list[Event], wanted: Counter[int]) -> None:
    """Each rank has written all of its bytes to a log of its own, behind the 4096 that say whose it is."""
    log = re.compile(re.escape(str(path.parent)) + r"/\.ioweir-([0-9a-f]{32})/logs\.\d+/data\.(\d+)\.(\d+)")
    moved: dict[str, Counter[int]] = defaultdict(Counter)
    names: dict[str, set[str]] = defaultdict(set)
    for event in written:
        if (match := log.fullmatch(event.path)) and event.offset >= LOG_HEADER:
            moved[match[1]][event.rank] += event.bytes
            names[match[1]].add(event.path)
    (shared,) = [at for at in moved if len(moved[at]) == RANKS]
    assert moved[shared] == wanted
    assert len(names[shared]) == RANKS


def expect_subfiles(path: Path, written: list[Event], wanted: Counter[int]) -> None:
    """Each rank has written its bytes to them, behind the 4096 that say which one it is."""
    subfile = re.compile(re.escape(str(path.parent)) + r"/\.ioweir-([0-9a-f]{32})/subfile\.\d+")
    moved: dict[str, Counter[int]] = defaultdict(Counter)
    names: dict[str, set[str]] = defaultdict(set)
    for event in written:
        if (match := subfile.fullmatch(event.path)) and event.offset >= SUBFILE_HEADER:
            moved[match[1]][event.rank] += event.bytes
            names[match[1]].add(event.path)
    (shared,) = [at for at in moved if moved[at] == wanted]
    stripes = -(-path.stat().st_size // STRIPE)  # the merged file's
    assert len(names[shared]) == min(2, stripes)


def expect_aggregators(traced: Traced, path: Path, written: list[Event], strategy: str) -> None:
    """Two ranks write what all three give in a collective call, in the parts that the kind of domains means."""
    seen = Counter[int]()
    number: dict[tuple[int, int], int] = {}
    given: dict[int, Counter[int]] = defaultdict(Counter)
    for call in traced.trace.of(path):
        if call.layer == "MPI-IO" and call.op == "write" and "_all" in call.name:
            number[call.thread, call.seq] = seen[call.rank]
            given[seen[call.rank]][call.rank] += call.bytes
            seen[call.rank] += 1
    parts: dict[int, dict[int, list[Event]]] = defaultdict(lambda: defaultdict(list))
    for event in written:
        if (event.thread, event.parent) in number:
            parts[number[event.thread, event.parent]][event.rank].append(event)
    assert parts
    for call_number, part in parts.items():
        assert set(given[call_number]) == set(range(RANKS))
        assert sum(e.bytes for events in part.values() for e in events) == given[call_number].total()
        if strategy != "cyclic":
            ends = sorted((min(e.offset for e in p), max(e.offset + e.bytes for e in p)) for p in part.values())
            assert all(before[1] <= behind[0] for before, behind in pairwise(ends))
    everything = [event for part in parts.values() for events in part.values() for event in events]
    stripes = {(e.offset // STRIPE, (e.offset + e.bytes - 1) // STRIPE, e.rank) for e in everything}
    if strategy != "even":
        assert all(first == last for first, last, _ in stripes)
    # Two writers, but where a file has one stripe only and parts are whole stripes.
    writers = {rank for _, _, rank in stripes}
    assert writers == {0, 1} or (strategy in {"cyclic", "cooperative"} and len(stripes) == len(writers) == 1)
    if strategy == "cyclic":
        assert len({(first % 2, rank) for first, _, rank in stripes}) == len(writers)
