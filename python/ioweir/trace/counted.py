"""Sums of a run that came without its events: rows by file, rank, layer and operation, and the records behind them.

A directory with sums.json is a trace of this kind: `ioweir import` writes one from another tool's log
(docs/reference/sums.md). Rows are as fine as they are known, so that two of them are merged by putting their rows
together. Events may lie beside it (node-*.iowt); figures are made of the sums, which hold all calls.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from ioweir.trace.sums import Amount, Row, Sums, slot_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

SUMS_VERSION: Final = 1
MOST_BYTES: Final = 512 << 20
"""Of sums.json."""
MOST_RANKS: Final = 1 << 24
_MOST: Final = (1 << 62) - 1
_MOST_SUM: Final = (1 << 61) - 1
"""Of sums, which others add up again in 64 bits."""
SHARED: Final = -1
"""The rank of what several ranks did together, and is not known one by one."""


@dataclass(frozen=True)
class Counts:
    """What the calls of one layer and operation on one file by one rank (or SHARED) come to."""

    layer: str
    op: str
    file: int
    """Index into Counted.files."""
    rank: int
    calls: int = 0
    failed: int = 0
    bytes: int = 0
    time_s: float = 0.0
    longest_s: float = 0.0
    first_s: float = 0.0
    """When the first call began and the last ended; both 0 where it is not known."""
    last_s: float = 0.0
    outermost: bool = True
    """No call of another layer around them, as far as the log tells."""
    sizes: tuple[tuple[int, int], ...] = ()
    """(least bytes, calls) of each bin."""


@dataclass(frozen=True)
class Table:
    """Records of one module of a log, by the names that the tool gives its counters."""

    names: tuple[str, ...]
    rows: tuple[tuple[float, ...], ...]
    """File, rank, then a value for each name."""


@dataclass(frozen=True)
class Target:
    """The storage targets of a file."""

    file: int
    stripe_bytes: int
    targets: tuple[int, ...]


@dataclass(frozen=True)
class Counted:
    """All of sums.json."""

    tool: str
    """Which wrote the log, with its version."""
    log: str
    ranks: int
    files: tuple[str, ...]
    counts: tuple[Counts, ...]
    busiest_s: float = 0.0
    """I/O time of the rank that had most, where shared records tell it."""
    busiest: int = SHARED
    tables: Mapping[str, Table] = field(default_factory=dict)
    targets: tuple[Target, ...] = ()
    heatmaps: tuple[Mapping[str, Any], ...] = ()
    layers: tuple[str, ...] = ()
    """Of which the log has calls, or would have them."""
    unseen: tuple[str, ...] = ()
    """What the tool does not record."""
    partial: tuple[str, ...] = ()
    """Why the log lacks something that the tool records."""
    spent: Mapping[int, float] = field(default_factory=dict)
    """I/O time of each rank, in seconds, where it is known although rows of several ranks are one."""
    hosts: tuple[str, ...] = ()
    """Where the ranks ran, as far as it is known."""
    wall_s: float = 0.0
    """From the first rank's start to the last one's end, where it is known."""
    program: str = ""
    """What the ranks run, where it is known."""

    def known_ranks(self) -> list[int]:
        """Those that can be told apart; all of them where there are not too many."""
        named = {row.rank for row in self.counts if row.rank >= 0}
        if self.busiest >= 0:
            named.add(self.busiest)
        named.update(self.spent)
        return sorted(named | set(range(min(self.ranks, 1 << 16)))) or [0]

    def sums(self, units: Sequence[int], slots: int, wall_s: float) -> Sums:
        """As the compiled reader would add them up. `units`: the ranks, in the order of units.

        A rank's threads may be in calls at once: its time in calls is the whole run at most.
        """
        unit_of = {rank: at for at, rank in enumerate(units)}
        outer = [[0, 0, 0] for _ in range(slots)]
        busy = [0] * max(len(units), 1)
        together = 0
        for row in self.counts:
            if not row.outermost:
                continue
            time = _ns(row.time_s)
            if row.rank in unit_of:
                busy[unit_of[row.rank]] += time
            else:
                together += time
            amount = outer[slot_of(row.layer, row.op)]
            for at, value in enumerate((row.calls, row.bytes, time)):
                amount[at] += value
        unlisted = 0
        if self.spent:
            busy = [_ns(self.spent.get(rank, 0.0)) for rank in units]
        else:
            unlisted = self._share(busy, together, unit_of)
        return Sums(
            job=_grouped((0, row) for row in self.counts).get(0, {}),
            by_file=_grouped((row.file, row) for row in self.counts),
            by_unit=_grouped((unit_of[row.rank], row) for row in self.counts if row.rank in unit_of),
            by_site={},
            errors={},
            unreported=[0, 0],
            less={},
            unreported_less=[0, 0],
            events=0,
            counted=min(sum(row.calls for row in self.counts), _MOST_SUM),
            unit_io_ns=[min(time, _ns(wall_s)) for time in busy],
            shared_io=together > 0 and not self.spent,
            unlisted_io_ns=unlisted,
            outermost=[Amount(*(min(value, _MOST_SUM) for value in amount)) for amount in outer],
            inside={},
            origins=[],
            parts=[],
            file_parts={},
            collective={},
            by_process=[],
            late_ends={},
            runtime=Amount(0, 0, 0),
            runtime_files=0,
            verification=Amount(0, 0, 0),
            last_end_ns=None,
        )

    def _share(self, busy: list[int], together: int, unit_of: Mapping[int, int]) -> int:
        """Deal out what shared records sum up: to the slowest rank its own, the rest evenly, so that means are right.

        Returns what ranks have that `busy` has not.
        """
        if not together or not busy:
            return 0
        ranks = max(self.ranks, len(busy))
        slowest = max(together // ranks, min(_ns(self.busiest_s), together)) if self.busiest in unit_of else 0
        others = ranks - (self.busiest in unit_of)
        each = (together - slowest) // max(others, 1)
        for at in range(len(busy)):
            busy[at] += each
        if self.busiest in unit_of:
            busy[unit_of[self.busiest]] += slowest - each
        return each * (ranks - len(busy))


def replace_partial(counted: Counted, partial: Sequence[str]) -> Counted:
    """The same with other reasons why it lacks something."""
    return replace(counted, partial=tuple(partial))


def _ns(seconds: float) -> int:
    value = seconds * 1e9
    return min(round(value), _MOST) if math.isfinite(value) and value > 0 else 0


def _grouped(rows: Iterable[tuple[int, Counts]]) -> dict[int, dict[int, Row]]:
    """Rows of one group and slot added up; the span of several is from the first to the last of them."""
    groups: dict[tuple[int, int], list[Counts]] = {}
    for group, row in rows:
        groups.setdefault((group, slot_of(row.layer, row.op)), []).append(row)
    result: dict[int, dict[int, Row]] = {}
    for (group, slot), members in groups.items():
        calls = min(sum(row.calls for row in members), _MOST_SUM)
        time = min(sum(_ns(row.time_s) for row in members), _MOST_SUM)
        if not calls and not time:
            continue
        longest = max(members, key=lambda row: row.longest_s)
        spans = [(row.first_s, row.last_s) for row in members if row.last_s > row.first_s]
        span = _ns(max(last for _, last in spans) - min(first for first, _ in spans)) if spans else 0
        bins: dict[int, int] = {}
        for row in members:
            for least, number in row.sizes:
                bins[least] = bins.get(least, 0) + number
        result.setdefault(group, {})[slot] = Row(
            group=group,
            slot=slot,
            calls=calls,
            failed=min(sum(row.failed for row in members), _MOST_SUM),
            bytes=min(sum(row.bytes for row in members), _MOST_SUM),
            time_ns=time,
            span_ns=span,
            longest_ns=_ns(longest.longest_s),
            longest_start_ns=0,
            longest_unit=0,
            longest_file=longest.file,
            sizes=[(-1 - least, min(number, _MOST_SUM), least, -1) for least, number in sorted(bins.items()) if number],
        )
    return result


# --------------------------------------------------------------------------------------------------------------- JSON


def to_json(counted: Counted) -> dict[str, Any]:
    """What sums.json holds."""
    return {
        "sums_version": SUMS_VERSION,
        **{
            name: getattr(counted, name) for name in ("tool", "log", "ranks", "files", "busiest_s", "busiest", "layers")
        },
        "unseen": counted.unseen,
        "partial": counted.partial,
        "counts": [_row(row) for row in counted.counts],
        "tables": {name: {"names": table.names, "rows": table.rows} for name, table in counted.tables.items()},
        "targets": [vars(target) for target in counted.targets],
        "heatmaps": list(counted.heatmaps),
    }


_ALWAYS: Final = ("layer", "op", "file", "rank", "calls", "outermost")


def _row(row: Counts) -> dict[str, Any]:
    """Of a log of many ranks these are most of the file: what is 0 is left out."""
    return {name: value for name, value in vars(row).items() if value or name in _ALWAYS}


def from_json(content: Any) -> Counted:
    """The reverse; ValueError says what cannot be."""
    if not isinstance(content, dict) or content.get("sums_version") != SUMS_VERSION:
        raise ValueError(f"has no sums_version {SUMS_VERSION}")
    try:
        files = tuple(str(name) for name in content["files"])
        counts = tuple(_counts(row, len(files)) for row in content["counts"])
        return Counted(
            tool=str(content["tool"]),
            log=str(content["log"]),
            ranks=_whole(content["ranks"], MOST_RANKS),
            files=files,
            counts=counts,
            busiest_s=_real(content["busiest_s"]),
            busiest=_rank(content["busiest"]),
            tables={str(name): _table(table, len(files)) for name, table in content["tables"].items()},
            targets=tuple(
                Target(
                    _whole(one["file"], len(files) - 1),
                    _whole(one["stripe_bytes"], _MOST),
                    tuple(_whole(target, _MOST) for target in one["targets"]),
                )
                for one in content["targets"]
            ),
            heatmaps=tuple(dict(one) for one in content["heatmaps"]),
            layers=tuple(map(str, content["layers"])),
            unseen=tuple(map(str, content["unseen"])),
            partial=tuple(map(str, content["partial"])),
        )
    except (KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ValueError(f"is no ioweir sums file: {type(error).__name__}: {error}") from error


def _table(content: Mapping[str, Any], files: int) -> Table:
    names = tuple(map(str, content["names"]))
    rows = []
    for row in content["rows"]:
        if len(row) != 2 + len(names):
            raise ValueError(f"a row of a table has {len(row)} values, and {2 + len(names)} names")
        rows.append((_whole(row[0], files - 1), _rank(row[1]), *map(_counter, row[2:])))
    return Table(names, tuple(rows))


def _counter(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1 << 64:
        raise ValueError(f"{str(value)[:20]} is no counter")
    return value


def _rank(value: Any) -> int:
    return _whole(int(value) + 1, MOST_RANKS) - 1


def _counts(row: Mapping[str, Any], files: int) -> Counts:
    slot_of(row["layer"], row["op"])  # KeyError of layers and operations that there are not
    return Counts(
        layer=row["layer"],
        op=row["op"],
        file=_whole(row["file"], files - 1),
        rank=_rank(row["rank"]),
        calls=_whole(row["calls"], _MOST),
        failed=_whole(row.get("failed", 0), _MOST),
        bytes=_whole(row.get("bytes", 0), _MOST),
        time_s=_real(row.get("time_s", 0)),
        longest_s=_real(row.get("longest_s", 0)),
        first_s=_real(row.get("first_s", 0)),
        last_s=_real(row.get("last_s", 0)),
        outermost=bool(row["outermost"]),
        sizes=tuple((_whole(least, _MOST), _whole(number, _MOST)) for least, number in row.get("sizes", ())),
    )


def _whole(value: Any, most: int) -> int:
    number = int(value)
    if not 0 <= number <= most:
        raise ValueError(f"{str(number)[:20]} cannot be here")
    return number


def _real(value: Any) -> float:
    number = float(value)
    if not math.isfinite(number) or number < 0:
        raise ValueError(f"{number} is no time")
    return number
