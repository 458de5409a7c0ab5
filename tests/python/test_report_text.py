"""The report as text: what it says first, and how it fits terminals."""

from __future__ import annotations

import io

import pytest
from ioweir import report
from ioweir.report import report_text, weighed
from ioweir.report.model import WeighedKind
from test_report import text_of, two_writers
from traces import Builder, Call, printed


def test_the_text_answers_where_the_time_went_first() -> None:
    out = io.StringIO()
    report_text.write(report.build(two_writers().trace(dropped=2)), out)
    lines = out.getvalue().splitlines()
    assert lines[0] == "solver: 2 ranks, 100 s, exit code 0, 7 events"
    assert lines[1] == (
        "I/O took 3.50 s of 100 s on an average rank (4 % of the run): MPI-IO write 3.00 s, POSIX write 500 ms."
    )
    assert lines[2] == "Longest in I/O: rank 0 with 5.00 s."
    assert lines[3].startswith("Storage: rank 0 (of 2) wrote to it; slowest rank 0: 2.50 s for 157 B")
    text = out.getvalue()
    assert "PARTIAL" in text
    assert "2 events were dropped" in text
    assert "effective: bytes / sum over ranks" in text
    assert "\x1b" not in text


def test_markup_in_names_is_text() -> None:
    builder = Builder()
    rank = builder.rank(0, 1)
    builder.add(Call(rank, "pwrite", 0, 1, "/data/[bold]x[/bold]", 1))
    builder.add(Call(rank, "pwrite", 1, 2, "/data/nfs:a:b", 1))  # :a: is the name of an emoji
    out = io.StringIO()
    report_text.write(report.build(builder.trace(run={"program": "[red]p"})), out)
    assert "/data/[bold]x[/bold]" in out.getvalue()
    assert "/data/nfs:a:b" in out.getvalue()
    assert out.getvalue().startswith("[red]p: 1 rank")


@pytest.mark.parametrize("columns", ["wide", "-1", "9" * 30, "²"])
def test_a_width_that_is_none_is_left_out(columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = text_of(two_writers())
    monkeypatch.setenv("COLUMNS", columns)
    assert text_of(two_writers()) == usual


@pytest.mark.parametrize("width", [30, 40, 60, 80, 100, 120, 200])
def test_no_figure_is_cut_off_on_any_terminal(width: int) -> None:
    builder = two_writers()
    builder.add(Call(0, "fcntl_lock", 30, 33, "/data/log", 1), Call(1, "fcntl_lock", 30, 32, "/data/log", 1))
    wide, text = text_of(builder), text_of(builder, width)
    assert "\u2026" not in text  # rich's mark of what it left out
    figures = {word for word in wide.split("\nDefinitions")[0].split() if word[0].isdigit()}
    assert figures <= set(text.split()) | {word.rstrip(",.;") for word in text.split()} | set(
        text.replace(",", "").split()
    )
    assert wide.splitlines()[0] == text.splitlines()[0]


def test_layers_that_do_not_occur_are_not_printed() -> None:
    text = text_of(two_writers()).split("\nDefinitions")[0]
    assert "MPI-IO" in text
    assert "POSIX" in text
    for layer in ("STDIO", "HDF5", "PnetCDF", "netCDF"):
        assert layer not in text


def test_definitions_that_apply_are_printed() -> None:
    builder = Builder()
    builder.add(Call(builder.process(), "pwrite", 0, 1, "f", 1))
    assert "other, of an MPI-IO call:" in text_of(two_writers())
    assert "other, of an MPI-IO call:" not in text_of(builder)
    assert "effective: bytes /" in text_of(builder)


def test_many_rank_numbers_are_shortened() -> None:
    builder = Builder()
    ranks = [builder.rank(rank, 100) for rank in range(100)]
    builder.add(*(Call(rank, "pwrite", 0, 1, "f", 1) for rank in ranks[::2]))
    assert "ranks 0, 2, 4, 6, 8, 10, 12, 14 and 42 more (of 100) wrote to it" in text_of(builder)


def test_waiting_for_locks_in_the_text() -> None:
    builder = two_writers()
    builder.add(Call(1, "fcntl_lock", 30, 33, "/data/log", 1))
    text = text_of(builder)
    assert "Waiting for locks: 3.50 s in 2 calls" in text
    assert "longest: 3.00 s, rank 1 on /data/log, 30.00 s after the start" in text


def test_aggregators_in_the_text() -> None:
    assert "Aggregators: rank 0 (of 2) did the storage writes of collective MPI-IO calls for all." in text_of(
        two_writers()
    )


def test_calls_that_took_no_time_are_not_compared() -> None:
    """A clock that stood still, or damage."""
    rows = [
        WeighedKind("/a", "write_all", "plan", 1, 3, engine, library) for engine, library in ((0.0, 1.0), (2.0, 1.0))
    ]
    assert weighed.lines(rows[:1]) == []
    assert len(weighed.lines(rows)) == 1
    assert "2.00 times as long" in weighed.lines(rows)[0]


def test_a_lower_bound_above_the_upper_one_is_not_shown() -> None:
    builder = Builder()
    rank = builder.rank(0, 1)
    builder.add(Call(rank, "MPI_File_write_at", 0, 1, "f", 1024), Call(rank, "pwrite", 2, 12, "g", 1024))
    result = printed(builder.trace())
    assert result["layers"]["POSIX"]["write"]["perceived_bytes_per_s"] == [None, 102.4]
    assert "<= 102 B/s" in text_of(builder)
    assert "1.00 KiB/s .. " not in text_of(builder)


def test_what_was_not_recorded_is_not_said_to_be_none() -> None:
    """With --layers mpiio nobody knows what lies inside of MPI-IO calls."""
    builder = Builder()
    builder.add(Call(builder.rank(0, 1), "MPI_File_write_at", 0, 4, "/d/f", 1024))
    fewer = {"tracing": {"layers": ["MPI-IO"]}}
    result = printed(builder.trace(run=fewer))
    assert result["layers_recorded"] == ["MPI-IO"]
    assert result["decomposition"]["write"] == {
        "calls": 1, "time_s": 4.0, "parts": None, "waiting_s": 0.0, "asynchronous_s": 0.0,
    }  # fmt: skip
    assert result["files"][0]["decomposition"]["write"]["parts"] is None
    stream = io.StringIO()
    report_text.write(report.build(builder.trace(run=fewer)), stream)
    assert "outside of POSIX calls" not in stream.getvalue()
    assert "POSIX calls were not recorded (--layers): what the time went into is not known" in stream.getvalue()
    nothing = report.build(Builder().trace(run=fewer))
    assert "No file I/O was seen; calls of POSIX, STDIO, HDF5, PnetCDF, netCDF were not recorded." in (
        report_text.headline(nothing)
    )
    above = Builder()
    write = Call(above.rank(0, 1), "H5Dwrite", 0, 4, "/d/f", 1024)
    above.add(write, write.inside("MPI_File_write_at", 1, 2, 1024, origin="application"))
    text = io.StringIO()
    report_text.write(report.build(above.trace(run={"tracing": {"layers": ["HDF5", "MPI-IO"]}})), text)
    assert "outside of calls that were recorded (POSIX were not)" in text.getvalue()
    assert "HDF5 itself" not in text.getvalue()
