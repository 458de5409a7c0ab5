"""Checkpoints of a PHASTA-like solver, in several ways, on memory and on a slow device: for `make bench-partition`.

Lives here: what is varied and run (bench/partition_sets.cpp), and what came of it. Not here: the page and its pictures
(partition_page.py), labs (python/ioweir/targets/lab.py).
"""

from __future__ import annotations

import shutil
import statistics
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import launch
from ioweir.base.compiled import compiled
from ioweir.base.picture import to_svg
from ioweir.report import timeline, timeline_picture
from ioweir.trace import load

PROGRAM = "partition_sets"
MIB = 1 << 20
OWN, SHARED, HAND = "own", "shared", "hand"
TOTAL = 32 * MIB
"""Of a checkpoint on a slow device, whatever the number of ranks: the paper's 60 GB, scaled; a MiB a rank at 32."""
OF_RANK = 16 * MIB
"""Of a rank in memory, where less would measure how ranks wait for a processor."""
PERCEIVED_BYTES = 8 * MIB
LOOP_STEPS = 50
LOOP_MS = 20


@dataclass(frozen=True)
class Way:
    """How a checkpoint is written. files 0: does not apply."""

    name: str
    ranks: int
    files: int = 0
    layout: str = "auto"
    calls: str = "auto"
    total: int = TOTAL


@dataclass
class Storage:
    """A place, and the speeds there in MiB/s of useful bytes, one a round."""

    name: str
    directory: Path
    throttled: bool
    speeds: dict[Way, list[float]] = field(default_factory=dict)
    padded: dict[Way, float] = field(default_factory=dict)
    """Padded bytes over useful ones."""

    def checkpoint(self, ranks: int) -> int:
        """Bytes."""
        return TOTAL if self.throttled else OF_RANK * ranks

    def speed(self, way: Way) -> float:
        """Median."""
        return statistics.median(self.speeds[way]) if way in self.speeds else 0.0


@dataclass
class Handed:
    """rbIO's loop: each list has one entry a repeat."""

    title: str
    ranks: int
    delegates: int
    bytes_per_checkpoint: int
    perceived: list[float] = field(default_factory=list)
    """Over a memcpy of the same bytes in the same run."""
    gib_per_s: list[float] = field(default_factory=list)
    slowdown: list[float] = field(default_factory=list)
    """Seconds of the loop with checkpoints over those without."""
    perceived_processor: list[float] = field(default_factory=list)
    slowdown_processor: list[float] = field(default_factory=list)
    """The same by the workers' processor time, which others on the machine disturb less."""


@dataclass
class Results:
    """All of it."""

    kind: str
    processors: int
    storages: list[Storage] = field(default_factory=list)
    handed: list[Handed] = field(default_factory=list)
    modes: dict[str, dict[int, list[float]]] = field(default_factory=dict)
    """rbIO's actual speed on the slow device: mode -> files -> MiB/s."""
    reads: dict[str, dict[int, list[float]]] = field(default_factory=dict)
    """From the slow device: independent or collective -> files -> MiB/s."""
    slow_share: list[float] = field(default_factory=list)
    """Where storage does not keep up: speed of all checkpoints over the device's rate."""
    lost: int = 0
    """Sets that were not whole."""
    pictures: dict[str, str] = field(default_factory=dict)


