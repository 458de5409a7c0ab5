"""Call sites: the lines of C, C++, Fortran and Python programs that made the calls, under both MPIs.

The programs mark the lines ("LINE name"); the figures are worked out from what stands there.
"""

from __future__ import annotations

import re
import shutil
import sys
from typing import TYPE_CHECKING, Any, Final

import pytest
from ioweir.base.compiled import compiled
from ioweir.programs import symbols
from ioweir.trace import load
from ioweir.trace.callsites import Resolver, shown
from tracing import OPEN_MPI, PROGRAMS, Mpi, build, ioweir_run, node_files, preloaded

if TYPE_CHECKING:
    from pathlib import Path

RANKS: Final = 2
# Code without frame pointers, at addresses that are not known before; at fixed addresses; unoptimised.
FLAGS: Final = {
    "O2": ("-O2", "-fomit-frame-pointer", "-fPIE", "-pie"),
    "no-pie": ("-O1", "-fno-pie", "-no-pie"),
    "O0": ("-O0",),
}
CXX: Final = {"openmpi": "mpicxx.openmpi", "mpich": "mpicxx.mpich"}


def line_of(source: str, mark: str) -> int:
    """The number of the line that bears a mark."""
    lines = (PROGRAMS / source).read_text().splitlines()
    (number,) = [at for at, line in enumerate(lines, 1) if re.search(rf"LINE {mark}\b", line)]
    return number


def figures(report: dict[str, Any], source: str) -> dict[tuple[str, str, int], tuple[int, int]]:
    """(layer, operation, line) -> calls and bytes, of the data calls made from a source file."""
    return {
        (row["layer"], row["op"], row["line"]): (row["calls"], row["bytes"])
        for row in report["call_sites"]
        if row["op"] in ("read", "write") and row["file"] is not None and row["file"].endswith(f"/{source}")
    }


def functions(report: dict[str, Any], source: str) -> dict[int, set[str]]:
    """line -> the functions that are said to hold it."""
    found: dict[int, set[str]] = {}
    for row in report["call_sites"]:
        if row["file"] is not None and row["file"].endswith(f"/{source}"):
            found.setdefault(row["line"], set()).add(row["function"])
    return found


@pytest.mark.one_of(2)
@pytest.mark.parametrize("flags", FLAGS.values(), ids=FLAGS)
def test_lines_of_a_c_program(mpi: Mpi, flags: tuple[str, ...], tmp_path: Path) -> None:
    program = build("sites.c", mpi.cc, *flags)
    traced = ioweir_run(tmp_path / "t", mpi.launch(RANKS, program, tmp_path), options=("--callsites",))
    dump, inlined = line_of("sites.c", "dump"), line_of("sites.c", "inlined")
    checkpoint, collective = line_of("sites.c", "checkpoint"), line_of("sites.c", "collective")
    found = figures(traced.report, "sites.c")
    # The POSIX calls inside of MPI-IO calls belong to the same lines; which ranks make them is up to the MPI library.
    inside = {key: found.pop(key) for key in list(found) if key[0] == "POSIX" and key[2] in (checkpoint, collective)}
    assert found == {
        ("POSIX", "write", dump): (RANKS * 7, RANKS * 700),
        ("POSIX", "read", inlined): (RANKS, RANKS * 50),
        ("MPI-IO", "write", checkpoint): (RANKS * 2, RANKS * 2000),
        ("MPI-IO", "write", collective): (RANKS * 2, RANKS * 20),
    }
    assert inside["POSIX", "write", checkpoint][1] == RANKS * 2000
    names = functions(traced.report, "sites.c")
    assert names[dump] == {"dump"}
    assert names[inlined] == {"compiled_in_place"}
    assert names[checkpoint] == names[collective] == {"checkpoint"}
    assert names[line_of("sites.c", "open")] == {"main"}
    # One line, two calls of dump: two chains, whose next frames are lines of main.
    (row,) = [row for row in traced.report["call_sites"] if row["line"] == dump]
    callers = {chain[1]["line"] for chain in row["chains"] if chain[1]["function"] == "main"}
    assert len(callers) == 2
    assert f"dump at sites.c:{dump}" in row["where"]


def test_lines_of_a_cpp_program(mpi: Mpi, tmp_path: Path) -> None:
    program = build("sites.cpp", CXX[mpi.name], "-O2")
    traced = ioweir_run(tmp_path / "t", mpi.launch(RANKS, program, tmp_path), options=("--callsites",))
    dump, checkpoint = line_of("sites.cpp", "dump"), line_of("sites.cpp", "checkpoint")
    found = figures(traced.report, "sites.cpp")
    assert found["POSIX", "write", dump] == (RANKS * 5, RANKS * 5 * 128)
    assert found["MPI-IO", "write", checkpoint] == (RANKS, RANKS * 128)
    names = functions(traced.report, "sites.cpp")
    assert all("solver::Writer<double>::put" in name for name in names[dump])
    assert all("solver::checkpoint" in name for name in names[checkpoint])


@pytest.mark.one_of(2)
@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_lines_of_a_fortran_program(mpi: Mpi, level: str, tmp_path: Path) -> None:
    program = build("sites.F90", mpi.fortran, level)
    traced = ioweir_run(tmp_path / "t", mpi.launch(RANKS, program, tmp_path), options=("--callsites",))
    checkpoint = line_of("sites.F90", "checkpoint")
    assert figures(traced.report, "sites.F90")["MPI-IO", "write", checkpoint] == (RANKS * 3, RANKS * 3 * 500)
    assert all("write_field" in name for name in functions(traced.report, "sites.F90")[checkpoint])


