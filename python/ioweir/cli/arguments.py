"""Arguments and options of commands of several groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from ioweir.errors import EXIT_USAGE, IoweirError

if TYPE_CHECKING:
    from collections.abc import Iterable

# Everything after the first word that is no option of ours belongs to the command, also without `--`.
COMMAND = {"allow_interspersed_args": False}

Command = Annotated[list[str], typer.Argument(metavar="-- CMD...", help="The command, as without ioweir.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]


_LARGEST: Final = (1 << 31) - 1


def fits(param: typer.CallbackParam, value: int | None) -> int | None:
    """An option's whole number, for what takes 32 bits: the compiled part does."""
    if value is not None and abs(value) > _LARGEST:
        raise IoweirError(f"{param.opts[0]} {value}: write a number up to {_LARGEST}", EXIT_USAGE)
    return value


def uses_defaults(context: typer.Context) -> bool:
    """Whether defaults.toml counts: unless the command line began with --no-defaults."""
    return bool(context.find_root().params.get("use_defaults", True))


def was_typed(context: typer.Context, name: str) -> bool:
    """Whether an option stands on the command line: what stands in defaults.toml is nobody's word about this run."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def refuse_typed(context: typer.Context, names: Iterable[str], why: str) -> None:
    """An error at the first of some options that was typed: what has no effect is not passed over in silence."""
    options = {param.name: max(param.opts, key=len) for param in context.command.params}
    for name in names:
        if was_typed(context, name):
            raise IoweirError(f"{options[name]} {why}", EXIT_USAGE)
