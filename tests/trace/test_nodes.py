"""The exchange between nodes for real: network name spaces under Open MPI; the kernel counts what crosses their wires.

MPICH moves bytes between name spaces past the network, so that nothing could be counted there.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from name_spaces import nodes, why_not
from tracing import OPEN_MPI, build, ioweir_run

PIECE: Final = 16384
PIECES: Final = 64
CALLS: Final = 4
RANKS_EACH: Final = 2
# What may come on top of the bytes that have to cross. The kernel counts headers of Ethernet, IP and TCP,
# acknowledgements, MPI headers and barriers, too, and frames of up to 64 KiB as they are: a card would
# cut them up and add 66 bytes to each 1448.
ALLOWED: Final = 0.05

pytestmark = pytest.mark.skipif(why_not() is not None, reason=why_not() or "")


def must_cross(count: int, writers: int) -> int:
    """Of one call: each rank has the same share of each part; it crosses if the writer is elsewhere."""
    ranks = count * RANKS_EACH
    own = [writer * ranks // writers // RANKS_EACH for writer in range(writers)]  # node of each writer
    share = PIECE * PIECES // writers
    return sum(share for rank in range(ranks) for node in own if node != rank // RANKS_EACH)


@pytest.mark.one_of(4)
@pytest.mark.parametrize("order", ["sequential", "contention-free"])
@pytest.mark.parametrize("count", [2, 4])
def test_little_more_crosses_the_wires_than_must(count: int, order: str, tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(
        f'[[file]]\nmatch = "crossed"\nwriters = "aggregators:{count}"\norder = "{order}"\nbuffer = "256 KiB"\n'
        'stripe = { size = "64 KiB", count = 4 }\n'
    )
    program = build("crossing.c", OPEN_MPI.cc)
    with nodes(count, tmp_path) as machine:
        traced = ioweir_run(
            tmp_path / "trace",
            machine.launch(RANKS_EACH, program, tmp_path, PIECE, PIECES, CALLS),
            options=["--plan", plan],
        )
        outside = machine.host_bytes()
    assert "wrong bytes" not in traced.err
    assert (tmp_path / "crossed").stat().st_size == PIECE * PIECES * RANKS_EACH * count
    must = CALLS * must_cross(count, count)
    wires = {}
    for line in traced.out.splitlines():
        if line.startswith(("write ", "read ")):
            direction, sent, frames = line.split()
            wires[direction] = int(sent)
            print(f"{count} nodes, {order}, {direction}: {must} bytes must cross, {sent} on the wires, {frames} frames")
    assert set(wires) == {"write", "read"}
    for counted in wires.values():
        assert must <= counted <= must * (1 + ALLOWED)
    # The other end of the wires saw it as well, with start-up and the calls that were not counted.
    assert outside >= sum(wires.values())
    # The engine's own count is of packets with their headers; one call of each kind comes before those counted above.
    (row,) = traced.report["plan"]["engine"]
    assert row["exchanges"] == 2 * (CALLS + 1) * RANKS_EACH * count
    everything = 2 * (CALLS + 1) * must_cross(count, count)
    assert everything <= row["sent_bytes"] <= everything * (1 + ALLOWED)


def test_nodes_of_a_process_that_was_killed_are_removed(tmp_path: Path) -> None:
    script = (
        "import sys, time, pathlib, name_spaces\n"
        "with name_spaces.nodes(2, pathlib.Path(sys.argv[1])):\n"
        "    print('up', flush=True)\n"
        "    time.sleep(600)\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)},
    )
    assert child.stdout is not None
    assert child.stdout.readline() == b"up\n"
    assert sorted(path.name for path in Path("/run/netns").glob(f"iw{child.pid}n*")) == [
        f"iw{child.pid}n{i}" for i in (0, 1)
    ]
    child.send_signal(signal.SIGKILL)
    child.wait()
    with nodes(1, tmp_path):
        assert not list(Path("/run/netns").glob(f"iw{child.pid}n*"))
        assert not list(Path("/sys/class/net").glob(f"iw{child.pid}*"))
    assert not list(Path("/run/netns").glob(f"iw{os.getpid()}n*"))
