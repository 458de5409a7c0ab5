"""Loops over files whose writers were chosen by what they took (choose = "auto"): what was tried, kept, gained or lost.

Works on ChosenRecords (spec/records.toml). Wording is here too, for `run` and `report` say the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ioweir.base.units import plural, seconds
from ioweir.trace.paths import clean_path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ioweir.trace.reader import ChosenFile, Trace

LIBRARY: Final = "library"
_ENDED, _TRIED, _KEPT = "ended", "tried", "kept"
_SHOWN: Final = 3


@dataclass
class ChosenWriters:
    """One of the writers of a series of files; `library`: the MPI library.

    `tried`: of its files, those that were to find out. `cut`: those that were left to the library on the way. `file_s`:
    the median time of a file as large as the series' last one, of the slowest rank.
    """

    writers: str
    files: int
    tried: int
    cut: int
    file_s: float


@dataclass
class ChosenSeries:
    """Files of a loop, whose names differ in digits, and who wrote or read them.

    `chosen`: of the last one. `ended`: why all is left to the library for good; empty: it is not. `gained_s`: against
    the library's median, of all files that others moved; None where the library has moved none.
    """

    path: str
    digest: str
    ranks: int
    files: int
    chosen: str
    ended: str
    elapsed_s: float
    gained_s: float | None = None
    writers: list[ChosenWriters] = field(default_factory=list)


def rows(trace: Trace) -> list[ChosenSeries]:
    """A row a series of files and number of ranks, in the order in which they began."""
    directory = str(trace.run.get("cwd", ""))
    files: dict[tuple[str, str, int], list[ChosenFile]] = {}
    for said in trace.chosen_files:
        digest = said.words.partition(" ")[0]
        files.setdefault((clean_path(said.series, directory), digest, said.ranks), []).append(said)
    return [_series(*key, sorted(found, key=lambda one: one.number)) for key, found in files.items()]


def _writers(one: ChosenFile) -> tuple[str, str]:
    """Who wrote the file, and why the series has ended, if it has."""
    name, _, why = one.words.partition(" ")[2].partition(" ")
    return name, why


def _series(path: str, digest: str, ranks: int, files: Sequence[ChosenFile]) -> ChosenSeries:
    from statistics import median  # noqa: PLC0415 (loads random and decimal, on which every launch would wait)

    by_writers: dict[str, list[ChosenFile]] = {}
    for one in files:
        by_writers.setdefault(_writers(one)[0], []).append(one)
    ended = next((why for one in files if (why := _writers(one)[1])), "")
    row = ChosenSeries(
        path, digest, ranks, len(files), LIBRARY if ended or files[-1].step == _ENDED else _writers(files[-1])[0],
        ended, sum(one.elapsed_ns for one in files) * 1e-9,
    )  # fmt: skip
    for name, found in by_writers.items():
        # Of one size as a rule: the time for as many bytes as the last file had.
        costs = [one.elapsed_ns / one.bytes for one in found if one.bytes > 0]
        took = median(costs) * files[-1].bytes * 1e-9 if costs else 0.0
        tried = sum(one.step == _TRIED for one in found)
        row.writers.append(ChosenWriters(name, len(found), tried, sum(bool(one.cut) for one in found), took))
    usual = [one.elapsed_ns / one.bytes for one in by_writers.get(LIBRARY, []) if one.bytes > 0]
    if usual:
        cost = median(usual)
        others = [one for name, found in by_writers.items() if name != LIBRARY for one in found]
        row.gained_s = sum(cost * one.bytes - one.elapsed_ns for one in others) * 1e-9
    return row


def lines(series: Sequence[ChosenSeries]) -> list[str]:
    """One line for each series in which something was tried, or why nothing was; those with most time first."""
    ordered = sorted(series, key=lambda row: -row.elapsed_s)
    said = [_line(row) for row in ordered[:_SHOWN]]
    more = len(ordered) - _SHOWN
    return [*said, f"{more} more series of files: see --json."] if more > 0 else said


def _line(row: ChosenSeries) -> str:
    what = f"{row.files} {plural('file', row.files)} of {row.path} ({seconds(row.elapsed_s)})"
    tried = [_tried(one) for one in row.writers]
    if len(row.writers) < 2:
        why = f": {row.ended}" if row.ended else ""
        return f"WRITERS CHOSEN for {what}: {_name(row.writers[0].writers)}, and nothing else was tried{why}."
    kept = f"{_name(row.chosen)}{f' for good, for {row.ended}' if row.ended else ''}"
    against = (
        "Nothing to compare with the MPI library"
        if row.gained_s is None
        else f"{'Gained' if row.gained_s >= 0 else 'Cost'} {seconds(abs(row.gained_s))} against the MPI library"
    )
    return f"WRITERS CHOSEN for {what}: {kept}. Seconds a file: {'; '.join(tried)}. {against}."


def _name(writers: str) -> str:
    return "the MPI library" if writers == LIBRARY else writers


def _tried(one: ChosenWriters) -> str:
    cut = f", {one.cut} given up on the way" if one.cut else ""
    return f"{_name(one.writers)} {seconds(one.file_s)} ({one.files} {plural('file', one.files)}{cut})"
