"""What `compare` says of two runs, with the figures of both written out."""

from __future__ import annotations

import io
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from ioweir.errors import EXIT_DIFFERENT, IoweirError
from ioweir.findings.model import Finding, Gain
from ioweir.report import Report, build, compare, compare_words, noise, report_text, to_dict
from ioweir.report.model import Moved
from ioweir.trace import Note
from test_report_oracle import builders
from traces import Builder, Call, printed


def run(write_s: float, moved: int = 100, ranks: int = 2, program: str = "solver", **more: object) -> Report:
    """Every rank spends write_s in one MPI-IO write; rank 0 alone touches storage, for half of that time."""
    builder = Builder()
    for rank in range(ranks):
        process = builder.rank(rank, ranks)
        write = Call(process, "MPI_File_write_at_all", 1, 1 + write_s, "/d/f", moved)
        builder.add(write)
        if rank == 0:
            builder.add(write.inside("pwrite", 1, 1 + write_s / 2, ranks * moved))
    builder.notes.append(Note(0, "passed_through", "/d/f", 1, "atomic mode"))
    settings: dict[str, object] = {"program": program, "wall_s": 10 * write_s, **more}
    return build(builder.trace(run=settings))


def sentences(result: compare.Comparison) -> dict[str, str]:
    return {change.what: change.sentence for change in result.changes}


def test_sentences_say_what_changed() -> None:
    said = sentences(compare.compare(run(1.86), run(0.9)))
    assert said["MPI-IO write time"] == "MPI-IO write time 3.72 s -> 1.80 s: 2.1x faster"
    assert said["wall time"] == "wall time 18.60 s -> 9.00 s: 2.1x faster"
    assert said["I/O time of an average rank"] == "I/O time of an average rank 1.86 s -> 900 ms: 2.1x faster"
    assert said["POSIX write calls"] == "POSIX write calls 1 -> 1: unchanged"
    assert said["MPI-IO write bytes"] == "MPI-IO write bytes 200 B -> 200 B: unchanged"
    assert said["ranks that write to storage"] == "ranks that write to storage 1 -> 1: unchanged"
    assert "POSIX read time" not in said


def test_ratios_are_exact() -> None:
    changes = {change.what: change for change in compare.compare(run(4), run(1)).changes}
    assert changes["MPI-IO write time"].ratio == 4.0
    assert changes["MPI-IO write perceived bandwidth"].ratio == pytest.approx(4.0)
    assert changes["MPI-IO write perceived bandwidth"].before == pytest.approx(2 * 200 / 8)
    assert changes["POSIX write perceived bandwidth (upper bound)"].after == pytest.approx(2 * 200 / 0.5)


def test_other_arguments_are_said() -> None:
    def warnings(before: list[str], after: list[str]) -> list[str]:
        return compare.compare(run(1, command=before), run(1, command=after)).warnings

    mpirun = ["mpirun", "-n", "2", "solver"]
    assert warnings([*mpirun, "small.in"], [*mpirun, "large.in"]) == ["different arguments: small.in and large.in"]
    assert warnings(mpirun, [*mpirun, "--fast"]) == ["different arguments: none and --fast"]
    assert warnings([*mpirun, "x" * 99], mpirun) == [f"different arguments: {'x' * 57}... and none"]
    assert warnings(mpirun, ["mpirun", "solver", "-n", "2"]) == []


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (1.0, 2.0, "2x slower"),
        (2.0, 1.0, "2x faster"),
        (1.0, 1.01, "about the same"),
        (1.0, 1.0, "unchanged"),
        (1.0, 1.06, "1.06x slower"),
        (300.0, 1.0, "300x faster"),
    ],
)
def test_words_for_times(before: float, after: float, words: str) -> None:
    said = sentences(compare.compare(run(before), run(after)))
    assert said["MPI-IO write time"].endswith(f": {words}")


def test_different_programs_are_refused_unless_forced() -> None:
    with pytest.raises(IoweirError, match="'solver' in trace, 'other' in trace") as caught:
        compare.compare(run(1), run(1, program="other"))
    assert caught.value.exit_code == EXIT_DIFFERENT
    forced = compare.compare(run(1), run(1, program="other"), force=True)
    assert "different programs" in forced.warnings[0]


