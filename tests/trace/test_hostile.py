"""Places and neighbours that are bad for a tracer: the program never notices, and what is lost is counted and said."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING, Final

import pytest
from tracing import (
    Mpi,
    Recorded,
    Traced,
    build,
    ioweir_run,
    mount_tmpfs,
    preload_library,
    preloaded,
    run,
    totals,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

GOES_ON: Final = "the program goes on unharmed"


def plain(mode: str, data: Path, *more: object) -> list[str]:
    return [str(build("plain.c", "gcc", "-O1", "-pthread")), mode, str(data), *map(str, more)]


def check_unharmed(traced: Traced, data: Path) -> None:
    """plain.c writes DIR 100: the file is whole, and ioweir said one line."""
    traced.expect()
    assert (data / "data").read_bytes() == b"b" * 800
    assert len(traced.err.splitlines()) == 1
    assert GOES_ON in traced.err


# ------------------------------------------------------------------------------------------------- trace directories


def test_missing_trace_directory(data: Path, tmp_path: Path) -> None:
    traced = preloaded(tmp_path / "missing", plain("writes", data, 100))
    check_unharmed(traced, data)
    assert "missing" in traced.err
    assert not (tmp_path / "missing").exists()


def test_trace_directory_is_a_file(data: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x", encoding="ascii")
    check_unharmed(preloaded(tmp_path / "file", plain("writes", data, 100)), data)
    assert (tmp_path / "file").read_text(encoding="ascii") == "x"


def test_relative_trace_directory(data: Path, tmp_path: Path) -> None:
    traced = preloaded(tmp_path, plain("writes", data, 100), env={"IOWEIR_DIR": "relative"}, cwd=tmp_path)
    check_unharmed(traced, data)
    assert "absolute" in traced.err


@pytest.mark.parametrize(
    "content",
    [b"precious!" * 1000, b"x", b"", b"\0" * 100, b"\0" * 65536 + b"far", b"\0" * 8 + b"much" * 4094],
    ids=["words", "byte", "empty", "zeros", "words-behind-zeros", "words-behind-no-magic"],
)
def test_a_file_of_another_kind_is_left_alone(data: Path, tmp_path: Path, content: bytes) -> None:
    """Only an empty one is nobody's."""
    name = tmp_path / f"node-{os.uname().nodename}.iowt"
    name.write_bytes(content)
    traced = preloaded(tmp_path, plain("writes", data, 100))
    if content == b"":
        traced.expect()
        assert len(traced.trace.events) == 102
        return
    check_unharmed(traced, data)
    assert str(name) in traced.err
    assert "no trace file" in traced.err
    assert name.read_bytes() == content


@pytest.mark.parametrize("kind", ["fifo", "folder", "terminal"])
def test_what_lies_in_the_trace_files_place_need_not_be_a_file(data: Path, tmp_path: Path, kind: str) -> None:
    name = tmp_path / f"node-{os.uname().nodename}.iowt"
    if kind == "fifo":
        os.mkfifo(name)
    elif kind == "folder":
        name.mkdir()
    else:
        name.symlink_to("/dev/tty")
    check_unharmed(preloaded(tmp_path, plain("writes", data, 100)), data)


@pytest.mark.parametrize(
    "kind", ["link to an empty file", "link to nothing", "link to a trace", "hard link", "another's"]
)
def test_nothing_is_written_through_the_trace_files_name(data: Path, tmp_path: Path, kind: str) -> None:
    """In a folder that others may write into, they may have put anything there."""
    name, victim = tmp_path / f"node-{os.uname().nodename}.iowt", tmp_path / "victim"
    if kind == "link to a trace":
        preloaded(tmp_path, plain("writes", data, 100)).expect()
        name.rename(victim)
    elif kind != "link to nothing":
        victim.touch()
    before = victim.read_bytes() if victim.exists() else None
    if kind == "hard link":
        name.hardlink_to(victim)
    elif kind == "another's":
        if os.geteuid() != 0:
            pytest.skip("only root can give files away")
        victim.rename(name)
        os.chown(name, 65534, 65534)
        victim, before = name, b""
    else:
        name.symlink_to(victim)
    traced = preloaded(tmp_path, plain("writes", data, 100))
    assert (victim.read_bytes() if victim.exists() else None) == before
    check_unharmed(traced, data)
    assert str(name) in traced.err


