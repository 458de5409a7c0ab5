"""Every kernel with a plan underneath, each strategy in turn: right bytes, and a trace that says what was done."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import engine_cases
import pytest
from engine_cases import STRATEGIES
from forked import completed
from ioweir.launch import kernel

IOWEIR = (sys.executable, "-m", "ioweir")
ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
}
KERNELS = (
    ("coll_perf", 3, ("local=24,20,16", "variables=2")),
    ("ior-segmented", 3, ("data=600 KiB", "transfer=200 KiB")),
    ("ior-strided", 3, ("data=300 KiB", "transfer=100 KiB", "piece=400 B")),
    ("btio", 4, ("class=S", "writes=3")),
    ("lattice", 3, ("local=8,8,8,8", "site=48 B", "calls=2")),
    ("s3d", 3, ("local=12,10,8",)),
)


def run_with_plan(
    folder: Path, mpi: str, name: str, ranks: int, settings: tuple[str, ...], ways: str, fault: str = ""
) -> list[Any]:
    """The runner's lines; with a fault, the run has to fail."""
    plan = folder / "plan.toml"
    # Stripes far smaller than a call, so that every strategy has several rounds and parts.
    plan.write_text(engine_cases.plan_text(ranks).replace('size = "1 MiB"', 'size = "20 KiB"'), encoding="utf-8")
    words = kernel.command(name, settings, kernel.Options(ranks, folder, mpi, api=ways, verify=True))
    done = completed(
        [*IOWEIR, "run", "-q", "--plan", plan, "--verify", "-o", folder / "trace", "--", *words],
        env={**os.environ, **ENVIRONMENT, "IOWEIR_TEST_STORAGE": fault}, timeout=120,
    )  # fmt: skip
    assert (done.returncode == 0) == (not fault), done.stdout + done.stderr
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


@pytest.mark.one_of(3)
@pytest.mark.parametrize("mpi", ["openmpi", "mpich"])
@pytest.mark.parametrize(("name", "ranks", "settings"), KERNELS, ids=[row[0] for row in KERNELS])
def test_every_strategy_writes_and_reads_the_kernels_bytes(
    tmp_path: Path, mpi: str, name: str, ranks: int, settings: tuple[str, ...]
) -> None:
    both = [f"{api}:{way}.data" for way in STRATEGIES for api in ("mpiio", "independent")]
    rows = run_with_plan(tmp_path, mpi, name, ranks, settings, ",".join(both))
    assert [f"{row['mode']}:{row['file']}" for row in rows] == both
    assert all(row["read_correct"] for row in rows)
    # Also of a file in groups, which is put together when it is opened past MPI.
    assert all(row["file_correct"] for row in rows)
    report = json.loads((tmp_path / "trace" / "report.json").read_text(encoding="utf-8"))
    not_as_planned = engine_cases.departures(report, STRATEGIES)
    # What this version does not carry out it says by this sentence; anything else is a fallback that nobody asked for.
    assert all(reason.endswith("is not executed by this version") for reason in not_as_planned.values()), not_as_planned
    assert engine_cases.DIRECT not in not_as_planned


FAULTS = [
    *((way, "swap:1") for way in STRATEGIES),
    *((way, f) for way in ("direct", "cyclic") for f in ("flip:1", "drop:1")),
]


@pytest.mark.one_of(8)
@pytest.mark.parametrize(("way", "fault"), FAULTS)
def test_a_fault_below_the_engine_is_seen(tmp_path: Path, way: str, fault: str) -> None:
    (row,) = run_with_plan(tmp_path, "openmpi", "lattice", 3, ("local=8,8,8,8",), f"mpiio:{way}.data", fault)
    assert row["file_correct"] is False
    assert row["read_correct"] is False
