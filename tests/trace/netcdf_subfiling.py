"""Programs on PnetCDF with and without subfiles, and the files that they leave. Not here: what is tested with them.

Open MPI's PnetCDF is Debian's. With IOWEIR_TEST_PNETCDF=mpich the programs are MPICH's, with a PnetCDF that is made for
it at the first time (`make test-long`).
"""

from __future__ import annotations

import os
import shutil
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

import conformance
import pnetcdf_library
from tracing import MPICH, OPEN_MPI, Mpi, Traced, build, ioweir_run, run

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FILE: Final = "data.nc"
SOURCE: Final = "netcdf_subfiles.c"


BY_MPICH: Final = os.environ.get("IOWEIR_TEST_PNETCDF") == MPICH.name


@cache
def mpich_folder() -> Path:
    """Where libpnetcdf.so for MPICH is."""
    return pnetcdf_library.build(conformance.CACHE)


def library() -> tuple[Mpi, list[str]]:
    """The MPI library, and what programs on PnetCDF are linked with."""
    if not BY_MPICH:
        return OPEN_MPI, ["-lpnetcdf"]
    folder = mpich_folder()
    return MPICH, [f"-L{folder}", f"-Wl,-rpath,{folder}", "-lpnetcdf"]


def launch(source: str, ranks: int, *words: str | int) -> list[str]:
    mpi, libraries = library()
    return mpi.launch(ranks, build(source, mpi.cc, libraries=libraries), *map(str, words))


def netcdf_plan(folder: Path, netcdf: str, match: str = "*.nc") -> Path:
    path = folder / "plan.toml"
    path.write_text(f'[[file]]\nmatch = "{match}"\nnetcdf = {{ {netcdf} }}\n')
    return path


def plain(folder: Path, ranks: int, *words: str | int, source: str = SOURCE) -> str:
    """What the program says without ioweir. In an empty folder it is always the same: copied once it has been made."""
    folder.mkdir(exist_ok=True)
    if any(folder.iterdir()):
        return run(launch(source, ranks, *words), cwd=folder).expect().out
    made, said = made_plainly(os.environ.get("PNETCDF_SAFE_MODE"), source, ranks, *words)
    shutil.copytree(made.name, folder, dirs_exist_ok=True)
    return said


@cache
def made_plainly(
    _safe_mode: str | None, source: str, ranks: int, *words: str | int
) -> tuple[TemporaryDirectory[str], str]:
    """The folder that a program without ioweir leaves, and what it says; PnetCDF reads its safe mode by itself."""
    made: TemporaryDirectory[str] = TemporaryDirectory(prefix="ioweir-test-plain-")
    return made, run(launch(source, ranks, *words), cwd=Path(made.name)).expect().out


def under(
    folder: Path, ranks: int, *words: str | int, source: str = SOURCE, netcdf: str = "",
    env: Mapping[str, str] | None = None, code: int | None = 0, options: Sequence[str | Path] = (),
) -> Traced:  # fmt: skip
    """The program under ioweir, in the same folder."""
    folder.mkdir(exist_ok=True)
    options = [*options, "--plan", netcdf_plan(folder, netcdf)] if netcdf else options
    trace = folder / f"trace{len(list(folder.glob('trace*')))}"
    return ioweir_run(trace, launch(source, ranks, *words), options=options, cwd=folder, env=env, code=code)


def files(folder: Path) -> list[str]:
    """What was written, but for plan and traces."""
    names = (path.name for path in folder.iterdir())
    return sorted(name for name in names if not name.startswith((".ioweir-targets", "trace", "plan.toml")))


def parts(count: int) -> list[str]:
    return [f"{FILE}.subfile_{number}.nc" for number in range(count)]


def without_places(text: str) -> str:
    """Without where variables begin: when a header grows, the library moves what lies behind it as far as it likes."""
    return "\n".join(line.split(" at ")[0] for line in text.splitlines() if not line.startswith("header"))
