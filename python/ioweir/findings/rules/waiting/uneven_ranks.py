"""rank0-io, unbalanced-bytes and slow-rank: ranks that the others wait for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ioweir.base.spec_names import WAITING
from ioweir.base.units import number_list, size
from ioweir.base.units import seconds as in_words
from ioweir.findings.intervals import median
from ioweir.findings.model import Evidence, Remedy
from ioweir.findings.rule import EXCESS, Found, Rule, Threshold
from ioweir.findings.rules.common import ONE_WRITER, SHOWN, STRIPE, counted, from_memory
from ioweir.findings.staging import staging

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ioweir.findings.columns import Columns, Floats, Mask


_WAITED = 0.25
_SIGMA = 4
_PART = 0.1
_SHOWN = 0.05
"""Percent that a figure with one digit behind the point still shows."""
_SAME_FOR_ALL = (
    "what is read goes to all ranks with MPI_Bcast. If each of them needs all of it, this is as it should be: the "
    "trace does not tell"
)


def _own_data(run: Columns, op: str) -> Mask:
    """Reads or writes as the program makes them, outside of collective calls."""
    data = run.outermost & run.is_op(op) & (run.bytes > 0)
    own: Mask = data & (run.meeting < 0) & ~run.completes
    return own


def _collective(run: Columns) -> Mask:
    """Collective MPI-IO calls, whether their ranks waited for each other or not, and the calls around them."""
    return run.roots_of(run.mpi_data & run.collective)


def _one(run: Columns) -> Iterator[Found]:
    if run.unit_count < 2:
        return
    for op in ("write", "read"):
        calls = _own_data(run, op)
        all_bytes = run.bytes_by_unit(run.outermost & run.is_op(op))
        moved = run.bytes_by_unit(calls)
        total = float(all_bytes.sum())
        unit = int(moved.argmax())
        if total < STRIPE or moved[unit] < 0.9 * total:
            continue
        calls &= run.unit == unit
        price = run.price(calls)
        waits = staging(run, unit, calls, op)
        seconds = min(price.seconds + waits.beside, run.wall_s)
        if not run.worth(seconds):
            continue
        # Messages are spared altogether; of its own calls the rank keeps its part, and of its computing as well.
        processors = int(run.trace.run.get("processors") or run.unit_count)
        messages = max(seconds - price.seconds - waits.working / min(processors, run.unit_count), 0.0)
        high = messages + price.seconds * (1 - 1 / run.unit_count)
        low = messages / 2 if from_memory(run, run.storage & run.beneath(calls)) else None
        if WAITING in run.recorded and waits.whole < _WAITED * high:
            low = 0.0
        (rank,) = run.ranks([unit]) or (unit,)
        yield Found(
            calls=calls,
            seconds=seconds,
            low=low,
            high=high,
            summary=_of_one(run, rank, op, float(moved[unit]), total),
            cause="One rank does the I/O of all: the others send it their data, or wait for it, and its single "
            "stream is all that the storage gets.",
            evidence=[
                Evidence(f"share of the bytes that rank {rank} {op}s", 100 * float(moved[unit]) / total, "%"),
                counted(f"its {op}s", calls),
                Evidence(f"time of its {op}s", price.seconds, "s"),
                Evidence("waiting of another rank in MPI for it, in the mean", waits.whole, "s"),
                Evidence(
                    f"of it while rank {rank} {'collects and packs it' if op == 'write' else 'passes it on'}",
                    waits.beside,
                    "s",
                ),
                *(
                    [Evidence(f"of that while rank {rank} computes for longer than packing takes", waits.working, "s")]
                    if run.worth(waits.working)
                    else []
                ),
            ],
            remedies=[
                Remedy(
                    "source",
                    "where each rank needs a part only, let it read this part: MPI_File_read_at_all, or parallel HDF5 "
                    "or PnetCDF; what all ranks need is best read by one and broadcast, as it is now"
                    if waits.broadcast
                    else f"let every rank {op} its own part: MPI_File_{op}_at_all, or parallel HDF5 or PnetCDF",
                )
            ],
            files=run.files_of(_most_of(run, calls)),
            ranks=[rank],
            doubt=_SAME_FOR_ALL if waits.broadcast else "",
        )


def _of_one(run: Columns, rank: int, op: str, moved: float, total: float) -> str:
    """Example: rank 0 writes everything (23 MiB) while 2 other ranks have nothing to do with the files."""
    others = f"{run.unit_count - 1} other {'rank' if run.unit_count == 2 else 'ranks'}"
    if moved == total:
        return (
            f"rank {rank} {op}s everything ({size(moved)}) while {others} "
            f"{'has' if run.unit_count == 2 else 'have'} nothing to do with the files"
        )
    share = 100 * moved / total
    left = 100 - share
    part = f"{share:.0f}" if left >= 1 else f"{share:.1f}" if left >= _SHOWN else "over 99.9"
    return f"rank {rank} {op}s {part} % of all bytes ({size(moved)} of {size(total)}), and {others} the rest"


def _most_of(run: Columns, calls: Mask) -> Mask:
    """Those on files that hold 1 % of the bytes or more: what the rank moves besides is not the others' data."""
    moved = np.bincount(run.file[calls], run.bytes[calls], minlength=len(run.files))
    large = moved >= 0.01 * moved.sum()
    chosen: Mask = calls & large[run.file]
    return chosen


