"""Rules on small traces with the price worked out beside them, and what is said of every rule."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from ioweir.base.compiled import compiled
from ioweir.errors import IoweirError
from ioweir.findings import page, ranking, text
from ioweir.findings.columns import Columns
from ioweir.findings.table import BY_CODE, RULES
from ioweir.trace import LAYERS
from traces import Builder, Call

if TYPE_CHECKING:
    from ioweir.findings.model import Finding, Findings

ROOT = Path(__file__).resolve().parents[2]
CODES = {
    "data-sieving", "lock-wait", "lock-handover", "small-requests", "misaligned-requests", "independent-shared-file",
    "collective-scattered", "aggregator-count", "aggregator-imbalance", "target-contention", "slow-target", "slow-rank",
    "serialised-writes", "rank0-io", "metadata-storm", "hdf5-metadata-scattered", "hdf5-chunk-mismatch",
    "hdf5-fill-values",
    "file-extension", "read-modify-write", "redundant-read", "same-read-by-all", "random-access", "sync-cost",
    "close-cost", "no-overlap", "exchange-dominates", "file-per-process", "unbalanced-bytes", "stdio-data",
    "checkpoint-too-slow", "noncontiguous-memory", "late-rank",
}  # fmt: skip
MIB = 1 << 20


def ranks(count: int) -> tuple[Builder, list[int]]:
    """A run of so many ranks."""
    builder = Builder()
    return builder, [builder.rank(rank, count) for rank in range(count)]


def found(builder: Builder, wall_s: float = 100.0) -> Findings:
    """What is found in a run that took so long."""
    return ranking.find(builder.trace(), wall_s, LAYERS)


def one(builder: Builder, code: str, wall_s: float = 100.0) -> Finding:
    """The finding with this code."""
    rows = [finding for finding in found(builder, wall_s).findings if finding.code == code]
    assert len(rows) == 1, [finding.code for finding in found(builder, wall_s).findings]
    return rows[0]


def test_every_code_has_its_rule() -> None:
    assert {rule.code for rule in RULES} == CODES
    assert len({rule.order for rule in RULES}) == len(RULES)


def test_the_page_is_up_to_date() -> None:
    said = (ROOT / "docs" / "reference" / page.PAGE).read_text(encoding="utf-8")
    assert said == page.page(), "run .venv/bin/python tools/generate.py --docs docs/reference"


def test_every_code_is_explained() -> None:
    for rule in RULES:
        words = " ".join(" ".join(text.explain(rule.code)).split())
        assert f"{rule.code}: {rule.title}" in words
        for part in (rule.definition, rule.source, rule.gain, *(threshold.why for threshold in rule.thresholds)):
            assert " ".join(part.split()) in words, rule.code


def test_a_code_that_is_none_gets_the_one_that_was_meant() -> None:
    with pytest.raises(IoweirError, match="no finding is called 'lock-wiat'; did you mean 'lock-wait'"):
        text.explain("lock-wiat")


def test_between_meetings_the_slowest_rank_counts() -> None:
    """Reads of 3 s and 2 s, a meeting, reads of 1 s and 4 s: 3 + 4 = 7 s. Waiting at the meeting is no price."""
    builder, (first, second) = ranks(2)
    for rank, before, after in ((first, 3, 1), (second, 2, 4)):
        builder.add(
            Call(rank, "pread", 0, before, "/in", MIB, offset=0),
            Call(rank, "MPI_File_open", before, 5, "/out"),
            Call(rank, "pread", 6, 6 + after, "/in", MIB, offset=MIB),
        )
    run = Columns(builder.trace(), 100.0, LAYERS)
    assert run.seconds(run.storage) == pytest.approx(7)
    # The last rank comes after 3 s, and the open ends at 5 s.
    assert run.seconds(run.is_op("open")) == pytest.approx(2)
    assert run.seconds(run.outermost) == pytest.approx(9)


def test_calls_at_once_are_counted_once() -> None:
    """Two threads of a rank write 0..4 s and 2..6 s: 6 s."""
    builder, (first,) = ranks(1)
    builder.add(
        Call(first, "pwrite", 0, 4, "/out", MIB, offset=0, thread=1),
        Call(first, "pwrite", 2, 6, "/out", MIB, offset=MIB, thread=2),
    )
    run = Columns(builder.trace(), 100.0, LAYERS)
    assert run.seconds(run.storage) == pytest.approx(6)


def test_sieving_and_its_locks_are_one_finding() -> None:
    """Each of two ranks writes 10 s: 4 s of lock, 3 s of read and 3 s of write inside."""
    builder, both = ranks(2)
    for at, rank in enumerate(both):
        write = Call(rank, "MPI_File_write_at", 10 * at, 10 * at + 10, "/dump", 1000)
        builder.add(
            write,
            write.inside("fcntl_lock", 10 * at, 10 * at + 4, MIB),
            write.inside("pread", 10 * at + 4, 10 * at + 7, MIB, offset=0),
            write.inside("pwrite", 10 * at + 7, 10 * at + 10, MIB, offset=0),
        )
    finding = one(builder, "data-sieving")
    assert finding.seconds == pytest.approx(10)
    assert "lock-wait" in finding.chain
    assert finding.severity == "high"
    assert [finding.code for finding in found(builder).findings] == ["data-sieving"]
    assert finding.summary == (
        "2 writes lock and read the file before they write to it (data sieving): 2.00 MiB read and 2.00 MiB written "
        "for "
        "1.95 KiB of the program's data"
    )


def test_collective_calls_that_end_in_tiny_requests() -> None:
    """Two collective writes of 0..10 s make 100 requests of 512 B each."""
    builder, both = ranks(2)
    for rank in both:
        write = Call(rank, "MPI_File_write_at_all", 0, 10, "/dump", 51200)
        builder.add(
            write, *(write.inside("pwrite", at / 10, at / 10 + 0.1, 512, offset=1024 * at) for at in range(100))
        )
    finding = one(builder, "collective-scattered")
    assert finding.seconds == pytest.approx(10)
    assert finding.summary == "2 collective writes became 200 writes of 512 B at the storage"
    plan = finding.remedies[0].plan
    assert plan == '[[file]]\nmatch = "dump"\nwriters = "auto"\n'


def test_one_rank_that_does_it_all() -> None:
    """Rank 0 of 4 writes 8 s: shared out, 2 s would be left, so that up to 6 s are saved."""
    builder, (first, *others) = ranks(4)
    builder.add(Call(first, "pwrite", 0, 8, "/out", 64 * MIB, offset=0))
    builder.add(*(Call(other, "MPI_Barrier", 0, 8) for other in others))
    finding = one(builder, "rank0-io")
    assert (finding.seconds, finding.gain.low, finding.gain.high) == pytest.approx((8, 1.5, 6))
    assert finding.ranks == [0]


def test_a_late_rank_is_not_the_price_of_a_collective_call() -> None:
    """Rank 1 comes 9 s late; after that the write takes 1 s, of which the storage 0.9 s."""
    builder, (first, second) = ranks(2)
    early, late = (
        Call(first, "MPI_File_write_at_all", 0, 10, "/dump", 8 * MIB),
        Call(second, "MPI_File_write_at_all", 9, 10, "/dump", 8 * MIB),
    )
    builder.add(early, early.inside("pwrite", 9.05, 9.95, 16 * MIB, offset=0), late)
    run = found(builder)
    assert run.io_s == pytest.approx(1)
    assert "exchange-dominates" not in [finding.code for finding in run.findings]


def test_exchange_that_takes_longer_than_the_storage() -> None:
    """A collective write of 10 s, of which 2 s at the storage: 8 s; not shown to be lost, so medium."""
    builder, (first, second) = ranks(2)
    one_of = Call(first, "MPI_File_write_at_all", 0, 10, "/dump", 8 * MIB)
    builder.add(
        one_of,
        one_of.inside("pwrite", 8, 10, 16 * MIB, offset=0),
        Call(second, "MPI_File_write_at_all", 0, 10, "/dump", 8 * MIB),
    )
    finding = one(builder, "exchange-dominates")
    assert finding.seconds == pytest.approx(8)
    assert (finding.severity, finding.gain.low) == ("medium", 0)
    assert 'writers = "everyone"' in finding.remedies[0].plan


def test_ranks_that_take_turns() -> None:
    """Four ranks write 16 times 1 s each, one after the other: 64 s instead of 16 s."""
    builder, four = ranks(4)
    for turn in range(64):
        rank = four[turn % 4]
        builder.add(Call(rank, "pwrite", turn, turn + 1, "/out", MIB, offset=turn * MIB))
    finding = one(builder, "serialised-writes")
    assert (finding.seconds, finding.gain.high) == pytest.approx((64, 48))


def test_a_single_slow_rank_is_no_chance() -> None:
    """Rank 3 takes 3 s for each of 20 writes, the others 1 s: 40 s lost."""
    builder, four = ranks(4)
    for at in range(20):
        for rank in four:
            length = 3 if rank == four[3] else 1
            builder.add(Call(rank, "pwrite", 4 * at, 4 * at + length, f"/out.{rank}", MIB, offset=at * MIB))
    finding = one(builder, "slow-rank")
    assert finding.seconds == pytest.approx(40)
    assert finding.ranks == [3]


def test_hdf5_metadata_between_data() -> None:
    """100 attributes, each 0.2 s with a request of 512 B: 20 s."""
    builder, (first,) = ranks(1)
    for at in range(100):
        attribute = Call(first, "H5Fflush", at, at + 0.2, "/out.h5")
        builder.add(
            attribute,
            attribute.inside("pwrite", at + 0.05, at + 0.15, 512, offset=4096 * at, origin="application"),
        )
    finding = one(builder, "hdf5-metadata-scattered")
    assert finding.seconds == pytest.approx(20)


@pytest.mark.parametrize("filling", [True, False])
def test_fill_values_are_left_out_by_the_plan_where_they_are_written(filling: bool) -> None:
    """20 data sets, each 1 s to make: with 0.8 s of 1 MiB of fill values in it, or of nothing; and 64 attributes."""
    builder, (first,) = ranks(1)
    for at in range(84):
        call = Call(first, "H5Dcreate2" if at < 20 else "H5Awrite", at, at + 1, "/out.h5")
        builder.add(call)
        mine = call.inside("MPI_File_write_at", at + 0.1, at + 0.2, 512, offset=4096 * at, origin="application")
        builder.add(mine, mine.inside("pwrite", at + 0.1, at + 0.2, 512, offset=4096 * at))
        if at < 20 and filling:
            values = call.inside("pwrite", at + 0.2, at + 1, MIB, offset=MIB * (at + 1), origin="application")
            builder.add(values)
    finding = one(builder, "hdf5-metadata-scattered")
    plans = [remedy.plan for remedy in finding.remedies if remedy.plan]
    assert len(plans) == 1
    # Of 84 s the plan spares the requests: 84 x 0.1 s, and 20 x 0.8 s of fill values; those of memory are faster.
    saves = finding.remedies[0].saves
    assert saves is not None
    assert (saves.low, saves.high) == pytest.approx((6.1, 24.4) if filling else (2.1, 8.4))
    assert ('fill = "never"' in plans[0]) is filling
    assert [evidence.figure for evidence in finding.evidence if "fill values" in evidence.text] == (
        [20.0 * MIB] if filling else []
    )


@pytest.mark.parametrize("op", ["write", "read"])
def test_small_writes_beneath_hdf5_may_be_mended_by_learned_chunks(op: str) -> None:
    """100 calls on a data set, each in 20 requests with gaps between."""
    builder, (first,) = ranks(1)
    for at in range(100):
        whole = Call(first, f"H5D{op}", at, at + 0.8, "/out.h5", 20 * 512)
        builder.add(whole)
        for number in range(20):
            begin = at + 0.04 * number
            place = 1024 * (20 * at + number)
            more = {"offset": place, "origin": "application"}
            request = whole.inside(f"MPI_File_{op}_at", begin, begin + 0.03, 512, **more)
            builder.add(request, request.inside(f"p{op}", begin, begin + 0.03, 512, offset=place))
    finding = one(builder, "small-requests")
    learned = [remedy for remedy in finding.remedies if 'chunks = "learn"' in remedy.plan]
    assert len(learned) == (1 if op == "write" else 0)
    assert all("does not tell" in remedy.doubt for remedy in learned)
    said = " ".join(" ".join(text.full(found(builder), "trace")).split())
    assert ("It may change nothing: chunks are learned" in said) is (op == "write")


def test_bytes_read_again() -> None:
    """A rank reads the same 1 MiB ten times in 10 s: nine tenths are lost."""
    builder, (first,) = ranks(1)
    for at in range(10):
        builder.add(Call(first, "pread", at, at + 1, "/in", MIB, offset=0))
    assert one(builder, "redundant-read").seconds == pytest.approx(9)


@pytest.mark.parametrize("name", ["places", "closed.3", "index.1.0"])
def test_what_ioweir_reads_and_syncs_of_its_own_containers_is_not_the_programs(name: str) -> None:
    """Its indexes and texts, ten times on both ranks; the program's own bytes, read again from a subfile, count."""
    container = "/run/.ioweir-" + "0123456789abcdef" * 2
    builder, both = ranks(2)
    for rank in both:
        for at in range(10):
            read = Call(rank, "MPI_File_read_at", at, at + 0.5, "/run/out", MIB)
            close = Call(rank, "MPI_File_close", at + 0.5, at + 1, "/run/out")
            own: dict[str, Any] = {"path": f"{container}/{name}", "origin": "engine"}
            builder.add(read, read.inside("pread", at, at + 0.5, MIB, offset=0, **own))
            builder.add(close, close.inside("fsync", at + 0.5, at + 1, **own))
    assert not {"redundant-read", "same-read-by-all", "sync-cost"} & {each.code for each in found(builder).findings}
    builder, (first,) = ranks(1)
    for at in range(10):
        read = Call(first, "MPI_File_read_at", at, at + 1, "/run/out", MIB)
        data: dict[str, Any] = {"path": f"{container}/subfile.1", "origin": "engine"}
        builder.add(read, read.inside("pread", at, at + 1, MIB, offset=0, **data))
    assert one(builder, "redundant-read").seconds == pytest.approx(9)


