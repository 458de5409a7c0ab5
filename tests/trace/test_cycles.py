"""Programs that open and close many files: what a process holds does not grow with their number, with any strategy, and
nothing of ours outlives the program's communicators.

IOWEIR_TEST_CYCLES=5000 (tools/long_tests.sh) makes as many files, and compares the resident pages, too.
IOWEIR_TEST_FIGURES names a file that gets a line for each rank of each run.

Open MPI 4.1.4's mpirun can leave a spawned process waiting in MPI_Init for ever on a busy machine: 18 bytes lie
unread in the receive queue of mpirun's end of their connection (`ss -t`), and all threads of mpirun, which is not
traced and has no library of ours, rest in their event loops. Seen in 4 of 25 runs of 12 files at load 25 to 29 under
`ioweir run`, with a plan and without one; in none of 36 runs without ioweir there. What starts slower or ends later
in the program alone did not bring it about (50 runs). So a test that spawns is repeated once when it does not end.
"""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
import strategies
from ioweir.programs import linking
from netcdf_subfiling import library
from tracing import MPIS, TIMEOUT_S, Mpi, build, ioweir_run, run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracing import Finished

NOT_DONE: Final = "not done after"
CYCLES: Final = int(os.environ.get("IOWEIR_TEST_CYCLES", "120"))
FIGURES: Final = os.environ.get("IOWEIR_TEST_FIGURES", "")
ALL: Final = os.environ.get("IOWEIR_TEST_ALL") == "1"
BYTES_OF_A_FILE: Final = 512
"""What may stay of a file: MPICH over UCX loses 64 bytes for each datatype of some opens, without ioweir, too."""
FEW: Final = 1000
"""So many files only warm up what MPI libraries reserve of pages."""
BYTES_OF_BUFFERS: Final = 1 << 20
"""What a process may take once, between the first count and the last: MPICH some 930 KB for ten groups of ranks."""
SAID: Final = re.compile(
    r"rank (\d+) files (\d+) descriptors (\d+) deleted (\d+) threads (\d+)"
    r" anonymous (\d+) heap (\d+) communicators (\d+)"
)
ranks_of: Final = {"openmpi": 3, "mpich": 2}
each_mpi: Final = pytest.mark.parametrize("mpi", MPIS, ids=lambda mpi: mpi.name)


@dataclass(frozen=True)
class Held:
    """What a process holds."""

    descriptors: int
    deleted: int
    threads: int
    communicators: int


@dataclass(frozen=True)
class Count:
    """After a number of files."""

    files: int
    held: Held
    resident_bytes: int
    heap_bytes: int


def program(source: str, mpi: Mpi, *flags: str, libraries: Sequence[str] = ()) -> Path:
    """One that counts calls of the MPI library by their symbols."""
    return build(source, mpi.cc, *flags, libraries=[*libraries, "-ldl"])


