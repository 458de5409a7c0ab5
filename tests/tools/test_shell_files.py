"""What `make install` puts under PREFIX/share: a man page of each command, and the completion of three shells.

Not here: what the commands do.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
import typer
from ioweir.cli.app import app

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path(__file__).resolve().parents[2]
BASH: Final = Path("share/bash-completion/completions/ioweir")


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the files were written."""
    place = tmp_path_factory.mktemp("prefix")
    subprocess.run([sys.executable, ROOT / "tools" / "shell_files.py", place], check=True)
    return place


def commands(command: Any, words: tuple[str, ...] = ("ioweir",)) -> Iterator[tuple[str, Any]]:
    """Each command of the command line, the whole among them, by the name of its page."""
    yield "-".join(words), command
    for name, below in getattr(command, "commands", {}).items():
        if not below.hidden:
            yield from commands(below, (*words, name))


def test_each_command_has_a_page_with_each_of_its_options(prefix: Path) -> None:
    pages = {page.stem: page.read_text(encoding="utf-8") for page in (prefix / "share/man/man1").iterdir()}
    wanted = dict(commands(typer.main.get_command(app)))
    assert set(pages) == set(wanted)
    assert len(pages) > 20
    for name, command in wanted.items():
        text = pages[name].replace(r"\-", "-")
        options = [option for param in command.params for option in param.opts if option.startswith("--")]
        missing = [option for option in options if option not in text]
        assert not missing, name


def test_names_are_whole_and_say_what_the_command_is_for(prefix: Path) -> None:
    for page in (prefix / "share/man/man1").iterdir():
        lines = page.read_text(encoding="utf-8").splitlines()
        name, _, what = lines[lines.index(".SH NAME") + 1].partition(r" \- ")
        assert name.replace("\\-", "-") == page.stem
        assert len(what) > 10, page
        assert not what.endswith(("...", ".")), page


@pytest.mark.skipif(shutil.which("groff") is None, reason="no groff")
def test_groff_finds_nothing_wrong(prefix: Path) -> None:
    for page in (prefix / "share/man/man1").iterdir():
        done = subprocess.run(
            ["groff", "-man", "-ww", "-z", "-Kutf8", "-Tutf8", page], capture_output=True, text=True, check=True
        )
        assert done.stderr == "", page


def of_bash(script: str) -> str:
    """What bash prints."""
    return subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True).stdout


def test_bash_completes_commands_with_the_installed_file(prefix: Path) -> None:
    source = f'PATH="{Path(sys.executable).parent}:$PATH"; source "{prefix / BASH}"'
    function = re.search(r"-F (\S+) ioweir", of_bash(f"{source}; complete -p ioweir"))
    assert function
    words = "COMP_WORDS=(ioweir find); COMP_CWORD=1"
    assert of_bash(f'{source}; {words}; {function[1]} ioweir; echo "${{COMPREPLY[@]}}"').split() == ["findings"]
