"""Programs under limits, without rights, in pieces: the same output and exit code as untraced, at most one line.

programs/harsh.c says what each mode does. What was recorded and what was counted as lost add up to all calls. Bad
places for the trace itself (full disks, read-only file systems) are test_hostile.py's.
"""

from __future__ import annotations

import os
import resource
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pytest
from tracing import IOWEIR, MPICH, Finished, Recorded, Traced, build, ioweir_run, preloaded, run, totals

if TYPE_CHECKING:
    from pathlib import Path

GOES_ON: Final = "the program goes on unharmed"
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
Written = dict[str, tuple[int, int]]


@dataclass(frozen=True)
class Both:
    """The same command without and with the preload."""

    plain: Finished
    traced: Traced
    data: Path

    @property
    def complaints(self) -> list[str]:
        """Our lines on standard error."""
        return [line for line in self.traced.err.splitlines() if line.startswith("ioweir: ")]

    def written(self) -> Written:
        """Calls and bytes of the writes to each file."""
        events = [e for e in self.traced.trace.under(self.data) if e.name in ("write", "pwrite") and not e.failed]
        return {path.removeprefix(f"{self.data}/"): sums for path, sums in totals(events, "path").items()}

    def is_whole(self, expected: Written) -> Recorded:
        """Everything was recorded, and nothing said."""
        assert self.traced.trace.is_whole()
        assert self.written() == expected
        assert self.complaints == []
        return self.traced.trace

    def is_partial(self, recorded: Written, calls: int) -> None:
        """At least this was recorded; the rest of the calls was counted, said in one line, and reported."""
        assert len(self.complaints) == 1, self.traced.err
        assert GOES_ON in self.complaints[0]
        trace = self.traced.trace
        found = self.written()
        for name, (count, _) in recorded.items():
            assert found[name][0] >= count
        assert trace.damage == ()
        assert len(trace.under(self.data)) + trace.dropped == calls
        report = self.traced.report
        assert report["partial"] is True
        assert report["dropped"] == trace.dropped > 0


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for name in ("plain", "data", "trace"):
        (tmp_path / name).mkdir()
    return tmp_path


def both(place: Path, mode: str, *more: object) -> Both:
    """Runs the mode in two folders; the tracer changes neither exit code nor output nor the files written."""
    program = build("harsh.c", "gcc", "-O1", "-pthread")
    words = [str(word) for word in more]
    plain = run([program, mode, place / "plain", *words])
    traced = preloaded(place / "trace", [program, mode, place / "data", *words])
    assert (traced.code, traced.out) == (plain.code, plain.out)
    assert all(line.startswith("ioweir: ") for line in traced.err.splitlines()), traced.err
    files = {path.name: path.stat().st_size for path in (place / "plain").iterdir()}
    assert {path.name: path.stat().st_size for path in (place / "data").iterdir()} == files
    return Both(plain, traced, place / "data")


# --------------------------------------------------------------------------------------------------------------- limits


@pytest.mark.skipif(
    resource.getrlimit(resource.RLIMIT_NOFILE)[1] < 10_100,
    reason="fewer than 10,100 descriptors (ulimit -Hn)",
)
def test_ten_thousand_open_files(place: Path) -> None:
    result = both(place, "ten-thousand")
    assert result.plain.code == 0
    result.is_whole({f"many.{i}": (1, 1 + i % 9) for i in range(10_000)})


def test_no_descriptor_is_left_for_the_trace(place: Path) -> None:
    """The first event finds no room to begin a trace: there is none, and one line says why."""
    result = both(place, "no-descriptors", "first")
    assert result.plain.code == 0
    assert len(result.complaints) == 1
    assert "Too many open files" in result.complaints[0]
    assert GOES_ON in result.complaints[0]


def test_no_descriptor_is_left_for_more_of_the_trace(place: Path) -> None:
    result = both(place, "no-descriptors", "later")
    assert result.plain.code == 0
    result.is_partial({"data": (20, 100)}, calls=1 + 20 + 60_000)


def test_no_address_space_is_left_for_the_trace(place: Path) -> None:
    result = both(place, "no-memory", "first")
    assert result.plain.code == 0
    assert len(result.complaints) == 1
    assert GOES_ON in result.complaints[0]


