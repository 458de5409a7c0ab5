"""`ioweir lab`: token buckets everywhere, loop devices where this machine has them; what a crash leaves; both cgroup
versions.
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
from forked import completed
from ioweir.targets import lab_limits, lab_loop
from ioweir.targets.lab import registry

IOWEIR = Path(sys.executable).with_name("ioweir")
KINDS = ("bucket", "loop")


def ioweir(*words: str | Path, code: int = 0, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    done = completed([IOWEIR, *words], timeout=120, env={**os.environ, **(env or {})})
    assert done.returncode == code, done.stdout + done.stderr
    return done


class Lab:
    """A lab of the test's own name, in a directory of its own."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind = kind
        self.folder = folder / "lab"
        self.name = f"test-{os.getpid()}-{kind}"

    def up(self, *words: str, code: int = 0, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        return ioweir("lab", "up", "--kind", self.kind, "--name", self.name, "--directory", self.folder,
                      "--targets", "3", "--rate", "8MB", "--size", "64MiB", *words, code=code, env=env)  # fmt: skip

    def do(self, command: str, *words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        return ioweir("lab", command, *words, "--name", self.name, code=code)

    def status(self, code: int = 0) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.do("status", "--json", code=code).stdout)
        return found

    def probe(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(ioweir("probe", self.folder, "--json").stdout)
        return found


@pytest.fixture(params=KINDS)
def lab(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lab]:
    if request.param == "loop":
        missing = lab_loop.LoopBackend().missing()
        if missing:
            pytest.skip(f"no lab of loop devices here, for want of: {'; '.join(missing)}")
    made = Lab(request.param, tmp_path)
    try:
        yield made
    finally:
        completed([IOWEIR, "lab", "down", "--force", "--directory", made.folder])
        assert left_over(made.folder) == []


def left_over(folder: Path) -> list[str]:
    """Mounts and loop devices that have to do with the directory."""
    mounts = [line for line in lab_limits.MOUNTS.read_text().splitlines() if str(folder) in line]
    files = [file.read_text() for file in Path("/sys/block").glob("loop*/loop/backing_file")]
    return mounts + [text for text in files if str(folder) in text]


@pytest.mark.one_of(2)
def test_up_slow_status_down_and_once_more(lab: Lab) -> None:
    for _ in range(2):
        lab.up()
        found = lab.status()
        assert found["complete"]
        assert [row["rate"] for row in found["targets"]] == [8_000_000] * 3
        assert [row["rate_now"] for row in found["targets"]] == [8_000_000] * 3
        assert "a lab is up in" in lab.up(code=1).stderr
        (lab.folder / "t0" / "mine").write_text("x")
        lab.do("slow", "1", "1/40")
        lab.do("slow", "2", "7MB")
        assert [row["rate_now"] for row in lab.status()["targets"]] == [8_000_000, 200_000, 7_000_000]
        assert lab.probe()["excluded"] == ["t1"]
        lab.do("slow", "1", "full")
        assert lab.status()["targets"][1]["rate_now"] == 8_000_000
        assert "gone" in lab.do("down").stdout
        assert not lab.folder.exists()
        assert "no lab named" in lab.do("status", code=1).stderr


@pytest.mark.one_of(2)
def test_no_target_is_faster_than_its_rate(lab: Lab) -> None:
    lab.up()
    lab.do("slow", "0", "400kB")
    found = lab.probe()
    assert found["token_bucket"] == (lab.kind == "bucket")
    assert 0 < found["targets"][0]["bytes_per_second"] < 1.5 * 400_000
    assert found["excluded"] == ["t0"]
    assert all(row["direct"] for row in found["targets"]) or lab.kind == "bucket"


@pytest.mark.one_of(2)
def test_what_was_made_in_part_is_cleared_away(lab: Lab, tmp_path: Path) -> None:
    """`lab up` is killed half way, then called again; and once more, then taken down."""
    tools = tmp_path / "tools"
    tools.mkdir()
    # Killed by the program that it calls for its second target; a bucket lab calls none, and has its state set back.
    script = tools / "mkfs.ext4"
    script.write_text(
        f"#!/bin/sh\n[ -e {tmp_path}/once ] && {{ rm {tmp_path}/once; kill -9 $PPID; exit 1; }}\n"
        f"touch {tmp_path}/once\n"
        f'exec {shutil.which("mkfs.ext4", path="/usr/sbin:/sbin:/usr/bin")} "$@"\n'
    )
    script.chmod(0o755)
    for last in (False, True):
        if lab.kind == "loop":
            lab.up(code=-9, env={"PATH": f"{tools}:{os.environ['PATH']}"})
            assert len(left_over(lab.folder)) >= 2
        else:
            lab.up()
            state = lab.folder / ".ioweir-lab.json"
            state.write_text(state.read_text().replace('"complete": true', '"complete": false'))
            shutil.rmtree(lab.folder / "t1")
        found = lab.status(code=1)
        assert not found["complete"]
        if last:
            lab.do("down")
            assert not lab.folder.exists()
        else:
            assert "removed what was left of a lab" in lab.up().stdout
            assert lab.status()["complete"]
            lab.do("down")


@pytest.mark.one_of(2)
def test_a_restart_of_the_machine_is_survived(lab: Lab) -> None:
    """What the kernel forgets is taken away by hand: the pointer in /run, mounts, devices, what was in memory."""

    def forget() -> None:
        (registry().path / f"{lab.name}.json").unlink()
        if lab.kind == "loop":
            devices = [row["device"] for row in json.loads(status().stdout)["targets"]]
            for number, device in enumerate(devices):
                subprocess.run(["umount", lab.folder / f"t{number}"], check=True)
                subprocess.run(["losetup", "--detach", device], check=True)
        else:
            Path(json.loads((lab.folder / ".ioweir-lab.json").read_text())["facts"]["state"]).unlink()

    def status(code: int = 0) -> subprocess.CompletedProcess[str]:
        return ioweir("lab", "status", "--json", "--directory", lab.folder, code=code)

    lab.up()
    forget()
    assert "no lab named" in lab.do("status", code=1).stderr
    if lab.kind == "loop":
        assert "its loop device is gone" in status(code=1).stdout
        assert "removed what was left of a lab" in lab.up().stdout
    else:
        assert json.loads(status().stdout)["targets"][0]["rate_now"] == 8_000_000  # directories stay, and so do rates
        assert "a lab is up in" in lab.up(code=1).stderr
        (registry().path / f"{lab.name}.json").write_text(json.dumps({"directory": str(lab.folder)}))
    forget()
    ioweir("lab", "down", "--directory", lab.folder)
    assert not lab.folder.exists()


def test_only_what_it_made_is_touched(lab: Lab, tmp_path: Path) -> None:
    lab.folder.mkdir()
    (lab.folder / "precious").write_text("x")
    assert "is not empty, and no lab" in lab.up(code=1).stderr
    assert [file.name for file in lab.folder.iterdir()] == ["precious"]
    (lab.folder / "precious").unlink()
    lab.up()
    (lab.folder / "precious").write_text("x")
    lab.do("down")
    assert [file.name for file in lab.folder.iterdir()] == ["precious"]
    shutil.rmtree(lab.folder)
    assert "there is no lab in" in ioweir("lab", "down", "--directory", tmp_path, code=1).stderr


def test_a_target_in_use_is_named(lab: Lab) -> None:
    lab.up()
    with subprocess.Popen(["sleep", "60"], cwd=lab.folder / "t1") as user:
        try:
            if lab.kind == "bucket":  # directories can be removed while they are in use
                lab.do("down")
                return
            error = lab.do("down", code=1).stderr
            assert f"process {user.pid} (sleep)" in error
            assert "--force" in error
            lab.do("down", "--force")
        finally:
            user.kill()


def test_mistakes_are_said(tmp_path: Path) -> None:
    lab = Lab("bucket", tmp_path)
    for words, part in (
        (("--targets", "0"), "1 to 64"),
        (("--rate", "fast"), "not a size: 'fast'"),
        (("--rate", "0"), "a size of nothing"),
        (("--kind", "tape"), "unknown kind of lab: 'tape'"),
    ):
        assert part in lab.up(*words, code=2).stderr
    assert not lab.folder.exists()
    lab.up()
    assert "it has 0 to 2" in lab.do("slow", "3", "1MB", code=2).stderr
    for rate in ("1/0", "x/2", "0"):
        assert lab.do("slow", "0", rate, code=2).stderr
    assert "not a name for a lab" in ioweir("lab", "down", "--name", "../x", code=2).stderr
    lab.do("down")


def test_a_program_runs_within_the_limits(tmp_path: Path) -> None:
    lab = Lab("bucket", tmp_path)
    lab.up()
    assert ioweir("lab", "run", "--name", lab.name, "--", "echo", "hello").stdout == "hello\n"
    assert "command not found" in ioweir("lab", "run", "--name", lab.name, "--", "no-such-program", code=127).stderr
    lab.do("down")


# Both versions of cgroups on directories that stand in for the kernel's: which files are found and what is written.


def test_limits_of_version_1_are_those_of_the_root_group(tmp_path: Path) -> None:
    for direction in ("read", "write"):
        (tmp_path / f"blkio.throttle.{direction}_bps_device").write_text("7:9 5\n")
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        f"30 23 0:26 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
        f"31 23 0:27 / {tmp_path} rw,nosuid shared:9 - cgroup cgroup rw,blkio\n"
    )
    limits = lab_limits.find("lab", mounts)
    assert limits == lab_limits.Limits(1, tmp_path)
    assert limits.get("7:9") == 5
    assert limits.get("7:1") == 0
    limits.set("7:3", 1000)
    for direction in ("read", "write"):
        assert (tmp_path / f"blkio.throttle.{direction}_bps_device").read_text() == "7:3 1000"
    limits.make()
    limits.join()
    limits.remove()
    assert tmp_path.is_dir()


def test_limits_of_version_2_are_those_of_a_group_of_the_lab(tmp_path: Path) -> None:
    (tmp_path / "cgroup.controllers").write_text("cpuset cpu io memory\n")
    (tmp_path / "cgroup.subtree_control").write_text("cpu\n")
    mounts = tmp_path / "mountinfo"
    mounts.write_text(f"30 23 0:26 / {tmp_path} rw,nosuid - cgroup2 cgroup2 rw\n")
    limits = lab_limits.find("lab", mounts)
    group = tmp_path / "ioweir-lab-lab"
    assert limits == lab_limits.Limits(2, group)
    limits.make()
    assert group.is_dir()
    assert (tmp_path / "cgroup.subtree_control").read_text() == "+io"
    limits.set("7:3", 1000)
    assert (group / "io.max").read_text() == "7:3 rbps=1000 wbps=1000"
    assert limits.get("7:3") == 1000
    limits.set("7:3", 0)
    assert (group / "io.max").read_text() == "7:3 rbps=max wbps=max"
    assert limits.get("7:3") == 0
    limits.join()
    assert (group / "cgroup.procs").read_text() == str(os.getpid())
    (tmp_path / "cgroup.controllers").write_text("cpuset cpu\n")
    assert lab_limits.find("lab", mounts) is None


# What others may have put where labs are looked for.

STRANGER = 65534


def state_of(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / ".ioweir-lab.json").read_text())
    return found


