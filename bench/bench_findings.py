"""Precision and recall of findings: planted programs, the same repaired, clean ones, under both MPI libraries.

`make bench-findings`; --record FILE writes the page. The programs are those of tests/findings/programs.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / "findings"), str(ROOT / "tests" / "trace")]

from planted import CLEAN, FAULTS, OF_ROMIO, found, traced  # noqa: E402
from tracing import MPICH, MPIS, Mpi  # noqa: E402


@dataclass
class Score:
    """How one fault did over its runs."""

    planted: int = 0
    first: int = 0
    first_or_second: int = 0
    repaired: int = 0
    still_there: int = 0
    """Of medium or high severity, though mended."""
    elsewhere: int = 0
    """First in a run whose planted fault is another one, or in a clean one with high severity."""


def codes(mpi: Mpi, name: str, kind: str) -> list[tuple[str, str]]:
    """Codes and severities of one run, most seconds first."""
    with tempfile.TemporaryDirectory() as place:
        return [(row["code"], row["severity"]) for row in found(traced(mpi, name, kind, Path(place)))]


def measure(repeats: int) -> tuple[dict[str, Score], int, int]:
    """The scores by code; clean runs, and those with something of high severity."""
    scores: dict[str, Score] = {name: Score() for name in FAULTS}
    clean = grave = 0
    for mpi in MPIS * repeats:
        for name in FAULTS:
            if name in OF_ROMIO and mpi is not MPICH:
                continue
            score = scores[name]
            planted = codes(mpi, name, "planted")
            score.planted += 1
            score.first += name in [code for code, _ in planted[:1]]
            score.first_or_second += name in [code for code, _ in planted[:2]]
            if planted and planted[0][0] != name:
                scores.setdefault(planted[0][0], Score()).elsewhere += 1
            score.repaired += 1
            score.still_there += (name, "low") not in (left := codes(mpi, name, "repaired")) and name in dict(left)
            print(mpi.name, name, planted, left, flush=True)
        for name in CLEAN:
            severe = [code for code, severity in codes(mpi, name, "planted") if severity == "high"]
            clean += 1
            grave += bool(severe)
            for code in severe:
                scores.setdefault(code, Score()).elsewhere += 1
    return scores, clean, grave


def page(scores: dict[str, Score], clean: int, grave: int) -> str:
    """docs/results/findings.md."""
    rows = [
        f"| `{name}` | {score.first_or_second} of {score.planted} | {score.first} of {score.planted} | "
        f"{score.still_there} of {score.repaired} | {score.elsewhere} |"
        for name, score in scores.items()
    ]
    planted, hit = (sum(getattr(s, key) for s in scores.values()) for key in ("planted", "first_or_second"))
    repaired, left = (sum(getattr(s, key) for s in scores.values()) for key in ("repaired", "still_there"))
    return "\n".join(
        [
            "# Findings: how often they are right",
            "",
            "Made by `make bench-findings RECORD=1`: programs with one planted fault, the same programs with the fault "
            "mended and the same bytes,",
            "and clean ones (`tests/findings/programs/faults.c`), four ranks each on two processors, under Open MPI "
            "and MPICH, on a local file system.",
            "",
            f"- Planted: the right code first or second in {hit} of {planted} runs.",
            f"- Repaired: the mended fault still of medium or high severity in {left} of {repaired} runs.",
            f"- Clean: something of high severity in {grave} of {clean} runs.",
            "",
            "| code | found first or second | found first | still there when mended | found elsewhere |",
            "|---|---|---|---|---|",
            *rows,
            "",
            "Found elsewhere: first where something else was planted, or of high severity in a clean run.",
            "",
            "The rules were written with these programs at hand, and four of them (serialised-writes, slow-rank, "
            "target-contention, file-per-process)",
            "were made stricter after false alarms on them: the table says that the rules do what they say, not how "
            "they do on other programs.",
            "",
            "Codes that are not in the table have traces made by hand in `tests/findings/test_rules.py`, or no program "
            "yet: how often",
            "they are right in real runs is not measured. Nor is whether what a repair saves lies inside of the stated "
            "interval.",
            "",
        ]
    )


def main() -> int:
    """Measure and print or record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", type=Path)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    scores, clean, grave = measure(arguments.repeats)
    if arguments.json:
        print(json.dumps({name: vars(score) for name, score in scores.items()}))
    text = page(scores, clean, grave)
    if arguments.record:
        arguments.record.write_text(text, encoding="utf-8")
    else:
        print(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
