"""Programs with ioweir linked in (libioweir_trace.a): the same exact events as with the preload, static programs too.

Open MPI has no archives on Debian, so its programs are linked with the shared library. MPICH's archive is linked into
a program with a shared C library, and with UCX's and hwloc's into a fully static one. programs/known.c and the figures
are test_exact.py's.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from test_exact import FORTIFIED, expected_mpi, expected_posix
from tracing import (
    IOWEIR,
    MPICH,
    OPEN_MPI,
    PROGRAMS,
    Event,
    Mpi,
    Recorded,
    build,
    ioweir_run,
    plain_environment,
    preload_library,
    run,
    totals,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

LIBRARIES: Final = Path("/usr/lib/x86_64-linux-gnu")
MPICH_HEADERS: Final = "-I/usr/include/x86_64-linux-gnu/mpich"
MPICH_ARCHIVE: Final = str(LIBRARIES / "libmpich.a")
SHARED_BELOW: Final = ("-lucp", "-luct", "-lucs", "-lucm", "-lhwloc", "-lm")
# UCX's parts register themselves in constructors that nothing refers to.
STATIC_BELOW: Final = (
    "-Wl,--whole-archive", "-luct", "-lucs", "-lucm", "-Wl,--no-whole-archive",
    "-Wl,--start-group", "-lucp", "-luct", "-lucs", "-lucm", "-lhwloc", "-lnuma", "-Wl,--end-group", "-lm",
)  # fmt: skip


@dataclass(frozen=True)
class Variant:
    """One way of linking a program with ioweir in it."""

    name: str
    mpi: Mpi
    words: tuple[str, ...]
    """The compiler and its flags; behind them comes the source."""
    options: tuple[str, ...] = ()
    """Of `ioweir link`; none: the flags of `ioweir env --link` are used instead."""
    libraries: tuple[str, ...] = ()
    static: bool = False
    interposing: bool = True


VARIANTS: Final = (
    Variant("openmpi-flags", OPEN_MPI, ("mpicc.openmpi",)),
    Variant("openmpi-pmpi", OPEN_MPI, ("mpicc.openmpi", "-DUSE_PMPI"), ("--mpi", "openmpi")),
    Variant("mpich-flags", MPICH, ("mpicc.mpich", *FORTIFIED)),
    Variant("mpich-wrapper", MPICH, ("mpicc.mpich",), ("--mpi", "mpich")),
    Variant(
        "mpich-archive", MPICH, ("gcc", MPICH_HEADERS), ("--mpi", "mpich"), (MPICH_ARCHIVE, *SHARED_BELOW),
        interposing=False,
    ),
    Variant(
        "mpich-static", MPICH, ("gcc", "-static", *FORTIFIED, MPICH_HEADERS, str(PROGRAMS / "no_udev.c")),
        ("--mpi", "mpich"), (MPICH_ARCHIVE, *STATIC_BELOW), static=True, interposing=False,
    ),
    Variant(
        "mpich-static-pmpi", MPICH, ("gcc", "-static", "-DUSE_PMPI", MPICH_HEADERS, str(PROGRAMS / "no_udev.c")),
        ("--mpi", "mpich"), (MPICH_ARCHIVE, *STATIC_BELOW), static=True, interposing=False,
    ),
)  # fmt: skip
needs_archives = pytest.mark.skipif(
    not all((LIBRARIES / name).exists() for name in ("libmpich.a", "libucp.a", "libhwloc.a", "libnuma.a")),
    reason="static MPI programs need Debian's archives of MPICH, UCX, hwloc and numa",
)


def link_flags(kind: str, *more: str) -> list[str]:
    return run([*IOWEIR, "env", "--link", "--mpi", kind, *more]).expect().out.split()


def compile_linked(words: Sequence[str | Path], *options: str) -> None:
    """`ioweir link OPTIONS -- WORDS`."""
    run([*IOWEIR, "link", *options, "--", *words]).expect()


def make(variant: Variant, source: str, target: Path) -> Path:
    """Programs/`source` with ioweir linked in."""
    compiler, *flags = variant.words
    words = [*flags, "-pthread", str(PROGRAMS / source), "-o", str(target), *variant.libraries]
    if variant.options:
        compile_linked([compiler, *words], *variant.options)
    else:
        run([compiler, *words, *link_flags(variant.mpi.name)]).expect()
    return target


@pytest.fixture(
    scope="module",
    params=[pytest.param(v, id=v.name, marks=needs_archives if v.libraries else ()) for v in VARIANTS],
)
def variant(request: pytest.FixtureRequest) -> Variant:
    value = request.param
    assert isinstance(value, Variant)
    return value


@pytest.fixture(scope="module")
def known_program(variant: Variant, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(variant, "known.c", tmp_path_factory.mktemp("linked") / "known")


def alone(command: Sequence[str | Path], directory: Path) -> Recorded:
    """The trace of a command that has IOWEIR_DIR in its environment and no preload."""
    directory.mkdir()
    finished = run(command, env={"IOWEIR_DIR": str(directory)}).expect()
    assert "ioweir" not in finished.err
    return Recorded.read(directory)


def check_known(trace: Recorded, data: Path, ranks: int) -> None:
    """Every call and byte of every rank, as in test_exact.py."""
    assert trace.is_whole()
    assert trace.ranks() == list(range(ranks))
    version = int((data / "failures.0").read_text(encoding="ascii").split()[2])
    own = {f"{data}/posix.shared", *(f"{data}/posix.{rank}" for rank in range(ranks))}
    for rank in range(ranks):
        events = [event for event in trace.under(data) if event.rank == rank]
        for expected, chosen in (
            (expected_posix(rank), [event for event in events if event.path in own]),
            (expected_mpi(rank, version), [event for event in events if event.layer == "MPI-IO"]),
        ):
            found = totals(chosen, "path", "name")
            assert {(path.removeprefix(f"{data}/"), name): sums for (path, name), sums in found.items()} == expected


def inner_calls(trace: Recorded, data: Path) -> dict[tuple[object, ...], tuple[int, int]]:
    """What MPI-IO does through POSIX: by rank, file, function, origin and the call around it."""
    inner: list[Event] = []
    around: dict[tuple[object, ...], tuple[int, int]] = {}
    for event in trace.under(data):
        parent = trace.parent_of(event)
        if parent is None:
            continue
        inner.append(event)
        key = (event.rank, event.path.removeprefix(str(data)), event.name, event.origin, parent.name)
        calls, moved = around.get(key, (0, 0))
        around[key] = (calls + 1, moved + event.bytes)
    assert inner
    return around


@pytest.mark.one_of(6)
def test_same_events_as_with_the_preload(variant: Variant, known_program: Path, tmp_path: Path) -> None:
    """The calls that the MPI library makes inside are the same too, whatever it is linked as."""
    data, reference = tmp_path / "data", tmp_path / "reference"
    data.mkdir()
    reference.mkdir()
    trace = alone(variant.mpi.launch(3, known_program, data), tmp_path / "trace")
    check_known(trace, data, 3)
    flags = [flag for flag in variant.words if flag == "-DUSE_PMPI"]
    plain = build("known.c", variant.mpi.cc, *flags)
    preloaded = ioweir_run(tmp_path / "preloaded", variant.mpi.launch(3, plain, reference)).trace
    assert inner_calls(trace, data) == inner_calls(preloaded, reference)
    assert sorted(path.name for path in data.iterdir()) == sorted(path.name for path in reference.iterdir())
    assert all(path.read_bytes() == (reference / path.name).read_bytes() for path in data.iterdir())


@pytest.mark.one_of(6)
def test_ioweir_run_traces_once(variant: Variant, known_program: Path, tmp_path: Path) -> None:
    """The preload reaches the ranks as well, but for static programs: one of the two records."""
    data = tmp_path / "data"
    data.mkdir()
    traced = ioweir_run(tmp_path / "trace", variant.mpi.launch(2, known_program, data))
    check_known(traced.trace, data, 2)
    assert len(traced.trace.ranks()) == 2
    assert traced.report["partial"] is False, traced.report["partial_reasons"]
    assert traced.report["ranks"] == 2
    assert "ioweir: " not in "\n".join(line for line in traced.err.splitlines() if "process" in line)


@pytest.mark.one_of(3)
def test_without_a_trace_directory_nothing_is_traced(variant: Variant, known_program: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    before = {path.name for path in tmp_path.iterdir()}
    finished = run(variant.mpi.launch(2, known_program, data), cwd=tmp_path).expect()
    assert "ioweir" not in finished.err
    assert {path.name for path in tmp_path.iterdir()} == before
    again, disabled = tmp_path / "again", tmp_path / "trace"
    again.mkdir()
    disabled.mkdir()
    run(variant.mpi.launch(1, known_program, again), env={"IOWEIR_DIR": str(disabled), "IOWEIR_DISABLE": "1"}).expect()
    assert list(disabled.iterdir()) == []


@pytest.mark.one_of(3)
def test_doctor_knows(variant: Variant, known_program: Path) -> None:
    finished = run([*IOWEIR, "doctor", "--", *variant.mpi.launch(2, known_program, "x")]).expect()
    assert "linked with ioweir" in finished.out
    assert "MPI-IO" in next(line for line in finished.out.splitlines() if line.startswith("Layers"))
    assert variant.static == ("static executable" in finished.out)


# ------------------------------------------------------------------------------------------- HDF5, PnetCDF and netCDF


@dataclass(frozen=True)
class LibraryProgram:
    """A program on a library, and what it is linked with."""

    source: str
    mpi: Mpi | None
    flags: tuple[str, ...]
    linked: tuple[str, ...]
    """The library in the program with ioweir linked in: an archive or not."""
    shared: tuple[str, ...]
    """The same library for the preload."""
    layer: str


BELOW_HDF5: Final = ("-lcrypto", "-lcurl", "-lsz", "-lz", "-ldl", "-lm")


def hdf5_of(kind: str, mpi: Mpi | None, static: bool) -> LibraryProgram:
    """programs/known_hdf5.c with an archive of HDF5, or the shared library."""
    archive = (str(LIBRARIES / f"libhdf5_{kind}.a"), *BELOW_HDF5)
    flags = (f"-I/usr/include/hdf5/{kind}", *(["-DPARALLEL"] if mpi else []))
    shared = (f"-lhdf5_{kind}",)
    return LibraryProgram("known_hdf5.c", mpi, flags, archive if static else shared, shared, "HDF5")


def pnetcdf_of(*linked: str) -> LibraryProgram:
    return LibraryProgram("known_pnetcdf.c", OPEN_MPI, (), linked, ("-lpnetcdf",), "PnetCDF")


LIBRARY_PROGRAMS: Final = {
    "hdf5-openmpi-archive": hdf5_of("openmpi", OPEN_MPI, static=True),
    "hdf5-openmpi-shared": hdf5_of("openmpi", OPEN_MPI, static=False),
    "hdf5-mpich-archive": hdf5_of("mpich", MPICH, static=True),
    "hdf5-serial-archive": hdf5_of("serial", None, static=True),
    "pnetcdf-archive": pnetcdf_of(str(LIBRARIES / "libpnetcdf.a"), "-lm"),
    "pnetcdf-shared": pnetcdf_of("-lpnetcdf"),
}


@pytest.fixture(scope="module", params=LIBRARY_PROGRAMS)
def library_program(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[LibraryProgram, Path]:
    program: LibraryProgram = LIBRARY_PROGRAMS[request.param]
    archives = [word for word in program.linked if word.endswith(".a")]
    if not all(Path(archive).exists() for archive in archives):
        pytest.skip(f"there is no {archives[0]}")
    target = tmp_path_factory.mktemp("library") / "program"
    compiler = program.mpi.cc if program.mpi else "gcc"
    options = ["--mpi", program.mpi.name if program.mpi else "none"]
    compile_linked([compiler, *program.flags, PROGRAMS / program.source, "-o", target, *program.linked], *options)
    return program, target


def of_layers(trace: Recorded, data: Path) -> dict[tuple[object, ...], tuple[int, int]]:
    """Calls and bytes by rank, file, layer, function, and the call around."""
    sums: dict[tuple[object, ...], tuple[int, int]] = {}
    for event in trace.under(data):
        if ".locktest." in event.path:
            continue  # Open MPI's: every rank tries to remove it, and one succeeds
        parent = trace.parent_of(event)
        around = parent.name if parent else ""
        key = (event.rank, event.path.removeprefix(str(data)), event.layer, event.name, event.failed, around)
        calls, moved = sums.get(key, (0, 0))
        sums[key] = (calls + 1, moved + event.bytes)
    return sums


@pytest.mark.one_of(6)
def test_library_calls_as_with_the_preload(library_program: tuple[LibraryProgram, Path], tmp_path: Path) -> None:
    """The program's calls, and below them the library's of MPI-IO and of the C library."""
    program, linked = library_program
    compiler = program.mpi.cc if program.mpi else "gcc"
    plain = build(program.source, compiler, *program.flags, libraries=[*program.shared])
    # As long as each other: an external link's path lies in the file.
    data, reference = tmp_path / "linked", tmp_path / "loaded"
    commands: dict[Path, list[str | Path]] = {}
    for folder, binary in ((data, linked), (reference, plain)):
        folder.mkdir()
        more = [] if program.mpi else [folder]
        commands[folder] = [binary, folder / "file", *more]
        if program.mpi:
            commands[folder] = [*program.mpi.launch(3, *commands[folder])]
    trace = alone(commands[data], tmp_path / "trace")
    preloaded = ioweir_run(tmp_path / "preloaded", commands[reference]).trace
    assert trace.is_whole()
    found = of_layers(trace, data)
    assert {key[2] for key in found} >= {program.layer, "POSIX", *(["MPI-IO"] if program.mpi else [])}
    assert sum(moved for key, (_, moved) in found.items() if key[2] == program.layer) > 0
    assert found == of_layers(preloaded, reference)
    written, expected = (data / "file").read_bytes(), (reference / "file").read_bytes()
    # HDF5 stores when an object was made: four bytes, and a checksum of those around them.
    changed = sum(a != b for a, b in zip(written, expected, strict=True))
    assert changed == 0 or (program.layer == "HDF5" and changed <= 16)


@pytest.mark.one_of(2)
def test_doctor_knows_the_libraries(library_program: tuple[LibraryProgram, Path]) -> None:
    program, linked = library_program
    finished = run([*IOWEIR, "doctor", "--", linked]).expect()
    assert f"{program.layer}: the program's own calls are traced by what is linked in" in finished.out
    assert "is linked statically" not in finished.out
    assert program.layer in next(line for line in finished.out.splitlines() if line.startswith("Layers"))


def symbols_of(program: Path) -> str:
    return subprocess.run(["nm", str(program)], capture_output=True, text=True, check=True).stdout


def test_flags_have_the_libraries_when_asked(tmp_path: Path) -> None:
    """Between the objects and the libraries; without --libraries they may stand anywhere."""
    source = PROGRAMS / "known_pnetcdf.c"
    flags = link_flags("openmpi", "--libraries")
    run([OPEN_MPI.cc, source, *flags, "-lpnetcdf", "-o", tmp_path / "with"]).expect()
    run([OPEN_MPI.cc, *link_flags("openmpi"), source, "-lpnetcdf", "-o", tmp_path / "without"]).expect()
    assert "__wrap_ncmpi_create" in symbols_of(tmp_path / "with")
    assert "__wrap_ncmpi" not in symbols_of(tmp_path / "without")


def test_programs_without_the_libraries_need_none_of_them(plain_program: Path) -> None:
    symbols = symbols_of(plain_program)
    assert "__wrap_pwrite" in symbols
    assert "__wrap_H5" not in symbols
    assert "__wrap_nc" not in symbols


# ------------------------------------------------------------------------------------------------- programs without MPI


@pytest.fixture(scope="module", params=["shared", "static", "static-pie"])
def plain_program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("plain") / "plain"
    flags = [] if request.param == "shared" else [f"-{request.param}"]
    compile_linked(["gcc", "-O1", "-pthread", *flags, PROGRAMS / "plain.c", "-o", target])
    return target


def written(trace: Recorded, data: Path) -> dict[str, tuple[int, int]]:
    events = [event for event in trace.under(data) if event.name in ("write", "pwrite")]
    return {path.removeprefix(f"{data}/"): sums for path, sums in totals(events, "path").items()}


@pytest.mark.parametrize(
    ("mode", "more", "expected"),
    [
        ("fork-exec", (), {"parent": (3, 30), "child": (5, 35)}),
        ("fork", ("_exit",), {"shared": (6, 44), "own": (3, 15)}),
        ("vfork", (), {"parent": (2, 20), "other": (1, 8), "child": (5, 35)}),
        ("spawn", (), {"parent": (2, 20), "spawned": (5, 35), "system": (2, 22), "popen": (1, 12)}),
        ("threads", (8, 100), {f"thread.{t}": (100, 100 * (1 + t)) for t in range(8)} | {"shared": (800, 3600)}),
        ("siglongjmp", (), {"main": (10, 40)}),
        ("reused", ("fclose",), {"file": (1, 9)}),
        ("reused", ("close_range",), {"file": (1, 9)}),
        ("late", (), {"data": (2, 15)}),
        ("cancel-stream", (), {"main": (1, 5)}),
    ],
)
def test_plain_programs(
    plain_program: Path, mode: str, more: tuple[object, ...], expected: dict[str, tuple[int, int]], tmp_path: Path
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    trace = alone([plain_program, mode, data, *map(str, more)], tmp_path / "trace")
    assert trace.is_whole()
    assert written(trace, data) == expected


@pytest.mark.one_of(2)
def test_killed_static_program(plain_program: Path, tmp_path: Path) -> None:
    data, trace = tmp_path / "data", tmp_path / "trace"
    data.mkdir()
    traced = ioweir_run(trace, [plain_program, "killed", data, "30000"], code=128 + 9)
    assert len([event for event in traced.trace.of(data / "data") if event.name == "pwrite"]) == 30_000
    assert traced.trace.is_whole()


def test_stripped_program(plain_program: Path, tmp_path: Path) -> None:
    data, stripped = tmp_path / "data", tmp_path / "stripped"
    data.mkdir()
    subprocess.run(["strip", "-o", str(stripped), str(plain_program)], check=True)
    assert written(alone([stripped, "writes", data, "7"], tmp_path / "trace"), data) == {"data": (7, 56)}
    assert "linked with ioweir" in run([*IOWEIR, "doctor", "--", stripped, "writes"]).expect().out


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become another user than the program's owner")
def test_a_program_with_other_rights_is_not_traced(tmp_path: Path) -> None:
    """The caller's IOWEIR_DIR must not make a setuid program write where the caller may not."""
    place = Path("/var/tmp") / f"ioweir-setuid-{tmp_path.name}"
    place.mkdir()
    try:
        program, trace, data = place / "plain", place / "trace", place / "data"
        trace.mkdir()
        data.mkdir()
        place.chmod(0o755)
        for folder in (trace, data):
            folder.chmod(0o777)
        os.chown(trace, 65534, 65534)  # a trace in a folder of somebody else's is not read
        compile_linked(["gcc", "-static", "-pthread", PROGRAMS / "plain.c", "-o", program])
        command: list[str | Path] = [
            "setpriv",
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
            program,
            "writes",
            data,
            "5",
        ]
        program.chmod(0o755)
        run(command, env={"IOWEIR_DIR": str(trace)}).expect()
        assert written(Recorded.read(trace), data) == {"data": (5, 40)}
        shutil.rmtree(trace)
        trace.mkdir()
        (data / "data").unlink()
        program.chmod(0o755 | stat.S_ISUID)
        run(command, env={"IOWEIR_DIR": str(trace)}).expect()
        assert (data / "data").stat().st_size == 40
        assert list(trace.iterdir()) == []
    finally:
        shutil.rmtree(place)


