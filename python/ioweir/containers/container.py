"""`ioweir merge`, `ls`, `check`, `gc`: files whose bytes lie in several (docs/reference/containers.md), from outside.

Everything about the format is the compiled part's (src/container).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ioweir.base.compiled import compiled
from ioweir.base.guarded_files import Folder
from ioweir.base.units import plural, size
from ioweir.containers import netcdf_leftovers, unfinished
from ioweir.errors import IoweirError

_DIRECTORY: Final = re.compile(r"\.ioweir-[0-9a-f]{32}")


def describe(path: Path) -> dict[str, Any]:
    """What a container holds, and what is wrong with it that can be lived with."""
    try:
        divided = compiled().netcdf_subfiles(str(path)) > 0
        how = compiled().describe_netcdf if divided else compiled().describe_container
        row: dict[str, Any] = how(str(path))
    except ValueError as error:
        raise IoweirError(_worded(path, error)) from error
    return row


def _worded(path: Path, error: ValueError) -> str:
    """What the compiled part says of a file, or that there is none."""
    there = path.exists() or path.is_symlink()
    return str(error) if there else f"'{path}' does not exist: name the file that the program wrote"


def check(path: Path) -> dict[str, Any]:
    """The same for a container that may be beyond reading: then `problems` says why, and little else is there.

    Parts get the mode, group and ACL of the file, should somebody have changed these by hand.
    """
    compiled().follow_access(str(path))
    try:
        return describe(path)
    except IoweirError as error:
        try:
            empty = path.stat().st_size == 0
        except OSError as problem:
            return {"path": str(path), "problems": [f"it cannot be looked at: {problem.strerror}"]}
        problems = ["it is empty" if empty else str(error)]
        if path.with_name(f"{path.name}.ioweir-logical").exists():
            problems.append(
                f"a job makes a netCDF file of it, or has died before it said what is in it ({path}.ioweir-logical)"
            )
        return {"path": str(path), "problems": problems}


@dataclass(frozen=True)
class Merged:
    """What merge() has done."""

    text: str
    missing: list[str]
    """What may be missing in the file, and why."""


def merge(path: Path, output: Path | None, unfinished: bool = False) -> Merged:
    """Makes the ordinary file; one whose writing was not ended in its place only if `unfinished`."""
    where = output or path
    core = compiled()
    try:
        divided = core.netcdf_subfiles(str(path)) > 0
        if divided:
            missing, parts = core.describe_netcdf(str(path))["unfinished"], ""
            length = core.merge_netcdf(str(path), str(where), unfinished)
        else:
            missing, parts = core.unfinished_container(str(path)), core.container_directory(str(path))
            length = core.merge_container(str(path), str(where), unfinished)
    except ValueError as error:
        raise IoweirError(_worded(path, error)) from error
    said = f"{where}: {size(length)}"
    if output is None:
        said += ", " + ("its subfiles are removed" if divided else _of_parts(parts))
    return Merged(said, [f"{where} may not be all of the file: {text}" for text in missing])


def _of_parts(directory: str) -> str:
    if not Path(directory).exists():
        return "the directory of its parts is removed"
    return f"its parts stay in {directory}: another file beside it names them, or a process has them open"


def _netcdf_to_text(row: dict[str, Any]) -> list[str]:
    """The arrays of a netCDF file, and the files that they lie in."""
    count = len(row["part_paths"]) - 1
    lines = [f"{row['path']}: {size(row['bytes'])}, netCDF, arrays in {count} {plural('subfile', count)}"]
    for array in row["arrays"]:
        *begins, length = array["boundaries"]
        lines.append(f"  {array['name']}: along {array['dimension']}, at {', '.join(map(str, begins))} of {length}")
    for path, held in zip(row["part_paths"], row["part_bytes"], strict=True):
        lines.append(f"  {path}: {size(held) if held >= 0 else 'missing'}")
    return [*lines, *(f"  {problem}" for problem in row["problems"])]


def to_text(row: dict[str, Any]) -> list[str]:
    """For a person."""
    if row["mapping"].startswith("netcdf-subfiles"):
        return _netcdf_to_text(row)
    holes = row["bytes"] - row["held_bytes"]
    lines = [
        f"{row['path']}: {size(row['bytes'])}, {row['mapping']} in {row['directory']}"
        + (f", of it {size(holes)} never written" if holes else "")
    ]
    parts = row["part_bytes"]
    if row["mapping"] == "log":
        entries = f"{row['index_entries']} entries in their indexes"
        if parts:
            lines.append(f"  {len(parts)} logs, each {size(min(parts))} to {size(max(parts))} of the file, {entries}")
    elif row["mapping"].startswith("subfiles"):
        lines += [f"  {path}: {size(held)}" for path, held in zip(row["part_paths"], parts, strict=True)]
    else:
        lines += [f"  group {group}: {size(held)}" for group, held in enumerate(parts)]
    return [*lines, *(f"  {problem}" for problem in row["problems"])]


def verdict(row: dict[str, Any]) -> list[str]:
    """Whole, or why not; or why that cannot be said."""
    if not row["problems"]:
        return [f"{row['path']}: whole, {size(row['bytes'])}"]
    # Of an ordinary file nobody can say that it is not whole.
    found = "not checked" if row["problems"][0].startswith("not an ioweir container") else "NOT whole"
    return [f"{row['path']}: {found}", *(f"  {problem}" for problem in row["problems"])]


def orphans(directory: Path) -> list[dict[str, Any]]:
    """Directories of containers in a tree whose file is not beside them, unfinished sets, and what netCDF files left.

    No links are followed.
    """
    found: list[dict[str, Any]] = []
    with Folder.open(directory) as top:
        for here in top.walk(lambda name: _DIRECTORY.fullmatch(name) is None):
            if any(_DIRECTORY.fullmatch(name) for name in here.folders):
                found += [{**row, "set": False, "netcdf": False} for row in _orphans_in(here.folder)]
    sets = [{**row, "netcdf": False} for row in unfinished.unfinished(directory)]
    return found + sets + netcdf_leftovers.leftovers(directory)


def _orphans_in(folder: Folder) -> list[dict[str, Any]]:
    """By its descriptor, so that nobody puts another folder in its place meanwhile."""
    by_descriptor = folder.path_by_descriptor()
    try:
        rows: list[dict[str, Any]] = compiled().find_orphans(by_descriptor)
    except ValueError as error:
        raise IoweirError(str(error).replace(by_descriptor, str(folder.path))) from error
    for row in rows:
        for key in ("directory", "file", "problem"):
            row[key] = row[key].replace(by_descriptor, str(folder.path))
    return rows


def remove(directory: Path, rows: list[dict[str, Any]]) -> None:
    """Removes what orphans(directory) has found; a row of one that is still there says why in `problem`."""
    for row in rows:
        if row["problem"]:
            continue
        try:
            if row["set"] or row["netcdf"]:
                unfinished.remove(directory, row)
            else:
                _remove_orphan(directory, row)
        except (IoweirError, OSError) as error:
            row["problem"] = str(error)


def _remove_orphan(directory: Path, row: dict[str, Any]) -> None:
    path = Path(row["directory"])
    with Folder.open(directory) as top, top.below(path.parent.relative_to(directory).parts) as folder:
        by_descriptor = folder.path_by_descriptor()
        try:
            compiled().remove_orphan(f"{by_descriptor}/{path.name}")
        except ValueError as error:
            row["problem"] = str(error).replace(by_descriptor, str(folder.path))
            # Somebody may have opened it since.
            row["in_use"] = any(one["in_use"] for one in _orphans_in(folder) if one["directory"] == str(path))


def orphans_to_text(rows: list[dict[str, Any]], removed: bool) -> list[str]:
    """For a person."""
    lines = []
    for row in rows:
        of = f" of {row['file']}" if row["file"] else ""
        lines.append(f"{row['directory']}: {size(row['bytes'])}{of}")
        if row["problem"]:
            lines.append(f"  {row['problem']}")
    gone = [row for row in rows if not row["problem"]]
    sum_of = f"{len(gone)} {plural('orphan', len(gone))}, {size(sum(row['bytes'] for row in gone))}"
    if not gone:
        return [*lines, "no orphans" if not rows else "none of them can be removed"]
    return [*lines, f"{sum_of}, removed" if removed else f"{sum_of}; nothing was removed, --yes removes them"]
