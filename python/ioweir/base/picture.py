"""Pictures: charts in Vega-Lite's grammar, drawn by vl-convert as SVG, or as a web page with words at the mouse.

What a chart shows is said where its figures are (timeline_picture.py, schedule_picture.py, probe_picture.py): marks
over rows of data, each axis with a title and a unit, and for each mark a `description`, which screen readers and the
web page say. Layout is Vega's. docs/explanation/dependencies.md says why this library.
"""

from __future__ import annotations

import resource
from typing import TYPE_CHECKING, Any, Final

from ioweir.base import plain_text
from ioweir.base.guarded_files import write_named
from ioweir.errors import EXIT_USAGE, IoweirError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
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
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "title": {"text": plain_text.line(title), "subtitle": [plain_text.line(line) for line in subtitle]},
        "padding": 12,
        "background": "white",
        "config": _CONFIG,
        **content,
    }


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
    svg: str = _library().vegalite_to_svg(_clean(picture), vl_version=_VEGA_LITE)
    name = plain_text.xml(picture["title"]["text"]).replace('"', "&quot;")
    return svg.replace("<svg ", f'<svg role="img" aria-label="{name}" ', 1) + "\n"


def to_html(picture: Chart) -> str:
    """The picture as a page that works without a network."""
    html: str = _library().vegalite_to_html(_clean(picture, _LESS), vl_version=_VEGA_LITE, bundle=True)
    return html.replace(_LESS, "\\u003c")


_LESS: Final = "\ue000"
"""Stands for `<` until the chart is in the page's script, which a name such as "</script>" would end."""


def _clean(picture: Chart, less: str = "<") -> Chart:
    """Without characters that a terminal obeys or XML forbids."""

    def cleaned(value: Any) -> Any:
        if isinstance(value, str):
            return plain_text.line(value).replace("<", less)
        if isinstance(value, dict):
            return {key: cleaned(entry) for key, entry in value.items()}
        return [cleaned(entry) for entry in value] if isinstance(value, list) else value

    result: Chart = cleaned(picture)
    return result


def _library() -> Any:
    if resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY:
        # Its JavaScript engine reserves addresses by the terabyte, and ends the process where it gets none.
        raise IoweirError("pictures cannot be drawn where address space is limited: `ulimit -v unlimited` lifts that")
    try:
        import vl_convert  # noqa: PLC0415 (large, and only pictures need it)
    except ImportError as error:
        raise IoweirError(f"pictures need vl-convert ({error}): pip install vl-convert-python") from error
    return vl_convert
