"""The CephFS lab: pools as targets, found slow where they are slow, and a program's file divided over the others.

Needs root and Debian's Ceph; `make test-ceph`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ioweir.targets import lab_ceph, lab_ceph_files, lab_loop
from ioweir.targets.lab import Lab

IOWEIR = Path(sys.executable).with_name("ioweir")
NAME = f"test-{os.getpid()}-ceph"


KERNEL = ("kernel", "coll_perf", "local=64,64,64", "variables=2", "--keep")
"""1 MiB of each rank in each of two calls."""
PLAN = (
    '[[file]]\nmatch = "*.data"\nmapping = "subfiles:auto"\nwriters = "aggregators:auto"\ndomains = "cyclic"\n'
    'stripe = { size = "256 KiB" }\nprobe = { discard_ms = 300, window_ms = 1000 }\n'
)
READ_BACK = Path(__file__).resolve().parents[1] / "trace" / "programs" / "read_back.c"


def ioweir(*words: str | Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [IOWEIR, *words], capture_output=True, text=True, check=False, timeout=300,
        env={**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"},
    )  # fmt: skip
    assert done.returncode == code, done.stdout + done.stderr
    return done


def daemons(folder: Path) -> list[bytes]:
    """Command lines of processes that name the lab's configuration."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            text = file.read_bytes()
        except OSError:
            continue
        if f"{folder}/ceph.conf".encode() in text:
            found.append(text)
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    missing = lab_ceph.CephBackend().missing()
    if missing:
        pytest.skip(f"no CephFS lab here, for want of: {'; '.join(missing)}")
    place = tmp_path / "lab"
    try:
        yield place
    finally:
        subprocess.run([IOWEIR, "lab", "down", "--force", "--directory", place], capture_output=True, check=False)
        assert daemons(place) == []


def up(folder: Path) -> None:
    ioweir(
        "lab",
        "up",
        "--ceph",
        "--name",
        NAME,
        "--directory",
        folder,
        "--targets",
        "3",
        "--rate",
        "24MB",
        "--size",
        "1GiB",
    )


def test_pools_are_targets_and_the_slow_one_is_left_out(folder: Path) -> None:
    for _ in range(2):
        up(folder)
        status = json.loads(ioweir("lab", "status", "--name", NAME, "--json").stdout)
        assert [row["problem"] for row in status["targets"]] == ["", "", ""]
        assert [row["rate_now"] for row in status["targets"]] == [24_000_000] * 3
        ioweir("lab", "slow", "1", "1/9", "--name", NAME)
        found: dict[str, Any] = json.loads(
            ioweir("probe", folder / "mnt" / "file-to-be", "--json", "--window", "1s").stdout
        )
        assert found["kind"] == "cephfs"
        assert found["excluded"] == ["t1"]
        assert 0 < found["targets"][1]["bytes_per_second"] < 2 * 24_000_000 / 9
        assert list((folder / "mnt").iterdir()) == []
        ioweir("lab", "down", "--name", NAME)
        assert not folder.exists()
        assert daemons(folder) == []
        assert str(folder) not in "".join(lab_loop.mounts())


def pool_of(path: str) -> str:
    return os.getxattr(path, "ceph.file.layout.pool").decode()


def test_a_program_has_subfiles_in_the_good_pools(folder: Path, tmp_path: Path) -> None:
    """coll_perf, by both MPIs: the slow pool is left out, and other numbers of ranks read what was written."""
    kinds = [kind for kind in ("openmpi", "mpich") if shutil.which(f"mpirun.{kind}")]
    assert kinds
    up(folder)
    ioweir("lab", "slow", "1", "1/9", "--name", NAME)
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN, encoding="utf-8")
    for kind in kinds:
        place, plain = folder / "mnt" / kind, tmp_path / kind
        place.mkdir()
        plain.mkdir()
        ranks = ("--ranks", "4", "--mpi", kind, "--directory")
        ioweir(*KERNEL, *ranks, plain)
        trace = plain / "trace"
        ioweir("run", "-q", "-o", trace, "--plan", plan, "--", IOWEIR, *KERNEL, *ranks, place)
        (said,) = (
            line for line in json.loads(ioweir("report", trace, "--json").stdout)["messages"] if " chosen: " in line
        )
        assert " 2 chosen: t" in said
        assert "; left out: t1 " in said
        file = place / "coll_perf.data"
        (row,) = json.loads(ioweir("ls", file, "--json").stdout)
        assert row["mapping"] == "subfiles:2 stripe 262144"
        assert {pool_of(path) for path in row["part_paths"]} == {"t0", "t2"}
        wanted = (plain / "coll_perf.data").read_bytes()
        assert sum(row["part_bytes"]) == len(wanted) == 2 * 4 << 20
        program = plain / "read_back"
        subprocess.run([f"mpicc.{kind}", "-o", program, READ_BACK], check=True)
        oversubscribe = ("--oversubscribe",) if kind == "openmpi" else ()
        for number in (1, 3):
            copy = plain / f"copy{number}"
            ioweir("run", "-q", "-o", plain / f"read{number}", "--plan", plan, "--", f"mpirun.{kind}", *oversubscribe,
                   "-n", str(number), program, file, copy)  # fmt: skip
            assert copy.read_bytes() == wanted
        assert ioweir("check", file).stdout.endswith(": whole, 8.00 MiB\n")
        ioweir("merge", file)
        assert file.read_bytes() == wanted
        assert [path.name for path in place.iterdir()] == ["coll_perf.data"]


def test_its_files_are_of_this_lab_only(tmp_path: Path) -> None:
    """What is written for the daemons: no two labs share a name, and every pool has a rule with one device."""
    made = []
    for identity in ("0123456789abcdef0123456789abcdef", "fedcba9876543210fedcba9876543210"):
        lab = Lab(
            "x", identity, "ceph", str(tmp_path), 1, [1, 1, 1], 1 << 30, facts=dict(lab_ceph_files.names(identity))
        )
        made.append(lab)
        assert max(len(lab_ceph_files.link(lab, 63)), len(lab_ceph_files.bridge(lab))) <= 15
        assert f"fsid = {lab.facts['fsid']}" in lab_ceph_files.configuration(lab)
        assert lab_ceph_files.network(lab).count("netns add") == 3
    for part in ("prefix", "subnet", "fsid"):
        assert made[0].facts[part] != made[1].facts[part]
    text = lab_ceph_files.crush_map(3)
    for number, label in enumerate(("t0", "t1", "t2", "metadata")):
        assert f"rule {label} {{\n id {number}\n" in text
        assert f"host h{number} {{\n id -{100 + number}\n alg straw2\n hash 0\n item osd.{number} " in text
        assert text.split(f"rule {label} ")[1].split("step take ")[1].startswith(f"h{number}\n")
