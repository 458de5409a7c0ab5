"""HDF5's testpar on 3 ranks: that of this Debian release, and that of the next one (1.14) on a library built for it.

Its programs remove their file at the end, and most of testphdf5's tests write the same file. For a comparison of what
they leave behind they are linked without that, and testphdf5 runs once for each of its tests.
Not here: building that library (hdf5_library.py), running, comparing.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import hdf5_library
from conformance_case import DATA, Case, compiled
from conformance_fetch import debian_source
from conformance_plans import LEFT_OUT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

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
WITH_FILES: Final = ("testphdf5", "t_shapesame", "t_filters_parallel", "t_pmulti_dset", "t_select_io_dset")
"""Programs whose files are compared."""
KEEP: Final = """#include <hdf5.h>
void __wrap_h5_clean_files(const char *names[], hid_t access);
void __wrap_h5_clean_files(const char *names[], hid_t access) { (void)names; H5Pclose(access); }
"""
"""What is called in place of the function that removes files: it closes the access list, as that does."""
READ: Final = {
    f"{name}r": f"{name}w" for name in ("idset", "cdset", "eidset", "ecdset", "ngrp", "ccont", "cschunk", "ccchunk")
}
"""Tests that read the file of another, which runs with them."""
ADDED: Final = re.compile(r'^ *AddTest\(\s*(?:\(mpi_size < \d\) \? "-[^"]+" : )?"([^"]+)"', re.MULTILINE)


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


def hdf5_files(cache: Path, library: Library) -> Iterator[Case]:
    """What the tests of Debian's HDF5 leave behind."""
    return _alone(hdf5(cache, library), RELEASE_1_10, debian_source("hdf5", cache))


def hdf5_1_14_files(cache: Path, library: Library) -> Iterator[Case]:
    """What those of HDF5 1.14 leave behind."""
    return _alone(hdf5_1_14(cache, library), RELEASE_1_14, debian_source("hdf5", cache, NEXT))


def _alone(cases: Sequence[Case], release: Release, top: Path) -> Iterator[Case]:
    """Those of the cases that have files, which stay, and testphdf5 with one of its tests at a time."""
    text = (top / "testpar" / "testphdf5.c").read_text(encoding="utf-8")
    checks_layout = LEFT_OUT["hdf5"]["testphdf5"].reasons
    for case in cases:
        if case.name not in WITH_FILES:
            continue
        kept = replace(case, suite=f"{release.suite}-files", command=(f"{case.command[0]}-keeps",))
        if case.name != "testphdf5":
            yield kept
            continue
        names = list(dict.fromkeys(ADDED.findall(text)))
        for name in names:
            own = {name, READ.get(name, name)}
            others = [word for other in names if other not in own for word in ("-x", other)]
            if name not in checks_layout and name not in READ.values():
                yield replace(kept, name=f"testphdf5 {name}", command=(*kept.command, *others))


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
    # As the libraries are built: the layout of their structures, into which t_cache looks, depends on it.
    flags = ["-DNDEBUG", *(f"-I{path}" for path in (built, headers, top / "src", top / "test", top / "testpar"))]
    above = os.path.relpath(libraries, built)  # both may be moved together
    linked = [f"-L{libraries}", *([f"-Wl,-rpath,$ORIGIN/{above}"] if of_debian else []), "-lhdf5", "-lm"]
    keep = built / "keep.c"
    keep.write_text(KEEP, encoding="utf-8")
    cases = []
    for name in release.names:
        parts = release.testphdf5 if name == "testphdf5" else (name,)
        sources = [top / "testpar" / f"{part}.c" for part in parts]
        sources += [top / "test" / f"{helper}.c" for helper in ("h5test", "testframe", *HELPERS.get(name, ()))]
        target = built / name
        wrong = release.not_run.get(name) or compiled(library, sources, target, flags, linked)
        if name in WITH_FILES and not wrong:
            keeping = [*linked, "-Wl,--wrap=h5_clean_files"]
            wrong = compiled(library, [*sources, keep], target.with_name(f"{name}-keeps"), flags, keeping)
        environment = {"HDF5_PARAPREFIX": DATA}
        cases.append(Case(release.suite, name, library, RANKS, (str(target),), environment, LIMIT_S, wrong))
    return cases