def test_a_labs_folder_is_the_users_alone_and_nobody_knows_its_name_before(tmp_path: Path) -> None:
    env = {"TMPDIR": str(tmp_path)}
    # Where labs lay by a name that everybody could tell.
    (tmp_path / f"ioweir-lab-lab-{os.geteuid()}").mkdir()
    name = f"test-{os.getpid()}-new"
    up = ioweir("lab", "up", "--kind", "bucket", "--name", name, "--targets", "1", "--json", env=env)
    where = Path(json.loads(up.stdout)["directory"])
    try:
        assert where.parent == tmp_path
        assert where.name.startswith(f"ioweir-lab-{name}-")
        assert where.stat().st_mode & 0o777 == 0o700
        assert (where / ".ioweir-lab.json").stat().st_mode & 0o077 == 0
        assert registry().path.stat().st_mode & 0o777 == 0o700
        assert "a lab is up in" in ioweir("lab", "up", "--name", name, code=1, env=env).stderr
    finally:
        ioweir("lab", "down", "--name", name)
    assert not where.exists()


@pytest.mark.parametrize("key", ["state", "images"])
def test_a_state_file_names_nothing_but_the_labs_own(tmp_path: Path, key: str) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    lab = Lab("bucket", tmp_path)
    lab.up()
    state = state_of(lab.folder)
    kept = dict(state["facts"])
    state["facts"][key] = str(victim)
    state["backend"] = "bucket" if key == "state" else "loop"
    (lab.folder / ".ioweir-lab.json").write_text(json.dumps(state))
    for words in (("down",), ("down", "--force"), ("status",), ("slow", "0", "1MB"), ("up",)):
        where = ["--directory", str(lab.folder)] if words[0] == "up" else []
        command = [IOWEIR, "lab", *words, "--name", lab.name, *where]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        assert victim.exists(), words
        assert victim.read_text() == "precious", words
        assert done.returncode == 1, words
        assert "is damaged; remove the lab by hand" in done.stderr
    (lab.folder / ".ioweir-lab.json").write_text(json.dumps({**state, "backend": "bucket", "facts": kept}))
    lab.do("down")


