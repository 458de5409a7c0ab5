"""The report's figures: small traces with every number worked out on the page."""

from __future__ import annotations

import io
import signal
import tracemalloc
from typing import Any

import pytest
from ioweir import report
from ioweir.base.compiled import compiled
from ioweir.report import first_lines, report_text
from ioweir.report.model import PassedThrough
from ioweir.trace import LAYERS, OPS, EngineWork, Note
from rich.console import Console
from traces import FUNCTIONS, Builder, Call, printed


def two_writers() -> Builder:
    """Two ranks write 100 B each through MPI-IO; one POSIX write of 150 B holds read-modify-write's lock and read.

    rank 0: write_at_all 10..14 s; inside: lock 10.5..11.0, pread 11.0..11.5 (50 B), pwrite 11.5..13.0 (150 B),
            unlock 13.0..13.25
    rank 1: write_at_all 12..14 s, nothing inside
    rank 0: a POSIX write of its own, 20..21 s, 7 B, to another file
    """
    builder = Builder()
    first, second = builder.rank(0, 2), builder.rank(1, 2)
    write = Call(first, "MPI_File_write_at_all", 10, 14, "/data/dump", 100)
    builder.add(
        write,
        write.inside("fcntl_lock", 10.5, 11.0, 150),
        write.inside("pread", 11.0, 11.5, 50),
        write.inside("pwrite", 11.5, 13.0, 150),
        write.inside("fcntl_unlock", 13.0, 13.25, 150),
        Call(second, "MPI_File_write_at_all", 12, 14, "/data/dump", 100),
        Call(first, "write", 20, 21, "/data/log", 7),
    )
    return builder


def text_of(builder: Builder, width: int | None = None, **more: Any) -> str:
    out = io.StringIO()
    result = report.build(builder.trace(**more))
    if width is None:
        report_text.write(result, out)
    else:
        console = Console(file=out, width=width, highlight=False, color_system=None)
        report_text.print_report(result, console)
    return out.getvalue()


@pytest.mark.parametrize("seed", range(4))
def test_bandwidths_by_their_definitions(seed: int) -> None:
    result = printed(two_writers().trace(shuffle=seed))
    assert result["ranks"] == 2
    assert result["events"] == 7
    mpi = result["layers"]["MPI-IO"]["write"]
    # 200 B; 4 s + 2 s over ranks, mean 3 s; the union of 10..14 and 12..14 is 4 s.
    assert (mpi["bytes"], mpi["calls"], mpi["time_s"]) == (200, 2, 6.0)
    assert mpi["effective_bytes_per_s"] == pytest.approx(200 / 6)
    assert mpi["perceived_bytes_per_s"] == pytest.approx(200 / 3)
    assert mpi["span_bytes_per_s"] == pytest.approx(200 / 4)
    posix = result["layers"]["POSIX"]["write"]
    # 150 B in 1.5 s and 7 B in 1 s.
    assert (posix["bytes"], posix["calls"], posix["time_s"]) == (157, 2, 2.5)
    assert posix["perceived_bytes_per_s"] == pytest.approx([200 / 3, 2 * 157 / 2.5])
    assert posix["span_bytes_per_s"] == pytest.approx(157 / 2.5)
    read = result["layers"]["POSIX"]["read"]
    assert (read["bytes"], read["calls"]) == (50, 1)
    assert read["perceived_bytes_per_s"] == [None, pytest.approx(2 * 50 / 0.5)]
    assert result["layers"]["POSIX"]["lock"] == {"calls": 1, "failed": 0, "time_s": 0.5, "longest_s": 0.5}
    assert result["layers"]["POSIX"]["unlock"] == {"calls": 1, "failed": 0, "time_s": 0.25, "longest_s": 0.25}
    # 100 B twice: 64 .. 127; 150 B: 128 .. 255; 7 B: 4 .. 7.
    assert mpi["sizes"] == {"64": 2}
    assert posix["sizes"] == {"4": 1, "128": 1}
    assert (mpi["longest_s"], posix["longest_s"]) == (4.0, 1.5)
    assert result["slowest"]["MPI-IO"]["write"] == {"rank": 0, "time_s": 4.0, "mean_s": 3.0}
    assert result["slowest"]["POSIX"]["write"] == {"rank": 0, "time_s": 2.5, "mean_s": 1.25}
    assert set(result["slowest"]) == {"MPI-IO", "POSIX"}


