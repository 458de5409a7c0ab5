"""Programs that do nothing wrong and were accused, faults that went unseen beside others' calls, and odd times."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from ioweir.findings import ranking
from ioweir.findings.columns import Columns
from ioweir.findings.rules.hdf5 import metadata_scattered
from ioweir.findings.rules.waiting import phases
from ioweir.trace import LAYERS
from ioweir.trace.reader import Access, Datatype, View
from traces import Builder, Call

if TYPE_CHECKING:
    from ioweir.findings.model import Finding

KIB = 1 << 10
MIB = 1 << 20


def found(builder: Builder, wall_s: float = 100.0) -> dict[str, Finding]:
    """What is found in a run of so long, by code."""
    return {one.code: one for one in ranking.find(builder.trace(), wall_s, LAYERS).findings}


def ranks(count: int) -> tuple[Builder, list[int]]:
    """A run of so many ranks."""
    builder = Builder()
    return builder, [builder.rank(rank, count) for rank in range(count)]


def figures(finding: Finding) -> dict[str, float]:
    """The evidence."""
    return {row.text: row.figure for row in finding.evidence}


@pytest.mark.parametrize("op", ["write", "read"])
@pytest.mark.parametrize("every", [1, 64])
def test_a_chunk_that_the_cache_moves_once_for_many_calls_is_of_the_right_shape(op: str, every: int) -> None:
    """512 rows of 4 KiB, 0.1 s each; one in 64 moves a chunk of 256 KiB, which has them all, or each one does."""
    builder, (rank,) = ranks(1)
    for at in range(512):
        row = Call(rank, f"H5D{op}", at / 10, at / 10 + 0.1, "/rows.h5", 4 * KIB)
        builder.add(row)
        if at % every == 0:
            place = at // every * 256 * KIB
            builder.add(row.inside(f"p{op}", at / 10, at / 10 + 0.09, 256 * KIB, offset=place, origin="application"))
    findings = found(builder, 52.0)
    assert ("hdf5-chunk-mismatch" in findings) is (every == 1)
    if every == 1:
        assert findings["hdf5-chunk-mismatch"].seconds == pytest.approx(51.2 * (1 - 4 / 256))


def test_the_cache_makes_up_for_calls_on_its_file_alone() -> None:
    """Rows of one file that stay in the cache; of another each moves a chunk: 128 KiB for 4 KiB, 0.1 s each."""
    builder, (rank,) = ranks(1)
    for at in range(200):
        kept = Call(rank, "H5Dread", at / 4, at / 4 + 0.01, "/kept.h5", 4 * KIB)
        moved = Call(rank, "H5Dread", at / 4 + 0.1, at / 4 + 0.2, "/moved.h5", 4 * KIB)
        whole = moved.inside("pread", at / 4 + 0.1, at / 4 + 0.2, 128 * KIB, offset=MIB * at, origin="application")
        builder.add(kept, moved, whole)
    finding = found(builder)["hdf5-chunk-mismatch"]
    assert finding.seconds == pytest.approx(20 * (1 - 4 / 128))
    assert finding.summary.startswith("for 800 KiB of the program's data, HDF5 moves 25.00 MiB")


@pytest.mark.parametrize(("number", "each", "code"), [(512, 2 * KIB, "small-requests"), (20, 512, None)])
def test_lines_of_an_array_are_no_notes_of_hdf5(number: int, each: int, code: str | None) -> None:
    """H5Dwrite of 1 MiB in 512 requests, which are all of it; or in one, with 20 of 512 B beside it."""
    builder, (rank,) = ranks(1)
    for at in range(10):
        whole = Call(rank, "H5Dwrite", 5 * at, 5 * at + 4, "/field.h5", MIB)
        builder.add(whole)
        for k in range(number):
            begin, place = 5 * at + k / number, 2 * MIB * at + 4 * KIB * k
            builder.add(whole.inside("pwrite", begin, begin + 1 / number, each, offset=place, origin="application"))
        if code is None:
            builder.add(
                whole.inside("pwrite", 5 * at + 1, 5 * at + 4, MIB, offset=2 * MIB * at + MIB, origin="application")
            )
    findings = found(builder)
    assert ("hdf5-metadata-scattered" in findings) is (code is None)
    if code is not None:
        assert code in findings
    else:
        assert figures(findings["hdf5-metadata-scattered"])["requests for metadata"] == 200


def test_requests_of_collective_calls_that_are_whole_are_not_counted_among_the_scattered() -> None:
    """100 collective writes with one request of 32 KiB each, and 2 with 100 of 512 B."""
    builder, both = ranks(2)
    for rank in both:
        for at in range(100):
            whole = Call(rank, "MPI_File_write_at_all", at / 10, at / 10 + 0.1, "/dump", 32 * KIB)
            place = (2 * at + rank) * 32 * KIB
            builder.add(whole, whole.inside("pwrite", at / 10, at / 10 + 0.1, 32 * KIB, offset=place))
        write = Call(rank, "MPI_File_write_at_all", 20, 30, "/dump", 51200)
        builder.add(
            write, *(write.inside("pwrite", 20 + k / 10, 20.1 + k / 10, 512, offset=1024 * k) for k in range(100))
        )
    finding = found(builder)["collective-scattered"]
    assert finding.summary == "2 collective writes became 200 writes of 512 B at the storage"
    assert figures(finding)["POSIX requests per collective call"] == 100


@pytest.mark.parametrize(("gaps", "is_found"), [(64, True), (1, False)])
def test_a_gap_in_one_round_of_many_is_no_reason_for_the_time_of_all(gaps: int, is_found: bool) -> None:
    """A collective write of 64 rounds of 1 MiB, of which all or one are read before, 0.1 s each."""
    builder, both = ranks(2)
    for at in range(4):
        for rank in both:
            write = Call(rank, "MPI_File_write_at_all", 20 * at, 20 * at + 15, "/dump", 32 * MIB)
            builder.add(write)
            for k in range(64 if rank == 0 else 0):
                begin, place = 20 * at + k / 5, (64 * at + k) * MIB
                if k < gaps:
                    builder.add(write.inside("pread", begin, begin + 0.1, MIB, offset=place))
                builder.add(write.inside("pwrite", begin + 0.1, begin + 0.2, MIB, offset=place))
    assert ("read-modify-write" in found(builder)) is is_found


def test_a_rank_that_jumps_is_found_beside_others_that_do_not() -> None:
    """Rank 0 reads 200 places of 4 KiB in no order, 0.1 s each; rank 1 reads 2,000 in order, 1 ms each."""
    builder, (first, second) = ranks(2)
    for at in range(200):
        builder.add(Call(first, "pread", at / 5, at / 5 + 0.1, "/a", 4 * KIB, offset=(at * at * 7919 % 1009) * 4 * KIB))
    for at in range(2000):
        builder.add(Call(second, "pread", at / 50, at / 50 + 0.001, "/a", 4 * KIB, offset=at * 4 * KIB))
    finding = found(builder)["random-access"]
    assert finding.ranks == [0]
    assert finding.seconds == pytest.approx(19.9, abs=0.5)


@pytest.mark.parametrize(("arrays", "is_found"), [(4, False), (40, True)])
def test_arrays_that_are_written_in_turns_are_in_order(arrays: int, is_found: bool) -> None:
    """100 KiB of each array after the other, ten times; of more than eight arrays it looks like no order at all."""
    builder, (rank,) = ranks(1)
    for at in range(400):
        place = (at % arrays) ** 2 * 64 * MIB + at // arrays * 100 * KIB
        builder.add(Call(rank, "pwrite", at / 5, at / 5 + 0.1, "/fields", 100 * KIB, offset=place))
    assert ("random-access" in found(builder)) is is_found


def test_a_rank_that_asks_over_and_over_is_found_beside_others_that_read() -> None:
    """Rank 0 asks 100 times, 0.2 s each; each of three others reads 500 times."""
    builder, (first, *others) = ranks(4)
    for at in range(100):
        builder.add(Call(first, "stat", at / 2, at / 2 + 0.2, f"/data/step.{at}"))
    for other in others:
        for at in range(500):
            builder.add(Call(other, "pread", at / 10, at / 10 + 0.001, f"/in.{other}", MIB, offset=at * MIB))
    finding = found(builder)["metadata-storm"]
    assert finding.ranks == [0]
    assert finding.seconds == pytest.approx(20)
    assert figures(finding)["opens, closes and questions"] == 100


@pytest.mark.parametrize("folder", ["/home/me/env/lib/python3.12/site-packages/numpy", "/data/steps"])
def test_who_looks_for_pythons_modules_is_told_where_to_put_them(folder: str) -> None:
    """100 questions of 0.2 s on each of two ranks."""
    builder, both = ranks(2)
    for rank in both:
        for at in range(100):
            builder.add(Call(rank, "stat", at / 2, at / 2 + 0.2, f"{folder}/{at}"))
    finding = found(builder)["metadata-storm"]
    of_python = "python3" in folder
    assert ("Python" in finding.remedies[0].text) is of_python
    assert ("Python, which looks for its modules" in finding.cause) is of_python


def test_what_all_ranks_read_of_python_is_not_to_be_broadcast_first() -> None:
    """Four ranks read the same modules of 64 KiB, 0.1 s each."""
    builder, four = ranks(4)
    for rank in four:
        for at in range(50):
            path = f"/home/me/env/lib/python3.12/site-packages/a/__pycache__/m{at}.cpython-312.pyc"
            builder.add(Call(rank, "read", at / 2, at / 2 + 0.1, path, 64 * KIB, offset=0))
    assert "container's image" in found(builder)["same-read-by-all"].remedies[0].text


@pytest.mark.parametrize(("written", "is_found"), [(True, False), (False, True)])
def test_what_was_written_meanwhile_is_not_read_again(written: bool, is_found: bool) -> None:
    """A scratch file of 4 MiB: written and read ten times, 1 s each; or written once."""
    builder, (rank,) = ranks(1)
    for at in range(10):
        if written or at == 0:
            builder.add(Call(rank, "pwrite", 4 * at, 4 * at + 1, "/scratch", 4 * MIB, offset=0))
        builder.add(Call(rank, "pread", 4 * at + 2, 4 * at + 3, "/scratch", 4 * MIB, offset=0))
    findings = found(builder)
    assert ("redundant-read" in findings) is is_found
    if is_found:
        assert findings["redundant-read"].seconds == pytest.approx(9)


def test_what_was_written_elsewhere_in_the_file_makes_nothing_new_of_what_is_read() -> None:
    """An index of 1 MiB is read ten times, 1 s each, while 20 MiB are written behind it."""
    builder, (rank,) = ranks(1)
    for at in range(10):
        builder.add(Call(rank, "pread", 4 * at, 4 * at + 1, "/index", MIB, offset=0))
        builder.add(Call(rank, "pwrite", 4 * at + 2, 4 * at + 3, "/index", 2 * MIB, offset=(2 * at + 1) * MIB))
    assert found(builder)["redundant-read"].seconds == pytest.approx(9)


def test_each_byte_that_was_written_may_be_read_anew_once() -> None:
    """Read ten times; between the fifth and the sixth time half of it is written: 1.5 of 10 are different."""
    builder, (rank,) = ranks(1)
    for at in range(10):
        builder.add(Call(rank, "pread", 4 * at, 4 * at + 1, "/table", 2 * MIB, offset=0))
        if at == 4:
            builder.add(Call(rank, "pwrite", 4 * at + 2, 4 * at + 2.1, "/table", MIB, offset=0))
    finding = found(builder)["redundant-read"]
    assert finding.seconds == pytest.approx(8.5)
    assert figures(finding)["bytes read again"] == 17 * MIB


@pytest.mark.parametrize(("count", "each", "is_found"), [(16, 1, False), (2, 16, True)])
def test_headers_that_each_rank_changes_once_are_no_habit(count: int, each: int, is_found: bool) -> None:
    """A block is read and written, 0.5 s each: once by each of 16 ranks, or 16 times by each of two."""
    builder, every = ranks(count)
    for rank in every:
        for at in range(each):
            builder.add(Call(rank, "pread", 4 * at, 4 * at + 0.5, f"/own.{rank}", 8 * KIB, offset=at * 8 * KIB))
            builder.add(Call(rank, "pwrite", 4 * at + 1, 4 * at + 1.5, f"/own.{rank}", 8 * KIB, offset=at * 8 * KIB))
    assert ("read-modify-write" in found(builder, 50.0)) is is_found


def test_pieces_of_ranks_that_lie_between_each_other_are_best_put_together_by_all() -> None:
    """Two ranks write 100 records of 1 KiB in turns into one file; or one after the other into their own."""
    for shared in (True, False):
        builder, both = ranks(2)
        for rank in both:
            for at in range(100):
                path, place = ("/log", (2 * at + rank) * KIB) if shared else (f"/log.{rank}", at * KIB)
                builder.add(Call(rank, "pwrite", at / 2, at / 2 + 0.2, path, KIB, offset=place))
        words = " ".join(remedy.text for remedy in found(builder)["small-requests"].remedies)
        assert ("MPI_File_write_at_all" in words) is shared


def test_the_least_that_equal_shares_save_is_of_those_that_write() -> None:
    """Of 8 ranks two write for all: 9 s and 3 s, of 9 and 3 MiB. All might take part: 9 - 1.5 s; these two: 9 - 6 s."""
    builder, eight = ranks(8)
    for rank in eight:
        write = Call(rank, "MPI_File_write_at_all", 0, 10, "/dump", 2 * MIB)
        builder.add(write)
        if rank < 2:
            mine = (9, 3)[rank]
            for k in range(mine):
                builder.add(write.inside("pwrite", k, k + 1, MIB, offset=(9 * rank + k) * MIB))
    one = next(row for row in ranking.find(builder.trace(), 100.0, LAYERS).findings if "aggregator" in row.code)
    assert "aggregator-imbalance" in (one.code, *one.chain)
    assert one.code == "aggregator-imbalance"
    assert one.seconds == pytest.approx(7.5)
    assert one.gain.low == pytest.approx(1.5)


def test_bursts_that_took_no_time_have_no_best_interval() -> None:
    """As of imported logs with coarse times: five writes of 4 MiB, 0 s each, and opens of 10 s in between."""
    builder, (rank,) = ranks(1)
    for at in range(5):
        builder.add(Call(rank, "pwrite", 15 * at, 15 * at, "/dump", 4 * MIB, offset=4 * MIB * at))
    assert "checkpoint-too-slow" not in found(builder)


def test_stripes_whose_writes_took_no_time_have_no_pace() -> None:
    """Writes to a stripe of another rank take 0.2 s, the others 0: nothing can be so many times as slow."""
    builder, both = ranks(2)
    for at in range(40):
        for rank in both:
            begin, place = at + rank / 2, (2 * at + rank) * 512 * KIB
            builder.add(Call(rank, "pwrite", begin, begin + 0.2 * rank, "/dump", 512 * KIB, offset=place))
    for finding in found(builder).values():
        assert all(abs(row.figure) < float("inf") for row in finding.evidence)


def test_calls_are_counted_by_rank_and_file() -> None:
    """Rank 0 opens /a twice and /b once, rank 1 /a once: also where there are far more pairs than calls."""
    builder = Builder()
    few = [builder.rank(number, 1000) for number in (0, 999)]
    for rank, path in ((few[0], "/a"), (few[0], "/a"), (few[0], "/b"), (few[1], "/a")):
        builder.add(Call(rank, "open", 1, 2, path), Call(rank, "pwrite", 3, 4, path, 10, offset=0))
    run = Columns(builder.trace(), 100.0, LAYERS)
    made = run.times_on_file(run.is_op("open"))
    by_pair = {
        (int(run.unit[row]), run.files[run.file[row]]): int(made[row]) for row in range(len(run)) if run.bytes[row]
    }
    assert by_pair == {(0, "/a"): 2, (0, "/b"): 1, (1, "/a"): 1}


@pytest.mark.parametrize(
    ("name", "words"),
    [("pwrite", "a thread of the program's own"), ("MPI_File_write_at", "MPI_File_iwrite_at"), ("H5Dwrite", "_async")],
)
def test_who_could_write_while_it_computes_is_told_so_in_its_own_calls(name: str, words: str) -> None:
    """Six steps: 5 s of computing, 2 s of writing 16 MiB."""
    builder, (rank,) = ranks(1)
    for at in range(6):
        builder.add(Call(rank, name, 7 * at + 5, 7 * at + 7, "/step", 16 * MIB, offset=16 * MIB * at))
    assert words in found(builder)["no-overlap"].remedies[-1].text


def test_stripes_of_a_program_without_mpi_io_that_change_hands_can_be_mended() -> None:
    """Two ranks write 40 pieces of 512 KiB in turns, 0.4 s each; and 40 of whole MiB of their own, 0.1 s each."""
    builder, both = ranks(2)
    for at in range(40):
        for rank in both:
            begin, place = at + rank / 2, (2 * at + rank) * 512 * KIB
            builder.add(Call(rank, "pwrite", begin, begin + 0.4, "/dump", 512 * KIB, offset=place))
            place = (100 * (rank + 1) + at) * MIB
            builder.add(Call(rank, "pwrite", 45 + at, 45.1 + at, "/dump", MIB, offset=place))
    findings = ranking.find(builder.trace(), 100.0, LAYERS).findings
    (finding,) = [row for row in findings if "lock-handover" in (row.code, *row.chain)]
    assert finding.remedies
    assert all(not remedy.plan for remedy in finding.remedies), "a plan has no effect on calls of POSIX"


@pytest.mark.parametrize("by_itself", [True, False])
def test_what_hdf5_writes_in_a_thread_of_its_own_overlaps(by_itself: bool) -> None:
    """Six steps of 7 s, with an asynchronous write of 16 MiB that takes 2 s: beside the program's computing, or not."""
    builder, (rank,) = ranks(1)
    for at in range(6):
        begin, end = 7 * at + 5, 7 * at + 7
        call = Call(rank, "H5Dwrite_async", begin, end if by_itself else begin + 0.01, "/step.h5", 16 * MIB)
        builder.add(call)
        place = 16 * MIB * at
        if by_itself:
            builder.add(call.inside("pwrite", begin, end, 16 * MIB, offset=place, origin="application"))
        else:
            builder.add(Call(rank, "pwrite", begin, end, "/step.h5", 16 * MIB, offset=place, thread=1))
    assert ("no-overlap" in found(builder)) is by_itself


