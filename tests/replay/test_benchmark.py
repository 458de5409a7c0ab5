"""A generated benchmark makes the recorded calls, compiles with a plain MPI compiler, and holds no original name."""

from __future__ import annotations

import getpass
import json
import os
import random
import socket
import subprocess
from pathlib import Path
from typing import Any

import compared
import pytest
import runs
from ioweir.replay import benchmark, benchmark_c, fold, from_trace, unused_c
from ioweir.replay.model import RankCalls, Recorded

MOST_LINES = 300
PROGRAMS = [
    ("posix", 3), ("found", 3), ("pointers", 3), ("views", 5), ("again", 3), ("streams", 2), ("pieces", 2),
    ("parts", 5),
]  # fmt: skip
FLAGS = "-O2 -std=gnu11 -Wall -Wextra -Werror"


def made(tmp_path: Path) -> dict[str, Any]:
    """From tmp_path/trace, in tmp_path/benchmark."""
    words = ("make-benchmark", tmp_path / "trace", "-o", tmp_path / "benchmark", "--json")
    result: dict[str, Any] = json.loads(runs.ioweir(*words).stdout)
    return result


def run_and_compare(tmp_path: Path, data: Path, mpi: str, ranks: int) -> None:
    """Compiled, run beneath ioweir, and held against the original's trace."""
    folder, out = tmp_path / "benchmark", tmp_path / "out"
    out.mkdir()
    environment = {name: value for name, value in os.environ.items() if "ioweir" not in name.lower()}
    subprocess.run(
        ["make", "-C", str(folder), f"CC=mpicc.{mpi}", f"CFLAGS={FLAGS}"],
        env=environment, check=True, timeout=120,
    )  # fmt: skip
    program = [folder / "benchmark", "-d", out]
    recorded = from_trace.read(tmp_path / "trace")
    if recorded.inputs:
        subprocess.run(
            [runs.LAUNCHERS[mpi], "-n", "1", *map(str, program), "-p"],
            env={**os.environ, **runs.ENVIRONMENT}, check=True, timeout=60,
        )  # fmt: skip
    runs.recorded(mpi, ranks, list(program), tmp_path / "again")
    before = compared.calls_of(tmp_path / "trace", lambda path: path.startswith(f"{data}/"))
    after = compared.calls_of(tmp_path / "again", lambda path: path.startswith(f"{out}/"))
    names = {f"file-{number}": Path(path).name for number, path in enumerate(recorded.paths)}
    renamed = {rank: [(one, names[name], *rest) for one, name, *rest in calls] for rank, calls in after.items()}
    assert not compared.differences(before, renamed)
    assert sum(map(len, before.values())) > 0


def holds_no_names(tmp_path: Path, *others: str) -> None:
    secret = {str(tmp_path), tmp_path.name, socket.gethostname(), getpass.getuser(), *others}
    for file in (tmp_path / "benchmark").iterdir():
        if file.suffix in (".c", ".md") or file.name == "Makefile":
            text = file.read_text()
            words = set(text.replace("/", " ").replace('"', " ").split())
            for name in secret:
                assert name not in words
                assert len(name) < 8 or name not in text


@pytest.mark.one_of(4)
@pytest.mark.parametrize("mpi", ["openmpi", "mpich"])
@pytest.mark.parametrize(("kind", "ranks"), PROGRAMS)
def test_programs(kind: str, ranks: int, mpi: str, tmp_path: Path) -> None:
    data = tmp_path / "classified-data"
    data.mkdir()
    (data / "found.dat").write_bytes(bytes(100_000))
    runs.recorded(mpi, ranks, [runs.compiled(mpi, tmp_path), kind, data], tmp_path / "trace")
    result = made(tmp_path)
    assert result["left_out"] == []
    holds_no_names(tmp_path, "classified-data", "found.dat", "views.dat", "renamed.txt", "half-0.dat")
    run_and_compare(tmp_path, data, mpi, ranks)


