"""Cases for a calibration from a trace: stretches of POSIX calls that moved bytes, and seconds in which any went on.

A stretch of writes ends with the `fsync` behind them. Where nothing is flushed, the time of a call is all that is
known: it is that of the page cache, unless the program went past it, and the calibration says so.

Limits: what lies between calls (computation, messages) is left out, as if the calls had followed each other; which
files share a target is known for directories that a manifest names (docs/reference/targets.md), else there is one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ioweir.base.compiled import compiled
from ioweir.errors import IoweirError
from ioweir.predict.cases import ExtentCase, Placed
from ioweir.predict.measured import DIRECT
from ioweir.trace import reader

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ioweir.trace.reader import Trace

_LEAST_BYTES: Final = 64 << 10
"""Files of which less was moved are settings and logs."""
_MOST_CALLS: Final = 128
"""Of a rank in a stretch: neighbouring calls are simulated as one above that."""
_MOST_STRETCHES: Final = 60
_SPAN: Final = 1 << 44
"""Of simulated offsets: each target's files lie in one, each file in a part of it."""
_OTHERS: Final = ("/dev/", "/proc/", "/sys/")
_MEMORY: Final = "/dev/shm/"


@dataclass(frozen=True)
class Found:
    """What a trace holds."""

    cases: list[ExtentCase]
    targets: int
    names: list[str]
    """Of the targets."""
    ranks: int
    flushed: bool
    """False: what is described is how fast calls return."""


@dataclass
class _Stretch:
    writes: bool
    rows: list[tuple[int, int, int, int, int, int]] = field(default_factory=list)
    """(start, end, process, path, offset, length)"""
    busy: list[tuple[int, int]] = field(default_factory=list)
    flushed: bool = False


