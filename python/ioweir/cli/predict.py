"""The commands of ioweir.predict."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ioweir.base import progress
from ioweir.cli.arguments import JsonOption, fits, refuse_typed
from ioweir.cli.printing import print_result
from ioweir.errors import EXIT_USAGE, IoweirError

if TYPE_CHECKING:
    from ioweir.predict.simulate import Options


def simulate(
    settings: Annotated[
        list[str] | None, typer.Argument(metavar="NAME=VALUE...", help="Parameters of the kernel.")
    ] = None,
    machine: Annotated[
        str | None, typer.Option("--machine", metavar="NAME|FILE", help="A machine of the package, or a machine file.")
    ] = None,
    kernel_name: Annotated[
        str | None, typer.Option("--kernel", metavar="KERNEL", help="This kernel, see `ioweir kernel --list`.")
    ] = None,
    traces: Annotated[
        list[Path] | None,
        typer.Option("--trace", metavar="DIR", help="The MPI-IO calls in this trace; several: to be scaled."),
    ] = None,
    file: Annotated[
        str | None, typer.Option("--file", metavar="PATH", help="Of the trace. [the one with most bytes]")
    ] = None,
    ranks: Annotated[
        int | None, typer.Option("--ranks", callback=fits, metavar="N", help="Ranks. [the trace's]")
    ] = None,
    plan: Annotated[
        Path | None, typer.Option("--plan", metavar="PLAN.toml", help="Under this plan. [as ROMIO does by default]")
    ] = None,
    api: Annotated[str, typer.Option("--api", metavar="API", help="Through which interface.")] = "mpiio",
    compute: Annotated[
        str | None, typer.Option("--compute", metavar="TIME", help="Between two calls that write. [0s]")
    ] = None,
    repeat: Annotated[int, typer.Option("--repeat", callback=fits, metavar="R", help="Runs, with a seed each.")] = 8,
    seed: Annotated[int, typer.Option("--seed", callback=fits, metavar="S", help="Of the first run.")] = 1,
    sweeps: Annotated[
        list[str] | None,
        typer.Option(
            "--sweep", metavar="AXIS=VALUE,...", help="Of ranks, targets, files, buffer, strategy; repeatable."
        ),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE.svg", help="Draw the sweep; FILE.html: a web page.")
    ] = None,
    trace_out: Annotated[
        Path | None,
        typer.Option("--trace-out", metavar="DIR", help="Write the run as a trace, for `ioweir report`."),
    ] = None,
    list_machines: Annotated[bool, typer.Option("--list", help="Name the machines of the package.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Foretell how long a program would take on a simulated machine, as a range."""
    from ioweir.predict import simulate as simulation  # noqa: PLC0415
    from ioweir.predict import text  # noqa: PLC0415

    if list_machines:
        machines = simulation.known_machines()
        print_result(as_json, machines, lambda: [f"{name:<14} {about}" for name, about in machines.items()])
        return
    all_traces = traces or []
    options = simulation.Options(
        machine, kernel_name, tuple(settings or ()), ranks, all_traces[0] if all_traces else None, file, plan,
        api, repeat, seed, simulation.compute_seconds(compute), trace_out, tuple(all_traces[1:]),
    )  # fmt: skip
    if sweeps and trace_out is not None:
        raise IoweirError("--trace-out writes one simulated run, and --sweep makes many; leave one out", EXIT_USAGE)
    if sweeps:
        _sweep(options, sweeps, plot, as_json=as_json)
        return
    if plot is not None:
        raise IoweirError("--plot draws a sweep; add --sweep AXIS=VALUE,...", EXIT_USAGE)
    with progress.shown("simulating", sys.stderr):
        result = simulation.simulate(options)
    print_result(as_json, result, lambda: text.to_text(result))