# --------------------------------------------------------------------------------------------------- compiler wrappers


def test_wrapper_scripts(tmp_path: Path) -> None:
    """`ioweir-mpicc` is mpicc: objects are its own, programs have ioweir in them, and it answers what mpicc answers."""
    wrapper = Path(sys.executable).parent / "ioweir-mpicc"
    source = PROGRAMS / "ranks.c"
    run([wrapper, "-c", source, "-o", tmp_path / "ranks.o"]).expect()
    symbols = subprocess.run(["nm", str(tmp_path / "ranks.o")], capture_output=True, text=True, check=True).stdout
    assert "ioweir" not in symbols
    run([wrapper, tmp_path / "ranks.o", "-pthread", "-o", tmp_path / "ranks"]).expect()
    assert "linked with ioweir" in run([*IOWEIR, "doctor", "--", tmp_path / "ranks"]).expect().out
    assert run([wrapper, "-show"]).out == run(["mpicc", "-show"]).out
    failed = run([wrapper, tmp_path / "missing.c"])
    assert failed.code == run(["mpicc", tmp_path / "missing.c"]).code != 0


@pytest.mark.parametrize("mpi", [OPEN_MPI, MPICH], ids=lambda mpi: mpi.name)
def test_fortran(mpi: Mpi, tmp_path: Path) -> None:
    """Fortran's bindings lie in libraries of the MPI, which call the C functions."""
    data, reference, program = tmp_path / "data", tmp_path / "reference", tmp_path / "known_fortran"
    data.mkdir()
    reference.mkdir()
    source = PROGRAMS / "known_fortran.F90"
    compile_linked([mpi.fortran, "-DUSE_MPI_F08", source, "-o", program])
    plain = build("known_fortran.F90", mpi.fortran, "-DUSE_MPI_F08")
    trace = alone(mpi.launch(2, program, data / "shared", data / "own"), tmp_path / "trace")
    preloaded = ioweir_run(tmp_path / "preloaded", mpi.launch(2, plain, reference / "shared", reference / "own")).trace

    def figures(recorded: Recorded, folder: Path) -> dict[object, tuple[int, int]]:
        found = totals((e for e in recorded.under(folder) if e.layer == "MPI-IO"), "rank", "path", "name")
        return {(rank, path.removeprefix(str(folder)), name): sums for (rank, path, name), sums in found.items()}

    assert figures(trace, data)
    assert figures(trace, data) == figures(preloaded, reference)


def test_errors(tmp_path: Path) -> None:
    unknown = run([*IOWEIR, "env", "--link", "--mpi", "lam"])
    assert unknown.code == 2
    assert "lam" in unknown.err
    assert "openmpi" in unknown.err
    no_mpicc = run([*IOWEIR, "env", "--link"], env={"PATH": str(tmp_path)})
    assert no_mpicc.code == 2
    assert "--mpi" in no_mpicc.err
    assert run([*IOWEIR, "env"]).code == 2
    assert run([*IOWEIR, "link", "--", "no-such-compiler", "a.c"]).code == 127
    assert plain_environment().get("LD_PRELOAD") is None
    assert preload_library().is_file()
