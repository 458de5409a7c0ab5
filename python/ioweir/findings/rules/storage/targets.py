"""slow-target and target-contention: storage targets that are slower than others, or slow at times."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import numpy as np

from ioweir.findings.model import Evidence, Remedy
from ioweir.findings.rule import EXCESS, Found, Rule, Threshold
from ioweir.findings.rules.common import CROWDED, SHOWN, counted, rule_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ioweir.findings.columns import Columns

_PART: Final = re.compile(r"(?P<folder>.*)/\.ioweir-[0-9a-f]{32}[./].*")
_CALLS: Final = 8
_LONG_NS: Final = 20_000_000


def _targets(run: Columns) -> tuple[np.ndarray, list[str]]:
    """Of each file which target it lies on (parts of containers lie in a directory a target), and their names."""
    names: dict[str, int] = {}
    of_file = np.full(len(run.files), -1, dtype=np.int64)
    for at in np.unique(run.file):
        found = _PART.fullmatch(run.files[at])
        if found:
            of_file[at] = names.setdefault(found["folder"], len(names))
    return of_file, list(names)


def _slow(run: Columns) -> Iterator[Found]:
    of_file, names = _targets(run)
    if len(names) < 3:
        return
    for op in ("write", "read"):
        calls = run.storage & run.is_op(op) & (of_file[run.file] >= 0) & (run.duration > 0)
        target = of_file[run.file]
        counts = np.bincount(target[calls], minlength=len(names))
        usable = np.flatnonzero(counts >= _CALLS)
        if usable.size < 3:
            continue
        pace = np.array([np.median((run.duration / np.maximum(run.bytes, 1))[calls & (target == at)]) for at in usable])
        worst = int(pace.argmax())
        others = np.log(np.delete(pace, worst))
        spread = max(1.4826 * float(np.median(np.abs(others - np.median(others)))), 0.1)
        z = (float(np.log(pace[worst])) - float(np.median(others))) / spread
        times = float(pace[worst] / np.exp(np.median(others)))
        mask = calls & (target == usable[worst])
        lost = run.seconds(mask) * (1 - 1 / times)
        if z < 4 or not run.worth(lost):
            continue
        name = names[int(usable[worst])]
        files = run.files_of(mask)
        yield Found(
            calls=run.roots_of(mask),
            seconds=lost,
            spares=EXCESS,
            summary=f"the storage target {name} is {times:.1f} times as slow as the others",
            cause="One storage target is slower than its like, and every call that needs it waits.",
            evidence=[
                Evidence("slower than the median of the others", times, "times"),
                Evidence("spreads from the others", z, "sigma"),
                counted("calls on it", mask),
            ],
            remedies=[
                Remedy("striping", f"leave {name} out, and tell those who run the storage"),
                Remedy(
                    "plan",
                    "let ioweir choose the fast targets when a file is made",
                    rule_for([], 'mapping = "subfiles:auto"'),
                ),
            ],
            files=files,
            ranks=run.ranks_of(mask),
        )


def _contention(run: Columns) -> Iterator[Found]:
    for op in ("write", "read"):
        calls = np.flatnonzero(run.storage & run.is_op(op) & (run.bytes >= 1 << 20) & (run.duration > 0))
        if calls.size < 64:
            continue
        pace = run.duration[calls] / run.bytes[calls]
        usual = float(np.median(pace))
        slow = (pace > 8 * usual) & (run.duration[calls] > _LONG_NS)
        share = float(run.duration[calls][slow].sum() / run.duration[calls].sum())
        if slow.mean() > 0.1 or share < 0.3:
            continue
        mask = np.zeros(len(run), dtype=bool)
        mask[calls[slow]] = True
        lost = run.seconds(mask)
        if not run.worth(lost) or np.unique(run.unit[mask]).size < 2:
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
    "others by 4 of their own spreads.",
    source="Son et al. 2016, section 3.1, figure 4 (targets of one file system differ); "
    "Rousseeuw and Croux 1993 (median absolute deviation)",
    thresholds=(
        Threshold("spreads", "4", "one false alarm in 30,000 targets, of a spread that is taken to be 10 % at least"),
        Threshold("calls", "8 a target", "below it a median says nothing"),
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
