"""netCDF files whose arrays are divided over subfiles beneath an unchanged program on PnetCDF.

The oracle is the same program without ioweir: it checks every value that it reads, and prints what the library says of
the file (dimensions, variables, attributes, places), which must be the same. The plain library reads subfiles, too.
Not here: how requests are cut and what headers say (src/ncsub, against brute force).
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Final

import pytest
from tracing import IOWEIR, OPEN_MPI, Traced, build, ioweir_run, run

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

PLANES: Final = 10  # of the longest dimension
FILE: Final = "data.nc"


def program() -> Path:
    return build("netcdf_subfiles.c", OPEN_MPI.cc, libraries=["-lpnetcdf"])


def launch(ranks: int, *words: str | int) -> list[str]:
    return OPEN_MPI.launch(ranks, program(), *map(str, words))


def plan(folder: Path, netcdf: str) -> Path:
    path = folder / "plan.toml"
    path.write_text(f'[[file]]\nmatch = "*.nc"\nnetcdf = {{ {netcdf} }}\n')
    return path


def plain(folder: Path, ranks: int, *words: str | int) -> str:
    """What the program says without ioweir."""
    folder.mkdir(exist_ok=True)
    return run(launch(ranks, *words), cwd=folder).expect().out


def under(
    folder: Path, ranks: int, *words: str | int, netcdf: str = "", env: Mapping[str, str] | None = None,
    code: int | None = 0,
) -> Traced:  # fmt: skip
    """The program under ioweir, in the same folder."""
    folder.mkdir(exist_ok=True)
    options: Sequence[str | Path] = ["--plan", plan(folder, netcdf)] if netcdf else []
    trace = folder / f"trace{len(list(folder.glob('trace*')))}"
    return ioweir_run(trace, launch(ranks, *words), options=options, cwd=folder, env=env, code=code)


def files(folder: Path) -> list[str]:
    """What was written, but for plan and traces."""
    names = (path.name for path in folder.iterdir())
    return sorted(name for name in names if not name.endswith(".toml") and not name.startswith("trace"))


def parts(count: int) -> list[str]:
    return [f"{FILE}.subfile_{number}.nc" for number in range(count)]


@pytest.mark.parametrize(("ranks", "subfiles"), [(1, 3), (3, 2), (4, 4), (7, 3), (3, 7)])
def test_the_program_sees_one_file_and_writes_several(tmp_path: Path, ranks: int, subfiles: int) -> None:
    expected = plain(tmp_path / "plain", ranks, "write", FILE)
    assert "variable cube" in expected
    divided = tmp_path / "divided"
    assert under(divided, ranks, "write", FILE, netcdf=f"subfiles = {subfiles}").out == expected
    assert files(divided) == sorted([FILE, *parts(subfiles)])
    # Nobody says how it is divided: any number of ranks, without a plan, reads what one file would give.
    for readers in (1, 3, 4):
        wanted = plain(tmp_path / "plain", readers, "read", FILE)
        assert under(divided, readers, "read", FILE).out == wanted


def test_each_subfile_is_a_file_of_its_own(tmp_path: Path) -> None:
    subfiles = 4
    under(tmp_path, 3, "write", FILE, netcdf=f"subfiles = {subfiles}")
    first = 0
    for number, name in enumerate(parts(subfiles)):
        end = -(-(number + 1) * PLANES // subfiles)
        assert plain(tmp_path, 1, "part", name, first) == f"{end - first} 6 4\n"
        first = end
    assert first == PLANES


@pytest.mark.parametrize(("ranks", "subfiles"), [(1, 2), (4, 3), (3, 8)])
def test_non_blocking_calls_and_calls_of_several_pieces(tmp_path: Path, ranks: int, subfiles: int) -> None:
    expected = plain(tmp_path / "plain", ranks, "begin", FILE)
    divided = tmp_path / "divided"
    assert under(divided, ranks, "begin", FILE, netcdf=f"subfiles = {subfiles}").out == expected
    assert files(divided) == sorted([FILE, *parts(subfiles)])
    run([*IOWEIR, "merge", FILE], cwd=divided).expect()
    assert (divided / FILE).read_bytes() == (tmp_path / "plain" / FILE).read_bytes()


def test_hints_of_the_program_and_of_the_environment(tmp_path: Path) -> None:
    expected = plain(tmp_path / "plain", 3, "write", FILE)
    hints = ("nc_subfiling_enabled=true", "nc_num_subfiles=2")
    assert under(tmp_path / "info", 3, "write", FILE, *hints).out == expected
    assert files(tmp_path / "info") == sorted([FILE, *parts(2)])
    environment = {"PNETCDF_HINTS": ";".join(hints)}
    assert under(tmp_path / "environment", 3, "write", FILE, env=environment).out == expected
    assert files(tmp_path / "environment") == sorted([FILE, *parts(2)])
    assert under(tmp_path / "none", 3, "write", FILE).out == expected
    assert files(tmp_path / "none") == [FILE]
    wrong = under(tmp_path / "wrong", 3, "write", FILE, "nc_subfiling_enabled=true", "nc_num_subfiles=two")
    assert "nc_num_subfiles is 'two'" in wrong.err
    assert files(tmp_path / "wrong") == [FILE]


def test_arrays_that_cannot_be_divided_leave_one_file(tmp_path: Path) -> None:
    expected = plain(tmp_path / "plain", 3, "write", FILE)
    for name, netcdf in (("long", "subfiles = 100"), ("flat", "subfiles = 2, min_ndims = 4")):
        traced = under(tmp_path / name, 3, "write", FILE, netcdf=netcdf)
        assert traced.out == expected
        assert "none of its arrays can be divided" in traced.err
        assert files(tmp_path / name) == [FILE]
        assert (tmp_path / name / FILE).read_bytes() == (tmp_path / "plain" / FILE).read_bytes()


def test_calls_that_fail_fail_as_without_subfiles(tmp_path: Path) -> None:
    for folder in ("plain", "divided"):
        (tmp_path / folder).mkdir()
    plain(tmp_path / "plain", 3, "write", FILE)
    under(tmp_path / "divided", 3, "write", FILE, netcdf="subfiles = 2")
    wanted = plain(tmp_path / "plain", 3, "refuse", FILE).splitlines()
    refused = under(tmp_path / "divided", 3, "refuse", FILE)
    got = refused.out.splitlines()
    assert got[0] == wanted[0]
    assert "0" not in wanted[0].split()
    assert got[1] == wanted[1]
    assert wanted[2] == "independent 0"
    assert got[2] == "independent -214"  # NC_ENOTSUPPORT
    assert "ncmpi_get_vara_double was refused: variable cube is divided over subfiles" in refused.err


def test_definitions_and_attributes_may_change_later(tmp_path: Path) -> None:
    for folder in ("plain", "divided"):
        (tmp_path / folder).mkdir()
    plain(tmp_path / "plain", 3, "write", FILE)
    under(tmp_path / "divided", 3, "write", FILE, netcdf="subfiles = 2")
    wanted = plain(tmp_path / "plain", 4, "redef", FILE)
    got = under(tmp_path / "divided", 4, "redef", FILE)
    assert without_places(got.out) == without_places(wanted)
    assert "history" in wanted
    assert "title" not in wanted
    wanted = plain(tmp_path / "plain", 3, "read", FILE)
    assert without_places(under(tmp_path / "divided", 3, "read", FILE).out) == without_places(wanted)


def without_places(text: str) -> str:
    """Without where variables begin: when a header grows, the library moves what lies behind it as far as it likes."""
    return "\n".join(line.split(" at ")[0] for line in text.splitlines() if not line.startswith("header"))


@pytest.mark.parametrize(("ranks", "subfiles"), [(1, 2), (4, 3)])
def test_merged_it_is_the_file_that_the_program_would_have_written(tmp_path: Path, ranks: int, subfiles: int) -> None:
    for folder in ("plain", "divided"):
        (tmp_path / folder).mkdir()
    plain(tmp_path / "plain", ranks, "write", FILE)
    divided = tmp_path / "divided"
    under(divided, ranks, "write", FILE, netcdf=f"subfiles = {subfiles}")
    run([*IOWEIR, "merge", FILE, "-o", "other.nc"], cwd=divided).expect()
    wanted = (tmp_path / "plain" / FILE).read_bytes()
    assert (divided / "other.nc").read_bytes() == wanted
    assert "its subfiles are removed" in run([*IOWEIR, "merge", FILE], cwd=divided).expect().out
    assert (divided / FILE).read_bytes() == wanted
    assert files(divided) == sorted([FILE, "other.nc"])


def test_deleting_and_replacing_takes_the_subfiles_along(tmp_path: Path) -> None:
    under(tmp_path, 3, "write", FILE, netcdf="subfiles = 4")
    assert files(tmp_path) == sorted([FILE, *parts(4)])
    under(tmp_path, 3, "write", FILE, netcdf="subfiles = 2")
    assert files(tmp_path) == sorted([FILE, *parts(2)])
    under(tmp_path, 3, "write", FILE)
    assert files(tmp_path) == [FILE]
    under(tmp_path, 3, "write", FILE, netcdf="subfiles = 2")
    under(tmp_path, 3, "delete", FILE)
    assert files(tmp_path) == []


@pytest.mark.parametrize("damage", ["missing", "cut", "swapped", "another"])
def test_subfiles_that_do_not_belong_are_named(tmp_path: Path, damage: str) -> None:
    subfiles = 3
    under(tmp_path, 3, "write", FILE, netcdf=f"subfiles = {subfiles}")
    second, third = (tmp_path / name for name in parts(subfiles)[1:])
    if damage == "missing":
        second.unlink()
    elif damage == "cut":
        second.write_bytes(second.read_bytes()[:100])
    elif damage == "swapped":
        second.rename(tmp_path / "kept")
        third.rename(second)
        (tmp_path / "kept").rename(third)
    else:
        other = tmp_path / "other"
        under(other, 3, "write", FILE, netcdf=f"subfiles = {subfiles}")
        shutil.copy(other / second.name, second)
    for ranks in (1, 4):
        traced = under(tmp_path, ranks, "read", FILE, code=None)
        assert traced.code != 0
        assert second.name in traced.err
