"""HDF5 files under a plan that a name does not tell from others, and elements that a list does not tell.

Ranks that took each other's calls for those of another open would wait for each other for ever. Calls that were taken
for those of another file, or for other elements, would fill what was written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from test_hdf5_plan import by_mpi, run_with, same_content

if TYPE_CHECKING:
    from pathlib import Path

    from tracing import Mpi

TABLE = 'alignment = 4096, threshold = 1, hold_metadata = "16 MiB", chunks = "learn", fill = "never", transfer = "auto"'
REFUSED = "hdf5: the plan does not apply: some of the ranks have the file open already, in another way"


@by_mpi
def test_no_rank_waits(tmp_path: Path, mpi: Mpi) -> None:
    without = run_with(mpi, 3, tmp_path / "without", None, source="hdf5_open_twice.c")
    planned = run_with(mpi, 3, tmp_path / "planned", TABLE, source="hdf5_open_twice.c")
    assert planned.traced.out.count("done") == 3
    assert planned.notes().count(REFUSED) == 1
    # The file made before it, and the one made after it.
    assert sum("applied" in note for note in planned.notes()) >= 2
    for name in ("file.h5", "file.h5.other.h5"):
        same_content(without.path.with_name(name), planned.path.with_name(name))


@by_mpi
def test_no_rank_waits_where_one_opens_alone_what_all_have_open(tmp_path: Path, mpi: Mpi) -> None:
    without = run_with(mpi, 2, tmp_path / "without", None, "alone", source="hdf5_open_apart.c")
    planned = run_with(mpi, 2, tmp_path / "planned", TABLE, "alone", source="hdf5_open_apart.c")
    assert planned.traced.out.count("done") == 2
    assert planned.notes().count(REFUSED) == 1
    assert sum("applied" in note for note in planned.notes()) == 1
    # The plan goes on for all of them, after rank 1 has closed its own: nobody has written a part of "y".
    assert "hdf5: fill: y was filled where nobody had written" in planned.notes()
    same_content(without.path, planned.path)


@by_mpi
def test_files_of_one_name_in_two_folders_are_two(tmp_path: Path, mpi: Mpi) -> None:
    without = run_with(mpi, 2, tmp_path / "without", None, "folders", source="hdf5_open_apart.c")
    planned = run_with(mpi, 2, tmp_path / "planned", TABLE, "folders", source="hdf5_open_apart.c")
    assert planned.traced.out.count("done") == 2
    for name in ("a", "b"):
        same_content(without.path.with_name(name) / "same.h5", planned.path.with_name(name) / "same.h5")
    assert planned.notes().count("hdf5: fill: x was filled where nobody had written") == 2
    # Marks lie beside their files, wherever the program was when it closed them.
    assert not list(tmp_path.glob("**/*.ioweir-held"))


@by_mpi
def test_a_dataset_that_lies_in_a_mounted_file_is_filled_there(tmp_path: Path, mpi: Mpi) -> None:
    without = run_with(mpi, 2, tmp_path / "without", None, "mounted", source="hdf5_open_apart.c")
    planned = run_with(mpi, 2, tmp_path / "planned", TABLE, "mounted", source="hdf5_open_apart.c")
    assert planned.traced.out.count("done") == 2
    for name in ("file.h5", "file.h5.child.h5"):
        same_content(without.path.with_name(name), planned.path.with_name(name))
    # What lies in the file itself is filled later as ever.
    assert "hdf5: fill: x was filled where nobody had written" in planned.notes()


@by_mpi
def test_selections_that_were_moved_are_where_they_were_moved_to(tmp_path: Path, mpi: Mpi) -> None:
    without = run_with(mpi, 2, tmp_path / "without", None, "shifted", source="hdf5_open_apart.c")
    planned = run_with(mpi, 2, tmp_path / "planned", 'fill = "never"', "shifted", source="hdf5_open_apart.c")
    assert planned.notes().count("hdf5: fill: block was filled where nobody had written") == 1
    same_content(without.path, planned.path)
