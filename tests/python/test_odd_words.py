"""Command lines and surroundings that nobody wants: each ends in one line that says what is wrong."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from ioweir.cli import app

Say = Callable[..., tuple[int, str, str]]

PLAN = '[[file]]\nmatch = "*"\nwriters = "everyone"\n'
EXPLAIN = ("explain", "--plan", "plan.toml", "--kernel", "lattice", "--ranks", "4")
SIMULATE = ("simulate", "--machine", "franklin", "--kernel", "lattice", "--ranks", "4", "--repeat", "1")


@pytest.fixture
def say(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Say:
    """A command line in this process: its exit code, what it printed and what it said."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plan.toml").write_text(PLAN)

    def run(*words: str) -> tuple[int, str, str]:
        with monkeypatch.context() as patch:
            patch.setattr(sys, "argv", ["ioweir", "--no-defaults", *words])
            for name in ("stdout", "stderr"):
                patch.setattr(sys, name, getattr(sys, name))
            code = 0
            try:
                app.main()
            except SystemExit as ended:
                code = int(ended.code or 0)
            out, err = capsys.readouterr()
        return code, out, err

    return run


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((*EXPLAIN, "--nodes", "99999999999"), "--nodes 99999999999: write a number up to 2147483647"),
        ((*EXPLAIN, "--targets", "-99999999999"), "--targets -99999999999: write a number up to 2147483647"),
        ((*SIMULATE, "--seed=-1"), "--seed -1: give 0 or more"),
        ((*SIMULATE, "--seed", "1" + "0" * 30), "write a number up to 2147483647"),
        ((*SIMULATE, "--sweep", "ranks=99999999999"), "give whole numbers from 1, of nine digits at most"),
        ((*SIMULATE, "--sweep", f"targets={'9' * 5000}"), "give whole numbers from 1, of nine digits at most"),
        (("run", "--buffer", "9" * 5000, "--", "true"), "is too large"),
    ],
)
def test_numbers_that_are_too_large(say: Say, words: tuple[str, ...], message: str) -> None:
    code, out, err = say(*words)
    assert (code, out) == (2, "")
    assert message in err
    assert len(err.splitlines()) == 1
