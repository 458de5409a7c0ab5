"""Bytes and calls are exact: a C program whose I/O is known call by call, per rank, file and function.

The figures are worked out here from what programs/known.c does, and compared with the events that ioweir._core reads
and with `ioweir report --json`. Fortran and Python: test_languages.py. One test per symbol: test_symbols.py.
"""

from __future__ import annotations

import errno
import itertools
import os
from collections import Counter
from typing import TYPE_CHECKING, Final

import pytest
from tracing import MPIS, Mpi, Traced, build, ioweir_run, report_of_file, run, totals, undefined_symbols

if TYPE_CHECKING:
    from pathlib import Path

    from tracing import Event

BLOCK: Final = 64
PIECES: Final = 4
RANKS: Final = (1, 3, 4)
FORTIFIED: Final = ("-O2", "-D_FORTIFY_SOURCE=2", "-D_FILE_OFFSET_BITS=64")

VARIANTS: Final[dict[str, tuple[str, ...]]] = {
    "MPI": (),
    "PMPI": ("-DUSE_PMPI",),
    "fortified": FORTIFIED,
}
Figures = dict[tuple[str, str], tuple[int, int]]
"""(file, function) -> calls, bytes."""


def expected_posix(rank: int) -> Figures:
    """What a rank does through POSIX itself."""
    own = f"posix.{rank}"
    return {
        (own, "open"): (2, 0),
        (own, "close"): (2, 0),
        # one more write fails
        (own, "write"): (rank + 1 + 1, (rank + 1) * (100 + rank)),
        (own, "pwrite"): (3, 3 * 1000),
        (own, "writev"): (1, 10 + 20 + 30),
        (own, "pwritev"): (1, 7 + 9),
        (own, "read"): (2, 2 * 50),
        # the last two are short: 16 bytes and none
        (own, "pread"): (2 + rank + 2, 11 * (2 + rank) + 16),
        (own, "readv"): (1, 11),
        (own, "preadv"): (1, 11),
        (own, "lseek"): (1, 0),
        (own, "fcntl_lock"): (2, 500 + 700),
        (own, "fcntl_getlk"): (1, 20),
        (own, "fcntl_unlock"): (1, 700),
        ("posix.shared", "open"): (1, 0),
        ("posix.shared", "pwrite"): (1, 10 * (rank + 1)),
        ("posix.shared", "close"): (1, 0),
    }


def expected_mpi(rank: int, mpi_version: int) -> Figures:
    """What a rank does through MPI-IO."""
    part, shared, own = PIECES * BLOCK, "mpi.shared", f"mpi.{rank}"
    figures = {
        (shared, "MPI_File_open"): (1, 0),
        (shared, "MPI_File_set_view"): (2, 0),
        (shared, "MPI_File_write_at_all"): (3, 2 * part + (33 if rank == 0 else 0)),
        (shared, "MPI_File_write_all"): (2, 2 * part),
        (shared, "MPI_File_read_at_all"): (2, 2 * part),
        (shared, "MPI_File_write_at"): (2, 100 + 5 * 2 * 4),
        (shared, "MPI_File_read_at"): (4, 77 + 9 + 10 + 0),
        (shared, "MPI_File_read_all"): (1, 48),
        (shared, "MPI_File_sync"): (2, 0),
        (shared, "MPI_File_close"): (1, 0),
        (own, "MPI_File_open"): (2, 0),
        (own, "MPI_File_write"): (rank + 2, (rank + 1) * (200 + rank) + 3 * 8),
        (own, "MPI_File_read"): (4, 100 + 100 + 24 + 0),
        (own, "MPI_File_seek"): (3 if mpi_version >= 4 else 2, 0),
        # it fails
        (own, "MPI_File_write_at"): (1, 0),
        (own, "MPI_File_close"): (2, 0),
        ("missing", "MPI_File_open"): (1, 0),
    }
    if mpi_version >= 4:
        large = {
            "MPI_File_write_at": 11, "MPI_File_read_at": 12, "MPI_File_write_at_all": 13, "MPI_File_read_at_all": 14,
            "MPI_File_write": 15, "MPI_File_read": 16, "MPI_File_write_all": 17, "MPI_File_read_all": 18,
        }  # fmt: skip
        for name, count in large.items():
            calls, moved = figures.get((own, name), (0, 0))
            figures[own, name] = (calls + 1, moved + count)
    return figures