def test_what_makes_a_comparison_unfair_is_said() -> None:
    assert compare.compare(run(1), run(2)).warnings == []
    warnings = "\n".join(compare.compare(run(1), run(1, moved=50, ranks=3, exit_code=1)).warnings)
    assert "different numbers of ranks: 2 and 3" in warnings
    assert "did not write the same amount: 200 and 150 bytes" in warnings
    assert "the second run returned 1" in warnings


def test_partial_traces_are_refused_unless_forced() -> None:
    killed = run(1, signal=9)
    why = "the {} trace is partial: the command was ended by signal 9 (SIGKILL)"
    with pytest.raises(IoweirError) as caught:
        compare.compare(run(1), killed)
    assert caught.value.exit_code == EXIT_DIFFERENT
    assert str(caught.value).startswith(why.format("second"))
    assert "--force" in str(caught.value)
    with pytest.raises(IoweirError, match=r"the first trace .* And the second trace"):
        compare.compare(killed, killed)
    assert compare.compare(killed, run(1), force=True).warnings == [why.format("first")]
    out = io.StringIO()
    compare_words.write(compare.compare(run(1), killed, force=True), out)
    assert f"Warning: {why.format('second')}" in out.getvalue()


@pytest.mark.parametrize("lost", [{"dropped": 3}, {"disabled_processes": 1}, {"damage": ("node: byte 7 is no chunk",)}])
def test_lost_and_damaged_events_make_a_trace_partial(lost: dict[str, Any]) -> None:
    builder = Builder()
    builder.add(Call(builder.rank(0, 1), "pwrite", 1, 2, "/d/f", 5))
    with pytest.raises(IoweirError, match="is partial"):
        compare.compare(build(builder.trace()), build(builder.trace(**lost)))


def test_layers_that_only_one_run_recorded_are_left_out() -> None:
    fewer = run(1, tracing={"layers": ["MPI-IO", "STDIO"]})
    result = compare.compare(run(1), fewer)
    said = sentences(result)
    assert "MPI-IO write time" in said
    assert not [what for what in said if what.startswith("POSIX") or "storage" in what]
    assert any(
        "the second run recorded no calls of POSIX, HDF5, PnetCDF, netCDF, MPI (--layers)" in line
        for line in result.warnings
    )
    assert not [line for line in compare.compare(fewer, fewer).warnings if "same amount" in line]


@settings(max_examples=60, deadline=None)
@given(first=builders(), second=builders())
def test_no_lower_bound_is_above_its_upper_bound(first: Builder, second: Builder) -> None:
    for builder in (first, second):
        result = printed(builder.trace())
        for layers in (result["layers"], *(row["layers"] for row in result["files"])):
            for op in ("write", "read"):
                lower, upper = layers["POSIX"][op]["perceived_bytes_per_s"]
                assert lower is None or upper is None or lower <= upper
    changes = {c.what: c for c in compare.compare(build(first.trace()), build(second.trace())).changes}
    for what, low in changes.items():
        if "(lower bound)" not in what:
            continue
        high = changes.get(what.replace("lower", "upper"))
        for below, above in ((low.before, high.before), (low.after, high.after)) if high is not None else ():
            assert below is None or above is None or below <= above


def test_the_lower_bound_of_slow_posix_calls_is_left_out() -> None:
    """100 B through MPI-IO in 1 s; the program's own POSIX writes are a hundred times slower."""
    builder = Builder()
    rank = builder.rank(0, 1)
    outer = Call(rank, "MPI_File_write_at", 1, 2, "/d/f", 100)
    builder.add(outer, outer.inside("pwrite", 1, 2, 100), Call(rank, "pwrite", 3, 13, "/d/g", 10))
    assert printed(builder.trace())["layers"]["POSIX"]["write"]["perceived_bytes_per_s"] == [None, pytest.approx(10)]
    said = sentences(compare.compare(build(builder.trace()), build(builder.trace())))
    assert [what for what in said if "POSIX write perceived" in what] == [
        "POSIX write perceived bandwidth (upper bound)"
    ]


