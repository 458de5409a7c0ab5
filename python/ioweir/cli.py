"""The command line: options, help, errors and exit codes. What a command does lies in the module of its name."""

from __future__ import annotations

import json
import os
import sys
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ioweir import plain_text
from ioweir.errors import EXIT_CODES, EXIT_FAILED, EXIT_USAGE, IoweirError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

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
        from ioweir.run import ioweir_version  # noqa: PLC0415

        print(f"ioweir {ioweir_version()}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version.")
    ] = False,
) -> None:
    pass


# Everything after the first word that is no option of ours belongs to the command, also without `--`.
_COMMAND = {"allow_interspersed_args": False}

Command = Annotated[list[str], typer.Argument(metavar="-- CMD...", help="The command, as without ioweir.")]
PlanOption = Annotated[Path | None, typer.Option("--plan", metavar="PLAN.toml", help="Apply this plan.")]
VerifyOption = Annotated[
    bool, typer.Option("--verify", help="Compare files with what the program passed in; exit 74 unless all is equal.")
]


class OnKill(str, Enum):
    """What becomes of a program whose `ioweir run` is killed."""

    END = "end"
    LEAVE = "leave"


OnKillOption = Annotated[
    OnKill, typer.Option("--on-kill", help="End the program when ioweir run is killed, or leave it running.")
]
LayersOption = Annotated[
    str | None,
    typer.Option(
        "--layers",
        metavar="LIST",
        help="Trace these layers only: posix, stdio, mpiio, hdf5, pnetcdf, netcdf, separated by commas. [complete]",
    ),
]
CallSitesOption = Annotated[
    bool, typer.Option("--callsites", help="Record which calls of the program led to each event; slower.")
]
BufferOption = Annotated[
    str | None, typer.Option("--buffer", metavar="SIZE", help="Memory for tracing in each rank at once. [8 MiB]")
]
QuotaOption = Annotated[
    str | None,
    typer.Option("--quota", metavar="SIZE", help="Trace at most this much on each node, then only count. [no limit]"),
]
AnonymiseOption = Annotated[
    bool, typer.Option("--anonymise", help="Replace the names in paths by hashes; extensions stay.")
]
MpiOption = Annotated[
    str | None, typer.Option("--mpi", metavar="openmpi|mpich|none", help="MPI library of the program. [the compiler's]")
]
StaticOption = Annotated[
    bool, typer.Option("--static", help="MPI comes from an archive, though the C library is shared.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]


def _fail_if(unreadable: Sequence[str]) -> None:
    """A trace that lacks whole nodes: what there is was printed, and a script learns that it is not all."""
    if unreadable:
        print(plain_text.line(f"ioweir: nodes are missing in this: {'; '.join(unreadable)}"), file=sys.stderr)
        sys.exit(EXIT_FAILED)


def _print_json(content: object) -> None:
    print(plain_text.json(json.dumps(content, indent=1)))


@app.command(context_settings=_COMMAND)
def run(
    command: Command,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="DIR", help="Trace directory. [./ioweir-<program>-<date>-<time>]"),
    ] = None,
    plan: PlanOption = None,
    verify: VerifyOption = False,
    layers: LayersOption = None,
    callsites: CallSitesOption = False,
    buffer: BufferOption = None,
    quota: QuotaOption = None,
    anonymise: AnonymiseOption = False,
    on_kill: OnKillOption = OnKill.END,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No report after the run.")] = False,
) -> None:
    """Run a program and trace its I/O; prints the first report to stderr and returns the program's exit code."""
    from ioweir.run import Options  # noqa: PLC0415
    from ioweir.run import run as run_program  # noqa: PLC0415
    from ioweir.tracing_options import make  # noqa: PLC0415

    tracing = make(layers, callsites, buffer, quota, anonymise, os.environ)
    sys.exit(run_program(command, Options(output, plan, verify, quiet, on_kill is OnKill.END, tracing)))