def test_every_layer_is_there_whether_it_occurs_or_not() -> None:
    layers = printed(two_writers().trace())["layers"]
    assert list(layers) == ["MPI-IO", "POSIX", "STDIO", "HDF5", "PnetCDF", "netCDF", "MPI"]
    for ops in layers.values():
        assert list(ops) == list(OPS)
    assert layers["HDF5"]["write"]["calls"] == 0
    assert layers["HDF5"]["write"]["perceived_bytes_per_s"] is None
    assert layers["netCDF"]["lock"] == {"calls": 0, "failed": 0, "time_s": 0.0, "longest_s": 0.0}


def test_every_function_has_a_layer_and_an_operation_that_reports_know() -> None:
    for function in FUNCTIONS:
        assert function.layer in LAYERS, function
        assert function.op in OPS, function


def test_waiting_for_locks() -> None:
    builder = two_writers()
    slow = Call(1, "fcntl_lock", 30, 33, "/data/log", 1)
    builder.add(slow, Call(1, "fcntl_lock", 40, 41, "/data/log", 1, failed=True))
    locks = printed(builder.trace())["locks"]
    assert (locks["calls"], locks["failed"], locks["time_s"]) == (3, 1, 4.5)
    assert locks["longest"] == {"time_s": 3.0, "start_s": 30.0, "rank": 1, "path": "/data/log"}
    assert locks["by_file"] == [
        {"path": "/data/log", "calls": 2, "failed": 1, "time_s": 4.0, "longest_s": 3.0},
        {"path": "/data/dump", "calls": 1, "failed": 0, "time_s": 0.5, "longest_s": 0.5},
    ]
    assert [(row["rank"], row["time_s"]) for row in locks["by_rank"]] == [(1, 4.0), (0, 0.5)]


def test_call_sites() -> None:
    builder = Builder()
    first, second = builder.rank(0, 2), builder.rank(1, 2)
    builder.add(
        Call(first, "pwrite", 0, 1, "f", 5, site=1),
        Call(second, "pwrite", 0, 1, "f", 6, site=1),
        Call(second, "pread", 2, 7, "f", 4, site=2),
        Call(second, "pwrite", 8, 9, "f", 100),
    )
    trace = builder.trace()
    rows = printed(trace)["call_sites"]
    assert [(row["op"], row["calls"], row["bytes"], row["time_s"]) for row in rows] == [
        ("read", 1, 4, 5.0),
        ("write", 2, 11, 2.0),
    ]
    assert [(row["module"], row["address"], row["function"]) for row in rows] == [
        ("/usr/bin/solver", 0x1002, None),
        ("/usr/bin/solver", 0x1001, None),
    ]
    assert [row["where"] for row in rows] == ["solver+0x1002", "solver+0x1001"]
    assert any("/usr/bin/solver are addresses only" in message for message in printed(trace)["messages"])
    assert printed(two_writers().trace())["call_sites"] == []


def test_what_library_calls_are_made_of() -> None:
    builder = Builder()
    rank = builder.rank(0, 1)
    library = next(f for f in FUNCTIONS if f.layer == "HDF5" and f.op == "write")
    meta = next(f for f in FUNCTIONS if f.layer == "HDF5" and f.op == "meta")
    write = Call(rank, library.name, 0, 10, "f", 8)
    again = write.inside(meta.name, 1, 9)  # of its own layer: part of it
    view, data = again.inside("MPI_File_set_view", 1, 3), again.inside("MPI_File_write_at_all", 3, 8, 8)
    builder.add(write, again, view, data, data.inside("pwrite", 4, 7, 8), again.inside("pwrite", 8.5, 9, 1))
    result = printed(builder.trace())
    assert result["inside"] == [
        {
            "layer": "HDF5", "op": "write", "calls": 1, "time_s": 10.0, "other_s": 2.5, "waiting_s": 0.0,
            "parts": [
                {"layer": "MPI-IO", "op": "write", "calls": 1, "bytes": 8, "time_s": 5.0},
                {"layer": "MPI-IO", "op": "view", "calls": 1, "bytes": 0, "time_s": 2.0},
                {"layer": "POSIX", "op": "write", "calls": 1, "bytes": 1, "time_s": 0.5},
            ],
        }
    ]  # fmt: skip
    text = text_of(builder)
    assert "Inside of 1 HDF5 write calls (10.00 s, summed over ranks)" in text
    assert "   20 %    2.00 s  MPI-IO view" in text
    assert "   25 %    2.50 s  HDF5 itself" in text
    assert result["decomposition"]["write"]["parts"]["write"] == 3.0


