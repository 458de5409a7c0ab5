"""netCDF files whose arrays are divided over subfiles beneath an unchanged program on PnetCDF.

The oracle is the same program without ioweir: it checks every value that it reads, and prints what the library says of
the file (dimensions, variables, attributes, places), which must be the same. The plain library reads subfiles, too.
Not here: how requests are cut and what headers say (src/ncsub, against brute force).
"""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING, Final

import pytest
from netcdf_subfiling import FILE, SOURCE, files, library, netcdf_plan, parts, plain, under, without_places
from tracing import IOWEIR, build, ioweir_run, run

if TYPE_CHECKING:
    from pathlib import Path

PLANES: Final = 10  # of the longest dimension


@pytest.mark.one_of(4)
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


@pytest.mark.one_of(3)
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


def test_a_wish_without_a_number_is_told_where_it_is_ours(tmp_path: Path) -> None:
    """PnetCDF's own hint alone is left out without a word by PnetCDF too, if it is built without subfiling."""
    expected = plain(tmp_path / "plain", 3, "write", FILE)
    for hint in ("nc_subfiling_enabled=true", "pnetcdf_subfiling=enable"):
        traced = under(tmp_path / hint, 3, "write", FILE, hint)
        assert traced.out == expected
        assert files(tmp_path / hint) == [FILE]
        assert traced.err.count("nothing says how many subfiles there shall be") == (hint.startswith("nc_"))


def test_arrays_that_cannot_be_divided_leave_one_file(tmp_path: Path) -> None:
    expected = plain(tmp_path / "plain", 3, "write", FILE)
    for name, netcdf in (("long", "subfiles = 100"), ("flat", "subfiles = 2, min_ndims = 4")):
        traced = under(tmp_path / name, 3, "write", FILE, netcdf=netcdf)
        assert traced.out == expected
        assert "none of its arrays can be divided" in traced.err
        assert files(tmp_path / name) == [FILE]
        assert (tmp_path / name / FILE).read_bytes() == (tmp_path / "plain" / FILE).read_bytes()


def test_calls_that_fail_fail_as_without_subfiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("plain", "divided"):
        (tmp_path / folder).mkdir()
    plain(tmp_path / "plain", 3, "write", FILE)
    under(tmp_path / "divided", 3, "write", FILE, netcdf="subfiles = 2")
    for safe in ("0", "1"):
        monkeypatch.setenv("PNETCDF_SAFE_MODE", safe)
        wanted = sorted(plain(tmp_path / "plain", 3, "refuse", FILE).splitlines())
        got = sorted(under(tmp_path / "divided", 3, "refuse", FILE).out.splitlines())
        assert got == wanted
        (first,) = [line for line in wanted if line.startswith("first ")]
        assert ("0" in first.split()) == (safe == "0")
        (codes,) = [line for line in wanted if line.startswith("-")]
        assert "0" not in codes.split()
        assert "lists -57 -57 -40 -40 -226 -226 -217 -57" in wanted
        assert "independent 0" in wanted


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


@pytest.mark.one_of(2)
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


def test_files_with_the_papers_names_are_read(tmp_path: Path) -> None:
    """Son et al. 2016, figure 9: plain attribute names, subfiles FILE.0 and FILE.1."""
    plain(tmp_path / "plain", 3, "write", FILE)
    divided = tmp_path / "divided"
    under(divided, 4, "write", FILE, netcdf="subfiles = 2")
    plain(divided, 1, "rename", FILE)
    names = [FILE, f"{FILE}.0", f"{FILE}.1"]
    assert files(divided) == names
    for readers in (1, 3):
        wanted = plain(tmp_path / "plain", readers, "read", FILE)
        assert without_places(under(divided, readers, "read", FILE).out) == without_places(wanted)
    assert run([*IOWEIR, "check", FILE], cwd=divided).expect().out.startswith(f"{FILE}: whole")
    run([*IOWEIR, "merge", FILE, "-o", "merged.nc"], cwd=divided).expect()
    assert without_places(plain(divided, 1, "read", "merged.nc")).splitlines() == without_places(wanted).splitlines()
    # Redefined it gets the usual names, and keeps its subfiles'.
    wanted = plain(tmp_path / "plain", 2, "redef", FILE)
    assert without_places(under(divided, 2, "redef", FILE).out) == without_places(wanted)
    wanted = plain(tmp_path / "plain", 3, "read", FILE)
    assert without_places(under(divided, 3, "read", FILE).out) == without_places(wanted)
    # What is missing is named; what is removed takes its subfiles along.
    (divided / names[1]).rename(divided / "kept")
    missing = under(divided, 3, "read", FILE, code=None)
    assert missing.code != 0
    assert names[1] in missing.err
    (divided / "kept").rename(divided / names[1])
    under(divided, 2, "delete", FILE)
    assert files(divided) == ["merged.nc"]


