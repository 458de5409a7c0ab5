"""`ioweir calibrate`: finds the machine that made the times, says what they leave open, and what it refuses."""

from __future__ import annotations

import itertools
import json
import random
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from forked import completed
from ioweir.errors import EXIT_FAILED, IoweirError
from ioweir.predict import calibrate, fitting, machine, simulate
from ioweir.predict.cases import EVERYONE, ExtentCase, KernelCase, Placed, RatioErrors, of_rows, ratio_errors
from tracing import run

if TYPE_CHECKING:
    from pathlib import Path

IOWEIR = [sys.executable, "-m", "ioweir"]
MIB = 1 << 20
TRUE = {
    "targets.write_bytes_per_s": 50e6,
    "targets.read_bytes_per_s": 80e6,
    "targets.request_s": 2e-3,
    "node.copy_bytes_per_s": 2e9,
}
FIXED = {"client.cache_bytes": 0.0, "locks.used": 0.0, "node.ranks": 4096.0}
FREE = [
    fitting.Free("targets.write_bytes_per_s", 1e5, 1e11, 1e7),
    fitting.Free("targets.read_bytes_per_s", 1e5, 1e11, 1e7),
    fitting.Free("targets.request_s", 1e-6, 0.1, 3e-4),
    fitting.Free("fabric.storage_bytes_per_s", 1e6, 1e13, 1e12),
]


def known_cases(
    noise: float, *, seed: int = 7, sizes: tuple[int, ...] = (64 << 10, 256 << 10, MIB, 4 * MIB)
) -> list[ExtentCase]:
    """What a known machine would take, each time disturbed a little."""
    draw = random.Random(seed)
    cases = []
    for size in sizes:
        for count in (1, 4, 16):
            for writes in (True, False):
                calls = [[[(at * size, size)]] for at in range(count)]
                case = ExtentCase(f"{size} {count} {writes}", 1.0, calls, writes)
                took = case.simulated_s({**FIXED, **TRUE})
                cases += [replace(case, seconds=took * draw.lognormvariate(0, noise)) for _ in range(2)]
    return cases


def test_finds_the_machine_that_made_the_times() -> None:
    inside = 0
    for seed in range(5):
        found = {one.name: one for one in fitting.fit(known_cases(0.03, seed=seed), FREE, FIXED).found}
        for name in ("targets.write_bytes_per_s", "targets.read_bytes_per_s", "targets.request_s"):
            assert found[name].determined, name
            assert found[name].value == pytest.approx(TRUE[name], rel=0.1)
            inside += found[name].low < TRUE[name] < found[name].high
    assert inside >= 11, "of 15 intervals that should hold the true value in nine of ten"


def test_says_what_the_data_do_not_determine() -> None:
    # One client on one target is never bound by the way to all servers together.
    found = {one.name: one for one in fitting.fit(known_cases(0.03), FREE, FIXED).found}
    way = found["fabric.storage_bytes_per_s"]
    assert not way.determined
    # It is no narrower than what was seen to go over it, and has no upper end.
    assert TRUE["targets.read_bytes_per_s"] / 2 < way.low
    assert way.high == pytest.approx(1e13)
    # Without small requests nothing is known of what each costs.
    large = {one.name: one for one in fitting.fit(known_cases(0.05, sizes=(64 * MIB,)), FREE, FIXED).found}
    assert not large["targets.request_s"].determined
    assert large["targets.write_bytes_per_s"].determined


def test_held_out_error_is_that_of_unseen_cases() -> None:
    cases = known_cases(0.05)
    result = fitting.fit(cases, FREE, FIXED)
    assert result.held_out.cases == len(cases)
    assert 0.01 < result.held_out.median < 0.1
    assert result.held_out.ratio_low < 1 < result.held_out.ratio_high
    # Repetitions of one case are never on both sides.
    parts = fitting.folds([case.group for case in cases])
    assert len(parts) == fitting.FOLDS
    assert sum(len(part) for part in parts) == len({case.group for case in cases})


def test_an_interval_holds_nine_of_ten() -> None:
    draw = random.Random(3)
    inside = 0
    for _ in range(400):
        low, high = fitting.coverage([draw.gauss(0, 1) for _ in range(60)])
        inside += low <= draw.gauss(0, 1) <= high
    assert 0.86 <= inside / 400 <= 0.95


