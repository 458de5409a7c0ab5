"""netCDF files with records divided over subfiles, and accesses that are not collective or go to several variables.

The oracle is the same program without ioweir, which checks every value that it reads and prints what the library says
of the file and how it refuses; and the file that it leaves, with which the merged one is compared byte for byte. Not
here: files without records (test_netcdf_subfiles.py), headers and merging by themselves (src/ncsub).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest
from netcdf_subfiling import BY_MPICH, FILE, files, parts, plain, under, without_places
from tracing import IOWEIR, run

if TYPE_CHECKING:
    from pathlib import Path

SOURCE: Final = "netcdf_records.c"
PLANES: Final = 10
MANY: Final = [(1, 2), (4, 3), (7, 2), *([(3, 4), (2, 7)] if BY_MPICH else [])]  # ranks, subfiles


def same_as_plain(folder: Path, ranks: int, subfiles: int, *words: str) -> str:
    """Runs the program both ways, and compares what it says and what it leaves."""
    expected = plain(folder / "plain", ranks, *words, source=SOURCE)
    divided = folder / "divided"
    assert under(divided, ranks, *words, source=SOURCE, netcdf=f"subfiles = {subfiles}").out == expected
    assert files(divided) == sorted([FILE, *parts(subfiles)])
    merged(folder)
    return expected


def merged(folder: Path) -> None:
    run([*IOWEIR, "merge", FILE, "-o", "merged.nc"], cwd=folder / "divided").expect()
    assert (folder / "divided" / "merged.nc").read_bytes() == (folder / "plain" / FILE).read_bytes()
    (folder / "divided" / "merged.nc").unlink()


@pytest.mark.one_of(2)
@pytest.mark.parametrize(("ranks", "subfiles"), MANY)
def test_records_are_divided_along_their_second_dimension(tmp_path: Path, ranks: int, subfiles: int) -> None:
    said = same_as_plain(tmp_path, ranks, subfiles, "write", FILE)
    assert "dimension t 6 6" in said
    # Each subfile is a file of its own.
    first = 0
    for number, name in enumerate(parts(subfiles)):
        end = -(-(number + 1) * PLANES // subfiles)
        assert plain(tmp_path / "divided", 1, "part", name, first, source=SOURCE) == f"{end - first}\n"
        first = end
    assert first == PLANES
    for readers in (1, 4):
        wanted = plain(tmp_path / "plain", readers, "read", FILE, source=SOURCE)
        assert under(tmp_path / "divided", readers, "read", FILE, source=SOURCE).out == wanted


@pytest.mark.one_of(2)
@pytest.mark.parametrize(("ranks", "subfiles"), [(1, 3), (4, 2)])
def test_records_and_variables_with_records_are_added_later(tmp_path: Path, ranks: int, subfiles: int) -> None:
    same_as_plain(tmp_path, 2, subfiles, "write", FILE)
    wanted = plain(tmp_path / "plain", ranks, "grow", FILE, source=SOURCE)
    got = under(tmp_path / "divided", ranks, "grow", FILE, source=SOURCE).out
    assert without_places(got) == without_places(wanted)
    assert "dimension t 7 7" in wanted
    wanted = plain(tmp_path / "plain", 3, "read", FILE, "more", source=SOURCE)
    got = under(tmp_path / "divided", 3, "read", FILE, "more", source=SOURCE).out
    assert without_places(got) == without_places(wanted)


@pytest.mark.one_of(2)
@pytest.mark.parametrize(("ranks", "subfiles"), MANY)
def test_independent_mode(tmp_path: Path, ranks: int, subfiles: int) -> None:
    said = same_as_plain(tmp_path, ranks, subfiles, "independent", FILE)
    assert "codes -202 -203 -40" in said


@pytest.mark.one_of(2)
@pytest.mark.parametrize(("ranks", "subfiles"), MANY)
def test_calls_for_several_variables_buffers_and_derived_types(tmp_path: Path, ranks: int, subfiles: int) -> None:
    said = same_as_plain(tmp_path, ranks, subfiles, "several", FILE)
    assert "codes -40 -202 -217 -219 -218 0" in said
