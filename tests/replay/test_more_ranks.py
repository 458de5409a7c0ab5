"""A replay on another number of ranks makes the calls that the program itself makes on so many."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
import runs
from ioweir.base.compiled import compiled
from ioweir.errors import IoweirError
from ioweir.replay import from_trace, more_ranks, write
from ioweir.replay.datatypes import BYTE
from ioweir.replay.model import RankCalls, Recorded
from ioweir.trace import pattern, reader

SETTINGS = ("data=256 KiB", "transfer=64 KiB", "piece=4 KiB")
Pieces = list[tuple[int, int]]


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of four ranks, strided pieces, written and read in collective calls."""
    folder = tmp_path_factory.mktemp("four")
    words = ["kernel", "ior-strided", *SETTINGS, "--ranks", 4, "--mpi", "mpich", "--directory", folder]
    runs.ioweir("run", "-q", "-o", folder / "trace", "--", *runs.IOWEIR, *words)
    return folder / "trace"


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same of two ranks, in another folder."""
    folder = tmp_path_factory.mktemp("two")
    words = ["kernel", "ior-strided", *SETTINGS, "--ranks", 2, "--mpi", "mpich", "--directory", folder]
    runs.ioweir("run", "-q", "-o", folder / "trace", "--", *runs.IOWEIR, *words)
    return folder / "trace"


def joined(pieces: Pieces) -> Pieces:
    together: Pieces = []
    for offset, length in sorted(pieces):
        if together and sum(together[-1]) == offset:
            together[-1] = (together[-1][0], together[-1][1] + length)
        else:
            together.append((offset, length))
    return together


def asked_by_kernel(ranks: int) -> list[list[Pieces]]:
    """Of each call and rank what the kernel itself asks for."""
    calls = compiled().kernel_requests("ior-strided", ranks, list(SETTINGS))
    return [[joined([(int(at), int(length)) for at, length in pieces]) for pieces in call] for call in calls]


def asked_by_scripts(recorded: Recorded, use: str) -> list[list[Pieces]]:
    """The same of what would be replayed, from its views and offsets alone."""
    of_ranks = []
    for rank in recorded.ranks:
        calls, view = [], (0, BYTE)
        for op in rank.ops:
            if op.name == "MPI_File_set_view":
                view = (op.arguments[1], op.arguments[3])
            elif op.use == use:
                displacement, kind = view
                offset, count = op.arguments[1], op.arguments[2]
                if kind == BYTE:
                    calls.append([(displacement + offset, count)])
                    continue
                values = recorded.datatypes[kind].values
                lengths, places = values[1 : 1 + values[0]], values[1 + values[0] :]
                assert (offset, sum(lengths)) == (0, count)
                calls.append([(displacement + at, length) for at, length in zip(places, lengths, strict=True)])
        of_ranks.append(calls)
    return [list(call) for call in zip(*of_ranks, strict=True)]


@pytest.mark.parametrize("ranks", [2, 8, 12])
def test_every_rank_asks_for_what_the_program_would(trace: Path, ranks: int) -> None:
    original = from_trace.read(trace)
    made = more_ranks.on_ranks(trace, original, ranks)
    assert asked_by_scripts(made, "write") == asked_by_kernel(ranks)
    assert asked_by_scripts(made, "read") == asked_by_kernel(ranks)
    assert made.moved("write") * 4 == original.moved("write") * ranks
    assert made.groups == [list(range(ranks))]
    names = [[op.name for op in rank.ops] for rank in made.ranks]
    assert all(one == names[0] for one in names)
    assert any("assumed, from one trace" in remark for remark in made.remarks)
    # Pauses are those of a recorded rank: the same call, the same time.
    opened = {rank.rank: rank.ops[0].start for rank in original.ranks}
    assert [rank.ops[0].start for rank in made.ranks] == [opened[number % 4] for number in range(ranks)]
    for rank in made.ranks:
        assert list(write.lines(made, rank, 1))[1] == f"rank {ranks} {rank.rank}"


def test_a_second_trace_tells_what_one_leaves_open(trace: Path, two: Path) -> None:
    original = from_trace.read(two)
    with pytest.raises(
        IoweirError, match=r"add a trace of a number of ranks that tells \(--also DIR2\).*Replay it as it was"
    ):
        more_ranks.on_ranks(two, original, 8)
    made = more_ranks.on_ranks(two, original, 8, [trace])
    assert asked_by_scripts(made, "write") == asked_by_kernel(8)
    assert any("checked against 4 and 2 ranks" in remark for remark in made.remarks)
    done = runs.ioweir("replay", two, "--also", trace, code=2)
    assert "say which, --ranks N" in done.stderr


def test_traces_of_equally_many_ranks_prove_nothing_of_more(trace: Path) -> None:
    with pytest.raises(IoweirError, match="--also: two traces of 4 ranks say no more than one"):
        more_ranks.on_ranks(trace, from_trace.read(trace), 8, [trace])


def test_the_replay_is_run_on_two_ranks(trace: Path, tmp_path: Path) -> None:
    words = ("replay", trace, "--directory", tmp_path, "--think", "drop", "--ranks", 2, "-o", tmp_path / "again")
    result: dict[str, Any] = json.loads(runs.ioweir(*words, "--json").stdout)
    assert (result["ranks"], result["recorded_ranks"]) == (2, 4)
    assert result["replayed"]["failed"] == 0
    assert result["replayed"]["written_bytes"] * 2 == result["recorded"]["written_bytes"]
    again = reader.read(tmp_path / "again")
    requests = again.requests()
    calls: defaultdict[tuple[int, bool], list[Pieces]] = defaultdict(list)
    for number, process in enumerate(requests.process.tolist()):
        found = pattern.extents_of(requests, number)
        assert found is not None
        calls[again.processes[process].rank, bool(requests.write[number])].append(joined(found))
    for writes in (True, False):
        assert [list(call) for call in zip(calls[0, writes], calls[1, writes], strict=True)] == asked_by_kernel(2)


def test_ranks_that_do_different_things_are_not_scaled(trace: Path) -> None:
    original = from_trace.read(trace)
    last = original.ranks[3].ops
    original.ranks[3].ops = [op for op in last if op.name != "MPI_File_close"]
    with pytest.raises(IoweirError, match="make different calls"):
        more_ranks.on_ranks(trace, original, 8)


def test_what_is_not_known_of_more_ranks_is_said(trace: Path) -> None:
    original = from_trace.read(trace)
    with pytest.raises(IoweirError, match=r"what .* would ask for on so many is not known"):
        more_ranks.on_ranks(trace, original, 0x10001)
    for rank in original.ranks:
        for op in rank.ops:
            if op.name in ("MPI_File_write_at_all", "MPI_File_write_all"):
                op.name = "MPI_File_iwrite_at_all"
    with pytest.raises(IoweirError, match="MPI_File_iwrite_at_all is not scaled"):
        more_ranks.on_ranks(trace, original, 8)
    alone = from_trace.read(trace)
    for rank in alone.ranks:
        for op in rank.ops:
            if op.handle is not None and op.handle.instance is not None:
                op.handle.instance.members = {rank.rank: op.handle}
    with pytest.raises(IoweirError, match="no file of this trace is used by all ranks"):
        more_ranks.on_ranks(trace, alone, 8)


def test_a_trace_of_one_rank_does_not_say_how_arrays_are_divided(tmp_path: Path) -> None:
    one = Recorded([RankCalls(0)], [], [], ())
    with pytest.raises(IoweirError, match="has one rank"):
        more_ranks.on_ranks(tmp_path, one, 4)
