"""netCDF-C's parallel tests of netCDF-4 files, with the ranks that its own scripts say.

Against Debian's parallel netCDF, which is Open MPI's; for MPICH its source is built (netcdf_library.py). The tests of
`nc_test` and the example of `examples/C` are of files that PnetCDF writes, and Debian's netCDF is without it; those of
`nc_perf` are benchmarks. Not here: building for one MPI library, running, comparing.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

import netcdf_library
from conformance_case import Case, compiled
from conformance_fetch import debian_source

if TYPE_CHECKING:
    from conformance_case import Library

LIMIT_S: Final = 300.0
SCRIPTS: Final = {"nc_test4": "run_par_test.sh.in", "h5_test": "run_par_tests.sh.in"}
# What its configure would write, as far as these programs ask.
CONFIG: Final = """#include <stdint.h>
#define USE_PARALLEL 1
#define HDF5_SUPPORTS_PAR_FILTERS 1
#define HAVE_H5Z_SZIP 1
#define TEMP_LARGE "."
#define CHUNK_CACHE_SIZE 16777216
#define CHUNK_CACHE_NELEMS 4133
#define CHUNK_CACHE_PREEMPTION 0.75
"""


def netcdf4(cache: Path, library: Library) -> list[Case]:
    """The programs that run_par_test.sh and run_par_tests.sh start, each as often as they do."""
    if library.name == "openmpi-romio":
        return []
    top = debian_source("netcdf", cache)
    built = cache / "built" / library.name / "netcdf4"
    built.mkdir(parents=True, exist_ok=True)
    (built / "config.h").write_text(CONFIG, encoding="utf-8")
    place = netcdf_library.build(cache) if library.name == "mpich" else netcdf_library.debian()
    hdf5 = next(Path("/usr/lib").glob(f"*/hdf5/{library.name}"), Path("/usr/lib"))
    includes = [built, place.headers, Path("/usr/include/hdf5") / library.name, top / "include"]
    libraries = [f"-L{place.libraries}", f"-Wl,-rpath,{place.libraries}", "-lnetcdf", f"-L{hdf5}", "-lhdf5", "-lm"]
    cases = []
    for folder, script in SCRIPTS.items():
        text = (top / folder / script).read_text(encoding="utf-8")
        for ranks, name in re.findall(r"^ *@MPIEXEC@ -n (\d+) \./(\w+)$", text, re.MULTILINE):
            target = built / name
            sources = [top / folder / f"{name}.c"]
            wrong = compiled(library, sources, target, [f"-I{path}" for path in includes], libraries)
            command = (str(target),)
            suite = f"netcdf4 {folder}"
            cases.append(Case(suite, name, library, int(ranks), command, limit_s=LIMIT_S, not_run=wrong))
    return cases
