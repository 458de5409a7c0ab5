"""The report's table of files, the sizes it quotes, and whose failures it tells of."""

from __future__ import annotations

from io import StringIO

import pytest
from ioweir.report import build, file_table, report_text
from traces import Builder, Call, printed


def text_of(builder: Builder) -> str:
    out = StringIO()
    report_text.write(build(builder.trace()), out)
    return out.getvalue()


def test_files_of_one_pattern_are_one_row() -> None:
    builder = Builder()
    process = builder.process()
    for number in range(12):
        builder.add(Call(process, "write", 2.0 * number, 2.0 * number + 1, f"/run/tiny/f.{number}", 100))
    builder.add(Call(process, "write", 50, 53, "/run/big", 4096), Call(process, "write", 60, 61, "/run/tiny/g.1", 7))
    found = file_table.groups(build(builder.trace()))
    assert [(group.name, len(group.files)) for group in found] == [
        ("/run/tiny/f.*: 12 files", 12), ("/run/big", 1), ("/run/tiny/g.1", 1),
    ]  # fmt: skip
    assert found[0].time_s == pytest.approx(12.0)
    assert "/run/tiny/f.*: 12 files  12.00 s  POSIX  write  1.17 KiB" in text_of(builder)


def test_syncs_opens_and_closes_are_shown_where_they_take_time() -> None:
    builder = Builder()
    process = builder.process()
    builder.add(
        Call(process, "open", 0, 4, "/run/a"),
        Call(process, "write", 4, 5, "/run/a", 10),
        Call(process, "fsync", 5, 9, "/run/a"),
        Call(process, "close", 9, 9.001, "/run/a"),
        Call(process, "write", 10, 18, "/run/b", 10),
    )
    table = text_of(builder).partition("Files, most time in all first")[2].partition("Definitions")[0]
    rows = [line.split() for line in table.splitlines() if " POSIX " in line]
    # Sorted by the column that stands beside the name, which holds opening and syncing, too.
    assert [(row[0], row[1]) for row in rows if row[0].startswith("/")] == [("/run/a", "9.00"), ("/run/b", "8.00")]
    assert {"write", "open", "sync"} == {row[row.index("POSIX") + 1] for row in rows[:3]}
    assert "close" not in table


def test_sizes_are_quoted_as_they_are() -> None:
    builder = Builder()
    process = builder.process()
    for at in range(10):
        builder.add(Call(process, "write", at, at + 0.5, "/run/a", 100))
    assert "100 B 100 %" in text_of(builder)
    builder.add(Call(process, "write", 20, 20.5, "/run/a", 120))
    assert "100 B to 120 B 100 %" in text_of(builder)
    assert printed(builder.trace())["layers"]["POSIX"]["write"]["size_ranges"] == {"64": [100, 120]}


def test_settings_that_an_mpi_library_looks_for_are_not_the_programs_failures() -> None:
    builder = Builder()
    process = builder.rank(0, 1)
    for name in (
        "/home/a/.openmpi/mca-params.conf",
        "/home/a/.pmix/mca-params.conf",
        "/opt/etc/openmpi-mca-params.conf",
    ):
        builder.add(Call(process, "fopen", 1, 2, name, failed=True, origin="mpi_library"))
    builder.add(Call(process, "fopen", 3, 4, "/data/settings", failed=True))
    (row,) = printed(builder.trace())["failures"]
    assert (row["layer"], row["op"], row["failed"]) == ("STDIO", "open", 1)


def test_operations_that_move_no_data_are_taken_apart_too() -> None:
    builder = Builder()
    process = builder.rank(0, 1)
    opened = Call(process, "MPI_File_open", 0, 10, "/out")
    closed = Call(process, "MPI_File_close", 20, 30, "/out")
    builder.add(opened, opened.inside("open", 1, 9), closed, closed.inside("fsync", 21, 29))
    said = text_of(builder)
    assert "Inside of 1 MPI-IO opens (10.00 s, summed over ranks)" in said
    assert "80 %    8.00 s  POSIX open" in said
    assert "Inside of 1 MPI-IO closes (10.00 s, summed over ranks)" in said
    assert "80 %    8.00 s  POSIX sync" in said


def test_rows_of_where_have_bytes() -> None:
    builder = Builder()
    builder.add(Call(builder.process(), "open", 0, 1, "/run/a"))
    (row,) = printed(builder.trace())["io"]["where"]
    assert row == {"layer": "POSIX", "op": "open", "mean_s": 1.0, "calls": 1, "bytes": 0}


def test_a_script_with_several_programs_is_told_step_by_step() -> None:
    builder = Builder()
    for program, begin in (("/run/first", 0.0), ("/run/second", 50.0)):
        for rank in range(2):
            process = builder.rank(rank, 2, start_s=begin, end_s=begin + 40, executable=program, finalized=False)
            builder.add(Call(process, "pwrite", begin + 1, begin + (2 if begin else 5), f"{program}.out", 4096))
    report = printed(builder.trace())
    steps = [(row["program"], row["ranks"], row["begin_s"], row["wall_s"]) for row in report["steps"]]
    assert steps == [("first", 2, 0.0, 40.0), ("second", 2, 50.0, 40.0)]
    assert [row["io"]["mean_s"] for row in report["steps"]] == [pytest.approx(4.0), pytest.approx(1.0)]
    said = text_of(builder)
    assert "1. first: 2 ranks, 40.00 s from 0 s on; I/O 4.00 s (10 %): POSIX write 4.00 s." in said
    assert "2. second: 2 ranks, 40.00 s from 50.00 s on; I/O 1.00 s" in said


def test_one_program_and_programs_at_the_same_time_have_no_steps() -> None:
    for begins in ([0.0], [0.0, 10.0]):
        builder = Builder()
        for begin in begins:
            for rank in range(2):
                process = builder.rank(rank, 2, start_s=begin, end_s=begin + 40, finalized=False)
                builder.add(Call(process, "pwrite", begin + 1, begin + 2, "/out", 4096))
        assert printed(builder.trace())["steps"] == []


def test_the_text_counts_what_it_does_not_list() -> None:
    builder = Builder()
    ranks = [builder.rank(rank, 40) for rank in range(40)]
    for number in range(1000):
        name = "".join("abcdefghij"[int(digit)] for digit in str(number))  # files that differ in numbers are one row
        builder.add(Call(ranks[number % 40], "pwrite", number, number + 1, f"/data/{name}", 1024))
    for rank in ranks:
        builder.add(Call(rank, "fcntl_lock", 2000 + rank, 2000.5 + rank, "/data/b", 1))
        builder.add(Call(rank, "open", 3000 + rank, 3000.5 + rank, f"/data/empty{rank}"))
    text = text_of(builder)
    assert "10 of 1,001 rows" in text
    assert "/data/empty*: 40 files" in text
    assert "and 991 more files: 0 B read and 991 KiB written" in text
    assert "and 35 more ranks: 35 calls, 17.5" in text
