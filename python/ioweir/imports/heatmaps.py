"""Darshan's heatmaps, bytes over time by rank and layer, with bounds on what they hold and on how many there are.

A job of a hundred thousand ranks has three for each. Above MOST of them they are added up over the ranks: they share
the width of their bins.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from ioweir.base.units import plural
from ioweir.trace.counted import MOST_RANKS, SHARED

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

MOST: Final = 1 << 13
_MOST_KINDS: Final = 1 << 10
_MOST_BINS: Final = 1 << 16
_MOST_BYTES: Final = 1 << 62
_MOST_S: Final = 1 << 33


class Heatmaps:
    """Those of a log, in the order of their ranks."""

    def __init__(self) -> None:
        self._rows: list[dict[str, Any]] = []
        self._sums: dict[tuple[int, float], dict[str, Any]] = {}
        self._ranks = 0
        self._left_out = 0

    def add(self, row: Mapping[str, Any]) -> None:
        """One: `heatmap` (the layer's number), `rank`, `bin_s`, and bytes by bin as `write` and `read`."""
        width, rank = float(row["bin_s"]), int(row["rank"])
        bins = {way: row[way] for way in ("write", "read")}
        if (
            not math.isfinite(width)
            or not 0 < width < _MOST_S
            or not SHARED <= rank < MOST_RANKS
            or max(map(len, bins.values())) > _MOST_BINS
        ):
            self._left_out += 1
            return
        one = {"heatmap": row["heatmap"], "rank": rank, "bin_s": width} | {
            way: [min(max(value, 0), _MOST_BYTES) for value in values] for way, values in bins.items()
        }
        self._rows.append(one)
        if len(self._rows) > MOST or self._sums:
            for each in self._rows:
                self._add_up(each)
            self._rows.clear()

    def _add_up(self, row: dict[str, Any]) -> None:
        key = (row["heatmap"], row["bin_s"])
        if key not in self._sums and len(self._sums) >= _MOST_KINDS:
            self._left_out += 1
            return
        self._ranks += 1
        there = self._sums.setdefault(key, {**row, "rank": SHARED, "write": [], "read": []})
        for way in ("write", "read"):
            there[way] = _sum(there[way], row[way])

    def rows(self) -> list[dict[str, Any]]:
        """By rank, or of all ranks together (rank -1)."""
        return [*self._sums.values(), *self._rows]

    def words(self) -> Iterator[str]:
        """What they do not tell."""
        if self._sums:
            yield f"{self._ranks:,} heatmaps are added up over the ranks: more than {MOST:,} are not kept one by one"
        if self._left_out:
            yield f"{self._left_out:,} {plural('heatmap', self._left_out)} of ranks or times that cannot be, left out"


def _sum(a: Sequence[int], b: Sequence[int]) -> list[int]:
    short, long = sorted((a, b), key=len)
    return [min(x + y, _MOST_BYTES) for x, y in zip(short, long, strict=False)] + list(long[len(short) :])
