"""Calibration of one node whose processors bound it: which figures are free, and what is known without a fit.

The cases are runs of kernels under several strategies, and without a plan, on one folder. What an MPI library does
without a plan has no public figures, so that a few ways in which libraries do it are tried, and the one that explains
the runs best is taken.

Lives here: figures and the choice. Not here: the runs (loop/kernel_runs.py), the fit (fitting.py), the file
(calibrate.py).
"""

from __future__ import annotations

import itertools
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ioweir.base.guarded_files import read_named
from ioweir.predict import fitting
from ioweir.predict.fitting import Free

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ioweir.predict.cases import KernelCase
    from ioweir.predict.fitting import Case

_MOUNTS: Final = Path("/proc/self/mounts")
MEMORY_KINDS: Final = ("tmpfs", "ramfs")
SLOWDOWN: Final = "processor.slowdown"
NO_BOUND: Final = 1e15
"""Bytes a second, as fast as a machine file can say."""
_PROCESSOR: Final = (
    Free("node.copy_bytes_per_s", 2e8, 5e10, 5e9),
    Free("processor.together", 0.2, 1.0, 0.9),
    Free("processor.spins", 0.01, 1.0, 0.2),
    Free("processor.call_s", 1e-7, 3e-2, 3e-5),
    Free("processor.handover_s", 1e-8, 1e-2, 5e-6),
    Free("processor.piece_s", 1e-9, 1e-5, 3e-8),
    Free("processor.operation_s", 1e-8, 1e-4, 1e-6),
    Free("processor.page_s", 1e-9, 1e-4, 3e-7),
    Free("processor.sync_s", 1e-7, 1e-1, 3e-5),
    Free("processor.index_s", 1e-7, 1e-1, 3e-5),
    Free("processor.write_bytes_per_s", 1e8, 3e10, 2e9),
    Free("processor.read_bytes_per_s", 1e8, 3e10, 4e9),
    Free("fabric.message_s", 1e-8, 1e-2, 5e-6),
)
_LIBRARY: Final = (
    Free("library.call_s", 1e-7, 1e-1, 5e-5),
    Free("library.handover_s", 1e-8, 1e-2, 2e-5),
    Free("library.piece_s", 1e-9, 1e-4, 1e-7),
    Free("library.copy_bytes_per_s", 1e7, 5e10, 2e9),
)
_DEVICE: Final = (
    Free("targets.write_bytes_per_s", 1e6, 2e10, 1e9),
    Free("targets.request_s", 1e-6, 1.0, 3e-3),
)
_CALL: Final = "processor.call_s"
_CALLS: Final = (3e-5, 1e-3, 1e-2)
"""Ranks that sleep while they wait, and ranks that spin, on as many processors and on fewer."""
_TRIED_TOGETHER: Final = 4
"""Of the library's ways, those that explain its runs best, which are fitted together with all others."""
_BUFFERS: Final = (16 << 20, 4 << 20)
"""Of MPI libraries, the usual one first."""


@dataclass(frozen=True)
class Storage:
    """Where the kernels ran."""

    processors: int
    in_memory: bool
    memory_bytes: int


def storage_at(folder: Path) -> Storage:
    """As this process may use it."""
    return Storage(len(os.sched_getaffinity(0)), mount_at(folder).kind in MEMORY_KINDS, memory_bytes())


def memory_bytes() -> int:
    """Of this node."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Mount:
    """A file system."""

    place: str
    """Where it is mounted."""
    kind: str
    """As the kernel names it."""


def mount_at(folder: Path) -> Mount:
    """The one on which a folder lies; of names that nothing is known of "" and ""."""
    place, found, longest = os.path.realpath(folder), Mount("", ""), -1
    for line in read_named(_MOUNTS).decode("utf-8", "surrogateescape").splitlines():
        _, mount, kind, *_ = line.split(" ")
        above = mount.replace("\\040", " ")
        if os.path.commonpath([above, place]) == above and len(above) >= longest:
            found, longest = Mount(above, kind), len(above)
    return found


def base(storage: Storage) -> dict[str, float]:
    """Figures that no run is needed for."""
    known = {
        "node.processors": float(storage.processors),
        "node.memory_bytes_per_s": NO_BOUND,  # what processors do to each other is processor.together
        "client.page_cache_bytes": float(storage.memory_bytes // 2),
        "locks.inode": 1.0,
        "client.rpc_bytes": float(1 << 40),
        "client.writes_late": 1.0,
    }
    if storage.in_memory:
        known |= {"targets.write_bytes_per_s": NO_BOUND, "targets.request_s": 0.0}
    return known


def of_processors() -> list[Free]:
    """Of ranks that share a node's processors, whatever their files lie on."""
    return list(_PROCESSOR)


def near_of_calls(cases: Sequence[Case], free: Sequence[Free], base: Mapping[str, float]) -> dict[str, float]:
    """Where a fit begins: what a call costs spans decades, and from far away a fit explains it by other figures."""
    tried = [fitting.misfit(cases, free, base, {_CALL: start}) for start in _CALLS]
    return min(tried, key=lambda one: one[0])[1]


def free(cases: Sequence[KernelCase], storage: Storage) -> list[Free]:
    """What the runs can say something about."""
    found = list(_PROCESSOR)
    if not storage.in_memory:
        found += _DEVICE
    if any(case.by_library for case in cases):
        found += _LIBRARY
    return found


@dataclass(frozen=True)
class First:
    """What is found before all figures are fitted together."""

    way: dict[str, float]
    """How the MPI library moves bytes without a plan: whole numbers and switches, which stay."""
    near: dict[str, float]
    """Of figures that are fitted."""


def first(cases: Sequence[KernelCase], known: Mapping[str, float], storage: Storage) -> First:
    """Processors by the runs with plans; then the way of the library with which all runs are explained best."""
    of_library = [case for case in cases if case.by_library]
    others = [case for case in cases if not case.by_library]
    near: dict[str, float] = {}
    if others:
        near = fitting.misfit(others, free(others, storage), known)[1]
    if not of_library:
        return First({}, near)
    ranks = max(case.ranks for case in of_library)
    tried = []
    for count, buffer, apart in itertools.product(sorted({1, ranks}), _BUFFERS, (0.0, 1.0)):
        way = {
            "library.writers_of_node": float(count), "library.buffer_bytes": float(buffer),
            "library.collects_apart": apart,
        }  # fmt: skip
        tried.append((*fitting.misfit(of_library, list(_LIBRARY), {**known, **near, **way}), way))
    tried.sort(key=lambda one: one[0])
    # The figures of the processors were found without these runs, and move with them.
    together = [
        (*fitting.misfit(cases, free(cases, storage), {**known, **way}, {**near, **values}), way)
        for _, values, way in tried[:_TRIED_TOGETHER]
    ]
    _, values, way = min(together, key=lambda one: one[0])
    return First(way, values)
