"""`ioweir doctor -- CMD`: what ioweir will see of a program, said before it is run.

Looks at files and words; the only things it starts are `LAUNCHER --version`, `ldconfig -p` and, for a Python script,
its interpreter to ask where mpi4py lies. Which functions reach files is io_functions.py's table.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import tempfile
from pathlib import Path, PurePath
from typing import IO, TYPE_CHECKING, Any, Final, TypedDict

from ioweir.base import locate
from ioweir.base.compiled import compiled
from ioweir.base.guarded_files import named_holds, open_named
from ioweir.base.spec_names import LAYERS, MPI_IO, POSIX, STDIO
from ioweir.errors import EXIT_FAILED, EXIT_NOT_FOUND, EXIT_OK, EXIT_USAGE, IoweirError
from ioweir.launch import launchers, wrappers
from ioweir.launch.commands import find_command
from ioweir.programs import elf, io_functions, linking, sanitizers
from ioweir.trace.reader import function_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

OPEN_MPI: Final = "Open MPI"
MPICH: Final = "MPICH"

# The MPI library's own parts: how it reaches files is the back ends' business, not a gap of the program.
_MPI_PART: Final = re.compile(r"lib(mpi\w*|mpich\w*|open-(rte|pal)|pmix|prrte|uc[pmst]|uct|fabric|psm\w*)([-.]|$)")
# The run-time library that does the I/O of Fortran programs.
_FORTRAN_RUNTIME: Final = re.compile(r"lib(gfortran|flang\w*|ifcore\w*|nvf)\b")
_SYSTEM_DIRECTORIES: Final = ("/lib/", "/lib64/", "/usr/lib/", "/usr/lib64/")
_LIBRARIES_OF_INTEREST: Final = {
    "HDF5": re.compile(r"libhdf5"),
    "PnetCDF": re.compile(r"libpnetcdf"),
    "netCDF": re.compile(r"libnetcdf"),
}
# Python packages, and the library whose calls they make.
_PACKAGES_OF_INTEREST: Final = {"h5py": "HDF5", "netCDF4": "netCDF", "pnetcdf": "PnetCDF"}
_STATIC_MARKERS: Final = {"HDF5": "H5Fcreate", "PnetCDF": "ncmpi_create", "netCDF": "nc_create"}
_CLOCK_SOURCE: Final = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
# Where packages that do I/O by libraries of their own lie. Of a name with a dot, the first part is imported.
_PYTHON_QUESTION: Final = """
import sys
sys.path[:] = [place for place in sys.path if place]  # not what lies in the current folder
import importlib.util as u
for name in ('mpi4py.MPI', 'h5py', 'netCDF4', 'pnetcdf'):
    try: s = u.find_spec(name)
    except ImportError: s = None
    print(name, s.origin if s and s.origin else '', sep='=')
"""


class Finding(TypedDict):
    """Something worth knowing. severity: ok, note, warning (figures will lack something) or error (nothing is seen)."""

    severity: str
    text: str


class Examination(TypedDict):
    """Everything that `ioweir doctor --json` prints."""

    command: list[str]
    program: str
    program_path: str | None
    kind: str
    launcher: str | None
    launcher_kind: str | None
    mpi: str | None
    mpi_library: str | None
    libraries: list[str]
    layers: dict[str, bool]
    gaps: list[dict[str, Any]]
    preload: str | None
    clock_source: str | None
    findings: list[Finding]


def mpi_of(sonames: Iterable[str]) -> tuple[str, str] | None:
    """Which MPI a set of sonames means, and by which of them. Example: libmpi.so.40 -> Open MPI."""
    found = linking.kind_of_libraries(sonames)
    return ({linking.OPEN_MPI: OPEN_MPI, linking.MPICH: MPICH}[found[0]], found[1]) if found else None


def examine(words: Sequence[str]) -> Examination:
    """Look at everything that decides what a trace of this command will hold."""
    if not words:
        raise IoweirError("no command given: ioweir doctor -- CMD ...", EXIT_USAGE)
    result = Examination(
        command=list(words), program="", program_path=None, kind="", launcher=None, launcher_kind=None, mpi=None,
        mpi_library=None, libraries=[], layers=dict.fromkeys(LAYERS, False), gaps=[], preload=None,
        clock_source=None, findings=[],
    )  # fmt: skip
    behind = _look_at_launcher(words, result)
    try:
        _look_at_program(behind, result)
        _look_at_match(result)
        _look_at_surroundings(result)
    except ValueError as error:
        raise IoweirError(f"{error}. Is it a complete executable?") from error
    return result


def _say(result: Examination, severity: str, text: str) -> None:
    result["findings"].append(Finding(severity=severity, text=text))


def _see_the_c_library(result: Examination) -> None:
    """POSIX calls are seen wherever the preload is, and STDIO's where the compiled part has hooks for them."""
    result["layers"][POSIX] = True
    try:
        result["layers"][STDIO] = any(function.layer == STDIO for function in function_table(compiled().functions()))
    except IoweirError:
        return  # said by whoever lists the gaps


