"""Every command of README.md is executed and what it prints compared (page_commands.py), or named here with the reason.

my_simulation.c is the program of the page. Commands within sentences are looked up: that there is such a command,
option or target of make.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from page_commands import BLOCK, ROOT, commands_of, commands_within, run_command

HERE: Final = Path(__file__).resolve().parent
TEXT: Final = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS: Final[list[tuple[str, str]]] = BLOCK.findall(TEXT)
COMMANDS: Final = [command for _, text in BLOCKS for command, _ in commands_of(text)]
NOT_RUN: Final = {
    "make install PREFIX=$HOME/.local": "installs packages of the system, builds for minutes (tools/fresh-debian.sh)",
    "make demo": "takes minutes, and needs LAMMPS (tools/fresh-debian.sh)",
    "make test": "runs this test",
    ".venv/bin/ioweir tune demo-output/before --measure -o demo-output/plan.toml --force --budget 60s": "a step of "
    "`make demo`, which replays what that has traced",
}
"""Commands that cannot be run here, and why."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where a reader's program lies; `mpirun` is Open MPI's there, as on a machine with one MPI library."""
    (tmp_path / "input.nml").write_text("&run steps = 1 /\n", encoding="utf-8")
    (tmp_path / "bin").mkdir()
    launcher = shutil.which("mpirun.openmpi")
    assert launcher, "make deps installs Open MPI"
    (tmp_path / "bin" / "mpirun").symlink_to(launcher)
    program = [str(HERE / "my_simulation.c"), "-o", str(tmp_path / "my_simulation")]
    subprocess.run(["mpicc.openmpi", "-O1", "-Wall", "-Werror", *program], check=True)
    return tmp_path


def test_the_commands_do_what_the_page_says(folder: Path) -> None:
    path = f"{folder / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {"PATH": path, "OMPI_MCA_rmaps_base_oversubscribe": "1"}
    compared = 0
    for _, text in BLOCKS:
        for command, expected in commands_of(text):
            if command not in NOT_RUN:
                compared += run_command(command, expected, folder, environment)
    assert compared > 5


def test_no_command_hides_in_another_form() -> None:
    assert {kind for kind, _ in BLOCKS} == {"console"}
    without = BLOCK.sub("", TEXT)
    assert "```" not in without
    assert re.findall(r"^    .*$", without, re.MULTILINE) == []


def test_what_is_not_run_is_on_the_page() -> None:
    assert [command for command in NOT_RUN if command not in COMMANDS] == []


def test_commands_within_sentences_exist() -> None:
    assert commands_within(TEXT) > 5
