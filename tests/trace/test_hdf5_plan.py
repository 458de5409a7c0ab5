"""Unmodified parallel HDF5 programs under plans with `hdf5`: what each key changes, and that nothing else does.

The program checks what it reads; h5diff compares every file with that of a run under the same rule without `hdf5`; h5py
says what the file is like, and the trace which requests it took. Refusals are said once, with the reason.
Not here: reading the table (src/policy/plan_file_hdf5_test.cpp), `ioweir check` (tests/python/test_hdf5_file.py).
"""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Final

import pytest
from test_library_programs import PYTHON, fortran_program, hdf5_program
from tracing import IOWEIR, MPIS, OPEN_MPI, PROGRAMS, Mpi, Traced, ioweir_run, run

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tracing import Event

PIECE: Final = 64 * 64 * 8
"""Bytes that each rank writes to each dataset."""
ALL: Final = os.environ.get("IOWEIR_TEST_ALL") == "1"
RANKS: Final = (1, 3, 5) if ALL else (3,)
by_mpi = pytest.mark.parametrize("mpi", MPIS, ids=lambda mpi: mpi.name)
by_ranks = pytest.mark.parametrize("ranks", RANKS)


@dataclass(frozen=True)
class Run:
    """A program's run under a plan, and its file."""

    traced: Traced
    path: Path

    @cached_property
    def description(self) -> dict[str, Any]:
        """What h5py says of the file."""
        described = json.loads(run([PYTHON, PROGRAMS / "hdf5_describe.py", self.path]).expect().out)
        assert isinstance(described, dict)
        return described

    @property
    def sets(self) -> dict[str, Any]:
        """Its datasets."""
        sets = self.description["sets"]
        assert isinstance(sets, dict)
        assert sets
        return sets

    def events(self, layer: str, *operations: str) -> list[Event]:
        return [event for event in self.traced.trace.of(self.path) if event.layer == layer and event.op in operations]

    def around(self, event: Event) -> list[str]:
        """The calls around an event, the innermost first."""
        names = []
        parent = self.traced.trace.parent_of(event)
        while parent is not None:
            names.append(parent.name)
            parent = self.traced.trace.parent_of(parent)
        return names

    def written_in(self, name: str) -> list[Event]:
        """Storage writes inside of an HDF5 function."""
        return [event for event in self.events("POSIX", "write") if name in self.around(event)]

    def written_outside(self, *names: str) -> list[Event]:
        """Storage writes inside of other HDF5 functions."""
        return [e for e in self.events("POSIX", "write") if not set(names) & set(self.around(e))]

    def calls_in_writes(self) -> set[str]:
        """What H5Dwrite calls of MPI-IO to write."""
        return {e.name for e in self.events("MPI-IO", "write") if "H5Dwrite" in self.around(e)}

    def notes(self) -> list[str]:
        return [note["text"] for note in self.traced.trace.notes if note["text"].startswith("hdf5:")]


def run_with(
    mpi: Mpi,
    ranks: int,
    folder: Path,
    table: str | None,
    *words: str,
    code: int | None = 0,
    keep: bool = False,
    source: str = "hdf5_plan.c",
    flags: Sequence[str] = (),
) -> Run:
    """Run programs/hdf5_plan.c, or another, under a rule with this table, or with none."""
    folder.mkdir(exist_ok=keep)
    plan = folder / "plan.toml"
    rule = '[[file]]\nmatch = "*.h5*"\n'
    plan.write_text(rule + ("" if table is None else f"hdf5 = {{ {table} }}\n"))
    program = hdf5_program(source, mpi.name, mpi.cc, *flags)
    number = len(list(folder.glob("trace*")))
    command = mpi.launch(ranks, program, folder / "file.h5", *words)
    return Run(ioweir_run(folder / f"trace{number}", command, options=["--plan", plan], code=code), folder / "file.h5")


