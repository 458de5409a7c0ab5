"""`ioweir timeline`: figures against ones summed call by call, names of divided files, a real program's subfiles."""

from __future__ import annotations

import json
import os
import random
import shutil
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from forked import completed
from ioweir.base.container_parts import NOTES_OF_CONTAINERS, part_of
from ioweir.base.picture import to_svg
from ioweir.errors import IoweirError
from ioweir.report import timeline, timeline_picture
from traces import Builder, Call

ID = "0123456789abcdef" * 2
IOWEIR = Path(sys.executable).with_name("ioweir")


def figures(builder: Builder, **options: Any) -> timeline.Timeline:
    return timeline.of_trace(builder.trace(), timeline.Options(**options))


def rows_of(result: timeline.Timeline) -> dict[str, dict[str, Any]]:
    return {row.name: vars(row) for row in result.rows}


def test_calls_lie_where_their_time_is() -> None:
    builder = Builder()
    first, second = builder.rank(0, 2), builder.rank(1, 2)
    builder.add(
        Call(first, "pwrite", 10, 12, "/d/a", 100),
        Call(first, "pwrite", 12, 12, "/d/a", 7),  # in no time: all of it in one part
        Call(second, "pwrite", 13, 17, "/d/b", 400),
        Call(second, "fsync", 17, 20, "/d/b"),
        Call(second, "pread", 10, 20, "/d/b", 999),
        Call(first, "pwrite", 18, 20, "/d/a", 50, failed=True),
        Call(first, "MPI_File_write_at", 9, 30, "/d/a", 1000, thread=50),
        Call(first, "pwrite", 11, 19, "/d/c", 5, origin="tracer", thread=51),
    )
    result = figures(builder, bins=5)
    assert (result.begin_s, result.end_s, result.bin_s) == (10, 20, 2)
    rows = rows_of(result)
    assert set(rows) == {"/d/a", "/d/b"}
    assert rows["/d/a"] == {
        "name": "/d/a", "bytes": 107, "calls": 2, "time_s": 2, "first_s": 0, "last_s": 2, "ranks": [0],
        "busy": [1, 0, 0, 0, 0], "moved": [100, 7, 0, 0, 0],
    }  # fmt: skip
    assert rows["/d/b"]["busy"] == [0, 0.5, 1, 1, 1]
    assert rows["/d/b"]["moved"] == [0, 100, 200, 100, 0]
    assert (rows["/d/b"]["calls"], rows["/d/b"]["time_s"], rows["/d/b"]["bytes"]) == (1, 7, 400)
    assert result.mean_time_s == 4.5
    assert result.deviation_s == pytest.approx(3.536, abs=5e-4)
    by_rank = rows_of(figures(builder, bins=5, by="rank"))
    assert {name: row["bytes"] for name, row in by_rank.items()} == {"rank 0": 107, "rank 1": 400}
    assert [name for name in rows_of(figures(builder, op="read"))] == ["/d/b"]  # noqa: C416
    (target,) = figures(builder, by="target").rows
    assert (target.name, target.bytes, target.ranks) == ("/d", 507, [0, 1])


def test_ranks_without_calls_count_in_the_mean() -> None:
    builder = Builder()
    ranks = [builder.rank(rank, 4) for rank in range(4)]
    builder.add(Call(ranks[1], "pwrite", 10, 14, "/d/a", 100), Call(ranks[3], "pwrite", 12, 14, "/d/a", 100))
    result = figures(builder, by="rank", bins=4)
    assert [row.name for row in result.rows] == ["rank 0", "rank 1", "rank 2", "rank 3"]
    assert [(row.first_s, row.last_s, row.calls) for row in result.rows] == [
        (None, None, 0), (0, 4, 1), (None, None, 0), (2, 4, 1),
    ]  # fmt: skip
    assert (result.begin_s, result.end_s) == (10, 14)
    assert result.mean_time_s == 6 / 4
    assert result.deviation_s == pytest.approx(1.915, abs=5e-4)
    assert figures(builder, by="file").mean_time_s == 6
    assert any("mean 1.50 s" in line and "all ranks" in line for line in timeline.to_text(result))
    assert "rank 0" in to_svg(timeline_picture.chart(result))


def test_the_mean_is_of_all_files_not_of_those_shown() -> None:
    builder = Builder()
    rank = builder.rank(0, 1)
    for number in range(timeline.MOST_ROWS + 10):
        time = 2 if number < timeline.MOST_ROWS else 1
        builder.add(Call(rank, "pwrite", number, number + time, f"/d/{number}", 10 * time, thread=100 + number))
    result = figures(builder)
    assert len(result.rows) == timeline.MOST_ROWS
    assert result.mean_time_s == pytest.approx((2 * timeline.MOST_ROWS + 10) / (timeline.MOST_ROWS + 10))


