"""However ranks are started, and however a program comes by MPI: wrappers, job scripts, dlopen; counted and unharmed.

How ranks end: test_endings.py. Programs without MPI that fork and the like: test_processes.py.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING, Final

import pytest
from tracing import MPICH, OPEN_MPI, Mpi, Traced, build, ioweir_run, report_of_file, run, totals

if TYPE_CHECKING:
    from pathlib import Path

RANKS: Final = 2
SONAMES: Final = {OPEN_MPI: "libmpi.so.40", MPICH: "libmpich.so.12"}


def script(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(("#!/bin/bash", *lines, "")), encoding="utf-8")
    path.chmod(0o755)
    return path


def check_writes(traced: Traced, data: Path, ranks: int = RANKS) -> None:
    """programs/ranks.c writes: each rank 3 x (100 + rank) bytes by MPI-IO, 2 x 10 by POSIX."""
    trace = traced.trace
    assert trace.is_whole()
    assert trace.ranks() == list(range(ranks))
    for rank in range(ranks):
        mpi = [event for event in trace.of(data / f"mpi.{rank}") if event.layer == "MPI-IO"]
        assert totals(mpi, "rank", "name") == {
            (rank, "MPI_File_open"): (1, 0),
            (rank, "MPI_File_write_at"): (3, 3 * (100 + rank)),
            (rank, "MPI_File_close"): (1, 0),
        }
        posix = totals(trace.of(data / f"posix.{rank}"), "rank", "name", "origin")
        assert posix[rank, "write", "application"] == (2, 20)
    assert traced.report["ranks"] == ranks
    assert traced.report["layers"]["MPI-IO"]["write"]["bytes"] == sum(3 * (100 + rank) for rank in range(ranks))
    assert report_of_file(traced.report, data / "posix.0")["POSIX"]["write"]["bytes"] == 20


@pytest.mark.one_of(2)
@pytest.mark.parametrize("last", ['exec "$@"', '"$@"; exit $?', 'read -r line < "$0"; ( "$@" )'])
def test_shell_wrapper_around_each_rank(mpi: Mpi, last: str, data: Path, tmp_path: Path) -> None:
    wrap = script(tmp_path / "wrap.sh", "export WRAPPED=1", 'test -n "$LD_PRELOAD" || exit 9', last)
    program = build("ranks.c", mpi.cc, "-pthread")
    traced = ioweir_run(tmp_path / "trace", mpi.launch(RANKS, wrap, program, "writes", data))
    check_writes(traced, data)
    # What the shell itself does is in no figure.
    assert not [row for row in traced.report["files"] if row["path"] == str(wrap)]


@pytest.mark.parametrize("absolute", [False, True], ids=["launcher in PATH", "launcher by its path"])
def test_job_script_that_calls_the_launcher(mpi: Mpi, absolute: bool, data: Path, tmp_path: Path) -> None:
    program = build("ranks.c", mpi.cc, "-pthread")
    command = mpi.launch(RANKS, program, "writes", data)
    if absolute:
        found = shutil.which(command[0])
        assert found is not None
        command[0] = found
    job = script(tmp_path / "job.sh", "set -e", "echo before", " ".join(f"'{word}'" for word in command), "echo after")
    traced = ioweir_run(tmp_path / "trace", [job])
    assert traced.out.split() == ["before", "after"]
    check_writes(traced, data)


def test_launcher_behind_other_commands(mpi: Mpi, data: Path, tmp_path: Path) -> None:
    program = build("ranks.c", mpi.cc, "-pthread")
    command = ["env", "A=1", "timeout", "80", *mpi.launch(RANKS, program, "writes", data)]
    check_writes(ioweir_run(tmp_path / "trace", command), data)


def library(mpi: Mpi) -> str:
    """Where the MPI library lies."""
    listing = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
    found = [line.split()[-1] for line in listing.splitlines() if line.strip().startswith(f"{SONAMES[mpi]} ")]
    assert found, f"{SONAMES[mpi]} is not installed"
    return found[0]


def header_flags(mpi: Mpi) -> list[str]:
    """What makes mpi.h found, and nothing that links."""
    asked = [mpi.cc, "-showme:compile"] if mpi is OPEN_MPI else [mpi.cc, "-compile_info"]
    words = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split()
    return [word for word in words if word.startswith("-I")]


@pytest.mark.parametrize("how", ["local", "global"])
def test_program_that_loads_mpi_itself(mpi: Mpi, how: str, data: Path, tmp_path: Path) -> None:
    program = build("loads_mpi.c", "gcc", *header_flags(mpi), libraries=["-ldl"])
    traced = ioweir_run(tmp_path / "trace", mpi.launch(RANKS, program, library(mpi), how, data))
    trace = traced.trace
    assert trace.is_whole()
    assert trace.ranks() == [0, 1]
    mpi_io = [event for event in trace.of(data / "loaded") if event.layer == "MPI-IO"]
    for rank in range(RANKS):
        assert totals((e for e in mpi_io if e.rank == rank), "name") == {
            "MPI_File_open": (1, 0),
            "MPI_File_write_at_all": (3, 120),
            "MPI_File_read_at": (2, 30),
            "MPI_File_close": (1, 0),
        }


def test_threads_of_a_rank(mpi: Mpi, data: Path, tmp_path: Path) -> None:
    program = build("ranks.c", mpi.cc, "-pthread")
    trace = ioweir_run(tmp_path / "trace", mpi.launch(RANKS, program, "threads", data)).trace
    assert trace.is_whole()
    for rank in range(RANKS):
        for t in range(8):
            events = [event for event in trace.of(data / f"thread.{rank}.{t}") if event.layer == "MPI-IO"]
            assert totals(events, "rank", "name") == {
                (rank, "MPI_File_open"): (200, 0),
                (rank, "MPI_File_write_at"): (200, 200 * (10 + t)),
                (rank, "MPI_File_close"): (200, 0),
            }
            assert len({event.thread for event in events}) == 1
            for event in trace.of(data / f"thread.{rank}.{t}"):
                parent = trace.parent_of(event)
                assert (parent is None) == (event.layer == "MPI-IO")
                assert parent is None or parent.path == event.path


def test_rank_that_forks(mpi: Mpi, data: Path, tmp_path: Path) -> None:
    program = build("ranks.c", mpi.cc, "-pthread")
    traced = ioweir_run(tmp_path / "trace", mpi.launch(RANKS, program, "fork", data))
    for rank in range(RANKS):
        writes = [event for event in traced.trace.of(data / f"posix.{rank}") if event.op == "write"]
        assert sorted(totals(writes, "process").values()) == [(2, 20), (4, 24)]
        # The child's bytes count for the rank that started it.
        assert report_of_file(traced.report, data / f"posix.{rank}")["POSIX"]["write"]["bytes"] == 44
        mpi_io = [event for event in traced.trace.of(data / f"mpi.{rank}") if event.name == "MPI_File_write_at"]
        assert totals(mpi_io, "rank") == {rank: (1, 99)}
    assert traced.report["ranks"] == RANKS


def test_handles_that_are_used_again(mpi: Mpi, data: Path, tmp_path: Path) -> None:
    program = build("ranks.c", mpi.cc, "-pthread")
    trace = ioweir_run(tmp_path / "trace", mpi.launch(1, program, "handles", data)).trace
    for i in range(40):
        events = [event for event in trace.of(data / f"handle.{i}.0") if event.layer == "MPI-IO"]
        assert totals(events, "name") == {
            "MPI_File_open": (2, 0),
            "MPI_File_write_at": (2, 2 * (i + 1)),
            "MPI_File_close": (2, 0),
        }


def test_longjmp_out_of_an_error_handler(mpi: Mpi, data: Path, tmp_path: Path) -> None:
    """The call that was jumped out of encloses nothing that comes after, at whatever stack depth."""
    program = build("ranks.c", mpi.cc, "-pthread")
    trace = ioweir_run(tmp_path / "trace", mpi.launch(1, program, "longjmp", data)).trace
    later = [event for event in trace.of(data / "posix.0") if event.name == "pwrite"]
    assert len(later) == 64
    assert [event.parent for event in later] == [0] * 64
    assert {event.origin for event in later} == {"application"}
    good = [event for event in trace.of(data / "good.0") if event.name == "MPI_File_write_at"]
    assert len(good) == 64
    assert [event.parent for event in good] == [0] * 64


def test_errno_after_mpi_io_is_the_librarys(mpi: Mpi, data: Path, tmp_path: Path) -> None:
    program = build("ranks.c", mpi.cc, "-pthread")
    command = mpi.launch(1, program, "errno", data)
    run(command).expect()  # the file is there afterwards: both runs find the same
    without = run(command).expect()
    traced = ioweir_run(tmp_path / "trace", command)
    assert traced.out == without.out
    assert traced.out.split() != []


@pytest.mark.parametrize("ranks", [1, 3, 4])
def test_program_without_mpi_calls_under_a_launcher(mpi: Mpi, ranks: int, data: Path, tmp_path: Path) -> None:
    """Several processes that never initialise MPI: no ranks, everything counts."""
    program = build("plain.c", "gcc", "-O1", "-pthread")
    wrap = script(tmp_path / "wrap.sh", f'exec "{program}" write "{data}" "own.$$" 4 9')
    traced = ioweir_run(tmp_path / "trace", mpi.launch(ranks, wrap))
    assert (
        sorted(totals((e for e in traced.trace.under(data) if e.op == "write"), "path").values()) == [(4, 36)] * ranks
    )
    assert traced.report["ranks"] == 0


def test_python_without_mpi(data: Path, tmp_path: Path) -> None:
    """Also subprocess, which starts children by vfork: descriptors it moves there are not the parent's."""
    lines = (
        "import subprocess, sys, os",
        f"path = {str(data / 'file')!r}",
        "f = open(path, 'wb', buffering=0)",
        "f.write(b'a' * 100)",
        "subprocess.run(['/bin/echo', 'from the child'], stdout=f, check=True)",
        "print('not in the file', flush=True)",
        "f.write(b'b' * 100)",
        "f.close()",
        "print(os.path.getsize(path))",
    )
    program = tmp_path / "program.py"
    program.write_text("\n".join(lines), encoding="utf-8")
    traced = ioweir_run(tmp_path / "trace", ["/usr/bin/python3", program])
    assert traced.out.split() == ["not", "in", "the", "file", "215"]
    python = [event for event in traced.trace.of(data / "file") if event.op == "write"]
    assert totals(python, "name") == {"write": (2, 200)}