def test_what_completes_a_call_adds_time_but_neither_calls_nor_bytes() -> None:
    builder = Builder()
    rank = builder.rank(0, 1)
    wait = next(f for f in FUNCTIONS if f.completes and f.layer == "MPI-IO" and f.op == "write")
    waiting = Call(rank, wait.name, 2, 7, "f", 99)
    builder.add(Call(rank, "MPI_File_iwrite_at", 0, 1, "f", 10), waiting, waiting.inside("pwrite", 3, 6, 10))
    result = printed(builder.trace())
    write = result["layers"]["MPI-IO"]["write"]
    assert (write["calls"], write["bytes"], write["time_s"], write["sizes"]) == (1, 10, 6.0, {"8": 1})
    assert write["span_s"] == 6.0
    assert result["decomposition"]["write"]["parts"]["write"] == 3.0
    assert result["io"]["mean_s"] == 6.0
    assert result["io"]["where"][0]["bytes"] == 10


def test_ranks_that_write_through_file_streams() -> None:
    builder = Builder()
    ranks = [builder.rank(rank, 3) for rank in range(3)]
    builder.add(Call(ranks[1], "fwrite", 0, 1, "f", 10), Call(ranks[2], "fread", 0, 1, "f", 10))
    result = printed(builder.trace())
    assert (result["storage"]["write"]["stdio_ranks"], result["storage"]["read"]["stdio_ranks"]) == ([1], [2])
    assert result["storage"]["write"]["ranks"] == []
    assert result["layers"]["POSIX"]["write"]["bytes"] == 0
    assert "STDIO: rank 1 (of 3) wrote through FILE streams." in text_of(builder)
    assert "STDIO: rank 2 (of 3) read through FILE streams." in text_of(builder)


def test_no_locks() -> None:
    builder = Builder()
    builder.add(Call(builder.rank(0, 1), "pwrite", 0, 1, "f", 1))
    assert printed(builder.trace())["locks"] == {
        "calls": 0, "failed": 0, "time_s": 0.0, "longest": None, "by_file": [], "by_rank": [],
    }  # fmt: skip


def test_aggregators_touch_storage_inside_of_collective_calls() -> None:
    builder = Builder()
    ranks = [builder.rank(rank, 3) for rank in range(3)]
    collective = [Call(rank, "MPI_File_write_at_all", 0, 4, "f", 10) for rank in ranks]
    independent = Call(2, "MPI_File_write_at", 5, 6, "f", 10)
    builder.add(*collective, collective[1].inside("pwrite", 1, 2, 30), collective[0].inside("fcntl_lock", 1, 2, 30))
    builder.add(independent, independent.inside("pwrite", 5, 6, 10))
    storage = printed(builder.trace())["storage"]["write"]
    assert storage["aggregators"] == [1]
    assert storage["ranks"] == [1, 2]
    assert storage["by_rank"] == [
        {"rank": 1, "bytes": 30, "calls": 1, "time_s": 1.0},
        {"rank": 2, "bytes": 10, "calls": 1, "time_s": 1.0},
    ]


