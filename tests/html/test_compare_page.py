"""The page of a comparison in a browser: what it says, its tables, its colours, and that names stay text."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

import browser
import pytest
from ioweir.html import compare_page
from ioweir.report import compare
from test_page import HOSTILE, PROGRAM, RUN, needs_browser
from traces import Builder, Call
from tracing import IOWEIR, run

if TYPE_CHECKING:
    from collections.abc import Iterator

MIB: Final = 1 << 20


def traced(folder: Path, wall_s: float, piece: int = 4 * MIB, program: str = "/opt/<b>solver</b>") -> Path:
    """Two ranks write 64 MiB in pieces: of 4 KiB that is a fault, of 4 MiB none."""
    builder = Builder()
    for number in range(2):
        rank = builder.rank(number, 2)
        calls = min(32 * MIB // piece, 200)
        for at in range(calls):
            begin = 1 + (wall_s - 2) * at / calls
            builder.add(Call(rank, "pwrite", begin, begin + (wall_s - 2) / calls, f"/data/{number}", piece, offset=at))
    folder.mkdir(parents=True)
    builder.write(folder)
    about = {**RUN, "wall_s": wall_s, "program": program}
    (folder / "run.json").write_text(json.dumps(about))
    return folder


def sides(folder: Path, program: str = "/opt/<b>solver</b>") -> tuple[list[Path], list[Path]]:
    """Three runs that take about 20 s, and three that take about 10."""
    before = [traced(folder / f"a{at}", 20 + 0.1 * at, 4096, program) for at in range(3)]
    after = [traced(folder / f"b{at}", 10 + 0.1 * at, program=program) for at in range(3)]
    return before, after


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page."""
    folder = tmp_path_factory.mktemp("compared")
    before, after = sides(folder)
    file = folder / "page.html"
    done = run([*IOWEIR, "compare", *before, "--to", *after, "--html", file]).expect()
    assert done.out == f"written: {file}\n"
    return file


@pytest.fixture
def page() -> Iterator[browser.Page]:
    """A browser whose page complains of nothing and asks for nothing but its own file."""
    assert PROGRAM is not None  # needs_browser
    with browser.browser(PROGRAM) as opened:
        opened.prefer("light")
        opened.size(1280, 900)
        yield opened
        assert opened.errors == []
        assert all(url.startswith("file:///") and url.endswith("/page.html") for url in opened.requests)


def test_the_page_is_one_small_file_with_a_policy(compared: Path) -> None:
    text = compared.read_text()
    assert len(text) < 100_000
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None
    assert "default-src 'none'" in policy[1]
    assert "unsafe" not in policy[1]
    assert "&lt;b&gt;solver&lt;/b&gt;" in text
    assert "<b>solver" not in text
    # Without scripts, too: the verdict, and every run's wall time.
    assert "Wall time 20.10 s -&gt; 10.10 s: 2x faster" in text
    assert text.count('class="run first"') == text.count('class="run second"') == 3


@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_enters_the_page_as_anything_but_text(name: str, tmp_path: Path) -> None:
    if "\udcff" in name:
        pytest.skip("no name of a program in run.json, which is UTF-8")
    before, after = (traced(tmp_path / side, 10, program=name) for side in ("a", "b"))
    file = tmp_path / "page.html"
    compare_page.write(file, compare.compare_directories(before, after))
    text = file.read_text()
    assert text.count("<script") == text.count("</script>") == 2
    assert "<img src=x" not in text
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\ud800-\udfff]", text.split("<script>")[0])


def test_json_is_printed_beside_the_page(tmp_path: Path) -> None:
    before, after = sides(tmp_path)
    done = run([*IOWEIR, "compare", *before, "--to", *after, "--html", tmp_path / "page.html", "--json"]).expect()
    assert json.loads(done.out)["time"]["verdict"] == "faster"
    assert (tmp_path / "page.html").exists()


@needs_browser
def test_it_says_what_changed_and_its_tables_sort(page: browser.Page, compared: Path) -> None:
    page.open(compared)
    text = page.ask("document.body.innerText")
    for word in ("faster", "1 gone, 0 new", "wall time (s); rings: runs, bars: medians", "Many small requests"):
        assert word in text
    for name, least in (("findings", 1), ("changes", 5), ("runs", 6)):
        assert page.ask(f"document.querySelectorAll('[data-table={name}] tbody tr').length") >= least
    assert page.ask("document.querySelector('[data-table=findings] tbody td').textContent") == "gone"
    walls = "[...document.querySelectorAll('[data-table=runs] tbody tr')].map((row) => row.cells[3].textContent)"
    assert page.ask(walls) == ["20.0 s", "20.1 s", "20.2 s", "10.0 s", "10.1 s", "10.2 s"]
    page.ask("document.querySelectorAll('[data-table=runs] thead button')[3].click()")
    assert page.ask(walls) == ["20.2 s", "20.1 s", "20.0 s", "10.2 s", "10.1 s", "10.0 s"]
    wall = "[...document.querySelector('[data-table=changes] tbody tr').cells].map((cell) => cell.textContent)"
    assert page.ask(wall)[:4] == ["wall time", "20.10 s", "10.10 s", "1.99"]


@needs_browser
def test_no_ring_or_letter_of_the_picture_lies_outside_of_it(page: browser.Page, compared: Path) -> None:
    page.open(compared)
    inside = page.ask(
        "(() => { const all = document.querySelector('.runs').getBoundingClientRect();"
        "return [...document.querySelectorAll('.runs text, .runs circle, .runs line')].every((part) => {"
        "const box = part.getBoundingClientRect(); return box.left >= all.left - 1 && box.right <= all.right + 1"
        "&& box.top >= all.top - 1 && box.bottom <= all.bottom + 1; }); })()"
    )
    assert inside


@needs_browser
def test_colours_follow_the_system_and_the_button_and_paper_is_light(page: browser.Page, compared: Path) -> None:
    page.prefer("dark")
    page.open(compared)
    background, letters = (f"getComputedStyle(document.{what})" for what in ("body", "querySelector('.runs text')"))
    assert page.ask(f"{background}.backgroundColor") == "rgb(18, 23, 31)"
    assert page.ask(f"{letters}.fill") == "rgb(230, 235, 242)"
    assert len(page.send("Page.printToPDF", printBackground=True)["data"]) > 10_000
    assert page.ask("document.documentElement.dataset.theme") == "dark"
    page.ask("document.getElementById('theme').click()")
    assert page.ask(f"{background}.backgroundColor") == "rgb(255, 255, 255)"
    assert page.ask(f"{letters}.fill") == "rgb(27, 36, 48)"
