"""The rows of the report's table of files. Files of one pattern are one row: `tiny/f.*: 2,000 files`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from ioweir.base.spec_names import DATA_OPS
from ioweir.report.model import Calls, Data

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ioweir.report.model import FileRow, Report

LEAST_FILES: Final = 4
"""So many files of one pattern are one row."""
SHOWN_OPS: Final = (*DATA_OPS, "lock")
"""Operations that are always shown."""
SHARE: Final = 0.05
"""Others are, where they take this share of the time on the file."""
_NUMBER: Final = re.compile(r"\d+")


@dataclass
class FileGroup:
    """A file, or several whose names differ in numbers only."""

    name: str
    files: list[FileRow]

    @cached_property
    def layers(self) -> dict[str, dict[str, Calls]]:
        """Sums by layer and operation."""
        if len(self.files) == 1:
            return self.files[0].layers
        sums: dict[str, dict[str, Calls]] = {}
        for row in self.files:
            for layer, ops in row.layers.items():
                for op, figures in ops.items():
                    into = sums.setdefault(layer, {})
                    into[op] = _added(into.get(op), figures)
        return sums

    @cached_property
    def time_s(self) -> float:
        """In the layer with most of it: layers hold each other's time."""
        return max((sum(figures.time_s for figures in ops.values()) for ops in self.layers.values()), default=0.0)

    def moved(self, op: str) -> int:
        """Bytes, of the layer that moved most."""
        found = [figures.bytes for ops in self.layers.values() if isinstance(figures := ops.get(op), Data)]
        return max(found, default=0)


def _added(sums: Calls | None, more: Calls) -> Calls:
    if sums is None:
        sums = Data() if isinstance(more, Data) else Calls()
    sums.calls += more.calls
    sums.failed += more.failed
    sums.time_s += more.time_s
    sums.longest_s = max(sums.longest_s, more.longest_s)
    if isinstance(sums, Data) and isinstance(more, Data):
        sums.bytes += more.bytes
        sums.effective_bytes_per_s = sums.bytes / sums.time_s if sums.time_s > 0 else None
    return sums


def groups(report: Report) -> list[FileGroup]:
    """All rows, most time first."""
    by_pattern: dict[str, list[FileRow]] = {}
    for row in report.files:
        folder, slash, name = row.path.rpartition("/")
        by_pattern.setdefault(folder + slash + _NUMBER.sub("*", name), []).append(row)
    found: list[FileGroup] = []
    for pattern, rows in by_pattern.items():
        if len(rows) >= LEAST_FILES:
            found.append(FileGroup(f"{pattern}: {len(rows):,} files", rows))
        else:
            found += [FileGroup(row.path, [row]) for row in rows]
    return sorted(found, key=lambda group: -group.time_s)


def rows(group: FileGroup, report: Report) -> Iterator[tuple[str, str, Calls]]:
    """What is shown of a row: layer, operation, figures. At least one, so that each file is there."""
    chosen = []
    every = []
    for layer, ops in group.layers.items():
        for op, figures in ops.items():
            if not (figures.calls or figures.time_s):
                continue
            every.append((layer, op, figures))
            if op in SHOWN_OPS or figures.time_s >= SHARE * group.time_s > 0:
                chosen.append((layer, op, figures))
    for layer, op, figures in chosen or sorted(every, key=lambda row: -row[2].time_s)[:1]:
        if len(group.files) > 1 and isinstance(figures, Data):
            units = max(report.ranks or report.processes, 1)
            effective = figures.effective_bytes_per_s
            figures.perceived_bytes_per_s = units * effective if effective is not None else None
        yield layer, op, figures