def test_every_way_to_resolve_addresses_says_the_same(mpi: Mpi, tmp_path: Path) -> None:
    tools = [path for name in symbols.TOOLS if (path := shutil.which(name))]
    assert tools, "addr2line comes with the compiler"
    programs = [
        build("sites.c", mpi.cc, *FLAGS["O2"]),
        build("sites.cpp", CXX[mpi.name], "-O0"),
        build("sites.F90", mpi.fortran, "-O0"),
    ]
    for number, program in enumerate(programs):
        directory = tmp_path / str(number)
        ioweir_run(directory, mpi.launch(1, program, tmp_path), options=("--callsites",))
        trace = load(directory)
        frames = {frame for site in trace.sites for frame in site}
        found: list[list[tuple[str | None, int | None] | None]] = []
        for tool in (*tools, None):
            resolver = Resolver(trace.modules, frames, tool)
            assert not resolver.changed
            calls = [shown(resolver.calls(site)) for site in trace.sites]
            found.append([(call.location.file, call.location.line) if call else None for call in calls])
        assert all(places == found[0] for places in found)
        assert sum(place is not None and place[1] is not None for place in found[0]) >= 3


def test_a_killed_program_has_its_call_sites(tmp_path: Path) -> None:
    program = build("plain.c", "cc", libraries=("-lpthread",))
    traced = ioweir_run(tmp_path / "t", ["sh", "-c", f"{program} write {tmp_path} f 5 10; kill -9 $$"],
                        options=("--callsites",), code=137)  # fmt: skip
    rows = [row for row in traced.report["call_sites"] if row["op"] == "write"]
    assert [(row["function"], row["calls"]) for row in rows] == [("put", 5)]


def test_a_program_that_changed_is_said_and_not_guessed_about(tmp_path: Path) -> None:
    original = build("plain.c", "cc", libraries=("-lpthread",))
    program = tmp_path / "program"
    shutil.copy(original, program)
    traced = ioweir_run(tmp_path / "t", [program, "write", tmp_path, "f", "5", "10"], options=("--callsites",))
    shutil.copy(build("sites.c", "mpicc.mpich", "-O0"), program)
    rows = [row for row in traced.report["call_sites"] if row["op"] == "write"]
    assert [(row["function"], row["line"], row["module"]) for row in rows] == [(None, None, str(program))]
    assert any(f"{program} are addresses only" in message for message in traced.report["messages"])


def sites_of(directory: Path) -> list[int]:
    """The call site of every event."""
    columns = compiled().read_traces([str(path) for path in node_files(directory)])
    return [int(site) for site in columns.site]


@pytest.mark.parametrize(
    ("mode", "functions_of_writes"),
    [
        (("threads", "8", "50"), {"writer"}),
        (("short-threads",), {"put"}),
        (("fork", "exit"), {"put"}),
        (("signals", "300"), None),
    ],
    ids=["threads", "short-threads", "fork", "signals"],
)
def test_every_event_of_threads_forks_and_handlers_has_a_site(
    mode: tuple[str, ...], functions_of_writes: set[str] | None, tmp_path: Path
) -> None:
    program = build("plain.c", "cc", libraries=("-lpthread",))
    (tmp_path / "t").mkdir()
    command: list[str | Path] = [program, mode[0], tmp_path, *mode[1:]]
    traced = preloaded(tmp_path / "t", command, env={"IOWEIR_CALLSITES": "1"})
    traced.expect()
    assert traced.trace.is_whole()
    sites = sites_of(tmp_path / "t")
    assert sites
    assert all(sites)
    if functions_of_writes is not None:
        rows = [row for row in traced.report["call_sites"] if row["op"] == "write"]
        assert {row["function"] for row in rows} == functions_of_writes


def test_without_the_option_there_are_none(mpi: Mpi, tmp_path: Path) -> None:
    program = build("sites.c", mpi.cc, *FLAGS["O2"])
    traced = ioweir_run(tmp_path / "t", mpi.launch(1, program, tmp_path))
    assert traced.report["call_sites"] == []
    assert not any(sites_of(tmp_path / "t"))


@pytest.mark.one_of(2)
@pytest.mark.parametrize("threads", [False, True], ids=["one-thread", "threads"])
def test_lines_of_a_python_program(threads: bool, tmp_path: Path) -> None:
    """mpi4py and os.write give Python's lock away: with other Python threads about, the line is not asked for."""
    script = PROGRAMS / "python_lines.py"
    command = OPEN_MPI.launch(RANKS, sys.executable, script, tmp_path / "data", *(["threads"] if threads else []))
    traced = ioweir_run(tmp_path / "t", command, options=("--callsites",))
    together, alone = line_of(script.name, "together"), line_of(script.name, "alone")
    # What MPI-IO calls make of themselves is left out, and the reads of the import.
    found = {
        key: sums
        for key, sums in figures(traced.report, script.name).items()
        if key[1] == "write" and not (key[0] == "POSIX" and key[2] in (together, alone))
    }
    expected = {
        ("POSIX", "write", line_of(script.name, "dump")): (RANKS * 5, RANKS * 500),
        ("POSIX", "write", line_of(script.name, "direct")): (RANKS, RANKS * 30),
        ("MPI-IO", "write", together): (RANKS, RANKS * 1000),
        ("MPI-IO", "write", alone): (RANKS * 3, RANKS * 30),
    }
    assert found == ({} if threads else expected)
    if not threads:
        (row,) = [row for row in traced.report["call_sites"] if row["line"] == line_of(script.name, "dump")]
        assert row["where"] == f"{script.name}:{row['line']}"
        assert row["file"] == str(script)
