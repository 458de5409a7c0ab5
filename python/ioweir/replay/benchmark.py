"""`ioweir make-benchmark`: a C program with a trace's I/O, without its names: calls as loops, ranks by formula.

Lives here: from calls to loops, and from the ranks' loops to one program for all of them, or for each kind of rank.
Not here: the C that calls stand for (benchmark_c.py), finding loops (fold.py).
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ioweir.base import units
from ioweir.base.new_folder import whole_folder
from ioweir.errors import IoweirError
from ioweir.replay import benchmark_c, fold, from_trace
from ioweir.replay.datatypes import BYTE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ioweir.replay.fold import Call, Node
    from ioweir.replay.model import Op, RankCalls, Recorded

MOST_CALLS: Final = 2_000_000
_LISTED: Final = {"indexed": 2, "hindexed": 2, "indexed_block": 1, "hindexed_block": 1, "structure": 2}
"""Constructors with lists of values: how many."""


@dataclass(frozen=True)
class Kind:
    """Ranks that do the same but for numbers, and what each of them does."""

    ranks: list[int]
    programs: list[list[Node]]


def make(trace: Path, output: Path) -> dict[str, Any]:
    """Writes benchmark.c, Makefile and README.md."""
    recorded = from_trace.read(trace)
    if recorded.calls() > MOST_CALLS:
        raise IoweirError(f"{trace}: {recorded.calls():,} calls; make-benchmark takes {MOST_CALLS:,} at most")
    _refuse_what_has_no_c(recorded)
    kinds = kinds_of(recorded)
    program = benchmark_c.Program(recorded, kinds)
    text = program.text()
    readme = program.readme(text)
    files = {"benchmark.c": text, "Makefile": benchmark_c.MAKEFILE, "README.md": readme}
    with whole_folder(output, tuple(files)) as folder:
        for name, content in files.items():
            folder.write(name, content)
    return {
        "output": str(output),
        "ranks": len(recorded.ranks),
        "calls": recorded.calls(),
        "lines": len(text.splitlines()),
        "kinds": [kind.ranks for kind in kinds],
        "tables": program.tables,
        "left_out": [{"what": what, "calls": calls} for what, calls in recorded.left_out.most_common()],
        "stand_ins": [{"what": what, "calls": calls} for what, calls in recorded.stand_ins.most_common()],
        "inputs": {"files": len(recorded.inputs), "bytes": recorded.found_bytes()},
    }


def kinds_of(recorded: Recorded) -> list[Kind]:
    """Ranks by the shape of their loops."""
    kinds: dict[object, Kind] = {}
    for rank in recorded.ranks:
        program = fold.folded(calls_of(recorded, rank))
        shape = tuple(node.shape() for node in program)
        kind = kinds.setdefault(shape, Kind([], []))
        kind.ranks.append(rank.rank)
        kind.programs.append(program)
    return list(kinds.values())


def calls_of(recorded: Recorded, rank: RankCalls) -> list[Call]:
    """What a rank does, the making of its datatypes first."""
    types = recorded.types_of(rank)
    calls = [_type_call(recorded, number, types) for number in types]
    viewed: set[int] = set()
    for number, op in enumerate(rank.ops):
        calls += _signals("after", rank.after.get(number, ()), rank.rank, len(recorded.ranks))
        calls.append(_call(op, types, viewed))
        calls += _signals("before", rank.before.get(number, ()), rank.rank, len(recorded.ranks))
    return calls


def _signals(name: str, tagged: Sequence[tuple[int, int]], rank: int, ranks: int) -> list[Call]:
    """From or to other ranks."""
    others = sorted(other for other, _ in tagged)
    if len(others) > 1 and others == [other for other in range(ranks) if other != rank]:
        return [fold.call(f"{name} all", [])]
    return [fold.call(name, [len(others)], [others])] if others else []


def _type_call(recorded: Recorded, number: int, types: dict[int, int]) -> Call:
    if number == BYTE:
        return fold.call("type named MPI_BYTE", [types[number], 1])
    kind = recorded.datatypes[number]
    if kind.constructor == "named":
        name = kind.name if kind.name in benchmark_c.NAMED else "MPI_BYTE"
        count = 1 if name == kind.name else kind.size
        return fold.call(f"type named {name}", [types[number], count])
    old = [types[inner] for inner in kind.types]
    values = list(kind.values)
    lists = _LISTED.get(kind.constructor, 0)
    name = f"type {kind.constructor}"
    if not lists:
        return fold.call(f"{name} {len(values)}", [types[number], *old, *values])
    count = values[0]
    scalars = values[1 : len(values) - lists * count]
    parts = [values[len(values) - (lists - at) * count :][:count] for at in range(lists)]
    if kind.constructor == "structure":
        return fold.call(name, [types[number], count], [*parts, old])
    return fold.call(name, [types[number], old[0], count, *scalars], parts)


def _call(op: Op, types: dict[int, int], viewed: set[int]) -> Call:
    numbers = list(op.arguments)
    for place in op.types:
        numbers[place] = types[numbers[place]]
    name = op.name
    if name == "MPI_File_open":
        viewed.discard(numbers[0])
    elif name == "MPI_File_set_view":
        viewed.add(numbers[0])
    elif op.handle is not None and numbers[0] not in viewed and name in benchmark_c.PLACED:
        name += " bytes"  # the place is in bytes, which the program's factor multiplies
    if name in ("MPI_Wait", "MPI_Waitall", "MPI_Test"):
        return fold.call(name, [len(numbers)], [numbers])
    return fold.call(name, numbers)


def _refuse_what_has_no_c(recorded: Recorded) -> None:
    unknown = sorted({op.name for rank in recorded.ranks for op in rank.ops} - benchmark_c.KNOWN)
    if unknown:
        raise IoweirError(
            f"make-benchmark cannot write {', '.join(unknown)} as C yet; `ioweir replay` makes these calls"
        )


def to_text(result: dict[str, Any]) -> list[str]:
    """For a person."""
    where = shlex.quote(result["output"])
    lines = [
        f"{result['output']}/benchmark.c: {result['lines']} lines, "
        f"{result['calls']} {units.plural('call', result['calls'])} of "
        f"{result['ranks']} {units.plural('rank', result['ranks'])}",
        f"  kinds of ranks: {len(result['kinds'])}; numbers that follow no formula stand in {result['tables']} tables",
    ]
    for title, rows in (("left out", result["left_out"]), ("in the place of others", result["stand_ins"])):
        if rows:
            lines.append(f"  {title}:")
            lines += [f"    {row['calls']:>8}  {row['what']}" for row in rows]
    return [
        *lines,
        f"  make -C {where} && mpiexec -n {result['ranks']} {where}/benchmark -d WHERE",
    ]


def same(recorded: Recorded, kinds: Sequence[Kind]) -> bool:
    """Whether the loops give every call back."""
    for kind in kinds:
        for rank, program in zip(kind.ranks, kind.programs, strict=True):
            calls = calls_of(recorded, recorded.ranks[rank])
            if fold.unfolded(program) != fold.unfolded(calls):
                return False
    return True
