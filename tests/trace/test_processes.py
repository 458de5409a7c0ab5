"""Programs that fork, exec, spawn, thread, signal, and reuse descriptors: unharmed, and every byte counted once.

programs/plain.c says what each mode does; none of them uses MPI. Wrappers and loading of MPI: test_launching.py; how
programs end: test_endings.py; full disks and the like: test_hostile.py.
"""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING, Final

import pytest
from tracing import Traced, build, preloaded, totals

if TYPE_CHECKING:
    from pathlib import Path

    from tracing import Recorded

WRITES: Final = ("write", "pwrite")


class Plain:
    """Runs programs/plain.c with the preload."""

    def __init__(self, folder: Path) -> None:
        self.program = build("plain.c", "gcc", "-O1", "-pthread")
        self.data, self.directory = folder / "data", folder / "trace"
        self.data.mkdir()
        self.directory.mkdir()

    def run(self, mode: str, *more: object, code: int = 0) -> Traced:
        traced = preloaded(self.directory, [self.program, mode, self.data, *map(str, more)])
        traced.expect(code)
        return traced

    def written(self, trace: Recorded) -> dict[str, tuple[int, int]]:
        """Calls and bytes of the writes to each file of the data directory."""
        events = [event for event in trace.under(self.data) if event.name in WRITES]
        return {path.removeprefix(f"{self.data}/"): sums for path, sums in totals(events, "path").items()}


@pytest.fixture
def plain(tmp_path: Path) -> Plain:
    return Plain(tmp_path)


def check(traced: Traced, plain: Plain, expected: dict[str, tuple[int, int]]) -> Recorded:
    """The files' writes are exactly these, and what the program wrote is what it would have written."""
    trace = traced.trace
    assert trace.is_whole()
    assert plain.written(trace) == expected
    assert traced.err == ""
    return trace


def test_fork_and_exec(plain: Plain) -> None:
    trace = check(plain.run("fork-exec"), plain, {"parent": (3, 30), "child": (5, 35)})
    processes = {event.path.rsplit("/", 1)[1]: trace.processes[event.process] for event in trace.under(plain.data)}
    assert processes["child"]["ppid"] == processes["parent"]["pid"]
    assert processes["child"]["parent_image"] == 0
    assert all(process["executable"] == str(plain.program) for process in processes.values())
    assert all(process["end_ns"] > process["start_ns"] for process in trace.processes)


@pytest.mark.parametrize("how", ["exit", "_exit"])
def test_fork_without_exec_through_an_inherited_descriptor(plain: Plain, how: str) -> None:
    trace = check(plain.run("fork", how), plain, {"shared": (6, 44), "own": (3, 15)})
    by_process = totals([e for e in trace.under(plain.data) if e.name == "write"], "process", "path")
    shared = f"{plain.data}/shared"
    assert sorted(sums for (_, path), sums in by_process.items() if path == shared) == [(2, 20), (4, 24)]
    child = next(e.process for e in trace.events if e.path.endswith("/own"))
    parent = next(e.process for e in trace.of(shared) if e.name == "open")
    assert trace.processes[child]["parent_image"] == trace.processes[parent]["image"]
    assert (trace.processes[child]["end_ns"] >= 0) == (how == "exit")


def test_fork_before_the_first_event(plain: Plain) -> None:
    check(plain.run("fork-first"), plain, {"child": (1, 6), "parent": (1, 10)})


def test_a_hundred_forked_children(plain: Plain) -> None:
    expected = {f"child.{i}": (i + 1, (i + 1) * (10 + i % 7)) for i in range(100)}
    expected |= {f"grandchild.{i}": (3, 9) for i in range(0, 100, 10)}
    trace = check(plain.run("forks"), plain, expected | {"parent": (1, 1)})
    assert len(trace.processes) == 1 + 100 + 10
    assert len({process["image"] for process in trace.processes}) == 111


def test_vfork_child_leaves_the_parents_descriptors_alone(plain: Plain) -> None:
    check(plain.run("vfork"), plain, {"parent": (2, 20), "other": (1, 8), "child": (5, 35)})


def test_posix_spawn_system_and_popen(plain: Plain) -> None:
    expected = {"parent": (2, 20), "spawned": (5, 35), "system": (2, 22), "popen": (1, 12)}
    check(plain.run("spawn"), plain, expected)


