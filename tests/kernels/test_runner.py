"""What the kernel runner writes, against numpy: owners of bytes by array slices, content by the formula in content.hpp.

Nothing of kernels/ is used to make the expectation, so that a generator that is wrong in the same way twice is seen.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forked import completed
from ioweir.launch import kernel
from kernel_runs import ENVIRONMENT, IOWEIR, chombo_values, content, run_kernel

MPIS = ("openmpi", "mpich")
YIELDS = Path(__file__).resolve().parents[2] / "build" / "dev" / "tests" / "engine" / "libmpich_yields.so"
"""Lets MPICH's ranks give way while they wait."""


def coll_perf_owners(shape: tuple[int, int, int], grid: tuple[int, int, int], variables: int) -> Any:
    array = np.full(shape, -1)
    blocks = [math.ceil(n / p) for n, p in zip(shape, grid, strict=True)]
    for rank, at in enumerate(np.ndindex(*grid)):
        array[tuple(slice(i * b, (i + 1) * b) for i, b in zip(at, blocks, strict=True))] = rank
    return np.tile(np.repeat(array.ravel(), 4), variables)


def lattice_owners(local: tuple[int, ...], grid: tuple[int, ...], site: int, calls: int) -> Any:
    array = np.full([n * p for n, p in zip(local, grid, strict=True)], -1)
    for rank, at in enumerate(np.ndindex(*grid)):
        array[tuple(slice(i * n, (i + 1) * n) for i, n in zip(at, local, strict=True))] = rank
    return np.tile(np.repeat(array.ravel(), site), calls)


