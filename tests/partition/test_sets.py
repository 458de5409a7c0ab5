"""Sets of partitioned files, written through ioweir.h: what is in them, by a reader that knows the format alone."""

from __future__ import annotations

import json
import os
import random
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Final

import phasta_files
import pytest
import tracing
from sets import (
    ARGUMENT,
    DAMAGED,
    EXISTS,
    FIELDS,
    NOT_FOUND,
    Program,
    check_file,
    contents,
    left_over,
    parts_of_files,
    paths,
)

if TYPE_CHECKING:
    from collections.abc import Callable

pytest_plugins = ("set_fixtures",)

BLOCK: Final = 4096
SHAPES: Final = ((1, 1, "1"), (3, 2, "2"), (4, 2, "2"), (4, 4, "1"), (5, 3, "ragged"))
"""Ranks, files, parts of a rank."""


def parts_of_rank(ranks: int, parts: str) -> list[int]:
    return [rank % 3 if parts == "ragged" else int(parts) for rank in range(ranks)]


def check_set(
    base: str, step: int, ranks: int, files: int, parts: str, directories: bool = True
) -> list[phasta_files.PhastaFile]:
    wanted = parts_of_files(parts_of_rank(ranks, parts), files)
    return [check_file(path, of) for path, of in zip(paths(base, step, files, directories), wanted, strict=True)]


@pytest.mark.one_of(6)
@pytest.mark.parametrize(("ranks", "files", "parts"), SHAPES)
@pytest.mark.parametrize("layout", ["unaligned", "aligned"])
def test_every_block_is_where_the_table_says(
    program: Program, base: str, ranks: int, files: int, parts: str, layout: str
) -> None:
    options = [f"ioweir_layout={layout}", f"ioweir_block={BLOCK}"]
    out = program(ranks, "write", base, 10, files, parts, *options).out
    check_set(base, 10, ranks, files, parts)
    assert left_over(base) == []
    padded = sum(int(line.split("padded ")[1].split()[0]) for line in out.splitlines())
    assert (padded > 0) == (layout == "aligned")
    for readers in (1, 3):
        read = program(readers, "read", base, -1).out
        assert read.count(f"of {sum(parts_of_rank(ranks, parts))}, 3 fields, 0 wrong") == readers


def test_unaligned_blocks_lie_as_phasta_writes_them(program: Program, base: str) -> None:
    """For each field and each part of a rank the blocks of the file's ranks in their order, without gaps."""
    program(4, "write", base, 3, 2, "2", "ioweir_layout=unaligned")
    for file in check_set(base, 3, 4, 2, "2"):
        at = file.header_bytes
        for blocks in file.fields.values():
            for part in range(2):
                for block in (blocks[part], blocks[2 + part]):  # ranks 0 and 1 of the file
                    assert block.offset == at
                    at += 1024 + len(block.items)


def test_aligned_ranks_write_whole_blocks(program: Program, base: str) -> None:
    out = program(3, "write", base, 3, 1, "2", "ioweir_layout=aligned", f"ioweir_block={BLOCK}").out
    file = check_set(base, 3, 3, 1, "2")[0]
    first_of_rank = [min(blocks[2 * rank].offset for blocks in file.fields.values()) for rank in range(3)]
    assert all(offset % BLOCK == 0 for offset in first_of_rank)
    assert paths(base, 3, 1)[0].stat().st_size % BLOCK == 0
    assert out.count("calls 1") == 3, "one large call each"


def test_a_small_buffer_is_emptied_in_between(program: Program, base: str) -> None:
    """And a block that is larger than the buffer is written by itself."""
    program(3, "write", base, 3, 1, "2", "ioweir_layout=aligned", f"ioweir_block={BLOCK}", "ioweir_buffer=3000")
    check_set(base, 3, 3, 1, "2")
    program(3, "write", base, 4, 1, "2", "ioweir_layout=aligned", "ioweir_block=100", "ioweir_buffer=1100")
    check_set(base, 4, 3, 1, "2")


