"""Which processes count: trees of processes as wrappers, launchers, forks and execs make them."""

from __future__ import annotations

import time
from collections import Counter

import pytest
from ioweir.trace.attribute import Role, attribute_processes
from ioweir.trace.reader import Process
from traces import Builder, Call, printed


def roles(builder: Builder) -> list[Role]:
    return list(attribute_processes(builder.processes).roles)


def test_bash_wrapper_that_execs_the_rank() -> None:
    builder = Builder()
    builder.process(pid=10, end_s=None, executable="/bin/bash")
    builder.rank(0, 1, pid=10, start_s=1)
    assert roles(builder) == [Role.ANCESTOR, Role.RANK]


def test_bash_wrapper_that_waits_for_the_rank() -> None:
    builder = Builder()
    builder.process(pid=5, executable="/usr/bin/mpirun")
    builder.process(pid=10, ppid=5, executable="/bin/bash", start_s=0.5)
    builder.rank(0, 1, pid=11, ppid=10, start_s=1)
    assert roles(builder) == [Role.ANCESTOR, Role.ANCESTOR, Role.RANK]


def test_what_a_wrapper_runs_before_its_exec_is_outside() -> None:
    builder = Builder()
    builder.process(pid=10, end_s=None, executable="/bin/bash")
    builder.process(pid=12, ppid=10, start_s=0.5, end_s=0.6, executable="/bin/hostname")
    builder.rank(0, 1, pid=10, start_s=1)
    assert roles(builder) == [Role.ANCESTOR, Role.OUTSIDE, Role.RANK]


def test_children_of_ranks_count_for_their_rank() -> None:
    builder = Builder()
    builder.rank(3, 4, pid=10)
    builder.process(pid=20, ppid=10, start_s=2, end_s=None)  # fork
    builder.process(pid=20, ppid=10, start_s=3, executable="/bin/gzip")  # exec
    builder.process(pid=30, ppid=20, start_s=4, executable="/bin/tool")
    found = attribute_processes(builder.processes)
    assert found.roles == (Role.RANK, Role.DESCENDANT, Role.DESCENDANT, Role.DESCENDANT)
    assert [found.unit_names[unit] for unit in found.units] == [3, 3, 3, 3]
    assert found.unit_count == 4


def test_what_a_rank_becomes_by_exec_counts() -> None:
    builder = Builder()
    builder.rank(0, 1, pid=10, end_s=None)
    builder.process(pid=10, start_s=60, executable="/bin/post")
    assert roles(builder) == [Role.RANK, Role.DESCENDANT]


def test_a_pid_that_is_used_again_is_not_the_old_process() -> None:
    builder = Builder()
    builder.rank(0, 1, pid=10, end_s=50)
    builder.process(pid=10, ppid=1, start_s=60, executable="/bin/other")
    assert roles(builder) == [Role.RANK, Role.OUTSIDE]


def test_pids_of_other_hosts_are_other_processes() -> None:
    builder = Builder()
    builder.rank(0, 1, pid=10, host="a")
    builder.process(pid=20, ppid=10, start_s=1, host="b")
    assert roles(builder) == [Role.RANK, Role.OUTSIDE]


def test_a_recorded_fork_outranks_pids() -> None:
    builder = Builder()
    builder.rank(0, 1, pid=10, image=7)
    builder.process(pid=20, ppid=1, start_s=2, parent_image=7)  # its parent has gone, it was adopted by init
    assert roles(builder) == [Role.RANK, Role.DESCENDANT]


def test_processes_that_name_each_other_end_the_walk() -> None:
    builder = Builder()
    builder.process(pid=1, ppid=2)
    builder.process(pid=2, ppid=1)
    builder.rank(0, 1, pid=3, ppid=2, start_s=1)
    assert roles(builder) == [Role.ANCESTOR, Role.ANCESTOR, Role.RANK]


@pytest.mark.parametrize("rank", [0, 29_999])
def test_a_long_line_of_processes_takes_time_by_its_length(rank: int) -> None:
    """Each started by the one before; looking up from each to the first takes a minute."""
    processes = [
        Process(at + 2, ppid=at + 1, image=at + 1, start_ns=at, rank=0 if at == rank else -1, ranks=1)
        for at in range(30_000)
    ]
    begun = time.process_time()
    found = Counter(attribute_processes(processes).roles)
    assert time.process_time() - begun < 5
    assert found == {Role.RANK: 1, Role.ANCESTOR if rank else Role.DESCENDANT: 29_999}


def test_what_does_not_count_is_listed_and_in_no_sum() -> None:
    builder = Builder()
    shell = builder.process(pid=10, executable="/bin/bash")
    rank = builder.rank(0, 1, pid=11, ppid=10, start_s=1)
    child = builder.process(pid=12, ppid=11, start_s=2, executable="/bin/cp")
    builder.add(
        Call(shell, "read", 0, 50, "job.sh", 80), Call(rank, "write", 2, 3, "f", 1), Call(child, "write", 3, 5, "g", 2)
    )
    result = printed(builder.trace())
    assert result["layers"]["POSIX"]["write"]["bytes"] == 3
    assert result["layers"]["POSIX"]["read"]["calls"] == 0
    assert result["io"]["mean_s"] == 3.0
    assert {row["path"] for row in result["files"]} == {"/scratch/f", "/scratch/g"}
    assert result["not_counted"] == [
        {"executable": "/bin/bash", "reason": "wrapper or launcher of ranks", "images": 1, "events": 1, "bytes": 80}
    ]
    assert (result["events"], result["events_counted"]) == (3, 2)
