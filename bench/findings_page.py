"""docs/results/findings.md from the rows of bench_findings.py: scores by rule and by set of cases, and gains."""

from __future__ import annotations

import sys
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tests" / "findings"), str(ROOT / "tests" / "trace")]

from pairs import Interval, median_interval  # noqa: E402
from planted import CLEAN, PLANTED, Case, cases  # noqa: E402

Row = dict[str, Any]
SEVERE = ("high", "medium")
SETS = ("seen", "held out")


NOTES = (
    "## What this does not show",
    "",
    "- Most runs count as crowded (ranks and others' work exceed the processors), and some of what was wrong is "
    "that: the traced run and the measured ones then differ by what else ran.",
    "- Held out are the programs of `held_out_2.toml`: written and committed before any of them was run. Those of "
    "`held_out.toml` were held out for the record before this one, and count as seen now.",
    "- Programs that did not have their fault by the rule's definition were changed before this record, and are "
    "known: `misaligned-requests/pieces-of-64k` had pieces of 256 KiB, of which 1.5 % of the blocks are shared, "
    "under 1 % of the run; of `file-per-process` all but `mpi-files` made so few files that they cost under 1 % of "
    "the run (now five times as many or more); `checkpoint-too-slow/collective` wrote for a shorter time than it "
    "paused, which `no-overlap` says rightly; `hdf5-chunk-mismatch/reads-of-parts` had a chunk cache smaller than "
    "a chunk, and HDF5 then reads the parts alone; `data-sieving/hdf5-rows` made independent calls, in which HDF5 "
    "writes row by row and nothing is sieved.",
    "- `hdf5-chunk-mismatch/collective-tiny-chunks` does not have its fault by the rule's definition either, for "
    "HDF5 puts the chunks of a collective call together; the trace does not tell chunks from a selection with "
    "gaps. It counts as not found.",
    "- This record has two parts. On a quiet machine all programs under Open MPI and most under MPICH were traced, and "
    "their gains measured right after, by three interleaved runs of each twin. The last ones under MPICH were traced "
    "half an hour before beside other work, without gains (`--mpi`, `--gains 3` and `--rows`; rows put together by "
    "hand). Where a repair may save nothing the interval begins below 0: at what the repair may cost "
    "(passing data between ranks, copying), at 2 % of the run at least, by which runs differ (`may_cost`).",
    "- Earlier records, by whose derivation intervals ended at what the faulty calls cost: 122 of 176 gains inside "
    "(0.69), 45 above, 9 below, at a load of 10.6 to 34.3; on a quiet machine (load 0.2 to 4.3), with the rules and "
    "129 pairs before these: 220 of 236 planted faults first or second; 138 of 216 gains inside (0.64); 163 no "
    "wider than a factor of 4 (0.75); at a load of 8.5 to 17.2, 57 of 115 gains inside (0.50).",
    "- Drishti was not run on these programs: it reads Darshan's logs, and Darshan's runtime is in no package "
    "index of the machine.",
    "",
)


def _load(rows: list[Row]) -> str:
    """How busy the machine was. Example: The load average was 3.1 to 9.0, 6.2 in the median."""
    loads = [row["load"] for row in rows if "load" in row]
    if not loads:
        return "The load average was not recorded."
    return (
        f"The load average was {min(loads):.1f} to {max(loads):.1f}, {median(loads):.1f} in the "
        f"median, the programs' own "
        "ranks included."
    )


@dataclass
class Score:
    """How one code did over the runs of a set of cases."""

    planted: int = 0
    first: int = 0
    first_or_second: int = 0
    in_chain: int = 0
    """Not first or second itself, but named in the chain of one of these."""
    repaired: int = 0
    still_there: int = 0
    """Of medium or high severity, though mended."""
    elsewhere: int = 0
    """First where something else was planted, or of high severity in a clean program."""

    @property
    def precision(self) -> str:
        """Right ones among those that were put forward."""
        put_forward = self.first_or_second + self.still_there + self.elsewhere
        return f"{self.first_or_second / put_forward:.2f}" if put_forward else "-"

    @property
    def recall(self) -> str:
        """Found among the planted."""
        return f"{self.first_or_second / self.planted:.2f}" if self.planted else "-"

    def add(self, other: Score) -> None:
        """Both together."""
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)


@dataclass
class Judgement:
    """Scores by code, clean runs, and what went wrong, of a set of cases."""

    scores: dict[str, Score] = field(default_factory=lambda: defaultdict(Score))
    clean: int = 0
    grave: int = 0
    wrong: list[str] = field(default_factory=list)

    @property
    def total(self) -> Score:
        """All codes together."""
        total = Score()
        for score in self.scores.values():
            total.add(score)
        return total


