"""Who is said to move the files of a loop: not a file that was moved only to find something out."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest
from ioweir.report import chosen
from ioweir.trace.reader import ChosenFile, Trace

SECOND = 1_000_000_000


def series(*files: tuple[str, str, int]) -> chosen.ChosenSeries:
    """Of a loop's files: writers, step, seconds."""
    said = [
        ChosenFile(0, "/d/ckpt_#.data", f"0123456789abcdef {writers}", step, 4, number, seconds * SECOND, 1000, 0)
        for number, (writers, step, seconds) in enumerate(files)
    ]
    (row,) = chosen.rows(cast("Trace", SimpleNamespace(run={}, chosen_files=said)))
    return row


@pytest.mark.parametrize(
    ("last", "who"),
    [
        (("library", "observed", 6), "everyone"),
        (("aggregators:2", "tried", 3), "everyone"),
        (("aggregators:2", "kept", 1), "aggregators:2"),
        (("aggregators:2", "compared", 1), "aggregators:2"),
        (("library", "ended", 6), "library"),
    ],
)
def test_the_chosen_moves_files_when_nothing_is_tried(last: tuple[str, str, int], who: str) -> None:
    row = series(("library", "compared", 4), ("everyone", "kept", 1), ("everyone", "kept", 1), last)
    assert row.chosen == who
    (line,) = chosen.lines([row])
    assert line.startswith("WRITERS CHOSEN for")
    assert ("the MPI library" if who == "library" else who) in line.partition(": ")[2].partition(". ")[0]


def test_of_trials_alone_it_is_the_last() -> None:
    assert series(("library", "observed", 4), ("everyone", "tried", 1)).chosen == "everyone"


def test_a_time_that_is_not_known_is_no_time() -> None:
    said = [
        ChosenFile(0, "/d/ckpt_#.data", f"0123456789abcdef {writers}", step, 4, number, took * SECOND, moved, 0)
        for number, (writers, step, took, moved) in enumerate(
            [("library", "observed", 4, 1000), ("everyone", "tried", 9, 0), ("aggregators:2", "compared", 3, 1000)]
        )
    ]
    (row,) = chosen.rows(cast("Trace", SimpleNamespace(run={}, chosen_files=said)))
    assert {one.writers: one.file_s for one in row.writers} == {"library": 4, "everyone": 0, "aggregators:2": 0}
    # Of the file that has no bytes to compare, nothing says what the library would have taken.
    assert row.gained_s == 1
    (line,) = chosen.lines([row])
    assert "the MPI library 4.00 s (1 file); everyone not known (1 file); aggregators:2 not known (1 file)" in line
