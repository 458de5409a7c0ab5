"""What `make bench-loop` asks of `ioweir tune`: kernels on storages, half of them drawn anew from a seed.

Lives here: kernels with fixed parameters, which tune was developed with, and how others are drawn. Not here: running
them (bench_loop.py), judging (loop_page.py).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

STORAGES = ("tmpfs", "disk", "targets", "targets, one slow")
ON_TARGETS = STORAGES[2:]
RANKS = 4


@dataclass(frozen=True)
class Case:
    """A kernel on a storage, under one MPI library."""

    storage: str
    mpi: str
    kernel: str
    settings: tuple[str, ...]
    drawn: bool
    """Its parameters are new: they come from the seed."""

    @property
    def title(self) -> str:
        """For people, and as the key of results."""
        return f"{self.storage}, {self.mpi}: {' '.join((self.kernel, *self.settings))}"


FIXED: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("ior-strided", ("data=4MiB", "transfer=4MiB", "piece=64KiB")),
    ("lattice", ("local=8,8,16,16", "calls=1")),
    ("coll_perf", ("local=64,64,64", "variables=4")),
    ("ior-segmented", ("data=4MiB", "transfer=256KiB")),
)
"""4 to 16 MiB of four ranks; those that tests and pages of tune have."""

Drawing = Callable[[random.Random], tuple[str, ...]]


def _cube(rng: random.Random, least: int, most: int) -> str:
    return ",".join(str(rng.randint(least, most)) for _ in range(3))


DRAWN: dict[str, Drawing] = {
    "ior-strided": lambda rng: (
        "data=4MiB", f"transfer={rng.choice((256, 512, 1024, 2048))}KiB", f"piece={rng.choice((1, 4, 16, 128))}KiB"
    ),
    "ior-segmented": lambda rng: ("data=2MiB", f"transfer={rng.choice((4, 16, 64, 2048))}KiB"),
    "coll_perf": lambda rng: (f"local={_cube(rng, 40, 90)}", f"variables={rng.randint(1, 6)}"),
    "btio": lambda rng: ("class=W", f"writes={rng.randint(6, 24)}"),
    "lattice": lambda rng: (f"local=8,8,8,{rng.choice((8, 12, 24))}", f"calls={rng.randint(1, 4)}"),
    "flash": lambda rng: (
        f"output={rng.choice(('checkpoint', 'plot', 'corners'))}", f"local={_cube(rng, 8, 12)}",
        f"blocks={rng.randint(10, 40)}",
    ),
    "s3d": lambda rng: (f"local={_cube(rng, 16, 30)}", f"species={rng.randint(5, 12)}"),
    "gcrm-pnetcdf": lambda rng: (f"level={rng.randint(3, 4)}", f"layers={rng.choice((16, 32))}"),
    "vorpal": lambda rng: (f"local={_cube(rng, 20, 36)}", f"steps={rng.randint(2, 5)}"),
    "chombo": lambda rng: (f"boxes={rng.randint(4, 10)}", f"components={rng.randint(2, 8)}"),
    "phasta": lambda rng: (f"data={rng.randint(4, 24)}MB", f"parts={rng.randint(1, 6)}"),
}  # fmt: skip
"""Parameters by kernel: some 2 to 24 MB of four ranks in calls from a few KiB up to MiB."""


def cases(mpis: Sequence[str], storages: Sequence[str], seed: str, each: int = 4) -> list[Case]:
    """For each storage and MPI library `each` kernels as they always are, and as many drawn from the seed.

    Which kernels are drawn is drawn, too, without repeats within a storage and library.
    """
    found = []
    for storage in storages:
        for mpi in mpis:
            rng = random.Random(f"{seed}, {storage}, {mpi}")
            found += [Case(storage, mpi, kernel, settings, False) for kernel, settings in FIXED[:each]]
            for kernel in rng.sample(sorted(DRAWN), each):
                found.append(Case(storage, mpi, kernel, DRAWN[kernel](rng), True))
    return found
