"""`ioweir merge`, `ls` and `check` on containers that a real program under a plan has written."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PLAN = '[[file]]\nmatch = "*.data"\nmapping = "grouped:2"\n'
MPI_KINDS = ("openmpi", "mpich")


IOWEIR = Path(sys.executable).with_name("ioweir")


def ioweir(*words: str | Path, cwd: Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [IOWEIR, *words],
        cwd=cwd, capture_output=True, text=True, check=False, timeout=300,
        env={**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"},
    )  # fmt: skip
    assert done.returncode == code, done.stdout + done.stderr
    return done


def kernel(folder: Path, kind: str, name: str) -> bytes:
    """Runs a kernel twice in the same place, without and with the plan, and returns the plain file's bytes."""
    (folder / "plan.toml").write_text(PLAN)
    words = ["kernel", "ior-strided", "data=64KiB", "transfer=64KiB", "piece=4KiB", "--ranks", "3", "--mpi", kind,
             "--keep"]  # fmt: skip
    ioweir(*words, "--directory", str(folder), cwd=folder)
    plain = (folder / "ior-strided.data").read_bytes()
    (folder / "ior-strided.data").rename(folder / "plain")
    traced = ("run", "-q", "-o", "trace", "--plan", "plan.toml", "--", IOWEIR)
    ioweir(*traced, *words, "--directory", str(folder), cwd=folder)
    (folder / "ior-strided.data").rename(folder / name)
    return plain


@pytest.fixture(params=MPI_KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, bytes]:
    """A container at "file", and what the file would be without a plan."""
    if shutil.which(f"mpirun.{request.param}") is None:
        pytest.skip(f"mpirun.{request.param} is not installed")
    return tmp_path, kernel(tmp_path, request.param, "file")


def directory(folder: Path) -> Path:
    (found,) = folder.glob(".ioweir-*")
    return found


def test_merged_it_is_what_the_program_writes_without_ioweir(place: tuple[Path, bytes]) -> None:
    folder, plain = place
    assert len(plain) == 3 * 65536
    assert (folder / "file").read_bytes().startswith(b"ioweir container 1\n")
    (row,) = json.loads(ioweir("ls", "file", "--json", cwd=folder).stdout)
    assert row["mapping"] == "grouped:2"
    assert row["bytes"] == row["held_bytes"] == len(plain)
    assert sorted(row["group_bytes"]) == [65536, 2 * 65536]  # one rank, and two
    assert (row["problems"], row["open_generations"]) == ([], [])
    assert ioweir("check", "file", cwd=folder).stdout == "file: whole, 192 KiB\n"
    text = ioweir("ls", "file", cwd=folder).stdout
    assert "group 1" in text
    assert "never written" not in text
    assert ioweir("merge", "file", "-o", "other", cwd=folder).stdout.startswith("other: 192 KiB")
    assert (folder / "other").read_bytes() == plain
    assert directory(folder).is_dir()
    ioweir("merge", "file", cwd=folder)
    assert (folder / "file").read_bytes() == plain
    assert not list(folder.glob(".ioweir-*"))


def test_mistakes_and_damage_are_said(place: tuple[Path, bytes]) -> None:
    folder, plain = place
    for command in ("merge", "ls"):
        assert "not an ioweir container: plain" in ioweir(command, "plain", cwd=folder, code=1).stderr
        assert "not an ioweir container: none" in ioweir(command, "none", cwd=folder, code=1).stderr
    assert "the output exists: plain" in ioweir("merge", "file", "-o", "plain", cwd=folder, code=1).stderr
    assert (folder / "plain").read_bytes() == plain
    index = next(directory(folder).glob("group.0/index.*"))
    whole = index.read_bytes()
    index.write_bytes(whole[:-1] + b"\xff")
    checked = ioweir("check", "file", cwd=folder, code=1).stdout
    assert "NOT whole" in checked
    assert str(index.relative_to(folder)) in checked
    ioweir("merge", "file", cwd=folder, code=1)
    index.write_bytes(whole)
    next(directory(folder).glob("closed.*")).rename(directory(folder) / "open.1")
    assert "begun and not ended" in ioweir("check", "file", cwd=folder, code=1).stdout
    assert "was not closed" in ioweir("merge", "file", cwd=folder, code=1).stderr
    ioweir("merge", "file", "-o", "rescued", cwd=folder)
    assert (folder / "rescued").read_bytes() == plain
    shutil.rmtree(directory(folder))
    assert "belongs beside the file" in ioweir("check", "file", cwd=folder, code=1).stdout
