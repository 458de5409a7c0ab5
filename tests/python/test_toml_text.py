"""TOML that nobody should write, and texts that are written as TOML."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ioweir.base import toml_text
from ioweir.errors import IoweirError
from ioweir.launch import defaults
from ioweir.predict import kinds, machine, simulate

DIGITS = "1" + "0" * 5000
WRONG = {
    "digits": f"x = {DIGITS}",
    "a number that does not fit": f"x = 1{'0' * 400}",
    "brackets": f"x = {'[' * 5000}",
    "tables": ".".join("a" * 3000) + " = 1",
    "a name of digits": f"[slow_targets]\n{DIGITS} = 2",
    "a target that is far away": "[targets]\ncount = 2000000000\n[slow_targets]\n1999999999 = 2",
    "ends of a range": '[open]\n"targets.count" = [1, 1.7e308]\n[targets]\ncount = 1',
}


@pytest.mark.parametrize("what", WRONG)
def test_a_machine_file_that_cannot_be_is_an_error(what: str) -> None:
    with pytest.raises(IoweirError, match="machine file 'm'"):
        machine.parse(WRONG[what], "m")


@pytest.mark.parametrize("what", [*WRONG][:4])
def test_defaults_that_cannot_be_are_an_error(what: str, tmp_path: Path) -> None:
    (tmp_path / "ioweir").mkdir()
    (tmp_path / "ioweir" / defaults.FILE).write_text(f"[run]\n{WRONG[what]}\n")
    with pytest.raises(IoweirError, match=r"defaults\.toml"):
        defaults.load({"XDG_CONFIG_HOME": str(tmp_path), defaults.SITE_VARIABLE: str(tmp_path / "none")})


@given(st.text())
def test_any_text_comes_back(text: str) -> None:
    assert toml_text.loads(f"x = {toml_text.quoted(text)}") == {"x": text}
    assert toml_text.loads(toml_text.comment(text)) == {}


def test_halves_of_pairs_are_shown() -> None:
    assert toml_text.loads(f"x = {toml_text.quoted(chr(0xDCFF) + chr(0xD800))}") == {"x": "\\xff\\ud800"}


def test_plans_are_written_for_files_of_any_name() -> None:
    """Example: JSON's form of a smiley is two halves, which TOML does not take."""
    name = "dump \N{GRINNING FACE}.\x1b[2J7.dat"
    rule = simulate.rule_text({"targets": ["\N{GRINNING FACE}"]}, kinds.pattern_of(name))
    found = toml_text.loads(toml_text.comment(f"made for {name}") + f"\n{rule}")["file"][0]
    assert found == {"match": "dump \N{GRINNING FACE}.\x1b\\[*J*.dat", "targets": ["\N{GRINNING FACE}"]}
