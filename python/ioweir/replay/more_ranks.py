"""A recorded program's MPI-IO on more ranks, or fewer: what each of them would ask for, where that is known.

What ranks ask for is predict/scaling.py's: every rank keeps its part and the arrays grow, or what traces of several
numbers of ranks show. Which calls are made, in which order and with which pauses, is the recorded ranks': rank R does
it as recorded rank R modulo their number. Views and calls at pointers become views of bytes and calls at offsets.

Left out, and counted: calls on files of single ranks (how many such files there would be is not known), POSIX and
stdio, calls that do not block, sizes that are set. Not here: reading the trace (from_trace.py), scripts (write.py).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from ioweir.errors import EXIT_USAGE, IoweirError
from ioweir.predict import scaling, workload
from ioweir.replay import inputs, order
from ioweir.replay.datatypes import BYTE
from ioweir.replay.model import Handle, Instance, Op, RankCalls, Recorded
from ioweir.trace import pattern
from ioweir.trace.reader import Datatype

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ioweir.trace.pattern import Extents
    from ioweir.trace.reader import Trace

_AS_THEY_ARE: Final = frozenset({"MPI_File_open", "MPI_File_close", "MPI_File_sync"})
_WITHOUT_EFFECT: Final = frozenset(
    f"MPI_File_{name}" for name in (
        "get_size", "get_position", "get_amode", "get_atomicity", "get_info", "get_group", "get_view",
        "get_type_extent", "set_info", "get_byte_offset", "seek", "set_view",
    )
)  # fmt: skip
"""They move nothing, or say where other calls move bytes, which these say themselves here."""
_DATA: Final = {
    f"MPI_File_{op}{how}": f"MPI_File_{op}_at{together}"
    for op in ("write", "read")
    for how, together in (("", ""), ("_at", ""), ("_all", "_all"), ("_at_all", "_all"))
}
"""Calls that move bytes, and what is called for them."""


_WORDS: Final = scaling.Words("--also", "--also DIR2", "Replay it as it was recorded (without --ranks)")


@dataclass
class _File:
    """One that all ranks share."""

    number: int
    written: list[scaling.Call]
    read: list[scaling.Call]
    how: str


@dataclass
class _Types:
    """Of the new ranks' views, each shape once."""

    made: list[Datatype] = field(default_factory=list)
    known: dict[tuple[tuple[int, int], ...], int] = field(default_factory=dict)

    def of(self, pieces: Extents) -> int:
        """Of pieces from the first one on; bytes where it is one."""
        if len(pieces) <= 1:
            return BYTE
        shape = tuple((offset - pieces[0][0], length) for offset, length in pieces)
        if shape not in self.known:
            self.known[shape] = len(self.made)
            lengths, places = [length for _, length in shape], [place for place, _ in shape]
            values = (len(shape), *lengths, *places)
            extent = places[-1] + lengths[-1]
            self.made.append(Datatype("hindexed", "", sum(lengths), 0, extent, values, (BYTE,)))
        return self.known[shape]


def on_ranks(directory: Path, recorded: Recorded, ranks: int, more: Sequence[Path] = ()) -> Recorded:
    """The same program on so many ranks. Raises IoweirError where what they would ask for is not known.

    `more`: traces of it on other numbers of ranks, which tell how its parts change.
    """
    if len(recorded.ranks) == 1:
        raise IoweirError(
            f"--ranks {ranks}: {directory} has one rank, and of one it is not known how its arrays are divided",
            EXIT_USAGE,
        )
    traces = [(one, workload.loaded_whole(one)) for one in (directory, *more)]
    scaling.require_different([pattern.ranks_of(trace) for _, trace in traces], _WORDS)
    left_out: Counter[str] = Counter()
    files = _files(traces, recorded, ranks, left_out)
    templates = [_calls(rank, files) for rank in recorded.ranks]
    names = [[(op.name, op.file) for op in calls] for calls in templates]
    if any(one != names[0] for one in names):
        raise IoweirError(
            f"--ranks {ranks}: the recorded ranks make different calls, so that what another number of them would do "
            "is not known. Replay it as it was recorded (without --ranks)",
            EXIT_USAGE,
        )
    made = Recorded(
        [RankCalls(rank) for rank in range(ranks)], recorded.paths, recorded.names, (), [list(range(ranks))],
        mpi=recorded.mpi, plan=recorded.plan, meetings=list(recorded.meetings), left_out=left_out,
        remarks=list(recorded.remarks),
    )  # fmt: skip
    types = _Types()
    openings: dict[int, Instance] = {}
    for rank in made.ranks:
        _Rank(rank, recorded.ranks[rank.rank % len(recorded.ranks)], files, types, openings, made.stand_ins).make()
    made.datatypes = tuple(types.made)
    inputs.find(made)
    order.put_in_order(made)
    for file in files.values():
        made.remarks.append(f"{recorded.paths[file.number]}, {len(recorded.ranks)} ranks on {ranks}: {file.how}")
    return made


