"""Traces of programs that do what few do: odd names, two programs, parts that are missing, plans that fit nothing."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from forked import completed
from ioweir.errors import IoweirError
from ioweir.replay import benchmark, from_trace, names, run, unused_c
from ioweir.replay.model import Recorded
from traces import Builder, Call

IOWEIR = [sys.executable, "-m", "ioweir"]


def of_one(*paths: str) -> Builder:
    """A rank that writes 100 bytes into each of these files."""
    made = Builder()
    rank = made.rank(0, 1)
    for number, path in enumerate(paths):
        at = 1 + 4 * number
        made.add(Call(rank, "creat", at, at + 0.1, path))
        made.add(Call(rank, "pwrite", at + 1, at + 1.1, path, 100, offset=0))
        made.add(Call(rank, "close", at + 2, at + 2.1, path))
    return made


def read(made: Builder, ranks: int = 1) -> Recorded:
    return from_trace.of_trace(made.trace(), ranks, "a trace")


@pytest.mark.parametrize(
    ("path", "is_data"),
    [
        ("/library/run/out.h5", True), ("/libdata/a", True), ("/lib/firmware", False), ("/lib64/x", False),
        ("/data/../dev/null", False), ("//dev/null", False), ("/data/../scratch/a", True), ("/dev/shm/../null", False),
    ],
)  # fmt: skip
def test_only_the_systems_own_folders_are_the_systems(path: str, is_data: bool) -> None:
    assert names.is_data(path) is is_data


def test_names_that_people_give_stay() -> None:
    """So that patterns of a plan fit them."""
    good = ["my run [1].h5", "größe.nc", "50%.dat", "it's*.bin", 'a"b.dat', "x" * 200, "file-a.dat", "日本.h5"]
    paths = [f"/data/{name}" for name in good]
    assert names.names_of(paths) == good
    assert names.renamed(paths, good) == []
    bad = ["a\nb.dat", "\udcff.nc", "x" * 256, "file-7.dat", "\x1b[2J"]
    found = names.names_of([f"/data/{name}" for name in bad])
    assert found == ["file-0.dat", "file-1.nc", "file-2", "file-3.dat", "file-4"]


def test_a_name_that_cannot_stay_is_said() -> None:
    remarks = read(of_one("/data/a\nb.dat", "/data/c.dat")).remarks
    (said,) = [remark for remark in remarks if "recorded name" in remark]
    assert said.startswith("1 file cannot have the recorded name here")
    assert said.endswith("is file-0.dat")


def test_one_file_by_two_names_is_one_file() -> None:
    made = of_one("/data/run/../out/a.dat")
    made.add(Call(0, "open", 50, 50.1, "/data/out/a.dat"), Call(0, "pread", 51, 51.1, "/data/out/a.dat", 100, offset=0))
    found = read(made)
    assert found.paths == ["/data/out/a.dat"]
    assert found.inputs == {}


@pytest.mark.parametrize("apart", [True, False])
def test_two_programs_at_once_are_refused_and_one_after_another_are_not(apart: bool) -> None:
    made = Builder()
    for program in range(2):
        for rank in range(2):
            image = made.rank(rank, 2, start_s=10.0 * program)
            at = 11 + 10 * program if apart else 11 + 0.1 * program
            made.add(Call(image, "creat", at, at + 0.1, f"/data/{program}.{rank}"))
            made.add(Call(image, "close", at + 5, at + 5.1, f"/data/{program}.{rank}"))
    if apart:
        assert len(read(made, 2).ranks[0].ops) == 4
    else:
        with pytest.raises(IoweirError, match=r"two MPI programs that ran at the same time \(rank 0 of both"):
            read(made, 2)


def test_a_killed_program_is_said_to_be_one() -> None:
    made = Builder()
    made.rank(0, 1, finalized=False, end_s=None)
    made.add(Call(0, "creat", 1, 1.1, "/data/a"), Call(0, "pwrite", 2, 2.1, "/data/a", 100, offset=0))
    assert "the trace is partial: never reached MPI_Finalize: rank 0" in read(made).remarks


def test_a_split_collective_that_a_killed_program_has_not_ended_is_left_out() -> None:
    made = Builder()
    made.rank(0, 1, finalized=False, end_s=None)
    made.add(Call(0, "MPI_File_open", 1, 1.1, "/data/a", offset=5))
    made.add(Call(0, "MPI_File_write_all_begin", 2, 2.1, "/data/a"))
    made.add(Call(0, "creat", 3, 3.1, "/data/b"))
    found = read(made)
    assert [op.name for op in found.ranks[0].ops] == ["creat"]
    assert dict(found.left_out) == {"MPI-IO on a file with a split collective that does not end": 2}


def test_a_file_that_must_be_new_may_be_there_the_next_time() -> None:
    """A benchmark's files stay, and its second run had failed."""
    made = Builder()
    made.rank(0, 1)
    made.add(
        Call(0, "MPI_File_open", 1, 1.1, "/data/a", offset=1 | 4 | 64), Call(0, "MPI_File_close", 2, 2.1, "/data/a")
    )
    assert read(made).ranks[0].ops[0].arguments[2] == 5