def _look_at_launcher(words: Sequence[str], result: Examination) -> Sequence[str]:
    """Note the launcher, if any; returns the words that start the program."""
    at = wrappers.unwrap(words)
    if not launchers.find_launcher(words, at):
        return words[at:]
    path = find_command(words[at], os.environ, "Install the MPI whose launcher it is")
    known = launchers.identify(path)
    result["launcher"] = path
    result["launcher_kind"] = known.kind.value if known else None
    if known is None:
        _say(
            result,
            "warning",
            f"launcher {path}: neither Open MPI, Hydra nor Slurm; it gets the preload itself and ranks on other nodes "
            "may not",
        )
        known = launchers.OPEN_MPI_4
    else:
        _say(result, "ok", f"launcher {path}: {known.options.title}; only its ranks get the preload")
    inner = words[at:]
    context = launchers.parse(known, inner)[0]
    for doubt in launchers.doubts(known, inner, (context,)):
        _say(result, "warning", doubt)
    if launchers.programs_stand_in_a_file(context):
        raise IoweirError(
            f"{words[at]}: its programs stand in a file; name one of them instead: ioweir doctor -- PROGRAM",
            EXIT_NOT_FOUND,
        )
    if context.program is None:
        raise IoweirError(f"{words[at]}: no program found behind its options", EXIT_NOT_FOUND)
    program = inner[context.program : context.end]
    return program[wrappers.unwrap(program) :]


# ------------------------------------------------------------------------------------------------------ the program


def _look_at_program(words: Sequence[str], result: Examination) -> None:
    path = find_command(words[0], os.environ)
    result["program"] = wrappers.program_name(words)
    result["program_path"] = path
    if not elf.is_elf(path):
        interpreter = script_interpreter(path)
        inner = interpreter[wrappers.unwrap(interpreter) :] if interpreter else ["/bin/sh"]
        _look_at_interpreter([*inner, path], result)
    elif wrappers.script_of(words) is not None:
        _look_at_interpreter(words, result)
    else:
        _look_at_binary(path, result)


def script_interpreter(path: str) -> list[str]:
    """The words of a script's #! line. Example: "#!/usr/bin/env python3" -> ["/usr/bin/env", "python3"]."""
    try:
        with open_named(path) as file:
            line = file.readline(512)
    except OSError:
        return []
    return line[2:].decode("utf-8", "replace").split() if line.startswith(b"#!") else []


def _look_at_interpreter(words: Sequence[str], result: Examination) -> None:
    name = PurePath(words[0]).name
    if name.startswith("python"):
        result["kind"] = "Python script"
        _look_at_python(words[0], result)
        return
    result["kind"] = "script"
    _see_the_c_library(result)
    _say(
        result,
        "note",
        f"{words[-1]} is a script for {name}: the programs it starts are traced when they run, and launchers that it "
        "calls by name pass the preload to their ranks only. For what they import, ask doctor about each of them",
    )


def _look_at_python(interpreter: str, result: Examination) -> None:
    path = shutil.which(interpreter)
    if path is None:
        raise IoweirError(f"{interpreter}: the script's interpreter is not found in PATH", EXIT_NOT_FOUND)
    places = _places_of_packages(path)
    real = os.path.realpath(path)
    _examine_closure(elf.closure(real, os.environ) if elf.is_elf(real) else None, result)
    for package, needed in _PACKAGES_OF_INTEREST.items():
        if places.get(package):
            _look_at_python_package(package, Path(places[package]).parent, needed, result)
    asked = places.get("mpi4py.MPI", "")
    if not asked or not elf.is_elf(asked):
        _say(
            result, "note", f"{path} has no mpi4py: if the script uses no MPI, its POSIX calls are traced all the same"
        )
        return
    found = mpi_of(elf.closure(asked, os.environ).libraries)
    if found is None:
        _say(result, "note", f"mpi4py ({asked}) loads its MPI library at run time; the back end is chosen then")
        return
    result["mpi"], result["mpi_library"] = found
    result["layers"][MPI_IO] = True
    _say(result, "ok", f"mpi4py is built for {found[0]} ({found[1]}), loaded at run time; MPI-IO through it is traced")


