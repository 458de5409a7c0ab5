"""Ids of events are in traces, so that they never change: what is new is numbered behind what is there."""

import hashlib
from pathlib import Path
from typing import Final

from generator.spec import load

ROOT = Path(__file__).resolve().parents[2]
FIRST: Final = 406
NAMES_OF_THE_FIRST: Final = "4b42035f5fb8a036"
"""SHA-256 of the names of the first events, one a line, as they were when traces began to be kept."""


def test_ids_of_old_events_stay() -> None:
    events = load(ROOT / "spec").events
    assert [event.id for event in events] == list(range(1, len(events) + 1))
    names = "\n".join(event.name for event in events[:FIRST])
    assert hashlib.sha256(names.encode()).hexdigest().startswith(NAMES_OF_THE_FIRST)


def test_what_was_added_comes_last() -> None:
    added = [event.name for event in load(ROOT / "spec").events[FIRST:]]
    assert added[:1] == ["mkstemp"]