def test_no_address_space_is_left_for_more_of_the_trace(place: Path) -> None:
    """Room that is mapped already serves later chunks: all is recorded, or what is not is counted and said."""
    result = both(place, "no-memory", "later")
    assert result.plain.code == 0
    trace = result.traced.trace
    assert len(trace.of(place / "data" / "data")) + trace.dropped == 1 + 20 + 60_000
    assert len(result.complaints) == (1 if trace.dropped else 0)
    assert result.traced.report["partial"] == (trace.dropped > 0)


def test_little_address_space_takes_no_more_of_the_disk(place: Path) -> None:
    """Chunks are small then, and nothing stays reserved for larger ones that could not be mapped."""
    result = both(place, "little-memory")
    assert result.plain.code == 0
    result.is_whole({"data": (400_020, 20 * 5 + 400_000 * 4)})
    (file,) = (place / "trace").glob("*.iowt")
    assert max(file.stat().st_size, file.stat().st_blocks * 512) <= 6 * 400_020 + 3 * 65536


def test_limit_on_the_size_of_files(place: Path) -> None:
    """The kernel ends a process that makes a file longer than its limit; the trace file must not be the reason."""
    result = both(place, "file-size")
    assert result.plain.code == 0
    assert len(result.complaints) == 1
    assert GOES_ON in result.complaints[0]


def test_smallest_stacks(place: Path) -> None:
    """A crash handler on an alternate stack writes its log as it would without a tracer."""
    result = both(place, "small-stacks")
    assert result.plain.code == 0
    result.is_whole({"thread": (4, 12), "handler": (4, 12)})


# ---------------------------------------------------------------------------------------------------- places and rights


def test_working_directory_that_is_gone(place: Path) -> None:
    result = both(place, "no-directory")
    assert result.plain.code == 0
    written = result.written()
    assert written["data"] == (2, 18)
    assert written["gone/file"] == (2, 15)
    assert result.traced.trace.is_whole()
    assert result.complaints == []


@as_root
def test_chroot(place: Path) -> None:
    result = both(place, "chroot")
    assert result.plain.code == 0
    trace = result.traced.trace
    assert len(result.complaints) == 1
    assert result.written()["before"] == (3, 15)
    assert trace.dropped > 0
    # open, 3 writes, close; open inside, and its writes
    inside = [event for event in trace.events if event.path == "/inside"]
    assert len(trace.under(place / "data")) + len(inside) + trace.dropped == 5 + 1 + 60_000
    assert result.traced.report["partial"] is True


@as_root
def test_becoming_another_user(place: Path) -> None:
    (place / "trace").chmod(0o700)
    result = both(place, "other-user")
    assert result.plain.code == 0
    result.is_partial({"data": (3, 15)}, calls=1 + 3 + 60_000)
    assert "Permission denied" in result.complaints[0]


def test_trace_directory_is_removed_meanwhile(place: Path) -> None:
    result = both(place, "no-trace", place / "trace")
    assert result.plain.code == 0
    processes = [line.split()[2] for line in result.complaints]
    assert len(processes) == len(set(processes)), "one line a process: the program's, and that of the rm it started"
    assert not (place / "trace").exists() or list((place / "trace").iterdir()) == []


def test_emptied_environment(place: Path) -> None:
    result = both(place, "no-environment")
    assert result.plain.code == 0
    result.is_whole({"here": (2, 10), "after": (1, 4)})


def test_paths_at_addresses_where_nothing_is(place: Path) -> None:
    result = both(place, "nothing-there")
    assert result.plain.code == 0
    assert result.plain.out.count("Bad address") == 14
    result.is_whole({"after": (1, 4)})


# ------------------------------------------------------------------------------------------------ processes and threads


def test_storm_of_execs(place: Path) -> None:
    result = both(place, "exec-storm", 40)
    assert result.plain.code == 0
    trace = result.is_whole({f"generation.{i}": (2, 2 * (10 + i)) for i in range(41)})
    assert len(trace.processes) == 41
    assert len({process["pid"] for process in trace.processes}) == 1


