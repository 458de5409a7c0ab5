"""Containers (docs/reference/containers.md) whose job died: when `ioweir check` calls them whole; copied header files.

The oracle is the file that the same calls would leave without ioweir. Not here: random jobs (src/container,
replaced_test.cpp).
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Final

import pytest
from tracing import IOWEIR, MPIS, Mpi, build, ioweir_run, run

if TYPE_CHECKING:
    from pathlib import Path

BYTES: Final = 90_000
MAPPINGS: Final = ("grouped:2", "log", "subfiles:3")
FILE: Final = "file"


def job(mpi: Mpi, mapping: str, folder: Path, *words: str | int, ranks: int = 3, code: int | None = 0) -> None:
    (folder / "plan.toml").write_text(f'[[file]]\nmatch = "{FILE}"\nmapping = "{mapping}"\n')
    program = build("overwritten.c", mpi.cc, "-Wall")
    trace = folder / f"trace{len(list(folder.glob('trace*')))}"
    command = mpi.launch(ranks, program, folder / FILE, *map(str, words))
    ioweir_run(trace, command, options=["--plan", folder / "plan.toml"], code=code)


def check(folder: Path, code: int, name: str = FILE) -> str:
    return run([*IOWEIR, "check", name], cwd=folder).expect(code).out


def merged(folder: Path, *words: str, code: int = 0) -> str:
    done = run([*IOWEIR, "merge", *words], cwd=folder).expect(code)
    return done.out + done.err


def under(folder: Path, *command: str) -> None:
    """A command under `ioweir run`."""
    trace = f"trace{len(list(folder.glob('trace*')))}"
    run([*IOWEIR, "run", "-q", "-o", trace, "--", *command], cwd=folder).expect()


def directories(folder: Path) -> list[Path]:
    return list(folder.glob(".ioweir-*"))


@pytest.mark.one_of(3)
@pytest.mark.parametrize("mapping", MAPPINGS)
@pytest.mark.parametrize("mpi", MPIS, ids=lambda mpi: mpi.name)
def test_written_over_by_the_next_job_it_is_whole(mpi: Mpi, mapping: str, tmp_path: Path) -> None:
    job(mpi, mapping, tmp_path, 0, BYTES, "d", "sync", "die", code=None)
    assert f"{FILE}: NOT whole\n  writing was begun and not ended (generation 1): its job has died" in check(
        tmp_path, 1
    )
    assert "was not closed" in merged(tmp_path, FILE, code=1)
    # Half of it, by another number of ranks; then the rest.
    job(mpi, mapping, tmp_path, 0, BYTES // 2, "x", ranks=2)
    # Logs have no more than was synced: half of what the last of the three ranks was to write is not there.
    length = BYTES - BYTES // 6 if mapping == "log" else BYTES
    assert f"and bytes {BYTES // 2} to {length - 1} were not written again since" in check(tmp_path, 1)
    job(mpi, mapping, tmp_path, BYTES // 2, BYTES, "y", ranks=1)
    assert check(tmp_path, 0).startswith(f"{FILE}: whole")
    assert "removed" in merged(tmp_path, FILE)
    assert (tmp_path / FILE).read_bytes() == b"x" * (BYTES // 2) + b"y" * (BYTES - BYTES // 2)
    assert directories(tmp_path) == []


@pytest.mark.one_of(3)
@pytest.mark.parametrize("mapping", MAPPINGS)
@pytest.mark.parametrize("mpi", MPIS, ids=lambda mpi: mpi.name)
def test_a_job_that_begins_with_a_size_of_nothing_makes_it_whole(mpi: Mpi, mapping: str, tmp_path: Path) -> None:
    job(mpi, mapping, tmp_path, 0, BYTES, "d", "sync", "die", code=None)
    job(mpi, mapping, tmp_path, 100, 3000, "x", "anew")
    assert check(tmp_path, 0).startswith(f"{FILE}: whole")
    merged(tmp_path, FILE)
    assert (tmp_path / FILE).read_bytes() == bytes(100) + b"x" * 2900


@pytest.mark.one_of(3)
@pytest.mark.parametrize("mapping", MAPPINGS)
def test_what_is_there_is_kept_by_wish(mapping: str, tmp_path: Path) -> None:
    job(MPIS[0], mapping, tmp_path, 0, BYTES, "d", "sync", "die", code=None)
    assert "other may not be all of the file: writing was begun" in merged(tmp_path, FILE, "-o", "other")
    assert directories(tmp_path) != []
    assert f"{FILE} may not be all of the file: writing was begun" in merged(tmp_path, FILE, "--unfinished")
    assert directories(tmp_path) == []
    text = (tmp_path / FILE).read_bytes()
    assert text == (tmp_path / "other").read_bytes()
    assert set(text) <= set(b"d\0")
    assert text[: BYTES // 6] == b"d" * (BYTES // 6), "what rank 0 has synced"


@pytest.mark.one_of(2)
@pytest.mark.parametrize("mapping", MAPPINGS)
def test_a_copied_header_file_is_merged_and_the_original_keeps_its_bytes(mapping: str, tmp_path: Path) -> None:
    job(MPIS[0], mapping, tmp_path, 0, BYTES, "o")
    shutil.copy(tmp_path / FILE, tmp_path / "copy")
    assert "its parts stay in" in merged(tmp_path, "copy")
    assert (tmp_path / "copy").read_bytes() == b"o" * BYTES
    assert check(tmp_path, 0).startswith(f"{FILE}: whole")
    (tmp_path / FILE).rename(tmp_path / "moved")
    assert "the directory of its parts is removed" in merged(tmp_path, "moved")
    assert (tmp_path / "moved").read_bytes() == b"o" * BYTES
    assert directories(tmp_path) == []


def test_copies_that_programs_under_ioweir_remove_and_move(tmp_path: Path) -> None:
    job(MPIS[0], MAPPINGS[0], tmp_path, 0, BYTES, "o")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for name in ("removed", "moved", "emptied", "replaced"):
        shutil.copy(tmp_path / FILE, tmp_path / name)
    for command in ("rm removed", "mv moved elsewhere/moved", ": > emptied", "echo other > o; mv o replaced"):
        under(tmp_path, "sh", "-c", command)
        assert check(tmp_path, 0).startswith(f"{FILE}: whole"), command
    assert not (tmp_path / "removed").exists()
    assert (elsewhere / "moved").read_bytes() == b"o" * BYTES
    assert (tmp_path / "emptied").read_bytes() == b""
    assert directories(elsewhere) == []
    # The last one takes its bytes along.
    under(tmp_path, "mv", FILE, "elsewhere")
    assert directories(tmp_path) == []
    assert check(elsewhere, 0).startswith(f"{FILE}: whole")


def test_a_folder_that_was_copied_or_renamed_is_whole(tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    job(MPIS[0], MAPPINGS[1], place, 0, BYTES, "o")
    shutil.copytree(place, tmp_path / "copy", symlinks=True)
    merged(tmp_path / "copy", FILE)
    assert check(place, 0).startswith(f"{FILE}: whole")
    place.rename(tmp_path / "renamed")
    merged(tmp_path / "renamed", FILE)
    assert (tmp_path / "renamed" / FILE).read_bytes() == (tmp_path / "copy" / FILE).read_bytes() == b"o" * BYTES
