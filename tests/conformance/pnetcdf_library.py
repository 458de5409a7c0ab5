"""PnetCDF for MPICH, made of Debian's source package: Debian's library is for Open MPI alone.

What its configure would find out and choose on a 64-bit Linux stands here; the interface for C, without drivers for
other formats.
Not here: fetching sources (conformance_fetch.py), the interface for Fortran (pnetcdf_fortran.py), who uses the library.
"""

from __future__ import annotations

import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Final

from conformance_fetch import FetchError, debian_source

if TYPE_CHECKING:
    from collections.abc import Sequence

COMPILER: Final = "mpicc.mpich"
COMPILE_S: Final = 300.0
FOLDERS: Final = ("dispatchers", "drivers/common", "drivers/ncmpio")
LEFT_OUT: Final = ("error_adios2nc",)
SUBFILING: Final = "ncmpio_subfile"
AT_ONCE: Final = 2

SIZES: Final = {
    "CHAR": 1, "SCHAR": 1, "UCHAR": 1, "UNSIGNED_CHAR": 1, "SHORT": 2, "USHORT": 2, "UNSIGNED_SHORT": 2,
    "UNSIGNED_SHORT_INT": 2, "INT": 4, "UINT": 4, "UNSIGNED_INT": 4, "FLOAT": 4, "LONG": 8, "ULONG": 8, "DOUBLE": 8,
    "LONG_LONG": 8, "LONGLONG": 8, "ULONGLONG": 8, "UNSIGNED_LONG_LONG": 8, "INT64": 8, "UINT64": 8, "SIZE_T": 8,
    "OFF_T": 8, "MPI_OFFSET": 8, "MPI_AINT": 8,
}  # fmt: skip
HAVE: Final = (
    "STDLIB_H", "INTTYPES_H", "SYS_TYPES_H", "SEARCH_H", "STRERROR", "STRDUP", "STRCASECMP", "ACCESS", "TRUNCATE",
    "PTRDIFF_T", "DECL_MPI_OFFSET", "STRING_H", "UNISTD_H", "TSEARCH", "TDELETE",
)  # fmt: skip
TYPES: Final = """#include <sys/types.h>
typedef signed char schar;
typedef unsigned char uchar;
typedef long long longlong;
typedef unsigned long long ulonglong;
typedef long long int64;
typedef unsigned long long uint64;
"""


def build(cache: Path, *, subfiling: bool = False) -> Path:
    """The folder of `libpnetcdf.so` for MPICH, whose header is the system's; made once.

    `subfiling`: with subfiling of its own, which Debian leaves out.
    """
    folder = cache / "built" / "mpich" / ("libpnetcdf-subfiling" if subfiling else "libpnetcdf")
    library, told = folder / "libpnetcdf.so", folder / "config.h"
    top = debian_source("pnetcdf", cache)
    version = re.search(r"(\d+\.\d+\.\d+)", top.name)
    if version is None:
        raise FetchError(f"{top}: its name has no version")
    # PnetCDF 1.12 asks for the attributes of a file with subfiles before it has made its tables of names, finds none,
    # and reads the file as if it had no subfiles, unless it searches for names one by one.
    own = "#define ENABLE_SUBFILING 1\n#define SEARCH_NAME_LINEARLY 1\n" if subfiling else ""
    config = _config(version[1]) + own
    if library.exists() and told.read_text(encoding="utf-8") == config:
        return folder
    library.unlink(missing_ok=True)
    folder.mkdir(parents=True, exist_ok=True)
    told.write_text(config, encoding="utf-8")
    m4(top, top / "src/drivers/include/ncx_h.m4", folder / "ncx.h")
    sources = []
    for part in FOLDERS:
        for path in sorted((top / "src" / part).iterdir()):
            left_out = path.stem in LEFT_OUT or (path.stem == SUBFILING and not subfiling)
            if left_out or path.suffix not in (".c", ".m4"):
                continue
            generated = folder / f"{path.stem}.c"
            if path.suffix == ".m4":
                m4(top, path, generated)
            sources.append(generated if path.suffix == ".m4" else path)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        objects = list(pool.map(lambda source: compile_c(top, source, folder), sources))
    unfinished = folder / "unfinished.so"
    run([COMPILER, "-shared", "-o", str(unfinished), *map(str, objects), "-Wl,-soname,libpnetcdf.so", "-lm"], folder)
    unfinished.rename(library)
    return folder


def _config(version: str) -> str:
    lines = [f"#define SIZEOF_{name} {size}" for name, size in SIZES.items()]
    lines += [f"#define HAVE_{name} 1" for name in HAVE]
    lines += [f'#define PNETCDF_VERSION "{version}"', '#define PNETCDF_RELEASE_DATE "unknown"']
    lines += ["#define RELAX_COORD_BOUND 1", "#define _USE_MPI_GET_COUNT 1"]
    # MPI's names of Fortran's types are known.
    lines += ["#define ENABLE_FORTRAN 1"]
    # As configure has it unless it is told otherwise: without it, requests are waited for one by one, in another code.
    lines += ["#define ENABLE_REQ_AGGREGATION 1"]
    lines += [f"#define HAVE_{name} 1" for name in ("SCHAR", "UCHAR", "USHORT", "UINT", "LONGLONG", "ULONGLONG")]
    lines += [f"#define HAVE_{name} 1" for name in ("INT64", "UINT64")]
    return "\n".join([*lines, TYPES])


def m4(top: Path, source: Path, target: Path, *flags: str) -> None:
    """Writes what m4 makes of a source."""
    text = run(["m4", "-DPNETCDF", "-DERANGE_FILL", *flags, f"-I{top / 'm4'}", str(source)], target.parent)
    target.write_text(text, encoding="utf-8")


def compile_c(top: Path, source: Path, folder: Path, *more: str) -> Path:
    """The object of a source, in the folder."""
    target = folder / f"{source.stem}.o"
    own = [f"-I{top / 'src' / part}" for part in ("include", "drivers/include", *FOLDERS)]
    flags = ["-w", "-O1", "-fPIC", "-DHAVE_CONFIG_H", "-DPNETCDF_VERSION_SUB=0"]
    run([COMPILER, *flags, *more, f"-I{folder}", *own, "-c", "-o", str(target), str(source)], folder)
    return target


def run(command: Sequence[str], folder: Path) -> str:
    """What a command prints that is run in the folder."""
    finished = subprocess.run(command, capture_output=True, text=True, timeout=COMPILE_S, check=False, cwd=folder)
    if finished.returncode != 0:
        raise FetchError(f"{' '.join(command)} returned {finished.returncode}:\n{finished.stderr}")
    return finished.stdout


if __name__ == "__main__":
    print(build(Path(__file__).resolve().parent.parent.parent / "build" / "conformance"))
