"""`ioweir ls` and `check` of sets of partitioned files (docs/reference/partitioned-files.md).

Everything about the format is the compiled part's (src/partition).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ioweir.base.compiled import compiled
from ioweir.base.units import plural, size

if TYPE_CHECKING:
    from pathlib import Path


def describe(path: Path) -> dict[str, Any] | None:
    """What the set has that `path` belongs to by its name; None: it is no set's."""
    row: dict[str, Any] | None = compiled().describe_set(str(path))
    return row


def to_text(row: dict[str, Any]) -> list[str]:
    """For a person."""
    if "fields" not in row:
        return [f"{row['path']}: no whole set", *(f"  {problem}" for problem in row["problems"])]
    files, parts, total = len(row["file_bytes"]), row["parts"], sum(row["file_bytes"])
    written = f", written by {row['ranks']} {plural('rank', row['ranks'])}" if row["has_manifest"] else ", PHASTA's own"
    return [
        f"{row['path']}: step {row['step']}, {parts} {plural('part', parts)} in {files} {plural('file', files)}, "
        f"{size(total)}{written}",
        f"  fields: {', '.join(row['fields'])}",
        *(
            f"  {path}: {count} {plural('part', count)}, {size(held)}"
            for path, count, held in zip(row["file_paths"], row["file_parts"], row["file_bytes"], strict=True)
        ),
        *(f"  {problem}" for problem in row["problems"]),
    ]


def verdict(row: dict[str, Any]) -> list[str]:
    """Whole, or why not."""
    if row["problems"]:
        return [f"{row['path']}: NOT whole", *(f"  {problem}" for problem in row["problems"])]
    return [f"{row['path']}: whole, {size(sum(row['file_bytes']))}"]
