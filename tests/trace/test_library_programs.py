"""Programs on Debian's HDF5, PnetCDF and netCDF: which calls are recorded, with which bytes, and what lies below them.

Each program of programs/ says beside its calls how many bytes they move; the figures here are those. The libraries are
the parallel and serial ones of the distribution; MPICH has HDF5 only (PnetCDF and netCDF are built for Open MPI).
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import time
from collections import Counter
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from tracing import BUILD, MPICH, OPEN_MPI, PROGRAMS, TIMEOUT_S, Event, Mpi, Recorded, build, ioweir_run, run, totals

if TYPE_CHECKING:
    from collections.abc import Iterable

PYTHON: Final = "/usr/bin/python3"
"""Debian's: it has the h5py that is built for its parallel HDF5."""


@cache
def library_directory() -> Path:
    """Where the distribution's libraries lie. Example: /usr/lib/x86_64-linux-gnu."""
    triplet = subprocess.run(["gcc", "-print-multiarch"], capture_output=True, text=True, check=True).stdout.strip()
    return Path("/usr/lib") / triplet


def hdf5_program(source: str, kind: str, compiler: str, *flags: str) -> Path:
    """A program built against the HDF5 of one kind: serial, openmpi or mpich.

    Debian's; a parallel one is another if IOWEIR_TEST_HDF5 names its directory (tests/conformance/hdf5_library.py).
    """
    other = os.environ.get("IOWEIR_TEST_HDF5")
    if other and kind != "serial":
        prefix = Path(other) / kind
        rpath = f"-Wl,-rpath,{prefix}/lib"
        return build(source, compiler, *flags, f"-I{prefix}/include", f"-L{prefix}/lib", rpath, libraries=["-lhdf5"])
    return build(source, compiler, *flags, f"-I/usr/include/hdf5/{kind}", libraries=[f"-lhdf5_{kind}"])


def fortran_program(source: str, mpi: Mpi | None, include: str, *libraries: str) -> Path:
    """A Fortran program; without MPI when none is given."""
    BUILD.mkdir(parents=True, exist_ok=True)
    return build(
        source, mpi.fortran if mpi else "gfortran", f"-I{include}", libraries=[f"-l{name}" for name in libraries]
    )


def of_rank(events: Iterable[Event], rank: int) -> list[Event]:
    """The events of one rank."""
    return [event for event in events if event.rank == rank]


def ancestors(recorded: Recorded, event: Event) -> list[Event]:
    """The calls around an event, the innermost first."""
    result = []
    around = recorded.parent_of(event)
    while around is not None:
        result.append(around)
        around = recorded.parent_of(around)
    return result


def expect_chain(recorded: Recorded, path: Path, layers: list[str]) -> None:
    """Below the layers given, outermost first, every POSIX data call on a file lies in exactly these calls."""
    data = [e for e in recorded.of(path) if e.layer == "POSIX" and e.op in {"read", "write"}]
    assert data
    for event in data:
        above = [outer.layer for outer in reversed(ancestors(recorded, event))]
        assert above == [layer for layer in layers if layer in above], f"{event.name} lies in {above}"
        assert above[:1] == layers[:1], f"{event.name} lies in {above}"
        (innermost, *_) = ancestors(recorded, event)
        assert innermost.start_ns <= event.start_ns
        assert event.end_ns <= innermost.end_ns


# ---------------------------------------------------------------------------------------------------------------- HDF5

HDF5_CALLS: Final = {
    "H5Fcreate": (1, 0), "H5Dcreate2": (1, 0), "H5Dwrite": (1, 8000), "H5Acreate2": (1, 0), "H5Awrite": (1, 0),
    "H5Aclose": (1, 0), "H5Fflush": (1, 0), "H5Dclose": (2, 0), "H5Fclose": (2, 0), "H5Fopen": (1, 0),
    "H5Dopen2": (1, 0),
}  # fmt: skip


