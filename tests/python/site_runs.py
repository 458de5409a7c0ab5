"""Runs of a site for the tests of `ioweir site`: generated rows, small traces, and the summary by plain Python."""

from __future__ import annotations

import datetime
import json
import random
from collections import defaultdict
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from ioweir.site import engines, summary
from ioweir.site.rows import Collected, FindingRow, RunRow
from ioweir.site.store import Store
from traces import Builder, Call

RUNS = 10_000
DAY_S = 86_400.0
FIRST = datetime.datetime(2026, 9, 7, tzinfo=datetime.timezone.utc).timestamp()  # a Monday
CODES = ("small-requests", "sync-cost", "rank0-io", "lock-wait")


def generated(number: int, chance: random.Random) -> Collected:
    """One run of a dozen programs, with up to three findings."""
    started = FIRST + chance.random() * 70 * DAY_S
    wall_s = chance.uniform(60, 7200)
    run_row = RunRow(
        run=f"{number:08x}", started=started, program=f"code{chance.randrange(12)}", user=f"user{chance.randrange(40)}",
        source="ioweir", mpi="Open MPI", ranks=64, nodes=chance.choice((1, 4, 64)), wall_s=wall_s,
        io_s=wall_s * chance.random() / 2, waiting_s=0.0, read_bytes=chance.randrange(1 << 40),
        written_bytes=chance.randrange(1 << 40), events=1000, partial=False, exit_code=chance.choice((0, 0, 1, None)),
    )  # fmt: skip
    findings = []
    for code in chance.sample(CODES, chance.randrange(4)):
        seconds = run_row.io_s * chance.random()
        findings.append(
            FindingRow(
                run_row.run,
                started,
                run_row.program,
                run_row.nodes,
                code,
                "high",
                "POSIX",
                seconds,
                seconds / 4,
                seconds,
            )
        )
    return Collected(run_row, findings)


def many(count: int, seed: int = 27) -> list[Collected]:
    """Generated ones."""
    chance = random.Random(seed)
    return [generated(number, chance) for number in range(count)]


def traced(folder: Path, name: str, state: str = "ended") -> Path:
    """Two ranks of which one writes in pieces of 64 B."""
    builder = Builder()
    for number in range(2):
        rank = builder.rank(number, 2)
        for at in range(4000):
            builder.add(Call(rank, "pwrite", 1 + at / 500, 1 + (at + 1) / 500, "/data/out", 64, offset=64 * at))
    trace = folder / name
    trace.mkdir(parents=True)
    builder.write(trace)
    about = {"wall_s": 12.0, "program": f"/opt/{name}/bin/enigma", "state": state, "started": FIRST + len(name)}
    (trace / "run.json").write_text(json.dumps(about))
    return trace


def stored(store: Path, table: str) -> list[str]:
    """The runs that the files of a table name, sorted, each as often as it stands there."""
    return sorted(
        key for file in store.glob(f"{table}-*.parquet") for key in pq.read_table(file).column("run").to_pylist()
    )


def summarised(
    store: Path,
    since: str | None = None,
    until: str | None = None,
    user: str | None = None,
    engine: str = engines.ARROW,
    scheduler: str | None = None,
) -> summary.Summary:
    """What `site show` says of a store."""
    choice = summary.chosen(since, until, user)
    with Store.open(store) as opened, engines.make(engine, opened, choice, scheduler) as made:
        return summary.of(made, since, until)


def oracle(runs: list[Collected]) -> summary.Summary:
    """The same by loops over the rows."""
    programs: dict[str, summary.Program] = {}
    codes: dict[str, summary.Code] = {}
    weeks: dict[str, summary.Week] = {}
    users: dict[str, set[str]] = defaultdict(set)
    having: dict[str, set[str]] = defaultdict(set)
    lost: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for one in runs:
        run, nodes = one.run, one.run.nodes / 3600
        program = programs.setdefault(run.program, summary.Program(run.program, 0, 0, 0, 0, 0, 0, "", 0, 0, 0))
        program.runs += 1
        users[run.program].add(run.user)
        program.node_hours += run.wall_s * nodes
        program.io_node_hours += run.io_s * nodes
        program.written_bytes += run.written_bytes
        program.read_bytes += run.read_bytes
        program.gain_low += max((found.gain_low for found in one.findings), default=0.0) * nodes
        program.gain_high += max((found.gain_high for found in one.findings), default=0.0) * nodes
        for found in one.findings:
            lost[run.program][found.code] += found.seconds * nodes
            code = codes.setdefault(found.code, summary.Code(found.code, 0, 0, 0, 0, 0))
            code.runs += 1
            having[found.code].add(run.program)
            code.node_hours += found.seconds * nodes
            code.gain_low += found.gain_low * nodes
            code.gain_high += found.gain_high * nodes
        began = datetime.datetime.fromtimestamp(run.started, datetime.timezone.utc).date()
        monday = str(began - datetime.timedelta(days=began.weekday()))
        week = weeks.setdefault(monday, summary.Week(monday, 0, 0, 0))
        week.runs += 1
        week.node_hours += run.wall_s * nodes
        week.io_node_hours += run.io_s * nodes
    for name, program in programs.items():
        program.users = len(users[name])
        program.worst_node_hours, program.worst = max(
            ((cost, code) for code, cost in lost[name].items()), default=(0.0, "")
        )
    for name, code in codes.items():
        code.programs = len(having[name])
    return summary.Summary(
        summary.SITE_VERSION,
        None,
        None,
        len(runs),
        sum(one.node_hours for one in programs.values()),
        sum(one.io_node_hours for one in programs.values()),
        sorted(programs.values(), key=lambda one: (-one.io_node_hours, one.program)),
        sorted(codes.values(), key=lambda one: (-one.node_hours, one.code)),
        sorted(weeks.values(), key=lambda one: one.monday),
    )


def assert_alike(found: summary.Summary, expected: summary.Summary) -> None:
    """The same rows in the same order: words and whole numbers are equal, fractions but for their last digits."""
    assert found.runs == expected.runs
    assert (found.node_hours, found.io_node_hours) == pytest.approx((expected.node_hours, expected.io_node_hours))
    for some, others in (
        (found.programs, expected.programs), (found.findings, expected.findings), (found.weeks, expected.weeks)
    ):  # fmt: skip
        assert len(some) == len(others)
        for one, other in zip(some, others, strict=True):
            ours, theirs = vars(one), vars(other)
            assert ours.keys() == theirs.keys()
            for name, value in theirs.items():
                assert ours[name] == (pytest.approx(value, rel=1e-9) if isinstance(value, float) else value), name
