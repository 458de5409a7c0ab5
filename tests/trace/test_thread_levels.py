"""Ranks of one job that start MPI with different levels of threads all share what they exchange through, or none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest
from tracing import MPIS, Mpi, build, ioweir_run

if TYPE_CHECKING:
    from pathlib import Path

RULES: Final = {
    "auto": 'writers = "auto"',
    "two": 'writers = "aggregators:1"',
    "behind": 'writers = "behind:1"\nvisibility = "sync"',
    "log": 'mapping = "log"',
    "grouped": 'mapping = "grouped:2"\nwriters = "aggregators:1"',
    "subfiles": 'mapping = "subfiles:2"\nrebalance = true\nwriters = "aggregators:1"',
}


@pytest.mark.parametrize("mpi", MPIS, ids=lambda mpi: mpi.name)
def test_ranks_with_different_thread_levels_open_the_same_files(mpi: Mpi, tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text("\n".join(f'[[file]]\nmatch = "*.{ending}"\n{rule}\n' for ending, rule in RULES.items()))
    (data := tmp_path / "data").mkdir()
    command = mpi.launch(4, build("thread_levels.c", mpi.cc), data, *RULES)
    traced = ioweir_run(tmp_path / "trace", command, options=["--plan", plan], timeout=90)
    first, all_of_them = traced.out.split()
    assert first == "1", "this MPI library gives no MPI_THREAD_MULTIPLE"
    assert all_of_them == "0", "this MPI library gives all ranks what one asks for"
    # The program has compared each byte; the engine has moved them, and not the library.
    moved = {row["path"].rsplit(".", 1)[-1]: row["calls"] for row in traced.report["plan"]["engine"]}
    assert set(moved) == set(RULES)
    assert all(moved.values())
