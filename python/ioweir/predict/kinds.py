"""Which files of a trace are of one kind: those whose names differ in numbers only, as those of a checkpoint loop do.

A plan has a rule a kind. One file of each kind is simulated, and stands for the others.
"""

from __future__ import annotations

import re
import statistics
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from ioweir.errors import IoweirError
from ioweir.trace import pattern
from ioweir.trace.reader import MPI_IO

if TYPE_CHECKING:
    from pathlib import Path

    from ioweir.trace.reader import Requests, Trace

_BYTE: Final = r"\\x[89a-f][0-9a-f]|[\ud800-\udfff]"
"""One that is no UTF-8, for which a trace's paths have four letters. No rule can hold it."""
_NUMBER: Final = re.compile(rf"(?:\d|{_BYTE})+")
_LEAST_SHARE: Final = 0.02
"""Of the time in MPI-IO data calls: a kind with less is not worth a rule."""
_MOST_KINDS: Final = 8
_BESIDE: Final = ("open", "close", "view", "seek", "meta")


@dataclass(frozen=True)
class Kind:
    """Files of one kind."""

    pattern: str
    """As a plan's rule matches them."""
    path: str
    """The file with most bytes: it is simulated."""
    files: int
    times: float
    """Bytes of all files over those of that one, each of the rank with most: what ranks do at once counts once."""
    share: float
    """Of the time in MPI-IO data calls, of the rank with most."""
    beside_s: float = 0.0
    """In MPI-IO calls that neither move nor flush bytes, such as opening and closing: of all files, of the rank with
    most."""


@dataclass
class _Sums:
    moved: dict[str, dict[int, int]]
    """Bytes, by file and process."""
    spent: dict[int, int]
    """Nanoseconds, by process."""


def pattern_of(name: str) -> str:
    """Example: dump.00042.h5 -> dump.*.h5: what says the kind of a file stays.

    A plan is UTF-8: bytes of a name that are none are left open as numbers are.
    """
    return "*".join(re.sub(r"([\\*?\[\]])", r"\\\1", part) for part in _parts(name))


def _parts(name: str) -> list[str]:
    """What stands between the numbers."""
    suffix = PurePosixPath(name).suffix
    if not suffix[1:2].isalpha() or re.search(_BYTE, suffix):
        suffix = ""
    *others, last = _NUMBER.split(name.removesuffix(suffix))
    return [*others, last + suffix]


def also_matched(kinds: list[Kind], with_rule: set[str]) -> list[tuple[str, str]]:
    """Rules (their patterns) that match files of a kind which has none, with the name of such a file."""
    found = []
    for kind in kinds:
        if kind.pattern not in with_rule:
            continue
        regex = ".*".join(re.escape(part) for part in _parts(PurePosixPath(kind.path).name))
        found += [
            (kind.pattern, other.path)
            for other in kinds
            if other.pattern not in with_rule and re.fullmatch(regex, PurePosixPath(other.path).name, re.DOTALL)
        ]
    return found


def most_special_first(kinds: list[Kind]) -> list[Kind]:
    """In the order of rules: the first one that matches a file applies."""
    return sorted(kinds, key=lambda kind: -sum(map(len, _parts(PurePosixPath(kind.path).name))))


def of_trace(trace: Trace, requests: Requests, directory: Path, file: str | None) -> tuple[list[Kind], list[str]]:
    """Those with most time first; and what is to be said of others. `file`: its kind alone, which it stands for."""
    sums: dict[str, _Sums] = {}
    patterns = [pattern_of(PurePosixPath(path).name) for path in trace.paths]
    columns = (requests.process, requests.path, requests.bytes, requests.duration_ns)
    nameless = 0
    for process, number, moved, spent in zip(*(column.tolist() for column in columns), strict=True):
        path = trace.paths[number]
        if not path:  # of the system, or open when the trace began: no rule matches it
            nameless += 1
            continue
        mine = sums.setdefault(patterns[number], _Sums({}, {}))
        of_file = mine.moved.setdefault(path, {})
        of_file[process] = of_file.get(process, 0) + moved
        mine.spent[process] = mine.spent.get(process, 0) + spent
    moving = {name: mine for name, mine in sums.items() if any(sum(one.values()) for one in mine.moved.values())}
    if not moving:
        trace.require_events(directory, "tune")
        raise IoweirError(f"{directory}: no MPI-IO call of this trace moved a byte; simulate takes MPI-IO calls")
    if file is not None:
        path = pattern.file_named([path for mine in moving.values() for path in mine.moved], file)
        name = pattern_of(PurePosixPath(path).name)
        return [_kind(name, moving[name], 1.0, path)], []
    longest = {name: max(mine.spent.values()) for name, mine in moving.items()}
    total = sum(longest.values()) or 1
    kinds = [_kind(name, mine, longest[name] / total) for name, mine in moving.items()]
    kinds.sort(key=lambda kind: (-kind.share, -kind.files, kind.pattern))
    kept = [kind for kind in kinds[:_MOST_KINDS] if kind.share >= _LEAST_SHARE] or kinds[:1]
    remarks = []
    if others := kinds[len(kept) :]:
        share = sum(kind.share for kind in others)
        remarks.append(
            f"{len(others)} other kinds of files have {share:.0%} of the time in MPI-IO data calls: no plan for them"
        )
    if nameless:
        remarks.append(f"{nameless} MPI-IO data calls are on files without a name in the trace: no plan for them")
    return kept, remarks


def with_beside(kinds: list[Kind], trace: Trace) -> list[Kind]:
    """The same with what the trace says of opening, closing and the like.

    Of a file that several ranks opened the middle rank counts: one that comes early waits for the others.
    """
    import numpy as np  # noqa: PLC0415

    events = trace.events
    chosen = [function.id for function in trace.functions if function.layer == MPI_IO and function.op in _BESIDE]
    rows = np.flatnonzero(np.isin(events.function, chosen) & (events.origin == 0))
    spent: dict[int, dict[int, int]] = {}
    columns = (getattr(events, name)[rows].tolist() for name in ("path", "process", "duration_ns"))
    for path, process, took in zip(*columns, strict=True):
        of_file = spent.setdefault(path, {})
        of_file[process] = of_file.get(process, 0) + took
    totals: dict[str, dict[int, float]] = {}
    for path, of_file in spent.items():
        of_kind = totals.setdefault(pattern_of(PurePosixPath(trace.paths[path]).name), {})
        middle = statistics.median(of_file.values())
        for process in of_file:
            of_kind[process] = of_kind.get(process, 0.0) + middle / 1e9
    return [replace(kind, beside_s=max(totals.get(kind.pattern, {}).values(), default=0.0)) for kind in kinds]


def _kind(name: str, sums: _Sums, share: float, path: str | None = None) -> Kind:
    chosen = path or max(sums.moved, key=lambda one: (sum(sums.moved[one].values()), one))
    all_files: dict[int, int] = {}
    for of_file in sums.moved.values():
        for process, moved in of_file.items():
            all_files[process] = all_files.get(process, 0) + moved
    of_chosen = max(sums.moved[chosen].values()) or 1
    return Kind(name, chosen, len(sums.moved), max(all_files.values()) / of_chosen, share)