def tune(
    context: typer.Context,
    trace: Annotated[Path | None, typer.Argument(metavar="[DIR]", help="A trace.")] = None,
    settings: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME=VALUE...]", help="Parameters of the kernel.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="PLAN.toml", help="The plan to write.")
    ] = None,
    machine: Annotated[
        str | None,
        typer.Option("--machine", metavar="NAME|FILE", help="Where it is to run. [fitted to the trace]"),
    ] = None,
    kernel_name: Annotated[
        str | None, typer.Option("--kernel", metavar="KERNEL", help="This kernel, see `ioweir kernel --list`.")
    ] = None,
    ranks: Annotated[
        int | None, typer.Option("--ranks", callback=fits, metavar="N", help="Ranks of the kernel.")
    ] = None,
    file: Annotated[
        str | None, typer.Option("--file", metavar="PATH", help="Plan for the kind of this file alone. [all kinds]")
    ] = None,
    budget: Annotated[
        str | None, typer.Option("--budget", metavar="TIME", help="Begin no candidate after so long. [no limit]")
    ] = None,
    compute: Annotated[
        str | None, typer.Option("--compute", metavar="TIME", help="Of the kernel, between two calls that write. [0s]")
    ] = None,
    repeat: Annotated[int, typer.Option("--repeat", callback=fits, metavar="R", help="Runs of each candidate.")] = 8,
    seed: Annotated[int, typer.Option("--seed", callback=fits, metavar="S", help="Of the first run.")] = 1,
    force: Annotated[bool, typer.Option("--force", help="PLAN.toml may be replaced.")] = False,
    measure: Annotated[
        bool,
        typer.Option(
            "--measure/--quick", help="Replay the most promising plans, and take what helps; or only simulate."
        ),
    ] = False,
    directory: Annotated[
        Path | None, typer.Option("--directory", metavar="WHERE", help="Where to replay. [where the file was]")
    ] = None,
    rounds: Annotated[
        int | None,
        typer.Option("--rounds", callback=fits, metavar="N", help="Of each way, at most. [5, short ones up to 20]"),
    ] = None,
    contenders: Annotated[
        int | None,
        typer.Option("--contenders", callback=fits, metavar="N", help="Plans that are replayed. [fit in 20 s]"),
    ] = None,
    think: Annotated[
        str | None,
        typer.Option(
            "--think", metavar="keep|drop|FACTOR", help="Time between calls, of replays. [keep if a plan writes behind]"
        ),
    ] = None,
    mpi: Annotated[
        str | None, typer.Option("--mpi", metavar="openmpi|mpich", help="Replay with this library. [the trace's]")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Simulate a program under many plans, and write the one under which it is fastest, where one helps."""
    from ioweir.base import units  # noqa: PLC0415
    from ioweir.predict import simulate as simulation  # noqa: PLC0415
    from ioweir.predict import tune as tuning  # noqa: PLC0415

    if not measure:
        of_measuring = ("directory", "rounds", "contenders", "think", "mpi")
        refuse_typed(context, of_measuring, "is for --measure; add it, or leave this out")
    words = list(settings or ())
    if kernel_name is not None and trace is not None:
        words.insert(0, str(trace))
        trace = None
    elif words:
        raise IoweirError(f"{words[0]}: parameters are a kernel's; name it with --kernel", EXIT_USAGE)
    if output is None:
        raise IoweirError("tune writes a plan: say where, -o PLAN.toml", EXIT_USAGE)
    try:
        budget_s = None if budget is None else units.duration(f"{budget}s" if budget.isdigit() else budget)
    except ValueError as error:
        raise IoweirError(f"--budget: {error}", EXIT_USAGE) from error
    asked = tuning.Options(
        output, machine, trace, file, kernel_name, tuple(words), ranks, repeat, seed, budget_s, force,
        simulation.compute_seconds(compute),
    )  # fmt: skip
    if measure:
        from ioweir.loop import measure as measuring  # noqa: PLC0415

        how = measuring.Options(directory, rounds, budget_s, contenders, think, mpi)
        result = measuring.tune_measured(asked, how)
        print_result(as_json, result, lambda: measuring.to_text(result))
        return
    result = tuning.tune(asked)
    print_result(as_json, result, lambda: tuning.to_text(result))


def _sweep(options: Options, sweeps: list[str], plot: Path | None, *, as_json: bool) -> None:
    from ioweir.base import picture  # noqa: PLC0415
    from ioweir.predict import sweep, sweep_text  # noqa: PLC0415

    picture.check_name("--plot", plot)
    with progress.shown("simulating", sys.stderr):
        result = sweep.sweep(options, sweep.axes_of(sweeps))
    failed = all("error" in point for point in result["points"])
    if plot is not None and not failed:
        picture.save(plot, sweep_text.chart(result))
    print_result(as_json, result, lambda: sweep_text.to_text(result))
    if failed:
        raise IoweirError("--sweep: none of its points can be simulated; each says why", EXIT_USAGE)


def calibrate(
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="MACHINE.toml", help="The machine file. [with --kernels: kept for `ioweir tune`]"
        ),
    ] = None,
    targets: Annotated[
        Path | None, typer.Option("--targets", metavar="PATH", help="Measure the storage targets in effect there.")
    ] = None,
    trace: Annotated[Path | None, typer.Option("--trace", metavar="DIR", help="The POSIX calls in this trace.")] = None,
    runs: Annotated[
        Path | None, typer.Option("--runs", metavar="FILE", help="Measured runs of kernels, a JSON object a line.")
    ] = None,
    kernels: Annotated[
        Path | None,
        typer.Option("--kernels", metavar="DIR", help="Run kernels there: processors, and what the MPI library does."),
    ] = None,
    mpi: Annotated[
        str | None, typer.Option("--mpi", metavar="openmpi|mpich", help="With --kernels. [that of mpicc]")
    ] = None,
    ranks: Annotated[
        int | None,
        typer.Option("--ranks", "-n", callback=fits, metavar="N", help="With --kernels. [two a processor]"),
    ] = None,
    name: Annotated[str | None, typer.Option("--name", metavar="TEXT", help="Of the machine. [this host's]")] = None,
    repeats: Annotated[
        int, typer.Option("--repeats", callback=fits, metavar="N", help="How often each case is measured.")
    ] = 3,
    force: Annotated[bool, typer.Option("--force", help="MACHINE.toml may be replaced.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Fit a machine file to this machine's storage, and say what the measurements leave open."""
    from ioweir.predict import calibrate as calibration  # noqa: PLC0415

    options = calibration.Options(output, targets, trace, runs, name, repeats, force, kernels)
    if kernels is None and (mpi is not None or ranks is not None):
        raise IoweirError("--mpi and --ranks are of kernels that run: give --kernels DIR", EXIT_USAGE)
    if kernels is not None:
        from ioweir.loop import kernel_runs  # noqa: PLC0415

        calibration.check(options)
        kind = kernel_runs.mpi_of(mpi)
        with progress.shown("running kernels", sys.stderr):
            options = replace(options, mpi=kind, kernel_rows=kernel_runs.rows(kernels, kind, ranks, repeats))
    with progress.shown("measuring and fitting" if targets else "fitting", sys.stderr):
        result = calibration.calibrate(options)
    print_result(as_json, result, lambda: calibration.to_text(result))
