"""A job in which only some of the ranks have ioweir: traced it runs, with a plan it is ended with a message."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest
from tracing import Mpi, build, ioweir_run

if TYPE_CHECKING:
    from pathlib import Path

RANKS: Final = 3
PLAN: Final = '[[file]]\nmatch = "*"\nwriters = "everyone"\n'


def mixed(mpi: Mpi, without: int, data: Path) -> list[str]:
    """Three ranks, of which one has lost the preload library."""
    program = str(build("ranks.c", mpi.cc, "-pthread"))
    words = [*mpi.launcher]
    for rank in range(RANKS):
        lost = ["env", "-u", "LD_PRELOAD"] if rank == without else []
        words += [*([":"] if rank else []), "-n", "1", *lost, program, "writes", str(data), "0"]
    return words


@pytest.mark.one_of(2)
@pytest.mark.parametrize("without", [0, 2])
def test_a_plan_needs_all_ranks(mpi: Mpi, without: int, data: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN, encoding="utf-8")
    finished = ioweir_run(
        tmp_path / "trace",
        mixed(mpi, without, data),
        options=["--plan", plan],
        env={"IOWEIR_START_LIMIT": "2"},
        code=None,
    )
    assert finished.code not in (0, None)
    (first, *_) = [line for line in finished.err.splitlines() if "has waited 2 s in MPI_Init" in line]
    rank = int(first.split("rank ", 1)[1].split(" of ", 1)[0])
    assert rank != without
    assert f"of {RANKS} has waited" in first


@pytest.mark.parametrize("without", [0, 2])
def test_a_trace_takes_the_ranks_that_are_there(mpi: Mpi, without: int, data: Path, tmp_path: Path) -> None:
    finished = ioweir_run(tmp_path / "trace", mixed(mpi, without, data))
    assert {event.rank for event in finished.trace.events} == {0, 1, 2} - {without}


def test_a_limit_that_is_no_number_is_named(mpi: Mpi, data: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN, encoding="utf-8")
    finished = ioweir_run(
        tmp_path / "trace", mixed(mpi, RANKS, data), options=["--plan", plan], env={"IOWEIR_START_LIMIT": "soon"}
    )
    (line,) = [line for line in finished.err.splitlines() if "IOWEIR_START_LIMIT" in line]
    assert "soon" in line
