"""Divided netCDF files where something goes wrong: a file system that is full beneath one subfile, a rank that is
killed, files that are damaged. Every rank is told, nothing hangs, and `ioweir ls` and `check` say what there is.
"""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING, Final

import pytest
from netcdf_subfiling import FILE, files, parts, plain, under
from tracing import IOWEIR, mount_tmpfs, run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tracing import Finished

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
    places = [tmp_path / f"t{number}" for number in range(subfiles - 1)]
    for place in places:
        place.mkdir()
    targets = ", ".join(f'"{place}"' for place in [*places, small])
    plan = folder / "plan.toml"
    plan.write_text(f'[[file]]\nmatch = "*.nc"\ntargets = [{targets}]\nnetcdf = {{ subfiles = {subfiles} }}\n')
    traced = under(folder, ranks, FILE, MIB, source=SOURCE, options=["--plan", plan])
    said = [line.split(": ")[1].split() for line in traced.out.splitlines()]
    assert len(said) == ranks
    for codes in said:
        assert codes == said[0]
        assert codes[0] == "0"
        assert NO_SPACE in codes
    assert f"subfile {parts(subfiles)[-1]} failed: " in traced.err
    assert parts(subfiles)[0] not in traced.err


def test_nothing_is_written_where_a_link_at_the_logical_header_leads(tmp_path: Path) -> None:
    folder, other = tmp_path / "run", tmp_path / "other"
    folder.mkdir()
    other.write_bytes(b"precious")
    (folder / f"{FILE}.ioweir-logical").symlink_to(other)
    traced = under(folder, 3, FILE, 1, source=SOURCE, netcdf="subfiles = 2")
    assert other.read_bytes() == b"precious"
    assert "its arrays are not divided over subfiles: a symbolic link" in traced.err
    assert files(folder) == sorted([FILE, f"{FILE}.ioweir-logical"])
    plain(folder, 2, FILE, 1, "read", source=SOURCE)


def test_nothing_is_written_where_a_link_in_a_subfiles_place_leads(tmp_path: Path) -> None:
    folder, other = tmp_path / "run", tmp_path / "other"
    folder.mkdir()
    other.write_bytes(b"precious")
    (folder / parts(2)[1]).symlink_to(other)
    (folder / parts(2)[0]).write_text("of another file")
    under(folder, 3, FILE, 1, source=SOURCE, netcdf="subfiles = 2")
    assert other.read_bytes() == b"precious"
    assert not (folder / parts(2)[1]).is_symlink()
    assert check(folder, 0).startswith(f"{FILE}: whole")


def check(folder: Path, code: int = 1) -> str:
    return run([*IOWEIR, "check", FILE], cwd=folder).expect(code).out


def merged(folder: Path, *words: str, code: int = 0) -> Finished:
    return run([*IOWEIR, "merge", FILE, *words], cwd=folder).expect(code)


@pytest.mark.one_of(4)
@pytest.mark.parametrize("when", ["die", "die-enddef", "die-sync", "die-last"])
def test_a_job_that_is_killed_leaves_files_that_say_so(tmp_path: Path, when: str) -> None:
    killed = under(tmp_path, 3, FILE, 1, when, source=SOURCE, netcdf="subfiles = 2", code=None)
    assert killed.code != 0
    said = check(tmp_path)
    assert f"{FILE}: NOT whole\n  writing was begun and not ended: its job has died" in said
    if when in ("die-enddef", "die-sync"):
        assert f"{parts(2)[1]} has " in said, "what is missing"
    before = {name: (tmp_path / name).read_bytes() for name in (FILE, *parts(2))}
    assert "was not closed" in merged(tmp_path, code=1).err
    assert {name: (tmp_path / name).read_bytes() for name in before} == before
    rescued = merged(tmp_path, "-o", "rescued.nc")
    assert "rescued.nc may not be all of the file: writing was begun and not ended" in rescued.err
    # What the plain library makes of it: a valid file, of which what was written is there.
    plain(tmp_path, 1, FILE, 1, "headers", source=SOURCE)
    plain(tmp_path, 1, "rescued.nc", 1, "headers", source=SOURCE)
    assert merged(tmp_path, "--unfinished").out.startswith(f"{FILE}: ")
    assert (tmp_path / FILE).read_bytes() == (tmp_path / "rescued.nc").read_bytes()
    assert not set(parts(2)) & set(files(tmp_path))
    # The next job begins anew, and there is nothing left of it.
    under(tmp_path, 3, FILE, 1, source=SOURCE, netcdf="subfiles = 2")
    assert files(tmp_path) == sorted([FILE, *parts(2), "rescued.nc"])
    assert check(tmp_path, 0).startswith(f"{FILE}: whole")


