"""Where all ranks of a program waited for each other between calls: a replay has them wait there, too.

A trace names the ranks of no barrier. Taken for one is a moment at which every rank had ended its calls, none had begun
its next, and some rank was in an MPI call that all ranks of a communicator make: //TRACE (Mesnier et al., FAST 2007)
finds dependencies among nodes in such gaps, too, by delaying one of them; here the trace has the waiting itself.

Lives here: finding these moments. Not here: whether all ranks get to their end with them (order.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ioweir.replay.model import Recorded
    from ioweir.trace.reader import Column, Trace

# Every rank waits for every other one in them. In MPI_Bcast, MPI_Gather or MPI_Reduce some wait for one.
_ALL_WAIT: Final = frozenset({
    "MPI_Barrier", "MPI_Allgather", "MPI_Allgatherv", "MPI_Alltoall", "MPI_Alltoallv", "MPI_Alltoallw", "MPI_Allreduce",
    "MPI_Reduce_scatter", "MPI_Reduce_scatter_block", "MPI_Comm_dup", "MPI_Comm_dup_with_info", "MPI_Comm_create",
    "MPI_Comm_split", "MPI_Comm_split_type", "MPI_Win_fence",
})  # fmt: skip


def find(trace: Trace, recorded: Recorded, processes: Sequence[Sequence[int]]) -> None:
    """Notes them. `processes`: by rank its process images."""
    import numpy as np  # noqa: PLC0415

    if len(recorded.ranks) < 2:
        return
    begins, ends = _waits(trace, processes)
    ops = sorted((op.start, op.end) for rank in recorded.ranks for op in rank.ops)
    if begins.size == 0 or not ops:
        return
    starts, stops = (np.asarray(column, dtype=np.int64) for column in zip(*ops, strict=True))
    ended = np.maximum.accumulate(stops)
    after = np.flatnonzero(ended[:-1] <= starts[1:]) + 1
    quiet_from, quiet_to = ended[after - 1], starts[after]
    # A wait overlaps the gap where more waits have begun by its end than had ended before its begin.
    waited = np.searchsorted(begins, quiet_to, side="right") > np.searchsorted(ends, quiet_from, side="left")
    recorded.meetings = quiet_to[waited].tolist()


def _waits(trace: Trace, processes: Sequence[Sequence[int]]) -> tuple[Column, Column]:
    """When calls of the ranks in which all wait for all began and ended, each in order."""
    import numpy as np  # noqa: PLC0415

    events = trace.events
    named = [function.id for function in trace.functions if function.name.removesuffix("_c") in _ALL_WAIT]
    ours = [image for images in processes for image in images]
    waits = np.flatnonzero(np.isin(events.function, named) & np.isin(events.process, ours))
    begins = np.asarray(events.start_ns[waits], dtype=np.int64)
    return np.sort(begins), np.sort(begins + np.asarray(events.duration_ns[waits], dtype=np.int64))
