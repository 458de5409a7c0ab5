"""Machines that `ioweir calibrate --kernels` keeps: for whom, believed from whom, and taken by `ioweir tune`."""

from __future__ import annotations

import importlib.resources
import json
import os
import platform
import sys
from pathlib import Path

import pytest
from forked import completed
from ioweir.errors import IoweirError
from ioweir.predict import kept, machine_of_trace, node, tune
from tracing import run

IOWEIR = [sys.executable, "-m", "ioweir"]
KERNEL = ("ior-strided", "data=2 MiB", "transfer=1 MiB", "piece=64 KiB")


@pytest.fixture(scope="module", params=["openmpi", "mpich"])
def trace(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a kernel under an MPI library, whose name is that of the folder above."""
    folder: Path = tmp_path_factory.mktemp("traced") / request.param
    folder.mkdir()
    kernel = [*IOWEIR, "kernel", *KERNEL, "--mpi", request.param, "--ranks", "2", "--directory", str(folder)]
    run([*IOWEIR, "run", "-q", "-o", str(folder / "trace"), "--", *kernel], cwd=folder).expect()
    return folder / "trace"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    return folder / "ioweir" / kept.FOLDER


def text_of(name: str) -> str:
    """A machine file."""
    lines = (importlib.resources.files("ioweir.predict") / "machines" / "gigabit12.toml").read_text().splitlines()
    return "\n".join([f'name = "{name}"', *(line for line in lines if not line.startswith("name = "))]) + "\n"


def test_one_is_kept_for_a_file_system_and_an_mpi_library(cache: Path, tmp_path: Path) -> None:
    path = kept.keep(text_of("this node"), tmp_path, "openmpi")
    assert path.parent == cache
    assert path.stat().st_mode & 0o777 == 0o600
    found = kept.find(tmp_path, "openmpi")
    assert found is not None
    assert (found.machine.name, found.path, found.days) == ("this node", path, 0)
    assert found.kind == node.mount_at(tmp_path).kind
    assert kept.find(tmp_path, "mpich") is None
    assert kept.find(Path("/proc"), "openmpi") is None
    os.utime(path, (path.stat().st_mtime - 3 * 86400 - 60,) * 2)
    later = kept.find(tmp_path, "openmpi")
    assert later is not None
    assert later.days == 3
    kept.keep(text_of("another"), tmp_path, "openmpi")
    again = kept.find(tmp_path, "openmpi")
    assert again is not None
    assert again.machine.name == "another"


def test_without_a_home_there_is_nowhere_to_keep_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("HOME", raising=False)
    with pytest.raises(IoweirError, match="no home folder to keep the machine in; set XDG_CACHE_HOME"):
        kept.keep(text_of("this node"), tmp_path, "openmpi")
    assert kept.find(tmp_path, "openmpi") is None


@pytest.mark.skipif(os.getuid() != 0, reason="gives files to another user")
def test_what_another_user_wrote_is_not_believed(cache: Path, tmp_path: Path) -> None:
    path = kept.keep(text_of("this node"), tmp_path, "openmpi")
    os.chown(path, 12345, 12345)
    assert kept.find(tmp_path, "openmpi") is None
    os.chown(path, 0, 0)
    assert kept.find(tmp_path, "openmpi") is not None
    cache.chmod(0o777)
    assert kept.find(tmp_path, "openmpi") is None


@pytest.mark.parametrize("content", [b"\xff\xfe", b"name = ", b"[node]\nranks = -1\n"])
def test_a_damaged_one_is_named(content: bytes, cache: Path, tmp_path: Path) -> None:
    path = kept.keep(text_of("this node"), tmp_path, "openmpi")
    assert path.parent == cache
    path.write_bytes(content)
    with pytest.raises(IoweirError, match=str(path)):
        kept.find(tmp_path, "openmpi")


def test_a_symbolic_link_is_not_followed(cache: Path, tmp_path: Path) -> None:
    path = kept.keep(text_of("this node"), tmp_path, "openmpi")
    other = tmp_path / "other.toml"
    path.rename(other)
    path.symlink_to(other)
    assert kept.find(tmp_path, "openmpi") is None
    assert cache.is_dir()


def test_tune_takes_it_for_a_trace_of_this_node_and_library(
    trace: Path, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mpi = trace.parent.name
    words = [*IOWEIR, "tune", str(trace), "--repeat", "2", "--json", "-o", str(tmp_path / "plan.toml")]
    kept.keep(text_of("another library"), trace.parent, "mpich" if mpi == "openmpi" else "openmpi")
    kept.keep(text_of("another storage"), Path("/proc"), mpi)
    asked = tune.Options(tmp_path / "plan.toml", None, trace=trace)
    assert machine_of_trace._kept_machine(asked) is None
    path = kept.keep(text_of("this node"), trace.parent, mpi)
    assert path.parent == cache
    result = json.loads(completed(words, check=True).stdout)
    assert result["machine"] == "this node"
    (said,) = [reason for reason in result["reasons"] if str(path) in reason]
    assert "made today of this node" in said
    # A machine that is named, and traces of other hosts, are none of it.
    named = json.loads(completed([*words, "--machine", "minerva", "--force"], check=True).stdout)
    assert named["machine"] != "this node"
    monkeypatch.setattr(platform, "node", lambda: "another")
    kept.keep(text_of("this node"), trace.parent, mpi)
    assert machine_of_trace._kept_machine(asked) is None


def test_calibrating_without_a_file_to_write(cache: Path, tmp_path: Path) -> None:
    done = completed([*IOWEIR, "calibrate", "--targets", str(tmp_path)], cwd=tmp_path)
    assert done.returncode == 2
    assert "--output MACHINE.toml is missing" in done.stderr
    assert not cache.exists()
