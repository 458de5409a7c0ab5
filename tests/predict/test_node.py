"""Calibration of a node: the processors that made the times are found, and so is the MPI library's own way."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ioweir.errors import IoweirError
from ioweir.loop import kernel_runs
from ioweir.predict import calibrate, machine, node, simulate
from ioweir.predict.cases import KernelCase, of_rows

RANKS = 4
STORAGE = node.Storage(processors=2, in_memory=True, memory_bytes=8 << 30)
TRUE = {
    "node.copy_bytes_per_s": 4e9,
    "processor.call_s": 4e-5,
    "processor.handover_s": 1e-5,
    "processor.piece_s": 4e-8,
    "processor.operation_s": 2e-6,
    "processor.write_bytes_per_s": 1.5e9,
    "processor.read_bytes_per_s": 3e9,
    "processor.spins": 0.3,
    "fabric.message_s": 1e-5,
    "library.call_s": 1e-4,
    "library.handover_s": 4e-5,
    "library.piece_s": 2e-7,
    "library.copy_bytes_per_s": 2e9,
}
KERNELS = (
    ("ior-strided", "data=1MiB", "transfer=1MiB", "piece=64KiB"),
    ("ior-strided", "data=1MiB", "transfer=1MiB", "piece=8KiB"),
    ("ior-strided", "data=64KiB", "transfer=64KiB", "piece=512"),
    ("ior-segmented", "data=512KiB", "transfer=64KiB"),
)
"""Small ones: thousands of simulations are made of each."""
WAY = {"library.writers_of_node": 1.0, "library.buffer_bytes": float(16 << 20), "library.collects_apart": 0.0}


def base() -> dict[str, float]:
    """Of the machine that makes the times."""
    one_node = {
        "node.ranks": 4096.0, "client.cache_bytes": float(1 << 40), "locks.used": 0.0, "fabric.latency_s": 1e-6,
        "node.nic_bytes_per_s": 1e14, "node.memory_bytes_per_s": 1e14,
    }  # fmt: skip
    return {**one_node, **node.base(STORAGE), **WAY}


def rows(kernels: tuple[tuple[str, ...], ...], noise: float) -> list[dict[str, Any]]:
    """Runs of a known machine."""
    draw = random.Random(2)
    found = []
    for name, *settings in kernels:
        for way in kernel_runs.ways(RANKS):
            row: dict[str, Any] = {
                "kernel": name, "settings": settings, "ranks": RANKS, "plan": way.rule("*"),
                "library": way.keys is None,
            }  # fmt: skip
            cases = of_rows([{**row, "write_s": 1.0, "read_s": 1.0}])
            seconds = [case.simulated_s({**base(), **TRUE}) * draw.lognormvariate(0, noise) for case in cases]
            found.append({**row, "write_s": seconds[0], "read_s": seconds[1]})
    return found


def test_processors_are_found_and_another_kernel_is_foretold(tmp_path: Path) -> None:
    found = calibrate.of_kernels(tmp_path, rows(KERNELS, 0.02))
    result = calibrate.fit_machine(replace(found, storage=STORAGE), "known")
    read = machine.parse(result["machine"], "known")
    assert {name: read.figures[name] for name in WAY} == WAY
    figures = {row["name"]: row for row in result["figures"]}
    for name in ("node.copy_bytes_per_s", "processor.write_bytes_per_s", "processor.read_bytes_per_s"):
        assert figures[name]["determined"], name
        assert figures[name]["value"] == pytest.approx(TRUE[name], rel=0.15), name
    assert result["held_out"]["median"] < 0.05
    low, middle, high = read.open[node.SLOWDOWN]
    assert 0.6 < low <= middle == 1 <= high < 1.7
    assert read.gains is not None
    assert 0.5 < read.gains[0] <= read.gains[1] <= read.gains[2] < 2
    assert 1 <= read.plans < 1.4
    assert list(read.gains) == pytest.approx(result["gains"], rel=1e-3)
    # A kernel that was not in the fit, without a plan, as tune would simulate it.
    program = simulate.Kernel("coll_perf", ("local=48,48,48",), RANKS, 0.0)
    rule = simulate.plan_of(simulate.Options("known", "coll_perf", ranks=RANKS), read, program)
    assert rule.by_library
    runs = simulate.runs_of(program, read, rule, 20, 1)
    case = KernelCase("", 1.0, "coll_perf", ("local=48,48,48",), RANKS, "", 0, True, by_library=True)
    true = case.simulated_s({**base(), **TRUE})
    seconds = simulate.phase(runs, "write")["seconds"]
    assert seconds["median"] == pytest.approx(true, rel=0.1)
    assert seconds["low"] <= true <= seconds["high"]


def test_what_plans_make_of_opening_is_written_down(tmp_path: Path) -> None:
    made = rows(KERNELS, 0.02)
    for row, way in zip(made, list(kernel_runs.ways(RANKS)) * len(KERNELS), strict=True):
        factor = {"": 1.0, "shared": 1.5, "grouped": 2.0, "log": 3.0}[way.mapping]
        row |= {"mapping": way.mapping, "openings_s": [0.1 * factor, 0.2 * factor, 0.1 * factor]}
    result = calibrate.fit_machine(replace(calibrate.of_kernels(tmp_path, made), storage=STORAGE), "known")
    read = machine.parse(result["machine"], "known")
    assert read.opening.plans == {
        name: pytest.approx((factor,) * 3) for name, factor in (("shared", 1.5), ("grouped", 2.0), ("log", 3.0))
    }
    assert read.opening.runs == pytest.approx((1.0, 2.0))
    text = calibrate.to_text({**result, "output": "known.toml", "wall_s": 1.0, "kept": False})
    assert any("(mapping log) over without one: median 3.00, four of five 3.00 .. 3.00" in line for line in text)


def test_no_network_lies_between_processors_and_memory(tmp_path: Path) -> None:
    """Written bytes had gone over a network of 1 GB/s that nobody had."""
    found = calibrate.of_kernels(tmp_path, rows(KERNELS[:2], 0.02))
    read = machine.parse(calibrate.fit_machine(replace(found, storage=STORAGE), "known")["machine"], "known")
    fast = {**read.figures, "processor.write_bytes_per_s": 2e10, "locks.inode": 0.0}
    plan = '[[file]]\nmatch = "*"\nmapping = "log"\n'
    case = KernelCase("", 1.0, "ior-segmented", ("data=64MiB", "transfer=64MiB"), 2, plan, 0)
    assert case.simulated_s(fast) < 128 * (1 << 20) / 10e9


def test_the_library_without_figures_is_what_it_was() -> None:
    text, writers = simulate.library_rule({"node.ranks": 4}, 12)
    assert writers == 1
    assert 'writers = "aggregators:3"' in text
    assert 'buffer = "16384 KiB"' in text
    text, writers = simulate.library_rule({"node.ranks": 4, "library.writers_of_node": 9}, 6)
    assert writers == 4
    assert 'writers = "aggregators:6"' in text


def test_ways_are_those_of_tune_and_none() -> None:
    names = [way.name for way in kernel_runs.ways(RANKS)]
    assert names[0] == kernel_runs.LIBRARY
    assert {"everyone", "auto", "grouped:2", "log", "aggregators:1, even domains, 16 MiB"} <= set(names)
    assert kernel_runs.ways(RANKS)[0].rule("a.data") == ""
    assert 'match = "a.data"' in kernel_runs.ways(RANKS)[1].rule("a.data")


def test_what_lies_in_memory_is_known_by_its_file_system(tmp_path: Path) -> None:
    assert node.mount_at(Path("/proc")).kind == "proc"
    if Path("/dev/shm").is_dir():
        assert node.mount_at(Path("/dev/shm")).kind in node.MEMORY_KINDS
    assert node.mount_at(tmp_path).kind != ""
    assert node.storage_at(tmp_path).processors >= 1


def test_machines_that_cannot_be_are_refused() -> None:
    for text, said in (
        ("[locks]\ninode = true\n", "node.processors"),
        ("[node]\nprocessors = 2\n[processor]\ntogether = 2.0\n", "processor.together"),
        ("[node]\nprocessors = 2\n[processor]\nspins = 3.0\n", "processor.spins"),
        ("[node]\nprocessors = 2.5\n", "is not a whole number"),
        ("[client]\nwrites_late = true\n", "locks.used = false"),
        ("[processors]\ncall_s = 1\n", "did you mean 'processor.call_s'"),
    ):
        with pytest.raises(IoweirError, match=said):
            machine.parse(text, "wrong")