@cache
def run_without(mpi: Mpi, ranks: int, place: Path, *words: str) -> Run:
    """A run without the table, whose file nobody changes: one for all tests that compare with it."""
    return run_with(mpi, ranks, place / "-".join(["without", mpi.name, str(ranks), *words]), None, *words)


def same_content(one: Path, other: Path) -> None:
    """Two files hold the same objects with the same values."""
    subprocess.run(["h5diff", one, other], check=True, timeout=60)
    listed = [
        subprocess.run(["h5ls", "-r", path], check=True, capture_output=True, text=True, timeout=60).stdout
        for path in (one, other)
    ]
    assert listed[0] == listed[1]
    assert listed[0].count("Dataset") > 0


def both(mpi: Mpi, ranks: int, tmp_path: Path, table: str, *words: str) -> tuple[Run, Run]:
    """A run without and one with the table: the same content, and a file that a run without ioweir can read."""
    without = run_without(mpi, ranks, tmp_path.parent, *words)
    planned = run_with(mpi, ranks, tmp_path / "planned", table, *words)
    assert planned.traced.out.count("done") == ranks
    same_content(without.path, planned.path)
    program = hdf5_program("hdf5_plan.c", mpi.name, mpi.cc)
    run(mpi.launch(ranks, program, planned.path, *words, "read")).expect()
    assert planned.traced.trace.is_whole()
    assert not without.notes()
    return without, planned


# ------------------------------------------------------------------------------------------------------------ each key


@by_mpi
@by_ranks
def test_datasets_begin_at_multiples_of_the_alignment(tmp_path: Path, mpi: Mpi, ranks: int) -> None:
    without, planned = both(mpi, ranks, tmp_path, 'alignment = "64 KiB", threshold = 4096')
    assert any(about["offset"] % 65536 for about in without.sets.values())
    assert [about["offset"] % 65536 for about in planned.sets.values()] == [0, 0, 0]
    assert "hdf5: applied: alignment 64 KiB from 4 KiB" in planned.notes()


@by_mpi
def test_alignment_follows_the_stripes_of_the_plan(tmp_path: Path, mpi: Mpi) -> None:
    folder = tmp_path / "striped"
    folder.mkdir()
    plan = folder / "plan.toml"
    plan.write_text('[[file]]\nmatch = "*.h5"\nstripe = { size = 24576 }\nhdf5 = { alignment = "auto" }\n')
    program = hdf5_program("hdf5_plan.c", mpi.name, mpi.cc)
    traced = ioweir_run(folder / "trace", mpi.launch(3, program, folder / "file.h5"), options=["--plan", plan])
    assert [about["offset"] % 24576 for about in Run(traced, folder / "file.h5").sets.values()] == [0, 0, 0]


@by_mpi
def test_alignment_without_stripes_is_a_block_of_the_file_system(tmp_path: Path, mpi: Mpi) -> None:
    _, planned = both(mpi, 3, tmp_path, 'alignment = "auto"')
    block = max(4096, os.statvfs(tmp_path).f_bsize)
    assert [about["offset"] % block for about in planned.sets.values()] == [0, 0, 0]


METADATA: Final = ("steps=2500", "every=1250")
"""More than HDF5's metadata cache takes before it writes some (2 MiB), and few data."""


@pytest.mark.one_of(2)
@by_mpi
@by_ranks
@pytest.mark.parametrize("hold", ['"all"', '"64 MiB"'])
def test_metadata_wait_for_the_close(tmp_path: Path, mpi: Mpi, ranks: int, hold: str) -> None:
    without, planned = both(mpi, ranks, tmp_path, f"hold_metadata = {hold}", *METADATA)
    assert without.written_outside("H5Dwrite", "H5Fclose"), "the program makes too little metadata to show anything"
    assert not planned.written_outside("H5Dwrite", "H5Fclose")
    assert len(planned.written_in("H5Fclose")) > 0
    assert sum("ioweir check tells" in note for note in planned.notes()) == 1
    assert not (planned.path.parent / "file.h5.ioweir-held").exists()


