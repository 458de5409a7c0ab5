"""Intervals of time, many at once, as columns of a table; and the median."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    Numbers = npt.NDArray[np.int64]
    Floats = npt.NDArray[np.float64]


_SPREAD: Final = 8
"""Numbers up to so many times as many as there are have a table of their own rather than being sorted."""


def numbered(values: Numbers) -> tuple[Numbers, Numbers]:
    """Which numbers occur, rising, and of each value the place of its number there. None is below 0.

    Example: of 7, 3, 7: (3, 7) and 1, 0, 1.
    """
    most = int(values.max()) + 1 if values.size else 0
    if most > _SPREAD * values.size:
        names, places = np.unique(values, return_inverse=True)
        return names, places.reshape(-1)
    occurs = np.zeros(most, dtype=bool)
    occurs[values] = True
    return np.flatnonzero(occurs), (np.cumsum(occurs) - 1)[values]


def median(values: Numbers | Floats) -> float:
    """That of numbers, of which there are some. Numpy's own loads its masked arrays first.

    Example: of 4, 1, 3: 3; of 4, 1, 3, 2: 2.5.
    """
    half = values.size // 2
    if values.size % 2:
        return float(np.partition(values, half)[half])
    below, above = np.partition(values, (half - 1, half))[half - 1 : half + 1]
    return (float(below) + float(above)) / 2


def union(group: Numbers, start: Numbers, end: Numbers) -> tuple[Numbers, Numbers]:
    """Of each group the length of the union of its intervals. Groups that occur, and lengths."""
    names, dense = numbered(group)
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


def covered(start: Numbers, end: Numbers) -> Callable[[Numbers], Numbers]:
    """Says of times how much of what lies before each is in one of the intervals.

    Example: of 0 to 2 and 1 to 5, at 4: 4; at 9: 5.
    """
    order = np.argsort(start, kind="stable")
    reached = np.maximum.accumulate(end[order])
    begin = np.maximum(start[order], np.r_[start[order][:1], reached[:-1]])
    length = np.maximum(end[order] - begin, 0)
    before = np.r_[np.int64(0), np.cumsum(length)]

    def until(times: Numbers) -> Numbers:
        at = np.searchsorted(begin, times, side="right")
        cut = np.where(at > 0, np.maximum(begin[at - 1] + length[at - 1] - times, 0), 0)
        result: Numbers = before[at] - cut
        return result

    return until


def at_once(start: Numbers, end: Numbers) -> Floats:
    """Of each interval how many there are while it lasts, in the mean, itself included.

    Example: of 0 to 4 and 2 to 4: 1.5 and 2.
    """
    starts, ends = np.sort(start), np.sort(end)
    sums = [np.r_[0.0, np.cumsum(times - starts[0], dtype=np.float64)] for times in (starts, ends)]

    def spent(times: Numbers) -> Floats:
        """All time in intervals before each of these."""
        begun, over = (np.searchsorted(edges, times, side="right") for edges in (starts, ends))
        since = (times - starts[0]).astype(np.float64)
        result: Floats = begun * since - sums[0][begun] - (over * since - sums[1][over])
        return result

    result: Floats = np.maximum((spent(end) - spent(start)) / np.maximum(end - start, 1), 1.0)
    return result
