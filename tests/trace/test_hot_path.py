"""Recording takes no heap, no locks and no system calls: counted in programs that make calls, and forbidden to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracing import Mpi, build, plain_environment, preloaded, run

if TYPE_CHECKING:
    from pathlib import Path


def counter() -> Path:
    return build("count_calls.c", "gcc", "-shared", "-fPIC", "-O1", "-fno-builtin")


def hot_path() -> Path:
    return build("hot_path.c", "gcc", "-O1", "-pthread")


def test_no_heap_and_no_locks_while_threads_record(data: Path, trace: Path) -> None:
    """With enough events that every thread takes new chunks meanwhile: that takes neither either."""
    threads, calls = 4, 20_000
    traced = preloaded(trace, [hot_path(), "counted", data, str(threads), str(calls)], after=counter())
    traced.expect()
    assert traced.out.split() == ["0", "0"]
    assert traced.report["events"] == threads * (2 * calls + 3)
    assert traced.report["dropped"] == 0


def test_the_counter_counts(data: Path) -> None:
    """A test that cannot fail proves nothing: with malloc and a lock in the loop, the figures are not zero."""
    library = build("counted_writes.c", "gcc", "-shared", "-fPIC", "-O1", "-fno-builtin")
    finished = run(
        [hot_path(), "counted", data, "2", "1000"],
        env=plain_environment({"LD_PRELOAD": f"{library}:{counter()}"}),
    )
    heap, locks = map(int, finished.expect().out.split())
    assert heap == 2 * 2 * 1000
    assert locks == 2 * 1000


def test_mpi_io_calls_take_no_more_heap_and_locks_than_untraced(data: Path, trace: Path, mpi: Mpi) -> None:
    program = build("hot_mpi.c", mpi.cc)
    command = mpi.launch(1, program, data, "500")
    bare = run(command, env=plain_environment({"LD_PRELOAD": str(counter())})).expect()
    traced = preloaded(trace, command, after=counter())
    assert [int(word) for word in traced.expect().out.split()] <= [int(word) for word in bare.out.split()]
    assert sum(event.name.startswith("MPI_File_write_at") for event in traced.trace.events) == 1000


def test_no_system_call_while_the_chunk_has_room(data: Path, trace: Path) -> None:
    """A filter kills at any system call but write; what was recorded is in the file all the same."""
    calls = 5000
    traced = preloaded(trace, [hot_path(), "strict", data, str(calls)])
    traced.expect()
    assert (data / "file.0").stat().st_size == 8 * calls
    writes = [event for event in traced.trace.of(data / "file.0") if event.name == "write"]
    assert len(writes) == calls
