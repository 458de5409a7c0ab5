"""Locks are taken again in the order in which they were; those that several had at once are left out."""

from __future__ import annotations

from ioweir.replay import from_trace, order, write
from ioweir.replay.model import Op, RankCalls, Recorded
from traces import Builder, Call

PATH = "/data/run/counter"


def of_ranks(*ranks: list[tuple[str, float, float, int, int]]) -> Recorded:
    """Of each rank calls (name, from, to, offset, bytes); all open the file first."""
    made = Builder()
    for number, calls in enumerate(ranks):
        rank = made.rank(number, len(ranks))
        made.add(Call(rank, "open", 0.1, 0.2, PATH))
        for name, start, end, offset, moved in calls:
            made.add(Call(rank, name, start, end, PATH, moved, offset=offset))
        made.add(Call(rank, "close", 90, 91, PATH))
    return from_trace.of_trace(made.trace(), len(ranks), "a trace")


def script(found: Recorded, rank: int) -> list[str]:
    return [line for line in write.lines(found, found.ranks[rank], 1) if not line.startswith(("think", "file", "type"))]


def changed(lock: str, unlock: str, begin: float, waited: float = 0.0, size: int = 8) -> list[
    tuple[str, float, float, int, int]
]:  # fmt: skip
    """A number is read, changed and written back under a lock."""
    at = begin + waited
    return [
        (lock, begin, at + 0.1, 0, size), ("pread", at + 0.2, at + 0.3, 0, 8), ("pwrite", at + 0.4, at + 0.5, 0, 8),
        (unlock, at + 0.6, at + 0.8, 0, size),
    ]  # fmt: skip


def test_a_lock_waits_for_who_had_it_before() -> None:
    """Else rank 1 takes it first, and waits for what rank 0 writes, which waits for the lock: both without end."""
    for family in ("flock", "fcntl"):
        lock, unlock = f"{family}_lock", f"{family}_unlock"
        found = of_ranks(changed(lock, unlock, 1), changed(lock, unlock, 1.1, waited=0.6))
        assert not found.left_out
        second = script(found, 1)
        first = script(found, 0)
        place = next(number for number, line in enumerate(second) if line.startswith(lock))
        tag = second[place - 1].removeprefix("after 0 ")
        given = next(number for number, line in enumerate(first) if line.startswith(unlock))
        assert f"before 1 {tag}" in first[given + 1 :]
        assert f"before 1 {tag}" not in first[:given]


def test_each_lock_waits_for_the_last_that_had_its_bytes() -> None:
    turns = [changed("fcntl_lock", "fcntl_unlock", 1 + rank) for rank in range(4)]
    found = of_ranks(*turns)
    waits = [[line for line in script(found, rank) if line.startswith("after")] for rank in range(4)]
    for rank in range(1, 4):
        assert waits[rank][0].startswith(f"after {rank - 1} ")


def test_locks_of_other_bytes_do_not_wait() -> None:
    def own(rank: int) -> list[tuple[str, float, float, int, int]]:
        at = 1 + rank
        return [("fcntl_lock", at, at + 0.1, 100 * rank, 100), ("fcntl_unlock", at + 0.5, at + 0.6, 100 * rank, 100)]

    found = of_ranks(own(0), own(1), own(2))
    # For the opening, which may have made the file, and for nothing else.
    assert {number for rank in found.ranks for number in rank.before} == {0}


def test_locks_that_several_had_at_once_are_left_out() -> None:
    """Libraries lock files that they read: taken to write, the second would wait for the close of the first."""
    for family in ("flock", "fcntl"):
        held = [(f"{family}_lock", 1.0, 1.1, 0, 0), ("pread", 2.0, 2.1, 0, 8), (f"{family}_unlock", 80.0, 80.1, 0, 0)]
        found = of_ranks(held, held)
        why = "several had the lock at once, so that it was one to read"
        assert dict(found.left_out) == {f"{family}_lock: {why}": 2, f"{family}_unlock: {why}": 2}
        assert [op.name for op in found.ranks[0].ops] == ["open", "pread", "close"]


def test_a_close_gives_a_lock_back() -> None:
    made = Builder()
    first, second = made.rank(0, 2), made.rank(1, 2)
    for rank, at in ((first, 1), (second, 10)):
        made.add(Call(rank, "open", at, at + 0.1, PATH))
        made.add(Call(rank, "flock_lock", at + 1, at + 1.1, PATH))
        made.add(Call(rank, "pwrite", at + 2, at + 2.1, PATH, 8, offset=0))
        made.add(Call(rank, "close", at + 3, at + 3.1, PATH))
    found = from_trace.of_trace(made.trace(), 2, "a trace")
    assert not found.left_out
    closes = next(number for number, op in enumerate(found.ranks[0].ops) if op.name == "close")
    locks = next(number for number, op in enumerate(found.ranks[1].ops) if op.name == "flock_lock")
    assert found.ranks[0].before[closes][0][0] == 1
    assert found.ranks[1].after[locks][0][0] == 0


def test_two_descriptors_of_a_process_that_share_a_lock_do_not_wait_for_each_other() -> None:
    made = Builder()
    rank = made.rank(0, 1)
    for at in (1, 2):
        made.add(Call(rank, "open", at, at + 0.1, PATH))
        made.add(Call(rank, "flock_lock", at + 0.2, at + 0.3, PATH))
    made.add(Call(rank, "pread", 5, 5.1, PATH, 8, offset=0))
    found = from_trace.of_trace(made.trace(), 1, "a trace")
    assert not [op for op in found.ranks[0].ops if op.name == "flock_lock"]


def test_locks_of_which_the_order_is_not_known_are_left_out() -> None:
    """As where clocks disagree: each rank waits for what the other does later. A lock might be taken too early then."""

    def rank(number: int) -> RankCalls:
        names = ("open", "flock_lock", "flock_unlock", "pread", "unlink")
        calls = [Op(name, [0, 0], at, at + 1, 0) for at, name in enumerate(names)]
        calls[4].use, calls[4].file = "remove", number
        calls[0].file = 1 - number
        # The call that the other one waits for is the last of this rank, by its own clock.
        calls[0].start, calls[0].end, calls[4].start, calls[4].end = 100, 101, 2, 3
        calls[0].use = "look"
        return RankCalls(number, calls)

    found = Recorded([rank(0), rank(1)], ["/a", "/b"], ["a", "b"], ())
    order.put_in_order(found)
    assert [op.name for op in found.ranks[0].ops] == ["open", "pread", "unlink"]
    assert found.left_out["flock_lock: the order in which ranks had the lock is not known"] == 2
    assert found.remarks[0].startswith("no replay can keep the order among ranks")