def btio_owners(points: int, ranks: int, writes: int) -> Any:
    p = math.isqrt(ranks)
    cuts = [len(part) for part in np.array_split(np.arange(points), p)]  # the first ones are longer, as NPB's
    at = np.concatenate([[0], np.cumsum(cuts)])
    cube = np.full((points, points, points), -1)
    for rank in range(ranks):
        for layer in range(p):
            x, y = (rank % p + layer) % p, (rank // p - layer) % p
            cube[at[layer] : at[layer + 1], at[y] : at[y + 1], at[x] : at[x + 1]] = rank
    return np.tile(np.repeat(cube.ravel(), 40), writes)


def flash_owners(ranks: int, blocks: int, block_bytes: int, variables: int) -> Any:
    shares = [np.full((blocks + rank % 3) * block_bytes, rank) for rank in range(ranks)]
    return np.tile(np.concatenate(shares), variables)


def s3d_owners(local: tuple[int, ...], grid: tuple[int, ...], species: int) -> Any:
    component = lattice_owners(local, grid, 8, 1)
    return np.tile(component, species + 1 + 1 + 3)


def gcrm_owners(ranks: int, level: int, layers: int) -> Any:
    def shares(lines: int, more: int, line_bytes: int) -> Any:
        each = np.repeat(np.arange(ranks), lines // ranks)
        return np.repeat(np.append(each, np.full(more, ranks - 1)), line_bytes)

    faces = 10 * 4**level
    layer, ifc, ground = shares(faces, 2, 4 * layers), shares(faces, 2, 4 * (layers + 1)), shares(faces, 2, 4)
    corner, edge = shares(2 * faces, 0, 8 * layers), shares(3 * faces, 0, 4 * layers)
    five = [layer] * 5
    return np.concatenate([
        *five, ifc, layer, layer, ifc, layer, ifc, corner, corner, edge, layer, *five, *five, *five, layer, layer,
        ground, ground, ground, ground, ifc, ifc,
    ])  # fmt: skip


def phasta_owners(ranks: int, nodes: int, parts: int) -> Any:
    shares = [
        np.full(1024 + 8 * doubles * (nodes + (1 + (rank * parts + part) % 3) * (nodes // 50)), rank)
        for doubles in (5, 5, 10)
        for part in range(parts)
        for rank in range(ranks)
    ]
    return np.concatenate(shares)


def vorpal_owners(local: tuple[int, ...], grid: tuple[int, ...], steps: int) -> Any:
    lengths = [[n + (0, 1, 0, -1)[i % 4] for i in range(p)] for n, p in zip(local, grid, strict=True)]
    array = np.full([sum(one) for one in lengths], -1)
    for rank, at in enumerate(np.ndindex(*grid)):
        array[tuple(slice(sum(one[:i]), sum(one[: i + 1])) for one, i in zip(lengths, at, strict=True))] = rank
    return np.tile(np.repeat(array.ravel(), 24), steps)


CASES: list[tuple[str, int, list[str], Any]] = [
    ("coll_perf", 6, ["local=4,3,5", "variables=3"], lambda: coll_perf_owners((12, 6, 5), (3, 2, 1), 3)),
    ("coll_perf", 4, ["global=5,7,6", "variables=2"], lambda: coll_perf_owners((5, 7, 6), (2, 2, 1), 2)),
    ("lattice", 4, ["local=2,3,2,4", "site=9 B", "calls=2"], lambda: lattice_owners((2, 3, 2, 4), (1, 1, 2, 2), 9, 2)),
    ("lattice", 3, ["local=2,3,2,4", "site=8 B"], lambda: lattice_owners((2, 3, 2, 4), (1, 1, 1, 3), 8, 1)),
    ("btio", 1, ["class=S", "writes=1"], lambda: btio_owners(12, 1, 1)),
    ("btio", 4, ["class=S", "writes=2"], lambda: btio_owners(12, 4, 2)),
    ("btio", 9, ["class=W", "writes=1"], lambda: btio_owners(24, 9, 1)),
    ("flash", 5, ["local=2,3,2", "blocks=4", "variables=3"], lambda: flash_owners(5, 4, 96, 3)),
    ("flash", 2, ["local=2,3,2", "blocks=4", "output=corners"], lambda: flash_owners(2, 4, 144, 4)),
    ("s3d", 4, ["local=3,2,5", "species=2"], lambda: s3d_owners((3, 2, 5), (2, 2, 1), 2)),
    ("gcrm-pnetcdf", 4, ["level=1", "layers=3"], lambda: gcrm_owners(4, 1, 3)),
    ("gcrm-hdf5", 3, ["data=edges", "cells=3", "layers=2", "steps=2"],
     lambda: np.tile(np.repeat(np.arange(3), 144), 2)),
    ("vorpal", 6, ["local=4,3,5", "steps=2"], lambda: vorpal_owners((4, 3, 5), (3, 2, 1), 2)),
    ("chombo", 5, ["boxes=2", "idle=3", "components=1"],
     lambda: np.repeat(np.arange(5), np.array(chombo_values(5, 2, 3, 1)[0]) * 8)),
    ("phasta", 3, ["data=96000 B", "parts=2"], lambda: phasta_owners(3, 100, 2)),
    ("s3d", 3, ["local=2,2,3"], lambda: s3d_owners((2, 2, 3), (3, 1, 1), 11)),
    ("ior-segmented", 3, ["data=6000 B", "transfer=2000 B"], lambda: np.repeat(np.arange(3), 6000)),
    ("ior-strided", 3, ["data=6000 B", "transfer=2000 B"], lambda: np.tile(np.repeat(np.arange(3), 2000), 3)),
    (
        "ior-strided", 3, ["data=6000 B", "transfer=2000 B", "piece=100 B"],
        lambda: np.tile(np.repeat(np.arange(3), 100), 60),
    ),
]  # fmt: skip


@pytest.mark.one_of(8)
@pytest.mark.parametrize("mpi", MPIS)
@pytest.mark.parametrize(
    ("kernel", "ranks", "settings", "owners"), CASES, ids=[f"{case[0]}-{case[1]}-{'-'.join(case[2])}" for case in CASES]
)
def test_the_file_is_what_numpy_says(
    tmp_path: Path, mpi: str, kernel: str, ranks: int, settings: list[str], owners: Any
) -> None:
    environment = {}
    if mpi == "mpich" and ranks > 4:
        if not YIELDS.exists():
            pytest.skip(f"MPICH's ranks spin, and {YIELDS} is not built: more than 4 take minutes on two processors")
        environment["LD_PRELOAD"] = str(YIELDS)
    words = (kernel, *settings, "--mpi", mpi, "--ranks", str(ranks), "--directory", str(tmp_path), "--keep")
    ways = ["independent", "posix", "exchange", "fpp", "mpiio"]
    rows, _ = run_kernel(*words, "--api", ",".join(ways), "--verify", environment=environment)
    assert [row["mode"] for row in rows] == ways
    assert [row["file_correct"] for row in rows] == [True, True, True, None, True]
    assert [row["read_correct"] for row in rows] == [True] * 5
    # The file of the last way is left. That the others made the same is the runner's own check, checked below.
    written = np.frombuffer((tmp_path / f"{kernel}.data").read_bytes(), dtype=np.uint8)
    assert np.array_equal(written, content(owners()))


def test_a_wrong_byte_fails(tmp_path: Path) -> None:
    """The runner's own check is checked: a plan with a fault below the engine."""
    plan = tmp_path / "plan.toml"
    plan.write_text('[[file]]\nmatch = "lattice.data"\n', encoding="utf-8")
    words = [
        "kernel",
        "lattice",
        "--json",
        "--verify",
        "local=2,2,2,2",
        "--ranks",
        "2",
        "--mpi",
        "openmpi",
        "--directory",
        str(tmp_path),
    ]
    for fault, right in (("short:1", True), ("flip:3", False), ("drop:3", False)):
        done = completed(
            [*IOWEIR, "run", "-q", "--plan", plan, "-o", tmp_path / fault[:4], "--", *IOWEIR, *words],
            env={**os.environ, **ENVIRONMENT, "IOWEIR_TEST_STORAGE": fault}, timeout=120,
        )  # fmt: skip
        (row,) = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        assert (row["read_correct"], row["file_correct"], done.returncode == 0) == (right, right, right), fault


def test_ways_may_have_files_of_their_own_and_warm_up(tmp_path: Path) -> None:
    options = kernel.Options(2, tmp_path, "openmpi", api="posix:a.data,mpiio:b.data,mpiio", verify=True, keep=True)
    words = kernel.command("lattice", ["local=2,2,2,2"], options)
    done = completed(
        [*words, "--warm-up", "1"], env={**os.environ, **ENVIRONMENT}, timeout=60,
        check=True,
    )  # fmt: skip
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(row["mode"], row["file"]) for row in rows] == [
        ("posix", "a.data"), ("mpiio", "b.data"), ("mpiio", "lattice.data")
    ]  # fmt: skip
    assert all(row["file_correct"] and row["read_correct"] for row in rows)
    # The warm-up's larger file is gone: 2 ranks of 16 sites of 256 bytes are left.
    assert [(tmp_path / row["file"]).stat().st_size for row in rows] == [8192] * 3


def test_cold_reads_forget_the_page_cache_or_say_what_they_need(tmp_path: Path) -> None:
    """That bytes come from a device then is counted in bench/targets_reads.py."""
    words = kernel.command("lattice", ["local=2,2,2,2"], kernel.Options(2, tmp_path, "openmpi"))
    done = completed(
        [*words, "--sync", "1", "--cold", "1"], env={**os.environ, **ENVIRONMENT},
        timeout=120,
    )  # fmt: skip
    if os.access("/proc/sys/vm/drop_caches", os.W_OK):
        (row,) = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        assert (row["read_correct"], done.returncode) == (True, 0)
    else:
        assert done.returncode != 0
        assert "--cold needs root" in done.stderr


def test_throttled_targets_keep_the_content_and_are_named(tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text('[[file]]\nmatch = "lattice.data"\n', encoding="utf-8")
    words = ["kernel", "lattice", "local=4,4,4,4", "--ranks", "2", "--mpi", "openmpi", "--directory", str(tmp_path)]
    throttle = f"stripe=16KiB rates=4MiB,4MiB state={tmp_path}/targets"
    done = completed(
        [*IOWEIR, "run", "-q", "--plan", plan, "-o", tmp_path / "trace", "--", *IOWEIR, *words, "--verify", "--json"],
        env={**os.environ, **ENVIRONMENT, "IOWEIR_TEST_THROTTLE": throttle}, timeout=120, check=True,
    )  # fmt: skip
    (row,) = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert row["read_correct"]
    assert row["file_correct"]
    # 8 MiB a second is the most that both targets together allow; a busy machine may make less of it.
    assert row["write_mib_per_s"] <= 8.01
    assert row["read_mib_per_s"] <= 8.01
    report = completed([*IOWEIR, "report", tmp_path / "trace", "--json"], timeout=60, check=True)
    assert "throttled storage: 2 targets of 4 MiB a second, stripes of 16 KiB" in json.loads(report.stdout)["messages"]


def test_token_buckets_of_a_manifest_are_kept_and_named(tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text('[[file]]\nmatch = "lattice.data"\n', encoding="utf-8")
    (tmp_path / "t0").mkdir()
    (tmp_path / ".ioweir-targets.toml").write_text(
        f'state = "{tmp_path}/state"\n[[target]]\nname = "t0"\ndirectory = "t0"\nrate = "4194304 B"\n'
    )
    words = [
        "kernel",
        "lattice",
        "local=4,4,4,4",
        "--ranks",
        "2",
        "--mpi",
        "openmpi",
        "--directory",
        str(tmp_path / "t0"),
    ]
    done = completed(
        [*IOWEIR, "run", "-q", "--plan", plan, "-o", tmp_path / "trace", "--", *IOWEIR, *words, "--verify", "--json"],
        env={**os.environ, **ENVIRONMENT, "IOWEIR_TEST_THROTTLE": f"targets={tmp_path}"}, timeout=120, check=True,
    )  # fmt: skip
    (row,) = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert row["read_correct"]
    assert row["file_correct"]
    assert row["write_mib_per_s"] <= 4.01
    assert row["read_mib_per_s"] <= 4.01
    report = completed([*IOWEIR, "report", tmp_path / "trace", "--json"], timeout=60, check=True)
    assert "token bucket: t0 4 MiB/s" in json.loads(report.stdout)["messages"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["btoi"], "unknown kernel: 'btoi'; did you mean 'btio'?"),
        (["btio", "--ranks", "3"], "btio needs a square number of ranks: 3; take 1 or 4"),
        (["btio", "clas=A"], "unknown parameter of kernel btio: 'clas'; did you mean 'class'?"),
        (["lattice", "--directory", "/nowhere/at/all"], "--directory /nowhere/at/all: there is no such directory"),
        (["lattice", "--api", "mpio"], "unknown mode: 'mpio'; did you mean 'mpiio'?"),
        ([], "no kernel is named"),
    ],
)
def test_mistakes_are_said(words: list[str], message: str) -> None:
    _, errors = run_kernel(*words, "--mpi", "openmpi", code=2)
    assert message in errors
    assert len(errors.splitlines()) == 1, "no launcher has been started"


def test_a_mistyped_number_of_ranks_starts_none() -> None:
    outside = {"SLURM_JOB_ID": "", "PBS_JOBID": "", "LSB_JOBID": ""}
    _, errors = run_kernel("lattice", "--ranks", "1000000", "--mpi", "openmpi", code=2, environment=outside)
    assert errors.startswith("ioweir: --ranks 1000000: more than ")


def test_a_library_for_another_mpi_is_named(tmp_path: Path) -> None:
    """A file that says it needs Open MPI, where MPICH's PnetCDF would be looked for."""
    source = tmp_path / "pnetcdf.c"
    source.write_text("int ncmpi_create(void) { return 0; }\n")
    (tmp_path / "empty.c").write_text("")
    words = ["cc", "-shared", "-fPIC", "-Wl,--no-as-needed"]
    subprocess.run(
        [*words, "-Wl,-soname,libmpi.so.40", "-o", tmp_path / "libmpi.so.40", tmp_path / "empty.c"], check=True
    )
    subprocess.run([*words, "-o", tmp_path / "libpnetcdf.so", source, tmp_path / "libmpi.so.40"], check=True)
    _, errors = run_kernel(
        "coll_perf", "--mpi", "mpich", "--api", "mpiio,netcdf", "--directory", str(tmp_path), code=2,
        environment={"LD_LIBRARY_PATH": str(tmp_path)},
    )  # fmt: skip
    assert f"{tmp_path / 'libpnetcdf.so'} needs libmpi.so.40, and is for another MPI library than mpich" in errors


@pytest.mark.parametrize(("mpi", "launchers"), [("mpich", "openmpi"), ("openmpi", "mpich")])
def test_ranks_that_the_launcher_left_alone_write_nothing(tmp_path: Path, mpi: str, launchers: str) -> None:
    """Each rank of another library's launcher is one of one, and would write over the others' file."""
    place = tmp_path / "commands"
    place.mkdir()
    theirs = kernel.launcher_of(launchers)
    for name in kernel.LAUNCHERS[mpi]:
        command = place / name
        command.write_text(f'#!/bin/sh\nexec {shutil.which(theirs)} "$@"\n')
        command.chmod(0o755)
    rows, errors = run_kernel(
        "lattice", "local=4,4,4,4", "--ranks", "2", "--mpi", mpi, "--directory", str(tmp_path), code=2,
        environment={"PATH": f"{place}:{os.environ['PATH']}"},
    )  # fmt: skip
    assert not rows
    assert "MPI_COMM_WORLD has 1 ranks, not those that the launcher was to start: 2" in errors
    assert not list(tmp_path.glob("*.data"))


def ranks_in(directory: Path) -> list[bytes]:
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = place.read_bytes()
            if b"kernel_runner" in words and bytes(directory) in words:
                found.append(words)
    return found


@pytest.mark.one_of(2)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_ranks_too(tmp_path: Path, number: signal.Signals) -> None:
    words = ["lattice", "local=4,4,4,4", "--ranks", "2", "--mpi", "openmpi", "--repeats", "1000000", "--json"]
    with subprocess.Popen(
        [*IOWEIR, "kernel", *words, "--directory", tmp_path],
        env={**os.environ, **ENVIRONMENT}, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline().startswith("{")
        process.send_signal(number)
        process.stdout.read()
        assert process.wait(timeout=60) == 128 + number
    until = time.monotonic() + 30
    while ranks_in(tmp_path) and time.monotonic() < until:
        time.sleep(0.1)
    assert not ranks_in(tmp_path)


def test_the_list_names_every_kernel() -> None:
    done = completed([*IOWEIR, "kernel", "--list"], check=True)
    for name in ("coll_perf", "ior-segmented", "ior-strided", "btio", "lattice"):
        assert f"\n{name}: " in "\n" + done.stdout
    assert "class=...: NPB's problem class: S, W, A, B, C, D or E [C]" in done.stdout