def _places_of_packages(interpreter: str) -> dict[str, str]:
    """Where an interpreter has the packages of _PYTHON_QUESTION; empty for those that it does not have."""
    try:
        answer = subprocess.run(
            [interpreter, "-c", _PYTHON_QUESTION],
            capture_output=True,
            text=True,
            errors="surrogateescape",
            timeout=60,
            check=False,
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return {}
    pairs = (line.partition("=") for line in answer.splitlines())
    return {name: place for name, _, place in pairs}


def _look_at_python_package(package: str, place: Path, needed: str, result: Examination) -> None:
    """A package's compiled modules need the library whose calls it makes; the first module of each kind tells."""
    pattern = _LIBRARIES_OF_INTEREST[needed]
    linked: dict[str, elf.Closure] = {}
    for module in sorted(place.rglob("*.so")):
        if not elf.is_elf(str(module)):
            continue
        found = elf.closure(str(module), os.environ)
        for soname in found.libraries:
            if pattern.match(soname):
                linked.setdefault(soname, found)
    for soname, found in linked.items():
        if needed == "HDF5" and _is_old_hdf5(found.libraries[soname]):
            continue
        if not any(known in soname for known in ("_hl", "_cpp", "_fortran")):
            result["libraries"].append(soname)
            result["layers"][needed] = True
            _say(result, "ok", f"{package} is there ({soname}): {needed} calls through it are traced")


def _look_at_binary(path: str, result: Examination) -> None:
    if os.stat(path).st_mode & (stat.S_ISUID | stat.S_ISGID):  # noqa: PTH116 (the path is already resolved)
        _say(result, "error", f"{path} is setuid or setgid: the dynamic linker ignores LD_PRELOAD for it")
    _examine_closure(elf.closure(path, os.environ), result)


def _examine_closure(found: elf.Closure | None, result: Examination) -> None:
    if found is None:
        return
    binary = found.binary
    result["kind"] = result["kind"] or ("dynamic executable" if binary.interpreter else "static executable")
    linked = linking.NOTE_LINKED in binary.notes
    if linked:
        _say(
            result,
            "ok",
            "linked with ioweir: it is traced without the preload when IOWEIR_DIR is set (ioweir run does)",
        )
        for name, note in linking.NOTES_OF_LIBRARIES.items():
            if note in binary.notes:
                result["layers"][name] = True
                _say(result, "ok", f"{name}: the program's own calls are traced by what is linked in")
    if binary.interpreter is None and linked:
        _see_the_c_library(result)
        result["layers"][MPI_IO] = linking.NOTE_MPI in binary.notes
        _say(
            result,
            "note",
            "statically linked: what is not linked in now is not seen (nothing can be preloaded)",
        )
        return
    if binary.interpreter is None:
        _say(
            result,
            "error",
            f"{binary.path} is statically linked: nothing can be preloaded into it. Link it dynamically "
            "(without -static, on a Cray with CRAYPE_LINK_TYPE=dynamic), or link ioweir in (ioweir link)",
        )
        return
    if "ld-musl" in binary.interpreter:
        _say(result, "error", f"{binary.path} uses musl; the preload needs glibc. Build it against glibc")
        return
    _see_the_c_library(result)
    for soname in found.missing:
        _say(
            result,
            "error",
            f"{soname} is not found: the program will not start. Load its module or set LD_LIBRARY_PATH",
        )
    mpi = mpi_of(found.libraries)
    if mpi is not None:
        result["mpi"], result["mpi_library"] = mpi[0], found.libraries[mpi[1]].path
        result["layers"][MPI_IO] = True
        _say(result, "ok", f"MPI library: {mpi[0]} ({found.libraries[mpi[1]].path})")
    elif (translator := linking.translator_of(found.libraries)) is not None:
        _say(
            result,
            "warning",
            f"{translator} translates between MPI libraries: MPI calls through it are not traced, POSIX calls are. "
            "Run the program with the MPI library that it was compiled for",
        )
    elif linked and linking.NOTE_MPI in binary.notes:
        result["layers"][MPI_IO] = True
        _say(result, "ok", "MPI library: linked statically, and so is ioweir in front of it")
    elif "MPI_Init" in binary.defined:
        _say(
            result,
            "error",
            "MPI is linked statically: its MPI-IO calls cannot be seen; link the shared one, or ioweir (ioweir link)",
        )
    elif result["kind"] == "dynamic executable":
        _say(
            result, "note", "no MPI library is linked; if one is loaded at run time, its calls are traced from then on"
        )
    _look_at_sanitizers(found, result)
    _look_at_libraries(found, result)
    _look_at_gaps([binary, *(part for name, part in found.libraries.items() if _is_programs_own(name, part))], result)


def _is_programs_own(soname: str, library: elf.Binary) -> bool:
    """Whether what a library imports tells of the program's I/O, and not of the system's (curl, Kerberos, Python)."""
    if _MPI_PART.match(soname):
        return False
    return (
        not library.path.startswith(_SYSTEM_DIRECTORIES)
        or any(pattern.match(soname) for pattern in (_FORTRAN_RUNTIME, *_LIBRARIES_OF_INTEREST.values()))
        or any(symbol.startswith("MPI_") for symbol in library.undefined)
    )


def _look_at_sanitizers(found: elf.Closure, result: Examination) -> None:
    whys = {
        "address": "refuses to start behind a preloaded library",
        "thread": "takes what ioweir does in threads for races",
    }
    for sanitizer in sanitizers.SANITIZERS:
        soname = next((name for name in found.libraries if name.encode().startswith(sanitizer.runtimes)), None)
        if soname is None:
            continue
        direct = soname in found.binary.needed
        _say(
            result,
            "note" if direct else "warning",
            f"built with the {sanitizer.name} sanitizer ({soname}), which {whys[sanitizer.name]}: "
            + ("`ioweir run` sets" if direct else "set")
            + f" {sanitizer.variable}={sanitizer.setting} for the run"
            + ("; where another program starts it, set it yourself, or link ioweir in (ioweir link)" if direct else ""),
        )


def _look_at_libraries(found: elf.Closure, result: Examination) -> None:
    for name, pattern in _LIBRARIES_OF_INTEREST.items():
        linked = [soname for soname in found.libraries if pattern.match(soname)]
        if linked:
            _look_at_shared_library(name, linked, found, result)
        elif linking.NOTES_OF_LIBRARIES[name] in found.binary.notes:
            continue
        elif _STATIC_MARKERS[name] in found.binary.defined or (
            # ioweir itself knows the name.
            name == "HDF5"
            and linking.NOTE_LINKED not in found.binary.notes
            and _holds(found.binary.path, b"\0H5Dwrite\0")
        ):
            _say(
                result,
                "warning",
                f"{name} is linked statically: its own calls cannot be seen, only the MPI-IO and POSIX calls it makes; "
                "link the shared one to see them, or ioweir (ioweir link)",
            )


def _look_at_shared_library(name: str, linked: Sequence[str], found: elf.Closure, result: Examination) -> None:
    result["libraries"].extend(linked)
    # Serial and parallel HDF5 in one program: each call goes to the library that it belongs to.
    old = [soname for soname in linked if name == "HDF5" and _is_old_hdf5(found.libraries[soname])]
    if old:
        _say(
            result,
            "warning",
            f"{old[0]} is older than HDF5 1.10: its own calls are passed on and not recorded, only the MPI-IO and "
            "POSIX calls it makes",
        )
        return
    result["layers"][name] = True
    _say(result, "ok", f"{name} ({linked[0]}): its calls are traced, with the MPI-IO and POSIX calls it makes")


def _is_old_hdf5(library: elf.Binary) -> bool:
    """Ids have 64 bits since HDF5 1.10, which brought H5Dflush. libhdf5_hl and others have neither function."""
    return "H5Dwrite" in library.defined and "H5Dflush" not in library.defined


def _holds(path: str, text: bytes) -> bool:
    """Whether a file holds some bytes: HDF5's functions know their names, also when symbols were removed."""
    try:
        return bool(named_holds(path, (text,)))
    except OSError:
        return False


def _look_at_gaps(binaries: Sequence[elf.Binary], result: Examination) -> None:
    try:
        functions = function_table(compiled().functions())
    except IoweirError as error:
        _say(result, "error", str(error))
        return
    recorded = {symbol for function in functions for symbol in (function.name, *function.symbols)}
    library = locate.preload_library()
    if library is not None and elf.is_elf(str(library)):
        recorded |= elf.read(str(library)).defined  # with what makes other functions' events, as syscall does
    users: dict[str, list[str]] = {}
    for binary in binaries:
        for symbol in binary.undefined:
            users.setdefault(symbol, []).append(PurePath(binary.path).name)
    for gap in io_functions.gaps(users, recorded):
        where = sorted({name for symbol in gap.functions for name in users[symbol]})
        result["gaps"].append(
            {
                "family": gap.family,
                "moves_data": gap.moves_data,
                "functions": list(gap.functions),
                "imported_by": where,
            }
        )
        shown = ", ".join(gap.functions[:6]) + (f" and {len(gap.functions) - 6} more" if len(gap.functions) > 6 else "")
        by = f" (imported by {', '.join(where[:3])}{' and others' if len(where) > 3 else ''})"
        if gap.moves_data:
            _say(result, "warning", f"not recorded, {gap.family}: {shown}{by}. What moves through them is in no figure")
        else:
            _say(result, "note", f"not recorded, {gap.family}: {shown}{by}")


# ----------------------------------------------------------------------------------------------------- surroundings


def _look_at_match(result: Examination) -> None:
    wanted = {launchers.Kind.OPEN_MPI.value: OPEN_MPI, launchers.Kind.HYDRA.value: MPICH}.get(
        result["launcher_kind"] or ""
    )
    if wanted and result["mpi"] and wanted != result["mpi"]:
        _say(
            result,
            "warning",
            f"launcher and library do not match: {result['launcher']} is {result['launcher_kind']}'s, the program uses "
            f"{result['mpi']}. Every process would be rank 0 of 1; use the launcher of {result['mpi']}",
        )


def _look_at_surroundings(result: Examination) -> None:
    library = locate.preload_library()
    result["preload"] = str(library) if library else None
    if library is None:
        looked = ", ".join(str(directory) for directory in locate.candidate_directories())
        _say(result, "error", f"{locate.PRELOAD_LIBRARY} is not in {looked}: reinstall ioweir")
    else:
        _say(result, "ok", f"preload: {library}")
        _look_at_architecture(library, result)
    try:
        with tempfile.TemporaryFile(dir="."):
            pass
    except OSError as error:
        _say(
            result, "warning", f"{Path.cwd()} is not writable ({error.strerror}): give `ioweir run` a place with -o DIR"
        )
    try:
        result["clock_source"] = _CLOCK_SOURCE.read_text(encoding="ascii").strip()
    except OSError:
        _say(result, "note", f"the clock source is unknown ({_CLOCK_SOURCE} cannot be read)")
        return
    if result["clock_source"] == "tsc":
        _say(result, "ok", "clock source: tsc")
    else:
        _say(result, "note", f"clock source: {result['clock_source']}, not tsc; a traced call costs more")


def _look_at_architecture(library: Path, result: Examination) -> None:
    path = result["program_path"]
    if path is None or not elf.is_elf(path):
        return
    ours, theirs = elf.read(str(library)), elf.read(path)
    if (ours.machine, ours.bits) != (theirs.machine, theirs.bits):
        _say(
            result,
            "error",
            f"{path} is for {theirs.machine} with {theirs.bits} bits, the preload for {ours.machine} with {ours.bits}: "
            "it cannot be loaded. Install ioweir built for the program's architecture",
        )


# -------------------------------------------------------------------------------------------------------------- text


def exit_code(result: Examination) -> int:
    """0 when the program will be traced, 1 when something prevents that."""
    return EXIT_FAILED if any(finding["severity"] == "error" for finding in result["findings"]) else EXIT_OK


def write(result: Examination, stream: IO[str]) -> None:
    """Print the examination: what the program is, what will be seen, then all findings, the worst first."""
    from ioweir.report.report_text import console_for, say  # noqa: PLC0415 (rich is not needed for --json)

    with console_for(stream) as console:
        say(console, f"{result['program']}: {result['kind']}, {result['program_path']}")
        seen = [layer for layer, will_be_seen in result["layers"].items() if will_be_seen]
        say(console, f"Layers that will be seen: {', '.join(seen) or 'none'}")
        styles = {"error": "bold red", "warning": "yellow", "note": "bold", "ok": "green"}
        order = list(styles)
        for finding in sorted(result["findings"], key=lambda f: order.index(f["severity"])):
            say(console, f"  {finding['severity']}: {finding['text']}", styles[finding["severity"]])
