"""Launchers of MPI programs: which kind one is, where its options end, and how the ranks (and only they) get variables.

The rewriting is a pure function over the words of a command, so that it can be tested by its cases; `ioweir run` and
the shims both use it. Starts nothing but `LAUNCHER --version`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from enum import Enum
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from ioweir.errors import EXIT_NOT_STARTED, IoweirError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

PRELOAD: Final = "LD_PRELOAD"
_VERSION_TIMEOUT_S = 10


class Kind(Enum):
    """A family of launchers with one way to pass variables."""

    OPEN_MPI = "Open MPI"
    HYDRA = "Hydra (MPICH)"
    SLURM = "Slurm"


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


def _names(text: str) -> list[str]:
    return text.split()


_OPEN_MPI_VALUES: Final = {
    **dict.fromkeys(
        _names(
            "am app appfile bind-to c np n cf cartofile cpu-list cpu-set cpus-per-proc cpus-per-rank debugger "
            "default-hostfile display dvm-uri exec-agent H host hnp hostfile keepalive launch-agent machinefile map- "
            "by max-restarts max-vm-size N namespace npernode npersocket ompi-server output output-filename path "
            "personality pid ppr prefix preload-files rank-by rankfile report-events report-pid report-uri rf rtos "
            "runtime-options spawn-timeout stdin stream-buffering timeout tune wd wdir x xml-file xterm"
        ),
        1,
    ),
    **dict.fromkeys(_names("mca gmca omca prtemca pmixmca gprtemca gpmixmca"), 2),
}
_OPEN_MPI_FLAGS: Final = frozenset(
    _names(
        "allow-run-as-root bind-to-core bind-to-socket bycore bynode byslot continuous d debug-devel debug debug- "
        "daemons debug-daemons-file disable-recovery display-allocation display-devel-allocation display-devel-map "
        "display-diffable-map display-map display-topo do-not-launch do-not-resolve dvm enable-instant-on-support "
        "enable-recovery fwd-mpirun-port get-stack-traces index-argv-by-rank leave-session-attached merge-stderr-to- "
        "stdout nolocal nooversubscribe noprefix novm output-proctable oversubscribe pernode q quiet report-bindings "
        "report-child-jobs-separately report-state-on-timeout s preload-binary set-cwd-to-session-dir show-progress "
        "tag-output timestamp-output tv use-hwthread-cpus use-regexp v verbose V version xml"
    )
)
_HYDRA_VALUES: Final = {
    **dict.fromkeys(
        _names(
            "genvlist f hosts host hostfile machinefile wdir wd dir configfile envlist n np launcher launcher-exec "
            "bootstrap bootstrap-exec rmk topolib bind-to map-by membind demux iface ppn perhost grr prepend-pattern "
            "outfile-pattern errfile-pattern nameserver localhost usize gpus-per-proc ranks-per-proc path umask s "
            "gtool gtoolfile"
        ),
        1,
    ),
    **dict.fromkeys(("genv", "env"), 2),
}
_HYDRA_FLAGS: Final = frozenset(
    _names(
        "genvnone genvall envnone envall enable-x disable-x verbose v info print-all-exitcodes profile prepend-rank l "
        "disable-auto-cleanup disable-hostname-propagation order-nodes pmi-port skip-launch-node rr version V"
    )
)
# srun: options whose value, if any, is attached with "="; all other long options take the next word.
_SLURM_FLAGS: Final = frozenset(
    _names(
        "hold immediate kill-on-bad-exit label overcommit quiet oversubscribe share unbuffered verbose version "
        "exclusive contiguous disable-status no-allocate no-kill multi-prog pty preserve-env reboot spread-job use- "
        "min-nodes overlap exact whole test-only propagate quit-on-interrupt resv-ports get-user-env compress nice "
        "x11 external help usage interactive debugger-test"
    )
)
_SLURM_SHORT_FLAGS: Final = frozenset("EHIkKlOQsuvVXZh")


@dataclass(frozen=True)
class Option:
    """An option of the launcher in a command: its name without dashes, its values, and the words it takes."""

    name: str
    values: tuple[str, ...]
    first: int
    end: int


@dataclass(frozen=True)
class Context:
    """One program of a launcher's command: Open MPI calls it an application context; a bare ':' separates them."""

    first: int
    options: tuple[Option, ...]
    program: int | None
    end: int


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


