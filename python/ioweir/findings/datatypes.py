"""How MPI's datatypes lie in memory or in a file: whether they have gaps, and how large the pieces between are."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ioweir.trace.reader import Datatype


def has_gaps(types: Sequence[Datatype], number: int, depth: int = 8) -> bool:
    """Whether a datatype's data is no single piece."""
    kind = types[number]
    if kind.constructor in ("named", "other") or depth == 0:
        return False
    if kind.size != kind.extent:
        return True
    return any(has_gaps(types, inner, depth - 1) for inner in set(kind.types))


def cell(types: Sequence[Datatype], number: int, depth: int = 8) -> int:
    """How many bytes lie together in a datatype, at its innermost gaps; 0 where that is not known."""
    kind = types[number]
    inner = kind.types[0] if kind.types else 0
    if kind.constructor == "named" or kind.size == kind.extent or depth == 0 or not kind.types:
        return max(kind.size, 0)
    if has_gaps(types, inner):
        return cell(types, inner, depth - 1)
    if kind.constructor in ("vector", "hvector") and len(kind.values) > 1:
        return kind.values[1] * max(types[inner].size, 0)
    if kind.constructor == "subarray":
        return _line(kind.values) * max(types[inner].size, 0)
    return 0


def _line(values: Sequence[int]) -> int:
    """How many elements of a subarray lie together, at least; 0: not known.

    `values`: the arguments (MPI 4.0, section 5.1.13).
    """
    dimensions = values[0] if values else 0
    if dimensions < 1 or len(values) < 2 * dimensions + 1:
        return 0
    sizes, parts = values[1 : dimensions + 1], values[dimensions + 1 : 2 * dimensions + 1]
    lines = []
    for order in (1, -1):  # libraries have numbers of their own for the order
        line = 1
        for size, part in list(zip(sizes, parts, strict=True))[::order]:
            line *= part
            if part < size:
                break
        lines.append(line)
    return min(lines)