def _unbalanced(run: Columns) -> Iterator[Found]:
    if run.unit_count < 2:
        return
    alone = run.outermost & (run.bytes > 0) & ~run.completes & ~_collective(run)
    for op in ("write", "read"):
        calls = alone & run.is_op(op)
        moved, spent = run.bytes_by_unit(calls), run.busy_by_unit(calls)
        mean = float(moved.sum()) / run.unit_count
        unit = int(spent.argmax())
        if mean <= 0 or (moved > 0).sum() < 2 or moved[unit] < 1.5 * mean or moved[unit] >= 0.9 * moved.sum():
            continue
        lost = float(spent[unit]) - float(spent.sum()) / run.unit_count
        if not run.worth(lost):
            continue
        heavy = [int(at) for at in np.flatnonzero(moved >= 1.5 * mean)]
        mask = calls & np.isin(run.unit, heavy)
        ranks = run.ranks(heavy)
        requests = run.storage & run.beneath(calls)
        # Some ranks that share the work evenly do it for the others, or these have nothing: no uneven division.
        some = moved >= _PART * moved[unit]
        for_others = bool(some.sum() < run.unit_count and moved[unit] < 1.5 * moved[some].mean())
        yield Found(
            calls=run.roots_of(mask),
            seconds=lost,
            low=0.0 if for_others or from_memory(run, requests) else None,
            spares=EXCESS,
            summary=f"{number_list(ranks, most=4)} {op}{'s' if len(ranks) == 1 else ''} {size(float(moved[unit]))}"
            f"{' each' if for_others else ''}, {moved[unit] / mean:.1f} times the mean of all ranks",
            cause=f"{len(ranks)} of {run.unit_count} ranks {op} nearly everything, in like parts: for the others, or "
            "because these have no data. Only their streams reach the storage."
            if for_others
            else "The data is divided unevenly, so that the ranks with most of it finish last.",
            evidence=[
                Evidence("most bytes of a rank, above the mean", float(moved[unit] / mean), "times"),
                Evidence(f"time of that rank in {op}s", float(spent[unit]), "s"),
                Evidence("mean time of all ranks", float(spent.sum()) / run.unit_count, "s"),
            ],
            remedies=[
                Remedy(
                    "source",
                    f"where these ranks {op} for the others: let more of them do so, as far as the storage gets faster"
                    if for_others
                    else "divide the data evenly, or use collective calls, which share the work out again",
                )
            ],
            files=run.files_of(mask),
            ranks=ranks,
        )


