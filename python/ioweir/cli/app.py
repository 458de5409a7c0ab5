"""The command line: which commands there are, errors and exit codes.

A command's options and help lie in the module of its group beside this one, what it does in the package of that name.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ioweir.base import plain_text
from ioweir.cli import compare, containers, launch, plan, predict, replay, report, targets
from ioweir.cli.arguments import COMMAND
from ioweir.errors import EXIT_CODES, EXIT_FAILED, IoweirError

if TYPE_CHECKING:
    from collections.abc import Callable

# \b keeps click from joining the lines.
_EPILOG = "\b\nExit codes:\n" + "\n".join(f"  {code:<6} {meaning}" for code, meaning in EXIT_CODES)

app = typer.Typer(
    name="ioweir",
    help="Watches the I/O of an unmodified MPI program, explains where its time went, applies a plan underneath it.",
    epilog=_EPILOG,
    rich_markup_mode=None,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _print_version(asked: bool) -> None:
    if asked:
        from ioweir.launch.run import ioweir_version  # noqa: PLC0415

        print(f"ioweir {ioweir_version()}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version.")
    ] = False,
) -> None:
    pass


# In the order of help.
app.command(context_settings=COMMAND)(launch.run)
app.command()(launch.env)
app.command(context_settings=COMMAND)(launch.link)
app.command()(report.report)
app.command()(report.findings)
app.command()(report.timeline)
app.command("merge-trace")(report.merge_trace)
app.command("merge-sums")(report.merge_sums)
app.command()(report.compress)
app.command()(report.export)
app.command("import")(report.import_log)
app.command(cls=compare.TwoSides)(compare.compare)
app.command(context_settings=COMMAND)(launch.doctor)
app.command()(launch.kernel)
app.command()(plan.explain)
app.command()(predict.simulate)
app.command()(predict.tune)
app.command()(predict.calibrate)
app.command()(replay.replay)
app.command("make-benchmark")(replay.make_benchmark)
app.command()(containers.merge)
app.command()(containers.convert)
app.command()(containers.ls)
app.command()(containers.check)
app.command()(targets.probe)
app.command()(containers.gc)
app.add_typer(targets.lab_app, name="lab")


def compiler() -> None:
    """Entry point of ioweir-mpicc and its relatives: the compiler they are named after, with ioweir linked in."""
    from ioweir.programs import linking  # noqa: PLC0415

    name = Path(sys.argv[0]).name.removeprefix(linking.WRAPPER_PREFIX)
    _report_errors(lambda: linking.execute([name, *sys.argv[1:]]))


def main() -> None:
    """Entry point of the console script."""
    _report_errors(app)


def _report_errors(work: Callable[[], object]) -> None:
    """Every error of ours is one line on stderr and an exit code."""
    plain_text.guard_standard_streams()
    try:
        work()
    except IoweirError as error:
        print(plain_text.line(f"ioweir: {error}"), file=sys.stderr)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # The reader of our output has gone; nothing is left to be said to it.
        sys.stderr.close()
        sys.exit(EXIT_FAILED)
    except OSError as error:
        print(plain_text.line(f"ioweir: {error.filename or 'I/O'}: {error.strerror}"), file=sys.stderr)
        sys.exit(EXIT_FAILED)