@pytest.mark.parametrize("second", [20, 2])
def test_ranks_that_write_in_like_parts_for_the_others_divide_nothing_unevenly(second: int) -> None:
    """Of 8 ranks the first writes 20 pieces of 1 MiB, 1 s each, and the fifth as many, or two; the others a log."""
    builder, eight = ranks(8)
    for rank in eight:
        builder.add(Call(rank, "pwrite", 0, 0.001, f"/log.{rank}", 100, offset=0))
        for at in range({0: 20, 4: second}.get(rank, 0)):
            builder.add(Call(rank, "pwrite", at + 1, at + 2, f"/part.{rank}", MIB, offset=at * MIB))
    rows = ranking.find(builder.trace(), 100.0, LAYERS).findings
    if second == 2:
        assert "rank0-io" in {code for row in rows for code in (row.code, *row.chain)}
        return
    (finding,) = [row for row in rows if row.code == "unbalanced-bytes"]
    assert finding.cause.startswith("2 of 8 ranks write nearly everything, in like parts")
    assert (finding.severity, finding.gain.low) == ("medium", 0.0)
    assert finding.ranks == [0, 4]


@pytest.mark.parametrize(("pause", "severity"), [(1.9, "low"), (1.0, "high"), (0.0, "high")])
def test_ranks_that_are_apart_may_be_so_by_chance_where_no_waiting_is_known(pause: float, severity: str) -> None:
    """30 turns of two ranks, 1 s each, with pauses between or without; as of another tool's log of files alone."""
    builder, both = ranks(2)
    for turn in range(30):
        begin = turn * (1 + pause)
        builder.add(Call(both[turn % 2], "pwrite", begin, begin + 1, "/out", MIB, offset=turn * MIB))
    layers = [layer for layer in LAYERS if layer != "MPI"]
    rows = ranking.find(builder.trace(), 100.0, layers).findings
    found_in = {code: row for row in rows for code in (row.code, *row.chain)}
    if severity == "low":  # what is in doubt leads nothing
        assert found_in["serialised-writes"].code == "no-overlap"
        return
    assert found_in["serialised-writes"].code == "serialised-writes"
    assert found_in["serialised-writes"].severity == severity


