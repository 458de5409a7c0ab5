"""Commands that only start another one (env, timeout, numactl ...): where in a command line the real one begins.

Also what to call a program. Looks at the words only; launchers of MPI programs are launchers.py's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class Wrapper:
    """How a wrapper's own words are told from the command it starts."""

    valued: frozenset[str] = frozenset()
    """Options that take the next word as their value."""
    positionals: int = 0
    """Words of its own after the options. Example: timeout's duration."""
    assignments: bool = False
    """NAME=VALUE words belong to it (env)."""


WRAPPERS: Final[dict[str, Wrapper]] = {
    "env": Wrapper(frozenset({"-u", "--unset", "-C", "--chdir"}), assignments=True),
    "nice": Wrapper(frozenset({"-n", "--adjustment"})),
    "nohup": Wrapper(),
    "setsid": Wrapper(),
    "exec": Wrapper(),
    "time": Wrapper(frozenset({"-o", "--output", "-f", "--format"})),
    "timeout": Wrapper(frozenset({"-s", "--signal", "-k", "--kill-after"}), positionals=1),
    "taskset": Wrapper(positionals=1),
    "chrt": Wrapper(frozenset({"-T", "-P", "-D"}), positionals=1),
    "ionice": Wrapper(frozenset({"-c", "--class", "-n", "--classdata"})),
    "numactl": Wrapper(frozenset({"-i", "-N", "-C", "-m", "-p", "-w"})),
    "stdbuf": Wrapper(frozenset({"-i", "--input", "-o", "--output", "-e", "--error"})),
}

_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "csh", "tcsh"})
_PYTHON = re.compile(r"python[0-9.]*$")
_PYTHON_VALUED = frozenset({"-W", "-X", "--check-hash-based-pycs"})
_UNSAFE = re.compile(r"[^A-Za-z0-9._+-]+")


def unwrap(words: Sequence[str], start: int = 0) -> int:
    """Where the command begins that the wrappers at `start` end up starting; `start` when it is no wrapper.

    Example: ["timeout", "-k", "5", "60", "mpirun", ...] -> 4.
    """
    at = start
    while at < len(words):
        wrapper = WRAPPERS.get(PurePosixPath(words[at]).name)
        if wrapper is None:
            return at
        after = _skip_own_words(wrapper, words, at + 1)
        if after >= len(words):
            return at
        at = after
    return start


def _skip_own_words(wrapper: Wrapper, words: Sequence[str], at: int) -> int:
    while at < len(words) and (
        words[at].startswith("-") or (wrapper.assignments and _ASSIGNMENT.match(words[at]) is not None)
    ):
        if words[at] == "--":
            at += 1
            break
        at += 2 if words[at] in wrapper.valued else 1
    at += wrapper.positionals
    while wrapper.assignments and at < len(words) and _ASSIGNMENT.match(words[at]):
        at += 1
    return at


def script_of(words: Sequence[str]) -> str | None:
    """The script that an interpreter at the front of `words` runs; None for anything else, or code on the command line.

    Example: ["python3", "-u", "solve.py", "4"] -> "solve.py"; ["python3", "-m", "mpi4py", "solve.py"] -> "solve.py".
    """
    if not words:
        return None
    name = PurePosixPath(words[0]).name
    python = _PYTHON.match(name) is not None
    if not python and name not in _SHELLS:
        return None
    at = 1
    while at < len(words) and words[at].startswith("-"):
        if words[at] == "-m" and at + 1 < len(words):
            if words[at + 1].split(".")[0] not in ("mpi4py", "pdb", "cProfile"):
                return words[at + 1]
            at += 2
        elif words[at] in ("-c", "-"):
            return None
        else:
            at += 2 if python and words[at] in _PYTHON_VALUED else 1
    return words[at] if at < len(words) else None


def program_name(words: Sequence[str]) -> str:
    """A short name for what `words` runs, safe in a file name. Example: ["env", "A=1", "./job.sh"] -> "job"."""
    if not words:
        return "program"
    inner = words[unwrap(words) :]
    name = PurePosixPath(script_of(inner) or inner[0]).name
    for suffix in (".sh", ".py", ".bash"):
        name = name.removesuffix(suffix)
    return _UNSAFE.sub("_", name).strip("._") or "program"