def test_below_one_percent_nothing_is_said() -> None:
    """0.9 s of 100 s."""
    builder, (first, *_) = ranks(4)
    builder.add(Call(first, "pwrite", 0, 0.9, "/out", 64 * MIB, offset=0))
    run = found(builder)
    assert run.findings == []
    assert text.short(run, "trace") == [
        "Nothing to gain in I/O: 900 ms of 100 s (0.9 %) are I/O, and no rule found a fault."
    ]


def test_what_was_not_recorded_is_said() -> None:
    builder, (first, *_) = ranks(2)
    builder.add(Call(first, "MPI_File_write_at", 0, 8, "/out", 64 * MIB))
    run = ranking.find(builder.trace(), 100.0, ["MPI-IO"])
    assert "lock-wait: calls of POSIX were not recorded" in run.unseen
    assert [finding.code for finding in run.findings] == ["rank0-io"]
    assert run.findings[0].unseen[1] == (
        "rank0-io: calls of POSIX, STDIO, HDF5, PnetCDF, netCDF, MPI were not recorded"
    )


def test_a_run_without_calls_has_no_finding() -> None:
    builder, _ = ranks(2)
    assert found(builder).findings == []
    assert ranking.find(builder.trace(), 0.0, LAYERS).findings == []


def test_names_of_files_stay_within_the_plan() -> None:
    """A name with a quote, a star and a line break is matched by marks that stand for one letter each."""
    builder, both = ranks(2)
    for rank in both:
        write = Call(rank, "MPI_File_write_at_all", 0, 10, '/a"b*c\nd', 51200)
        builder.add(
            write, *(write.inside("pwrite", at / 10, at / 10 + 0.1, 512, offset=1024 * at) for at in range(100))
        )
    plan = one(builder, "collective-scattered").remedies[0].plan
    assert plan.splitlines()[1] == 'match = "a?b?c?d"'
    compiled().check_plan(plan, "plan.toml")


