"""What is killed when: strategies, kinds of kills, and a list of cases that a seed determines."""

from __future__ import annotations

import random
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final

from tracing import MPICH, MPIS, OPEN_MPI, Mpi

if TYPE_CHECKING:
    from collections.abc import Iterator


class Kind(Enum):
    """Which program writes."""

    MPI_IO = "mpi-io"
    NETCDF = "netcdf"
    HDF5 = "hdf5"
    SETS = "sets"


@dataclass(frozen=True)
class Strategy:
    """A plan's rule without its match; TARGETS in it stands for two directories. Of sets: words of the program."""

    name: str
    rule: str
    kind: Kind = Kind.MPI_IO
    mpis: tuple[Mpi, ...] = MPIS
    ranks: tuple[int, ...] = (1, 3, 4)


_STRIPE: Final = 'stripe = { size = "8 KiB", count = 3 }'


def _aggregators(domains: str, order: str) -> Strategy:
    rule = f'writers = "aggregators:2"\ndomains = "{domains}"\norder = "{order}"\nbuffer = "16 KiB"\n{_STRIPE}'
    return Strategy(f"aggregators {domains} {order}", rule)


STRATEGIES: Final = (
    Strategy("everyone", 'writers = "everyone"'),
    *(
        _aggregators(domains, order)
        for domains in ("even", "aligned", "cyclic", "group-cyclic", "cooperative")
        for order in ("sequential", "contention-free")
    ),
    Strategy("auto", 'writers = "auto"'),
    Strategy("behind", 'writers = "behind:1"'),
    Strategy("behind sync", 'writers = "behind:1"\nvisibility = "sync"\nbuffer = "16 KiB"'),
    Strategy("grouped", 'mapping = "grouped:2"\nvisibility = "sync"'),
    Strategy("grouped aggregators", 'mapping = "grouped:2"\nwriters = "aggregators:2"\nvisibility = "sync"'),
    Strategy("subfiles", f'mapping = "subfiles:2"\n{_STRIPE}'),
    Strategy("subfiles aggregators", f'mapping = "subfiles:3"\nwriters = "aggregators:2"\n{_STRIPE}'),
    Strategy("subfiles targets", f'mapping = "subfiles:2"\ntargets = [TARGETS]\nrebalance = true\n{_STRIPE}'),
    Strategy("log", 'mapping = "log"\nvisibility = "sync"'),
    Strategy("log auto", 'mapping = "log"\nwriters = "auto"\nvisibility = "sync"'),
    Strategy("log targets", 'mapping = "log"\ntargets = [TARGETS]\nvisibility = "sync"'),
    Strategy("netcdf subfiles", "netcdf = { subfiles = 2 }", Kind.NETCDF, (OPEN_MPI,)),
    Strategy("netcdf subfiles targets", "netcdf = { subfiles = 3 }\ntargets = [TARGETS]", Kind.NETCDF, (OPEN_MPI,)),
    Strategy("hdf5 metadata", 'hdf5 = { hold_metadata = "all", metadata_block = "64 KiB", fill = "never" }', Kind.HDF5),
    Strategy("hdf5 chunks", 'hdf5 = { alignment = "4 KiB", chunks = "learn", istore_k = "auto" }', Kind.HDF5),
    Strategy("hdf5 pages", 'writers = "auto"\nhdf5 = { page = "4 KiB", transfer = "collective" }', Kind.HDF5),
    Strategy("set direct", "write 2 ioweir_write=direct", Kind.SETS, ranks=(3, 4)),
    Strategy("set collective", "write 2 ioweir_write=collective", Kind.SETS, ranks=(3, 4)),
    Strategy("set flat", "write 2 ioweir_directories=false ioweir_write=direct", Kind.SETS, ranks=(3, 4)),
    # At most half of the ranks are delegates.
    Strategy("set handed over", "hand 1", Kind.SETS, ranks=(3, 4)),
    Strategy("set handed over to two", "hand 2", Kind.SETS, ranks=(4,)),
)


class Victim(Enum):
    """Who is killed, with SIGKILL."""

    CALL = "a rank at a system call"
    RANK = "a rank"
    RANKS = "all ranks"
    LAUNCHER = "the launcher"
    RUN = "ioweir run"


@dataclass(frozen=True)
class Case:
    """One job that is killed."""

    number: int
    strategy: Strategy
    mpi: Mpi
    ranks: int
    victim: Victim
    rank: int
    """Which one, of victims that are one rank."""
    call: int
    """Victim.CALL: the how manieth."""
    moment: float
    """Other victims: after that share of what the job notes, 0 to 1."""
    delay_s: float
    """And so much later."""
    overwrites: bool
    """There is a whole file before."""

    def __str__(self) -> str:
        when = (
            f"{self.call} of rank {self.rank}"
            if self.victim is Victim.CALL
            else f"after {self.moment:.2f} + {self.delay_s * 1000:.0f} ms"
        )
        over = ", over an earlier file" if self.overwrites else ""
        who = f"{self.strategy.name}, {self.mpi.name}, {self.ranks} ranks"
        return f"{self.number}: {who}: {self.victim.value}, {when}{over}"


STEPS: Final = 8


def cases(seed: int, only: str = "") -> Iterator[Case]:
    """Without end: every strategy in turn, in an order of the seed's; `only`: those whose name has that in it."""
    dice = random.Random(seed)
    chosen = [strategy for strategy in STRATEGIES if only in strategy.name]
    number = 0
    while chosen:
        dice.shuffle(chosen)
        for strategy in chosen:
            mpi = dice.choice(strategy.mpis)
            ranks = dice.choice(strategy.ranks)
            victims = [Victim.CALL, Victim.CALL, Victim.CALL, Victim.RANK, Victim.RANKS, Victim.LAUNCHER]
            # Sets are written without `ioweir run`.
            victim = dice.choice(victims if strategy.kind is Kind.SETS else [*victims, Victim.RUN])
            number += 1
            yield Case(
                number, strategy, mpi, ranks, victim, dice.randrange(ranks), int(2 ** dice.uniform(0, 7.5)),
                dice.random(), dice.random() * 0.02, dice.random() < 0.5,
            )  # fmt: skip


__all__ = ["MPICH", "MPIS", "OPEN_MPI", "STEPS", "STRATEGIES", "Case", "Kind", "Strategy", "Victim", "cases"]
