"""Exact sums and unions of time intervals, per group, over numpy columns. Knows nothing of traces or layers."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Int64s: TypeAlias = npt.NDArray[np.int64]
Indices: TypeAlias = npt.NDArray[np.intp]

_RADIX_GROUPS = 1 << 16
_SAFE_SPAN = 1 << 62


def sum_by_group(values: Int64s, groups: Indices, group_count: int) -> Int64s:
    """Sum integers per group without rounding.

    bincount adds in float64, which is exact to 2^53 only; adding the low and high 32 bits apart is exact for any sum
    that an int64 holds (each half of up to 2^21 full-size values stays below 2^53).
    """
    low = np.bincount(groups, weights=values & 0xFFFFFFFF, minlength=group_count)
    high = np.bincount(groups, weights=values >> 32, minlength=group_count)
    return low.astype(np.int64) + (high.astype(np.int64) << 32)


def count_by_group(groups: Indices, group_count: int) -> Int64s:
    """How many entries each group has."""
    return np.bincount(groups, minlength=group_count).astype(np.int64)


def union_by_group(starts: Int64s, ends: Int64s, groups: Indices, group_count: int) -> Int64s:
    """Length of the union of the intervals [start, end) of each group; `starts` must be ascending.

    All groups are laid one behind the other on one line, so that a single running maximum serves them all.
    Example: [0, 4) and [2, 6) in group 0, [1, 2) in group 1 -> [6, 1].
    """
    result = np.zeros(group_count, dtype=np.int64)
    if starts.size == 0:
        return result
    origin = int(starts[0])
    window = max(int(ends.max()) - origin, 0) + 1
    if window * group_count >= _SAFE_SPAN:
        return _union_group_by_group(starts, ends, groups, result)
    # A stable sort of 16-bit keys is a radix sort: several times faster than of wider ones.
    keys = groups.astype(np.uint16) if group_count <= _RADIX_GROUPS else groups
    order = np.argsort(keys, kind="stable")
    ordered_groups = groups[order]
    shift = ordered_groups.astype(np.int64) * window - origin
    first = starts[order] + shift
    last = ends[order] + shift
    reached = np.maximum.accumulate(last)
    covered_from = first.copy()
    np.maximum(first[1:], reached[:-1], out=covered_from[1:])
    return sum_by_group(np.maximum(last - covered_from, 0), ordered_groups, group_count)


def _union_group_by_group(starts: Int64s, ends: Int64s, groups: Indices, result: Int64s) -> Int64s:
    """The same for spans so long that the line would not fit an int64 (years times thousands of groups)."""
    for group in np.unique(groups):
        chosen = groups == group
        result[group] = union_by_group(starts[chosen], ends[chosen], np.zeros(int(chosen.sum()), dtype=np.intp), 1)[0]
    return result
