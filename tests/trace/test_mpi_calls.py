"""Every MPI-IO function is recorded once a call, with its bytes, under both MPIs, by both of its names."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import pytest
from tracing import (
    FUNCTIONS,
    MPICH,
    OPEN_MPI,
    Mpi,
    Totals,
    Traced,
    build,
    ioweir_run,
    report_of_file,
    totals,
    undefined_symbols,
)

if TYPE_CHECKING:
    from pathlib import Path

WRITES: Final = {
    "write_at": 11, "write_at_all": 12, "write": 13, "write_all": 14, "write_at_all_end": 15, "write_all_end": 16,
    "iwrite_at": 17, "iwrite": 18, "iwrite_at_all": 19, "iwrite_all": 20, "write_shared": 21, "write_ordered": 22,
    "write_ordered_end": 23, "iwrite_shared": 24,
}  # fmt: skip
READS: Final = {
    "read_shared": 31, "read_ordered": 32, "read_ordered_end": 33, "iread_shared": 34, "read_at": 41, "read_at_all": 42,
    "read": 43, "read_all": 44, "read_at_all_end": 45, "read_all_end": 46, "iread_at": 47, "iread": 48,
    "iread_at_all": 49, "iread_all": 50,
}  # fmt: skip
BEGUN: Final = [name.replace("_end", "_begin") for name in (*WRITES, *READS) if name.endswith("_end")]
OTHERS: Final = {
    "open": 1, "set_size": 1, "preallocate": 1, "set_view": 1, "get_size": 1, "get_group": 1, "get_amode": 1,
    "get_info": 1, "set_info": 1, "get_view": 1, "get_type_extent": 1, "get_byte_offset": 1, "set_atomicity": 1,
    "get_atomicity": 1, "seek": 2, "get_position": 1, "sync": 2, "seek_shared": 2, "get_position_shared": 1, "close": 1,
}  # fmt: skip


def expected(rank: int) -> Totals:
    """Calls and bytes of one rank by function."""
    table: dict[str, tuple[int, int]] = {f"MPI_File_{name}": (1, size) for name, size in (WRITES | READS).items()}
    table |= {f"MPI_File_{name}": (1, 0) for name in BEGUN}
    table |= {f"MPI_File_{name}": (calls, 0) for name, calls in OTHERS.items()}
    for op, names in (("write", WRITES), ("read", READS)):
        table[f"MPI_Wait ({op})"] = (sum(name.startswith("i") for name in names), 0)
    if rank == 0:
        table["MPI_File_delete"] = (1, 0)
    return table


def test_table_names_every_function() -> None:
    """Except for what completes requests: test_requests.py."""
    named = {name for name in expected(0) if name.startswith("MPI_File_")}
    assert named == {row["name"] for row in FUNCTIONS.values() if row["layer"] == "MPI-IO" and not row["completes"]}


@pytest.mark.parametrize("profiling", [False, True], ids=["MPI", "PMPI"])
def test_every_large_count_form(profiling: bool, tmp_path: Path) -> None:
    """MPICH has them: the events are those of the forms with int counts."""
    flags = ["-DLARGE_COUNTS", *(["-DPROFILING"] if profiling else [])]
    check_all_calls(MPICH, flags, tmp_path)
    large = {name for name in undefined_symbols(build("all_mpi_calls.c", MPICH.cc, *flags)) if name.endswith("_c")}
    forms = {symbol for row in FUNCTIONS.values() if row["layer"] == "MPI-IO" for symbol in row["symbols"]}
    assert large == {form for form in forms if form.endswith("_c") and form.startswith("P") == profiling}


@pytest.mark.both_mpis
@pytest.mark.parametrize("profiling", [False, True], ids=["MPI", "PMPI"])
@pytest.mark.parametrize("mpi", [OPEN_MPI, MPICH], ids=lambda mpi: mpi.name)
def test_every_call_is_recorded_once(mpi: Mpi, profiling: bool, tmp_path: Path) -> None:
    check_all_calls(mpi, ["-DPROFILING"] if profiling else [], tmp_path)


def check_all_calls(mpi: Mpi, flags: list[str], tmp_path: Path) -> None:
    """Builds all_mpi_calls.c and compares what it does with what was recorded."""
    program = build("all_mpi_calls.c", mpi.cc, *flags)
    ranks = 2
    traced = ioweir_run(tmp_path / "trace", mpi.launch(ranks, program, tmp_path))
    trace = traced.trace
    assert trace.is_whole()
    path = f"{tmp_path}/all"
    for rank in range(ranks):
        events = [event for event in trace.events if event.rank == rank and event.layer == "MPI-IO"]
        assert all(event.path == path for event in events)
        assert totals(events, "name") == expected(rank)
    check_report(traced, path, ranks)
    assert not [row for row in traced.report["failures"] if row["short"]], "no status says less than was written"


def check_report(traced: Traced, path: str, ranks: int) -> None:
    """The file's data calls in the report."""
    row = report_of_file(traced.report, path)["MPI-IO"]
    assert (row["write"]["calls"], row["write"]["bytes"]) == (ranks * len(WRITES), ranks * sum(WRITES.values()))
    assert (row["read"]["calls"], row["read"]["bytes"]) == (ranks * len(READS), ranks * sum(READS.values()))


FORTRAN_COMPLETIONS: Final = Counter(
    [f"MPI_{way} (write)" for way in ("Wait", "Test", "Waitall", "Waitany", "Waitsome")]
    + [f"MPI_{way} (read)" for way in ("Testall", "Testany", "Testsome", "Wait", "Wait")]
)


@pytest.mark.one_of(2)
@pytest.mark.parametrize("interface", ["MPIF", "MPI", "MPI_F08"])
@pytest.mark.parametrize("mpi", [OPEN_MPI, MPICH], ids=lambda mpi: mpi.name)
def test_every_call_from_fortran(mpi: Mpi, interface: str, tmp_path: Path) -> None:
    """The bindings of both libraries lead every function of every family to one C entry that is hooked."""
    flags = ["-w", "-fallow-argument-mismatch", f"-DUSE_{interface}"]
    program = build("all_mpi_calls.F90", mpi.fortran, *flags)
    ranks = 2
    traced = ioweir_run(tmp_path / "trace", mpi.launch(ranks, program, tmp_path))
    assert traced.trace.is_whole()
    path = f"{tmp_path}/all"
    for rank in range(ranks):
        events = [event for event in traced.trace.events if event.rank == rank and event.layer == "MPI-IO"]
        assert all(event.path == path for event in events)
        calls = {name: sums for name, sums in expected(rank).items() if name.startswith("MPI_File_")}
        assert totals((e for e in events if e.name.startswith("MPI_File_")), "name") == calls
        ends = [event for event in events if not event.name.startswith("MPI_File_")]
        # Asking in vain may do a part of the work; then it names no operation.
        assert Counter(event.name for event in ends if event.offset >= 0) == FORTRAN_COMPLETIONS
    check_report(traced, path, ranks)
