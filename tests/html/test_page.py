"""The web page in a browser: what it shows, with what names, and that it asks nobody for anything."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

import browser
import pytest
from ioweir.errors import IoweirError
from ioweir.html import page as html_page
from ioweir.report import figures, run_findings
from ioweir.report.model import Imported
from ioweir.trace import load
from traces import Builder, Call
from tracing import IOWEIR, run

if TYPE_CHECKING:
    from collections.abc import Iterator

PROGRAM: Final = browser.installed()
needs_browser = pytest.mark.skipif(PROGRAM is None, reason="no Chromium is installed (apt-get install chromium)")
HOSTILE: Final = (
    "/data/</script><script>document.title='owned'</script>", '/data/"><img src=x onerror=document.title=1>',
    "/data/line\nbreak\x1b[2J", "/data/\u202eltr", "/data/{{findings}}&lt;b&gt;", "/data/" + "long" * 60,
    "/data/\udcff\udcfe", "/data/<!--",
)  # fmt: skip
PLOTS: Final = (
    "timeline", "shares", "by_rank", "concurrency", "rates", "composition", "places", "offsets", "waits", "lock_waits",
    "sizes",
)  # fmt: skip
RUN: Final = {"wall_s": 100.0, "exit_code": 0, "program": "/opt/<b>solver</b>", "command": ["<b>solver</b>", "--x"],
              "cwd": "/scratch", "started": 1.7e9, "ended": 1.7e9 + 100}  # fmt: skip


def sieving(path: str = "/data/a/out", ranks: int = 4) -> Builder:
    """Ranks that sieve in collective calls, wait for locks, and have lines that stay apart in every plot."""
    builder = Builder()
    for number in range(ranks):
        rank = builder.rank(number, ranks)
        builder.add(Call(rank, "MPI_File_open", 1, 2 + 0.1 * number, path))
        for step in range(6):
            start = 10 + 12 * step + 0.3 * number
            write = Call(rank, "MPI_File_write_at_all", start, 20 + 12 * step, path, 4 << 20)
            end = start + 1 + 0.5 * number
            builder.add(write, write.inside("fcntl_lock", start, end, 8 << 20))
            place = (step * ranks + number) << 22
            builder.add(write.inside("pread", end, end + 1, 4 << 20, offset=place))
            builder.add(write.inside("pwrite", end + 1, end + 4, 4 << 20, offset=place))
            builder.add(write.inside("fcntl_unlock", end + 4, end + 4.1, 8 << 20))
        builder.add(Call(rank, "pread", 90, 91, "/data/b/in", 1000 * (1 + number), offset=0))
    return builder


def written(builder: Builder, folder: Path) -> Path:
    """The trace's directory."""
    folder.mkdir()
    builder.write(folder)
    (folder / "run.json").write_text(json.dumps(RUN))
    return folder


def page_of(builder: Builder, folder: Path) -> Path:
    """The page of a trace."""
    trace = load(written(builder, folder / "trace"))
    report = figures.build(trace)
    html_page.write(folder / "page.html", trace, report, run_findings.findings_of(trace, report))
    return folder / "page.html"


@pytest.fixture(scope="module")
def chromium() -> Iterator[browser.Page]:
    """One browser for all tests of the module."""
    assert PROGRAM is not None  # needs_browser
    with browser.browser(PROGRAM) as page:
        yield page


@pytest.fixture
def page(chromium: browser.Page) -> Iterator[browser.Page]:
    """A page that has complained of nothing at the end, and asked for nothing but its own file."""
    chromium.errors.clear()
    chromium.requests.clear()
    chromium.prefer("light")
    chromium.size(1280, 900)
    yield chromium
    assert chromium.errors == []
    assert all(url.startswith("file:///") and url.endswith("/page.html") for url in chromium.requests)


