"""What is replayed: the calls of each rank, with what they name. How they become text is write.py's."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ioweir.replay.datatypes import BYTE

if TYPE_CHECKING:
    from ioweir.trace.reader import Datatype


@dataclass
class Instance:
    """One opening of a file by the ranks of a communicator."""

    key: tuple[int, int, int]
    """File, ranks of the communicator, and how often the file was opened so before."""
    members: dict[int, Handle] = field(default_factory=dict)
    group: int = -1


@dataclass
class Handle:
    """An MPI file of one rank."""

    rank: int
    number: int
    """In the script."""
    file: int
    ordinal: int
    """How often the rank had opened the file before."""
    ranks: int = 0
    """Of the communicator; 0 where it is not known."""
    bad: str = ""
    """Why its calls are left out."""
    closed: bool = False
    unsettled: Op | None = None
    """An MPI_File_set_view whose view the next call tells."""
    views: list[Op] = field(default_factory=list)
    begun: Op | None = None
    """A split collective."""
    slots: set[int] = field(default_factory=set)
    instance: Instance | None = None


@dataclass
class Op:
    """One call."""

    name: str
    arguments: list[int]
    start: int
    end: int
    file: int = -1
    handle: Handle | None = None
    collective: bool = False
    use: str = ""
    """What it does to the file, for the order among ranks: `make`, `remove`, `look`, `write` or `read`."""
    low: int = 0
    high: int = 0
    """Bytes that it reads or writes lie between."""
    at_end: bool = False
    """It writes behind what the file held, wherever that is: `low` and `high` are not known."""
    types: tuple[int, ...] = ()
    """Positions of its arguments that name a datatype of the trace."""
    moved: int = 0
    """Bytes."""


@dataclass
class RankCalls:
    """What one rank does."""

    rank: int
    ops: list[Op] = field(default_factory=list)
    handles: int = 0
    descriptors: int = 0
    streams: int = 0
    requests: int = 0
    before: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    """By number of an op: ranks and tags that wait for it."""
    after: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    """By number of an op: ranks and tags that it waits for."""


@dataclass
class Recorded:
    """A program's calls, ready to be carried out again."""

    ranks: list[RankCalls]
    paths: list[str]
    """Of the files, as recorded."""
    names: list[str]
    """Of the files, below the target directory."""
    datatypes: tuple[Datatype, ...]
    groups: list[list[int]] = field(default_factory=list)
    inputs: dict[int, int] = field(default_factory=dict)
    """Files that were there before, and their sizes as far as they were read."""
    found_parts: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    """Of these files what is read, from byte to byte; the rest may be a hole."""
    stored_bytes: int = 0
    """That the files need at the end, at least, besides those."""
    mpi: str = ""
    plan: str = ""
    """Under which it was recorded."""
    meetings: list[int] = field(default_factory=list)
    """Times in order. All ranks wait for each other before their first op that begins then or later."""
    left_out: Counter[str] = field(default_factory=Counter)
    """Calls by reason."""
    stand_ins: Counter[str] = field(default_factory=Counter)
    """Calls by what is called in their place."""
    remarks: list[str] = field(default_factory=list)

    def types_of(self, rank: RankCalls, always: frozenset[int] = frozenset()) -> dict[int, int]:
        """Places, from 0, of the types that a rank uses, and of `always`; those that they are made from come first."""
        used = {op.arguments[place] for op in rank.ops for place in op.types} | always
        waiting = [number for number in used if number != BYTE]
        while waiting:
            for inner in self.datatypes[waiting.pop()].types:
                if inner not in used:
                    used.add(inner)
                    waiting.append(inner)
        return {number: place for place, number in enumerate(sorted(used))}

    def seconds(self) -> float:
        """From the first call to the end of the last."""
        starts = [rank.ops[0].start for rank in self.ranks if rank.ops]
        ends = [max(op.end for op in rank.ops) for rank in self.ranks if rank.ops]
        return (max(ends) - min(starts)) / 1e9 if starts else 0.0

    def calls(self) -> int:
        """Of all ranks."""
        return sum(len(rank.ops) for rank in self.ranks)

    def found_bytes(self) -> int:
        """Of the files that were there before, without holes."""
        return sum(high - low for parts in self.found_parts.values() for low, high in parts)

    def moved(self, kind: str) -> int:
        """Bytes that were read or written, as `kind` says."""
        return sum(op.moved for rank in self.ranks for op in rank.ops if op.use == kind)
