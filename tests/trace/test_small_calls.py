"""Calls of one piece, carried out by the engine with nothing but a system call: as the MPI library does."""

from __future__ import annotations

import os
import re
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from tracing import MPICH, MPIS, Mpi, build, ioweir_run, run

PLANS = ("everyone", "auto")
RULES = {
    "aggregators": 'writers = "aggregators:1"',
    "grouped": 'mapping = "grouped:2"',
    "log-sync": 'mapping = "log"\nvisibility = "sync"',
    "log-call": 'mapping = "log"\nvisibility = "call"',
    "subfiles": 'mapping = "subfiles:2"',
    "behind": 'writers = "behind:1"\nvisibility = "sync"',
}
# Each time that the mapped part of a log's index is full: once in some thousand writes.
MAPPING_MOVES = Counter({"pwrite64": 1, "newfstatat": 2, "geteuid": 1, "fstatfs": 1, "mmap": 1})
HOWS = ("close", "close_range", "syscall", "dup2", "dup3", "instruction")


def plan_for(folder: Path, writers: str) -> list[str]:
    plan = folder / "plan.toml"
    plan.write_text(f'[[file]]\nmatch = "*.data"\nwriters = "{writers}"\n')
    return ["--plan", str(plan)]


@pytest.mark.one_of(4)
@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("writers", PLANS)
@pytest.mark.parametrize("mpi", MPIS, ids=lambda mpi: mpi.name)
def test_pointers_stand_where_the_librarys_would(mpi: Mpi, writers: str, ranks: int, tmp_path: Path) -> None:
    """Random sequences with views, atomic mode, and types that are freed: each position, count and byte."""
    program = build("small_calls.c", mpi.cc)
    for seed in range(1, 7 if os.environ.get("IOWEIR_TEST_ALL") else 3):
        said, files = [], []
        for way in ("library", "engine"):
            data = tmp_path / f"{way}.{seed}.data"
            command = mpi.launch(ranks, program, "pointers", data, str(seed))
            if way == "engine":
                traced = ioweir_run(tmp_path / f"trace.{seed}", command, options=plan_for(tmp_path, writers))
                assert sum(row["calls"] for row in traced.report["plan"]["engine"]) > 0
            else:
                run(command).expect()
            said.append([Path(f"{data}.said.{rank}").read_text().splitlines() for rank in range(ranks)])
            files.append(data.read_bytes())
        assert all(len(lines) > 50 for lines in said[0])
        assert said[0] == said[1]
        assert files[0] == files[1]


@pytest.mark.one_of(4)
@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("layers", ["complete", "mpiio"])
@pytest.mark.parametrize("mpi", MPIS, ids=lambda mpi: mpi.name)
def test_no_byte_goes_to_a_file_that_took_a_descriptors_number(mpi: Mpi, layers: str, how: str, tmp_path: Path) -> None:
    program = build("small_calls.c", mpi.cc)
    data = tmp_path / "one.data"
    command = mpi.launch(2, program, "descriptor", data, how)
    ioweir_run(tmp_path / "trace", command, options=["--layers", layers, *plan_for(tmp_path, "everyone")])
    assert data.read_bytes() == b"".join(letter * 64 for letter in (b"a", b"b", b"a", b"b"))
    others = list(tmp_path.glob("one.data.other.*"))
    assert len(others) == 2
    assert all(other.stat().st_size == 0 for other in others)


@pytest.mark.one_of(4)
@pytest.mark.parametrize("how", ["write", "close"])
@pytest.mark.parametrize("rule", ["grouped", "log-sync", "log-call", "subfiles"])
@pytest.mark.parametrize("mpi", MPIS, ids=lambda mpi: mpi.name)
def test_no_byte_goes_to_a_file_that_took_a_parts_number(mpi: Mpi, rule: str, how: str, tmp_path: Path) -> None:
    """The program's own files stay empty and open, and what it wrote is in the container."""
    program = build("small_calls.c", mpi.cc)
    plan = tmp_path / "plan.toml"
    plan.write_text(f'[[file]]\nmatch = "*.data"\n{RULES[rule]}\n')
    data = tmp_path / "one.data"
    command = mpi.launch(2, program, "container", data, how)
    assert ioweir_run(tmp_path / "trace", command, options=["--plan", plan]).code == 0
    assert data.read_bytes().startswith(b"ioweir container")
    others = list(tmp_path.glob("one.data.other.*"))
    assert len(others) >= 2 * 3
    assert all(other.stat().st_size == 0 for other in others)


@pytest.fixture
def ptrace(tmp_path: Path) -> None:
    """Leaves out a test that counts system calls where a container forbids that."""
    if run(["strace", "-o", tmp_path / "probe", "true"]).code != 0:
        pytest.skip("strace is there, but this container forbids ptrace")


