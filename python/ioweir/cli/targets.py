"""Commands of ioweir.targets: storage targets."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ioweir.base import plain_text, progress
from ioweir.cli.arguments import COMMAND, Command, JsonOption, fits
from ioweir.cli.printing import print_result
from ioweir.errors import EXIT_FAILED


def probe(
    path: Annotated[
        Path, typer.Argument(metavar="PATH", help="A directory or file, there or not, whose targets count.")
    ],
    window: Annotated[
        str | None, typer.Option("--window", metavar="TIME", help="Measure each target for so long. [300ms]")
    ] = None,
    discard: Annotated[
        str | None, typer.Option("--discard", metavar="TIME", help="Write for so long before measuring. [100ms]")
    ] = None,
    amount: Annotated[
        str | None, typer.Option("--size", metavar="SIZE", help="Write this much to each target instead.")
    ] = None,
    repeats: Annotated[
        int, typer.Option("--repeats", callback=fits, metavar="N", help="How often; the median counts.")
    ] = 1,
    at_once: Annotated[
        int, typer.Option("--at-once", callback=fits, metavar="N", help="Targets probed at a time.")
    ] = 64,
    confirm: Annotated[
        int, typer.Option("--confirm", callback=fits, metavar="N", help="Probe slow targets again, at most so often.")
    ] = 2,
    threshold: Annotated[
        float | None,
        typer.Option(
            "--threshold", metavar="SHARE", help="Fall of the bandwidth of all together that one more may cause. [0.05]"
        ),
    ] = None,
    cache: Annotated[
        str | None,
        typer.Option("--cache", metavar="TIME", help="Take what was found at most so long ago. [always probe]"),
    ] = None,
    plot: Annotated[Path | None, typer.Option("--plot", metavar="FILE.svg", help="Draw both curves.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Measure how fast the storage targets at a path are, and say which to use."""
    from ioweir.base import picture  # noqa: PLC0415
    from ioweir.targets import probe as probing  # noqa: PLC0415

    options = probing.options_of(window, discard, amount, repeats, at_once, confirm)
    picture.check_name("--plot", plot)
    with progress.shown("probing", sys.stderr):
        result = probing.probe(path, options, threshold, cache)
    if plot is not None:
        from ioweir.targets import probe_picture  # noqa: PLC0415

        picture.save(plot, probe_picture.chart(result))
    print_result(as_json, result, lambda: probing.to_text(result))


lab_app = typer.Typer(help="Storage targets to try things on.", no_args_is_help=True, rich_markup_mode=None)


LabName = Annotated[str, typer.Option("--name", metavar="NAME", help="Which lab.")]


NewLabDirectory = Annotated[
    Path | None, typer.Option("--directory", metavar="DIR", help="Where to make it. [a new one, printed]")
]
LabDirectory = Annotated[Path | None, typer.Option("--directory", metavar="DIR", help="Where it is. [found by NAME]")]


@lab_app.command("up")
def lab_up(
    targets: Annotated[int, typer.Option("--targets", metavar="N", help="How many targets.")] = 8,
    rate: Annotated[str, typer.Option("--rate", metavar="SIZE", help="What each moves in a second.")] = "12 MiB",
    size: Annotated[str, typer.Option("--size", metavar="SIZE", help="Room on each (loop devices).")] = "1 GiB",
    kind: Annotated[
        str,
        typer.Option(
            "--kind", metavar="auto|loop|bucket|ceph", help="Loop devices; token buckets, without root; a CephFS."
        ),
    ] = "auto",
    ceph: Annotated[bool, typer.Option("--ceph", help="The same as --kind ceph.")] = False,
    memory: Annotated[bool, typer.Option("--memory", help="Keep loop devices' images in memory.")] = False,
    name: LabName = "lab",
    directory: NewLabDirectory = None,
    as_json: JsonOption = False,
) -> None:
    """Make storage targets of a given speed."""
    from ioweir.targets import lab  # noqa: PLC0415

    made, remarks = lab.up(lab.Wanted(name, "ceph" if ceph else kind, targets, rate, size, directory, memory))
    found = lab.status(name, made.root)
    print_result(as_json, {**found, "remarks": remarks}, lambda: [*remarks, *lab.to_text(found)])


@lab_app.command("slow")
def lab_slow(
    target: Annotated[int, typer.Argument(metavar="K", help="Which target, from 0.")],
    rate: Annotated[str, typer.Argument(metavar="RATE", help="A size a second, a share such as 1/9, or full.")],
    name: LabName = "lab",
    directory: LabDirectory = None,
) -> None:
    """Change a target's speed, also while programs run."""
    from ioweir.targets import lab  # noqa: PLC0415

    lab.slow(name, directory, target, rate)


@lab_app.command("status")
def lab_status(name: LabName = "lab", directory: LabDirectory = None, as_json: JsonOption = False) -> None:
    """Say what is up; exit code 1 if something of it is missing."""
    from ioweir.targets import lab  # noqa: PLC0415

    found = lab.status(name, directory)
    print_result(as_json, found, lambda: lab.to_text(found))
    sys.exit(0 if found["complete"] and not any(row["problem"] for row in found["targets"]) else EXIT_FAILED)


@lab_app.command("down")
def lab_down(
    name: LabName = "lab",
    directory: LabDirectory = None,
    force: Annotated[bool, typer.Option("--force", help="Also while programs use it.")] = False,
) -> None:
    """Take a lab down, with the files on its targets."""
    from ioweir.targets import lab  # noqa: PLC0415

    plain_text.print_lines([f"{lab.down(name, directory, force)}: gone"])


@lab_app.command("run", context_settings=COMMAND)
def lab_run(command: Command, name: LabName = "lab", directory: LabDirectory = None) -> None:
    """Run a program under the lab's limits; needed with cgroup version 2 only."""
    from ioweir.targets import lab  # noqa: PLC0415

    lab.run(name, directory, command)