def test_a_verified_run_is_compared_with_a_warning() -> None:
    builder = Builder()
    rank = builder.rank(0, 1)
    close = Call(rank, "MPI_File_close", 1, 5, "/d/f")
    builder.add(close, close.inside("pread", 2, 4, 2048, origin="engine"))
    verified = build(builder.trace(run={"verify": True}))
    warning = next(w for w in compare.compare(run(1), verified).warnings if "verified" in w)
    assert "the second run verified what it wrote: its close calls read 2.00 KiB back" in warning
    assert "POSIX read time" not in sentences(compare.compare(verified, verified))
    # Without a verification it is what the engine reads for other ends: indexes of containers.
    plain = build(builder.trace(run={"plan": "p.toml"}))
    assert not [w for w in compare.compare(run(1), plain).warnings if "verified" in w]
    assert plain.verification == Moved(calls=0, bytes=0, time_s=0.0)
    assert plain.layers["POSIX"]["read"].time_s == 2
    text = io.StringIO()
    report_text.write(plain, text)
    assert "verification" not in text.getvalue()


def test_a_layer_that_appears_or_goes() -> None:
    builder = Builder()
    rank = builder.rank(0, 1)
    builder.add(Call(rank, "pread", 0, 1, "f", 5))
    reading = build(builder.trace())
    nothing = build(Builder().trace())
    nothing.partial = False
    assert sentences(compare.compare(nothing, reading))["POSIX read time"] == "POSIX read time 0 s -> 1.00 s: new"
    assert sentences(compare.compare(reading, nothing))["POSIX read bytes"] == "POSIX read bytes 5 B -> 0 B: gone"


def text_of(result: compare.Comparison) -> list[str]:
    out = io.StringIO()
    compare_words.write(result, out)
    return out.getvalue().splitlines()


def test_the_text_has_both_runs_and_the_caution() -> None:
    result = compare.compare(run(1.86, command=["mpirun", "solver"]), run(0.9, plan="p.toml"))
    lines = text_of(result)
    assert lines[0] == (
        "The plan of the second run did nothing: it moved nothing: atomic mode (1 call, /d/f). No difference below is "
        "its doing."
    )
    assert not result.credited
    assert lines[1] == (
        "wall time 18.60 s -> 9.00 s: 2.1x faster in this pair; no difference shown: one run a side allows no interval"
    )
    assert lines[2] == "I/O time of an average rank 1.86 s -> 900 ms: 2.1x faster"
    assert lines[3] == ("MPI-IO write time (sum over ranks) 3.72 s -> 1.80 s: 2.1x faster; calls 2 -> 2: unchanged")
    first, second = (next(line for line in lines if line.startswith(f"{name} run:")) for name in ("First", "Second"))
    assert first == "First run: no plan; passed through: atomic mode (/d/f, 1 call); rank 0 wrote to storage"
    assert second.startswith("Second run: plan p.toml; passed through: atomic mode (/d/f, 1 call)")
    assert lines[-1].startswith("One pair of runs is not a statistic")
    assert to_dict(result)["caution"] == lines[-1]


# ------------------------------------------------------------------------------------------------- several runs a side


def test_one_run_a_side_allows_no_interval() -> None:
    time = to_dict(compare.compare(run(4), run(1)))["time"]
    assert (time["ratio"], time["low"], time["high"], time["verdict"]) == (4.0, None, None, "no difference shown")


def test_several_runs_a_side_that_differ() -> None:
    old, new = [run(s) for s in (2.0, 2.02, 1.98, 2.04)], [run(s) for s in (1.0, 1.01, 0.99, 1.02)]
    result = compare.compare(old, new)
    time = to_dict(result)["time"]
    assert time["ratio"] == pytest.approx(2.01 / 1.005)
    assert time["verdict"] == "faster"
    assert 1.9 < time["low"] < time["ratio"] < time["high"] < 2.1
    back = compare.compare(new, old).time
    assert back.verdict == "slower"
    assert back.ratio == pytest.approx(1 / time["ratio"])
    assert [back.low, back.high] == pytest.approx([1 / time["high"], 1 / time["low"]], rel=0.01)
    lines = text_of(result)
    assert lines[1].startswith("wall time 20.10 s -> 10.05 s: 2x faster, and not by a plan") is False
    assert any(line.startswith("wall time 20.10 s -> 10.05 s: 2x faster (95 % interval") for line in lines)
    assert any("medians of 4 and 4 runs, which vary by 1.3 %" in line for line in lines)
    assert not result.caution
    written = next(change for change in result.changes if change.what == "MPI-IO write time")
    assert [written.before, written.after] == pytest.approx([4.02, 2.01])
    assert written.low is not None
    assert 1.9 < written.low < 2


