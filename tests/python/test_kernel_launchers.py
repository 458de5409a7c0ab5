"""Which MPI library `ioweir kernel` takes where nothing is compiled, and where its runner finds that library."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from ioweir.errors import IoweirError
from ioweir.launch import kernel

OPEN_MPI = "mpirun (Open MPI) 4.1.4"
HYDRA = "HYDRA build details:"


def launcher(prefix: Path, name: str, says: str) -> str:
    """A program that says so, in PREFIX/bin."""
    program = prefix / "bin" / name
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(f"#!/bin/sh\necho '{says}'\n", encoding="utf-8")
    program.chmod(0o755)
    return str(program)


@pytest.fixture
def prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Whose bin is all of PATH."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    return tmp_path


@pytest.mark.parametrize(
    ("launchers", "kind"),
    [({"mpirun": OPEN_MPI}, "openmpi"), ({"mpiexec": HYDRA}, "mpich"), ({"mpirun": "?", "mpiexec": HYDRA}, "mpich")],
)
def test_the_launcher_says_which_library(prefix: Path, launchers: dict[str, str], kind: str) -> None:
    for name, says in launchers.items():
        launcher(prefix, name, says)
    assert kernel.kind_here() == kind


def test_the_compiler_comes_first(prefix: Path) -> None:
    launcher(prefix, "mpirun", OPEN_MPI)
    launcher(prefix, "mpicc", "mpicc for MPICH version 4.0.2")
    assert kernel.kind_here() == "mpich"


def test_neither_compiler_nor_launcher(prefix: Path) -> None:
    launcher(prefix, "mpirun", "nothing that is known")
    with pytest.raises(IoweirError, match="no mpicc in PATH"):
        kernel.kind_here()


@pytest.mark.parametrize("folder", ["lib", "lib64"])
def test_a_library_beside_the_launcher_is_found(prefix: Path, folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    words = launcher(prefix, "mpiexec", HYDRA)
    assert "LD_LIBRARY_PATH" not in kernel.environment_of(words)
    (prefix / folder).mkdir()
    (prefix / folder / "libmpi.so.12").touch()
    assert kernel.environment_of("mpiexec")["LD_LIBRARY_PATH"] == str(prefix / folder)
    monkeypatch.setenv("LD_LIBRARY_PATH", "/first")
    assert kernel.environment_of(words)["LD_LIBRARY_PATH"] == f"/first{os.pathsep}{prefix / folder}"


def test_what_the_system_finds_by_itself_is_not_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    assert "LD_LIBRARY_PATH" not in kernel.environment_of("/usr/bin/mpiexec.of-nobody")