def test_layers_that_were_not_recorded_are_said() -> None:
    builder = Builder()
    builder.add(Call(builder.rank(0, 1), "MPI_File_write_at", 1, 2, "/d/a", 5))
    trace = builder.trace(run={"tracing": {"layers": ["MPI-IO"]}})
    (line,) = timeline.to_text(timeline.of_trace(trace, timeline.Options()))
    assert (
        line == "nothing was written by calls of POSIX or STDIO; calls of POSIX and STDIO were not recorded (--layers)"
    )


def test_any_calls_are_spread_as_one_by_one() -> None:
    dice = random.Random(7)
    builder = Builder()
    ranks = [builder.rank(rank, 3) for rank in range(3)]
    calls: list[Call] = []
    for _ in range(200):
        begin = dice.randrange(0, 1000)
        length = dice.choice((0, 1, 3, dice.randrange(0, 400)))
        calls.append(
            Call(dice.choice(ranks), "pwrite", begin / 8, (begin + length) / 8, f"/d/{dice.randrange(4)}",
                 dice.randrange(1, 5000) if length else 0, thread=100 + len(calls))
        )  # fmt: skip
    builder.add(*calls)
    bins = 64
    result = figures(builder, bins=bins)
    low, high = min(call.start_s for call in calls), max(call.end_s for call in calls)
    width = (high - low) / bins
    assert result.bin_s == pytest.approx(width)
    busy: dict[tuple[str, int], float] = defaultdict(float)
    moved: dict[tuple[str, int], float] = defaultdict(float)
    for call in calls:
        for part in range(bins):
            edges = low + part * width, low + (part + 1) * width
            inside = max(0.0, min(edges[1], call.end_s) - max(edges[0], call.start_s))
            busy[call.path, part] += inside / width
            if call.end_s > call.start_s:
                moved[call.path, part] += call.bytes * inside / (call.end_s - call.start_s)
    rows = rows_of(result)
    assert len(rows) == 4
    for name, row in rows.items():
        assert row["busy"] == pytest.approx([busy[name, part] for part in range(bins)], abs=1e-6)
        assert row["moved"] == pytest.approx([moved[name, part] for part in range(bins)], abs=1e-3)
        assert row["bytes"] == sum(call.bytes for call in calls if call.path == name)


def test_parts_of_divided_files_have_names() -> None:
    other = ID[::-1]
    assert part_of(f"/m/t3/.ioweir-{ID}.subfile.3") == ("/m/t3", ID, "subfile 3")
    assert part_of(f"/d/.ioweir-{ID}/subfile.12") == ("/d", ID, "subfile 12")
    assert part_of(f"/d/.ioweir-{ID}/group.2/data") == ("/d", ID, "group 2")
    assert part_of(f"/d/.ioweir-{ID}/logs.5/data.7.69") == ("/d", ID, "log of rank 69, generation 7")
    assert part_of(f"/d/.ioweir-{ID}/logs.5/index.7.69")[2] == NOTES_OF_CONTAINERS
    assert part_of("/d/plain") == ("/d", "", "/d/plain")
    files = [f"/t{i}/.ioweir-{ID}.subfile.{i}" for i in (10, 2)]
    assert timeline.names_of(files, "file") == ["subfile 10", "subfile 2"]
    assert timeline.names_of([*files, f"/d/.ioweir-{other}/subfile.2"], "file")[1:] == [
        f"{ID[:8]}: subfile 2", f"{other[:8]}: subfile 2",
    ]  # fmt: skip
    builder = Builder()
    rank = builder.rank(0, 1)
    builder.add(*(Call(rank, "pwrite", at, at + 1, file, 1) for at, file in enumerate(files)))
    assert list(rows_of(figures(builder))) == ["subfile 2", "subfile 10"], "as people count"


def test_names_of_any_digits_can_be_sorted() -> None:
    names = ["t10", "t9", "t1\N{SUPERSCRIPT TWO}3", f"t{'7' * 5000}", "\N{SUPERSCRIPT TWO}", "t", ""]
    assert sorted(names, key=timeline.as_people_count)[:5] == ["", "t", "t1\N{SUPERSCRIPT TWO}3", "t9", "t10"]


