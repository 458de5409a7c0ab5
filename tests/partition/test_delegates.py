"""Sets that workers hand over to delegates (rbIO): every byte is there, memory is bounded, failures are told."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
import tracing
from sets import ARGUMENT, EXISTS, MEMORY, Program, check_file, left_over, level, paths

pytest_plugins = ("set_fixtures",)

THREADS: Final = "ioweir_delegates=threads"
MULTIPLE: Final = {"IOWEIR_TEST_LEVEL": "multiple"}
# Ranks, delegates, files.
SHAPES: Final = {
    "ranks": ((2, 1, 1), (4, 1, 1), (5, 2, 2), (6, 3, 1), (6, 3, 3), (4, 2, 1)),
    "threads": ((1, 1, 1), (3, 2, 1), (5, 2, 2)),
}


@dataclass(frozen=True)
class Hosts:
    """What delegates are."""

    name: str

    def keys(self) -> list[str]:
        return [THREADS] if self.name == "threads" else []

    def env(self) -> dict[str, str]:
        return MULTIPLE if self.name == "threads" else {}

    def parts_of(self, ranks: int, delegates: int, files: int, parts: str) -> list[list[int]]:
        """Which parts (from 1) each file has: those of the workers of its delegates, in their order."""
        given_up = 0 if self.name == "threads" else 1
        workers_of_delegate = [ranks_of - given_up for ranks_of in level(ranks, delegates)]
        result: list[list[int]] = []
        worker, part, delegate = 0, 1, 0
        for delegates_of in level(delegates, files):
            mine: list[int] = []
            for _ in range(sum(workers_of_delegate[delegate : delegate + delegates_of])):
                count = worker % 3 if parts == "ragged" else int(parts)
                mine += range(part, part + count)
                part += count
                worker += 1
            delegate += delegates_of
            result.append(mine)
        return result

    def check(self, base: str, step: int, ranks: int, delegates: int, files: int, parts: str) -> None:
        for path, of in zip(paths(base, step, files), self.parts_of(ranks, delegates, files, parts), strict=True):
            check_file(path, of)


RANKS_HOST, THREADS_HOST = Hosts("ranks"), Hosts("threads")
both = pytest.mark.parametrize("hosts", [RANKS_HOST, THREADS_HOST], ids=lambda hosts: hosts.name)


@pytest.mark.one_of(8)
@pytest.mark.parametrize(
    ("hosts", "ranks", "delegates", "files"),
    [(hosts, *shape) for hosts in (RANKS_HOST, THREADS_HOST) for shape in SHAPES[hosts.name]],
    ids=lambda value: getattr(value, "name", str(value)),
)
@pytest.mark.parametrize(("calls", "parts"), [("collective", "ragged"), ("independent", "2")])
def test_every_block_arrives(
    program: Program, base: str, hosts: Hosts, ranks: int, delegates: int, files: int, calls: str, parts: str
) -> None:
    words: list[str | int] = ["hand", base, 1, 3, files, parts, delegates, f"ioweir_write={calls}", *hosts.keys()]
    out = program(ranks, *words, env=hosts.env()).out
    assert out.count("is a delegate") == (delegates if hosts == RANKS_HOST else 0)
    assert ": 1: " not in out
    for step in (1, 2, 3):
        hosts.check(base, step, ranks, delegates, files, parts)
    assert left_over(base) == []
    assert "0 wrong" in program(1, "read", base, -1).out


@pytest.mark.one_of(2)
@both
@pytest.mark.parametrize("calls", ["collective", "independent"])
def test_little_memory_takes_longer_and_loses_nothing(program: Program, base: str, hosts: Hosts, calls: str) -> None:
    """A delegate that holds two blocks, workers that may have one on its way: written in many pieces."""
    little = ["ioweir_delegate_memory=4096", "ioweir_worker_memory=4096", "ioweir_block=512"]
    words: list[str | int] = ["hand", base, 1, 4, 1, "2", 2, f"ioweir_write={calls}", *little, *hosts.keys()]
    program(5, *words, env=hosts.env())
    for step in range(1, 5):
        hosts.check(base, step, 5, 2, 1, "2")


@pytest.mark.one_of(2)
@both
def test_blocks_in_many_messages(program: Program, base: str, hosts: Hosts) -> None:
    """Workers that may have less on their way than a block is long."""
    little = ["ioweir_delegate_memory=8192", "ioweir_worker_memory=1024"]
    program(5, "hand", base, 1, 3, 2, "ragged", 2, *little, *hosts.keys(), env=hosts.env())
    for step in range(1, 4):
        hosts.check(base, step, 5, 2, 2, "ragged")


@pytest.mark.one_of(3)
@both
@pytest.mark.parametrize(("room", "first"), [("65536", 1), ("65536", 3), ("1024", 1)])
def test_a_delegate_without_memory_says_so(program: Program, base: str, hosts: Hosts, room: str, first: int) -> None:
    """From its first or third block on, blocks in one message or several: no set is there, and nobody hangs."""
    words: list[str | int] = ["hand", base, 1, 2, 2, "3", 2, f"ioweir_worker_memory={room}", *hosts.keys()]
    program(4, *words, env=hosts.env())
    for path in paths(base, 1, 2):
        path.unlink()
    env = {**hosts.env(), "IOWEIR_TEST_NO_MEMORY": f"0.{first}"}
    done = program(4, *words, "ioweir_replace=true", env=env, code=None)
    workers = 2 if hosts == RANKS_HOST else 4
    assert done.code != 0
    said = f"wait: {MEMORY}: ioweir: "
    assert done.out.count(said) == workers, done.out
    assert "a delegate has no memory for a block: " in done.out
    assert left_over(base) == []
    # The sets that there were are as they were.
    assert not paths(base, 1, 2)[0].exists()
    hosts.check(base, 2, 4, 2, 2, "3")


@pytest.mark.one_of(4)
@both
def test_a_delegate_without_memory_for_small_things_says_so(program: Program, base: str, hosts: Hosts) -> None:
    """From any of its allocations on, of texts, lists and tables, too: a set is whole or each worker is told.

    Every one with IOWEIR_TEST_KILLS=all; else a few.
    """
    words: list[str | int] = ["hand", base, 1, 3, 2, "3", 2, *hosts.keys()]

    def run(first: int) -> str:
        env = {**hosts.env(), "IOWEIR_TEST_SMALL_MEMORY": f"0.{first}"}
        done = program(4, *words, env=env, code=None)
        return done.out + done.err

    asked = re.search(r"rank 0 asked for memory (\d+) times", run(1 << 30))
    assert asked
    count = int(asked[1])
    assert count > 100
    failed = 0
    few = [1, *random.Random(hosts.name).sample(range(2, count + 1), 3)]
    for first in range(1, count + 1) if os.environ.get("IOWEIR_TEST_KILLS") == "all" else few:
        for step in (1, 2, 3):
            shutil.rmtree(Path(f"{base}-dat.{step}.d"), ignore_errors=True)
        out = run(first)
        lost = [step for step in (1, 2, 3) if not Path(f"{base}-dat.{step}.d").exists()]
        # A worker is told of what failed first since it was last told: after the first set, and at the end.
        told = re.findall(rf"rank (\d+): ([\w ]+): {MEMORY}: ioweir: .*a delegate has no memory for a ", out)
        workers = {"0", "1", "2", "3"} if hosts == THREADS_HOST else {"1", "3"}
        assert {rank for rank, _ in told} == (workers if lost else set()), f"from {first}: {out}"
        early = {rank for rank, call in told if call == "wait" or (1 in lost and call == "close")}
        assert early == (workers if 1 in lost else set()), f"from {first}: {out}"
        for step in {1, 2, 3} - set(lost):
            hosts.check(base, step, 4, 2, 2, "3")
        assert left_over(base) == [], f"from {first}"
        failed += bool(lost)
    assert failed > 0


@pytest.mark.one_of(2)
@pytest.mark.parametrize(("set_bytes", "delegates"), [("", 1), ("1", 1), ("100001", 2), ("200001", 3), ("900000", 3)])
def test_delegates_are_as_many_as_hold_a_set(program: Program, base: str, set_bytes: str, delegates: int) -> None:
    """With 100,000 bytes of memory each; at most half of the ranks."""
    said = [f"ioweir_set_bytes={set_bytes}"] if set_bytes else []
    out = program(6, "hand", base, 1, 1, 0, "1", 0, "ioweir_delegate_memory=100000", *said).out
    assert out.count("is a delegate") == delegates
    RANKS_HOST.check(base, 1, 6, delegates, delegates, "1")


@both
def test_delegates_open_with_the_hints_of_the_set(program: Program, base: str, hosts: Hosts) -> None:
    words: list[str | int] = ["hand", base, 1, 1, 1, "1", 2, "cb_buffer_size=1048576", *hosts.keys()]
    out = program(4, *words, env={**hosts.env(), "IOWEIR_TEST_HINT": "cb_buffer_size"}).out
    assert out.count("opens with cb_buffer_size = 1048576") == 2, out


@pytest.mark.one_of(4)
@both
def test_under_a_plan_the_engine_writes(program: Program, base: str, hosts: Hosts, tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text('[[file]]\nmatch = "**restart-dat.*"\nwriters = "everyone"\n')
    command = program.mpi.launch(4, program.path, "hand", base, "1", "2", "2", "2", "2", *hosts.keys())
    traced = tracing.ioweir_run(tmp_path / "trace", command, options=["--plan", plan], env=hosts.env())
    for step in (1, 2):
        hosts.check(base, step, 4, 2, 2, "2")
    rows = json.loads(tracing.run([*tracing.IOWEIR, "report", "--json", traced.directory]).expect().out)
    served = {Path(row["path"]).name.partition(".new-")[0] for row in rows["plan"]["engine"]}
    assert served == {f"restart-dat.{step}.{file}" for step in (1, 2) for file in (1, 2)}


def test_a_block_that_no_delegate_can_hold_is_refused(program: Program, base: str) -> None:
    out = program(3, "hand", base, 1, 1, 1, "1", 1, "ioweir_delegate_memory=1200", code=None).out
    assert f"write: {ARGUMENT}: ioweir: a block that is larger than a delegate's memory: " in out
    assert not Path(f"{base}-dat.1.d").exists()
    assert left_over(base) == []


@pytest.mark.one_of(2)
@both
def test_a_set_that_is_there_is_told_later(program: Program, base: str, hosts: Hosts) -> None:
    """By the call that waits, since the worker has gone on when its delegate finds out."""
    program(2, "write", base, 1, 1, "1")
    before = paths(base, 1, 1)[0].read_bytes()
    out = program(4, "hand", base, 1, 2, 1, "1", 1, *hosts.keys(), env=hosts.env(), code=None).out
    workers = 3 if hosts == RANKS_HOST else 4
    assert out.count(f": {EXISTS}: ioweir: a set of that step is there already") == workers, out
    assert paths(base, 1, 1)[0].read_bytes() == before
    hosts.check(base, 2, 4, 1, 1, "1")


@pytest.mark.one_of(2)
@both
def test_a_service_is_not_ended_while_a_set_is_open(program: Program, base: str, hosts: Hosts) -> None:
    out = program(2, "hand", base, 1, 1, 1, "open", 1, *hosts.keys(), env=hosts.env(), code=None).out
    workers = 1 if hosts == RANKS_HOST else 2
    assert out.count(f"end: {ARGUMENT}: ioweir: a service whose set is open; close or abandon it first") == workers, out
    assert "is gone" not in out
    assert [path.name for path in Path(base).parent.iterdir()] == [f"{Path(base).name}-dat.1.d"]


@pytest.mark.parametrize(("room", "memory"), [(1100, 8192), (2600, 4096), (1 << 20, 4096), (1 << 20, 1 << 20)])
def test_a_rank_alone_hands_over_to_its_thread(program: Program, base: str, room: int, memory: int) -> None:
    """Of blocks of 1,024 to 1,568 bytes: none fits into what may be on its way, one or two do, all do."""
    words = [f"ioweir_worker_memory={room}", f"ioweir_delegate_memory={memory}", "ioweir_block=512"]
    program(1, "hand", base, 1, 5, 1, "7", 1, *words, THREADS, env=MULTIPLE)
    for step in range(1, 6):
        THREADS_HOST.check(base, step, 1, 1, 1, "7")
    assert left_over(base) == []


@pytest.mark.parametrize("processors", ["any", "own"])
def test_a_thread_leaves_its_rank_the_processor(program: Program, base: str, processors: str) -> None:
    """A rank that is bound to one processor, as launchers do: its delegate runs wherever the job may, or there."""
    allowed = os.sched_getaffinity(0)
    command = program.mpi.launch(
        1, "taskset", "-c", str(min(allowed)), program.path, "hand", base, "1", "1", "1", "2", "1", THREADS,
        f"ioweir_delegate_processors={processors}",
    )  # fmt: skip
    out = tracing.run(command, env={**MULTIPLE, "IOWEIR_TEST_PROCESSORS": "say"}).expect().out
    assert "rank 0 begins on 1 processors" in out
    said = re.findall(r"rank 0 writes on (\d+) processors", out)
    assert said == [str(len(allowed) if processors == "any" else 1)]
    THREADS_HOST.check(base, 1, 1, 1, 1, "2")


def test_threads_need_an_mpi_that_allows_them(program: Program, base: str) -> None:
    out = program(3, "hand", base, 1, 1, 1, "1", 1, THREADS, code=None).out
    wanted = f"split: {ARGUMENT}: ioweir: delegates as threads need MPI_THREAD_MULTIPLE: MPI gave MPI_THREAD_SINGLE"
    assert out.count(wanted) == 3, out


@pytest.mark.parametrize("delegates", ["3", "-1"])
def test_numbers_of_delegates_that_cannot_be_are_refused(program: Program, base: str, delegates: str) -> None:
    out = program(4, "hand", base, 1, 1, 1, "1", delegates, code=None).out
    assert (
        out.count(f"split: {ARGUMENT}: ioweir: a number of delegates that cannot be: {delegates}; from 1 to half of ")
        == 4
    )


def test_more_files_than_delegates_are_refused(program: Program, base: str) -> None:
    out = program(4, "hand", base, 1, 1, 3, "1", 2, code=None).out
    assert (
        out.count("create: 1: ioweir: a number of files that cannot be: 3; from 1 to the number of delegates, 2") == 2
    )
    assert list(Path(base).parent.iterdir()) == []
