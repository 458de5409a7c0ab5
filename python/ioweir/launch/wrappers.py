"""Commands that only start another one (env, timeout, numactl ...): where in a command line the real one begins.

Also what to call a program. Looks at the words only; launchers of MPI programs are launchers.py's, and how options are
read is options.py's.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from ioweir.launch.options import Table, load, read, table_of

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class Wrapper:
    """How a wrapper's own words are told from the command it starts."""

    options: Table
    operands: int = 0
    """Words of its own behind the options. Example: timeout's duration."""
    assignments: bool = False
    """NAME=VALUE words belong to it (env)."""
    leading: bool = False
    """A word of its own may stand in front of the options. Example: setarch's architecture."""
    numbers: bool = False
    """A number may stand as an option (nice -5)."""
    string: frozenset[str] = frozenset()
    """Words in place of the command where a shell gets a string instead. Example: flock FILE -c 'COMMAND'."""
    elsewhere: frozenset[str] = frozenset()
    """Options with which no command stands in the words that follow. Example: env's --split-string."""


@functools.cache
def known() -> dict[str, Wrapper]:
    """The wrappers by name, as wrappers.toml describes them."""
    found = {
        name: Wrapper(
            table_of(entry, name),
            entry.get("operands", 0),
            entry.get("assignments", False),
            entry.get("leading", False),
            entry.get("numbers", False),
            frozenset(entry.get("string", ())),
            frozenset(entry.get("elsewhere", ())),
        )
        for name, entry in load("wrappers.toml").items()
    }
    # setarch under the names of architectures takes none in front.
    return found | dict.fromkeys(("linux32", "linux64", "i386", "x86_64"), replace(found["setarch"], leading=False))


_NUMBER: Final = re.compile(r"-[-+]?[0-9]+")
_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "csh", "tcsh"})
_PYTHON = re.compile(r"python[0-9.]*$")
_PYTHON_VALUED = frozenset({"-W", "-X", "--check-hash-based-pycs"})
_UNSAFE = re.compile(r"[^A-Za-z0-9._+-]+")


def unwrap(words: Sequence[str], start: int = 0) -> int:
    """Where the command begins that the wrappers at `start` end up starting; `start` when it is no wrapper.

    Also `start` where that cannot be known: at an option that no table has, or a command in a string (`env -S`).
    Example: ["timeout", "-k", "5", "60", "mpirun", ...] -> 4.
    """
    at = start
    while at < len(words):
        wrapper = known().get(PurePosixPath(words[at]).name)
        if wrapper is None:
            return at
        after = _skip_own_words(wrapper, words, at + 1)
        if after is None:
            return start
        if after >= len(words):
            return at
        at = after
    return start


def _skip_own_words(wrapper: Wrapper, words: Sequence[str], at: int) -> int | None:
    """Where the words of the wrapper end that begin at `at`; None where that cannot be known."""
    if wrapper.leading and at < len(words) and not words[at].startswith("-"):
        at += 1
    while at < len(words) and words[at].startswith("-"):
        if words[at] == "--":
            at += 1
            break
        if words[at] == "-":
            # env's short form of --ignore-environment; to every other one a command of this name.
            if not wrapper.assignments:
                break
            at += 1
            continue
        if wrapper.numbers and _NUMBER.fullmatch(words[at]):
            at += 1
            continue
        options = read(wrapper.options, words, at, len(words))
        if not options or any(option.name in wrapper.elsewhere for option in options):
            return None
        at = options[-1].end
    while wrapper.assignments and at < len(words) and "=" in words[at]:
        at += 1
    at += wrapper.operands
    return None if at < len(words) and words[at] in wrapper.string else at


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
