"""Sets that workers hand over to delegates (rbIO): every byte is there, memory is bounded, failures are told."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from sets import ARGUMENT, EXISTS, Program, check_file, left_over, level, paths

pytest_plugins = ("set_fixtures",)

SHAPES: Final = ((2, 1, 1), (4, 1, 1), (5, 2, 2), (6, 3, 1), (6, 3, 3), (4, 2, 1))
"""Ranks, delegates, files."""


def parts_of(ranks: int, delegates: int, files: int, parts: str) -> list[list[int]]:
    """Which parts (from 1) each file has: those of the workers of its delegates, in their order."""
    workers_of_delegate = [ranks_of - 1 for ranks_of in level(ranks, delegates)]
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


def check(base: str, step: int, ranks: int, delegates: int, files: int, parts: str) -> None:
    for path, of in zip(paths(base, step, files), parts_of(ranks, delegates, files, parts), strict=True):
        check_file(path, of)


@pytest.mark.parametrize(("ranks", "delegates", "files"), SHAPES)
@pytest.mark.parametrize("calls", ["collective", "independent"])
@pytest.mark.parametrize("parts", ["2", "ragged"])
def test_every_block_arrives(
    program: Program, base: str, ranks: int, delegates: int, files: int, calls: str, parts: str
) -> None:
    out = program(ranks, "hand", base, 1, 3, files, parts, delegates, f"ioweir_write={calls}").out
    assert out.count("is a delegate") == delegates
    assert "rank" in out
    assert ": 1: " not in out
    for step in (1, 2, 3):
        check(base, step, ranks, delegates, files, parts)
    assert left_over(base) == []
    assert "0 wrong" in program(1, "read", base, -1).out


@pytest.mark.parametrize("calls", ["collective", "independent"])
def test_little_memory_takes_longer_and_loses_nothing(program: Program, base: str, calls: str) -> None:
    """A delegate that holds two blocks, workers that may have one on its way: written in many pieces."""
    little = ["ioweir_delegate_memory=4096", "ioweir_worker_memory=4096", "ioweir_block=512"]
    program(5, "hand", base, 1, 4, 1, "2", 2, f"ioweir_write={calls}", *little)
    for step in range(1, 5):
        check(base, step, 5, 2, 1, "2")


def test_a_block_that_no_delegate_can_hold_is_refused(program: Program, base: str) -> None:
    out = program(3, "hand", base, 1, 1, 1, "1", 1, "ioweir_delegate_memory=1200", code=None).out
    assert f"write: {ARGUMENT}: ioweir: a block that is larger than a delegate's memory: " in out
    assert not Path(f"{base}-dat.1.d").exists()
    assert left_over(base) == []


def test_a_set_that_is_there_is_told_later(program: Program, base: str) -> None:
    """By the call that waits, since the worker has gone on when its delegate finds out."""
    program(2, "write", base, 1, 1, "1")
    before = paths(base, 1, 1)[0].read_bytes()
    out = program(4, "hand", base, 1, 2, 1, "1", 1, code=None).out
    assert out.count(f": {EXISTS}: ioweir: a set of that step is there already") == 3, out
    assert paths(base, 1, 1)[0].read_bytes() == before
    check(base, 2, 4, 1, 1, "1")


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
