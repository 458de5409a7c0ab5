"""What a newcomer meets: the text of `ioweir` without arguments, and commands by section in `--help`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from typer.core import TyperGroup

if TYPE_CHECKING:
    from typing import Any

FIRST_STEPS: Final = (
    "ioweir watches the I/O of an MPI program, says what it costs, and can move the same bytes in a better way.",
    "",
    "First, run your program as always, with `ioweir run -o before --` in front of it:",
    "  ioweir run -o before -- mpirun -n 4 ./my_simulation input.nml",
    "It ends with what costs most. Everything that was found, with the evidence and what to do:",
    "  ioweir findings before",
    "A finding may have a plan that helps, a small file. Try it, and look whether it did:",
    "  ioweir findings before --plan CODE > plan.toml",
    "  ioweir run -o after --plan plan.toml --verify -- mpirun -n 4 ./my_simulation input.nml",
    "  ioweir compare before after",
    "",
    "No program at hand? `ioweir kernel lattice` is one. All commands: ioweir --help",
)


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