@pytest.mark.one_of(2)
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("planted", ["state", "folder", "open folder", "folder above", "link", "pipe", "zero", "giant"])
def test_a_lab_that_somebody_else_has_put_there_is_not_believed(tmp_path: Path, planted: str) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    lab = Lab("bucket", tmp_path / "above")
    (tmp_path / "above").mkdir()
    lab.up()
    state = lab.folder / ".ioweir-lab.json"
    buckets = Path(state_of(lab.folder)["facts"]["state"])
    text = state.read_text()
    if planted == "state":
        os.chown(state, STRANGER, STRANGER)
    elif planted == "folder":
        os.chown(lab.folder, STRANGER, STRANGER)
    elif planted == "open folder":
        lab.folder.chmod(0o777)
    elif planted == "folder above":
        os.chown(lab.folder.parent, STRANGER, STRANGER)
    else:
        state.unlink()
        if planted == "link":
            (tmp_path / "elsewhere").write_text(text)
            state.symlink_to(tmp_path / "elsewhere")
        elif planted == "zero":
            state.symlink_to("/dev/zero")
        elif planted == "pipe":
            os.mkfifo(state)
        else:
            state.touch()
            os.truncate(state, 1 << 40)
    every = bool(os.environ.get("IOWEIR_TEST_ALL"))
    for number, command in enumerate(("status", "down", "slow", "up")):
        more = {"slow": ("0", "1MB"), "up": ("--kind", "bucket")}.get(command, ())
        ways = (("--name", lab.name), ("--directory", str(lab.folder)))
        # One in turn, for it starts a process each time.
        turn = (number + len(planted)) % 2
        for where in ways if every else ways[turn : turn + 1]:
            done = completed(
                [IOWEIR, "lab", command, *more, *where], timeout=5
            )  # fmt: skip
            assert done.returncode == 1, done.stdout
            assert "is not believed" in done.stderr
    assert (lab.folder / "t0").is_dir()
    assert buckets.exists()
    # All as it was, for the end.
    os.chown(lab.folder.parent, 0, 0)
    os.chown(lab.folder, 0, 0)
    lab.folder.chmod(0o700)
    state.unlink()
    state.write_text(text)
    state.chmod(0o600)
    lab.do("down")
    assert victim.read_text() == "precious"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_no_lab_is_made_where_others_may_interfere(tmp_path: Path) -> None:
    lab = Lab("bucket", tmp_path / "above")
    (tmp_path / "above").mkdir()
    for above, folder, why in (
        ((0, 0o777), None, "may put something else in its place"),
        ((STRANGER, 0o755), None, "may put something else in its place"),
        ((0, 0o755), (0, 0o777), "by others"),
        ((0, 0o755), (STRANGER, 0o755), "belongs to user 65534"),
    ):
        os.chown(lab.folder.parent, above[0], 0)
        lab.folder.parent.chmod(above[1])
        if folder:
            lab.folder.mkdir(exist_ok=True)
            os.chown(lab.folder, folder[0], 0)
            lab.folder.chmod(folder[1])
        assert why in lab.up(code=1).stderr
        assert not lab.folder.exists() or list(lab.folder.iterdir()) == []
        shutil.rmtree(lab.folder, ignore_errors=True)
    (tmp_path / "elsewhere").mkdir()
    os.chown(lab.folder.parent, 0, 0)
    lab.folder.symlink_to(tmp_path / "nowhere")
    assert "ioweir:" in lab.up(code=1).stderr
    assert not (tmp_path / "nowhere").exists()


def test_what_others_put_on_a_target_goes_without_what_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "file").write_text("precious")
    lab = Lab("bucket", tmp_path)
    lab.up()
    (lab.folder / "t0" / "link").symlink_to(tmp_path / "outside")
    shutil.rmtree(lab.folder / "t1")
    (lab.folder / "t1").symlink_to(tmp_path / "outside")
    lab.do("down")
    assert (tmp_path / "outside" / "file").read_text() == "precious"
    assert not lab.folder.exists()
