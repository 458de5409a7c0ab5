"""Each diff of docs/explanation/contributing.md applies to the tree, and the page says what each file of it is for."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[2]
PAGE: Final = (ROOT / "docs" / "explanation" / "contributing.md").read_text(encoding="utf-8")
DIFFS: Final[list[str]] = re.findall(r"^```diff\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
SECTIONS: Final = [section for section in re.split(r"^## ", PAGE, flags=re.MULTILINE) if "```diff\n" in section]


def why_not_applied(diff: str) -> str:
    """What git says of lines that are not in the tree; empty where the diff applies."""
    # Not the index: a tree that was unpacked has none.
    command = ["git", "apply", "--check", "-"]
    done = subprocess.run(command, cwd=ROOT, input=diff, capture_output=True, text=True, check=False)
    assert (done.returncode == 0) == (done.stderr == ""), done
    return done.stderr


@pytest.mark.parametrize("diff", DIFFS, ids=[section.splitlines()[0] for section in SECTIONS])
def test_diffs_apply(diff: str) -> None:
    assert why_not_applied(diff) == "", "write the lines around this example of the page anew"


def test_a_diff_whose_lines_have_changed_is_found() -> None:
    for diff in DIFFS:
        lines = diff.splitlines(keepends=True)
        context = next(at for at, line in enumerate(lines) if re.match(r" .*\w", line))
        lines[context] = " not in the tree\n"
        assert "patch does not apply" in why_not_applied("".join(lines))


@pytest.mark.parametrize("section", SECTIONS, ids=[section.splitlines()[0] for section in SECTIONS])
def test_every_file_of_a_diff_is_explained(section: str) -> None:
    text, _, diff = section.partition("```diff\n")
    files = re.findall(r"^\+\+\+ b/(.*)$", diff, re.MULTILINE)
    assert files
    assert [file for file in files if f"`{file}`" not in text and f"`{Path(file).name}`" not in text] == []


def test_there_is_one_diff_a_section() -> None:
    assert len(DIFFS) == len(SECTIONS) == 5
