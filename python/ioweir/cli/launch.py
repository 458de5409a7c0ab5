"""Commands of ioweir.launch and ioweir.programs: programs are started, or made ready to be, with ioweir underneath."""

from __future__ import annotations

import os
import sys
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from ioweir.base import plain_text
from ioweir.cli.arguments import (
    Command,
    JsonOption,
    fits,
    refuse_typed,
    uses_defaults,
    was_typed,
)
from ioweir.cli.printing import print_json, print_result
from ioweir.errors import EXIT_USAGE, IoweirError

PlanOption = Annotated[Path | None, typer.Option("--plan", metavar="PLAN.toml", help="Apply this plan.")]
VerifyOption = Annotated[
    bool, typer.Option("--verify", help="Compare files with what the program passed in; exit 74 unless all is equal.")
]
BatchVerifyOption = Annotated[
    bool, typer.Option("--verify", help="Compare files with what the program passed in; ioweir report says the rest.")
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
        help="Trace these layers only: mpiio, posix, stdio, hdf5, pnetcdf, netcdf, mpi, joined by commas. [complete]",
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
GroupOption = Annotated[
    str | None,
    typer.Option("--group", metavar="NAME", help="Let this group of yours read the trace. [nobody but you]"),
]
MpiOption = Annotated[
    str | None, typer.Option("--mpi", metavar="openmpi|mpich|none", help="MPI library of the program. [the compiler's]")
]
KernelMpiOption = Annotated[
    str | None, typer.Option("--mpi", metavar="openmpi|mpich", help="Run with this MPI library. [that of mpicc]")
]
StaticOption = Annotated[
    bool, typer.Option("--static", help="MPI comes from an archive, though the C library is shared.")
]


AutoOption = Annotated[
    bool, typer.Option("--auto", help="Choose the writers of a loop's files by what they take, while it runs.")
]


MachineOption = Annotated[
    str | None, typer.Option("--machine", metavar="NAME|FILE", help="With --tune: where it runs. [fitted]")
]


def run(
    context: typer.Context,
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
    group: GroupOption = None,
    on_kill: OnKillOption = OnKill.END,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No report after the run.")] = False,
    compress: Annotated[bool, typer.Option(help="Compress the trace when the run has ended.")] = True,
    discard: Annotated[
        bool, typer.Option("--discard", help="Delete the trace when the run has ended, unless something went wrong.")
    ] = False,
    auto: AutoOption = False,
    memory: Annotated[
        bool, typer.Option(help="With --auto: use, and keep, what earlier runs of the program found.")
    ] = True,
    tune: Annotated[
        bool, typer.Option("--tune", help="Run, look for a plan, run again under it, and say what it gained.")
    ] = False,
    machine: MachineOption = None,
    measure: Annotated[
        bool, typer.Option("--measure", help="With --tune: replay the most promising plans before the second run.")
    ] = False,
) -> None:
    """Run a program and trace its I/O; prints the first report to stderr and returns the program's exit code."""
    from ioweir.launch.run import Options  # noqa: PLC0415
    from ioweir.launch.run import run as run_program  # noqa: PLC0415
    from ioweir.launch.tracing_options import make  # noqa: PLC0415

    if tune:
        from ioweir.loop import run_tune  # noqa: PLC0415

        others = (
            "auto", "plan", "layers", "callsites", "buffer", "quota", "anonymise", "on_kill", "compress", "discard",
            "memory", "group",
        )  # fmt: skip
        refuse_typed(context, others, "does not go with --tune, which makes a plan of whole traces; leave it out")
        sys.exit(run_tune.run_tuned(command, run_tune.Options(output, machine, verify, quiet, measure)))
    if was_typed(context, "machine"):
        raise IoweirError(f"--machine {machine} is for --tune; add it, or leave --machine out", EXIT_USAGE)
    if was_typed(context, "measure"):
        raise IoweirError("--measure is for --tune; add it, or leave --measure out", EXIT_USAGE)
    auto = _chooses(context, auto, plan)
    if plan is None and not auto and uses_defaults(context):
        plan = _plan_by_default(command)
    tracing = make(layers, callsites, buffer, quota, anonymise, os.environ, group)
    options = Options(
        output,
        plan,
        auto,
        memory,
        verify,
        quiet,
        compress,
        discard,
        guarded=on_kill is OnKill.END,
        tracing=tracing,
    )
    sys.exit(run_program(command, options))


def _plan_by_default(command: list[str]) -> Path | None:
    """The plan that defaults.toml has for the program, and a line that says so."""
    from ioweir.launch import defaults, wrappers  # noqa: PLC0415
    from ioweir.launch.run import program_behind  # noqa: PLC0415

    program = wrappers.program_name(program_behind(command) or command)
    found = defaults.load(os.environ).plan_of(program)
    if found is None:
        return None
    plain_text.say(f"ioweir: under {found.plan}, the plan of {found.program} in {found.file}")
    return found.plan


def _chooses(context: typer.Context, auto: bool, plan: Path | None) -> bool:
    """Whether --auto counts, which makes a plan of its own. From defaults.toml it gives way to a plan that is named."""
    if not auto or plan is None:
        return auto
    if not was_typed(context, "auto"):
        return False
    raise IoweirError(
        f'--auto makes a plan of its own: leave --plan {plan} out, or write choose = "auto" into its rules', EXIT_USAGE
    )


def env(
    context: typer.Context,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="DIR", help="Trace directory, new or empty.")
    ] = None,
    plan: PlanOption = None,
    verify: BatchVerifyOption = False,
    auto: AutoOption = False,
    tune: Annotated[
        Path | None,
        typer.Option(
            "--tune", metavar="TRACE", help="Apply the plan that `ioweir tune` makes of this earlier trace, if any."
        ),
    ] = None,
    machine: MachineOption = None,
    layers: LayersOption = None,
    callsites: CallSitesOption = False,
    buffer: BufferOption = None,
    quota: QuotaOption = None,
    anonymise: AnonymiseOption = False,
    group: GroupOption = None,
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
    if partition or link:
        tracing_options = (
            "output", "plan", "verify", "auto", "tune", "machine", "layers", "callsites", "buffer", "quota",
            "anonymise", "group", "rank", "shell", "as_json",
        )  # fmt: skip
        refuse_typed(context, tracing_options, f"does not go with {'--partition' if partition else '--link'}")
    else:
        refuse_typed(context, ("mpi", "static", "libraries"), "is for --link; add it, or leave this out")
    if partition:
        refuse_typed(context, ("link", "static", "libraries"), "does not go with --partition")
        from ioweir.programs import linking  # noqa: PLC0415

        print(" ".join(linking.partition_flags(mpi or linking.kind_of_environment())))
        return
    if link:
        from ioweir.programs import linking  # noqa: PLC0415

        print(" ".join(linking.flags(mpi or linking.kind_of_environment(), static, libraries)))
        return
    if output is None:
        raise IoweirError("env needs a trace directory (-o DIR), or --link for linker flags", EXIT_USAGE)
    from ioweir.launch import batch  # noqa: PLC0415
    from ioweir.launch.tracing_options import make  # noqa: PLC0415

    tracing = make(layers, callsites, buffer, quota, anonymise, os.environ, group)
    if tune is not None and (plan is not None or auto):
        if was_typed(context, "tune") and (plan is not None or was_typed(context, "auto")):
            raise IoweirError(f"--tune makes a plan of its own: leave {'--plan' if plan else '--auto'} out", EXIT_USAGE)
        if was_typed(context, "tune"):
            auto = False
        else:
            tune = None
    if tune is None and was_typed(context, "machine"):
        raise IoweirError(f"--machine {machine} is for --tune; add it, or leave --machine out", EXIT_USAGE)
    if tune is not None:
        from ioweir.loop import env_tune  # noqa: PLC0415

        variables = env_tune.prepare(tune, output, machine, verify, tracing, os.environ)
    else:
        auto = _chooses(context, auto, plan)
        variables = batch.prepare(output, plan, verify, tracing, os.environ, auto=auto)
    if as_json:
        print_json(variables.described())
    else:
        # Not for reading: a shell gets every name as it is.
        plain_text.write_names(batch.script(variables.ranks if rank else variables.script, shell))


