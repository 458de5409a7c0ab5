"""Commands of ioweir.site: many runs together."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ioweir.base import plain_text, progress
from ioweir.cli.arguments import JsonOption, was_typed
from ioweir.cli.printing import print_result
from ioweir.errors import EXIT_FAILED, EXIT_USAGE, IoweirError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ioweir.site.collect import Done
    from ioweir.site.store import Store

site_app = typer.Typer(help="Many runs of a site together.", no_args_is_help=True, rich_markup_mode=None)

StoreArgument = Annotated[Path, typer.Argument(metavar="STORE", help="The folder in which runs are kept.")]


@site_app.command("add")
def site_add(
    store: StoreArgument,
    places: Annotated[list[Path], typer.Argument(metavar="DIR...", help="Traces, or folders with traces in them.")],
    anonymise: Annotated[
        bool, typer.Option("--anonymise", help="Keep digests in place of names of programs and users.")
    ] = False,
    settled: Annotated[
        str,
        typer.Option("--settled", metavar="TIME", help="Leave traces without an end that were written to within it."),
    ] = "1h",
    jobs: Annotated[int | None, typer.Option("--jobs", metavar="N", help="Traces read at a time. [processors]")] = None,
    group: Annotated[
        str | None,
        typer.Option("--group", metavar="NAME", help="Let this group of yours read the store. [nobody but you]"),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Keep what runs came to; each is read once, and its trace may go afterwards."""
    from ioweir.base import groups  # noqa: PLC0415
    from ioweir.site import collect  # noqa: PLC0415
    from ioweir.site.store import Store  # noqa: PLC0415

    settled_s = _duration("--settled", settled)
    if jobs is not None and jobs < 1:
        raise IoweirError(f"--jobs {jobs}: at least 1", EXIT_USAGE)
    number = groups.number_of(group) if group is not None else None
    with Store.make_or_open(store, number) as opened, progress.shown("reading traces", sys.stderr):
        done = collect.add(opened, places, settled_s, jobs or collect.processors(), anonymise=anonymise)
    print_result(as_json, done, lambda: _added(done))
    _say_not_read(opened)
    if done.failed:
        print(f"{len(done.failed)} of the traces could not be read", file=sys.stderr)
    if done.failed or opened.not_read:
        raise typer.Exit(EXIT_FAILED)


def _say_not_read(store: Store) -> None:
    """What the store could not tell, for it is damaged."""
    for why in store.not_read.values():
        plain_text.say(f"ioweir: {why}")
    if store.not_read:
        plain_text.say(
            "ioweir: what those files say is missing above; restore them from a copy, or remove them and add the "
            "traces again"
        )


def _added(done: Done) -> Iterator[str]:
    yield f"{done.added:,} runs added, {done.known:,} were there, {len(done.unsettled):,} are still being written"
    yield from (f"not read: {path}: {why}" for path, why in done.failed.items())


