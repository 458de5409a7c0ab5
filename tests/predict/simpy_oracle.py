"""An independent simulation of small cases, with SimPy: processes and resources in place of events and lines.

It shares no code with src/sim. Each rank moves one block; ranks of a node are neighbours. No locks, no caches, nothing
random.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import simpy

Steps = Generator[Any, Any, Any]
PAGE = 4096
"""Bytes."""


@dataclass
class Case:
    """Figures of a machine, by their names in machine files, its stripes, and the ranks' blocks (offset, length)."""

    figures: dict[str, float]
    blocks: list[tuple[int, int]]


class Sharing:
    """Processors that everybody with work shares evenly: what is left of each job is reckoned anew at each change."""

    def __init__(self, env: simpy.Environment, figures: dict[str, float]) -> None:
        self.env, self.f = env, figures
        self.left: dict[simpy.Event, float] = {}
        self.at = 0.0
        self.changes = 0

    def speed(self) -> float:
        """Of each job."""
        share = min(1.0, self.f["node.processors"] / len(self.left))
        return share * self.f["processor.together"] if len(self.left) > 1 < self.f["node.processors"] else share

    def give(self) -> None:
        """What was given since the last change."""
        for job in self.left:
            self.left[job] -= (self.env.now - self.at) * self.speed()
        self.at = self.env.now

    def work(self, seconds: float) -> simpy.Event:
        """Happens when so much has been given."""
        self.give()
        job = self.env.event()
        self.left[job] = seconds
        self.env.process(self.wait())
        return job

    def wait(self) -> Steps:
        """For the job that ends first, unless something changes before."""
        self.changes += 1
        change = self.changes
        while self.left:
            first = min(self.left, key=lambda job: self.left[job])
            yield self.env.timeout(max(0.0, self.left[first] / self.speed()))
            if change != self.changes:
                return
            self.give()
            del self.left[first]
            first.succeed()


