"""What is asked of a plan before a program starts under it: can it be read, can every rule be carried out, and are the
directories there that it names. What only an open file can tell is the engine's to say, in the trace.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ioweir.base.compiled import compiled
from ioweir.base.guarded_files import read_named
from ioweir.errors import EXIT_USAGE, IoweirError, reason

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def read_plan(plan: Path) -> str:
    """The text of a plan file that the planner accepts."""
    try:
        text = read_named(plan).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = reason(error) if isinstance(error, OSError) else str(error)
        raise IoweirError(f"plan '{plan}' cannot be read: {why}", EXIT_USAGE) from error
    try:
        compiled().parse_plan(text, str(plan))
    except ValueError as error:
        raise IoweirError(f"plan '{plan}' is not valid: {error}", EXIT_USAGE) from error
    return text


def rule_for(plan: Path, text: str, path: str, *, only_one_is_meant: bool = False, remedy: str = "") -> int:
    """The number of the first rule that fits a file; `only_one_is_meant`: or of the only one there is."""
    index: int | None = compiled().match_plan(text, str(plan), path)
    if index is not None:
        return index
    rules: list[dict[str, Any]] = compiled().parse_plan(text, str(plan))
    if only_one_is_meant and len(rules) == 1:
        return 0
    patterns = ", ".join(f"'{rule['match']}'" for rule in rules)
    raise IoweirError(f"no rule of {plan} fits the file '{path}'; there are {patterns}{remedy}", EXIT_USAGE)


def check_plan(plan: Path, folder: Path | None) -> str:
    """The text of a plan file whose every rule can be carried out.

    `folder`: where the ranks will look for relative directories; None where nobody knows yet, and then they are not
    looked for.
    """
    text = read_plan(plan)
    try:
        rules: list[dict[str, Any]] = compiled().check_plan(text, str(plan))
    except ValueError as error:
        raise IoweirError(f"plan '{plan}' cannot be carried out: {error}", EXIT_USAGE) from error
    _check_targets(plan, rules, folder)
    return text


def _check_targets(plan: Path, rules: Iterable[Mapping[str, Any]], folder: Path | None) -> None:
    for rule in rules:
        for target in rule["targets"]:
            place = Path(target)
            if not place.is_absolute():
                if folder is None:
                    continue
                place = folder / place
            if problem := _why_no_target(place):
                raise IoweirError(
                    f"plan '{plan}' cannot be carried out: a target that {problem}: targets = [..., \"{target}\"] "
                    f'({plan}:{rule["line"]}, the rule for "{rule["match"]}"); targets are directories in which the '
                    "ranks make files: make it, or name another",
                    EXIT_USAGE,
                )


def _why_no_target(place: Path) -> str:
    """Why ranks cannot make files in a directory; empty when they can."""
    try:
        mode = place.stat().st_mode
    except FileNotFoundError:
        return "is a link to nothing" if place.is_symlink() else "does not exist"
    except OSError as error:
        return f"cannot be looked at ({error.strerror})"
    if not stat.S_ISDIR(mode):
        return "is not a directory"
    if not os.access(place, os.W_OK | os.X_OK):
        return "cannot be written to"
    return ""
