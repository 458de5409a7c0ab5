"""Names, addresses, settings and the CRUSH map of a CephFS lab (lab_ceph.py): text only, nothing is run."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ioweir.targets.lab import Lab

_SETTINGS: Final = """\
[global]
fsid = {fsid}
mon_host = {monitor}:6789
mon_initial_members = a
auth_cluster_required = none
auth_service_required = none
auth_client_required = none
ms_bind_msgr2 = false
ms_async_op_threads = 2
ms_crc_data = false
run_dir = {root}/run
admin_socket = {root}/run/$name.asok
pid_file = {root}/run/$name.pid
log_file = {root}/log/$name.log
err_to_stderr = false
osd_pool_default_size = 1
osd_pool_default_min_size = 1
osd_pool_default_pg_autoscale_mode = off
mon_allow_pool_size_one = true
mon_warn_on_pool_no_redundancy = false
mon_max_pg_per_osd = 1000
osd_max_pg_per_osd_hard_ratio = 10
osd_crush_chooseleaf_type = 0
mon_data = {root}/mon
mds_data = {root}/mds
osd_data = {root}/osd$id
mon_data_avail_crit = 1
mon_data_avail_warn = 2
[mon]
paxos_propose_interval = 0.05
paxos_min_wait = 0.01
mon_osd_min_down_reporters = 100
mon_osd_report_timeout = 3600
mon_osd_down_out_interval = 36000
[osd]
osd_objectstore = memstore
memstore_device_bytes = {size}
memstore_page_set = true
osd_op_num_shards = 2
osd_op_num_threads_per_shard = 1
osd_class_update_on_start = false
osd_crush_update_on_start = false
osd_heartbeat_grace = 3600
osd_heartbeat_interval = 60
[mds]
mds_beacon_grace = 3600
[client]
client_mount_timeout = 20
rados_mon_op_timeout = 20
client_oc_size = 67108864
"""

_TUNABLES: Final = """\
tunable choose_local_tries 0
tunable choose_local_fallback_tries 0
tunable choose_total_tries 50
tunable chooseleaf_descend_once 1
tunable chooseleaf_vary_r 1
tunable chooseleaf_stable 1
tunable straw_calc_version 1
"""


def names(identity: str) -> dict[str, str]:
    """What distinguishes this lab's network and cluster from all others. Links have names of 15 letters at most."""
    return {
        "prefix": f"iow{identity[:5]}",
        "subnet": f"10.77.{int(identity[5:7], 16) % 250 + 1}",
        "fsid": str(uuid.UUID(identity)),
    }


def bridge(lab: Lab) -> str:
    """The link that all namespaces hang on."""
    return f"{lab.facts['prefix']}br"


def host(lab: Lab, number: int) -> str:
    """The network namespace of a target."""
    return f"{lab.facts['prefix']}t{number}"


def link(lab: Lab, number: int) -> str:
    """The end of its link that is outside of the namespace."""
    return f"{lab.facts['prefix']}t{number}"


def address(lab: Lab, number: int | None) -> str:
    """Of a target; None: of the machine."""
    return f"{lab.facts['subnet']}.{1 if number is None else 10 + number}"


def osd_identity(lab: Lab, number: int) -> str:
    """The UUID of an OSD."""
    return str(uuid.uuid5(uuid.UUID(lab.identity), f"osd.{number}"))


def network(lab: Lab) -> str:
    """For `ip -batch`."""
    lines = [
        f"link add {bridge(lab)} type bridge",
        f"addr add {address(lab, None)}/24 dev {bridge(lab)}",
        f"link set {bridge(lab)} up",
    ]
    for number in range(len(lab.rates)):
        lines += [
            f"netns add {host(lab, number)}",
            f"link add {link(lab, number)} type veth peer name eth0 netns {host(lab, number)}",
            f"link set {link(lab, number)} master {bridge(lab)}",
            f"link set {link(lab, number)} up",
        ]
    return "\n".join(lines) + "\n"


def configuration(lab: Lab) -> str:
    """ceph.conf."""
    return _SETTINGS.format(fsid=lab.facts["fsid"], monitor=address(lab, None), root=lab.directory, size=lab.size)


def crush_map(targets: int) -> str:
    """A rule a target, named as its pool: objects of pool t3 lie on osd.3 only. The last OSD is the metadata's."""
    labels = [*(f"t{number}" for number in range(targets)), "metadata"]
    text = _TUNABLES
    for number, label in enumerate(labels):
        text += f"device {number} osd.{number} class {label}\n"
    text += "type 0 osd\ntype 1 host\ntype 11 root\n"
    for number in range(len(labels)):
        text += f"host h{number} {{\n id -{100 + number}\n alg straw2\n hash 0\n item osd.{number} weight 1.000\n}}\n"
    text += "root default {\n id -1\n alg straw2\n hash 0\n"
    text += "".join(f" item h{number} weight 1.000\n" for number in range(len(labels))) + "}\n"
    for number, label in enumerate(labels):
        text += (
            f"rule {label} {{\n id {number}\n type replicated\n min_size 1\n max_size 10\n step take h{number}\n"
            " step choose firstn 0 type osd\n step emit\n}\n"
        )
    return text
