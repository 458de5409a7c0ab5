"""What the page's plots are drawn from, against sums made call by call with nothing but Python's arithmetic."""

from __future__ import annotations

import base64
import json
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from ioweir.html import bins, model, packing
from ioweir.html.calls import CATEGORIES
from ioweir.html.pictures import offsets
from ioweir.report import build
from traces import NS, Builder, Call

if TYPE_CHECKING:
    from ioweir.trace import Trace

SPAN_S = 100.0
FILES = ("/data/a/one", "/data/b/two", "/data/b/three")
OPENING = "opening, closing, metadata"
OUTER = {
    "write": "writing", "read": "reading", "pwrite": "writing", "pread": "reading", "open": OPENING,
    "fsync": "locks and syncs", "MPI_File_write_at_all": "writing", "MPI_File_read_at": "reading",
}  # fmt: skip


def made(trace: Trace) -> dict[str, Any]:
    """The model, through JSON as the page gets it."""
    text = packing.script_json(model.picture_model(trace, build(trace)))
    assert "<" not in text
    found: dict[str, Any] = json.loads(text)
    return found


def unpacked(text: str, kind: str, rows: int) -> np.ndarray[Any, Any]:
    """An array of the model, as the page unpacks it."""
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype=kind).reshape(rows, -1)


def grid_of(picture: dict[str, Any], level: int = 0) -> np.ndarray[Any, Any]:
    """The values of a heat map's level."""
    steps = unpacked(picture["levels"][level]["data"], "u1", picture["rows"])
    assert steps.shape[1] == picture["levels"][level]["bins"]
    return np.asarray(picture["most"] * (steps / 255) ** picture["power"])


def overlap(call: Call, begin: float, end: float) -> float:
    """Seconds of a call between two times."""
    return max(0.0, min(call.end_s, end) - max(call.start_s, begin))


def random_run(seed: int, ranks: int = 3) -> Builder:
    """Calls of a few kinds one after another in each rank, some with others inside of them."""
    chance = np.random.default_rng(seed)
    builder = Builder()
    for rank in [builder.rank(number, ranks) for number in range(ranks)]:
        now = 0.0
        while now < 90:
            now += float(chance.exponential(2))
            length = float(chance.choice([0.001, 0.1, 1.0, 7.0]))
            name = str(chance.choice(list(OUTER)))
            path = str(chance.choice(FILES))
            size = int(chance.integers(1, 5000)) if name not in ("open", "fsync") else 0
            at = int(chance.integers(0, 100_000)) if name.startswith(("p", "MPI")) else -1
            call = Call(rank, name, now, min(now + length, 99.0), path, size, offset=at)
            builder.add(call)
            if name.startswith("MPI"):
                middle = (call.start_s + call.end_s) / 2
                inner = "pwrite" if "write" in name else "pread"
                builder.add(call.inside(inner, call.start_s, middle, size, offset=at))
            now = call.end_s
            if now >= 98:
                break
    return builder


@pytest.mark.parametrize("seed", range(4))
def test_a_grid_holds_each_calls_part_of_each_bin(seed: int) -> None:
    chance = np.random.default_rng(seed)
    count, rows, width, span = 200, 3, 17, 1000
    row = chance.integers(0, rows, count)
    start = chance.integers(0, span, count)
    end = np.minimum(start + chance.choice([0, 1, 30, 400, 2000], count), span + 50)
    amount = chance.integers(0, 100, count)
    grid = bins.TimeGrid(rows, width, span, amounts=True)
    for part in (slice(0, 5), slice(5, None)):  # in two parts as in one, few calls as many
        grid.add(row[part], start[part], end[part], amount[part])
    wide = span / width
    expected_time, expected_moved = np.zeros((rows, width)), np.zeros((rows, width))
    for r, a, b, m in zip(row.tolist(), start.tolist(), end.tolist(), amount.tolist(), strict=True):
        stop = min(b, span)
        for at in range(width):
            part_ns = max(0.0, min(stop, (at + 1) * wide) - max(a, at * wide))
            expected_time[r, at] += part_ns
            if stop > a:
                expected_moved[r, at] += m * part_ns / (stop - a)
            elif at == min(int(a / wide), width - 1):
                expected_moved[r, at] += m
    np.testing.assert_allclose(grid.sums(), expected_time, atol=1e-6)
    np.testing.assert_allclose(grid.amounts(), expected_moved, atol=1e-6)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("in_memory", [True, False])
