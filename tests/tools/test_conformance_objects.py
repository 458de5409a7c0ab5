"""HDF5 files are alike when what is in them is, wherever it lies."""

from __future__ import annotations

import itertools
import math
import subprocess
from typing import TYPE_CHECKING, Final

import conformance_objects
import pytest

if TYPE_CHECKING:
    from pathlib import Path

# Of one number, in one piece, in rows, in parts of rows, in single elements, without any.
SHAPES: Final = [((), 8), ((7,), 100), ((7, 3), 50), ((3, 2, 5), 16), ((4, 3), 1), ((0, 3), 8)]
MAKE: Final = """
import sys
import h5py
path, row, value, attribute, chunk, alignment = sys.argv[1], *map(int, sys.argv[2:])
with h5py.File(path, "w", alignment_threshold=1, alignment_interval=alignment) as file:
    file.create_group("group").attrs["attribute"] = attribute
    data = [[100 * i + j for j in range(20)] for i in range(30)]
    data[row][3] = value
    file["group"].create_dataset("data", data=data, chunks=(chunk, chunk) if chunk else None)
    file["group"].create_dataset("words", data=["a", "bc"], dtype=h5py.string_dtype())
"""


@pytest.mark.parametrize(("shape", "most_bytes"), SHAPES)
def test_pieces_are_the_array_in_order(shape: tuple[int, ...], most_bytes: int) -> None:
    found = list(conformance_objects.pieces(shape, 8, most_bytes))
    parts = [list(itertools.product(*(range(part.start, part.stop) for part in piece))) for piece in found]
    assert list(itertools.chain(*parts)) == list(itertools.product(*map(range, shape)))
    assert all(1 <= len(part) <= max(most_bytes // 8, 1) for part in parts)
    assert sum(map(len, parts)) == math.prod(shape)


def checksum(
    path: Path, *, row: int = 17, value: int = 5, attribute: int = 1, chunk: int = 0, alignment: int = 1
) -> str:
    words = [str(number) for number in (row, value, attribute, chunk, alignment)]
    subprocess.run([conformance_objects.PYTHON, "-c", MAKE, str(path), *words], check=True)
    return conformance_objects.checksum(path)


@pytest.mark.one_of(2)
@pytest.mark.parametrize("large_bytes", [0, 1 << 30], ids=["large", "small"])
def test_values_and_attributes_count(tmp_path: Path, large_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conformance_objects, "LARGE_BYTES", large_bytes)
    first = checksum(tmp_path / "a")
    assert first
    others = [{}, {"chunk": 7}, {"value": 6}, {"row": 29}, {"attribute": 2}]
    alike = [checksum(tmp_path / f"b{i}", **changed) == first for i, changed in enumerate(others)]
    assert alike == [True, True, False, False, False]


def test_a_file_may_have_any_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conformance_objects, "LARGE_BYTES", 1 << 16)
    first = checksum(tmp_path / "a")
    assert checksum(tmp_path / "b", alignment=1 << 20) == first
    assert (tmp_path / "a").stat().st_size < 1 << 16 < (tmp_path / "b").stat().st_size


REFERENCE: Final = """
import sys
import h5py
with h5py.File(sys.argv[1], "w", alignment_threshold=1, alignment_interval=int(sys.argv[3])) as file:
    file["a"], file["b"] = [1], [2]
    file.attrs["to"] = file[sys.argv[2]].ref
"""


def test_of_a_reference_counts_what_it_leads_to_and_not_where_that_lies(tmp_path: Path) -> None:
    found = []
    for number, words in enumerate([("a", "1"), ("a", "4096"), ("b", "1")]):
        path = tmp_path / str(number)
        subprocess.run([conformance_objects.PYTHON, "-c", REFERENCE, str(path), *words], check=True)
        found.append(conformance_objects.checksum(path))
    assert [one == found[0] for one in found] == [True, True, False]


DIMENSION: Final = """
import sys
import h5py
with h5py.File(sys.argv[1], "w") as file:
    file["variable"] = [int(sys.argv[2])]
    file["d"] = [float(sys.argv[3])]
    file["d"].attrs["NAME"] = b"This is a netCDF dimension but not a netCDF variable.         1"
"""


def test_dimensions_without_values_do_not_count(tmp_path: Path) -> None:
    sums = []
    for words in (("5", "0"), ("5", "1"), ("6", "1")):
        path = tmp_path / f"{'-'.join(words)}.nc"
        subprocess.run([conformance_objects.PYTHON, "-c", DIMENSION, str(path), *words], check=True)
        sums.append(conformance_objects.checksum(path))
    assert sums[0]
    assert sums[0] == sums[1] != sums[2]


def test_what_is_no_hdf5_file_has_no_checksum(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"CDF" + bytes(100))
    assert not conformance_objects.checksum(path)