def test_where_the_time_went() -> None:
    result = printed(two_writers().trace())
    # rank 0: 4 s + 1 s, rank 1: 2 s; of 100 s.
    assert result["io"]["mean_s"] == 3.5
    assert result["io"]["max_s"] == 5.0
    assert result["io"]["slowest"] == 0
    assert result["io"]["share_of_wall"] == pytest.approx(0.035)
    assert result["io"]["where"] == [
        {"layer": "MPI-IO", "op": "write", "mean_s": 3.0, "calls": 2, "bytes": 200},
        {"layer": "POSIX", "op": "write", "mean_s": 0.5, "calls": 1, "bytes": 7},
    ]
    assert result["decomposition"]["write"] == {
        "calls": 2,
        "time_s": 6.0,
        "parts": {"write": 1.5, "read": 0.5, "lock": 0.5, "unlock": 0.25, "posix_other": 0.0, "other": 3.25},
        "waiting_s": 0.0,
        "asynchronous_s": 0.0,
    }
    assert result["decomposition"]["read"]["calls"] == 0
    assert result["origins"]["application"]["write"] == {"calls": 1, "time_s": 1.0, "bytes": 7}
    assert result["origins"]["mpi_library"]["write"] == {"calls": 1, "time_s": 1.5, "bytes": 150}
    assert result["origins"]["engine"]["write"]["calls"] == 0
    assert result["storage"]["write"]["ranks"] == [0]
    assert result["storage"]["write"]["slowest"] == {"rank": 0, "time_s": 2.5, "bytes": 157, "mean_time_s": 2.5}


def test_files_have_their_own_figures() -> None:
    files = printed(two_writers().trace())["files"]
    assert [row["path"] for row in files] == ["/data/dump", "/data/log"]
    assert files[0]["layers"]["MPI-IO"]["write"]["bytes"] == 200
    assert files[0]["layers"]["POSIX"]["write"]["bytes"] == 150
    assert files[0]["layers"]["POSIX"]["write"]["perceived_bytes_per_s"] == pytest.approx([200 / 3, 200.0])
    assert files[0]["decomposition"]["write"]["parts"]["other"] == 3.25
    assert files[1]["layers"]["POSIX"]["write"] == {
        "bytes": 7, "calls": 1, "failed": 0, "time_s": 1.0, "perceived_bytes_per_s": [None, 14.0],
        "effective_bytes_per_s": 7.0, "span_bytes_per_s": 7.0, "span_s": 1.0, "longest_s": 1.0, "sizes": {"4": 1},
        "size_ranges": {"4": [7, 7]}, "asynchronous_s": 0.0,
    }  # fmt: skip
    assert files[1]["layers"]["MPI-IO"]["write"]["calls"] == 0


def test_a_call_inside_its_own_layer_counts_once() -> None:
    builder = Builder()
    rank = builder.rank(0, 1)
    outer = Call(rank, "MPI_File_write_all", 0, 4, "f", 10)
    inner = outer.inside("MPI_File_write_at_all", 1, 3, 10)
    builder.add(outer, inner, inner.inside("pwrite", 1.5, 2.5, 10))
    result = printed(builder.trace())
    assert result["layers"]["MPI-IO"]["write"]["calls"] == 1
    assert result["layers"]["MPI-IO"]["write"]["bytes"] == 10
    assert result["layers"]["POSIX"]["write"]["calls"] == 1
    assert result["decomposition"]["write"]["parts"]["write"] == 1.0
    assert result["decomposition"]["write"]["parts"]["other"] == 3.0


def test_a_call_whose_parent_never_returned_is_not_lost() -> None:
    builder = Builder()
    rank = builder.rank(0, 1, finalized=False, end_s=None)
    cut = Call(rank, "MPI_File_write_at_all", 1, 9, "f", 10, recorded=False)
    builder.add(cut, cut.inside("pwrite", 2, 3, 10))
    result = printed(builder.trace())
    assert result["layers"]["POSIX"]["write"]["bytes"] == 10
    assert result["layers"]["MPI-IO"]["write"]["calls"] == 0
    assert result["io"]["mean_s"] == 1.0
    assert result["partial_reasons"] == ["never reached MPI_Finalize: rank 0"]


def test_paths_that_name_one_file_are_one_file() -> None:
    builder = Builder()
    rank = builder.rank(0, 1)
    builder.add(
        Call(rank, "MPI_File_write_at", 0, 1, "ufs:out/./x", 1),
        Call(rank, "pwrite", 2, 3, "/scratch/out/x", 2),
        Call(rank, "pwrite", 4, 5, "/scratch/a:b", 4),
    )
    files = {row["path"]: row["layers"] for row in printed(builder.trace())["files"]}
    assert set(files) == {"/scratch/out/x", "/scratch/a:b"}
    assert files["/scratch/out/x"]["MPI-IO"]["write"]["bytes"] == 1
    assert files["/scratch/out/x"]["POSIX"]["write"]["bytes"] == 2


