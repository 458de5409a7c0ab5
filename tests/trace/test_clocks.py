"""Nodes with clocks of their own: their events come in the order in which they happened.

Nodes are host name spaces (unshare --uts) of this machine, whose clocks are put wrong by IOWEIR_TEST_CLOCK_SKEW_NS; in
truth there is one clock, by which what the trace says is checked. The arithmetic: src/format/node_clock_test.cpp.
"""

from __future__ import annotations

import os
import shutil
import socket
import struct
import subprocess
import sys
import threading
import time
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import pytest
from ioweir.launch.clock import SEPARATOR, ClockServer
from ioweir.trace import load
from tracing import Mpi, Recorded, Traced, build, ioweir_run, preloaded, run

if TYPE_CHECKING:
    from pathlib import Path

ROUNDS: Final = 20
SKEW_NS: Final = 3_700_000_000
ON_NODE: Final = """#!/bin/sh
# on_node RANKS_A_NODE PROGRAM...: makes groups of ranks nodes of their own, every second one with a wrong clock.
rank=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}
node=$((rank / $1)); shift
[ $((node %% 2)) = 1 ] && export IOWEIR_TEST_CLOCK_SKEW_NS=%d
exec unshare %s --uts sh -c 'hostname "$0"; exec "$@"' "node$node" "$@"
"""


def unshare_options() -> str:
    """As root host names can be changed at once, else in a user name space."""
    return "" if os.geteuid() == 0 else "--map-root-user"


def can_make_nodes() -> bool:
    """Whether this machine lets us."""
    tool = shutil.which("unshare")
    words = [tool or "", *unshare_options().split(), "--uts", "hostname", "node0"]
    return tool is not None and subprocess.run(words, capture_output=True, check=False).returncode == 0


needs_nodes: Final = pytest.mark.skipif(not can_make_nodes(), reason="host name spaces are not allowed here")


@pytest.fixture
def on_node(tmp_path: Path) -> Path:
    """The script that starts a rank on a node of its own."""
    script = tmp_path / "on_node"
    script.write_text(ON_NODE % (SKEW_NS, unshare_options()))
    script.chmod(0o755)
    return script


def writes_in_order(traced: Traced, ranks: int) -> tuple[list[tuple[int, int]], list[int]]:
    """(rank, number) of all writes as the trace orders them, and the gaps between them in the true order."""
    own = [event for event in traced.trace.events if "/rank." in event.path and event.name == "write"]
    numbers: dict[int, int] = {}
    for rank in range(ranks):
        mine = sorted((event for event in own if event.rank == rank), key=lambda event: event.seq)
        numbers |= {id(event): number for number, event in enumerate(mine)}
    told = [(event.rank, numbers[id(event)]) for event in sorted(own, key=lambda event: event.start_ns)]
    true = sorted(own, key=lambda event: (numbers[id(event)], event.rank))
    return told, [after.start_ns - before.end_ns for before, after in pairwise(true)]


