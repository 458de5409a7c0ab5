"""Where the real command begins behind wrappers, and what a program is called."""

from __future__ import annotations

import shlex

import pytest
from ioweir.launch.wrappers import program_name, script_of, unwrap


@pytest.mark.parametrize(
    ("command", "inner"),
    [
        ("./a.out -n 3", "./a.out"),
        ("env A=1 B=2 ./a.out", "./a.out"),
        ("env -i -u HOME A=1 ./a.out", "./a.out"),
        ("/usr/bin/time -v -o log ./a.out", "./a.out"),
        ("timeout -k 5 --foreground 60 ./a.out", "./a.out"),
        ("nice -n 5 nohup taskset 3 ./a.out", "./a.out"),
        ("taskset -c 0-1 ./a.out", "./a.out"),
        ("numactl -N 0 --membind=0 ./a.out", "./a.out"),
        ("env", "env"),
        ("env A=1", "env"),
    ],
)
def test_unwrap(command: str, inner: str) -> None:
    words = shlex.split(command)
    assert words[unwrap(words)] == inner


@pytest.mark.parametrize(
    ("command", "script"),
    [
        ("bash job.sh x", "job.sh"),
        ("python3 -u -X dev solve.py 4", "solve.py"),
        ("python3.11 -m mpi4py -m solve", "solve"),
        ("python -m mpi4py solve.py", "solve.py"),
        ("python -m package.tool", "package.tool"),
        ("bash -c 'echo'", None),
        ("python -c 'pass'", None),
        ("./a.out", None),
    ],
)
def test_script_of(command: str, script: str | None) -> None:
    assert script_of(shlex.split(command)) == script


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("/usr/bin/lmp -in x", "lmp"),
        ("env A=1 ./job.sh", "job"),
        ("python3 ./deep/solve.py", "solve"),
        ("bash -c 'x'", "bash"),
        ("'./my prog:1'", "my_prog_1"),
        ("./..", "program"),
    ],
)
def test_program_name(command: str, name: str) -> None:
    assert program_name(shlex.split(command)) == name
