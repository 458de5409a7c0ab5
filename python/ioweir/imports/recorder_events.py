"""Recorder's calls as events of a trace: which function of ours each is, and what its arguments say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ioweir.base.compiled import compiled
from ioweir.imports import node_file
from ioweir.trace.reader import function_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ioweir.imports.recorder import RecorderTrace, Signature

_MOST_S: Final = 1e8
_MOST_BYTES: Final = 1 << 46
_NAME_AT: Final = {
    "fread": 3, "fwrite": 3, "mmap": 4, "MPI_File_open": 1, "fstat": 1, "stat": 1, "lstat": 1, "fprintf": 0,
}  # fmt: skip
"""Where a function's arguments have the file's name; elsewhere it is the first one."""
_LOCKS: Final = ("6", "7")
_UNLOCK: Final = "2"


@dataclass
class Written:
    """What became of the calls."""

    events: int = 0
    left_out: int = 0
    """Of functions that ioweir does not record."""
    last_s: float = 0.0


@dataclass(slots=True)
class _Call:
    function: int
    path: str
    start: int
    end: int
    offset: int
    bytes: int


class _Functions:
    """Our functions by the names that programs call them by."""

    def __init__(self) -> None:
        self._by_symbol: dict[str, list[int]] = {}
        self.names: dict[int, str] = {}
        for function in function_table(compiled().functions()):
            self.names[function.id] = function.name
            for symbol in {function.name, *function.symbols}:
                self._by_symbol.setdefault(symbol, []).append(function.id)
        self._ids = {name: number for number, name in self.names.items()}

    def of(self, signature: Signature) -> int | None:
        """None of calls that are no I/O, or of several kinds without a word which."""
        if signature.function == "fcntl":
            arguments = signature.arguments
            if len(arguments) < 3 or arguments[1] not in _LOCKS:
                return None
            return self._ids["fcntl_unlock" if arguments[2] == _UNLOCK else "fcntl_lock"]
        found = self._by_symbol.get(signature.function, [])
        exact = self._ids.get(signature.function)
        return exact if exact is not None else found[0] if len(found) == 1 else None


def write(trace: RecorderTrace, path: str, epoch_ns: int) -> Written:
    """Write the trace's events into one file."""
    from ioweir.imports import recorder  # noqa: PLC0415

    made, functions = Written(), _Functions()
    writer = node_file.create(path, "unknown", epoch_ns)
    numbers: dict[str, int] = {}
    for rank, calls in recorder.records(trace):
        image = rank + 1
        main = writer.begin_thread(image, 1, image, 0)
        writer.process(main, image, 0, image, 0, 0, "")
        writer.rank(main, rank, trace.ranks, 1, "")
        known: set[str] = set()
        by_thread = _chosen(calls, functions, made)
        last = 0
        for number, chosen in enumerate(by_thread.values()):
            thread = main if number == 0 else writer.begin_thread(image, number + 1, 0, 0)
            for call in chosen:
                if call.path and call.path not in known:
                    known.add(call.path)
                    writer.file(main, numbers.setdefault(call.path, len(numbers) + 1), call.path)
            _events(writer, thread, chosen, numbers)
            made.events += len(chosen)
            last = max([last, *(call.end for call in chosen)])
        writer.finalize(main, last + 1)
        writer.end(main, last + 1)
        made.last_s = max(made.last_s, last / 1e9)
    node_file.finish(writer, path)
    return made


def _chosen(
    calls: Sequence[tuple[Signature, float, float]], functions: _Functions, made: Written
) -> dict[int, list[_Call]]:
    """By thread, in the order of entry."""
    handles: dict[str, str] = {}
    chosen: dict[int, list[_Call]] = {}
    for signature, start, end in calls:
        number = functions.of(signature)
        if number is None or end > _MOST_S:
            made.left_out += 1
            continue
        name, words = functions.names[number], signature.arguments
        at = _NAME_AT.get(name, 0)
        path = words[at] if at < len(words) else ""
        if name == "MPI_File_open" and words:
            handles[words[-1]] = path
        elif name.startswith("MPI_File"):
            path = handles.get(path, "")
        elif name.startswith(("H5", "nc", "MPI")):
            path = ""
        offset, moved = _amount(name, words)
        chosen.setdefault(signature.thread, []).append(
            _Call(number, path, round(start * 1e9), round(end * 1e9), offset, moved)
        )
    for rows in chosen.values():
        rows.sort(key=lambda call: (call.start, -call.end))
    return chosen


def _amount(name: str, words: Sequence[str]) -> tuple[int, int]:
    """Offset and bytes, where the arguments say them."""
    if name in ("write", "read", "pwrite", "pread"):
        return (_number(words, 3) if name.startswith("p") else -1), max(_number(words, 2), 0)
    if name in ("fwrite", "fread"):
        return -1, min(max(_number(words, 1), 0) * max(_number(words, 2), 0), _MOST_BYTES)
    if name in ("lseek", "fseek", "fseeko"):
        return (_number(words, 1) if len(words) > 2 and words[2] == "0" else -1), 0
    return -1, 0


def _number(words: Sequence[str], at: int) -> int:
    try:
        value = int(words[at])
    except (ValueError, IndexError):
        return -1
    return value if -1 <= value < _MOST_BYTES else -1


def _events(writer: Any, thread: int, calls: Sequence[_Call], numbers: dict[str, int]) -> None:
    """In the order of their ends, each with the number of the innermost call that lies around it."""
    parents = [0] * len(calls)
    around: list[int] = []
    for at, call in enumerate(calls):
        while around and calls[around[-1]].end < call.end:
            around.pop()
        parents[at] = around[-1] + 1 if around else 0
        around.append(at)
    for at in sorted(range(len(calls)), key=lambda at: (calls[at].end, -at)):
        call = calls[at]
        writer.event(
            thread=thread, function=call.function, origin=1 if parents[at] else 0, failed=False,
            file=numbers[call.path] if call.path else 0, seq=at + 1, parent=parents[at], start=call.start, end=call.end,
            offset=call.offset, bytes=call.bytes,
        )  # fmt: skip
