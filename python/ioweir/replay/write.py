"""Scripts of a replay as text (docs/reference/replay-script.md), and the files that the program found."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from ioweir.errors import IoweirError
from ioweir.replay.datatypes import BYTE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ioweir.base.guarded_files import Folder
    from ioweir.replay.model import RankCalls, Recorded

VERSION: Final = 1
_BLOCK: Final = 1 << 20


def script_name(rank: int | str) -> str:
    """Of the script of a rank; of `*` a pattern."""
    return f"{rank}.replay"


def write_scripts(recorded: Recorded, folder: Folder, seed: int) -> None:
    """One file a rank."""
    for rank in recorded.ranks:
        with folder.replacing(script_name(rank.rank)) as file:
            file.writelines(os.fsencode(f"{line}\n") for line in lines(recorded, rank, seed))


def lines(recorded: Recorded, rank: RankCalls, seed: int) -> Iterator[str]:
    """What a rank does."""
    yield f"ioweir-replay {VERSION}"
    yield f"rank {len(recorded.ranks)} {rank.rank}"
    yield f"seed {seed}"
    yield f"numbers {rank.handles} {rank.descriptors} {rank.streams} {rank.requests}"
    yield from (f"file {name}" for name in recorded.names)
    types = recorded.types_of(rank, frozenset({BYTE}))
    yield from _type_lines(recorded, types)
    mine = [number for number, group in enumerate(recorded.groups) if rank.rank in group]
    for number in mine:
        yield f"group {number} {' '.join(map(str, recorded.groups[number]))}"
    groups = {number: place for place, number in enumerate(mine)}
    begun = min((other.ops[0].start for other in recorded.ranks if other.ops), default=0)
    met = 0
    for number, op in enumerate(rank.ops):
        yield from (f"after {other} {tag}" for other, tag in rank.after.get(number, ()))
        if op.start > begun:
            yield f"think {op.start - begun}"
        # Behind the time between calls, for what a rank waited at a meeting is in that time.
        while met < len(recorded.meetings) and recorded.meetings[met] <= op.start:
            met += 1
            yield "MPI_Barrier"
        begun = max(begun, op.end)
        arguments = list(op.arguments)
        for place in op.types:
            arguments[place] = types[arguments[place]]
        if op.name == "MPI_File_open":
            arguments[3] = groups[arguments[3]]
        yield f"{op.name} {' '.join(map(str, arguments))}"
        yield from (f"before {other} {tag}" for other, tag in rank.before.get(number, ()))
    yield from ["MPI_Barrier"] * (len(recorded.meetings) - met)


def _type_lines(recorded: Recorded, types: dict[int, int]) -> Iterator[str]:
    for number in types:
        if number == BYTE:
            yield "type named MPI_BYTE 1 0 0"
            continue
        kind = recorded.datatypes[number]
        name = kind.name if kind.name.isidentifier() else "-"
        words = [kind.constructor, name, kind.size, len(kind.types), *(types[inner] for inner in kind.types)]
        yield f"type {' '.join(map(str, [*words, len(kind.values), *kind.values]))}"


def make_files(recorded: Recorded, folder: Folder, seed: int) -> int:
    """The folders of all files, and the files that the program found; returns their bytes."""
    total = recorded.found_bytes()
    free = shutil.disk_usage(folder.path).free
    if total > free:
        raise IoweirError(
            f"the program read {total:,} bytes of files that it found, and {folder.path} has {free:,} bytes free; name "
            "another --directory"
        )
    if total + recorded.stored_bytes > free:
        raise IoweirError(
            f"the replay needs {total + recorded.stored_bytes:,} bytes for its files, and {folder.path} has {free:,} "
            "bytes free; name another --directory"
        )
    made: set[PurePosixPath] = set()
    for name in recorded.names:
        for parent in reversed(PurePosixPath(name).parents):
            if parent not in made and parent.name:
                with folder.below(parent.parent.parts) as above:
                    above.make_folder(parent.name).close()
                made.add(parent)
    source = random.Random(seed)
    for file, size in recorded.inputs.items():
        place = PurePosixPath(recorded.names[file])
        with folder.below(place.parent.parts) as here:
            descriptor = here.create(place.name)
        with os.fdopen(descriptor, "wb") as output:
            for low, high in recorded.found_parts.get(file, ()):
                output.seek(low)
                for at in range(low, high, _BLOCK):
                    output.write(source.randbytes(min(high - at, _BLOCK)))
            output.truncate(size)
    return total
