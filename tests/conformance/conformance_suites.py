"""Which programs there are, how each is built, and with how many ranks its own suite runs it.

The suites' own scripts say the ranks and arguments: they are read, not repeated here. A program that cannot be built or
run here stays in the list with the reason. Not here: fetching, running, comparing.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pnetcdf_fortran
import pnetcdf_library
from conformance_case import DATA, Case, compiled
from conformance_fetch import debian_source, mpi4py_source
from conformance_hdf5 import hdf5, hdf5_1_14, hdf5_1_14_files, hdf5_files
from conformance_netcdf4 import netcdf4

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from conformance_case import Library

# ------------------------------------------------------------------------------------------- ROMIO's own test programs

# What ROMIO's configure writes into the sources that end in .in.
ROMIO_WORDS: Final = {
    "@F77MPIOINC@": "", "@FORTRAN_MPI_OFFSET@": "integer*8", "@F77IARGC@": "iargc()",
    "@F77GETARG@": "call getarg(i, str)", "@LL@": "ll", "@NOF77@": "0",
}  # fmt: skip
# Programs that no script of ROMIO's runs: ranks, and what is done about their size.
ROMIO_OTHERS: Final = {"perf": 4, "coll_perf": 4, "large_array": 4, "large_file": 1, "big_extents": 1, "creat_excl": 4}
ROMIO_SMALLER: Final = {
    # 1200^3 ints are 6.9 GB for each of its two copies: 128^3 are 8 MiB.
    "coll_perf": (r"array_of_gsizes\[(\d)\] = [^;]*;", r"array_of_gsizes[\1] = 128;"),
}
ROMIO_NOT_RUN: Final = {
    "large_file": "writes a file of 4 GiB and more",
    "large_array": "needs an array of 4 GiB and more",
}


def romio(cache: Path, library: Library) -> list[Case]:
    """src/mpi/romio/test: as its `runtests` starts them, and those that it leaves out."""
    tree = debian_source("mpich", cache) / "src" / "mpi" / "romio" / "test"
    script = (tree / "runtests.in").read_text(encoding="utf-8")
    lines = re.findall(r"^\s*\$mpirun -np (\d+) \./([\w-]+) *(.*)$", script, re.MULTILINE)
    starts = [(name, int(ranks), words) for ranks, name, words in lines]
    starts += [(name, ranks, "-fname $FILENAME") for name, ranks in ROMIO_OTHERS.items()]
    cases = []
    for name, ranks, words in starts:
        if name == "big_extents":
            words = "$FILENAME"  # noqa: PLW2901 (it takes no -fname)
        words = words.replace("$FILENAME", f"{DATA}/test").replace("$srcdir", str(tree))  # noqa: PLW2901
        target = cache / "built" / library.name / "romio" / name
        wrong = ROMIO_NOT_RUN.get(name) or _romio_built(tree, library, name, target)
        command = (str(target), *shlex.split(words))
        cases.append(Case("romio", name, library, ranks, command, not_run=wrong))
    return cases


def _romio_built(tree: Path, library: Library, name: str, target: Path) -> str:
    source = next((tree / f"{name}{end}" for end in (".c", ".c.in", ".f.in") if (tree / f"{name}{end}").exists()), None)
    if source is None:
        return "not built: there is no source of it"
    if source.suffix == ".in" or name in ROMIO_SMALLER:
        text = source.read_text(encoding="utf-8")
        for word, value in ROMIO_WORDS.items():
            text = text.replace(word, value)
        if name in ROMIO_SMALLER:
            text, replaced = re.subn(*ROMIO_SMALLER[name], text)
            if replaced == 0:
                return "not made smaller: its source has changed"
        source = target.parent / source.name.removesuffix(".in")
        source.parent.mkdir(parents=True, exist_ok=True)
        source.write_text(text, encoding="utf-8")
    return compiled(library, [source], target, [], ["-lpthread"])


# --------------------------------------------------------------------------------------------- test/mpi/io of MPICH

MPITESTCONF: Final = "".join(
    f"#define {name} {value}\n"
    for name, value in {
        **{
            f"HAVE_{word}": 1
            for word in [
                "UNISTD_H",
                "STRING_H",
                "STDLIB_H",
                "STDARG_H",
                "INTTYPES_H",
                "STDINT_H",
                "PTHREAD_H",
                "SYS_TIME_H",
                "SYS_RESOURCE_H",
                "GETRUSAGE",
                "USLEEP",
                "STRDUP",
                "LONG_LONG",
                "LONG_DOUBLE",
                "MPI_IO",
            ]
        },
        "STDC_HEADERS": 1,
        "THREAD_PACKAGE_NAME": "THREAD_PACKAGE_POSIX",
    }.items()
)
HELPERS: Final = ("mtest.c", "mtest_common.c", "mtest_thread.c", "dtypes.c")


def mpich_io(cache: Path, library: Library) -> list[Case]:
    """test/mpi/io and test/mpi/errors/io of MPICH, as their `testlist` says."""
    top = debian_source("mpich", cache) / "test" / "mpi"
    conf = cache / "built" / "mpitestconf"
    conf.mkdir(parents=True, exist_ok=True)
    (conf / "mpitestconf.h").write_text(MPITESTCONF, encoding="utf-8")
    flags = [f"-I{conf}", f"-I{top / 'include'}"]
    available = re.search(r"MemAvailable: +(\d+) kB", Path("/proc/meminfo").read_text(encoding="ascii"))
    free_gb = int(available[1]) * 1024 / 1e9 if available else 0.0
    cases = []
    for folder, listing in (("io", "testlist.in"), ("errors/io", "testlist")):
        for line in (top / folder / listing).read_text(encoding="utf-8").splitlines():
            words = line.split()
            if len(words) < 2 or not words[1].isdigit():
                continue
            name, ranks = words[0], int(words[1])
            options = [word.partition("=") for word in words[2:]]
            memory_gb = max([float(value) for key, _, value in options if key == "mem"], default=0.0)
            arguments = [f"{DATA}/{value}" if "file" in value else value for key, _, value in options if key == "arg"]
            target = cache / "built" / library.name / "mpich" / name
            sources = [top / folder / f"{name}.c", *(top / "util" / helper for helper in HELPERS)]
            if memory_gb > free_gb:
                wrong = f"needs {memory_gb} GB of memory"
            else:
                wrong = compiled(library, sources, target, flags, ["-lm", "-lpthread"])
            cases.append(Case(f"mpich {folder}", name, library, ranks, (str(target), *arguments), not_run=wrong))
    return cases


# ---------------------------------------------------------------------------------------------------------- PnetCDF

PNETCDF_FOLDERS: Final = ("testcases", "nonblocking", "C", "F90", "cdf_format", "header", "subfile")
PNETCDF_RANKS: Final = 4  # `make ptest`
NC_TEST: Final = "nc_test"
# What its configure would have found out, and the arguments that its scripts give to programs of their own kind.
PNETCDF_TYPES: Final = """#include <sys/types.h>
typedef signed char schar;
typedef unsigned char uchar;
typedef long long longlong;
typedef unsigned long long ulonglong;
"""
PNETCDF_ARGUMENTS: Final = {
    "test_inq_format": "{folder}",
    "tst_open_cdf5": "{folder}/bad_begin.nc5",
    "tst_corrupt": "{folder}",
    "test_subfile": "-f {data}/test_subfile.nc -s 2",
    "tst_io": "{data}",
}
FORTRAN: Final = (".f", ".f90", ".F", ".F90")
NF_TESTS: Final = {"nf_test": (".F", "nf_test"), "nf90_test": (".F90", "test_get.F90")}
"""The ending of their sources, and what they open to be told that it is no netCDF file."""
NF_TEST_LIMIT_S: Final = 300.0
RELAXED: Final = "-DRELAX_COORD_BOUND"
"""What tests of whole interfaces, in C and Fortran, are told of how the library was configured."""
# What its configure would write into their tests.inc.in, beside what it writes into sources of the library.
NF_TEST_WORDS: Final = {
    "NF_INT1_T": "integer*1", "NF_INT2_T": "integer*2", "NF_INT8_T": "integer*8", "PNF_X_UINT_MAX": "4294967295_8",
    "PNF_X_INT8_MIN": "-9223372036854775807_8", "PNF_X_INT8_MAX": "9223372036854775807_8", "configure_input": "",
}  # fmt: skip
FLASH_IO: Final = "flash_benchmark_io"
FLASH_IO_SOURCES: Final = (
    "get_mfluid_property", "flash_release", FLASH_IO, "checkpoint_ncmpi_parallel", "plotfile_ncmpi_parallel",
)  # fmt: skip
FLASH_IO_SIZES: Final = ("-DN_DIM=3", "-DMAXBLOCKS=20", "-DIONMAX=13")
"""As its Makefile has them, but for 20 blocks a rank in place of 100."""
PNETCDF_NOT_RUN: Final = {"pres_temp_4D_rd": "reads the file that another program leaves"}


def pnetcdf(cache: Path, library: Library) -> list[Case]:
    """PnetCDF's test programs and its FLASH-IO benchmark on 4 ranks; on one what it runs on one, as most of F90.

    Against Debian's library, which is Open MPI's; for MPICH one of its sources is made.
    """
    if library.name not in ("openmpi", "mpich"):
        return []
    top = debian_source("pnetcdf", cache)
    built = cache / "built" / library.name / "pnetcdf"
    built.mkdir(parents=True, exist_ok=True)
    libraries = _pnetcdf_c(cache, library)
    fortran_flags, fortran_libraries = _pnetcdf_fortran(cache, library)
    includes = [f"-I{top / 'test/common'}", f"-I{top / 'src/include'}", f"-I{built}", "-DHAVE_DECL_MPI_OFFSET"]
    (built / "types.h").write_text(PNETCDF_TYPES, encoding="utf-8")
    flags = ["-include", str(built / "types.h"), *includes]
    cases = []
    for folder in PNETCDF_FOLDERS:
        named = set(re.findall(r"\w+", (top / "test" / folder / "Makefile.am").read_text(encoding="utf-8")))
        for path in sorted((top / "test" / folder).iterdir()):
            if path.suffix not in (".c", ".m4", ".f", ".f90", ".F") or path.stem not in named:
                continue
            fortran = path.suffix in FORTRAN
            helper = top / "test" / "common" / ("testutilsf.F90" if fortran else "testutils.c")
            source = _from_m4(top, path, built) if path.suffix == ".m4" else path
            target = built / f"{folder}-{path.stem}"
            own = [f"-I{top / 'test/common'}", *fortran_flags] if fortran else flags
            linked = fortran_libraries if fortran else libraries
            wrong = PNETCDF_NOT_RUN.get(path.stem) or compiled(library, [helper, source], target, own, linked)
            words = PNETCDF_ARGUMENTS.get(path.stem, f"{{data}}/{path.stem}.nc").format(data=DATA, folder=path.parent)
            command = (str(target), *words.split())
            ranks = 1 if folder == "F90" and "parallel" not in path.stem else PNETCDF_RANKS
            cases.append(Case(f"pnetcdf {folder}", path.stem, library, ranks, command, not_run=wrong))
    parts = [top / "test" / NC_TEST / f"{name}.c" for name in ("nc_test", "error", "util")]
    for path in sorted((top / "test" / NC_TEST).glob("*.m4")):
        generated = _from_m4(top, path, built)
        parts += [generated] if generated.suffix == ".c" else []
    target = built / NC_TEST
    own = [f"-I{top / 'test' / NC_TEST}", RELAXED, *flags]  # its error.h, not the C library's
    wrong = compiled(library, [*parts, top / "test/common/testutils.c"], target, own, libraries)
    cases.append(Case("pnetcdf nc_test", NC_TEST, library, 1, (str(target), "-d", DATA), not_run=wrong))
    cases += _nf_tests(top, built, library, fortran_flags, fortran_libraries)
    flash = top / "benchmarks" / "FLASH-IO"
    target = built / FLASH_IO
    own = [f"-I{flash}", *fortran_flags, *FLASH_IO_SIZES]
    sources = [path for name in FLASH_IO_SOURCES for path in flash.glob(f"{name}.F90")]
    wrong = compiled(library, sources, target, own, fortran_libraries)
    command = (str(target), "-q", f"{DATA}/flash.")
    cases.append(Case("pnetcdf benchmarks", FLASH_IO, library, PNETCDF_RANKS, command, not_run=wrong))
    return cases


def _from_m4(top: Path, path: Path, folder: Path) -> Path:
    """What m4 makes of a source: NAME.m4 a C file, NAME.h.m4 a header."""
    target = folder / (path.stem if path.stem.endswith(".h") else f"{path.stem}.c")
    if not target.exists():
        text = subprocess.run(
            ["m4", "-DPNETCDF", f"-I{top / 'm4'}", str(path)], capture_output=True, text=True, check=True
        ).stdout
        target.write_text(text, encoding="utf-8")
    return target


def _nf_tests(
    top: Path, built: Path, library: Library, flags: Sequence[str], libraries: Sequence[str]
) -> Iterator[Case]:
    """The tests of the whole interface for Fortran, 77 and 90."""
    for name, (ending, opened) in NF_TESTS.items():
        tests, folder, target = top / "test" / name, built / f"{name}-sources", built / name
        own = [f"-I{folder}", f"-I{top / 'src/binding/f77'}", pnetcdf_fortran.NAMES, RELAXED, *flags]
        if not target.exists():
            _write_nf_test(top, tests, ending, folder)
        sources = [*sorted(tests.glob(f"*{ending}")), *sorted(folder.glob(f"*{ending}"))]
        helpers = [tests / "fortlib.c", top / "test/common/testutilsf.F90"]
        wrong = compiled(library, [*sources, *helpers], target, own, libraries)
        # They have no room for the name of a folder.
        command = ("sh", "-c", f"cp {shlex.quote(str(helpers[0]))} {opened} && exec {shlex.quote(str(target))} -d .")
        yield Case(f"pnetcdf {name}", name, library, 1, command, limit_s=NF_TEST_LIMIT_S, not_run=wrong)


def _write_nf_test(top: Path, tests: Path, ending: str, folder: Path) -> None:
    """What is not among its sources as it is."""
    folder.mkdir(parents=True, exist_ok=True)
    text = (tests / "tests.inc.in").read_text(encoding="utf-8")
    text = re.sub(r"@(\w+)@", lambda word: NF_TEST_WORDS[word[1]], text)
    (folder / "tests.inc").write_text(text, encoding="utf-8")
    (folder / "mpifnetcdf.h").touch()  # the library's names in Fortran, which fortlib.c does not use
    for path in tests.glob("*.m4"):
        pnetcdf_library.m4(top, path, folder / f"{path.stem}{ending}")


def _pnetcdf_c(cache: Path, library: Library) -> list[str]:
    """The libraries of programs in C."""
    place = pnetcdf_library.build(cache) if library.name == "mpich" else None
    return [*([f"-L{place}", f"-Wl,-rpath,{place}"] if place else []), "-lpnetcdf", "-lm", "-lpthread"]


def _pnetcdf_fortran(cache: Path, library: Library) -> tuple[list[str], list[str]]:
    """Where programs in Fortran find what they include and use, and their libraries."""
    if library.name == "mpich":
        place = pnetcdf_fortran.build(cache)
        return [f"-I{place}"], [f"-L{place}", f"-Wl,-rpath,{place}", "-lpnetcdff", *_pnetcdf_c(cache, library)]
    modules = sorted(Path("/usr/lib").glob("*/fortran/gfortran-mod-*/pnetcdf.mod"))
    places = [Path("/usr/include/x86_64-linux-gnu"), *(path.parent for path in modules[:1])]
    return [f"-I{path}" for path in places], _pnetcdf_c(cache, library)


# ----------------------------------------------------------------------------------------------------------- mpi4py


def mpi4py(cache: Path, library: Library) -> list[Case]:
    """test_io.py of the mpi4py in this environment, by the wheel's module for each MPI library."""
    source = mpi4py_source(cache)
    environment = {"PYTHONDONTWRITEBYTECODE": "1"}
    if library.name == "mpich":
        # The wheel looks for the common ABI's name, which Debian's MPICH does not carry: tools/venv.sh made a link.
        environment |= {"MPI4PY_MPIABI": "mpich", "LD_LIBRARY_PATH": str(Path(sys.prefix) / "lib" / "mpich-abi")}
    command = (sys.executable, str(source / "test" / "main.py"), "-v", "-i", "test_io$")
    return [
        Case("mpi4py", "test_io", library, ranks, command, environment | {"TMPDIR": DATA}, limit_s=240.0)
        for ranks in (1, 2, 3)
    ]


SUITES: Final = {
    "romio": romio,
    "mpich": mpich_io,
    "pnetcdf": pnetcdf,
    "hdf5": hdf5,
    "hdf5-files": hdf5_files,
    "hdf5-1.14": hdf5_1_14,
    "hdf5-1.14-files": hdf5_1_14_files,
    "netcdf4": netcdf4,
    "mpi4py": mpi4py,
}

BY_DEFAULT: Final = tuple(name for name in SUITES if not name.startswith("hdf5-"))
"""Not HDF5's in more depth, for which another release of it is fetched and built: they run where --suite names them."""
