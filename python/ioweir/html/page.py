"""The page: assets/ and what one run comes to, put into one file that needs no other.

The scripts and styles are named in a content security policy by their hashes; the page may load nothing from anywhere,
and no text of a trace can become a script. What is shown is decided in model.py and findings_html.py.
"""

from __future__ import annotations

import base64
import hashlib
import pkgutil
import re
import shlex
import time
from typing import TYPE_CHECKING, Final

from ioweir.base import plain_text
from ioweir.base.guarded_files import write_named
from ioweir.errors import IoweirError
from ioweir.html import findings_html
from ioweir.html.model import picture_model
from ioweir.html.packing import script_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from ioweir.findings.model import Findings
    from ioweir.report import model
    from ioweir.trace.reader import Trace

LIBRARY: Final = "echarts.min.js"
"""Apache ECharts; tools/web.sh fetches it when ioweir is built."""
SCRIPTS: Final = (
    "words.js",
    "theme.js",
    "data.js",
    "plots.js",
    "heat.js",
    "time.js",
    "calls.js",
    "matrix.js",
    "tables.js",
    "main.js",
)
"""Of ours, in the order in which they are put together."""
_PLACE: Final = re.compile(r"\{\{(\w+)\}\}")


def write(path: Path, trace: Trace, report: model.Report, found: Findings) -> None:
    """Write the page of a run."""
    write_named(path, page(trace, report, found))


def page(trace: Trace, report: model.Report, found: Findings) -> str:
    """The page of a run."""
    library, own, style = asset(LIBRARY), own_script(SCRIPTS), asset("page.css")
    program = shlex.join(report.command) if report.command else report.program or "PROGRAM"
    name = plain_text.xml(report.program.rpartition("/")[2] or "a run")
    started = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(report.started)) if report.started else ""
    # One pass: what is filled in is not looked at again, whatever a file's name is.
    values = {
        "head": head(f"{name}: I/O report", [library, own], style),
        "title": name,
        "command": plain_text.xml(plain_text.line(program)),
        "about": plain_text.xml(
            ", ".join(filter(None, [started, *report.mpi_libraries[:1], f"trace {trace.directory}"]))
        ),
        "summary": findings_html.summary(report, found),
        "findings": findings_html.findings(found, trace.directory, program),
        "data": script_json(picture_model(trace, report)),
        "library": library,
        "script": own,
    }
    return filled(asset("page.html"), values)


def head(title: str, scripts: Sequence[str], style: str) -> str:
    """What every page begins with; `title` is escaped."""
    return filled(asset("head.html"), {"policy": policy(scripts, style), "title": title, "style": style})


def filled(template: str, values: Mapping[str, str]) -> str:
    """A template with its places filled in, in one pass."""
    return _PLACE.sub(lambda found: values[found[1]], template)


def policy(scripts: Sequence[str], style: str) -> str:
    """The content security policy of a page with these scripts and no others."""
    allowed = " ".join(_hash(script) for script in scripts)
    return (
        f"default-src 'none'; script-src {allowed}; style-src {_hash(style)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def own_script(names: Sequence[str]) -> str:
    """Some of assets' scripts as one."""
    inner = "\n".join(asset(name) for name in names)
    return f'(() => {{\n"use strict";\n{inner}}})();\n'


def _hash(text: str) -> str:
    """The source expression by which a policy names an element's text."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def asset(name: str) -> str:
    """A file of assets/, with line ends as the browser hashes them."""
    try:
        content = pkgutil.get_data("ioweir.html", f"assets/{name}")
    except FileNotFoundError:
        content = None
    if content is None:
        raise IoweirError(
            f"this installation of ioweir has no {name}, which web pages need: it was built without tools/web.sh"
        )
    return content.decode().replace("\r\n", "\n")
