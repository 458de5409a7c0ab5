"""docs/reference/hints.md is what the generator makes of spec/hints.toml."""

from pathlib import Path

from generator import hints
from generator.spec import load

ROOT = Path(__file__).resolve().parents[2]


def test_page_is_up_to_date() -> None:
    ((name, text),) = hints.pages(load(ROOT / "spec")).items()
    assert (ROOT / "docs" / "reference" / name).read_text() == text, "run tools/generate.py --docs docs/reference"


def test_page_names_every_hint_once() -> None:
    page = (ROOT / "docs" / "reference" / "hints.md").read_text()
    names = [hint["name"] for hint in load(ROOT / "spec").hints]
    assert len(set(names)) == len(names)
    for name in names:
        assert page.count(f"\n| `{name}` |") == 1