def ways(ranks: int, most_files: int, total: int) -> Iterator[Way]:
    """In the order in which they take turns."""
    few = max(1, ranks // 8)
    yield Way(OWN, ranks, total=total)
    yield Way(SHARED, ranks, total=total)
    yield Way(HAND, ranks, few, total=total)
    files = 1
    while files <= min(ranks, most_files):
        yield Way("syncIO", ranks, files, total=total)
        files *= 2
    yield Way("syncIO", ranks, few, "aligned", total=total)
    for calls in ("independent", "collective", "split"):
        yield Way("syncIO", ranks, few, "unaligned", calls, total)


def arguments(way: Way, directory: Path, repeats: int) -> list[str]:
    """Of partition_sets."""
    mine = str(way.total // way.ranks)
    if way.name in (OWN, SHARED):
        return [way.name, str(directory), str(repeats), mine]
    if way.name == HAND:
        return [way.name, str(directory), str(repeats), mine, str(way.files)]
    return ["sync", str(directory), str(repeats), mine, str(way.files), f"ioweir_layout={way.layout}",
            f"ioweir_write={way.calls}", "ioweir_block=1048576"]  # fmt: skip


def empty(directory: Path) -> None:
    """For the next run."""
    for entry in directory.iterdir():
        if entry.is_dir() and entry.name != "lost+found":
            shutil.rmtree(entry)
        elif not entry.is_dir():
            entry.unlink()


def compare(results: Results, storage: Storage, counts: list[int], rounds: int, most_files: int) -> None:
    """All ways in turn, in each round."""
    repeats = 1 if storage.throttled else 3
    for ranks in counts:
        for _ in range(rounds):
            for way in ways(ranks, most_files, storage.checkpoint(ranks)):
                words = arguments(way, storage.directory, repeats)
                lines = launch.run_program(PROGRAM, results.kind, ranks, words)
                found = lines[-1]  # in memory the first ones made its pages
                storage.speeds.setdefault(way, []).append(found["bytes"] / found["seconds"] / MIB)
                storage.padded[way] = found["padded"] / found["bytes"]
                results.lost += not_whole(storage.directory)
                empty(storage.directory)


def not_whole(directory: Path) -> int:
    """Of the sets there."""
    sets = [compiled().describe_set(str(path)) for path in directory.glob("*-dat.*.d")]
    return sum(bool(row["problems"]) for row in sets)


def rbio(
    results: Results, directory: Path, ranks: int, delegates: int, files: int, repeats: int, words: list[str],
    bytes_each: int = PERCEIVED_BYTES, steps: int = LOOP_STEPS, compute_ms: float = LOOP_MS,
) -> list[Any]:  # fmt: skip
    """The lines of a run."""
    lines = launch.run_program(
        PROGRAM, results.kind, ranks,
        ["rbio", str(directory), str(repeats), str(bytes_each), str(files), str(delegates), str(steps),
         str(compute_ms), *words],
    )  # fmt: skip
    results.lost += not_whole(directory)
    empty(directory)
    return lines


def perceived(results: Results, directory: Path, quick: bool) -> None:
    """In memory, which keeps up."""
    repeats = 7 if quick else 15
    cases = [
        Handed("a rank given up", 2, 1, PERCEIVED_BYTES),
        Handed("a rank given up, more ranks than processors", 4, 1, PERCEIVED_BYTES),
        Handed("a thread of the rank", 1, 1, PERCEIVED_BYTES),
    ]
    for case in cases:
        words = ["ioweir_delegates=threads"] if "thread" in case.title else []
        for line in rbio(results, directory, case.ranks, case.delegates, case.delegates, repeats, words):
            case.perceived.append(line["copying_s"] / line["handing_s"])
            case.gib_per_s.append(line["bytes"] / line["handing_s"] / (1 << 30))
            case.slowdown.append(line["loop_s"] / line["bare_s"])
            case.perceived_processor.append(line["copying_processor_s"] / line["handing_processor_s"])
            case.slowdown_processor.append(line["loop_processor_s"] / line["bare_processor_s"])
        results.handed.append(case)


def modes(results: Results, storage: Storage, quick: bool) -> None:
    """Mode 0: a file a delegate; 1: shared and collective; 2: shared and independent."""
    ranks, delegates = (8, 4) if quick else (20, 4)
    workers = ranks - delegates
    for mode, calls in (("mode 1 (collective)", "collective"), ("mode 2 (independent)", "independent")):
        for files in (1, 2, 4):
            # Every delegate has a file of its own: mode 0, whatever the calls.
            name = mode if files < delegates else "mode 0 (own files)"
            if files == delegates and calls == "collective":
                continue
            lines = rbio(
                results, storage.directory, ranks, delegates, files, 1 if quick else 3, [f"ioweir_write={calls}"],
                TOTAL // workers, 10, 1,
            )  # fmt: skip
            speeds = [line["bytes"] / (line["loop_s"] + line["drain_s"]) / MIB for line in lines]
            results.modes.setdefault(name, {})[files] = speeds


def reads(results: Results, storage: Storage, quick: bool) -> None:
    """Independent against collective, as the paper's figure 5."""
    ranks = 4 if quick else 16
    for files in (1, 2, 4):
        for _ in range(2 if quick else 5):
            for how in ("independent", "collective"):
                words = ["read", str(storage.directory), "1", str(TOTAL // ranks), str(files), how]
                line = launch.run_program(PROGRAM, results.kind, ranks, words)[-1]
                speed = line["bytes"] / line["seconds"] / MIB
                results.reads.setdefault(how, {}).setdefault(files, []).append(speed)
                empty(storage.directory)


def too_slow(results: Results, storage: Storage, rate: float, quick: bool) -> None:
    """A loop that writes more than the device takes: at the device's speed, and nothing is lost."""
    little = ["ioweir_delegate_memory=16777216", "ioweir_worker_memory=8388608"]
    steps = 50 if quick else 100
    for line in rbio(results, storage.directory, 2, 1, 1, 1 if quick else 3, little, 4 * MIB, steps, 2):
        results.slow_share.append(line["bytes"] / (line["loop_s"] + line["drain_s"]) / rate)


def activity(results: Results, storage: Storage, scratch: Path) -> None:
    """When each rank wrote or read, as the paper's figures 5, 6, 7, 11 and 12 show it: from our own traces."""
    ranks = 16
    reading = ["read", str(storage.directory), "1", str(TOTAL // ranks), "2"]
    sync = [str(TOTAL // ranks), "2", "ioweir_block=1048576"]
    handing = [str(TOTAL // 12), "2", "4", "10", "1"]
    runs = {
        "read-independent": [*reading, "independent"],
        "read-collective": [*reading, "collective"],
        "sync-unaligned": ["sync", str(storage.directory), "1", *sync, "ioweir_layout=unaligned"],
        "sync-aligned": ["sync", str(storage.directory), "1", *sync, "ioweir_layout=aligned"],
        "rbio-mode1": ["rbio", str(storage.directory), "1", *handing, "ioweir_write=collective"],
        "rbio-mode2": ["rbio", str(storage.directory), "1", *handing, "ioweir_write=independent"],
    }
    for name, words in runs.items():
        trace = scratch / f"trace-{name}"
        launch.run_program(PROGRAM, results.kind, ranks, words, launch.Traced(trace))
        op = "read" if name.startswith("read") else "write"
        result = timeline.of_trace(load(trace), timeline.Options(op=op, by="rank"))
        results.pictures[f"-{name}"] = to_svg(timeline_picture.chart(result))
        shutil.rmtree(trace)
        empty(storage.directory)
