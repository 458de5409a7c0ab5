"""A trace of Recorder (versions 2.3 and 3) as events: a reader of its files, bounded whatever they say.

After the reader in Recorder's own repository (tools/reader.c): `recorder.mt` has the number of ranks, the resolution of
times and the functions' names; N.cst (of all ranks: recorder.cst) numbers call signatures (thread, function, depth,
arguments); N.cfg (ug.cfg, by ug.mt) is a grammar whose rule -1 is the sequence of signatures; N.ts (recorder.ts) has
two times a call, after the start of the call before. No trace of Recorder was at hand to try this on: tests write the
format themselves.
"""

from __future__ import annotations

import itertools
import os
import struct
import zlib
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from ioweir.base.guarded_files import Folder
from ioweir.base.units import plural
from ioweir.errors import IoweirError, reason
from ioweir.imports import recorder_files
from ioweir.imports.recorder_files import HEAD, MOST_FILE, Files

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MOST_RANKS: Final = 1 << 20
_MOST_UNPACKED: Final = 256 << 20
"""Of what a thousandth of it may stand for in a file."""
_MOST_SIGNATURES: Final = 1 << 21
_MOST_SYMBOLS: Final = 1 << 22
_MOST_CALLS: Final = 1 << 21
"""Of a rank: they are kept in memory."""
_STEPS_A_CALL: Final = 64
"""Through rules that hold rules. Sequitur's grammars take about two."""
_MOST_TEXT: Final = 1 << 20
_MOST_TROUBLES: Final = 20
_HEAD: Final = 1024
_V2: Final = struct.Struct("<i4xddii")
_V3: Final = struct.Struct("<i8?4xddi4?")
_NEW_V3: Final = struct.Struct("<5i8?4xddi4?")
"""Version (three numbers), ranks and functions before what there was."""
_NAME_BYTES: Final = 64
_NEWEST: Final = 3
_SIZES: Final = struct.Struct("<QQ")
_DAMAGE: Final = (OSError, ValueError, KeyError, IndexError, struct.error, zlib.error)
UNSEEN: Final = (
    "Recorder keeps no return values: bytes are those that calls asked for, and failed calls are not told apart",
    "of MPI-IO, HDF5 and vector calls (readv, writev) Recorder's arguments do not say how many bytes they moved",
    "Recorder does not say on which node a rank ran",
)


@dataclass(frozen=True)
class Signature:
    """A call but for its times."""

    thread: int
    function: str
    depth: int
    arguments: tuple[str, ...]


@dataclass
class RecorderTrace:
    """What the files' heads say."""

    version: tuple[int, int]
    ranks: int
    start_s: float
    resolution_s: float
    depths: bool
    functions: list[str]
    merged: bool
    """All ranks share their signatures."""
    compressed_times: bool
    files: Files
    troubles: list[str] = field(default_factory=list)
    more_troubles: int = 0
    """Ranks with one that is not listed."""

    def of_a_rank(self, words: str) -> None:
        """List a trouble of one rank, of very many only the first."""
        if len(self.troubles) < _MOST_TROUBLES:
            self.troubles.append(words)
        else:
            self.more_troubles += 1

    def partial(self) -> list[str]:
        """Why the trace is not whole."""
        more = f"so it is with {self.more_troubles:,} more {plural('rank', self.more_troubles)}"
        return [*dict.fromkeys(self.troubles), *[more][: self.more_troubles]]


def is_recorder(path: Path) -> bool:
    """Whether a directory looks like one of Recorder's."""
    if not path.is_dir():
        return False
    with Folder.open(path) as folder:
        return recorder_files.is_there(folder)


def head(folder: Folder) -> RecorderTrace:
    """Versions, ranks and names of functions."""
    try:
        files = Files(folder)
        raw = files.read(HEAD, 16 << 20)
        version = _version(folder, raw, files)
        if version[0] == 2:
            ranks, start, resolution, _, _ = _V2.unpack_from(raw)
            depths, merged, compressed, patterns, size = True, False, False, False, _V2.size
        else:
            kind, ahead = (_NEW_V3, 4) if files.says_its_version else (_V3, 0)
            values = kind.unpack_from(raw)[ahead:]
            # The number of ranks stands before that of functions, which older ones do not say.
            ranks = kind.unpack_from(raw)[3] if ahead else values[0]
            depths, start, resolution = values[8], values[9], values[10]
            compressed, merged = values[12], values[13]
            patterns, size = values[14] or values[15], kind.size
        names = _names(raw, size, values[0] if files.says_its_version else None)
    except (OSError, ValueError, struct.error) as error:
        raise IoweirError(f"'{folder.path}' cannot be read as a trace of Recorder: {_why(error)}") from error
    if not 0 < ranks <= MOST_RANKS or not 0 < resolution < 1 or not 0 <= start < 1 << 33:
        raise IoweirError(
            f"'{folder.path}' cannot be read as a trace of Recorder: recorder.mt says {ranks} ranks (1 to {MOST_RANKS} "
            f"can be), clock ticks of {resolution:g} s (less than 1), and a start at {start:g} s since 1970"
        )
    made = RecorderTrace(version, ranks, start, resolution, depths, names, merged, compressed, files)
    if patterns:
        made.troubles.append("arguments that Recorder's pattern recognition has replaced are not known")
    return made