def test_commands_that_do_nothing_with_files(mpi: Mpi, tmp_path: Path) -> None:
    commands = [["/bin/true"], ["/bin/false"], [mpi.launcher[0], "--version"], [mpi.launcher[0], "--help"]]
    for number, command in enumerate(commands):
        without = run(command)
        traced = ioweir_run(tmp_path / f"trace{number}", command, code=without.code)
        assert traced.out == without.out
        assert traced.report["ranks"] == 0
        assert traced.report["events"] == 0
        assert traced.report["exit_code"] == without.code
        if command[0] in ("/bin/true", "/bin/false"):
            assert traced.report["partial"] is False, traced.report["partial_reasons"]
            assert any("nothing was recorded" in line for line in traced.report["messages"])


def test_a_program_that_cannot_be_watched_is_partial(tmp_path: Path) -> None:
    """It does nothing either, but of that nobody can tell."""
    source = tmp_path / "nothing.c"
    source.write_text("int main(void) { return 0; }\n", encoding="ascii")
    run(["gcc", "-static", source, "-o", tmp_path / "nothing"]).expect()
    traced = ioweir_run(tmp_path / "trace", [tmp_path / "nothing"])
    assert traced.report["partial"] is True
    (reason,) = traced.report["partial_reasons"]
    assert "no process left a trace" in reason