class Machine:
    """The parts of a machine, made anew for each run."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.env = simpy.Environment()
        self.f = case.figures
        ranks = len(case.blocks)
        nodes = -(-ranks // int(self.f["node.ranks"]))
        # Nodes have as many ranks as each other, the first ones one more.
        counts = [ranks // nodes + (node < ranks % nodes) for node in range(nodes)]
        self.node_of = [node for node, count in enumerate(counts) for _ in range(count)]
        servers = -(-int(self.f["targets.count"]) // int(self.f["targets.of_server"]))
        self.out = [simpy.Resource(self.env) for _ in range(nodes)]
        self.into = [simpy.Resource(self.env) for _ in range(nodes)]
        self.memory = [simpy.Resource(self.env) for _ in range(nodes)]
        self.server_in = [simpy.Resource(self.env) for _ in range(servers)]
        self.server_out = [simpy.Resource(self.env) for _ in range(servers)]
        self.up, self.down = simpy.Resource(self.env), simpy.Resource(self.env)
        self.targets = [simpy.Resource(self.env) for _ in range(int(self.f["targets.count"]))]
        self.shared = [Sharing(self.env, self.f) for _ in range(nodes)]
        self.ranks = [simpy.Resource(self.env) for _ in range(ranks)]
        self.head: dict[int, int] = {}
        self.connections: dict[tuple[int, int], simpy.Resource] = {}
        self.pages: set[tuple[int, int]] = set()

    def hold(self, resource: simpy.Resource, seconds: float) -> Steps:
        """One thing after the other."""
        with resource.request() as turn:
            yield turn
            yield self.env.timeout(seconds)

    def work(self, rank: int, seconds: float) -> Steps:
        """A rank does one thing after the other; without processors what it does takes no time."""
        if not self.f.get("node.processors"):
            return
        with self.ranks[rank].request() as turn:
            yield turn
            yield self.shared[self.node_of[rank]].work(seconds)

    def copying(self, size: int) -> float:
        """Seconds of a hand-over in one piece."""
        fixed = self.f.get("processor.handover_s", 0.0) + self.f.get("processor.piece_s", 0.0)
        return fixed + self.rate(size, "node.copy_bytes_per_s")

    def operation(self, rank: int, offset: int, size: int, kind: str) -> float:
        """Seconds of a system call; each page of the file that a node writes for the first time costs something."""
        took = self.f.get("processor.operation_s", 0.0) + size / self.f.get(f"processor.{kind}_bytes_per_s", math.inf)
        if kind == "write":
            touched = {
                (self.node_of[rank], byte // PAGE) for byte in (*range(offset, offset + size, PAGE), offset + size - 1)
            }
            took += len(touched - self.pages) * self.f.get("processor.page_s", 0.0)
            self.pages |= touched
        return took

    def flush(self) -> Steps:
        """What each rank does at the end of writing."""
        ranks = range(len(self.ranks))
        yield self.env.all_of(
            [self.env.process(self.work(rank, self.f.get("processor.sync_s", 0.0))) for rank in ranks]
        )

    def rate(self, size: int, name: str) -> float:
        """Seconds of so many bytes; a rate of 0 is no bound."""
        return size / self.f[name] if self.f[name] > 0 else 0.0

    def serve(self, target: int, offset: int, size: int, kind: str) -> Steps:
        """A request at its target."""
        with self.targets[target].request() as turn:
            yield turn
            took = self.f["targets.request_s"] + self.rate(size, f"targets.{kind}_bytes_per_s")
            if self.head.get(target) != offset:
                took += self.f["targets.seek_s"]
            self.head[target] = offset + size
            yield self.env.timeout(took)

    def request(self, node: int, target: int, offset: int, size: int, kind: str) -> Steps:
        """A request from a node's client and back."""
        key = (node, target)
        if key not in self.connections:
            self.connections[key] = simpy.Resource(self.env, capacity=int(self.f["client.rpcs_in_flight"]))
        server = target // int(self.f["targets.of_server"])
        latency = self.env.timeout
        with self.connections[key].request() as slot:
            yield slot
            if kind == "write":
                yield from self.through(
                    self.out[node], self.rate(size, "node.nic_bytes_per_s"),
                    self.up, self.server_in[server], self.rate(size, "targets.server_bytes_per_s"), size,
                )  # fmt: skip
                yield from self.serve(target, offset, size, kind)
                yield latency(self.f["fabric.latency_s"])
            else:
                yield latency(self.f["fabric.latency_s"])
                yield from self.serve(target, offset, size, kind)
                yield from self.through(
                    self.server_out[server], self.rate(size, "targets.server_bytes_per_s"),
                    self.down, self.into[node], self.rate(size, "node.nic_bytes_per_s"), size,
                )  # fmt: skip

    def through(
        self, out: simpy.Resource, leaving: float, way: simpy.Resource, into: simpy.Resource, taking: float, size: int
    ) -> Steps:
        """Out of one interface, over the way to storage and into another one, all at the same time."""

        def taken() -> Steps:
            yield self.env.timeout(self.f["fabric.latency_s"])
            yield from self.hold(into, taking)

        def passed() -> Steps:
            yield from self.hold(way, self.rate(size, "fabric.storage_bytes_per_s"))
            yield self.env.timeout(self.f["fabric.latency_s"])

        with out.request() as turn:
            yield turn
            parts = [self.env.process(taken()), self.env.process(passed())]
            yield self.env.timeout(leaving)
        yield self.env.timeout(self.f["fabric.latency_s"])
        yield self.env.all_of(parts)

    def access(self, node: int, begin: int, end: int, kind: str) -> Steps:
        """A range of the file, byte by byte sorted into objects."""
        stripe, count = int(self.f["files.stripe_bytes"]), int(self.f["targets.count"])
        pieces: dict[int, tuple[int, int]] = {}
        at = begin
        while at < end:
            until = end if count == 1 else min(end, (at // stripe + 1) * stripe)
            target = 0 if count == 1 else at // stripe % count
            place = at if count == 1 else at // stripe // count * stripe + at % stripe
            first, size = pieces.get(target, (place, 0))
            pieces[target] = (first, size + until - at)
            at = until
        most = int(self.f["client.rpc_bytes"])
        requests = []
        for target, (first, size) in pieces.items():
            for offset in range(first, first + size, most):
                length = min(most, first + size - offset)
                requests.append(self.env.process(self.request(node, target, offset, length, kind)))
        yield self.env.all_of(requests)

    def message(self, sender: int, taker: int, size: int, left: simpy.Event) -> Steps:
        """Bytes from a node to another, or within one; over when they are there."""
        most = int(self.f["fabric.chunk_bytes"]) or size
        yield self.env.timeout(self.f["fabric.message_s"])
        last = None
        for begin in range(0, size, most):
            chunk = min(most, size - begin)
            if sender == taker:
                copied = self.env.timeout(self.rate(chunk, "node.copy_bytes_per_s"))
                shared = self.env.process(self.hold(self.memory[sender], self.rate(chunk, "node.memory_bytes_per_s")))
                yield copied & shared
            else:
                yield from self.hold(self.out[sender], self.rate(chunk, "node.nic_bytes_per_s"))
                last = self.env.process(self.arrive(taker, chunk))
        left.succeed()
        if last is not None:
            yield last

    def arrive(self, node: int, size: int) -> Steps:
        """A chunk at its node."""
        yield self.env.timeout(self.f["fabric.latency_s"])
        yield from self.hold(self.into[node], self.rate(size, "node.nic_bytes_per_s"))


def each_by_itself(case: Case, kind: str) -> float:
    """Seconds until all ranks have moved their own blocks."""
    machine = Machine(case)

    def move(rank: int, offset: int, size: int) -> Steps:
        yield from machine.work(rank, machine.f.get("processor.call_s", 0.0))
        yield from machine.work(rank, machine.operation(rank, offset, size, kind))
        yield from machine.access(machine.node_of[rank], offset, offset + size, kind)

    done = [
        machine.env.process(move(rank, offset, size)) for rank, (offset, size) in enumerate(case.blocks) if size
    ]  # fmt: skip
    machine.env.run(machine.env.all_of(done))
    if kind == "write":
        machine.env.run(machine.env.process(machine.flush()))
    return float(machine.env.now)


def through_one_writer(case: Case) -> float:
    """The same of a write that rank 0 makes of everybody's blocks, which follow each other, in one round."""
    machine = Machine(case)
    shared = bool(machine.f.get("node.processors"))

    def hand_over(rank: int, size: int) -> Steps:
        yield from machine.work(rank, machine.f.get("processor.call_s", 0.0))
        from_node, to_node = machine.node_of[rank], machine.node_of[0]
        if shared:
            yield from machine.work(rank, machine.copying(size))
        if not shared or from_node != to_node:
            yield from machine.message(from_node, to_node, size, machine.env.event())
        if shared and from_node != to_node:
            yield from machine.work(0, machine.copying(size))

    def run() -> Steps:
        steps = math.ceil(math.log2(len(case.blocks)))
        yield machine.env.timeout(steps * (case.figures["fabric.latency_s"] + case.figures["fabric.message_s"]))
        messages = [
            machine.env.process(hand_over(rank, size)) for rank, (_, size) in enumerate(case.blocks) if size
        ]  # fmt: skip
        yield machine.env.all_of(messages)
        begin = min(offset for offset, size in case.blocks if size)
        end = max(offset + size for offset, size in case.blocks if size)
        yield from machine.work(0, machine.operation(0, begin, end - begin, "write"))
        yield from machine.access(0, begin, end, "write")
        yield from machine.flush()

    machine.env.run(machine.env.process(run()))
    return float(machine.env.now)