def of_trace(directory: Path) -> Found:
    """Raises IoweirError where the trace has no calls to fit to."""
    loaded = reader.read(directory)
    loaded.require_events(directory, "calibrate")
    stretches = list(_stretches(loaded))
    if not stretches:
        raise IoweirError(
            f"--trace {directory}: no POSIX reads or writes of files of {_LEAST_BYTES >> 10} KiB or more in it; "
            "record the program with `ioweir run -- CMD` (layer posix), or measure the storage with --targets"
        )
    places = _Places(loaded)
    flushed = [one for one in stretches if one.writes and one.flushed]
    moved = sum(length for one in flushed for *_, length in one.rows)
    cached = sum(length for one in stretches if one.writes and not one.flushed for *_, length in one.rows)
    by_device = moved >= cached and moved > 0
    kept = [one for one in stretches if not one.writes or one.flushed == by_device]
    if len(kept) > _MOST_STRETCHES:
        kept = [kept[number * len(kept) // _MOST_STRETCHES] for number in range(_MOST_STRETCHES)]
    cases = [places.case(one, number) for number, one in enumerate(kept)]
    ranks = len({row[2] for one in kept for row in one.rows})
    return Found(cases, max(1, len(places.targets)), places.targets, ranks, by_device or not cached)


def _stretches(trace: Trace) -> Iterator[_Stretch]:
    current: _Stretch | None = None
    for start, end, process, path, offset, length, op in _calls(trace):
        if op == "sync":
            if current is not None and current.writes:
                current.busy.append((start, end))
                current.flushed = True
            continue
        writes = op == "write"
        under_way = current is not None and start < max(one for _, one in current.busy[-8:])
        if current is None or current.writes != writes or (current.flushed and not under_way):
            if current is not None:
                yield current
            current = _Stretch(writes)
        current.rows.append((start, end, process, path, offset, length))
        current.busy.append((start, end))
    if current is not None:
        yield current


def _calls(trace: Trace) -> Iterator[tuple[int, int, int, int, int, int, str]]:
    """In order of time, of files that matter."""
    import numpy as np  # noqa: PLC0415

    events = trace.events
    ops = {
        function.id: function.op
        for function in trace.functions
        if function.layer == reader.POSIX and function.op in ("write", "read", "sync")
    }
    chosen = np.isin(events.function, list(ops)) & ((events.flags & reader.FLAG_FAILED) == 0)
    indexes = np.flatnonzero(chosen)
    indexes = indexes[np.argsort(events.start_ns[indexes], kind="stable")]
    moved: dict[int, int] = {}
    for path, length in zip(events.path[indexes].tolist(), events.bytes[indexes].tolist(), strict=True):
        moved[path] = moved.get(path, 0) + length
    matter = {path for path, length in moved.items() if length >= _LEAST_BYTES and _is_file(trace.paths[path])}
    at: dict[tuple[int, int], int] = {}
    for index in indexes.tolist():
        path, process, op = int(events.path[index]), int(events.process[index]), ops[int(events.function[index])]
        length = int(events.bytes[index])
        if path not in matter or (op != "sync" and length <= 0):
            continue
        offset = int(events.offset[index])
        if offset < 0:
            offset = at.get((process, path), 0)
        at[process, path] = offset + length
        start = int(events.start_ns[index])
        yield start, start + int(events.duration_ns[index]), process, path, offset, length, op


def _is_file(path: str) -> bool:
    return path.startswith("/") and (path.startswith(_MEMORY) or not path.startswith(_OTHERS))


class _Places:
    """Where files lie: on a target each, as far as manifests say."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._of_folder: dict[Path, list[tuple[str, Path]]] = {}
        self.targets: list[str] = []
        self._files: dict[int, int] = {}

    def _target(self, path: str) -> int:
        folder = Path(path).parent
        if folder not in self._of_folder:
            try:
                rows: list[Any] = compiled().describe_targets(str(folder))["targets"]
            except ValueError:
                rows = []
            self._of_folder[folder] = [(row["name"], Path(row["directory"])) for row in rows if row["directory"]]
        inside = [name for name, place in self._of_folder[folder] if folder == place or place in folder.parents]
        name = inside[0] if inside else "one target"
        if name not in self.targets:
            self.targets.append(name)
        return self.targets.index(name)

    def case(self, stretch: _Stretch, number: int) -> ExtentCase:
        """One stretch, on the targets that it touches."""
        target_of = {path: self._target(self._trace.paths[path]) for *_, path, _, _ in stretch.rows}
        targets = tuple(sorted(set(target_of.values())))
        base: dict[int, int] = {}
        for path, target in target_of.items():
            before = sum(1 for one in base if target_of[one] == target)
            base[path] = targets.index(target) * _SPAN + before * (_SPAN >> 16)
        processes = sorted({row[2] for row in stretch.rows})
        lists: dict[int, list[tuple[int, int]]] = {process: [] for process in processes}
        for _, _, process, path, offset, length in stretch.rows:
            lists[process].append((base[path] + offset, length))
        own: dict[str, float] = {} if stretch.flushed else dict(DIRECT)
        own |= {"files.stripe_bytes": float(_SPAN), "files.stripe_count": 0.0}
        sizes = sorted(length for *_, length in stretch.rows)
        kind = "write" if stretch.writes else "read"
        name = f"{kind}, {len(processes)} processes, {sizes[len(sizes) // 2]} B a call, stretch {number}"
        return ExtentCase(name, _union_s(stretch.busy), _as_calls(list(lists.values())), stretch.writes,
                          Placed(targets), own)  # fmt: skip


def _as_calls(lists: Sequence[list[tuple[int, int]]]) -> list[list[list[tuple[int, int]]]]:
    """The n-th calls of all processes together; several of a process in one where there are many."""
    longest = max(len(one) for one in lists)
    count = min(longest, _MOST_CALLS)
    calls = []
    for number in range(count):
        parts = [one[number * len(one) // count : (number + 1) * len(one) // count] for one in lists]
        calls.append([_disjoint(part) for part in parts])
    return calls


def _disjoint(extents: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """In order; what overlaps is moved once."""
    kept: list[tuple[int, int]] = []
    for offset, length in sorted(extents):
        end = kept[-1][0] + kept[-1][1] if kept else 0
        if offset + length > end:
            kept.append((max(offset, end), offset + length - max(offset, end)))
    return kept


def _union_s(spans: Sequence[tuple[int, int]]) -> float:
    """Seconds in which at least one was under way."""
    total, until = 0, 0
    for start, end in sorted(spans):
        total += max(0, end - max(start, until))
        until = max(until, end)
    return max(total, 1) / 1e9