def test_a_few_disturbed_cases_do_not_move_the_rate() -> None:
    cases = [replace(case, seconds=case.seconds * 8) if number % 12 == 0 else case
             for number, case in enumerate(known_cases(0.02))]  # fmt: skip
    found = {one.name: one for one in fitting.fit(cases, FREE, FIXED).found}
    assert found["targets.write_bytes_per_s"].value == pytest.approx(TRUE["targets.write_bytes_per_s"], rel=0.1)


# -------------------------------------------------------------------------------------------------------- kernel runs

PLAN = '[[file]]\nmatch = "*"\nmapping = "subfiles:4"\nwriters = "{writers}"\nstripe = {{ size = "1 MiB" }}\n'


def runs_file(folder: Path) -> Path:
    """Runs of a known machine of four targets, the last of them slow."""
    draw, lines = random.Random(5), []
    for writers in ("everyone", "aggregators:2"):
        for data in (4, 8, 16, 32):
            settings, plan = [f"data={data} MiB", "transfer=4 MiB"], PLAN.format(writers=writers)
            case = KernelCase("", 1.0, "ior-segmented", tuple(settings), 4, plan, 0, True,
                              Placed((0, 1, 2, 3), (1.0, 1.0, 1.0, 2.0)))  # fmt: skip
            took = case.simulated_s({**FIXED, **TRUE, "client.cache_bytes": float(1 << 40)})
            row = {"kernel": "ior-segmented", "settings": settings, "ranks": 4, "plan": plan,
                   "targets": [0, 1, 2, 3], "slowdown": [1, 1, 1, 2]}  # fmt: skip
            lines += [json.dumps({**row, "write_s": took * draw.lognormvariate(0, 0.03)}) for _ in range(3)]
    file = folder / "runs.jsonl"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def test_kernel_runs_give_a_machine_that_foretells_another_kernel(tmp_path: Path) -> None:
    out = tmp_path / "machine.toml"
    words = [*IOWEIR, "calibrate", "--runs", str(runs_file(tmp_path)), "-o", str(out), "--json"]
    result = json.loads(completed(words, check=True).stdout)
    assert result["held_out"]["median"] < 0.08
    read = machine.read(str(out))
    assert read.slow_targets == {3: 2.0}
    assert {"targets.write_bytes_per_s", "targets.request_s"} <= set(read.sources)
    assert set(read.open) >= {row["name"] for row in result["figures"] if not row["determined"]}
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN.format(writers="aggregators:4"), encoding="utf-8")
    kernel = ("coll_perf", ("local=64,64,64", "variables=8"))
    true = KernelCase("", 1.0, *kernel, 4, plan.read_text(), 0, True, Placed((0, 1, 2, 3), (1.0, 1.0, 1.0, 2.0)))
    seconds = simulate.simulate(simulate.Options(str(out), *kernel, 4, plan=plan, repeat=20))["write"]["seconds"]
    came = true.simulated_s({**FIXED, **TRUE, "client.cache_bytes": float(1 << 40)})
    assert seconds["median"] == pytest.approx(came, rel=0.1)
    assert seconds["low"] <= came <= seconds["high"]


# ------------------------------------------------------------------------------------------------- traces and targets

PROGRAM = """
import os, sys
for number, size in enumerate([1 << 14, 1 << 16, 1 << 18, 1 << 20] * 2):
    file = os.open(f"{sys.argv[1]}/file{number}", os.O_CREAT | os.O_RDWR)
    for at in range(16):
        os.pwrite(file, b"x" * size, at * size)
    if sys.argv[2] == "flush":
        os.fsync(file)
    for at in range(16):
        os.pread(file, size, at * size)
"""


@pytest.mark.one_of(2)
@pytest.mark.parametrize("flush", ["flush", "no"])
def test_a_trace_gives_a_machine(tmp_path: Path, flush: str) -> None:
    trace, out = tmp_path / "trace", tmp_path / "machine.toml"
    program = [sys.executable, "-c", PROGRAM, str(tmp_path), flush]
    run([*IOWEIR, "run", "-q", "--layers", "complete", "-o", str(trace), "--", *program], cwd=tmp_path).expect()
    done = run([*IOWEIR, "calibrate", "--trace", str(trace), "-o", str(out)], cwd=tmp_path).expect()
    read = machine.read(str(out))
    assert read.figures["targets.count"] == 1
    assert read.figures["targets.write_bytes_per_s"] > 1e5
    assert "held-out error: median" in done.out
    assert ("not the device below" in done.out) == (flush == "no")


