"""Intervals of time, many at once, as columns of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Numbers = npt.NDArray[np.int64]


def union(group: Numbers, start: Numbers, end: Numbers) -> tuple[Numbers, Numbers]:
    """Of each group the length of the union of its intervals. Groups that occur, and lengths."""
    names, dense = np.unique(group, return_inverse=True)
    dense = dense.reshape(-1)
    origin = int(start.min())
    span = int(end.max()) - origin + 1
    shift = max(0, (span * names.size).bit_length() - 62)  # coarser, rather than to overflow
    width = (span >> shift) + 1
    begin = ((start - origin) >> shift) + dense * width
    stop = ((end - origin) >> shift) + dense * width
    order = np.argsort(begin, kind="stable")
    begin, stop = begin[order], stop[order]
    reached = np.maximum.accumulate(stop)
    before = np.r_[np.int64(-1), reached[:-1]]
    new = np.maximum(stop - np.maximum(begin, before), 0)
    busy = np.bincount(dense[order], new, minlength=names.size)
    return names, (busy * (1 << shift)).astype(np.int64)
