"""Command lines and surroundings that nobody wants: each ends in one line that says what is wrong."""

from __future__ import annotations

import os
import subprocess
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
        ((*SIMULATE, "--sweep", "ranks=99999999999"), "give whole numbers from 1 to"),
        ((*SIMULATE, "--sweep", f"targets={'9' * 5000}"), "give whole numbers from 1 to"),
        (("run", "--buffer", "9" * 5000, "--", "true"), "is too large"),
    ],
)
def test_numbers_that_are_too_large(say: Say, words: tuple[str, ...], message: str) -> None:
    code, out, err = say(*words)
    assert (code, out) == (2, "")
    assert message in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("findings", "--explain", "slow-rank", "--json"), "--json does not go with --explain"),
        (("findings", ".", "--plan", "slow-rank", "--json"), "--json does not go with --plan"),
        (("env", "-o", "new", "--mpi", "mpich"), "--mpi is for --link"),
        (("env", "--link", "-o", "new"), "--output does not go with --link"),
        (("env", "--partition", "--static"), "--static does not go with --partition"),
        (("tune", ".", "-o", "new.toml", "--rounds", "2"), "--rounds is for --measure"),
        (("replay", ".", "--script", "new", "--keep"), "--keep does not go with --script"),
        (("run", "--tune", "--no-compress", "--", "true"), "--compress does not go with --tune"),
        (("run", "--tune", "--on-kill", "leave", "--", "true"), "--on-kill does not go with --tune"),
        (("simulate", "--machine", "franklin", "--trace", ".", "data=1MiB"), "data=1MiB: parameters are a kernel's"),
        ((*SIMULATE, "--file", "x"), "--file x: is a trace's"),
        (("explain", "--plan", "plan.toml", "--trace", ".", "--ranks", "4"), "--ranks 4: the trace has its own"),
        (("explain", "--plan", "plan.toml", "--trace", ".", "data=1MiB"), "data=1MiB: parameters are a kernel's"),
    ],
)
def test_words_without_an_effect(say: Say, words: tuple[str, ...], message: str) -> None:
    code, out, err = say(*words)
    assert (code, out) == (2, "")
    assert err.startswith(f"ioweir: {message}")
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "redirect", "code", "message"),
    [
        (
            "--version",
            ">/dev/full",
            1,
            "ioweir: I/O: No space left on device; make room, or name a place on another file system\n",
        ),
        ("--version", ">&{unread}", 1, ""),
        ("--version", ">&-", 0, ""),
        ("defaults", ">&-", 0, ""),
        ("report nowhere", "2>&-", 1, ""),
        ("report .", ">&-", 0, ""),
    ],
)
def test_output_that_nobody_takes(tmp_path: Path, words: str, redirect: str, code: int, message: str) -> None:
    """What is short waits for the end of the process, where Python has an exit code and words of its own: 120."""
    (tmp_path / "run.json").write_text('{"wall_s": 1.0}')
    reader, unread = os.pipe()
    os.close(reader)
    line = f'"{sys.executable}" -m ioweir {words} {redirect.format(unread=unread)}'
    done = subprocess.run(
        ["bash", "-c", line], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60, pass_fds=(unread,)
    )
    os.close(unread)
    assert (done.returncode, done.stderr) == (code, message)


def test_a_shell_gets_a_name_that_is_no_utf_8_as_it_is(tmp_path: Path) -> None:
    """In the locale of most users Python prints no such name."""
    place = os.fsencode(tmp_path) + b"/trace\xff"
    done = subprocess.run(
        [sys.executable, "-m", "ioweir", "env", "-o", place], capture_output=True, check=False, timeout=60,
        env={**os.environ, "PYTHONIOENCODING": "utf-8:strict"},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"export IOWEIR_DIR='" + place + b"';\n" in done.stdout
