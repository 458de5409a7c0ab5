"""What writing behind a program could hide: what it computes between writes to a file, while the file stays open.

With writers = "behind:N" a write returns when its bytes are copied, and threads write them while the program goes on.
A close, a sync and whatever looks at the file wait for them (docs/explanation/engine.md, write-behind). So the pause
behind a write counts up to the next write, or to the call that waits; of the ranks the one with least.

Example: a file is opened, written for 2 s, left alone for 3 s, written for 2 s and closed: (3.0, 0.0).

Lives here: those pauses, and why a file cannot be written behind. Not here: what they hide, which is simulated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ioweir.base.runs import RUNS_DIFFER
from ioweir.trace import reader

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ioweir.trace.reader import Requests, Trace

_WRITE_ONLY: Final = 4
"""MPI_MODE_WRONLY, of both libraries."""
_WAITS_FOR_NOTHING: Final = frozenset(
    f"MPI_File_{name}"
    for name in (
        "set_view", "get_view", "seek", "get_position", "get_byte_offset", "get_amode", "get_atomicity", "get_group",
        "get_info", "set_info", "get_type_extent",
    )
)  # fmt: skip
_LAYERS: Final = (reader.MPI_IO, reader.POSIX, reader.STDIO)


@dataclass(frozen=True)
class Thinking:
    """Of one file."""

    computing: tuple[float, ...] = ()
    """Seconds behind each write."""
    writing_s: float = 0.0
    """In these writes, of the rank with most."""
    largest: int = 0
    """Bytes of a rank's write, at most."""
    why_not: str = ""
    """The file cannot be written behind, or there is nothing to hide."""


@dataclass(frozen=True)
class _Call:
    name: str
    start: int
    end: int
    write: bool = False


def of_file(trace: Trace, requests: Requests, path: str) -> Thinking:
    """The pauses behind the n-th write of all ranks, or why they do not count."""
    writes, moved = _writes(trace, requests, path)
    if not writes:
        return Thinking(why_not="nothing is written to it")
    others, modes = _others(trace, path)
    if why := _why_not(writes, modes):
        return Thinking(why_not=why)
    pauses: list[list[int]] = []
    for rank, mine in writes.items():
        found = _pauses(sorted([*mine, *others.get(rank, ())], key=lambda call: call.start))
        if isinstance(found, str):
            return Thinking(why_not=f"between its writes the program calls {found}, which waits for them")
        pauses.append(found)
    computing = tuple(
        min(mine[number] for mine in pauses if number < len(mine)) / 1e9 for number in range(max(map(len, pauses)))
    )
    writing_s = max(sum(call.end - call.start for call in mine) for mine in writes.values()) / 1e9
    if sum(computing) < RUNS_DIFFER * writing_s:
        return Thinking(computing, writing_s, moved, "the program computes next to nothing while the file is open")
    return Thinking(computing, writing_s, moved)


def _writes(trace: Trace, requests: Requests, path: str) -> tuple[dict[int, list[_Call]], int]:
    """By rank, in the order of its calls; and the bytes of the largest."""
    functions = {function.id: function.name for function in trace.functions}
    found: dict[int, list[_Call]] = {}
    largest = 0
    columns = (
        requests.process, requests.path, requests.write, requests.function, requests.start_ns, requests.duration_ns,
        requests.bytes,
    )  # fmt: skip
    for process, its, writes, function, start, duration, moved in zip(*(one.tolist() for one in columns), strict=True):
        rank = trace.processes[process].rank
        if rank >= 0 and writes and trace.paths[its] == path:
            found.setdefault(rank, []).append(_Call(functions[function], start, start + duration, write=True))
            largest = max(largest, moved)
    return found, largest


def _others(trace: Trace, path: str) -> tuple[dict[int, list[_Call]], set[int]]:
    """The program's other calls on the file, by rank, and the access modes that it was opened with."""
    import numpy as np  # noqa: PLC0415

    events = trace.events
    functions = {function.id: function for function in trace.functions if function.layer in _LAYERS}
    chosen = np.flatnonzero(
        (events.path == trace.paths.index(path))
        & (events.origin == 0)
        & ((events.flags & reader.FLAG_FAILED) == 0)
        & np.isin(events.function, list(functions))
    )
    found: dict[int, list[_Call]] = {}
    modes: set[int] = set()
    columns = (events.process, events.function, events.start_ns, events.duration_ns, events.offset)
    for process, number, start, duration, offset in zip(*(one[chosen].tolist() for one in columns), strict=True):
        rank, function = trace.processes[process].rank, functions[number]
        if rank < 0 or (function.layer == reader.MPI_IO and function.op == "write"):
            continue
        if function.name == "MPI_File_open":
            modes.add(offset)
        found.setdefault(rank, []).append(_Call(function.name, start, start + duration))
    return found, modes


def _why_not(writes: dict[int, list[_Call]], modes: set[int]) -> str:
    if not modes or min(modes) < 0:
        return "the trace does not say how the file was opened"
    if any(not mode & _WRITE_ONLY for mode in modes):
        return (
            'it is open for reading, too. Where nobody reads before a sync, write visibility = "sync" beside '
            'writers = "behind:1" yourself'
        )
    names = {call.name for mine in writes.values() for call in mine}
    if any("_iwrite" in name or name.endswith(("_begin", "_end")) for name in names):
        return "its writes are begun, and waited for later: they go on while the program computes already"
    return ""


def _pauses(calls: Sequence[_Call]) -> list[int] | str:
    """Nanoseconds behind each write of one rank; or the name of a call between two of them that waits."""
    pauses: list[int] = []
    left = sum(call.write for call in calls)
    goes_on = 0
    for call in calls:
        # Of a file that is never closed, as far as the trace says, the time behind the last write is not known.
        if pauses:
            pauses[-1] += max(0, call.start - goes_on)
        goes_on = max(goes_on, call.end)
        if call.write:
            left -= 1
            pauses.append(0)
        elif pauses and call.name not in _WAITS_FOR_NOTHING:
            return call.name if left else pauses
    return pauses
