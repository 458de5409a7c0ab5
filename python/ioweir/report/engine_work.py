"""What the engine did with each file, from the records that its handles leave when they are closed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ioweir.base.compiled import compiled
from ioweir.report.model import EngineFile
from ioweir.trace.paths import clean_path

if TYPE_CHECKING:
    from ioweir.trace.reader import Trace

_NS: Final = "_ns"
_OF_BEFORE: Final = "engine_summary"
"""Notes of traces from before there were records: words, and how many bytes were moved."""


def _unit(name: str, figure: int) -> tuple[str, float]:
    """The name and the figure as a report has them: seconds in place of nanoseconds."""
    return (name.removesuffix(_NS) + "_s", figure * 1e-9) if name.endswith(_NS) else (name, figure)


def rows(trace: Trace) -> list[EngineFile]:
    """A row a file."""
    # Each figure of spec/records.toml (EngineFigures), and whether the largest of all ranks counts instead of the sum.
    largest: dict[str, bool] = compiled().engine_figures
    directory = str(trace.run.get("cwd", ""))
    files: dict[str, EngineFile] = {}
    processes: dict[str, set[int]] = {}

    def row_of(path: str, process: int, moved: int) -> EngineFile:
        shown = clean_path(path, directory)
        row = files.setdefault(shown, EngineFile(shown))
        had = processes.setdefault(shown, set())
        had.add(process)
        row.ranks = len(had)
        row.bytes += moved
        return row

    for work in trace.engine_work:
        figures = vars(row_of(work.path, work.process, work.figures["read_bytes"] + work.figures["written_bytes"]))
        for name, figure in work.figures.items():
            key, value = _unit(name, figure)
            figures[key] = max(figures[key], value) if largest[name] else figures[key] + value
    for note in trace.notes:
        if note.code == _OF_BEFORE:
            row_of(note.path, note.process, note.value)
    return list(files.values())


def words_of_before(trace: Trace) -> list[str]:
    """What a trace from before there were records says of the engine."""
    return [f"{note.path}: the engine: {note.text}" for note in trace.notes if note.code == _OF_BEFORE]
