"""Pictures: what is needed to draw them is said, web pages need nothing from a network, axes have titles."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from ioweir.base import picture
from ioweir.base.units import size_unit, time_unit
from ioweir.errors import IoweirError
from ioweir.plan import schedule_picture

CHART = schedule_picture.chart({(0, 1): {0: 1}}, "title", "subtitle")


def test_a_library_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "vl_convert.py").write_text("raise ModuleNotFoundError('vl_convert')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(IoweirError, match="pictures need vl-convert: pip install vl-convert-python"):
        picture.to_svg(CHART)


def test_limited_address_space_is_an_error_and_no_crash() -> None:
    """The library ends its process by a signal."""
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))\n"
        "from ioweir.base import picture; picture.to_svg(picture.chart('', [], {'mark': 'rect'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "`ulimit -v unlimited`" in done.stderr


def test_a_chart_that_cannot_be_drawn_is_an_error() -> None:
    with pytest.raises(IoweirError, match="the picture cannot be drawn: "):
        picture.to_svg(picture.chart("", [], {"mark": "nothing"}))


def test_the_form_is_that_of_the_name(tmp_path: Path) -> None:
    picture.save(tmp_path / "a.svg", CHART)
    picture.save(tmp_path / "a.html", CHART)
    assert (tmp_path / "a.svg").read_text().startswith('<svg role="img" aria-label="title"')
    page = (tmp_path / "a.html").read_text()
    assert not re.search(r"<(script|link)[^>]* (src|href)=", page), "a page that needs no network"
    picture.check_name("--picture", None)
    picture.check_name("--picture", Path("a.html"))
    with pytest.raises(IoweirError, match=r"--plot a\.png: pictures are SVG, or web pages; name a file that ends in"):
        picture.check_name("--plot", Path("a.png"))


def test_the_same_chart_is_the_same_picture() -> None:
    assert picture.to_svg(CHART) == picture.to_svg(CHART)


def test_units_of_axes() -> None:
    assert [time_unit(longest)[0] for longest in (90.0, 0.02, 3e-6, 1e-9, 0)] == ["s", "ms", "us", "ns", "ns"]
    assert [size_unit(largest) for largest in (5e6, 100)] == [("MiB", 1024.0**2), ("B", 1.0)]