@pytest.mark.parametrize("ranks", [1, 3])
def test_hdf5_over_mpi(tmp_path: Path, mpi: Mpi, ranks: int) -> None:
    program = hdf5_program("known_hdf5.c", mpi.name, mpi.cc, "-DPARALLEL")
    path = tmp_path / "file.h5"
    traced = ioweir_run(tmp_path / "trace", mpi.launch(ranks, program, path))
    recorded = traced.trace
    assert recorded.is_whole()
    for rank in range(ranks):
        hdf5 = [e for e in of_rank(recorded.of(path), rank) if e.layer == "HDF5"]
        assert totals(hdf5, "name") == HDF5_CALLS | {"H5Dread": (2, 4000 + ranks * 8000)}
        assert not any(e.failed or e.parent for e in hdf5)
        (write,) = [e for e in hdf5 if e.name == "H5Dwrite"]
        below = [e for e in of_rank(recorded.of(path), rank) if recorded.parent_of(e) == write and e.op == "write"]
        assert [(e.name, e.bytes) for e in below] == [("MPI_File_write_at_all", 8000)]
    expect_chain(recorded, path, ["HDF5", "MPI-IO"])
    layers = traced.report["layers"]
    assert layers["HDF5"]["write"]["bytes"] == ranks * 8000
    assert layers["HDF5"]["read"]["bytes"] == ranks * (4000 + ranks * 8000)
    assert layers["HDF5"]["write"]["calls"] == ranks


def test_hdf5_without_mpi(tmp_path: Path) -> None:
    program = hdf5_program("known_hdf5.c", "serial", "gcc")
    path = tmp_path / "file.h5"
    traced = ioweir_run(tmp_path / "trace", [program, path, tmp_path])
    assert traced.err == ""
    recorded = traced.trace
    hdf5 = [e for e in recorded.events if e.layer == "HDF5"]
    assert totals([e for e in hdf5 if e.path == str(path)], "name") == HDF5_CALLS | {"H5Dread": (2, 12000)}
    inner, outer = str(tmp_path / "inner.h5"), str(tmp_path / "outer.h5")
    # The dataset that an external link of outer.h5 leads to lies in inner.h5.
    assert totals([e for e in hdf5 if e.path == inner], "name") == {
        "H5Fcreate": (1, 0), "H5Dcreate2": (1, 0), "H5Dwrite": (1, 240), "H5Dwrite_chunk": (1, 120),
        "H5Dflush": (1, 0), "H5Dread_chunk": (1, 120), "H5Dclose": (1, 0), "H5Fclose": (1, 0), "H5Dopen2": (1, 0),
        "H5Dread": (2, 8 + 16), "H5Idec_ref": (1, 0),
    }  # fmt: skip
    assert totals([e for e in hdf5 if e.path == outer], "name") == {
        "H5Fcreate": (1, 0), "H5Gcreate2": (1, 0), "H5Lexists": (1, 0), "H5Fclose": (2, 0), "H5Gclose": (1, 0),
        "H5Tcommit2": (1, 0), "H5Topen2": (1, 0), "H5Tclose": (1, 0),
    }  # fmt: skip
    failed = [e for e in hdf5 if e.failed]
    assert [(e.name, e.path, e.bytes, e.error) for e in sorted(failed, key=lambda e: e.seq)] == [
        ("H5Dread", "", 0, -1),
        ("H5Fopen", "/nonexistent/file.h5", 0, -1),
    ]
    assert all(e.origin == "application" for e in recorded.events)
    expect_chain(recorded, path, ["HDF5"])


def test_hdf5_error_stack_and_output_are_the_same_traced(tmp_path: Path) -> None:
    # A failing call prints its stack: nothing that ioweir asks may add to it, or take from it.
    program = build_inline(
        tmp_path, "#include <hdf5.h>\nint main(void) { hid_t s = H5Screate(H5S_SCALAR); H5Dclose(12345); int x = 0;"
        " H5Dread(s, H5T_NATIVE_INT, 7, 8, 0, &x); H5Dwrite(-1, -1, -1, -1, -1, 0); return (int)H5Eget_num(0); }",
    )  # fmt: skip
    plain = run([program])
    traced = ioweir_run(tmp_path / "trace", [program], code=None)
    assert plain.err.count("HDF5-DIAG") == 3
    assert (traced.code, mask_threads(traced.err)) == (plain.code, mask_threads(plain.err))
    assert sorted(e.name for e in traced.trace.events if e.layer == "HDF5") == ["H5Dclose", "H5Dread", "H5Dwrite"]


def mask_threads(text: str) -> str:
    """Without the numbers that differ from run to run."""
    return "".join(c for c in text if not c.isdigit())