@pytest.fixture(scope="module")
def sieving_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of `sieving`."""
    return page_of(sieving(), tmp_path_factory.mktemp("sieving"))


def test_the_page_is_one_file_with_a_policy(sieving_page: Path) -> None:
    text = sieving_page.read_text()
    assert len(text) < 2e6
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None
    assert "default-src 'none'" in policy[1]
    assert "unsafe" not in policy[1]
    ours = text.partition("<script>")[0]  # the library's text holds tags, too
    assert not re.search(r"<(?:script|img|iframe|object|embed)[^>]*\ssrc|<link[^>]*href=\"(?!data:)", ours)
    assert "Apache License 2.0" in text
    # In the page itself: without scripts, too.
    assert 'data-code="data-sieving"' in text
    assert "&lt;b&gt;solver&lt;/b&gt;" in text
    assert "<b>solver" not in text


def test_the_command_writes_it_and_prints_the_json_too(tmp_path: Path) -> None:
    trace = written(sieving(), tmp_path / "trace")
    file = tmp_path / "page.html"
    done = run([*IOWEIR, "report", trace, "--html", file]).expect()
    assert done.out == f"written: {file}\n"
    first = file.read_text()
    done = run([*IOWEIR, "report", trace, "--html", file, "--json"]).expect()
    assert json.loads(done.out)["findings"][0]["code"]
    assert file.read_text() == first


def test_an_installation_without_the_library_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = load(written(sieving(), tmp_path / "trace"))
    report = figures.build(trace)
    monkeypatch.setattr(html_page, "LIBRARY", "absent.min.js")
    with pytest.raises(IoweirError, match=r"has no absent\.min\.js"):
        html_page.write(tmp_path / "page.html", trace, report, run_findings.findings_of(trace, report))
    assert not (tmp_path / "page.html").exists()


@pytest.mark.one_of(5)
@pytest.mark.parametrize("path", HOSTILE)
def test_no_name_enters_the_page_as_anything_but_text(path: str, tmp_path: Path) -> None:
    text = page_of(sieving(path), tmp_path).read_text()
    assert text.count("<script") == text.count("</script>") == 3
    assert "<img src=x" not in text
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\ud800-\udfff]", text.split("<script>")[0])


@needs_browser
def test_every_plot_is_drawn_and_says_what_it_shows(page: browser.Page, sieving_page: Path) -> None:
    page.open(sieving_page)
    page.draw_all()
    for plot in PLOTS:
        place = f"[data-plot={plot}] .canvas"
        assert page.ask(f"document.querySelector('{place}').dataset.drawn") == "yes", plot
        assert page.ask(f"document.querySelector('{place}').getAttribute('aria-label').length") > 20
        # Not empty: more colours than a page, its axes and its letters have.
        colours = page.ask(
            f"(() => {{ const c = document.querySelector('{place} canvas');"
            "const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; const n = {};"
            "for (let i = 0; i < d.length; i += 4) { const k = (d[i] << 16) | (d[i + 1] << 8) | d[i + 2];"
            "if (d[i + 3]) n[k] = (n[k] || 0) + 1; }"
            "return Math.max(...Object.entries(n).filter(([k]) => { const r = k >> 16, g = (k >> 8) & 255, b = k & 255;"
            "return Math.max(r, g, b) - Math.min(r, g, b) > 60; }).map(([, v]) => v)); })()"
        )
        assert colours > 200, plot
    text = page.ask("document.body.innerText")
    for word in ("Findings", "data-sieving", "Copy plan", "ioweir run --plan plan.toml", "MPI_File_write_at_all"):
        assert word in text
    assert page.ask("document.title") == "b>: I/O report"  # what follows the last slash of the program's name


@needs_browser
def test_axes_have_names_and_units(page: browser.Page, sieving_page: Path) -> None:
    page.open(sieving_page)
    page.draw_all()
    names = page.ask(
        "[...document.querySelectorAll('.canvas')].filter((c) => c.dataset.drawn === 'yes').map((c) => {"
        "const o = echarts.getInstanceByDom(c).getOption();"
        "return [...o.xAxis, ...o.yAxis].map((a) => a.name); })"
    )
    assert len(names) >= len(PLOTS)
    for pair in names:
        assert all(pair), names
        assert any("(" in name or "rank" in name for name in pair)
    flat = {name for pair in names for name in pair}
    assert {"time since the start (s)", "share of all ranks' time (%)", "offset in the file (MiB)"} <= flat


def zoom_of(page: browser.Page, plot: str) -> list[int]:
    """What part of the time a plot shows, in per cent."""
    chart = f"echarts.getInstanceByDom(document.querySelector('[data-plot={plot}] .canvas'))"
    part = page.ask(f"(() => {{ const z = {chart}.getOption().dataZoom[0]; return [z.start, z.end]; }})()")
    return [round(edge) for edge in part]


@needs_browser
def test_keys_zoom_all_plots_over_time(page: browser.Page, sieving_page: Path) -> None:
    page.open(sieving_page)
    page.ask("document.getElementById('timeline').scrollIntoView()")
    page.settle()
    page.ask("document.querySelector('[data-plot=timeline] .canvas').focus()")
    page.press("+")
    assert zoom_of(page, "timeline") == [25, 75]
    page.press("ArrowRight")
    page.press("ArrowRight")
    page.press("ArrowRight")
    assert zoom_of(page, "timeline") == [50, 100]
    page.settle()
    page.draw_all()
    assert zoom_of(page, "concurrency") == [50, 100]
    page.ask("document.querySelector('[data-plot=timeline] .canvas').focus()")
    page.press("-")
    page.press("0")
    assert zoom_of(page, "timeline") == [0, 100]


@needs_browser
def test_tab_reaches_buttons_plots_and_tables(page: browser.Page, sieving_page: Path) -> None:
    page.open(sieving_page)
    page.ask("document.activeElement.blur()")
    seen = []
    for _ in range(150):
        page.press("Tab")
        seen.append(page.ask("(document.activeElement.className || document.activeElement.id) + ''"))
    assert seen[0] == "skip"
    assert "theme" in seen
    assert seen.count("canvas") >= len(PLOTS)
    assert "rows" in seen


@needs_browser
def test_tables_sort_and_filter(page: browser.Page, sieving_page: Path) -> None:
    page.open(sieving_page)
    table = "document.querySelector('[data-table=files]')"
    cells = f"[...{table}.querySelectorAll('tbody tr')].map((r) => r.cells[0].textContent)"
    assert page.ask(cells) == ["/data/a/out", "/data/b/in"]
    page.ask(f"{table}.querySelector('thead button').click()")
    assert page.ask(f"{table}.querySelector('th').getAttribute('aria-sort')") == "ascending"
    page.ask(f"{table}.querySelector('thead button').click()")
    assert page.ask(cells) == ["/data/b/in", "/data/a/out"]
    page.ask(f"{table}.querySelector('input').value = 'B/IN'")
    page.ask(f"{table}.querySelector('input').dispatchEvent(new Event('input'))")
    assert page.ask(cells) == ["/data/b/in"]
    assert page.ask(f"{table}.querySelector('[role=status]').textContent") == "1 of 2 rows"


@needs_browser
def test_colours_follow_the_system_and_the_button(page: browser.Page, sieving_page: Path) -> None:
    page.prefer("dark")
    page.open(sieving_page)
    page.ask("document.getElementById('timeline').scrollIntoView()")
    page.settle()
    name = "echarts.getInstanceByDom(document.querySelector('[data-plot=timeline] .canvas')).getOption().xAxis[0]"
    background = "getComputedStyle(document.body).backgroundColor"
    assert page.ask(background) == "rgb(18, 23, 31)"
    assert page.ask(f"{name}.nameTextStyle.color") == "#e6ebf2"
    page.ask("document.getElementById('theme').click()")
    page.settle()
    assert page.ask(background) == "rgb(255, 255, 255)"
    assert page.ask(f"{name}.nameTextStyle.color") == "#1b2430"
    assert page.ask("document.getElementById('theme').textContent") == "Dark"


@needs_browser
def test_paper_is_light_and_has_every_plot(page: browser.Page, sieving_page: Path) -> None:
    page.prefer("dark")
    page.open(sieving_page)
    pdf = page.send("Page.printToPDF", printBackground=True)["data"]
    assert len(pdf) > 50_000
    shown = "[...document.querySelectorAll('.canvas')].filter((c) => c.offsetParent)"
    assert page.ask(f"{shown}.length") >= len(PLOTS)
    assert page.ask(f"{shown}.every((c) => echarts.getInstanceByDom(c).getOption().series.length > 0)")
    assert page.ask("document.documentElement.dataset.theme") == "dark"


@needs_browser
def test_hostile_names_are_shown_and_do_nothing(page: browser.Page, tmp_path: Path) -> None:
    builder = Builder()
    rank = builder.rank(0, 1)
    for number, path in enumerate(HOSTILE):
        builder.add(Call(rank, "pwrite", 10 * number, 10 * number + 9, path, 1 << 20, offset=0))
    page.open(page_of(builder, tmp_path))
    page.draw_all()
    shown = page.ask("[...document.querySelectorAll('[data-table=files] td.text')].map((c) => c.textContent)")
    for path in ("/data/</script><script>document.title='owned'</script>", "/data/line\\nbreak\\x1b[2J",
                 "/data/\\u202eltr", "/data/{{findings}}&lt;b&gt;", "/data/\\xff\\xfe"):  # fmt: skip
        assert path in shown
    assert "owned" not in page.ask("document.title")
    assert page.ask("document.querySelectorAll('main img').length") == 0


@needs_browser
@pytest.mark.parametrize("kind", ["nothing", "process"])
def test_runs_with_little_to_show_have_no_empty_plot(page: browser.Page, kind: str, tmp_path: Path) -> None:
    builder = Builder()
    if kind == "process":
        process = builder.process()
        builder.add(Call(process, "fwrite", 1, 2, "/data/out", 100))
    else:
        builder.rank(0, 1)
    page.open(page_of(builder, tmp_path))
    page.draw_all()
    text = page.ask("document.body.innerText")
    assert "No MPI-IO call moved data through POSIX calls that were recorded." in text
    assert ("What each process did when" if kind == "process" else "What each rank did when") in text


@needs_browser
def test_no_task_takes_long_after_the_page_is_there(tmp_path: Path) -> None:
    assert PROGRAM is not None
    # A browser of its own, in which no other page's garbage is collected meanwhile.
    with browser.browser(PROGRAM) as page:
        page.begin_tracing()
        page.open(page_of(sieving(ranks=64), tmp_path))
        page.settle()
        page.draw_all()
        page.ask("document.querySelector('[data-plot=timeline] .canvas').focus()")
        for key in ("+", "+", "+", "ArrowRight", "-", "0"):
            page.press(key)
            page.settle()
        page.ask("document.getElementById('theme').click()")
        page.settle()
        tasks = page.end_tracing()
        loaded = page.loaded_ms()
    assert loaded > 0
    later = [task for task in tasks if task.start_ms > loaded]
    assert len(later) > 50
    # The thread's own time: others work on the machine that runs tests.
    assert max(task.processor_ms for task in later) < 200, [(task, task.start_ms - loaded) for task in later[:5]]


@needs_browser
def test_an_imported_log_says_what_it_cannot_show(page: browser.Page, tmp_path: Path) -> None:
    trace = load(written(sieving(), tmp_path / "trace"))
    report = figures.build(trace)
    report.imported = Imported("Darshan", "/logs/<job>.darshan", ["locks are not recorded"], [])
    html_page.write(tmp_path / "page.html", trace, report, run_findings.findings_of(trace, report))
    page.open(tmp_path / "page.html")
    text = page.ask("document.body.innerText")
    assert "Imported from a log of Darshan: /logs/<job>.darshan." in text
    assert "locks are not recorded" in text
    assert "Not in the log of Darshan, which may not record it." in text  # call sites