def test_a_directory_gives_a_machine(tmp_path: Path) -> None:
    out = tmp_path / "machine.toml"
    result: dict[str, Any] = calibrate.calibrate(calibrate.Options(out, targets=tmp_path, repeats=2))
    assert result["targets"]["count"] == 1
    names = {row["name"] for row in result["figures"]}
    assert {"targets.write_bytes_per_s", "targets.read_bytes_per_s", "targets.request_s"} <= names
    assert list(tmp_path.iterdir()) == [out]
    assert machine.read(str(out)).figures["targets.write_bytes_per_s"] > 1e5


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "calibrate needs measurements: --targets PATH, --trace DIR, --runs FILE or --kernels DIR"),
        (["--targets", "/nowhere/at/all"], "no directory; name one on the storage"),
        (["--kernels", "/nowhere/at/all"], "no directory in which you may write"),
        (["--kernels", ".", "--runs", "few.jsonl"], "--kernels goes alone"),
        (["--kernels", ".", "--mpi", "none"], "--mpi none: a kernel needs an MPI library"),
        (["--kernels", ".", "--ranks", "1"], "--ranks 1: give 2 or more"),
        (["--runs", "few.jsonl", "--ranks", "4"], "--mpi and --ranks are of kernels that run"),
        (["--targets", ".", "--repeats", "1"], "--repeats 1: give 2 or more"),
        (["--runs", "empty.jsonl"], "no runs; write a JSON object a line"),
        (["--runs", "few.jsonl"], "too few different cases to fit a machine to: 1, and 4 are needed"),
        (["--runs", "wrong.jsonl"], "wrong.jsonl:1: not a run: -1 is no time"),
        (["--runs", "unknown.jsonl"], "nothing"),
        (["--runs", "nodes.jsonl"], "nodes.jsonl: runs on 0, 2 processors (0: not said)"),
        (["--runs", "none.jsonl"], "none.jsonl:1: not a run: -2 ranks, targets or processors"),
        (["--runs", "absent.jsonl"], "absent.jsonl: cannot be read: No such file or directory; check the path"),
        (["--runs", "/dev/zero"], "--runs /dev/zero: cannot be read: is a device, not a file"),
        (["--trace", "."], "."),
    ],
)
def test_what_cannot_be_calibrated(words: list[str], said: str, tmp_path: Path) -> None:
    good = {"kernel": "ior-segmented", "settings": ["data=4 MiB", "transfer=4 MiB"], "ranks": 2}
    (tmp_path / "empty.jsonl").write_text("\n", encoding="utf-8")
    (tmp_path / "few.jsonl").write_text(json.dumps({**good, "write_s": 1}), encoding="utf-8")
    (tmp_path / "wrong.jsonl").write_text(json.dumps({**good, "write_s": -1}), encoding="utf-8")
    (tmp_path / "unknown.jsonl").write_text(json.dumps({**good, "kernel": "nothing", "write_s": 1}), encoding="utf-8")
    nodes = "\n".join(json.dumps({**good, "write_s": 1, **more}) for more in ({}, {"processors": 2}))
    (tmp_path / "nodes.jsonl").write_text(nodes, encoding="utf-8")
    (tmp_path / "none.jsonl").write_text(json.dumps({**good, "write_s": 1, "processors": -2}), encoding="utf-8")
    done = completed([*IOWEIR, "calibrate", *words, "-o", "machine.toml"], cwd=tmp_path)
    assert done.returncode != 0
    assert said in done.stderr
    assert not (tmp_path / "machine.toml").exists()


