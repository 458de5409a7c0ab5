"""Every MPI-IO call is counted exactly once in Fortran 77, 90 and 2008 and in Python, under both MPIs.

The bindings go through different C entries (MPICH's f08 opens through PMPI_File_open and writes through
MPI_File_write_at_all, Open MPI's call PMPI_ names only), so a hook too few loses calls and one too many counts twice.
Python loads MPI with RTLD_LOCAL. The programs make the same calls; the figures are worked out here.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from tracing import (
    MPICH,
    OPEN_MPI,
    Mpi,
    Totals,
    Traced,
    build,
    ioweir_run,
    preloaded,
    report_of_file,
    run,
    totals,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

SYSTEM_PYTHON: Final = Path("/usr/bin/python3")
PLAIN_CALLS: Final = 1000

SHARED: Final[Totals] = {
    "MPI_File_open": (1, 0),
    "MPI_File_set_view": (1, 0),
    "MPI_File_write_at_all": (1, 120),
    "MPI_File_write_all": (1, 120),
    "MPI_File_read_at_all": (1, 80),
    "MPI_File_close": (1, 0),
}


def own(rank: int) -> Totals:
    """The figures of a rank's own file."""
    return {
        "MPI_File_open": (1, 0),
        "MPI_File_write_at": (2, 300 + rank + 10),
        "MPI_File_write": (1, 70),
        # both ask for more than there is
        "MPI_File_read_at": (2, 2 * (300 + rank)),
        "MPI_File_read": (1, 30),
        "MPI_File_read_all": (1, 31),
        "MPI_File_close": (1, 0),
    }


def check(traced: Traced, ranks: int, folder: Path) -> None:
    """Both files have exactly the figures above on every rank, and in the report."""
    trace = traced.trace
    assert trace.is_whole()
    assert trace.ranks() == list(range(ranks))
    for rank in range(ranks):
        events = [event for event in trace.events if event.rank == rank and event.layer == "MPI-IO"]
        assert totals((e for e in events if e.path == f"{folder}/shared"), "name") == SHARED
        assert totals((e for e in events if e.path == f"{folder}/own.{rank}"), "name") == own(rank)
        assert len(events) == sum(calls for calls, _ in (*SHARED.values(), *own(rank).values()))
        assert not any(event.failed or event.parent for event in events)
    row = report_of_file(traced.report, f"{folder}/shared")["MPI-IO"]
    assert (row["write"]["calls"], row["write"]["bytes"]) == (2 * ranks, 240 * ranks)
    assert (row["read"]["calls"], row["read"]["bytes"]) == (ranks, 80 * ranks)
    total = traced.report["layers"]["MPI-IO"]
    assert total["write"]["calls"] == 5 * ranks
    assert total["write"]["bytes"] == sum(240 + 310 + rank + 70 for rank in range(ranks))
    assert total["read"]["calls"] == 5 * ranks
    assert total["read"]["bytes"] == sum(80 + 2 * (300 + rank) + 61 for rank in range(ranks))


@pytest.mark.one_of(4)
@pytest.mark.parametrize("interface", ["MPIF", "MPI", "MPI_F08"])
def test_fortran(mpi: Mpi, ranks: int, interface: str, tmp_path: Path) -> None:
    program = build("known_fortran.F90", mpi.fortran, f"-DUSE_{interface}")
    command = mpi.launch(ranks, program, tmp_path / "shared", tmp_path / "own")
    check(ioweir_run(tmp_path / "trace", command), ranks, tmp_path)


def python_with(mpi: Mpi, folder: Path) -> tuple[Path, Mapping[str, str]]:
    """An interpreter whose mpi4py uses an MPI library, and the variables it needs."""
    if mpi is OPEN_MPI:
        return SYSTEM_PYTHON, {}
    # mpi4py's own build for MPICH asks for the name of the common ABI, which Debian's MPICH does not carry.
    libraries = folder / "abi"
    libraries.mkdir()
    listing = run(["ldconfig", "-p"], env={"PATH": "/usr/sbin:/sbin:/usr/bin:/bin"}).expect().out
    found = [line.split()[-1] for line in listing.splitlines() if line.strip().startswith("libmpich.so.12 ")]
    assert found, "libmpich.so.12 is not installed"
    (libraries / "libmpi.so.12").symlink_to(found[0])
    return Path(sys.executable), {"MPI4PY_MPIABI": "mpich", "LD_LIBRARY_PATH": str(libraries)}


@pytest.mark.one_of(2)
def test_mpi4py(mpi: Mpi, ranks: int, tmp_path: Path) -> None:
    python, variables = python_with(mpi, tmp_path)
    version = run([python, "-c", "from mpi4py import MPI; print(MPI.Get_library_version())"], env=variables).expect()
    assert ("MPICH" if mpi is MPICH else "Open MPI") in version.out
    script = Path(__file__).parent / "programs" / "known_mpi4py.py"
    command = mpi.launch(ranks, python, script, tmp_path / "shared", tmp_path / "own", tmp_path / "plain")
    traced = ioweir_run(tmp_path / "trace", command, env=variables)
    check(traced, ranks, tmp_path)
    for rank in range(ranks):
        plain = totals(traced.trace.of(tmp_path / f"plain.{rank}"), "rank", "name")
        assert plain[rank, "write"] == (rank + 2, PLAIN_CALLS * (rank + 2))
        assert plain[rank, "read"] == (1, 700)
        assert plain[rank, "open"] == (2, 0)
        assert plain[rank, "close"] == (2, 0)


@pytest.mark.parametrize("disabled", [False, True], ids=["traced", "disabled"])
def test_large_counts_where_the_library_has_none(disabled: bool, tmp_path: Path) -> None:
    """A program finds none. What is loaded later does, as the preload has the names, and may use it."""
    variables = {"IOWEIR_DISABLE": "1"} if disabled else {}
    program = build("weak_large_count.c", OPEN_MPI.cc)
    data, directory = tmp_path / "data", tmp_path / "trace"
    directory.mkdir()
    command = OPEN_MPI.launch(1, program, data)
    assert run(command).expect().out == "absent\n", "this library has large counts: test with an older one"
    assert preloaded(directory, command, env=variables).expect().out == "absent\n"

    library = build("weak_large_count.c", OPEN_MPI.cc, "-shared", "-fPIC", "-Dmain=run")
    loads = (
        "import ctypes, sys; w = (ctypes.c_char_p * 2)(b'', sys.argv[2].encode()); ctypes.CDLL(sys.argv[1]).run(2, w)"
    )
    traced = preloaded(directory, OPEN_MPI.launch(1, sys.executable, "-c", loads, library, data), env=variables)
    mpi_success, mpi_err_count = 0, 2
    assert traced.expect().out == f"{mpi_success} {mpi_err_count}\n"
    assert data.read_bytes() == b"large count"
    if not disabled:
        assert totals((e for e in traced.trace.events if e.op == "write"), "name")["MPI_File_write_at"] == (1, 11)
