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
_ENDED, _TRIED, _KEPT, _COMPARED, _PORTION = "ended", "tried", "kept", "compared", "portion"
_WHOLE: Final = ("observed", _TRIED, _KEPT, _ENDED)
_SEVERAL: Final = 3
_SHOWN: Final = 3


@dataclass
class ChosenWriters:
    """One of the writers of a series of files; `library`: the MPI library.

    `files`: those that it moved as a whole, or all of but the portions by which writers were compared. `tried`: of
    these, those that were to find out. `cut`: those that were left to the library on the way. `file_s`: the median time
    of a file as large as the series' last one with bytes to compare, of the slowest rank; 0: not known.
    `from_portions`: that is what its portions make likely, for it moved no whole file.
    """

    writers: str
    files: int
    tried: int
    cut: int
    file_s: float
    from_portions: bool = False


@dataclass
class ChosenSeries:
    """Files of a loop, whose names differ in digits, and who wrote or read them.

    `compared`: of the files, those in which each of the writers moved portions of collective calls. `chosen`: of the
    last one that was not moved to find something out, where there is one. `ended`: why all is left to the library for
    good; empty: it is not. `gained_s`: against the library's median, of all files that others moved; where the library
    has moved none, against its portions; None where it has neither.
    """

    path: str
    digest: str
    ranks: int
    files: int
    chosen: str
    ended: str
    elapsed_s: float
    gained_s: float | None = None
    compared: int = 0
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


def _series(path: str, digest: str, ranks: int, said: Sequence[ChosenFile]) -> ChosenSeries:
    by_writers: dict[str, list[ChosenFile]] = {}
    files = [one for one in said if one.step != _PORTION]
    for one in said:
        by_writers.setdefault(_writers(one)[0], []).append(one)
    ended = next((why for one in files if (why := _writers(one)[1])), "")
    row = ChosenSeries(
        path, digest, ranks, len(files), LIBRARY if ended or files[-1].step == _ENDED else _chosen(files),
        ended, sum(one.elapsed_ns for one in files) * 1e-9, compared=sum(one.step == _COMPARED for one in files),
    )  # fmt: skip
    bytes_of_last = next((one.bytes for one in reversed(files) if one.bytes > 0), 0)
    for name, found in by_writers.items():
        its = [one for one in found if one.step != _PORTION]
        cost, from_portions = _cost(found)
        row.writers.append(
            ChosenWriters(
                name,
                len(its),
                sum(one.step == _TRIED for one in its),
                sum(bool(one.cut) for one in its),
                cost * bytes_of_last * 1e-9,
                from_portions,
            )
        )
    cost, _ = _cost(by_writers.get(LIBRARY, []))
    if cost:
        others = [
            one
            for name, found in by_writers.items()
            for one in found
            if one.bytes > 0 and (one.step == _COMPARED or (name != LIBRARY and one.step != _PORTION))
        ]
        row.gained_s = sum(cost * one.bytes - one.elapsed_ns for one in others) * 1e-9
    return row


def _chosen(files: Sequence[ChosenFile]) -> str:
    """Who moves files when nothing is tried; a series may end with a file that the library or another one had to try.

    Of a file on which portions were compared, the best of them moved the rest.
    """
    settled = [one for one in files if one.step in (_KEPT, _COMPARED)]
    return _writers((settled or files)[-1])[0]


def _cost(found: Sequence[ChosenFile]) -> tuple[float, bool]:
    """Nanoseconds a byte: of whole files by one alternative, else of portions; and whether it is the latter.

    A file on which writers were compared has the time of all of them: it counts where several such files are all that
    there is.
    """
    from statistics import median  # noqa: PLC0415 (loads random and decimal, on which every launch would wait)

    for steps, least in ((_WHOLE, 1), ((_COMPARED,), _SEVERAL), ((_PORTION,), 1)):
        costs = [one.elapsed_ns / one.bytes for one in found if one.bytes > 0 and one.step in steps]
        if len(costs) >= least:
            return median(costs), _PORTION in steps
    return 0.0, False


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
    took = seconds(one.file_s) if one.file_s > 0 else "not known"
    if one.from_portions and not one.files:
        return f"{_name(one.writers)} {took} (from portions of calls)"
    return f"{_name(one.writers)} {took} ({one.files} {plural('file', one.files)}{cut})"
