"""Pictures: charts in Vega-Lite's grammar, drawn by vl-convert as SVG, or as a web page with words at the mouse.

What a chart shows is said where its figures are (timeline_picture.py, schedule_picture.py, probe_picture.py): marks
over rows of data, each axis with a title and a unit, and for each mark a `description`, which screen readers and the
web page say. Layout is Vega's. docs/explanation/dependencies.md says why this library.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from typing import TYPE_CHECKING, Any, Final

from ioweir.base import json_text, plain_text
from ioweir.base.guarded_files import write_named
from ioweir.errors import EXIT_USAGE, IoweirError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

Chart = dict[str, Any]
"""A chart in Vega-Lite's grammar, as JSON would hold it."""

BLUE: Final = "#1a66b3"
RED: Final = "#cc0000"
GREY: Final = "#888888"

_VEGA_LITE: Final = "5.20"
_FORMS: Final = (".svg", ".html")
_TEXT: Final = "#333333"
_CONFIG: Final = {
    "font": "sans-serif",
    "title": {"anchor": "start", "fontSize": 14, "subtitleColor": _TEXT, "subtitlePadding": 4, "offset": 12},
    "axis": {"labelLimit": 260, "labelFontSize": 11, "titleFontWeight": "normal", "titleColor": _TEXT},
    "legend": {"titleFontWeight": "normal", "titleColor": _TEXT, "titleLimit": 260, "labelLimit": 260},
}


def check_name(option: str, path: Path | None) -> None:
    """Refuse a file whose name says that it is no picture of ours, before anything is worked out."""
    if path is not None and path.suffix not in _FORMS:
        raise IoweirError(
            f"{option} {path}: pictures are SVG, or web pages; name a file that ends in {' or '.join(_FORMS)}",
            EXIT_USAGE,
        )


def chart(title: str, subtitle: Sequence[str], content: Mapping[str, Any]) -> Chart:
    """A whole picture: a heading with lines below it, and `content`, which is a mark, `layer` or `vconcat`."""
    whole = {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "title": {"text": title, "subtitle": list(subtitle)},
        "padding": 12,
        "background": "white",
        "config": _CONFIG,
        **content,
    }
    result: Chart = _each_text(whole, plain_text.line)  # no characters that XML forbids
    return result


def axis(field: str, kind: str, title: str, **more: Any) -> dict[str, Any]:
    """An encoding along an axis that says what it shows, with the unit. `kind`: quantitative, ordinal or nominal."""
    return {"field": field, "type": kind, "title": title, **more}


def described() -> dict[str, Any]:
    """The encodings that say a mark in words: `description` of its row."""
    said = {"field": "description", "type": "nominal"}
    return {"description": said, "tooltip": said}


def save(path: Path, picture: Chart) -> None:
    """Write it in the form that the file's name asks for."""
    write_named(path, to_html(picture) if path.suffix == ".html" else to_svg(picture))


def to_svg(picture: Chart) -> str:
    """The picture as SVG that needs nothing else; its heading is its name for screen readers."""
    svg = _drawn("vegalite_to_svg", picture)
    name = plain_text.xml(picture["title"]["text"]).replace('"', "&quot;")
    return svg.replace("<svg ", f'<svg role="img" aria-label="{name}" ', 1) + "\n"


def to_html(picture: Chart) -> str:
    """The picture as a page that works without a network."""
    html = _drawn("vegalite_to_html", _each_text(picture, lambda text: text.replace("<", _LESS)), bundle=True)
    return html.replace(_LESS, "\\u003c")


_LESS: Final = "\ue000"
"""Stands for `<` until the chart is in the page's script, which a name such as "</script>" would end."""


def _each_text(value: Any, change: Callable[[str], str]) -> Any:
    """The value with every text in it changed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {key: _each_text(entry, change) for key, entry in value.items()}
    return [_each_text(entry, change) for entry in value] if isinstance(value, list) else value


_DRAW: Final = """
import sys
sys.path[:] = filter(None, sys.path)
import json, vl_convert
name, chart, options = json.load(sys.stdin)
sys.stdout.buffer.write(getattr(vl_convert, name)(chart, **options).encode())
"""


def _drawn(name: str, picture: Chart, **options: bool) -> str:
    """What a function of vl-convert makes of the chart, in a process of its own, which imports nothing that lies about.

    Its JavaScript engine starts threads, which a process that forks later must not have; and where it gets no room for
    the terabytes of addresses that it reserves, it ends the process.
    """
    call = json_text.text([name, picture, {"vl_version": _VEGA_LITE, **options}])
    done = subprocess.run([sys.executable, "-c", _DRAW], input=call.encode(), capture_output=True, check=False)
    if done.returncode == 0:
        return done.stdout.decode()
    said = done.stderr.decode(errors="replace").strip()
    if "ModuleNotFoundError" in said:
        raise IoweirError("pictures need vl-convert: pip install vl-convert-python")
    if resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY:
        raise IoweirError("pictures cannot be drawn where address space is limited: `ulimit -v unlimited` lifts that")
    raise IoweirError(f"the picture cannot be drawn: {said[-300:] or f'vl-convert ended with {done.returncode}'}")
