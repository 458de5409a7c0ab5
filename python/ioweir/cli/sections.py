"""Commands by section in `--help`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typer.core import TyperGroup

if TYPE_CHECKING:
    from typing import Any


class Sections(TyperGroup):
    """A group of commands whose help has a section for each of their panels, as plain text."""

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
