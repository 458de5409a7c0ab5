"""Who waits for whom, and what goes on meanwhile: arrival at collective calls, waiting in MPI, aio."""

from __future__ import annotations

from typing import Any

import pytest
from ioweir.base.spec_names import MPI_IO, POSIX, WAITING
from ioweir.report import build, report_text
from traces import Builder, Call, printed

MIB = 1 << 20


def lines(builder: Builder) -> str:
    return "\n".join(report_text.headline(build(builder.trace())))


def late_writes(rounds: int = 1, ranks: int = 3) -> Builder:
    """Collective writes of which the last rank comes 10 s after all others; each takes 1 s from there."""
    builder = Builder()
    for rank in range(ranks):
        process = builder.rank(rank, ranks)
        for at in range(rounds):
            begin = 30.0 * at + (10 if rank < ranks - 1 else 20)
            call = Call(process, "MPI_File_write_at_all", begin, 30.0 * at + 21, "/out", MIB)
            builder.add(call, call.inside("pwrite", 30.0 * at + 20.5, 30.0 * at + 21, MIB))
    return builder


def test_the_late_rank_is_named_and_not_those_that_wait_for_it() -> None:
    report = printed(late_writes().trace())
    assert report["io"]["slowest"] == 2
    assert report["io"]["max_s"] == pytest.approx(11.0)  # a second of its own, and ten for which the others waited
    assert report["io"]["late"] == [{"rank": 2, "calls": 1, "time_s": pytest.approx(10.0)}]
    assert report["io"]["collective_calls"] == 1
    assert report["io"]["waiting_s"] == pytest.approx(20 / 3)
    assert report["slowest"][MPI_IO]["write"]["rank"] == 2
    write = report["decomposition"]["write"]
    assert write["waiting_s"] == pytest.approx(20.0)
    assert write["parts"]["other"] == pytest.approx(21.5)
    said = lines(late_writes())
    assert "Longest in I/O: rank 2 with 11.00 s: it came last to 1 of 1 collective call" in said
    assert "the others waited 10.00 s for it" in said


def test_calls_inside_of_a_library_wait_for_the_same_rank() -> None:
    builder = Builder()
    for rank in range(2):
        process = builder.rank(rank, 2)
        whole = Call(process, "H5Dwrite", 10.0 * rank, 21, "/out", MIB)
        builder.add(whole, whole.inside("MPI_File_write_at_all", 10.0 * rank, 21, MIB, origin="application"))
    report = printed(builder.trace())
    assert report["slowest"]["HDF5"]["write"]["rank"] == 1
    assert report["io"]["slowest"] == 1
    assert report["io"]["waiting_s"] == pytest.approx(5.0)


def test_collective_calls_that_do_not_wait_are_no_meeting() -> None:
    """The first rank moves its bytes before the last one comes; or it has returned by then."""
    for ends in (21.0, 15.0):
        builder = Builder()
        for rank, (begin, stop) in enumerate(((10.0, ends), (20.0, 21.0))):
            call = Call(builder.rank(rank, 2), "MPI_File_write_at_all", begin, stop, "/out", MIB)
            builder.add(call)
            if ends == 21.0:
                builder.add(call.inside("pwrite", begin, begin + 0.5, MIB))
        report = printed(builder.trace())
        assert report["io"]["collective_calls"] == 0
        assert report["io"]["slowest"] == 0


def test_waiting_in_mpi_is_no_input_or_output() -> None:
    builder = Builder()
    first, second = builder.rank(0, 2), builder.rank(1, 2)
    builder.add(
        Call(first, "MPI_Barrier", 1, 5),
        Call(second, "MPI_Recv", 1, 3),
        Call(second, "pwrite", 6, 8, "/data/x", MIB),
    )
    report = printed(builder.trace())
    assert report["layers"][WAITING]["wait"]["calls"] == 2
    assert report["layers"][WAITING]["wait"]["time_s"] == pytest.approx(6.0)
    assert report["io"]["mpi_waiting_s"] == pytest.approx(3.0)
    assert report["io"]["mean_s"] == pytest.approx(1.0)
    assert [row["path"] for row in report["files"]] == ["/data/x"]
    assert [row["layer"] for row in report["io"]["where"]] == [POSIX]
    assert "Waiting in MPI outside of I/O: 3.00 s on an average rank (3 % of the run)." in lines(builder)


