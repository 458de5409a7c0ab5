"""Which datatypes of a trace can be made again, and in how many pieces they fall. What makes them: kernels/replay."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ioweir.trace.reader import Datatype

MOST_PIECES: Final = 1 << 22
"""Of a type: an MPI library keeps a list of them."""
BYTE: Final = -1
"""In the place of a datatype of the trace: MPI_BYTE."""

_ONE_TYPE: Final = frozenset(
    {"dup", "contiguous", "vector", "hvector", "indexed", "hindexed", "indexed_block", "hindexed_block", "subarray"}
    | {"darray", "resized"}
)


class Pieces:
    """How many pieces each type has; None of one that cannot be made."""

    def __init__(self, types: Sequence[Datatype]) -> None:
        self._types = types
        self._known: dict[int, int | None] = {}

    def of(self, number: int) -> int | None:
        """Types are made of earlier ones only; anything else is damage."""
        if number == BYTE:
            return 1
        if number not in self._known:
            waiting = [number]
            while waiting:
                current = waiting[-1]
                missing = [one for one in self._types[current].types if one < current and one not in self._known]
                if missing:
                    waiting += missing
                    continue
                waiting.pop()
                self._known[current] = self._count(current)
        return self._known[number]

    def _count(self, number: int) -> int | None:
        kind = self._types[number]
        if number == 0 or kind.size < 0 or any(one >= number for one in kind.types):
            return None
        if kind.constructor == "named":
            return 1
        inner = [self._known[one] for one in kind.types]
        if any(one is None for one in inner):
            return None
        try:
            count = self._constructed(kind, [one or 0 for one in inner])
        except (IndexError, ValueError):
            return None
        return count if count is not None and 0 <= count <= MOST_PIECES else None

    def _constructed(self, kind: Datatype, inner: Sequence[int]) -> int | None:
        values = kind.values
        if kind.constructor == "structure":
            count = values[0]
            if count != len(inner) or len(values) != 1 + 2 * count:
                return None
            return sum(max(length, 0) * one for length, one in zip(values[1 : 1 + count], inner, strict=True))
        if kind.constructor not in _ONE_TYPE or len(inner) != 1:
            return None
        old = self._types[kind.types[0]]
        dense = inner[0] == 1 and old.size == old.extent
        return _of_one(kind.constructor, values, inner[0], dense=dense)


def _of_one(constructor: str, values: Sequence[int], inner: int, *, dense: bool) -> int | None:
    if constructor in ("dup", "resized"):
        return inner
    first = values[0]
    if constructor == "contiguous":
        return 1 if dense else first * inner
    if constructor in ("vector", "hvector"):
        return first * (1 if dense else values[1] * inner)
    if constructor in ("indexed", "hindexed"):
        if len(values) != 1 + 2 * first:
            return None
        return first if dense else sum(values[1 : 1 + first]) * inner
    if constructor in ("indexed_block", "hindexed_block"):
        if len(values) != 2 + first:
            return None
        return first * (1 if dense else values[1] * inner)
    if constructor == "subarray":
        if len(values) != 2 + 3 * first:
            return None
        parts = values[1 + first : 1 + 2 * first]
        return math.prod(parts) * inner // (max(parts[-1 if values[-1] == 0 else 0], 1) if dense and parts else 1)
    dimensions = values[2]
    if len(values) != 4 + 4 * dimensions:
        return None
    return max(math.prod(values[3 : 3 + dimensions]) * inner // max(first, 1), 1)