def test_a_job_that_is_killed_before_it_has_defined_anything(tmp_path: Path) -> None:
    under(tmp_path, 3, FILE, 1, "die-define", source=SOURCE, netcdf="subfiles = 2", code=None)
    assert "it is empty" in check(tmp_path)
    assert "a job makes a netCDF file of it, or has died" in check(tmp_path)
    left = f"{FILE}.ioweir-logical"
    assert left in files(tmp_path)
    listed = json.loads(run([*IOWEIR, "gc", "--json", "."], cwd=tmp_path).expect().out)
    assert [(row["directory"], row["file"], row["in_use"]) for row in listed] == [(left, FILE, True)]
    assert "within the last hour" in listed[0]["problem"]
    os.utime(tmp_path / left, (0, 0))
    assert "removed" in run([*IOWEIR, "gc", "--yes", "."], cwd=tmp_path).expect().out
    assert files(tmp_path) == [FILE]


def test_an_orphan_of_a_file_that_was_made_anew_is_found(tmp_path: Path) -> None:
    under(tmp_path, 3, FILE, 1, source=SOURCE, netcdf="subfiles = 3")
    kept = (tmp_path / parts(3)[2]).read_bytes()
    under(tmp_path, 3, FILE, 1, source=SOURCE, netcdf="subfiles = 2")
    assert files(tmp_path) == sorted([FILE, *parts(2)])
    orphan = tmp_path / parts(3)[2]
    orphan.write_bytes(kept)
    os.utime(orphan, (0, 0))
    (row,) = json.loads(run([*IOWEIR, "gc", "--json", "--yes", "."], cwd=tmp_path).expect().out)
    assert (row["directory"], row["problem"]) == (orphan.name, "")
    assert files(tmp_path) == sorted([FILE, *parts(2)])
    assert check(tmp_path, 0).startswith(f"{FILE}: whole")


def test_what_is_opened_again_is_unfinished_until_it_is_closed(tmp_path: Path) -> None:
    under(tmp_path, 3, FILE, 1, source=SOURCE, netcdf="subfiles = 2")
    whole = {name: (tmp_path / name).read_bytes() for name in (FILE, *parts(2))}
    under(tmp_path, 2, FILE, 1, "again", source=SOURCE)
    assert {name: (tmp_path / name).read_bytes() for name in whole} == whole
    under(tmp_path, 2, FILE, 1, "again-die", source=SOURCE, code=None)
    assert "writing was begun and not ended: its job has died" in check(tmp_path)
    # Whoever comes next does not know what that one was still to write.
    under(tmp_path, 2, FILE, 1, "again", source=SOURCE)
    assert "writing was begun and not ended" in check(tmp_path)
    under(tmp_path, 2, FILE, 1, "read", source=SOURCE)
    assert merged(tmp_path, "--unfinished").code == 0


def test_files_of_an_earlier_version_say_it_beside_them(tmp_path: Path) -> None:
    under(tmp_path, 3, FILE, 1, source=SOURCE, netcdf="subfiles = 2")
    master = (tmp_path / FILE).read_bytes()
    # An attribute of that name, and none that says anything of writing.
    assert master.count(b"_ioweir.writing") == 1
    (tmp_path / FILE).write_bytes(master.replace(b"_ioweir.writing", b"_ioweir.wrltlng"))
    assert check(tmp_path, 0).startswith(f"{FILE}: whole")
    under(tmp_path, 2, FILE, 1, "again", source=SOURCE)
    assert files(tmp_path) == sorted([FILE, *parts(2)])
    assert check(tmp_path, 0).startswith(f"{FILE}: whole")
    under(tmp_path, 2, FILE, 1, "again-die", source=SOURCE, code=None)
    assert f"{FILE}.ioweir-logical" in files(tmp_path)
    assert "writing was begun and not ended: its job has died" in check(tmp_path)
    os.utime(tmp_path / f"{FILE}.ioweir-logical", (0, 0))
    run([*IOWEIR, "gc", "--yes", "."], cwd=tmp_path).expect(1)
    assert "writing was begun and not ended" in check(tmp_path), "gc leaves what alone says that"


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
