"""The oracle of killed jobs finds what is wrong: each mistake that it is there for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from oracle import PIECE, PIECES, Notes, content, owners, violations

if TYPE_CHECKING:
    from pathlib import Path

RANKS, STEPS = 3, 4


def notes_of(synced: dict[int, int], closed: set[int] | None = None) -> Notes:
    return Notes(synced=synced, closed=closed or set())


def test_what_was_synced_has_to_be_there() -> None:
    new = content(2, RANKS, STEPS)
    assert violations(new, notes_of({0: 3, 1: 3, 2: 3}), 2, None, RANKS, STEPS) == []
    rank, step = owners(RANKS, STEPS)
    torn = np.where((rank == 1) & (step == 2), 0, new).astype(np.uint8)
    assert violations(torn, notes_of({0: 3, 1: 1, 2: 3}), 2, None, RANKS, STEPS) == []
    (problem,) = violations(torn, notes_of({0: 3, 1: 3, 2: 3}), 2, None, RANKS, STEPS)
    assert problem.startswith(f"{PIECE * PIECES} bytes that were synced are not there")
    assert "of rank 1, step 2" in problem
    (problem,) = violations(torn, notes_of({}, {1}), 2, None, RANKS, STEPS)
    assert "of rank 1, step 2" in problem


def test_what_nobody_wrote_is_not_there() -> None:
    new, old = content(2, RANKS, STEPS), content(1, RANKS, STEPS)
    assert violations(old, notes_of({}), 2, 1, RANKS, STEPS) == []
    strange = old.copy()
    strange[777] = 0
    (problem,) = violations(strange, notes_of({}), 2, 1, RANKS, STEPS)
    assert problem.startswith("1 bytes are what nobody wrote there, first 777")
    assert violations(old, notes_of({}), 2, None, RANKS, STEPS)[0].endswith(f"first 0: {old[0]}")
    assert new[0] != old[0]


def test_a_file_is_not_cut() -> None:
    new = content(2, RANKS, STEPS)
    (problem,) = violations(new[:-1], notes_of({}), 2, 1, RANKS, STEPS)
    assert problem == f"it has {len(new) - 1} bytes, and {len(new)} to {len(new)} are possible"
    assert violations(new[:10], notes_of({}), 2, None, RANKS, STEPS) == []
    assert violations(new[:-1], notes_of({2: 3}), 2, None, RANKS, STEPS)[0].startswith("it has")


def test_notes_that_the_kill_has_cut_say_nothing(tmp_path: Path) -> None:
    (tmp_path / "notes.0").write_text("pid 7\nopen\nstep 0\nstep 1\nsync 1\nsync")
    (tmp_path / "notes.1").write_text("pid 8\nopen\nclosed\n")
    (tmp_path / "notes.2").write_text("pid 9\nclosed 0\nclosed 1\n")
    notes = Notes.read(tmp_path / "notes", 4)
    assert notes.synced == {0: 1}
    assert notes.closed == {1}
    assert notes.opened == {0, 1}
    assert notes.closed_steps == {2: {0, 1}}
    assert notes.lines == 11
