"""A lab that is a CephFS on one machine: each target a pool on an OSD of its own, in a network namespace of its own.

The link to a target's namespace is limited by a token bucket filter (tc-tbf(8)), in both directions. Objects are
kept in memory (memstore), without replicas and without authentication: nothing of it is safe, or meant to be.
Debian's packages are enough: ceph-mon ceph-osd ceph-mds ceph-fuse python3-rados iproute2.

Here: the order in which the parts come up and go. Not here: the settings of the daemons and the CRUSH map
(lab_ceph_files.py).
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ioweir.base.guarded_files import Folder
from ioweir.errors import IoweirError
from ioweir.targets import lab as labs
from ioweir.targets import lab_ceph_files as files
from ioweir.targets.lab_loop import find_program, mounts

if TYPE_CHECKING:
    from collections.abc import Callable

    from ioweir.targets.lab import Lab

PROGRAMS: Final = ("ceph-mon", "ceph-osd", "ceph-mds", "ceph-fuse", "monmaptool", "crushtool", "ip", "tc", "umount")
WAIT_S: Final = 60.0
SYSTEM_PYTHON: Final = "/usr/bin/python3"

# Commands to the monitor, one JSON object a line in and out. librados has no binding on PyPI: this runs under the
# system's Python.
_MONITOR: Final = """
import json, sys, time, rados
cluster = rados.Rados(conffile=sys.argv[1], name="client.admin")
cluster.connect(timeout=20)
for line in sys.stdin:
    command, data = json.loads(line)
    for attempt in range(100):
        code, out, err = cluster.mon_command(json.dumps(command), data.encode("latin-1"), timeout=30)
        if not (code == -1 and "wrong fsid" in err):  # seen now and then on a fresh monitor
            break
        time.sleep(0.05)
    print(json.dumps([code, out.decode(), err]), flush=True)
"""


class CephBackend:
    """See lab.Backend."""

    def missing(self) -> list[str]:
        """Root, programs, FUSE."""
        lacks = [] if os.geteuid() == 0 else ["root"]
        lacks += [f"the program {name}" for name in PROGRAMS if find_program(name) is None]
        if not Path("/dev/fuse").exists():
            lacks.append("/dev/fuse")
        done = subprocess.run([SYSTEM_PYTHON, "-c", "import rados"], capture_output=True, check=False)
        if done.returncode != 0:
            lacks.append("python3-rados")
        return lacks

    def owns(self, lab: Lab) -> bool:
        """The names of its network and cluster follow from its identity, or there are none yet."""
        names = files.names(lab.identity)
        return all(lab.facts.get(key, value) == value for key, value in names.items())

    def make(self, lab: Lab) -> None:
        """Network, daemons, pools, mount, and the manifest."""
        lab.facts.update(files.names(lab.identity))
        lab.save()
        for name in ("run", "log", "mon", "mds", "mnt"):
            (lab.root / name).mkdir()
        _make_network(lab)
        with lab.open() as folder:
            folder.write("ceph.conf", files.configuration(lab), 0o644)
        _start_monitor(lab)
        with _Monitor(lab) as monitor:
            _start_storage(lab, monitor)
            _start_file_system(lab, monitor)
        _run("ceph-fuse", "-c", _conf(lab), lab.root / "mnt")
        (lab.root / "mnt").chmod(0o1777)
        rows: list[Any] = [{"name": f"t{number}", "pool": f"t{number}"} for number in range(len(lab.rates))]
        labs.write_manifest(lab, {"kind": "cephfs"}, rows)

    def set_rate(self, lab: Lab, number: int) -> None:
        """In effect at once, for both directions of the link."""
        bits = f"{8 * lab.rates[number]}bit"
        limit = ("root", "tbf", "rate", bits, "burst", "256kb", "latency", "200ms")
        _run("tc", "qdisc", "replace", "dev", files.link(lab, number), *limit)
        _run("ip", "netns", "exec", files.host(lab, number), "tc", "qdisc", "replace", "dev", "eth0", *limit)

    def look(self, lab: Lab) -> list[dict[str, Any]]:
        """Whether each target's daemon runs, and the mount is there."""
        mounted = str(lab.root / "mnt") in mounts()
        running = _daemons(lab)
        rows: list[dict[str, Any]] = []
        for number in range(len(lab.rates)):
            problem = "" if mounted else f"nothing is mounted at {lab.root / 'mnt'}"
            if f"osd.{number}" not in running:
                problem = f"osd.{number} does not run"
            rows.append({"rate_now": None if problem else _rate_now(lab, number), "problem": problem})
        return rows

    def remove(self, lab: Lab, force: bool) -> None:
        """From the mount down to the network."""
        if "prefix" not in lab.facts:
            return
        mount = str(lab.root / "mnt")
        if mount in mounts():
            _run("umount", *(["--lazy"] if force else []), mount)
        _end(_daemons(lab))
        for number in range(len(lab.rates)):
            if (Path("/run/netns") / files.host(lab, number)).exists():
                _run("ip", "netns", "del", files.host(lab, number))
        if (Path("/sys/class/net") / files.bridge(lab)).exists():
            _run("ip", "link", "del", files.bridge(lab))
        with lab.open() as folder:
            for name in ("run", "log", "mon", "mds", *(f"osd{i}" for i in range(len(lab.rates) + 1))):
                folder.remove_tree(name)
            for name in ("ceph.conf", "monmap", "crush.txt", "crush.bin"):
                folder.remove(name, missing_ok=True)
            with contextlib.suppress(FileNotFoundError):
                folder.remove_empty("mnt")  # a mount point, and nothing else


