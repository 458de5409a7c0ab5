"""Findings of logs that count calls and keep no events: the same codes, from counters, each a bound.

What a rule can be sure of without the order of calls: sizes, amounts, times by file and rank, what lies on which
storage target. Seconds are those of the rank that spent most in the calls, which other ranks may or may not have waited
for. `unseen` of each finding says what the log cannot tell. Thresholds are those of the rules on events (rules/).
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

import numpy as np

from ioweir.base.units import size
from ioweir.findings import counted_places
from ioweir.findings.counted_rows import ANSWERED_S, STEADY, Found, Run, by_time
from ioweir.findings.model import HIGH, LOW, MEDIUM, Evidence, Finding, Findings, Gain, Remedy
from ioweir.findings.rules.common import MANY, SMALL, STRIPE, aggregate, rule_for
from ioweir.trace.counted import SHARED
from ioweir.trace.reader import DATA_OPS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ioweir.trace.counted import Counted, Counts

_SHARES: Final = ((HIGH, 0.10), (MEDIUM, 0.02))
_Z: Final = 4.0
_TIMES: Final = 2.0
"""As slow-rank: production runs vary by up to 27 %."""
_LEAST_SPREAD: Final = 0.1
_LEAST_TARGETS: Final = 3
_FILES_SHOWN: Final = 20
_ASKING: Final = ("open", "meta", "seek")
_RANDOM: Final = (
    "POSIX_READS", "POSIX_WRITES", "POSIX_SEQ_READS", "POSIX_SEQ_WRITES", "POSIX_BYTES_READ", "POSIX_BYTES_WRITTEN",
)  # fmt: skip
_MISALIGNED: Final = (
    "POSIX_WRITES", "POSIX_READS", "POSIX_FILE_NOT_ALIGNED", "POSIX_BYTES_WRITTEN", "POSIX_FILE_ALIGNMENT",
)  # fmt: skip
_INDEPENDENT: Final = tuple(f"MPIIO_{how}_{op}S" for how in ("INDEP", "COLL", "SPLIT") for op in ("WRITE", "READ"))
_INSTANT_S: Final = 1e-9
_ANSWER_S: Final = 1.0
"""No metadata server takes longer on average: whoever does waits for something else, such as a pipe's other end."""


def find(counted: Counted, wall_s: float) -> Findings:
    """All findings of a log, most seconds first."""
    run = Run(counted, wall_s)
    io_s, _ = run.slowest([row for row in counted.counts if row.outermost])
    if counted.busiest_s:
        io_s = min(max(io_s, counted.busiest_s), wall_s)
    found = [one for rule in (*_RULES, *counted_places.RULES) for one in rule(run) if run.worth(one.seconds)]
    found.sort(key=lambda one: -one.seconds)
    unseen = [] if found else [f"all codes: {words}" for words in counted.unseen]
    return Findings([_finding(run, one) for one in found], io_s, wall_s, unseen)


def _finding(run: Run, one: Found) -> Finding:
    seconds = min(one.seconds, run.wall_s)
    high = min(seconds if one.high is None else one.high, seconds)
    low = min(high / 4 if one.low is None else one.low, high)
    share = seconds / run.wall_s
    severity = next((name for name, least in _SHARES if share >= least), LOW)
    return Finding(
        code=one.code,
        severity=MEDIUM if severity == HIGH and low <= 0 else severity,
        layer=one.layer,
        files=[run.path(file) for file in one.files[:_FILES_SHOWN]],
        ranks=one.ranks,
        seconds=seconds,
        gain=Gain(low, high),
        summary=one.summary,
        cause=one.cause,
        evidence=[Evidence("share of the run", 100 * share, "%"), *one.evidence],
        remedies=one.remedies,
        unseen=[f"{one.code}: {one.unseen}", *(f"{one.code}: {words}" for words in run.counted.unseen)],
        title=one.title,
    )


# ------------------------------------------------------------------------------------------------------------- rules


