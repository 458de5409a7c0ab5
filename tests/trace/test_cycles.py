"""Programs that open and close many files: what a process holds does not grow with their number, with any strategy, and
nothing of ours outlives the program's communicators.

IOWEIR_TEST_CYCLES=5000 (tools/long_tests.sh) makes as many files, and compares memory, too, with that after a fifth.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pytest
from tracing import MPIS, TIMEOUT_S, Mpi, build, ioweir_run

if TYPE_CHECKING:
    from pathlib import Path

CYCLES: Final = int(os.environ.get("IOWEIR_TEST_CYCLES", "300"))
LONG: Final = CYCLES > 1000
FIRST: Final = CYCLES // 5
BYTES_OF_A_NAME: Final = 2048
"""Memory that a file may leave behind: its name in the tracer's tables and in the buffers of the trace."""
SAID: Final = re.compile(
    r"rank (\d+) files (\d+) descriptors (\d+) deleted (\d+) threads (\d+) rss (\d+) communicators (\d+)"
)
STRATEGIES: Final = {
    "everyone": 'writers = "everyone"',
    "even": 'writers = "aggregators:2"',
    "aligned": 'writers = "aggregators:2"\ndomains = "aligned"\nstripe = { size = 4096, count = 2 }',
    "cyclic": 'writers = "aggregators:2"\ndomains = "cyclic"\nstripe = { size = 4096, count = 2 }',
    "group-cyclic": 'writers = "aggregators:auto"\ndomains = "group-cyclic"\nstripe = { size = 4096, count = 2 }',
    "cooperative": 'writers = "aggregators:2"\ndomains = "cooperative"\norder = "contention-free"\n'
    "stripe = { size = 4096, count = 2 }",
    "automatic": 'writers = "aggregators:auto"',
    "auto": 'writers = "auto"',
    # Pages of the buffer (32 MiB a rank by default) count once they have been used: it must have been gone round.
    "behind": 'writers = "behind:1"\nbuffer = "1 MiB"',
    "behind2": 'writers = "behind:2"\nbuffer = "64 KiB"',
    "grouped": 'mapping = "grouped:2"',
    "gathered": 'mapping = "grouped:2"\nwriters = "aggregators:1"',
    "subfiles": 'mapping = "subfiles:2"',
    "dealt": 'mapping = "subfiles:2"\nwriters = "aggregators:2"\ndomains = "cyclic"',
    "log": 'mapping = "log"',
    "collected": 'mapping = "log"\nwriters = "aggregators:2"',
}


@dataclass(frozen=True)
class Held:
    """What a process holds."""

    descriptors: int
    deleted: int
    threads: int
    communicators: int


def plan_of(strategy: str, folder: Path) -> Path:
    plan = folder / "plan.toml"
    plan.write_text(f'[[file]]\nmatch = "file.*"\n{STRATEGIES[strategy]}\n', encoding="utf-8")
    return plan


def said_by(out: str, ranks: int) -> dict[int, list[tuple[int, Held, int]]]:
    """By rank: number of files, what it held after them, and its memory in KiB."""
    rows: dict[int, list[tuple[int, Held, int]]] = {}
    for rank, files, descriptors, deleted, threads, rss, communicators in SAID.findall(out):
        held = Held(int(descriptors), int(deleted), int(threads), int(communicators))
        rows.setdefault(int(rank), []).append((int(files), held, int(rss)))
    assert set(rows) == set(range(ranks)), out
    return rows


def expect_constant(
    mpi: Mpi, ranks: int, communicators: str, folder: Path, strategy: str, cycles: int = CYCLES, keep: str = "delete"
) -> dict[int, list[tuple[int, Held, int]]]:
    """Run as many cycles; what each rank holds at the end is what it held after a fifth of them, or a few."""
    data = folder / "data"
    data.mkdir()
    first = max(3, cycles // 5)
    command = mpi.launch(ranks, build("cycles.c", mpi.cc), data, communicators, keep, str(first), str(cycles))
    limit = TIMEOUT_S * max(1.0, cycles / 300)
    options = ["--plan", str(plan_of(strategy, folder))]
    finished = ioweir_run(folder / "trace", command, options=options, timeout=limit)
    rows = said_by(finished.out, ranks)
    for rank, ((files, before, rss), (more_files, after, more_rss)) in rows.items():
        assert (files, more_files) == (first, cycles)
        assert after == before, f"rank {rank}"
        assert after.deleted == 0
        if LONG:
            grown = (more_rss - rss) * 1024 / (cycles - first)
            assert grown < BYTES_OF_A_NAME, f"rank {rank}: {grown} bytes a file"
    if keep == "delete":
        left = [path.name for path in data.iterdir()]
        assert left == []
    return rows


@pytest.mark.either_mpi
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("mpi", MPIS, ids=lambda mpi: mpi.name)
def test_many_files_leave_nothing_behind(mpi: Mpi, strategy: str, tmp_path: Path) -> None:
    # Ranks of MPICH that wait use their processor: not more of them than most machines have.
    expect_constant(mpi, 3 if mpi.name == "openmpi" else 2, "world", tmp_path, strategy)
