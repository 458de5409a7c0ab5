"""Non-blocking MPI-IO is seen to its end: each call that completes a request makes one event, and no other call any."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import pytest
from tracing import FUNCTIONS, Mpi, build, ioweir_run, report_of_file, run

if TYPE_CHECKING:
    from pathlib import Path

    from tracing import Event

# requests.c begins two operations for each way of completing them, in both directions.
WAYS: Final = ("Wait", "Waitany", "Waitsome", "Waitall", "Test", "Testany", "Testsome", "Testall", "Request_free")
PAIR: Final = 2
ROUNDS_OF_SEVERAL: Final = 3
BYTES: Final = 64


def expected(several: bool = False) -> Counter[str]:
    """How many operations each function completes. `several`: with what MPI 4.1 has brought."""
    table = Counter({f"MPI_{way} ({op})": PAIR for way in WAYS for op in ("write", "read")})
    table |= Counter({f"MPI_Request_get_status ({op})": PAIR for op in ("write", "read")})
    for op in ("write", "read") if several else ():
        table |= Counter({f"MPI_Request_get_status_{of} ({op})": PAIR for of in ("any", "some")})
        table[f"MPI_Request_get_status_all ({op})"] = 2 * PAIR
        table[f"MPI_Request_free ({op})"] += ROUNDS_OF_SEVERAL * PAIR
    table["MPI_Waitall (write)"] += PAIR  # among messages and faulty calls, at the end
    return table


def test_table_names_every_function() -> None:
    completing = {row["name"]: row for row in FUNCTIONS.values() if row["layer"] == "MPI-IO" and row["completes"]}
    assert set(expected(several=True)) == set(completing)
    assert all(name.endswith(f"({row['op']})") for name, row in completing.items())


@pytest.mark.parametrize("profiling", [False, True], ids=["MPI", "PMPI"])
def test_each_completion_makes_one_event(mpi: Mpi, profiling: bool, tmp_path: Path) -> None:
    check_requests(mpi, profiling, tmp_path, several=False)


def check_requests(mpi: Mpi, profiling: bool, tmp_path: Path, *, several: bool) -> None:
    flags = [*(["-DPROFILING"] if profiling else []), *(["-DSTATUS_OF_SEVERAL"] if several else [])]
    program = build("requests.c", mpi.cc, *flags)
    ranks = 2
    traced = ioweir_run(tmp_path / "trace", mpi.launch(ranks, program, tmp_path))
    assert traced.trace.is_whole()
    for rank in range(ranks):
        path = f"{tmp_path}/requests.{rank}"
        events = [event for event in traced.trace.of(path) if event.layer == "MPI-IO"]
        check_completions(events, several)
        rounds = len(WAYS) + (ROUNDS_OF_SEVERAL if several else 0)
        begun = PAIR * (rounds + 1), PAIR * rounds
        row = report_of_file(traced.report, path)["MPI-IO"]
        assert (row["write"]["calls"], row["write"]["bytes"]) == (begun[0], begun[0] * BYTES)
        assert (row["read"]["calls"], row["read"]["bytes"]) == (begun[1], begun[1] * BYTES)


def check_completions(events: list[Event], several: bool = False) -> None:
    """The events of a rank: completions by function, each of an operation that was begun, and once."""
    ends = [event for event in events if " (" in event.name]
    # Asking may do a part of an operation's work without completing it: then it names none.
    completions = [event for event in ends if event.offset >= 0]
    asking = ("MPI_Test", "MPI_Request_get_status")
    assert all(event.name.startswith(asking) or event.offset >= 0 for event in ends)
    assert Counter(event.name for event in completions) == expected(several)
    begun = {event.seq: event for event in events if event.name in ("MPI_File_iwrite_at", "MPI_File_iread_at")}
    ended = Counter(event.offset for event in completions if "get_status" not in event.name)
    assert ended == Counter(dict.fromkeys(begun, 1))
    for event in completions:
        start = begun[event.offset]
        assert start.op == event.op
        assert start.thread == event.thread
        assert start.end_ns <= event.end_ns
        assert event.bytes == 0
        assert not event.failed


def test_wrong_arguments_pass_through(mpi: Mpi, tmp_path: Path) -> None:
    program = build("requests.c", mpi.cc)
    plain, watched = tmp_path / "plain", tmp_path / "watched"
    plain.mkdir()
    watched.mkdir()
    untraced = run(mpi.launch(1, program, plain)).expect()
    traced = ioweir_run(tmp_path / "trace", mpi.launch(1, program, watched))
    assert untraced.out == traced.out
    assert "class" in untraced.out
    assert (plain / "requests.0").read_bytes() == (watched / "requests.0").read_bytes()


def test_threads(mpi: Mpi, tmp_path: Path) -> None:
    """Handles go from one thread's completed requests to another's new ones: each operation still ends once."""
    threads, rounds = 4, 300  # as in request_threads.c
    program = build("request_threads.c", mpi.cc, "-pthread")
    traced = ioweir_run(tmp_path / "trace", mpi.launch(1, program, tmp_path))
    assert traced.trace.is_whole()
    for number in range(threads):
        events = [event for event in traced.trace.of(tmp_path / f"thread.{number}") if event.layer == "MPI-IO"]
        begun = {event.seq: event for event in events if event.name == "MPI_File_iwrite_at"}
        ends = [event for event in events if event.name == "MPI_Waitall (write)"]
        assert len(begun) == PAIR * rounds
        assert Counter(event.offset for event in ends) == Counter(dict.fromkeys(begun, 1))
        assert {event.thread for event in events} == {events[0].thread}
        # One waiting completes both: its time is counted once.
        assert sum(event.duration_ns == 0 for event in ends) >= rounds
