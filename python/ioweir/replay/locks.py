"""Locks by fcntl and flock: which of them a replay takes again.

A trace does not say whether a lock is one to read, which several may have at once, or one to write. A replay takes
locks to write. Where several had a lock of the same bytes at once, as libraries have that guard files which are read,
such locks would wait for each other without end: they are left out. In which order the others are taken: order.py.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from ioweir.replay.model import Op, RankCalls, Recorded

TAKES: Final = frozenset({"fcntl_lock", "flock_lock"})
GIVES: Final = {"fcntl_unlock": "fcntl", "flock_unlock": "flock"}
FAMILIES: Final = ("fcntl", "flock")
_END: Final = 1 << 63
_LATEST: Final = 1 << 62


@dataclass
class _Hold:
    """A lock that was taken."""

    owner: tuple[int, int]
    """The rank, and of flock its descriptor: a process that locks bytes again by fcntl has them already."""
    descriptor: int
    low: int
    high: int
    since: int
    until: int = _LATEST


def family(op: Op) -> str:
    """`fcntl` or `flock`, which do not know each other."""
    return op.name.partition("_")[0]


def span(op: Op) -> tuple[int, int]:
    """Of a lock or its end the bytes; flock has all, and 0 bytes of fcntl reach to the end."""
    if family(op) == "flock":
        return 0, _END
    low, length = op.arguments[1:3]
    return low, low + length if length > 0 else _END


def gives(op: Op, of: str, descriptor: int, low: int, high: int) -> bool:
    """Whether an unlock or a close of this rank ends its lock of a family on these bytes of the file.

    A process that closes any of its descriptors of a file loses all that it has there by fcntl.
    """
    if of == "flock":
        return descriptor == op.arguments[0]
    begin, end = (0, _END) if op.name == "close" else span(op)
    return begin < high and low < end


def leave_out_shared(recorded: Recorded) -> None:
    """Takes out, and counts, the locks of files on which several ranks or descriptors had one at once."""
    holds: defaultdict[tuple[int, str], list[_Hold]] = defaultdict(list)
    for rank in recorded.ranks:
        for key, hold in _holds(rank):
            holds[key].append(hold)
    shared = {key for key, its in holds.items() if _at_once(its)}
    _leave_out(recorded, shared, "several had the lock at once, so that it was one to read")


def leave_out_all(recorded: Recorded) -> None:
    """The same of all locks, where nothing is known of the order in which they were taken."""
    every = {(op.file, family(op)) for rank in recorded.ranks for op in rank.ops if op.name in TAKES}
    _leave_out(recorded, every, "the order in which ranks had the lock is not known")


def _leave_out(recorded: Recorded, which: Collection[tuple[int, str]], why: str) -> None:
    for rank in recorded.ranks if which else ():
        kept = []
        for op in rank.ops:
            if op.name in (*TAKES, *GIVES) and (op.file, family(op)) in which:
                recorded.left_out[f"{op.name}: {why}"] += 1
            else:
                kept.append(op)
        rank.ops = kept


def _holds(rank: RankCalls) -> Iterator[tuple[tuple[int, str], _Hold]]:
    held: defaultdict[tuple[int, str], list[_Hold]] = defaultdict(list)
    for op in rank.ops:
        if op.name in TAKES:
            owner = (rank.rank, op.arguments[0] if family(op) == "flock" else -1)
            hold = _Hold(owner, op.arguments[0], *span(op), op.end)
            held[op.file, family(op)].append(hold)
            yield (op.file, family(op)), hold
        elif op.name in GIVES or op.name == "close":
            for kind in FAMILIES if op.name == "close" else (GIVES[op.name],):
                its = held.get((op.file, kind), [])
                for hold in [one for one in its if gives(op, kind, one.descriptor, one.low, one.high)]:
                    hold.until = op.start
                    its.remove(hold)


def _at_once(holds: Iterable[_Hold]) -> bool:
    under_way: list[tuple[int, int, _Hold]] = []
    for number, hold in enumerate(sorted(holds, key=lambda one: one.since)):
        while under_way and under_way[0][0] <= hold.since:
            heapq.heappop(under_way)
        for _, _, other in under_way:
            if other.owner != hold.owner and other.low < hold.high and hold.low < other.high:
                return True
        heapq.heappush(under_way, (hold.until, number, hold))
    return False
