"""Ranks killed at random while chunks of their trace are filled, sealed and handed on.

Every call that returned is there, and none that was not made. Damaged after that, a sealed chunk loses what is in it
and nothing else.
"""

from __future__ import annotations

import os
import random
import struct
from collections import Counter
from typing import TYPE_CHECKING, Final

import pytest
from ioweir import trace
from tracing import Mpi, build, ioweir_run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

RANKS: Final = 2
SLOTS: Final = 3
ALIGNMENT: Final = 65536
LENGTHS: Final = 24
"""Where a chunk's header says how long the chunk is, and how much of it is sealed."""
KILLS: Final = 40 if os.environ.get("IOWEIR_TEST_ALL") else 4
LONGEST_US: Final = 150_000


def written(directory: Path, data: Path) -> Counter[tuple[int, int]]:
    """Of each rank and thread the writes in the trace, which are one after another from the first on."""
    read = trace.read(directory)
    events = read.events
    found: Counter[tuple[int, int]] = Counter()
    for rank in range(RANKS):
        for slot in range(SLOTS):
            path = f"{data}/data.{rank}.{slot}"
            if path not in read.paths:
                continue
            here = (events.path == read.paths.index(path)) & (events.bytes == 8)
            offsets = sorted(events.offset[here].tolist())
            assert offsets == sorted(set(offsets)), "a call is there twice"
            assert {read.functions[number - 1].name for number in set(events.function[here].tolist())} <= {"pwrite"}
            found[rank, slot] = len(offsets)
            assert all(offset % 8 == 0 for offset in offsets)
    return found


def chunks(content: bytes) -> Iterator[tuple[int, int]]:
    """Where each chunk lies, and how much of it is sealed."""
    at = ALIGNMENT
    while at + ALIGNMENT <= len(content):
        size, sealed = struct.unpack_from("<II", content, at + LENGTHS)
        if content[at : at + 8] == b"IOWCHNK2":
            yield at, sealed
        at += max(size, ALIGNMENT)


def counts(data: Path) -> dict[tuple[int, int], tuple[int, int]]:
    """What each thread began and what returned."""
    result = {}
    for rank in range(RANKS):
        numbers = struct.unpack_from(f"<{2 * SLOTS}Q", (data / f"counts.{rank}.0").read_bytes())
        result.update({(rank, slot): numbers[2 * slot : 2 * slot + 2] for slot in range(SLOTS)})
    return result


@pytest.mark.one_of(4)
@pytest.mark.parametrize("kill", range(KILLS))
def test_what_returned_is_in_the_trace_of_a_killed_rank(mpi: Mpi, kill: int, data: Path, tmp_path: Path) -> None:
    rng = random.Random(kill)
    program = build("killed_chunks.c", mpi.cc, "-O1", "-pthread")
    after_us = rng.randrange(LONGEST_US)
    traced = ioweir_run(
        tmp_path / "trace", mpi.launch(RANKS, program, data, str(after_us)), options=("--no-compress",), code=None
    )
    assert traced.code != 0
    report = traced.report
    assert report["partial"] is True
    assert any("never reached MPI_Finalize" in reason for reason in report["partial_reasons"])
    assert report["left_out"] == {"chunks": 0, "records": 0}
    assert report["damage"] == []
    assert report["dropped"] == 0
    found, made = written(traced.directory, data), counts(data)
    for at, (begun, done) in made.items():
        assert done <= found[at] <= begun, (at, begun, found[at], done)
    check_damage(traced.directory, data, found, rng)


def check_damage(directory: Path, data: Path, found: Counter[tuple[int, int]], rng: random.Random) -> None:
    (node,) = directory.glob("node-*.iowt")
    content = node.read_bytes()
    sealed = [(at, size) for at, size in chunks(content) if size]
    assert sealed, "no chunk was ended"
    for at, size in rng.sample(sealed, min(3, len(sealed))):
        broken = bytearray(content)
        broken[at + rng.randrange(64, size)] ^= 1 << rng.randrange(8)
        node.write_bytes(broken)
        read = trace.read(directory)
        assert read.left_out_chunks == 1
        left = written(directory, data)
        assert all(left[which] <= calls for which, calls in found.items())
    node.write_bytes(content)
