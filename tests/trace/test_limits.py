"""How much memory and disk the tracer takes: IOWEIR_BUFFER, IOWEIR_QUOTA, and what it gives back at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest
from tracing import MPICH, Traced, build, ioweir_run, preloaded

if TYPE_CHECKING:
    from pathlib import Path

KIB: Final = 1 << 10
MIB: Final = 1 << 20
SMALLEST_CHUNK: Final = 64 * KIB
HEADER: Final = 64 * KIB


def writes(data: Path, calls: int) -> list[str]:
    """plain.c: `calls` writes of 8 bytes."""
    return [str(build("plain.c", "gcc", "-O1", "-pthread")), "writes", str(data), str(calls)]


def sizes(traced: Traced) -> tuple[int, int]:
    """Length of the node's file, and the disk space it takes."""
    (file,) = traced.directory.glob("*.iowt")
    return file.stat().st_size, file.stat().st_blocks * 512


# -------------------------------------------------------------------------------------------------------------- buffer


@pytest.mark.one_of(4)
@pytest.mark.parametrize(
    ("buffer", "threads"), [(None, 1), (None, 64), (256 * KIB, 1), (256 * KIB, 64), (2 * MIB, 7), (64 * MIB, 2)]
)
def test_a_process_maps_no_more_than_its_buffer(data: Path, trace: Path, buffer: int | None, threads: int) -> None:
    """As the kernel lists it, with every thread in the middle of its work. 64 threads need 64 chunks of 64 KiB."""
    rounds, calls = 8, max(25_000 // threads, 1_000)
    program = build("mapped.c", "gcc", "-O1", "-pthread")
    environment = {} if buffer is None else {"IOWEIR_BUFFER": str(buffer)}
    traced = preloaded(trace, [program, data, str(threads), str(rounds), str(calls)], env=environment)
    traced.expect()
    assert traced.err == ""
    mapped = int(traced.out)
    allowed = max(buffer or 8 * MIB, threads * SMALLEST_CHUNK + 128 * KIB)
    assert threads * SMALLEST_CHUNK <= mapped - HEADER <= allowed
    assert traced.report["dropped"] == 0
    assert traced.report["events"] == threads * (rounds * calls + 2)


def test_chunks_follow_the_buffer(data: Path, tmp_path: Path) -> None:
    """One thread with 1,200,000 events: a large buffer is a few large chunks."""
    mapped = []
    for buffer in (256 * KIB, 8 * MIB, 32 * MIB):
        trace = tmp_path / f"trace-{buffer}"
        trace.mkdir()
        program = build("mapped.c", "gcc", "-O1", "-pthread")
        traced = preloaded(trace, [program, data, "1", "4", "300000"], env={"IOWEIR_BUFFER": str(buffer)})
        mapped.append(int(traced.expect().out) - HEADER)
    assert mapped == [64 * KIB, MIB, 4 * MIB]


@pytest.mark.parametrize("words", ["8 MiB", "-1", "0", "100000", "1e9"])
def test_a_buffer_that_is_none_is_said_and_the_default_used(data: Path, trace: Path, words: str) -> None:
    traced = preloaded(trace, writes(data, 100), env={"IOWEIR_BUFFER": words})
    traced.expect()
    (line,) = traced.err.splitlines()
    assert "IOWEIR_BUFFER" in line
    assert "262144" in line
    assert "8388608" in line
    assert f"not {words};" in line
    assert len(traced.trace.events) == 102


# --------------------------------------------------------------------------------------------------------------- quota


def test_quota_ends_the_trace_and_counts_the_rest(data: Path, trace: Path) -> None:
    calls, quota = 400_000, MIB + 300 * KIB
    traced = preloaded(trace, writes(data, calls), env={"IOWEIR_QUOTA": str(quota)})
    traced.expect()
    assert (data / "data").stat().st_size == 8 * calls
    (line,) = traced.err.splitlines()
    assert "IOWEIR_QUOTA" in line
    assert str(trace) in line
    length, on_disk = sizes(traced)
    assert quota - SMALLEST_CHUNK < length <= quota  # it is used up
    assert on_disk <= quota
    assert traced.report["partial"] is True
    assert traced.report["dropped"] > 0
    assert traced.report["events"] + traced.report["dropped"] == calls + 2


def test_quota_is_the_nodes_not_the_processes(data: Path, tmp_path: Path) -> None:
    """Three processes share the file; every call is kept or counted."""
    calls = 90_000
    program = build("mapped.c", "gcc", "-O1", "-pthread")
    command = MPICH.launch(3, program, data, "1", "1", str(calls))
    traced = ioweir_run(tmp_path / "trace", command, options=["--quota", "1 MiB", "--no-compress"])
    assert sizes(traced)[0] <= MIB
    assert traced.report["dropped"] > 0
    assert traced.report["events"] + traced.report["dropped"] == 3 * (calls + 2)
    assert traced.err.count("IOWEIR_QUOTA") == 1  # one process speaks for the node


@pytest.mark.parametrize("words", ["1 GiB", "1000"])
def test_a_quota_that_is_none_is_said_and_there_is_no_limit(data: Path, trace: Path, words: str) -> None:
    traced = preloaded(trace, writes(data, 300_000), env={"IOWEIR_QUOTA": words})
    traced.expect()
    (line,) = traced.err.splitlines()
    assert "IOWEIR_QUOTA" in line
    assert "1048576" in line
    assert traced.report["events"] == 300_002


# ---------------------------------------------------------------------------------------------------------------- disk


def test_space_that_was_reserved_goes_back_at_the_end(data: Path, trace: Path) -> None:
    """What is left reserved after exit() is a page or two; the header has 64 KiB."""
    traced = preloaded(trace, writes(data, 10))
    length, on_disk = sizes(traced)
    assert length == HEADER + SMALLEST_CHUNK
    assert on_disk <= HEADER + 3 * 4 * KIB
    assert len(traced.trace.events) == 12


def test_calls_after_the_end_are_recorded_too(data: Path, trace: Path) -> None:
    """Destructors run after ours; what they write finds room."""
    traced = preloaded(
        trace, writes(data, 10), before=build("late.c", "gcc", "-shared", "-fPIC"), env={"LATE": str(data)}
    )
    traced.expect()
    assert traced.err == ""
    assert (data / "late").stat().st_size == 8 * 5000
    late = traced.trace.of(data / "late")
    assert sum(event.bytes for event in late if event.name == "write") == 8 * 5000


def test_long_runs_of_regular_calls_take_six_bytes_an_event_on_disk(data: Path, trace: Path) -> None:
    calls = 400_000
    traced = preloaded(trace, writes(data, calls))
    assert traced.report["events"] == calls + 2
    assert sizes(traced)[1] <= 6 * traced.report["events"]
