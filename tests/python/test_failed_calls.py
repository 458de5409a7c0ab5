"""Calls that failed stand first in every text and in JSON, with their errors; so does success for what failed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from ioweir import report, trace
from ioweir.report import compare, error_names, report_text, timeline
from traces import Builder, Call, printed

if TYPE_CHECKING:
    from pathlib import Path

EIO = 5


def job(op: str, *, told: bool) -> Builder:
    """Two calls of MPI-IO, each with one of POSIX in it; the second one's fails, which the program is told or not."""
    builder = Builder()
    rank = builder.rank(0, 1)
    for number, failed in enumerate([False, True]):
        outer = Call(rank, f"MPI_File_{op}_at", number, number + 0.5, "/d/file", 100, failed=failed and told)
        builder.add(outer, outer.inside(f"p{op}", number + 0.1, number + 0.4, 100, failed=failed))
    return builder


def rows(result: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {row["layer"]: row for row in result["failures"]}


@pytest.mark.parametrize("op", ["write", "read"])
def test_errors_are_named(op: str) -> None:
    builder = job(op, told=True)
    rank = 0
    builder.add(Call(rank, op, 5, 6, "/d/own", failed=True), Call(rank, f"f{op}", 7, 8, "/d/own", failed=True))
    result = report.build(builder.trace())
    found = rows(report.to_dict(result))
    assert found["POSIX"]["errors"] == [{"error": EIO, "name": "EIO", "calls": 2}]
    assert found["STDIO"]["errors"] == [{"error": EIO, "name": "EIO", "calls": 1}]
    assert found["MPI-IO"]["errors"] == [{"error": EIO, "name": None, "calls": 1}]
    assert {row["unreported"] for row in found.values()} == {0}
    (said,) = [line for line in report_text.headline(result) if line.startswith("FAILED CALLS")]
    assert f"2 of 3 POSIX {op}s (EIO)" in said
    assert f"1 of 2 MPI-IO {op}s" in said


@pytest.mark.parametrize("op", ["write", "read"])
def test_success_for_what_failed_beneath_stands_first_everywhere(op: str, tmp_path: Path) -> None:
    job(op, told=False).write(tmp_path)
    (tmp_path / "run.json").write_text(json.dumps({"program": "solver", "wall_s": 100.0, "state": "ended"}))
    words = f"SUCCESS WITHOUT THE BYTES: 1 POSIX {op}s (EIO) failed inside of MPI-IO {op}s that returned success"
    result = report.build(trace.load(tmp_path))
    found = rows(report.to_dict(result))
    assert found["POSIX"]["unreported"] == 1
    assert "MPI-IO" not in found
    assert any(line.startswith(words) for line in report_text.headline(result)[1:3])
    compared = compare.compare_directories(tmp_path, tmp_path)
    assert sum(line.startswith(f"Both runs: {words}") for line in compared.first_lines) == 1
    shown = timeline.timeline(tmp_path, timeline.Options(op=op))
    assert any(line.startswith(words) for line in shown.first_lines)
    assert any(line.startswith(words) for line in timeline.to_text(shown)[:2])


@pytest.mark.parametrize(("error", "usual"), [(42, True), (41, False)])
def test_a_file_that_is_deleted_before_it_is_there_is_nothing_unusual(error: int, usual: bool) -> None:
    """42: MPI_ERR_NO_SUCH_FILE of Open MPI; 41: MPI_ERR_NO_SPACE."""
    builder = Builder()
    rank = builder.rank(0, 1)
    builder.add(Call(rank, "MPI_File_delete", 0, 1, "/d/file", failed=True, error=error))
    result = report.build(builder.trace())
    assert [row.usual for row in result.failures] == [usual]
    assert any(line.startswith("FAILED CALLS") for line in report_text.headline(result)) is not usual


def short(op: str, *, then: str) -> Builder:
    """A call of MPI-IO with one of POSIX in it that moves 60 of 100 bytes; `then`: what comes after it."""
    builder = Builder()
    rank = builder.rank(0, 1)
    outer = Call(rank, f"MPI_File_{op}_at", 0, 1, "/d/file", 100, missing=40 if then == "told" else 0)
    calls = [outer, outer.inside(f"p{op}", 0.1, 0.2, 60, offset=500, missing=40)]
    if then in ("rest", "elsewhere"):
        calls.append(outer.inside(f"p{op}", 0.3, 0.4, 40, offset=560 if then == "rest" else 600))
    if then == "pieces":
        calls.append(outer.inside(f"p{op}", 0.3, 0.4, 10, offset=560, missing=30))
        calls.append(outer.inside(f"p{op}", 0.5, 0.6, 30, offset=570))
    builder.add(*calls)
    return builder


@pytest.mark.parametrize("op", ["write", "read"])
@pytest.mark.parametrize(
    ("then", "calls", "continued", "missing", "unreported"),
    [
        ("nothing", 1, 0, 40, 1),
        ("elsewhere", 1, 0, 40, 1),
        ("rest", 1, 1, 0, 0),
        ("pieces", 2, 2, 0, 0),
        ("told", 1, 0, 40, 0),
    ],
)
def test_short_calls(op: str, then: str, calls: int, continued: int, missing: int, unreported: int) -> None:
    result = report.build(short(op, then=then).trace())
    found = rows(report.to_dict(result))
    row = found["POSIX"]
    assert (row["short"], row["continued"], row["missing_bytes"]) == (calls, continued, missing)
    assert row["unreported_short"] == unreported
    assert row["failed"] == 0
    text = report_text.headline(result)
    assert any(line.startswith("SHORT CALLS: ") for line in text) == (missing > 0)
    assert any(line.startswith("SUCCESS FOR LESS: 1 POSIX ") for line in text) == (unreported > 0)
    assert any(line.startswith("Short calls whose rest a later call moved: ") for line in text) == (continued > 0)
    assert ("MPI-IO" in found) == (then == "told")
    assert not any(line.startswith("FAILED") for line in text)


def test_calls_that_are_to_be_repeated_and_the_programs_own_are_no_such_success() -> None:
    builder = job("write", told=False)
    builder.calls[-1].origin = "application"
    assert rows(printed(builder.trace()))["POSIX"]["unreported"] == 0


def test_numbers_of_error_classes_are_each_librarys_own() -> None:
    assert error_names.name_of("MPI-IO", 41, ["Open MPI v4.1.4"]) == "MPI_ERR_NO_SPACE"
    assert error_names.name_of("MPI-IO", 36, ["MPICH Version: 4.0.2"]) == "MPI_ERR_NO_SPACE"
    assert error_names.name_of("MPI-IO", 36, ["MPICH Version: 4.0.2", "Open MPI v4.1.4"]) is None
    assert error_names.name_of("MPI-IO", 36, []) is None
    assert error_names.name_of("POSIX", 28, []) == "ENOSPC"
    assert error_names.name_of("HDF5", 28, []) is None
