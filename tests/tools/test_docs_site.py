"""The site of docs/ is built strictly, needs no network, and its page of messages quotes messages that ioweir has.

`make docs` builds the same. Not here: whether the commands of tutorials do what the pages say (tests/tutorials), and
how pages read (tools/check_prose.py).
"""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[2]
DOCS: Final = ROOT / "docs"
MESSAGES: Final = DOCS / "how-to" / "troubleshooting.md"
LOADED: Final = re.compile(r"<(?:script|link|img|iframe|source)\b[^>]*\b(?:src|href)=\"(?:https?:)?//[^\"]*\"")
STYLE_LOADS: Final = re.compile(r"@import\s+(?:url\()?['\"]?(?:https?:)?//|url\(\s*['\"]?(?:https?:)?//")


def build(source: Path, site: Path) -> str:
    """What a strict build complains of; empty where it does of nothing."""
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-c", str(DOCS), "-d", f"{site}.cache"]
    done = subprocess.run([*command, str(source), str(site)], capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    assert (done.returncode != 0) == (said != ""), done
    return said


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("site") / "html"
    assert build(DOCS, place) == ""
    return place


def test_every_page_is_there(site: Path) -> None:
    pages = [path.relative_to(DOCS).with_suffix(".html") for path in DOCS.rglob("*.md")]
    assert [str(page) for page in pages if not (site / page).is_file()] == []
    assert len(pages) > 60


def test_every_page_is_in_the_navigation(site: Path) -> None:
    navigation = (site / "faq.html").read_text("utf-8")
    pages = [str(path.relative_to(DOCS).with_suffix(".html")) for path in DOCS.glob("*/*.md")]
    assert [page for page in pages if f'href="{page}"' not in navigation] == []


def test_nothing_is_loaded_from_another_host(site: Path) -> None:
    found = [f"{page}: {tag}" for page in site.rglob("*.html") for tag in LOADED.findall(page.read_text("utf-8"))]
    assert found == []
    assert [str(path) for path in site.rglob("*.css") if STYLE_LOADS.search(path.read_text("utf-8"))] == []


def test_the_search_needs_no_server(site: Path) -> None:
    assert "searchindex.js" in (site / "search.html").read_text("utf-8")
    index = (site / "searchindex.js").read_text("utf-8")
    assert index.startswith("Search.setIndex(")
    assert "how-to/my-checkpoint-is-slow" in index


def test_files_outside_of_docs_are_copied(site: Path) -> None:
    copy = site / "_checkout" / "SECURITY.md.txt"
    assert copy.read_bytes() == (ROOT / "SECURITY.md").read_bytes()
    assert '"_checkout/SECURITY.md.txt"' in (site / "faq.html").read_text("utf-8")


def test_broken_links_fail(tmp_path: Path) -> None:
    broken = {
        "[x](nowhere.md)": "nowhere.md",
        "[x](index.md#nothing)": "nothing",
        "[x](../../nobody.txt)": "nobody.txt",
        "[x](../no-file.txt)": "'../no-file.txt' is not there",
        "![x](nothing-drawn.svg)": "nothing-drawn.svg",
    }
    source = tmp_path / "docs"
    source.mkdir()
    (source / "index.md").write_text("# Page\n\n" + "\n\n".join(broken) + "\n", encoding="utf-8")
    said = build(source, tmp_path / "site").splitlines()
    assert [word for word in broken.values() if not any(word in line and "WARNING" in line for line in said)] == []


def test_the_program_that_builds_it_is_there() -> None:
    assert shutil.which("sphinx-build", path=str(Path(sys.executable).parent))


def test_the_citation_has_the_version() -> None:
    version = re.search(r"project\(ioweir VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text(encoding="utf-8"))
    assert version
    assert f"\nversion: {version[1]}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def sources() -> str:
    """The text of all sources, with literals that stand beside each other joined, in words."""
    files = [
        *(ROOT / "python" / "ioweir").rglob("*.py"),
        *(ROOT / "src").rglob("*.cpp"),
        *(ROOT / "src").rglob("*.hpp"),
    ]
    text = "\n".join(path.read_text(encoding="utf-8") for path in files)
    return re.sub(r"[\"']\s*\n\s*f?[\"']", "", text).replace('\\"', '"')


def test_messages_on_the_page_are_messages_of_ioweir() -> None:
    text = sources()
    rows = re.findall(r"^\| `(.+?)` \|", MESSAGES.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(rows) > 50
    parts = [(row, part) for row in rows for part in row.removeprefix("ioweir: ").split("...") if part.strip()]
    assert [row for row, part in parts if part not in text and part.strip() not in text] == []


def raised() -> list[tuple[str, str]]:
    """Where the Python part raises an error for the user, and its text. `...` stands for what is put in."""
    found = []
    for path in sorted((ROOT / "python" / "ioweir").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("IoweirError") and node.args:
                found.append((f"{path.relative_to(ROOT)}:{node.lineno}", literal(node.args[0])))
    return found


def literal(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(literal(part) if isinstance(part, ast.Constant) else "..." for part in node.values)
    if isinstance(node, ast.BinOp):
        return literal(node.left) + literal(node.right)
    return literal(node.body) if isinstance(node, ast.IfExp) else "..."


def kinds() -> dict[str, list[str]]:
    """Words of each kind of message that the page tells of."""
    rows = re.findall(r"^\| ([a-z][^`|]*?): ((?:`[^`|]+`,? ?)+) \|", MESSAGES.read_text(encoding="utf-8"), re.MULTILINE)
    return {kind: re.findall(r"`([^`]+)`", words) for kind, words in rows}


def is_in(words: str, text: str) -> bool:
    return re.search(".*?".join(re.escape(part) for part in words.split("...")), text) is not None


def test_every_message_is_on_the_page_or_of_a_kind_that_is() -> None:
    rows = re.findall(r"^\| `(.+?)` \|", MESSAGES.read_text(encoding="utf-8"), re.MULTILINE)
    every = [words for of_kind in kinds().values() for words in of_kind]
    assert len(kinds()) > 10
    # Words that are all put in come from elsewhere: from the compiled part, or from another message.
    texts = [(where, text) for where, text in raised() if re.search(r"[a-z]{3}", text)]
    assert len(texts) > 250
    assert [
        f"{where}: {text}"
        for where, text in texts
        if not any(is_in(row.strip(), text) for row in rows) and not any(is_in(words, text) for words in every)
    ] == []


def test_no_kind_is_empty() -> None:
    texts = [text for _, text in raised()]
    assert [words for of_kind in kinds().values() for words in of_kind if not any(is_in(words, t) for t in texts)] == []