@pytest.mark.parametrize(("threads", "calls"), [(8, 2000), (64, 200)])
def test_threads_writing_at_once(plain: Plain, threads: int, calls: int) -> None:
    per_thread = {f"thread.{t}": (calls, calls * (1 + t % 50)) for t in range(threads)}
    shared = (threads * calls, sum(size for _, size in per_thread.values()))
    trace = check(plain.run("threads", threads, calls), plain, per_thread | {"shared": shared})
    for t in range(threads):
        streams = {event.thread for event in trace.of(plain.data / f"thread.{t}")}
        assert len(streams) == 1, "a thread's events belong to one stream"
    assert len({event.thread for event in trace.of(plain.data / "thread.0")} & {0}) <= 1
    assert len(trace.by_sequence) == len(trace.events)


def test_many_short_threads(plain: Plain) -> None:
    trace = check(plain.run("short-threads"), plain, {"shared": (600, 1800)})
    assert len(trace.by_sequence) == len(trace.events)


def test_signal_handler_that_writes(plain: Plain) -> None:
    traced = plain.run("signals", 3000)
    written, handled = map(int, traced.out.split())
    check(traced, plain, {"main": (written, 2 * written), "handler": (handled, handled)})


def test_siglongjmp_out_of_a_blocked_call(plain: Plain) -> None:
    check(plain.run("siglongjmp"), plain, {"main": (10, 40)})


@pytest.mark.parametrize("mode", ["cancel", "cancel-traced", "cancel-stream"])
def test_thread_cancelled_inside_a_hook(plain: Plain, mode: str) -> None:
    expected = {"main": (1, 5)} | ({"read": (1, 4096)} if mode == "cancel-traced" else {})
    check(plain.run(mode), plain, expected)


def test_two_thousand_open_files(plain: Plain) -> None:
    check(plain.run("many-files"), plain, {f"many.{i}": (1, 1 + i % 9) for i in range(2000)})


@pytest.mark.parametrize("how", ["loop", "range"])
def test_program_closes_all_descriptors(plain: Plain, how: str) -> None:
    check(plain.run("close-all", how), plain, {"before": (1, 9), "after": (4, 36)})


@pytest.mark.parametrize("how", ["fclose", "close_range", "closefrom"])
def test_a_reused_descriptor_number_is_another_file(plain: Plain, how: str) -> None:
    """The file's descriptor is closed behind close()'s back, and a pipe gets its number."""
    check(plain.run("reused", how), plain, {"file": (1, 9)})
    assert not [event for event in Traced(0, "", "", plain.directory).trace.events if event.op == "read"]


def test_writing_from_a_destructor(plain: Plain) -> None:
    check(plain.run("late"), plain, {"data": (2, 15)})


@pytest.mark.one_of(2)
@pytest.mark.skipif(platform.machine() != "x86_64", reason="single steps by the trap flag are x86's")
@pytest.mark.parametrize(
    ("handler", "when", "fork", "stride"),
    [
        ("quiet", "later", "fork", 1),
        ("records", "later", "fork", 1),
        ("quiet", "first", "fork", 11),
        ("records", "first", "fork", 11),
        ("quiet", "later", "_Fork", 7),
        ("records", "later", "number", 7),
    ],
)
def test_a_signal_handler_that_interrupts_recording_may_fork(
    plain: Plain, handler: str, when: str, fork: str, stride: int
) -> None:
    """At every instruction of pwrite's hook where a signal may come: the child goes on and has a trace of its own."""
    program = build("forking_handler.c", "gcc", "-O1")
    traced = preloaded(plain.directory, [program, plain.data, handler, when, fork, str(stride)])
    traced.expect()
    assert traced.err == ""
    forks = int(traced.out)
    assert forks > 100 / stride
    trace = traced.trace
    assert trace.is_whole()
    written = plain.written(trace)
    assert written["child"] == (5 * forks, 15 * forks)
    assert written.get("handler") == ((forks, forks) if handler == "records" else None)
    # Of the interrupted calls, those of the process that made them; a child may have been in the middle of one too.
    (main,) = {event.process for event in trace.of(plain.data / "main") if event.name == "openat" or event.op == "open"}
    own = [event for event in trace.of(plain.data / "main") if event.name == "pwrite" and event.process == main]
    assert len(own) == (1 if when == "first" else forks + 2)
    # One process for every handler's child, and where a fresh one was interrupted, that one.
    assert len(trace.processes) == 1 + (2 * forks + 1 if when == "first" else forks)
