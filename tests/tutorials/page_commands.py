"""What the tests of pages share: the blocks of a page, commands that are executed, and what they print compared.

In `console` blocks a line that begins with `$ ` is a command, and the lines below are what it prints: in this order,
with `[...]` for anything. Measured times and rates (ms, MiB/s, % at the beginning of a line or of the run) and the
severity of a finding may differ, other numbers not. A lab is named by the process, not "tutorial": there is one of a
name on a machine, where several may test at a time.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer.main
from ioweir.cli.app import app

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT: Final = Path(__file__).resolve().parents[2]
BLOCK: Final = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MEASURED: Final = re.compile(
    r"\d[\d.,]* (?:ns|us|ms|s|[KMG]?i?B/s)(?![\w/])|^ *\d+ %|\d+ %(?= of the run)|(?<=\[)(?:low|medium|high)(?=, )"
)
SEVERITY: Final = "(?:low|medium|high)"
ANYTHING: Final = "[...]"
LAB_NAME: Final = ("--name tutorial", f"--name tutorial-{os.getpid()}")
ENVIRONMENT: Final = {
    "IOWEIR_SOURCE": str(ROOT),
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
            unit = SEVERITY if re.fullmatch(SEVERITY, match[0]) else unit
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


def commands_of(text: str) -> list[tuple[str, list[str]]]:
    """The commands of a console block, each with the lines that it is to print."""
    commands: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            commands.append((line[2:], []))
        else:
            commands[-1][1].append(line)
    return commands


def run_command(command: str, expected: list[str], folder: Path, environment: Mapping[str, str] | None = None) -> int:
    """Run one command, which has to succeed; how many lines of what it prints were compared.

    Standard error comes behind standard output, as on a terminal: `ioweir run` says there what costs most.
    """
    done = subprocess.run(
        ["sh", "-c", command.replace(*LAB_NAME)], cwd=folder, env={**os.environ, **ENVIRONMENT, **(environment or {})},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"$ {command}\n{done.stdout}{done.stderr}"
    compare(command, expected, done.stdout + done.stderr)
    return sum(line.strip() != ANYTHING for line in expected)


def write_file(text: str, folder: Path) -> None:
    """A block whose first line is a comment with the name of the file that it becomes."""
    name = text.splitlines()[0].removeprefix("// ").removeprefix("# ")
    assert re.fullmatch(r"[\w.-]+", name), f"a block without a file name: {text}"
    (folder / name).write_text(text, encoding="utf-8")


def commands_within(text: str) -> int:
    """How many commands stand within sentences. Each is one of ioweir or make, with options that it has, or a tool."""
    found = 0
    for span in re.findall(r"`([^`\n]+)`", BLOCK.sub("", text)):
        words = re.split(r" --(?= |$)", span)[0].split()
        if len(words) > 1 and words[0] in {"ioweir", "make"}:
            (_check_options if words[0] == "ioweir" else _check_target)(words, span)
            found += 1
        elif words and words[0].startswith("tools/"):
            assert (ROOT / words[0]).is_file(), span
            found += 1
    return found


def _check_options(words: list[str], span: str) -> None:
    """That ioweir has the command, or the command of a group such as `lab up`, and the options."""
    if words[1].startswith("-") or words[1] == "COMMAND":
        return
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    assert words[1] in commands, span
    command = commands[words[1]]
    if len(words) > 2 and words[2] in getattr(command, "commands", {}):
        command = command.commands[words[2]]
    options = {option for parameter in command.params for option in parameter.opts + parameter.secondary_opts}
    asked = [word.partition("=")[0] for word in words[2:] if word.startswith("-")]
    assert [word for word in asked if word not in options | {"--help"}] == [], span


def _check_target(words: list[str], span: str) -> None:
    """That the Makefile has what is to be made."""
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert words[1] in targets, span
