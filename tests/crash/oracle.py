"""What must be in the file that writer.c writes, whoever was killed: by its formula, and by what its ranks noted."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

PIECE: Final = 3000
PIECES: Final = 6

Bytes = NDArray[np.uint8]


def content(seed: int, ranks: int, steps: int) -> Bytes:
    """All bytes of a whole file, as value_of() in writer.c has them."""
    at = np.arange(steps * ranks * PIECES * PIECE, dtype=np.int64)
    return (1 + (at * 31 + (at >> 8) * 17 + seed * 101) % 255).astype(np.uint8)


def owners(ranks: int, steps: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Of each byte the rank and the step that write it."""
    piece = np.arange(steps * ranks * PIECES * PIECE, dtype=np.int64) // PIECE
    return piece % ranks, piece // (ranks * PIECES)


@dataclass
class Notes:
    """What the ranks of a job have noted."""

    synced: dict[int, int] = field(default_factory=dict)
    """Of each rank the last step that is promised."""
    closed: set[int] = field(default_factory=set)
    opened: set[int] = field(default_factory=set)
    closed_steps: dict[int, set[int]] = field(default_factory=dict)
    """Of programs that write a file a step: which of them each rank has closed."""
    lines: int = 0

    @classmethod
    def read(cls, path: Path, ranks: int) -> Notes:
        """Of PATH.0, PATH.1 and so on, as far as they are there."""
        notes = cls()
        for rank in range(ranks):
            file = path.with_name(f"{path.name}.{rank}")
            text = file.read_text() if file.exists() else ""
            # A line that the kill has cut says nothing.
            lines = text.splitlines() if text.endswith("\n") else text.splitlines()[:-1]
            notes.lines += len(lines)
            for line in lines:
                word, _, number = line.partition(" ")
                if word == "sync":
                    notes.synced[rank] = int(number)
                elif word == "closed" and number:
                    notes.closed_steps.setdefault(rank, set()).add(int(number))
                elif word == "closed":
                    notes.closed.add(rank)
                elif word == "open":
                    notes.opened.add(rank)
        return notes


def violations(found: Bytes, notes: Notes, seed: int, earlier: int | None, ranks: int, steps: int) -> list[str]:
    """What is wrong with the bytes that a job has left.

    `earlier`: the seed of the whole file that was there before; None: there was none.
    """
    new = content(seed, ranks, steps)
    old = content(earlier, ranks, steps) if earlier is not None else np.zeros_like(new)
    rank, step = owners(ranks, steps)
    promised = np.zeros(len(new), dtype=bool)
    for one in range(ranks):
        last = steps - 1 if one in notes.closed else notes.synced.get(one, -1)
        promised |= (rank == one) & (step <= last)
    problems = []
    least = len(new) if earlier is not None else int(promised.nonzero()[0].max(initial=-1)) + 1
    if not least <= len(found) <= len(new):
        problems.append(f"it has {len(found)} bytes, and {least} to {len(new)} are possible")
    length = min(len(found), len(new))
    there, new, old, promised = found[:length], new[:length], old[:length], promised[:length]
    lost = promised & (there != new)
    if lost.any():
        first = int(lost.argmax())
        problems.append(
            f"{int(lost.sum())} bytes that were synced are not there, first {first} of rank {rank[first]},"
            f" step {step[first]}: {there[first]} instead of {new[first]}"
        )
    strange = ~promised & (there != new) & (there != old)
    if strange.any():
        first = int(strange.argmax())
        problems.append(f"{int(strange.sum())} bytes are what nobody wrote there, first {first}: {there[first]}")
    return problems


def is_one_of(found: Bytes, seeds: list[int], ranks: int, steps: int) -> bool:
    """Is it a whole file of one of these?"""
    return any(np.array_equal(found, content(seed, ranks, steps)) for seed in seeds)
