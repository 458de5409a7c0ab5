"""A Slurm cluster of three nodes on this machine, for as long as a `with` block lasts.

The daemons are real ones (munged, slurmctld, a slurmd for each node) in name spaces of their own: of processes, so that
all of them end when the first one does; of the network, so that no port is seen outside; of mounts, for /etc/hosts.
Each slurmd has a host name and a /dev/shm of its own. The nodes share processors, files and one network interface.

The first process reads a pipe from this one. It ends, and the cluster with it, when this one ends in whatever way.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

NODES: Final = ("n1", "n2", "n3")
TOOLS: Final = ("munged", "slurmctld", "slurmd", "srun", "sbatch", "unshare", "nsenter", "ip")
_START_S: Final = 30.0
_SEARCH: Final = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"

# Slurm looks up addresses only where an interface besides the loopback has one: a pair of veth, both ends in here.
_FIRST: Final = """set -eu
folder=$1
ip link set lo up
ip link add e0 type veth peer name e1
ip link set e0 up
ip link set e1 up
for last in 1 11 12 13; do ip addr add 10.88.0.$last/24 dev e0; done
mount --bind "$folder/hosts" /etc/hosts
hostname head
export SLURM_CONF=$folder/slurm.conf
munged --force --key-file="$folder/munge.key" --socket="$folder/munge.socket" --pid-file="$folder/munged.pid" \
    --log-file="$folder/log/munged" --seed-file="$folder/munge.seed"
slurmctld -D >"$folder/log/slurmctld.out" 2>&1 &
for node in n1 n2 n3; do
    unshare --uts --mount sh -c "hostname $node; mount -t tmpfs none /dev/shm; exec slurmd -D -N $node" \
        >"$folder/log/slurmd-$node.out" 2>&1 &
done
touch "$folder/ready"
read -r _ || true
"""

_CONFIGURATION: Final = """ClusterName=ioweir
SlurmctldHost=head(10.88.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/log/slurmctld
SlurmdLogFile={folder}/log/slurmd-%n
TmpFS={folder}/tmp/%n
MailProg=/bin/true
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
SchedulerParameters=bf_interval=1,sched_interval=1,batch_sched_delay=0
MpiDefault=pmix
ReturnToService=2
KillWait=2
NodeName=n1 NodeAddr=10.88.0.11 Port=7001 CPUs=16
NodeName=n2 NodeAddr=10.88.0.12 Port=7002 CPUs=16
NodeName=n3 NodeAddr=10.88.0.13 Port=7003 CPUs=16
PartitionName=all Nodes=n[1-3] Default=YES State=UP
"""

_HOSTS: Final = "127.0.0.1 localhost\n10.88.0.1 head\n10.88.0.11 n1\n10.88.0.12 n2\n10.88.0.13 n3\n"


def why_not() -> str | None:
    """What keeps this machine from having such a cluster; nothing: it can."""
    missing = [tool for tool in TOOLS if shutil.which(tool, path=_SEARCH) is None]
    if missing:
        return f"not installed: {', '.join(missing)} (Debian: slurmctld slurmd slurm-client munge)"
    if os.geteuid() != 0:
        return "a Slurm cluster in name spaces needs root"
    words = ["unshare", "--pid", "--fork", "--mount", "--net", "--uts"]
    tried = subprocess.run(
        [*words, "sh", "-c", "ip link add a0 type veth peer name a1"], capture_output=True, text=True, check=False
    )
    return f"no name spaces, or no veth, on this machine: {tried.stderr.strip()}" if tried.returncode else None


@dataclass(frozen=True)
class Cluster:
    """A cluster that is up."""

    folder: Path
    first: int
    """The first process of its name spaces."""

    def words(self, *command: str | Path) -> list[str]:
        """A command line that runs in the cluster."""
        enter = ["nsenter", "-t", str(self.first), "--mount", "--net", "--uts", "--pid", f"--wd={Path.cwd()}"]
        return [*enter, *map(str, command)]

    def run(
        self, *command: str | Path, cwd: Path, timeout: float = 120, env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in the cluster, as on its login node."""
        words = self.words(*command)
        words[words.index(f"--wd={Path.cwd()}")] = f"--wd={cwd}"
        environment = {**os.environ, "SLURM_CONF": str(self.folder / "slurm.conf"), **(env or {})}
        return subprocess.run(
            words, capture_output=True, text=True, check=False, timeout=timeout, env=environment,
        )  # fmt: skip

    def idle(self) -> bool:
        """Whether all nodes wait for work."""
        done = self.run("sinfo", "-h", "-o", "%T %D", cwd=self.folder)
        return done.stdout.strip() == f"idle {len(NODES)}"


def _child(pid: int) -> int | None:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(children[0]) if children else None


@contextlib.contextmanager
def cluster(folder: Path) -> Iterator[Cluster]:
    """A cluster whose state, logs, key and sockets lie in `folder`."""
    for name in ("state", "log", *(f"{kind}/{node}" for kind in ("spool", "tmp") for node in NODES)):
        (folder / name).mkdir(parents=True)
    (folder / "hosts").write_text(_HOSTS)
    (folder / "slurm.conf").write_text(_CONFIGURATION.format(folder=folder))
    key = folder / "munge.key"
    key.touch(mode=0o600)
    key.write_bytes(secrets.token_bytes(1024))
    words = ["unshare", "--pid", "--fork", "--kill-child", "--mount", "--mount-proc", "--net", "--uts"]
    process = subprocess.Popen(
        [*words, "bash", "-c", _FIRST, "first", str(folder)],
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PATH": _SEARCH}, start_new_session=True,
    )  # fmt: skip
    try:
        yield _when_up(folder, process)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        assert process.stderr is not None
        process.stderr.close()


def _when_up(folder: Path, process: subprocess.Popen[str]) -> Cluster:
    end = time.monotonic() + _START_S
    while time.monotonic() < end and process.poll() is None:
        first = _child(process.pid)
        if first is not None and (folder / "ready").exists():
            up = Cluster(folder, first)
            if up.idle():
                return up
        time.sleep(0.1)
    logs = "\n".join(f"{log.name}: {log.read_text()[-1000:]}" for log in sorted((folder / "log").iterdir()))
    raise RuntimeError(f"the cluster did not come up\n{logs}")