def test_every_plan_in_the_rules_can_be_carried_out() -> None:
    """The lines that rules put into plans, taken from their text."""
    sources = (ROOT / "python" / "ioweir" / "findings" / "rules").rglob("*.py")
    texts = re.compile(r"""'([^'\n]*)'|"((?:[^"\\\n]|\\.)*)\"""")
    keys = ("writers = ", "mapping = ", "set_size = ", "domains = ", "stripe = ", "hdf5 = ")
    lines = [
        line
        for source in sources
        for words in texts.findall(source.read_text(encoding="utf-8"))
        for line in words
        if line.startswith(keys)
    ]
    assert len(lines) >= 10
    for line in lines:
        filled = line.replace('\\"', '"').replace("{better}", "4")
        compiled().check_plan(f'[[file]]\nmatch = "*"\n{filled}\n', "plan.toml")


def test_codes_of_the_chain_are_known() -> None:
    for rule in RULES:
        assert set(rule.follows) <= set(BY_CODE)


@pytest.mark.parametrize("of_mpi", [True, False])
def test_processes_that_are_no_ranks_share_no_work(of_mpi: bool) -> None:
    """A program with its helpers: one reads everything, and nobody should tell it to share that with a shell."""
    builder = Builder()
    first, *others = [builder.rank(i, 4) if of_mpi else builder.process(pid=50 + i) for i in range(4)]
    for i in range(40):
        builder.add(Call(first, "pread", 2 * i, 2 * i + 1, "/data/in", 16 * MIB, offset=16 * MIB * i))
    for other in others:
        builder.add(Call(other, "open", 1, 1.001, "/etc/passwd"))
    assert ("rank0-io" in [finding.code for finding in found(builder).findings]) == of_mpi


@pytest.mark.parametrize("by_mpi", [True, False])
def test_plans_are_for_files_that_the_engine_sees(by_mpi: bool) -> None:
    builder, (rank,) = ranks(1)
    for i in range(30):
        write = Call(rank, "pwrite", 3 * i + 0.001, 3 * i + 0.009, "/data/out", 512, offset=512 * i)
        if by_mpi:
            call = Call(rank, "MPI_File_write_at", 3 * i, 3 * i + 0.01, "/data/out", 512, offset=512 * i)
            builder.add(call)
            write = replace(write, parent=call)
        builder.add(write)
        builder.add(Call(rank, "fsync", 3 * i + 0.1, 3 * i + 2, "/data/out"))
        builder.add(Call(rank, "fsync", 3 * i + 2.1, 3 * i + 2.8, "/data/x.db"))
    plans = [remedy.plan for remedy in one(builder, "sync-cost").remedies if remedy.kind == "plan"]
    assert plans == (['[[file]]\nmatch = "out"\nwriters = "behind:1"\n'] if by_mpi else [])