def judge(rows: list[Row], known: dict[str, Case], *, held: bool | None) -> Judgement:
    """What the runs of the cases that were held out, or were not, say."""
    result = Judgement()
    for row in rows:
        case = known.get(row["case"])
        if row["what"] != "findings" or case is None or (held is not None and case.held != held):
            continue
        codes = [one["code"] for one in row["findings"]]
        severe = {one["code"]: one["severity"] for one in row["findings"] if one["severity"] in SEVERE}
        where = f"{row['case']} ({row['mpi']})"
        if case.code == CLEAN:
            grave = [code for code, severity in severe.items() if severity == "high"]
            result.clean += 1
            result.grave += bool(grave)
            for code in grave:
                result.scores[code].elsewhere += 1
                result.wrong.append(f"{where}, clean: `{code}` of high severity")
        elif row["kind"] == PLANTED:
            _planted(result, case, codes, row, where)
        else:
            score = result.scores[case.code]
            score.repaired += 1
            score.still_there += case.code in severe
            if case.code in severe:
                result.wrong.append(f"{where}, mended: still of {severe[case.code]} severity")
    return result


def _planted(result: Judgement, case: Case, codes: list[str], row: Row, where: str) -> None:
    score = result.scores[case.code]
    score.planted += 1
    score.first += case.code in codes[:1]
    score.first_or_second += case.code in codes[:2]
    if codes and codes[0] != case.code:
        result.scores[codes[0]].elsewhere += 1
    if case.code not in codes[:2]:
        chained = any(case.code in one.get("chain", ()) for one in row["findings"][:2])
        score.in_chain += chained
        found = ", ".join(f"`{code}`" for code in codes[:3]) or "nothing"
        result.wrong.append(f"{where}, planted: {found}{' (with it in the chain)' if chained else ''}")


@dataclass(frozen=True)
class Gain:
    """What was promised and what came of it."""

    case: str
    mpi: str
    before: float
    measured: float
    low: float
    high: float
    modelled: bool
    spread: Interval
    """Of the differences of two runs that were one after the other: in which their true median lies."""

    @property
    def reached(self) -> bool:
        """Whether the measured interval and the stated one have a value in common."""
        return self.spread.low <= self.high and self.spread.high >= self.low

    @property
    def inside(self) -> bool:
        """Whether it lies in the interval."""
        return self.low <= self.measured <= self.high

    @property
    def narrow(self) -> bool:
        """Whether the interval is no wider than a factor of 4."""
        return self.low > 0 and self.high <= 4 * self.low


def gains(rows: list[Row], known: dict[str, Case]) -> list[Gain]:
    """Of each pair whose fault was found: the finding's interval, and the median of the differences of runs in turn."""
    stated: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    for row in rows:
        if row["what"] == "findings" and row["kind"] == PLANTED:
            for one in row["findings"]:
                if one["code"] == row["case"].partition("/")[0]:
                    gain = one["gain"]
                    stated[row["case"], row["mpi"]].append((gain["low"] - gain.get("may_cost", 0.0), gain["high"]))
    result = []
    for row in rows:
        case, intervals = known.get(row["case"]), stated[row["case"], row["mpi"]]
        if row["what"] != "gain" or case is None or not intervals:
            continue
        before = median(row["seconds"]["planted"])
        low, high = (median(values) for values in zip(*intervals, strict=True))
        modelled = bool(case.model and any(case.model.values()))
        pairs = [one - other for one, other in zip(row["seconds"]["planted"], row["seconds"]["repaired"], strict=True)]
        spread = median_interval(pairs)
        result.append(Gain(row["case"], row["mpi"], before, spread.median, low, high, modelled, spread))
    return result


def missed_bars(rows: list[Row]) -> list[str]:
    """Which bars are not met: first or second in 95 % of planted, gone in 97 % of mended, nothing grave in clean."""
    judgement = judge(rows, {case.title: case for case in cases()}, held=None)
    total = judgement.total
    shares = [
        ("planted, first or second", total.first_or_second, total.planted, 0.95),
        ("mended, gone", total.repaired - total.still_there, total.repaired, 0.97),
        ("clean, nothing grave", judgement.clean - judgement.grave, judgement.clean, 1.0),
    ]
    missed = [
        f"{what}: {_share(part, whole)}, less than {bar}" for what, part, whole, bar in shares if part < bar * whole
    ]
    return missed + judgement.wrong if missed else []


def _share(part: int, whole: int) -> str:
    return f"{part} of {whole} ({part / whole:.2f})" if whole else "none run"


def _summary(judgement: Judgement) -> list[str]:
    total = judgement.total
    return [
        _share(total.first_or_second, total.planted),
        _share(total.first, total.planted),
        _share(total.still_there, total.repaired),
        _share(judgement.grave, judgement.clean),
    ]