@pytest.mark.one_of(3)
@pytest.mark.parametrize("calls", ["collective", "split", "independent", "auto"])
@pytest.mark.parametrize("directories", ["true", "false"])
def test_calls_and_places_make_no_difference(program: Program, base: str, calls: str, directories: str) -> None:
    program(3, "write", base, 7, 3, "1", f"ioweir_write={calls}", f"ioweir_directories={directories}")
    check_set(base, 7, 3, 3, "1", directories == "true")
    assert left_over(base) == []
    assert "of 3 files, parts 1 to 3 of 3, 3 fields, 0 wrong" in program(1, "read", base, 7).out


@pytest.mark.one_of(2)
@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("version", [0, 1])
def test_phastas_own_files_are_read_in_either_byte_order(program: Program, base: str, order: str, version: int) -> None:
    for number, parts in enumerate(([1, 2, 3], [4, 5, 6])):
        file = contents(parts)
        file.version = version
        if order == ">":
            for field, blocks in enumerate(file.fields.values()):
                size = 4 if field == 1 else 8
                for block in blocks:
                    block.items = b"".join(block.items[i : i + size][::-1] for i in range(0, len(block.items), size))
        phasta_files.write(Path(f"{base}-dat.20.{number + 1}"), file, order)
    for how in ("read", "together"):
        out = program(4, how, base, 20).out
        assert out.count("of 6, 3 fields, 0 wrong") == 4, out


@pytest.mark.one_of(2)
@pytest.mark.parametrize(("readers", "files"), [(1, 3), (2, 3), (4, 1), (5, 4), (7, 2)])
def test_ranks_read_together(program: Program, base: str, readers: int, files: int) -> None:
    """More and fewer readers than writers, files and parts; a rank in several files, several in one, some in none."""
    program(4, "write", base, 7, files, "ragged")  # 0 + 1 + 2 + 0 parts
    out = program(readers, "together", base, 7).out
    assert out.count("of 3, 3 fields, 0 wrong") == readers, out
    assert "read: " not in out


def test_who_asks_for_the_wrong_part_together_is_told_and_stops_nobody(program: Program, base: str) -> None:
    program(3, "write", base, 7, 2, "2")
    out = program(3, "together", base, 7, "wrong", code=None).out
    said = f"rank 2: read another's: {ARGUMENT}: ioweir: a part of another rank: 1; collective reads are of "
    assert out.count(said) == 2, out
    assert out.count("0 wrong") == 3, out


@pytest.mark.one_of(6)
@pytest.mark.parametrize("ranks", [1, 3, 5])
def test_all_calls_write_the_same_bytes(program: Program, base: str, ranks: int) -> None:
    files = 1 + ranks // 3
    written = {}
    for step, calls in enumerate(("direct", "independent", "collective", "split", "auto")):
        program(ranks, "write", base, step, files, "2", "ioweir_layout=unaligned", f"ioweir_write={calls}")
        check_set(base, step, ranks, files, "2")
        written[calls] = [path.read_bytes() for path in paths(base, step, files)]
    assert all(of_calls == written["collective"] for of_calls in written.values())


@pytest.mark.one_of(2)
@pytest.mark.parametrize("files", [1, 2])
def test_ranks_free_communicators_together(program: Program, base: str, files: int) -> None:
    """Rank 0 has no room for more of them, the others have: to keep or to free one is for all to do alike."""
    out = program(4, "apart", base, files).out
    found = [line for line in out.splitlines() if "communicators freed" in line]
    wanted = [f"set {k}: from {n} to {n} communicators freed" for k, n in enumerate((files, 2 * files, 3 * files))]
    assert found == wanted
    for step in range(3):
        check_set(base, step, 4, files, "1")


def test_a_set_that_is_there_is_not_touched_unasked(program: Program, base: str) -> None:
    program(2, "write", base, 1, 1, "1")
    before = paths(base, 1, 1)[0].read_bytes()
    out = program(2, "write", base, 1, 1, "2", code=None).out
    assert f"create: {EXISTS}: ioweir: a set of that step is there already: {base}-dat.1.d" in out
    assert paths(base, 1, 1)[0].read_bytes() == before
    program(2, "write", base, 1, 1, "2", "ioweir_replace=true")
    check_set(base, 1, 2, 1, "2")
    assert left_over(base) == []