def test_many_rows_and_none() -> None:
    builder = Builder()
    rank = builder.rank(0, 1)
    builder.add(*(Call(rank, "pwrite", at, at + 1, f"/d/{at}", 100 + at) for at in range(70)))
    result = figures(builder)
    assert len(result.rows) == timeline.MOST_ROWS
    assert result.left_out == timeline.LeftOut(6, sum(range(100, 106)))
    assert "... and 6 more, 615 B" in timeline.to_text(result)
    empty = figures(builder, op="read")
    assert empty.rows == []
    assert timeline.to_text(empty) == ["nothing was read by calls of POSIX or STDIO"]
    ElementTree.fromstring(to_svg(timeline_picture.chart(empty)))


def test_text_and_picture() -> None:
    builder = Builder()
    ranks = [builder.rank(rank, 2) for rank in range(2)]
    builder.add(
        Call(ranks[0], "pwrite", 0, 5, "/d/<a>", 10),
        Call(ranks[1], "pwrite", 4, 10, "/d/<a>", 10),
        Call(ranks[1], "pwrite", 9, 10, "/d/b", 1),
    )
    result = figures(builder, bins=10)
    lines = timeline.to_text(result)
    assert lines[1].startswith("/d/<a> |@@@@@@@@@@|")
    assert "20 B in 2 calls, 11.00 s, ranks 0-1" in lines[1]
    assert lines[2].startswith("/d/b   |         @|")
    assert timeline.shades([0.0] * 59 + [0.001]).endswith(" .")
    picture = ElementTree.fromstring(to_svg(timeline_picture.chart(result)))
    texts = {element.text for element in picture.iter() if element.text}
    assert {"/d/<a>", "time since the first call, s", "file", "calls at a time, mean", "20 B in 11.00 s"} <= texts
    marks = {element.get("aria-label"): element.get("fill") for element in picture.iter() if element.get("aria-label")}
    assert "/d/<a>: rank 0, 1" in marks
    assert {marks["/d/<a>, 0 s to 4.00 s: 8 B"], marks["/d/b, 9.00 s to 10.00 s: 1 B"]} == {"#08306b"}
    assert marks["/d/<a>, 4.00 s to 5.00 s: 4 B"] == "#fb8a6a", "two at a time are red"


@pytest.mark.parametrize("kind", ["openmpi", "mpich"])
def test_a_programs_subfiles(kind: str, tmp_path: Path) -> None:
    if shutil.which(f"mpirun.{kind}") is None:
        pytest.skip(f"mpirun.{kind} is not installed")
    targets = [tmp_path / f"t{i}" for i in range(3)]
    for target in targets:
        target.mkdir()
    names = ", ".join(json.dumps(str(target)) for target in targets)
    (tmp_path / "plan.toml").write_text(
        f'[[file]]\nmatch = "*.data"\nmapping = "subfiles:3"\nwriters = "aggregators:auto"\ndomains = "cyclic"\n'
        f'stripe = {{ size = "16 KiB" }}\ntargets = [{names}]\n',
        encoding="utf-8",
    )

    def ioweir(*words: str | Path, code: int = 0) -> str:
        done = completed(
            [IOWEIR, *words], cwd=tmp_path, timeout=120,
            env={**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"},
        )  # fmt: skip
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    ioweir("run", "-q", "-o", "trace", "--plan", "plan.toml", "--", IOWEIR, "kernel", "ior-strided", "data=64KiB",
           "transfer=64KiB", "piece=4KiB", "--ranks", "3", "--mpi", kind, "--keep")  # fmt: skip
    by_target = {
        row["name"]: row for row in json.loads(ioweir("timeline", "trace", "--by", "target", "--json"))["rows"]
    }
    # A third of the file and a header of 4 KiB.
    assert {name: by_target[str(name)]["bytes"] for name in map(str, targets)} == dict.fromkeys(
        map(str, targets), 65536 + 4096
    )
    by_file = {row["name"]: row for row in json.loads(ioweir("timeline", "trace", "--json"))["rows"]}
    assert [by_file[f"subfile {i}"]["bytes"] for i in range(3)] == [65536 + 4096] * 3
    text = ioweir("timeline", "trace", "--by", "rank", "--picture", "drawn.svg")
    assert "rank 2" in text
    assert "picture: drawn.svg" in text
    ElementTree.parse(tmp_path / "drawn.svg")
    assert "one of file, target, rank" in ioweir("timeline", "trace", "--by", "node", code=2)
    assert "pictures are SVG, or web pages" in ioweir("timeline", "trace", "--picture", "x.png", code=2)


def test_wrong_options_are_refused(tmp_path: Path) -> None:
    for options in (timeline.Options(op="copy"), timeline.Options(bins=0), timeline.Options(bins=20_000)):
        with pytest.raises(IoweirError):
            timeline.timeline(tmp_path, options)