@by_mpi
def test_metadata_stay_within_the_bound(tmp_path: Path, mpi: Mpi) -> None:
    _, planned = both(mpi, 3, tmp_path, 'hold_metadata = "256 KiB"', *METADATA)
    assert planned.written_outside("H5Dwrite", "H5Fclose")
    # Of the 2500 groups the cache has far more than the bound, unless it writes and forgets some.
    (held,) = [note for note in planned.notes() if note.startswith("hdf5: metadata in memory at close: ")]
    amount, unit = held.split(": ")[2].split()[:2]
    assert float(amount) * {"B": 1, "KiB": 1024}[unit] <= 256 * 1024, held


@by_mpi
def test_metadata_held_are_written_by_each_flush(tmp_path: Path, mpi: Mpi) -> None:
    _, planned = both(mpi, 3, tmp_path, 'hold_metadata = "all"', "steps=40", "flush")
    assert planned.written_in("H5Fflush")
    assert not planned.written_outside("H5Dwrite", "H5Fclose", "H5Fflush")


@pytest.mark.one_of(2)
@by_mpi
@pytest.mark.parametrize("ranks", [3, 5])
def test_metadata_are_written_together_in_few_blocks(tmp_path: Path, mpi: Mpi, ranks: int) -> None:
    table = 'hold_metadata = "all", collective_metadata = "writes", metadata_block = "1 MiB"'
    without, planned = both(mpi, ranks, tmp_path, table, *METADATA)
    before = len(without.events("POSIX", "write"))
    after = len(planned.events("POSIX", "write"))
    assert after * 10 < before, (before, after)
    in_close = {e.name for e in planned.events("MPI-IO", "write") if "H5Fclose" in planned.around(e)}
    assert any("_all" in name for name in in_close), in_close


@by_mpi
def test_a_file_that_is_only_read_is_left_alone(tmp_path: Path, mpi: Mpi) -> None:
    run_with(mpi, 3, tmp_path / "file", None)
    read = run_with(mpi, 3, tmp_path / "file", 'collective_metadata = "all", hold_metadata = "all"', "read", keep=True)
    assert read.notes()[0] == "hdf5: opened for reading only: what is for writing does not apply"
    assert read.notes()[1] == "hdf5: applied: collective metadata reads"
    assert not (read.path.parent / "file.h5.ioweir-held").exists()


@by_mpi
@by_ranks
def test_fill_values_are_not_written(tmp_path: Path, mpi: Mpi, ranks: int) -> None:
    without, planned = both(mpi, ranks, tmp_path, 'fill = "never"', "fill")
    filled = [sum(event.bytes for event in one.written_in("H5Dcreate2")) for one in (without, planned)]
    assert filled == [3 * ranks * PIECE, 0]
    assert {about["fill_time"] for about in planned.sets.values()} == {1}


@by_mpi
@by_ranks
def test_chunks_of_the_plan(tmp_path: Path, mpi: Mpi, ranks: int) -> None:
    table = 'chunks = { "*" = [7, 7], "dat*" = [64, 32] }'
    _, planned = both(mpi, ranks, tmp_path, table, "blocks", "collective")
    assert {tuple(about["chunks"]) for about in planned.sets.values()} == {(64, 32)}


@pytest.mark.one_of(8)
@by_mpi
@pytest.mark.parametrize("ranks", [3, 5])
@pytest.mark.parametrize(
    "words", [("blocks",), ("blocks", "collective"), ("collective",), ("blocks", "uneven")], ids="-".join
)
def test_chunks_are_learned_from_the_first_write(tmp_path: Path, mpi: Mpi, ranks: int, words: tuple[str, ...]) -> None:
    without, planned = both(mpi, ranks, tmp_path, 'chunks = "learn", alignment = 4096, threshold = 1', *words)
    sets = planned.sets
    assert {about["chunks"] for about in without.sets.values()} == {None}
    assert sets["step0/data"]["chunks"] is None, "nobody has written anything yet"
    for step in (1, 2):
        about = sets[f"step{step}/data"]
        assert about["chunks"] == [64, 64]
        assert len(about["offset"]) == ranks
        assert not any(offset % 4096 for offset in about["offset"])
    assert 'hdf5: learned: chunks = { "data" = [64, 64] }' in planned.notes()
    # Each rank's part of a chunked dataset lies in one piece: one request.
    of_step = [e for e in planned.written_in("H5Dwrite") if e.offset in set(sets["step1/data"]["offset"])]
    if "uneven" not in words:
        assert [event.bytes for event in of_step] == [PIECE] * ranks


