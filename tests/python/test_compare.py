"""What `compare` says of two runs, with the figures of both written out."""

from __future__ import annotations

import io
from typing import Any

import pytest
from hypothesis import given, settings
from ioweir.errors import EXIT_DIFFERENT, IoweirError
from ioweir.report import Report, build, compare, report_text, to_dict
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
    compare.write(compare.compare(run(1), killed, force=True), out)
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
        "the second run recorded no calls of POSIX, HDF5, PnetCDF, netCDF (--layers)" in line
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


def test_the_text_has_both_runs_and_the_caution() -> None:
    out = io.StringIO()
    result = compare.compare(run(1.86, command=["mpirun", "solver"]), run(0.9, plan="p.toml"))
    compare.write(result, out)
    lines = out.getvalue().splitlines()
    assert lines[0] == (
        "The plan of the second run did nothing: it moved nothing: atomic mode (1 call, /d/f). No difference below is "
        "its doing."
    )
    assert lines[1] == "wall time 18.60 s -> 9.00 s: 2.1x faster"
    assert "  command: mpirun solver" in lines
    assert "  no plan" in lines
    assert "  plan: p.toml" in lines
    assert "  passed through: atomic mode (/d/f, 1 call)" in lines
    assert "  rank 0 wrote to storage" in lines
    assert lines[-1].startswith("One pair of runs is not a statistic")
    assert to_dict(result)["caution"] == lines[-1]