@pytest.mark.one_of(4)
@pytest.mark.parametrize("directories", ["true", "false"])
@pytest.mark.parametrize("kill", ["0.0", "1.1", "2.3", "0.3"])
def test_the_last_complete_set_is_there_after_a_kill(program: Program, base: str, directories: str, kill: str) -> None:
    """Any rank, before any of its calls (RANK.CALL): nothing of the new set is seen, and the one before it is read."""
    options = [f"ioweir_directories={directories}", "ioweir_layout=aligned"]
    program(3, "write", base, 10, 2, "1", *options)
    program(3, "write", base, 11, 2, "1", *options, code=None, env={"IOWEIR_TEST_KILL": kill})
    assert program(2, "read", base, -1).out.count("read step 10 of 2 files") == 2
    assert f": {NOT_FOUND}: " in program(1, "read", base, 11, code=None).out
    program(3, "write", base, 10, 2, "1", *options, "ioweir_replace=true", code=None, env={"IOWEIR_TEST_KILL": kill})
    assert program(2, "read", base, 10).out.count("0 wrong") == 2


def _cut(files: list[Path]) -> None:
    with files[1].open("r+b") as file:
        file.truncate(files[1].stat().st_size - 1)


def _flip(files: list[Path]) -> None:
    data = bytearray(files[1].read_bytes())
    data[8192] ^= 1
    files[1].write_bytes(data)


def _exchange(files: list[Path]) -> None:
    other = files[0].with_suffix(".other")
    files[0].rename(other)
    files[1].rename(files[0])
    other.rename(files[1])


DAMAGES: Final[dict[str, tuple[Callable[[list[Path]], object], str]]] = {
    "missing": (lambda files: files[1].unlink(), "a file of a set is missing"),
    "cut": (_cut, "no PHASTA syncIO file: a block lies outside of it"),
    "flipped": (_flip, "a file"),
    "exchanged": (_exchange, "a file that is not the set's"),
    "empty": (lambda files: files[1].write_bytes(b""), "no PHASTA syncIO file: shorter than its header"),
    "foreign": (lambda files: files[1].write_bytes(bytes(9000)), "no PHASTA syncIO file: it does not begin"),
    "manifest": (
        lambda files: (files[0].parent.parent / "manifest").write_text("ioweir set 1\n"),
        "a damaged manifest",
    ),
    "no manifest": (lambda files: (files[0].parent.parent / "manifest").unlink(), "no set of that step"),
}


@pytest.mark.one_of(4)
@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_named(program: Program, base: str, damage: str) -> None:
    program(2, "write", base, 1, 2, "1")
    files = paths(base, 1, 2)
    change, said = DAMAGES[damage]
    change(files)
    out = program(2, "read", base, 1, code=None).out
    assert said in out, out
    assert (
        "rank 0 read" not in out or "0 wrong" in out.split("rank 0 read")[1].splitlines()[0] or damage in ("exchanged",)
    )
    if damage not in ("manifest", "no manifest", "exchanged"):
        assert str(files[1]) in out


@pytest.mark.one_of(2)
def test_a_torn_flat_set_is_refused(program: Program, base: str) -> None:
    program(2, "write", base, 1, 2, "1", "ioweir_directories=false")
    manifest = Path(f"{base}-dat.1.set")
    program(2, "write", base, 2, 2, "1", "ioweir_directories=false")
    # As a job leaves it that dies between two renames.
    text = manifest.read_text().replace("state complete", "state renaming")
    manifest.write_text(text)
    assert "a damaged manifest" in program(1, "read", base, 1, code=None).out, "its checksum is not right any more"
    assert "read step 2 of 2 files" in program(1, "read", base, -1).out


WRONG: Final = {
    "files": "a number of files that cannot be: {more}; from 1 to the number of ranks",
    "twice": "field solution is there twice",
    "null": "no set: NULL",
    "field": "no field of this set: solutoin; it was begun with: solution",
    "part": "no part of this rank: 1; 0 to 0",
    "type": "no type of items: 77",
    "again": "a block that is written already: solution, part 0",
    "missing": "a field that was not written for every part: solution, part {ranks}",
    "header": "a block without a header: solution, part 0",
}


