"""Messages go to the standard error that a process began with, and never into a file that the program has opened in its
place; the report has them in any case.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pytest
from tracing import MPICH, OPEN_MPI, Mpi, Traced, build, ioweir_run, preload_library

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

HDF5_FLAGS: Final = ("-w", "-I/usr/include/hdf5/openmpi", "-L/usr/lib/x86_64-linux-gnu/hdf5/openmpi")
RULE: Final = '[[file]]\nmatch = "*"\n'
DAMAGED: Final = "ioweir container 2\nid = ???\n" + "damaged\n" * 40


@dataclass(frozen=True)
class Case:
    """A program that ioweir has something to say to."""

    command: Callable[[Path], list[str | Path]]
    """The program and its words, by the folder that it works in."""
    says: str
    mpi: Mpi | None = OPEN_MPI
    ranks: int = 2
    rule: str = 'writers = "everyone"'
    variables: tuple[str, ...] = ()
    """Of the ranks, with {folder} for the folder."""
    code: int | None = 0
    """None: any, for the program fails because of what is said."""


def cycles(mpi: Mpi) -> Callable[[Path], list[str | Path]]:
    return lambda folder: [build("cycles.c", mpi.cc), folder, "world", "keep", "1"]


def container_is_damaged(folder: Path) -> list[str | Path]:
    (folder / "file.0.0").write_text(DAMAGED, encoding="utf-8")
    return cycles(OPEN_MPI)(folder)


def named_one_is_damaged(folder: Path) -> list[str | Path]:
    (folder / "damaged").write_text(DAMAGED, encoding="utf-8")
    return ["cat", folder / "damaged"]


def rows(folder: Path) -> list[str | Path]:
    return [build("hdf5_rows.c", OPEN_MPI.cc, *HDF5_FLAGS, libraries=["-lhdf5"]), folder / "rows.h5"]


def netcdf(*hints: str) -> Callable[[Path], list[str | Path]]:
    def command(folder: Path) -> list[str | Path]:
        program = build("netcdf_subfiles.c", OPEN_MPI.cc, libraries=["-lpnetcdf"])
        return [program, "write", folder / "data.nc", *hints]

    return command


CASES: Final = {
    "engine": Case(cycles(MPICH), "ioweir lab up", MPICH, rule='mapping = "subfiles:auto"'),
    "damaged": Case(container_is_damaged, "damaged", code=None),
    "named": Case(named_one_is_damaged, "damaged", mpi=None, code=None),
    "no-plan": Case(cycles(OPEN_MPI), "the plan is not applied", variables=("IOWEIR_PLAN={folder}/none.toml",)),
    "start-limit": Case(cycles(MPICH), "IOWEIR_START_LIMIT", MPICH, variables=("IOWEIR_START_LIMIT=soon",)),
    "hdf5": Case(rows, "HDF5 does not sieve", rule='hdf5 = { sieve_buffer = "1 MiB" }'),
    "netcdf": Case(netcdf("nc_subfiling_enabled=true", "nc_num_subfiles=two"), "nc_num_subfiles is 'two'"),
    "netcdf-wish": Case(netcdf("nc_subfiling_enabled=true"), "nothing says how many subfiles"),
}


def run_case(case: Case, folder: Path, *more: str, name: str = "work") -> Traced:
    work = folder / name
    work.mkdir()
    plan = folder / "plan.toml"
    plan.write_text(RULE + case.rule + "\n", encoding="utf-8")
    words = ["env", *(one.format(folder=folder) for one in case.variables), *more, *case.command(work)]
    command = case.mpi.launch(case.ranks, *words) if case.mpi is not None else words
    return ioweir_run(folder / "trace", command, options=["--plan", plan], code=case.code)


@pytest.mark.one_of(6)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_file_in_the_place_of_standard_error_gets_nothing_of_ours(case: Case, tmp_path: Path) -> None:
    taker = build("takes_stderr.c", "gcc", "-shared", "-fPIC")
    name = str(case.command(tmp_path)[0]).rpartition("/")[2]
    traced = run_case(
        case,
        tmp_path,
        f"LD_PRELOAD={taker}:{preload_library()}",
        f"TAKES_STDERR={name}:{tmp_path}/data",
    )
    files = sorted(tmp_path.glob("data.*"))
    assert len(files) == (case.ranks if case.mpi is not None else 1)
    for file in files:
        text = file.read_text(encoding="utf-8", errors="replace")
        assert text.startswith("DATA\n")
        assert "ioweir" not in text
        if case.code == 0:
            assert text == "DATA\nMORE\n"
    assert case.says not in traced.err
    assert case.says in json.dumps(traced.report), "the report has it"


@pytest.mark.one_of(5)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_otherwise_the_user_sees_it_and_the_report_has_it(case: Case, tmp_path: Path) -> None:
    traced = run_case(case, tmp_path)
    assert case.says in traced.err
    assert case.says in json.dumps(traced.report)


@pytest.mark.one_of(2)
@pytest.mark.parametrize("case", ["damaged", "named", "hdf5", "engine"])
def test_names_of_files_in_messages_do_nothing_to_a_terminal(case: str, tmp_path: Path) -> None:
    traced = run_case(CASES[case], tmp_path, name="w\x1b[2J\rx\nioweir says\u202e\x9b")
    assert CASES[case].says in traced.err
    ours = [line for line in traced.err.split("\n") if line.startswith("ioweir: ")]
    assert any("w\\x1b[2J\\rx\\nioweir says\\u202e\\x9b" in line for line in ours), traced.err
    assert not any(re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", line) for line in ours)
