"""HDF5 files that some of the ranks have open already, in another way, when all ranks open them under a plan.

Ranks that took each other's calls for those of another open would wait for each other for ever.
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
