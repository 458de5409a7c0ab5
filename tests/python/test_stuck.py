"""Launchers that hang when all is over are ended, and nobody else."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
from ioweir.launch.stuck import Watch

if TYPE_CHECKING:
    from pathlib import Path

UNREAPED = "import os, time\nif os.fork() == 0: os._exit(0)\n{more}\nprint('ready', flush=True)\ntime.sleep(60)\n"
LIVING = "if os.fork() == 0:\n    time.sleep(60)\n    os._exit(0)"


def started(folder: Path, name: str, more: str = "") -> subprocess.Popen[str]:
    """A program of that name that never reaps its child."""
    script = folder / name
    script.write_text(f"#!{sys.executable}\n" + UNREAPED.format(more=more), encoding="utf-8")
    script.chmod(0o755)
    process = subprocess.Popen([script], stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def look_for(process: int, seconds: float, patience_s: float) -> list[str]:
    """What a watch says that looks ten times a second."""
    watch, said = Watch(process, patience_s), []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        said += watch.end_stuck()
        time.sleep(0.1)
    return said


def test_a_stuck_launcher_is_ended_and_named(tmp_path: Path) -> None:
    with started(tmp_path, "mpirun.openmpi") as process:
        (line,) = look_for(process.pid, 2, 0.5)
        assert process.wait(timeout=10) != 0
    assert f"mpirun.openmpi (process {process.pid}) has not ended" in line


@pytest.mark.parametrize(("name", "more"), [("a.out", ""), ("mpirun", LIVING)], ids=["no launcher", "a rank lives"])
def test_others_are_left_alone(name: str, more: str, tmp_path: Path) -> None:
    with started(tmp_path, name, more) as process:
        try:
            assert look_for(process.pid, 1.5, 0.3) == []
            assert process.poll() is None
        finally:
            subprocess.run(["pkill", "-KILL", "-s", str(process.pid)], check=True)


def test_one_that_has_begun_to_wait_is_given_time(tmp_path: Path) -> None:
    with started(tmp_path, "mpiexec") as process:
        try:
            assert look_for(process.pid, 1, 30) == []
            assert process.poll() is None
        finally:
            process.kill()
