"""Files that MPI runtimes make, as seen under Open MPI 4.1 and MPICH 4.0, and files of programs that look similar."""

from __future__ import annotations

import pytest
from ioweir.trace.runtime_files import is_runtime_file
from traces import Builder, Call, printed


@pytest.mark.parametrize(
    "path",
    [
        "/dev/shm/vader_segment.vm.0.6d320001.1",
        "/dev/shm/mpich_shar_tmpb2ywwr",
        "/tmp/ompi.vm.0/pid.460/1/out.dat_cid--1-1.sm",
        "/tmp/ompi.vm.0/pid.460/pmix_dstor_ds21_460/smseg-1831993345-0",
        "/tmp/spmix_appdir_1000_4711.0",
        "/var/spool/slurm/n1/spmix_appdir_0_15.2/out.dat_cid-0-1131.sm",
        "/scratch/out.dat.locktest.12",
        "/scratch/out.dat-461645804-663.lock",
    ],
)
def test_runtime_files(path: str) -> None:
    assert is_runtime_file(path)


@pytest.mark.parametrize(
    "path",
    [
        "/dev/shm/out.dat",
        "/dev/shm/test/vader_segment_of_mine/out.dat",
        "/tmp/ompi-results/out.dat",
        "/home/user/ompi.results/out.dat",
        "/data/locktest.1",
        "/data/x.locktest",
        "/data/mypmix/x",
        "/data/spmix_appdir_of_mine/x",
        "/data/run-12-7.lock",
        "/data/out.dat-461645804-663.lock.dat",
        "",
    ],
)
def test_files_of_programs(path: str) -> None:
    assert not is_runtime_file(path)


def test_they_are_counted_apart() -> None:
    builder = Builder()
    rank = builder.rank(0, 1)
    opened = Call(rank, "MPI_File_open", 0, 4, "/d/f")
    builder.add(
        opened,
        opened.inside("fcntl_lock", 1, 2, 1, path="/d/f.locktest.0"),
        Call(rank, "write", 5, 6, "/dev/shm/vader_segment.n.0.1.0", 40),
        Call(rank, "write", 7, 8, "/dev/shm/mine", 2),
    )
    result = printed(builder.trace())
    assert result["layers"]["POSIX"]["lock"]["calls"] == 0
    assert result["layers"]["POSIX"]["write"]["bytes"] == 2
    assert {row["path"] for row in result["files"]} == {"/d/f", "/dev/shm/mine"}
    assert result["runtime_files"] == {"files": 2, "events": 2, "bytes": 40}
    assert result["io"]["mean_s"] == 5.0
