"""Searches that are kept, interrupted, asked for too much, or made of traces that say too little."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ioweir.errors import IoweirError
from ioweir.loop import env_tune, measure, run_tune, turns
from ioweir.loop.turns import AS_IT_IS
from ioweir.predict import tune
from ioweir.replay import from_trace
from ioweir.replay import run as replay_run
from ioweir.trace import reader
from traces import Builder, Call
from ways import UNTOUCHED, way


def trace_of(folder: Path, *, later_s: float = 0.0, ranks: tuple[int, ...] = (1,)) -> Path:
    """Each program writes a file through MPI-IO."""
    made = Builder()
    for number, size in enumerate(ranks):
        for rank in range(size):
            image = made.rank(rank, size, start_s=10.0 * number)
            at = 11 + 10 * number
            path = f"{folder.parent}/a{number}.dat"
            made.add(Call(image, "MPI_File_open", at, at + 0.1, path, offset=5))
            write = Call(image, "MPI_File_write_at", at + 1, at + 2 + later_s, path, 1000, offset=0)
            made.add(write, write.inside("pwrite", at + 1, at + 2, 1000, offset=0))
            made.add(Call(image, "MPI_File_close", at + 5, at + 5.1, path))
    return made.save(folder)


@pytest.mark.parametrize(
    "times",
    [
        '"12"',
        "[1e-320]",
        "[0]",
        "[1.0, true, -1]",
        "[NaN]",
        "[1e400]",
        f"[{'1,' * 5000}1]",
        '{"1": 2}',
        "[[1]]",
        "null",
    ],
)
def test_times_that_no_replay_took_are_not_believed(tmp_path: Path, times: str) -> None:
    """Tiny ones had made any plan a million times as fast; very many would take all memory to compare."""
    both = f'{{"{AS_IT_IS}": {times}}}'
    (tmp_path / ".plan.toml.measured.json").write_text(f'{{"key": "key", "seconds": {both}, "in_calls": {both}}}')
    ways = [way(AS_IT_IS)]
    assert turns.State(tmp_path / "plan.toml", "key").load(ways) == 0
    assert ways[0].seconds == []


def test_times_of_another_run_in_the_same_directory_are_not_gone_on_with(tmp_path: Path) -> None:
    first = from_trace.read(trace_of(tmp_path / "trace"))
    (tmp_path / "trace").rename(tmp_path / "aside")
    second = from_trace.read(trace_of(tmp_path / "trace", later_s=0.001))
    again = from_trace.read(tmp_path / "trace")
    asked = tune.Options(tmp_path / "plan.toml", "gigabit12", tmp_path / "trace")
    how = replay_run.Options(tmp_path / "trace", tmp_path)
    keys = [turns.key(asked, how, [UNTOUCHED], one) for one in (first, second, again)]
    assert keys[0] != keys[1] == keys[2]


def test_a_long_name_of_a_plan_has_a_state(tmp_path: Path) -> None:
    output = tmp_path / ("p" * 250)
    ways = [way(AS_IT_IS, 1.0)]
    ways[0].in_calls = [1.0]
    turns.State(output, "key").save(ways)
    assert turns.State(output, "key").load(ways) == 1


@dataclass
class _Quick:
    """Replays that take next to no time."""

    launches: list[int] = field(default_factory=list)
    names: int = 0

    def new_name(self) -> str:
        self.names += 1
        return f"files-{self.names}"

    def room_for_turns(self) -> int:
        return 1 << 30

    def run_turns(self, _how: Any, asked: Any, told: Any) -> None:
        self.launches.append(len(asked))
        for _ in asked:
            told({"seconds": 1e-4, "io_s": 1e-4, "failed": 0, "first_failure": ""})


def test_a_launch_does_not_outgrow_the_command_line(tmp_path: Path) -> None:
    ways = [way(AS_IT_IS), way("same")]
    quick: Any = _Quick()
    state = turns.State(tmp_path / "plan.toml", "key")
    how = replay_run.Options(tmp_path, tmp_path)
    measuring = turns.Measuring(ways, how, quick, state, rounds=700, budget_s=None, expected_s=1e-4)
    turns_of = measuring._next
    assert len(turns_of()) == 2
    for one in ways:
        one.seconds = [1e-4]
    assert len(turns_of()) == turns._MOST_TURNS - 1  # and one that does not count


def test_a_plan_without_anything_to_compare_it_with_is_not_judged() -> None:
    lost = way("a", 1.0, 1.1)
    lost.out = "the replay was ended by signal 11"
    best, reasons = measure.judged([way(AS_IT_IS), lost])
    assert best is None
    assert reasons[0] == "measured: a: not at all (the replay was ended by signal 11)"
    assert measure._carriers([way(AS_IT_IS), lost], 1) == [None]


def test_without_plans_to_replay_no_budget_is_too_short(tmp_path: Path) -> None:
    ways = [way(AS_IT_IS)]
    quick: Any = _Quick()
    how, state = replay_run.Options(tmp_path, tmp_path), turns.State(tmp_path / "plan.toml", "key")
    turns.Measuring(ways, how, quick, state, rounds=None, budget_s=60.0, expected_s=1.0).run()
    assert quick.launches == []
    measure.require_compared(ways, 60.0)
    assert measure.judged(ways)[1] == ["no plan was shown to be faster than the program as it is"]


def test_files_whose_names_a_replay_cannot_have_are_not_measured() -> None:
    def part(pattern: str) -> Any:
        row = {
            "strategy": "everyone",
            "candidate": way("x").rules[0][1],
            "predicted": {"ratio": 2.0},
            "other_form": False,
        }
        return SimpleNamespace(kind=SimpleNamespace(pattern=pattern), good=[row])

    found: Any = SimpleNamespace(parts=[part("a*.dat"), part("b\nc*.dat"), part("file-*.dat"), part("d*.dat")])
    recorded: Any = SimpleNamespace(
        paths=["/s/a1.dat", "/s/b\nc2.dat", "/s/file-3.dat", "/s/d\udcff4.dat"],
        names=["a1.dat", "file-1.dat", "file-2.dat", "file-3.dat"],
    )
    assert measure.hidden_kinds(found, recorded) == {"b\nc*.dat", "d*.dat"}


def test_a_batch_job_of_two_programs_gets_its_plan_all_the_same(tmp_path: Path) -> None:
    """No replay can be made of such a trace, and none is needed to simulate it."""
    trace = trace_of(tmp_path / "trace", ranks=(1, 2))
    with pytest.raises(IoweirError, match="MPI programs of 1, 2 ranks"):
        from_trace.read(trace)
    assert measure.storage_if_known(trace) is None
    assert measure.storage_if_known(trace_of(tmp_path / "other")) == tmp_path
    asked: list[tune.Options] = []

    def remembered(options: tune.Options) -> dict[str, Any]:
        asked.append(options)
        return {}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tune, "tune", remembered)
        env_tune._planned(trace, tmp_path / "plan.toml", None)
        (tmp_path / "before").symlink_to(trace)
        run_tune._planned(tmp_path, run_tune.Options())
    assert [options.storage for options in asked] == [None, None]


def test_what_is_lacking_in_a_trace_is_not_taken_for_a_gain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("before", "after"):
        trace_of(tmp_path / name)
    expected = {"ratio": 1.0, "ratio_low": 0.5, "ratio_high": 2.0}
    assert any("verdict: " in line for line in run_tune.verdict(tmp_path, expected, "predicted"))
    whole = reader.read

    def lossy(folder: Path) -> reader.Trace:
        trace = whole(folder)
        return trace if folder.name == "before" else replace(trace, dropped=7)

    monkeypatch.setattr(reader, "read", lossy)
    with pytest.raises(IoweirError, match=r"after is partial: 7 events were dropped"):
        run_tune.verdict(tmp_path, expected, "predicted")


def test_the_time_of_a_run_under_another_plan_says_nothing_of_the_gain() -> None:
    before, after = way(AS_IT_IS, 1.0, 1.02, 0.98), way("a", 0.5, 0.51, 0.49)
    before.in_calls = list(before.seconds)
    known = measure.gain_of(before, after, 0.1)
    unknown = measure.gain_of(before, after, None)
    assert known.low is not None
    assert unknown.low is not None
    assert known.low < 0.5
    assert 1.8 < unknown.low <= unknown.ratio
    assert "was recorded under one, so that its own time says nothing" in unknown.text()