@pytest.mark.one_of(3)
@by_mpi
@pytest.mark.parametrize("table", ['chunks = "learn"', 'chunks = { "data" = [64, 64] }'], ids=["learned", "given"])
@pytest.mark.parametrize("words", [("partly", "leave"), ("partly", "leave", "fill")], ids="-".join)
def test_chunks_are_filled_where_the_program_has_a_value_only(
    tmp_path: Path, mpi: Mpi, table: str, words: tuple[str, ...]
) -> None:
    """A contiguous dataset without a fill value is not filled, so that chunks in its place need not be, either."""
    words = ("blocks", "collective", "steps=5", *words)
    without, planned = both(mpi, 3, tmp_path, table, *words)
    filled, written = (
        [sum(event.bytes for event in one.written_in(name)) for one in (without, planned)]
        for name in ("H5Dcreate2", "H5Dwrite")
    )
    assert [about["chunks"] for about in planned.sets.values()][2:] == [[64, 64]] * 3
    assert filled == ([5 * 3 * PIECE] * 2 if "fill" in words else [0, 0])
    assert written[1] <= written[0] + 4096


@by_mpi
def test_chunks_learned_in_one_file_hold_for_the_next(tmp_path: Path, mpi: Mpi) -> None:
    _, planned = both(mpi, 3, tmp_path, 'chunks = "learn"', "blocks", "twice")
    assert {tuple(about["chunks"]) for about in planned.sets.values()} == {(64, 64)}


@by_mpi
def test_what_was_learned_can_be_put_into_the_plan(tmp_path: Path, mpi: Mpi) -> None:
    learned = run_with(mpi, 3, tmp_path / "learned", 'chunks = "learn"', "blocks")
    (line,) = [note for note in learned.notes() if "learned: " in note]
    _, planned = both(mpi, 3, tmp_path, line.split("learned: ")[1], "blocks")
    assert {tuple(about["chunks"]) for about in planned.sets.values()} == {(64, 64)}


@pytest.mark.one_of(3)
@by_mpi
@pytest.mark.parametrize(
    "words", [("scattered",), ("blocks", "uneven", "grow"), ("blocks", "filter", "collective")], ids="-".join
)
def test_nothing_is_learned_where_ranks_write_no_chunks(tmp_path: Path, mpi: Mpi, words: tuple[str, ...]) -> None:
    without, planned = both(mpi, 3, tmp_path, 'chunks = "learn"', *words)
    layouts = [{name: about["chunks"] for name, about in one.sets.items()} for one in (without, planned)]
    assert layouts[0] == layouts[1]
    reason = "ranks write scattered elements" if words == ("scattered",) else "the program has given it chunks"
    assert f"hdf5: no chunks for data: {reason}" in planned.notes()


@pytest.mark.one_of(2)
@by_mpi
@pytest.mark.parametrize(("asked", "k"), [("100", 100), ('"auto"', 32)])
def test_nodes_of_the_chunk_index(tmp_path: Path, mpi: Mpi, asked: str, k: int) -> None:
    _, planned = both(mpi, 3, tmp_path, f"istore_k = {asked}, chunks = [64, 64]", "blocks")
    superblock = planned.path.read_bytes()[:26]
    assert superblock[8] == (1 if k != 32 else 0)
    if k != 32:
        assert int.from_bytes(superblock[24:26], "little") == k


