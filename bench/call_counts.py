"""What one small call counts: instructions, system calls and messages, by callgrind and strace (`make bench-calls`).

Counts do not depend on what else the machine does. Lives here: running call_cost.cpp between marks, reading what the
two tools write, and the tables. Not here: the loops (call_cost.cpp), times (bench_calls.py).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import launch

CALLS = 480  # of each kind and size between marks
RARE = 0.05  # what comes less often than in one call of twenty comes with time and not with calls
# Open MPI hands each message to one of these functions. MPICH's are not visible: calls that communicate are counted.
SENDS = re.compile(r"mca_pml_ob1_i?send")
COMMUNICATES = re.compile(
    r"P?MPI_(?:[BSR]?send|I[bsr]?send|Sendrecv|Barrier|Bcast|Gatherv?|Scatterv?|Allgatherv?|Alltoall[vw]?|Reduce|Allreduce"
    r"|Reduce_scatter|Reduce_scatter_block|Scan|Exscan|I(?:barrier|bcast|allreduce|allgatherv?|alltoall[vw]?|gatherv?|reduce)"
    r"|Put|Get|Accumulate|Fetch_and_op|Compare_and_swap|Win_(?:fence|lock|unlock|flush))"
)
LISTED_FUNCTIONS = 12


@dataclass
class Counts:
    """Of one call, a mean over calls and ranks."""

    instructions: float = 0
    own: float = 0  # of these, in ioweir's own code
    messages: float = 0
    system_calls: dict[str, float] = field(default_factory=dict)
    functions: list[tuple[str, float]] = field(default_factory=list)  # (where its instructions are, how many)


Key = tuple[str, int]  # a kind of call and its bytes


class NotCountedError(Exception):
    """A tool is missing or forbidden; the message says which."""


def count(
    mpi: str, ranks: int, rule: str, calls: Sequence[str], sizes: Sequence[int], scratch: Path
) -> dict[Key, Counts]:
    """What each of `calls` of each of `sizes` bytes counts under a plan of one rule, or without a plan if empty."""
    found = {(call, size): Counts() for size in sizes for call in calls}
    with tempfile.TemporaryDirectory(dir=scratch) as text:
        folder = Path(text)
        plan = None
        if rule:
            plan = folder / "plan.toml"
            plan.write_text(f'[[file]]\nmatch = "*.data"\n{rule}\n')
        program = [str(launch.path_of("call_cost", mpi)), str(folder / "a.data")]
        arguments = [",".join(map(str, sizes)), ",".join(calls), str(CALLS), "marked"]
        run(mpi, ranks, ["strace", "-f", "-o", f"{folder}/strace.$$"], [*program, *arguments], folder / "1", plan)
        logs = sorted(folder.glob("strace.*"))
        for log in logs:
            for key, names in zip(found, between_marks(log), strict=True):
                for name, number in names.items():
                    each = found[key].system_calls
                    each[name] = each.get(name, 0) + number / CALLS / len(logs)
        callgrind = ["valgrind", "--tool=callgrind", "--compress-strings=no", "--compress-pos=no", "--quiet"]
        callgrind += [f"--callgrind-out-file={folder}/callgrind.$$"]
        run(mpi, ranks, callgrind, [*program, *arguments], folder / "2", plan)
        parts = {path: loop for path in folder.glob("callgrind.*") if (loop := part_of(path)) is not None}
        if len(parts) != ranks * len(found):
            raise NotCountedError(
                "call_cost was built without valgrind/callgrind.h (Debian: valgrind): build/release anew"
            )
        for path, of_loop in parts.items():
            add_part(found[of_loop], path, SENDS if mpi == "openmpi" else COMMUNICATES, CALLS * ranks)
    for one in found.values():
        one.functions = sorted(sum_by_name(one.functions).items(), key=lambda item: -item[1])[:LISTED_FUNCTIONS]
        one.system_calls = {name: number for name, number in sorted(one.system_calls.items()) if number >= RARE}
    return found


def run(mpi: str, ranks: int, tool: Sequence[str], program: Sequence[str], trace: Path, plan: Path | None) -> None:
    """The program, each rank under the tool, in whose arguments `$$` is the rank's process id."""
    if shutil.which(tool[0]) is None:
        raise NotCountedError(f"{tool[0]} is not installed")
    shell = "exec " + " ".join(f'"{word}"' for word in tool) + ' "$@"'
    command = [f"mpirun.{mpi}", "-n", str(ranks), "sh", "-c", shell, "sh", *program]
    done = subprocess.run(
        launch.under_ioweir(launch.Traced(trace, plan), command),
        env={**os.environ, **launch.LAUNCH_ENVIRONMENT},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=launch.TIMEOUT_S,
    )
    if done.returncode != 0:
        raise NotCountedError(
            f"{tool[0]} under {launch.KIND_TITLES[mpi]}: {(done.stderr or done.stdout).strip()[-300:]}"
        )


