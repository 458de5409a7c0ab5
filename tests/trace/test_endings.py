"""How programs and ranks end: exit codes pass, and every completed call is in the trace, also after kill -9."""

from __future__ import annotations

import json
import os
import signal
import struct
import time
from typing import TYPE_CHECKING, Final

import pytest
from tracing import Mpi, Traced, build, ioweir_run, preload_library, preloaded, run, totals

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

RANKS: Final = 3


def plain(mode: str, data: Path, *more: object) -> list[str]:
    return [str(build("plain.c", "gcc", "-O1", "-pthread")), mode, str(data), *map(str, more)]


def ranks(mpi: Mpi, count: int, mode: str, data: Path, *more: object) -> list[str]:
    return mpi.launch(count, build("ranks.c", mpi.cc, "-pthread"), mode, data, *map(str, more))


def load_run(traced: Traced) -> dict[str, object]:
    content = json.loads((traced.directory / "run.json").read_text(encoding="utf-8"))
    assert isinstance(content, dict)
    return content


# ------------------------------------------------------------------------------------------------------- exit codes


@pytest.mark.one_of(3)
@pytest.mark.parametrize("code", [0, 1, 42])
def test_exit_codes_pass(mpi: Mpi, code: int, data: Path, tmp_path: Path) -> None:
    without = run(ranks(mpi, 2, "writes", data, code))
    assert without.code == code
    traced = ioweir_run(tmp_path / "trace", ranks(mpi, 2, "writes", data, code), code=code)
    assert traced.report["exit_code"] == code
    # A launcher may end the other ranks when the first has returned an error.
    assert traced.report["partial"] is False or code != 0, traced.report["partial_reasons"]
    assert not [reason for reason in traced.report["partial_reasons"] if "never reached" in reason]


@pytest.mark.parametrize("code", [0, 1, 42])
def test_exit_codes_without_mpi(code: int, data: Path, tmp_path: Path) -> None:
    traced = ioweir_run(tmp_path / "trace", plain("end", data, code), code=code)
    assert load_run(traced)["exit_code"] == code
    assert totals((e for e in traced.trace.of(data / "data") if e.op == "write"), "name") == {"write": (4, 36)}


@pytest.mark.parametrize(
    ("how", "code", "normal"),
    [
        ("_exit", 3, False),
        ("quick_exit", 5, False),
        ("abort", 128 + signal.SIGABRT, False),
        ("segv", 128 + signal.SIGSEGV, False),
        ("thread", 0, True),
    ],
)
def test_ends_that_exit_handlers_do_not_see(how: str, code: int, normal: bool, data: Path, tmp_path: Path) -> None:
    traced = ioweir_run(tmp_path / "trace", plain("end", data, how), code=code)
    assert totals((e for e in traced.trace.of(data / "data") if e.op == "write"), "name") == {"write": (4, 36)}
    assert traced.trace.is_whole()
    (process,) = traced.trace.processes
    assert (process["end_ns"] >= 0) == normal


def test_signal_is_handed_on(data: Path, tmp_path: Path) -> None:
    """SIGTERM to ioweir reaches the program, which decides; ioweir returns what it returned, with a whole trace."""

    def stop(process: subprocess.Popen[str]) -> None:
        limit = time.monotonic() + 30
        while not (data / "ready").exists():
            assert time.monotonic() < limit, "the program did not start"
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)

    traced = ioweir_run(tmp_path / "trace", plain("wait", data), code=44, started=stop)
    assert totals((e for e in traced.trace.under(data) if e.op == "write"), "path") == {
        f"{data}/ready": (1, 1),
        f"{data}/done": (1, 2),
    }
    assert load_run(traced)["exit_code"] == 44


def test_signal_that_ends_the_program(data: Path, tmp_path: Path) -> None:
    """A program that does not handle SIGTERM dies of it; ioweir says so as a shell would, and still reports."""

    def stop(process: subprocess.Popen[str]) -> None:
        limit = time.monotonic() + 30
        while not (data / "counter").exists() or (data / "counter").stat().st_size == 0:
            assert time.monotonic() < limit, "the program did not start"
            time.sleep(0.02)
        time.sleep(0.05)
        process.send_signal(signal.SIGTERM)

    traced = ioweir_run(tmp_path / "trace", plain("killed", data, 0), code=128 + signal.SIGTERM, started=stop)
    assert load_run(traced)["signal"] == signal.SIGTERM
    assert traced.report["partial"] is True
    check_counted(traced, data / "data", "pwrite", data / "counter", 0)


# ------------------------------------------------------------------------------------------------------ killed ranks