def build_inline(directory: Path, text: str) -> Path:
    """A serial HDF5 program."""
    source, program = directory / "text.c", directory / "program"
    source.write_text(text)
    subprocess.run(
        ["gcc", "-o", program, source, "-I/usr/include/hdf5/serial", "-lhdf5_serial"], check=True, timeout=TIMEOUT_S
    )
    return program


def test_h5py_under_mpi(tmp_path: Path) -> None:
    ranks = 2
    path = tmp_path / "file.h5"
    traced = ioweir_run(tmp_path / "trace", OPEN_MPI.launch(ranks, PYTHON, PROGRAMS / "known_h5py.py", path))
    recorded = traced.trace
    for rank in range(ranks):
        moved = [e for e in of_rank(recorded.of(path), rank) if e.layer == "HDF5" and e.op in {"read", "write"}]
        assert [(e.name, e.bytes) for e in moved] == [("H5Dwrite", 4000), ("H5Dwrite", 800), ("H5Dread", 4000)]
    expect_chain(recorded, path, ["HDF5", "MPI-IO"])


def test_hdf5_from_fortran(tmp_path: Path) -> None:
    ranks = 2
    libraries = ("hdf5_openmpi_fortran", "hdf5_openmpi")
    program = fortran_program("known_fortran_hdf5.F90", OPEN_MPI, "/usr/include/hdf5/openmpi", *libraries)
    path = tmp_path / "file.h5"
    recorded = ioweir_run(tmp_path / "trace", OPEN_MPI.launch(ranks, program, path)).trace
    for rank in range(ranks):
        hdf5 = [e for e in of_rank(recorded.of(path), rank) if e.layer == "HDF5"]
        assert totals(hdf5, "name") == {
            "H5Fcreate": (1, 0), "H5Dcreate2": (1, 0), "H5Dwrite": (1, 8000), "H5Dread": (1, 8000), "H5Dclose": (1, 0),
            "H5Fclose": (1, 0),
        }  # fmt: skip
    expect_chain(recorded, path, ["HDF5", "MPI-IO"])


# ------------------------------------------------------------------------------------------------------------- PnetCDF


def test_pnetcdf(tmp_path: Path) -> None:
    ranks = 3
    program = build("known_pnetcdf.c", OPEN_MPI.cc, libraries=["-lpnetcdf"])
    path = tmp_path / "file.nc"
    traced = ioweir_run(tmp_path / "trace", OPEN_MPI.launch(ranks, program, path))
    recorded = traced.trace
    assert recorded.is_whole()
    for rank in range(ranks):
        mine = [e for e in of_rank(recorded.of(path), rank) if e.layer == "PnetCDF"]
        assert totals(mine, "name") == {
            "ncmpi_create": (1, 0), "ncmpi_def_dim": (2, 0), "ncmpi_def_var": (3, 0), "ncmpi_put_att_text": (1, 0),
            "ncmpi_put_att": (1, 0), "ncmpi_enddef": (1, 0), "ncmpi_put_vara_all": (2, 1600),
            "ncmpi_put_vars_all": (1, 100), "ncmpi_begin_indep_data": (1, 0), "ncmpi_put_var1": (1, 8),
            "ncmpi_get_vara": (1, 800), "ncmpi_end_indep_data": (1, 0), "ncmpi_iput_vara": (2, 1200),
            "ncmpi_wait_all (write)": (1, 0), "ncmpi_iget_vara": (1, 800), "ncmpi_wait_all (read)": (1, 0),
            "ncmpi_put_varn_all": (1, 120), "ncmpi_get_var_all": (1, 800 * ranks), "ncmpi_get_vara_all": (1, 100),
            "ncmpi_mget_vara_all": (1, 120), "ncmpi_sync": (1, 0), "ncmpi_close": (1, 0),
        }  # fmt: skip
        assert not any(e.failed or e.parent for e in mine)
        # What was begun is named by what completes it, and moves through MPI-IO then.
        began = {e.name: e.seq for e in reversed(mine) if e.name in {"ncmpi_iput_vara", "ncmpi_iget_vara"}}
        for kind, begun, moved in (("write", "ncmpi_iput_vara", 1200), ("read", "ncmpi_iget_vara", 800)):
            (completion,) = [e for e in mine if e.name == f"ncmpi_wait_all ({kind})"]
            assert completion.offset == began[begun]
            below = [e for e in of_rank(recorded.of(path), rank) if recorded.parent_of(e) == completion]
            # Rank 0 also writes how many records there are, by itself.
            assert sum(e.bytes for e in below if e.op == kind and e.name.endswith("_all")) == moved
    layers = traced.report["layers"]["PnetCDF"]
    assert layers["write"]["bytes"] == ranks * (1600 + 100 + 8 + 1200 + 120)
    assert layers["write"]["calls"] == ranks * 7  # completions are no calls
    assert layers["read"]["bytes"] == ranks * (800 + 800 + 800 * ranks + 100 + 120)
    expect_chain(recorded, path, ["PnetCDF", "MPI-IO"])