def _conf(lab: Lab) -> str:
    return str(lab.root / "ceph.conf")


def _run(*words: str | Path) -> str:
    program = find_program(str(words[0]))
    if program is None:
        raise IoweirError(f"{words[0]} is not installed")
    try:
        done = subprocess.run(
            [program, *words[1:]], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=WAIT_S
        )
    except subprocess.TimeoutExpired as error:
        raise IoweirError(f"{' '.join(map(str, words))} did not end within {WAIT_S:.0f} s") from error
    if done.returncode != 0:
        raise IoweirError(
            f"{' '.join(map(str, words))} failed ({done.returncode}): {(done.stderr or done.stdout).strip()}"
        )
    return done.stdout


def _wait(ready: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + WAIT_S
    while not ready():
        if time.monotonic() > deadline:
            raise IoweirError(f"{what} did not come up within {WAIT_S:.0f} s; see the lab's directory log")
        time.sleep(0.05)


class _Monitor:
    """Commands to the monitor."""

    def __init__(self, lab: Lab) -> None:
        self._helper = subprocess.Popen(
            [SYSTEM_PYTHON, "-c", _MONITOR, _conf(lab)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __enter__(self) -> _Monitor:
        return self

    def __exit__(self, *_: object) -> None:
        self._helper.terminate()
        self._helper.wait()

    def ask(self, data: bytes = b"", /, **command: object) -> str:
        """Its answer; an error for anything but success."""
        assert self._helper.stdin is not None
        assert self._helper.stdout is not None
        try:
            self._helper.stdin.write(json.dumps([command, data.decode("latin-1")]) + "\n")
            self._helper.stdin.flush()
        except BrokenPipeError:
            pass
        line = self._helper.stdout.readline()
        if not line:
            raise IoweirError("the monitor of the lab cannot be reached; see the lab's directory log")
        code, out, problem = json.loads(line)
        if code != 0:
            raise IoweirError(f"the monitor refuses {command}: {problem} ({code})")
        return str(out)


def _make_network(lab: Lab) -> None:
    batch = lab.root / "run" / "network"
    with Folder.open(batch.parent, own=True) as folder:
        folder.write(batch.name, files.network(lab))
    _run("ip", "-batch", batch)
    for number in range(len(lab.rates)):
        host = files.host(lab, number)
        _run("ip", "-n", host, "addr", "add", f"{files.address(lab, number)}/24", "dev", "eth0")
        _run("ip", "-n", host, "link", "set", "eth0", "up")
        _run("ip", "-n", host, "link", "set", "lo", "up")


def _start_monitor(lab: Lab) -> None:
    where = f"[v1:{files.address(lab, None)}:6789]"
    _run("monmaptool", "--create", "--addv", "a", where, "--fsid", lab.facts["fsid"], lab.root / "monmap")
    _run("ceph-mon", "-c", _conf(lab), "-i", "a", "--mkfs", "--monmap", lab.root / "monmap")
    _run("ceph-mon", "-c", _conf(lab), "-i", "a")


def _start_storage(lab: Lab, monitor: _Monitor) -> None:
    """An OSD a target, and one for the metadata, so that a slow target never slows them."""
    count = len(lab.rates) + 1
    for number in range(count):
        (lab.root / f"osd{number}").mkdir()
        identity = files.osd_identity(lab, number)
        monitor.ask(prefix="osd create", uuid=identity)
        _run("ceph-osd", "-c", _conf(lab), "-i", str(number), "--mkfs", "--osd-uuid", identity)
    with lab.open() as folder:
        folder.write("crush.txt", files.crush_map(len(lab.rates)))
        _run("crushtool", "-c", lab.root / "crush.txt", "-o", lab.root / "crush.bin")
        monitor.ask(folder.read("crush.bin"), prefix="osd setcrushmap")
    for number in range(count):
        on_target = number < len(lab.rates)
        within = ("ip", "netns", "exec", files.host(lab, number)) if on_target else ()
        where = files.address(lab, number if on_target else None)
        _run(*within, "ceph-osd", "-c", _conf(lab), "-i", str(number), "--public-addr", where, "--cluster-addr", where)
    _wait(lambda: json.loads(monitor.ask(prefix="osd stat", format="json"))["num_up_osds"] == count, "an OSD")


def _start_file_system(lab: Lab, monitor: _Monitor) -> None:
    names = [f"t{number}" for number in range(len(lab.rates))]
    for name in [*names, "metadata"]:
        monitor.ask(prefix="osd pool create", pool=name, pg_num=8, pgp_num=8, pool_type="replicated", rule=name, size=1)
    monitor.ask(prefix="fs new", fs_name="lab", metadata="metadata", data=names[0], force=True)
    for name in names[1:]:
        monitor.ask(prefix="fs add_data_pool", fs_name="lab", pool=name)
    _run("ceph-mds", "-c", _conf(lab), "-i", "a")
    _wait(lambda: "up:active" in monitor.ask(prefix="mds stat"), "the metadata server")


def _daemons(lab: Lab) -> dict[str, int]:
    """The lab's own that run: processes of pid files whose command line names the lab's configuration."""
    found: dict[str, int] = {}
    try:
        run = Folder.open(lab.root / "run", own=True)
    except FileNotFoundError:
        return found
    with run:
        for file in map(Path, run.names()):
            with contextlib.suppress(OSError, ValueError):
                pid = int(run.read_text(file.name)) if file.suffix == ".pid" else 0
                if _conf(lab).encode() in (Path("/proc") / str(pid) / "cmdline").read_bytes().split(b"\0"):
                    found[file.stem] = pid
    return found


def _end(daemons: dict[str, int]) -> None:
    for pid in daemons.values():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)  # memstore has nothing to save
    _wait(
        lambda: not any((Path("/proc") / str(pid) / "exe").exists() for pid in daemons.values()), "the end of daemons"
    )


def _rate_now(lab: Lab, number: int) -> int | None:
    try:
        (row, *_) = json.loads(_run("tc", "-j", "qdisc", "show", "dev", files.link(lab, number)))
        return int(row["options"]["rate"])
    except (IoweirError, ValueError, KeyError, TypeError):
        return None