def test_ranks_by_time_are_the_calls(seed: int, in_memory: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    builder = random_run(seed)
    if not in_memory:
        monkeypatch.setattr(model, "MOST_IN_MEMORY", 0)
    found = made(builder.trace(shuffle=seed))
    assert found["whole"] is in_memory
    assert found["span_s"] == pytest.approx(SPAN_S)
    assert found["timelines"]["rows"] == ["0", "1", "2"]
    wide = SPAN_S / bins.FIRST_BINS
    for kind in found["timelines"]["kinds"]:
        grid = grid_of(kind)
        for rank in range(3):
            calls = [call for call in builder.calls if call.process == rank and wanted(call, kind["name"])]
            for at in range(bins.FIRST_BINS):
                share = sum(overlap(call, at * wide, (at + 1) * wide) for call in calls) / wide
                assert grid[rank, at] == pytest.approx(share, abs=1 / 255)
                assert (grid[rank, at] > 0) == (share > 1e-9)
    named = {kind["name"] for kind in found["timelines"]["kinds"]}
    assert named == {"all I/O", *CATEGORIES[:4], "POSIX writes", "POSIX reads"}


def wanted(call: Call, kind: str) -> bool:
    """Whether a call is in a timeline of that name."""
    if kind.startswith("POSIX"):
        return call.name in (("write", "pwrite") if kind == "POSIX writes" else ("read", "pread"))
    return call.parent is None and kind in ("all I/O", OUTER[call.name])


def test_finer_levels_are_means_of_finer_bins() -> None:
    found = made(random_run(1).trace())
    picture = found["timelines"]["kinds"][0]
    assert [level["bins"] for level in picture["levels"]] == [512, 4096, 32768]
    for level in (1, 2):
        mean = grid_of(picture, level).reshape(3, 512, -1).mean(axis=2)
        # Small values are rounded up to what can be seen.
        np.testing.assert_allclose(mean, grid_of(picture, 0), atol=1.5 / 255)


def test_shares_and_seconds_of_ranks() -> None:
    builder = random_run(2)
    shares = made(builder.trace())["shares"]
    wide = SPAN_S / bins.FIRST_BINS
    for number, category in enumerate(CATEGORIES[:4]):
        calls = [call for call in builder.calls if call.parent is None and OUTER[call.name] == category]
        for rank in range(3):
            total = sum(call.end_s - call.start_s for call in calls if call.process == rank)
            assert shares["by_row"][rank][number] == pytest.approx(total, abs=1e-6)
        for at in range(0, bins.FIRST_BINS, 7):
            share = sum(overlap(call, at * wide, (at + 1) * wide) for call in calls) / wide / 3
            assert shares["over_time"][number][at] == pytest.approx(share, abs=1e-4)
    assert shares["alive"] == pytest.approx([100.0] * 3)
    assert not shares["waiting_recorded"]


def test_calls_at_once_and_bandwidth() -> None:
    builder = random_run(3)
    found = made(builder.trace())["concurrency"]
    wide = SPAN_S / 1024
    names = {"POSIX writes": ("write", "pwrite"), "POSIX reads": ("read", "pread"),
             "MPI-IO writes": ("MPI_File_write_at_all",), "MPI-IO reads": ("MPI_File_read_at",)}  # fmt: skip
    assert {line["name"] for line in found["lines"]} == set(names)
    for line in found["lines"]:
        calls = [call for call in builder.calls if call.name in names[line["name"]]]
        expected = [sum(overlap(call, at * wide, (at + 1) * wide) for call in calls) / wide for at in range(1024)]
        assert line["values"] == pytest.approx(expected, abs=1e-3)
    for line in found["rates"]:
        calls = [
            call
            for call in builder.calls
            if call.name in names["POSIX writes" if line["name"] == "written" else "POSIX reads"]
        ]
        assert sum(line["values"]) * wide == pytest.approx(sum(call.bytes for call in calls), rel=0.01)


def test_targets_and_files_by_time() -> None:
    builder = random_run(4)
    places = {one["by"]: one for one in made(builder.trace())["places"]}
    assert places["target"]["rows"] == ["/data/a", "/data/b"]
    assert places["file"]["rows"] == sorted(FILES)
    wide = SPAN_S / 512
    for place in places.values():
        at_once, rates = (grid_of(kind) for kind in place["kinds"])
        for row, name in enumerate(place["rows"]):
            data = [call for call in builder.calls if call.name in ("write", "read", "pwrite", "pread", "fsync")]
            calls = [call for call in data if call.path.startswith(name)]
            count, spent, moved = place["sums"][row]
            assert count == len(calls)
            assert spent == pytest.approx(sum(call.end_s - call.start_s for call in calls), abs=1e-5)
            assert moved == sum(call.bytes for call in calls)
            for at in range(0, 512, 5):
                expected = sum(overlap(call, at * wide, (at + 1) * wide) for call in calls) / wide
                assert at_once[row, at] == pytest.approx(expected, abs=0.02)
            assert rates[row].sum() * wide == pytest.approx(moved, rel=0.05)


def test_of_many_files_those_with_most_bytes_have_rows() -> None:
    builder = Builder()
    rank = builder.rank(0, 1)
    for number in range(100):
        builder.add(Call(rank, "pwrite", number * 0.5, number * 0.5 + 0.1, f"/d/{number:03}", number + 1, offset=0))
    files = next(one for one in made(builder.trace())["places"] if one["by"] == "file")
    assert files["rows"] == [f"/d/{number:03}" for number in range(52, 100)]
    assert (files["left_out"], files["left_out_bytes"]) == (52, sum(range(1, 53)))


def test_offsets_show_who_touched_what_when() -> None:
    builder = Builder()
    ranks = [builder.rank(number, 2) for number in range(2)]
    mib = 1 << 20
    builder.add(
        Call(ranks[0], "pwrite", 10, 20, "/f", 2 * mib, offset=0),
        Call(ranks[1], "pwrite", 20, 30, "/f", mib, offset=3 * mib),
        Call(ranks[1], "pwrite", 50, 60, "/f", 4 * mib, offset=0),
        Call(ranks[0], "pread", 70, 80, "/f", mib, offset=mib),
    )
    written, read = made(builder.trace())["offsets"]
    assert (written["op"], read["op"], written["calls"], read["calls"]) == ("written", "read", 3, 1)
    assert (written["begin_s"], written["span_s"]) == (10, 50)
    step = written["step_bytes"]
    assert step * offsets.OFFSETS >= written["reach_bytes"] == 4 * mib
    cells = unpacked(written["data"], "<u2", offsets.OFFSETS)
    for row in range(offsets.OFFSETS):
        for at in range(offsets.TIMES):
            time = 10 + (at + 0.5) * 50 / offsets.TIMES
            place = row * step
            owner = 0
            if 10 <= time < 20 and place < 2 * mib:
                owner = 1
            if 20 <= time < 30 and 3 * mib <= place < 4 * mib:
                owner = 2
            if 50 <= time < 60 and place < 4 * mib:
                owner = 2
            edge = min(abs(time - t) for t in (10, 20, 30, 50, 60)) < 0.11
            assert edge or cells[row, at] == owner, (row, at)


def test_positions_of_calls_without_an_offset_are_followed() -> None:
    builder = Builder()
    rank = builder.rank(0, 1)
    builder.add(Call(rank, "open", 1, 2, "/f"))
    builder.add(*(Call(rank, "write", 10 + at, 11 + at, "/f", 1000) for at in range(10)))
    (picture,) = made(builder.trace())["offsets"]
    assert (picture["calls"], picture["unknown"], picture["reach_bytes"]) == (10, 0, 10_000)


def test_who_came_last_is_waited_for() -> None:
    builder = Builder()
    ranks = [builder.rank(number, 3) for number in range(3)]
    for rank, start in zip(ranks, (1.0, 2.0, 5.0), strict=True):
        builder.add(Call(rank, "MPI_File_write_at_all", start, 7, "/f", 10))
    for rank, start in zip(ranks, (21.0, 20.0, 20.5), strict=True):
        builder.add(Call(rank, "MPI_File_write_at_all", start, 23, "/f", 10))
    waits = made(builder.trace())["waits"]
    assert waits["rows"] == ["0", "1", "2"]
    assert waits["matrix"] == [[0, 0, 4], [1, 0, 3], [0.5, 0, 0]]
    assert waits["total"] == pytest.approx(8.5)
    assert waits["causes"] == [[2, 7.0, 0.5], [0, 1.5, 4.0]]


def test_a_lock_is_waited_for_by_who_gave_it_up() -> None:
    builder = Builder()
    ranks = [builder.rank(number, 2) for number in range(2)]
    builder.add(
        Call(ranks[0], "fcntl_lock", 1, 1.000001, "/f", 100), Call(ranks[0], "fcntl_unlock", 5, 5.1, "/f", 100),
        Call(ranks[1], "fcntl_lock", 2, 5.05, "/f", 100), Call(ranks[1], "fcntl_unlock", 6, 6.1, "/f", 100),
    )  # fmt: skip
    found = made(builder.trace())
    assert found["lock_waits"]["matrix"] == [[0, 0], [pytest.approx(3.05), 0]]
    (row,) = found["locks"]["rows"]
    assert row[0] == "/f"
    assert row[3] == 2


def test_one_call_is_made_of_its_posix_calls() -> None:
    builder = Builder()
    ranks = [builder.rank(number, 2) for number in range(2)]
    for rank in ranks:
        short = Call(rank, "MPI_File_write_at_all", 10, 11, "/f", 100)
        long = Call(rank, "MPI_File_write_at_all", 20 + rank, 30, "/f", 4096)
        builder.add(short, short.inside("pwrite", 10.1, 10.2, 100, offset=0))
        builder.add(
            long, long.inside("fcntl_lock", 22, 23), long.inside("pread", 23, 24, 512, offset=0),
            long.inside("pwrite", 24, 26, 4096, offset=0), long.inside("fcntl_unlock", 26, 26.5),
        )  # fmt: skip
    (picture,) = made(builder.trace())["compositions"]
    assert picture["function"] == "MPI_File_write_at_all"
    assert (picture["start_s"], picture["seconds"], picture["of_ranks"]) == (20, 10, 2)
    first, second = picture["ranks"]
    assert (first["rank"], first["begin"], first["seconds"]) == (0, 0, 10)
    assert (second["rank"], second["begin"], second["seconds"]) == (1, 1, 9)
    assert first["by_kind"] == pytest.approx([2, 1, 1, 0.5, 0])
    assert first["calls_by_kind"] == [1, 1, 1, 1, 0]
    assert first["bytes_by_kind"][:2] == [4096, 512]
    assert first["outside"] == pytest.approx(5.5)
    assert [part[0] for part in first["parts"]] == [2, 1, 0, 3]
    assert first["parts"][2][1:] == [pytest.approx(4), pytest.approx(2), 4096, 0]


def test_ranks_that_do_not_wait_for_each_other_are_shown_together() -> None:
    builder = Builder()
    ranks = [builder.rank(number, 3) for number in range(3)]
    for number, rank in enumerate(ranks):
        for start in (10 + 3 * number, 40 + 3 * number):  # one after another: data moves before the last rank comes
            call = Call(rank, "MPI_File_write_at_all", start, start + 3, "/f", 100)
            builder.add(call, call.inside("pwrite", start, start + (1.0 if start < 40 else 2.0), 100, offset=0))
        alone = Call(rank, "MPI_File_read_at", 70 + number, 72.5 + number, "/f", 10)
        builder.add(alone, alone.inside("pread", 70.2 + number, 70.3 + number + 0.1 * (number == 0), 10, offset=0))
    together, alone_then = made(builder.trace())["compositions"]
    assert [(one["rank"], one["begin"]) for one in together["ranks"]] == [(0, 0), (1, 3), (2, 6)]
    assert together["start_s"] == 40
    assert [(one["rank"], one["begin"]) for one in alone_then["ranks"]] == [(0, 0), (1, 1), (2, 2)]


def test_many_ranks_share_rows() -> None:
    builder = Builder()
    for number in range(300):
        rank = builder.rank(number, 300)
        if number < 3:
            builder.add(Call(rank, "pwrite", 0, 100, "/f", 10, offset=0))
    found = made(builder.trace())
    rows = found["timelines"]["rows"]
    assert (len(rows), rows[0], rows[-1]) == (100, "0-2", "297-299")
    grid = grid_of(found["timelines"]["kinds"][0])
    assert (grid[0] == 1).all()
    assert (grid[1:] == 0).all()
    assert len(found["waits"]["rows"]) <= 48


@pytest.mark.parametrize("ranks", [0, 1])
def test_a_run_without_calls_has_a_model(ranks: int) -> None:
    builder = Builder()
    if ranks:
        builder.rank(0, 1)
    else:
        builder.process()
    found = made(builder.trace())
    assert found["offsets"] == []
    assert found["concurrency"]["lines"] == []
    assert found["waits"]["total"] == 0


def test_noise_stays_within_the_budget() -> None:
    budget = packing.Budget(60_000)
    noise = np.random.default_rng(0).random((32, 32768))
    picture = bins.levels_of(noise, budget)
    assert [level["bins"] for level in picture["levels"]] == [512]
    assert budget.refused == 1
    assert sum(len(level["data"]) for level in picture["levels"]) <= 60_000


@pytest.mark.parametrize(
    "text", ["</script><script>alert(1)</script>", "<!--", "]]>", "&lt;", "\u2028\u2029", "\x00\x1b[2J", "a\ud800b"]
)
def test_no_text_ends_the_element_that_holds_it(text: str) -> None:
    packed = packing.script_json({"name": text, text: [text]})
    assert not set("<>&\u2028\u2029\x1b\x00") & set(packed)
    assert packed.isascii()
    kept = json.loads(packed)["name"]
    if "\x1b" not in text and "\ud800" not in text and "\u2028" not in text:
        assert kept == text


def test_killed_ranks_end_with_the_run() -> None:
    builder = Builder()
    rank = builder.rank(0, 1, finalized=False, end_s=None)
    builder.add(Call(rank, "pwrite", 10, 20, "/f", 10, offset=0))
    found = made(builder.trace())
    assert found["span_s"] == pytest.approx(100)
    assert found["shares"]["alive"] == pytest.approx([100])
    assert round(found["span_s"] * NS) == 100 * NS