def test_a_checkpoint_costs_no_more_than_the_time_in_its_calls() -> None:
    """20 times: three writes of 1 MiB, 0.1 s each and 0.5 s apart, and 3 s of computing: 6 s of I/O."""
    builder, (rank,) = ranks(1)
    for at in range(60):
        begin = 4.3 * (at // 3) + 0.6 * (at % 3)
        builder.add(Call(rank, "pwrite", begin, begin + 0.1, "/dump", MIB, offset=at * MIB))
    trace = builder.trace()
    io_s = ranking.find(trace, 100.0, LAYERS).io_s
    assert io_s == pytest.approx(6)
    (row,) = phases.CHECKPOINT.find(Columns(trace, 100.0, LAYERS))
    assert row.seconds == pytest.approx(6)


@pytest.mark.parametrize(
    ("number", "writers"), [(0, "everyone"), (1, "everyone"), (2, "auto"), (3, "auto"), (4, "everyone")]
)
def test_who_moves_pieces_is_not_told_to_move_each_by_itself(number: int, writers: str) -> None:
    """Collective calls of 8 MiB a rank: without a view, through one without gaps, with cells of 8 B, of a type that is
    not known, and with pieces of 4 MiB."""
    builder, (first, second) = ranks(2)
    one_of = Call(first, "MPI_File_write_at_all", 0, 10, "/dump", 8 * MIB)
    builder.add(one_of, one_of.inside("pwrite", 8, 10, 16 * MIB, offset=0))
    builder.add(Call(second, "MPI_File_write_at_all", 0, 10, "/dump", 8 * MIB))
    trace = builder.trace()
    double = Datatype(constructor="named", name="MPI_DOUBLE", size=8, extent=8)
    cells = Datatype(constructor="vector", size=8 * MIB, extent=16 * MIB, values=(MIB, 1, 2), types=(1,))
    odd = Datatype(constructor="subarray", size=8 * MIB, extent=16 * MIB, types=(1,))
    parts = Datatype(constructor="vector", size=8 * MIB, extent=16 * MIB, values=(2, MIB // 2, MIB), types=(1,))
    views = (View(), *(View(set=True, etype=1, filetype=kind) for kind in (1, 2, 3, 4)))
    accesses = tuple(Access(process=0, path=0, handle=0, view=view, memory=0, ranks=2) for view in (0, number))
    vars(trace).update(datatypes=(Datatype(), double, cells, odd, parts), views=views, accesses=accesses)
    run = Columns(trace, 100.0, LAYERS)
    run.access = np.where(run.is_layer("MPI-IO"), 1, 0)
    (row,) = phases.EXCHANGE.find(run)
    assert f'writers = "{writers}"' in row.remedies[0].plan


@pytest.mark.parametrize(("pitch", "is_sieved"), [(16 * KIB, True), (64 * KIB, False)])
def test_parts_of_lines_of_a_data_set_without_chunks_are_not_said_to_be_of_chunks(pitch: int, is_sieved: bool) -> None:
    """8 writes of 2 KiB of each of 32 lines, 2 s each: 64 KiB are read and written, from each line's part on."""
    builder, (rank,) = ranks(1)
    for at in range(8):
        whole = Call(rank, "H5Dwrite", 3 * at, 3 * at + 2, "/field.h5", 32 * 2 * KIB)
        builder.add(whole)
        for line in range(32):
            for step, name in enumerate(("pread", "pwrite")):
                begin, place = 3 * at + line / 16 + step / 32, pitch * line + (2 * KIB * at if is_sieved else 0)
                more = {"offset": place, "origin": "application"}
                builder.add(whole.inside(name, begin, begin + 1 / 32, 64 * KIB, **more))
    run = Columns(builder.trace(), 100.0, LAYERS)
    (row,) = metadata_scattered.CHUNKS.find(run)
    assert ("sieve buffer" in row.cause) is is_sieved
    assert ("whole lines" in row.remedies[0].text) is is_sieved


@pytest.mark.parametrize(("size", "seconds"), [(8 * MIB, None), (8 * KIB, 20)])
def test_arrays_that_are_written_with_one_call_go_past_the_streams_buffer(size: int, seconds: float | None) -> None:
    """As numpy.save does: 200 calls of 0.1 s on streams, of 8 MiB each or of 8 KiB."""
    builder, (rank,) = ranks(1)
    for at in range(200):
        builder.add(Call(rank, "fwrite", at / 4, at / 4 + 0.1, "/array.npy", size))
    findings = found(builder)
    assert ("stdio-data" in findings) is (seconds is not None)
    if seconds is not None:
        assert findings["stdio-data"].seconds == pytest.approx(seconds)


@pytest.mark.parametrize("files", [1, 100])
def test_small_files_are_no_pieces_to_be_collected(files: int) -> None:
    """100 writes of 4 KiB, 0.2 s each, to one file or each to its own."""
    builder, (rank,) = ranks(1)
    for at in range(100):
        builder.add(
            Call(rank, "pwrite", at / 2, at / 2 + 0.2, f"/part.{at % files}", 4 * KIB, offset=at // files * 4096)
        )
    finding = found(builder)["small-requests"]
    assert finding.remedies[0].text.startswith("put many small files into one") is (files == 100)
    assert ("many small files" in finding.cause) is (files == 100)


@pytest.mark.parametrize(("dealt", "is_found"), [(False, False), (True, True)])
def test_a_header_and_an_end_by_one_rank_put_no_pieces_between_those_of_others(dealt: bool, is_found: bool) -> None:
    """Each of 4 ranks writes 100 pieces of 100 KiB, 0.2 s each, one behind the other or in turns; rank 0 both ends."""
    builder, four = ranks(4)
    for number, rank in enumerate(four):
        places = [KIB + ((4 * at + number) if dealt else (100 * number + at)) * 100 * KIB for at in range(100)]
        for at, place in enumerate([*([0, 400 * 100 * KIB + KIB] if number == 0 else []), *places]):
            write = Call(rank, "MPI_File_write_at", at / 2, at / 2 + 0.2, "/out.h5", 100 * KIB)
            builder.add(write, write.inside("pwrite", at / 2, at / 2 + 0.2, 100 * KIB, offset=place))
    assert ("independent-shared-file" in found(builder)) is is_found


@pytest.mark.parametrize(
    ("size", "number", "each", "is_found"),
    [(16, 5000, 5e-3, True), (16, 50, 5e-3, False), (MIB, 5000, 5e-3, False), (60_000, 60_000, 60e-6, False)],
)
def test_elements_that_are_written_one_by_one_cost_the_library(
    size: int, number: int, each: float, is_found: bool
) -> None:
    """Calls of HDF5 that make no request, 5 ms each, or as long as a copy takes; the close writes all of it."""
    builder, (rank,) = ranks(1)
    for at in range(number):
        begin = at * 80 / number
        builder.add(Call(rank, "H5Dwrite", begin, begin + each, "/words.h5", size))
    close = Call(rank, "H5Fclose", 90, 90.1, "/words.h5")
    builder.add(close, close.inside("pwrite", 90, 90.1, 80_000, offset=0, origin="application"))
    findings = found(builder)
    assert ("small-requests" in findings) is is_found
    if is_found:
        finding = findings["small-requests"]
        assert finding.seconds == pytest.approx(25, rel=1e-5)
        assert finding.summary.startswith("5,000 writes of 16 B each end in HDF5's cache")
        assert "a block of the array" in finding.remedies[0].text
