"""slow-target and target-contention: storage targets that are slower than others, or slow at times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from ioweir.base.container_parts import part_of
from ioweir.findings.intervals import median, union
from ioweir.findings.model import Evidence, Remedy
from ioweir.findings.rule import EXCESS, Found, Rule, Threshold
from ioweir.findings.rules.common import CROWDED, SHOWN, STRIPE, counted, rule_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ioweir.findings.columns import Columns, Mask, Numbers

_LEAST_TARGETS: Final = 3
_CALLS: Final = 8
_PARTS: Final = 16
_SPREADS: Final = 4.0
_LEAST_SPREAD: Final = 0.1
_NORMAL: Final = 1.4826
"""Standard deviations in a median absolute deviation, of a normal distribution."""
_LONG_NS: Final = 20_000_000


def _targets(run: Columns) -> tuple[np.ndarray, list[str]]:
    """Of each file which target it lies on (parts of containers lie in a directory a target), and their names."""
    names: dict[str, int] = {}
    of_file = np.full(len(run.files), -1, dtype=np.int64)
    for at in np.flatnonzero(np.bincount(run.file, minlength=1)):
        folder, container, _ = part_of(run.files[at])
        if container:
            of_file[at] = names.setdefault(folder, len(names))
    return of_file, list(names)


def _slow(run: Columns) -> Iterator[Found]:
    of_file, names = _targets(run)
    if len(names) < _LEAST_TARGETS:
        return
    target = of_file[run.file]
    for op in ("write", "read"):
        calls = run.storage & run.is_op(op) & (target >= 0) & (run.duration > 0)
        rows = _comparable(run, calls, target, len(names))
        if len(rows) < _LEAST_TARGETS:
            continue
        tiny = bool(median(run.bytes[np.concatenate(list(rows.values()))]) < STRIPE)
        paces = {at: (_while_busy if tiny else _call_by_call)(run, own) for at, own in rows.items()}
        worst = max(paces, key=lambda at: paces[at].ns_per_byte)
        mine = paces[worst]
        others = np.log([pace.ns_per_byte for at, pace in paces.items() if at != worst])
        usual = median(others)
        spread = max(_NORMAL * median(np.abs(others - usual)), _LEAST_SPREAD)
        z = (float(np.log(mine.ns_per_byte)) - usual) / float(np.hypot(spread, mine.error))
        times = mine.ns_per_byte / float(np.exp(usual))
        mask = calls & (target == worst)
        lost = run.seconds(mask) * (1 - 1 / times)
        if z < _SPREADS or not run.worth(lost):
            continue
        name = names[worst]
        roots = run.roots_of(mask)
        yield Found(
            calls=roots,
            seconds=lost,
            spares=EXCESS,
            summary=f"the storage target {name} is {times:.1f} times as slow as the others",
            cause="One storage target is slower than its like, and every call that needs it waits.",
            evidence=[
                Evidence("slower than the median of the others", times, "times"),
                Evidence("spreads from the others", z, "sigma"),
                Evidence("spread of the others", 100 * spread, "%"),
                *([Evidence("spread of its own rate, part by part", 100 * mine.error, "%")] if tiny else []),
                counted("calls on it", mask),
            ],
            remedies=[
                Remedy("striping", f"leave {name} out, and tell those who run the storage"),
                Remedy(
                    "plan",
                    "let ioweir choose the fast targets when a file is made",
                    rule_for(_as_named(run.files_of(roots)), 'mapping = "subfiles:auto"'),
                ),
            ],
            files=run.files_of(mask),
            ranks=run.ranks_of(mask),
        )


def _as_named(files: list[str]) -> list[str]:
    """By the names that the program knows: a part of a container has another."""
    return [file for file in files if not part_of(file)[1]]


@dataclass(frozen=True)
class _Pace:
    """How long a target takes for a byte."""

    ns_per_byte: float
    error: float = 0.0
    """How uncertain that is, as a share of it."""


def _comparable(run: Columns, calls: Mask, target: Numbers, targets: int) -> dict[int, Numbers]:
    """Of targets with enough calls of like size which calls these are, by their beginnings."""
    at = np.flatnonzero(calls)
    at = at[np.lexsort((run.start[at], target[at]))]
    edges = np.searchsorted(target[at], np.arange(targets + 1))
    rows = {number: at[edges[number] : edges[number + 1]] for number in range(targets)}
    rows = {number: own for number, own in rows.items() if own.size >= _CALLS}
    usual = {number: median(run.bytes[own]) for number, own in rows.items()}
    large = median(np.array(list(usual.values()))) if usual else 0.0
    # A byte of smaller calls takes longer everywhere: they have a fixed cost, too.
    return {number: own for number, own in rows.items() if large / 2 <= usual[number] <= 2 * large}


def _call_by_call(run: Columns, rows: Numbers) -> _Pace:
    """The median of single calls: each is long enough to show how fast the target is."""
    return _Pace(median(run.duration[rows] / run.bytes[rows]))


def _while_busy(run: Columns, rows: Numbers) -> _Pace:
    """Busy time over bytes: of small calls most may be answered at once, and a few wait for what all have asked for.

    By parts of the calls in their order, without the slowest one: one stall makes no slow target. The error is that of
    a ratio of sums (Cochran 1977, section 6.4). Example: parts of 1 MB each that take 1, 1, 3, 3 and 9 s: 8 s for 4 MB,
    2 s a MB; each is 1 s off, so that the error is sqrt(4 / 3 x 4) / 8 = 29 %.
    """
    parts = min(_PARTS, rows.size)
    part = np.arange(rows.size, dtype=np.int64) * parts // rows.size
    _, busy = union(part, run.start[rows], run.end[rows])
    moved = np.bincount(part, run.bytes[rows], minlength=parts)
    kept = np.arange(parts) != int((busy / moved).argmax())
    busy, moved = busy[kept].astype(np.float64), moved[kept]
    pace = float(busy.sum() / moved.sum())
    off = busy - pace * moved
    error = float(np.sqrt(busy.size / (busy.size - 1) * (off**2).sum()) / busy.sum())
    return _Pace(pace, error)


def _contention(run: Columns) -> Iterator[Found]:
    for op in ("write", "read"):
        calls = np.flatnonzero(run.storage & run.is_op(op) & (run.bytes >= 1 << 20) & (run.duration > 0))
        if calls.size < 64:
            continue
        pace = run.duration[calls] / run.bytes[calls]
        usual = median(pace)
        slow = (pace > 8 * usual) & (run.duration[calls] > _LONG_NS)
        share = float(run.duration[calls][slow].sum() / run.duration[calls].sum())
        if slow.mean() > 0.1 or share < 0.3:
            continue
        mask = np.zeros(len(run), dtype=bool)
        mask[calls[slow]] = True
        lost = run.seconds(mask)
        if not run.worth(lost) or run.units_of(mask).size < 2:
            continue
        yield Found(
            calls=run.roots_of(mask),
            seconds=lost,
            low=0.0,
            summary=f"{int(slow.sum()):,} of {calls.size:,} large {op}s take {100 * share:.0f} % of the time: "
            "like requests "
            "are fast at most times and 8 times as slow at some",
            cause="Now and then the storage is slow for every rank: other jobs use the same targets, or a cache "
            "is full.",
            evidence=[
                counted(f"slow {op}s", mask),
                Evidence("their share of the time", 100 * share, "%"),
                Evidence("median pace of all", usual, "ns/B"),
            ],
            remedies=[Remedy("striping", "use more targets, or others (`ioweir probe` measures them)")],
            files=run.files_of(mask),
            ranks=run.ranks_of(mask),
            doubt=CROWDED if run.crowded else "",
        )


SLOW = Rule(
    code="slow-target",
    title="One slow storage target",
    layer="POSIX",
    order=22,
    definition="Of three targets or more (directories with parts of containers), one is slower a byte than the "
    "others by 4 of their spreads. Calls of 1 MiB and more are judged one by one (median). Of smaller ones the "
    "time in which the target is busy is divided by all bytes. How much that differs from part to part of the run is "
    "added to the spread.",
    source="Son et al. 2016, section 3.1, figure 4 (targets of one file system differ); "
    "Rousseeuw and Croux 1993 (median absolute deviation); Cochran 1977, section 6.4 (error of a ratio of sums)",
    thresholds=(
        Threshold("spreads", "4", "one false alarm in 30,000 targets, of a spread that is taken to be 10 % at least"),
        Threshold("calls", "8 a target", "below it a median says nothing"),
        Threshold(
            "by busy time",
            "under 1 MiB a call (median)",
            "token buckets and caches answer small calls at once until they are empty or full, and the next one then "
            "waits for all: single calls mislead",
        ),
        Threshold("parts", "16, without the slowest", "one stall of the storage is target-contention's"),
        Threshold("like sizes", "within a factor 2 (medians)", "a byte of smaller calls takes longer on any target"),
    ),
    gain="lost: the time above the pace of the others" + SHOWN,
    limits="Which target holds which stripe of an ordinary file is not in the trace: only containers tell.",
    needs=("POSIX",),
    find=_slow,
)
CONTENTION = Rule(
    code="target-contention",
    title="Storage that is slow at times",
    layer="POSIX",
    order=70,
    definition="Among 64 or more requests of 1 MiB or more, some are over 8 times as slow a byte as the median: at "
    "most a tenth of them, on several ranks, which take 30 % of the time.",
    source="Uselton et al. 2010 (modes of I/O times); Lofstead et al. 2010 (internal and external interference)",
    thresholds=(
        Threshold("slower", "8 times", "several modes of one device differ by less: caches by 2-4 times"),
        Threshold("long", "20 ms each", "shorter ones may be the processor's: a time slice of Linux is 3 to 10 ms"),
        Threshold("share", "30 % of the time", "tails of well-behaved storage hold under a tenth"),
    ),
    gain="low: 0, for a full cache must be emptied; lost: the slow requests' time",
    limits="Other jobs are not in the trace. Severity at most medium, and low where ranks share processors.",
    needs=("POSIX",),
    find=_contention,
)
