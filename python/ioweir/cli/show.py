"""What `ioweir report` and `ioweir findings` do, and how they are asked for without the command line's library.

After a run these two are asked for most. To load typer and the commands costs about as much as to make the columns of
half a million calls. So a directory and plain options are understood here (`plain_command`); all else is typer's.
"""

from __future__ import annotations

import gc
import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ioweir.base import one_thread, plain_text, progress
from ioweir.cli.printing import print_result
from ioweir.errors import EXIT_FAILED, IoweirError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_INTERRUPTED: Final = 130
_FLAGS: Final = {"--json": "as_json", "--events": "events"}
_VALUES: Final = {"report": {"--html": "html"}, "findings": {"--plan": "plan"}}


def plain_command(words: Sequence[str]) -> Callable[[], None] | None:
    """What `ioweir WORDS` does, where that is a report or findings of one directory with plain options; else None."""
    name, *rest = words or [""]
    if name not in _VALUES or _has_defaults():
        return None
    given: dict[str, Any] = {}
    directories: list[str] = []
    while rest:
        word = rest.pop(0)
        if word in _FLAGS:
            given[_FLAGS[word]] = True
        elif word in _VALUES[name] and rest and not rest[0].startswith("-") and _VALUES[name][word] not in given:
            given[_VALUES[name][word]] = rest.pop(0)
        elif word and not word.startswith("-"):
            directories.append(word)
        else:
            return None
    if len(directories) != 1 or ("plan" in given and "as_json" in given):
        return None
    if "html" in given:
        given["html"] = Path(given["html"])
    return partial(_run, report if name == "report" else findings, Path(directories[0]), given)


def _has_defaults() -> bool:
    """Whether somebody has written down defaults of options, or what is none: typer says so."""
    from ioweir.launch import defaults  # noqa: PLC0415

    try:
        return any(sections for _, sections in defaults.load(os.environ).sections)
    except IoweirError:
        return True


def _run(command: Callable[..., None], directory: Path, given: dict[str, Any]) -> None:
    # Of 10,000 files a quarter of the time would go into looking for cycles, of which these commands make none.
    gc.set_threshold(1_000_000)
    try:
        command(directory, **given)
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)


def report(directory: Path, html: Path | None = None, *, events: bool = False, as_json: bool = False) -> None:
    """Say where the time of a traced run went."""
    from ioweir.report import figures  # noqa: PLC0415
    from ioweir.report.run_findings import findings_of  # noqa: PLC0415
    from ioweir.trace.reader import load  # noqa: PLC0415

    trace = load(directory, sums_of_many=not events)
    result = figures.build(trace, sys.stderr)
    if html is not None:
        one_thread.load_numpy()
        from ioweir.html import page  # noqa: PLC0415

        found = findings_of(trace, result)
        page.write(html, trace, result, found)
        result.findings = found.findings
        if not as_json:
            plain_text.print_lines([f"written: {html}"])
            fail_if(result.unreadable)
            return
    if as_json:
        if html is None:
            one_thread.load_numpy()
            result.findings = findings_of(trace, result).findings
        from ioweir.base import json_text  # noqa: PLC0415

        plain_text.print_lines(json_text.lines(result))
    else:
        from ioweir.report import report_text  # noqa: PLC0415

        report_text.write(result, sys.stdout)
    fail_if(result.unreadable)


def findings(directory: Path, *, plan: str | None = None, events: bool = False, as_json: bool = False) -> None:
    """Say what is wrong with the I/O of a traced run, what it costs, and what to do."""
    from ioweir.findings import text  # noqa: PLC0415
    from ioweir.report.lacking import partial_reasons  # noqa: PLC0415
    from ioweir.report.run_findings import findings_of  # noqa: PLC0415
    from ioweir.trace.attribute import attribute_processes  # noqa: PLC0415
    from ioweir.trace.reader import load  # noqa: PLC0415

    with progress.shown("looking for findings", sys.stderr):
        trace = load(directory, sums_of_many=not events)
        one_thread.load_numpy()
        found = findings_of(trace)
    if plan is not None:
        plain_text.print_lines(text.plan_of(found, plan).splitlines())
    else:
        lacking = text.lacking(partial_reasons(trace, attribute_processes(trace.processes)))
        print_result(as_json, found.findings, lambda: [*text.full(found, str(directory)), *lacking])
        if as_json and lacking:
            print("\n".join(plain_text.line(one) for one in lacking), file=sys.stderr)
    fail_if(trace.unreadable)


def fail_if(unreadable: Sequence[str]) -> None:
    """A trace that lacks whole nodes: what there is was printed, and a script learns that it is not all."""
    if unreadable:
        print(plain_text.line(f"ioweir: nodes are missing in this: {'; '.join(unreadable)}"), file=sys.stderr)
        sys.exit(EXIT_FAILED)
