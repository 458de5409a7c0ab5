"""Storage that fails in a part of each file (EIO, ENOSPC), and processes without descriptors (EMFILE), beneath programs
under every strategy: every rank is told, nothing hangs, and what nobody was told of is there.

The kernel refuses the writes (programs/faults.h), the engine's own system calls included. With IOWEIR_TEST_ALL=1 all
combinations, otherwise some of them. Not here: file systems that are full (test_full_target.py), killed jobs.
"""

from __future__ import annotations

import errno
import os
import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

import pytest
import sets
import strategies
from ioweir.containers import container
from netcdf_subfiling import FILE, library, netcdf_plan, parts
from test_library_programs import hdf5_program
from tracing import IOWEIR, MPIS, OPEN_MPI, PROGRAMS, Mpi, Traced, build, ioweir_run, run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ALL: Final = os.environ.get("IOWEIR_TEST_ALL") == "1"
BLOCK: Final = 1 << 20
NO_SPACE: Final = "-224"
CALLS: Final = 8
RANKS: Final = 3
FLAGS: Final = ("-include", str(PROGRAMS / "faults.h"))
ERRORS: Final = (errno.EIO, errno.ENOSPC)
SAID: Final = re.compile(r"rank (\d+): write (.+) sync (.+) close (.+) calls ([+-]+)")
OF_ALL: Final = [
    (mpi, strategy, error)
    for i, strategy in enumerate(strategies.MPI_IO)
    for j, mpi in enumerate(MPIS)
    for k, error in enumerate(ERRORS)
    if ALL or ((i + j) % 2 == 0 and (i // 2 + k) % 2 == 0)
]


def failing(from_byte: int, error: int) -> dict[str, str]:
    return {"FAULT_FROM": str(from_byte), "FAULT_ERRNO": str(error)}


@pytest.mark.one_of(6)
@pytest.mark.parametrize(
    ("mpi", "strategy", "error"), OF_ALL, ids=[f"{mpi.name}-{name}-{errno.errorcode[e]}" for mpi, name, e in OF_ALL]
)
def test_every_rank_is_told_and_the_rest_is_there(mpi: Mpi, strategy: str, error: int, tmp_path: Path) -> None:
    plan = strategies.plan(tmp_path, "*.data", strategies.MPI_IO[strategy])
    file = tmp_path / "file.data"
    command = mpi.launch(RANKS, build("full_target.c", mpi.cc, *FLAGS), file, str(CALLS))
    traced = ioweir_run(tmp_path / "trace", command, options=["--plan", plan], env=failing(2 * BLOCK, error))
    said = {int(rank): (words, calls) for rank, *words, calls in SAID.findall(traced.out)}
    assert set(said) == set(range(RANKS)), traced.out
    for words, calls in said.values():
        told = set(words[:2]) - {"fine"}
        assert told, "before it is closed"
        assert error != errno.ENOSPC or told == {"no-space"}
        assert calls[-1] == "-"
    expect_what_was_well(file, {rank: calls for rank, (_, calls) in said.items()})


@pytest.mark.one_of(6)
@pytest.mark.parametrize(
    ("mpi", "strategy"),
    [
        (mpi, name)
        for i, name in enumerate(strategies.MPI_IO)
        for mpi in (MPIS if ALL else [MPIS[i // 3 % 2]])
        if ALL or i % 3 == 1
    ],
    ids=lambda one: one if isinstance(one, str) else one.name,
)
def test_a_process_without_descriptors_is_told_at_open_or_writes_all(mpi: Mpi, strategy: str, tmp_path: Path) -> None:
    plan = strategies.plan(tmp_path, "*.data", strategies.MPI_IO[strategy])
    program = build("full_target.c", mpi.cc, *FLAGS)
    for left in range(12) if ALL else (0, 3):
        file = tmp_path / f"{left}.data"
        few = ["bash", "-c", 'ulimit -n 200; exec "$@"', "few"]
        command = mpi.launch(RANKS, program, file, "2", str(left))
        at = command.index(str(program))
        traced = ioweir_run(tmp_path / f"trace{left}", [*command[:at], *few, *command[at:]], options=["--plan", plan])
        opened = dict(re.findall(r"rank (\d+): open (.+)", traced.out))
        assert len(opened) == RANKS, traced.out
        assert len({word == "fine" for word in opened.values()}) == 1, "all ranks or none"
        said = {int(rank): calls for rank, *_, calls in SAID.findall(traced.out)}
        assert len(said) == (RANKS if opened["0"] == "fine" else 0)
        if said:
            expect_what_was_well(file, said)


def expect_what_was_well(file: Path, said: dict[int, str]) -> None:
    """The blocks of calls that each rank was told are fine."""
    if not file.read_bytes().startswith(b"ioweir container"):
        data = file.read_bytes()
    else:
        container.merge(file, file.with_name("merged"))
        data = file.with_name("merged").read_bytes()
    for rank, calls in said.items():
        for call, sign in enumerate(calls):
            at = (call * RANKS + rank) * BLOCK
            assert sign == "-" or data[at : at + BLOCK] == bytes([ord("a") + rank]) * BLOCK, (rank, call)


@pytest.mark.one_of(2)
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: errno.errorcode[error])
@pytest.mark.parametrize(("ranks", "subfiles"), [(3, 2), (2, 3)])
def test_netcdf_programs_are_told(ranks: int, subfiles: int, error: int, tmp_path: Path) -> None:
    mpi, libraries = library()
    program = build("netcdf_full.c", mpi.cc, *FLAGS, libraries=libraries)
    options = ["--plan", str(netcdf_plan(tmp_path, f"subfiles = {subfiles}"))]
    traced = ioweir_run(
        tmp_path / "trace", mpi.launch(ranks, program, FILE, "16"), options=options, cwd=tmp_path,
        env=failing(2 * BLOCK, error),
    )  # fmt: skip
    said = [line.split(": ")[1].split() for line in traced.out.splitlines() if line.startswith("rank")]
    assert len(said) == ranks
    for codes in said:
        assert codes == said[0]
        assert set(codes[:-1]) != {"0"}
        assert error != errno.ENOSPC or NO_SPACE in codes
    assert all(f"subfile {name} failed: " in traced.err for name in parts(subfiles))


@pytest.mark.one_of(6)
@pytest.mark.parametrize("words", [("blocks", "collective"), ("blocks",)], ids="-".join)
@pytest.mark.parametrize("strategy", strategies.MPI_IO if ALL else ("aggregators even sequential", "behind", "log"))
def test_hdf5_programs_are_told(strategy: str, words: tuple[str, ...], tmp_path: Path) -> None:
    """The program ends the job when HDF5 tells it that a call has failed."""

    def run(name: str, table: str) -> Traced:
        folder = tmp_path / name
        folder.mkdir()
        rule = strategies.MPI_IO[strategy].replace('visibility = "sync"', "")
        plan = strategies.plan(folder, "*.h5", f'{rule}\nvisibility = "call"\n{table}')
        program = hdf5_program("hdf5_plan.c", OPEN_MPI.name, OPEN_MPI.cc, *FLAGS)
        command = OPEN_MPI.launch(RANKS, program, folder / "file.h5", *words, "steps=9")
        env = failing(1 << 16, errno.EIO)
        return ioweir_run(folder / "trace", command, options=["--plan", plan], env=env, code=None)

    for name, table in (
        ("bare", ""),
        ("keys", 'hdf5 = { chunks = "learn", hold_metadata = "all", collective_metadata = "writes", fill = "never" }'),
    ):
        ended = run(name, table)
        assert ended.code != 0, ended.out
        assert "done" not in ended.out


@pytest.mark.one_of(3)
@pytest.mark.parametrize("error", ERRORS, ids=errno.errorcode.get)
@pytest.mark.parametrize("strategy", strategies.HDF5)
@pytest.mark.parametrize("mpi", MPIS, ids=lambda mpi: mpi.name)
def test_hdf5_programs_are_told_under_each_plan_of_theirs(mpi: Mpi, strategy: str, error: int, tmp_path: Path) -> None:
    plan = strategies.plan(tmp_path, "*.h5", f'writers = "everyone"\n{without_writers(strategies.HDF5[strategy])}')
    command = mpi.launch(RANKS, hdf5_program("hdf5_plan.c", mpi.name, mpi.cc, *FLAGS), tmp_path / "file.h5", "blocks")
    traced = ioweir_run(
        tmp_path / "trace", [*command, "collective", "steps=9"], options=["--plan", plan],
        env=failing(1 << 16, error), code=None,
    )  # fmt: skip
    assert traced.code != 0, traced.out
    assert "done" not in traced.out


def without_writers(rule: str) -> str:
    return "\n".join(line for line in rule.splitlines() if not line.startswith("writers"))


@dataclass(frozen=True)
class Layer:
    """Programs on a library above MPI-IO, or of sets: how they write, and how what they wrote is checked."""

    name: str
    rule: str
    """Of the plan; empty: they run without ioweir."""
    program: Callable[[Mpi], Path]
    write: tuple[str, ...]
    check: tuple[str, ...]
    """Words of the program; FOLDER in them is where files are."""
    mpis: tuple[Mpi, ...] = MPIS


def _writer(source: str, mpi: Mpi) -> Path:
    path = str(PROGRAMS.parent.parent / "crash" / "programs" / source)
    if source == "hdf5_writer.c":
        return hdf5_program(path, mpi.name, mpi.cc)
    return build(path, mpi.cc, libraries=library()[1])


LAYERS: Final = (
    *(
        Layer(
            name, rule, partial(_writer, "hdf5_writer.c"),
            ("write", "FOLDER/file", "FOLDER/notes", "1", "7"), ("check", "FOLDER/file", "0", "7"),
        )
        for name, rule in strategies.HDF5.items()
    ),
    *(
        Layer(
            name, rule, partial(_writer, "netcdf_writer.c"),
            ("write", "FOLDER/file.nc", "FOLDER/notes", "4", "7"), ("check", "FOLDER/file.nc", "4", "7"),
            (library()[0],),
        )
        for name, rule in strategies.NETCDF.items()
    ),
    *(
        Layer(
            f"set {' '.join(more)}", "", lambda mpi: sets.built(mpi).path,
            (kind, "FOLDER/run", "1", *(["1"] if kind == "hand" else []), *more), ("read", "FOLDER/run", "1"),
        )
        for kind, *more in (
            ("write", "2", "2", "ioweir_write=direct"),
            ("write", "2", "2", "ioweir_write=collective"),
            ("write", "2", "2", "ioweir_directories=false"),
            ("hand", "1", "2", "1"),
        )
    ),
)  # fmt: skip


@pytest.mark.one_of(9)
@pytest.mark.parametrize(
    ("mpi", "layer"),
    [pytest.param(mpi, layer, id=f"{layer.name}-{mpi.name}") for layer in LAYERS for mpi in layer.mpis],
)
def test_libraries_without_descriptors_say_so_or_write_all(mpi: Mpi, layer: Layer, tmp_path: Path) -> None:
    path = layer.program(mpi)
    plan: list[str | Path] = ["--plan", strategies.plan(tmp_path, "*/data/*", layer.rule)] if layer.rule else []
    for left in range(14) if ALL else (2, 5):
        data = tmp_path / str(left) / "data"
        data.mkdir(parents=True)
        words = [[word.replace("FOLDER", str(data)) for word in of] for of in (layer.write, layer.check)]
        command = mpi.launch(RANKS, "bash", "-c", 'ulimit -n 200; exec "$@"', "few", path, *words[0])
        env = {"DESCRIPTORS_LEFT": str(left)}
        ended = (
            ioweir_run(data.parent / "trace", command, options=plan, env=env, code=None)
            if plan
            else run(command, env=env)
        )
        assert not re.search(r"signal 11|SIGSEGV|Segmentation|signal: Aborted|SIGABRT", ended.out + ended.err), left
        if ended.code == 0:
            checked = mpi.launch(2, path, *words[1])
            said = ioweir_run(data.parent / "again", checked, options=plan) if plan else run(checked).expect()
            assert layer.rule or said.out.count(" 0 wrong") == 2, left
        else:
            assert re.search(r"rank \d", ended.out + ended.err), (left, ended.err)


@pytest.mark.parametrize("mpi", MPIS, ids=lambda mpi: mpi.name)
@pytest.mark.parametrize("error", ERRORS, ids=errno.errorcode.get)
def test_reports_name_what_failed(mpi: Mpi, error: int, tmp_path: Path) -> None:
    """Without a plan the MPI library's own calls fail. Open MPI returns success all the same, or waits for ever.

    So it is asked for one rank only.
    """
    command = mpi.launch(1, build("full_target.c", mpi.cc, *FLAGS), tmp_path / "file.data", str(CALLS))
    traced = ioweir_run(tmp_path / "trace", command, env=failing(2 * BLOCK, error))
    text = run([*IOWEIR, "report", traced.directory]).expect().out
    assert f"POSIX writes ({errno.errorcode[error]})" in text
    found = {row["layer"]: row for row in traced.report["failures"] if row["op"] == "write"}
    posix, in_mpi = found["POSIX"], found["MPI-IO"]
    assert {"error": error, "name": errno.errorcode[error], "calls": posix["failed"]} in posix["errors"]
    assert ("SUCCESS WITHOUT THE BYTES" in text) == (posix["unreported"] > 0) == (not in_mpi["failed"])
    if in_mpi["failed"]:
        assert {row["name"] for row in in_mpi["errors"]} <= {"MPI_ERR_IO", "MPI_ERR_NO_SPACE", "MPI_ERR_OTHER"}
        assert sum(row["calls"] for row in in_mpi["errors"]) == in_mpi["failed"]
    else:  # the statuses alone say less than was asked for
        assert in_mpi["short"] >= posix["unreported"]
        assert "SHORT CALLS: " in text
