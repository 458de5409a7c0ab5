"""The Debian and RPM packages of an installed prefix, here a made-up one: what they hold, and what is refused."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

PACKAGING: Final = Path(__file__).resolve().parents[2] / "packaging"
DEB: Final = PACKAGING / "deb.sh"
RPM: Final = PACKAGING / "rpm.sh"
needs_dpkg: Final = pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="no dpkg-deb")
INTERPRETER: Final = os.path.realpath(sys.executable)
OF_THE_SYSTEM: Final = INTERPRETER.startswith("/usr/") and not INTERPRETER.startswith("/usr/local/")
needs_rpmbuild: Final = pytest.mark.skipif(shutil.which("rpmbuild") is None, reason="no rpmbuild")


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    place = tmp_path / "opt" / "ioweir"
    (place / "bin").mkdir(parents=True)
    (place / "lib" / "ioweir" / "bin").mkdir(parents=True)
    (place / "lib" / "ioweir" / "bin" / "python").symlink_to(sys.executable)
    command = place / "bin" / "ioweir"
    command.write_text("#!/bin/sh\necho ioweir 4.5.6\n", encoding="utf-8")
    command.chmod(0o700)
    (place / "lib" / "ioweir" / "__pycache__").mkdir()
    (place / "lib" / "ioweir" / "__pycache__" / "left.pyc").write_bytes(b"")
    return place


def run(*words: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "LC_ALL": "C", **variables}
    return subprocess.run(words, capture_output=True, text=True, check=False, env=environment)


@needs_dpkg
def test_the_debian_package_puts_the_same_files_at_the_same_place(prefix: Path, tmp_path: Path) -> None:
    done = run(DEB, prefix, tmp_path / "out")
    assert done.returncode == 0, done.stderr
    package = Path(done.stdout.strip())
    assert package.name.startswith("ioweir_4.5.6_")
    listed = [line.split(maxsplit=5) for line in run("dpkg-deb", "-c", package).stdout.splitlines()]
    files = {words[5].split(" -> ")[0]: words for words in listed}
    mode, owner = files[f".{prefix}/bin/ioweir"][:2]
    assert (mode, owner) == ("-rwxr-xr-x", "root/root")
    assert not [name for name in files if "__pycache__" in name]
    depends = run("dpkg-deb", "-f", package, "Depends").stdout.strip()
    minor = sys.version_info[1]
    python = f", python3 (>= 3.{minor}), python3 (<< 3.{minor + 1})" if OF_THE_SYSTEM else ""
    assert depends == f"libc6{python}"
    # apt installs what is recommended, and a machine with an MPI library of its own would get Debian's, too.
    assert run("dpkg-deb", "-f", package, "Recommends").stdout.strip() == ""


@needs_dpkg
def test_a_debian_package_does_not_ask_for_a_python_of_no_package(prefix: Path, tmp_path: Path) -> None:
    own = tmp_path / "opt" / "python3.13"
    own.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    own.chmod(0o755)
    python = prefix / "lib" / "ioweir" / "bin" / "python"
    python.unlink()
    python.symlink_to(own)
    done = run(DEB, prefix, tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert done.stderr == f"deb.sh: {own} is no system's Python: the package does not ask for it\n"
    assert run("dpkg-deb", "-f", done.stdout.strip(), "Depends").stdout == "libc6\n"


@needs_rpmbuild
def test_the_rpm_package_puts_the_same_files_at_the_same_place(prefix: Path, tmp_path: Path) -> None:
    done = run(RPM, prefix, tmp_path / "out")
    assert done.returncode == 0, done.stderr
    package = Path(done.stdout.strip())
    assert package.name.startswith("ioweir-4.5.6-1.")
    assert package.is_file()
    query = ("rpm", "-qp", "--dbpath", tmp_path)
    listed = run(*query, "--qf", r"[%{FILEMODES:perms} %{FILEUSERNAME} %{FILENAMES}\n]", package)
    files = {line.split(maxsplit=2)[2]: line.split()[:2] for line in listed.stdout.splitlines()}
    assert files[f"{prefix}/bin/ioweir"] == ["-rwxr-xr-x", "root"]
    # Everything below the prefix and the prefix, and not the folders above it, which are others'.
    assert set(files) == {str(prefix)} | {str(path) for path in prefix.rglob("*") if "__pycache__" not in path.parts}
    asked = run(*query, "--requires", package).stdout.split("\n")
    assert (INTERPRETER in asked) == OF_THE_SYSTEM


def test_an_rpm_that_cannot_be_made_says_why(prefix: Path, tmp_path: Path) -> None:
    broken = tmp_path / "bin" / "rpmbuild"
    broken.parent.mkdir()
    broken.write_text("#!/bin/sh\necho 'error: no room'\nexit 1\n", encoding="utf-8")
    broken.chmod(0o755)
    done = run(RPM, prefix, tmp_path, PATH=f"{broken.parent}:{os.environ['PATH']}")
    assert done.returncode == 1
    assert "error: no room" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("script", [DEB, RPM], ids=["deb", "rpm"])
def test_a_shared_place_and_an_empty_one_are_refused(script: Path, tmp_path: Path) -> None:
    shared = run(script, "/usr", tmp_path)
    assert (shared.returncode, shared.stderr.split(":")[0]) == (2, script.name)
    assert "place of its own" in shared.stderr
    assert "is not installed there" in run(script, tmp_path, tmp_path).stderr
    assert not list(tmp_path.glob("*.deb"))
    assert not list(tmp_path.glob("*.rpm"))


@pytest.mark.parametrize("script", [DEB, RPM], ids=["deb", "rpm"])
def test_without_a_prefix_it_says_what_it_is_for(script: Path) -> None:
    done = run(script)
    assert done.returncode == 2
    assert f"packaging/{script.name} PREFIX [DIRECTORY]" in done.stderr
    assert "set -" not in done.stderr


def test_a_prefix_that_a_list_of_files_cannot_name_is_refused(prefix: Path, tmp_path: Path) -> None:
    crooked = prefix.rename(prefix.parent / "io weir")
    done = run(RPM, crooked, tmp_path)
    assert done.returncode == 2
    assert "letters, digits" in done.stderr


@pytest.mark.parametrize("script", sorted(PACKAGING.glob("*.sh")), ids=lambda path: path.name)
def test_scripts_are_shell(script: Path) -> None:
    assert run("bash", "-n", script).stderr == ""
