"""What a replay makes beforehand: files that a program found, under the names that they had then, as far as read."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from ioweir.base.guarded_files import Folder
from ioweir.errors import IoweirError
from ioweir.replay import from_trace, inputs, order, write
from ioweir.replay.model import Op, RankCalls, Recorded
from traces import Builder, Call

A, B = "/data/run/a.chk", "/data/run/b.chk"


def recorded(*calls: tuple[str, str, int, int], rank_1: tuple[tuple[str, str, int, int], ...] = ()) -> Recorded:
    """Calls (name, path, offset, bytes), a second each; those of rank 1 follow."""
    made = Builder()
    ranks = [made.rank(rank, 2) for rank in range(2)]
    every = [(ranks[0], one) for one in calls] + [(ranks[1], one) for one in rank_1]
    for at, (rank, (name, path, offset, moved)) in enumerate(every):
        made.add(Call(rank, name, at, at + 0.5, path, moved, offset=offset))
    return from_trace.of_trace(made.trace(), 2, "a trace")


def names_of(found: Recorded) -> dict[str, int]:
    return {found.paths[file]: size for file, size in found.inputs.items()}


def ops(found: Recorded, name: str) -> list[Op]:
    return [op for op in found.ranks[0].ops if op.name == name]


def test_a_lock_file_that_comes_and_goes_is_made_each_time() -> None:
    """It is opened to be made, and nothing is written. Opened to be read, it was not there the second time."""
    once = (("open", A, -1, 0), ("close", A, -1, 0), ("unlink", A, -1, 0))
    found = recorded(*once, *once, *once)
    flags = [op.arguments[2] for op in ops(found, "open")]
    assert [bool(flag & os.O_CREAT) for flag in flags] == [False, True, True]
    assert names_of(found) == {A: 0}
    assert not found.left_out


def test_a_stream_that_only_makes_its_file_makes_it_anew() -> None:
    once = (("fopen", A, -1, 0), ("fclose", A, -1, 0), ("remove", A, -1, 0))
    found = recorded(*once, *once)
    assert [op.arguments[2] for op in ops(found, "fopen")] == [0, 4]  # r, w+


def test_what_is_written_through_a_descriptor_of_a_removed_file_makes_no_file() -> None:
    """As temporary files are used: removed while they are open."""
    once = (("open", A, -1, 0), ("unlink", A, -1, 0), ("pwrite", A, 0, 100), ("pread", A, 0, 100), ("close", A, -1, 0))
    found = recorded(*once, ("open", A, -1, 0), ("close", A, -1, 0))
    first, second = (op.arguments[2] for op in ops(found, "open"))
    assert first & os.O_CREAT
    assert second & os.O_CREAT
    assert names_of(found) == {}


def test_checkpoints_that_are_moved_aside_are_found_under_their_first_name() -> None:
    """The older one was made empty under its first name, and full under the second, which it then took."""
    found = recorded(
        ("rename", A, -1, 0), ("rename (to)", B, -1, 0),
        ("open", B, -1, 0), ("pread", B, 0, 5000), ("close", B, -1, 0),
    )  # fmt: skip
    assert names_of(found) == {A: 5000}


def test_what_is_made_and_moved_is_no_input() -> None:
    found = recorded(
        ("creat", A, -1, 0), ("pwrite", A, 0, 100), ("close", A, -1, 0),
        ("rename", A, -1, 0), ("rename (to)", B, -1, 0),
        ("open", B, -1, 0), ("pread", B, 0, 100), ("close", B, -1, 0),
    )  # fmt: skip
    assert names_of(found) == {}


def test_a_file_that_is_cut_off_by_its_name_was_there() -> None:
    assert names_of(recorded(("truncate", A, 0, 0))) == {A: 0}


def test_calls_on_what_no_replayed_call_has_made_again_are_left_out_and_counted() -> None:
    """A folder is made anew by mkdir, which is not replayed; a child of the program may have made a file."""
    move = (("rename", "/data/run/new", -1, 0), ("rename (to)", "/data/run/old", -1, 0))
    found = recorded(*move, *move, ("stat", "/data/run/new", -1, 0))
    assert [op.name for op in found.ranks[0].ops] == ["rename"]
    gone = "of a file that is gone by the calls that are replayed"
    assert dict(found.left_out) == {f"rename {gone}": 1, f"stat {gone}": 1}


def test_of_a_large_file_only_what_is_read_is_written(tmp_path: Path) -> None:
    """A byte far out had been a file of a TiB, or the words that so much was read."""
    far = 1 << 40
    found = recorded(
        ("open", A, -1, 0),
        ("pread", A, 0, 4096),
        ("pread", A, far, 10),
        ("pread", A, far + 10, 90),
        ("close", A, -1, 0),
    )
    assert names_of(found) == {A: far + 100}
    assert list(found.found_parts.values()) == [[(0, 4096), (far, far + 100)]]
    assert found.found_bytes() == 4196
    with Folder.open(tmp_path) as folder:
        try:
            assert write.make_files(found, folder, 1) == 4196
        except OSError as error:
            if error.errno != errno.EFBIG:
                raise
            pytest.skip("no files of a TiB here")
    (made,) = [path for path in tmp_path.rglob("*") if path.is_file()]
    status = made.stat()
    assert status.st_size == far + 100
    assert status.st_blocks * 512 < 1 << 20
    with made.open("rb") as file:
        assert any(file.read(4096))
        file.seek(far)
        assert len(file.read()) == 100


def test_short_gaps_between_what_is_read_are_filled() -> None:
    """A hole is read faster than what was there: whoever reads it all at once would read it so."""
    calls = [("pread", A, at << 20, 1000) for at in range(1, 40, 2)]
    found = recorded(("open", A, -1, 0), *calls, ("close", A, -1, 0))
    assert list(found.found_parts.values()) == [[(0, (39 << 20) + 1000)]]


def test_parts_of_very_many_reads_are_few() -> None:
    reads = [
        Op("pread", [0, 8, at], at, at, 0, use="read", low=at, high=at + 8, moved=8)
        for at in range(0, 1 << 21, 16)
    ]  # fmt: skip
    found = Recorded([RankCalls(0, reads)], ["/a"], ["a"], ())
    inputs.find(found)
    assert found.found_parts == {0: [(0, (1 << 21) - 8)]}


def test_a_replay_that_would_fill_the_disk_does_not_begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is removed again, written twice, or a hole, needs no room at the end."""
    found = recorded(
        ("creat", A, -1, 0), ("pwrite", A, 0, 1000), ("pwrite", A, 0, 1000), ("pwrite", A, 1 << 30, 1000),
        ("close", A, -1, 0),
        ("creat", B, -1, 0), ("pwrite", B, 0, 1 << 20), ("close", B, -1, 0), ("unlink", B, -1, 0),
    )  # fmt: skip
    assert found.stored_bytes == 2000
    with Folder.open(tmp_path) as folder:
        monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1999))
        with pytest.raises(IoweirError, match=r"needs 2,000 bytes for its files, and .* has 1,999 bytes free"):
            write.make_files(found, folder, 1)
        assert list(tmp_path.iterdir()) == []
        monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=2000))
        assert write.make_files(found, folder, 1) == 0