def _files(
    traces: Sequence[tuple[Path, Trace]], recorded: Recorded, ranks: int, left_out: Counter[str]
) -> dict[int, _File]:
    """By number those that can be scaled; the one with most bytes has to be."""
    ours, others = _sorted_out(recorded)
    left_out.update(others)
    files: dict[int, _File] = {}
    most = max(ours, key=lambda number: ours[number].moved, default=None)
    if most is None:
        reasons = "; ".join(others)
        raise IoweirError(
            f"--ranks {ranks}: no file of this trace is used by all ranks through MPI-IO, and only such calls are "
            f"scaled ({reasons})",
            EXIT_USAGE,
        )
    for number, calls in ours.items():
        try:
            if calls.refused:
                raise IoweirError(f"--ranks {ranks}: {recorded.paths[number]}: {calls.refused}", EXIT_USAGE)
            found = [_asked(directory, trace, recorded.paths[number]) for directory, trace in traces]
            all_calls = [(one.ranks, one.written, one.read) for one in found]
            dimensions = max(one.dimensions for one in found)
            written, read, how = scaling.scaled(recorded.paths[number], all_calls, ranks, dimensions, words=_WORDS)
            if (len(written), len(read)) != (calls.writes, calls.reads):
                raise IoweirError(
                    f"--ranks {ranks}: of {recorded.paths[number]} the trace does not hold the bytes of every call",
                    EXIT_USAGE,
                )
        except IoweirError as error:
            if number == most:
                raise
            left_out[str(error)] += calls.number
            continue
        files[number] = _File(number, written, read, how)
    return files


def _asked(directory: Path, trace: Trace, path: str) -> workload.Recorded:
    """What was asked of the file; in another run's trace it may lie in another folder."""
    name = PurePosixPath(path).name
    same = [one for one in trace.paths if one == path] or [
        one for one in trace.paths if PurePosixPath(one).name == name
    ]
    if len(same) != 1:
        raise IoweirError(f"{directory}: {len(same)} files of this trace are called {name}; one is needed", EXIT_USAGE)
    try:
        return workload.of_file(trace, trace.requests(), same[0], directory, 0.0)
    except IoweirError as error:
        raise IoweirError(
            f"{directory}: where the calls on {name} moved their bytes is not known (pointers that ranks share, views "
            "that the trace does not hold, too many pieces): it cannot be scaled",
            EXIT_USAGE,
        ) from error


@dataclass
class _Shared:
    """What all ranks do with a file."""

    moved: int = 0
    number: int = 0
    writes: int = 0
    """Of the rank with most."""
    reads: int = 0
    refused: str = ""


