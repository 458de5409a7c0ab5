"""The drawings of docs/ say what they show to those who do not see them, and the ranges that one draws are its page's.

Not here: pictures that benchmarks write (docs/results), whether a drawing is beautiful.
"""

from __future__ import annotations

import itertools
import math
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Final

import pytest

DOCS: Final = Path(__file__).resolve().parents[2] / "docs"
IN_SHORT: Final = DOCS / "results" / "in-short.svg"
DRAWINGS: Final = [*sorted((DOCS / "explanation").glob("*.svg")), IN_SHORT]
SVG: Final = "{http://www.w3.org/2000/svg}"
ONE: Final = 380.0
"""Where in-short.svg has the factor 1."""
DOUBLING: Final = 56.0


@pytest.mark.parametrize("drawing", DRAWINGS, ids=[path.stem for path in DRAWINGS])
def test_a_drawing_says_what_it_shows(drawing: Path) -> None:
    root = ET.parse(drawing).getroot()
    texts = {name: root.find(f"{SVG}{name}") for name in ("title", "desc")}
    assert root.get("role") == "img"
    assert root.get("aria-labelledby") == " ".join(
        str(found.get("id")) for found in texts.values() if found is not None
    )
    assert [name for name, found in texts.items() if found is None or len((found.text or "").split()) < 2] == []
    # Its own ground: it is read on a dark page, too.
    ground = root.find(f"{SVG}rect")
    assert ground is not None
    assert ground.get("fill") == "#fff"


@pytest.mark.parametrize("drawing", DRAWINGS, ids=[path.stem for path in DRAWINGS])
def test_a_drawing_is_on_one_page_with_words_in_its_place(drawing: Path) -> None:
    shown = [
        words
        for page in drawing.parent.glob("*.md")
        for words in re.findall(rf"!\[([^\]]*)\]\({drawing.name}\)", page.read_text(encoding="utf-8"))
    ]
    assert len(shown) == 1
    assert len(shown[0].split()) > 8


def test_the_ranges_drawn_are_those_of_the_page() -> None:
    page = (DOCS / "results" / "index.md").read_text(encoding="utf-8")
    table = page.partition("## In short")[2].partition("\n## ")[0]
    elements = list(ET.parse(IN_SHORT).getroot())
    drawn = 0
    for bar, label in itertools.pairwise(elements):
        if "range" not in (label.get("class") or "").split():
            continue
        said = label.text or ""
        least, most = (ONE + DOUBLING * math.log2(float(value)) for value in said.split(" to "))
        start = float(bar.get("x", "nan"))
        assert (start, start + float(bar.get("width", "nan"))) == pytest.approx((least, most), abs=0.2), said
        assert bar.get("class") == ("gain" if least > ONE else "same"), said
        assert re.search(rf"(?<![\d.]){re.escape(said)}(?![\d.]*\d)", table), said
        drawn += 1
    assert drawn > 5
