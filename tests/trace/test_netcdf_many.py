"""Very many small requests of netCDF programs whose arrays are divided over subfiles.

The program checks every value that it reads; the merged file is compared with the one of the same program without
ioweir. As many requests as below took hours where each was compared with all others. Not here: which of them are read
together (src/ncsub/reading_test.cpp, against brute force).
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

import pytest
from netcdf_subfiling import FILE, plain, under
from tracing import IOWEIR, run

if TYPE_CHECKING:
    from pathlib import Path

SOURCE: Final = "netcdf_many.c"
SCALED: Final = "netcdf_scaled.c"
MODEL: Final = "netcdf_model.c"
ALL: Final = os.environ.get("IOWEIR_TEST_ALL") == "1"
FORMS: Final = ("vara", "vars", "varm", "varn", "bput", "float", "window")
WAITS: Final = ("all", "any", "back", "parts", "cancel")


def same(folder: Path, ranks: int, subfiles: int, count: int, form: str, wait: str) -> None:
    folder.mkdir(exist_ok=True)
    plain(folder / "plain", ranks, FILE, count, form, wait, source=SOURCE)
    divided = folder / "divided"
    traced = under(divided, ranks, FILE, count, form, wait, source=SOURCE, netcdf=f"subfiles = {subfiles}")
    assert traced.out == f"{count} requests\n"
    run([*IOWEIR, "merge", FILE], cwd=divided).expect()
    assert (divided / FILE).read_bytes() == (folder / "plain" / FILE).read_bytes()


@pytest.mark.one_of(4)
@pytest.mark.parametrize("form", [form for form in FORMS if form != "window"])
def test_forms(tmp_path: Path, form: str) -> None:
    """Each with one number of ranks in turn, and with all if all tests are to run."""
    for number, (ranks, subfiles) in enumerate([(1, 2), (3, 2), (4, 3)]):
        if ALL or FORMS.index(form) % 3 == number:
            same(tmp_path / str(number), ranks, subfiles, 1000, form, "all")


@pytest.mark.one_of(2)
@pytest.mark.parametrize("wait", WAITS)
def test_waits(tmp_path: Path, wait: str) -> None:
    same(tmp_path, 3, 2, 999, "vara", wait)


def test_one_rank_with_as_many_requests_as_a_model(tmp_path: Path) -> None:
    same(tmp_path, 1, 2, 334_521 if ALL else 100_000, "vara", "all")


def test_several_ranks_with_very_many(tmp_path: Path) -> None:
    same(tmp_path, 3, 2, 60_000, "vara", "back")


@pytest.mark.one_of(3)
@pytest.mark.parametrize(
    ("variables", "columns", "levels", "records"),
    [(388, 600, 4, 2), (52, 9000, 6, 1), (560, 500, 3, 1)],
    ids=["atmosphere", "ocean", "land"],
)
@pytest.mark.parametrize(("ranks", "subfiles"), [(4, 3)])
def test_variables_of_a_model_in_pieces_all_over(
    tmp_path: Path, variables: int, columns: int, levels: int, records: int, ranks: int, subfiles: int
) -> None:
    """As many variables as E3SM's cases F, G and I have, each in hundreds of pieces, or thousands (IOWEIR_TEST_ALL)."""
    words = (FILE, variables, columns if ALL else columns // 4, levels, records)
    expected = plain(tmp_path / "plain", ranks, *words, source=SCALED)
    divided = tmp_path / "divided"
    netcdf = f"subfiles = {subfiles}, min_ndims = 1"
    assert under(divided, ranks, *words, source=SCALED, netcdf=netcdf).out == expected
    run([*IOWEIR, "merge", FILE], cwd=divided).expect()
    assert (divided / FILE).read_bytes() == (tmp_path / "plain" / FILE).read_bytes()


@pytest.mark.one_of(4)
@pytest.mark.parametrize(
    ("case", "variables", "tasks"),
    [("F0", 414, 4), ("F1", 51, 16), ("G", 52, 16), ("I0", 560, 1), *([("I1", 552, 16)] if ALL else [])],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_cases_of_a_model(tmp_path: Path, case: str, variables: int, tasks: int) -> None:
    """E3SM-IO's F, G and I cases by their published numbers; some of their 16 tasks, or all of them.

    Open MPI leaves bytes in elements that nobody writes, so that files are compared byte for byte where there are none.
    """
    words = (FILE, case, 1, 16 if ALL else tasks)
    expected = plain(tmp_path / "plain", 4, *words, source=MODEL)
    assert expected.startswith(f"{variables} variables, ")
    divided = tmp_path / "divided"
    assert under(divided, 4, *words, source=MODEL, netcdf="subfiles = 3, min_ndims = 1").out == expected
    run([*IOWEIR, "merge", FILE], cwd=divided).expect()
    assert plain(divided, 4, *words, "read", source=MODEL) == expected, "every element, without ioweir"
    if case[0] != "I" and words[-1] == 16:
        assert (divided / FILE).read_bytes() == (tmp_path / "plain" / FILE).read_bytes()


def test_reads_that_overlap(tmp_path: Path) -> None:
    """PnetCDF alone fills one of two buffers with the same elements: there is no run without subfiles to compare."""
    traced = under(tmp_path, 3, FILE, 30_000, "window", "all", source=SOURCE, netcdf="subfiles = 2")
    assert traced.out == "30000 requests\n"
