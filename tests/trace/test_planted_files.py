"""What somebody else has planted in a container or beside a target, and the command line: nothing outside changes and
nothing waits.

A few cases, through the commands alone. Each file in each way: src/container/hostile_test.cpp, tests/python
(test_hostile_files.py).
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

import pytest
from tracing import IOWEIR, OPEN_MPI, build, ioweir_run, run

if TYPE_CHECKING:
    from pathlib import Path

BYTES: Final = 90_000
STRANGER: Final = 12345
WAIT_S: Final = 30.0
"""On a busy machine; a command that opens a pipe waits for ever."""


@pytest.fixture(params=["grouped:2", "log", "subfiles:3"])
def container(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A whole one of two ranks; beside it a folder of somebody else's with files of a container's names."""
    place = tmp_path / "place"
    place.mkdir()
    plan = tmp_path / "plan.toml"
    plan.write_text(f'[[file]]\nmatch = "file"\nmapping = "{request.param}"\n')
    program = build("overwritten.c", OPEN_MPI.cc, "-Wall")
    command = OPEN_MPI.launch(2, program, place / "file", "0", str(BYTES), "o")
    ioweir_run(tmp_path / "written", command, options=["--plan", plan])
    outside = tmp_path / "outside"
    outside.mkdir()
    for name in ("data", "index.1.0", "data.1.0"):
        (outside / name).write_text("precious")
    return place / "file"


def parts(file: Path) -> Path:
    (found,) = file.parent.glob(".ioweir-*")
    return found


def expect_precious(file: Path) -> None:
    outside = file.parent.parent / "outside"
    assert {path.name: path.read_text() for path in outside.iterdir()} == dict.fromkeys(
        ("data", "index.1.0", "data.1.0"), "precious"
    )


@pytest.mark.one_of(6)
@pytest.mark.parametrize("target", ["data", "new"])
@pytest.mark.parametrize("command", ["merge", "opened"])
def test_putting_a_file_together_follows_no_link(container: Path, command: str, target: str) -> None:
    (parts(container) / "whole").symlink_to(container.parent.parent / "outside" / target)
    if command == "merge":
        run([*IOWEIR, "merge", container]).expect()
    else:
        ioweir_run(container.parent.parent / "trace", ["sh", "-c", f"ls -l {container}; cat {container}"])
    expect_precious(container)
    assert not container.is_symlink()
    assert container.read_bytes() == b"o" * BYTES


def test_gc_removes_nothing_behind_a_link(container: Path) -> None:
    folders = [path for path in parts(container).iterdir() if path.is_dir()]
    if not folders:
        pytest.skip("subfiles have no folders")
    for number, folder in enumerate(folders):
        folder.rename(container.parent.parent / f"kept{number}")
        folder.symlink_to(container.parent.parent / "outside")
    container.unlink()
    run([*IOWEIR, "gc", "--yes", container.parent])
    expect_precious(container)


@pytest.mark.one_of(3)
def test_no_command_waits_for_a_pipe(container: Path, tmp_path: Path) -> None:
    files = sorted(path for path in parts(container).rglob("*") if path.is_file())
    assert len(files) >= 3
    commands = (("merge", container, "-o", tmp_path / "merged"), ("check", container))
    more = (("ls", container), ("gc", container.parent))
    for number, file in enumerate(files):
        kept = tmp_path / "kept"
        file.rename(kept)
        os.mkfifo(file)
        for words in (*commands, *more) if number == 0 else commands:
            said = run([*IOWEIR, *words], timeout=WAIT_S)
            assert said.code in (0, 1), (file.name, words, said.err)
        (tmp_path / "merged").unlink(missing_ok=True)
        file.unlink()
        kept.rename(file)
    assert run([*IOWEIR, "check", container]).expect().out.startswith(f"{container}: whole")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to somebody else")
def test_probe_makes_no_file_that_a_foreign_manifest_names(tmp_path: Path) -> None:
    place = tmp_path / "place"
    for name in ("a", "data"):
        (place / name).mkdir(parents=True)
    manifest = place / ".ioweir-targets.toml"
    manifest.write_text(
        f'state = "{tmp_path}/made"\n[[target]]\nname = "A"\ndirectory = "a"\nrate = "10 MB"\n', encoding="utf-8"
    )
    for path in (place, manifest):
        os.chown(path, STRANGER, STRANGER)
    words = ("probe", place / "data", "--size", "64KiB", "--repeats", "1", "--confirm", "0")
    run([*IOWEIR, *words], env={"XDG_CACHE_HOME": str(tmp_path / "cache")})
    assert not (tmp_path / "made").exists()
