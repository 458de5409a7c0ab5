"""What `ioweir tune` tries: rules of a plan for one kind of files."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ioweir.predict import simulate

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_BUFFERS: Final = ("4 MiB", "16 MiB", "64 MiB")
_STRIPES: Final = ("1 MiB", "4 MiB", "16 MiB")
_SAME_FORM: Final = "shared"


@dataclass(frozen=True)
class Candidate:
    """A rule of a plan."""

    strategy: str
    keys: Mapping[str, Any]
    variant_of: str = ""
    """A strategy that came before: where that is much slower than the program as it is, this one is not tried."""

    @property
    def same_form(self) -> bool:
        """The file is afterwards what it would be without a plan."""
        return str(self.keys.get("mapping", _SAME_FORM)) == _SAME_FORM

    def text(self, match: str) -> str:
        """The rule as a plan's file has it."""
        return simulate.rule_text(self.keys, match)


def with_more(known: Iterable[Candidate], more: Iterable[Mapping[str, Any]]) -> Iterator[Candidate]:
    """Those that are always tried, and rules that findings propose, where they are others."""
    texts: set[str] = set()
    for candidate in known:
        texts.add(candidate.text("*"))
        yield candidate
    for keys in more:
        candidate = Candidate(", ".join(simulate.key_lines(keys)), keys)
        if candidate.text("*") not in texts:
            texts.add(candidate.text("*"))
            yield candidate


def candidates(ranks: int, ranks_a_node: int, targets: int) -> Iterator[Candidate]:
    """What is tried, the likeliest first. `targets`: of the machine."""
    nodes = -(-ranks // ranks_a_node)
    writers = sorted({nodes, min(ranks, max(nodes, targets)), min(ranks, 2 * nodes)})
    yield Candidate("everyone", {"writers": "everyone"})
    yield Candidate("auto", {"writers": "auto"})
    for count, buffer in itertools.product(writers, _BUFFERS):
        keys = {"writers": f"aggregators:{count}", "domains": "even", "buffer": buffer}
        yield Candidate(f"aggregators:{count}, even domains, {buffer}", keys)
    if targets > 1:
        count = min(ranks, targets)
        cyclic = {"writers": f"aggregators:{count}", "domains": "cyclic"}
        yield Candidate(f"aggregators:{count}, cyclic domains", cyclic)
        yield Candidate(f"aggregators:{count}, contention-free", {**cyclic, "order": "contention-free"})
        for size in _STRIPES:
            stripe = {"size": size, "count": targets}
            alone = {"writers": "everyone", "stripe": stripe}
            yield Candidate(f"everyone, stripes of {size} over {targets}", alone, "everyone")
            yield Candidate(f"aggregators:{count}, stripes of {size} over {targets}", {**cyclic, "stripe": stripe})
        yield Candidate(f"subfiles:{targets}", {"mapping": f"subfiles:{targets}", **cyclic})
    groups = nodes if nodes > 1 else min(2, ranks)
    if groups > 1:
        yield Candidate(f"grouped:{groups}", {"mapping": f"grouped:{groups}", "writers": "everyone"})
    if ranks > 1:
        yield Candidate("log", {"mapping": "log"})
