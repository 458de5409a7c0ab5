"""What benchmarks write: where, under which names, and how a page begins."""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import run

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


@dataclass
class Figure:
    """Of a document."""

    speed: float


def test_results_are_kept_in_both_places(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output, record = tmp_path / "build" / "bench", tmp_path / "docs" / "page.md"
    text = "# Results\n\nabout\n\n## Bars\n\nnone\n"
    options = argparse.Namespace(output=output, record=record)
    run.keep("speed", text, {"runs": [Figure(1.5)]}, options, {"": "<svg/>", "-slow": "<svg>slow</svg>"})
    assert json.loads((output / "speed.json").read_text(encoding="utf-8")) == {"runs": [{"speed": 1.5}]}
    assert (output / "speed.md").read_text(encoding="utf-8") == record.read_text(encoding="utf-8") == text
    for place in (output, record.parent):
        assert (place / "speed.svg").read_text(encoding="utf-8") == "<svg/>"
        assert (place / "speed-slow.svg").read_text(encoding="utf-8") == "<svg>slow</svg>"
    assert not (record.parent / "speed.json").exists()
    assert capsys.readouterr().out == (
        f"Bars\n\nnone\n\nwritten: {output}/speed.json, speed.md, speed.svg, speed-slow.svg\n"
    )


def test_a_page_is_recorded_on_request_only(tmp_path: Path) -> None:
    run.keep("speed", "# Results\n", {}, argparse.Namespace(output=tmp_path, record=None))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["speed.json", "speed.md"]


def test_a_page_begins_with_its_bars() -> None:
    assert run.opening("intro", "when", "", [], "All are met.") == ["intro", "when", "", "## Bars", "", "All are met."]
    assert run.opening("intro", "when", "too few.", ["a", "b"], "")[2:] == [
        "", "**A quick run: too few.**", "", "## Bars", "", "- missed: a", "- missed: b",
    ]  # fmt: skip