@app.command()
def env(
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="DIR", help="Trace directory, new or empty.")
    ] = None,
    plan: PlanOption = None,
    verify: VerifyOption = False,
    layers: LayersOption = None,
    callsites: CallSitesOption = False,
    buffer: BufferOption = None,
    quota: QuotaOption = None,
    anonymise: AnonymiseOption = False,
    rank: Annotated[
        bool, typer.Option("--rank", help="For a shell that starts one rank, instead of the batch script.")
    ] = False,
    shell: Annotated[str, typer.Option("--shell", metavar="sh|csh", help="Whose syntax to print.")] = "sh",
    as_json: JsonOption = False,
    link: Annotated[bool, typer.Option("--link", help="Print linker flags instead, which put ioweir in.")] = False,
    mpi: MpiOption = None,
    static: StaticOption = False,
    libraries: Annotated[
        bool, typer.Option("--libraries", help="With --link: the program's HDF5, PnetCDF and netCDF calls too.")
    ] = False,
    partition: Annotated[
        bool, typer.Option("--partition", help="Print compiler flags instead, for programs that call ioweir.h.")
    ] = False,
) -> None:
    """Print what a batch script needs to trace the ranks it starts (eval "$(ioweir env -o DIR)"), or linker flags."""
    if partition:
        from ioweir import linking  # noqa: PLC0415

        print(" ".join(linking.partition_flags(mpi or linking.kind_of_environment())))
        return
    if link:
        from ioweir import linking  # noqa: PLC0415

        print(" ".join(linking.flags(mpi or linking.kind_of_environment(), static, libraries)))
        return
    if output is None:
        raise IoweirError("env needs a trace directory (-o DIR), or --link for linker flags", EXIT_USAGE)
    from ioweir import batch  # noqa: PLC0415
    from ioweir.tracing_options import make  # noqa: PLC0415

    tracing = make(layers, callsites, buffer, quota, anonymise, os.environ)
    variables = batch.prepare(output, plan, verify, tracing, os.environ)
    if as_json:
        _print_json(variables.described())
    else:
        # Not for reading: a shell gets every name as it is.
        print(batch.script(variables.ranks if rank else variables.script, shell), file=plain_text.raw(sys.stdout))


@app.command(context_settings=_COMMAND)
def link(command: Command, mpi: MpiOption = None, static: StaticOption = False) -> None:
    """Run a compiler; where it links a program, ioweir is linked in. `ioweir-mpicc` is `ioweir link -- mpicc`."""
    from ioweir import linking  # noqa: PLC0415

    linking.execute(command, mpi, static)


@app.command()
def report(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="What `ioweir run` wrote.")],
    as_json: JsonOption = False,
) -> None:
    """Say where the time of a traced run went."""
    from ioweir import report as figures  # noqa: PLC0415
    from ioweir.trace import load  # noqa: PLC0415

    result = figures.build(load(directory), sys.stderr)
    if as_json:
        from ioweir.json_text import lines  # noqa: PLC0415

        plain_text.print_lines(lines(result))
    else:
        from ioweir import report_text  # noqa: PLC0415

        report_text.write(result, sys.stdout)
    _fail_if(result["unreadable"])


