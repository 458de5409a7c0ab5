"""All that the page's plots and tables are drawn from, as one object that JSON can hold: `picture_model`.

Bounded whatever the trace's size: rows of ranks, targets, files and tables have a limit each, times are binned, and all
binned arrays together share a budget (packing.py). What a limit leaves out is counted and said on the page.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ioweir.findings.columns import Columns
from ioweir.html import tables
from ioweir.html.calls import CATEGORIES, Run
from ioweir.html.packing import Budget
from ioweir.html.pictures import composition, waiting
from ioweir.html.pictures.concurrency import Concurrency
from ioweir.html.pictures.offsets import Offsets
from ioweir.html.pictures.places import Places
from ioweir.html.pictures.timelines import Timelines

if TYPE_CHECKING:
    from ioweir.report import model
    from ioweir.trace.reader import Trace

VERSION: Final = 1
MOST_IN_MEMORY: Final = 5_000_000
"""Events of a trace that is looked at as a whole; a larger one is read in batches, for memory's sake."""


def picture_model(trace: Trace, report: model.Report) -> dict[str, Any]:
    """Everything but the words. Times are seconds from the start of the first process, `span_s` to the last one's end.

    Arrays that are packed: see bins.levels_of (heat maps) and pictures/offsets.py.
    """
    whole = trace.event_count <= MOST_IN_MEMORY
    columns = Columns(trace, report.wall_s, report.layers_recorded) if whole else None
    run = Run(trace, report.wall_s, columns)
    of_path = {row.path: tables.storage_bytes(row) for row in report.files}
    weights = [of_path.get(name, 0) for name in run.files]
    timelines, concurrency, offsets = Timelines(run), Concurrency(run), Offsets(run, weights)
    places = [Places(run, by, weights) for by in ("target", "file")]
    pictures: list[Timelines | Concurrency | Offsets | Places] = [timelines, concurrency, offsets, *places]
    for calls in run.batches():
        for picture in pictures:
            picture.add(calls)
    budget = Budget()
    result = {
        "version": VERSION,
        "span_s": run.span_s,
        "noun": run.noun,
        "ranks": len(run.unit_names),
        "names": list(run.unit_names),
        "wall_s": report.wall_s,
        "layers_recorded": list(report.layers_recorded),
        "whole": whole,
        "imported": report.imported.tool if report.imported is not None else None,
        "timelines": timelines.result(budget),
        "places": [one.result(budget) for one in places],
        "offsets": offsets.result(budget),
        "shares": timelines.shares(),
        "concurrency": concurrency.result(),
        "compositions": composition.compositions(columns, run.begin_ns) if columns is not None else None,
        "waits": waiting.collective(columns) if columns is not None else None,
        "lock_waits": waiting.locks(columns) if columns is not None else None,
        "locks": tables.locks(report),
        "sizes": tables.sizes(report),
        "files": tables.files(report),
        "sites": tables.sites(report),
        "rank_table": tables.ranks(run, report, timelines.seconds_by_unit(), CATEGORIES),
    }
    result["refused"] = budget.refused
    return result
