"""Divided netCDF files where something goes wrong: a file system that is full beneath one subfile, a rank that is
killed, files that are damaged. Every rank is told, nothing hangs, and `ioweir ls` and `check` say what there is.
"""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Final

import pytest
from netcdf_subfiling import FILE, files, parts, under
from tracing import IOWEIR, mount_tmpfs, run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SOURCE: Final = "netcdf_full.c"
NO_SPACE: Final = "-224"
MIB: Final = 16


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "small"
    mount_tmpfs(place, "size=2m")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.mark.parametrize(("ranks", "subfiles"), [(1, 2), (5, 3)])
def test_a_full_file_system_beneath_one_subfile_reaches_all_ranks(
    tmp_path: Path, small: Path, ranks: int, subfiles: int
) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / parts(subfiles)[-1]).symlink_to(small / "last")
    traced = under(folder, ranks, FILE, MIB, source=SOURCE, netcdf=f"subfiles = {subfiles}")
    said = [line.split(": ")[1].split() for line in traced.out.splitlines()]
    assert len(said) == ranks
    for codes in said:
        assert codes == said[0]
        assert codes[0] == "0"
        assert NO_SPACE in codes
    assert f"subfile {parts(subfiles)[-1]} failed: " in traced.err
    assert parts(subfiles)[0] not in traced.err


def test_a_rank_that_is_killed_leaves_files_that_can_be_written_again(tmp_path: Path) -> None:
    killed = under(tmp_path, 3, FILE, 1, "die", source=SOURCE, netcdf="subfiles = 2", code=None)
    assert killed.code != 0
    # All files were defined, and say so; what was not written is not there, as in one file.
    assert run([*IOWEIR, "check", FILE], cwd=tmp_path).expect().out.startswith(f"{FILE}: whole")
    under(tmp_path, 3, FILE, 1, source=SOURCE, netcdf="subfiles = 2")
    assert files(tmp_path) == sorted([FILE, *parts(2)])


def test_ls_and_check_know_subfiles(tmp_path: Path) -> None:
    under(tmp_path, 2, FILE, 1, source=SOURCE, netcdf="subfiles = 3")
    listed = run([*IOWEIR, "ls", FILE], cwd=tmp_path).expect().out
    assert "arrays in 3 subfiles" in listed
    assert "cube: along z, at 0, 3, 6 of 8" in listed
    assert all(name in listed for name in parts(3))
    (row,) = json.loads(run([*IOWEIR, "ls", "--json", FILE], cwd=tmp_path).expect().out)
    assert row["mapping"] == "netcdf-subfiles:3"
    assert row["arrays"] == [{"name": "cube", "dimension": "z", "boundaries": [0, 3, 6, 8]}]
    assert row["problems"] == []
    run([*IOWEIR, "merge", FILE, "-o", "merged.nc"], cwd=tmp_path).expect()
    assert row["bytes"] == (tmp_path / "merged.nc").stat().st_size
    assert run([*IOWEIR, "check", FILE], cwd=tmp_path).expect().out.startswith(f"{FILE}: whole")
    (tmp_path / parts(3)[1]).unlink()
    damaged = run([*IOWEIR, "check", FILE], cwd=tmp_path).expect(1)
    assert "NOT whole" in damaged.out
    assert parts(3)[1] in damaged.out
    assert f"{parts(3)[1]}: missing" in run([*IOWEIR, "ls", FILE], cwd=tmp_path).expect().out
