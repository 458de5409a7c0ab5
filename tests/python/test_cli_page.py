"""The reference page says what the command line does: same exit codes, every command and option."""

from __future__ import annotations

from pathlib import Path

import typer.main
from ioweir.cli.app import app
from ioweir.errors import EXIT_CODES

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "cli.md"


def test_every_exit_code_has_its_row() -> None:
    rows = [line.replace("`", "") for line in PAGE.read_text(encoding="utf-8").splitlines()]
    for code, meaning in EXIT_CODES:
        assert f"| {code} | {meaning} |" in rows


def test_every_command_and_option_is_described() -> None:
    text = PAGE.read_text(encoding="utf-8")
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    assert set(commands) == {
        "run", "env", "link", "report", "merge-trace", "compare", "doctor", "kernel", "explain", "merge", "ls", "check",
        "probe", "lab", "gc", "timeline", "convert", "findings", "import", "export", "simulate", "calibrate",
        "compress", "merge-sums",
        "tune", "replay", "make-benchmark", "site", "defaults",
    }  # fmt: skip
    for name, command in commands.items():
        section = text.split(f"## ioweir {name}\n")[1].split("\n## ")[0]
        # A group such as lab: its commands' options are in its section.
        for parameter in [
            *command.params,
            *(p for part in getattr(command, "commands", {}).values() for p in part.params),
        ]:
            options = [option for option in parameter.opts if option.startswith("-")]
            if options and "--help" not in options:
                assert any(f"{option}{end}" in section for option in options for end in " ]`"), (name, options)
