"""PnetCDF's Fortran interface for MPICH, beside the library that pnetcdf_library.py makes.

What its configure would write into the sources that end in .in stands here, as Debian's library has it.
Not here: the library, who uses the interface.
"""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

import pnetcdf_library
from conformance_fetch import debian_source
from pnetcdf_library import compile_c, m4, run

if TYPE_CHECKING:
    from pathlib import Path

COMPILER: Final = "mpifort.mpich"
LIBRARY: Final = "libpnetcdff.so"
BY_M4: Final = ("getput_text", "getput_var", "getput_varn", "getput_vard")
BY_PERL: Final = ("allf", "issyserrf", "xstrerrorf", "xstrerrnof", "xinq_libversf")
"""The first is what buildiface prints, the others it writes itself."""
IN_FORTRAN: Final = ("strerrorf", "strerrnof", "inq_libversf")
NAMES: Final = "-DF77_NAME_LOWER_USCORE"
"""gfortran's: in lower case, with one underscore behind."""

WORDS: Final = {
    "configure_input": "", "USE_MPIF_HEADER": "use mpi, only: MPI_OFFSET_KIND", "INTENTV": "INOUT",
    "SIZEOF_MPI_OFFSET": "8", "PNF_INT8_MODIFIER": "", "PNF_FILL_UINT": "4294967295_8",
    "PNF_FILL_INT64": "-9223372036854775806_8", "PNF_FILL_UINT64": "18446744073709551614_8",
    "ENABLE_ERANGE_FILL": "1", "ENABLE_SUBFILING": "0", "RELAX_COORD_BOUND": "1", "PNETCDF_DEBUG": "0",
    "ENABLE_LARGE_SINGLE_REQ": "0", "ENABLE_NULL_BYTE_HEADER_PADDING": "0", "IN_PLACE_SWAP": "-1",
    "ENABLE_BURST_BUFFER": "0", "ENABLE_THREAD_SAFE": "0", "ENABLE_NETCDF4": "0",
}  # fmt: skip


def build(cache: Path) -> Path:
    """The folder of the interface: LIBRARY, `pnetcdf.mod` and `pnetcdf.inc`; made once."""
    place = pnetcdf_library.build(cache)
    folder = place / "fortran"
    library, told = folder / LIBRARY, folder / "words.json"
    top = debian_source("pnetcdf", cache)
    words = WORDS | _version(top.name)
    if library.exists() and json.loads(told.read_text(encoding="utf-8")) == words:
        return folder
    library.unlink(missing_ok=True)
    folder.mkdir(parents=True, exist_ok=True)
    told.write_text(json.dumps(words), encoding="utf-8")
    f77, f90 = top / "src/binding/f77", top / "src/binding/f90"
    _write_sources(top, folder, words)
    flags = [NAMES, f"-I{place}", f"-I{f77}"]
    with ThreadPoolExecutor(pnetcdf_library.AT_ONCE) as pool:
        made = [pool.submit(compile_c, top, folder / f"{name}.c", folder, *flags) for name in BY_PERL]
        sources = [f77 / f"{name}.f" for name in IN_FORTRAN] + [folder / "pnetcdf.f90"]
        made += [pool.submit(_compile, source, folder, f90) for source in sources]
        objects = [each.result() for each in made]
    unfinished = folder / "unfinished.so"
    below = [f"-L{place}", f"-Wl,-rpath,{place}", "-lpnetcdf"]
    run([COMPILER, "-shared", "-o", str(unfinished), *map(str, objects), f"-Wl,-soname,{LIBRARY}", *below], folder)
    unfinished.rename(library)
    return folder


def _version(name: str) -> dict[str, str]:
    """Of "pnetcdf-1.12.3"."""
    parts = ("PNETCDF_VERSION_MAJOR", "PNETCDF_VERSION_MINOR", "PNETCDF_VERSION_SUB")
    return dict(zip(parts, re.findall(r"\d+", name), strict=True))


def _write_sources(top: Path, folder: Path, words: dict[str, str]) -> None:
    """Those that PnetCDF makes of others."""
    f77, f90 = top / "src/binding/f77", top / "src/binding/f90"
    header = top / "src/include/pnetcdf.h.in"
    printed = run(["perl", str(f77 / "buildiface"), f"-infile={header}", f"-deffile={f77 / 'defs'}"], folder)
    (folder / f"{BY_PERL[0]}.c").write_text(printed, encoding="utf-8")
    for name in BY_M4:
        m4(top, f90 / f"{name}.m4", folder / f"{name}.fh", f"-DINTENTV={words['INTENTV']}")
    for path in (f77 / "pnetcdf.inc.in", *sorted(f90.glob("*.in"))):
        text = re.sub(r"@(\w+)@", lambda word: words[word[1]], path.read_text(encoding="utf-8"))
        (folder / path.stem).write_text(text, encoding="utf-8")


def _compile(source: Path, folder: Path, parts: Path) -> Path:
    target = folder / f"{source.stem}.o"
    run([COMPILER, "-w", "-O0", "-fPIC", f"-I{folder}", f"-I{parts}", "-c", "-o", str(target), str(source)], folder)
    return target
