"""Commands that are forked from a process that has imported ioweir are those that Python starts."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from subprocess import Popen, TimeoutExpired

import forked
import pytest
from tracing import IOWEIR, run

SAID = "echo out; echo err >&2; pwd; umask; echo $IOWEIR_SAID; ls /proc/self/fd; readlink /proc/self/fd/0; exit 7"


forks = pytest.mark.skipif("IOWEIR_TEST_ALL" in os.environ, reason="Python starts every command in the long run")


def both(words: list[str], folder: Path) -> list[tuple[int | None, str, str]]:
    """Exit code and streams of a command that is forked, and of one that Python starts."""
    seen = []
    for kind, begin in ((forked.Forked, forked.begun), (Popen, forked.by_python)):
        with begin([*IOWEIR, *words], os.environ, folder) as process:
            assert isinstance(process, kind)
            out, err = process.communicate(timeout=60)
        seen.append((process.returncode, out, err))
        for left in folder.glob("trace"):
            left.rename(folder / f"left of {kind.__name__}")
    return seen


@forks
def test_a_program_sees_the_same(tmp_path: Path) -> None:
    one, two = both(["run", "-q", "-o", "trace", "--", "sh", "-c", SAID], tmp_path)
    assert one == two
    code, out, err = one
    assert (code, out.splitlines()[:2], err) == (7, ["out", str(tmp_path)], "err\n")
    assert len(list(tmp_path.glob("left of *"))) == 2


@forks
def test_what_a_command_reads_of_python_is_the_same(tmp_path: Path) -> None:
    """Its words, and its name in what it says of wrong ones."""
    one, two = both(["explain", "a\udcffb", "--nonsense"], tmp_path)
    assert one == two
    assert one[0] == 2


@forks
def test_it_can_be_ended(tmp_path: Path) -> None:
    process = forked.begun([*IOWEIR, "run", "-q", "-o", "trace", "--", "sleep", "60"], os.environ, tmp_path)
    with process:
        with pytest.raises(TimeoutExpired):
            process.communicate(timeout=0.3)
        assert os.getsid(process.pid) == process.pid
        process.terminate()
        process.communicate(timeout=30)
    assert process.returncode not in (0, None)


@pytest.mark.parametrize("name", ["LD_PRELOAD", "PYTHONPATH", "LANG", "HOME", "TMPDIR"])
def test_what_is_read_at_the_start_is_read(name: str) -> None:
    environment = os.environ | {name: "/nonexistent"}
    with forked.begun([*IOWEIR, "--version"], environment, None) as process:
        assert isinstance(process, Popen)
        process.communicate(timeout=60)


def test_other_commands_are_started() -> None:
    assert run([sys.executable, "-c", "print(__name__)"]).expect().out == "__main__\n"
    assert forked.words_of_ioweir([sys.executable, "-m", "ioweirs"]) is None
    assert forked.words_of_ioweir([forked.SCRIPT, "report"]) == ["report"]


def test_the_installed_script_knows_its_name(tmp_path: Path) -> None:
    done = forked.completed([forked.SCRIPT, "explain", "--nonsense"], cwd=tmp_path)
    started = forked.by_python([forked.SCRIPT, "explain", "--nonsense"], os.environ, tmp_path)
    with started:
        assert (done.stdout, done.stderr) == started.communicate(timeout=60)
    assert done.returncode == started.returncode == 2
