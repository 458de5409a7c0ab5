"""Under `auto` the engine leaves calls to the MPI library where that is faster, and run, report and JSON say so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest
from tracing import IOWEIR, MPIS, Mpi, Traced, build, ioweir_run, run

if TYPE_CHECKING:
    from pathlib import Path

CALLS: Final = 40
BLOCK: Final = 4096


def weighed(
    mpi: Mpi, folder: Path, ranks: int, *before: str, writers: str = "auto", calls: int = CALLS, option: str = ""
) -> Traced:
    command, plan = prepare(mpi, folder, ranks, *before, writers=writers, calls=calls)
    traced = ioweir_run(folder / "trace", command, options=["--plan", plan, *([option] if option else [])])
    expect_data(folder, ranks, calls)
    return traced


def prepare(mpi: Mpi, folder: Path, ranks: int, *before: str, writers: str, calls: int) -> tuple[list[str], Path]:
    plan = folder / "plan.toml"
    plan.write_text(f'[[file]]\nmatch = "*.data"\nwriters = "{writers}"\n')
    program = build("weighed.c", mpi.cc)
    return mpi.launch(ranks, "env", *before, program, folder / "one.data", str(calls)), plan


def expect_data(folder: Path, ranks: int, calls: int) -> None:
    expected = b"".join(
        bytes([ord("a") + (call + rank) % 26]) * BLOCK for call in range(calls) for rank in range(ranks)
    )
    assert (folder / "one.data").read_bytes() == expected


@pytest.mark.one_of(2)
@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("mpi", MPIS, ids=lambda mpi: mpi.name)
def test_calls_that_the_engine_is_slow_at_are_left_to_the_library(mpi: Mpi, ranks: int, tmp_path: Path) -> None:
    # 4 KiB take the engine's backend 50 ms, and the library's calls go past it.
    slow = f"IOWEIR_TEST_THROTTLE=stripe=1MiB rates=80kB state={tmp_path}/throttle"
    traced = weighed(mpi, tmp_path, ranks, slow)
    rows = {row["call"]: row for row in traced.report["plan"]["weighed"]}
    for call, records in (("write_at_all", 1), ("read_at", ranks)):
        row = rows[call]
        assert row["chosen"] == "library"
        assert row["records"] == records
        # Two calls before the trial; 16 or, where it was noisy, 32 in it, of which the library makes half.
        assert row["tried"] in range(8 * records, 16 * records + 1, 8)
        assert row["left"] == (CALLS - 2) * records - 2 * row["tried"]
        assert row["engine_s"] > row["library_s"] > 0
    # What the engine made itself.
    by_library = sum(row["tried"] + row["left"] for row in rows.values()) + (ranks - 1) * sum(
        row["tried"] + row["left"] for call, row in rows.items() if call == "write_at_all"
    )
    assert sum(row["calls"] for row in traced.report["plan"]["engine"]) == 2 * CALLS * ranks - by_library
    said = " ".join(run([*IOWEIR, "report", traced.directory]).expect().out.split())
    assert "LEFT TO THE MPI LIBRARY" in said
    assert f"{rows['write_at_all']['left']} calls of MPI_File_write_at_all, " in said


@pytest.mark.one_of(2)
@pytest.mark.parametrize("mpi", MPIS, ids=lambda mpi: mpi.name)
@pytest.mark.parametrize("how", ["IOWEIR_WEIGH=0", "--verify"])
def test_it_can_be_had_without(mpi: Mpi, how: str, tmp_path: Path) -> None:
    verify = how == "--verify"
    traced = weighed(mpi, tmp_path, 2, *(() if verify else (how,)), option=how if verify else "")
    assert traced.report["plan"]["weighed"] == []
    assert sum(row["calls"] for row in traced.report["plan"]["engine"]) == 2 * 2 * CALLS
    assert "LEFT TO" not in run([*IOWEIR, "report", traced.directory]).expect().out


@pytest.mark.parametrize("mpi", MPIS, ids=lambda mpi: mpi.name)
def test_no_rank_weighs_where_one_may_not(mpi: Mpi, tmp_path: Path) -> None:
    one = 'if [ ${OMPI_COMM_WORLD_RANK:-$PMI_RANK} = 1 ]; then export IOWEIR_WEIGH=0; fi; exec "$@"'
    traced = weighed(mpi, tmp_path, 3, "sh", "-c", one, "sh")
    assert traced.report["plan"]["weighed"] == []
    assert sum(row["calls"] for row in traced.report["plan"]["engine"]) == 2 * 3 * CALLS


@pytest.mark.parametrize("mpi", MPIS, ids=lambda mpi: mpi.name)
def test_run_says_what_a_plan_slows_down(mpi: Mpi, tmp_path: Path) -> None:
    # Half a millisecond for 4 KiB: longer than the library takes, and shorter than ranks that wait for each other.
    slow = f"IOWEIR_TEST_THROTTLE=stripe=1MiB rates=8MB state={tmp_path}/throttle"
    command, plan = prepare(mpi, tmp_path, 1, slow, writers="everyone", calls=1040)
    finished = run([*IOWEIR, "run", "-o", tmp_path / "trace", "--plan", plan, "--", *command]).expect()
    expect_data(tmp_path, 1, 1040)
    traced = Traced(finished.code, finished.out, finished.err, tmp_path / "trace")
    (row,) = (row for row in traced.report["plan"]["weighed"] if row["call"] == "write_at_all")
    assert row["chosen"] == "plan"
    assert row["engine_s"] > row["library_s"] > 0
    assert row["tried"] in (8, 16)
    assert row["left"] == 0
    figure = f"takes {row['engine_s'] / row['library_s']:.2f} times as long as the library's"
    for said in (finished.err, run([*IOWEIR, "report", traced.directory]).expect().out):
        words = " ".join(said.split())
        assert "SLOWER WITH THE PLAN" in words
        assert f"a call of MPI_File_write_at_all, {tmp_path}/one.data {figure}" in words
