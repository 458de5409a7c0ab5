"""`ioweir simulate`: against an independent simulation, by its contract, and what it refuses."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest
import simpy_oracle as oracle
from forked import completed
from ioweir.base import toml_text
from ioweir.base.compiled import compiled
from ioweir.errors import EXIT_USAGE, IoweirError
from ioweir.predict import calibrate, simulate
from ioweir.predict import machine as machines
from tracing import run

if TYPE_CHECKING:
    from pathlib import Path

IOWEIR = [sys.executable, "-m", "ioweir"]
PRECISION = 1e-9
MIB = 1 << 20
EVERYONE = '[[file]]\nmatch = "*"\nwriters = "everyone"\n'
ONE_WRITER = '[[file]]\nmatch = "*"\nwriters = "aggregators:1"\nbuffer = "1 GiB"\n'


def random_case(seed: int, *, gaps: bool) -> oracle.Case:
    """A machine and blocks whose sizes are all different: what happens at the same time has no order of its own."""
    draw = random.Random(seed)
    figures = {
        "node.ranks": draw.randint(1, 3),
        "node.nic_bytes_per_s": draw.uniform(1e8, 1e9),
        "node.copy_bytes_per_s": draw.uniform(1e9, 3e9),
        "node.memory_bytes_per_s": draw.uniform(3e9, 6e9),
        "fabric.latency_s": draw.uniform(0, 1e-5),
        "fabric.message_s": draw.uniform(0, 1e-5),
        "fabric.chunk_bytes": draw.choice([0, 70_001]),
        "fabric.storage_bytes_per_s": draw.choice([0, draw.uniform(2e8, 1e9)]),
        "targets.count": draw.randint(1, 5),
        "targets.of_server": draw.randint(1, 2),
        "targets.server_bytes_per_s": draw.choice([0, draw.uniform(1e8, 6e8)]),
        "targets.write_bytes_per_s": draw.uniform(5e7, 2e8),
        "targets.read_bytes_per_s": draw.uniform(5e7, 2e8),
        "targets.request_s": draw.uniform(0, 1e-3),
        "targets.seek_s": draw.uniform(0, 5e-3),
        "client.rpc_bytes": draw.choice([50_021, 1 << 30]),
        "client.rpcs_in_flight": draw.randint(1, 3),
        "locks.used": 0,
        "files.stripe_bytes": draw.randint(30_000, 90_000),
    }
    blocks, at = [], 0
    for _ in range(draw.randint(2, 7)):
        at += draw.randint(1, 99_999) if gaps else 0
        size = draw.randint(10_000, 400_000)
        blocks.append((at, size))
        at += size
    return oracle.Case(figures, blocks)


def simulated(case: oracle.Case, plan: str, *, writes: bool) -> dict[str, Any]:
    calls = [[[block] for block in case.blocks]]
    run: dict[str, Any] = compiled().simulate_extents(case.figures, [], plan, "plan", 0, calls, 0.0, writes, 1)
    return run["write" if writes else "read"]  # type: ignore[no-any-return]


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("kind", ["write", "read"])
def test_blocks_take_as_long_as_in_another_simulation(seed: int, kind: str) -> None:
    case = random_case(seed, gaps=True)
    found = simulated(case, EVERYONE, writes=kind == "write")
    assert found["seconds"] == pytest.approx(oracle.each_by_itself(case, kind), rel=PRECISION)
    assert sum(target["bytes"] for target in found["targets"]) == sum(size for _, size in case.blocks)


@pytest.mark.parametrize("seed", range(40))
def test_an_exchange_takes_as_long_as_in_another_simulation(seed: int) -> None:
    case = random_case(seed, gaps=False)
    found = simulated(case, ONE_WRITER, writes=True)
    assert found["seconds"] == pytest.approx(oracle.through_one_writer(case), rel=PRECISION)
    assert found["messages"] == len(case.blocks)


def with_processors(case: oracle.Case, seed: int) -> oracle.Case:
    """The same on nodes whose processors are modelled."""
    draw = random.Random(f"processors {seed}")
    more = {
        "node.ranks": draw.randint(2, 7),
        "node.processors": draw.randint(1, 3),
        "processor.together": draw.uniform(0.5, 1),
        "processor.call_s": draw.uniform(0, 1e-3),
        "processor.handover_s": draw.uniform(0, 1e-3),
        "processor.piece_s": draw.uniform(0, 1e-4),
        "processor.operation_s": draw.uniform(0, 1e-3),
        "processor.page_s": draw.uniform(0, 1e-5),
        "processor.sync_s": draw.uniform(0, 1e-3),
        "processor.write_bytes_per_s": draw.uniform(1e8, 1e9),
        "processor.read_bytes_per_s": draw.uniform(1e8, 1e9),
    }
    return oracle.Case({**case.figures, **more}, case.blocks)


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("kind", ["write", "read"])
def test_processors_are_shared_as_in_another_simulation(seed: int, kind: str) -> None:
    case = with_processors(random_case(seed, gaps=True), seed)
    found = simulated(case, EVERYONE, writes=kind == "write")
    assert found["seconds"] == pytest.approx(oracle.each_by_itself(case, kind), rel=PRECISION)


@pytest.mark.parametrize("seed", range(40))
def test_an_exchange_of_processors_takes_as_long_as_in_another_simulation(seed: int) -> None:
    case = with_processors(random_case(seed, gaps=False), seed)
    found = simulated(case, ONE_WRITER, writes=True)
    assert found["seconds"] == pytest.approx(oracle.through_one_writer(case), rel=PRECISION)


# ---------------------------------------------------------------------------------------------------------- contract


def run_json(*words: str) -> dict[str, Any]:
    done = completed([*IOWEIR, "simulate", *words, "--json"], check=True)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def test_contract() -> None:
    words = ("--machine", "gigabit12", "--kernel", "ior-strided", "data=4 MiB", "transfer=2 MiB", "--ranks", "32")
    result = run_json(*words, "--repeat", "5", "--seed", "3")
    assert result["simulated"] is True
    for name in ("write", "read"):
        phase = result[name]
        assert phase["bytes"] == 32 * (4 << 20)
        assert 0 < phase["seconds"]["low"] <= phase["seconds"]["median"] <= phase["seconds"]["high"]
        assert phase["bytes_per_s"] == pytest.approx(phase["bytes"] / phase["seconds"]["median"])
        assert phase["perceived_bytes_per_s"] >= phase["bytes_per_s"] * (1 - 1e-12)
        assert set(phase["split"]) == {"exchange", "lock", "storage", "wait"}
        assert min(phase["split"].values()) >= 0
    assert min(result[key] for key in ("rounds", "messages", "operations", "events")) > 0
    assert result["wall_s"] > 0
    again = run_json(*words, "--repeat", "5", "--seed", "3")
    cost = {"wall_s": 0, "cpu_s": 0}
    assert {**again, **cost} == {**result, **cost}
    assert run_json(*words, "--repeat", "5", "--seed", "4")["write"]["seconds"] != result["write"]["seconds"]


def test_a_split_adds_up_to_the_time() -> None:
    options = simulate.Options("gigabit12", "ior-segmented", ("data=2 MiB", "transfer=1 MiB"), 16, repeat=1)
    for name in ("write", "read"):
        phase = simulate.simulate(options)[name]
        assert sum(phase["split"].values()) == pytest.approx(phase["seconds"]["median"])


def test_text_says_that_it_is_simulated() -> None:
    words = ["--machine", "minerva", "--kernel", "ior-segmented", "data=1 MiB", "transfer=1 MiB", "--ranks", "4"]
    done = completed([*IOWEIR, "simulate", *words], check=True)
    assert done.stdout.startswith("SIMULATED kernel ior-segmented")
    assert "not known:" in done.stdout


# ------------------------------------------------------------------------------------------------------ machine files


@pytest.mark.parametrize("name", machines.names())
def test_each_figure_of_a_machine_has_a_source(name: str) -> None:
    machine = machines.read(name)
    given = set(machine.figures) | set(machine.open)
    without = {figure for figure in given if not {figure, figure.partition(".")[0]} & set(machine.sources)}
    assert without == set()
    known = {figure.name for figure in machines.figures()}
    assert {source for source in machine.sources if "." in source} <= known
    assert machine.about


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[targets]\ncount = 0\n", "targets.count = 0; give 1 to 100000 (storage targets)"),
        ("[targets]\nwrite_bytes_per_s = -1.0\n", "targets.write_bytes_per_s = -1.0; give 1 to 1e+15"),
        ("[targets]\ncount = 100000000000\n", "targets.count = 100000000000; give 1 to 100000"),
        ("[targets]\ncount = 4294967297\n", "targets.count = 4294967297; give 1 to 100000"),
        ("[targets]\nreorder_window = 1e18\n", "targets.reorder_window = 1e+18; give 1 to 1000000"),
        ("[node]\nranks = 4294967297\n", "node.ranks = 4294967297; give 1 to 1000000"),
        ("[targets]\njitter = 1e300\n", "targets.jitter = 1e+300; give 0 to 1000"),
        ("[targets]\nwrite_bytes_per_s = 1e-300\n", "targets.write_bytes_per_s = 1e-300; give 1 to 1e+15"),
        ("[targets]\nserver_bytes_per_s = 0.5\n", "targets.server_bytes_per_s = 0.5; give 0, or 1 to 1e+15"),
        ("skew_s = 1e300\n", "skew_s = 1e+300; give 0 to 315576000"),
        ("[jobs]\nstreams = 100000000\n", "jobs.streams = 100000000; give 0 to 1000000"),
        ("[bursts]\nbetween_s = 1e-12\n", "bursts.between_s = 1e-12; give 0, or 1e-06 to 315576000"),
        ("[open]\n'targets.server_bytes_per_s' = [0, 5]\n", "write a range above 0"),
        ("[slow_targets]\n0 = 1e300\n", "slow_targets.0 = 1e+300; write the number of a target"),
        ("[targets]\nconut = 3\n", "no figure 'targets.conut'; did you mean 'targets.count'?"),
        ("[targets]\ncount = 1.5\n", "targets.count = 1.5 is not a whole number; storage targets"),
        ("[targets]\njitter = nan\n", "targets.jitter = nan is not a number"),
        ("[locks]\nused = 1\n", "locks.used = 1 is not true or false"),
        ("[open]\n'targets.seek_s' = [1, 3, 2]\n", "write the lower one first"),
        ("[open]\n'targets.seek_s' = [1, 2, 3, 4]\n", "write [low, high] or [low, middle, high]"),
        ("[open]\n'targets.seek_s' = [2, 1]\n", "write the lower one first"),
        ("[open]\n'targets.seek_s' = 3\n", "write [low, high] or"),
        ("[slow_targets]\n1 = 9\n", "slow_targets.1: the machine has targets 0 to 0"),
        ("[slow_targets]\nx = 9\n", "write the number of a target, from 0"),
        ("open = 3\n", "open is no table; write [open]"),
        ("unexplained = -0.1\n", "unexplained = -0.1; write the error of simulated times as a share"),
        ("gains = 3\n", "write [low, middle, high], factors of simulated gains"),
        ("gains = [1, 2]\n", "write [low, middle, high], factors of simulated gains"),
        ("gains = [1, 2, 1.5]\n", "write [low, middle, high], factors of simulated gains"),
        ("[opening]\nruns = [1]\n", "write [low, high], ratios of times"),
        ("[opening]\nlog = [1, 2]\n", "write [low, middle, high], ratios of times"),
        ("[opening]\nlog = [1, 3, 2]\n", "write [low, middle, high], ratios of times"),
        ("[opening]\nlgo = [1, 2, 3]\n", "opening.lgo is no mapping; there are shared, grouped, subfiles, log"),
        ("opening = 3\n", "opening is no table; write [opening]"),
        ("gains = [0, 1, 2]\n", "write [low, middle, high], factors of simulated gains"),
        ("plans = 0.9\n", "plans = 0.9; write by which factor"),
        ("plans = true\n", "plans = True; write by which factor"),
        ("unexplained = nan\n", "unexplained = nan; write the error of simulated times as a share"),
        ("[[[", "is not TOML"),
    ],
)
def test_machine_files_that_cannot_be(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "machine.toml").write_text(text, encoding="utf-8")
    with pytest.raises(IoweirError) as error:
        machines.read(str(tmp_path / "machine.toml"))
    assert said in str(error.value)


@pytest.mark.parametrize("name", machines.names())
def test_machines_of_the_package_are_within_bounds(name: str) -> None:
    known = {figure.name: figure for figure in machines.figures()}
    machine = machines.read(name)
    for figure, ends in [*((key, (value,)) for key, value in machine.figures.items()), *machine.open.items()]:
        assert all(known[figure].has(value) for value in ends), figure


@pytest.mark.parametrize("figure", machines.figures(), ids=lambda figure: figure.name)
def test_what_calibrate_writes_of_a_figure_can_be_read(figure: machines.Figure) -> None:
    for value in (-1.0, 0.0, 1e-300, figure.least, figure.default, figure.most, 1e300):
        text = calibrate._number(figure.name, value)
        table, _, key = figure.name.rpartition(".")
        assert figure.has(float(toml_text.loads(f"{key} = {text}")[key])), (table, text)


def test_bursts_that_never_end_and_are_many_cost_little(tmp_path: Path) -> None:
    seconds = {}
    for name, bursts in {
        "none": "",
        "always": "[bursts]\nbetween_s = 1e-6\nlength_s = 1\nshare = 1\nslowdown = 1e3\n",
        "half": "[bursts]\nbetween_s = 1e-6\nlength_s = 1e-6\nshare = 1\nslowdown = 1e3\n",
    }.items():
        (tmp_path / name).write_text(f"[targets]\ncount = 4\n{bursts}", encoding="utf-8")
        began = time.process_time()
        run = simulate.simulate(simulate.Options(str(tmp_path / name), "coll_perf", (), 4))
        assert time.process_time() - began < 5
        seconds[name] = run["write"]["seconds"]["median"]
    # The network is as fast as before.
    assert 700 * seconds["none"] < seconds["always"] < 1000 * seconds["none"]
    # Half of the requests of each target, more or less.
    assert 0.3 * seconds["always"] < seconds["half"] < 0.8 * seconds["always"]


@pytest.mark.parametrize(
    "words",
    [["coll_perf", "variables=1000000000", "--ranks", "4"], ["ior-segmented", "--ranks", "1000000"]],
    ids=["calls", "ranks"],
)
def test_an_interrupt_ends_it(words: list[str]) -> None:
    command = [*IOWEIR, "simulate", "--machine", "gigabit12", "--kernel", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        try:
            time.sleep(3)
            assert running.poll() is None
            running.send_signal(signal.SIGINT)
            _, said = running.communicate(timeout=30)
        finally:
            running.kill()
    assert running.returncode == 130
    assert b"Traceback" not in said


def test_a_slow_target_makes_it_slower(tmp_path: Path) -> None:
    (tmp_path / "even.toml").write_text("[targets]\ncount = 4\n", encoding="utf-8")
    (tmp_path / "slow.toml").write_text("[targets]\ncount = 4\n[slow_targets]\n2 = 5\n", encoding="utf-8")
    seconds = {
        name: simulate.simulate(
            simulate.Options(str(tmp_path / f"{name}.toml"), "ior-segmented", ("data=8 MiB", "transfer=8 MiB"), 4)
        )["write"]["seconds"]["median"]
        for name in ("even", "slow")
    }  # fmt: skip
    assert seconds["slow"] > 3 * seconds["even"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--kernel", "flash", "--ranks", "4"], "simulate needs a machine"),
        (["--machine", "hoper", "--kernel", "flash", "--ranks", "4"], "no machine 'hoper'; did you mean 'hopper'?"),
        (["--machine", "hopper", "--kernel", "flsh", "--ranks", "4"], "flsh"),
        (["--machine", "hopper", "--kernel", "flash"], "needs the number of ranks: --ranks N"),
        (["--machine", "hopper", "--kernel", "flash", "--ranks", "0"], "--ranks 0: give 1 or more"),
        (["--machine", "hopper"], "simulate needs one program"),
        (["--machine", "hopper", "--kernel", "flash", "--ranks", "4", "--api", "telepathy"], "only mpiio is simulated"),
        (["--machine", "hopper", "--kernel", "flash", "--ranks", "4", "--repeat", "0"], "--repeat 0: give 1 or more"),
        (["--machine", "hopper", "--kernel", "flash", "--ranks", "4", "--repeat", "10001"], "give at most 10000"),
        (["--machine", "hopper", "--kernel", "flash", "--ranks", "2147483647"], "--ranks 2147483647: give at most"),
        (
            ["--machine", "hopper", "--kernel", "flash", "--ranks", "4", "--compute", "1e30s"],
            "--compute 1e30s: give at most 315576000s, which is 10 years",
        ),
    ],
)
def test_what_cannot_be_simulated(words: list[str], said: str) -> None:
    done = completed([*IOWEIR, "simulate", *words])
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stdout == ""


def test_a_plan_that_run_refuses(tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text('[[file]]\nmatch = "*"\nwriters = "everyone"\nthreshold = 0.5\n', encoding="utf-8")
    with pytest.raises(IoweirError, match="a threshold without the contention-free order") as error:
        simulate.simulate(simulate.Options("hopper", "ior-segmented", (), 4, plan=plan))
    assert error.value.exit_code == EXIT_USAGE


def test_more_files_than_ranks(tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text('[[file]]\nmatch = "*"\nmapping = "grouped:9"\n', encoding="utf-8")
    with pytest.raises(IoweirError, match="more files than ranks: grouped:9 with 4 ranks"):
        simulate.simulate(simulate.Options("hopper", "ior-segmented", (), 4, plan=plan))


# ------------------------------------------------------------------------------------------------------------- traces


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A kernel of three ranks, recorded: two collective calls that write, and two that read."""
    folder = tmp_path_factory.mktemp("traced")
    kernel = [*IOWEIR, "kernel", *KERNEL, "--mpi", "openmpi", "--ranks", "3", "--directory", str(folder)]
    run([*IOWEIR, "run", "-q", "-o", str(folder / "trace"), "--", *kernel], cwd=folder).expect()
    return folder / "trace"


