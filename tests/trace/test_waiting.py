"""Waiting in MPI outside of I/O: long calls are events of a layer of their own, short ones leave nothing."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from generator.spec import load
from ioweir.base import locate
from ioweir.base.spec_names import LAYER_WORDS, WAITING
from tracing import FUNCTIONS, MPICH, Mpi, build, ioweir_run, preloaded

if TYPE_CHECKING:
    from tracing import Event, Traced

ROOT: Final = Path(__file__).resolve().parents[2]
LATE_NS: Final = 20_000_000
"""Rank 0 is late by 30 ms each time; the others may be late themselves."""
LEAST_NS: Final = 10_000
SHORT_CALLS: Final = 2000


def waits_of(traced: Traced, rank: int) -> dict[str, list[Event]]:
    found: dict[str, list[Event]] = {}
    for event in traced.trace.waits:
        if event.rank == rank:
            found.setdefault(event.name, []).append(event)
    return found


@pytest.mark.parametrize("profiling", [False, True], ids=["MPI", "PMPI"])
def test_who_waits_long_is_recorded(mpi: Mpi, profiling: bool, tmp_path: Path) -> None:
    program = build("waiting.c", mpi.cc, *(["-DPROFILING"] if profiling else []))
    traced = ioweir_run(tmp_path / "trace", mpi.launch(2, program, tmp_path / "file"))
    assert traced.trace.is_whole()
    waits = waits_of(traced, 1)
    for name in ("MPI_Barrier", "MPI_Recv", "MPI_Wait"):
        assert [event for event in waits[name] if event.duration_ns >= LATE_NS], name
    # What waits inside of MPI-IO is MPI-IO's time, and what is short leaves nothing but now and then.
    inside = {traced.trace.parent_of(event) for event in traced.trace.waits}
    assert inside == {None}
    assert all(event.duration_ns >= 0.99 * LEAST_NS for event in traced.trace.waits)
    assert len(waits.get("MPI_Allreduce", [])) < SHORT_CALLS / 10
    assert {event.path for event in traced.trace.waits} == {""}
    layers = traced.report["layers"]
    assert layers[WAITING]["wait"]["calls"] == len(traced.trace.waits)
    assert traced.report["io"]["mpi_waiting_s"] >= 3 * LATE_NS / 2e9


def test_the_fortran_bindings_arrive(mpi: Mpi, tmp_path: Path) -> None:
    program = build("waiting.f90", mpi.fortran)
    waits = waits_of(ioweir_run(tmp_path / "trace", mpi.launch(2, program)), 1)
    for name in ("MPI_Barrier", "MPI_Bcast"):
        assert [event for event in waits[name] if event.duration_ns >= LATE_NS], name


def test_the_layer_can_be_switched_off(mpi: Mpi, tmp_path: Path) -> None:
    program = build("waiting.c", mpi.cc)
    words = ",".join(word for word, name in LAYER_WORDS.items() if name != WAITING)
    traced = ioweir_run(tmp_path / "trace", mpi.launch(2, program, tmp_path / "file"), options=["--layers", words])
    assert not traced.trace.waits
    assert WAITING not in traced.report["layers_recorded"]
    assert [event for event in traced.trace.events if event.name == "MPI_File_write_at_all"]


def test_behind_another_tool_a_wait_counts_once(mpi: Mpi, tmp_path: Path) -> None:
    """Its MPI_X is behind our hook, and the PMPI_X that it goes on to is our hook again."""
    program = build("waiting.c", mpi.cc)
    tool = build("waiting_tool.c", mpi.cc, "-shared", "-fPIC")
    (tmp_path / "trace").mkdir()
    traced = preloaded(tmp_path / "trace", mpi.launch(2, program, tmp_path / "file"), after=tool)
    traced.expect()
    waits = waits_of(traced, 1)
    for name in ("MPI_Barrier", "MPI_Recv"):
        assert len([event for event in waits[name] if event.duration_ns >= LATE_NS]) == 1, name


def test_the_table_knows_the_arguments_of_every_function() -> None:
    """Against MPICH's header, which has the large counts of MPI 4."""
    includes = subprocess.run([MPICH.cc, "-show"], capture_output=True, text=True, check=True).stdout
    (folder,) = {
        word[2:] for word in includes.split() if word.startswith("-I") and Path(word[2:], "mpi_proto.h").exists()
    }
    text = Path(folder, "mpi_proto.h").read_text(encoding="utf-8")
    given = {found[1]: len(found[2].split(",")) for found in re.finditer(r"int\s+(MPI_\w+)\(([^;()]*?)\)", text)}
    for function in load(ROOT / "spec").waits:
        for form in function.forms:
            assert given[f"MPI_{form}"] == function.arguments, form
    assert {row["name"] for row in FUNCTIONS.values() if row["layer"] == WAITING} == {
        function.name for function in load(ROOT / "spec").waits
    }


@pytest.mark.parametrize("library", ["openmpi", "mpich"])
def test_a_short_call_costs_two_readings_of_the_clock_and_a_comparison(library: str) -> None:
    """Counted in the machine code: no call but the real one, no lock, and few instructions besides."""
    back_end = preload_folder() / f"libioweir_{library}.so"
    code = disassembled(back_end, "traced_MPI_BarrierEm")
    hot = code[: next(at for at, line in enumerate(code) if line.split()[0].startswith("ret")) + 1]
    words = [line.split()[0] for line in hot]
    assert words.count("rdtsc") == 2
    assert len([word for word in words if word.startswith("call")]) == 1
    assert not [line for line in hot if "lock" in line.split()]
    assert len(words) <= 40, hot


def preload_folder() -> Path:
    library = locate.preload_library()
    assert library is not None
    return library.parent


def disassembled(library: Path, part: str) -> list[str]:
    """The instructions of the function whose mangled name holds `part`."""
    listing = subprocess.run(
        ["objdump", "-d", "--no-show-raw-insn", str(library)], capture_output=True, text=True, check=True
    ).stdout
    for block in listing.split("\n\n"):
        head, _, body = block.partition("\n")
        if part in head:
            return [line.split("\t", 1)[1].strip() for line in body.splitlines() if "\t" in line]
    raise AssertionError(f"{library.name} has no symbol {part}")
