"""Files that a plan has given another form: their bytes lie in several files, and who can read them.

Asked of the files as they are when the report is made: a merged one is an ordinary file again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ioweir.base.compiled import compiled
from ioweir.report.model import OtherForm

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MOST_FILES: Final = 1000
"""So many are looked at."""


def of(paths: Iterable[str]) -> list[OtherForm]:
    """Those of the files that have another form now."""
    found = []
    for path in list(dict.fromkeys(paths))[:MOST_FILES]:
        parts = _parts(path)
        if parts:
            found.append(OtherForm(path, parts))
    return found


def _parts(path: str) -> str:
    core = compiled()
    if directory := core.container_directory(path):
        return str(directory)
    try:
        subfiles = core.netcdf_subfiles(path)
    except ValueError:
        return ""
    return f"{subfiles} subfiles" if subfiles else ""


def lines(rows: Sequence[OtherForm]) -> list[str]:
    """Example: OTHER FORM: the bytes of /run/plot.dat lie in /run/.ioweir-3f: programs under ioweir ..."""
    if not rows:
        return []
    first = rows[0]
    what = f"{first.path} lie in {first.parts}"
    if len(rows) > 1:
        what = f"{len(rows):,} files lie in parts ({first.path} in {first.parts}, and others)"
    return [
        f"OTHER FORM: the bytes of {what}: programs under ioweir (ioweir run, with or without a plan) read "
        f"{'it as one file' if len(rows) == 1 else 'each as one file'}, others not before `ioweir merge "
        f"{first.path}`{'' if len(rows) == 1 else ' and so on'}."
    ]
