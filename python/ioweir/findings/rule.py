"""What a rule is: its definition, where it comes from, its thresholds and limits, and the function that looks.

docs/reference/findings.md and `ioweir findings --explain CODE` are made of these texts. docs/how-to/add-a-finding.md
says how to add one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ioweir.findings.model import Evidence, Remedy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, TypeAlias

    import numpy as np
    import numpy.typing as npt

    from ioweir.findings.columns import Columns

    Mask: TypeAlias = npt.NDArray[np.bool_]
    Find: TypeAlias = Callable[[Columns], Iterable["Found"]]
else:
    Any = object

CALLS: Final = "calls"
"""The calls vanish, and with them what leads to them: the loop around them, packing for each."""
EXCESS: Final = "excess"
"""The calls stay; what they take longer than others of this run, which do the same, vanishes."""
UNKNOWN: Final = "unknown"
"""The repair does something else instead, whose time is not in the trace."""


@dataclass(frozen=True)
class Threshold:
    """A number that decides, and why it is that number."""

    name: str
    value: str
    why: str


@dataclass
class Found:
    """What a rule found, before it is compared with what others found."""

    calls: Mask
    """The calls that the seconds are spent in: outermost ones where the whole call is the price."""
    seconds: float
    summary: str
    cause: str
    low: float | None = None
    """The least that is gained, where the rule knows it; else spared.py derives it from `spares`."""
    high: float | None = None
    """What was lost in this run, and a repair spares: all of the seconds where nothing else is known."""
    spares: str = UNKNOWN
    """What a repair does with the calls: CALLS, EXCESS or UNKNOWN."""
    evidence: list[Evidence] = field(default_factory=list)
    remedies: list[Remedy] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    ranks: list[int] | None = None
    """Those that it is about; those that make the calls where nothing else is said."""
    apart: bool = False
    """The seconds are in no call's price: no other finding explains them."""

    order: int | None = None
    """Instead of the rule's, where the trace says which of two is the cause."""
    doubt: str = ""
    """Why it may be none: it is of low severity then."""


@dataclass(frozen=True)
class Rule:
    """One code. `order`: of findings that explain the same seconds, the one with the smallest order leads."""

    code: str
    title: str
    layer: str
    order: int
    definition: str
    source: str
    thresholds: tuple[Threshold, ...]
    gain: str
    """How the interval is derived."""
    limits: str
    needs: tuple[str, ...]
    """Layers whose calls must have been recorded."""
    find: Find
    follows: tuple[str, ...] = ()
    """Codes that explain this one where they are found on the same files, though in other calls."""
    of_ranks: bool = False
    """Only where there are MPI ranks: other processes of a run, such as helpers and shells, share no work."""
