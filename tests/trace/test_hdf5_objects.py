"""HDF5 programs that do unusual things under plans with `hdf5`: they must see the same as without, and leave the same.

The program (programs/hdf5_objects.c) says what it reads, which ids are left and what is told of errors; the oracle is
its own run under a rule without `hdf5`. Here, too: when the mark of held metadata goes, and threads.
Not here: what each key changes (test_hdf5_plan.py).
"""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING, Final

import pytest
from test_library_programs import hdf5_program
from tracing import IOWEIR, MPIS, OPEN_MPI, Mpi, Traced, ioweir_run, run

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

ALL: Final = os.environ.get("IOWEIR_TEST_ALL") == "1"
RANKS: Final = 3
CASES: Final = (
    "two-ids", "two-names", "references", "outlived-by-dataset", "outlived-by-group", "outlived-by-type",
    "outlived-by-attribute", "closed-with-objects", "close-is-refused", "mounted", "left-open", "closed-at-once",
    "nameless", "old-create", "copied", "moved", "extended", "fixed-then-extended", "of-odd-spaces", "of-odd-types",
    "of-odd-layouts", "partly-written", "written-in-pieces", "written-as-chunks", "shapes-apart",
    "counted-on", "failing",
)  # fmt: skip
HELD: Final = tuple(case for case in CASES[:11] if case != "mounted")
"""Those that can die before the file is closed."""
TABLES: Final = {
    "files": 'hold_metadata = "all", alignment = 4096, threshold = 1, collective_metadata = "writes", '
    'metadata_block = "64 KiB"',
    "datasets": 'chunks = "learn", fill = "never", transfer = "auto", istore_k = "auto"',
    "fill": 'fill = "never", hold_metadata = "1 MiB", transfer = "independent"',
    "chunks": 'chunks = [512], fill = "never", collective_metadata = "all"',
}
"""By themselves, where all is tested (IOWEIR_TEST_ALL=1)."""
TOGETHER: Final = {
    "learnt": f"{TABLES['files']}, {TABLES['datasets']}",
    "given": 'chunks = [512], fill = "never", hold_metadata = "1 MiB", transfer = "independent", '
    'collective_metadata = "all"',
}
"""The same keys in two tables, for each day."""


def run_case(
    mpi: Mpi,
    folder: Path,
    table: str | None,
    *words: str,
    code: int | None = 0,
    flags: Sequence[str] = (),
    source: str = "hdf5_objects.c",
) -> Traced:
    folder.mkdir()
    plan = folder / "plan.toml"
    plan.write_text('[[file]]\nmatch = "*.h5*"\n' + ("" if table is None else f"hdf5 = {{ {table} }}\n"))
    program = hdf5_program(source, mpi.name, mpi.cc, *flags)
    command = mpi.launch(RANKS, program, folder / "file.h5", *words)
    return ioweir_run(folder / "trace", command, options=["--plan", plan], code=code)


def by_rank(out: str) -> list[str]:
    """What each rank says, in its order."""
    return sorted(out.splitlines(), key=lambda line: line.split(maxsplit=1)[0])


def notes(traced: Traced) -> list[str]:
    return [note["text"] for note in traced.trace.notes if note["text"].startswith("hdf5:")]


@pytest.mark.one_of(18)
@pytest.mark.parametrize("kind", ["mpio", "own"])
@pytest.mark.parametrize("case", CASES)
def test_a_program_sees_the_same(tmp_path: Path, case: str, kind: str) -> None:
    without = run_case(OPEN_MPI, tmp_path / "without", None, kind, case)
    for name, table in (TABLES if ALL else TOGETHER).items():
        if kind == "own" and name == "given" and not ALL:
            continue
        planned = run_case(OPEN_MPI, tmp_path / name, table, kind, case)
        assert by_rank(planned.out) == by_rank(without.out), name
        assert notes(planned)
        assert not list((tmp_path / name).glob("*.ioweir-held"))
        for path in (tmp_path / "without").glob("file.h5*"):
            if path.suffix != ".raw":
                subprocess.run(["h5diff", path, tmp_path / name / path.name], check=True, timeout=60)


@pytest.mark.parametrize("mpi", MPIS, ids=lambda mpi: mpi.name)
def test_memory_gets_the_files_shape_on_all_ranks_or_on_none(tmp_path: Path, mpi: Mpi) -> None:
    """Of four calls two (dataset "a") are such that all ranks may have it, one of which moves nothing."""
    without = run_case(mpi, tmp_path / "without", None, "mpio", "shapes-apart")
    planned = run_case(mpi, tmp_path / "planned", 'memory_shape = "file"', "mpio", "shapes-apart")
    assert by_rank(planned.out) == by_rank(without.out)
    said = "hdf5: transfers with memory in the shape of the file's selection: "
    assert [note.partition(said)[2] for note in notes(planned) if said in note] == ["1", "1"] * RANKS
    subprocess.run(["h5diff", tmp_path / "without" / "file.h5", tmp_path / "planned" / "file.h5"], check=True)


