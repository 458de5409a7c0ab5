"""What of one rank has to come before what of another: files are there before others open them, bytes before reads.

A trace does not hold the program's messages. What one rank did to a file and had ended when another one began to use
it is taken for a cause, and the other waits for it. Locks are taken in the order in which they were taken. Lives
here: finding these pairs, and whether all ranks get to their end with them. Not here: calls that ranks make together,
which wait for each other by themselves; which locks there are (locks.py).
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ioweir.errors import IoweirError
from ioweir.replay import locks, posix_files

if TYPE_CHECKING:
    from ioweir.replay.model import Op, RankCalls, Recorded

_TAGS: Final = 32_000
_NONBLOCKING: Final = "MPI_File_i"
_ANYWHERE: Final = 1 << 63


@dataclass
class _FileState:
    """Of calls that have ended: by rank the last of each use, as its number."""

    made: dict[int, int] = field(default_factory=dict)
    last: dict[int, int] = field(default_factory=dict)
    written: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    """(number, low, high)"""
    version: int = 0
    """Of `made`: who has seen it need not look again."""
    seen: dict[int, int] = field(default_factory=dict)
    """By rank the version."""
    held: dict[tuple[int, str], list[tuple[int, int, int]]] = field(default_factory=dict)
    """Locks by rank and family: (descriptor, low, high)"""
    given: dict[str, list[tuple[int, int, int, int]]] = field(default_factory=dict)
    """By family of locks (rank, number, low, high) of the last calls that gave one back, of any bytes once."""

    def take(self, rank: int, number: int, op: Op) -> None:
        self.last[rank] = max(number, self.last.get(rank, -1))
        if op.use in ("make", "remove") or _may_shrink(op):
            self.made[rank] = max(number, self.made.get(rank, -1))
            self.version += 1
        # What only sets a size makes all bytes before it. Where the end was behind which a call wrote, nobody says.
        begin = op.low if op.moved and not op.at_end else 0
        end = _ANYWHERE if op.at_end else op.high
        if op.use == "write" and end > begin:
            before, low, high = self.written.get(rank, (-1, begin, end))
            self.written[rank] = (max(number, before), min(low, begin), max(high, end))

    def needed(self, op: Op, rank: int) -> list[tuple[int, int]]:
        """Of which ranks which calls must have been made."""
        if op.use == "remove" or _may_shrink(op):
            found = self.last
        else:
            found = {} if self.seen.get(rank, -1) == self.version else dict(self.made)
            self.seen[rank] = self.version
            for other, (number, low, high) in self.written.items() if op.use == "read" else ():
                if low < op.high and op.low < high:
                    found[other] = max(number, found.get(other, -1))
        return [(other, number) for other, number in found.items() if other != rank]

    def give(self, rank: int, number: int, op: Op) -> None:
        """Notes that from now on others may have the rank's locks."""
        for family in locks.FAMILIES if op.name == "close" else (locks.GIVES.get(op.name, ""),):
            held = self.held.get((rank, family), [])
            for one in [one for one in held if locks.gives(op, family, *one)]:
                held.remove(one)
                _, low, high = one
                # Who had this lock has waited for all who had parts of it before.
                kept = [last for last in self.given.get(family, ()) if not (low <= last[2] and last[3] <= high)]
                self.given[family] = [*kept, (rank, number, low, high)]

    def given_before(self, op: Op, rank: int) -> list[tuple[int, int]]:
        """Takes a lock; by which ranks and calls others were given back that had bytes of it."""
        low, high = locks.span(op)
        family = locks.family(op)
        self.held.setdefault((rank, family), []).append((op.arguments[0], low, high))
        its = self.given.get(family, ())
        return [(other, number) for other, number, begin, end in its if other != rank and begin < high and low < end]


def _may_shrink(op: Op) -> bool:
    """Whether bytes may be gone behind the call that others have read before."""
    return op.name in ("creat", "truncate", "ftruncate") or (
        op.name == "fopen" and op.arguments[2] in posix_files.EMPTYING
    )


def put_in_order(recorded: Recorded) -> None:
    """Says of each rank what waits for it and what it waits for; takes meetings away that do not fit."""
    ranks = recorded.ranks
    pairs = _pairs(ranks)
    _note(ranks, pairs)
    if _Run(ranks, recorded.meetings).all_end():
        return
    recorded.meetings.clear()
    for rank in ranks:
        rank.before.clear()
        rank.after.clear()
    locks.leave_out_all(recorded)
    if not _Run(ranks, []).all_end():
        raise IoweirError(
            "the ranks' collective calls do not fit together: some would wait for ever. The trace is damaged, or calls "
            "are missing in it; record the program anew"
        )
    recorded.remarks.append(
        "no replay can keep the order among ranks that the recorded times give (clocks of nodes disagree, or threads "
        "of a rank waited for each other): it has that of collective calls alone, and ranks that read what others have "
        "written may come too early"
    )


