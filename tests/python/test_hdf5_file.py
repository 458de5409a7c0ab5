"""`ioweir check` on HDF5 files: superblocks of every version, cut, flagged and marked ones. Files are h5py's, and bytes
made here after the HDF5 File Format Specification."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from ioweir.containers import hdf5_file

if TYPE_CHECKING:
    from pathlib import Path

H5PY = """
import h5py, sys
file = h5py.File(sys.argv[1], "w", libver=sys.argv[2], userblock_size=int(sys.argv[3]))
file["x"] = list(range(1000))
file.close()
"""


def made(path: Path, libver: str = "earliest", user_block: int = 0) -> Path:
    subprocess.run(["/usr/bin/python3", "-c", H5PY, path, libver, str(user_block)], check=True, timeout=60)
    return path


def check(path: Path) -> tuple[int, dict[str, object]]:
    command = [sys.executable, "-m", "ioweir", "check", "--json", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    (row,) = json.loads(done.stdout)
    assert isinstance(row, dict)
    return done.returncode, row


def test_what_is_not_there_or_empty_is_said(tmp_path: Path) -> None:
    code, row = check(tmp_path / "missing.h5")
    assert (code, row["problems"]) == (1, ["it cannot be looked at: No such file or directory"])
    (tmp_path / "empty.h5").touch()
    code, row = check(tmp_path / "empty.h5")
    assert (code, row["problems"]) == (1, ["it is empty"])


@pytest.mark.parametrize(("libver", "version"), [("earliest", 0), ("latest", 3)])
@pytest.mark.parametrize("user_block", [0, 512, 4096])
def test_a_closed_file_is_whole(tmp_path: Path, libver: str, version: int, user_block: int) -> None:
    path = made(tmp_path / "a.h5", libver, user_block)
    code, row = check(path)
    assert (code, row["problems"], row["superblock"]) == (0, [], version)
    assert (row["format"], row["bytes"], row["held"]) == ("hdf5", path.stat().st_size, False)
    superblock = hdf5_file.superblock_of(path)
    assert superblock is not None
    assert (superblock.offset, superblock.end) == (user_block, path.stat().st_size)


@pytest.mark.parametrize(("version", "at"), [(1, 28), (2, 12)])
def test_superblocks_of_versions_that_h5py_does_not_write(tmp_path: Path, version: int, at: int) -> None:
    content = bytearray(b"\x89HDF\r\n\x1a\n" + bytes([version]) + bytes(200))
    content[13 if version < 2 else 9] = 8
    content[at + 16 : at + 24] = len(content).to_bytes(8, "little")
    path = tmp_path / "a.h5"
    path.write_bytes(content)
    assert check(path)[1]["problems"] == []
    path.write_bytes(content[:-1])
    assert "cut off" in str(check(path)[1]["problems"])


def test_a_superblock_that_is_cut_is_none(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    for version in range(4):
        content = b"\x89HDF\r\n\x1a\n" + bytes([version]) + bytes([8]) * 14
        for length in range(8, len(content)):
            path.write_bytes(content[:length])
            assert hdf5_file.superblock_of(path) is None


@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_a_file_that_is_cut_is_not_whole(tmp_path: Path, libver: str) -> None:
    path = made(tmp_path / "a.h5", libver)
    path.write_bytes(path.read_bytes()[:-8])
    code, row = check(path)
    assert code == 1
    assert "cut off" in str(row["problems"])


def test_a_file_that_its_writer_left_open_is_not_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    dies = H5PY.replace("file.close()", "file.flush(); import os; os._exit(0)")
    subprocess.run(["/usr/bin/python3", "-c", dies, path, "latest", "0"], check=True, timeout=60)
    code, row = check(path)
    assert code == 1
    assert "its writer has not closed it" in str(row["problems"])


def test_a_mark_is_said(tmp_path: Path) -> None:
    path = made(tmp_path / "a.h5")
    hdf5_file.mark_of(path).write_text("ioweir-held 1\n")
    path.write_bytes(path.read_bytes() + bytes(2048))
    code, row = check(path)
    assert (code, row["held"]) == (1, True)
    assert "as it was at the last flush" in str(row["problems"])
    assert "2.00 KiB of data written since then" in str(row["problems"])


def test_without_a_superblock_only_the_mark_tells(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    path.write_bytes(bytes(100_000))
    assert hdf5_file.describe(path) is None
    hdf5_file.mark_of(path).write_text("ioweir-held 1\n")
    code, row = check(path)
    assert (code, row["superblock"]) == (1, None)
    assert "it has no superblock of HDF5" in str(row["problems"])


def test_other_files_are_none_of_hdf5(tmp_path: Path) -> None:
    path = tmp_path / "a"
    for content in (b"", b"\x89HDF", b"text", b"ioweir container 3\n"):
        path.write_bytes(content)
        assert hdf5_file.describe(path) is None
    assert hdf5_file.describe(tmp_path / "absent") is None