@pytest.mark.one_of(4)
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


@pytest.mark.one_of(4)
@pytest.mark.parametrize(("ranks", "subfiles"), [(1, 3), (3, 2), (5, 4), (3, 7)])
def test_ranks_with_very_different_shares(tmp_path: Path, ranks: int, subfiles: int) -> None:
    """What one rank gives away takes several rounds of the exchange, of another's one, and the last has nothing."""
    plain(tmp_path / "plain", ranks, FILE, source="netcdf_uneven.c")
    divided = tmp_path / "divided"
    under(divided, ranks, FILE, netcdf=f"subfiles = {subfiles}", source="netcdf_uneven.c")
    assert files(divided) == sorted([FILE, *parts(subfiles)])
    run([*IOWEIR, "merge", FILE], cwd=divided).expect()
    assert (divided / FILE).read_bytes() == (tmp_path / "plain" / FILE).read_bytes()


def test_ranks_may_name_different_variables_in_one_call(tmp_path: Path) -> None:
    """Divided, whole, or none that there is: no rank waits for one that is elsewhere."""
    expected = plain(tmp_path / "plain", 3, FILE, source="netcdf_apart.c")
    assert "rank 2: -49 0 -50" in expected
    divided = tmp_path / "divided"
    traced = under(divided, 3, FILE, netcdf="subfiles = 2", source="netcdf_apart.c")
    assert sorted(traced.out.splitlines()) == sorted(expected.splitlines())
    assert files(divided) == sorted([FILE, *parts(2)])
    run([*IOWEIR, "merge", FILE], cwd=divided).expect()
    assert (divided / FILE).read_bytes() == (tmp_path / "plain" / FILE).read_bytes()


def test_a_program_may_go_to_another_folder(tmp_path: Path) -> None:
    """Subfiles lie beside their master, which is found again to say that it is complete."""
    plain(tmp_path / "plain", 2, "run", FILE, source="netcdf_moves.c")
    divided = tmp_path / "divided"
    assert "ioweir: " not in under(divided, 2, "run", FILE, netcdf="subfiles = 2", source="netcdf_moves.c").err
    assert files(divided) == ["run"]
    assert files(divided / "run") == sorted([FILE, *parts(2)])
    assert run([*IOWEIR, "check", FILE], cwd=divided / "run").expect().out.startswith(f"{FILE}: whole")
    run([*IOWEIR, "merge", FILE], cwd=divided / "run").expect()
    assert (divided / "run" / FILE).read_bytes() == (tmp_path / "plain" / "run" / FILE).read_bytes()


@pytest.mark.one_of(2)
@pytest.mark.parametrize(("ranks", "subfiles"), [(4, 4), (5, 2)])
def test_what_is_written_is_on_its_way_to_each_subfile(tmp_path: Path, ranks: int, subfiles: int) -> None:
    """One rank of each subfile and node begins its flush, so that no target waits for the program's sync."""
    if run(["strace", "-o", tmp_path / "probe", "true"]).code != 0:
        pytest.skip("strace is there, but this container forbids ptrace")
    mpi, libraries = library()
    program = build(SOURCE, mpi.cc, libraries=libraries)
    watched = ["strace", "-f", "-y", "-ff", "-o", str(tmp_path / "calls"), "-e", "trace=sync_file_range", str(program)]
    plan = netcdf_plan(tmp_path, f"subfiles = {subfiles}")
    ioweir_run(tmp_path / "trace", mpi.launch(ranks, *watched, "write", FILE), options=["--plan", plan], cwd=tmp_path)
    said = "".join(path.read_text() for path in tmp_path.glob("calls.*"))
    assert {int(number) for number in re.findall(r"subfile_(\d+)\.nc>, 0, 0, SYNC_FILE_RANGE_WRITE\)", said)} == set(
        range(subfiles)
    )
