"""ioweir linked into a program instead of preloaded: the flags for its linker, and a wrapper around its compiler.

What is linked and how it works is src/linked's; this module knows where it lies and when a compiler links.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from ioweir.base import locate
from ioweir.errors import EXIT_NOT_EXECUTABLE, EXIT_NOT_FOUND, EXIT_NOT_STARTED, EXIT_USAGE, IoweirError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

OPEN_MPI: Final = "openmpi"
MPICH: Final = "mpich"
NONE: Final = "none"
KINDS: Final = (OPEN_MPI, MPICH, NONE)
ARCHIVE: Final = "libioweir_trace.a"
PARTITION_LIBRARY: Final = "libioweir_partition_{}.so"
RESPONSE_FILE: Final = "ioweir_wrap.txt"
RESPONSE_FILE_OF_LIBRARIES: Final = "ioweir_wrap_libraries.txt"
WRAPPER_PREFIX: Final = "ioweir-"
# ELF notes of a program that ioweir is linked into (src/preload/back_end_loader.hpp).
NOTE_LINKED: Final = 0x101
NOTE_MPI: Final = 0x103
NOTES_OF_LIBRARIES: Final = {"HDF5": 0x104, "PnetCDF": 0x105, "netCDF": 0x106}

# With one of these a compiler does not link a program.
_NO_PROGRAM: Final = frozenset(
    {
        "-c",
        "-S",
        "-E",
        "-M",
        "-MM",
        "-fsyntax-only",
        "-shared",
        "--shared",
        "-r",
        "--version",
        "-dumpversion",
        "-dumpmachine",
    }
)
_ASKS: Final = re.compile(r"--?show|-print-|--help|-compile[-_]info|-link[-_]info|-cc=$")
# Options whose value is the next word.
_VALUED: Final = frozenset(
    {"-o", "-I", "-L", "-D", "-U", "-x", "-T", "-u", "-z", "-J", "-include", "-isystem", "-iquote", "-idirafter",
     "-MF", "-MT", "-MQ", "-Xlinker", "-Xpreprocessor", "-Xassembler"}
)  # fmt: skip
# What brings objects in: files and libraries. Not between --whole-archive and its end, where an archive comes in whole.
_INPUT: Final = re.compile(r"[^-]|-l.")
_WHOLE: Final = re.compile(r"--whole-archive")
_NOT_WHOLE: Final = re.compile(r"--no-whole-archive")
_STATIC_MPI: Final = re.compile(r"(^|/|-l:)lib(mpich|mpi)\.a$")


def directory_of(kind: str) -> Path:
    """Where the archive for an MPI library lies."""
    if kind not in KINDS:
        raise IoweirError(f"--mpi {kind}: is none of {', '.join(KINDS)}", EXIT_USAGE)
    looked = [directory / "link" / kind for directory in locate.candidate_directories()]
    for directory in looked:
        if (directory / ARCHIVE).is_file():
            return directory
    why = "reinstall ioweir" if kind == NONE else f"install the headers of that MPI library ({kind}) and ioweir again"
    raise IoweirError(f"{ARCHIVE} for --mpi {kind} is not in {', '.join(map(str, looked))}: {why}", EXIT_NOT_STARTED)


def partition_flags(kind: str) -> tuple[str, ...]:
    """What a compiler is given for a program that calls ioweir.h (docs/reference/partitioned-files.md)."""
    if kind not in (OPEN_MPI, MPICH):
        raise IoweirError(f"--mpi {kind}: is none of {OPEN_MPI}, {MPICH}", EXIT_USAGE)
    library = PARTITION_LIBRARY.format(kind)
    for directory in locate.candidate_directories():
        header = directory.parent / "include" / "ioweir" / "ioweir.h"
        if (directory / library).is_file() and header.is_file():
            place = str(directory)
            return (f"-I{header.parent.parent}", f"-L{place}", f"-lioweir_partition_{kind}", f"-Wl,-rpath,{place}")
    raise IoweirError(
        f"{library} is not installed: install the headers of that MPI library ({kind}) and ioweir again",
        EXIT_NOT_STARTED,
    )


def flags(kind: str, static: bool = False, libraries: bool = False) -> tuple[str, ...]:
    """What a compiler is given when it links a program.

    `-lioweir_trace` is a linker script in a program with shared libraries, which puts the hooks in front of these too,
    and the archive alone in a static one. `static` takes the archive alone in any case. `libraries`: the program's
    calls of HDF5, PnetCDF and netCDF too; then the archive must come behind what makes them and before these libraries.
    """
    directory = str(directory_of(kind))
    if any(character in directory for character in " ,"):
        raise IoweirError(
            f"{directory}: a linker cannot be given a path with a blank or a comma. Install ioweir elsewhere",
            EXIT_NOT_STARTED,
        )
    library = f"-l:{ARCHIVE}" if static else "-lioweir_trace"
    more = (f"-Wl,@{directory}/{RESPONSE_FILE_OF_LIBRARIES}",) if libraries else ()
    return (f"-Wl,@{directory}/{RESPONSE_FILE}", *more, f"-L{directory}", library, "-lpthread", "-ldl")


def kind_of_compiler(compiler: str) -> str:
    """Which MPI a compiler wrapper belongs to; NONE for a compiler that is no wrapper."""
    name = PurePath(compiler).name
    for kind in (OPEN_MPI, MPICH):
        if name.endswith(f".{kind}"):
            return kind
    if not re.search(r"mpi", name):
        return NONE
    if "Open MPI" in _said(compiler, "--showme:version"):
        return OPEN_MPI
    if re.search(r"MPICH|MVAPICH|Intel\(R\) MPI", _said(compiler, "-v")):
        return MPICH
    raise IoweirError(f"{compiler}: is neither Open MPI's nor MPICH's; say which it is like with --mpi", EXIT_USAGE)


def kind_of_libraries(sonames: Iterable[str]) -> tuple[str, str] | None:
    """Which MPI a set of sonames means, and by which of them. Example: libmpi.so.40 -> openmpi."""
    for soname in sonames:
        if re.match(r"libmpi\.so\.([24]0|40)$|libmpi_mpifh\.so\.[24]0|libopen-rte", soname):
            return OPEN_MPI, soname
        if re.match(r"lib(mpich|mpi)\.so\.12$|libmpich\w*\.so|libmpi_(cray|intel|gnu|amd|nvidia)\w*\.so", soname):
            return MPICH, soname
    return None


def translator_of(sonames: Iterable[str]) -> str | None:
    """The library that translates between MPI libraries, if there is one: handles are its own."""
    return next((soname for soname in sonames if re.match(r"lib(mpitrampoline|wi4mpi\w*|muk)\.so", soname)), None)


def _said(*words: str) -> str:
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, errors="replace", check=False, timeout=30, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout + done.stderr


def kind_of_environment() -> str:
    """The MPI of the `mpicc` in PATH."""
    compiler = shutil.which("mpicc")
    if compiler is None:
        raise IoweirError(
            f"there is no mpicc in PATH to tell the MPI library by: say --mpi {'|'.join(KINDS)}", EXIT_USAGE
        )
    return kind_of_compiler(compiler)


def links_program(words: Sequence[str]) -> bool:
    """Whether a compiler with these arguments ends up linking a program."""
    inputs = False
    skip = False
    for word in words:
        if skip:
            skip = False
        elif word in _NO_PROGRAM or _ASKS.match(word):
            return False
        elif word in _VALUED:
            skip = True
        elif not word.startswith("-") or word.startswith("-l"):
            inputs = True
    return inputs


def command(words: Sequence[str], kind: str | None = None, static: bool = False) -> tuple[str, ...]:
    """A compiler's command with ioweir linked in, when it links.

    The archive comes first, so that any library may follow, and again behind each object and library: what of it stands
    for functions of HDF5, PnetCDF and netCDF comes in where they are called, and before the library that has them.
    """
    compiler, *arguments = words
    if not links_program(arguments):
        return tuple(words)
    static = static or any(_STATIC_MPI.search(word) for word in arguments)
    kind = kind or kind_of_compiler(compiler)
    *front, pthread, dl = flags(kind, static, libraries=True)
    return (compiler, *front, *_with_archive(arguments, str(directory_of(kind) / ARCHIVE)), pthread, dl)


def _with_archive(arguments: Sequence[str], archive: str) -> Iterator[str]:
    """The arguments, with the archive behind each that brings objects in. `-x` would make a source of it."""
    if "-x" in arguments:
        yield from arguments
        yield from ("-x", "none", archive)
        return
    whole = valued = False
    for word in arguments:
        yield word
        if _NOT_WHOLE.search(word):
            whole = False
        elif _WHOLE.search(word):
            whole = True
        if _INPUT.match(word) and not valued and not whole:
            yield archive
        valued = word in _VALUED or word == "-l"


def execute(words: Sequence[str], kind: str | None = None, static: bool = False) -> None:
    """Becomes the compiler."""
    if not words:
        raise IoweirError("no compiler given: ioweir link -- mpicc ...", EXIT_USAGE)
    if shutil.which(words[0]) is None:
        raise IoweirError(f"{words[0]}: not found in PATH. Check the command after `--`", EXIT_NOT_FOUND)
    full = command(words, kind, static)
    try:
        os.execvp(full[0], full)
    except OSError as error:
        raise IoweirError(f"{full[0]}: {error.strerror}", EXIT_NOT_EXECUTABLE) from error
