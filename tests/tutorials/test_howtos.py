"""Every command of docs/how-to and of docs/index.md is executed, or named in howtos.py with the reason why not.

A block of a page is one script of the shell, with two ranks of my_simulation.c in the place of a cluster's job. That
the commands succeed is tested, not what they print: README and tutorials are compared (test_readme.py,
test_tutorials.py). Plans in `toml` blocks are read.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import phasta_files
import pytest
from howtos import EVERYWHERE, PAGES, Page
from ioweir.plan.plan_check import check_plan
from markdown_it import MarkdownIt
from page_commands import ENVIRONMENT, ROOT, commands_within
from sets import contents

DOCS: Final = ROOT / "docs"
HERE: Final = Path(__file__).resolve().parent
WITH_COMMANDS: Final = [*sorted((DOCS / "how-to").glob("*.md")), DOCS / "index.md", DOCS / "faq.md"]


def blocks_of(page: Path, kind: str) -> list[str]:
    """Of the indented blocks (`code_block`) or of those with a language (`fence`), the texts."""
    tokens = MarkdownIt("commonmark").enable("table").parse(page.read_text(encoding="utf-8"))
    return [token.content for token in tokens if token.type == kind and token.info not in {"python", "{toctree}"}]


def scripts_of(page: Path) -> list[str]:
    """The blocks of commands. Others show what a command prints."""
    blocks = blocks_of(page, "code_block")
    return [block for block in blocks if page.stem != "read-a-finding" and block.strip()]


def name_of(page: Path) -> str:
    return str(page.relative_to(DOCS))


def runnable(block: str, page: Page) -> str:
    """A block without what cannot be run, with this machine's words in the place of a cluster's."""
    kept = []
    continues = False
    for line in block.splitlines():
        leave_out = continues or line.strip().startswith(tuple(page.not_run))
        continues = leave_out and line.rstrip().endswith("\\")
        if not leave_out:
            kept.append(line)
    text = "\n".join(kept)
    for pattern, here in EVERYWHERE:
        text = re.sub(pattern, here, text)
    for words, here in page.instead:
        text = text.replace(words, here)
    return text


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where a reader works: a program, Open MPI's commands under their plain names, and a set of PHASTA's."""
    (tmp_path / "input.nml").write_text("&run steps = 1 /\n", encoding="utf-8")
    shutil.copy(HERE / "my_simulation.c", tmp_path)
    (tmp_path / "bin").mkdir()
    for name in ("mpirun", "mpicc", "mpicxx"):
        found = shutil.which(f"{name}.openmpi")
        assert found, "make deps installs Open MPI"
        (tmp_path / "bin" / name).symlink_to(found)
    subprocess.run(["mpicc.openmpi", "-O1", "my_simulation.c", "-o", "my_simulation"], cwd=tmp_path, check=True)
    phasta_files.write(tmp_path / "restart-dat.10.1", contents(range(1, 13)))
    return tmp_path


@pytest.mark.one_of(3)
@pytest.mark.parametrize("page", WITH_COMMANDS, ids=[page.stem for page in WITH_COMMANDS])
def test_the_commands_succeed(page: Path, folder: Path) -> None:
    spec = PAGES[name_of(page)]
    path = f"{folder / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, **ENVIRONMENT, "PATH": path, "OMPI_MCA_rmaps_base_oversubscribe": "1"}
    for script in [*spec.before, *(runnable(block, spec) for block in scripts_of(page))]:
        done = subprocess.run(
            ["bash", "-ec", script],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"


@pytest.mark.parametrize("page", WITH_COMMANDS, ids=[page.stem for page in WITH_COMMANDS])
def test_plans_on_the_page_can_be_carried_out(page: Path, tmp_path: Path) -> None:
    for number, text in enumerate(blocks_of(page, "fence")):
        plan = tmp_path / f"{number}.toml"
        plan.write_text(text, encoding="utf-8")
        assert check_plan(plan, None) == text


def test_every_page_is_looked_at_and_what_is_not_run_is_there() -> None:
    assert sorted(PAGES) == sorted(name_of(page) for page in WITH_COMMANDS)
    for page in WITH_COMMANDS:
        lines = [line.strip() for block in scripts_of(page) for line in block.splitlines()]
        not_run = PAGES[name_of(page)].not_run
        assert [start for start in not_run if not any(line.startswith(start) for line in lines)] == []


@pytest.mark.parametrize("page", WITH_COMMANDS, ids=[page.stem for page in WITH_COMMANDS])
def test_commands_within_sentences_exist(page: Path) -> None:
    commands_within(page.read_text(encoding="utf-8"))
