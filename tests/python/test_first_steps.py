"""`ioweir` without arguments, the sections of its help, completion of shells, --color and NO_COLOR."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer.main
from ioweir.base import color
from ioweir.cli.app import _of_command, app, help_page
from ioweir.cli.start import HELP_COLUMNS, ready_answer
from ioweir.report.report_text import console_for, say
from typer.testing import CliRunner

SECTIONS = ["Watch", "Understand", "Improve", "Files", "Storage"]


def test_without_arguments_it_says_what_to_do_first() -> None:
    done = CliRunner().invoke(app, [])
    assert done.exit_code == 0
    commands = re.findall(r"^ {2}ioweir (\S+)", done.output, re.MULTILINE)
    assert commands == ["run", "findings", "findings", "run", "compare"]


def test_help_has_every_command_in_one_section() -> None:
    text = CliRunner().invoke(app, ["--help"]).output
    starts = [text.index(f"\n{title}:\n") for title in SECTIONS]
    assert starts == sorted(starts)
    listed = re.findall(r"^ {2}([a-z]+(?:-[a-z]+)?) {2,}\S", text[starts[0] :].split("Exit codes")[0], re.MULTILINE)
    assert sorted(listed) == sorted(typer.main.get_command(app).commands)  # type: ignore[attr-defined]


@pytest.mark.parametrize("words", [[], ["--help"], ["--version"], ["--help", "--version"]], ids=" ".join)
def test_help_of_all_is_printed_without_the_options_of_commands(words: list[str]) -> None:
    bare = _of_command(words)
    commands = typer.main.get_command(bare).commands  # type: ignore[attr-defined]
    assert not [name for name, command in commands.items() if command.params]
    assert typer.main.get_command(app).commands["run"].params, "the whole is as it was"  # type: ignore[attr-defined]
    assert CliRunner().invoke(bare, words).output == CliRunner().invoke(app, words).output


@pytest.mark.parametrize("words", [[], ["--version"]], ids=" ".join)
def test_ready_answers_are_those_of_the_command_line(words: list[str]) -> None:
    assert ready_answer(["ioweir", *words]) == CliRunner().invoke(app, words).output


@pytest.mark.parametrize("words", [[], ["--help"]], ids=str)
def test_no_line_is_wider_than_a_terminal(monkeypatch: pytest.MonkeyPatch, words: list[str]) -> None:
    monkeypatch.setenv("COLUMNS", str(HELP_COLUMNS))
    text = ready_answer(["ioweir", *words])
    assert text is not None
    assert [line for line in text.splitlines() if len(line) > HELP_COLUMNS] == []


def test_the_page_of_help_is_up_to_date(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(HELP_COLUMNS))
    assert ready_answer(["/anywhere/ioweir", "--help"]) == help_page(), "tools/generate.py --docs docs/reference"


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (HELP_COLUMNS - 1, ["ioweir", "--help"]),
        (HELP_COLUMNS, ["ioweir/__main__.py", "--help"]),
        (HELP_COLUMNS, ["ioweir", "run", "--help"]),
    ],
)
def test_other_help_is_made_anew(monkeypatch: pytest.MonkeyPatch, columns: int, words: list[str]) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    assert ready_answer(words) is None


@pytest.mark.parametrize(
    ("code", "more"),
    [
        ("import ioweir", {"typing"}),
        ("from ioweir.cli.start import main; sys.argv[:] = ['ioweir', '--help']; main()", {"pathlib", "typer"}),
        ("from ioweir.cli.start import main; sys.argv[:] = ['ioweir', '--version']; main()", {"email", "typer"}),
        ("from ioweir.cli.app import main; sys.argv[1:] = ['--help']; main()", set()),
        ("import ioweir.cli.app, ioweir.launch.run", {"email", "statistics", "tempfile"}),
    ],
)
def test_what_is_asked_for_most_loads_no_large_library(code: str, more: set[str]) -> None:
    large = {"dask", "numpy", "pyarrow", "rich", "scipy", "vl_convert", "zstandard", "ioweir._core"} | more
    check = f"import atexit, os, sys; atexit.register(lambda: {large} & set(sys.modules) and os._exit(9)); {code}"
    environment = {**os.environ, "COLUMNS": str(HELP_COLUMNS)}
    subprocess.run([sys.executable, "-c", check], stdout=subprocess.DEVNULL, env=environment, check=True)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_are_told_how_to_complete(shell: str) -> None:
    assert "complete_" + shell in asked({"_IOWEIR_COMPLETE": f"source_{shell}"})


def test_commands_are_completed() -> None:
    words = {"_IOWEIR_COMPLETE": "complete_bash", "COMP_WORDS": "ioweir merge-", "COMP_CWORD": "1"}
    assert asked(words).split() == ["merge-trace", "merge-sums"]


def asked(variables: dict[str, str]) -> str:
    command = str(Path(sys.executable).parent / "ioweir")
    return subprocess.run([command], env={**os.environ, **variables}, capture_output=True, text=True, check=True).stdout


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("wanted", "coloured"), [("", True), ("1", False)])
def test_no_color_is_honoured(monkeypatch: pytest.MonkeyPatch, wanted: str, coloured: bool) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("NO_COLOR", wanted)
    stream = Terminal()
    with console_for(stream) as console:
        say(console, "text", "yellow")
    assert ("\x1b[33m" in stream.getvalue()) == coloured
    assert "text" in stream.getvalue()


@pytest.mark.parametrize(
    ("word", "no_color", "on_terminal", "in_file"),
    [
        ("auto", "", True, False),
        ("auto", "1", False, False),
        ("always", "", True, True),
        ("always", "1", True, True),
        ("never", "", False, False),
    ],
)
def test_color_is_as_asked_for(
    monkeypatch: pytest.MonkeyPatch, word: str, no_color: str, on_terminal: bool, in_file: bool
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("NO_COLOR", no_color)
    monkeypatch.setattr(color, "_wanted", word)
    for stream, coloured in ((Terminal(), on_terminal), (io.StringIO(), in_file)):
        with console_for(stream) as console:
            say(console, "te\x1b[2Jxt", "yellow")
        assert ("\x1b[33m" in stream.getvalue()) == coloured
        assert "te\\x1b[2Jxt" in stream.getvalue()


def test_color_stands_before_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(color, "_wanted", color.AUTO)
    assert CliRunner().invoke(app, ["--color", "never", "kernel", "--list"]).exit_code == 0
    assert color.no_color() is True
    wrong = CliRunner().invoke(app, ["--color", "blue", "kernel", "--list"])
    assert "--color 'blue': write auto, always or never" in str(wrong.exception)