@pytest.mark.one_of(8)
@pytest.mark.parametrize("mpi", MPIS if ALL else (OPEN_MPI,), ids=lambda mpi: mpi.name)
@pytest.mark.parametrize("kind", ["mpio", "own"])
@pytest.mark.parametrize("case", HELD)
def test_a_mark_stays_until_hdf5_has_closed_the_file(tmp_path: Path, mpi: Mpi, case: str, kind: str) -> None:
    # With a weak close degree that is not when the program closes its last id of the file.
    died = run_case(mpi, tmp_path / "died", 'hold_metadata = "all"', kind, case, "die", code=None)
    assert died.code != 0
    paths = [tmp_path / "died" / (f"file.h5.{rank}" if kind == "own" else "file.h5") for rank in range(RANKS)]
    for path in paths:
        assert path.with_name(path.name + ".ioweir-held").exists()
        checked = run([*IOWEIR, "check", path])
        assert (checked.code, "metadata" in checked.out) == (1, True)


@pytest.mark.parametrize("mpi", MPIS, ids=lambda mpi: mpi.name)
def test_what_nobody_has_written_has_the_fill_value(tmp_path: Path, mpi: Mpi) -> None:
    planned = run_case(mpi, tmp_path / "planned", 'fill = "never"', "mpio", "partly-written")
    said = [note.split()[2] for note in notes(planned) if note.endswith("was filled where nobody had written")]
    assert said == ["b", "c", "d", "f", "h", "i", "j", "l"]


@pytest.mark.parametrize("mpi", MPIS, ids=lambda mpi: mpi.name)
def test_of_a_large_box_it_is_known_what_was_written(tmp_path: Path, mpi: Mpi) -> None:
    """Without blocks in H5Sselect_hyperslab HDF5 lists 81,920 blocks of one element each."""
    without, planned = (
        run_case(mpi, tmp_path / name, table, source="hdf5_boxes.c")
        for name, table in (("without", None), ("planned", 'fill = "never"'))
    )
    assert without.code == planned.code == 0
    assert [note for note in notes(planned) if "fill:" in note] == [
        "hdf5: fill: some was filled where nobody had written"
    ]
    subprocess.run(["h5diff", tmp_path / "without" / "file.h5", tmp_path / "planned" / "file.h5"], check=True)


def test_fill_values_that_other_calls_count_on(tmp_path: Path) -> None:
    """A write of one member, a write that fails, and a read by way of a virtual dataset in another file."""
    without = run_case(OPEN_MPI, tmp_path / "without", None, "own", "counted-on")
    planned = run_case(OPEN_MPI, tmp_path / "planned", 'fill = "never"', "own", "counted-on")
    assert by_rank(planned.out) == by_rank(without.out)
    assert "0 pair: -1 5" in planned.out.splitlines()
    reason = "its elements have members, which may be written one by one"
    assert f"hdf5: fill: pairs is filled when it is made: {reason}" in notes(planned)


def test_what_stays_filled_and_why(tmp_path: Path) -> None:
    said = {
        "extended": "hdf5: fill: a is filled when it is made: it can grow",
        "nameless": "hdf5: fill: a dataset is filled when it is made: it has no name",
    }
    for case, note in said.items():
        assert note in notes(run_case(OPEN_MPI, tmp_path / case, 'fill = "never"', "mpio", case))


def test_threads_in_a_thread_safe_hdf5(tmp_path: Path) -> None:
    program = hdf5_program("hdf5_threads.c", "serial", OPEN_MPI.cc, "-pthread")
    plan = tmp_path / "plan.toml"
    table = 'hold_metadata = "all", chunks = "learn", fill = "never", alignment = 4096'
    plan.write_text(f'[[file]]\nmatch = "*.h5*"\nhdf5 = {{ {table} }}\n')
    command = OPEN_MPI.launch(1, program, tmp_path / "file.h5", "8", "25")
    traced = ioweir_run(tmp_path / "trace", command, options=["--plan", plan])
    if "not thread-safe" in traced.out:
        pytest.skip("the serial HDF5 here is not thread-safe")
    assert traced.out == "done\n"
    assert not list(tmp_path.glob("*.ioweir-held"))
    listed = run(["h5ls", tmp_path / "file.h5"]).expect().out
    assert listed.count("Dataset {4096}") == 8 * 25