def _slow_target(run: Run) -> Iterator[Found]:
    """Of files that lie on one target each: whether the files of one are slower a byte than all others'."""
    on: dict[int, set[int]] = defaultdict(set)
    for one in run.counted.targets:
        on[one.file].update(one.targets)
    alone = {file: next(iter(targets)) for file, targets in on.items() if len(targets) == 1}
    for op in DATA_OPS:
        rows = [
            row
            for row in run.by_op["POSIX", op]
            if row.bytes >= STRIPE and row.time_s >= _INSTANT_S and row.file in alone
        ]
        pace: dict[int, list[float]] = defaultdict(list)
        for row in rows:
            pace[alone[row.file]].append(row.time_s / row.bytes)
        if len(pace) < _LEAST_TARGETS:
            continue
        middle = {target: float(np.median(values)) for target, values in pace.items()}
        worst = max(middle, key=lambda target: middle[target])
        others = np.log([value for target, value in middle.items() if target != worst])
        usual = float(np.median(others))
        spread = max(1.4826 * float(np.median(np.abs(others - usual))), _LEAST_SPREAD)
        times = float(middle[worst] / np.exp(usual))
        z = (float(np.log(middle[worst])) - usual) / spread
        if z < _Z or times < _TIMES:
            continue
        mine = [row for row in rows if alone[row.file] == worst]
        spent, _ = run.slowest(mine)
        files = by_time(mine)
        yield Found(
            "slow-target",
            "One slow storage target",
            "POSIX",
            spent * (1 - 1 / times),
            f"the storage target OST {worst} is {times:.1f} times as slow as the other {len(middle) - 1}: files "
            "such as "
            f"{run.path(files[0])} lie on it",
            f"{len(files):,} {'file lies' if len(files) == 1 else 'files lie'} on OST {worst} alone. Every rank "
            "that has one of "
            "them takes longer for the same bytes than all others, and the program ends when the last rank does.",
            files,
            sorted({row.rank for row in mine if row.rank >= 0}),
            [
                Evidence("slower a byte than the median of the other targets", times, "times"),
                Evidence("spreads from the others", z, "sigma"),
                Evidence(f"files on OST {worst}", float(len(files)), "files"),
                Evidence("targets compared", float(len(middle)), "targets"),
            ],
            [
                Remedy("striping", f"leave OST {worst} out (lfs setstripe -o), and tell those who run the storage"),
                Remedy(
                    "plan",
                    "let ioweir choose the fast targets when a file is made",
                    rule_for([run.path(file) for file in files], 'mapping = "subfiles:auto"'),
                ),
            ],
            "files that are striped over several targets do not tell which of them is slow",
        )


def _small(run: Run) -> Iterator[Found]:
    """Rows most of whose calls are small: their time is that of small calls."""
    for op in DATA_OPS:
        small: list[Counts] = []
        number = 0
        for row in run.by_op["POSIX", op]:
            few = sum(calls for least, calls in row.sizes if least < SMALL)
            per_rank = few / (run.ranks if row.rank == SHARED else 1)
            if (
                row.outermost
                and per_rank >= MANY
                and few >= STEADY * row.calls
                and row.bytes / max(row.calls, 1) < SMALL
            ):
                small.append(row)
                number += few
        if not small:
            continue
        spent, ranks = run.slowest(small)
        each = sum(row.bytes for row in small) / max(sum(row.calls for row in small), 1)
        files = by_time(small)
        yield Found(
            "small-requests",
            "Many small requests",
            "POSIX",
            spent,
            f"{number:,} {op}s of {size(each)} on average: most of the time is the cost of asking, not of moving bytes",
            f"The program makes a request of its own for every {size(each)}. Each one has a fixed cost, whatever "
            "its size.",
            files,
            ranks,
            [
                Evidence(f"{op}s under 100 KiB", float(number), "calls"),
                Evidence(f"mean size of these {op}s", each, "B"),
            ],
            [Remedy("source", f"collect the data in memory and {op} it in pieces of 1 MiB or more")],
            "the log has bins of sizes (the nearest border is 100 KiB) and one time for all of a file's calls",
        )