@app.command()
def timeline(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="What `ioweir run` wrote.")],
    op: Annotated[str, typer.Option("--op", metavar="write|read", help="What is shown.")] = "write",
    by: Annotated[str, typer.Option("--by", metavar="file|target|rank", help="What a row is.")] = "file",
    bins: Annotated[int, typer.Option("--bins", metavar="N", help="Into so many parts the time is divided.")] = 200,
    picture: Annotated[Path | None, typer.Option("--picture", metavar="FILE.svg", help="Draw it.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Show when each file, storage target or rank was written or read in a traced run."""
    from ioweir import timeline as over_time  # noqa: PLC0415

    result = over_time.timeline(directory, over_time.Options(op, by, bins, picture))
    if as_json:
        _print_json(result)
    else:
        plain_text.print_lines(over_time.to_text(result))
    _fail_if(result["unreadable"])


@app.command("merge-trace")
def merge_trace(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="What `ioweir run` wrote.")],
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="The master log: .parquet, .arrow, .csv, .csv.gz or .csv.zst. [DIR/master.parquet]",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Write one time-sorted log of all ranks and nodes, and the table of its files."""
    from ioweir import merge  # noqa: PLC0415

    merged = merge.merge(directory, output, sys.stderr)
    if as_json:
        _print_json(merge.to_json(merged))
    else:
        plain_text.print_lines(merge.to_text(merged))
    _fail_if(merged.unreadable)


@app.command()
def compare(
    before: Annotated[Path, typer.Argument(metavar="A", help="Trace directory of the first run.")],
    after: Annotated[Path, typer.Argument(metavar="B", help="Trace directory of the second run.")],
    as_json: JsonOption = False,
    force: Annotated[bool, typer.Option("--force", help="Compare runs of different programs.")] = False,
) -> None:
    """Say what changed from one run to another."""
    from ioweir import compare as comparison  # noqa: PLC0415

    result = comparison.compare_directories(before, after, force=force)
    if as_json:
        _print_json(result)
    else:
        comparison.write(result, sys.stdout)


@app.command(context_settings=_COMMAND)
def doctor(command: Command, as_json: JsonOption = False) -> None:
    """Say what ioweir will see of a program, without running it."""
    from ioweir import doctor as examination  # noqa: PLC0415

    result = examination.examine(command)
    if as_json:
        _print_json(result)
    else:
        examination.write(result, sys.stdout)
    sys.exit(examination.exit_code(result))


@app.command()
def kernel(
    name: Annotated[str | None, typer.Argument(metavar="KERNEL", help="One of --list.")] = None,
    settings: Annotated[
        list[str] | None, typer.Argument(metavar="NAME=VALUE...", help="Parameters of the kernel, see --list.")
    ] = None,
    ranks: Annotated[int, typer.Option("--ranks", metavar="N", help="Ranks.")] = 4,
    mpi: MpiOption = None,
    directory: Annotated[
        Path, typer.Option("--directory", metavar="DIR", help="Where the kernel's file is written.")
    ] = Path(),
    api: Annotated[
        str,
        typer.Option(
            "--api",
            metavar="LIST",
            help="mpiio (collective), independent (MPI-IO too), posix, exchange (by hand), fpp (file per process), "
            "uniform (that with equal parts), netcdf (its arrays through PnetCDF), hdf5 (the same through parallel "
            "HDF5); several, separated by commas, take turns.",
        ),
    ] = "mpiio",
    repeats: Annotated[int, typer.Option("--repeats", metavar="N", help="How often.")] = 1,
    verify: Annotated[
        bool, typer.Option("--verify", help="Also compare the closed file, byte by byte, with what each rank wrote.")
    ] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Leave the file, DIR/KERNEL.data.")] = False,
    hint: Annotated[
        list[str] | None, typer.Option("--hint", metavar="NAME=VALUE", help="A hint to MPI-IO; as often as needed.")
    ] = None,
    hdf5: Annotated[
        list[str] | None,
        typer.Option(
            "--hdf5",
            metavar="NAME=VALUE",
            help="How --api hdf5 makes its file: transfer, alignment, threshold, layout, index, evictions, metadata, "
            "meta_block, fill, memory or format.",
        ),
    ] = None,
    dummy: Annotated[
        float, typer.Option("--dummy", metavar="SHARE", help="Take this share of the available memory away: 0.75.")
    ] = 0.0,
    pause: Annotated[float, typer.Option("--pause", metavar="SECONDS", help="Wait between repetitions.")] = 0.0,
    list_them: Annotated[bool, typer.Option("--list", help="Say which kernels there are, and what they take.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Run an application's I/O kernel, check what it wrote and read, and say how fast that was."""
    from ioweir import kernel as kernels  # noqa: PLC0415

    if list_them:
        if as_json:
            _print_json(kernels.known())
        else:
            plain_text.print_lines(kernels.describe())
        return
    if name is None:
        raise IoweirError(
            "no kernel is named: ioweir kernel KERNEL [NAME=VALUE...]; --list says which there are", EXIT_USAGE
        )
    options = kernels.Options(
        ranks, directory, mpi, api, repeats, verify, keep, tuple(hint or ()), tuple(hdf5 or ()), dummy, pause
    )
    sys.exit(kernels.run(name, settings or [], options, as_json))


@app.command()
def explain(
    settings: Annotated[
        list[str] | None, typer.Argument(metavar="NAME=VALUE...", help="Parameters of the kernel.")
    ] = None,
    plan: Annotated[Path | None, typer.Option("--plan", metavar="PLAN.toml", help="The plan.")] = None,
    kernel_name: Annotated[
        str | None, typer.Option("--kernel", metavar="KERNEL", help="Of this kernel, see `ioweir kernel --list`.")
    ] = None,
    ranks: Annotated[int | None, typer.Option("--ranks", metavar="N", help="Ranks of the kernel.")] = None,
    trace: Annotated[
        Path | None, typer.Option("--trace", metavar="DIR", help="Of the collective calls in this trace.")
    ] = None,
    file: Annotated[
        str | None, typer.Option("--file", metavar="PATH", help="Of this file. [KERNEL.data; the one that fits]")
    ] = None,
    call: Annotated[int, typer.Option("--call", metavar="N", help="Of this collective call, from 1.")] = 1,
    stripe: Annotated[
        str | None, typer.Option("--stripe", metavar="SIZE", help="Size of a stripe. [the plan's]")
    ] = None,
    targets: Annotated[
        int | None, typer.Option("--targets", metavar="N", help="Storage targets of the file. [the plan's]")
    ] = None,
    nodes: Annotated[
        int | None, typer.Option("--nodes", metavar="N", help="Nodes of the ranks, in blocks. [1; the trace's]")
    ] = None,
    processors: Annotated[
        int | None, typer.Option("--processors", metavar="N", help="Processors of a node. [as many as it has ranks]")
    ] = None,
    reads: Annotated[bool, typer.Option("--read", help="The kernel reads. [it writes]")] = False,
    picture: Annotated[
        Path | None, typer.Option("--picture", metavar="FILE.svg", help="Draw targets against rounds.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every writer, round and operation in the text.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Say which rank would write what when under a plan."""
    from ioweir import explain as explanation  # noqa: PLC0415

    if plan is None:
        raise IoweirError("explain needs a plan: --plan PLAN.toml", EXIT_USAGE)
    result = explanation.explain(
        explanation.Options(
            plan, kernel_name, tuple(settings or ()), ranks, trace, file, call, stripe, targets, nodes, processors,
            reads, picture, everything,
        )
    )  # fmt: skip
    if as_json:
        _print_json(result)
    else:
        plain_text.print_lines(explanation.to_text(result))


FilesArgument = Annotated[list[Path], typer.Argument(metavar="FILE...", help="Files that programs wrote under a plan.")]


@app.command()
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
    from ioweir import container  # noqa: PLC0415

    merged = container.merge(file, output, unfinished)
    plain_text.print_lines([merged.text])
    for text in merged.missing:
        print(plain_text.line(f"ioweir: {text}"), file=sys.stderr)


@app.command()
def convert(
    source: Annotated[
        Path, typer.Argument(metavar="FROM", help="A set, or one of its files, or a serial file BASE.STEP.PART.")
    ],
    target: Annotated[
        Path, typer.Argument(metavar="TO", help="Base name of what is written; with --to hdf5 the file's name.")
    ],
    to: Annotated[str, typer.Option("--to", metavar="FORM", help="set, serial or hdf5.")] = "set",
    files: Annotated[
        int | None, typer.Option("--files", metavar="N", help="Files of the set. [as many as FROM's; from serial: 1]")
    ] = None,
    step: Annotated[int | None, typer.Option("--step", metavar="N", help="Step to write. [that of FROM]")] = None,
    flat: Annotated[bool, typer.Option("--flat", help="Files beside each other, as PHASTA looks for them.")] = False,
    types: Annotated[
        list[str] | None,
        typer.Option("--type", metavar="FIELD=TYPE", help="hdf5: float64, int32 or bytes, for files do not say."),
    ] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Replace what is there.")] = False,
) -> None:
    """Write a set of partitioned files anew: in another number of files, as serial files, or as HDF5 for viewing."""
    from ioweir import partitioned_convert  # noqa: PLC0415

    wanted = partitioned_convert.Wanted(source, target, to, files, step, flat, tuple(types or ()), replace)
    plain_text.print_lines([partitioned_convert.convert(wanted)])


@app.command()
def ls(files: FilesArgument, as_json: JsonOption = False) -> None:
    """Say where the bytes of files lie that ioweir divided among several, and what sets of partitioned files have."""
    from ioweir import container, partitioned  # noqa: PLC0415

    sets = {file: partitioned.describe(file) for file in files}
    described = [sets[file] or container.describe(file) for file in files]
    if as_json:
        _print_json(described)
    else:
        text = {False: container.to_text, True: partitioned.to_text}
        plain_text.print_lines(line for one in described for line in text["step" in one](one))


@app.command()
def check(files: FilesArgument, as_json: JsonOption = False) -> None:
    """Check files whose bytes lie in several, and HDF5 files: complete, and nothing damaged? Exit code 1 if not."""
    from ioweir import container, hdf5_file, partitioned  # noqa: PLC0415

    checked = [partitioned.describe(file) or hdf5_file.describe(file) or container.check(file) for file in files]
    if as_json:
        _print_json(checked)
    else:
        text = {False: container.verdict, True: partitioned.verdict}
        plain_text.print_lines(line for one in checked for line in text["step" in one](one))
    sys.exit(EXIT_FAILED if any(one["problems"] for one in checked) else 0)


@app.command()
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
    repeats: Annotated[int, typer.Option("--repeats", metavar="N", help="How often; the median counts.")] = 1,
    at_once: Annotated[int, typer.Option("--at-once", metavar="N", help="Targets probed at a time.")] = 64,
    confirm: Annotated[
        int, typer.Option("--confirm", metavar="N", help="Probe slow targets again, at most so often.")
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
    from ioweir import probe as probing  # noqa: PLC0415

    options = probing.options_of(window, discard, amount, repeats, at_once, confirm)
    result = probing.probe(path, options, threshold, cache)
    if plot is not None:
        from ioweir import probe_picture  # noqa: PLC0415
        from ioweir.guarded_files import write_named  # noqa: PLC0415

        write_named(plot, probe_picture.to_svg(result))
    if as_json:
        _print_json(result)
    else:
        plain_text.print_lines(probing.to_text(result))


lab_app = typer.Typer(help="Storage targets to try things on.", no_args_is_help=True, rich_markup_mode=None)
app.add_typer(lab_app, name="lab")

LabName = Annotated[str, typer.Option("--name", metavar="NAME", help="Which lab.")]
LabDirectory = Annotated[
    Path | None,
    typer.Option("--directory", metavar="DIR", help="Where it is. [a new one, printed; later found by NAME]"),
]


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
    directory: LabDirectory = None,
    as_json: JsonOption = False,
) -> None:
    """Make storage targets of a given speed."""
    from ioweir import lab  # noqa: PLC0415

    made, remarks = lab.up(lab.Wanted(name, "ceph" if ceph else kind, targets, rate, size, directory, memory))
    found = lab.status(name, made.root)
    if as_json:
        _print_json({**found, "remarks": remarks})
    else:
        plain_text.print_lines([*remarks, *lab.to_text(found)])


@lab_app.command("slow")
def lab_slow(
    target: Annotated[int, typer.Argument(metavar="K", help="Which target, from 0.")],
    rate: Annotated[str, typer.Argument(metavar="RATE", help="A size a second, a share such as 1/9, or full.")],
    name: LabName = "lab",
    directory: LabDirectory = None,
) -> None:
    """Change a target's speed, also while programs run."""
    from ioweir import lab  # noqa: PLC0415

    lab.slow(name, directory, target, rate)


@lab_app.command("status")
def lab_status(name: LabName = "lab", directory: LabDirectory = None, as_json: JsonOption = False) -> None:
    """Say what is up; exit code 1 if something of it is missing."""
    from ioweir import lab  # noqa: PLC0415

    found = lab.status(name, directory)
    if as_json:
        _print_json(found)
    else:
        plain_text.print_lines(lab.to_text(found))
    sys.exit(0 if found["complete"] and not any(row["problem"] for row in found["targets"]) else EXIT_FAILED)


@lab_app.command("down")
def lab_down(
    name: LabName = "lab",
    directory: LabDirectory = None,
    force: Annotated[bool, typer.Option("--force", help="Also while programs use it.")] = False,
) -> None:
    """Take a lab down, with the files on its targets."""
    from ioweir import lab  # noqa: PLC0415

    plain_text.print_lines([f"{lab.down(name, directory, force)}: gone"])


@lab_app.command("run", context_settings=_COMMAND)
def lab_run(command: Command, name: LabName = "lab", directory: LabDirectory = None) -> None:
    """Run a program under the lab's limits; needed with cgroup version 2 only."""
    from ioweir import lab  # noqa: PLC0415

    lab.run(name, directory, command)


@app.command()
def gc(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", exists=True, file_okay=False, help="Where to look, with all below it.")
    ],
    yes: Annotated[bool, typer.Option("--yes", help="Remove them. [only list them]")] = False,
    as_json: JsonOption = False,
) -> None:
    """Find parts of divided files whose file is gone, and unfinished sets. Not while a job writes there."""
    from ioweir import container  # noqa: PLC0415

    rows = container.orphans(directory)
    if yes:
        container.remove(directory, rows)
    if as_json:
        _print_json(rows)
    else:
        plain_text.print_lines(container.orphans_to_text(rows, yes))
    # What is in use goes without us, with the last process that has it open.
    sys.exit(EXIT_FAILED if yes and any(row["problem"] and not row["in_use"] for row in rows) else 0)


def compiler() -> None:
    """Entry point of ioweir-mpicc and its relatives: the compiler they are named after, with ioweir linked in."""
    from ioweir import linking  # noqa: PLC0415

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
