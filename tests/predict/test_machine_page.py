"""The page on machine files names every figure, and its example is a machine."""

from __future__ import annotations

from pathlib import Path

import pytest
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


def test_half_of_the_draws_lie_below_the_middle_of_a_range() -> None:
    read = machine.parse("[open]\n'targets.seek_s' = [0.001, 0.002, 0.1]\n'skew_s' = [0, 1, 4]\n", "three")
    shares = [number / 100 for number in range(101)]
    drawn = [read.drawn({"targets.seek_s": share, "skew_s": share}) for share in shares]
    for name, low, middle, high in (("targets.seek_s", 0.001, 0.002, 0.1), ("skew_s", 0, 1, 4)):
        values = [one[name] for one in drawn]
        assert values == sorted(values)
        assert (values[0], values[50], values[-1]) == pytest.approx((low, middle, high))