def test_unwritable_trace_directory(data: Path, small_disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    check_unharmed(preloaded(small_disk, plain("writes", data, 100)), data)


def test_switched_off(data: Path, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    trace.mkdir()
    preloaded(trace, plain("writes", data, 100), env={"IOWEIR_DISABLE": "1"}).expect()
    assert (data / "data").read_bytes() == b"b" * 800
    assert list(trace.iterdir()) == []


def test_switched_off_under_mpi(mpi: Mpi, data: Path, tmp_path: Path) -> None:
    program = build("ranks.c", mpi.cc, "-pthread")
    command = mpi.launch(2, program, "writes", data)
    traced = ioweir_run(tmp_path / "trace", command, env={"IOWEIR_DISABLE": "1"})
    assert (data / "mpi.1").stat().st_size == 2 * 200 + 101
    assert list((tmp_path / "trace").glob("node-*")) == []
    assert traced.report["events"] == 0


# ------------------------------------------------------------------------------------------------------- full disks


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MiB."""
    place = tmp_path / "disk"
    mount_tmpfs(place, "size=1m")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 4 KiB: not even the trace's header has room."""
    place = tmp_path / "disk"
    mount_tmpfs(place, "size=4k")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_disk_that_fills_up(data: Path, small_disk: Path) -> None:
    """Nothing is lost silently: what was recorded and what was dropped make up all calls."""
    calls = 400_000
    traced = preloaded(small_disk, plain("writes", data, calls))
    traced.expect()
    assert (data / "data").stat().st_size == 8 * calls
    assert len(traced.err.splitlines()) == 1
    assert GOES_ON in traced.err
    trace = traced.trace
    assert trace.dropped > 0
    assert trace.disabled_processes == 1
    assert len(trace.events) + trace.dropped == calls + 2  # with open and close
    writes = [event for event in trace.of(data / "data") if event.name == "write"]
    assert len(writes) > 1000
    assert {event.bytes for event in writes} == {8}
    assert traced.report["partial"] is True
    assert traced.report["dropped"] == trace.dropped
    assert any(str(trace.dropped) in reason for reason in traced.report["partial_reasons"])


def test_disk_that_fills_up_under_threads_and_forks(data: Path, small_disk: Path) -> None:
    # 160,000 events of at least four bytes: more than the disk holds, however the threads take turns.
    traced = preloaded(small_disk, plain("threads", data, 16, 5000))
    traced.expect()
    assert all((data / f"thread.{t}").stat().st_size == 5000 * (1 + t) for t in range(16))
    trace = traced.trace
    assert trace.dropped > 0
    # Each thread: two writes a round, open and close; the shared file: open and close.
    assert len(trace.events) + trace.dropped == 16 * (2 * 5000 + 2) + 2


def test_disk_too_small_for_anything(data: Path, tiny_disk: Path) -> None:
    check_unharmed(preloaded(tiny_disk, plain("writes", data, 100)), data)


def test_full_disk_under_mpi(mpi: Mpi, data: Path, tiny_disk: Path) -> None:
    program = build("ranks.c", mpi.cc, "-pthread")
    command = mpi.launch(
        2, "env", f"LD_PRELOAD={preload_library()}", f"IOWEIR_DIR={tiny_disk}", program, "writes", data
    )
    finished = run(command).expect()
    assert GOES_ON in finished.err
    assert (data / "mpi.0").stat().st_size == 500
    assert (data / "posix.1").stat().st_size == 20


# ---------------------------------------------------------------------------------------------------- standard error


def test_closed_standard_error_is_not_written_to(data: Path, tmp_path: Path) -> None:
    """The program's data file has number 2; ioweir has something to complain about and nowhere to say it."""
    traced = preloaded(tmp_path / "missing", plain("no-stderr", data))
    traced.expect()
    assert (data / "data").read_bytes() == b"b" * 300


def test_descriptor_two_is_a_file_like_any_other(data: Path, tmp_path: Path) -> None:
    traced = preloaded(tmp_path, plain("no-stderr", data))
    traced.expect()
    assert (data / "data").read_bytes() == b"b" * 300
    writes = [event for event in traced.trace.of(data / "data") if event.name == "write"]
    assert totals(writes, "name") == {"write": (6, 300)}


# ------------------------------------------------------------------------------------------------ other preloaded tools


@pytest.mark.parametrize("place", ["before", "after"])
def test_another_preloaded_library(mpi: Mpi, place: str, data: Path, tmp_path: Path) -> None:
    """It wraps pwrite, MPI_File_write_at, PMPI_File_write_at: all is counted once, and it sees what it always saw."""
    other = build("other_tool.c", mpi.cc, "-shared", "-fPIC", libraries=["-ldl"])
    program = build("ranks.c", mpi.cc, "-pthread")
    ours = str(preload_library())
    libraries = [str(other), ours] if place == "before" else [ours, str(other)]
    counts = tmp_path / "counts"
    counts.mkdir()
    trace = tmp_path / "trace"
    trace.mkdir()

    def start(preload: list[str], directory: Path, out: Path) -> dict[str, str]:
        for path in directory.iterdir():
            path.unlink()
        variables = [f"LD_PRELOAD={':'.join(preload)}", f"IOWEIR_DIR={trace}", f"OTHER_TOOL={out}"]
        run(mpi.launch(2, "env", *variables, program, "writes", directory)).expect()
        return {path.name: path.read_text(encoding="ascii") for path in sorted(counts.iterdir())}

    alone = start([str(other)], data, counts / "count")
    assert alone
    together = start(libraries, data, counts / "count")
    assert together == alone
    recorded = Recorded.read(trace)
    assert recorded.is_whole()
    for rank in range(2):
        mpi_io = [event for event in recorded.of(data / f"mpi.{rank}") if event.layer == "MPI-IO"]
        assert totals(mpi_io, "rank", "name") == {
            (rank, "MPI_File_open"): (1, 0),
            (rank, "MPI_File_write_at"): (3, 3 * (100 + rank)),
            (rank, "MPI_File_close"): (1, 0),
        }
        inner = [event for event in recorded.of(data / f"mpi.{rank}") if event.layer == "POSIX" and event.op == "write"]
        assert sum(event.bytes for event in inner) == 3 * (100 + rank)