@by_mpi
def test_nodes_hold_the_chunks_that_were_seen(tmp_path: Path, mpi: Mpi) -> None:
    _, planned = both(mpi, 5, tmp_path, 'istore_k = "auto", chunks = [64, 4]', "blocks", "twice")
    superblock = planned.path.read_bytes()[:26]
    assert (superblock[8], int.from_bytes(superblock[24:26], "little")) == (1, 40)


@by_mpi
def test_formats_and_pages(tmp_path: Path, mpi: Mpi) -> None:
    without, planned = both(mpi, 3, tmp_path, 'libver = "v110", page = 8192')
    assert without.description["superblock"] == 0
    assert {key: planned.description[key] for key in ("superblock", "page", "strategy")} == {
        "superblock": 3, "page": 8192, "strategy": 1,
    }  # fmt: skip


@pytest.mark.one_of(3)
@by_mpi
@pytest.mark.parametrize("table", ['libver = "v110"', "page = 8192", 'libver = "v110", page = 8192'])
def test_formats_that_the_program_does_not_allow_stay_out(tmp_path: Path, mpi: Mpi, table: str) -> None:
    # MED bounds the formats so, and opens no file that has newer ones: `both` reads it under the bound, without ioweir.
    _, planned = both(mpi, 3, tmp_path, table, "bound")
    assert planned.description["strategy"] == 0
    for key in ("libver", "page"):
        said = f"hdf5: {key}: the program allows no formats newer than v18 (H5Pset_libver_bounds)"
        assert planned.notes().count(said) == (1 if key in table else 0)


@by_mpi
@by_ranks
def test_transfers_without_a_collective_call(tmp_path: Path, mpi: Mpi, ranks: int) -> None:
    without, planned = both(mpi, ranks, tmp_path, 'transfer = "independent"', "collective")
    assert all("_all" in name for name in without.calls_in_writes())
    assert planned.calls_in_writes() == {"MPI_File_write_at"}


@by_mpi
@by_ranks
def test_transfers_made_collective(tmp_path: Path, mpi: Mpi, ranks: int) -> None:
    without, planned = both(mpi, ranks, tmp_path, 'transfer = "collective"', "blocks")
    assert without.calls_in_writes() == {"MPI_File_write_at"}
    assert all("_all" in name for name in planned.calls_in_writes())
    if ranks > 1:
        assert len(planned.events("MPI-IO", "write")) < len(without.events("MPI-IO", "write"))


@pytest.mark.one_of(3)
@by_mpi
@pytest.mark.parametrize(("words", "alone"), [((), True), (("blocks",), False), (("scattered",), False)])
def test_transfers_are_independent_where_that_costs_no_request(
    tmp_path: Path, mpi: Mpi, words: tuple[str, ...], alone: bool
) -> None:
    _, planned = both(mpi, 3, tmp_path, 'transfer = "auto"', "collective", *words)
    assert all(("_all" not in name) == alone for name in planned.calls_in_writes())


@by_mpi
def test_whole_chunks_are_transferred_independently(tmp_path: Path, mpi: Mpi) -> None:
    _, planned = both(mpi, 3, tmp_path, 'transfer = "auto", chunks = [64, 64]', "collective", "blocks")
    assert planned.calls_in_writes() == {"MPI_File_write_at"}
    assert [event.bytes for event in planned.written_in("H5Dwrite")] == [PIECE] * 9


@by_mpi
def test_everything_at_once(tmp_path: Path, mpi: Mpi) -> None:
    table = (
        'alignment = "32 KiB", threshold = 1024, hold_metadata = "16 MiB", metadata_block = "64 KiB", '
        'small_data_block = "16 KiB", collective_metadata = "all", fill = "never", chunks = "learn", '
        'istore_k = "auto", transfer = "auto"'
    )
    _, planned = both(mpi, 5, tmp_path, table, "blocks", "collective", "twice", "fill", "steps=6")
    assert {tuple(about["chunks"]) for about in planned.sets.values()} == {(64, 64)}
    again = run_with(mpi, 5, tmp_path / "planned", table, "again", "blocks", "collective", "steps=6", keep=True)
    assert len(again.sets) == 12