def _names(raw: bytes, size: int, count: int | None) -> list[str]:
    """Of functions, by number. `count`: so many of equal length follow the head; None: lines do."""
    if count is not None:
        if not 0 <= count <= (len(raw) - size) // _NAME_BYTES:
            raise ValueError(f"recorder.mt is too short for the {count:,} functions that it says it has")
        parts = (raw[size + _NAME_BYTES * at : size + _NAME_BYTES * (at + 1)] for at in range(count))
        return [part.split(b"\0")[0].decode("utf-8", "replace") for part in parts]
    # Of version 2.3 the names may follow at once; later a block of 1,024 bytes is kept free for the head.
    begin = _HEAD if not any(raw[size:_HEAD]) else size
    return raw[begin:].decode("utf-8", "replace").split("\n")


def _version(folder: Folder, raw: bytes, files: Files) -> tuple[int, int]:
    if files.says_its_version:
        major, minor = struct.unpack_from("<ii", raw)
        if major != _NEWEST:
            raise ValueError(f"version {major}.{minor} is not known (2.3 and 3 are)")
        return (major, minor)
    words = folder.read_text("VERSION", 256).strip().split(".")
    if len(words) < 2:
        raise ValueError(f"VERSION says '{words[0]}', which is no version")
    version = (int(words[0]), int(words[1]))
    if version not in ((2, 3), (3, 0)):
        raise ValueError(f"version {version[0]}.{version[1]} is not known (2.3 and 3.0 are)")
    return version


def records(trace: RecorderTrace) -> Iterator[tuple[int, list[tuple[Signature, float, float]]]]:
    """Rank by rank its calls with their start and end, in seconds after the trace's start."""
    shared: dict[int, Signature] | None = None
    grammars: list[dict[int, list[tuple[int, int]]]] = []
    numbers: list[int] = []
    try:
        if trace.merged:
            shared = _signatures(_unpacked(trace.files.read("recorder.cst", MOST_FILE))[0], trace)
            raw = trace.files.read("ug.mt", 4 * MOST_RANKS + 4)
            numbers = list(struct.unpack_from(f"<{trace.ranks}i", raw))
            grammars = _grammars(_unpacked(trace.files.read("ug.cfg", MOST_FILE)))
        times = _Times(trace.files.read("recorder.ts", MOST_FILE), trace) if trace.version[0] > 2 else None
    except _DAMAGE as error:
        trace.troubles.append(f"what all ranks share cannot be read: {_why(error)}")
        return
    for rank in range(trace.ranks):
        try:
            if shared is not None:
                signatures, grammar = shared, grammars[_place(numbers[rank])]
            else:
                blocks = [trace.files.read(f"{rank}.{end}", MOST_FILE) for end in ("cst", "cfg")]
                if trace.version[0] > 2:
                    blocks = [_unpacked(block)[0] for block in blocks]
                signatures, grammar = _signatures(blocks[0], trace), _grammar(blocks[1])
            stamps = trace.files.read(f"{rank}.ts", MOST_FILE) if times is None else times.of(rank)
            yield rank, _calls(signatures, grammar, stamps, trace)
        except _DAMAGE as error:
            trace.of_a_rank(f"rank {rank} cannot be read: {_why(error)}")


def _place(number: int) -> int:
    if number < 0:
        raise IndexError(f"grammar {number}")
    return number


def _why(error: Exception) -> str:
    """In words: of files which one, and what the system said; of content what is wrong with it."""
    if isinstance(error, OSError):
        return f"{PurePath(os.fsdecode(error.filename)).name}: {reason(error)}" if error.filename else reason(error)
    return f"{type(error).__name__}: {error}"


def _unpacked(raw: bytes) -> list[bytes]:
    """Blocks of zlib, each behind its two sizes."""
    blocks = []
    at = total = 0
    while at + _SIZES.size <= len(raw):
        packed, size = _SIZES.unpack_from(raw, at)
        at += _SIZES.size
        if packed > len(raw) - at or size > _MOST_UNPACKED - total:
            raise ValueError(f"a block says it is {packed:,} bytes long, {size:,} unpacked")
        blocks.append(zlib.decompressobj().decompress(raw[at : at + packed], max(size, 1)))
        total += size
        at += packed
    return blocks


def _signatures(raw: bytes, trace: RecorderTrace) -> dict[int, Signature]:
    (entries,) = struct.unpack_from("<i", raw)
    if not 0 <= entries <= _MOST_SIGNATURES:
        raise ValueError(f"{entries} signatures")
    at, made = 4, {}
    for _ in range(entries):
        if trace.version[0] == 2:
            number, length = struct.unpack_from("<ii", raw, at)
            at += 8
        else:
            number, _, length, _ = struct.unpack_from("<iiii", raw, at)
            at += 16
        if not 0 <= length <= min(_MOST_TEXT, len(raw) - at):
            raise ValueError(f"a signature of {length} bytes")
        made[number] = _signature(raw[at : at + length], trace)
        at += length
    return made


