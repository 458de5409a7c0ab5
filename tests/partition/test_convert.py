"""`ioweir convert`: every block arrives, by readers that know the formats alone."""

from __future__ import annotations

import json
import os
import re
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Final

import phasta_files
import pytest
import test_library_wheels
import tracing
from sets import FIELDS, contents, items, level, parameters, paths

if TYPE_CHECKING:
    from tracing import Finished

PARTS: Final = 7
SWAPS: Final = {"solution": 8, "number of nodes": 4, "solution errors": 8}


def ioweir(*words: str | Path, code: int = 0, env: dict[str, str] | None = None) -> Finished:
    return tracing.run([*tracing.IOWEIR, *map(str, words)], env=env).expect(code)


def turned(data: bytes, width: int) -> bytes:
    return b"".join(data[i : i + width][::-1] for i in range(0, len(data), width))


@pytest.fixture(params=["<", ">"])
def order(request: pytest.FixtureRequest) -> str:
    """The byte order of what is converted; it stays."""
    return str(request.param)


@pytest.fixture
def phasta(tmp_path: Path, order: str) -> Path:
    """PHASTA's own set of step 20: 7 parts in one file."""
    file = contents(list(range(1, PARTS + 1)))
    for name, blocks in file.fields.items():
        for block in blocks:
            block.items = block.items if order == "<" else turned(block.items, SWAPS[name])
    path = tmp_path / "restart-dat.20.1"
    phasta_files.write(path, file, order)
    return path


def in_order(field: int, part: int, order: str) -> bytes:
    data = items(field, part)
    return data if order == "<" else turned(data, SWAPS[FIELDS[field]])


def read_serial(path: Path, order: str) -> list[tuple[str, list[int], bytes]]:
    """By the format note alone: text headers, items, a newline."""
    data, at, blocks = path.read_bytes(), 0, []
    while data[at : at + 1] == b"#":
        at = data.index(b"\n", at) + 1
    while at < len(data):
        end = data.index(b"\n", at)
        match = re.fullmatch(r"(.*) : < (\d+) >((?: -?\d+)*)", data[at:end].decode())
        assert match is not None, data[at:end]
        size = int(match[2])
        body = data[end + 1 : end + 1 + size]
        assert len(body) == size
        assert size == 0 or body.endswith(b"\n")
        blocks.append((match[1], [int(word) for word in match[3].split()], body[:-1]))
        at = end + 1 + size
    name, counts, number = blocks.pop(0)
    assert (name, counts) == ("byteorder magic number", [1])
    assert struct.unpack(order + "i", number)[0] == 362436
    return blocks


@pytest.mark.one_of(3)
@pytest.mark.parametrize("files", [1, 3, 7])
def test_a_set_in_another_number_of_files(phasta: Path, tmp_path: Path, order: str, files: int) -> None:
    to = tmp_path / "other"
    said = ioweir("convert", phasta, to, "--files", str(files), "--step", "3").out
    assert f"step 3, 7 parts in {files} file" in said
    part = 1
    for path, count in zip(paths(str(to), 3, files), level(PARTS, files), strict=True):
        file = phasta_files.read(path, order)
        for field, name in enumerate(FIELDS):
            found = [(block.part, block.parameters, block.items) for block in file.fields[name]]
            assert found == [(g, parameters(field, g), in_order(field, g, order)) for g in range(part, part + count)]
        part += count
        assert ": whole, " in ioweir("check", path).out


def test_serial_files_hold_every_block_and_come_back_to_the_byte(phasta: Path, tmp_path: Path, order: str) -> None:
    ioweir("convert", phasta, tmp_path / "serial", "--to", "serial")
    for part in range(1, PARTS + 1):
        blocks = read_serial(tmp_path / f"serial.20.{part}", order)
        wanted = [(name, parameters(f, part), in_order(f, part, order)) for f, name in enumerate(FIELDS)]
        assert blocks == wanted
    ioweir("convert", tmp_path / "serial.20.1", tmp_path / "back", "--flat")
    assert (tmp_path / "back-dat.20.1").read_bytes() == phasta.read_bytes()


@pytest.mark.parametrize("order", ["<"], indirect=True)
def test_what_cannot_be_converted_says_why_and_leaves_nothing(phasta: Path, tmp_path: Path) -> None:
    before = sorted(tmp_path.iterdir())
    for words, said in (
        (["--files", "8"], "a number of files that cannot be: 8; from 1 to the number of parts, 7"),
        (["--to", "netcdf"], "--to netcdf: is none of set, serial, hdf5"),
        (["--to", "serial", "--files", "2"], "--files and --flat are for sets"),
        (["--type", "solution=int32"], "--type is for --to hdf5"),
    ):
        finished = tracing.run([*tracing.IOWEIR, "convert", str(phasta), str(tmp_path / "to"), *words])
        assert finished.code != 0
        assert said in " ".join(finished.err.split()), finished.err
    whole = phasta.read_bytes()
    phasta.write_bytes(whole[:-100])
    assert tracing.run([*tracing.IOWEIR, "convert", str(phasta), str(tmp_path / "to")]).code != 0
    assert sorted(tmp_path.iterdir()) == before


READ_HDF5: Final = """
import h5py, json, sys
with h5py.File(sys.argv[1]) as file:
    print(json.dumps({
        name: {
            part: [data.dtype.str, list(data.shape), data.attrs["parameters"].tolist(), data[()].ravel().tolist()]
            for part, data in group.items()
        }
        for name, group in file.items()
    }))
"""


@pytest.mark.one_of(2)
def test_hdf5_holds_every_item(phasta: Path, tmp_path: Path, order: str) -> None:
    python = test_library_wheels.installed()
    (packages,) = python.parent.parent.glob("lib/python3*/site-packages")
    path = tmp_path / "view.h5"
    types = ["--type", "number of nodes=int32"]
    ioweir("convert", phasta, path, "--to", "hdf5", *types, env={"PYTHONPATH": os.fspath(packages)})
    found = json.loads(tracing.run([python, "-c", READ_HDF5, path]).expect().out)
    assert set(found) == set(FIELDS)
    for field, name in enumerate(FIELDS):
        kind = "i" if name == "number of nodes" else "d"
        width = struct.calcsize(f"={kind}")
        for part in range(1, PARTS + 1):
            dtype, shape, of, values = found[name][str(part)]
            count = len(items(field, part)) // width
            assert (dtype, shape, of) == (f"{order}{'i4' if kind == 'i' else 'f8'}", [count], parameters(field, part))
            assert struct.pack(f"<{count}{kind}", *values) == items(field, part)