# ----------------------------------------------------------------------------------------------- what does not apply


@by_mpi
def test_no_truncation_reaches_the_file_system(tmp_path: Path, mpi: Mpi) -> None:
    # HDF5 sets the length of a file whose end nobody has written (section III-A of the paper): the engine grows it.
    planned = run_with(mpi, 3, tmp_path / "run", 'hold_metadata = "all"', "leave")
    of_file = planned.traced.trace.of(planned.path)
    assert {event.name for event in of_file} >= {"MPI_File_set_size", "fallocate"}
    assert not [e for e in of_file if "truncate" in e.name and "H5Fcreate" not in planned.around(e)]
    last = max(about["offset"] for about in planned.sets.values())
    assert planned.path.stat().st_size >= last + 3 * PIECE


@pytest.mark.parametrize(
    ("table", "words", "said"),
    [
        (
            'page = 4096, page_buffer = "64 KiB"',
            (),
            "page_buffer: an HDF5 that is built for MPI has none",
        ),
        ('sieve_buffer = "1 MiB"', (), "sieve_buffer: HDF5 does not sieve files that are opened through MPI-IO"),
        pytest.param(
            'libver = "v114"',
            (),
            "formats from v114 on: HDF5 1.10.8 does not take it",
            marks=pytest.mark.skipif("IOWEIR_TEST_HDF5" in os.environ, reason="a newer HDF5 takes it"),
        ),
        (
            'transfer = "independent"',
            ("collective", "filter"),
            'transfer = "independent": HDF5 writes datasets with filters (compression) collectively only',
        ),
    ],
    ids=["page-buffer", "sieve", "libver", "compressed"],
)
def test_what_cannot_be_done_is_said_once(tmp_path: Path, table: str, words: tuple[str, ...], said: str) -> None:
    planned = run_with(OPEN_MPI, 3, tmp_path / "run", table, *words)
    lines = [line for line in planned.traced.err.splitlines() if "hdf5: " in line]
    assert lines == [f"ioweir: {planned.path}: hdf5: {said}"]
    assert planned.notes().count(f"hdf5: {said}") == 1
    assert planned.sets


@pytest.mark.one_of(2)
@by_mpi
@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("grow",), "the program has given it chunks"),
        (("filter", "collective"), "the program has given it chunks"),
    ],
)
def test_chunks_of_the_program_stay(tmp_path: Path, mpi: Mpi, words: tuple[str, ...], reason: str) -> None:
    _, planned = both(mpi, 3, tmp_path, "chunks = [8, 8]", *words)
    assert {tuple(about["chunks"]) for about in planned.sets.values()} == {(32, 64)}
    assert f"hdf5: no chunks for data: {reason}" in planned.notes()


def test_datasets_in_other_files_and_shapes_stay(tmp_path: Path) -> None:
    planned = run_with(OPEN_MPI, 1, tmp_path / "external", "chunks = [8, 8]", "external", "alone")
    assert "hdf5: no chunks for data: its bytes lie in external files" in planned.notes()
    flat = run_with(OPEN_MPI, 3, tmp_path / "flat", "chunks = [8]")
    assert "hdf5: no chunks for data: the plan's chunks have 1 dimensions, and it has 2" in flat.notes()
    assert {about["chunks"] for about in flat.sets.values()} == {None}


@pytest.mark.one_of(2)
@pytest.mark.parametrize("words", [("handler=1",), ("handler=2",), ("handler=1", "alone"), ("handler=2", "alone")])
def test_who_is_told_of_errors_stays(tmp_path: Path, words: tuple[str, ...]) -> None:
    table = 'alignment = "64 KiB", chunks = "learn", fill = "never", transfer = "auto"'
    changed = run_with(OPEN_MPI, 2, tmp_path / "run", table, *words, "collective", "twice")
    assert changed.traced.out.count("done") == 2
    assert any("applied" in note for note in changed.notes())