def check_counted(traced: Traced, path: Path, name: str, counter: Path, which: int, exactly: bool = False) -> int:
    """All writes that the program counted in shared memory are recorded, and at most the one after them."""
    counted = int(struct.unpack_from("<Q", counter.read_bytes(), 8 * which)[0])
    assert counted > 0
    events = [event for event in traced.trace.of(path) if event.name == name]
    assert len(events) in ([counted] if exactly else [counted, counted + 1])
    assert {(event.bytes, event.failed) for event in events} == {(8, False)}
    assert [event.offset for event in events] == [8 * (i % 1000) for i in range(1, len(events) + 1)]
    return counted


@pytest.mark.parametrize("writes", [1, 1000, 50_000])
def test_program_killed_in_the_middle(writes: int, data: Path, tmp_path: Path) -> None:
    """50,000 events fill several chunks of the trace."""
    trace = tmp_path / "trace"
    trace.mkdir()
    traced = preloaded(trace, plain("killed", data, writes))
    assert traced.code == -signal.SIGKILL
    assert check_counted(traced, data / "data", "pwrite", data / "counter", 0, exactly=True) == writes
    assert traced.trace.is_whole()
    assert traced.report["partial"] is False or traced.report["partial_reasons"]


def test_program_killed_at_any_moment(data: Path, tmp_path: Path) -> None:
    for attempt in range(8):
        folder, trace = data / str(attempt), tmp_path / f"trace{attempt}"
        folder.mkdir()
        trace.mkdir()

        def kill(process: subprocess.Popen[str], folder: Path = folder, attempt: int = attempt) -> None:
            limit = time.monotonic() + 30
            counter = folder / "counter"
            while not counter.exists() or counter.read_bytes()[:8].strip(b"\0") == b"":
                assert time.monotonic() < limit, "the program did not start"
                time.sleep(0.001)
            time.sleep(0.007 * attempt)
            process.kill()

        variables = {"LD_PRELOAD": str(preload_library()), "IOWEIR_DIR": str(trace)}
        finished = run(plain("killed", folder, 0), env=variables, started=kill)
        assert finished.code == -signal.SIGKILL
        traced = Traced(finished.code, finished.out, finished.err, trace)
        check_counted(traced, folder / "data", "pwrite", folder / "counter", 0)
        assert traced.trace.is_whole()


@pytest.mark.one_of(2)
@pytest.mark.parametrize("writes", [700, 0], ids=["after 700 writes", "at some moment"])
def test_killed_rank(mpi: Mpi, writes: int, data: Path, tmp_path: Path) -> None:
    victim = RANKS - 1
    without = run(ranks(mpi, RANKS, "killed", data, 700))
    assert without.code != 0
    for path in data.iterdir():
        path.unlink()
    traced = ioweir_run(tmp_path / "trace", ranks(mpi, RANKS, "killed", data, writes), code=without.code)
    counter = data / f"counter.{victim}"
    exactly = writes > 0
    posix = check_counted(traced, data / f"posix.{victim}", "pwrite", counter, 0, exactly)
    in_mpi = check_counted(traced, data / f"mpi.{victim}", "MPI_File_write_at", counter, 1, exactly)
    assert posix - in_mpi in (0, 1)
    assert posix == writes or not exactly
    report = traced.report
    assert report["partial"] is True
    assert any("never reached MPI_Finalize" in reason and "2" in reason for reason in report["partial_reasons"])
    assert report["exit_code"] == without.code
    assert traced.trace.damage == ()
    assert traced.trace.ranks() == list(range(RANKS))


@pytest.mark.one_of(9)
@pytest.mark.parametrize("count", [1, RANKS])
@pytest.mark.parametrize("how", ["abort", "_exit", "segv", "mpi_abort"])
def test_rank_that_ends_without_finalize(mpi: Mpi, how: str, count: int, data: Path, tmp_path: Path) -> None:
    # With several ranks the code depends on whom the launcher notices first.
    code = run(ranks(mpi, 1, "end", data, how)).code if count == 1 else None
    traced = ioweir_run(tmp_path / "trace", ranks(mpi, count, "end", data, how), code=code)
    assert traced.code != 0
    assert load_run(traced)["exit_code"] == traced.code
    for rank in range(count):
        writes = [event for event in traced.trace.of(data / f"posix.{rank}") if event.op == "write"]
        assert totals(writes, "rank") == {rank: (5, 100)}
    assert traced.report["partial"] is True
    assert any("never reached MPI_Finalize: rank" in reason for reason in traced.report["partial_reasons"])
    assert traced.trace.damage == ()


def test_no_process_is_left_behind(mpi: Mpi, data: Path, tmp_path: Path) -> None:
    traced = ioweir_run(tmp_path / "trace", ranks(mpi, RANKS, "killed", data, 10), code=None)
    assert traced.code != 0
    limit = time.monotonic() + 10
    pids = [process["pid"] for process in traced.trace.processes]
    while alive := [pid for pid in pids if os.path.exists(f"/proc/{pid}")]:  # noqa: PTH110 (a process, not a file)
        assert time.monotonic() < limit, f"still running: {alive}"
        time.sleep(0.05)