def _slow(run: Columns) -> Iterator[Found]:
    if run.unit_count < 2:
        return
    for op in ("write", "read"):
        calls = run.storage & run.is_op(op) & (run.duration > 0)
        if not calls.any():
            continue
        moved, spent = run.bytes_by_unit(calls), run.busy_by_unit(calls)
        number = run.count_by_unit(calls)
        usable = np.flatnonzero((number >= 8) & (moved >= 0.5 * moved.max()))
        if usable.size < 2:
            continue
        unit = int(usable[spent[usable].argmax()])
        others = usable[usable != unit]
        usual = median(spent[others] / moved[others])
        own = float(spent[unit] / moved[unit])
        lost = float(spent[unit]) - usual * float(moved[unit])
        if own < 2 * usual or not run.worth(lost):
            continue
        mask = calls & (run.unit == unit)
        mine, theirs = _pace(run, mask), _pace(run, calls & np.isin(run.unit, others))
        # A rank that lost its processor a few times is slow in some calls, not in most.
        if float(np.percentile(mine, 25)) <= float(np.percentile(theirs, 75)):
            continue
        z = _rank_sum(mine, theirs)
        if z < _SIGMA:
            continue
        (rank,) = run.ranks([unit])
        yield Found(
            calls=run.roots_of(mask),
            seconds=lost,
            spares=EXCESS,
            summary=f"rank {rank} takes {in_words(float(spent[unit]))} for its {op}s, {own / usual:.1f} times as "
            "long a byte "
            "as the other ranks",
            cause="One rank's requests are slower than those of all others: its node, its network link, or the "
            "storage target that holds its part.",
            evidence=[
                Evidence("slower a byte than the other ranks (median)", own / usual, "times"),
                Evidence("standard deviations from chance (rank-sum test)", z, "sigma"),
            ],
            remedies=[
                Remedy(
                    "source",
                    f"look at the node of rank {rank} (load, network, local disk), and leave it out of the next job",
                ),
                Remedy("striping", "spread the file over more targets, so that no rank depends on one"),
            ],
            files=run.files_of(mask),
            ranks=[rank],
        )


def _pace(run: Columns, calls: Mask) -> Floats:
    """Nanoseconds a byte of each."""
    pace: Floats = run.duration[calls] / np.maximum(run.bytes[calls], 1)
    return pace


def _rank_sum(one: np.ndarray, rest: np.ndarray) -> float:
    """How many standard deviations the sample lies above the rest (Mann and Whitney 1947, normal approximation)."""
    both = np.concatenate([one, rest])
    place = np.empty(both.size)
    place[np.argsort(both, kind="stable")] = np.arange(1, both.size + 1)
    n, m = one.size, rest.size
    above = place[:n].sum() - n * (n + 1) / 2
    return float((above - n * m / 2) / np.sqrt(n * m * (n + m + 1) / 12))


