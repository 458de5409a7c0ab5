"""The Debian package of an installed prefix, here a made-up one: what is in it, whose it is, and what is refused."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

SCRIPT: Final = Path(__file__).resolve().parents[2] / "packaging" / "deb.sh"
pytestmark = pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="no dpkg-deb")


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


def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C"})


def test_the_package_puts_the_same_files_at_the_same_place(prefix: Path, tmp_path: Path) -> None:
    done = run(SCRIPT, prefix, tmp_path / "out")
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
    assert depends == f"libc6, python3 (>= 3.{minor}), python3 (<< 3.{minor + 1})"


def test_a_shared_place_and_an_empty_one_are_refused(tmp_path: Path) -> None:
    assert "place of its own" in run(SCRIPT, "/usr", tmp_path).stderr
    assert "is not installed there" in run(SCRIPT, tmp_path, tmp_path).stderr
    assert not list(tmp_path.glob("*.deb"))
