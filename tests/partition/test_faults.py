"""Sets whose writers die, or find no room, at any call to the storage: the set before is there, a torn one never.

`make test` takes one call of each way of writing, IOWEIR_TEST_KILLS=all every one.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from ioweir.containers import unfinished
from sets import DAMAGED, IO, NO_SPACE, NOT_FOUND, Program, left_over

if TYPE_CHECKING:
    from collections.abc import Iterator

pytest_plugins = ("set_fixtures",)


@dataclass(frozen=True)
class Way:
    """How a set is written: ranks, files, delegates (0: by all ranks), further words."""

    name: str
    ranks: int
    files: int
    delegates: int = 0
    words: tuple[str, ...] = ()
    threads: bool = False

    def run(self, program: Program, base: str, step: int, *words: str, **env: str) -> tuple[int, str]:
        """Writes one set; the exit code, and what all ranks said."""
        more = (*self.words, *words, *(("ioweir_delegates=threads",) if self.threads else ()))
        by_all: list[str | int] = ["write", base, step, self.files, "2"]
        by_delegates: list[str | int] = ["hand", base, step, step, self.files, "2", self.delegates]
        level = {"IOWEIR_TEST_LEVEL": "multiple"} if self.threads else {}
        done = program(
            self.ranks, *(by_delegates if self.delegates else by_all), *more, code=None, env={**level, **env}
        )
        return done.code, done.out + done.err


WAYS: Final = (
    Way("direct", 3, 2, words=("ioweir_write=direct",)),
    Way("aligned", 3, 1, words=("ioweir_layout=aligned", "ioweir_block=4096")),
    Way("collective", 3, 2, words=("ioweir_write=collective",)),
    Way("flat", 3, 2, words=("ioweir_directories=false", "ioweir_write=direct")),
    Way("mode 0", 4, 2, 2),
    Way("mode 1", 4, 1, 2, ("ioweir_write=collective",)),
    Way("mode 2", 4, 1, 2),
    Way("threads", 2, 1, 2, threads=True),
)
ways = pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)


def calls_of(out: str) -> dict[int, int]:
    """How many storage calls each rank made."""
    return {int(rank): int(count) for rank, count in re.findall(r"rank (\d+) made (\d+) storage calls", out)}


def chosen(counts: dict[int, int], name: str) -> Iterator[tuple[int, int]]:
    """Rank and call, from 1: one of all, or of the last of the first writer, who makes the set appear."""
    every = [(rank, call) for rank, count in sorted(counts.items()) for call in range(1, count + 1)]
    if os.environ.get("IOWEIR_TEST_KILLS") == "all":
        yield from every
        return
    generator = random.Random(name)
    first = min(counts)
    yield generator.choice([generator.choice(every), (first, counts[first] - generator.randrange(6))])


def remove_tree(path: Path) -> None:
    """A directory or a file."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


def remove(base: str, step: int) -> None:
    """What there is of a step."""
    for path in Path(base).parent.iterdir():
        if f"-dat.{step}." in path.name:
            remove_tree(path)


@pytest.mark.one_of(8)
@ways
def test_the_set_before_is_there_whenever_a_rank_dies(program: Program, base: str, way: Way) -> None:
    code, out = way.run(program, base, 10, IOWEIR_TEST_CALLS="count")
    counts = calls_of(out)
    assert code == 0
    assert sum(counts.values()) > 8, out
    for rank, call in chosen(counts, way.name):
        remove(base, 11)
        code, out = way.run(program, base, 11, IOWEIR_TEST_KILL_CALL=f"{rank}.{call}")
        assert code != 0, f"rank {rank} before its call {call} of {counts}: {out}"
        read = program(2, "read", base, -1).out
        step = re.findall(r"read step (\d+) of", read)
        assert step in (["10"] * 2, ["11"] * 2), f"rank {rank} before its call {call}: {read}"
        assert read.count("0 wrong") == 2, read
        if step[0] == "10":
            refused = program(1, "read", base, 11, code=None)
            assert refused.code in (NOT_FOUND, DAMAGED), f"rank {rank} before its call {call}: {refused.out}"
        # What is left of it can go, but for what is whole and lacks its name.
        rows = unfinished.unfinished(Path(base).parent, time.time() + 2 * unfinished.QUIET_S)
        assert sorted(Path(row["directory"]).name for row in rows) == sorted(left_over(base))
        for row in rows:
            if not row["problem"]:
                unfinished.remove(Path(base).parent, row)
        assert len(left_over(base)) == sum(bool(row["problem"]) for row in rows)
        assert re.findall(r"read step (\d+) of", program(1, "read", base, -1).out) == step[:1]
        for name in left_over(base):
            remove_tree(Path(base).with_name(name))


@pytest.mark.one_of(2)
@pytest.mark.parametrize("way", [WAYS[0], WAYS[6], WAYS[7]], ids=lambda way: way.name)
def test_a_set_that_is_replaced_is_the_old_or_the_new_one(program: Program, base: str, way: Way) -> None:
    code, out = way.run(program, base, 10, IOWEIR_TEST_CALLS="count")
    assert code == 0
    for rank, call in chosen(calls_of(out), way.name):
        code, out = way.run(program, base, 10, "ioweir_replace=true", IOWEIR_TEST_KILL_CALL=f"{rank}.{call}")
        assert code != 0, out
        assert program(2, "read", base, 10).out.count("0 wrong") == 2, f"rank {rank} before its call {call}"


@pytest.mark.one_of(4)
@ways
def test_no_room_is_told_to_all_and_leaves_nothing(program: Program, base: str, way: Way) -> None:
    _, out = way.run(program, base, 10, IOWEIR_TEST_CALLS="count")
    writer = max(calls_of(out))
    _, out = way.run(program, base, 11, IOWEIR_TEST_FULL_CALL=f"{writer}.1")
    told = set(re.findall(r"rank (\d+): (?:write|write block|close|wait|end): (\d+): ioweir: ", out))
    ranks = {rank for rank, _ in told}
    assert len(ranks) == way.ranks - (way.delegates if not way.threads else 0), out
    # What MPI makes of ENOSPC is its own.
    assert {int(code) for _, code in told} <= ({NO_SPACE} if "collective" not in str(way.words) else {NO_SPACE, IO, 8})
    assert left_over(base) == []
    assert "read step 10 of" in program(1, "read", base, -1).out