def _pairs(ranks: list[RankCalls]) -> list[tuple[int, int, int, int]]:
    """(rank and number of what comes before, rank and number of what comes after)"""
    # Who takes a lock may have waited for it: what counts is when it had it, and when others began to give it back.
    order = sorted(
        (op.end if op.name in locks.TAKES else op.start, rank.rank, number)
        for rank in ranks
        for number, op in enumerate(rank.ops)
        if op.file >= 0
    )
    files: defaultdict[int, _FileState] = defaultdict(_FileState)
    waited: dict[tuple[int, int], int] = {}
    under_way: list[tuple[int, int, int]] = []
    pairs = []
    for start, rank, number in order:
        while under_way and under_way[0][0] <= start:
            _, other, ended = heapq.heappop(under_way)
            op = ranks[other].ops[ended]
            for file in _files_of(op):
                files[file].take(other, ended, op)
        op = ranks[rank].ops[number]
        heapq.heappush(under_way, (op.end, rank, number))
        if op.name in locks.TAKES:
            needed = files[op.file].given_before(op, rank)
        else:
            needed = [pair for file in _files_of(op) for pair in files[file].needed(op, rank)]
            files[op.file].give(rank, number, op)
        for other, before in needed:
            if _took_part(rank, ranks[other].ops[before]) or waited.get((rank, other), -1) >= before:
                continue
            waited[rank, other] = before
            pairs.append((other, before, rank, number))
    return pairs


def _files_of(op: Op) -> tuple[int, ...]:
    return (op.file, op.arguments[1]) if op.name == "rename" else (op.file,)


def _took_part(rank: int, op: Op) -> bool:
    """In the opening that it is: the rank made the same call."""
    if op.name != "MPI_File_open" or op.handle is None or op.handle.instance is None:
        return False
    return rank in op.handle.instance.members


def _note(ranks: list[RankCalls], pairs: list[tuple[int, int, int, int]]) -> None:
    for number, (first, before, second, after) in enumerate(pairs):
        tag = number % _TAGS
        ranks[first].before.setdefault(before, []).append((second, tag))
        ranks[second].after.setdefault(after, []).append((first, tag))


class _Run:
    """Goes through all ranks as they would run."""

    def __init__(self, ranks: list[RankCalls], meetings: list[int]) -> None:
        self._ranks = ranks
        self._meetings = meetings
        self._come = [0] * len(ranks)
        """Of each rank, to how many meetings it has come."""
        self._present = [0] * len(meetings)
        """Of each meeting, how many ranks have come."""
        self._over = 0
        """So many meetings all ranks have come to."""
        self._at = [0] * len(ranks)
        self._signals: defaultdict[tuple[int, int, int], int] = defaultdict(int)
        self._heard: set[int] = set()
        """Ranks that have what their next call waits for."""
        self._met: defaultdict[int, set[int]] = defaultdict(set)
        """By opening: ranks that stand at a call which they make together."""
        self._ready = list(range(len(ranks)))

    def all_end(self) -> bool:
        while self._ready:
            rank = self._ready.pop()
            while self._at[rank] < len(self._ranks[rank].ops) and self._step(rank):
                pass
            if self._at[rank] == len(self._ranks[rank].ops) and self._come[rank] < len(self._meetings):
                self._may_go_on(rank, self._meetings[-1])
        return all(at == len(rank.ops) for at, rank in zip(self._at, self._ranks, strict=True))

    def _may_go_on(self, rank: int, start: int) -> bool:
        """Whether all meetings before a call of the rank are over. One that now is wakes everybody."""
        while self._come[rank] < len(self._meetings) and self._meetings[self._come[rank]] <= start:
            self._present[self._come[rank]] += 1
            self._come[rank] += 1
        over = self._over
        while self._over < len(self._meetings) and self._present[self._over] == len(self._ranks):
            self._over += 1
        if self._over > over:
            self._ready += range(len(self._ranks))
        return self._come[rank] <= self._over

    def _step(self, rank: int) -> bool:
        calls = self._ranks[rank]
        op = calls.ops[self._at[rank]]
        if rank not in self._heard:
            keys = [(other, rank, tag) for other, tag in calls.after.get(self._at[rank], ())]
            if any(self._signals[key] == 0 for key in keys):
                return False
            for key in keys:
                self._signals[key] -= 1
            self._heard.add(rank)
        if not self._may_go_on(rank, op.start):
            return False
        if not op.collective or op.handle is None or op.name.startswith(_NONBLOCKING):
            self._pass(rank)
            return True
        instance = op.handle.instance
        assert instance is not None
        here = self._met[id(instance)]
        here.add(rank)
        if len(here) < len(instance.members):
            return False
        here.clear()
        for other in instance.members:
            self._pass(other)
            self._ready.append(other)
        return True

    def _pass(self, rank: int) -> None:
        for other, tag in self._ranks[rank].before.get(self._at[rank], ()):
            self._signals[rank, other, tag] += 1
            self._ready.append(other)
        self._at[rank] += 1
        self._heard.discard(rank)
