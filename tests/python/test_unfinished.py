"""Which hidden names are of unfinished sets, and which may go: whole sets and what a job may be writing stay."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Final

import pytest
import tracing
from ioweir.containers import unfinished

ID: Final = "0123456789abcdef"
LATER: Final = unfinished.QUIET_S + 100
MANIFEST: Final = "ioweir set 1\nstate {}\nstep 10\n"


def make(path: Path, text: str = "data") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def rows(directory: Path, after: float = LATER) -> dict[str, str]:
    """Of what is found: its name and why it stays."""
    found = unfinished.unfinished(directory, time.time() + after)
    return {str(Path(row["directory"]).relative_to(directory)): row["problem"] for row in found}


def test_names_of_unfinished_sets_are_found_anywhere_below(tmp_path: Path) -> None:
    make(tmp_path / f"run/.restart-dat.10.new-{ID}/1/restart-dat.10.1")
    make(tmp_path / f"deep/er/.a-dat.b-dat.7.3.new-{ID}")
    others = [
        "run/restart-dat.9.d/1/restart-dat.9.1", "run/restart-dat.8.1", f"run/restart-dat.10.new-{ID}",
        f"run/.restart-dat.10.new-{ID}x", f"run/.restart-dat.new-{ID}", ".restart-dat.10.new-ABCDEF",
    ]  # fmt: skip
    for name in others:
        make(tmp_path / name)
    (tmp_path / "link").symlink_to(tmp_path / "run")
    assert rows(tmp_path) == {f"run/.restart-dat.10.new-{ID}": "", f"deep/er/.a-dat.b-dat.7.3.new-{ID}": ""}
    row = unfinished.unfinished(tmp_path / "run", time.time() + LATER)[0]
    assert (row["bytes"], row["file"]) == (4, str(tmp_path / "run/restart-dat.10.d"))


def test_what_has_just_changed_stays(tmp_path: Path) -> None:
    """By the youngest file, however old the directory is."""
    inside = make(tmp_path / f".restart-dat.10.new-{ID}/1/restart-dat.10.1")
    then = time.time() - LATER
    for path in (inside.parent.parent, inside.parent):
        os.utime(path, (then, then))
    assert "is a job writing it?" in rows(tmp_path, 0)[f".restart-dat.10.new-{ID}"]
    os.utime(inside, (then, then))
    assert rows(tmp_path, 0) == {f".restart-dat.10.new-{ID}": ""}


@pytest.mark.parametrize(
    ("manifest", "named", "stays"),
    [("complete", False, True), ("complete", True, False), ("", False, False), ("renaming", False, False)],
)
def test_a_whole_set_stays_unless_another_has_its_name(tmp_path: Path, manifest: str, named: bool, stays: bool) -> None:
    make(tmp_path / f".restart-dat.10.new-{ID}/manifest", MANIFEST.format(manifest) if manifest else "iow")
    if named:
        make(tmp_path / "restart-dat.10.d/manifest", MANIFEST.format("complete"))
    problem = rows(tmp_path)[f".restart-dat.10.new-{ID}"]
    assert ("rename it to restart-dat.10.d" in problem) == stays
    assert bool(problem) == stays


@pytest.mark.parametrize(("state", "stays"), [("renaming", True), ("complete", False), ("", False)])
def test_files_of_a_set_that_was_being_renamed_stay(tmp_path: Path, state: str, stays: bool) -> None:
    make(tmp_path / f".restart-dat.10.2.new-{ID}")
    if state:
        make(tmp_path / "restart-dat.10.set", MANIFEST.format(state))
    assert bool(rows(tmp_path)[f".restart-dat.10.2.new-{ID}"]) == stays


def test_gc_lists_and_removes_them(tmp_path: Path) -> None:
    old = [
        make(tmp_path / f".restart-dat.10.new-{ID}/1/restart-dat.10.1", "x" * 1000),
        make(tmp_path / f".restart-dat.11.1.new-{ID}"),
    ]
    then = time.time() - LATER
    for path in (*old, old[0].parent, old[0].parent.parent):
        os.utime(path, (then, then))
    new = make(tmp_path / f".restart-dat.12.new-{ID}/1/restart-dat.12.1")
    whole = make(tmp_path / "restart-dat.9.d/manifest", MANIFEST.format("complete"))
    gc = [sys.executable, "-m", "ioweir", "gc", str(tmp_path)]
    out = tracing.run(gc).expect().out
    assert "2 orphans, 1004 B; nothing was removed, --yes removes them" in out, out
    assert "is a job writing it?" in out
    listed = json.loads(tracing.run([*gc, "--json"]).expect().out)
    assert [(row["set"], row["in_use"], bool(row["problem"])) for row in listed] == [
        (True, False, False), (True, False, False), (True, True, True),
    ]  # fmt: skip
    assert all(path.exists() for path in old)
    tracing.run([*gc, "--yes"]).expect()
    assert not any(path.exists() for path in old)
    assert new.exists()
    assert whole.exists()
    assert "no orphans" not in tracing.run(gc).expect().out
