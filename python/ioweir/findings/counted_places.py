"""Rules on counters about where ranks read and write, and what MPI-IO makes of their calls: each a sure bound."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from ioweir.base.units import size
from ioweir.findings.counted_rows import ANSWERED_S, Found, by_time
from ioweir.findings.model import Evidence, Remedy
from ioweir.findings.rules.common import SMALL, STRIPE, aggregate
from ioweir.trace.counted import SHARED
from ioweir.trace.reader import DATA_OPS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ioweir.findings.counted_rows import Run
    from ioweir.trace.counted import Counts

_REQUESTS: Final = 16
"""As in rules/requests/collective_scattered.py."""
_AGAIN: Final = 2.0
_COMMON: Final = 0.75
_UNEVEN: Final = 1.5
_READ: Final = ("POSIX_BYTES_READ", "POSIX_BYTES_WRITTEN", "POSIX_MAX_BYTE_READ")
_SLOWEST: Final = (
    "POSIX_SLOWEST_RANK", "POSIX_SLOWEST_RANK_BYTES", "POSIX_F_SLOWEST_RANK_TIME", "POSIX_BYTES_READ",
    "POSIX_BYTES_WRITTEN", "POSIX_F_READ_TIME", "POSIX_F_WRITE_TIME", "POSIX_F_META_TIME",
)  # fmt: skip
_COLLECTIVE: Final = tuple(f"MPIIO_{how}_{op}S" for how in ("COLL", "INDEP", "SPLIT", "NB") for op in ("WRITE", "READ"))


def _scattered(run: Run) -> Iterator[Found]:
    """Files of which collective calls alone move the bytes, and end in many small requests."""
    table = run.table("MPI-IO", _COLLECTIVE)
    if table is None:
        return
    records, at = table
    for op in DATA_OPS:
        upper = op.upper()
        collective: dict[int, float] = defaultdict(float)
        others: set[int] = set()
        for record in records.rows:
            file = int(record[0])
            collective[file] += max(record[at[f"MPIIO_COLL_{upper}S"]], 0)
            if any(record[at[f"MPIIO_{how}_{upper}S"]] > 0 for how in ("INDEP", "SPLIT", "NB")):
                others.add(file)
        small: dict[int, int] = defaultdict(int)
        beneath: dict[int, list[Counts]] = defaultdict(list)
        for row in run.by_op["POSIX", op]:
            if collective.get(row.file, 0) > 0 and row.file not in others:
                small[row.file] += sum(calls for least, calls in row.sizes if least < SMALL)
                beneath[row.file].append(row)
        wrong = {
            file
            for file, number in small.items()
            if number >= _REQUESTS * collective[file]
            and sum(row.bytes for row in beneath[file]) < SMALL * sum(row.calls for row in beneath[file])
        }
        rows = [row for row in run.by_op["MPI-IO", op] if row.file in wrong]
        if not rows:
            continue
        spent, ranks = run.slowest(rows)
        files = by_time(rows)
        requests = [row for file in wrong for row in beneath[file]]
        calls, number = sum(collective[file] for file in wrong), sum(small[file] for file in wrong)
        mean_s = sum(row.time_s for row in requests) / max(sum(row.calls for row in requests), 1)
        yield Found(
            "collective-scattered",
            "Collective calls that end in tiny requests",
            "MPI-IO",
            spent,
            f"{calls:,.0f} collective {op}s became {number:,} {op}s of under 100 KiB at the storage",
            "The ranks call the collective function, but the MPI library does not put their pieces together: each "
            "piece becomes a request of its own.",
            files,
            ranks,
            [
                Evidence(f"collective {op}s", calls, "calls"),
                Evidence(f"POSIX {op}s under 100 KiB inside of them", float(number), "calls"),
                Evidence("POSIX requests per collective call", number / calls, "calls"),
            ],
            [
                aggregate([run.path(file) for file in files]),
                Remedy(
                    "hint",
                    "romio_cb_write = enable, romio_cb_read = enable (ROMIO); OMPI_MCA_fcoll=vulcan (Open MPI)",
                    hints={"romio_cb_write": "enable", "romio_cb_read": "enable"},
                ),
            ],
            "the log has bins of sizes (the nearest border is 100 KiB), and what passing data costs in these calls is "
            "not in it",
            low=0.0 if mean_s <= ANSWERED_S else None,
        )


def _reads(run: Run) -> dict[tuple[int, int], tuple[float, float]]:
    """By file and rank, of what the program reads itself: bytes read by a rank, and how many can be different at most.

    These lie before the last byte that was read, or were written meanwhile. Of a record of all ranks: by one in the
    mean.
    """
    posix = run.table("POSIX", _READ)
    if posix is None:
        return {}
    table, at = posix
    own = {(row.file, row.rank) for row in run.by_op["POSIX", "read"] if row.outermost}
    written: dict[int, float] = defaultdict(float)
    for row in table.rows:
        written[int(row[0])] += max(row[at["POSIX_BYTES_WRITTEN"]], 0)
    result = {}
    for row in table.rows:
        key = (int(row[0]), int(row[1]))
        moved, last = row[at["POSIX_BYTES_READ"]], row[at["POSIX_MAX_BYTE_READ"]]
        if key in own and moved > 0 and last >= 0:
            result[key] = moved / (run.ranks if key[1] == SHARED else 1), last + 1 + written[key[0]]
    return result


def _again(run: Run) -> Iterator[Found]:
    """Ranks that read more than twice as many bytes as lie before the last one that was read."""
    reads = {key: both for key, both in _reads(run).items() if both[0] >= _AGAIN * both[1]}
    rows = [row for row in run.by_op["POSIX", "read"] if (row.file, row.rank) in reads]
    if not rows:
        return
    spent, ranks = run.slowest(rows)
    moved, different = (sum(both[at] for both in reads.values()) for at in (0, 1))
    yield Found(
        "redundant-read",
        "Reading the same again",
        "POSIX",
        spent * (1 - different / moved),
        f"a rank reads {size(moved)}, though only {size(different)} can be different bytes: it reads the same places "
        "again",
        "A rank reads parts of a file that it has read before, instead of keeping them.",
        by_time(rows),
        ranks,
        [
            Evidence("bytes read again, by a rank", moved - different, "B"),
            Evidence("times each byte is read", moved / different, "times"),
        ],
        [Remedy("source", "keep what was read in memory, or read larger parts at once (HDF5: a larger chunk cache)")],
        "the log has the last byte that was read, and not which others: more may have been read again",
    )


def _by_all(run: Run) -> Iterator[Found]:
    """Files of which every rank reads nearly all, in the mean."""
    if run.ranks < 2:
        return
    same = {
        file: different
        for (file, rank), (moved, different) in _reads(run).items()
        if rank == SHARED and _COMMON * different <= moved < _AGAIN * different
    }
    rows = [row for row in run.by_op["POSIX", "read"] if row.file in same and row.rank == SHARED]
    read = sum(row.bytes for row in rows)
    if read < STRIPE:
        return
    spent, ranks = run.slowest(rows)
    files = by_time(rows)
    asked = sum(row.calls for row in rows)
    yield Found(
        "same-read-by-all",
        "Every rank reads the same",
        "POSIX",
        spent,
        f"{run.ranks} ranks each read nearly all of the {size(sum(same.values()))} in {len(files):,} "
        f"{'file' if len(files) == 1 else 'files'}",
        "Every rank reads the same bytes by itself, so that the storage gives out the same data once for each rank.",
        files,
        ranks,
        [
            Evidence("ranks that read the same", float(run.ranks), "ranks"),
            Evidence("bytes of it", sum(same.values()), "B"),
            Evidence("bytes read altogether", float(read), "B"),
        ],
        [Remedy("source", "read on one rank and broadcast (MPI_Bcast), or read collectively (MPI_File_read_all)")],
        "the log has the sum of all ranks: that each of them read as much is the likeliest, and not sure",
        low=0.0 if sum(row.time_s for row in rows) <= ANSWERED_S * asked + 1e-9 * read else None,
        high=spent * (1 - 1 / run.ranks),
    )


def _uneven(run: Run) -> Iterator[Found]:
    """Of files that all ranks opened: one that moved far more than the mean, and took longest."""
    posix = run.table("POSIX", _SLOWEST)
    if posix is None or run.ranks < 2:
        return
    table, at = posix
    own = {row.file for op in DATA_OPS for row in run.by_op["POSIX", op] if row.outermost and row.rank == SHARED}
    found: list[tuple[float, int, int, float, float]] = []
    for row in table.rows:
        if row[1] >= 0 or int(row[0]) not in own:
            continue
        mean = (row[at["POSIX_BYTES_READ"]] + row[at["POSIX_BYTES_WRITTEN"]]) / run.ranks
        most, took = row[at["POSIX_SLOWEST_RANK_BYTES"]], row[at["POSIX_F_SLOWEST_RANK_TIME"]]
        others = sum(max(row[at[f"POSIX_F_{kind}_TIME"]], 0.0) for kind in ("READ", "WRITE", "META")) / run.ranks
        rank = int(row[at["POSIX_SLOWEST_RANK"]])
        if mean * run.ranks >= STRIPE and most >= _UNEVEN * mean and 0 <= rank < run.ranks:
            found.append((took - others, int(row[0]), rank, most, mean))
    if not found:
        return
    lost, file, rank, most, mean = max(found)
    yield Found(
        "unbalanced-bytes",
        "Uneven shares",
        "POSIX",
        lost,
        f"rank {rank} moves {size(most)} of {run.path(file)}, {most / mean:.1f} times the mean of all ranks",
        "The data is divided unevenly, so that the ranks with most of it finish last.",
        [file],
        [rank],
        [
            Evidence("most bytes of a rank, above the mean", most / mean, "times"),
            Evidence("its time on the file, above the mean of all ranks", lost, "s"),
        ],
        [Remedy("source", "divide the data evenly, or use collective calls, which share the work out again")],
        "how long the other ranks waited is not in the log",
    )


RULES: Final[tuple[Callable[[Run], Iterator[Found]], ...]] = (_scattered, _again, _by_all, _uneven)
