#!/usr/bin/env python3
"""What of `make test` takes the time: the files and the families of cases that took longest, from a JUnit file.

Usage: tools/slowest_tests.py [FILE] [ROWS]. FILE is build/test-results/pytest.xml where none is given.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "build" / "test-results" / "pytest.xml"
ROWS = 40


@dataclass
class Taken:
    """Seconds of several tests, setting up and clearing away included."""

    seconds: float = 0.0
    cases: int = 0
    longest: float = 0.0

    def add(self, seconds: float) -> None:
        """One test more."""
        self.seconds += seconds
        self.cases += 1
        self.longest = max(self.longest, seconds)


def taken(junit: Path) -> tuple[dict[str, Taken], dict[str, Taken]]:
    """By file, and by test function."""
    files: dict[str, Taken] = defaultdict(Taken)
    families: dict[str, Taken] = defaultdict(Taken)
    for case in ElementTree.parse(junit).iter("testcase"):
        file, name = case.get("classname") or "", case.get("name") or ""
        seconds = float(case.get("time") or 0.0)
        files[file].add(seconds)
        families[f"{file}::{name.partition('[')[0]}"].add(seconds)
    return files, families


def lines(title: str, rows: dict[str, Taken], most: int) -> list[str]:
    """A heading with the sum, and the longest rows with how much they and those above make up."""
    total = sum(row.seconds for row in rows.values())
    said = [f"{title}: {len(rows)}, {total:.0f} s"]
    so_far = 0.0
    for name, row in sorted(rows.items(), key=lambda row: -row[1].seconds)[:most]:
        so_far += row.seconds
        part = so_far / total if total else 0.0
        said.append(f"{row.seconds:8.1f} s {part:5.0%} {row.cases:5} cases, {row.longest:.1f} s at most: {name}")
    return said


def main() -> int:
    """Prints both tables."""
    junit = Path(sys.argv[1]) if len(sys.argv) > 1 else RESULTS
    most = int(sys.argv[2]) if len(sys.argv) > 2 else ROWS
    for title, rows in zip(("files", "families"), taken(junit), strict=True):
        print("\n".join(lines(title, rows, most)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