def test_files_without_mpi_io_are_changed_as_well(tmp_path: Path) -> None:
    table = 'alignment = 8192, threshold = 1, page = 4096, collective_metadata = "writes"'
    planned = run_with(OPEN_MPI, 3, tmp_path / "run", table, "alone")
    for rank in range(3):
        described = Run(planned.traced, planned.path.with_name(f"file.h5.{rank}")).description
        assert (described["strategy"], described["page"], len(described["sets"])) == (1, 4096, 3)
    assert sum("collective_metadata: the file is not opened through MPI-IO" in note for note in planned.notes()) == 3


@by_mpi
def test_a_user_block_leaves_the_alignment_out_that_it_does_not_fit(tmp_path: Path, mpi: Mpi) -> None:
    table = 'alignment = 4096, threshold = 1, metadata_block = "64 KiB"'
    small = run_with(mpi, 3, tmp_path / "small", table, "userblock=512")
    assert "hdf5: alignment: the program's user block of 512 B is no multiple of 4 KiB" in small.notes()
    assert "hdf5: applied: metadata blocks of 64 KiB" in small.notes()
    assert small.description["user_block"] == 512
    large = run_with(mpi, 3, tmp_path / "large", table, "userblock=8192")
    assert large.description["user_block"] == 8192
    assert all(about["offset"] % 4096 == 0 for about in large.sets.values())


def test_a_user_block_leaves_the_pages_out_that_it_does_not_fit(tmp_path: Path) -> None:
    small = run_with(OPEN_MPI, 1, tmp_path / "small", "page = 4096", "userblock=2048", "alone")
    assert "hdf5: page: the program's user block of 2 KiB is no multiple of 4 KiB" in small.notes()
    described = Run(small.traced, small.path.with_name("file.h5.0")).description
    assert (described["strategy"], described["user_block"]) == (0, 2048)


@by_mpi
def test_from_fortran(tmp_path: Path, mpi: Mpi) -> None:
    names = (f"hdf5_{mpi.name}_fortran", f"hdf5_{mpi.name}")
    program = fortran_program("known_fortran_hdf5.F90", mpi, f"/usr/include/hdf5/{mpi.name}", *names)
    plan = tmp_path / "plan.toml"
    plan.write_text('[[file]]\nmatch = "*.h5"\nhdf5 = { chunks = [1000], alignment = 4096, threshold = 1 }\n')
    path = tmp_path / "file.h5"
    traced = ioweir_run(tmp_path / "trace", mpi.launch(3, program, path), options=["--plan", plan])
    about = Run(traced, path).sets["x"]
    assert about["chunks"] == [1000]
    assert [offset % 4096 for offset in about["offset"]] == [0, 0, 0]


def test_from_h5py(tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text('[[file]]\nmatch = "*.h5"\nhdf5 = { hold_metadata = "all", alignment = 4096, threshold = 1 }\n')
    path = tmp_path / "file.h5"
    command = OPEN_MPI.launch(3, PYTHON, PROGRAMS / "known_h5py.py", path)
    of = Run(ioweir_run(tmp_path / "trace", command, options=["--plan", plan]), path)
    assert all(about["offset"] % 4096 == 0 for about in of.sets.values())
    assert not (tmp_path / "file.h5.ioweir-held").exists()


# ------------------------------------------------------------------------------------------------------------- crashes


@by_mpi
@pytest.mark.parametrize("words", [("dies=2",), ("dies=2", "flush")], ids="-".join)
def test_a_job_that_dies_is_found_out(tmp_path: Path, mpi: Mpi, words: tuple[str, ...]) -> None:
    died = run_with(mpi, 3, tmp_path / "run", 'hold_metadata = "all"', *words, code=None)
    assert died.traced.code != 0
    checked = run([*IOWEIR, "check", died.path])
    assert checked.code == 1
    assert "metadata" in checked.out
    whole = run_with(mpi, 3, tmp_path / "whole", 'hold_metadata = "all"')
    assert run([*IOWEIR, "check", whole.path]).expect().out.startswith(f"{whole.path}: whole")