def test_without_mpi_everything_counts() -> None:
    builder = Builder()
    shell, tool = builder.process(executable="/bin/sh"), builder.process(executable="/bin/tool")
    builder.add(Call(shell, "read", 0, 1, "script", 3), Call(tool, "write", 1, 3, "out", 8))
    result = printed(builder.trace())
    assert (result["ranks"], result["processes"]) == (0, 2)
    assert result["layers"]["POSIX"]["write"]["perceived_bytes_per_s"] == [None, 2 * 8 / 2]
    assert result["storage"]["write"]["ranks"] == [1001]
    assert not result["partial"]
    assert result["not_counted"] == []


def test_an_empty_trace_is_a_report_too() -> None:
    result = printed(Builder().trace())
    assert result["events"] == 0
    assert result["layers"]["POSIX"]["write"]["perceived_bytes_per_s"] == [None, None]
    assert result["files"] == []
    out = io.StringIO()
    report_text.write(report.build(Builder().trace()), out)
    assert "No file I/O was seen" in out.getvalue()
    assert "Definitions" not in out.getvalue()


def test_failed_calls_move_nothing_and_are_counted() -> None:
    builder = Builder()
    rank = builder.rank(0, 1)
    builder.add(Call(rank, "pwrite", 0, 1, "f", -28, failed=True), Call(rank, "pwrite", 1, 2, "f", 5))
    write = printed(builder.trace())["layers"]["POSIX"]["write"]
    assert (write["calls"], write["failed"], write["bytes"]) == (2, 1, 5)


def test_the_tracers_own_calls_do_not_count() -> None:
    builder = Builder()
    rank = builder.rank(0, 1)
    builder.add(Call(rank, "pwrite", 0, 1, "node.iowt", 4096, origin="tracer"))
    result = printed(builder.trace())
    assert result["events_counted"] == 0
    assert result["layers"]["POSIX"]["write"]["bytes"] == 0


class TestPartial:
    """Every reason why a trace may lack something, and that a whole one has none."""

    @staticmethod
    def reasons(builder: Builder, **more: Any) -> list[str]:
        result = printed(builder.trace(**more))
        assert result["partial"] == bool(result["partial_reasons"])
        reasons: list[str] = result["partial_reasons"]
        return reasons

    def test_none(self) -> None:
        assert self.reasons(two_writers()) == []

    def test_dropped(self) -> None:
        assert self.reasons(two_writers(), dropped=3) == ["3 events were dropped"]

    def test_damage(self) -> None:
        assert self.reasons(two_writers(), damage=("node-a.iowt: chunk at 65536",)) == [
            "damaged: node-a.iowt: chunk at 65536"
        ]

    def test_no_finalize(self) -> None:
        builder = two_writers()
        builder.rank(2, 4, finalized=False)
        builder.rank(3, 4, finalized=False, end_s=None)
        assert self.reasons(builder) == ["never reached MPI_Finalize: ranks 2-3"]

    def test_no_end(self) -> None:
        builder = two_writers()
        builder.rank(2, 3, end_s=None)
        assert self.reasons(builder) == ["did not end normally after MPI_Finalize: rank 2"]

    def test_a_rank_that_went_on_by_exec_did_not_end_abnormally(self) -> None:
        builder = two_writers()
        builder.rank(2, 3, end_s=None, pid=77, start_s=1)
        builder.process(pid=77, start_s=50, executable="/bin/next")
        assert self.reasons(builder) == []

    def test_missing_rank(self) -> None:
        builder = two_writers()
        builder.rank(3, 4)
        assert self.reasons(builder) == ["left no trace: rank 2 of 4"]

    def test_ranks_that_nobody_has_seen_take_no_memory(self) -> None:
        """A trace may say that there were millions."""
        builder = Builder()
        builder.rank(5, 1 << 24)
        trace = builder.trace()
        tracemalloc.start()
        try:
            reasons = report.build(trace).partial_reasons
            assert tracemalloc.get_traced_memory()[1] < 64 << 20
        finally:
            tracemalloc.stop()
        assert reasons == ["left no trace: ranks 0-4, 6-16777215 of 16777216"]

    def test_signal(self) -> None:
        assert self.reasons(two_writers(), run={"signal": signal.SIGKILL.value, "exit_code": None}) == [
            "the command was ended by signal 9 (SIGKILL)"
        ]

    def test_exit_code_of_a_killed_child(self) -> None:
        assert self.reasons(two_writers(), run={"exit_code": 137}) == [
            "the command returned 137: something it started was ended by SIGKILL"
        ]
        assert self.reasons(two_writers(), run={"exit_code": 255}) == []

    def test_still_running(self) -> None:
        assert "has not ended" in self.reasons(two_writers(), run={"state": "running"})[0]

    def test_disabled_part(self) -> None:
        builder = two_writers()
        builder.notes.append(Note(0, "disabled", text="no space for buffers"))
        assert self.reasons(builder) == ["disabled: no space for buffers"]