def _table(head: list[str], body: list[list[str]]) -> list[str]:
    return [f"| {' | '.join(row)} |" for row in [head, ["---"] * len(head), *body]]


def page(rows: list[Row]) -> str:
    """All of it."""
    known = {case.title: case for case in cases()}
    whole = judge(rows, known, held=None)
    columns = [_summary(judge(rows, known, held=held)) for held in (False, True)] + [_summary(whole)]
    names = [
        "planted: the right code first or second",
        "planted: the right code first",
        "repaired: the mended fault still of medium or high severity",
        "clean: something of high severity",
    ]
    planted = [case for case in known.values() if case.code != CLEAN]
    lines = [
        "# Findings: how often they are right",
        "",
        f"Made by `make bench-findings RECORD=1` from `tests/findings/cases.toml`, `held_out.toml` and "
        f"`held_out_2.toml`: {len(planted)} programs with one "
        f"planted fault, the same {len(planted)} programs with the fault mended and the same bytes of data,",
        f"and {len(known) - len(planted)} clean ones. They had two to eight ranks on two processors that others used, "
        "too, in memory (tmpfs; on disk what waits for it), "
        "under Open MPI and MPICH where a fault is not one library's own.",
        "What a right finding is was written down, from the rule's definition, before a program ran. "
        f"{sum(case.held for case in known.values())} programs were held out: they were committed, and rules were "
        "mended for the last time, before any of them was run.",
        _load(rows),
        "",
        *_table(
            ["runs", "seen", "held out", "all"],
            [[name, *values] for name, *values in zip(names, *columns, strict=True)],
        ),
        "",
        "## By rule",
        "",
        *_table(
            ["code", "first or second", "first", "still there when mended", "elsewhere", "precision", "recall"],
            [
                [
                    f"`{code}`",
                    f"{score.first_or_second} of {score.planted}",
                    f"{score.first} of {score.planted}",
                    f"{score.still_there} of {score.repaired}",
                    str(score.elsewhere),
                    score.precision,
                    score.recall,
                ]
                for code, score in whole.scores.items()
            ],
        ),
        "",
        "Elsewhere: first where something else was planted, or of high severity in a clean program. Precision: first "
        "or second where it was planted, of that and of what was",
        "still there or elsewhere. Recall: first or second, of the runs in which it was planted.",
        "",
        "## What was wrong",
        "",
        *([f"- {line}." for line in whole.wrong] or ["Nothing."]),
        "",
        *NOTES,
        *_gains(gains(rows, known)),
    ]
    return "\n".join(lines) + "\n"


def _gains(told: list[Gain]) -> list[str]:
    if not told:
        return ["## Gains", "", "Not measured."]
    real = [gain for gain in told if not gain.modelled]
    rows = [
        [
            f"{gain.case} ({gain.mpi}){' *' if gain.modelled else ''}",
            f"{gain.before:.3f}",
            f"{gain.measured:.3f}",
            f"{gain.spread.low:.3f} to {gain.spread.high:.3f}",
            f"{gain.low:.3f} to {gain.high:.3f}",
            "yes" if gain.inside else "below" if gain.measured < gain.low else "above",
            "yes" if gain.narrow else "no",
        ]
        for gain in told
    ]
    return [
        "## Gains",
        "",
        "Seconds that the mended program takes less, untraced: the median of the differences of runs one after the "
        "other. Measured is the interval of that median (95 %; of fewer than six pairs all of them). The stated one is "
        "that of the finding in the traced run.",
        "",
        f"- Inside of the interval: {_share(sum(gain.inside for gain in told), len(told))}; without the modelled "
        f"storage {_share(sum(gain.inside for gain in real), len(real))}.",
        f"- The measured interval meets the stated one: {_share(sum(gain.reached for gain in told), len(told))}; "
        f"without the modelled storage {_share(sum(gain.reached for gain in real), len(real))}.",
        f"- Above it: {sum(gain.measured > gain.high for gain in told)}, below: "
        f"{sum(gain.measured < gain.low for gain in told)}.",
        f"- No wider than a factor of 4: {_share(sum(gain.narrow for gain in told), len(told))}; of these inside: "
        f"{_share(sum(gain.inside and gain.narrow for gain in told), sum(gain.narrow for gain in told))}.",
        "",
        *_table(["pair", "planted, s", "gained, s", "measured, s", "stated, s", "inside", "factor 4"], rows),
        "",
        "* on a model of storage (`tests/findings/programs/storage_model.c`): a library beneath the program that makes "
        "some calls last longer. No real device was slow.",
    ]