def test_launcher_is_not_preloaded(mpi: Mpi, data: Path, tmp_path: Path) -> None:
    """The ranks' programs are in the trace, and no launcher or proxy of it."""
    program = build("ranks.c", mpi.cc, "-pthread")
    traced = ioweir_run(tmp_path / "trace", mpi.launch(RANKS, program, "writes", data))
    assert {process["executable"] for process in traced.trace.processes} == {str(program)}


def test_an_options_value_that_is_a_programs_name_is_no_program(data: Path, tmp_path: Path) -> None:
    """`--map-by node` where PATH has a `node`: what follows is still the launcher's, a preload of the user's too."""
    tools = tmp_path / "tools"
    tools.mkdir()
    script(tools / "node", "exit 9")
    other = build("other_tool.c", OPEN_MPI.cc, "-shared", "-fPIC", libraries=["-ldl"])
    (launcher, *words) = OPEN_MPI.launch(RANKS, build("ranks.c", OPEN_MPI.cc, "-pthread"), "writes", data)
    counts = tmp_path / "counts"
    options = ["--map-by", "node", "-x", f"LD_PRELOAD={other}", "-x", f"OTHER_TOOL={counts}"]
    env = {"PATH": f"{tools}:{os.environ['PATH']}"}
    check_writes(ioweir_run(tmp_path / "trace", [launcher, *options, *words], env=env), data)
    assert list(tmp_path.glob("counts*")), "the user's library was there, too"


@pytest.mark.parametrize("option", ["--use-min-nodes", "--kill-on-bad-exit", "-lN2"])
def test_what_stands_behind_the_program_of_srun_is_its_own(option: str, tmp_path: Path) -> None:
    srun = script(tmp_path / "srun", 'printf "%s\\n" "$@"')
    program = script(tmp_path / "a.out", "true")
    said = ioweir_run(tmp_path / "trace", [srun, option, program, "--export=NONE", "keep"]).out.splitlines()
    assert said[-4:] == [option, str(program), "--export=NONE", "keep"]
    assert said[0].startswith("--export=ALL,")