def test_far_too_many_ranks_are_refused_before_anything_is_made(tmp_path: Path) -> None:
    with pytest.raises(IoweirError, match="--ranks 1000000000: more than"):
        run.check(run.Options(tmp_path, tmp_path, ranks=1_000_000_000))


def test_a_plan_that_fits_nothing_here_is_said(tmp_path: Path) -> None:
    """Its times were those without a plan."""
    made = Builder()
    made.rank(0, 1)
    made.add(Call(0, "MPI_File_open", 1, 1.1, "/data/run/a.h5", offset=5))
    made.add(Call(0, "MPI_File_close", 2, 2.1, "/data/run/a.h5"))
    trace = made.save(tmp_path / "trace")
    said = {}
    for pattern in ("*.h5", "run/*.h5", "*.nc"):
        plan = tmp_path / "plan.toml"
        plan.write_text(f'[[file]]\nmatch = "{pattern}"\nwriters = "everyone"\n')
        options = run.Options(trace, tmp_path, plan)
        said[pattern] = run._missed(options, from_trace.read(trace), plan.read_text())
    assert said["*.h5"] == []
    (other,) = said["run/*.h5"]
    assert "does not do here what it does in the program, for 1 file: /data/run/a.h5 is a.h5 below" in other
    assert said["*.nc"] == [f"no rule of {plan} is for a file of this trace: the replay is as without a plan"]


def test_a_plan_that_is_not_there_is_said_before_anything_runs(tmp_path: Path) -> None:
    trace = of_one("/data/a").save(tmp_path / "trace")
    done = completed([*IOWEIR, "replay", trace, "--directory", tmp_path, "--plan", tmp_path / "none.toml"])
    assert done.returncode == 2
    assert "none.toml' cannot be read: No such file or directory" in done.stderr
    assert done.stderr.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["trace"]


def test_a_benchmark_makes_of_a_large_file_only_what_it_reads(tmp_path: Path) -> None:
    made = Builder()
    made.rank(0, 1)
    made.add(Call(0, "open", 1, 1.1, "/data/a"), Call(0, "pread", 2, 2.1, "/data/a", 10, offset=1 << 40))
    result = benchmark.make(made.save(tmp_path / "trace"), tmp_path / "out")
    assert result["inputs"] == {"files": 1, "bytes": 10}
    text = (tmp_path / "out" / "benchmark.c").read_text()
    assert f"    make_input(0, {1 << 40}, {(1 << 40) + 10});\n" in text


def test_what_is_unused_is_found_in_long_texts_soon() -> None:
    """It took time by the square of the tables."""
    tables = "\n".join(f"static const ll N{number}[] = {{1, 2, 3}};" for number in range(20_000))
    uses = "\n".join(f"    x(N{number}[rank]);" for number in range(0, 20_000, 2))
    found = unused_c.removed(f"{tables}\nint main(void) {{\n{uses}\n}}")
    assert found.count("static const ll") == 10_000


def test_commands_that_are_printed_can_be_given_as_they_are() -> None:
    folder = "my run"
    result = {
        "output": folder,
        "lines": 1,
        "calls": 1,
        "ranks": 1,
        "kinds": [],
        "tables": 0,
        "left_out": [],
        "stand_ins": [],
    }
    assert benchmark.to_text(result)[-1] == "  make -C 'my run' && mpiexec -n 1 'my run'/benchmark -d WHERE"
