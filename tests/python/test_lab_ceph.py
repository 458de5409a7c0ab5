"""The CephFS lab: pools as targets, found slow where they are slow. Needs root and Debian's Ceph; `make test-ceph`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ioweir import lab_ceph, lab_ceph_files, lab_loop
from ioweir.lab import Lab

IOWEIR = Path(sys.executable).with_name("ioweir")
NAME = f"test-{os.getpid()}-ceph"


def ioweir(*words: str | Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([IOWEIR, *words], capture_output=True, text=True, check=False, timeout=300)
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
