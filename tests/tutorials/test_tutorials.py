"""Every command of docs/tutorials is executed, and what it prints is compared with the page (page_commands.py).

A page's blocks, in order: `sh`, `toml` and `cpp` blocks whose first line is a comment with a file name become that
file; the commands of `console` blocks are run.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import pytest
from page_commands import BLOCK, ROOT, commands_of, commands_within, compare, run_command, write_file

if TYPE_CHECKING:
    from pathlib import Path

PAGES: Final = sorted((ROOT / "docs" / "tutorials").glob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_the_page_is_true(page: Path, tmp_path: Path) -> None:
    compared = 0
    for kind, text in BLOCK.findall(page.read_text(encoding="utf-8")):
        if kind == "console":
            compared += sum(run_command(*command, tmp_path) for command in commands_of(text))
        elif kind in {"sh", "toml", "cpp"}:
            write_file(text, tmp_path)
    assert compared > 0


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_no_command_hides_in_another_form(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert {kind for kind, _ in BLOCK.findall(text)} <= {"console", "sh", "toml", "cpp"}
    without = BLOCK.sub("", text)
    assert "```" not in without
    assert re.findall(r"^    .*$", without, re.MULTILINE) == []
    commands_within(text)


def test_another_number_is_seen() -> None:
    line = "POSIX   lock       20              132 us  rank 0: 72.7 us       9.12 us"
    compare("", [line], "POSIX  lock   20   1.5 ms  rank 0: 1 ms   10 us")
    compare("", ["[...]", line], f"something\nelse\n{line}")
    for wrong in (line.replace("20", "21"), line.replace("lock", "unlock"), f"something\n{line}", ""):
        with pytest.raises(AssertionError, match="does not print"):
            compare("", [line], wrong)
