"""`ioweir merge`, `ls`, `check`: files whose bytes lie in several (docs/reference/containers.md), seen from outside.

Everything about the format is the compiled part's (src/container).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ioweir.compiled import compiled
from ioweir.errors import IoweirError
from ioweir.units import size

if TYPE_CHECKING:
    from pathlib import Path


def describe(path: Path) -> dict[str, Any]:
    """What a container holds, and what is wrong with it that can be lived with."""
    try:
        row: dict[str, Any] = compiled().describe_container(str(path))
    except ValueError as error:
        raise IoweirError(str(error)) from error
    return row


def check(path: Path) -> dict[str, Any]:
    """The same for a container that may be beyond reading: then `problems` says why, and little else is there."""
    try:
        return describe(path)
    except IoweirError as error:
        return {"path": str(path), "problems": [str(error)]}


def merge(path: Path, output: Path | None) -> str:
    """Makes the ordinary file and says so."""
    where = output or path
    try:
        length = compiled().merge_container(str(path), str(where))
    except ValueError as error:
        raise IoweirError(str(error)) from error
    return f"{where}: {size(length)}" + ("" if output else ", the directory of its parts is removed")


def to_text(row: dict[str, Any]) -> list[str]:
    """For a person."""
    holes = row["bytes"] - row["held_bytes"]
    lines = [
        f"{row['path']}: {size(row['bytes'])}, {row['mapping']} in {row['directory']}"
        + (f", of it {size(holes)} never written" if holes else "")
    ]
    lines += [f"  group {group}: {size(held)}" for group, held in enumerate(row["group_bytes"])]
    return [*lines, *(f"  {problem}" for problem in row["problems"])]


def verdict(row: dict[str, Any]) -> list[str]:
    """Whole, or why not."""
    if not row["problems"]:
        return [f"{row['path']}: whole, {size(row['bytes'])}"]
    return [f"{row['path']}: NOT whole", *(f"  {problem}" for problem in row["problems"])]