def test_a_file_that_another_takes_the_name_of_is_still_read_through_its_descriptor() -> None:
    found = recorded(
        ("open", B, -1, 0), ("pread", B, 0, 10), ("rename", A, -1, 0), ("rename (to)", B, -1, 0), ("pread", B, 0, 500),
    )  # fmt: skip
    assert names_of(found) == {A: 0, B: 500}


def test_others_wait_for_a_file_that_is_made_again_by_being_opened() -> None:
    gone = (("open", A, -1, 0), ("close", A, -1, 0), ("unlink", A, -1, 0), ("open", A, -1, 0))
    found = recorded(*gone, rank_1=(("stat", A, -1, 0),))
    assert found.ranks[1].after == {0: [(0, 0)]}
    assert found.ranks[0].before == {3: [(1, 0)]}


def test_who_reads_waits_for_who_has_set_the_size() -> None:
    found = recorded(("truncate", A, 2000, 0), rank_1=(("open", A, -1, 0), ("pread", A, 0, 5)))
    assert names_of(found) == {A: 0}
    assert found.ranks[1].after == {0: [(0, 0)]}


@pytest.mark.parametrize("empties", ["creat", "truncate"])
def test_a_file_is_not_emptied_before_others_have_read_it(empties: str) -> None:
    """As a restart file that is read by all ranks and then written anew."""
    made = Builder()
    writer, reader = made.rank(0, 2), made.rank(1, 2)
    made.add(Call(reader, "open", 1, 1.1, A), Call(reader, "pread", 2, 2.1, A, 500, offset=0))
    made.add(Call(writer, empties, 3, 3.1, A, offset=0))
    found = from_trace.of_trace(made.trace(), 2, "a trace")
    assert names_of(found) == {A: 500}
    assert found.ranks[0].after == {0: [(1, 0)]}
    assert found.ranks[1].before == {1: [(0, 0)]}


def test_a_stream_does_not_empty_what_another_has_appended() -> None:
    found = recorded(
        ("fopen", A, -1, 0), ("fwrite", A, -1, 500), ("fclose", A, -1, 0),
        ("fopen", A, -1, 0), ("fwrite", A, 0, 10), ("fclose", A, -1, 0),
        ("fopen", A, -1, 0), ("fread", A, 0, 500), ("fclose", A, -1, 0),
    )  # fmt: skip
    assert [op.arguments[2] for op in ops(found, "fopen")] == [2, 3, 0]  # a, r+, r


def test_who_reads_waits_for_who_has_appended() -> None:
    """Where the end of the file was, the trace does not say."""
    found = recorded(
        ("creat", A, -1, 0),
        ("pwrite", A, 0, 700),
        rank_1=(("open", A, -1, 0), ("write", A, -1, 5), ("close", A, -1, 0)),
    )
    writer = found.ranks[1].ops[1]
    reader = Op("pread", [0, 5, 700], writer.end, writer.end + 1, 0, use="read", low=700, high=705, moved=5)
    found.ranks[0].ops.append(reader)
    for rank in found.ranks:
        rank.before.clear()
        rank.after.clear()
    order.put_in_order(found)
    assert found.ranks[0].after == {2: [(1, found.ranks[1].before[1][0][1])]}