def between_marks(log: Path) -> Iterator[Counter[str]]:
    """The system calls of all threads of a rank, loop by loop."""
    names: Counter[str] | None = None
    for line in log.read_text(errors="replace").splitlines():
        if "prctl(PR_SET_NAME" in line and '"begin"' in line:
            names = Counter()
        elif "prctl(PR_SET_NAME" in line and '"end"' in line:
            if names is not None:
                yield names
            names = None
        elif names is not None and (called := re.match(r"\d+ +(\w+)\(", line)):
            names[called[1]] += 1


def part_of(path: Path) -> Key | None:
    """Which loop a file of callgrind's is of; None: of what lies outside of all loops."""
    with path.open(errors="replace") as lines:
        for line in lines:
            if found := re.match(r"desc: Trigger: Client Request: (.+),(\d+)$", line):
                return found[1], int(found[2])
            if line.startswith("fn="):
                break
    return None


def add_part(counts: Counts, path: Path, sends: re.Pattern[str], calls: int) -> None:
    """Adds one rank's share of what callgrind counted in a loop (the format: valgrind's manual, "Callgrind Format")."""
    where = function = callee_where = callee = ""
    of_callee = False  # the next line is what the functions beneath took
    for line in path.open(errors="replace"):
        key, equals, value = line.rstrip("\n").partition("=")
        if equals and key == "ob":
            where = callee_where = Path(value).name
        elif equals and key == "fn":
            function = value
        elif equals and key == "cob":
            callee_where = Path(value).name
        elif equals and key == "cfn":
            callee = value.partition("'")[0]
        elif equals and key == "calls":
            if callee_where.startswith(("libmpi", "mca_pml")) and sends.fullmatch(callee):
                counts.messages += int(value.split()[0]) / calls
            callee_where, of_callee = where, True
        elif line[:1].isdigit():
            if not of_callee:
                number = int(line.split()[1]) / calls
                counts.instructions += number
                counts.own += number if "ioweir" in where else 0
                counts.functions.append((f"{short(function)} ({where})", number))
            of_callee = False


def short(function: str) -> str:
    """A function's name without what C++ adds to it: arguments, those of templates, and namespaces without a name."""
    name = function.replace("(anonymous namespace)::", "").partition("(")[0]
    while (less := re.sub(r"<[^<>]*>", "", name)) != name:
        name = less
    return name


def sum_by_name(functions: Sequence[tuple[str, float]]) -> dict[str, float]:
    """What is said of one function in several lines, added up."""
    sums: dict[str, float] = {}
    for name, number in functions:
        sums[name] = sums.get(name, 0) + number
    return sums


def span(values: Sequence[float], digits: int = 0) -> str:
    """One number where all are within a tenth of each other, else the least and the greatest."""
    low, high = min(values), max(values)
    if high <= 1.1 * low or f"{low:,.{digits}f}" == f"{high:,.{digits}f}":
        return f"{values[0]:,.{digits}f}"
    return f"{low:,.{digits}f} to {high:,.{digits}f}"


def cell(counts: Sequence[Counts]) -> str:
    """Of one kind of call, its sizes together."""
    parts = [f"{span([one.instructions for one in counts])} ({span([one.own for one in counts])})"]
    names = sorted({name for one in counts for name in one.system_calls})
    for name in names:
        numbers = [one.system_calls.get(name, 0) for one in counts]
        low, high = f"{min(numbers):.2g}", f"{max(numbers):.2g}"
        parts.append(f"{low} {name}" if low == high else f"{low} to {high} {name}")
    if not names:
        parts.append("no system call")
    if max(one.messages for one in counts) >= RARE:
        parts.append(f"{span([one.messages for one in counts], 1)} sent")
    return "; ".join(parts)


def table(found: dict[str, dict[Key, Counts]], says: dict[str, str]) -> list[str]:
    """A line a call, a column a plan. `found`: by a plan's title; `says`: a call's words, where not its name."""
    lines = ["| call | " + " | ".join(found) + " |", "|---" * (1 + len(found)) + "|"]
    first = next(iter(found.values()))
    for call in dict.fromkeys(name for name, _ in first):
        cells = [cell([counts for (name, _), counts in one.items() if name == call]) for one in found.values()]
        lines.append(f"| {says.get(call, call)} | " + " | ".join(cells) + " |")
    return lines
