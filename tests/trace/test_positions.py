"""Offsets of calls that use the descriptor's position: right, or unknown (-1), never wrong.

programs/positions.c knows where its calls were by means of its own: it asks the kernel, or reads the file afterwards.
"""

from __future__ import annotations

import os
import sys
from collections import defaultdict
from typing import TYPE_CHECKING, Final

import pytest
from tracing import build, preloaded

if TYPE_CHECKING:
    from pathlib import Path

    from tracing import Traced

MOVING: Final = {"read", "write", "readv", "writev", "lseek", "preadv2", "dprintf"}
THREADS, RECORDS, RECORD_BYTES = 4, 1500, 32


def positions(folder: Path, *mode: str) -> tuple[Traced, Path]:
    data, trace = folder / "data", folder / "trace"
    data.mkdir()
    trace.mkdir()
    traced = preloaded(trace, [build("positions.c", "gcc", libraries=["-ldl", "-pthread"]), data, *mode])
    traced.expect()
    assert traced.trace.is_whole()
    return traced, data


@pytest.mark.parametrize("seed", range(1, 6))
def test_one_thread_knows_every_offset(seed: int, tmp_path: Path) -> None:
    """Reads, writes and seeks of random files through copied descriptors; only appending writes are unknown."""
    traced, data = positions(tmp_path, "alone", str(seed))
    expected = []
    for line in traced.out.splitlines():
        name, kind, count, offset = line.split()
        expected.append((str(data / name), kind, int(count), int(offset)))
    found = [
        (event.path, event.name, event.bytes, event.offset)
        for event in sorted(traced.trace.events, key=lambda event: event.seq)
        if event.name in MOVING and not event.failed
    ]
    assert len(expected) > 1000
    assert found == expected


def test_threads_never_get_a_wrong_offset(tmp_path: Path) -> None:
    """What each thread wrote lies where its event says, if that says anything; the sum of all stays known."""
    traced, data = positions(tmp_path, "threads", "1")
    truth: dict[tuple[int, int], int] = {}
    for line in traced.out.splitlines():
        thread, number, offset = map(int, line.split())
        truth[thread, number] = offset
    assert len(truth) == THREADS * RECORDS
    numbers = {
        event.thread: int(event.path.rsplit(".", 1)[1])
        for event in traced.trace.under(data)
        if "thread." in event.path and event.name == "open"
    }
    written: dict[int, list[int]] = defaultdict(list)
    for event in sorted(traced.trace.of(data / "shared"), key=lambda event: (event.thread, event.seq)):
        if event.name == "write":
            written[event.thread].append(event.offset)
    known = 0
    for stream, thread in numbers.items():
        assert len(written[stream]) == RECORDS
        for number, offset in enumerate(written[stream]):
            if offset >= 0:
                known += 1
                assert offset == truth[thread, number]
    (main,) = set(written) - set(numbers)
    total = THREADS * RECORDS
    assert written[main] == [0] + [(1 + total + i) * RECORD_BYTES for i in range(10)]
    print(f"{known} of {total} offsets known")  # how many depends on the machine


def test_other_processes_make_offsets_unknown(tmp_path: Path) -> None:
    """A child of fork, an inheriting program, redirection; not where exec closes the descriptor."""
    traced, data = positions(tmp_path, "shared")
    found: dict[str, list[int]] = defaultdict(list)
    for event in sorted(traced.trace.under(data), key=lambda event: event.start_ns):
        if event.name == "write":
            found[event.path.removeprefix(f"{data}/")].append(event.offset)
    assert found == {
        "forked": [0, -1, -1],
        "inherited": [0, -1],
        "closed": [0, 10],
        "redirected": [0, -1],
        "borrowed": [0, -1],
        "afterwards": [0],
    }


def test_an_open_tells_whether_writes_wait_for_the_disk(tmp_path: Path) -> None:
    """Of O_SYNC, which has O_DSYNC's bit, and O_DSYNC the event's offset is -2."""
    trace = tmp_path / "trace"
    trace.mkdir()
    flags = {"plain": 0, "sync": os.O_SYNC, "data": os.O_DSYNC}
    lines = ["import os", f"new = os.O_CREAT | os.O_WRONLY; os.chdir({str(tmp_path)!r})"]
    lines += [f"os.close(os.open({name!r}, new | {of}))" for name, of in flags.items()]
    traced = preloaded(trace, [sys.executable, "-S", "-c", "\n".join(lines)])
    traced.expect()
    calls = [event for event in traced.trace.under(tmp_path) if event.name.startswith("open")]
    opens = {event.path.rsplit("/", 1)[1]: event.offset for event in calls}
    assert opens == {"plain": -1, "sync": -2, "data": -2}
