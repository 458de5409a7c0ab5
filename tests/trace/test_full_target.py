"""A storage target that is full: every rank is told so as MPI_ERR_NO_SPACE, in the call that was struck or in the sync
or close after it, nothing hangs, and what nobody was told of is there.
"""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING, Final

import pytest
from ioweir.containers import container
from tracing import MPIS, Mpi, build, ioweir_run, mount_tmpfs

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ROOM: Final = 12
"""MiB on the small one."""
BLOCK: Final = 1 << 20
SAID: Final = re.compile(r"rank (\d+): write (\S+) sync (\S+) close (\S+) calls ([+-]+)")


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "small"
    mount_tmpfs(place, f"size={ROOM}m")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def expect_all_told(mpi: Mpi, file: Path, plan: Path, ranks: int, folder: Path) -> None:
    """Every rank hears of it when there is room for a third of what is written; what it was not told of is there."""
    program = build("full_target.c", mpi.cc)
    command = mpi.launch(ranks, program, file, str(3 * ROOM // ranks))
    traced = ioweir_run(folder / "trace", command, options=["--plan", plan])
    said = {int(rank): (words, calls) for rank, *words, calls in SAID.findall(traced.out)}
    assert set(said) == set(range(ranks))
    for words, calls in said.values():
        assert set(words) <= {"fine", "no-space"}
        assert "no-space" in words, words
        assert "no-space" in words[:2], "before it is closed"
        assert calls[0] == "+"
        assert "-" in calls
    container.merge(file, folder / "merged")
    merged = (folder / "merged").read_bytes()
    for rank, (_, calls) in said.items():
        for call, sign in enumerate(calls):
            at = (call * ranks + rank) * BLOCK
            assert sign == "-" or merged[at : at + BLOCK] == bytes([ord("a") + rank]) * BLOCK, (rank, call)


@pytest.mark.parametrize("ranks", [1, 3, 5])
@pytest.mark.parametrize("mpi", MPIS, ids=lambda mpi: mpi.name)
def test_one_target_of_a_file_of_subfiles(mpi: Mpi, ranks: int, small: Path, tmp_path: Path) -> None:
    """Token buckets over a small file system and a large one, chosen by probing."""
    (tmp_path / "large").mkdir()
    manifest = f'state = "{tmp_path}/buckets"\n'
    for name in ("small", "large"):
        manifest += f'[[target]]\nname = "{name}"\ndirectory = "{name}"\nrate = "60 MB"\n'
    (tmp_path / ".ioweir-targets.toml").write_text(manifest, encoding="utf-8")
    plan = tmp_path / "plan.toml"
    plan.write_text(
        '[[file]]\nmatch = "file"\nmapping = "subfiles:2"\nwriters = "aggregators:auto"\ndomains = "cyclic"\n'
        'stripe = { size = "256 KiB" }\nprobe = { discard_ms = 5, window_ms = 20 }\n',
        encoding="utf-8",
    )
    file = tmp_path / "file"
    expect_all_told(mpi, file, plan, ranks, tmp_path)
    assert [len(list(place.glob(".ioweir-*.subfile.*"))) for place in (small, tmp_path / "large")] == [1, 1]


@pytest.mark.one_of(2)
@pytest.mark.parametrize("mapping", ["grouped:2", "log", "subfiles:2"])
@pytest.mark.parametrize("mpi", MPIS, ids=lambda mpi: mpi.name)
def test_all_that_a_file_has(mpi: Mpi, mapping: str, small: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(f'[[file]]\nmatch = "file"\nmapping = "{mapping}"\n', encoding="utf-8")
    file = small / "file"
    expect_all_told(mpi, file, plan, 3, tmp_path)
