"""What the tests of ioweir.h share: the program that writes sets, and what must be in them by its formulas."""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final

import phasta_files
import tracing
from ioweir.programs import linking
from phasta_files import Block, PhastaFile
from tracing import Finished, Mpi

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FIELDS: Final = ("solution", "number of nodes", "solution errors")
SOURCES: Final = [Path(__file__).parent / "programs" / name for name in ("sets.c", "storage_calls.c")]
ARGUMENT, IO, NO_SPACE, NOT_FOUND, DAMAGED, EXISTS, MEMORY = 1, 2, 3, 4, 5, 6, 7


@dataclass(frozen=True)
class Program:
    """sets.c, built with one MPI library."""

    mpi: Mpi
    path: Path

    def __call__(
        self, ranks: int, *words: str | int, code: int | None = 0, env: Mapping[str, str] | None = None
    ) -> Finished:
        """Runs it; `code` None: any."""
        finished = tracing.run(self.mpi.launch(ranks, self.path, *map(str, words)), env=env)
        return finished if code is None else finished.expect(code)


@cache
def built(mpi: Mpi) -> Program:
    """The program, linked as `ioweir env --partition` says.

    IOWEIR_TEST_SANITIZE: as for -fsanitize; the program then has none of storage_calls.c, whose malloc() would be ours.
    """
    sanitizers = os.environ.get("IOWEIR_TEST_SANITIZE", "")
    target = tracing.BUILD / f"sets-{mpi.name}{'-' if sanitizers else ''}{sanitizers}"
    sources = SOURCES[:1] if sanitizers else SOURCES
    more = [f"-fsanitize={sanitizers}"] if sanitizers else []
    tracing.BUILD.mkdir(parents=True, exist_ok=True)
    tracing.run(
        [mpi.cc, "-g", "-Wall", "-Wextra", "-Werror", "-std=c99", "-D_POSIX_C_SOURCE=200809L", "-o", target, *sources,
         *linking.partition_flags(mpi.name), "-ldl", *more]
    ).expect()  # fmt: skip
    return Program(mpi, target)


def items(field: int, part: int) -> bytes:
    """Of part `part` (from 1), as sets.c fills them."""
    if field == 0:
        return b"".join(struct.pack("<d", 1000.0 * part + 0.5 * i) for i in range(40 + 7 * (part % 5)))
    if field == 1:
        return b"".join(struct.pack("<i", 100000 * part + i) for i in range(3 * (part % 4)))
    return b""


def parameters(field: int, part: int) -> list[int]:
    """Of that block."""
    return [len(items(field, part)) // (4 if field == 1 else 8), part, -7]


def contents(parts: Sequence[int]) -> PhastaFile:
    """A file with these parts."""
    fields = {
        name: [Block(part, parameters(field, part), items(field, part)) for part in parts]
        for field, name in enumerate(FIELDS)
    }
    return PhastaFile(fields, len(parts))


def check_file(path: Path, parts: Sequence[int]) -> PhastaFile:
    """By the independent reader: these parts with their bytes, and no two blocks over each other."""
    file = phasta_files.read(path)
    assert list(file.fields) == list(FIELDS)
    assert file.parts == len(parts)
    for name, wanted in contents(parts).fields.items():
        found = file.fields[name]
        assert [(b.part, b.parameters, b.items) for b in found] == [(b.part, b.parameters, b.items) for b in wanted]
    spans = sorted((b.offset, b.offset + 1024 + len(b.items)) for blocks in file.fields.values() for b in blocks)
    assert all(span[0] >= file.header_bytes for span in spans)
    assert all(first[1] <= second[0] for first, second in pairwise(spans))
    return file


def level(total: int, owners: int) -> list[int]:
    """`total` dealt over `owners`, as level as can be, the first ones with one more."""
    return [total // owners + (1 if i < total % owners else 0) for i in range(owners)]


def parts_of_files(parts_of_rank: Sequence[int], files: int) -> list[list[int]]:
    """Which parts (from 1) each file has."""
    result, rank, part = [], 0, 1
    for ranks in level(len(parts_of_rank), files):
        count = sum(parts_of_rank[rank : rank + ranks])
        result.append(list(range(part, part + count)))
        rank += ranks
        part += count
    return result


def paths(base: str, step: int, files: int, directories: bool = True) -> list[Path]:
    """Where a set's files are."""
    stem = f"{base}-dat.{step}"
    if not directories:
        return [Path(f"{stem}.{k}") for k in range(1, files + 1)]
    return [Path(f"{stem}.d/{k}/{Path(stem).name}.{k}") for k in range(1, files + 1)]


def left_over(base: str) -> list[str]:
    """Hidden names beside the sets."""
    return [entry.name for entry in Path(base).parent.iterdir() if entry.name.startswith(".")]
