"""collective-scattered: collective calls that end in many tiny requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ioweir.base.units import size
from ioweir.findings.model import Evidence, Remedy
from ioweir.findings.rule import Found, Rule, Threshold
from ioweir.findings.rules.common import (
    ABOVE_LARGE,
    INSTEAD,
    MEMORY_WHY,
    PASSING_WHY,
    SMALL,
    SMALL_WHY,
    above_large,
    aggregate,
    by_collective,
    counted,
    from_memory,
    sized,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ioweir.findings.columns import Columns

_REQUESTS = 16
_BEHIND_EXCHANGE = 39


def _find(run: Columns) -> Iterator[Found]:
    for op in ("write", "read"):
        inner = run.storage & run.is_op(op) & run.in_collective & (run.bytes < SMALL)
        pieces = run.count_inside(inner)
        calls = run.mpi_data & run.collective & run.is_op(op) & (pieces >= _REQUESTS)
        if not calls.any():
            continue
        calls |= run.mpi_data & run.met_with(calls)
        inner &= run.made_by(calls)
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
            summary=f"{int(calls.sum()):,} collective {op}s became {sized(run, inner, op)} at the storage",
            cause="The ranks call the collective function, but the MPI library does not put their pieces "
            "together: each piece becomes a request of its own.",
            evidence=[
                counted(f"collective {op}s", calls),
                counted(f"POSIX {op}s under {size(SMALL)} inside of them", inner),
                Evidence("POSIX requests per collective call", float(inner.sum() / max(calls.sum(), 1)), "calls"),
            ],
            remedies=[
                aggregate(files),
                Remedy(
                    "hint",
                    "romio_cb_write = enable, romio_cb_read = enable (ROMIO); OMPI_MCA_fcoll=vulcan (Open MPI)",
                    hints={"romio_cb_write": "enable", "romio_cb_read": "enable"},
                ),
            ],
            files=files,
            ranks=run.ranks_of(calls),
            # Where the requests are the smaller part, what passes or packs the data is the cause.
            order=None if run.seconds(inner) >= 0.5 * price.seconds else _BEHIND_EXCHANGE,
        )


RULE = Rule(
    code="collective-scattered",
    title="Collective calls that end in tiny requests",
    layer="MPI-IO",
    order=20,
    definition="Collective reads or writes that each make 16 or more POSIX requests of under 64 KiB on one rank.",
    source="Thakur, Gropp and Lusk 1999 (collective I/O puts pieces together)",
    thresholds=(
        SMALL_WHY,
        MEMORY_WHY,
        PASSING_WHY,
        Threshold("requests", "16 a call", "the pieces of 16 ranks' contiguous parts are no scattering yet"),
    ),
    gain=ABOVE_LARGE + INSTEAD,
    limits="Leads only where the requests take half of the calls' time or more. "
    "Asynchronous requests that a library gives to a thread of its own have no call around them.",
    needs=("MPI-IO", "POSIX"),
    find=_find,
)
