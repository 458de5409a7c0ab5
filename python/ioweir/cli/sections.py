"""The group of all commands: by section in `--help`; mistakes on the command line with what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from typer import BadParameter
from typer.core import TyperGroup

if TYPE_CHECKING:
    from typing import Any


_WORDS: Final = (
    ("is not a valid int.", "is no whole number."),
    ("is not a valid float.", "is no number."),
    ("is not readable.", "is not readable for you. Its owner can change that: chmod -R go+rX."),
    ("does not exist.", "does not exist. Check the path."),
    ("is a file.", "is a file. Name a directory."),
    ("is a directory.", "is a directory. Name a file."),
)
"""Ends of messages of the library of the command line, and what ioweir says instead."""

_EXAMPLES: Final = {"link": "mpicc -o my_simulation main.c"}
_EXAMPLE: Final = "mpirun -n 4 ./my_simulation input.nml"


class Sections(TyperGroup):
    """A group of commands whose help has a section for each of their panels, as plain text."""

    def invoke(self, ctx: Any) -> Any:
        """Carry out what was asked for; a mistake in a command's options gets what to do."""
        try:
            return super().invoke(ctx)
        except BadParameter as error:
            _advise(error)
            raise

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the sections in the order in which the commands were added."""
        sections: dict[str, list[Any]] = {}
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is not None and not command.hidden:
                sections.setdefault(str(getattr(command, "rich_help_panel", "Commands")), []).append(command)
        width = max((len(name) for name in self.list_commands(ctx)), default=0)
        limit = formatter.width - 6 - width
        for title, commands in sections.items():
            rows = [(f"{command.name:<{width}}", command.get_short_help_str(limit)) for command in commands]
            with formatter.section(title):
                formatter.write_dl(rows)


def _advise(error: BadParameter) -> None:
    """Make the message say what to write."""
    for theirs, ours in _WORDS:
        if error.message.endswith(theirs):
            error.message = error.message.removesuffix(theirs) + ours
            return
    context, param = error.ctx, error.param
    if not error.message and context is not None and param is not None:  # something is missing
        choices = param.metavar if "|" in (param.metavar or "") else None
        error.message = choices or getattr(param, "help", None) or ""
        if param.name == "command":
            example = _EXAMPLES.get(context.info_name or "", _EXAMPLE)
            error.message += f" Example: {context.command_path} -- {example}"
