"""Commands of ioweir.site: many runs together."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ioweir.base import plain_text, progress
from ioweir.cli.arguments import JsonOption
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
    as_json: JsonOption = False,
) -> None:
    """Keep what runs came to; each is read once, and its trace may go afterwards."""
    from ioweir.base.units import duration  # noqa: PLC0415
    from ioweir.site import collect  # noqa: PLC0415
    from ioweir.site.store import Store  # noqa: PLC0415

    try:
        settled_s = duration(settled)
    except ValueError as error:
        raise IoweirError(f"--settled: {error}", EXIT_USAGE) from None
    if jobs is not None and jobs < 1:
        raise IoweirError(f"--jobs {jobs}: at least 1", EXIT_USAGE)
    with Store.make_or_open(store) as opened, progress.shown("reading traces", sys.stderr):
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
    store: StoreArgument,
    since: Annotated[str | None, typer.Option("--since", metavar="DAY", help="Runs that began then or later.")] = None,
    until: Annotated[str | None, typer.Option("--until", metavar="DAY", help="Runs that began then or before.")] = None,
    user: Annotated[str | None, typer.Option("--user", metavar="NAME", help="Runs of this user.")] = None,
    top: Annotated[int, typer.Option("--top", metavar="N", help="Rows of each table.")] = 10,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write it as one web page that needs no network.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Say which programs lose most time to what, over weeks."""
    from ioweir.site import summary  # noqa: PLC0415
    from ioweir.site.store import Store  # noqa: PLC0415

    if top < 1:
        raise IoweirError(f"--top {top}: at least 1", EXIT_USAGE)
    with Store.open(store) as opened, progress.shown("reading the store", sys.stderr):
        result = summary.of(opened.tables(), since, until, user)
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
    before: Annotated[str, typer.Option("--before", metavar="MONTH", help="Such as 2026-01; that month stays.")],
) -> None:
    """Remove what is kept of old months."""
    import re  # noqa: PLC0415

    from ioweir.site.store import Store  # noqa: PLC0415

    if not re.fullmatch(r"\d{4}-(0[1-9]|1[0-2])", before):
        raise IoweirError(f"--before '{before}' is no month: write it as 2026-01", EXIT_USAGE)
    with Store.open(store) as opened:
        gone = opened.forget(before)
    plain_text.print_lines([f"{gone:,} files removed"])