def stops(cycles: int) -> list[str]:
    """When the program says what it holds: after a tenth of the files, half of them, and all.

    After 50 at least: by then it has met every group of ranks, and has the memory that libraries keep for more.
    """
    first = min(cycles // 2, max(cycles // 10, 50))
    half = cycles // 2 if cycles // 2 > first else (first + cycles) // 2
    return [str(first), str(half), str(cycles)]


def said_by(out: str, ranks: int) -> dict[int, list[Count]]:
    """By rank; the first one is before any file."""
    rows: dict[int, list[Count]] = {}
    for rank, files, descriptors, deleted, threads, anonymous, heap, communicators in SAID.findall(out):
        held = Held(int(descriptors), int(deleted), int(threads), int(communicators))
        rows.setdefault(int(rank), []).append(Count(int(files), held, int(anonymous) << 10, int(heap)))
    assert set(rows) == set(range(ranks)), out
    return rows


def expect_constant(
    finished: Finished, ranks: int, what: str, cycles: int = CYCLES, delegates: int = 0
) -> dict[int, list[Count]]:
    """What each rank holds after half of the files, and after all, is what it held after a tenth.

    Delegates serve meanwhile: what they hold before and afterwards.
    """
    rows = said_by(finished.out, ranks)
    for rank in [rank for rank, counts in rows.items() if len(counts) == 2]:
        before, after = rows.pop(rank)
        assert (after.held.descriptors, after.held.threads) == (before.held.descriptors, before.held.threads)
        assert after.heap_bytes < before.heap_bytes + BYTES_OF_BUFFERS + BYTES_OF_A_FILE * after.files
        delegates -= 1
    assert delegates == 0
    for rank, (_, first, half, last) in rows.items():
        grown = last.heap_bytes - first.heap_bytes, last.resident_bytes - first.resident_bytes
        if FIGURES:
            with Path(FIGURES).open("a", encoding="utf-8") as stream:
                files = last.files - first.files
                per = " ".join(
                    f"{name} {size / files:.0f}" for name, size in zip(("heap", "pages"), grown, strict=True)
                )
                print(f"{what} rank {rank}: {first.held} to {last.held}, bytes a file: {per}", file=stream)
        assert [first.files, half.files, last.files] == list(map(int, stops(cycles)))
        assert half.held == first.held, f"rank {rank}"
        assert last.held == first.held, f"rank {rank}"
        assert last.held.deleted == 0
        allowed = BYTES_OF_BUFFERS + BYTES_OF_A_FILE * (last.files - first.files)
        assert grown[0] < allowed, f"rank {rank}: {grown[0]} bytes of the heap"
        if cycles > FEW:
            assert grown[1] < allowed + BYTES_OF_BUFFERS, f"rank {rank}: {grown[1]} bytes of pages"
    return rows


def limit_s(cycles: int) -> float:
    return TIMEOUT_S * max(1.0, cycles / 150)


def expect_nothing_left(
    mpi: Mpi, communicators: str, folder: Path, rule: str, what: str, cycles: int = CYCLES
) -> dict[int, list[Count]]:
    """cycles.c under a plan."""
    data = folder / "data"
    data.mkdir()
    ranks = ranks_of[mpi.name]
    command = mpi.launch(ranks, program("cycles.c", mpi), data, communicators, "delete", *stops(cycles))
    options: list[str | Path] = ["--plan", strategies.plan(folder, "file.*", rule)]
    finished = ioweir_run(folder / "trace", command, options=options, timeout=limit_s(cycles))
    rows = expect_constant(finished, ranks, f"{what}, {mpi.name}", cycles)
    assert [path.name for place in (data, *folder.glob("target?")) for path in place.iterdir()] == []
    return rows


@pytest.mark.one_of(8)
@pytest.mark.parametrize("strategy", list(strategies.MPI_IO)[:: 1 if ALL else 3])
@each_mpi
def test_many_files_leave_nothing_behind(mpi: Mpi, strategy: str, tmp_path: Path) -> None:
    expect_nothing_left(mpi, "world", tmp_path, strategies.MPI_IO[strategy], strategy)


@pytest.mark.one_of(4)
@pytest.mark.parametrize(
    ("communicators", "strategy"),
    [
        (how, strategy)
        for i, how in enumerate(("self", "dup", "split", "parts", "disconnect"))
        for j, strategy in enumerate(("aggregators even sequential", "auto", "behind", "grouped", "log", "subfiles"))
        if ALL or (i + j) % 3 == 0
    ],
)
@each_mpi
def test_what_belongs_to_communicators_ends_with_them(
    mpi: Mpi, communicators: str, strategy: str, tmp_path: Path
) -> None:
    rule = strategies.MPI_IO[strategy]
    expect_nothing_left(mpi, communicators, tmp_path, rule, f"{communicators}, {strategy}", max(100, CYCLES // 5))


@pytest.mark.one_of(2)
@pytest.mark.parametrize("strategy", ["aggregators even sequential", "auto"])
def test_spawned_processes_that_are_merged(strategy: str, tmp_path: Path) -> None:
    """Each file is written together with a process that MPI_Comm_spawn has started, and that ends after it.

    What of ours kept the merged communicator killed Open MPI's programs in MPI_Finalize, by SIGPIPE. MPICH over UCX, as
    Debian has it, spawns no processes, without ioweir, too.
    """
    mpi = next(one for one in MPIS if one.name == "openmpi")
    ranks, files = ranks_of[mpi.name], 6
    data = tmp_path / "data"
    data.mkdir()
    command = mpi.launch(ranks, program("cycles.c", mpi), data, "merged", "keep", *stops(files))
    options: list[str | Path] = ["--plan", strategies.plan(tmp_path, "file.*", strategies.MPI_IO[strategy])]
    try:
        finished = ioweir_run(tmp_path / "trace", command, options=options, timeout=limit_s(CYCLES))
    except AssertionError as problem:
        if NOT_DONE not in str(problem):
            raise
        # Once more: see the module's text on Open MPI's launcher.
        shutil.rmtree(data)
        data.mkdir()
        finished = ioweir_run(tmp_path / "again", command, options=options, timeout=limit_s(CYCLES))
    rows = expect_constant(finished, ranks, f"merged, {strategy}, {mpi.name}", files)
    for rank, (before, *_, last) in rows.items():
        assert last.held.communicators == before.held.communicators, f"rank {rank}"
    written = sorted(path.read_bytes() for path in data.iterdir())
    block = len(written[0]) // (ranks + 1)
    assert block > 0
    assert written == [b"".join(bytes([ord("a") + rank]) * block for rank in range(ranks + 1))] * files


@pytest.mark.one_of(3)
@pytest.mark.parametrize("strategy", strategies.HDF5)
@each_mpi
def test_hdf5_files(mpi: Mpi, strategy: str, tmp_path: Path) -> None:
    ranks = ranks_of[mpi.name]
    include, library_flag = f"-I/usr/include/hdf5/{mpi.name}", f"-lhdf5_{mpi.name}"
    path = program("cycles_hdf5.c", mpi, include, libraries=[library_flag])
    data = tmp_path / "data"
    data.mkdir()
    options: list[str | Path] = ["--plan", strategies.plan(tmp_path, "*.h5", strategies.HDF5[strategy])]
    command = mpi.launch(ranks, path, data, *stops(CYCLES))
    finished = ioweir_run(tmp_path / "trace", command, options=options, timeout=3 * limit_s(CYCLES))
    expect_constant(finished, ranks, f"{strategy}, {mpi.name}")
    assert list(data.iterdir()) == []


@pytest.mark.one_of(2)
@pytest.mark.parametrize("strategy", strategies.NETCDF)
def test_netcdf_subfiles(strategy: str, tmp_path: Path) -> None:
    mpi, libraries = library()
    ranks = ranks_of[mpi.name]
    data = tmp_path / "data"
    data.mkdir()
    options: list[str | Path] = ["--plan", strategies.plan(tmp_path, "*.nc", strategies.NETCDF[strategy])]
    command = mpi.launch(ranks, program("cycles_netcdf.c", mpi, libraries=libraries), data, *stops(CYCLES))
    finished = ioweir_run(tmp_path / "trace", command, options=options, timeout=3 * limit_s(CYCLES))
    expect_constant(finished, ranks, f"{strategy}, {mpi.name}")
    assert [path.name for place in (data, *tmp_path.glob("target?")) for path in place.iterdir()] == []


def sets_program(mpi: Mpi) -> Path:
    *flags, path = linking.partition_flags(mpi.name)
    return program("cycles_sets.c", mpi, *(f for f in flags if f.startswith("-I")), libraries=[*flags, path])


@pytest.mark.one_of(6)
@pytest.mark.parametrize(
    ("how", "info"),
    [
        ("world", "ioweir_write=direct"),
        ("world", "ioweir_write=collective"),
        ("world", "ioweir_directories=false"),
        ("dup", "ioweir_write=direct"),
        ("dup", "ioweir_write=collective"),
        ("open", "ioweir_write=direct"),
        ("handed", "ioweir_write=direct"),
    ],
    ids="-".join,
)
@each_mpi
def test_sets_of_partitioned_files(mpi: Mpi, how: str, info: str, tmp_path: Path) -> None:
    """`dup` and `open`: of each set's own communicator, which is freed, nothing is left."""
    ranks = ranks_of[mpi.name]
    data = tmp_path / "data"
    data.mkdir()
    command = mpi.launch(ranks, sets_program(mpi), data, how, "1", info, *stops(CYCLES))
    finished = run(command, timeout=limit_s(CYCLES)).expect()
    rows = expect_constant(finished, ranks, f"sets {how} {info}, {mpi.name}", delegates=1 if how == "handed" else 0)
    if how in ("dup", "open"):
        for rank, (before, *_, last) in rows.items():
            assert last.held.communicators == before.held.communicators, f"rank {rank}"