ONE = Rule(
    code="rank0-io",
    title="One rank does all I/O",
    layer="POSIX",
    order=25,
    definition="One rank moves 90 % or more of the bytes that are written (or read) by itself, 1 MiB or more, in "
    "a program of several ranks. The seconds are those of its calls, and those that another rank, in the mean, waits "
    "in MPI for it: while it collects and packs what it writes next, passes on what it has read, or opens and closes "
    "files. Ranks that compute meanwhile lose nothing, and are not counted.",
    source="Gropp, Lusk and Thakur 1999, Using MPI-2, chapters 2 and 3 "
    "(from one process that does the I/O to parallel I/O)",
    thresholds=(
        Threshold("share", "90 %", "what the other ranks move besides is logs"),
        Threshold("bytes", "1 MiB", "parameter files are rightly read once and sent to all"),
        Threshold(
            "packing",
            "3 ns a byte, and 10 us for each other rank",
            "how long the rank may be in no call between messages and the call that they belong to: three copies of 1 "
            "ns a byte (who sends, who gets, who packs), and messages under 10 us, which leave no event; before its "
            "calls also a pause that is no phase of its own (1 % of the run)",
        ),
        Threshold(
            "messages",
            "receives and gathers before writes; sends, scatters and broadcasts behind reads",
            "MPI_Wait, MPI_Sendrecv, one-sided epochs and the like may be the program's own: only beside the I/O",
        ),
        Threshold(
            "broadcast",
            "half of the messages' time in MPI_Bcast, none in sends and scatters",
            "what is read goes to all ranks, which may need all of it (same-read-by-all advises that): the finding is "
            "in doubt, and of low severity",
        ),
        Threshold(
            "waited for",
            "a quarter of what was lost",
            "where the others were seen to wait for less, they may compute meanwhile: the gain begins at 0",
        ),
        ONE_WRITER,
    ),
    gain="lost: all but 1/ranks of the rank's own calls' time, and the waiting beside them. While the rank computes "
    "for longer than packing takes (it formats text), all but 1/ranks of that waiting, of 1/processors where ranks "
    "share them: each rank will do its part. Low: a quarter, for the storage may not be faster for several; where "
    "the node's memory answered, a half of the waiting beside them; 0 where the others do not wait",
    limits="Without the layer MPI no waiting is counted. What the rank computes between its messages and its calls "
    "counts where no pause is longer than packing takes, or than 1 % of the run before a call. Ranks that ask with "
    "MPI_Test and the like are not seen to wait.",
    needs=(),
    find=_one,
    of_ranks=True,
)
UNBALANCED = Rule(
    code="unbalanced-bytes",
    title="Uneven shares",
    layer="POSIX",
    order=57,
    definition="Outside of collective calls, the rank that takes longest moves 1.5 times the mean of all ranks "
    "or more; the seconds are its time above the mean.",
    source="Wright et al. 2013, section 6.1 (up to 20 % of the write time is waiting for other ranks)",
    thresholds=(
        Threshold(
            "bytes",
            "1.5 times the mean",
            "grids that do not divide evenly differ by under half in programs of two ranks and more",
        ),
        Threshold(
            "for others",
            "ranks with a tenth of the most or more, under 1.5 times their mean",
            "a few ranks that share the work evenly do it for the others, as on purpose: how many more the storage can "
            "take is not in the trace, so that the gain begins at 0",
        ),
        ONE_WRITER,
    ),
    gain="lost: the time above all ranks at the mean" + SHOWN + "; 0 where the node's memory answered the requests, or "
    "where some ranks do it for the others",
    limits="Inside of collective calls see aggregator-imbalance.",
    needs=(),
    find=_unbalanced,
    of_ranks=True,
)
SLOW = Rule(
    code="slow-rank",
    title="One slow rank",
    layer="POSIX",
    order=59,
    definition="A rank whose requests take at least twice as long a byte as those of ranks with like amounts, "
    "which is no chance.",
    source="Mann and Whitney 1947 (test); Uselton et al. 2010 (from events to ensembles)",
    thresholds=(
        Threshold(
            "quartiles",
            "its fast quarter slower than the others' slow one",
            "a rank that loses its processor now and then is slow in some calls only",
        ),
        Threshold("chance", "4 sigma", "one false alarm in 30,000 ranks"),
        Threshold(
            "twice",
            "2 times",
            "production runs of the same job vary by up to 27 %, pairs of ranks on one node by their cache",
        ),
    ),
    gain="lost: the time above the others' pace" + SHOWN,
    limits="Needs 8 requests a rank. A rank that comes late because it computes: late-rank.",
    needs=("POSIX",),
    find=_slow,
    follows=("data-sieving", "lock-wait", "serialised-writes", "target-contention", "random-access"),
    of_ranks=True,
)
