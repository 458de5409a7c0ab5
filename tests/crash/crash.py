#!/usr/bin/env python3
"""Jobs that are killed at random, and what they leave.

Kills (SIGKILL) a rank at one of its system calls or at some time, all ranks, the launcher, or `ioweir run`; over all
strategies, netCDF subfiles, HDF5 files under plans, and sets of partitioned files, with both MPIs (cases.py).
Afterwards (work.py): what was synced or closed is there and equal, no byte is one that nobody wrote, `check` says the
truth, a new job can overwrite and read the file, `merge` gives the same bytes, `gc` removes what is left, no process
stays, and nothing waits for ever. A line for each finding, which --seed S --number K repeats; the last
lines count kills, by strategy and by what was killed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path[:0] = [
    str(Path(__file__).resolve().parent),
    *(str(Path(__file__).resolve().parent.parent / name) for name in ("trace", "partition")),
]

from cases import cases  # noqa: E402
from work import run_case  # noqa: E402


def share(text: str) -> tuple[int, int]:
    """Example: "2/3" -> (2, 3)."""
    which, _, number = text.partition("/")
    if not (which.isdecimal() and number.isdecimal() and 1 <= int(which) <= int(number)):
        raise argparse.ArgumentTypeError(f"{text}: is not K/N with K from 1 to N, as 2/3")
    return int(which), int(number)


def main() -> int:
    words = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    words.add_argument(
        "--kills", type=int, default=300, help="until so many processes were killed while they ran (300)"
    )
    words.add_argument("--seed", type=int, default=24)
    words.add_argument("--only", default="", help="strategies with this in their names")
    words.add_argument("--number", type=int, default=0, help="one case of the seed's")
    words.add_argument(
        "--share", type=share, default=(1, 1), metavar="K/N", help="of N such commands beside each other the Kth one"
    )
    words.add_argument(
        "--folder",
        type=Path,
        default=None,
        help="where files are written; a new one in the temporary directory without it",
    )
    given = words.parse_args()
    began = time.monotonic()
    kills: Counter[str] = Counter()
    of_strategies: Counter[str] = Counter()
    ended = findings = 0
    folder = Path(tempfile.mkdtemp(prefix="ioweir-crash-", dir=given.folder))
    for case in cases(given.seed, given.only):
        if given.number and case.number != given.number:
            continue
        if case.number % given.share[1] != given.share[0] % given.share[1]:
            continue
        outcome = run_case(case, folder / str(case.number))
        if outcome.killed:
            kills[case.victim.value] += 1
            of_strategies[f"{case.strategy.kind.value}: {case.strategy.name}"] += 1
        else:
            ended += 1
        for problem in outcome.problems:
            findings += 1
            print(f"{case}\n    {problem}", flush=True)
        # Of a command that somebody ends there is that.
        (folder / "so-far").write_text(
            f"case {case.number}, {sum(kills.values())} kills, {ended} ended before, {findings} violations\n"
        )
        if given.number or sum(kills.values()) >= given.kills:
            break
    if not findings:
        (folder / "so-far").unlink(missing_ok=True)
        folder.rmdir()
    print(*(f"{count} {name}" for name, count in sorted(of_strategies.items())), sep="\n")
    by_victim = ", ".join(f"{count} {name}" for name, count in sorted(kills.items()))
    seconds = time.monotonic() - began
    print(
        f"{sum(kills.values())} kills ({by_victim}), {ended} jobs ended before, {findings} violations, {seconds:.0f} s"
    )
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
