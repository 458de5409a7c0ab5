"""Commands of ioweir.report and ioweir.trace: what a trace comes to."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ioweir.base import plain_text, progress
from ioweir.cli import show
from ioweir.cli.arguments import JsonOption, refuse_typed
from ioweir.cli.printing import print_result
from ioweir.errors import EXIT_USAGE, IoweirError

EventsOption = Annotated[
    bool, typer.Option("--events", help="Read every event, where sums would do: of 256 nodes and more.")
]


def report(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="What `ioweir run` wrote.")],
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write it as one web page that needs no network.")
    ] = None,
    events: EventsOption = False,
    as_json: JsonOption = False,
) -> None:
    """Say where the time of a traced run went."""
    show.report(directory, html, events=events, as_json=as_json)


def findings(
    context: typer.Context,
    directory: Annotated[Path | None, typer.Argument(metavar="DIR", help="What `ioweir run` wrote.")] = None,
    explain: Annotated[str | None, typer.Option("--explain", metavar="CODE", help="Say what a code means.")] = None,
    plan: Annotated[
        str | None, typer.Option("--plan", metavar="CODE", help="Print the plan that helps against this finding.")
    ] = None,
    events: EventsOption = False,
    as_json: JsonOption = False,
) -> None:
    """Say what is wrong with the I/O of a traced run, what it costs, and what to do."""
    from ioweir.findings import text  # noqa: PLC0415

    if explain is not None:
        refuse_typed(context, ("plan", "as_json"), "does not go with --explain, which prints text")
        plain_text.print_lines(text.explain(explain))
        return
    if plan is not None:
        refuse_typed(context, ("as_json",), "does not go with --plan, which prints a plan file")
    if directory is None:
        raise IoweirError("findings needs a trace: ioweir findings DIR (or --explain CODE)", EXIT_USAGE)
    show.findings(directory, plan=plan, events=events, as_json=as_json)


def timeline(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="What `ioweir run` wrote.")],
    op: Annotated[str, typer.Option("--op", metavar="write|read", help="What is shown.")] = "write",
    by: Annotated[str, typer.Option("--by", metavar="file|target|rank", help="What a row is.")] = "file",
    bins: Annotated[int, typer.Option("--bins", metavar="N", help="Into so many parts the time is divided.")] = 200,
    picture: Annotated[Path | None, typer.Option("--picture", metavar="FILE.svg", help="Draw it.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Show when each file, storage target or rank was written or read in a traced run."""
    from ioweir.report import timeline as over_time  # noqa: PLC0415

    with progress.shown("reading the trace", sys.stderr):
        result = over_time.timeline(directory, over_time.Options(op, by, bins, picture))
    print_result(as_json, result, lambda: over_time.to_text(result))
    show.fail_if(result.unreadable)


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
    from ioweir.trace import merge  # noqa: PLC0415

    merged = merge.merge(directory, output, sys.stderr)
    print_result(as_json, merge.to_json(merged), lambda: merge.to_text(merged))
    show.fail_if(merged.unreadable)


def merge_sums(
    sources: Annotated[list[Path], typer.Argument(metavar="DIR...", help="Traces, or what this command made of them.")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="OUT", help="A directory, new or empty.")],
    jobs: Annotated[int, typer.Option(min=1, metavar="N", help="Nodes whose events are read at once.")] = 1,
    host: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Of this node only; may be given several times.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Add up the events of each node, and put the sums of all nodes together: reports then read no event."""
    from ioweir.report import merge_sums as merging  # noqa: PLC0415

    with progress.shown("adding up the nodes' events", sys.stderr):
        merged = merging.merge(sources, output, jobs=jobs, hosts=host)
    print_result(as_json, merging.to_json(merged), lambda: merging.to_text(merged))


def compress(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="What `ioweir run` wrote.")],
    unfinished: Annotated[
        bool,
        typer.Option(
            "--unfinished", help="Also where a process was killed. No process may write into the trace any more."
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Compress the nodes' files of a trace, as `ioweir run` does at its end."""
    from ioweir.trace import compressed, reader  # noqa: PLC0415

    with progress.shown("compressing", sys.stderr):
        trace = reader.read(directory)
        done = compressed.compress_all(directory, trace, also_unfinished=unfinished)
    print_result(as_json, compressed.to_json(done), lambda: compressed.to_text(done))
    show.fail_if(trace.unreadable)


def export(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="What `ioweir run` or `ioweir import` wrote.")],
    form: Annotated[str, typer.Option("--format", metavar="perfetto|parquet|csv", help="Of which tool.")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="OUT", help="The file; for parquet a directory.")],
    as_json: JsonOption = False,
) -> None:
    """Write the events of a trace in the form of other tools."""
    from ioweir.exports import run  # noqa: PLC0415

    made = run.export(directory, form, output, sys.stderr)
    print_result(as_json, made, lambda: run.to_text(made))
    show.fail_if(made.unreadable)


def import_log(
    log: Annotated[Path, typer.Argument(metavar="LOG", help="A log of Darshan, or a directory of Recorder.")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="The directory to make.")],
    as_json: JsonOption = False,
) -> None:
    """Make a directory that report, findings and compare read of another tool's log."""
    from ioweir.imports import run  # noqa: PLC0415
    from ioweir.launch import forwarding  # noqa: PLC0415

    with forwarding.ending_in_order(), progress.shown("reading the log", sys.stderr):
        made = run.import_log(log, output)
    print_result(as_json, made, lambda: run.to_text(made))
