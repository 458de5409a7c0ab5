"""What a finding is: a fault of a run's I/O with its price, its cause and what to do (docs/reference/findings.md).

The fields are those of the JSON. Judges nothing: rules do (rules/), and ranking.py puts what they found in order.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

HIGH: Final = "high"
MEDIUM: Final = "medium"
LOW: Final = "low"
SEEMING: Final = 0.5
"""Of the most that is gained: no more than this may seem to be its cost because runs differ (spared.py: the most is at
most twice what was lost, and what was lost at most twice that in another run). Above it, the repair itself costs."""


@dataclass(frozen=True)
class Gain:
    """Wall seconds that a repair saves, from the least to the most."""

    low: float
    high: float
    method: str = "bound"
    """ "bound": from the trace alone; "simulated", "measured": by whoever did that."""
    may_cost: float = 0.0
    """Seconds that the repair may cost, or seem to cost, where it may save nothing: its own work; how runs differ."""


@dataclass(frozen=True)
class Evidence:
    """One figure that speaks for a finding."""

    text: str
    figure: float
    unit: str


@dataclass(frozen=True)
class Remedy:
    """What to do. `kind`: "plan", "hint", "source" or "striping"; `plan`: TOML for `ioweir run --plan`."""

    kind: str
    text: str
    plan: str = ""
    hints: dict[str, str] = field(default_factory=dict)
    """Of MPI-IO, by name: what the text says, for programs."""
    doubt: str = ""
    """Why it may change nothing, though the finding holds: the least that it saves is 0 then."""
    saves: Gain | None = None
    """Where it mends less than the finding's other remedies: what it saves itself."""


@dataclass
class Finding:
    """A fault, what it costs on the critical path, and what repairs it."""

    code: str
    severity: str
    layer: str
    files: list[str]
    ranks: list[int]
    seconds: float
    gain: Gain
    summary: str
    cause: str
    evidence: list[Evidence]
    remedies: list[Remedy]
    unseen: list[str]
    chain: list[str] = field(default_factory=list)
    """Codes of what follows from it, or explains the same seconds."""
    title: str = ""
    """The code in words."""


@dataclass
class Findings:
    """All of a run, most seconds first."""

    findings: list[Finding]
    io_s: float
    """I/O on the critical path."""
    wall_s: float
    unseen: list[str]
    """What no rule could look at, and why."""
    unit: str = "rank"
    """What the numbers in `ranks` are: "rank", or "process" in runs without MPI."""
    simulated: str | None = None
    """The machine of a simulated run."""
