"""What came of the cases: one line each, kept in a file of JSON lines, and the pages of docs/results made from them.

A run may take a part of the suites; parts are added up by keeping their rows in one file. The last row of a case in a
way counts. Not here: running (conformance_run.py).
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Final

from conformance_run import NOT_STARTED, TIMED_OUT

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from conformance_run import Verdict

NOT_RUN: Final = "not run"
SAME: Final = "same"
DIFFER: Final = "DIFFER"
BROKEN: Final = "BROKEN"
"""The program could not be started, without ioweir neither: a fault of how it was built, and nothing was compared."""


@dataclass(frozen=True)
class Row:
    """One case, run in one way."""

    library: str
    suite: str
    name: str
    ranks: int
    way: str
    """The strategy that was forced, or "": the options say."""
    result: str
    ending: str
    """How the program ends by itself."""
    remark: str
    calls: int = 0
    exchanges: int = 0
    left: dict[str, int] = field(default_factory=dict)
    """Calls left to the MPI library, by reason."""

    def line(self) -> str:
        """In words."""
        way = f" [{self.way}]" if self.way else ""
        remark = f": {self.remark}" if self.remark else ""
        case = f"{self.library:8} {self.suite}/{self.name}{way}"
        return f"{self.result:8} {case} ({self.ranks} ranks, {self.ending}){remark}"


def row_of(verdict: Verdict) -> Row:
    """What the table needs of a verdict."""
    case, moved = verdict.case, verdict.moved
    result = NOT_RUN if verdict.plain is None else SAME if verdict.same else DIFFER
    remark = verdict.remark
    if verdict.plain is not None and verdict.plain.code == NOT_STARTED:
        result, remark = BROKEN, f"{case.command[0]} cannot be started, without ioweir neither"
    if verdict.way and _ending(verdict) == TIMED_OUT:  # two runs that were cut off say nothing about each other
        result, remark = NOT_RUN, "cut off at the time limit, without ioweir too"
    return Row(
        case.library.name, case.suite, case.name, case.ranks, verdict.way, result, _ending(verdict), remark,
        moved.calls, moved.exchanges, dict(moved.left),
    )  # fmt: skip


def _ending(verdict: Verdict) -> str:
    if verdict.plain is None:
        return "-"
    if verdict.plain.passed():
        return "passes"
    return TIMED_OUT if verdict.plain.code == TIMED_OUT else f"fails untraced too, exit code {verdict.plain.code}"


def keep(path: Path, rows: Iterable[Row]) -> None:
    """Add rows to a file."""
    with path.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(asdict(row)) + "\n" for row in rows)


def kept(path: Path) -> list[Row]:
    """The rows of a file; of two rows of one case in one way the later."""
    rows = [Row(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]
    return list({(row.library, row.suite, row.name, row.ranks, row.way): row for row in rows}.values())


def page(rows: Sequence[Row]) -> str:
    """docs/internal/conformance.md, or with strategies conformance-plans.md."""
    return _plans_page(rows) if any(row.way for row in rows) else _tracing_page(rows)


def _suites(rows: Sequence[Row]) -> list[tuple[str, str]]:
    return list(dict.fromkeys((row.library, row.suite) for row in rows))


def _named(rows: Sequence[Row]) -> list[str]:
    """Those that need a word."""
    return [f"- {row.line()}" for row in rows if row.result != SAME or row.remark or row.ending != "passes"]


def _tracing_page(rows: Sequence[Row]) -> str:
    out = [
        "# Other people's tests, without and with ioweir", "",
        "Made by `make conformance` (tests/conformance), which fetches the programs of Debian's source packages mpich,",
        "pnetcdf, hdf5 and netcdf and mpi4py's test_io.py and builds them. Each runs untraced and under `ioweir run`",
        "with the ranks that their own scripts say. Same: exit code, output (without times, addresses and the order of",
        "lines) and the files left behind.", "",
        "openmpi is Debian's Open MPI with its own MPI-IO (OMPIO), openmpi-romio the same with its copy of ROMIO.",
        "coll_perf runs with an array of 128^3 in place of 1200^3 (14 GB). MPICH's, ROMIO's and mpi4py's suites are of",
        "the versions of Debian's mpich and of the locked mpi4py; PnetCDF's `largefile` is left out for its size.", "",
        "| MPI library | suite | same | differ | of these fail untraced too | not run |", "|---|---|---|---|---|---|",
    ]  # fmt: skip
    for library, suite in _suites(rows):
        own = [row for row in rows if (row.library, row.suite) == (library, suite)]
        counts = Counter(row.result for row in own)
        failing = sum(row.result != NOT_RUN and row.ending != "passes" for row in own)
        out.append(f"| {library} | {suite} | {counts[SAME]} | {counts[DIFFER]} | {failing} | {counts[NOT_RUN]} |")
    out += ["", "## Those that differ, fail by themselves, are not steady or are not run", ""]
    return "\n".join([*out, *_named(rows), ""])


def _plans_page(rows: Sequence[Row]) -> str:
    ways = list(dict.fromkeys(row.way for row in rows))
    out = [
        "# Other people's tests, with each strategy forced on every file", "",
        'Made by `make conformance ARGS="--strategy all"` (tests/conformance): the programs of',
        "[conformance.md](conformance.md), run without ioweir and under `ioweir run --plan`, with a plan that matches",
        "every file. Buffers are of 4 KiB and stripes of 1 KiB, so that small files take several rounds",
        "(tests/conformance/conformance_plans.py). Same: exit code, output (without times, addresses and the order of",
        "lines) and the files left behind. A cell: same / differ.", "",
        "| MPI library | suite | " + " | ".join(ways) + " | not run |", "|---|---|" + "---|" * (len(ways) + 1),
    ]  # fmt: skip
    for library, suite in _suites(rows):
        own = [row for row in rows if (row.library, row.suite) == (library, suite)]
        cells = []
        for way in ways:
            counts = Counter(row.result for row in own if row.way == way)
            cells.append(f"{counts[SAME]} / {counts[DIFFER]}" if counts[SAME] + counts[DIFFER] else "-")
        missing = len({row.name for row in own if row.result == NOT_RUN})
        out.append(f"| {library} | {suite} | " + " | ".join(cells) + f" | {missing} |")
    out += ["", "What the engine did in these runs, calls of all ranks added:", ""]
    out += ["| strategy | calls moved by the engine | of these through exchanges | left to the MPI library |"]
    out += ["|---|---|---|---|"]
    for way in ways:
        own = [row for row in rows if row.way == way]
        left = sum(sum(row.left.values()) for row in own)
        calls, exchanges = sum(row.calls for row in own), sum(row.exchanges for row in own)
        out.append(f"| {way} | {calls:,} | {exchanges:,} | {left:,} |")
    reasons: Counter[str] = Counter()
    for row in rows:
        reasons.update(row.left)
    out += ["", "Why calls were left to the library, in all of these runs:", ""]
    out += [f"- {calls:,}: {reason}" for reason, calls in reasons.most_common()]
    out += ["", "## Those that differ, fail by themselves, are not steady or are not run", ""]
    once: dict[str, Row] = {}
    for row in rows:  # what has the same to be said of it in every way is said once
        same = {other.line().replace(f" [{other.way}]", "") for other in rows if _case(other) == _case(row)}
        text = row.line().replace(f" [{row.way}]", "") if len(same) == 1 else row.line()
        once.setdefault(text, row)
    named = [text for text, row in once.items() if row.result != SAME or row.remark or row.ending != "passes"]
    return "\n".join([*out, *(f"- {text}" for text in named), ""])


def _case(row: Row) -> tuple[str, str, str, int]:
    return row.library, row.suite, row.name, row.ranks
