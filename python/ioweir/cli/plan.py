"""The command of ioweir.plan."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ioweir.cli.arguments import JsonOption, fits
from ioweir.cli.printing import print_result
from ioweir.errors import EXIT_USAGE, IoweirError


def explain(
    settings: Annotated[
        list[str] | None, typer.Argument(metavar="NAME=VALUE...", help="Parameters of the kernel.")
    ] = None,
    plan: Annotated[Path | None, typer.Option("--plan", metavar="PLAN.toml", help="The plan.")] = None,
    kernel_name: Annotated[
        str | None, typer.Option("--kernel", metavar="KERNEL", help="Of this kernel, see `ioweir kernel --list`.")
    ] = None,
    ranks: Annotated[
        int | None, typer.Option("--ranks", callback=fits, metavar="N", help="Ranks of the kernel.")
    ] = None,
    trace: Annotated[
        Path | None, typer.Option("--trace", metavar="DIR", help="Of the collective calls in this trace.")
    ] = None,
    file: Annotated[
        str | None, typer.Option("--file", metavar="PATH", help="Of this file. [KERNEL.data; the one that fits]")
    ] = None,
    call: Annotated[
        int, typer.Option("--call", callback=fits, metavar="N", help="Of this collective call, from 1.")
    ] = 1,
    stripe: Annotated[
        str | None, typer.Option("--stripe", metavar="SIZE", help="Size of a stripe. [the plan's]")
    ] = None,
    targets: Annotated[
        int | None,
        typer.Option("--targets", callback=fits, metavar="N", help="Storage targets of the file. [the plan's]"),
    ] = None,
    nodes: Annotated[
        int | None,
        typer.Option("--nodes", callback=fits, metavar="N", help="Nodes of the ranks, in blocks. [1; the trace's]"),
    ] = None,
    processors: Annotated[
        int | None,
        typer.Option(
            "--processors", callback=fits, metavar="N", help="Processors of a node. [as many as it has ranks]"
        ),
    ] = None,
    reads: Annotated[bool, typer.Option("--read", help="The kernel reads. [it writes]")] = False,
    picture: Annotated[
        Path | None, typer.Option("--picture", metavar="FILE.svg", help="Draw targets against rounds.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every writer, round and operation in the text.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Say which rank would write what when under a plan."""
    from ioweir.plan import explain as explanation  # noqa: PLC0415

    if plan is None:
        raise IoweirError("explain needs a plan: --plan PLAN.toml", EXIT_USAGE)
    result = explanation.explain(
        explanation.Options(
            plan, kernel_name, tuple(settings or ()), ranks, trace, file, call, stripe, targets, nodes, processors,
            reads, picture, everything,
        )
    )  # fmt: skip
    print_result(as_json, result, lambda: explanation.to_text(result))
