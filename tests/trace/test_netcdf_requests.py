"""Requests of netCDF programs whose variables are told apart late: begun in define mode, or by one type for several.

And what becomes of files that are not the same on all ranks.

The oracle is the same program without ioweir, which checks every value that it reads and prints what the library says,
and the file that it leaves, with which the merged one is compared byte for byte. Not here: other requests
(test_netcdf_subfiles.py, test_netcdf_records.py), bytes as elements by themselves (src/ncsub/linear_test.cpp).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest
from netcdf_subfiling import FILE, files, parts, plain, under
from tracing import IOWEIR, run

if TYPE_CHECKING:
    from pathlib import Path

SOURCE: Final = "netcdf_requests.c"
COUNTS: Final = "netcdf_counts.c"
LAST_RANK: Final = "last_rank.txt"
RANKS: Final = (1, 3, 4)


def without_warnings(text: str) -> str:
    """Without what the library says of requests that nobody has waited for, on each rank."""
    return "\n".join(line for line in text.splitlines() if not line.startswith("PnetCDF warning"))


def same_as_plain(folder: Path, ranks: int, subfiles: int, action: str, source: str = SOURCE) -> str:
    """Runs the program both ways, and compares what it says and leaves; variables of one dimension are whole."""
    expected = without_warnings(plain(folder / "plain", ranks, action, FILE, source=source))
    divided = folder / "divided"
    netcdf = f"subfiles = {subfiles}, min_ndims = 1"
    assert without_warnings(under(divided, ranks, action, FILE, source=source, netcdf=netcdf).out) == expected
    assert set(files(divided)) - {LAST_RANK} == {FILE, *parts(subfiles)}
    run([*IOWEIR, "merge", FILE, "-o", "merged.nc"], cwd=divided).expect()
    assert (divided / "merged.nc").read_bytes() == (folder / "plain" / FILE).read_bytes()
    return expected


@pytest.mark.one_of(3)
@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("subfiles", [2, 3])
def test_requests_begun_in_define_mode(tmp_path: Path, ranks: int, subfiles: int) -> None:
    said = same_as_plain(tmp_path, ranks, subfiles, "undefined")
    assert "refused -226 -40 -57 -49 -217 -56 -39 -39" in said
    assert "codes -40 -219" in said
    # Requests and bytes of the attached buffer are counted as the library counts them.
    last = (tmp_path / "plain" / LAST_RANK).read_text()
    assert (tmp_path / "divided" / LAST_RANK).read_text() == last
    assert " requests, " in last


@pytest.mark.one_of(4)
@pytest.mark.parametrize("ranks", RANKS)
def test_requests_begun_in_define_mode_of_a_file_that_stays_one(tmp_path: Path, ranks: int) -> None:
    expected = without_warnings(plain(tmp_path / "plain", ranks, "undefined", FILE, source=SOURCE))
    whole = tmp_path / "whole"
    got = under(whole, ranks, "undefined", FILE, source=SOURCE, netcdf="subfiles = 2, min_ndims = 3").out
    assert without_warnings(got) == expected
    assert files(whole) == [FILE, LAST_RANK]
    assert (whole / FILE).read_bytes() == (tmp_path / "plain" / FILE).read_bytes()


@pytest.mark.one_of(6)
@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("subfiles", [2, 3])
def test_file_types_over_several_variables(tmp_path: Path, ranks: int, subfiles: int) -> None:
    assert "variable line" in same_as_plain(tmp_path, ranks, subfiles, "types")


@pytest.mark.one_of(3)
@pytest.mark.parametrize(("ranks", "subfiles"), [(1, 2), (3, 2), (4, 3)])
def test_bytes_are_counted_where_the_request_was_made(tmp_path: Path, ranks: int, subfiles: int) -> None:
    lines = same_as_plain(tmp_path, ranks, subfiles, "moved", COUNTS).splitlines()
    # Before and after the last rank has written 10 x 6 x 4 shorts.
    before, after = ([int(part.split()[0]) for part in line.split(", ")[1:]] for line in lines[1:3])
    assert [now - then for then, now in zip(before, after, strict=True)] == [0] * (ranks - 1) + [480]


@pytest.mark.one_of(3)
@pytest.mark.parametrize(("ranks", "subfiles"), [(1, 2), (3, 2), (4, 3)])
def test_waits_that_name_what_is_not_there(tmp_path: Path, ranks: int, subfiles: int) -> None:
    lines = same_as_plain(tmp_path, ranks, subfiles, "unknown", COUNTS).splitlines()
    codes = [[part.split()[0] for part in line.split(", ")[1:]] for line in lines]
    on_all, on_one = ["-212"] * ranks, ["0"] * (ranks - 1) + ["-212"]
    assert codes == [on_all, on_all, on_one, on_one, on_all, ["0"] * ranks]


@pytest.mark.parametrize("ranks", RANKS)
def test_file_types_that_lead_elsewhere(tmp_path: Path, ranks: int) -> None:
    traced = under(tmp_path, ranks, "refused", FILE, source=SOURCE, netcdf="subfiles = 2")
    assert traced.out == "-57 -208 -57 -57\n"
    assert "which are not all elements of variables" in traced.err
    assert "variables of different types, second and third" in traced.err


@pytest.mark.one_of(2)
@pytest.mark.parametrize("ranks", [3, 4])
def test_ranks_that_define_different_things(tmp_path: Path, ranks: int) -> None:
    plain(tmp_path / "plain", ranks, "differ", FILE, source=SOURCE)
    divided = tmp_path / "divided"
    traced = under(divided, ranks, "differ", FILE, source=SOURCE, netcdf="subfiles = 2")
    assert "ranks have defined different things, and new arrays are not divided over subfiles" in traced.err
    assert files(divided) == [FILE]
    assert (divided / FILE).read_bytes() == (tmp_path / "plain" / FILE).read_bytes()
