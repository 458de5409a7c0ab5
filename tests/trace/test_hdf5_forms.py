"""Calls of HDF5 1.14 that older versions do not have: asynchronous ones, and those that move several datasets at once.

What a plan with `hdf5` changes must not depend on the form that a program uses. So the programs of test_hdf5_plan.py
and test_hdf5_objects.py are built once more with their calls replaced (programs/hdf5_forms.h): they must see the same
as without the table, and the notes must be those of the plain calls. Of several datasets in one call (hdf5_several.c)
the oracle is the program that moves them one by one, without the table.
Not here: the arguments of these calls (src/adapters/hdf5/call_test.cpp), their hooks (test_libraries.py).
"""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING, Final

import pytest
from test_hdf5_objects import CASES, TABLES, by_rank, notes, run_case
from test_hdf5_plan import Run, by_mpi, run_with, same_content
from tracing import OPEN_MPI, PROGRAMS, Mpi

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif("IOWEIR_TEST_HDF5" not in os.environ, reason="HDF5 1.14 is made in make test-long only")
ALL: Final = os.environ.get("IOWEIR_TEST_ALL") == "1"
FORMS: Final = {
    name: ("-include", str(PROGRAMS / "hdf5_forms.h"), f"-DFORM_{name.upper()}")
    for name in ("async", "events", "multi", "multi_events")
}
RANKS: Final = (1, 3, 4) if ALL else (3,)
by_form = pytest.mark.parametrize("form", FORMS)
by_ranks = pytest.mark.parametrize("ranks", RANKS)
EVERYTHING: Final = (
    'alignment = "32 KiB", threshold = 1024, hold_metadata = "16 MiB", metadata_block = "64 KiB", '
    'collective_metadata = "writes", fill = "never", chunks = "learn", istore_k = "auto", transfer = "auto"'
)


# ------------------------------------------------------------------------------------------- one dataset, other calls


@by_form
@by_mpi
@by_ranks
def test_a_plan_changes_the_same(tmp_path: Path, mpi: Mpi, form: str, ranks: int) -> None:
    words = ("blocks", "collective", "fill", "steps=4")
    flags = FORMS[form]
    without = run_with(mpi, ranks, tmp_path / "without", None, *words, flags=flags)
    plain = run_with(mpi, ranks, tmp_path / "plain", EVERYTHING, *words)
    planned = run_with(mpi, ranks, tmp_path / "planned", EVERYTHING, *words, flags=flags)
    assert planned.traced.out.count("done") == ranks
    same_content(without.path, planned.path)
    assert sorted(planned.notes()) == sorted(plain.notes()) != []  # in the order of processes
    assert planned.sets == plain.sets
    assert planned.path.read_bytes()[:96] == plain.path.read_bytes()[:96]
    assert planned.traced.trace.is_whole()
    assert not list(planned.path.parent.glob("*.ioweir-held"))


@by_form
@pytest.mark.parametrize("kind", ["mpio", "own"] if ALL else ["mpio"])
@pytest.mark.parametrize("case", CASES)
def test_a_program_sees_the_same(tmp_path: Path, case: str, kind: str, form: str) -> None:
    flags = FORMS[form]
    without = run_case(OPEN_MPI, tmp_path / "without", None, kind, case, flags=flags)
    for name in TABLES if ALL else ("files", "fill"):
        planned = run_case(OPEN_MPI, tmp_path / name, TABLES[name], kind, case, flags=flags)
        plain = run_case(OPEN_MPI, tmp_path / f"plain-{name}", TABLES[name], kind, case)
        assert by_rank(planned.out) == by_rank(without.out), name
        assert sorted(notes(planned)) == sorted(notes(plain)) != [], name
        assert not list((tmp_path / name).glob("*.ioweir-held"))
        for path in (tmp_path / "without").glob("file.h5*"):
            if path.suffix != ".raw":
                subprocess.run(["h5diff", path, tmp_path / name / path.name], check=True, timeout=60)


@pytest.mark.parametrize("form", ["async", "events"])
def test_calls_are_recorded(tmp_path: Path, form: str) -> None:
    """As many as of the plain calls, with the same bytes and files."""
    words = ("blocks", "collective", "fill", "steps=2")
    plain = run_with(OPEN_MPI, 3, tmp_path / "plain", None, *words)
    other = run_with(OPEN_MPI, 3, tmp_path / "other", None, *words, flags=FORMS[form])

    def calls(run: Run) -> list[tuple[str, str, int, int]]:
        events = [event for event in run.traced.trace.of(run.path) if event.layer == "HDF5"]
        names = [event.name.removesuffix("_async").rstrip("2") for event in events]
        return sorted((name, e.op, e.rank, e.bytes) for name, e in zip(names, events, strict=True))

    assert calls(other) == calls(plain)
    recorded = {event.name for event in other.traced.trace.events if event.layer == "HDF5"}
    assert recorded >= {"H5Fcreate_async", "H5Dcreate_async", "H5Dwrite_async", "H5Dread_async", "H5Fclose_async"}