def test_pnetcdf_from_fortran(tmp_path: Path) -> None:
    ranks = 2
    modules = library_directory() / "fortran" / "gfortran-mod-15"
    program = fortran_program("known_fortran_pnetcdf.F90", OPEN_MPI, str(modules), "pnetcdf")
    path = tmp_path / "file.nc"
    recorded = ioweir_run(tmp_path / "trace", OPEN_MPI.launch(ranks, program, path)).trace
    for rank in range(ranks):
        mine = [e for e in of_rank(recorded.of(path), rank) if e.layer == "PnetCDF"]
        assert totals(mine, "name") == {
            "ncmpi_create": (1, 0), "ncmpi_def_dim": (1, 0), "ncmpi_def_var": (2, 0), "ncmpi_enddef": (1, 0),
            "ncmpi_put_vara_all": (2, 1200), "ncmpi_get_vara_all": (1, 800), "ncmpi_close": (1, 0),
        }  # fmt: skip


# -------------------------------------------------------------------------------------------------------------- netCDF

NETCDF4_CALLS: Final = {
    "nc_def_dim": (1, 0), "nc_def_var": (2, 0), "nc_def_grp": (1, 0), "nc_enddef": (1, 0), "nc_put_vara": (2, 1200),
    "nc_get_vara": (1, 800), "nc_close": (1, 0),
}  # fmt: skip
CLASSIC_CALLS: Final = {
    "nc_create": (1, 0), "nc_def_dim": (2, 0), "nc_def_var": (3, 0), "nc_put_att_text": (1, 0), "nc_enddef": (1, 0),
    "nc_put_var": (3, 240 + 30), "nc_put_vara": (1, 120), "nc_put_var1": (1, 4), "nc_get_vars": (1, 80),
    "nc_get_var": (1, 180), "nc_sync": (1, 0), "nc_close": (1, 0),
}  # fmt: skip


def expect_netcdf(recorded: Recorded, path: Path, classic: Path, create: str, rank: int) -> None:
    """The calls of known_netcdf.c."""
    mine = [e for e in of_rank(recorded.of(path), rank) if e.layer == "netCDF"]
    assert totals(mine, "name") == NETCDF4_CALLS | {create: (1, 0)}
    # Each access of netCDF-4 is one of HDF5, of the same bytes.
    for event in mine:
        if event.op in {"read", "write"}:
            below = [e for e in recorded.events if recorded.parent_of(e) == event and e.op == event.op]
            assert [(e.layer, e.bytes) for e in below] == [("HDF5", event.bytes)]
    if rank <= 0:
        events = [e for e in recorded.of(classic) if e.layer == "netCDF"]
        assert totals(events, "name") == CLASSIC_CALLS
        assert [(e.name, e.error) for e in events if e.failed] == [("nc_put_var", -49)]  # NC_ENOTVAR
        expect_chain(recorded, classic, ["netCDF"])


def test_netcdf_over_mpi(tmp_path: Path) -> None:
    ranks = 2
    directory = library_directory() / "netcdf" / "mpi" / "include"
    program = build("known_netcdf.c", OPEN_MPI.cc, "-DPARALLEL", f"-I{directory}", libraries=["-lnetcdf_mpi"])
    path, classic = tmp_path / "four.nc", tmp_path / "three.nc"
    traced = ioweir_run(tmp_path / "trace", OPEN_MPI.launch(ranks, program, path, classic))
    for rank in range(ranks):
        expect_netcdf(traced.trace, path, classic, "nc_create_par", rank)
    expect_chain(traced.trace, path, ["netCDF", "HDF5", "MPI-IO"])
    layers = traced.report["layers"]
    assert layers["netCDF"]["write"]["bytes"] == ranks * 1200 + 240 + 30 + 120 + 4
    assert layers["HDF5"]["write"]["bytes"] == ranks * 1200