class Known:
    """One traced run of programs/known.c."""

    def __init__(self, mpi: Mpi, ranks: int, variant: str, folder: Path) -> None:
        self.mpi, self.ranks, self.variant = mpi, ranks, variant
        self.program = build("known.c", mpi.cc, *VARIANTS[variant])
        self.data = folder / "data"
        self.data.mkdir()
        self.run: Traced = ioweir_run(folder / "trace", mpi.launch(ranks, self.program, self.data))
        words = (self.data / "failures.0").read_text(encoding="ascii").split()
        self.class_of_write, self.class_of_open, self.mpi_version = map(int, words)

    def figures(self, rank: int, layer: str) -> Figures:
        """What the rank should have done in a layer."""
        return expected_posix(rank) if layer == "POSIX" else expected_mpi(rank, self.mpi_version)

    def posix_files(self) -> set[str]:
        """The files that only the program itself touches."""
        return {"posix.shared", *(f"posix.{rank}" for rank in range(self.ranks))}

    def events(self) -> list[Event]:
        """The events of the program's files."""
        return self.run.trace.under(self.data)

    def name(self, event: Event) -> str:
        """A file's name in the data directory."""
        return event.path.removeprefix(f"{self.data}/")


def combinations() -> list[tuple[Mpi, int, str]]:
    """MPI library, ranks and variant: all, or six in which each number of ranks and each variant meets each library."""
    if os.environ.get("IOWEIR_TEST_ALL"):
        return list(itertools.product(MPIS, RANKS, VARIANTS))
    variants = list(VARIANTS)
    return [
        (mpi, ranks, variants[(i + j) % len(variants)]) for j, mpi in enumerate(MPIS) for i, ranks in enumerate(RANKS)
    ]