def test_notes_of_the_engine() -> None:
    builder = two_writers()
    for process in (0, 1):
        builder.notes += [
            Note(process, "plan_applied", "/data/dump", 0, "rule 1: everyone"),
            Note(process, "passed_through", "/data/dump", 5, "atomic mode"),
        ]
    builder.notes.append(Note(0, "verify_mismatch", "/data/dump", 1, "1 byte differs"))
    plan = printed(builder.trace(run={"plan": "p.toml", "verify": True}))["plan"]
    assert plan["applied"] == [{"path": "/data/dump", "text": "rule 1: everyone"}]
    assert plan["passed_through"] == [{"path": "/data/dump", "text": "atomic mode", "calls": 10}]
    assert plan["verify"]["result"] == "mismatch"
    builder.notes.pop()
    assert printed(builder.trace(run={"verify": True}))["plan"]["verify"]["result"] == "nothing verified"
    assert printed(builder.trace())["plan"]["verify"]["result"] is None
    builder.notes.append(Note(0, "verify_ok", "/data/dump", 200, ""))
    assert printed(builder.trace(run={"verify": True}))["plan"]["verify"]["result"] == "ok"


def test_what_verification_reads_back_is_no_io_of_the_program() -> None:
    builder = Builder()
    rank = builder.rank(0, 1)
    read = Call(rank, "MPI_File_read_at_all", 0, 1, "/d/f", 4)
    close = Call(rank, "MPI_File_close", 2, 9, "/d/f")
    builder.add(
        read, read.inside("pread", 0, 1, 4, origin="engine"),
        close, close.inside("pread", 3, 5, 100, origin="engine"), close.inside("pwrite", 6, 7, 8, origin="engine"),
    )  # fmt: skip
    result = printed(builder.trace(run={"verify": True}))
    assert result["verification"] == {"calls": 1, "bytes": 100, "time_s": 2.0}
    assert result["layers"]["POSIX"]["read"]["bytes"] == 4
    assert result["layers"]["POSIX"]["write"]["bytes"] == 8
    assert result["origins"]["engine"]["read"]["calls"] == 1


def work(process: int, **figures: int) -> EngineWork:
    return EngineWork(process, "dump", {**dict.fromkeys(compiled().engine_figures, 0), **figures})


def test_what_the_engine_did_is_added_by_file() -> None:
    builder = two_writers()
    builder.engine_work += [
        work(0, written_bytes=10, operations=2, elapsed_ns=9),
        work(
            1, calls=1, written_bytes=6, read_bytes=5, operations=2, elapsed_ns=9, alone_by_choice=7, exchanges=3,
            rounds=6, exchange_ns=500_000_000, storage_ns=250_000_000, messages=4, sent_bytes=99, in_subgroups=2,
            exchange_processor_ns=125_000_000,
        ),
        work(1, calls=2),
    ]  # fmt: skip
    plan = report.build(builder.trace()).plan
    (row,) = plan.engine
    assert {figure.removesuffix("_ns") for figure in compiled().engine_figures} == {
        field.removesuffix("_s") for field in vars(row) if field not in ("path", "ranks", "bytes")
    }
    assert vars(row) == {
        "path": "/scratch/dump", "ranks": 2, "bytes": 21, "read_bytes": 5, "written_bytes": 16, "calls": 3,
        "operations": 4, "elapsed_s": pytest.approx(18e-9), "alone_by_choice": 7, "exchanges": 3,
        "rounds": 6, "exchange_s": pytest.approx(0.5), "storage_s": pytest.approx(0.25), "messages": 4,
        "exchange_processor_s": pytest.approx(0.125), "sizes_deferred": 0, "sizes_grown": 0, "too_large": 0,
        "sent_bytes": 99, "in_subgroups": 2, "handed_bytes": 0, "hand_s": 0, "room_waits": 0, "room_wait_s": 0,
        "writer_s": 0,
    }  # fmt: skip
    assert report_text.plan_lines(plan)[0] == "engine: moved 21 B (/scratch/dump)"


