"""ioweir's own processes import nothing that lies in the current folder, where anybody may have put it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from ioweir.base import processes
from ioweir.launch import doctor

MODULES = ("ioweir", "typer", "multiprocessing", "importlib", "contextlib", "h5py", "mpi4py")


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder; `ran` is in it when something of it was imported."""
    for name in MODULES:
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\nraise SystemExit(9)\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_command_line_once_more(hostile: Path) -> None:
    done = subprocess.run(processes.ioweir("--version"), capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout.startswith("ioweir ")
    assert (done.returncode, done.stderr) == (0, "")
    assert not (hostile / "ran").exists()


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python cannot be told")
def test_workers(hostile: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    with processes.workers(1) as pool:
        assert pool.submit(os.path.basename, "a/b").result() == "b"
    assert "PYTHONSAFEPATH" not in os.environ
    assert not (hostile / "ran").exists()


def test_what_a_doctor_asks_an_interpreter(hostile: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", doctor._PYTHON_QUESTION], capture_output=True, text=True, check=False, timeout=60
    )
    assert "h5py=" in done.stdout
    assert str(hostile) not in done.stdout
    assert not (hostile / "ran").exists()