def _random(run: Run) -> Iterator[Found]:
    """Darshan's own count of calls that lie behind the last one of the rank on the file."""
    posix = run.table("POSIX", _RANDOM)
    if posix is None:
        return
    table, at = posix
    for op in ("read", "write"):
        jumping: dict[tuple[int, int], float] = {}
        number = 0.0
        for row in table.rows:
            calls, onward = row[at[f"POSIX_{op.upper()}S"]], row[at[f"POSIX_SEQ_{op.upper()}S"]]
            moved = row[at["POSIX_BYTES_READ" if op == "read" else "POSIX_BYTES_WRITTEN"]]
            each = calls / (run.ranks if row[1] < 0 else 1)
            if each >= MANY and 0 <= onward <= STEADY * calls and moved / max(calls, 1) < STRIPE:
                jumping[int(row[0]), int(row[1])] = calls - onward
                number += calls - onward
        rows = [one for one in run.by_op["POSIX", op] if (one.file, one.rank) in jumping and one.outermost]
        if not rows:
            continue
        spent, ranks = run.slowest(rows)
        share = number / max(sum(one.calls for one in rows), 1)
        yield Found(
            "random-access",
            "Requests in no order",
            "POSIX",
            spent * min(share, 1.0),
            f"{number:,.0f} {op}s ({100 * share:.0f} %) go back in their file instead of on",
            "Requests jump about in the file, so that neither the file system's read-ahead nor its gathering of "
            "writes can "
            "help, and disks must seek.",
            by_time(rows),
            ranks,
            [Evidence(f"{op}s that do not go on", number, "calls"), Evidence("share of jumps", 100 * share, "%")],
            [Remedy("source", f"sort the requests by their place in the file, and {op} neighbours together")],
            "Darshan counts calls that begin behind the end of the last one as going on, however far away",
        )