@pytest.mark.one_of(6)
@pytest.mark.parametrize("case", WRONG)
@pytest.mark.parametrize("ranks", [1, 3])
def test_wrong_calls_say_what_is_wrong(program: Program, base: str, case: str, ranks: int) -> None:
    """On the rank that made them, and on all others when the set is closed, which then is not there."""
    out = program(ranks, "wrong", base, case, code=None).out
    said = WRONG[case].format(more=ranks + 1, ranks=ranks)
    assert f": {ARGUMENT}: ioweir: " in out
    assert said in out, out
    if case not in ("files", "twice", "null"):
        assert out.count("close: ") == ranks, out
        if ranks > 1 and case != "header":
            assert f"rank 0: close: {ARGUMENT}: ioweir: rank {ranks - 1}: " in out
    assert list(Path(base).parent.iterdir()) == []


def test_an_abandoned_set_leaves_nothing(program: Program, base: str) -> None:
    program(3, "wrong", base, "abandon")
    assert list(Path(base).parent.iterdir()) == []


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("ioweir_layuot=aligned", "an unknown key in MPI_Info: ioweir_layuot; did you mean 'ioweir_layout'?"),
        ("ioweir_layout=align", "a value of ioweir_layout that is none: align; it is one of unaligned, aligned, auto"),
        ("ioweir_block=0", "a value of ioweir_block that is none: 0; a number of bytes, 1 or more"),
        ("ioweir_block=4M", "a value of ioweir_block that is none: 4M"),
    ],
)
def test_options_that_are_none_are_named(program: Program, base: str, option: str, said: str) -> None:
    out = program(2, "write", base, 1, 1, "1", option, code=None).out
    assert out.count(f"create: {ARGUMENT}: ioweir: ") == 2
    assert said in out


def test_a_directory_that_is_not_there_is_an_error_on_all_ranks(program: Program, base: str) -> None:
    shutil.rmtree(Path(base).parent)
    out = program(3, "write", base, 1, 2, "1", code=None).out
    assert out.count("create: ") == 3
    assert out.count(Path(base).parent.name) >= 3


def ioweir(*words: str, code: int = 0) -> str:
    return tracing.run([*tracing.IOWEIR, *words]).expect(code).out


@pytest.mark.one_of(2)
@pytest.mark.parametrize("directories", ["true", "false"])
def test_ls_and_check_know_sets(program: Program, base: str, directories: str) -> None:
    program(3, "write", base, 5, 2, "2", f"ioweir_directories={directories}")
    files = paths(base, 5, 2, directories == "true")
    out = ioweir("ls", str(files[0]))
    assert "step 5, 6 parts in 2 files, " in out
    assert "written by 3 ranks\n  fields: solution, number of nodes, solution errors\n" in out
    assert f"  {files[1]}: 2 parts, " in out
    for path in files:
        assert ": whole, " in ioweir("check", str(path))
    row = json.loads(ioweir("ls", "--json", str(files[0])))[0]
    assert (row["step"], row["parts"], row["file_parts"], row["problems"]) == (5, 6, [4, 2], [])
    _cut(files)
    out = ioweir("check", str(files[0]), code=1)
    assert "NOT whole\n  no PHASTA syncIO file: a block lies outside of it: " + str(files[1]) in out


def test_hostile_files_are_errors(program: Program, base: str) -> None:
    """Any byte of a header changed: the same contents or an error, and no crash."""
    phasta_files.write(Path(f"{base}-dat.1.1"), contents([1, 2]))
    good = Path(f"{base}-dat.1.1").read_bytes()
    generator = random.Random(20261122)
    data = bytearray(good)
    table = 8192
    first = int.from_bytes(good[table : table + 8], "little")
    for case in range(30):
        path = Path(f"{base}-dat.{case + 2}.1")
        data[:] = good
        for _ in range(generator.randint(1, 4)):
            at = generator.choice(
                [0, 13, 64, 96, 105, 128, 256, 384, 512, 640, table, table + 8, first]
            ) + generator.randint(0, 24)
            data[at] = generator.choice([0, 10, 32, 45, 48, 57, 58, 62, 127, 255])
        path.write_bytes(data)
    for case in range(0, 30, 1 if os.environ.get("IOWEIR_TEST_ALL") else 10):
        out = program(1, "read", base, case + 2, code=None)
        assert out.code in (0, 1, NOT_FOUND, DAMAGED), f"{out.code} {out.out} {out.err}"
        assert out.code == 0 or "ioweir: " in out.out or "wrong" in out.out
    assert len(FIELDS) == 3
