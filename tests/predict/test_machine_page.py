"""The page on machine files names every figure, and its example is a machine."""

from __future__ import annotations

from pathlib import Path

from ioweir.predict import machine

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "machine-file.md"


def test_every_figure_has_its_row() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for figure in machine.figures():
        default = ("true" if figure.default else "false") if figure.switch else format(figure.default, "g")
        assert f"| `{figure.name}` | {figure.meaning} | {default} |" in text


def test_the_example_is_a_machine() -> None:
    example = PAGE.read_text(encoding="utf-8").split("```toml\n")[1].split("```")[0]
    read = machine.parse(example, "the example")
    assert read.slow_targets == {3: 2.5}
    assert read.drawn({"targets.seek_s": 0.5})["targets.seek_s"] > 1e-3