@pytest.mark.one_of(4)
@pytest.mark.parametrize("mpi", ["openmpi", "mpich"])
@pytest.mark.parametrize(
    ("kernel", "settings", "ranks"),
    [
        ("lattice", ["local=4,4,4,8", "calls=5"], 4),
        ("coll_perf", ["local=8,8,8"], 4),
        ("ior-strided", ["data=256 KiB", "transfer=64 KiB", "piece=4 KiB"], 5),
        ("flash", ["local=4,4,4", "blocks=4", "variables=6"], 3),
        ("btio", ["class=S", "writes=3"], 4),
    ],
)  # fmt: skip
def test_kernels(kernel: str, settings: list[str], ranks: int, mpi: str, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    words = ["kernel", kernel, *settings, "--ranks", ranks, "--mpi", mpi, "--directory", data]
    runs.ioweir("run", "-q", "-o", tmp_path / "trace", "--", *runs.IOWEIR, *words)
    result = made(tmp_path)
    assert result["lines"] <= MOST_LINES
    holds_no_names(tmp_path, f"{kernel}.data")
    run_and_compare(tmp_path, data, mpi, ranks)


# ---------------------------------------------------------------------------------------------------- by themselves


def test_loops_give_every_call_back() -> None:
    source = random.Random(7)
    for _ in range(300):
        calls = []
        for _ in range(source.randrange(1, 6)):
            steps = [source.choice([0, 0, 8, 100, -3]) for _ in range(3)]
            body = source.choice([["a"], ["a", "b"], ["a", "b", "a"], ["c"]])
            odd = source.random() < 0.3
            for at in range(source.randrange(1, 8)):
                for name in body:
                    numbers = [at * step + (source.randrange(99) if odd else 0) for step in steps]
                    calls.append(fold.call(name, numbers))
        assert fold.unfolded(fold.folded(calls)) == fold.unfolded(calls)


def test_what_repeats_is_a_loop_and_loops_nest() -> None:
    calls = [fold.call("write", [100 * step + 7 * at]) for step in range(5) for at in range(4)]
    (outer,) = fold.folded(calls)
    assert isinstance(outer, fold.Loop)
    (inner,) = outer.body
    assert isinstance(inner, fold.Loop)
    assert (outer.count, inner.count) == (5, 4)
    assert inner.body == [fold.Call("write", [[0, 7, 100]])]


def test_calls_that_repeat_within_a_body_are_a_loop_in_it() -> None:
    calls = [fold.call(name, [7 * step]) for step in range(5) for name in ("open", *["write"] * 10, "close")]
    (outer,) = fold.folded(calls)
    assert isinstance(outer, fold.Loop)
    assert [type(node) for node in outer.body] == [fold.Call, fold.Loop, fold.Call]


def test_what_nothing_uses_is_taken_out() -> None:
    text = """#define A 1
#define B 2
#define MUST(x) x
static ll X = 1; /* a factor */
static void* gone[A];
/* This text names gone and many. */
static void many(void) {
    int all[] = {X};
    puts("kept");
}
static const ll N0[] = {1, 2,
    3};
static const ll N1[] = {1};
static int kept[B];
int main(void) { return kept[N1[0]]; }"""
    left = """#define B 2
static const ll N1[] = {1};
static int kept[B];
int main(void) { return kept[N1[0]]; }"""
    assert unused_c.removed(text) == left


def test_arguments_of_a_benchmark(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    runs.recorded("mpich", 1, [runs.compiled("mpich", tmp_path), "streams", data], tmp_path / "trace")
    made(tmp_path)
    folder = tmp_path / "benchmark"
    subprocess.run(["make", "-C", str(folder), "CC=mpicc.mpich", f"CFLAGS={FLAGS}"], check=True, timeout=120)

    def called(*words: str, ranks: str = "1") -> tuple[int, str, str]:
        done = subprocess.run(
            [runs.LAUNCHERS["mpich"], "-n", ranks, str(folder / "benchmark"), *words],
            env={**os.environ, **runs.ENVIRONMENT}, cwd=tmp_path,
            capture_output=True, check=False, text=True, timeout=60,
        )  # fmt: skip
        return done.returncode, done.stdout, done.stderr

    code, said, _ = called("--help")
    assert code == 0
    assert said.startswith("use: benchmark ")
    wrong = {
        "no option": [str(data)], "not known": ["-q"], "hint": ["-h", "cb_nodes"], "factor": ["-x", "2abc"],
        "none": ["-x", "0"],
    }  # fmt: skip
    for words in wrong.values():
        code, said, complaint = called(*words)
        assert (code, said) == (2, "")
        assert "use: benchmark " in complaint
    assert "how many ranks" in called(ranks="2")[2]
    assert "No such file or directory" in called("-d", str(tmp_path / "missing"))[2]
    assert not list(tmp_path.glob("file-*"))


def test_what_follows_no_formula_is_a_table() -> None:
    places = [5, 90, 17, 3, 44, 12]
    (loop,) = fold.folded([fold.call("write_at", [place, 64]) for place in places])
    assert loop == fold.Loop(6, [fold.Call("write_at", [[fold.Column(places), 0], [64, 0]])])


@pytest.mark.parametrize(
    ("values", "formula"),
    [
        ([7, 7, 7, 7], "7"), ([3, 5, 7, 9], "3 + 2 * rank"), ([0, 1, 2, 3], "rank"),
        ([0, 10, 100, 110], "100 * (rank / 2) + 10 * (rank % 2)"), ([0, 1, 4, 9], "N0[rank]"),
    ],
)  # fmt: skip
def test_numbers_of_ranks_are_formulas_only_where_these_are_exact(values: list[int], formula: str) -> None:

    recorded = Recorded([RankCalls(rank) for rank in range(4)], [], [], ())
    assert benchmark_c.Program(recorded, [])._over_ranks([0, 1, 2, 3], values) == formula


def test_a_trace_without_ranks_makes_no_benchmark(tmp_path: Path) -> None:
    runs.ioweir("run", "-q", "-o", tmp_path / "trace", "--", "cat", __file__)
    done = runs.ioweir("make-benchmark", tmp_path / "trace", "-o", tmp_path / "out", code=1)
    assert "there is no MPI program" in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_folder_that_holds_something_is_left_alone(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    runs.recorded("mpich", 1, [runs.compiled("mpich", tmp_path), "parts", data], tmp_path / "trace")
    recorded = from_trace.read(tmp_path / "trace")
    assert benchmark.same(recorded, benchmark.kinds_of(recorded))
    done = runs.ioweir("make-benchmark", tmp_path / "trace", "-o", data, code=2)
    assert "holds something" in done.stderr
