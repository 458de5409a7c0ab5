"""`ioweir compare A... --to B...`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer.core import TyperCommand

from ioweir.base import plain_text, progress
from ioweir.cli.arguments import JsonOption
from ioweir.cli.printing import print_json
from ioweir.errors import EXIT_USAGE, IoweirError

if TYPE_CHECKING:
    from typing import Any

_TO = "--to"


class TwoSides(TyperCommand):
    """A command whose `--to` takes all words up to the next option."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Give every word behind `--to` an option of its own: --to B C -> --to B --to C."""
        spread: list[str] = []
        behind = False
        for at, word in enumerate(args):
            if word == _TO:
                behind = True
                if at + 1 == len(args) or args[at + 1].startswith("-"):
                    spread.append(word)  # which the parser complains about
            elif word.startswith("-") and word != "-":
                behind = False
                spread.append(word)
            else:
                spread += [_TO, word] if behind else [word]
        parsed: list[str] = super().parse_args(ctx, spread)
        return parsed


def compare(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="A...", help="Trace directories of the first side (or A B, of one run each)."),
    ],
    to: Annotated[list[Path] | None, typer.Option(_TO, metavar="B...", help="Those of the second side.")] = None,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write it as one web page that needs no network.")
    ] = None,
    as_json: JsonOption = False,
    force: Annotated[
        bool, typer.Option("--force", help="Compare runs of different programs, and partial traces.")
    ] = False,
) -> None:
    """Say what changed from some runs to others, and whether more than noise."""
    from ioweir.report import compare as comparison  # noqa: PLC0415
    from ioweir.report import compare_words  # noqa: PLC0415

    if to is None and len(runs) != 2:
        raise IoweirError(
            f"compare needs two sides: ioweir compare A B, or ioweir compare A... --to B... (got {len(runs)})",
            EXIT_USAGE,
        )
    before, after = (runs, to) if to else (runs[:1], runs[1:])
    with progress.shown("reading the runs", sys.stderr):
        result = comparison.compare_directories(before, after, force=force)
    if html is not None:
        from ioweir.html import compare_page  # noqa: PLC0415

        compare_page.write(html, result)
    if as_json:
        print_json(result)
    elif html is not None:
        plain_text.print_lines([f"written: {html}"])
    else:
        compare_words.write(result, sys.stdout)