def _sorted_out(recorded: Recorded) -> tuple[dict[int, _Shared], Counter[str]]:
    """Files whose every opening is all ranks', and calls that are not scaled, by reason."""
    left_out: Counter[str] = Counter()
    shared: dict[int, _Shared] = {}
    alone: set[int] = set()
    for rank in recorded.ranks:
        for op in rank.ops:
            instance = op.handle.instance if op.handle is not None else None
            if instance is None:
                left_out["MPI_File_delete" if op.name.startswith("MPI_") else "calls of POSIX and stdio"] += 1
            elif len(instance.members) < len(recorded.ranks):
                alone.add(op.file)
    for rank in recorded.ranks:
        writes: Counter[int] = Counter()
        reads: Counter[int] = Counter()
        for op in rank.ops:
            if op.handle is None or op.handle.instance is None:
                continue
            if op.file in alone:
                left_out["MPI-IO on files that not all ranks open together"] += 1
                continue
            one = shared.setdefault(op.file, _Shared())
            one.number += 1
            one.moved += op.moved
            if op.name in _DATA:
                (writes if op.use == "write" else reads)[op.file] += 1
            elif op.name in ("MPI_File_set_size", "MPI_File_preallocate"):
                left_out[f"{op.name}: which size more ranks would set is not known"] += 1
            elif op.name not in _AS_THEY_ARE and op.name not in _WITHOUT_EFFECT:
                one.refused = f"{op.name} is not scaled"
        for file in writes.keys() | reads.keys():
            shared[file].writes = max(shared[file].writes, writes[file])
            shared[file].reads = max(shared[file].reads, reads[file])
    return shared, left_out


def _calls(rank: RankCalls, files: dict[int, _File]) -> list[Op]:
    """Of a recorded rank those that are scaled."""
    return [op for op in rank.ops if op.file in files and (op.name in _AS_THEY_ARE or op.name in _DATA)]


class _Rank:
    """Makes the calls of one of the new ranks."""

    def __init__(
        self, rank: RankCalls, template: RankCalls, files: dict[int, _File], types: _Types,
        openings: dict[int, Instance], stand_ins: Counter[str],
    ) -> None:  # fmt: skip
        self._rank = rank
        self._template = template
        self._files = files
        self._types = types
        self._openings = openings
        self._stand_ins = stand_ins
        self._handles: dict[int, Handle] = {}
        """By number of the script, those that are open."""
        self._views: dict[int, tuple[int, int]] = {}
        """Of these the displacement and the type."""
        self._at: Counter[tuple[int, str]] = Counter()

    def make(self) -> None:
        """All of them."""
        self._rank.handles = self._template.handles
        opened = 0
        for op in _calls(self._template, self._files):
            number = op.arguments[0]
            if op.name == "MPI_File_open":
                self._open(op, number, opened)
                opened += 1
            elif op.name in _DATA:
                self._move(op, number)
            else:
                self._rank.ops.append(replace(op, arguments=[number], handle=self._handles[number]))

    def _open(self, op: Op, number: int, opened: int) -> None:
        instance = self._openings.setdefault(opened, Instance((op.file, 0, opened), group=0))
        handle = Handle(self._rank.rank, number, op.file, opened, instance=instance)
        instance.members[self._rank.rank] = handle
        self._handles[number] = handle
        self._views[number] = (0, BYTE)
        arguments = [number, op.file, op.arguments[2], 0]
        self._rank.ops.append(replace(op, arguments=arguments, handle=handle))

    def _move(self, op: Op, number: int) -> None:
        file = self._files[op.file]
        place = self._at[op.file, op.use]
        self._at[op.file, op.use] += 1
        pieces = sorted((file.written if op.use == "write" else file.read)[place][self._rank.rank])
        moved = sum(length for _, length in pieces)
        low, high = pieces[0][0], pieces[-1][0] + pieces[-1][1]
        kind = self._types.of(pieces)
        view = (0, BYTE) if kind == BYTE else (low, kind)
        if view != self._views[number]:
            self._views[number] = view
            arguments = [number, view[0], BYTE, kind, 0]
            handle = self._handles[number]
            self._rank.ops.append(
                Op("MPI_File_set_view", arguments, op.start, op.start, op.file, handle, collective=True, types=(2, 3))
            )
            self._stand_ins["views of the recorded ranks: views of bytes"] += 1
        if op.name != _DATA[op.name]:
            self._stand_ins[f"{op.name}: {_DATA[op.name]}"] += 1
        arguments = [number, low if kind == BYTE else 0, moved, BYTE]
        made = Op(_DATA[op.name], arguments, op.start, op.end, op.file, self._handles[number], op.collective, op.use)
        made.low, made.high, made.moved, made.types = low, high, moved, (3,)
        self._rank.ops.append(made)
