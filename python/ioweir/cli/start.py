"""The console script: what it can answer without the command line's library, and else the command line.

`ioweir --help`, `ioweir --version` and `ioweir` alone are what newcomers and scripts ask for most. To load typer and
the commands took three quarters of their time, so their answers are kept ready: help.txt is what `ioweir --help`
prints (tools/generate.py --docs docs/reference writes it, a test compares it). So it is with plain reports and findings
(show.py).
"""

from __future__ import annotations

import os
import sys

COMPLETION = "_IOWEIR_COMPLETE"
"""Set by a shell that asks for completions (docs/reference/cli.md)."""

HELP = "help.txt"
HELP_COLUMNS = 80
"""Of terminals with as many columns or more; help is laid out anew for narrower ones."""

FIRST_STEPS = (
    "ioweir watches the I/O of an MPI program, says what it costs, and can move the",
    "same bytes in a better way.",
    "",
    "First, run your program as always, with `ioweir run -o before --` before it:",
    "  ioweir run -o before -- mpirun -n 4 ./my_simulation",
    "It ends with what costs most. All that was found, and what to do about it:",
    "  ioweir findings before",
    "A finding may have a plan that helps, a small file. Try it, and compare:",
    "  ioweir findings before --plan CODE > plan.toml",
    "  ioweir run -o after --plan plan.toml --verify -- mpirun -n 4 ./my_simulation",
    "  ioweir compare before after",
    "",
    "No program at hand? `ioweir kernel lattice` is one. All commands: ioweir --help",
)


def main() -> None:
    """Entry point of the console script."""
    text = None if COMPLETION in os.environ else ready_answer(sys.argv)
    if text is not None and _written(text):
        return
    if COMPLETION not in os.environ and sys.argv[1:2] in (["report"], ["findings"]):
        from ioweir.cli import ending, show  # noqa: PLC0415

        if (command := show.plain_command(sys.argv[1:])) is not None:
            ending.report_errors(command)
            return
    from ioweir.cli import app  # noqa: PLC0415

    app.main()


def ready_answer(words: list[str]) -> str | None:
    """What the command line would print, where that is known without it."""
    asked = words[1:]
    if not asked:
        return "".join(f"{line}\n" for line in FIRST_STEPS)
    if asked == ["--version"]:
        from ioweir.base.version import ioweir_version  # noqa: PLC0415

        return f"ioweir {ioweir_version()}\n"
    # Help begins with the name under which it was asked for.
    if asked == ["--help"] and os.path.basename(words[0]) == "ioweir" and _columns() >= HELP_COLUMNS:  # noqa: PTH119
        return _page()
    return None


def _page() -> str | None:
    """help.txt, where it is there."""
    try:
        with open(__file__.rsplit("/", 1)[0] + f"/{HELP}", encoding="ascii") as page:  # noqa: PTH123 (pathlib takes 5 ms)
            return page.read()
    except OSError:
        return None


def _columns() -> int:
    """Of the terminal, as shutil.get_terminal_size counts them."""
    try:
        columns = int(os.environ.get("COLUMNS", ""))
    except ValueError:
        columns = 0
    if columns > 0:
        return columns
    try:
        return os.get_terminal_size(sys.__stdout__.fileno()).columns or HELP_COLUMNS  # type: ignore[union-attr]
    except (AttributeError, ValueError, OSError):
        return HELP_COLUMNS


def _written(text: str) -> bool:
    """Whether all of it could be written: the command line tries again, and says what is wrong."""
    if sys.stdout is None:
        return False
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError:
        return False
    return True