def _signature(key: bytes, trace: RecorderTrace) -> Signature:
    """Thread, function, depth, number of arguments, their text. The function's number has had one byte or four."""
    for kind in ("<QiBBi", "<QBBBi"):
        size = struct.calcsize(kind)
        if len(key) < size:
            continue
        thread, function, depth, count, length = struct.unpack_from(kind, key)
        if length == len(key) - size and 0 <= function < len(trace.functions):
            words = key[size:].decode("utf-8", "replace").split(" ")
            return Signature(thread, trace.functions[function], depth, tuple(words[:count]))
        if length == len(key) - size:
            return Signature(thread, "", depth, ())
    raise ValueError("a signature's text is not as long as it says")


def _grammars(blocks: list[bytes]) -> list[dict[int, list[tuple[int, int]]]]:
    if sum(map(len, blocks)) > 8 * _MOST_SYMBOLS:
        raise ValueError(f"grammars of more than {_MOST_SYMBOLS:,} symbols")
    return [_grammar(block) for block in blocks]


def _grammar(raw: bytes) -> dict[int, list[tuple[int, int]]]:
    (rules,) = struct.unpack_from("<i", raw)
    at, made = 4, {}
    if not 0 <= rules <= len(raw) <= 8 * _MOST_SYMBOLS:
        raise ValueError(f"{rules} rules in {len(raw):,} bytes")
    for _ in range(rules):
        number, symbols = struct.unpack_from("<ii", raw, at)
        at += 8
        if not 0 <= symbols <= (len(raw) - at) // 8:
            raise ValueError(f"a rule of {symbols} symbols")
        values = struct.unpack_from(f"<{2 * symbols}i", raw, at)
        at += 8 * symbols
        made[number] = list(zip(values[::2], values[1::2], strict=True))
    return made


class _Times:
    """recorder.ts: how many bytes each rank has, then these."""

    def __init__(self, raw: bytes, trace: RecorderTrace) -> None:
        self._raw, self._compressed = raw, trace.compressed_times
        sizes = struct.unpack_from(f"<{trace.ranks}Q", raw)
        self._ends = list(itertools.accumulate(sizes, initial=8 * trace.ranks))

    def of(self, rank: int) -> bytes:
        part = self._raw[self._ends[rank] : self._ends[rank + 1]]
        return b"".join(_unpacked(part)) if self._compressed else part


def _calls(
    signatures: dict[int, Signature], grammar: dict[int, list[tuple[int, int]]], stamps: bytes, trace: RecorderTrace
) -> list[tuple[Signature, float, float]]:
    """The grammar's sequence, as far as there are times for it: so a rule that doubles itself ends, too."""
    pairs = struct.iter_unpack("<II", stamps[: len(stamps) // 8 * 8])
    made: list[tuple[Signature, float, float]] = []
    before = 0.0
    for symbol in _sequence(grammar):
        if len(made) == _MOST_CALLS:
            trace.of_a_rank(f"a rank's calls beyond the first {_MOST_CALLS:,} are left out")
            break
        stamp = next(pairs, None)
        if stamp is None:
            trace.of_a_rank("a rank's times end before its calls do")
            break
        start, end = (before + one * trace.resolution_s for one in stamp)
        made.append((signatures[symbol], start, max(end, start)))
        before = start
    return made


def _sequence(grammar: dict[int, list[tuple[int, int]]]) -> Iterator[int]:
    """Signature numbers in order. Rules have negative numbers, and -1 is the first."""
    empty = _without_calls(grammar)
    bodies = {
        rule: [(symbol, times) for symbol, times in body if times > 0 and symbol not in empty]
        for rule, body in grammar.items()
    }
    stack: list[tuple[int, int, int]] = [(-1, 0, 0)]
    calls = steps = 0
    while stack:
        rule, at, turn = stack.pop()
        body = bodies[rule]
        while at < len(body):
            symbol, times = body[at]
            if turn >= times:
                at, turn = at + 1, 0
                continue
            turn += 1
            if symbol >= 0:
                calls += 1
                yield symbol
                continue
            if len(stack) > len(grammar):
                raise ValueError("a rule contains itself")
            steps += 1
            if steps > _STEPS_A_CALL * (calls + len(grammar)):
                raise ValueError("its rules hold one another, and few calls")
            stack.append((rule, at, turn))
            stack.append((symbol, 0, 0))
            break


def _without_calls(grammar: dict[int, list[tuple[int, int]]]) -> set[int]:
    """Rules that make no call, however often they are repeated."""
    holders: defaultdict[int, list[int]] = defaultdict(list)
    full: set[int] = set()
    for rule, body in grammar.items():
        for symbol, times in body:
            if times > 0 and symbol >= 0:
                full.add(rule)
            elif times > 0:
                holders[symbol].append(rule)
    waiting = list(full)
    while waiting:
        more = [rule for rule in holders.pop(waiting.pop(), ()) if rule not in full]
        full.update(more)
        waiting += more
    return set(grammar) - full
