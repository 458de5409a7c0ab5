"""io_uring entered by a program's own system calls: what was handed over, and when it ended or by when."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest
from tracing import IOWEIR, build, preloaded, run, totals

if TYPE_CHECKING:
    from pathlib import Path

    from tracing import Traced

NOT_ALLOWED: Final = 77


@pytest.fixture(params=["one-mapping", "two-mappings"])
def traced(request: pytest.FixtureRequest, tmp_path: Path) -> Traced:
    for name in ("plain", "data", "trace"):
        (tmp_path / name).mkdir()
    program = build("raw_ring.c", "gcc", "-O1", "-std=gnu11")
    plain = run([program, tmp_path / "plain", request.param])
    if plain.code == NOT_ALLOWED:
        pytest.skip("io_uring is not allowed on this system")
    assert plain.expect().out.split() == ["400", "101", "14", "7", "9"]
    traced = preloaded(tmp_path / "trace", [program, tmp_path / "data", request.param])
    assert traced.expect().out == plain.out
    assert traced.err == ""
    assert traced.trace.is_whole()
    return traced


def test_every_request_is_an_event_and_its_end_another(traced: Traced) -> None:
    events = [event for event in traced.trace.events if event.name.startswith("io_uring")]
    seen = {(path.rsplit("/", 1)[1], name): sums for (path, name), sums in totals(events, "path", "name").items()}
    assert seen == {
        ("waited", "io_uring (write)"): (4, 400),
        ("waited", "io_uring_done (write)"): (4, 0),
        ("late", "io_uring (write)"): (1, 50),
        ("late", "io_uring (read)"): (1, 50),
        ("late", "io_uring_reaped (write)"): (1, 0),
        ("late", "io_uring_reaped (read)"): (1, 0),
        ("partly", "io_uring (write)"): (3, 21),
        ("partly", "io_uring_done (write)"): (3, 0),
        ("fixed", "io_uring (write)"): (1, 9),
        ("fixed", "io_uring_done (write)"): (1, 0),
    }
    offsets = {name: [e.offset for e in events if e.path.endswith(name) and e.name == "io_uring (write)"]
               for name in ("waited", "late", "partly", "fixed")}  # fmt: skip
    assert offsets == {"waited": [0, 100, 200, 300], "late": [500], "partly": [0, 7, 14], "fixed": [90]}


def test_an_end_names_its_request(traced: Traced) -> None:
    by_number = traced.trace.by_sequence
    ends = [e for e in traced.trace.events if e.name.startswith(("io_uring_done", "io_uring_reaped"))]
    begun = [by_number[end.thread, end.offset] for end in ends]
    assert len({event.seq for event in begun}) == len(ends) == 10
    assert all(event.path == end.path and event.op == end.op for event, end in zip(begun, ends, strict=True))
    assert all(end.start_ns >= event.start_ns for event, end in zip(begun, ends, strict=True))


def test_the_report_says_which_times_are_upper_bounds(traced: Traced) -> None:
    late = traced.report["late_ends"]
    assert late["calls"] == 2
    assert [path.rsplit("/", 1)[1] for path in late["files"]] == ["late"]
    text = " ".join(run([*IOWEIR, "report", traced.directory]).expect().out.split())
    assert "Upper bounds: of 2 io_uring requests" in text
    assert "late (2)" in text
