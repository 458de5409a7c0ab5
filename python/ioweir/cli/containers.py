"""Commands of ioweir.containers: files whose bytes lie in several."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ioweir.base import plain_text, progress
from ioweir.cli.arguments import JsonOption, fits
from ioweir.cli.printing import print_result
from ioweir.errors import EXIT_FAILED

FilesArgument = Annotated[list[Path], typer.Argument(metavar="FILE...", help="Files that programs wrote under a plan.")]


def merge(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file that the program wrote.")],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="OUT", help="Write it there and keep FILE. [in its place]")
    ] = None,
    unfinished: Annotated[
        bool,
        typer.Option(
            "--unfinished", help="In its place also where the job that wrote it has died: what is there is kept."
        ),
    ] = False,
) -> None:
    """Make one ordinary file of one whose bytes lie in several."""
    from ioweir.containers import container  # noqa: PLC0415

    with progress.shown("merging", sys.stderr):
        merged = container.merge(file, output, unfinished)
    plain_text.print_lines([merged.text])
    for text in merged.missing:
        print(plain_text.line(f"ioweir: {text}"), file=sys.stderr)


def convert(
    source: Annotated[
        Path, typer.Argument(metavar="FROM", help="A set, or one of its files, or a serial file BASE.STEP.PART.")
    ],
    target: Annotated[
        Path, typer.Argument(metavar="TO", help="Base name of what is written; with --to hdf5 the file's name.")
    ],
    to: Annotated[str, typer.Option("--to", metavar="FORM", help="set, serial or hdf5.")] = "set",
    files: Annotated[
        int | None,
        typer.Option(
            "--files", callback=fits, metavar="N", help="Files of the set. [as many as FROM's; from serial: 1]"
        ),
    ] = None,
    step: Annotated[
        int | None, typer.Option("--step", callback=fits, metavar="N", help="Step to write. [that of FROM]")
    ] = None,
    flat: Annotated[bool, typer.Option("--flat", help="Files beside each other, as PHASTA looks for them.")] = False,
    types: Annotated[
        list[str] | None,
        typer.Option("--type", metavar="FIELD=TYPE", help="hdf5: float64, int32 or bytes, for files do not say."),
    ] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Replace what is there.")] = False,
) -> None:
    """Write a set of partitioned files anew: in another number of files, as serial files, or as HDF5 for viewing."""
    from ioweir.containers import partitioned_convert  # noqa: PLC0415

    wanted = partitioned_convert.Wanted(source, target, to, files, step, flat, tuple(types or ()), replace)
    with progress.shown("converting", sys.stderr):
        said = partitioned_convert.convert(wanted)
    plain_text.print_lines([said])


def ls(files: FilesArgument, as_json: JsonOption = False) -> None:
    """Say where the bytes of files lie that ioweir divided among several, and what sets of partitioned files have."""
    from ioweir.containers import container, partitioned  # noqa: PLC0415

    sets = {file: partitioned.describe(file) for file in files}
    described = [sets[file] or container.describe(file) for file in files]
    text = {False: container.to_text, True: partitioned.to_text}
    print_result(as_json, described, lambda: [line for one in described for line in text["step" in one](one)])


def check(files: FilesArgument, as_json: JsonOption = False) -> None:
    """Check files whose bytes lie in several, and HDF5 files: complete, and nothing damaged? Exit code 1 if not."""
    from ioweir.containers import container, hdf5_file, partitioned  # noqa: PLC0415

    with progress.shown("checking", sys.stderr):
        checked = [
            partitioned.describe(file) or hdf5_file.describe(file) or container.check(file)
            for file in progress.counted(files)
        ]
    text = {False: container.verdict, True: partitioned.verdict}
    print_result(as_json, checked, lambda: [line for one in checked for line in text["step" in one](one)])
    sys.exit(EXIT_FAILED if any(one["problems"] for one in checked) else 0)


def gc(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", exists=True, file_okay=False, help="Where to look, with all below it.")
    ],
    yes: Annotated[bool, typer.Option("--yes", help="Remove them. [only list them]")] = False,
    as_json: JsonOption = False,
) -> None:
    """Find parts of divided files whose file is gone, and unfinished sets. Not while a job writes there."""
    from ioweir.containers import container  # noqa: PLC0415

    rows = container.orphans(directory)
    if yes:
        container.remove(directory, rows)
    print_result(as_json, rows, lambda: container.orphans_to_text(rows, yes))
    # What is in use goes without us, with the last process that has it open.
    sys.exit(EXIT_FAILED if yes and any(row["problem"] and not row["in_use"] for row in rows) else 0)
