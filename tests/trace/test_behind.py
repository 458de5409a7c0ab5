"""Write-behind under the preload: nobody sees a file without its bytes; nothing is lost when processes end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest
from tracing import MPIS, Mpi, build, ioweir_run, totals

if TYPE_CHECKING:
    from pathlib import Path

    from tracing import Traced

RANKS: Final = 3
BLOCK: Final = 1 << 19


def behind(mpi: Mpi, folder: Path, what: str, *options: str, code: int | None = 0) -> Traced:
    """The program under a plan with one writer thread a node, on storage so slow that bytes do wait."""
    plan = folder / "plan.toml"
    plan.write_text('[[file]]\nmatch = "behind*"\nwriters = "behind:1"\nbuffer = "8 MiB"\n')
    slow = f"IOWEIR_TEST_THROTTLE=stripe=1MiB rates=100MB,100MB state={folder}/throttle"
    program = [str(build("behind.c", mpi.cc)), str(folder), what]
    # A rank that is killed is the shell's child: launchers end the job when one of theirs is.
    survivors = ["sh", "-c", 'trap : USR1; "$@"; exit 0', "sh"] if what == "kill" else []
    launch = mpi.launch(RANKS, "env", slow, *survivors, *program)
    launch[1:1] = options
    return ioweir_run(folder / "trace", launch, options=["--plan", plan], code=code)


def looked(traced: Traced) -> int:
    return traced.out.count("looked")


@pytest.mark.parametrize("mpi", MPIS, ids=lambda mpi: mpi.name)
def test_posix_calls_that_name_the_file_see_all_of_it(mpi: Mpi, tmp_path: Path) -> None:
    traced = behind(mpi, tmp_path, "looks")
    assert looked(traced) == RANKS
    rows = [row for row in traced.report["plan"]["engine"] if row["handed_bytes"]]
    # Six blocks a rank; the throttle lets at most 200 MB pass in a second.
    assert sum(row["handed_bytes"] for row in rows) == RANKS * 6 * BLOCK
    assert all(row["writer_s"] >= row["handed_bytes"] / 200e6 for row in rows)
    # Every byte was written by a thread of the engine, outside of any MPI call.
    files = {f"{tmp_path}/behind.{rank}" for rank in range(RANKS)}
    written = [e for e in traced.trace.events if e.op == "write" and e.layer == "POSIX" and e.path in files]
    assert {traced.trace.parent_of(event) for event in written} == {None}
    assert totals(written, "origin") == {"engine": (RANKS * 6, RANKS * 6 * BLOCK)}


@pytest.mark.parametrize("mpi", MPIS, ids=lambda mpi: mpi.name)
def test_exit_without_close_loses_nothing(mpi: Mpi, tmp_path: Path) -> None:
    behind(mpi, tmp_path, "exit", code=None)
    content = (tmp_path / "behind").read_bytes()
    mine = [content[i : i + BLOCK] for i in range(0, len(content), BLOCK)]
    # A launcher may end the other ranks as soon as one has left; the first one's own bytes are there in any case.
    assert [mine[i * RANKS] for i in range(8)] == [b"a" * BLOCK] * 8
    for at, block in enumerate(mine):
        assert set(block) <= {0, ord("a") + at % RANKS}


@pytest.mark.parametrize("mpi", MPIS, ids=lambda mpi: mpi.name)
def test_children_of_fork_take_no_part(mpi: Mpi, tmp_path: Path) -> None:
    assert looked(behind(mpi, tmp_path, "fork")) == RANKS


@pytest.mark.parametrize("mpi", MPIS, ids=lambda mpi: mpi.name)
def test_ranks_write_for_themselves_when_their_writer_is_killed(mpi: Mpi, tmp_path: Path) -> None:
    survive = ("--enable-recovery",) if mpi.name == "openmpi" else ("-disable-auto-cleanup",)
    traced = behind(mpi, tmp_path, "kill", *survive, code=None)
    assert "bytes are lost" not in traced.err
    # Each survivor leaves a file when it has found its own and the dead rank's bytes: launchers lose what they print.
    assert all((tmp_path / f"behind.done.{rank}").exists() for rank in range(1, RANKS)), traced.err
    content = (tmp_path / "behind").read_bytes()
    blocks = [content[at : at + BLOCK] for at in range(0, len(content), BLOCK)]
    for rank, count in ((0, 8), (1, 64), (2, 64)):
        assert [blocks[i * RANKS + rank] == bytes([ord("a") + rank]) * BLOCK for i in range(count)] == [True] * count