def link(command: Command, mpi: MpiOption = None, static: StaticOption = False) -> None:
    """Run a compiler; where it links a program, ioweir is linked in. `ioweir-mpicc` is `ioweir link -- mpicc`."""
    from ioweir.programs import linking  # noqa: PLC0415

    linking.execute(command, mpi, static)


def doctor(command: Command, as_json: JsonOption = False) -> None:
    """Say what ioweir will see of a program, without running it."""
    from ioweir.launch import doctor as examination  # noqa: PLC0415

    result = examination.examine(command)
    if as_json:
        print_json(result)
    else:
        examination.write(result, sys.stdout)
    sys.exit(examination.exit_code(result))


def kernel(
    name: Annotated[str | None, typer.Argument(metavar="KERNEL", help="One of --list.")] = None,
    settings: Annotated[
        list[str] | None, typer.Argument(metavar="NAME=VALUE...", help="Parameters of the kernel, see --list.")
    ] = None,
    ranks: Annotated[int, typer.Option("--ranks", callback=fits, metavar="N", help="Ranks.")] = 4,
    mpi: KernelMpiOption = None,
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
    repeats: Annotated[int, typer.Option("--repeats", callback=fits, metavar="N", help="How often.")] = 1,
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
    from ioweir.launch import kernel as kernels  # noqa: PLC0415

    if list_them:
        print_result(as_json, kernels.known(), kernels.describe)
        return
    if name is None:
        raise IoweirError(
            "no kernel is named: ioweir kernel KERNEL [NAME=VALUE...]; --list says which there are", EXIT_USAGE
        )
    options = kernels.Options(
        ranks, directory, mpi, api, repeats, verify, keep, tuple(hint or ()), tuple(hdf5 or ()), dummy, pause
    )
    sys.exit(kernels.run(name, settings or [], options, as_json))
