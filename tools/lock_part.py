#!/usr/bin/env python3
"""The part of requirements.lock that building and running ioweir needs: what `make demo` installs on a fresh machine.

In: requirements.in, whose sections "# build" and "# run" name packages, and the lock, whose comments say what each
package comes with. Out: those lines of the lock, hashes included, on standard output. Words name sections, where not
both are wanted. Runs before any package is installed, so that it needs nothing but Python.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

ROOT = Path(__file__).resolve().parent.parent
SECTIONS = ("build", "run")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def named(text: str, sections: Collection[str] = SECTIONS) -> set[str]:
    """Packages below the headings of these sections."""
    names: set[str] = set()
    inside = False
    for line in text.splitlines():
        if line.startswith("#"):
            inside = line[2:] in sections
        elif inside and (found := _NAME.match(line)):
            names.add(found[0].lower())
    return names


def entries(text: str) -> list[tuple[str, set[str], str]]:
    """Of each entry of the lock: the package, those that it comes with, and its lines."""
    found: list[tuple[str, set[str], str]] = []
    for lines in re.split(r"\n(?=[A-Za-z0-9])", text.rstrip("\n")):
        name = _NAME.match(lines)
        if name is None:
            continue
        comments = re.findall(r"^    # +(?:via )?(?!via$)(\S.*)$", lines, re.MULTILINE)
        found.append((name[0].lower(), {comment.lower() for comment in comments}, lines))
    return found


def part(lock: str, wanted: set[str]) -> str:
    """The entries of the wanted packages and of all that comes with them."""
    every = entries(lock)
    names = set(wanted)
    while more := {name for name, comes_with, _ in every if name not in names and comes_with & names}:
        names |= more
    if missing := wanted - {name for name, _, _ in every}:
        raise SystemExit(f"requirements.lock lacks {', '.join(sorted(missing))}: run make lock")
    return "\n".join(lines for name, _, lines in every if name in names) + "\n"


if __name__ == "__main__":
    wanted = named((ROOT / "requirements.in").read_text(), sys.argv[1:] or SECTIONS)
    sys.stdout.write(part((ROOT / "requirements.lock").read_text(), wanted))
