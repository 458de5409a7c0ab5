"""HDF5's testpar on 3 ranks: that of this Debian release, and that of the next one (1.14) on a library built for it.

Not here: building that library (hdf5_library.py), running, comparing.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import hdf5_library
from conformance_case import DATA, Case, compiled
from conformance_fetch import debian_source

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance_case import Library

LIMIT_S: Final = 300.0
RANKS: Final = 3  # more than two, and no power of two
HELPERS: Final = {"t_cache_image": ("cache_common", "genall5")}
TESTPHDF5: Final = (
    "testphdf5", "t_dset", "t_file", "t_file_image", "t_mdset", "t_ph5basic", "t_coll_chunk", "t_span_tree",
    "t_chunk_alloc", "t_filter_read", "t_prop",
)  # fmt: skip
NEXT: Final = "trixie"
"""The Debian release that has HDF5 1.14."""


@dataclass(frozen=True)
class Release:
    """The programs of one version of HDF5."""

    suite: str
    names: tuple[str, ...]
    testphdf5: tuple[str, ...]
    """Its sources."""
    not_run: Mapping[str, str]


RELEASE_1_10: Final = Release(
    "hdf5",
    (
        "t_mpi", "testphdf5", "t_cache", "t_pread", "t_pshutdown", "t_prestart", "t_init_term", "t_shapesame",
        "t_filters_parallel", "t_bigio", "t_cache_image",
    ),
    (*TESTPHDF5, "t_coll_md_read"),
    {
        "t_prestart": "reads the file that another program leaves",
        "t_bigio": "needs files of 8 GiB and more",
        "t_cache_image": "takes longer than the limit by itself",
    },
)  # fmt: skip
RELEASE_1_14: Final = Release(
    "hdf5-1.14",
    (
        "t_mpi", "testphdf5", "t_cache", "t_pread", "t_pshutdown", "t_init_term", "t_shapesame", "t_filters_parallel",
        "t_pmulti_dset", "t_select_io_dset", "t_2Gio",
    ),
    (*TESTPHDF5, "t_coll_md", "t_oflush"),
    {"t_2Gio": "needs files of 2 GiB and more for each of its tests"},
)  # fmt: skip


def hdf5(cache: Path, library: Library) -> list[Case]:
    """Against Debian's parallel HDF5 of the MPI library."""
    folder = next(Path("/usr/lib").glob(f"*/hdf5/{library.name}"), Path("/usr/lib"))
    return _cases(RELEASE_1_10, cache, library, Path("/usr/include/hdf5") / library.name, folder)


def hdf5_1_14(cache: Path, library: Library) -> list[Case]:
    """Against the library that hdf5_library.py builds."""
    place = hdf5_library.build(cache, NEXT) / library.name
    return _cases(RELEASE_1_14, cache, library, place / "include", place / "lib", NEXT)


def _cases(
    release: Release, cache: Path, library: Library, headers: Path, libraries: Path, of_debian: str = ""
) -> list[Case]:
    if library.name == "openmpi-romio":
        return []
    top = debian_source("hdf5", cache, of_debian)
    built = cache / "built" / library.name / release.suite
    built.mkdir(parents=True, exist_ok=True)
    # What its configure would write.
    (built / "H5srcdir_str.h").write_text(f'#define config_srcdir "{top / "test"}"\n', encoding="utf-8")
    flags = [f"-I{path}" for path in (built, headers, top / "src", top / "test", top / "testpar")]
    linked = [f"-L{libraries}", *([f"-Wl,-rpath,{libraries}"] if of_debian else []), "-lhdf5", "-lm"]
    cases = []
    for name in release.names:
        parts = release.testphdf5 if name == "testphdf5" else (name,)
        sources = [top / "testpar" / f"{part}.c" for part in parts]
        sources += [top / "test" / f"{helper}.c" for helper in ("h5test", "testframe", *HELPERS.get(name, ()))]
        target = built / name
        wrong = release.not_run.get(name) or compiled(library, sources, target, flags, linked)
        environment = {"HDF5_PARAPREFIX": DATA}
        cases.append(Case(release.suite, name, library, RANKS, (str(target),), environment, LIMIT_S, wrong))
    return cases