KERNEL = ("ior-strided", "data=2 MiB", "transfer=1 MiB", "piece=64 KiB")


def test_a_recorded_kernel_takes_as_long_as_the_kernel(trace: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text('[[file]]\nmatch = "*"\nwriters = "aggregators:2"\ndomains = "cyclic"\n', encoding="utf-8")
    common = ("--machine", "gigabit12", "--plan", str(plan), "--repeat", "1")
    recorded = run_json("--trace", str(trace), *common)
    generated = run_json("--kernel", *KERNEL, "--ranks", "3", *common)
    assert recorded["write"]["bytes"] == 3 * (2 << 20)
    assert recorded["write"] == generated["write"]
    # What was written before does not lie in between here: the same bytes and steps, other seeks.
    for key in ("bytes", "messages", "operations", "requests"):
        assert recorded["read"][key] == generated["read"][key]


def test_a_recorded_kernel_is_tuned_like_the_kernel(trace: Path, tmp_path: Path) -> None:
    made = {}
    for name, words in (
        ("recorded", [str(trace)]), ("generated", ["--kernel", *KERNEL, "--ranks", "3"]),
    ):  # fmt: skip
        done = completed(
            [*IOWEIR, "tune", *words, "--machine", "gigabit12", "--repeat", "2", "-o", tmp_path / f"{name}.toml",
             "--json"], check=True,
        )  # fmt: skip
        made[name] = json.loads(done.stdout)
    recorded, generated = (
        [(row["strategy"], row.get("error", "")) for row in made[name]["tried"]] for name in ("recorded", "generated")
    )
    assert recorded[: len(generated)] == generated
    # The findings of a run may propose more, by its times; they are named by their keys.
    assert all(" = " in strategy for strategy, _ in recorded[len(generated) :])
    assert (made["recorded"]["plan"] is None) == (not (tmp_path / "recorded.toml").exists())


def test_where_the_trace_has_too_few_calls_the_storage_is_measured(trace: Path, tmp_path: Path) -> None:
    words = [*IOWEIR, "tune", str(trace), "--repeat", "2", "--json", "-o"]
    done = completed([*words, tmp_path / "fitted.toml"], check=True)
    assert any(f"the machine is measured at {trace.parent}" in reason for reason in json.loads(done.stdout)["reasons"])
    # The folder of the recorded file is gone: one fitted to so few calls would know nothing.
    aside = trace.parent.rename(trace.parent.with_name("aside"))
    try:
        words[words.index(str(trace))] = str(aside / trace.name)
        done = completed([*words, tmp_path / "none.toml"])
    finally:
        aside.rename(trace.parent)
    assert done.returncode == 2
    assert "no machine can be fitted" in done.stderr
    assert "--machine" in done.stderr
    assert not (tmp_path / "none.toml").exists()


def test_traces_that_cannot_be_simulated(trace: Path) -> None:
    for words, said in (
        (("--ranks", "6"), "and would do so if it were an array of 2"),
        (("--file", "another"), "--file another: no file of that name"),
    ):
        done = completed(
            [*IOWEIR, "simulate", "--machine", "hopper", "--trace", str(trace), *words],
        )  # fmt: skip
        assert done.returncode == 2
        assert said in done.stderr


FOLDERS = {"targets.count": 4.0, "targets.folders": 1.0, "targets.write_bytes_per_s": 1e8, "targets.request_s": 0.0}


@pytest.mark.parametrize(
    ("rule", "slow", "probing_s", "used"),
    [
        ('writers = "everyone"', [], 0.0, [0]),
        ('mapping = "log"', [], 0.0, [0]),
        ('mapping = "grouped:2"', [], 0.0, [0]),
        ('mapping = "subfiles:4"', [], 0.4, [0, 1, 2, 3]),
        ('mapping = "subfiles:auto"', [1.0, 5.0], 0.8, [0, 2, 3]),
        ('mapping = "subfiles:2"', [5.0, 1.0], 0.8, [1, 2]),
        ('mapping = "log"\ntargets = "auto"', [1.0, 1.0, 5.0], 0.8, [0, 1, 3]),
        ('mapping = "log"\ntargets = ["/a", "/b"]', [], 0.0, [0, 1]),
        ('mapping = "subfiles:2"\ntargets = ["/a", "/b"]', [5.0], 0.0, [0, 1]),
        ('mapping = "subfiles:auto"\ntargets = ["/a", "/b", "/c"]', [5.0], 0.8, [1, 2]),
        ('mapping = "subfiles:4"\nprobe = { window_ms = 50, discard_ms = 10 }', [], 0.06, [0, 1, 2, 3]),
        ('mapping = "subfiles:4"\nprobe = { size = "50 MB" }', [], 0.5, [0, 1, 2, 3]),
    ],
)
def test_targets_that_are_folders_are_probed_for_plans_that_leave_the_files_own(
    rule: str, slow: list[float], probing_s: float, used: list[int]
) -> None:
    calls = [[[(rank * 8 * MIB, 8 * MIB)] for rank in range(8)]]
    plan = f'[[file]]\nmatch = "*"\n{rule}\n'
    run = compiled().simulate_extents(FOLDERS, slow, plan, "plan", 0, calls, 0.0, True, 1)["write"]
    assert run["open_s"] == pytest.approx(probing_s, abs=1e-5)
    assert [number for number, target in enumerate(run["targets"]) if target["bytes"]] == used