def test_a_hundred_children_of_every_kind(place: Path) -> None:
    result = both(place, "hundred")
    assert result.plain.code == 0
    shapes = {0: (3, 12), 1: (2, 10), 2: (2, 12), 3: (1, 7), 4: (4, 32)}
    trace = result.is_whole({f"child.{i}": shapes[i % 5] for i in range(100)} | {"parent": (100, 100)})
    assert len(trace.processes) == 101


def test_threads_that_fork(place: Path) -> None:
    result = both(place, "threads-fork")
    assert result.plain.code == 0
    children = {f"child.{t}.{c}": (20, 120) for t in range(8) for c in range(10)}
    trace = result.is_whole(children | {f"thread.{t}": (200, 1000) for t in range(8)})
    assert len(trace.processes) == 81


@pytest.mark.parametrize(("how", "code"), [("abort", -6), ("_exit", 6), ("segv", -11), ("exit", 7)])
def test_a_thread_ends_the_process(how: str, code: int, place: Path) -> None:
    """Everything that the ending thread did is there; what the others were just doing is whole or absent."""
    result = both(place, "thread-ends", how)
    assert result.plain.code == code
    assert result.written()["ending"] == (100, 300)
    assert result.traced.trace.damage == ()
    assert result.traced.trace.dropped == 0
    assert result.complaints == []


@pytest.mark.parametrize(
    ("kind", "options"),
    [("address", "ASAN_OPTIONS=verify_asan_link_order=0"), ("thread", "TSAN_OPTIONS=ignore_noninstrumented_modules=1")],
)
def test_programs_with_sanitizers(kind: str, options: str, place: Path) -> None:
    """They run as `ioweir doctor` says."""
    program = build("plain.c", "gcc", "-O1", "-pthread", f"-fsanitize={kind}")
    advice = run([*IOWEIR, "doctor", "--", program]).expect().out
    assert options in " ".join(advice.split())
    name, value = options.split("=", 1)
    traced = preloaded(place / "trace", [program, "threads", place / "data", "8", "100"], env={name: value})
    traced.expect()
    assert traced.err == ""
    events = [event for event in traced.trace.under(place / "data") if event.name in ("write", "pwrite")]
    assert len(events) == 2 * 8 * 100
    assert traced.trace.is_whole()


def test_report_of_a_run_without_a_trace(place: Path) -> None:
    """`ioweir run` says that there is nothing to report, and returns what the program returned."""
    program = build("harsh.c", "gcc", "-O1", "-pthread")
    directory = place / "run"
    finished = run([*IOWEIR, "run", "-o", directory, "--", program, "no-descriptors", place / "data", "first"]).expect()
    assert GOES_ON in finished.err
    report = Traced(0, "", "", directory).report
    assert report["events"] == 0
    assert report["partial"] is True, "a run whose only process was not traced is no whole trace"


@pytest.mark.one_of(3)
@pytest.mark.parametrize("kind", ["address", "thread"])
@pytest.mark.parametrize("how", ["program", "launcher", "script", "wrapper"])
def test_programs_with_sanitizers_run_under_ioweir_run(kind: str, how: str, place: Path) -> None:
    """What they need is set for them, and said; a value of the user's stays."""
    program = build("plain.c", "gcc", "-O1", "-pthread", f"-fsanitize={kind}")
    variable = {"address": "ASAN_OPTIONS", "thread": "TSAN_OPTIONS"}[kind]
    words: list[str | Path] = [program, "threads", str(place / "data"), "8", "100"]
    script = place / "job.sh"
    script.write_text(f"#!/bin/sh\n{MPICH.launcher[0]} -n 1 {' '.join(map(str, words))}\n", encoding="ascii")
    script.chmod(0o755)
    commands: dict[str, list[str | Path]] = {
        "program": words,
        "launcher": [*MPICH.launch(1, *words)],
        "script": [script],
        "wrapper": ["env", "A=b", *words],
    }
    (place / "trace").rmdir()
    traced = ioweir_run(place / "trace", commands[how], env={variable: "verbosity=0"})
    assert f"{variable}=verbosity=0:" in traced.err
    events = [event for event in traced.trace.under(place / "data") if event.name in ("write", "pwrite")]
    assert len(events) == 8 * 100 * 2
