"""Calls that move fewer bytes than they are asked for, beneath programs of POSIX and MPI-IO: reports say so first.

The storage is a library that moves less (programs/short_storage.c).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tracing import IOWEIR, MPIS, Mpi, Traced, build, ioweir_run, preload_library, run

if TYPE_CHECKING:
    from pathlib import Path

BYTES = 8000  # of each call of programs/short_calls.c
CALLS = 4


def beneath(limit: int) -> list[str]:
    """Words before a program: its reads and writes move `limit` bytes at most."""
    library = build("short_storage.c", "gcc", "-shared", "-fPIC")
    return ["env", f"SHORT_BYTES={limit}", f"LD_PRELOAD={preload_library()}:{library}"]


def rows(traced: Traced) -> dict[tuple[str, str], dict[str, Any]]:
    return {(row["layer"], row["op"]): row for row in traced.report["failures"] if row["op"] in ("read", "write")}


def first_lines(traced: Traced) -> str:
    return "\n".join(run([*IOWEIR, "report", traced.directory]).expect().out.splitlines()[:8])


def test_calls_with_which_nobody_goes_on(tmp_path: Path) -> None:
    program = build("short_calls.c", "gcc")
    traced = ioweir_run(tmp_path / "trace", [*beneath(5000), program, tmp_path / "a.data", "once"])
    found = rows(traced)
    for op in ("write", "read"):
        row = found["POSIX", op]
        assert (row["short"], row["continued"], row["failed"]) == (CALLS, 0, 0), row
        assert row["missing_bytes"] == CALLS * (BYTES - 5000)
        assert f"{CALLS} of {row['calls']} POSIX {op}s moved 11.72 KiB less than they were asked for" in first_lines(
            traced
        )
    assert "no call moved the rest" in first_lines(traced)


def test_calls_with_which_the_program_goes_on(tmp_path: Path) -> None:
    program = build("short_calls.c", "gcc")
    traced = ioweir_run(tmp_path / "trace", [*beneath(3000), program, tmp_path / "a.data", "on"])
    for op in ("write", "read"):
        row = rows(traced)["POSIX", op]
        assert (row["short"], row["continued"], row["missing_bytes"]) == (2 * CALLS, 2 * CALLS, 0), row
    assert "SHORT CALLS" not in first_lines(traced)
    assert "Short calls whose rest a later call moved: 8 of 12 POSIX writes; 8 of 15 POSIX reads" in first_lines(traced)


def test_reads_to_the_end_of_the_file_are_not_short(tmp_path: Path) -> None:
    traced = ioweir_run(tmp_path / "trace", [build("short_calls.c", "gcc"), tmp_path / "a.data", "once"])
    assert rows(traced) == {}
    assert "SHORT CALLS" not in first_lines(traced)
    assert "Short calls" not in first_lines(traced)


def test_every_text_and_json_says_so(tmp_path: Path) -> None:
    command: list[str | Path] = [*beneath(5000), build("short_calls.c", "gcc"), tmp_path / "a.data", "once"]
    trace = tmp_path / "trace"
    shown = run([*IOWEIR, "run", "-o", trace, "--", *command]).expect()
    words = "SHORT CALLS: 4 of 4 POSIX writes moved 11.72 KiB less than they were asked for"
    for text in (
        shown.out + shown.err,
        run([*IOWEIR, "report", trace]).expect().out,
        run([*IOWEIR, "compare", trace, trace]).expect().out,
        run([*IOWEIR, "timeline", trace]).expect().out,
    ):
        assert any(words in line for line in text.splitlines()[:8]), text


@pytest.mark.parametrize("mpi", MPIS, ids=lambda mpi: mpi.name)
def test_mpi_io(mpi: Mpi, tmp_path: Path) -> None:
    """Whether the library goes on or not: who read what it had not written is not left without a word."""
    program = build("short_mpi.c", mpi.cc)
    command = mpi.launch(2, *beneath(300_000), program, tmp_path / "a.data")
    traced = ioweir_run(tmp_path / "trace", command)
    found = rows(traced)
    posix = found["POSIX", "write"]
    assert posix["short"] > 0
    lost = any(row["short"] > row["continued"] for row in found.values())
    assert lost == ("wrong" in traced.out), (traced.out, found)
    assert lost == ("SHORT CALLS" in first_lines(traced))
    told = ("MPI-IO", "write") in found
    assert (posix["unreported_short"] > 0) == (lost and not told), found


@pytest.mark.parametrize("mpi", MPIS, ids=lambda mpi: mpi.name)
def test_mpi_io_to_the_end_of_the_file(mpi: Mpi, tmp_path: Path) -> None:
    traced = ioweir_run(tmp_path / "trace", mpi.launch(2, build("short_mpi.c", mpi.cc), tmp_path / "a.data"))
    assert traced.out.count("right") == 2
    assert rows(traced) == {}
