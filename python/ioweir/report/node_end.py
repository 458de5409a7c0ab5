"""What becomes of nodes' files when a run of several nodes has ended: sums of each, compressed files; in parallel.

Reports of very many nodes then read no event (trace/node_sums.py). One node's run has its events reported, and no sums.
"""

from __future__ import annotations

import os
from concurrent.futures.process import BrokenProcessPool
from typing import TYPE_CHECKING

from ioweir.base.guarded_files import Folder
from ioweir.base.locate import COMPRESSED_SUFFIX
from ioweir.base.processes import workers
from ioweir.errors import IoweirError
from ioweir.report import lacking
from ioweir.trace import attribute, compressed, node_sums, reader

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def end_nodes(directory: Path, names: Sequence[str], *, compress: bool) -> list[str]:
    """Add up the events of each node's file into a sums file beside it; why that was not done, for each it was not.

    `compress`: also put a compressed file in the place of each. A file into which processes may still write stays as it
    is, and gets no sums; so does a damaged one.
    """
    work = [(directory, name, compress) for name in names]
    jobs = min(len(os.sched_getaffinity(0)), len(work))
    try:
        with workers(jobs) as pool:
            return [f"{name}: {why}" for name, why in zip(names, pool.map(_end_node, work), strict=True) if why]
    except (OSError, BrokenProcessPool) as error:
        return [f"the nodes' events are not added up: {error}"]


def _end_node(work: tuple[Path, str, bool]) -> str:
    """Why there are no sums of a node; empty where there are, or where no rank ran."""
    directory, name, compress = work
    try:
        trace = reader.read(directory, name)
        if why := compressed.why_not(name, trace):
            return why
        sums = of_node(trace, name)
        with Folder.open(directory, own=True) as folder:
            if sums is not None:
                node_sums.write(folder, node_sums.name_of(name), sums)
            if compress and not name.endswith(COMPRESSED_SUFFIX):
                compressed.compress(folder, name)
    except (IoweirError, OSError, ValueError) as error:
        return str(error)
    return ""


def of_node(trace: reader.Trace, name: str) -> node_sums.NodeSums | None:
    """The sums of one node's events; None: no rank ran there."""
    who = attribute.attribute_processes(trace.processes)
    if not who.has_ranks:
        return None
    reasons = [reason for reason in lacking.partial_reasons(trace, who) if not reason.startswith("left no trace: ")]
    return node_sums.of_trace(trace, lacking.recorded_layers(trace), [f"{name}: {words}" for words in reasons])