@site_app.command("show")
def site_show(
    context: typer.Context,
    store: StoreArgument,
    since: Annotated[str | None, typer.Option("--since", metavar="DAY", help="Runs that began then or later.")] = None,
    until: Annotated[str | None, typer.Option("--until", metavar="DAY", help="Runs that began then or before.")] = None,
    user: Annotated[str | None, typer.Option("--user", metavar="NAME", help="Runs of this user.")] = None,
    top: Annotated[int, typer.Option("--top", metavar="N", help="Rows of each table.")] = 10,
    engine: Annotated[
        str | None,
        typer.Option(
            "--engine", metavar="NAME", help="What adds up: duckdb, dask or arrow. [duckdb if installed, else arrow]"
        ),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(
            "--scheduler", metavar="ADDRESS", help="Of Dask, whose workers add up: tcp://node1:8786. [this machine]"
        ),
    ] = None,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write it as one web page that needs no network.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Say which programs lose most time to what, over weeks."""
    from ioweir.site import engines, summary  # noqa: PLC0415
    from ioweir.site.store import Store  # noqa: PLC0415

    if top < 1:
        raise IoweirError(f"--top {top}: at least 1", EXIT_USAGE)
    if was_typed(context, "engine") and engine != engines.DASK and not was_typed(context, "scheduler"):
        scheduler = None  # a default, which gives way
    if engine is None:
        engine = engines.DASK if scheduler is not None else engines.default()
    choice = summary.chosen(since, until, user)
    with (
        Store.open(store) as opened,
        progress.shown("reading the store", sys.stderr),
        engines.make(engine, opened, choice, scheduler) as made,
    ):
        result = summary.of(made, since, until)
    if html is not None:
        from ioweir.html import site_page  # noqa: PLC0415

        site_page.write(html, result)
        if not as_json:
            plain_text.print_lines([f"written: {html}"])
    if html is None or as_json:
        print_result(as_json, result, lambda: summary.to_text(result, top))
    _say_not_read(opened)
    if opened.not_read:
        raise typer.Exit(EXIT_FAILED)


@site_app.command("forget")
def site_forget(
    store: StoreArgument,
    before: Annotated[
        str | None, typer.Option("--before", metavar="MONTH", help="Such as 2026-01; that month stays.")
    ] = None,
    older_than: Annotated[
        str | None, typer.Option("--older-than", metavar="TIME", help="Such as 90d: runs that began longer ago.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would go.")] = False,
) -> None:
    """Remove what is kept of old runs."""
    import calendar  # noqa: PLC0415
    import re  # noqa: PLC0415
    import time  # noqa: PLC0415

    from ioweir.site.store import Store  # noqa: PLC0415

    if (before is None) == (older_than is None):
        raise IoweirError("forget needs --older-than TIME, such as 90d, or --before MONTH", EXIT_USAGE)
    if older_than is not None:
        since = time.time() - _duration("--older-than", older_than)
    elif before is not None and re.fullmatch(r"\d{4}-(0[1-9]|1[0-2])", before):
        since = float(calendar.timegm((int(before[:4]), int(before[5:]), 1, 0, 0, 0)))
    else:
        raise IoweirError(f"--before '{before}' is no month: write it as 2026-01", EXIT_USAGE)
    with Store.open(store) as opened:
        gone = opened.forget(since, dry_run=dry_run)
    verb = "would be forgotten" if dry_run else "forgotten"
    plain_text.print_lines([f"{gone.runs:,} runs {verb}; of {gone.files:,} files nothing is left"])
    _say_not_read(opened)
    if opened.not_read:
        raise typer.Exit(EXIT_FAILED)


@site_app.command("prune")
def site_prune(
    places: Annotated[list[Path], typer.Argument(metavar="DIR...", help="Folders with traces in them.")],
    older_than: Annotated[
        str, typer.Option("--older-than", metavar="TIME", help="Such as 30d: nobody wrote into the trace for so long.")
    ],
    store: Annotated[
        Path | None, typer.Option("--store", metavar="STORE", help="Only traces that this store has.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Remove them. [only list them]")] = False,
    as_json: JsonOption = False,
) -> None:
    """Find old traces, and remove them: nothing else, no trace that is being written, and through no link."""
    from ioweir.site import retention  # noqa: PLC0415
    from ioweir.site.store import Store  # noqa: PLC0415

    older_than_s = _duration("--older-than", older_than)
    if store is None:
        done = retention.prune(places, older_than_s, None, remove=yes)
    else:
        with Store.open(store) as opened:
            done = retention.prune(places, older_than_s, opened, remove=yes)
    print_result(as_json, done, lambda: retention.to_text(done))
    if any(one.kept.startswith("cannot be removed") for one in done.traces):
        raise typer.Exit(EXIT_FAILED)


def _duration(option: str, text: str) -> float:
    from ioweir.base.units import duration  # noqa: PLC0415

    try:
        return duration(text)
    except ValueError as error:
        raise IoweirError(f"{option}: {error}", EXIT_USAGE) from None
