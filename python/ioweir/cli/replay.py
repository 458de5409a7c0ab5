"""The commands of ioweir.replay."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ioweir.base import progress
from ioweir.cli.arguments import JsonOption, fits, refuse_typed
from ioweir.cli.printing import print_result
from ioweir.errors import EXIT_FAILED, EXIT_OK


def replay(
    context: typer.Context,
    trace: Annotated[Path, typer.Argument(metavar="DIR", help="A trace.")],
    directory: Annotated[
        Path, typer.Option("--directory", metavar="WHERE", help="The files are made in a new folder there.")
    ] = Path(),
    plan: Annotated[Path | None, typer.Option("--plan", metavar="PLAN.toml", help="Apply this plan.")] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="TRACE", help="Trace the replay into this directory.")
    ] = None,
    ranks: Annotated[int | None, typer.Option("--ranks", metavar="N", help="On so many ranks. [the trace's]")] = None,
    also: Annotated[
        list[Path] | None,
        typer.Option("--also", metavar="DIR2", help="With --ranks: a trace of the program on other ranks."),
    ] = None,
    think: Annotated[
        str, typer.Option("--think", metavar="keep|drop|FACTOR", help="Time between calls: kept, left out, or scaled.")
    ] = "keep",
    mpi: Annotated[
        str | None, typer.Option("--mpi", metavar="openmpi|mpich", help="With this MPI library. [the trace's]")
    ] = None,
    hint: Annotated[
        list[str] | None, typer.Option("--hint", metavar="NAME=VALUE", help="A hint to MPI-IO; as often as needed.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", callback=fits, metavar="S", help="Of the data.")] = 1,
    memory: Annotated[
        str, typer.Option("--memory", metavar="SIZE", help="Largest data of one call of a rank.")
    ] = "1 GiB",
    keep: Annotated[bool, typer.Option("--keep", help="Leave the files.")] = False,
    script: Annotated[
        Path | None, typer.Option("--script", metavar="OUT", help="Only write the scripts, into this directory.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Carry out a trace's I/O again, with synthetic data in a new folder, and say how long it took."""
    from ioweir.launch.tracing_options import parse_bytes  # noqa: PLC0415
    from ioweir.replay import run  # noqa: PLC0415

    if script is not None:
        unused = ("directory", "plan", "output", "think", "mpi", "hint", "memory", "keep")
        refuse_typed(context, unused, "does not go with --script, which replays nothing")
    memory_bytes = parse_bytes("--memory", memory, 1)
    options = run.Options(
        trace, directory, plan, output, ranks, think, mpi, seed, memory_bytes, tuple(hint or ()), keep,
        tuple(also or ()), script,
    )  # fmt: skip
    with progress.shown("replaying", sys.stderr):
        result = run.replay(options)
    print_result(as_json, result, lambda: run.to_text(result))
    sys.exit(EXIT_FAILED if run.failed(result) else EXIT_OK)


def make_benchmark(
    trace: Annotated[Path, typer.Argument(metavar="DIR", help="A trace.")],
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="OUT", help="Where to write the program: new or empty.")
    ],
    as_json: JsonOption = False,
) -> None:
    """Write a small C program with a trace's I/O, without its names and without ioweir."""
    from ioweir.replay import benchmark  # noqa: PLC0415

    result = benchmark.make(trace, output)
    print_result(as_json, result, lambda: benchmark.to_text(result))