def test_netcdf_without_mpi(tmp_path: Path) -> None:
    program = build("known_netcdf.c", "gcc", libraries=["-lnetcdf"])
    path, classic = tmp_path / "four.nc", tmp_path / "three.nc"
    traced = ioweir_run(tmp_path / "trace", [program, path, classic])
    expect_netcdf(traced.trace, path, classic, "nc_create", -1)
    expect_chain(traced.trace, path, ["netCDF", "HDF5"])


def test_netcdf_from_fortran(tmp_path: Path) -> None:
    program = fortran_program("known_fortran_netcdf.F90", None, "/usr/include", "netcdff", "netcdf")
    path = tmp_path / "file.nc"
    recorded = ioweir_run(tmp_path / "trace", [program, path]).trace
    assert totals([e for e in recorded.of(path) if e.layer == "netCDF"], "name") == {
        "nc_create": (1, 0), "nc_def_dim": (1, 0), "nc_def_var": (1, 0), "nc_put_vara": (1, 800),
        "nc_get_vara": (1, 720), "nc_close": (1, 0),
    }  # fmt: skip
    expect_chain(recorded, path, ["netCDF", "HDF5"])


def test_a_program_with_two_hdf5_libraries(tmp_path: Path) -> None:
    # Serial netCDF brings serial HDF5; the program itself has a parallel one. Their symbols differ in version only.
    text = """#include <hdf5.h>
    #include <netcdf.h>
    int main(int argc, char** argv) {
        int file, dim, x;
        double values[10] = {1, 2, 3};
        hsize_t ten = 10;
        hid_t own = H5Fcreate(argv[1], H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
        hid_t space = H5Screate_simple(1, &ten, NULL);
        if (nc_create(argv[2], NC_NETCDF4, &file) || nc_def_dim(file, "x", 10, &dim)) return 1;
        hid_t set = H5Dcreate2(own, "x", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        if (nc_def_var(file, "x", NC_DOUBLE, 1, &dim, &x) || nc_put_var_double(file, x, values)) return 2;
        if (H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0) return 3;
        if (nc_close(file) || H5Dclose(set) < 0 || H5Fclose(own) < 0) return 4;
        return 0;
    }"""
    source, program = tmp_path / "both.c", tmp_path / "both"
    source.write_text(text)
    subprocess.run(
        [OPEN_MPI.cc, "-o", program, source, "-I/usr/include/hdf5/openmpi", "-lhdf5_openmpi", "-lnetcdf"],
        check=True, timeout=TIMEOUT_S,
    )  # fmt: skip
    own, other = tmp_path / "own.h5", tmp_path / "other.nc"
    recorded = ioweir_run(tmp_path / "trace", [program, own, other]).trace
    assert [e.bytes for e in recorded.of(own) if e.name == "H5Dwrite"] == [80]
    (inner,) = [e for e in recorded.of(other) if e.name == "H5Dwrite"]
    assert [e.name for e in ancestors(recorded, inner)] == ["nc_put_var"]
    for path in (own, other):
        look = "import h5py, sys; print(h5py.File(sys.argv[1])['x'][:4].tolist())"
        assert run([PYTHON, "-c", look, path]).expect().out == "[1.0, 2.0, 3.0, 0.0]\n"


# ------------------------------------------------------------------------------------- data sieving (RIOT, figure 6)

RANKS: Final = 2
SEGMENTS: Final = 128
PIECE: Final = 16384
BUFFER: Final = 524288
"""ROMIO's ind_wr_buffer_size, which is the size of its read-modify-writes."""


@dataclass(frozen=True)
class Sieved:
    """One MPI_File_write* call and what lies below it, in order."""

    call: Event
    below: list[Event]

    def of(self, op: str) -> list[Event]:
        """What lies below, of one kind."""
        return [event for event in self.below if event.op == op]


def sieved_writes(recorded: Recorded, path: Path) -> list[Sieved]:
    """The large collective writes of HDF5's, with their POSIX calls."""
    events = recorded.of(path)
    calls = [e for e in events if e.layer == "MPI-IO" and e.op == "write" and e.bytes == SEGMENTS * PIECE]
    return [Sieved(call, [e for e in events if recorded.parent_of(e) == call]) for call in calls]