# -------------------------------------------------------------------------------------- several datasets in one call


def one_by_one(mpi: Mpi, ranks: int, folder: Path, words: tuple[str, ...]) -> Run:
    """The oracle: independent calls, which each rank may make as it likes, but where HDF5 wants all ranks."""
    left_out = {"differently"} if "filter" in words else {"differently", "collective"}
    kept = [word for word in words if word not in left_out]
    return run_with(mpi, ranks, folder, None, "one-by-one", *kept, source="hdf5_several.c")


SEVERAL: Final = {
    "independent": ("half",),
    "together": ("collective", "half"),
    "chunked": ("collective", "chunked", "half"),
    "blocks": ("collective", "blocks", "steps=3"),
    "nothing": ("collective", "chunked", "half", "nothing", "straight"),
    "apart": ("collective", "chunked", "blocks", "apart"),
    "filtered": ("collective", "chunked", "filter", "half"),
    "differently": ("collective", "chunked", "half", "differently", "straight"),
    "fewer": ("collective", "chunked", "half", "differently", "fewer"),
    "one": ("collective", "sets=1", "half", "chunked"),
}
SEVERAL_TABLES: Final = {
    "fill": 'fill = "never"',
    "chunks": 'chunks = "learn", fill = "never", istore_k = "auto"',
    "memory": 'memory_shape = "file"',
    "independent": 'transfer = "independent", memory_shape = "file"',
    "auto": 'transfer = "auto", chunks = [64, 64], fill = "never"',
}


@by_mpi
@by_ranks
@pytest.mark.parametrize("words", SEVERAL)
def test_several_datasets_are_as_one_by_one(tmp_path: Path, mpi: Mpi, ranks: int, words: str) -> None:
    expected = one_by_one(mpi, ranks, tmp_path / "expected", SEVERAL[words])
    for name, table in SEVERAL_TABLES.items():
        planned = run_with(mpi, ranks, tmp_path / name, table, *SEVERAL[words], source="hdf5_several.c")
        # A rank names the datasets in its own order.
        assert sorted(planned.traced.out.splitlines()) == sorted(expected.traced.out.splitlines()), name
        assert planned.traced.out.count("done") == ranks
        assert planned.notes(), name
        same_content(expected.path, planned.path)


@by_mpi
def test_what_is_applied_to_several_datasets(tmp_path: Path, mpi: Mpi) -> None:
    def planned(name: str, table: str, *words: str) -> Run:
        return run_with(mpi, 3, tmp_path / name, table, *words, source="hdf5_several.c")

    learned = planned("learned", 'chunks = "learn"', "collective", "blocks", "sets=2")
    assert {name: about["chunks"] for name, about in learned.sets.items()} == {
        "step0-set0": None, "step0-set1": None, "step1-set0": [64, 64], "step1-set1": [64, 64],
    }  # fmt: skip
    filled = planned("filled", 'fill = "never"', "collective", "half")
    said = [note.split()[2] for note in filled.notes() if note.endswith("was filled where nobody had written")]
    assert said == [f"step{step}-set{number}" for step in range(2) for number in range(4)]
    # A call of 2 steps for writing and 2 for reading, on each of 3 ranks.
    alone = planned("alone", 'transfer = "independent"', "collective")
    said = [note for note in alone.notes() if "in another mode than the program's" in note]
    assert said == ["hdf5: transfers in another mode than the program's: 4"] * 3
    moved = {event.name for event in alone.events("MPI-IO", "write") if "H5Dwrite_multi" in alone.around(event)}
    assert moved
    assert not any("_all" in name for name in moved)
    shaped = planned("shaped", 'memory_shape = "file"', "collective", "chunked")
    shape = "hdf5: transfers with memory in the shape of the file's selection: 4"
    assert shaped.notes().count(shape) == 3
    apart = planned("apart", 'memory_shape = "file"', "collective", "chunked", "apart", "sets=4")
    # The dataset that is apart (3) is chunked: no rank's memory has the file's shape then.
    assert not [note for note in apart.notes() if "in the shape of" in note]
    # Every rank's part of each dataset is one piece.
    auto = planned("auto", 'transfer = "auto"', "collective")
    assert [note for note in auto.notes() if "in another mode than the program's: 4" in note]
