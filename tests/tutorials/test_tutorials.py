"""Every command of docs/tutorials is executed, and what it prints is compared with the page.

A page's blocks, in order: `sh`, `toml` and `cpp` blocks whose first line is a comment with a file name become that
file; in `console` blocks a line that begins with `$ ` is a command, and the lines below are what it prints: in this
order, with `[...]` for anything. Measured times and rates (ms, MiB/s, % at the beginning of a line) may differ, other
numbers not.
A lab is named by the process, not "tutorial": there is one of a name on a machine, where several may test at a time.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

PAGES: Final = sorted((Path(__file__).resolve().parents[2] / "docs" / "tutorials").glob("*.md"))
BLOCK: Final = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MEASURED: Final = re.compile(r"\d[\d.,]* (?:ns|us|ms|s|[KMG]?i?B/s)(?![\w/])|^ *\d+ %")
ANYTHING: Final = "[...]"
LAB_NAME: Final = ("--name tutorial", f"--name tutorial-{os.getpid()}")
ENVIRONMENT: Final = {
    "IOWEIR_SOURCE": str(Path(__file__).resolve().parents[2]),
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
}


def pattern_of(line: str) -> str:
    """A line of the page as a regular expression."""
    parts = []
    for part in line.split(ANYTHING):
        pieces, at = [], 0
        for match in MEASURED.finditer(part):
            unit = r" *\d+ %" if match[0].endswith("%") else r"\d[\d.,]* [num]?[KMG]?i?[sB](?:/s)?"
            pieces += [words(part[at : match.start()]), unit]
            at = match.end()
        parts.append("".join([*pieces, words(part[at:])]))
    return ".*".join(parts)


def words(text: str) -> str:
    """Literal text; columns may be wider."""
    return r" +".join(re.escape(word) for word in re.split(r" +", text))


def compare(command: str, expected: list[str], printed: str) -> None:
    """The expected lines, in order; without `[...]` between two they follow each other."""
    lines = [line.rstrip() for line in printed.splitlines()]
    at, anywhere = 0, False
    for line in expected:
        if line.strip() == ANYTHING:
            anywhere = True
            continue
        wanted = re.compile(pattern_of(line.rstrip()))
        last = len(lines) if anywhere else min(at + 1, len(lines))
        found = next((number for number in range(at, last) if wanted.fullmatch(lines[number])), None)
        assert found is not None, f"$ {command}\ndoes not print\n{line}\nfrom line {at + 1} on, but\n{printed}"
        at, anywhere = found + 1, False


def run_block(text: str, folder: Path) -> int:
    """The commands of a console block; how many lines of what they print were compared."""
    compared = 0
    commands: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            commands.append((line[2:], []))
        else:
            commands[-1][1].append(line)
    for command, expected in commands:
        done = subprocess.run(
            ["sh", "-c", command.replace(*LAB_NAME)], cwd=folder, env={**os.environ, **ENVIRONMENT},
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"$ {command}\n{done.stdout}{done.stderr}"
        compare(command, expected, done.stdout)
        compared += sum(line.strip() != ANYTHING for line in expected)
    return compared


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_the_page_is_true(page: Path, tmp_path: Path) -> None:
    compared = 0
    for kind, text in BLOCK.findall(page.read_text(encoding="utf-8")):
        if kind == "console":
            compared += run_block(text, tmp_path)
        elif kind in {"sh", "toml", "cpp"}:
            name = text.splitlines()[0].removeprefix("// ").removeprefix("# ")
            assert re.fullmatch(r"[\w.-]+", name), f"a block without a file name: {text}"
            (tmp_path / name).write_text(text, encoding="utf-8")
    assert compared > 0


def test_another_number_is_seen() -> None:
    line = "POSIX   lock       20              132 us  rank 0: 72.7 us       9.12 us"
    compare("", [line], "POSIX  lock   20   1.5 ms  rank 0: 1 ms   10 us")
    compare("", ["[...]", line], f"something\nelse\n{line}")
    for wrong in (line.replace("20", "21"), line.replace("lock", "unlock"), f"something\n{line}", ""):
        with pytest.raises(AssertionError, match="does not print"):
            compare("", [line], wrong)
