"""Never a failed job for ioweir's sake: each row of the table in docs/how-to/for-a-whole-site.md has its tests.

The first test holds both together. Rows whose tests stand elsewhere name them; the other rows are tested here.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from ioweir.launch import choices
from ioweir.report.chosen import ChosenSeries
from tracing import IOWEIR, PROGRAMS, Mpi, build, ioweir_run, mount_tmpfs, preloaded, run

ROOT: Final = Path(__file__).resolve().parents[2]
PAGE: Final = ROOT / "docs" / "how-to" / "for-a-whole-site.md"
HEADING: Final = "## Never a failed job"
GOES_ON: Final = "the program goes on unharmed"
STRANGER: Final = 65534
HERE: Final = "tests/trace/test_never_failed.py"

ROWS: Final[dict[str, tuple[str, ...]]] = {
    "nobody can make the trace directory": (
        "tests/tools/test_site_modules.py::test_a_job_goes_on_where_no_trace_can_be_made",
    ),
    "`ioweir` is missing, or may not be started": (
        "tests/tools/test_site_modules.py::test_a_job_goes_on_where_ioweir_is_missing",
    ),
    "the trace directory is read-only, or something else lies there": (
        "tests/trace/test_hostile.py::test_unwritable_trace_directory",
        "tests/trace/test_hostile.py::test_trace_directory_is_a_file",
        "tests/trace/test_hostile.py::test_nothing_is_written_through_the_trace_files_name",
    ),
    "the disk is full, or becomes full during the run": (
        "tests/trace/test_hostile.py::test_disk_too_small_for_anything",
        "tests/trace/test_hostile.py::test_disk_that_fills_up",
        "tests/trace/test_hostile.py::test_full_disk_under_mpi",
    ),
    "ioweir's quota (`--quota`) is used up during the run": (
        "tests/trace/test_limits.py::test_quota_ends_the_trace_and_counts_the_rest",
        "tests/trace/test_limits.py::test_quota_is_the_nodes_not_the_processes",
    ),
    "somebody removes the trace directory during the run": (
        "tests/trace/test_harsh.py::test_trace_directory_is_removed_meanwhile",
        "tests/python/test_run.py::test_a_trace_that_has_gone_leaves_the_exit_code_alone",
    ),
    "a node has no memory left for the trace's buffer": (
        "tests/trace/test_harsh.py::test_no_address_space_is_left_for_the_trace",
        "tests/trace/test_harsh.py::test_no_address_space_is_left_for_more_of_the_trace",
    ),
    "a node has no shared memory (`/dev/shm`)": (f"{HERE}::test_no_shared_memory",),
    "a process has no file descriptor left": (
        "tests/trace/test_harsh.py::test_no_descriptor_is_left_for_the_trace",
        "tests/trace/test_harsh.py::test_no_descriptor_is_left_for_more_of_the_trace",
    ),
    "ioweir does not know the MPI library": (f"{HERE}::test_an_mpi_library_of_which_nobody_has_heard",),
    "ioweir was not built for the MPI library": (
        "tests/trace/test_missing_back_end.py::test_the_missing_part_is_named_and_no_path_is_in_the_trace",
    ),
    "the ranks cannot read the plan": (f"{HERE}::test_a_plan_that_ranks_cannot_read",),
    "a rank starts without ioweir": (
        "tests/trace/test_start.py::test_a_trace_takes_the_ranks_that_are_there",
        "tests/trace/test_start.py::test_a_plan_needs_all_ranks",
    ),
    "somebody removes or replaces ioweir while the job runs": (
        "tests/python/test_gone.py::test_a_stand_in_without_ioweir_becomes_the_launcher",
        "tests/python/test_gone.py::test_the_exit_code_stays_where_no_report_can_be_made",
    ),
    "a program is linked statically": (f"{HERE}::test_a_static_program",),
    "the home directory is read-only": (f"{HERE}::test_a_home_that_cannot_be_written",),
    "the cache directory belongs to another user": (
        f"{HERE}::test_a_cache_of_another_user",
        "tests/predict/test_kept.py::test_what_another_user_wrote_is_not_believed",
    ),
    "the job becomes another user": ("tests/trace/test_harsh.py::test_becoming_another_user",),
    "a rank is killed": ("tests/trace/test_endings.py::test_killed_rank",),
}


def rows_of_the_page() -> list[str]:
    """The first cells of the table below the heading."""
    section = PAGE.read_text(encoding="utf-8").partition(f"\n{HEADING}\n")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| (.*?) \|", section, re.MULTILINE)
    return cells[1:]


def test_each_row_has_tests_that_there_are() -> None:
    assert rows_of_the_page() == list(ROWS)
    for tests in ROWS.values():
        for test in tests:
            file, _, name = test.partition("::")
            tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
            defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
            assert name in defined, test


def writes(data: Path, calls: int = 100) -> list[str]:
    """A program that writes 8 B so many times."""
    return [str(build("plain.c", "gcc", "-O1", "-pthread")), "writes", str(data), str(calls)]


# ------------------------------------------------------------------------------------------------- libraries and plans


def test_an_mpi_library_of_which_nobody_has_heard(data: Path, trace: Path, tmp_path: Path) -> None:
    library, program = tmp_path / "libmpi_enigma.so", tmp_path / "program"
    source = PROGRAMS / "unknown_mpi.c"
    run(["gcc", "-shared", "-fPIC", "-DLIBRARY", source, "-o", library]).expect()
    run(["gcc", source, "-o", program, library, f"-Wl,-rpath,{tmp_path}"]).expect()
    traced = preloaded(trace, [program, data / "file"])
    traced.expect()
    assert (data / "file").read_bytes() == b"b" * 80
    (line,) = traced.err.splitlines()
    assert "MPI calls are not traced: no back end for the ABI of this MPI library: Enigma MPI 7.0" in line
    assert len([event for event in traced.trace.of(data / "file") if event.name == "write"]) == 10


@pytest.mark.parametrize("kind", ["missing", "no plan", "folder"])
def test_a_plan_that_ranks_cannot_read(mpi: Mpi, data: Path, trace: Path, tmp_path: Path, kind: str) -> None:
    """It was good when the job began: `ioweir run` and `ioweir env` start nothing under a bad one."""
    plan = tmp_path / "plan.toml"
    if kind == "folder":
        plan.mkdir()
    elif kind == "no plan":
        plan.write_text("[[file]]\nmatch = ")
    program = build("ranks.c", mpi.cc, "-pthread")
    traced = preloaded(trace, mpi.launch(2, program, "writes", data), env={"IOWEIR_PLAN": str(plan)})
    traced.expect()
    assert (data / "mpi.1").stat().st_size == 2 * 200 + 101
    said = [line for line in traced.err.splitlines() if "the plan is not applied" in line]
    assert len(said) == 1, traced.err
    assert said[0].endswith("the program goes on without it")
    assert [event for event in traced.trace.of(data / "mpi.1") if event.layer == "MPI-IO"]


def test_a_static_program(data: Path, tmp_path: Path) -> None:
    program = tmp_path / "static"
    run(["gcc", "-static", "-O1", "-pthread", PROGRAMS / "plain.c", "-o", program]).expect()
    traced = ioweir_run(tmp_path / "trace", [program, "writes", data, "100"])
    assert (data / "data").read_bytes() == b"b" * 800
    assert traced.report["events"] == 0


# ------------------------------------------------------------------------------------------------------------- machines


@pytest.mark.parametrize("kind", ["gone", "read-only"])
def test_no_shared_memory(data: Path, tmp_path: Path, kind: str) -> None:
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("needs root, and unshare for a /dev/shm of the test's own")
    change = {
        "gone": "mount -t tmpfs none /dev && mknod -m 666 /dev/null c 1 3 && mknod -m 666 /dev/urandom c 1 9",
        "read-only": "mount -t tmpfs -o ro none /dev/shm",
    }[kind]
    inside = ["unshare", "-m", "sh", "-c", f'{change} && exec "$@"', "sh"]
    if subprocess.run([*inside, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("this machine does not allow another /dev/shm")
    traced = ioweir_run(tmp_path / "trace", [*inside, *writes(data)])
    assert (data / "data").read_bytes() == b"b" * 800
    assert len([event for event in traced.trace.of(data / "data") if event.name == "write"]) == 100
    inner = [*inside, *IOWEIR, "run", "-q", "-o", str(tmp_path / "whole"), "--", *writes(data)]
    run(inner).expect()
    assert list((tmp_path / "whole").glob("node-*"))


@pytest.fixture
def closed_home(tmp_path: Path) -> Iterator[Path]:
    """A home on a file system that is read-only."""
    place = tmp_path / "home"
    mount_tmpfs(place, "size=1m")
    subprocess.run(["mount", "-o", "remount,ro", str(place)], check=True)
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def found() -> list[ChosenSeries]:
    """What a run with --auto may have found."""
    from test_choices import series

    return [series(library=2.0, everyone=1.0)]


def test_a_home_that_cannot_be_written(closed_home: Path, data: Path, tmp_path: Path) -> None:
    traced = ioweir_run(
        tmp_path / "trace", writes(data), options=["--auto"], env={"HOME": str(closed_home), "XDG_CACHE_HOME": ""}
    )
    assert (data / "data").read_bytes() == b"b" * 800
    assert len(traced.trace.events) == 102
    assert "Traceback" not in traced.err
    assert list(closed_home.iterdir()) == []
    why = choices.remember("program", found(), {"HOME": str(closed_home)})
    assert "is not kept for the next run" in why
    assert "Read-only file system" in why


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to somebody else")
def test_a_cache_of_another_user(data: Path, tmp_path: Path) -> None:
    """What stands there is not believed, and nothing is written there."""
    cache = tmp_path / "cache"
    environment = {"XDG_CACHE_HOME": str(cache)}
    assert choices.remember("plain", found(), environment) == ""
    assert choices.known("plain", environment)
    for path in [*cache.rglob("*"), cache]:
        os.chown(path, STRANGER, STRANGER)
    before = {path: path.read_bytes() for path in cache.rglob("*") if path.is_file()}
    traced = ioweir_run(tmp_path / "trace", writes(data), options=["--auto"], env=environment)
    assert (data / "data").read_bytes() == b"b" * 800
    assert len(traced.trace.events) == 102
    assert choices.known("plain", environment) == []
    assert "belongs to user" in choices.remember("plain", found(), environment)
    assert {path: path.read_bytes() for path in cache.rglob("*") if path.is_file()} == before
