"""exchange-dominates, no-overlap and checkpoint-too-slow: what a program waits for between its phases."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ioweir.base.spec_names import HDF5, LAYERS, MPI_IO
from ioweir.base.units import seconds as in_words
from ioweir.base.units import size
from ioweir.findings.datatypes import cell, has_gaps
from ioweir.findings.intervals import median
from ioweir.findings.model import Evidence, Remedy
from ioweir.findings.rule import Found, Rule, Threshold
from ioweir.findings.rules.common import CROWDED, MANY, SMALL, STRIPE, behind, counted, rule_for
from ioweir.findings.spared import longest_pause_ns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ioweir.findings.columns import Columns, Floats, Mask

_MTBF_S = 6 * 3600.0
_FAULTS = (
    "data-sieving",
    "lock-wait",
    "serialised-writes",
    "collective-scattered",
    "rank0-io",
    "independent-shared-file",
    "stdio-data",
    "small-requests",
    "sync-cost",
    "unbalanced-bytes",
    "no-overlap",
)
"""With one of these on the same files, the writes are too slow, not too many."""


_ASYNCHRONOUS = ("H5Dwrite_async", "H5Dwrite_multi_async")
_BY_THREAD = (
    "copy the data into a second buffer, and let a thread of the program's own write it (or aio_write, io_uring) while "
    "the program computes"
)
_MEANWHILE = {
    MPI_IO: "start writes with MPI_File_iwrite_at and wait for them after the next step",
    HDF5: "write with H5Dwrite_async and HDF5's asynchronous connector, and wait after the next step (H5ESwait); or "
    "let a thread of the program's own write a copy of the data",
}
_MORE_A_CALL = (
    "{op} more in one call: several variables or steps together (PnetCDF: ncmpi_i{verb}_vara and ncmpi_wait_all; "
    "MPI-IO: one datatype for all pieces)"
)


def _exchange(run: Columns) -> Iterator[Found]:
    for op in ("write", "read"):
        calls = run.mpi_data & run.collective & run.is_op(op) & (run.meeting >= 0)
        inner = run.is_layer("POSIX") & run.made_by(calls)
        if not inner.any():
            continue
        whole, storage = run.seconds(calls), run.span_s(inner)
        lost = whole - storage
        if lost < 0.5 * whole or not run.worth(lost):
            continue
        # Views that list the pieces are taken apart when they are set: without pieces, nothing is.
        used = np.zeros(len(run.files), dtype=bool)
        used[run.file[calls]] = True
        views = run.named("MPI_File_set_view") & used[run.file]
        of_views = run.seconds(views)
        lost += of_views
        each = float(run.bytes[calls].sum() / max(calls.sum(), 1))
        # Of pieces with gaps between, each would become a request of its own.
        large = each >= STRIPE and not _in_pieces(run, calls)
        # Agreeing on a call costs the same for a byte: what many calls move in tiny parts, one could.
        tiny = each < SMALL and run.count_by_unit(calls).max() >= MANY
        files = run.files_of(calls)
        yield Found(
            calls=run.roots_of(calls),
            seconds=lost,
            low=0.0,
            summary=f"of {in_words(whole)} in collective {op}s, {in_words(whole - storage)} go into passing data "
            "between "
            "ranks and "
            "waiting, "
            f"{in_words(storage)} into the storage",
            cause=f"In each of the calls all ranks agree on who moves what, and wait for each other, for {size(each)} "
            "a rank: that takes longer than the storage."
            if tiny
            else "Before the storage is touched, the ranks send their data to those that write it, and that takes "
            "longer than the writing."
            if op == "write"
            else "The ranks that read the storage send the data to those that asked for it, and that takes longer than "
            "the reading.",
            evidence=[
                counted(f"collective {op}s", calls),
                Evidence("bytes of one, on a rank", each, "B"),
                Evidence(f"time of the collective {op}s", whole, "s"),
                Evidence("of it at the storage", storage, "s"),
                Evidence("setting the views of these files", of_views, "s"),
            ],
            remedies=[
                Remedy(
                    "plan",
                    "let each rank move its own bytes" if large else "let ioweir pass the data within the node first",
                    rule_for(files, 'writers = "everyone"' if large else 'writers = "auto"'),
                ),
                *(
                    [Remedy("source", _MORE_A_CALL.format(op=op, verb="put" if op == "write" else "get"))]
                    if tiny
                    else []
                ),
            ],
            files=files,
            ranks=run.ranks_of(calls),
            doubt=CROWDED if run.crowded else "",
        )


def _in_pieces(run: Columns, calls: Mask) -> bool:
    """Whether some of the calls move pieces under 1 MiB of their file: a view with gaps, or one that is not known."""
    accesses, views, types = run.trace.accesses, run.trace.views, run.trace.datatypes
    for number in np.unique(run.access[calls]):
        at = accesses[number].view if 0 < number < len(accesses) else 0
        if at is None:
            return True
        view = views[at] if at else None
        if view is not None and view.set and has_gaps(types, view.filetype) and cell(types, view.filetype) < STRIPE:
            return True
    return False


def bursts(run: Columns, calls: Mask) -> tuple[Floats, Floats, Floats]:
    """Stretches of calls with pauses of 1 % of the run between: beginnings, ends (seconds), bytes."""
    chosen = np.flatnonzero(calls)
    chosen = chosen[np.argsort(run.arrival[chosen], kind="stable")]
    begin, stop = run.arrival[chosen] / 1e9, run.end[chosen] / 1e9
    reached = np.maximum.accumulate(stop)
    gap = np.r_[0.0, begin[1:] - reached[:-1]]
    new = gap > max(0.01 * run.wall_s, 0.001)
    new[0] = True
    first = np.flatnonzero(new)
    last = np.r_[first[1:] - 1, chosen.size - 1]
    moved = np.add.reduceat(run.bytes[chosen], first)
    return begin[first], reached[last], moved.astype(np.float64)


def _periodic(run: Columns) -> tuple[Mask, Floats, Floats, Floats] | None:
    calls = run.outermost & run.is_op("write", "open", "close", "sync")
    if not (calls & run.is_op("write")).any():
        return None
    # Of the rank that writes most: ranks that drift apart leave no pause in common.
    writes = run.bytes_by_unit(calls & run.is_op("write"))
    begin, stop, moved = bursts(run, calls & (run.unit == int(writes.argmax())))
    real = moved >= max(STRIPE, 0.1 * moved.max())
    begin, stop, moved = begin[real], stop[real], moved[real]
    if begin.size < 3 or moved.max() > 3 * moved.min():
        return None
    return calls, begin, stop, moved


def _waited_for_at_once(run: Columns, started: Mask) -> Mask:
    """Of calls that start requests those that their thread waits for with nothing else in between but more of them.

    Example: three calls of MPI_File_iwrite_at and an MPI_Waitall right behind them: all three.
    """
    result = np.zeros(len(run), dtype=bool)
    at = np.flatnonzero(started & run.outermost)
    if not at.size:
        return result
    then = run.following[at]
    soon = (then >= 0) & (run.start[then] - run.end[at] <= longest_pause_ns(run))
    place = np.full(len(run), -1)
    place[at] = np.arange(at.size)
    # Of each row of such calls the last one, found by leaps that double.
    last = np.where(soon & (place[then] >= 0), place[then], np.arange(at.size))
    while (last[last] != last).any():
        last = last[last]
    result[at] = (soon & run.completes[then])[last]
    return result


def _overlap(run: Columns) -> Iterator[Found]:
    periodic = _periodic(run)
    if periodic is None:
        return
    calls, begin, stop, moved = periodic
    # Opening cannot go on behind a program that needs the file.
    calls &= ~run.is_op("open")
    writing = run.seconds(calls)
    pauses = float((begin[1:] - stop[:-1]).sum())
    gain = min(writing, pauses)
    background = run.topmost(run.named("MPI_File_iwrite", "aio_write", "io_uring"))
    # HDF5's asynchronous connector writes in a thread of its own; without it these calls write themselves.
    connected = run.outermost & run.named(*_ASYNCHRONOUS) & ~run.roots_of(run.storage)
    background |= connected
    at_once = _waited_for_at_once(run, background)
    whole = moved.sum() - run.bytes[connected].sum()  # which that thread's own calls move as well
    if run.bytes[background & ~at_once].sum() > 0.5 * whole or not run.worth(gain):
        return
    starts = bool(run.bytes[at_once].sum() > 0.5 * moved.sum())
    files = run.files_of(calls & run.is_op("write"))
    yield Found(
        calls=calls,
        seconds=gain,
        low=0.0,
        summary=f"{begin.size} times the program stops to write {size(median(moved))}, "
        f"{in_words(writing)} in all, "
        "and computes nothing meanwhile",
        cause="The program starts writes in the background, but waits for them right away. Storage and processors take "
        "turns instead of working at once."
        if starts
        else "The program computes, writes, and computes again. Storage and processors take turns instead of "
        "working at once.",
        evidence=[
            Evidence("times that it stops to write", float(begin.size), "times"),
            Evidence("time for computing between them", pauses, "s"),
        ],
        remedies=[
            behind(files),
            Remedy(
                "source",
                "wait for the writes (MPI_Wait) after the next step, not right behind the calls that start them"
                if starts
                else _meanwhile(run, calls & run.is_op("write")),
            ),
        ],
        files=files,
        ranks=run.ranks_of(calls & run.is_op("write")),
    )


def _meanwhile(run: Columns, writes: Mask) -> str:
    """How a program writes while it computes, with the calls that it makes."""
    layers = np.bincount(run.layer[writes], run.bytes[writes])
    layer = LAYERS[int(layers.argmax())]
    return _MEANWHILE.get(layer, _BY_THREAD)


def _checkpoint(run: Columns) -> Iterator[Found]:
    periodic = _periodic(run)
    if periodic is None:
        return
    calls, begin, stop, moved = periodic
    cost = median(stop - begin)
    if cost <= 0:  # some imported logs have times to 0.1 ms only
        return
    interval = median(np.diff(begin))
    best = float(np.sqrt(2 * cost * _MTBF_S))
    now, then = cost / interval, cost / best + best / (2 * _MTBF_S)
    if interval >= best or now < 0.1:
        return
    # A burst may hold computing between its calls, which is no cost of I/O.
    lost = min((now - then) * float(stop[-1] - begin[0]), run.seconds(calls))
    # Writing that is longer than the pause after it cannot be hidden behind it: then the checkpoints are the cause.
    cannot_hide = cost > median(begin[1:] - stop[:-1])
    if not run.worth(lost):
        return
    files = run.files_of(calls & run.is_op("write"))
    yield Found(
        calls=calls,
        seconds=lost,
        low=0.0,
        summary=f"a checkpoint of {in_words(cost)} every {in_words(interval)}: {100 * now:.0f} % of the time "
        "goes into them",
        cause="If these writes are checkpoints, they come more often than failures ask for: with one failure in "
        f"{_MTBF_S / 3600:.0f} h, "
        f"one every {in_words(best)} loses least.",
        evidence=[
            Evidence("time of one", cost, "s"),
            Evidence("interval", interval, "s"),
            Evidence("best interval (Young)", best, "s"),
            Evidence("bytes of one", median(moved), "B"),
        ],
        remedies=[Remedy("source", f"write a checkpoint every {in_words(best)} only"), behind(files)],
        files=files,
        ranks=run.ranks_of(calls & run.is_op("write")),
        order=OVERLAP.order - 1 if cannot_hide else None,
    )


EXCHANGE = Rule(
    code="exchange-dominates",
    title="Passing data takes longer than writing it",
    layer="MPI-IO",
    order=38,
    definition="In collective calls, after the last rank has come, more than half of the time lies outside of "
    "any POSIX call of any rank. Setting the views of these files counts as well: there MPI libraries take apart which "
    "pieces are whose (ROMIO's flattening).",
    source="Wright et al. 2013, section 5.2 (effective MPI against POSIX bandwidth, figures 3 and 4, table 4); "
    "Howison et al. 2010 (communication can exceed what collective buffering saves); Kang et al. 2020 (TAM)",
    thresholds=(Threshold("half", "50 %", "below it, faster storage helps more than a faster exchange"),),
    gain="low: 0, for the exchange may be what keeps the storage's requests large; lost: all of it, with the views",
    limits="Copying within a rank counts as exchange. Severity at most medium, and low where ranks share processors, "
    "for waiting for these looks alike.",
    needs=("MPI-IO", "POSIX"),
    find=_exchange,
)
OVERLAP = Rule(
    code="no-overlap",
    title="Computing stops while data is written",
    layer="MPI-IO",
    order=90,
    definition="Three or more bursts of like amounts (within a factor 3, 1 MiB or more each), with pauses "
    "between, and no asynchronous writes. Those that are waited for right away are none.",
    source="Moody et al. 2010 (SCR); Gropp, Lusk and Thakur 1999, Using MPI-2, chapter 3 (parallel I/O)",
    thresholds=(Threshold("bursts", "3", "two may be a beginning and an end"),),
    gain="low: 0, for the network and memory may be busy while computing; lost: the smaller of writing, without "
    "opens, and pauses",
    limits="What the program does in the pauses is not in the trace. Writes by a thread of the program's own, while "
    "the others compute, look like these. Severity at most medium.",
    needs=(),
    find=_overlap,
    follows=_FAULTS,
)
CHECKPOINT = Rule(
    code="checkpoint-too-slow",
    title="Checkpoints too often, or too slow",
    layer="MPI-IO",
    order=95,
    definition="Bursts as for no-overlap that take 10 % of their interval or more, where Young's interval sqrt(2 "
    "x cost x MTBF) is longer.",
    source="Young 1974; Daly 2006",
    thresholds=(
        Threshold(
            "MTBF",
            "6 h",
            "an assumption, for a trace does not tell it: a job on thousands of nodes; smaller jobs fail less often, "
            "and their best interval is longer still",
        ),
        Threshold(
            "share",
            "10 %",
            "the loss that sites plan for checkpoints: Daly's optimum is below it whenever cost < MTBF / 200",
        ),
    ),
    gain="low: 0, for the writes may be results that are wanted as often as this; lost: the time above Young's optimum",
    limits="Results and checkpoints look alike. Severity at most medium. Leads where writing takes longer than the "
    "pauses (medians), which could not hide it; else it is in the chain of no-overlap.",
    needs=(),
    find=_checkpoint,
    follows=_FAULTS,
)
