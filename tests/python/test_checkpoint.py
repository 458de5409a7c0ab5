"""ioweir.checkpoint, of its own: what it asks of a library that stands in for ioweir's. The rest: tests/partition."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from ioweir import checkpoint

HELD = 12


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Parts and bytes that the library is asked for; every block is of 12 bytes."""
    asked: list[tuple[int, int]] = []

    def query(_set: Any, _field: bytes, _part: Any, held: Any, _count: Any, _numbers: Any) -> int:
        if held is not None:
            held._obj.value = HELD
        return checkpoint.SUCCESS

    def read(_set: Any, _field: bytes, part: Any, _kind: int, size: Any, _data: Any) -> int:
        asked.append((part.value, size.value))
        return checkpoint.SUCCESS

    library = SimpleNamespace(
        ioweir_set_query=query, ioweir_set_read=read, ioweir_set_read_all=read, ioweir_error_text=lambda: b"no \xff"
    )
    monkeypatch.setattr(checkpoint, "_library", lambda: library)
    return asked


@pytest.fixture
def last() -> checkpoint.Read:
    made = object.__new__(checkpoint.Read)
    made._set = None  # type: ignore[assignment]
    return made


def test_a_block_is_never_read_into_less_room_than_it_has(asked: list[tuple[int, int]], last: checkpoint.Read) -> None:
    assert last.read("ids", 1, np.int32).shape == (3,)
    assert last.read_all("ids", 2, np.int32).shape == (3,)
    with pytest.raises(checkpoint.CheckpointError, match="ids of part 3 is no array of float64: 12 bytes"):
        last.read("ids", 3, np.float64)
    with pytest.raises(checkpoint.CheckpointError, match="read it as what it was written"):
        last.read_all("ids", 4, np.float64)
    assert asked == [(1, HELD), (2, HELD), (checkpoint.NO_PART, 0)]  # the other ranks are in the call


def test_ranks_without_memory_take_part(
    asked: list[tuple[int, int]], last: checkpoint.Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(last, "_place", nothing)
    with pytest.raises(MemoryError):
        last.read_all("ids", 1, np.int32)
    assert asked == [(checkpoint.NO_PART, 0)]


@pytest.mark.usefixtures("asked")
def test_texts_with_names_that_are_no_utf8_are_told() -> None:
    with pytest.raises(checkpoint.CheckpointError, match="no \udcff"):
        checkpoint._check(checkpoint.IO)
