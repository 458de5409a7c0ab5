"""Fill values of netCDF files whose arrays are divided over subfiles: the same calls give the same codes and bytes.

The oracle is the same program without ioweir: what it prints is what the library says, and the file that it leaves is
compared with the merged one. Bytes that belong to no element are left out where the file has grown: when variables are
added, the library moves the others, and leaves what was there.
Not here: what else is done with records (test_netcdf_records.py).
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

import pytest
from netcdf_header import without_gaps
from netcdf_subfiling import BY_MPICH, FILE, files, netcdf_plan, parts, plain, under
from test_library_programs import fortran_program, library_directory
from tracing import IOWEIR, OPEN_MPI, ioweir_run, run

if TYPE_CHECKING:
    from pathlib import Path

SOURCE: Final = "netcdf_fill.c"
FILES: Final = 25 if os.environ.get("IOWEIR_TEST_ALL") else 8
"""Of a random program each, for each number of ranks."""


def elements(path: Path) -> bytes:
    """The header and all elements. Whether the last of these is padded depends on what the library has moved."""
    return without_gaps(path.read_bytes()).rstrip(b"\0")


def same(folder: Path, ranks: int, netcdf: str, *words: str | int, env: dict[str, str] | None = None) -> str:
    """Runs the program both ways, compares what it says and leaves; what it says."""
    expected = plain(folder / "plain", ranks, *words, source=SOURCE)
    divided = folder / "divided"
    assert under(divided, ranks, *words, source=SOURCE, netcdf=netcdf, env=env).out == expected
    for path in sorted((folder / "plain").glob("*.nc")):
        ours = divided / path.name
        if (divided / f"{path.name}.subfile_0.nc").exists():
            run([*IOWEIR, "merge", path.name], cwd=divided).expect()
        assert elements(ours) == elements(path), path.name
    return expected


@pytest.mark.one_of(4)
@pytest.mark.parametrize(("ranks", "subfiles", "first"), [(1, 2, 0), (3, 2, 100), (4, 3, 200), (3, 5, 300)])
def test_random_programs(tmp_path: Path, ranks: int, subfiles: int, first: int) -> None:
    said = same(tmp_path, ranks, f"subfiles = {subfiles}, min_ndims = {first // 100 % 2}", "random", first, FILES)
    assert said.count("fill_var_rec") > FILES
    assert list((tmp_path / "divided").glob("*.subfile_1.nc.*")) == []


@pytest.mark.one_of(2)
@pytest.mark.parametrize("ranks", [1, 3, 4])
def test_a_value_by_an_attribute_alone(tmp_path: Path, ranks: int) -> None:
    lines = same(tmp_path, ranks, "subfiles = 2", "attribute", FILE).splitlines()
    assert [line for line in lines if line.startswith("fill_var_rec")] == [
        *["fill_var_rec 1: 0"] * 3,
        "fill_var_rec 1: -234",
        "fill_var_rec 1: 0",
    ]


@pytest.mark.one_of(6)
@pytest.mark.skipif(BY_MPICH, reason="the modules of PnetCDF's Fortran interface are Open MPI's")
@pytest.mark.parametrize("form", ["77", "90"])
@pytest.mark.parametrize(("ranks", "subfiles"), [(1, 2), (3, 2), (4, 3)])
def test_fortran_programs(tmp_path: Path, ranks: int, subfiles: int, form: str) -> None:
    modules = library_directory() / "fortran" / "gfortran-mod-15"
    program = fortran_program("netcdf_fill.F90", OPEN_MPI, str(modules), "pnetcdf")
    command = OPEN_MPI.launch(ranks, program, FILE, form)
    said, left = [], []
    for netcdf in ("", f"subfiles = {subfiles}, min_ndims = 1"):
        folder = tmp_path / ("divided" if netcdf else "plain")
        folder.mkdir()
        if netcdf:
            options = ["--plan", str(netcdf_plan(folder, netcdf))]
            said.append(ioweir_run(folder / "trace", command, options=options, cwd=folder).out)
            assert set(parts(subfiles)) <= set(files(folder))
            run([*IOWEIR, "merge", FILE], cwd=folder).expect()
        else:
            said.append(run(command, cwd=folder).expect().out)
        left.append((folder / FILE).read_bytes())
    assert said[1] == said[0]
    assert said[0].count("fill_var_rec: 0\n") == 6
    assert said[0].count("fill_var_rec: -234\n") == 3
    assert left[1] == left[0]


@pytest.mark.one_of(4)
@pytest.mark.parametrize("safe", ["0", "1"])
@pytest.mark.parametrize("ranks", [1, 3])
def test_calls_that_fail(tmp_path: Path, ranks: int, safe: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PNETCDF_SAFE_MODE", safe)
    said = same(tmp_path, ranks, "subfiles = 2", "wrong", FILE)
    assert "fill_var_rec of no fill 1: -234" in said
    assert "put_att too late 1: -122" in said


@pytest.mark.one_of(4)
@pytest.mark.parametrize("kind", ["whole", "divided"])
@pytest.mark.parametrize("ranks", [1, 3])
def test_records_that_were_there_before(tmp_path: Path, ranks: int, kind: str) -> None:
    said = same(tmp_path, ranks, "subfiles = 2, min_ndims = 1", "late", FILE, kind)
    assert "3 records\nget 1: 0\nget 2: 0\nget 3: 0\n" in said
    assert files(tmp_path / "divided") == [FILE]
    assert parts(2)