def test_words_of_earlier_traces_are_shown_as_they_are() -> None:
    builder = two_writers()
    builder.notes += [Note(p, "engine_summary", "dump", 10, "calls 3") for p in (0, 1)]
    result = printed(builder.trace())
    (row,) = result["plan"]["engine"]
    assert (row["path"], row["ranks"], row["bytes"]) == ("/scratch/dump", 2, 20)
    assert "dump: the engine: calls 3" in result["messages"]


def test_write_behind_has_rbios_two_bandwidths() -> None:
    builder = two_writers()
    behind = {"calls": 1, "written_bytes": 10, "handed_bytes": 4 << 20, "room_wait_ns": 1_000_000}
    builder.engine_work += [
        work(0, **behind, hand_ns=10**9, room_waits=1, writer_ns=4 * 10**9),
        work(1, **behind, hand_ns=3 * 10**9, writer_ns=2 * 10**9),
    ]
    plan = report.build(builder.trace()).plan
    (row,) = plan.engine
    assert row.handed_bytes == 8 << 20
    assert row.hand_s == pytest.approx(4)
    assert row.writer_s == pytest.approx(4), "the slowest, not the sum"
    assert row.room_waits == 1
    line = report_text.plan_lines(plan)[1]
    # 8 MiB in 2 s, which is the mean of 1 and 3; and in the 4 s of the slowest writer.
    assert line == (
        "write-behind: handed over 8.00 MiB in 2.00 s (mean of ranks; perceived 4.00 MiB/s); slowest writer 4.00 s "
        "(actual 2.00 MiB/s); 1 wait for room, 2 ms"
    )


def test_files_that_a_rule_leaves_to_the_mpi_library_are_no_lack_of_the_plan() -> None:
    """writers = "library" with keys for HDF5; and without any, when nothing was done."""
    left = [PassedThrough("/d/f", "left to the MPI library by its rule", 0)]
    with_keys = first_lines.carried_out("plan.toml", [], left, 0, ["/d/f"])
    assert (with_keys.state, with_keys.reasons) == (first_lines.APPLIED, [])
    nothing = first_lines.carried_out("plan.toml", [], left, 0, [])
    assert nothing.state == first_lines.NOT_APPLIED
    assert [reason.text for reason in nothing.reasons] == ["left to the MPI library by its rule"]


def test_a_plan_that_did_the_same_to_many_files_is_one_line() -> None:
    builder = two_writers()
    builder.notes += [Note(0, "plan_applied", f"/d/{n}", 0, "rule x") for n in range(5)]
    lines = report_text.plan_lines(report.build(builder.trace()).plan)
    assert lines == ["applied: rule x (/d/0, /d/1 and 3 more files)"]


def test_the_json_is_json_and_has_the_promised_keys() -> None:
    result = printed(two_writers().trace())
    for key in ("ranks", "wall_s", "events", "dropped", "partial", "layers", "files"):
        assert key in result
    data = {"bytes", "calls", "time_s", "perceived_bytes_per_s", "effective_bytes_per_s", "span_bytes_per_s"}
    for layers in (result["layers"], *(row["layers"] for row in result["files"])):
        for layer in ("MPI-IO", "POSIX"):
            assert data <= set(layers[layer]["write"])
            assert data <= set(layers[layer]["read"])
            assert {"calls", "time_s"} <= set(layers[layer]["lock"])
