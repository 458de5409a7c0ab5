"""The command line: which commands there are, errors and exit codes.

A command's options and help lie in the module of its group beside this one, what it does in the package of that name.
"""

from __future__ import annotations

import copy
import os
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
import typer.main

from ioweir.base import color, plain_text
from ioweir.cli import compare, containers, defaults, ending, launch, plan, predict, replay, report, site, targets
from ioweir.cli.arguments import COMMAND
from ioweir.cli.sections import Sections
from ioweir.cli.start import COMPLETION, FIRST_STEPS, HELP_COLUMNS
from ioweir.errors import EXIT_CODES, EXIT_USAGE, IoweirError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# \b keeps click from joining the lines.
_EPILOG = "\b\nExit codes:\n" + "\n".join(
    textwrap.fill(meaning, HELP_COLUMNS - 2, initial_indent=f"  {code:<6} ", subsequent_indent=" " * 9)
    for code, meaning in EXIT_CODES
)

app = typer.Typer(
    name="ioweir",
    help="Watches the I/O of an unmodified MPI program, explains where its time went, applies a plan underneath it.",
    epilog=_EPILOG,
    cls=Sections,
    rich_markup_mode=None,
    invoke_without_command=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _print_version(asked: bool) -> None:
    if asked:
        from ioweir.base.version import ioweir_version  # noqa: PLC0415

        print(f"ioweir {ioweir_version()}")
        raise typer.Exit


@app.callback()
def _common(
    context: typer.Context,
    version: Annotated[  # noqa: ARG001 (its callback does it)
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version.")
    ] = False,
    colored: Annotated[
        str,
        typer.Option(
            "--color", metavar="auto|always|never", help="Color text; auto: on terminals, unless NO_COLOR is set."
        ),
    ] = color.AUTO,
    use_defaults: Annotated[
        bool, typer.Option("--defaults/--no-defaults", help="Take defaults of options from defaults.toml.")
    ] = True,
) -> None:
    try:
        color.choose(colored)
    except ValueError as error:
        raise IoweirError(f"--color {error}", EXIT_USAGE) from error
    if use_defaults and context.invoked_subcommand not in (None, "defaults"):
        context.default_map = defaults.default_map(lambda: typer.main.get_command(app))
    if context.invoked_subcommand is None:
        plain_text.print_lines(FIRST_STEPS)


# In the order of help, which has a section for each panel.
WATCH, UNDERSTAND, IMPROVE, FILES, STORAGE = "Watch", "Understand", "Improve", "Files", "Storage"
app.command(context_settings=COMMAND, rich_help_panel=WATCH)(launch.run)
app.command(rich_help_panel=WATCH)(launch.env)
app.command(context_settings=COMMAND, rich_help_panel=WATCH)(launch.link)
app.command(context_settings=COMMAND, rich_help_panel=WATCH)(launch.doctor)
app.command("import", rich_help_panel=WATCH)(report.import_log)
app.command(rich_help_panel=WATCH)(report.compress)
app.command(rich_help_panel=UNDERSTAND)(report.findings)
app.command(rich_help_panel=UNDERSTAND)(report.report)
app.command(rich_help_panel=UNDERSTAND)(report.timeline)
app.command(cls=compare.TwoSides, rich_help_panel=UNDERSTAND)(compare.compare)
app.command("merge-trace", rich_help_panel=UNDERSTAND)(report.merge_trace)
app.command("merge-sums", rich_help_panel=UNDERSTAND)(report.merge_sums)
app.command(rich_help_panel=UNDERSTAND)(report.export)
app.add_typer(site.site_app, name="site", rich_help_panel=UNDERSTAND)
app.command(rich_help_panel=IMPROVE)(plan.explain)
app.command(rich_help_panel=IMPROVE)(predict.tune)
app.command(rich_help_panel=IMPROVE)(predict.simulate)
app.command(rich_help_panel=IMPROVE)(predict.calibrate)
app.command(rich_help_panel=IMPROVE)(replay.replay)
app.command("make-benchmark", rich_help_panel=IMPROVE)(replay.make_benchmark)
app.command(rich_help_panel=IMPROVE)(launch.kernel)
app.command(rich_help_panel=FILES)(containers.ls)
app.command(rich_help_panel=FILES)(containers.check)
app.command(rich_help_panel=FILES)(containers.merge)
app.command(rich_help_panel=FILES)(containers.convert)
app.command(rich_help_panel=FILES)(containers.gc)
app.command(rich_help_panel=WATCH)(defaults.defaults)
app.command(rich_help_panel=STORAGE)(targets.probe)
app.add_typer(targets.lab_app, name="lab", rich_help_panel=STORAGE)


def compiler() -> None:
    """Entry point of ioweir-mpicc and its relatives: the compiler they are named after, with ioweir linked in."""
    from ioweir.programs import linking  # noqa: PLC0415

    name = Path(sys.argv[0]).name.removeprefix(linking.WRAPPER_PREFIX)
    ending.report_errors(lambda: linking.execute([name, *sys.argv[1:]]))


def main() -> None:
    """The command line; the console script begins in start.py."""
    if COMPLETION in os.environ:
        # Teaches click the shells that typer knows. The public way adds two options to every help.
        from typer._completion_classes import completion_init  # noqa: PLC0415

        completion_init()
        application = app
    else:
        application = _of_command(sys.argv[1:])
    ending.report_errors(application)


def help_page() -> str:
    """What `ioweir --help` prints on a terminal of start.HELP_COLUMNS columns or more."""
    command = typer.main.get_command(app)
    # Two columns are left free at the right, as when it is printed.
    context = command.make_context("ioweir", [], resilient_parsing=True, terminal_width=HELP_COLUMNS - 2)
    return f"{command.get_help(context)}\n"


def _of_command(words: Sequence[str]) -> typer.Typer:
    """With the command alone that is asked for: to make the options of all takes a tenth of a second.

    Help of all gets no command's options. Words that are no command, and options before a command, get the whole.
    """
    if set(words) <= {"--help", "--version"}:
        return _without_options(app)
    name = next((word for word in words if not word.startswith("-")), None)
    commands = [one for one in app.registered_commands if name in (one.name, getattr(one.callback, "__name__", None))]
    groups = [one for one in app.registered_groups if one.name == name]
    if len(commands) + len(groups) != 1 or words[0] != name:
        return app
    alone = copy.copy(app)
    alone.registered_commands = commands
    alone.registered_groups = groups
    return alone


def _without_options(application: typer.Typer) -> typer.Typer:
    """Its commands by their names and help texts, which is all that the help of all prints."""
    bare = copy.copy(application)
    bare.registered_commands = [copy.copy(command) for command in application.registered_commands]
    for command in bare.registered_commands:
        command.callback = _namesake(command.callback)
    bare.registered_groups = [copy.copy(group) for group in application.registered_groups]
    for group in bare.registered_groups:
        group.typer_instance = _without_options(group.typer_instance) if group.typer_instance else None
    return bare


def _namesake(command: Callable[..., object] | None) -> Callable[[], None]:
    """A function without parameters that has the same name and text."""

    def nothing() -> None:
        pass

    nothing.__name__, nothing.__doc__ = getattr(command, "__name__", ""), command.__doc__
    return nothing
