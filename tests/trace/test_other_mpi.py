"""An MPI whose ABI ioweir has no back end for: the program runs as without ioweir, and one line says what is missing.

Libraries that translate between ABIs (MPItrampoline, Wi4MPI, Mukautuva) repeat the version text of the library beneath
them, while the program's handles are their own. A small library stands for each: with its text, and with what it
defines and loads; it ends the program when a back end calls it. Nothing of the real ones is tested.
Not here: a back end that is missing from the installation (test_missing_back_end.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
from ioweir.trace import reader
from tracing import PROGRAMS, Traced, build, ioweir_run, run

SOURCES: Final = Path(__file__).resolve().parents[2] / "src"
SIZE: Final = 40_000
SAID: Final = "MPI calls are not traced: no back end for the ABI of this MPI library:"
PLAN: Final = '[[file]]\nmatch = "*"\nmapping = "log"\n'


@dataclass(frozen=True)
class Library:
    """What the library that stands for an MPI is called, says, and defines."""

    soname: str
    text: str
    defines: tuple[str, ...] = ()

    @property
    def first_line(self) -> str:
        return self.text.split(r"\n")[0]


# Line breaks are written as C has them.
WRAPPER: Final = r"MPIwrapper 2.10.3, using MPIABI 2.9.0, wrapping:\n"
OPEN_MPI: Final = "Open MPI v4.1.4, package: Open MPI"
MPICH: Final = r"MPICH Version:      4.2.1\nMPICH ABI:          16:1:4"
LIBRARIES: Final = {
    "unknown": Library("libmpi.so.7", r"Other MPI 1.0\nof a vendor"),
    "MPItrampoline over Open MPI": Library("libmpitrampoline.so.5", WRAPPER + OPEN_MPI),
    "MPItrampoline over MPICH": Library("libmpitrampoline.so.5", WRAPPER + MPICH),
    "Wi4MPI from Open MPI to MPICH": Library("libwi4mpi_OMPI_MPICH.so", MPICH, ("-DOPEN_MPIS",)),
    "Wi4MPI from MPICH to Open MPI": Library("libwi4mpi_MPICH_OMPI.so", OPEN_MPI, ("-DMPICHS",)),
    "Mukautuva over MPICH": Library("libmuk.so", MPICH, ('-DBENEATH="libmpich.so.12"',)),
}


def program_of(library: Library, folder: Path) -> Path:
    """A program that is linked with the library, which lies in the folder."""
    flags = ["-shared", "-fPIC", f"-Wl,-soname,{library.soname}", f'-DTEXT="{library.text}"', *library.defines]
    rest = [str(PROGRAMS / "other_mpi_rest.c"), f"-I{SOURCES}", "-ldl"]
    (folder / library.soname).symlink_to(build("other_mpi_library.c", "cc", *flags, libraries=rest))
    return build("other_mpi.c", "cc", f"-Wl,-rpath,{folder}", libraries=[str(folder / library.soname)])


def check(traced: Traced, library: Library, written: Path) -> None:
    assert traced.out == "written\n"
    assert written.read_bytes() == bytes(1 + at % 251 for at in range(SIZE))
    # Of the one that loads a library, that library is found: it is the one whose name is like that of MPI.
    says = "MPICH Version:" if library.soname == "libmuk.so" else library.first_line
    assert traced.err.count("\n") == 1
    assert f": {SAID} {says}" in traced.err
    assert traced.err.endswith("; the program goes on unharmed\n")
    (note,) = [note for note in reader.read(traced.directory).notes if note.code == "disabled"]
    assert SAID in note.text
    names = {event.name for event in traced.trace.of(str(written))}
    assert {"open", "pwrite", "close"} <= names, "POSIX calls are traced all the same"
    assert not [event for event in traced.trace.events if event.layer == "MPI-IO"]


@pytest.mark.parametrize("name", LIBRARIES)
def test_the_program_is_unharmed_and_one_line_says_what_is_missing(name: str, tmp_path: Path) -> None:
    library = LIBRARIES[name]
    program = program_of(library, tmp_path)
    run([program, tmp_path / "alone"]).expect()
    check(ioweir_run(tmp_path / "trace", [program, tmp_path / "written"]), library, tmp_path / "written")


@pytest.mark.parametrize("name", ["unknown", "MPItrampoline over MPICH"])
def test_a_plan_changes_nothing(name: str, tmp_path: Path) -> None:
    library = LIBRARIES[name]
    (tmp_path / "plan.toml").write_text(PLAN)
    command = [program_of(library, tmp_path), tmp_path / "written"]
    traced = ioweir_run(tmp_path / "trace", command, options=["--plan", tmp_path / "plan.toml"])
    check(traced, library, tmp_path / "written")
