"""On a terminal of 80 columns no table is wider: of each command that prints one, through a pseudo-terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from ioweir.base.columns import COLUMNS, row

if TYPE_CHECKING:
    from collections.abc import Iterator

KERNEL = ["--kernel", "lattice", "--ranks", "8", "--repeat", "2"]
SWEEP = ["--sweep", "ranks=8,16", "--sweep", "strategy=everyone,cyclic"]


def on_terminal(words: list[str], directory: Path) -> list[str]:
    """What the command line prints on a terminal."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 25, COLUMNS, 0, 0))
    unset = ("COLUMNS", "LINES")
    environment = {name: value for name, value in os.environ.items() if name not in unset}
    environment |= {"TERM": "xterm", "NO_COLOR": "1"}
    running = subprocess.Popen(
        [sys.executable, "-m", "ioweir", *words],
        stdin=theirs, stdout=theirs, stderr=subprocess.DEVNULL, cwd=directory, env=environment,
    )  # fmt: skip
    os.close(theirs)
    text = b""
    try:
        while piece := os.read(ours, 65536):
            text += piece
    except OSError:  # the other end is closed
        pass
    os.close(ours)
    assert running.wait() == 0, text
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text.decode()).replace("\r\n", "\n").splitlines()


def is_of_a_table(line: str) -> bool:
    """Columns stand two blanks apart or more; in sentences words do not."""
    return re.search(r"\S {2,}\S", line) is not None


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """With a trace, twice, a lab of four targets, and a site's store."""
    directory = tmp_path_factory.mktemp("columns")
    simulated = ["simulate", "--machine", "hopper", *KERNEL]
    for name in ("before", "after"):
        assert on_terminal([*simulated, "--trace-out", name], directory)
    on_terminal(["site", "add", "store", "before", "after"], directory)
    name = f"columns-{os.getpid()}"
    on_terminal(["lab", "up", "--kind", "bucket", "--targets", "4", "--name", name, "--directory", "lab"], directory)
    try:
        yield directory
    finally:
        on_terminal(["lab", "down", "--directory", "lab"], directory)


@pytest.mark.parametrize(
    "words",
    [
        ["--help"],
        ["tune", "--help"],
        ["defaults"],
        ["kernel", "--list"],
        ["simulate", "--list"],
        ["simulate", "--machine", "hopper", *KERNEL],
        ["simulate", "--machine", "hopper", *KERNEL, *SWEEP],
        ["report", "before"],
        ["findings", "before"],
        ["timeline", "before"],
        ["timeline", "before", "--by", "rank"],
        ["compare", "before", "after"],
        ["tune", "--machine", "hopper", *KERNEL, "-o", "plan.toml", "--force"],
        ["calibrate", "--targets", ".", "--repeats", "2", "-o", "machine.toml", "--force"],
        ["lab", "status", "--directory", "lab"],
        ["probe", "lab", "--window", "20ms", "--discard", "5ms"],
        ["site", "show", "store"],
        ["merge-trace", "before", "-o", "log.csv"],
        ["compress", "before"],
    ],
    ids=" ".join,
)
def test_no_table_is_wider_than_the_terminal(place: Path, words: list[str]) -> None:
    lines = on_terminal(words, place)
    assert lines
    assert [line for line in lines if is_of_a_table(line) and len(line.rstrip()) > COLUMNS] == []


def test_what_does_not_fit_beside_stands_below() -> None:
    assert row("name", "figures") == ["name  figures"]
    assert row("name  ", "f" * 75) == ["name", "      " + "f" * 75]