def test_ranks_that_share_processors(tmp_path: Path) -> None:
    """What a call costs a rank, of runs on targets: four ranks show it, and more ranks of the node wait for it."""
    true = {
        "targets.count": 1.0, "node.ranks": 64.0, "node.processors": 2.0, "processor.call_s": 0.02,
        "node.nic_bytes_per_s": 1e15, "locks.used": 0.0, "targets.write_bytes_per_s": 2e8, "client.cache_bytes": 1e12,
        "fabric.latency_s": 1e-6, "targets.cache_bytes_per_s": 1e10,
    }  # fmt: skip
    lines = []
    # One rank alone tells a call from a seek.
    for ranks, transfer in itertools.product((1, 2, 4), ("64 KiB", "256 KiB", "1 MiB", "4 MiB")):
        row = {
            "kernel": "ior-segmented", "settings": ["data=4 MiB", f"transfer={transfer}"], "ranks": ranks,
            "processors": 2,
        }  # fmt: skip
        case = of_rows([{**row, "write_s": 1.0}])[0]
        lines.append(json.dumps({**row, "write_s": case.simulated_s(true)}))
    runs, file = tmp_path / "runs.jsonl", tmp_path / "machine.toml"
    runs.write_text("\n".join(lines), encoding="utf-8")
    calibrate.calibrate(calibrate.Options(file, runs=runs))
    found = machine.read(str(file))
    assert found.figures["node.processors"] == 2
    assert found.figures["processor.call_s"] == pytest.approx(0.02, rel=0.3)
    many = KernelCase("", 1.0, "ior-segmented", ("data=4 MiB", "transfer=64 KiB"), 32, EVERYONE, 0)
    assert many.simulated_s(found.figures) == pytest.approx(many.simulated_s(true), rel=0.3)


def test_a_trace_without_requests(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    run([*IOWEIR, "run", "-q", "-o", str(trace), "--", "true"], cwd=tmp_path).expect()
    with pytest.raises(IoweirError, match="no POSIX reads or writes of files of 64 KiB or more") as raised:
        calibrate.calibrate(calibrate.Options(tmp_path / "machine.toml", trace=trace))
    assert raised.value.exit_code == EXIT_FAILED, "the command line is right, as for commands that need MPI-IO calls"


def test_a_file_that_is_there_stays(tmp_path: Path) -> None:
    out = tmp_path / "machine.toml"
    out.write_text("mine", encoding="utf-8")
    with pytest.raises(IoweirError, match="is there; name another --output, or --force"):
        calibrate.calibrate(calibrate.Options(out, runs=runs_file(tmp_path)))
    assert out.read_text(encoding="utf-8") == "mine"


def test_errors_of_gains_are_of_writing_and_reading_together() -> None:
    """Errors that two ways share are none of their gain."""
    base = KernelCase("", 1.0, "k", (), 4, "one", 0)
    held = []
    for kernel, common in (("a", 3.0), ("b", 0.5)):
        for plan, own, write_s, read_s in (("", 1.0, 4.0, 2.0), ("one", 1.0, 2.0, 1.0), ("two", 2.0, 1.0, 1.0)):
            for writes, seconds in ((True, write_s), (False, read_s)):
                case = replace(base, kernel=kernel, plan=plan, by_library=not plan, writes=writes, seconds=seconds)
                held.append((case, common * own))
    # The second plan takes twice as long, measured, as was simulated: it gains half.
    found = ratio_errors(held)
    assert sorted(found.gains) == pytest.approx([0.5, 0.5, 1.0, 1.0])
    assert found.plans == pytest.approx([2.0, 2.0])
    assert ratio_errors([one for one in held if one[0].writes]) == RatioErrors([], [])
    without = ratio_errors([one for one in held if not one[0].by_library])
    assert (without.gains, without.plans) == ([], found.plans)


def test_gains_are_said_where_there_are_no_two_plans_to_compare() -> None:
    held = {"cases": 0}
    result = {
        "output": "m.toml", "cases": 20, "how": "runs", "held_out": held, "fitted": {"median": 0.1, "p90": 0.2},
        "figures": [], "targets": {"slowdown": []}, "kept": False, "remarks": [],
        "opening": {"plans": {}}, "gains": (0.5, 1.0, 2.0), "plans": None,
    }  # fmt: skip
    said = calibrate.to_text(result)
    assert any("four of five 0.50 .. 2.00" in line for line in said)
    assert not any("two plans" in line for line in said)