def test_several_runs_a_side_that_do_not() -> None:
    result = compare.compare([run(s) for s in (1.0, 1.3, 0.9)], [run(s) for s in (1.1, 0.95, 1.2)])
    assert result.time.verdict == "no difference shown"
    assert any("wall time 10.00 s -> 11.00 s: no difference shown (95 % interval" in line for line in text_of(result))


def test_the_noise_of_the_runs() -> None:
    """ln 1.1 apart: one side's variance (ln 1.1)^2 / 2, of both sides the same."""
    found = noise.difference([1.0, 1.1], [2.0, 2.2])
    assert found.noise == pytest.approx(math.exp(math.log(1.1) / math.sqrt(2)) - 1)


@pytest.mark.parametrize("runs", [3, 5])
def test_runs_of_one_kind_seldom_differ(runs: int) -> None:
    """What noise alone shows, drawn here: at most 5 of 100 verdicts, and 2 standard errors of 200 draws more."""
    draw = np.random.default_rng(7)
    alarms = 0
    for _ in range(200):
        times = np.exp(draw.normal(0, 0.1, 2 * runs)).tolist()
        alarms += noise.difference(times[:runs], times[runs:]).verdict != noise.NOT_SHOWN
    assert alarms <= 200 * 0.05 + 2 * math.sqrt(200 * 0.05 * 0.95)


def test_a_true_difference_is_shown_and_lies_in_its_interval() -> None:
    draw = np.random.default_rng(8)
    shown = held = 0
    for _ in range(100):
        old, new = np.exp(draw.normal(0, 0.05, (2, 5)))
        found = noise.difference((1.5 * old).tolist(), new.tolist())
        shown += found.verdict == noise.FASTER
        held += found.low is not None and found.high is not None and found.low <= 1.5 <= found.high
    assert shown >= 95
    assert held >= 93


def test_the_text_is_short_and_in_order_of_seconds() -> None:
    """Every layer and operation changes, with 40 files and warnings of every kind."""
    sides = []
    for factor in (1.0, 3.0):
        builder = Builder()
        rank = builder.rank(0, 1)
        names = (
            "open",
            "fsync",
            "pread",
            "pwrite",
            "lseek",
            "fopen",
            "fwrite",
            "fread",
            "MPI_File_open",
            "MPI_File_sync",
        )
        for at, name in enumerate(names):
            builder.add(Call(rank, name, 10 * at, 10 * at + factor * (at + 1) / 4, f"/d/{at}", 10))
        sides.append(build(builder.trace(run={"exit_code": int(factor) - 1, "program": f"p{factor}"})))
    lines = text_of(compare.compare(sides[0], sides[1], force=True))
    assert len(lines) <= compare_words.MOST_LINES
    order = [line.split(" time ")[0] for line in lines if "slower; calls" in line]
    assert order[:3] == ["MPI-IO sync", "MPI-IO open", "STDIO read"]


def test_calls_that_came_and_went_and_what_all_runs_have() -> None:
    sides = []
    for locks, reads in ((20, 0), (0, 3)):
        builder = Builder()
        rank = builder.rank(0, 1)
        builder.add(Call(rank, "pwrite", 1, 2, "/d/f", failed=True))
        builder.add(*(Call(rank, "fcntl_lock", 3 + at, 3.5 + at, "/d/f") for at in range(locks)))
        builder.add(*(Call(rank, "pread", 3 + at, 3.5 + at, "/d/f", 5) for at in range(reads)))
        sides.append(build(builder.trace()))
    lines = text_of(compare.compare(sides[0], sides[1]))
    assert lines[0].startswith("Both runs: FAILED CALLS: 1 of 1 POSIX writes")
    assert "Calls gone: POSIX lock (20)" in lines
    assert "Calls new: POSIX read (3)" in lines


