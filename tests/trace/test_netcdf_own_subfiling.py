"""Files that PnetCDF's own subfiling has written are read here, and ours are read by it. Debian's library is made
without it; the one that is made for MPICH has it, so that these are tests of `make test-long`.

Reading, PnetCDF 1.12.3 gives a rank only what lies in the subfile of its own group: what other groups have read for it
is dropped (ncmpio_subfile_getput_vars() receives into buffers of its own, and sends nothing back). So each rank reads
its own subfile's part there, and all of them together all of the array.
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


def own(folder: Path, ranks: int, *words: str, ends: int = 0) -> None:
    """The program with PnetCDF's own subfiling, without ioweir."""
    place = pnetcdf_library.build(conformance.CACHE, subfiling=True)
    program = build(SOURCE, MPICH.cc, libraries=[f"-L{place}", f"-Wl,-rpath,{place}", "-lpnetcdf"])
    run(MPICH.launch(ranks, program, *words), cwd=folder, env=HINTS).expect(ends)


def test_files_of_pnetcdf_are_read_here(tmp_path: Path) -> None:
    own(tmp_path, 2, FILE, "1")
    assert files(tmp_path) == sorted([FILE, *parts(SUBFILES)])
    for ranks in (1, 3):
        under(tmp_path, ranks, FILE, 1, "read", source=SOURCE)


def test_pnetcdf_reads_files_of_ours(tmp_path: Path) -> None:
    under(tmp_path, 3, FILE, 1, source=SOURCE, netcdf=f"subfiles = {SUBFILES}")
    assert files(tmp_path) == sorted([FILE, *parts(SUBFILES)])
    own(tmp_path, SUBFILES, FILE, "1", "own")
    own(
        tmp_path, SUBFILES, FILE, "1", "read", ends=1
    )  # what the library's reading cannot do, with its own files either


def test_what_pnetcdf_reads_of_its_own(tmp_path: Path) -> None:
    own(tmp_path, SUBFILES, FILE, "1")
    own(tmp_path, SUBFILES, FILE, "1", "own")
    own(tmp_path, SUBFILES, FILE, "1", "read", ends=1)
