"""aggregator-count and aggregator-imbalance: who moves the bytes of collective calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ioweir.base.units import number_list
from ioweir.base.units import seconds as in_words
from ioweir.findings.model import Evidence, Remedy
from ioweir.findings.rule import EXCESS, Found, Rule, Threshold
from ioweir.findings.rules.common import aggregate, rule_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ioweir.findings.columns import Columns, Mask


def _at_storage(run: Columns, op: str) -> Mask:
    return run.storage & run.is_op(op) & run.made_by(run.collective & run.is_op(op))


def _nodes(run: Columns) -> dict[int, str]:
    return {unit: process.host for unit, process in zip(run.who.units, run.trace.processes, strict=True) if unit >= 0}


def _count(run: Columns) -> Iterator[Found]:
    nodes = _nodes(run)
    hosts = len(set(nodes.values()))
    for op in ("write", "read"):
        calls = _at_storage(run, op)
        writers = run.units_of(calls)
        if not writers.size or run.unit_count < 2 * writers.size:
            continue
        used = len({nodes.get(int(unit), "") for unit in writers})
        spent = run.busy_by_unit(calls)
        price = run.price(calls)
        whole = run.seconds(run.above(calls) | (run.mpi_data & run.collective & run.is_op(op)))
        if price.seconds < 0.5 * whole or not run.worth(price.seconds):
            continue
        better = max(hosts, 2 * writers.size)
        high = price.seconds * (1 - writers.size / run.unit_count)
        low = None if used < hosts else 0.0
        files = run.files_of(calls)
        yield Found(
            calls=run.roots_of(run.above(calls)),
            seconds=price.seconds,
            low=low,
            high=high,
            summary=f"{writers.size} of {run.unit_count} ranks {op} for all, on {used} of {hosts} "
            f"{'node' if hosts == 1 else 'nodes'}, "
            f"and are busy with it for {in_words(float(spent.max()))}",
            cause="In collective calls only a few ranks touch the storage. Here these are so few that their own "
            "streams set the pace.",
            evidence=[
                Evidence("ranks that touch the storage", float(writers.size), "ranks"),
                Evidence("nodes they are on", float(used), "nodes"),
                Evidence("their share of the collective calls' time", 100 * price.seconds / max(whole, 1e-12), "%"),
            ],
            remedies=[
                Remedy("hint", f"cb_nodes = {better}; striping_factor no less", hints={"cb_nodes": str(better)}),
                Remedy("plan", "let ioweir use more writers", rule_for(files, f'writers = "aggregators:{better}"')),
            ],
            files=files,
            ranks=run.ranks([int(unit) for unit in writers]),
        )


def _imbalance(run: Columns) -> Iterator[Found]:
    for op in ("write", "read"):
        calls = _at_storage(run, op)
        moved, spent = run.bytes_by_unit(calls), run.busy_by_unit(calls)
        writers = np.flatnonzero(moved)
        if writers.size < 2:
            continue
        mean = float(moved[writers].mean())
        unit = int(spent.argmax())
        # Ranks that touch nothing may take their part, too: their share is part of the repair.
        everyone = float(spent.sum()) / run.unit_count
        lost = float(spent[unit]) - everyone
        among_writers = float(spent[unit] - spent[writers].mean())
        if moved[unit] < 1.5 * mean or not run.worth(lost):
            continue
        ranks = run.ranks([unit])
        files = run.files_of(calls)
        yield Found(
            calls=run.roots_of(run.above(calls)),
            seconds=lost,
            low=among_writers / 2,
            spares=EXCESS,
            summary=f"{number_list(ranks)} {op}s {moved[unit] / mean:.1f} times as much for the others as the "
            "mean of the "
            f"{writers.size} ranks that touch the storage",
            cause="The bytes of collective calls are divided unevenly among the ranks that write them, and all "
            "wait for the one with most.",
            evidence=[
                Evidence("most bytes, above the mean", float(moved[unit] / mean), "times"),
                Evidence("its time", float(spent[unit]), "s"),
                Evidence("mean time of these ranks", float(spent[writers].mean()), "s"),
                Evidence("mean time of all ranks", everyone, "s"),
            ],
            remedies=[aggregate(files)],
            files=files,
            ranks=ranks,
        )


COUNT = Rule(
    code="aggregator-count",
    title="Too few ranks write for all",
    layer="MPI-IO",
    order=62,
    definition="Collective calls in which at most half of the ranks touch the storage, whose requests take at "
    "least half of the calls' time.",
    source="Thakur, Gropp and Lusk 1999 (cb_nodes); ROMIO's default: one aggregator a node, on Lustre at most "
    "one a stripe",
    thresholds=(Threshold("half", "50 % of the time", "otherwise more aggregators would change the smaller part"),),
    gain="lost: every rank with a stream of its own, seconds x (1 - aggregators/ranks); low: a quarter where nodes "
    "have none, else 0: "
    "on one node, one aggregator may be all that the storage can take, and the severity is at most medium",
    limits="How many stripes the file has is not in the trace.",
    needs=("MPI-IO", "POSIX"),
    find=_count,
)
IMBALANCE = Rule(
    code="aggregator-imbalance",
    title="Uneven shares of those that write for all",
    layer="MPI-IO",
    order=61,
    definition="In collective calls, the slowest of the ranks that touch the storage moves 1.5 times their mean "
    "or more.",
    source="Thakur, Gropp and Lusk 1999 (file domains); "
    "Howison et al. 2010 (CB 0: equal ranges, whatever lies in them)",
    thresholds=(
        Threshold("bytes", "1.5 times", "domains of whole stripes differ by under half from two stripes a writer on"),
    ),
    gain="lost: the time above all ranks of the program at the mean; low: a half of the time above the ranks that "
    "touch the storage, for these alone may share it anew",
    limits="How many aggregators the MPI library allows itself is not in the trace.",
    needs=("MPI-IO", "POSIX"),
    find=_imbalance,
)
