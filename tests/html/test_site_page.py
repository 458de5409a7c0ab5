"""The page of a site in a browser: what it says, its tables and bars, and that names stay text.

Not here: the figures (tests/python/test_site.py).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import browser
import pytest
from ioweir.html import site_page
from ioweir.site.summary import SITE_VERSION, Code, Program, Summary, Week
from test_page import HOSTILE, PROGRAM, needs_browser

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def summary(weeks: int, program: str = "solver") -> Summary:
    """Two programs, of which the second is never slow."""
    said = Summary(SITE_VERSION, "2026-01-05", None, 3 * weeks, 30.0 * weeks, 9.0 * weeks)
    said.weeks = [Week(f"2026-{1 + at // 4:02}-{5 + 7 * (at % 4):02}", 3, 30.0, 9.0 + at) for at in range(weeks)]
    said.programs = [
        Program(program, 2, 1, 20.0, 8.5, 1 << 30, 1 << 20, "lock-wait", 7.5, 1.5, 6.25),
        Program("quick", 1, 1, 10.0, 0.5, 1 << 10, 0, "", 0.0, 0.0, 0.0),
    ]
    said.findings = [Code("lock-wait", 2, 1, 7.5, 1.5, 6.25)]
    return said


@pytest.fixture
def page() -> Iterator[browser.Page]:
    """A browser whose page complains of nothing."""
    assert PROGRAM is not None  # needs_browser
    with browser.browser(PROGRAM) as opened:
        opened.prefer("light")
        opened.size(1280, 900)
        yield opened
        assert opened.errors == []


@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_enters_the_page_as_anything_but_text(name: str) -> None:
    text = site_page.page(summary(3, name))
    assert text.count("<script") == text.count("</script>") == 2
    assert "<img src=x" not in text
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\ud800-\udfff]", text.split("<script>")[0])


def test_a_store_without_runs_makes_a_page() -> None:
    assert "<svg" not in site_page.page(Summary(SITE_VERSION, None, None, 0, 0.0, 0.0))


@needs_browser
@pytest.mark.parametrize("weeks", [1, 10, 48])
def test_bars_and_their_dates_lie_inside_and_apart(page: browser.Page, tmp_path: Path, weeks: int) -> None:
    file = tmp_path / "page.html"
    site_page.write(file, summary(weeks))
    page.open(file)
    assert page.ask("document.querySelectorAll('.runs .bar').length") == weeks
    apart = page.ask(
        "(() => { const all = document.querySelector('.runs').getBoundingClientRect();"
        "const boxes = [...document.querySelectorAll('.runs text')].map((part) => part.getBoundingClientRect());"
        "const inside = boxes.every((box) => box.left >= all.left - 1 && box.right <= all.right + 1);"
        "const over = (a, b) => a.left < b.right && b.left < a.right && a.top + 2 < b.bottom && b.top + 2 < a.bottom;"
        "return inside && !boxes.some((a, i) => boxes.some((b, j) => i < j && over(a, b))); })()"
    )
    assert apart


@needs_browser
def test_tables_say_it_and_sort_by_number(page: browser.Page, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    site_page.write(file, summary(10))
    page.open(file)
    first = "[...document.querySelectorAll('[data-table=programs] tbody tr')].map((row) => row.cells[{}].textContent)"
    assert page.ask(first.format(0)) == ["solver", "quick"]
    assert page.ask(first.format(9)) == ["1.00 GiB", "1.00 KiB"]
    page.ask("document.querySelectorAll('[data-table=programs] thead button')[3].click()")
    page.ask("document.querySelectorAll('[data-table=programs] thead button')[3].click()")
    assert page.ask(first.format(3)) == ["10", "20"]
    assert "lock-wait" in page.ask("document.querySelector('[data-table=findings]').innerText")
