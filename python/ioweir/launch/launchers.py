"""Launchers of MPI programs: which kind one is, where its options end, and how the ranks (and only they) get variables.

The rewriting is a pure function over the words of a command, so that it can be tested by its cases; `ioweir run` and
the shims both use it. Starts nothing but `LAUNCHER --version`. What options a launcher has stands in launchers.toml,
how they are read in options.py.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from ioweir.errors import EXIT_NOT_STARTED, IoweirError
from ioweir.launch.options import Option, Table, launcher_table
from ioweir.launch.options import read as options_in

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

PRELOAD: Final = "LD_PRELOAD"
_VERSION_TIMEOUT_S = 10
_FIRST_OPEN_MPI_ON_PRRTE: Final = 5


class Kind(Enum):
    """A family of launchers with one way to pass variables."""

    OPEN_MPI = "Open MPI"
    HYDRA = "Hydra (MPICH)"
    SLURM = "Slurm"


@dataclass(frozen=True)
class Launcher:
    """A launcher as far as it is known: its family, and whose options it takes."""

    kind: Kind
    table: str
    """The name of its options in launchers.toml."""

    @property
    def options(self) -> Table:
        """Its options."""
        return launcher_table(self.table)


OPEN_MPI_4: Final = Launcher(Kind.OPEN_MPI, "open_mpi_4")
OPEN_MPI_5: Final = Launcher(Kind.OPEN_MPI, "open_mpi_5")
PRTERUN: Final = Launcher(Kind.OPEN_MPI, "prterun")
HYDRA: Final = Launcher(Kind.HYDRA, "hydra")
INTEL_MPI: Final = Launcher(Kind.HYDRA, "intel_mpi")
SRUN: Final = Launcher(Kind.SLURM, "slurm")

LAUNCHER_NAMES: Final = (
    "mpirun",
    "mpiexec",
    "orterun",
    "prterun",
    "mpiexec.hydra",
    "mpirun.openmpi",
    "mpiexec.openmpi",
    "mpirun.mpich",
    "mpiexec.mpich",
    "srun",
)


@dataclass(frozen=True)
class Context:
    """One program of a launcher's command: Open MPI calls it an application context; a bare ':' separates them."""

    first: int
    options: tuple[Option, ...]
    program: int | None
    end: int
    unknown: tuple[Option, ...] = ()
    """The options that the launcher's table lacks: how many words they take is guessed."""


@dataclass(frozen=True)
class Rewritten:
    """A launcher's command with which the ranks, and only they, get the variables."""

    words: tuple[str, ...]
    environment: dict[str, str] = field(default_factory=dict)
    """Variables that the launcher itself must have, because its command line cannot carry them."""
    warnings: tuple[str, ...] = ()


def find_launcher(words: Sequence[str], at: int) -> bool:
    """Whether the command at `at` is called like a launcher."""
    return at < len(words) and PurePath(words[at]).name in LAUNCHER_NAMES


