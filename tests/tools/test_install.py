"""tools/install.sh with a made-up Python: what was installed before goes only when the new one runs."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

SCRIPT: Final = Path(__file__).resolve().parents[2] / "tools" / "install.sh"
PYTHON: Final = """#!/bin/sh
case "$*" in
    "-m venv "*) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
    "-m pip "*) {pip} && printf '#!/bin/sh\\n{command}\\n' >"${{0%/*}}/ioweir" && chmod +x "${{0%/*}}/ioweir" ;;
esac
"""


def executable(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    place = tmp_path / "checkout"
    (place / "tools").mkdir(parents=True)
    shutil.copy(SCRIPT, place / "tools")
    executable(place / "tools" / "find_python.sh", f"#!/bin/sh\necho {place}/python3\n")
    executable(place / ".venv" / "bin" / "python", "#!/bin/sh\n")
    (place / "requirements.lock").write_text("", encoding="utf-8")
    (place / "build" / "wheel").mkdir(parents=True)
    (place / "build" / "wheel" / "ioweir.whl").write_bytes(b"")
    return place


def install(checkout: Path, pip: str = ":", command: str = "echo new") -> subprocess.CompletedProcess[str]:
    executable(checkout / "python3", PYTHON.format(pip=pip, command=command))
    words = [checkout / "tools" / "install.sh", checkout.parent / "prefix"]
    return subprocess.run(words, capture_output=True, text=True, check=False)


def installed(checkout: Path) -> str:
    command = checkout.parent / "prefix" / "bin" / "ioweir"
    return subprocess.run([command], capture_output=True, text=True, check=True).stdout.strip()


def test_a_newer_version_takes_the_place_of_an_older(checkout: Path) -> None:
    for version in ("1", "2"):
        done = install(checkout, command=f"echo {version}")
        assert done.returncode == 0, done.stderr
        assert installed(checkout) == version
    assert [path.name for path in (checkout.parent / "prefix" / "lib").iterdir()] == ["ioweir"]


@pytest.mark.parametrize(
    ("pip", "command"), [("false", "echo 2"), (":", "exit 1")], ids=["nothing fetched", "it does not run"]
)
def test_what_could_not_be_installed_leaves_what_was_there(checkout: Path, pip: str, command: str) -> None:
    assert install(checkout, command="echo 1").returncode == 0
    done = install(checkout, pip, command)
    assert done.returncode != 0
    assert "is what it was before" in done.stderr
    assert installed(checkout) == "1"
    assert [path.name for path in (checkout.parent / "prefix" / "lib").iterdir()] == ["ioweir"]


def test_an_installation_that_was_killed_is_no_older_version(checkout: Path) -> None:
    assert install(checkout, command="echo 1").returncode == 0
    library = checkout.parent / "prefix" / "lib"
    (library / "ioweir").rename(library / ".ioweir-before")
    (library / "ioweir").mkdir()
    assert install(checkout, "false").returncode != 0
    assert installed(checkout) == "1"
    assert install(checkout, command="echo 2").returncode == 0
    assert installed(checkout) == "2"
