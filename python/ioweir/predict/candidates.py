"""What `ioweir tune` tries: rules of a plan for one kind of files."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from ioweir.base import units
from ioweir.base.compiled import compiled
from ioweir.predict import simulate

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ioweir.predict.simulate import Program

_BUFFERS: Final = ("4 MiB", "16 MiB", "64 MiB")
_STRIPES: Final = ("1 MiB", "4 MiB", "16 MiB")
_SAME_FORM: Final = "shared"
_MIB: Final = 1 << 20
_OF_NEW_FILES: Final = frozenset({"stripe", "targets"})
_OF_GATHERING: Final = ("writers", "domains", "order", "threshold", "buffer")
TABLES: Final = ("hdf5", "netcdf")
"""Keys that change what a library above MPI-IO does: a replay makes the calls that were recorded beneath it."""


@dataclass(frozen=True)
class Instead:
    """What is simulated in the place of a rule that the simulator does not know."""

    program: Program
    keys: Mapping[str, Any]


@dataclass(frozen=True)
class Candidate:
    """A rule of a plan."""

    strategy: str
    keys: Mapping[str, Any]
    variant_of: str = ""
    """A strategy that came before: where that is much slower than the program as it is, this one is not tried."""
    instead: Instead | None = None
    remark: str = ""
    """What is to be said of it where it is taken."""

    @property
    def same_form(self) -> bool:
        """The file is afterwards what it would be without a plan."""
        return mapping_word(self.keys) == _SAME_FORM and "netcdf" not in self.keys

    @property
    def replayed(self) -> bool:
        """A replay has what it needs to show it."""
        return not any(name in self.keys for name in TABLES)

    @property
    def behind(self) -> bool:
        """Its writers go on while the program computes."""
        return str(self.keys.get("writers", "")).startswith("behind")

    @property
    def simulated(self) -> str:
        """A rule for all files, as it is simulated."""
        return simulate.rule_text(self.keys if self.instead is None else self.instead.keys)

    def text(self, match: str) -> str:
        """The rule as a plan's file has it."""
        return simulate.rule_text(self.keys, match)


def mapping_word(keys: Mapping[str, Any]) -> str:
    """Which mapping a rule names, without a number of files: "shared", "grouped", "subfiles" or "log"."""
    return str(keys.get("mapping", _SAME_FORM)).partition(":")[0]


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


def candidates(ranks: int, ranks_a_node: int, targets: int, *, folders: bool = False) -> Iterator[Candidate]:
    """What is tried, the likeliest first. `targets`: of the machine. `folders`: each is one, and stripes no file."""
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
        for size in () if folders else _STRIPES:
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
    if ranks > 1 and targets > 1 and folders:
        yield Candidate("log on the good targets", {"mapping": "log", "targets": "auto"})


def of_independent_calls(all_candidates: Iterable[Candidate]) -> Iterator[Candidate]:
    """Of these what is another way for calls that each rank makes by itself: no writers gather their bytes.

    Where the bytes lie can be another place all the same.
    """
    for candidate in all_candidates:
        writers = str(candidate.keys.get("writers", ""))
        if candidate.instead is not None or not writers.startswith(("aggregators", "auto")):
            yield candidate
        elif not candidate.same_form:
            others = {name: value for name, value in candidate.keys.items() if name not in _OF_GATHERING}
            yield replace(candidate, keys={**others, "writers": "everyone"})


def of_found_files(all_candidates: Iterable[Candidate]) -> Iterator[Candidate]:
    """Of these what changes how a file is moved that is there before: only new files are divided, or get stripes."""
    return (one for one in all_candidates if one.same_form and _OF_NEW_FILES.isdisjoint(one.keys))


def behind(largest: int, ranks_of_node: int) -> Iterator[Candidate]:
    """Writing while the program computes on: memory for one call of a rank and for two, threads of one rank and of two.

    `largest`: bytes of a rank's call. A call that does not fit is written by its rank, so that less memory is no help.
    Example: calls of 8 MiB: 32 MiB, which is usual; of 40 MiB: 41 MiB, and 81 MiB.
    """
    usual = int(compiled().usual_behind_bytes)
    # A little more than the call: what describes it lies there, too.
    sizes = sorted({max(usual, (calls * largest // _MIB + 1) * _MIB) for calls in (1, 2)})
    for threads, size in itertools.product(range(1, min(2, ranks_of_node) + 1), sizes):
        keys: dict[str, Any] = {"writers": f"behind:{threads}"}
        if size != usual:
            keys["buffer"] = f"{size // _MIB} MiB"
        said = units.size(size)
        yield Candidate(
            f"behind:{threads}, {said} a rank", keys,
            remark=f"it keeps up to {said} of each rank's bytes in memory until they are written, "
            f"{units.size(size * ranks_of_node)} on a node",
        )  # fmt: skip
