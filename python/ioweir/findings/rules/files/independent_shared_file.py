"""independent-shared-file: ranks that share a file piece by piece, each for itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ioweir.findings.model import Evidence, Remedy
from ioweir.findings.rule import Found, Rule, Threshold
from ioweir.findings.rules.common import (
    ABOVE_LARGE,
    INSTEAD,
    MANY,
    MANY_WHY,
    MEMORY_WHY,
    PASSING_WHY,
    SMALL,
    STRIPE,
    above_large,
    aggregate,
    by_collective,
    counted,
    from_memory,
    interleaved,
    sized,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ioweir.findings.columns import Columns


def _find(run: Columns) -> Iterator[Found]:
    for op in ("write", "read"):
        inner = run.storage & run.is_op(op) & (run.mpi >= 0) & (run.bytes < STRIPE)
        inner &= ~run.in_collective
        inner = interleaved(run, inner)
        calls = run.above(inner) & run.is_op(op)
        # One call through a view may move as many pieces as a loop of calls does.
        small = inner & (run.bytes < SMALL)
        if max(run.count_by_unit(each).max() for each in (calls, small)) < MANY:
            continue
        price = run.price(calls)
        if not run.worth(price.seconds):
            continue
        high = above_large(run, calls, op, price.seconds)
        files = run.files_of(calls)
        yield Found(
            calls=calls,
            seconds=price.seconds,
            low=-by_collective(run, calls) if from_memory(run, inner) else None,
            high=high,
            summary=f"{sized(run, calls, op)}, each rank for itself, to places of one file that lie between "
            "those of other "
            "ranks",
            cause="The ranks share a file piece by piece and each one moves its pieces alone, so that nobody can "
            "put neighbouring pieces together.",
            evidence=[
                counted(f"independent MPI-IO {op}s on shared files", calls),
                counted(f"POSIX {op}s that they made", inner),
                Evidence("ranks that do so", float(run.units_of(calls).size), "ranks"),
            ],
            remedies=[
                Remedy("source", f"call the collective function (MPI_File_{op}_at_all; HDF5: H5FD_MPIO_COLLECTIVE)"),
                *(
                    [Remedy("plan", "after that, let ioweir choose the writers", aggregate(files).plan)]
                    if files
                    else []
                ),
            ],
            files=files,
            ranks=run.ranks_of(calls),
        )


RULE = Rule(
    code="independent-shared-file",
    title="Independent calls on a shared file",
    layer="MPI-IO",
    order=30,
    definition="Independent MPI-IO calls that make POSIX requests of under 1 MiB, on a file in which the "
    "stretches of several ranks cross: 64 calls of a rank, or fewer in which the MPI library makes 64 requests under "
    "64 KiB. In the order of places, another rank comes at least twice as often as there are ranks: a header and an "
    "end by one rank cross nothing.",
    source="Thakur, Gropp and Lusk 1999 (use collective calls for what the ranks access together); Nitzberg and "
    "Lo 1997",
    thresholds=(
        Threshold(
            "size",
            "under 1 MiB",
            "larger pieces fill stripes of Lustre by themselves, and collective calls do not help",
        ),
        MANY_WHY,
        MEMORY_WHY,
        PASSING_WHY,
    ),
    gain=ABOVE_LARGE + INSTEAD,
    limits="Ranks whose parts of the file do not cross are left to small-requests.",
    needs=("MPI-IO", "POSIX"),
    find=_find,
)