def test_waiting_inside_of_a_library_is_said_there() -> None:
    builder = Builder()
    whole = Call(builder.rank(0, 1), "H5Fclose", 10, 20, "/x.h5")
    builder.add(whole, Call(0, "MPI_Barrier", 11, 15, parent=whole))
    (inside,) = printed(builder.trace())["inside"]
    assert (inside["layer"], inside["op"], inside["other_s"]) == ("HDF5", "close", pytest.approx(6.0))
    assert [(part["layer"], part["op"], part["time_s"]) for part in inside["parts"]] == [(WAITING, "wait", 4.0)]
    assert "Inside of 1 HDF5 closes (10.00 s" in whole_text(builder)


def whole_text(builder: Builder) -> str:
    from io import StringIO

    out = StringIO()
    report_text.write(build(builder.trace()), out)
    return out.getvalue()


def asynchronous(*requests: tuple[float, float], whole: bool = True) -> dict[str, Any]:
    """Requests that last from the one time to the other, inside of a collective write from 0 to 10 s."""
    builder = Builder()
    process = builder.rank(0, 1)
    call = Call(process, "MPI_File_write_at_all", 0, 10, "/out", MIB)
    if whole:
        builder.add(call)
    more: dict[str, Any] = {"parent": call, "origin": "mpi_library"} if whole else {}
    first = 2 if whole else 1  # the number of the first call inside
    for begin, _ in requests:
        builder.add(Call(process, "aio_write", begin, begin + 0.001, "/out", MIB, **more))
    for at, (_, stop) in enumerate(requests):
        builder.add(
            Call(process, "aio_error (write)", stop - 0.001, stop, "/out", offset=first + at, **more),
            Call(process, "aio_return (write)", stop, stop + 0.001, "/out", offset=first + at, **more),
        )
    return printed(builder.trace())


def test_an_asynchronous_request_lasts_until_its_end_is_known() -> None:
    report = asynchronous((1, 9))
    posix = report["layers"][POSIX]["write"]
    assert (posix["calls"], posix["bytes"]) == (1, MIB)
    assert posix["time_s"] == posix["longest_s"] == pytest.approx(8.0)
    assert posix["span_s"] == pytest.approx(8.001)  # and the call that gives the request back
    assert posix["effective_bytes_per_s"] == pytest.approx(MIB / 8)
    assert posix["asynchronous_s"] == pytest.approx(7.999)
    write = report["decomposition"]["write"]
    assert write["parts"]["write"] == pytest.approx(8.0)
    assert write["parts"]["other"] == pytest.approx(2.0)
    assert write["asynchronous_s"] == pytest.approx(7.999)


def test_requests_that_overlap_count_once() -> None:
    report = asynchronous((1, 5), (2, 9))
    assert report["layers"][POSIX]["write"]["time_s"] == pytest.approx(8.001)  # 1 to 9, and the second submission
    assert report["decomposition"]["write"]["parts"]["write"] == pytest.approx(8.001)


def test_requests_of_the_program_do_not_keep_it_in_input_or_output() -> None:
    report = asynchronous((1, 9), whole=False)
    assert report["io"]["mean_s"] == pytest.approx(0.003)
    assert report["layers"][POSIX]["write"]["time_s"] == pytest.approx(8.0)


def test_what_overlaps_asynchronous_requests_is_said() -> None:
    builder = Builder()
    process = builder.rank(0, 1)
    call = Call(process, "MPI_File_write_at_all", 0, 10, "/out", MIB)
    builder.add(
        call,
        call.inside("aio_write", 1, 1.001, MIB),
        call.inside("aio_return (write)", 8.999, 9, offset=2),
    )
    said = whole_text(builder)
    assert "80 %    8.00 s  POSIX writes" in said
    assert "8.00 s of the POSIX calls are asynchronous: they went on while the rank passed on data, waited" in said
