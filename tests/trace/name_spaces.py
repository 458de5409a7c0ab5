"""Network name spaces as the nodes of a machine: each has a host name and an interface of its own, so that Open MPI
speaks TCP between them. Needs root; whatever is left over by a process that was killed is removed by the next one.

Not here: what runs on them (test_nodes.py). MPICH moves bytes between name spaces past the network: only for Open MPI.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_NAME = re.compile(r"^iw(\d+)n\d+$")
# Open MPI starts its daemons with this instead of ssh: AGENT HOST COMMAND...
_AGENT = """#!/bin/bash
while [[ $1 == -* ]]; do shift; done
host=$1; shift
exec ip netns exec "$IOWEIR_TEST_NODES"n$((${host##*.} - 10)) unshare --uts bash -c \
    "hostname $IOWEIR_TEST_NODES-${host##*.}; exec bash -c \\"\\$0\\"" "$*"
"""


def why_not() -> str | None:
    """What keeps this machine from having such nodes; nothing: it can."""
    if os.geteuid() != 0:
        return "network name spaces need root"
    missing = [tool for tool in ("ip", "unshare", "mpirun.openmpi") if shutil.which(tool) is None]
    if missing:
        return f"not installed: {', '.join(missing)}"
    name = f"iw{os.getpid()}n99"
    if _ip("netns", "add", name, check=False) != 0:
        return "no network name spaces on this machine"
    made = _ip("-n", name, "link", "add", "iwprobe", "type", "veth", "peer", "name", "iwprobe2", check=False)
    _ip("netns", "del", name, check=False)
    return None if made == 0 else "no veth interfaces on this machine"


def _ip(*words: str, check: bool = True) -> int:
    return subprocess.run(["ip", *words], check=check, capture_output=not check).returncode


def _remove(owner: int) -> None:
    """All of one process, with whatever still runs in there."""
    listing = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=False).stdout
    for line in listing.splitlines():
        name = line.split()[0]
        found = _NAME.match(name)
        if found is None or int(found[1]) != owner:
            continue
        inside = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True, check=False).stdout
        for process in inside.split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(process), signal.SIGKILL)
        _ip("netns", "del", name, check=False)
    _ip("link", "del", f"iw{owner}b", check=False)


def _remove_leftovers() -> None:
    owners = {int(found[1]) for path in Path("/run/netns").glob("iw*n*") if (found := _NAME.match(path.name))}
    for owner in owners:
        if not Path(f"/proc/{owner}").exists():
            _remove(owner)


class Nodes:
    """Some nodes that are up. `host_bytes` counts at the other end of the wires, outside of the name spaces."""

    def __init__(self, count: int, prefix: str, net: str, agent: Path) -> None:
        self.count = count
        self._prefix = prefix
        self._net = net
        self._agent = agent

    def launch(self, ranks_each: int, *command: str | int | Path) -> list[str]:
        """The command that starts `ranks_each` ranks on every node, filled node by node."""
        hosts = ",".join(f"{self._net}.{10 + i}:{ranks_each}" for i in range(self.count))
        words = ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "-H", hosts]
        words += ["-n", str(ranks_each * self.count), "-x", "PATH"]
        parameters = {
            "plm_rsh_agent": str(self._agent),
            "plm_rsh_no_tree_spawn": "1",
            "oob_tcp_if_include": f"{self._net}.0/24",
            "btl_tcp_if_include": f"{self._net}.0/24",
            "btl": "tcp,vader,self",
            "pml": "ob1",
        }
        for name, value in parameters.items():
            words += ["--mca", name, value]
        return [*words, *map(str, command)]

    def host_bytes(self) -> int:
        """What all nodes have sent so far, as the host's ends of their wires have received it."""
        counters = (Path(f"/sys/class/net/{self._prefix}v{i}/statistics/rx_bytes") for i in range(self.count))
        return sum(int(counter.read_text()) for counter in counters)


@contextlib.contextmanager
def nodes(count: int, folder: Path) -> Iterator[Nodes]:
    """`count` nodes on a bridge, until the end of the block."""
    _remove_leftovers()
    owner = os.getpid()
    prefix = f"iw{owner}"
    net = f"10.88.{owner % 250 + 1}"
    agent = folder / "agent"
    agent.write_text(_AGENT)
    agent.chmod(0o755)
    os.environ["IOWEIR_TEST_NODES"] = prefix
    bridge = f"{prefix}b"
    try:
        _ip("link", "add", bridge, "type", "bridge")
        _ip("addr", "add", f"{net}.1/24", "dev", bridge)
        _ip("link", "set", bridge, "up")
        for i in range(count):
            name = f"{prefix}n{i}"
            _ip("netns", "add", name)
            _ip("link", "add", f"{prefix}v{i}", "type", "veth", "peer", "name", "eth0", "netns", name)
            _ip("link", "set", f"{prefix}v{i}", "master", bridge, "up")
            _ip("-n", name, "addr", "add", f"{net}.{10 + i}/24", "dev", "eth0")
            _ip("-n", name, "link", "set", "eth0", "up")
            _ip("-n", name, "link", "set", "lo", "up")
            _ip("-n", name, "route", "add", "default", "via", f"{net}.1")
        time.sleep(0.1)  # a bridge port forwards a moment after it is up
        yield Nodes(count, prefix, net, agent)
    finally:
        del os.environ["IOWEIR_TEST_NODES"]
        _remove(owner)
