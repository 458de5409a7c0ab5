"""Nothing that `ioweir run` has started outlives it, whichever signal ends it; with --on-kill leave everything does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from ioweir.launch import guardian

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

IOWEIR: Final = (sys.executable, "-m", "ioweir", "run", "-q")
LIMIT_S: Final = 30.0
LAUNCHERS: Final = {
    "openmpi": ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe"],
    "mpich": ["mpiexec.mpich"],
}
RANK: Final = "echo $$ >\"$1/rank.$$\"; trap '' USR1; while :; do sleep 60; done"
"""A rank that says which process it is, and stays: the shell, and a child of it."""


def wait_for(condition: Callable[[], bool]) -> bool:
    """Whether it comes true in time."""
    end = time.monotonic() + LIMIT_S
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return condition()


def lives(process: int) -> bool:
    try:
        return (Path("/proc") / str(process) / "stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.fixture
def ranks(tmp_path: Path) -> Iterator[Callable[[], list[int]]]:
    """The ranks that have said which process they are; ended at last, whatever the test finds."""

    def found() -> list[int]:
        return [int(path.suffix[1:]) for path in tmp_path.glob("rank.*")]

    yield found
    for rank in found():
        for process in (*guardian.descendants(rank), rank):
            if lives(process):
                os.kill(process, signal.SIGKILL)


def start(tmp_path: Path, words: list[str], *options: str, ranks: int = 2) -> tuple[subprocess.Popen[bytes], list[int]]:
    """`ioweir run` of the words, and every process below it once that many ranks are there."""
    process = subprocess.Popen(
        [*IOWEIR, *options, "-o", str(tmp_path / "trace"), "--", *words],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    assert wait_for(lambda: len(list(tmp_path.glob("rank.*"))) == ranks)
    return process, sorted(guardian.descendants(process.pid))


def command(tmp_path: Path, launcher: str, form: str) -> list[str]:
    """Two ranks under a launcher, or under a script that calls it."""
    words = [*LAUNCHERS[launcher], "-n", "2", "sh", "-c", RANK, "sh", str(tmp_path)]
    if form == "launcher":
        return words
    script = tmp_path / "job.sh"
    script.write_text(f"{' '.join(words[:-5])} sh -c '{RANK.replace(chr(39), chr(34))}' sh {tmp_path}\necho done\n")
    return ["sh", str(script)]


@pytest.mark.one_of(9)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL], ids=lambda s: s.name)
@pytest.mark.parametrize("form", ["launcher", "script"])
@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_nothing_is_left(
    tmp_path: Path, ranks: Callable[[], list[int]], launcher: str, form: str, number: signal.Signals
) -> None:
    process, below = start(tmp_path, command(tmp_path, launcher, form))
    assert set(ranks()) <= set(below)
    process.send_signal(number)
    # Hydra ends with 0, 2, or 11 upon SIGINT, by chance: its code is handed through, not what is tested here.
    told = process.wait(LIMIT_S)
    assert told != 0 or (launcher, form, number) == ("mpich", "launcher", signal.SIGINT)
    assert wait_for(lambda: not any(map(lives, below))), [one for one in below if lives(one)]


@pytest.mark.one_of(2)
@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_ranks_stay_where_the_user_chooses_so(tmp_path: Path, ranks: Callable[[], list[int]], launcher: str) -> None:
    process, below = start(tmp_path, command(tmp_path, launcher, "launcher"), "--on-kill", "leave")
    process.kill()
    process.wait(LIMIT_S)
    time.sleep(2 * guardian._LOOK_AGAIN_S)
    assert all(map(lives, ranks()))
    for one in below:  # the launcher first: it ends the others
        if lives(one):
            os.kill(one, signal.SIGTERM)
    assert wait_for(lambda: not any(map(lives, below)))


def test_those_that_do_not_listen_are_ended_too(tmp_path: Path, ranks: Callable[[], list[int]]) -> None:
    deaf = RANK.replace("trap '' USR1", "trap '' USR1 TERM INT HUP")
    # In a session of its own, and stopped.
    words = [
        "sh",
        "-c",
        f"setsid sh -c '{deaf.replace(chr(39), chr(34))}' sh \"$1\" & kill -STOP $$",
        "sh",
        str(tmp_path),
    ]
    process, below = start(tmp_path, words, ranks=1)
    process.kill()
    process.wait(LIMIT_S)
    assert wait_for(lambda: not any(map(lives, [*below, *ranks()])))


def test_a_command_that_ends_by_itself_may_leave_processes_behind(
    tmp_path: Path, ranks: Callable[[], list[int]]
) -> None:
    words = [
        "sh",
        "-c",
        f"setsid sh -c '{RANK.replace(chr(39), chr(34))}' sh \"$1\" & sleep 1; exit 7",
        "sh",
        str(tmp_path),
    ]
    process, _ = start(tmp_path, words, ranks=1)
    assert process.wait(LIMIT_S) == 7
    assert all(map(lives, ranks()))


@pytest.mark.one_of(2)
@pytest.mark.parametrize("option", ["end", "leave"])
@pytest.mark.parametrize(
    ("text", "code"), [("exit 0", 0), ("exit 42", 42), ("kill -SEGV $$", 139), ("kill -KILL $$", 137)]
)
def test_the_exit_code_is_the_commands(tmp_path: Path, option: str, text: str, code: int) -> None:
    words = [*IOWEIR, "--on-kill", option, "-o", str(tmp_path / "trace"), "--", "sh", "-c", text]
    assert subprocess.run(words, check=False, stderr=subprocess.DEVNULL, timeout=LIMIT_S).returncode == code


@pytest.mark.parametrize("option", ["end", "leave"])
def test_a_command_that_cannot_be_executed_is_said(tmp_path: Path, option: str) -> None:
    program = tmp_path / "program"
    program.write_bytes(b"\x7fELF not at all")
    program.chmod(0o755)
    words = [*IOWEIR, "--on-kill", option, "-o", str(tmp_path / "trace"), "--", str(program)]
    done = subprocess.run(words, check=False, capture_output=True, text=True, timeout=LIMIT_S)
    # What a shell makes of it: every shell tries to read it as a script.
    assert done.returncode in (2, 126, 127), done


def test_the_program_has_the_descriptors_and_signals_that_ioweir_run_was_given(tmp_path: Path) -> None:
    (tmp_path / "three").write_text("three\n")
    words = [*IOWEIR, "-o", str(tmp_path / "trace"), "--", "sh", "-c", "cat <&9; grep Sig[BI] /proc/self/status"]
    inner = ["sh", "-c", f'exec 9<{tmp_path}/three; exec "$@"', "sh"]
    plain = subprocess.run([*inner, *words[words.index("--") + 1 :]], check=True, capture_output=True, timeout=LIMIT_S)
    run = subprocess.run([*inner, *words], check=True, capture_output=True, timeout=LIMIT_S)
    assert run.stdout == plain.stdout
    assert run.stdout.startswith(b"three\n")
