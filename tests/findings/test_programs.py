"""Programs with a planted fault, the same with the fault mended, and clean ones: what is found in real runs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from planted import CLEAN, FAULTS, OF_ROMIO, SOURCE, found, traced
from tracing import IOWEIR, MPICH, MPIS, Mpi, build, run

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.either_mpi
@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.parametrize("mpi", MPIS, ids=lambda mpi: mpi.name)
def test_a_planted_fault_comes_first_or_second_and_goes_when_it_is_mended(mpi: Mpi, name: str, tmp_path: Path) -> None:
    library = MPICH if name in OF_ROMIO else mpi
    for kind in ("planted", "repaired"):
        (tmp_path / kind).mkdir()
        findings = found(traced(library, name, kind, tmp_path / kind))
        if kind == "planted":
            assert name in [row["code"] for row in findings[:2]], findings
        else:
            severe = [row["code"] for row in findings if row["severity"] != "low"]
            assert name not in severe, findings


@pytest.mark.either_mpi
@pytest.mark.parametrize("name", CLEAN)
@pytest.mark.parametrize("mpi", MPIS, ids=lambda mpi: mpi.name)
def test_nothing_grave_is_found_in_a_clean_program(mpi: Mpi, name: str, tmp_path: Path) -> None:
    assert [row for row in found(traced(mpi, name, "planted", tmp_path)) if row["severity"] == "high"] == []


def test_a_run_ends_with_what_costs_most_and_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    program = build(str(SOURCE), MPICH.cc, "-O1")
    launch = MPICH.launch(4, program, "independent-shared-file", "planted", tmp_path / "data")
    said = run([*IOWEIR, "run", "-o", "trace", "--", *launch], cwd=tmp_path).expect().err
    assert len(said.splitlines()) <= 25
    assert "\n1. Independent calls on a shared file [high, independent-shared-file]: costs " in said
    assert "What to do: call the collective function (MPI_File_write_at_all; HDF5: H5FD_MPIO_COLLECTIVE)." in said
    printed, reported = (
        json.loads(run([*IOWEIR, command, "trace", "--json"], cwd=tmp_path).expect().out)
        for command in ("findings", "report")
    )
    assert printed == reported["findings"]
    assert printed[0]["code"] == "independent-shared-file"
    (command,) = [line.split(": ", 1)[1] for line in said.splitlines() if line.startswith("Try it: ")]
    words = command.removesuffix(" > plan.toml").split()[1:]
    plan = tmp_path / "plan.toml"
    plan.write_text(run([*IOWEIR, *words], cwd=tmp_path).expect().out)
    assert plan.read_text() == '[[file]]\nmatch = "shared.0"\nwriters = "auto"\n'
    again = run([*IOWEIR, "run", "-o", "after", "--plan", plan, "--", *launch], cwd=tmp_path).expect()
    assert "PLAN NOT APPLIED" not in again.err


def test_a_run_without_a_fault_says_so(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    program = build(str(SOURCE), MPICH.cc, "-O1")
    launch = MPICH.launch(2, program, "clean-nothing", "planted", tmp_path / "data")
    said = run([*IOWEIR, "run", "-o", "trace", "--", *launch], cwd=tmp_path).expect().err
    assert "Nothing to gain in I/O: " in said