@pytest.fixture(scope="module", params=combinations(), ids=lambda three: f"{three[0].name}-{three[1]}ranks-{three[2]}")
def known(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Known:
    mpi, ranks, variant = request.param
    return Known(mpi, ranks, variant, tmp_path_factory.mktemp("known"))


def test_every_call_and_byte_of_every_rank(known: Known) -> None:
    assert known.run.trace.is_whole()
    assert known.run.trace.ranks() == list(range(known.ranks))
    for rank in range(known.ranks):
        events = [event for event in known.events() if event.rank == rank]
        posix = totals((e for e in events if known.name(e) in known.posix_files()), "path", "name")
        found = {(path.removeprefix(f"{known.data}/"), name): sums for (path, name), sums in posix.items()}
        assert found == expected_posix(rank)
        mpi = totals((e for e in events if e.layer == "MPI-IO"), "path", "name")
        found = {(path.removeprefix(f"{known.data}/"), name): sums for (path, name), sums in mpi.items()}
        assert found == expected_mpi(rank, known.mpi_version)


@pytest.mark.one_of(2)
def test_report_adds_up_the_same_figures(known: Known) -> None:
    assert known.run.report["ranks"] == known.ranks
    assert known.run.report["dropped"] == 0
    assert known.run.report["partial"] is False, known.run.report["partial_reasons"]
    ops = {event.name: event.op for event in known.events()}
    for layer in ("POSIX", "MPI-IO"):
        calls: Counter[tuple[str, str]] = Counter()
        moved: Counter[tuple[str, str]] = Counter()
        for rank in range(known.ranks):
            for (file, name), (count, size) in known.figures(rank, layer).items():
                calls[file, ops[name]] += count
                moved[file, ops[name]] += size
        for (file, op), count in calls.items():
            row = report_of_file(known.run.report, known.data / file)[layer][op]
            assert row["calls"] == count, (file, layer, op)
            if op in ("read", "write"):
                assert row["bytes"] == moved[file, op], (file, layer, op)
        if layer == "MPI-IO":
            # Nothing else goes through MPI-IO: the job's totals are those of its files.
            for op in ("read", "write"):
                row = known.run.report["layers"][layer][op]
                assert row["bytes"] == sum(size for (_, o), size in moved.items() if o == op)
                assert row["calls"] == sum(count for (_, o), count in calls.items() if o == op)


def test_parents_and_origins(known: Known) -> None:
    trace = known.run.trace
    inside = 0
    for event in known.events():
        parent = trace.parent_of(event)
        if event.layer in ("MPI-IO", "STDIO") or known.name(event) in known.posix_files():
            assert parent is None
            assert event.origin == "application"
            continue
        inside += 1
        assert parent is not None, event
        assert event.origin == "mpi_library"
        assert parent.layer == "MPI-IO"
        # Open MPI tries out locks on a file of its own beside the program's (NAME.locktest.N).
        assert event.path == parent.path or event.path.startswith(f"{parent.path}.")
        assert parent.process == event.process
        assert parent.start_ns <= event.start_ns <= event.end_ns <= parent.end_ns
    assert inside > 0


@pytest.mark.parametrize("name", ["MPI_File_write", "MPI_File_read", "MPI_File_write_at", "MPI_File_read_at"])
def test_contiguous_independent_calls_move_their_bytes_through_posix(known: Known, name: str) -> None:
    """Nothing between MPI-IO and POSIX is lost: no data sieving is possible where the data are contiguous."""
    trace = known.run.trace
    inner: Counter[tuple[int, int]] = Counter()
    for event in known.events():
        if event.parent and event.op in ("read", "write"):
            inner[event.thread, event.parent] += event.bytes
    calls = [event for event in known.events() if event.name == name and known.name(event).startswith("mpi.")]
    assert calls
    for call in calls:
        assert inner[call.thread, call.seq] == call.bytes
    assert trace.is_whole()


def test_offsets_and_lock_ranges(known: Known) -> None:
    for rank in range(known.ranks):
        events = known.run.trace.of(known.data / f"posix.{rank}")
        by_name = {name: [e for e in events if e.name == name] for name in {e.name for e in events}}
        assert [e.offset for e in by_name["pwrite"]] == [2000, 3000, 4000]
        assert [e.offset for e in by_name["pread"]] == [11 * i for i in range(2 + rank)] + [6000, 9000]
        assert [(e.offset, e.bytes) for e in by_name["fcntl_lock"]] == [(32, 500), (32, 700)]
        size = 100 + rank
        # the last one fails, on another descriptor
        assert [e.offset for e in by_name["write"]] == [size * i for i in range(rank + 1)] + [0]
        assert [e.offset for e in by_name["writev"]] == [size * (rank + 1)]
        assert [e.offset for e in by_name["lseek"]] == [0]
        assert [e.offset for e in by_name["read"] + by_name["readv"]] == [0, 50, 100]
        own = [e for e in known.run.trace.of(known.data / f"mpi.{rank}") if e.name == "MPI_File_write_at"]
        assert {e.offset for e in own} == {0}


def test_failures_carry_their_error(known: Known) -> None:
    for rank in range(known.ranks):
        failed = {(known.name(e), e.name): e for e in known.events() if e.rank == rank and e.failed and not e.parent}
        assert {key: event.error for key, event in failed.items()} == {
            (f"posix.{rank}", "write"): errno.EBADF,
            (f"mpi.{rank}", "MPI_File_write_at"): known.class_of_write,
            ("missing", "MPI_File_open"): known.class_of_open,
        }
        assert {event.bytes for event in failed.values()} == {0}
    outside = [e for e in known.run.trace.of("/nonexistent-directory/file") if e.failed]
    assert [e.error for e in outside] == [errno.ENOENT] * known.ranks


def test_program_is_unchanged(known: Known, tmp_path: Path) -> None:
    run(known.mpi.launch(known.ranks, known.program, tmp_path)).expect()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(path.name for path in known.data.iterdir())
    for path in tmp_path.iterdir():
        assert path.read_bytes() == (known.data / path.name).read_bytes(), path.name


def test_fortified_program_calls_the_checking_entries(any_mpi: Mpi) -> None:
    """Otherwise the fortified variant would test nothing of its own."""
    symbols = undefined_symbols(build("known.c", any_mpi.cc, *FORTIFIED))
    assert {"__read_chk", "__pread64_chk", "pwrite64", "preadv64", "pwritev64", "open64", "fcntl64"} <= symbols


def test_pmpi_program_calls_no_other_name(any_mpi: Mpi) -> None:
    symbols = undefined_symbols(build("known.c", any_mpi.cc, "-DUSE_PMPI"))
    assert "PMPI_File_write_at_all" in symbols
    assert "MPI_File_write_at_all" not in symbols