def identify(path: str) -> Launcher | None:
    """What a launcher is: by its name and where that leads to, else by what it says about itself; None if unknown."""
    names = {PurePath(path).name, PurePath(os.path.realpath(path)).name}
    if "srun" in names:
        return SRUN
    if "orterun" in names:
        return OPEN_MPI_4
    if names & {"prterun", "prte"}:
        return PRTERUN
    try:
        clean = {name: value for name, value in os.environ.items() if name != PRELOAD}
        said = subprocess.run(
            [path, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_VERSION_TIMEOUT_S,
            env=clean,
            check=False,
        )
        known = launcher_from_version(said.stdout + said.stderr)
    except (OSError, subprocess.TimeoutExpired):
        known = None
    if known is None and any("hydra" in name for name in names):
        return HYDRA
    return known


def launcher_from_version(text: str) -> Launcher | None:
    """The launcher that `--version` output names."""
    if re.search(r"PRRTE|prterun", text):
        return PRTERUN
    if re.search(r"Open ?MPI|OpenRTE|orterun", text):
        release = re.search(r"Open ?MPI\)?\s+v?(\d+)", text)
        return OPEN_MPI_5 if release and int(release[1]) >= _FIRST_OPEN_MPI_ON_PRRTE else OPEN_MPI_4
    if "Intel(R) MPI" in text:
        return INTEL_MPI
    if re.search(r"HYDRA|MPICH", text):
        return HYDRA
    if re.match(r"\s*slurm", text, re.IGNORECASE):
        return SRUN
    return None


# Options of any launcher that name a file with programs. srun's variables reach what stands in one.
_OUT_OF_REACH: Final = frozenset({"app", "configfile"})
_LISTING_OPTIONS: Final = _OUT_OF_REACH | {"multi-prog"}


def is_executable(word: str) -> bool:
    """Whether a word names a program that could be started."""
    return shutil.which(word) is not None


# --------------------------------------------------------------------------------------------------------- parsing


def parse(
    launcher: Launcher, words: Sequence[str], is_program: Callable[[str], bool] = is_executable
) -> tuple[Context, ...]:
    """The contexts of a launcher's command; words[0] is the launcher."""
    contexts: list[Context] = []
    at = 1
    while True:
        try:
            end = words.index(":", at)
        except ValueError:
            end = len(words)
        contexts.append(_context(launcher.options, words, at, end, is_program))
        if end == len(words):
            return tuple(contexts)
        at = end + 1


def _context(table: Table, words: Sequence[str], first: int, end: int, is_program: Callable[[str], bool]) -> Context:
    options: list[Option] = []
    unknown: list[Option] = []
    at = first
    while at < end and words[at].startswith("-") and words[at] != "-":
        if words[at] == "--":
            at += 1
            break
        read = options_in(table, words, at, end)
        if not read:
            read = (_guess(words, at, end, is_program),)
            unknown += read
        options += read
        at = read[-1].end
    return Context(first, tuple(options), at if at < end else None, end, tuple(unknown))


def _guess(words: Sequence[str], at: int, end: int, is_program: Callable[[str], bool]) -> Option:
    """An option nobody told us about: what follows is its value unless it could be the program."""
    name, attached, value = words[at].lstrip("-").partition("=")
    if attached:
        return Option(name, (value,), at, at + 1)
    alone = at + 1 >= end or words[at + 1].startswith("-") or is_program(words[at + 1])
    after = at + 1 if alone else at + 2
    return Option(name, tuple(words[at + 1 : after]), at, after)


def programs_stand_in_a_file(context: Context) -> bool:
    """Whether the command names a file that lists programs instead of a program."""
    return any(option.name in _LISTING_OPTIONS for option in context.options)


def doubts(launcher: Launcher, words: Sequence[str], contexts: Sequence[Context]) -> tuple[str, ...]:
    """What to say of options that the launcher's table lacks, and of what was made of them."""
    notes: list[str] = []
    for context in contexts:
        for option in context.unknown:
            taken = (
                f"its value is taken to be {words[option.end - 1]!r}" if option.end > option.first + 1 else "no value"
            )
            program = "none" if context.program is None else repr(words[context.program])
            notes.append(
                f"{words[0]}: option {words[option.first]} is none that ioweir knows of {launcher.options.title}; "
                f"{taken}, and the program {program}. Where that is wrong, write the option as one word with = or put "
                "it behind those that are known"
            )
    return tuple(notes)


# ------------------------------------------------------------------------------------------------------- rewriting


def join_preload(ours: str, theirs: str | None) -> str:
    """Our library first, then what was there, without ours a second time."""
    others = [name for name in re.split(r"[:\s]+", theirs or "") if name and name != ours]
    return ":".join([ours, *others])


def without_preload(ours: str, value: str | None) -> str | None:
    """A preload list without our library; None when nothing is left."""
    return ":".join(name for name in re.split(r"[:\s]+", value or "") if name and name != ours) or None


def rewrite(
    launcher: Launcher,
    words: Sequence[str],
    variables: Mapping[str, str],
    environment: Mapping[str, str],
    is_program: Callable[[str], bool] = is_executable,
) -> Rewritten:
    """The same command, passing `variables` to the ranks. `variables[LD_PRELOAD]` is our library alone.

    `environment` is what the launcher runs in; a preload that the user has there or on the command line stays, ours
    comes first.
    """
    contexts = parse(launcher, words, is_program)
    kind = launcher.kind
    if any(option.name in _OUT_OF_REACH for context in contexts for option in context.options):
        result = _inherit(
            words, variables, environment, "its programs stand in a file, which cannot be given variables from outside"
        )
    elif kind is Kind.SLURM:
        result = _rewrite_slurm(words, contexts, variables, environment)
    elif kind is Kind.OPEN_MPI:
        result = _rewrite_open_mpi(words, contexts, variables, environment)
    else:
        result = _rewrite_hydra(words, contexts, variables, environment)
    return replace(result, warnings=(*result.warnings, *doubts(launcher, words, contexts)))


def inherit(words: Sequence[str], variables: Mapping[str, str], environment: Mapping[str, str]) -> Rewritten:
    """For a launcher of an unknown kind: it gets the variables itself, and its ranks from it."""
    return _inherit(words, variables, environment, "it is none of Open MPI, Hydra and Slurm")


def _inherit(words: Sequence[str], variables: Mapping[str, str], environment: Mapping[str, str], why: str) -> Rewritten:
    own = {**variables, PRELOAD: join_preload(variables[PRELOAD], environment.get(PRELOAD))}
    return Rewritten(
        tuple(words),
        own,
        (
            f"{words[0]}: {why}; the launcher gets the variables itself, and ranks on other nodes may not. "
            "`ioweir env -o DIR` prints them for use in front of the program",
        ),
    )


def _rewrite_open_mpi(
    words: Sequence[str], contexts: Sequence[Context], variables: Mapping[str, str], environment: Mapping[str, str]
) -> Rewritten:
    listed = _open_mpi_env_list(words, contexts, variables, environment)
    if listed is not None:
        return listed
    result = [words[0]]
    for number, context in enumerate(contexts):
        if number:
            result.append(":")
        theirs = environment.get(PRELOAD)
        dropped: set[int] = set()
        for option in context.options:
            name, given, value = (
                option.values[0].partition("=") if option.name == "x" and option.values else ("", "", "")
            )
            if name in variables:
                dropped.update(range(option.first, option.end))
                if name == PRELOAD and given:
                    theirs = value
        for name, value in variables.items():
            result += ["-x", f"{name}={join_preload(value, theirs) if name == PRELOAD else value}"]
        result += [words[at] for at in range(context.first, context.end) if at not in dropped]
    return Rewritten(tuple(result))


def _open_mpi_env_list(
    words: Sequence[str], contexts: Sequence[Context], variables: Mapping[str, str], environment: Mapping[str, str]
) -> Rewritten | None:
    """Open MPI refuses -x beside its older mca_base_env_list: where a user has that one, ours are appended to it."""
    if any(";" in value for value in variables.values()):
        return None
    at = next(
        (
            option.first + 2
            for context in contexts
            for option in context.options
            if option.name in ("mca", "gmca")
            and option.values[:1] == ("mca_base_env_list",)
            and len(option.values) == 2
        ),
        None,
    )
    in_environment = environment.get("OMPI_MCA_mca_base_env_list")
    current = words[at] if at is not None else in_environment
    if current is None:
        return None
    entries = [entry for entry in current.split(";") if entry]
    theirs = environment.get(PRELOAD)
    for entry in entries:
        name, given, value = entry.partition("=")
        if name == PRELOAD and given:
            theirs = value
    kept = [entry for entry in entries if entry.partition("=")[0] not in variables]
    ours = [f"{n}={join_preload(v, theirs) if n == PRELOAD else v}" for n, v in variables.items()]
    text = ";".join([*kept, *ours])
    if at is None:
        return Rewritten(tuple(words), {"OMPI_MCA_mca_base_env_list": text})
    return Rewritten((*words[:at], text, *words[at + 1 :]))


def _rewrite_hydra(
    words: Sequence[str], contexts: Sequence[Context], variables: Mapping[str, str], environment: Mapping[str, str]
) -> Rewritten:
    ours = variables[PRELOAD]
    result = list(words)
    preload = join_preload(ours, environment.get(PRELOAD))
    dropped: set[int] = set()
    for context in contexts:
        for option in context.options:
            if option.name not in ("genv", "env") or not option.values or option.values[0] not in variables:
                continue
            if option.values[0] != PRELOAD:
                dropped.update(range(option.first, option.end))
            elif len(option.values) == 2:
                # A program's own -env outranks -genv: both get ours in front of what they name.
                theirs = join_preload(ours, option.values[1])
                last = option.end - 1
                # The value is the whole last word, or the end of it: -env NAME=VALUE.
                result[last] = words[last].removesuffix(option.values[1]) + theirs
                if option.name == "genv":
                    preload = theirs
                    dropped.update(range(option.first, option.end))
    inserted: list[str] = []
    for name, value in variables.items():
        inserted += ["-genv", name, preload if name == PRELOAD else value]
    kept = [word for at, word in enumerate(result) if at not in dropped]
    return Rewritten((kept[0], *inserted, *kept[1:]))


def _rewrite_slurm(
    words: Sequence[str], contexts: Sequence[Context], variables: Mapping[str, str], environment: Mapping[str, str]
) -> Rewritten:
    if "," in variables[PRELOAD]:
        raise IoweirError(
            f"srun cannot pass {PRELOAD}={variables[PRELOAD]}: a comma separates the variables of its --export. "
            "Install ioweir in a directory without a comma in its name",
            EXIT_NOT_STARTED,
        )
    result = [words[0]]
    own: dict[str, str] = {}
    for number, context in enumerate(contexts):
        if number:
            result.append(":")
        dropped: set[int] = set()
        entries = _export_entries(environment.get("SLURM_EXPORT_ENV", "ALL"))
        for option in context.options:
            if option.name == "export" and option.values:
                dropped.update(range(option.first, option.end))
                entries = _export_entries(option.values[0])
        theirs = environment.get(PRELOAD)
        kept: list[str] = []
        for entry in entries:
            name, given, value = entry.partition("=")
            if name == PRELOAD and given:
                theirs = value
            if name not in variables:
                kept.append(entry)
        for name, value in variables.items():
            if name == PRELOAD:
                kept.append(f"{name}={join_preload(value, theirs)}")
            elif "," in value:
                own[name] = value
                kept.append(name)
            else:
                kept.append(f"{name}={value}")
        result.append(f"--export={','.join(kept)}")
        result += [words[at] for at in range(context.first, context.end) if at not in dropped]
    return Rewritten(tuple(result), own)


def _export_entries(value: str) -> list[str]:
    """What srun's --export names. NONE and NIL mean nothing else than what is named, which ours then is."""
    return [entry for entry in value.split(",") if entry and entry not in ("NONE", "NIL")]
