"""docs/reference/plan-file.md and its schema are what the generator makes of spec/plan_keys.toml."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from generator import plan_key_pages, plan_keys
from generator.spec import Spec, load

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "docs" / "reference"
SPEC = load(ROOT / "spec")


@pytest.mark.parametrize("name", ["plan-file.md", "plan-file.schema.json"])
def test_page_is_up_to_date(name: str) -> None:
    text = plan_key_pages.pages(SPEC, REFERENCE / "plan-file.md")[name]
    assert (REFERENCE / name).read_text(encoding="utf-8") == text, "run tools/generate.py --docs docs/reference"


def test_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(json.loads((REFERENCE / "plan-file.schema.json").read_text()))


def test_cells_are_short() -> None:
    for line in (REFERENCE / "plan-file.md").read_text().splitlines():
        if line.startswith("| "):
            assert max(len(cell.split()) for cell in line.split(" | ")) <= 40, line


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"type": "colour"}, "unknown type 'colour'"),
        ({"tpye": "text"}, "unknown \\['tpye'\\]"),
        ({"besides": "auto"}, "besides and besides_field belong together"),
        ({"type": "number", "least": 1, "wrong": None}, "no wrong"),
        ({"type": "size", "most": "1 MiB", "wrong": None}, "no wrong, for sizes out of bounds"),
        ({"type": "truth", "default": None}, "no default"),
        ({"type": "table"}, "there is no table of that name"),
    ],
)
def test_mistakes_in_the_declaration_are_named(change: dict[str, Any], complaint: str) -> None:
    whole = {"name": "new", "type": "text", "field": "new", "help": "", "default": "", "wrong": "", "remedy": ""}
    key = {name: value for name, value in (whole | change).items() if value is not None}
    with pytest.raises(ValueError, match=f"plan_keys.toml: rule.new: {complaint}"):
        plan_keys.check(Spec((), (), (), plan_tables=({"name": "rule", "key": [key]},)))