def test_hdf5_through_data_sieving_shows_locks_and_read_modify_writes(tmp_path: Path) -> None:
    path, go = tmp_path / "file.h5", tmp_path / "go"
    times = 2
    held_s = 0.2

    def hold_the_lock(process: subprocess.Popen[str]) -> None:
        """Holds the file until a rank waits for it, and then some time more."""
        deadline = time.monotonic() + TIMEOUT_S / 2
        while not path.exists() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        with path.open("r+b") as file:
            fcntl.lockf(file, fcntl.LOCK_EX)
            go.touch()
            inode = f":{path.stat().st_ino} "
            while process.poll() is None and time.monotonic() < deadline:
                lines = Path("/proc/locks").read_text().splitlines()
                if any(inode in line and "->" in line for line in lines):
                    break
                time.sleep(0.01)
            time.sleep(held_s)

    program = hdf5_program("hdf5_sieving.c", "mpich", MPICH.cc)
    command = MPICH.launch(RANKS, program, path, "enable", str(SEGMENTS), str(times), go)
    traced = ioweir_run(tmp_path / "trace", command, started=hold_the_lock)
    recorded = traced.trace
    writes = sieved_writes(recorded, path)
    assert Counter(write.call.rank for write in writes) == dict.fromkeys(range(RANKS), times)
    for number, write in enumerate(sorted(writes, key=lambda w: w.call.start_ns)):
        hdf5 = recorded.parent_of(write.call)
        assert hdf5 is not None
        assert hdf5.name == "H5Dwrite"
        (lock,), (unlock,) = write.of("lock"), write.of("unlock")
        # One lock a call, over the whole extent from first to last byte.
        first_to_last = (SEGMENTS - 1) * RANKS * PIECE + PIECE
        assert (lock.bytes, unlock.bytes) == (first_to_last, first_to_last)
        assert (unlock.offset, write.below[0], write.below[-1]) == (lock.offset, lock, unlock)
        # Within it, reads and writes of the same buffers take turns; only the last may be shorter.
        reads, rewrites = write.of("read"), write.of("write")
        if number >= RANKS:  # in the first round the file is shorter than what is read, and the rest asked for again
            assert [(e.offset, e.bytes) for e in reads] == [(e.offset, e.bytes) for e in rewrites]
            assert [e.op for e in write.below[1:-1]] == ["read", "write"] * len(reads)
        assert {e.offset for e in rewrites} <= {e.offset for e in reads}
        assert all(e.bytes == BUFFER for e in rewrites[:-1])
        assert 0 < rewrites[-1].bytes <= BUFFER
        assert rewrites[0].offset == lock.offset
        assert rewrites[-1].offset + rewrites[-1].bytes == lock.offset + lock.bytes
    # Nobody's part overlaps with another's: whoever waits goes on after the other's unlock has begun.
    holdings = sorted((w.of("lock")[0].end_ns, w.of("unlock")[0].start_ns) for w in writes)
    for (_, released), (taken, _) in pairwise(holdings):
        assert taken >= released
    # The waiting is seen, at the call that waits and in the report.
    waits = [lock.duration_ns / 1e9 for write in writes for lock in write.of("lock")]
    assert max(waits) >= held_s
    reported = traced.report["layers"]["POSIX"]["lock"]
    assert reported["time_s"] >= sum(waits) * 0.999


def test_hdf5_without_data_sieving_shows_neither(tmp_path: Path) -> None:
    path = tmp_path / "file.h5"
    program = hdf5_program("hdf5_sieving.c", "mpich", MPICH.cc)
    traced = ioweir_run(tmp_path / "trace", MPICH.launch(RANKS, program, path, "disable", str(SEGMENTS), "1"))
    writes = sieved_writes(traced.trace, path)
    assert len(writes) == RANKS
    for write in writes:
        assert {event.op for event in write.below} == {"write"}
        assert sum(event.bytes for event in write.below) == SEGMENTS * PIECE
        assert len(write.below) == SEGMENTS
    assert "lock" not in traced.report["layers"]["POSIX"] or not traced.report["layers"]["POSIX"]["lock"]["calls"]
