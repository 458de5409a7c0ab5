"""Programs with a planted fault, the same with the fault mended, and clean ones: what is found in real runs.

The quickest program of most codes. All of them, and how often what is found is right: `make bench-findings`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import pytest
from planted import CLEAN, PLANTED, REPAIRED, built, cases, chosen, found, traced
from tracing import IOWEIR, MPICH, MPIS, Mpi, run

if TYPE_CHECKING:
    from pathlib import Path

FAST: Final = (
    "small-requests/writes-of-64", "random-access/reads-of-4k", "misaligned-requests/header-of-100",
    "collective-scattered/writes-of-512", "data-sieving/views-of-512", "independent-shared-file/writes-of-4k",
    "metadata-storm/open-and-stat", "file-per-process/files-of-4k", "sync-cost/after-32k",
    "file-extension/size-before-each-write", "redundant-read/times-24", "stdio-data/text", "lock-wait/whole-file",
    "unbalanced-bytes/slow-streams",
    "hdf5-chunk-mismatch/columns-of-rows", "clean/collective", "clean/shared-blocks", "clean/nothing",
)  # fmt: skip


def test_every_fast_program_is_there() -> None:
    assert {case.title for case in cases()} >= set(FAST)


@pytest.mark.one_of(16)
@pytest.mark.parametrize("title", FAST)
@pytest.mark.parametrize("mpi", MPIS, ids=lambda mpi: mpi.name)
def test_a_planted_fault_comes_first_or_second_and_goes_when_it_is_mended(mpi: Mpi, title: str, tmp_path: Path) -> None:
    case = chosen(*title.split("/"))
    mpi = mpi if mpi in case.mpis else case.mpis[0]
    if case.code == CLEAN:
        assert [row for row in found(traced(case, mpi, PLANTED, tmp_path)) if row["severity"] == "high"] == []
        return
    for kind in (PLANTED, REPAIRED):
        (tmp_path / kind).mkdir()
        findings = found(traced(case, mpi, kind, tmp_path / kind))
        if kind == PLANTED:
            assert case.code in [row["code"] for row in findings[:2]], findings
        else:
            severe = [row["code"] for row in findings if row["severity"] != "low"]
            assert case.code not in severe, findings


def test_a_run_ends_with_what_costs_most_and_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    case = chosen("independent-shared-file", "writes-of-4k")
    launch = MPICH.launch(4, built(case, MPICH), tmp_path / "data", *case.arguments(PLANTED))
    said = run([*IOWEIR, "run", "-o", "trace", "--", *launch], cwd=tmp_path).expect().err
    assert len(said.splitlines()) <= 25
    assert "\n1. Independent calls on a shared file [medium, independent-shared-file]: costs " in said
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
    case = chosen("clean", "nothing")
    launch = MPICH.launch(2, built(case, MPICH), tmp_path / "data", *case.arguments(PLANTED))
    said = run([*IOWEIR, "run", "-o", "trace", "--", *launch], cwd=tmp_path).expect().err
    assert "Nothing to gain in I/O: " in said
