"""Arguments and options of commands of several groups, and how they print."""

from __future__ import annotations

from typing import Annotated

import typer

from ioweir.base import json_text

# Everything after the first word that is no option of ours belongs to the command, also without `--`.
COMMAND = {"allow_interspersed_args": False}

Command = Annotated[list[str], typer.Argument(metavar="-- CMD...", help="The command, as without ioweir.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]


def print_json(content: object) -> None:
    """As text that is safe on a terminal."""
    print(json_text.text(content, indent=1))
