"""A pair of runs is one pair, however often each repeats: repetitions of one run are disturbed together."""

from __future__ import annotations

from pathlib import Path

import partition_runs
from old_new import Home, Twice


def lines(*seconds: float) -> list[dict[str, object]]:
    """What a program prints: a file written so often."""
    return [{"file": "a.data", "mib": 1.0, "write_mib_per_s": 1 / one, "read_mib_per_s": 0.0} for one in seconds]


def test_repetitions_of_one_run_are_not_pairs() -> None:
    twice = Twice(Home(Path("/old")), Home(Path("/new")), None, ["mpich"], None)
    twice.bench = "engine"
    for old, new in (((1.0, 2.0, 9.0), (3.0, 4.0, 5.0)), ((2.0, 2.0, 2.0), (1.0, 1.0, 8.0))):
        twice.add("kernel", lines(*old), lines(*new))
    row = twice.rows["engine", "kernel, a.data write"]
    assert [round(one, 9) for one in row.old] == [2.0, 2.0]
    assert [round(one, 9) for one in row.new] == [4.0, 1.0]
    assert (round(row.interval.low, 9), round(row.interval.high, 9)) == (0.5, 2.0)


def test_what_is_not_measured_of_partitioned_files_does_not_run() -> None:
    twice = Twice(Home(Path("/old")), Home(Path("/new")), frozenset({("partition", "another row")}), ["mpich"], None)
    twice.bench, twice.place = "partition", "memory"
    made: list[list[str]] = []

    def run_once(_program: str, _kind: str, _ranks: int, arguments: list[str], *_: object) -> list[object]:
        made.append(arguments)
        return [{"mib": 1.0}]

    twice.run_once = run_once  # type: ignore[assignment]
    for words in (["sync", "/a", "1"], ["own", "/a", "1"]):
        (line,) = twice(partition_runs.PROGRAM, "mpich", 2, words)
        assert line["bytes"] / line["seconds"] == 1.0
    assert twice("kernel_runner", "mpich", 2, ["lattice"]) == [{"mib": 1.0}]
    assert made == [["lattice"]]
    assert not twice.rows