def test_microseconds_are_no_factors() -> None:
    said = sentences(compare.compare(run(1.0), run(2.3e-5)))
    assert said["MPI-IO write time"].endswith(": over 1,000x faster")
    said = sentences(compare.compare(run(4e-4), run(1e-5)))
    assert said["MPI-IO write time"].endswith(": too short to compare")


def test_findings_come_and_go() -> None:
    def found(*codes: str) -> Report:
        report = run(1)
        report.findings = [
            Finding(code, "high", "POSIX", [], [], 2.0, Gain(0, 1), "", "", [], [], [], title=code) for code in codes
        ]
        return report

    changes = compare.compare([found("a", "b"), found("a"), found("a", "b")], [found("b"), found("c", "b"), found("c")])
    rows = {
        name: [(row.code, row.before_runs, row.after_runs) for row in rows]
        for name, rows in vars(changes.findings).items()
    }
    assert rows == {"gone": [("a", 3, 0)], "new": [("c", 0, 2)], "stayed": [("b", 2, 2)]}
    lines = text_of(changes)
    assert "Findings gone: a (2.00 s)" in lines
    assert "Findings new: c (2.00 s)" in lines


def test_what_another_finding_explains_on_one_side_has_neither_come_nor_gone() -> None:
    """lock-wait is in sieving's chain before and leads afterwards; sieving of writes and of reads is one row."""

    def found(*rows: tuple[str, float, list[str]]) -> Report:
        report = run(1)
        report.findings = [
            Finding(code, "high", "POSIX", [], [], cost, Gain(0, 1), "", "", [], [], [], chain, code)
            for code, cost, chain in rows
        ]
        return report

    before = found(("sieving", 0.4, ["lock-wait"]), ("sieving", 0.2, []))
    changes = compare.compare(before, found(("lock-wait", 0.3, ["slow"]))).findings
    (gone,), (stayed,) = changes.gone, changes.stayed
    assert gone.code == "sieving"
    assert (gone.before_s, gone.after_s) == pytest.approx((0.6, 0.0))
    assert (stayed.code, stayed.before_s, stayed.after_s) == ("lock-wait", 0.4, 0.3)
    assert changes.new == []


def test_runs_of_one_side_after_the_other_are_warned_about() -> None:
    first, second = ([run(1, started=start + at) for at in (0, 2)] for start in (0.0, 5.0))
    assert any("before all of the other" in one for one in compare.compare(first, second).warnings)
    mixed = compare.compare([first[0], second[1]], [first[1], second[0]])
    assert not any("before all of the other" in one for one in mixed.warnings)


def test_the_command_line(tmp_path: Path) -> None:
    folders = []
    for name, factor in (("a1", 2.0), ("a2", 2.1), ("b1", 1.0), ("b2", 1.05)):
        builder = Builder()
        rank = builder.rank(0, 1)
        builder.add(Call(rank, "pwrite", 1, 1 + factor, "/d/f", 5))
        folder = tmp_path / name
        folder.mkdir()
        builder.write(folder)
        run = {"wall_s": 10 * factor, "program": "p", "command": ["p"], "exit_code": 0, "state": "ended"}
        (folder / "run.json").write_text(json.dumps(run))
        folders.append(str(folder))
    command = [sys.executable, "-m", "ioweir", "compare"]

    def ask(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*command, *words], capture_output=True, text=True, check=False)

    both = json.loads(ask(*folders[:2], "--to", *folders[2:], "--json").stdout)
    assert both["time"]["verdict"] == "faster"
    assert (both["time"]["before"], both["time"]["after"]) == ([20.0, 21.0], [10.0, 10.5])
    assert [one["trace"] for one in both["after_runs"]] == folders[2:]
    # Words behind the next option are of the first side again.
    assert json.loads(ask("--json", "--to", *folders[2:], "--force", *folders[:2]).stdout) == both
    pair = json.loads(ask(folders[0], folders[2], "--json").stdout)
    assert (pair["time"]["ratio"], pair["time"]["low"]) == (2.0, None)
    wrong = ask(*folders[:3])
    assert wrong.returncode == 2
    assert "compare needs two sides" in wrong.stderr
    assert ask(folders[0], "--to").returncode == 2