def identify(path: str) -> Kind | None:
    """The kind of a launcher: by its name and where that leads to, else by what it says about itself."""
    names = {PurePath(path).name, PurePath(os.path.realpath(path)).name}
    if "srun" in names:
        return Kind.SLURM
    if any("hydra" in name for name in names):
        return Kind.HYDRA
    if names & {"orterun", "prterun", "prte"}:
        return Kind.OPEN_MPI
    try:
        clean = {name: value for name, value in os.environ.items() if name != PRELOAD}
        said = subprocess.run(
            [path, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_VERSION_TIMEOUT_S,
            env=clean,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return kind_from_version(said.stdout + said.stderr)


def kind_from_version(text: str) -> Kind | None:
    """The kind that `--version` output names."""
    if re.search(r"Open ?MPI|OpenRTE|PRRTE|prterun|orterun", text):
        return Kind.OPEN_MPI
    if re.search(r"HYDRA|Intel\(R\) MPI|MPICH", text):
        return Kind.HYDRA
    if re.match(r"\s*slurm", text, re.IGNORECASE):
        return Kind.SLURM
    return None


def is_executable(word: str) -> bool:
    """Whether a word names a program that could be started."""
    return shutil.which(word) is not None


# --------------------------------------------------------------------------------------------------------- parsing


def parse(kind: Kind, words: Sequence[str], is_program: Callable[[str], bool] = is_executable) -> tuple[Context, ...]:
    """The contexts of a launcher's command; words[0] is the launcher."""
    contexts: list[Context] = []
    at = 1
    while True:
        try:
            end = words.index(":", at)
        except ValueError:
            end = len(words)
        contexts.append(_context(kind, words, at, end, is_program))
        if end == len(words):
            return tuple(contexts)
        at = end + 1


def _context(kind: Kind, words: Sequence[str], first: int, end: int, is_program: Callable[[str], bool]) -> Context:
    options: list[Option] = []
    at = first
    while at < end and words[at].startswith("-") and words[at] != "-":
        if words[at] == "--":
            at += 1
            break
        option = _slurm_option(words, at, end) if kind is Kind.SLURM else _option(kind, words, at, end, is_program)
        options.append(option)
        at = option.end
    return Context(first, tuple(options), at if at < end else None, end)


def _option(kind: Kind, words: Sequence[str], at: int, end: int, is_program: Callable[[str], bool]) -> Option:
    values, flags = (_OPEN_MPI_VALUES, _OPEN_MPI_FLAGS) if kind is Kind.OPEN_MPI else (_HYDRA_VALUES, _HYDRA_FLAGS)
    name = words[at].lstrip("-")
    if name in values:
        count = values[name]
    elif "=" in name:
        name, _, value = name.partition("=")
        return Option(name, (value,), at, at + 1)
    elif name in flags or at + 1 >= end or words[at + 1].startswith("-"):
        count = 0
    else:
        # An option nobody told us about: what follows is its value unless it could be the program.
        count = 0 if is_program(words[at + 1]) else 1
    after = min(at + 1 + count, end)
    return Option(name, tuple(words[at + 1 : after]), at, after)


def _slurm_option(words: Sequence[str], at: int, end: int) -> Option:
    word = words[at]
    if word.startswith("--"):
        name, attached, value = word[2:].partition("=")
        if attached:
            return Option(name, (value,), at, at + 1)
        count = 0 if name in _SLURM_FLAGS else 1
    else:
        name = word[1]
        if len(word) > 2 and name not in _SLURM_SHORT_FLAGS:
            return Option(name, (word[2:].removeprefix("="),), at, at + 1)
        count = 0 if name in _SLURM_SHORT_FLAGS else 1
    after = min(at + 1 + count, end)
    return Option(name, tuple(words[at + 1 : after]), at, after)


# ------------------------------------------------------------------------------------------------------- rewriting


def join_preload(ours: str, theirs: str | None) -> str:
    """Our library first, then what was there, without ours a second time."""
    others = [name for name in re.split(r"[:\s]+", theirs or "") if name and name != ours]
    return ":".join([ours, *others])


def without_preload(ours: str, value: str | None) -> str | None:
    """A preload list without our library; None when nothing is left."""
    return ":".join(name for name in re.split(r"[:\s]+", value or "") if name and name != ours) or None


def rewrite(
    kind: Kind,
    words: Sequence[str],
    variables: Mapping[str, str],
    environment: Mapping[str, str],
    is_program: Callable[[str], bool] = is_executable,
) -> Rewritten:
    """The same command, passing `variables` to the ranks. `variables[LD_PRELOAD]` is our library alone.

    `environment` is what the launcher runs in; a preload that the user has there or on the command line stays, ours
    comes first.
    """
    contexts = parse(kind, words, is_program)
    if kind is Kind.SLURM:
        return _rewrite_slurm(words, contexts, variables, environment)
    file_option = {"app", "appfile"} if kind is Kind.OPEN_MPI else {"configfile"}
    if any(option.name in file_option for context in contexts for option in context.options):
        return _inherit(
            words, variables, environment, "its programs stand in a file, which cannot be given variables from outside"
        )
    if kind is Kind.OPEN_MPI:
        return _rewrite_open_mpi(words, contexts, variables, environment)
    return _rewrite_hydra(words, contexts, variables, environment)


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
                result[option.first + 2] = join_preload(ours, option.values[1])
                if option.name == "genv":
                    preload = result[option.first + 2]
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