@pytest.mark.one_of(3)
@needs_nodes
@pytest.mark.parametrize(("ranks", "ranks_a_node"), [(2, 1), (3, 1), (4, 2)])
def test_events_of_nodes_with_wrong_clocks_are_in_order(
    mpi: Mpi, on_node: Path, ranks: int, ranks_a_node: int, tmp_path: Path
) -> None:
    program = build("in_turn.c", mpi.cc)
    command = mpi.launch(ranks, on_node, str(ranks_a_node), program, tmp_path, str(ROUNDS))
    traced = ioweir_run(tmp_path / "t", command)
    clocks = {row["host"]: row for row in traced.report["clocks"]}
    nodes = {f"node{node}" for node in range((ranks + ranks_a_node - 1) // ranks_a_node)}
    assert set(clocks) == nodes
    # What each node did is added up when the run has ended.
    assert {path.name for path in (tmp_path / "t").glob("*.sums.zst")} == {f"node-{node}.sums.zst" for node in nodes}
    assert all(clock["aligned"] for clock in clocks.values())
    for host, clock in clocks.items():
        # The skewed clocks are seen as skewed, as exactly as is claimed; the others are right.
        wrong_s = SKEW_NS / 1e9 if int(host[4:]) % 2 else 0.0
        for offset in clock["offset_s"]:
            assert abs(offset + wrong_s) <= clock["uncertainty_s"] + 50e-6, (host, clock)
    told, gaps = writes_in_order(traced, ranks)
    # A message takes longer than its delivery is uncertain, or an order may be off by that much.
    most_error_ns = round(1e9 * sum(clock["uncertainty_s"] for clock in clocks.values())) + 50_000
    assert min(gaps) >= -most_error_ns
    if min(gaps) > 0:
        assert told == [(rank, number) for number in range(ROUNDS) for rank in range(ranks)]
    assert traced.report["wall_s"] < SKEW_NS / 1e9 or max(gaps) < SKEW_NS
    assert not any("CLOCK_REALTIME" in message for message in traced.report["messages"])


@needs_nodes
def test_without_the_runs_clock_the_nodes_own_are_used_and_that_is_said(
    mpi: Mpi, on_node: Path, tmp_path: Path
) -> None:
    program = build("in_turn.c", mpi.cc)
    (tmp_path / "t").mkdir()
    silent = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)  # a clock that never answers
    silent.bind(("127.0.0.1", 0))
    with silent:
        value = SEPARATOR.join(["0123456789abcdef", "another-machine", str(silent.getsockname()[1]), "127.0.0.1"])
        begun = time.monotonic()
        traced = preloaded(
            tmp_path / "t",
            mpi.launch(2, on_node, "1", program, tmp_path, str(ROUNDS)),
            env={"IOWEIR_CLOCK": value, "OMPI_MCA_mca_base_env_list": "LD_PRELOAD;IOWEIR_DIR;IOWEIR_CLOCK"},
        )
        took_s = time.monotonic() - begun
    traced.expect()
    assert traced.trace.is_whole()
    assert took_s < 30
    told, _ = writes_in_order(traced, 2)
    assert told == [(rank, number) for rank in range(2) for number in range(ROUNDS)], "the wrong clock shows"
    messages = traced.report["messages"]
    assert any("did not answer" in message for message in messages)
    assert any("CLOCK_REALTIME): an order" in message for message in messages)
    assert not any(clock["aligned"] for clock in traced.report["clocks"])


def test_a_single_machine_asks_nobody(mpi: Mpi, tmp_path: Path) -> None:
    program = build("in_turn.c", mpi.cc)
    traced = ioweir_run(tmp_path / "t", mpi.launch(2, program, tmp_path, str(ROUNDS)))
    (clock,) = traced.report["clocks"]
    assert clock["aligned"]
    assert clock["offset_s"] == [0, 0]
    assert clock["uncertainty_s"] == 0


@needs_nodes
def test_one_rank_without_the_tracer_stops_nobody(mpi: Mpi, on_node: Path, tmp_path: Path) -> None:
    script = tmp_path / "untraced_rank_0"
    script.write_text('#!/bin/sh\n[ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = 0 ] && unset LD_PRELOAD\nexec "$@"\n')
    script.chmod(0o755)
    program = build("in_turn.c", mpi.cc)
    traced = ioweir_run(tmp_path / "t", mpi.launch(3, script, on_node, "1", program, tmp_path, str(ROUNDS)), timeout=60)
    assert traced.trace.ranks() == [1, 2]
    assert all(clock["aligned"] for clock in traced.report["clocks"])


def test_a_launcher_in_a_batch_script_has_a_clock_beside_it(mpi: Mpi, tmp_path: Path) -> None:
    program = build("in_turn.c", mpi.cc)
    launch = " ".join(f"'{word}'" for word in mpi.launch(2, program, tmp_path, str(ROUNDS)))
    script = f'eval "$("$IOWEIR_PYTHON" -m ioweir env -o {tmp_path}/t)"\nexec {launch}\n'
    run(["sh", "-c", script], env={"IOWEIR_PYTHON": sys.executable}).expect()
    assert [clock.aligned for clock in load(tmp_path / "t").clocks] == [True]
    assert Recorded.read(tmp_path / "t").ranks() == [0, 1]


def ask(server: ClockServer, *packets: bytes) -> list[bytes]:
    """What the server answers to some packets."""
    _, _, port, *addresses = server.variable().split(SEPARATOR)
    answers: list[bytes] = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as mine:
        mine.settimeout(0.5)
        for packet in packets:
            mine.sendto(packet, (addresses[0], int(port)))
        try:
            while True:
                answers.append(mine.recv(256))
        except TimeoutError:
            return answers


def test_the_server_answers_those_who_know_the_token_and_ends_when_told() -> None:
    server = ClockServer()
    thread = threading.Thread(target=server.serve)
    thread.start()
    try:
        token = int(server.variable().split(SEPARATOR)[0], 16)
        good = struct.pack("<QQ", token, 7)
        before = server.now_ns()
        answers: list[Any] = ask(server, b"", b"x" * 17, struct.pack("<QQ", token ^ 1, 7), good + b"more", good)
        ((said, number, received, sent),) = (struct.unpack("<QQQQ", answer) for answer in answers)
        assert (said, number) == (token, 7)
        assert before <= received <= sent <= server.now_ns()
    finally:
        server.stop()
        thread.join(timeout=10)
        assert not thread.is_alive()
        server.close()