@pytest.mark.one_of(2)
@pytest.mark.usefixtures("ptrace")
@pytest.mark.parametrize("writers", PLANS)
@pytest.mark.parametrize("mpi", MPIS, ids=lambda mpi: mpi.name)
def test_a_small_call_makes_no_system_call_that_the_library_does_not_make(
    mpi: Mpi, writers: str, tmp_path: Path
) -> None:
    program = build("small_calls.c", mpi.cc)
    calls = 50
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        plain = ioweir_run(tmp_path / "plain", traced_by_strace(mpi, program, Path(folder), tmp_path / "before", calls))
        planned = ioweir_run(
            tmp_path / "planned",
            traced_by_strace(mpi, program, Path(folder), tmp_path / "after", calls),
            options=plan_for(tmp_path, writers),
        )
    assert plain.code == planned.code == 0
    before, after = between_marks(tmp_path / "before"), between_marks(tmp_path / "after")
    assert before["pwrite64"] >= 2 * calls
    assert after["pwrite64"] == 2 * calls
    assert after["pread64"] == 2 * calls
    assert not after - before


@pytest.mark.one_of(4)
@pytest.mark.usefixtures("ptrace")
@pytest.mark.parametrize("rule", RULES.values(), ids=RULES.keys())
@pytest.mark.parametrize("mpi", MPIS, ids=lambda mpi: mpi.name)
def test_no_strategy_makes_more_system_calls_than_the_library(mpi: Mpi, rule: str, tmp_path: Path) -> None:
    """The library makes one for each call: test_a_small_call_makes_no_system_call_that_the_library_does_not_make."""
    program = build("small_calls.c", mpi.cc)
    plan = tmp_path / "plan.toml"
    plan.write_text(f'[[file]]\nmatch = "*.data"\n{rule}\n')
    calls = 50
    for what, name in (("writes", "pwrite64"), ("reads", "pread64")):
        output = tmp_path / what
        with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
            command = traced_by_strace(mpi, program, Path(folder), output, calls, what)
            assert ioweir_run(tmp_path / f"trace.{what}", command, options=["--plan", plan]).code == 0
        made = between_marks(output)
        if rule == RULES["log-call"] and what == "writes":
            made -= MAPPING_MOVES
        assert not made - Counter({name: 2 * calls}), (what, made)


# Not of logs with "sync" under MPICH: ranks meet there, as in ROMIO's own calls.
@pytest.mark.one_of(2)
@pytest.mark.parametrize(
    ("mpi", "rule"),
    [
        (mpi, rule)
        for mpi in MPIS
        for rule in ("log-sync", "log-call", "subfiles")
        if (mpi, rule) != (MPICH, "log-sync")
    ],
    ids=lambda value: getattr(value, "name", value),
)
@pytest.mark.usefixtures("ptrace")
def test_ranks_that_read_together_need_no_system_call_for_it(mpi: Mpi, rule: str, tmp_path: Path) -> None:
    """Nothing is written in between: one read of the storage each, and nobody waits for anybody."""
    program = build("small_calls.c", mpi.cc)
    plan = tmp_path / "plan.toml"
    plan.write_text(f'[[file]]\nmatch = "*.data"\n{RULES[rule]}\n')
    calls = 50
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        data = Path(folder) / "one.data"
        each = f'exec strace -o {tmp_path}/of.$$ {program} together "{data}" {calls}'
        assert ioweir_run(tmp_path / "trace", mpi.launch(2, "sh", "-c", each), options=["--plan", plan]).code == 0
    outputs = list(tmp_path.glob("of.*"))
    assert len(outputs) == 2
    for output in outputs:
        made = between_marks(output)
        assert not made - Counter({"pread64": 2 * calls}), made


@pytest.mark.parametrize("mpi", MPIS, ids=lambda mpi: mpi.name)
def test_what_the_kernel_carries_out_in_part_is_told(mpi: Mpi, tmp_path: Path) -> None:
    program = build("small_calls.c", mpi.cc)
    command = mpi.launch(1, program, "limit", tmp_path / "one.data", "4096")
    traced = ioweir_run(tmp_path / "trace", command, options=plan_for(tmp_path, "everyone"))
    assert traced.out.splitlines() == ["failed 100", "failed 0", "done 512", "done 100", "done 0"]
    assert (tmp_path / "one.data").stat().st_size == 4096


def traced_by_strace(
    mpi: Mpi, program: Path, folder: Path, output: Path, calls: int, what: str = "steady"
) -> list[str]:
    command = ["strace", "-o", str(output), str(program), what, str(folder / "one.data"), str(calls)]
    return mpi.launch(1, *command)


def between_marks(output: Path) -> Counter[str]:
    """System calls of the one process between its two calls of getppid."""
    names = [match[1] for line in output.read_text().splitlines() if (match := re.match(r"(?:\d+ +)?(\w+)\(", line))]
    marks = [place for place, name in enumerate(names) if name == "getppid"]
    assert len(marks) >= 2
    return Counter(names[marks[-2] + 1 : marks[-1]])
