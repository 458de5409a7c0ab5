"""Rules of plans, for tests that ask the same of every strategy: those of killed jobs (crash/cases.py), and more.

Not here: what is asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cases import STRATEGIES as OF_KILLED_JOBS
from cases import Kind

if TYPE_CHECKING:
    from pathlib import Path


def _of(kind: Kind) -> dict[str, str]:
    return {strategy.name: strategy.rule for strategy in OF_KILLED_JOBS if strategy.kind is kind}


MPI_IO: Final = _of(Kind.MPI_IO) | {
    # Pages of the buffer (32 MiB a rank by default) count once they have been used.
    "behind": 'writers = "behind:1"\nbuffer = "1 MiB"',
    "behind two": 'writers = "behind:2"\nbuffer = "64 KiB"',
    "aggregators auto": 'writers = "aggregators:auto"',
    "grouped one aggregator": 'mapping = "grouped:2"\nwriters = "aggregators:1"',
    "subfiles cyclic": 'mapping = "subfiles:2"\nwriters = "aggregators:2"\ndomains = "cyclic"',
    "log aggregators": 'mapping = "log"\nwriters = "aggregators:2"',
}
HDF5: Final = _of(Kind.HDF5)
NETCDF: Final = _of(Kind.NETCDF)


def plan(folder: Path, match: str, rule: str) -> Path:
    """A plan with that rule; two directories beside it are the targets of one that wants some."""
    targets = [folder / "target0", folder / "target1"]
    if "TARGETS" in rule:
        for target in targets:
            target.mkdir(exist_ok=True)
    path = folder / "plan.toml"
    names = ", ".join(f'"{target}"' for target in targets)
    path.write_text(f'[[file]]\nmatch = "{match}"\n{rule.replace("TARGETS", names)}\n', encoding="utf-8")
    return path
