#!/usr/bin/env python3
"""Checks that nothing in src/ and include/ writes to standard error by itself.

A program may have closed descriptor 2 and opened a file of its own there: base/standard_error.hpp has the one function
that looks first.

Lives here: which words write there, and which files may use them. Not here: what is said, and by whom.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SOURCES = ("src/**/*.cpp", "src/**/*.hpp", "src/**/*.h", "src/**/*.inc", "include/**/*.h", "include/**/*.hpp")
THE_ONE = "src/base/standard_error.cpp"
# Programs of their own, whose standard error is theirs: tests, fuzzers, benchmarks.
PROGRAM = re.compile(
    r"(_test|_fuzz|_bench)\.cpp$|/fuzz_\w+\.[ch]pp$|/testing\.hpp$|^src/partition/files/hostile_files\.cpp$"
)
FORBIDDEN = re.compile(
    r"""
      \bstd(?:err|::cerr|::clog)\b                            # streams
    | \bSTDERR_FILENO\b
    | \bv?(?:warnx?|errx?)\s*\(\s*(?:EXIT|\d|")               # err.h
    | \bp(?:error|signal|siginfo)\s*\(
    | \b(?:v?dprintf|(?:p?write(?:v2?)?|send|dup2|dup3))\s*\(\s*2\s*,
    | \bSYS_p?write(?:64|v2?)?\s*,\s*2\s*,
    | /dev/stderr|/proc/self/fd/2\b|/dev/fd/2\b
    """,
    re.VERBOSE,
)
# Text in quotes is kept: a path is forbidden there, too.
COMMENT = re.compile(r'//[^\n]*|/\*.*?\*/|("(?:\\.|[^"\\\n])*")', re.DOTALL)


@dataclass(frozen=True)
class Offence:
    """One line that writes to standard error."""

    path: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text}\n    messages go through say_line() of base/standard_error.hpp"


def without_comments(text: str) -> str:
    """The text with comments blanked, line by line as it was."""

    def blank(found: re.Match[str]) -> str:
        return found.group(1) or re.sub(r"[^\n]", " ", found.group())

    return COMMENT.sub(blank, text)


def offences_in(path: str, text: str) -> Iterator[Offence]:
    """The lines of one file that must not be there."""
    if path == THE_ONE or PROGRAM.search(path):
        return
    lines = text.splitlines()
    for number, code in enumerate(without_comments(text).splitlines(), start=1):
        if FORBIDDEN.search(code):
            yield Offence(path, number, lines[number - 1].strip())


def main(arguments: list[str] | None = None) -> int:
    """Prints every offence; the exit code is 1 if there is one, or if the one function is not there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent, help="the checkout")
    root: Path = parser.parse_args(arguments).root
    files = sorted({path for pattern in SOURCES for path in root.glob(pattern)})
    offences = [
        offence
        for path in files
        for offence in offences_in(
            path.relative_to(root).as_posix(), path.read_text(encoding="utf-8", errors="replace")
        )
    ]
    for offence in offences:
        print(offence, file=sys.stderr)
    there = (root / THE_ONE).is_file()
    if not there:
        print(f"{THE_ONE}: is named in tools/check_messages.py and not there", file=sys.stderr)
    print(f"messages: {len(files)} files, {len(offences)} offences")
    return 1 if offences or not there or not files else 0


if __name__ == "__main__":
    sys.exit(main())
