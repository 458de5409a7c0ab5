"""Containers (docs/reference/containers.md) for programs that use POSIX calls: opened, asked about, moved, removed."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from tracing import MPIS, OPEN_MPI, Mpi, build, ioweir_run, preload_library, preloaded, run

if TYPE_CHECKING:
    from tracing import Traced

BLOCK: Final = 40_000
RANKS: Final = 3
BEGINNING: Final = b"ioweir container "
PLAN: Final = '[[file]]\nmatch = "*"\nmapping = "grouped:2"\n'
EBUSY, EFBIG, EIO, EEXIST, ENOENT = 16, 27, 5, 17, 2


def expected(ranks: int = RANKS) -> bytes:
    return bytes(1 + (rank * 31 + at) % 251 for rank in range(ranks) for at in range(BLOCK))


def written(mpi: Mpi, folder: Path) -> None:
    """A container, by a job that leaves it behind."""
    (folder / "plan.toml").write_text(PLAN)
    program = build("container_in_job.c", mpi.cc)
    command = mpi.launch(RANKS, program, folder / "file", "divided", "leave")
    ioweir_run(folder / "trace", command, options=["--plan", folder / "plan.toml"])


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("container")
    written(OPEN_MPI, folder)
    return folder


@pytest.fixture
def place(original: Path, tmp_path: Path) -> Path:
    """A folder of its own with the container "file", and one more beside it."""
    folder = tmp_path / "place"
    folder.mkdir()
    (tmp_path / "elsewhere").mkdir()
    shutil.copy(original / "file", folder)
    for directory in original.glob(".ioweir-*"):
        shutil.copytree(directory, folder / directory.name)
    assert (folder / "file").read_bytes().startswith(BEGINNING)
    return folder


def directories(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob(".ioweir-*"))


def is_header_file(path: Path) -> bool:
    return path.read_bytes().startswith(BEGINNING)


def names(place: Path, call: str, *words: str | Path, code: int = 0, **variables: str) -> Traced:
    """programs/names.c under the preload."""
    (place.parent / "trace").mkdir(exist_ok=True)
    program = build("names.c", "cc", "-Wall")
    traced = preloaded(place.parent / "trace", [program, call, *words], env=variables, cwd=place)
    traced.expect(code)
    return traced


def command(place: Path, *words: str | Path) -> bytes:
    """Any command under the preload."""
    (place.parent / "trace").mkdir(exist_ok=True)
    variables = {"LD_PRELOAD": str(preload_library()), "IOWEIR_DIR": str(place.parent / "trace")}
    done = subprocess.run(
        [str(word) for word in words],
        cwd=place, env=os.environ | variables, capture_output=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


READING: Final = (
    "open", "open-rdwr", "openat", "openat2", "syscall", "fopen", "fopen-plus", "freopen", "mmap",
)  # fmt: skip


@pytest.mark.parametrize("call", READING)
def test_opened_it_is_an_ordinary_file(place: Path, call: str) -> None:
    program = build("names.c", "cc", "-Wall")
    assert command(place, program, call, place / "file") == expected()
    assert (place / "file").read_bytes() == expected()
    assert directories(place) == []
    assert sorted(path.name for path in place.iterdir()) == ["file"]


@pytest.mark.parametrize("mpi", MPIS, ids=lambda mpi: mpi.name)
@pytest.mark.parametrize("folder", [".", "elsewhere"])
def test_mpi_io_through_a_symbolic_link_is_on_the_file_itself(tmp_path: Path, mpi: Mpi, folder: str) -> None:
    for name in ("place", "place/elsewhere"):
        (tmp_path / name).mkdir()
    path, link = tmp_path / "place" / "file", tmp_path / "place" / folder / "link"
    program = build("container_links.c", mpi.cc)
    without = mpi.launch(RANKS, program, tmp_path / "place" / "ordinary", tmp_path / "place" / "link-to-ordinary")
    run(without).expect(0)
    (tmp_path / "plan.toml").write_text(PLAN)
    ioweir_run(tmp_path / "trace", mpi.launch(RANKS, program, path, link), options=["--plan", tmp_path / "plan.toml"])
    assert is_header_file(path)
    assert not link.is_symlink()
    assert len(directories(path.parent)) == 1
    assert directories(path.parent / "elsewhere") == []
    assert command(path.parent, "cat", path) == expected()


def test_opened_through_a_symbolic_link_the_file_itself_is_made_ordinary(place: Path) -> None:
    link = place.parent / "elsewhere" / "link"
    link.symlink_to(place / "file")
    assert command(place, "cat", link) == expected()
    assert link.is_symlink()
    assert (place / "file").read_bytes() == expected()
    assert directories(place) == []


@pytest.mark.parametrize("call", ["stat", "lstat", "fstatat", "statx"])
def test_asked_about_it_stays_a_container_and_has_the_logical_size(place: Path, call: str) -> None:
    blocks = -(-len(expected()) // 512)
    assert names(place, call, "file").out == f"{len(expected())} {blocks}\n"
    assert is_header_file(place / "file")
    names(place, "access", "file")
    assert is_header_file(place / "file")
    # A file of a header file's size that is none has its own.
    (place / "other").write_bytes(b"x" * (place / "file").stat().st_size)
    size = (place / "other").stat().st_size
    assert names(place, call, "other").out.split()[0] == str(size)


def test_programs_that_people_use(place: Path, original: Path) -> None:
    listing = command(place, "ls", "-l", "file").decode()
    assert str(len(expected())) in listing.split()
    assert is_header_file(place / "file")
    shutil.copytree(place, place.parent / "second")
    command(place, "cp", "file", "copy")
    assert (place / "copy").read_bytes() == expected()
    assert directories(place) == []
    command(place.parent / "second", "dd", "if=file", "of=copy", "status=none")
    assert (place.parent / "second" / "copy").read_bytes() == expected()
    shutil.rmtree(place.parent / "second")
    shutil.copytree(original, place.parent / "second", ignore=shutil.ignore_patterns("trace"))
    second = place.parent / "second"
    reads = "import sys; sys.stdout.buffer.write(open('file', 'rb').read())"
    assert command(second, sys.executable, "-c", reads) == expected()
    assert command(second, "sh", "-c", "wc -c < file").split() == [str(len(expected())).encode()]


def test_moved_and_removed_by_programs_that_people_use(place: Path) -> None:
    command(place, "mv", "file", "renamed")
    assert is_header_file(place / "renamed")
    elsewhere = place.parent / "elsewhere"
    command(place, "mv", "renamed", elsewhere)
    assert is_header_file(elsewhere / "renamed")
    assert directories(place) == []
    assert len(directories(elsewhere)) == 1
    shutil.copytree(elsewhere, place.parent / "second")
    assert command(elsewhere, "cat", "renamed") == expected()
    command(place.parent / "second", "rm", "renamed")
    assert list((place.parent / "second").iterdir()) == []


@pytest.mark.parametrize(("call", "said"), [("append", ""), ("append-stream", f"{RANKS * BLOCK}\n")])
def test_what_is_appended_comes_behind_its_bytes(place: Path, call: str, said: str) -> None:
    traced = names(place, call, "file")
    assert traced.out in {said, "0\n"}  # ftell before the first write may tell either, as without ioweir
    assert (place / "file").read_bytes() == expected() + b"more"
    assert directories(place) == []


@pytest.mark.parametrize("call", ["write-new", "creat", "write-stream"])
def test_emptied_by_an_open_nothing_of_it_is_left(place: Path, call: str) -> None:
    names(place, call, "file")
    assert (place / "file").read_bytes() == b"more"
    assert directories(place) == []


def test_an_exclusive_open_finds_it_there(place: Path) -> None:
    assert names(place, "exclusive", "file", code=1).out == f"{EEXIST}\n"
    assert is_header_file(place / "file")
    assert len(directories(place)) == 1


@pytest.mark.parametrize("size", [0, 1000, RANKS * BLOCK + 10])
def test_truncated_it_has_that_length(place: Path, size: int) -> None:
    names(place, "truncate", "file", str(size))
    assert (place / "file").read_bytes() == expected()[:size].ljust(size, b"\0")
    assert directories(place) == []


@pytest.mark.parametrize("call", ["unlink", "unlinkat", "remove"])
def test_removed_its_bytes_go_too(place: Path, call: str) -> None:
    names(place, call, "file")
    assert list(place.iterdir()) == []
    assert names(place, call, "file", code=1).out == f"{ENOENT}\n"


@pytest.mark.parametrize("call", ["rename", "renameat", "renameat2"])
def test_renamed_its_bytes_stay_with_it(place: Path, call: str) -> None:
    elsewhere = place.parent / "elsewhere"
    names(place, call, "file", "other")
    assert is_header_file(place / "other")
    names(place, call, "other", elsewhere / "file")
    assert is_header_file(elsewhere / "file")
    assert directories(place) == []
    # To where no directory is, nothing happens.
    assert names(place, call, elsewhere / "file", elsewhere / "no" / "file", code=1).out == f"{ENOENT}\n"
    assert len(directories(elsewhere)) == 1
    assert command(elsewhere, "cat", "file") == expected()


def test_what_gets_its_name_takes_the_bytes_place(place: Path) -> None:
    (place / "new").write_bytes(b"new")
    assert names(place, "renameat2", "new", "file", code=1).out == f"{EEXIST}\n"  # RENAME_NOREPLACE
    assert len(directories(place)) == 1
    names(place, "rename", "file", "file")  # nothing
    assert is_header_file(place / "file")
    names(place, "rename", "new", "file")
    assert (place / "file").read_bytes() == b"new"
    assert directories(place) == []


def test_exchanged_with_a_file_elsewhere_and_linked_it_is_ordinary(place: Path) -> None:
    other = place.parent / "elsewhere" / "other"
    other.write_bytes(b"other")
    shutil.copytree(place, place.parent / "second")
    names(place, "exchange", "file", other)
    assert (place / "file").read_bytes() == b"other"
    assert other.read_bytes() == expected()
    second = place.parent / "second"
    names(second, "link", "file", "second")
    assert (second / "second").read_bytes() == expected()
    assert (second / "file").stat().st_nlink == 2


def test_above_the_limit_it_is_an_error_that_says_what_to_do(place: Path) -> None:
    for call in ("open", "fopen", "truncate"):
        traced = names(place, call, "file", "10", code=1, IOWEIR_MERGE_LIMIT="1000")
        assert traced.out == f"{EFBIG}\n"
        (line,) = traced.err.splitlines()
        assert line.startswith(f"ioweir: {place}/file: ")
        assert "117 KiB" in line
        assert "ioweir merge" in line
    assert is_header_file(place / "file")
    assert len(directories(place)) == 1
    assert names(place, "stat", "file", IOWEIR_MERGE_LIMIT="1000").out.startswith(f"{len(expected())} ")


def test_while_a_job_writes_it_only_removing_it_works(place: Path) -> None:
    (directory,) = place.glob(".ioweir-*")
    (directory / "open.9").touch()
    elsewhere = place.parent / "elsewhere"
    for call, other in (("open", ""), ("fopen", ""), ("write-new", ""), ("truncate", "0"), ("truncate", "5"),
                        ("rename", elsewhere / "file")):  # fmt: skip
        traced = names(place, call, "file", other, code=1)
        assert traced.out == f"{EBUSY}\n", call
        assert "a job still writes" in traced.err
    assert is_header_file(place / "file")
    assert names(place, "stat", "file").out.startswith(f"{len(expected())} ")
    names(place, "unlink", "file")
    assert list(place.iterdir()) == []


def test_damage_is_an_error_and_never_the_header_files_text(place: Path) -> None:
    (directory,) = place.glob(".ioweir-*")
    (directory / "group.1" / "data").unlink()
    traced = names(place, "open", "file", code=1)
    assert traced.out == f"{EIO}\n"
    assert "group.1/data" in traced.err
    assert is_header_file(place / "file")
    (place / "file").write_bytes((place / "file").read_bytes().replace(b"grouped:2", b"grouped:3"))
    assert names(place, "open", "file", code=1).out == f"{EIO}\n"
    names(place, "unlink", "file")


@pytest.mark.parametrize("call", ["open", "open-rdwr", "fopen"])
def test_a_header_file_that_was_cut_is_damaged_and_other_small_files_are_not(place: Path, call: str) -> None:
    whole = (place / "file").read_bytes()
    for size in (len(BEGINNING), len(BEGINNING) + 1, 100, 255):
        (place / "file").write_bytes(whole[:size])
        traced = names(place, call, "file", code=1)
        assert traced.out == f"{EIO}\n", size
        assert "damaged ioweir header file" in traced.err
        assert (place / "file").read_bytes() == whole[:size]
        small = (b"another text " * 20)[:size]
        (place / "small").write_bytes(small)
        assert command(place, "cat", "small") == small
    # Of a header file nothing is left that could be told.
    (place / "file").write_bytes(whole[: len(BEGINNING) - 1])
    assert command(place, "cat", "file") == whole[: len(BEGINNING) - 1]
    (place / "file").write_bytes(whole)
    assert command(place, "cat", "file") == expected()


def test_with_a_second_name_it_is_not_taken_from_under_the_other(place: Path) -> None:
    os.link(place / "file", place / "second")
    traced = names(place, "open", "file", code=1)
    assert traced.out == f"{EIO}\n"
    assert "hard links" in traced.err
    names(place, "unlink", "file")
    assert command(place, "cat", "second") == expected()
    assert directories(place) == []


def test_what_a_merge_that_died_has_left_is_written_anew(place: Path) -> None:
    (directory,) = directories(place)
    (place / directory / "whole").write_bytes(b"half of it" * 100_000)
    assert command(place, "cat", "file") == expected()
    assert sorted(path.name for path in place.iterdir()) == ["file"]


def test_the_containers_own_copy_of_its_header_file_is_a_text(place: Path) -> None:
    (about,) = place.glob(".ioweir-*/about")
    assert command(place, "cat", about) == about.read_bytes()
    assert command(place, "cat", "file") == expected()


def test_many_processes_at_a_time_all_read_it(place: Path) -> None:
    (place.parent / "trace").mkdir()
    variables = {"LD_PRELOAD": str(preload_library()), "IOWEIR_DIR": str(place.parent / "trace")}
    started = [
        subprocess.Popen(["cat", "file"], cwd=place, env=os.environ | variables, stdout=subprocess.PIPE)
        for _ in range(8)
    ]
    assert [process.communicate(timeout=60)[0] for process in started] == [expected()] * 8
    assert sorted(path.name for path in place.iterdir()) == ["file"]


NEW: Final = b"new bytes of another length" * 700
PLACES: Final = 30


def left_by(meddling: str, folder: Path) -> None:
    """A place of container_hammer.c after all: the meddler has the last word, and there are no parts of nobody."""
    files = [path for path in (*folder.iterdir(), *(folder / "away").iterdir()) if path.is_file()]
    header_files = [path for path in files if is_header_file(path)]
    assert len(directories(folder)) + len(directories(folder / "away")) == len(header_files)
    holder = {"rename": "other", "move": "away/file", "exchange": "fresh"}.get(meddling, "file")
    if meddling in {"replace", "exchange"}:
        assert (folder / "file").read_bytes() == NEW
    elif meddling != "nothing":
        assert not (folder / "file").exists()
    if meddling in {"unlink", "replace"}:
        assert header_files == []
        return
    if is_header_file(folder / holder):
        assert command(folder, "cat", holder) == expected()
    assert (folder / holder).read_bytes() == expected()
    assert directories((folder / holder).parent) == []


@pytest.mark.one_of(3)
@pytest.mark.parametrize("meddling", ["nothing", "unlink", "rename", "move", "replace", "exchange"])
def test_at_the_same_moment_everybody_meets_its_bytes_or_what_another_has_put_there(
    original: Path, tmp_path: Path, meddling: str
) -> None:
    for number in range(PLACES):
        folder = tmp_path / "places" / str(number)
        (folder / "away").mkdir(parents=True)
        shutil.copy(original / "file", folder)
        for directory in original.glob(".ioweir-*"):
            shutil.copytree(directory, folder / directory.name)
    (tmp_path / "old").write_bytes(expected())
    (tmp_path / "new").write_bytes(NEW)
    (tmp_path / "trace").mkdir()
    program = build("container_hammer.c", "cc", "-Wall")
    words: list[str | Path] = [program, tmp_path / "places", str(PLACES), "5", meddling]
    words += [tmp_path / "old", tmp_path / "new"]
    traced = preloaded(tmp_path / "trace", words)
    traced.expect(0)
    assert traced.err == ""
    for number in range(PLACES):
        left_by(meddling, tmp_path / "places" / str(number))


def test_a_program_keeps_its_locks_on_small_files(place: Path) -> None:
    (place / "locked").write_bytes(b"x" * (place / "file").stat().st_size)
    names(place, "locks", "locked")


def test_what_happened_inside_is_none_of_the_programs_calls(place: Path) -> None:
    traced = names(place, "open", "file")
    mine = [event.name for event in traced.trace.of(place / "file") if event.origin == "application"]
    assert mine.count("open") == 1
    assert {event.origin for event in traced.trace.under(place) if event.name == "pwrite"} <= {"engine"}


@pytest.mark.parametrize("mpi", MPIS, ids=lambda mpi: mpi.name)
def test_in_the_job_that_writes_it(mpi: Mpi, tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(PLAN)
    program = build("container_in_job.c", mpi.cc)
    command = mpi.launch(RANKS, program, tmp_path / "file", "divided")
    traced = ioweir_run(tmp_path / "trace", command, options=["--plan", tmp_path / "plan.toml"])
    assert traced.out.count("read") == RANKS
    assert traced.err.count("a job still writes") == RANKS
    assert (tmp_path / "file").read_bytes() == expected()
    assert directories(tmp_path) == []


@pytest.mark.one_of(6)
@pytest.mark.parametrize("mode", ["closed", "opened", "reading"])
@pytest.mark.parametrize("mapping", ["grouped:2", "log", "subfiles:3"])
@pytest.mark.parametrize("mpi", MPIS, ids=lambda mpi: mpi.name)
def test_ranks_that_do_not_wait_for_each_other(mpi: Mpi, mapping: str, mode: str, tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(f'[[file]]\nmatch = "*"\nmapping = "{mapping}"\n')
    (tmp_path / "place").mkdir()
    program = build("container_rounds.c", mpi.cc)
    command = mpi.launch(RANKS, program, tmp_path / "place" / "file", "10", mode)
    traced = ioweir_run(tmp_path / "trace", command, options=["--plan", tmp_path / "plan.toml"])
    assert traced.out == "done\n"
    assert traced.err == ""
    assert list((tmp_path / "place").iterdir()) == []


@pytest.mark.parametrize("mpi", MPIS, ids=lambda mpi: mpi.name)
def test_without_a_plan_the_mpi_library_opens_the_ordinary_file(mpi: Mpi, place: Path) -> None:
    program = build("container_in_job.c", mpi.cc)
    traced = ioweir_run(place.parent / "trace", mpi.launch(RANKS, program, place / "file"))
    assert traced.out.count("read") == RANKS
    assert (place / "file").read_bytes() == expected()
    assert directories(place) == []


def test_orphans_are_found_and_removed(place: Path) -> None:
    (directory,) = place.glob(".ioweir-*")
    deeper = place / "a" / "b"
    deeper.mkdir(parents=True)
    shutil.copytree(directory, deeper / directory.name)  # without its file
    foreign = place / (".ioweir-" + "0" * 32)  # nothing that ioweir made
    foreign.mkdir()
    (foreign / "theirs").touch()
    ioweir = [sys.executable, "-m", "ioweir", "gc", str(place)]
    listed = subprocess.run(ioweir, capture_output=True, text=True, check=True)
    assert f"{deeper / directory.name}: " in listed.stdout
    assert f" of {place}" not in listed.stdout  # as it was called where it was made
    assert "1 orphan, " in listed.stdout
    assert "--yes" in listed.stdout
    assert f"\n{directory}: " not in "\n" + listed.stdout
    done = subprocess.run([*ioweir, "--yes"], capture_output=True, text=True, check=False)
    assert done.returncode == 1  # the one that is not ioweir's
    assert not (deeper / directory.name).exists()
    assert directory.is_dir()
    assert is_header_file(place / "file")
    # What a process has open goes with that one: no failure.
    shutil.rmtree(foreign)
    shutil.copytree(directory, deeper / directory.name)
    with (deeper / directory.name / "about").open() as held:
        fcntl.flock(held, fcntl.LOCK_SH)
        done = subprocess.run([*ioweir, "--yes", "--json"], capture_output=True, text=True, check=True)
        (row,) = json.loads(done.stdout)
        assert (row["in_use"], Path(row["directory"])) == (True, deeper / directory.name)
        assert "open" in row["problem"]
    subprocess.run([*ioweir, "--yes"], capture_output=True, check=True)
    assert not (deeper / directory.name).exists()
    assert command(place, "cat", "file") == expected()
