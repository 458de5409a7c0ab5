"""Files that PnetCDF's own subfiling has written are read here. Debian's library is made without it; the one that is
made for MPICH has it, so that this is a test of `make test-long`.

Not the other way round: PnetCDF 1.12.3 reads zeros back from the file that it has written itself in this test.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import conformance
import pnetcdf_library
import pytest
from netcdf_subfiling import BY_MPICH, FILE, files, parts, under
from tracing import MPICH, build, run

if TYPE_CHECKING:
    from pathlib import Path

SOURCE: Final = "netcdf_full.c"
SUBFILES: Final = 2
HINTS: Final = {"PNETCDF_HINTS": f"pnetcdf_subfiling=enable;nc_num_subfiles={SUBFILES}"}

pytestmark = pytest.mark.skipif(not BY_MPICH, reason="a PnetCDF with subfiling is made in make test-long only")


def own(folder: Path, ranks: int, *words: str) -> None:
    """The program with PnetCDF's own subfiling, without ioweir."""
    place = pnetcdf_library.build(conformance.CACHE, subfiling=True)
    program = build(SOURCE, MPICH.cc, libraries=[f"-L{place}", f"-Wl,-rpath,{place}", "-lpnetcdf"])
    run(MPICH.launch(ranks, program, *words), cwd=folder, env=HINTS).expect()


def test_files_of_pnetcdf_are_read_here(tmp_path: Path) -> None:
    own(tmp_path, 2, FILE, "1")
    assert files(tmp_path) == sorted([FILE, *parts(SUBFILES)])
    for ranks in (1, 3):
        under(tmp_path, ranks, FILE, 1, "read", source=SOURCE)
