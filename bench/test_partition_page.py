"""The page of `make bench-partition`: bars are judged by what was measured, and pictures show every point."""

from __future__ import annotations

from pathlib import Path

import partition_page
import pytest
from partition_runs import HAND, OWN, Handed, Results, Storage, Way
from picture_marks import said


def results(perceived: float, slowdown: float, sync: float, lost: int = 0) -> Results:
    """Three rounds of everything; `sync`: over a file per process."""
    storage = Storage("a slow device", Path("nowhere"), throttled=True)
    for way, speed in (
        (Way(OWN, 8), 10.0),
        (Way("syncIO", 8, 1), 10 * sync),
        (Way("syncIO", 8, 2), 9.0),
        (Way("syncIO", 8, 1, calls="collective"), 5.0),
    ):
        storage.speeds[way] = [speed, speed + 1, speed - 1]
        storage.padded[way] = 0.5
    # Within each round the ratio is `sync`.
    storage.speeds[Way("syncIO", 8, 1)] = [sync * speed for speed in storage.speeds[Way(OWN, 8)]]
    three = [slowdown] * 3
    handed = Handed("a rank given up", 2, 1, 100, [perceived] * 3, [1.0] * 3, three, [perceived] * 3, three)
    return Results("openmpi", 2, [storage], [handed], lost=lost)


@pytest.mark.parametrize(
    ("found", "missed"),
    [
        (results(0.8, 1.02, 0.95), []),
        (results(0.79, 1.02, 0.95), ["perceived over memcpy >=", "perceived over memcpy, processor time"]),
        (results(0.8, 1.03, 0.95), ["the loop with checkpoints <=", "the loop with checkpoints, processor time"]),
        (results(0.8, 1.02, 0.94), ["8 ranks, 1 files"]),
        (results(0.8, 1.02, 0.95, lost=1), ["every set that was written is whole"]),
    ],
)
def test_bars_are_judged_by_what_was_measured(found: Results, missed: list[str]) -> None:
    bars = partition_page.bars(found)
    assert len(bars) == 6, "collective calls and other numbers of files have none"
    failed = [bar for bar, _, met in bars if not met]
    assert len(failed) == len(missed)
    assert all(part in bar for part, bar in zip(missed, failed, strict=True))


def test_the_page_shows_every_way_and_every_point() -> None:
    lines, pictures = partition_page.lines_of(results(0.9, 1.0, 1.0), "partition")
    text = "\n".join(lines)
    assert "| 8 | syncIO | 2 | 9.0 | 13.5 | 0.90 [0.89, 0.91] |" in text
    assert "| 8 | syncIO, auto, write_at_all | 1 | 5.0 |" in text
    assert "**missed**" not in text
    assert list(pictures) == ["-files0"]
    assert len(said(pictures["-files0"])) == 3, "two numbers of files, and a file per process"


@pytest.mark.parametrize(("ranks", "speed", "met"), [(2, 9.0, [True]), (2, 8.9, [False]), (4, 1.0, [])])
def test_in_memory_a_set_is_held_against_the_same_by_hand(ranks: int, speed: float, met: list[bool]) -> None:
    """Where each rank has a processor."""
    storage = Storage("in memory", Path("nowhere"), throttled=False)
    for way, found in ((Way(OWN, ranks), 20.0), (Way(HAND, ranks, 1), 10.0), (Way("syncIO", ranks, 1), speed)):
        storage.speeds[way] = [found] * 3
        storage.padded[way] = 0.0
    bars = partition_page.bars(Results("openmpi", 2, [storage]))[:-1]
    assert [(value, is_met) for _, value, is_met in bars] == [(f"{speed / 10:.2f}", one) for one in met]