def _misaligned(run: Run) -> Iterator[Found]:
    posix = run.table("POSIX", _MISALIGNED)
    if posix is None:
        return
    table, at = posix
    crooked: dict[tuple[int, int], tuple[float, float]] = {}
    for row in table.rows:
        calls = row[at["POSIX_WRITES"]]
        wrong, moved = row[at["POSIX_FILE_NOT_ALIGNED"]], row[at["POSIX_BYTES_WRITTEN"]]
        # Reads may lie across borders, too: so many writes do at least.
        wrong -= max(row[at["POSIX_READS"]], 0)
        border = row[at["POSIX_FILE_ALIGNMENT"]]
        if row[1] < 0 and calls > 0 and border > 1 and wrong >= STEADY * calls and moved / calls >= SMALL:
            # A crooked request touches a block more than it needs.
            needed = -(-(moved / calls) // border)
            crooked[int(row[0]), int(row[1])] = (wrong, wrong / calls / (needed + 1))
    rows = [one for one in run.by_op["POSIX", "write"] if (one.file, one.rank) in crooked]
    if not rows:
        return
    excess = max(crooked[one.file, one.rank][1] for one in rows)
    spent, ranks = run.slowest(rows)
    number = sum(crooked[one.file, one.rank][0] for one in rows)
    files = by_time(rows)
    yield Found(
        "misaligned-requests",
        "Requests across stripes",
        "POSIX",
        spent * excess,
        f"{number:,.0f} writes begin away from the file system's blocks, in files that all ranks write",
        "Requests lie across the borders of the file system's blocks and stripes, so that two ranks change one "
        "block and "
        "each waits for the other's lock.",
        files,
        ranks,
        [
            Evidence("writes away from borders", number, "calls"),
            Evidence("blocks touched more than needed", 100 * excess, "%"),
        ],
        [
            Remedy(
                "plan",
                "let ioweir cut the requests at stripes",
                rule_for(
                    [run.path(file) for file in files[:4]],
                    'writers = "auto"',
                    'domains = "cyclic"',
                    'stripe = { size = "1 MiB" }',
                ),
            ),
            Remedy("source", "make each rank's part begin at a multiple of 1 MiB (HDF5: H5Pset_alignment)"),
        ],
        "the seconds are arithmetic, not observed, so that the gain may be nothing",
        low=0.0,
    )


def _independent(run: Run) -> Iterator[Found]:
    """Files that all ranks write through independent MPI-IO calls."""
    table = run.table("MPI-IO", _INDEPENDENT)
    if table is None or run.ranks < 2:
        return
    records, at = table
    for op in DATA_OPS:
        upper = op.upper()
        # As with events: many calls of a rank, or few that end in many small requests.
        pieces: dict[int, int] = defaultdict(int)
        for row in run.by_op["POSIX", op]:
            pieces[row.file] += sum(calls for least, calls in row.sizes if least < SMALL)
        single = {
            int(row[0])
            for row in records.rows
            if row[1] < 0
            and row[at[f"MPIIO_INDEP_{upper}S"]] > 0
            and max(row[at[f"MPIIO_{how}_{upper}S"]] for how in ("COLL", "SPLIT")) <= 0
            and max(row[at[f"MPIIO_INDEP_{upper}S"]], pieces[int(row[0])]) >= MANY * run.ranks
        }
        rows = [row for row in run.by_op["MPI-IO", op] if row.file in single and row.rank == SHARED]
        rows = [row for row in rows if _least_mean(row) < STRIPE]
        if not rows:
            continue
        spent, _ = run.slowest(rows)
        files = by_time(rows)
        calls = max(sum(row.calls for row in rows), 1)
        names = [run.path(file) for file in files]
        moved = sum(row.bytes for row in rows)
        yield Found(
            "independent-shared-file",
            "A shared file without collective calls",
            "MPI-IO",
            spent,
            f"{calls:,} independent {op}s{f' of {size(moved / calls)}' if moved else ''} to a file that all "
            "ranks share",
            "Each rank makes its requests by itself, so that the MPI library cannot join neighbouring pieces of "
            "several ranks.",
            files,
            [],
            [Evidence(f"independent {op}s", float(calls), "calls"), Evidence("collective ones", 0.0, "calls")],
            [aggregate(names), Remedy("source", f"use MPI_File_{op}_at_all")],
            "the log keeps one record for all ranks: the mean of their times stands for the slowest one's",
        )


def _least_mean(row: Counts) -> float:
    """Bytes a call; of logs that do not say how many bytes were moved the least that bins of sizes leave."""
    moved = row.bytes or sum(least * calls for least, calls in row.sizes)
    return moved / max(row.calls, 1)


def _metadata(run: Run) -> Iterator[Found]:
    """Time of opens, closes, seeks and questions."""
    made = [row for layer in ("POSIX", "STDIO") for op in _ASKING for row in run.by_op[layer, op] if row.outermost]
    number: dict[tuple[str, int, int], int] = defaultdict(int)
    for row in made:
        number[row.layer, row.file, row.rank] += row.calls
    rows = [row for row in made if row.op == "meta" and row.time_s <= _ANSWER_S * number[row.layer, row.file, row.rank]]
    asked: dict[int, int] = defaultdict(int)
    for row in made:
        asked[row.rank] += row.calls * (row.op != "seek")
    calls = sum(row.calls for row in made if row.op != "seek")
    data = sum(
        row.calls for layer in ("POSIX", "STDIO") for op in DATA_OPS for row in run.by_op[layer, op] if row.outermost
    )
    opens = sum(row.calls for row in made if row.op == "open")
    if not rows:
        return
    spent, ranks = run.slowest(rows)
    most = max(number / (run.ranks if rank == SHARED else 1) for rank, number in asked.items()) if asked else 0
    writers: dict[int, set[int]] = defaultdict(set)
    for row in run.by_op["POSIX", "write"]:
        if row.bytes:
            writers[row.file].add(row.rank)
    own = [file for file, who in writers.items() if len(who) == 1 and SHARED not in who]
    busy = {rank for file in own for rank in writers[file]}
    files = by_time(rows)
    mean_s = sum(row.time_s for row in rows) / max(sum(number[row.layer, row.file, row.rank] for row in rows), 1)
    unseen = "the times of opens, closes, seeks and questions are one figure in the log"
    if len(own) >= run.ranks >= 2 and len(busy) >= 0.75 * run.ranks and opens <= 4 * len(run.counted.files):
        yield Found(
            "file-per-process",
            "A file for every rank",
            "POSIX",
            spent,
            f"{len(own):,} files, each written by one rank: making and closing them takes the time",
            "Every rank makes files of its own. The file system makes each of them by itself, and at many ranks "
            "they queue for "
            "its metadata server.",
            files,
            ranks,
            [
                Evidence("files that one rank writes", float(len(own)), "files"),
                Evidence("opens", float(opens), "calls"),
            ],
            [Remedy("source", "write one shared file with MPI-IO, HDF5 or PnetCDF, or one file a node")],
            unseen,
            # No metadata server is asked, and writes to one file may wait for each other (metadata.py).
            low=0.0 if mean_s <= ANSWERED_S else None,
        )
    elif most >= MANY and calls >= STEADY * data:
        yield Found(
            "metadata-storm",
            "Opening and asking about files, over and over",
            "POSIX",
            spent,
            f"{calls:,} calls that open or ask about files",
            "The program opens, closes or looks at files over and over. Each call is a question to the file "
            "system's metadata "
            "server, which all jobs share.",
            files,
            ranks,
            [
                Evidence("opens and questions", float(calls), "calls"),
                Evidence("of these opens", float(opens), "calls"),
            ],
            [
                Remedy(
                    "source",
                    "open a file once and keep it open; ask on one rank and broadcast; put many small files into one",
                )
            ],
            unseen,
        )


def _stdio(run: Run) -> Iterator[Found]:
    for op in DATA_OPS:
        # Larger calls go past the stream's buffer (stdio_data.py).
        rows = [row for row in run.by_op["STDIO", op] if STRIPE <= row.bytes < SMALL * row.calls]
        total = sum(row.bytes for row in rows)
        everything = sum(row.bytes for layer in ("POSIX", "STDIO") for row in run.by_op[layer, op])
        if not rows or total < 0.1 * everything:
            continue
        spent, ranks = run.slowest(rows)
        yield Found(
            "stdio-data",
            "Data through FILE streams",
            "STDIO",
            spent,
            f"{size(total)} {'written' if op == 'write' else 'read'} through FILE streams (fwrite, fread, fprintf)",
            "The C library copies every byte through a small buffer, and its requests are as small as that.",
            by_time(rows),
            ranks,
            [
                Evidence("bytes through streams", float(total), "B"),
                Evidence("calls", float(sum(row.calls for row in rows)), "calls"),
            ],
            [
                Remedy(
                    "source", "use write and read with buffers of 1 MiB or more, or MPI-IO; at least setvbuf with 1 MiB"
                )
            ],
            "the requests that the C library makes of the calls are not in the log",
        )


def _one_rank(run: Run) -> Iterator[Found]:
    """One rank moves nearly all, or the rank that took longest much more than the mean."""
    if run.ranks < 2:
        return
    for op in DATA_OPS:
        # As the program asked for: that one rank makes the POSIX calls of collective ones is the MPI library's choice.
        rows = [
            row
            for (_, made), each in run.by_op.items()
            if made == op
            for row in each
            if row.outermost and row.bytes > 0
        ]
        moved: dict[int, int] = defaultdict(int)
        spent: dict[int, float] = defaultdict(float)
        for row in rows:
            moved[row.rank] += row.bytes
            spent[row.rank] += row.time_s
        total = sum(moved.values())
        single = {rank: amount for rank, amount in moved.items() if rank >= 0}
        if total < STRIPE or not single:
            continue
        most = max(single, key=lambda rank: single[rank])
        files = by_time([row for row in rows if row.rank == most])
        layer = max((row for row in rows if row.rank == most), key=lambda row: row.bytes).layer
        unseen = "how long the other ranks waited is not in the log"
        if single[most] >= 0.9 * total:
            yield Found(
                "rank0-io",
                "One rank does all I/O",
                layer,
                spent[most],
                f"rank {most} {op}s everything ({size(single[most])}) while {run.ranks - 1} others have nothing "
                "to do with the files"
                if single[most] == total
                else f"rank {most} {op}s {size(single[most])} of {size(total)}, and {run.ranks - 1} others the rest",
                "One rank does the I/O of all: the others send it their data, or wait for it, and its single "
                "stream is all that "
                "the storage gets.",
                files,
                [most],
                [Evidence(f"share of the bytes that rank {most} {op}s", 100 * single[most] / total, "%")],
                [
                    Remedy(
                        "source", f"let every rank {op} its own part: MPI_File_{op}_at_all, or parallel HDF5 or PnetCDF"
                    )
                ],
                unseen,
                high=spent[most] * (1 - 1 / run.ranks),
            )
            continue
        worst = max(single, key=lambda rank: spent[rank])
        mean = total / run.ranks
        lost = spent[worst] - sum(spent.values()) / run.ranks
        if SHARED not in moved and single[worst] >= 1.5 * mean:
            heavy = [rank for rank, amount in single.items() if amount >= 1.5 * mean]
            yield Found(
                "unbalanced-bytes",
                "Uneven shares",
                max((row for row in rows if row.rank == worst), key=lambda row: row.bytes).layer,
                lost,
                f"rank {worst} {op}s {size(single[worst])}, {single[worst] / mean:.1f} times the mean of all ranks",
                "The data is divided unevenly, so that the ranks with most of it finish last.",
                files,
                sorted(heavy),
                [
                    Evidence("most bytes of a rank, above the mean", single[worst] / mean, "times"),
                    Evidence(f"time of that rank in {op}s", spent[worst], "s"),
                ],
                [Remedy("source", "divide the data evenly, or use collective calls, which share the work out again")],
                unseen,
            )


_RULES: Final[tuple[Callable[[Run], Iterator[Found]], ...]] = (
    _slow_target,
    _small,
    _random,
    _misaligned,
    _independent,
    _metadata,
    _stdio,
    _one_rank,
)
