"""`ioweir tune --measure` takes what is shown to help, and nothing else; it goes on where it was interrupted."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import runs
from ioweir.base import toml_text
from ioweir.errors import IoweirError
from ioweir.launch import forwarding
from ioweir.loop import measure, run_tune, turns
from ioweir.loop.turns import AS_IT_IS, Way
from ioweir.predict import tune
from ioweir.replay import from_trace
from ioweir.replay import run as replay_run
from ways import UNTOUCHED, rules, way


@dataclass
class _Prepared:
    """In the place of a replay: takes as long as the plan's rules for the turn's folder say."""

    slow: dict[str, float]
    made: list[str] = field(default_factory=list)
    """Ways, in their order."""
    launches: list[int] = field(default_factory=list)
    """How many turns each had."""
    stop_after: int = 1 << 30
    room: int = 1 << 30
    fails: str = ""
    """The way of which calls fail."""
    dies: str = ""
    """The way that ends the ranks."""
    signal_after: int = 1 << 30
    """Replays, until a signal ends the next one."""
    names: int = 0

    def new_name(self) -> str:
        self.names += 1
        return f"files-{self.names - 1}"

    def room_for_turns(self) -> int:
        return self.room

    def run_turns(self, how: Any, asked: Sequence[replay_run.Turn], told: Callable[[dict[str, Any]], None]) -> None:
        plan = how.plan.read_text(encoding="utf-8") if how.plan else ""
        matches = [rule["match"] for rule in toml_text.loads(plan).get("file", [])]
        self.launches.append(len(asked))
        for turn in asked:
            of_turn = {match.rpartition("/")[2] for match in matches if match.startswith(f"{turn.name}/")}
            name = of_turn.pop().removesuffix(".*") if of_turn else " ".join(turn.hints) or AS_IT_IS
            assert not of_turn
            if name == self.dies:
                raise IoweirError("the replay was ended by signal 11")
            if len(self.made) >= self.signal_after:
                raise forwarding.SignalError(signal.SIGTERM, "the replay was ended by signal 15")
            if len(self.made) >= self.stop_after:
                raise KeyboardInterrupt
            self.made.append(name)
            jitter = 1 + 0.01 * (len(self.made) % 3)
            seconds = self.slow[name] * jitter
            told({"seconds": seconds, "io_s": seconds, "failed": int(name == self.fails), "first_failure": "x"})


def measured(
    tmp_path: Path, prepared: _Prepared, ways: list[Way], *, rounds: int | None = None, budget_s: float | None = None,
    expected_s: float = 100.0,
) -> turns.Measuring:  # fmt: skip
    """Replays that are expected to be long have no warm-up."""
    state = turns.State(tmp_path / "plan.toml", "key")
    state.load(ways)
    how = replay_run.Options(tmp_path, tmp_path)
    prepared_as: Any = prepared
    return turns.Measuring(ways, how, prepared_as, state, rounds=rounds, budget_s=budget_s, expected_s=expected_s)


def test_a_person_reads_the_middle_and_the_ends() -> None:
    assert measure._times([0.03, 0.02, 0.05]) == "30 ms (20 ms .. 50 ms, 3 runs)"
    assert measure._times([0.03]) == "30 ms (one run)"
    assert measure._times([]) == "not at all"


def test_ways_take_turns_and_losers_are_not_replayed_again(tmp_path: Path) -> None:
    prepared = _Prepared({AS_IT_IS: 10.0, "good": 4.0, "bad": 11.0, "hopeless": 31.0})
    ways = [way(AS_IT_IS), way("good"), way("bad"), way("hopeless")]
    measured(tmp_path, prepared, ways, rounds=5).run()
    assert sorted(prepared.made[:4]) == sorted(prepared.slow)
    assert sorted(prepared.made[4:7]) == [AS_IT_IS, "bad", "good"]
    assert len(ways[2].seconds) < 5
    assert "slower than" in ways[2].out
    assert "times as long as" in ways[3].out
    assert len(ways[1].seconds) <= 5
    assert measure.judged(ways)[0] is ways[1]


def test_no_more_rounds_than_asked(tmp_path: Path) -> None:
    prepared = _Prepared({AS_IT_IS: 10.0, "same": 10.0})
    ways = [way(AS_IT_IS), way("same")]
    measured(tmp_path, prepared, ways, rounds=3).run()
    assert [len(one.seconds) for one in ways] == [3, 3]
    assert prepared.launches == [2, 2, 2]
    assert measure.judged(ways)[0] is None


def test_short_replays_share_a_launch_and_have_more_rounds(tmp_path: Path) -> None:
    prepared = _Prepared({AS_IT_IS: 0.1, "same": 0.1})
    ways = [way(AS_IT_IS), way("same")]
    measured(tmp_path, prepared, ways, expected_s=0.1).run()
    # A turn of each launch is not counted: what is done once only falls into it.
    assert prepared.launches == [3, 39]
    assert [len(one.seconds) for one in ways] == [20, 20]
    assert prepared.made.count(AS_IT_IS) == 22


def test_a_launch_has_no_more_turns_than_there_is_room_for(tmp_path: Path) -> None:
    prepared = _Prepared({AS_IT_IS: 0.1, "same": 0.1}, room=4)
    ways = [way(AS_IT_IS), way("same")]
    measured(tmp_path, prepared, ways, rounds=5, expected_s=0.1).run()
    assert max(prepared.launches) == 4
    assert [len(one.seconds) for one in ways] == [5, 5]


def test_a_plan_that_ends_the_ranks_is_left_out_and_the_others_go_on(tmp_path: Path) -> None:
    prepared = _Prepared({AS_IT_IS: 1.0, "good": 0.5}, dies="bad")
    ways = [way(AS_IT_IS), way("bad"), way("good")]
    measured(tmp_path, prepared, ways, rounds=4).run()
    assert ways[1].out == "the replay was ended by signal 11"
    assert ways[1].seconds == []
    assert measure.judged(ways)[0] is ways[2]


def test_without_a_plan_it_must_not_fail(tmp_path: Path) -> None:
    prepared = _Prepared({"good": 0.5}, dies=AS_IT_IS)
    with pytest.raises(IoweirError, match=r"the replay without a plan cannot be measured: .* signal 11"):
        measured(tmp_path, prepared, [way(AS_IT_IS), way("good")]).run()


def test_calls_that_fail_are_of_the_way_that_made_them(tmp_path: Path) -> None:
    ways = [way(AS_IT_IS), way("bad"), way("good")]
    prepared = _Prepared({AS_IT_IS: 1.0, "bad": 0.1, "good": 0.5}, fails="bad")
    measured(tmp_path, prepared, ways, rounds=4).run()
    assert [one.out for one in ways] == ["", "1 calls failed, the first: x", ""]
    assert measure.judged(ways)[0] is ways[2]
    (tmp_path / "other").mkdir()
    prepared = _Prepared({AS_IT_IS: 1.0, "good": 0.5}, fails=AS_IT_IS)
    with pytest.raises(IoweirError, match="without a plan cannot be measured: 1 calls failed"):
        measured(tmp_path / "other", prepared, [way(AS_IT_IS), way("good")], expected_s=0.1).run()


def test_a_budget_ends_it(tmp_path: Path) -> None:
    prepared = _Prepared({AS_IT_IS: 1.0, "same": 1.0})
    ways = [way(AS_IT_IS), way("same")]
    measured(tmp_path, prepared, ways, rounds=50, budget_s=0.0).run()
    assert prepared.made == [AS_IT_IS]  # of one replay the cost is not known before
    with pytest.raises(IoweirError, match=r"--budget 2\.00 s is too short: .* \(1 replay, kept: .*Give a larger"):
        measure.require_compared(ways, 2.0)
    assert len(json.loads((tmp_path / ".plan.toml.measured.json").read_text())["seconds"][AS_IT_IS]) == 1


@pytest.mark.parametrize("ways", [[way(AS_IT_IS), way("a", 1.0)], [way(AS_IT_IS, 1.0), way("a"), way("b")]])
def test_a_budget_that_ends_before_two_are_compared_is_too_short(ways: list[Way]) -> None:
    with pytest.raises(IoweirError, match="is too short"):
        measure.require_compared(ways, 2.0)


def test_a_budget_is_long_enough_where_a_plan_was_compared_or_none_is_left() -> None:
    failing = way("fails")
    failing.out = "3 calls failed"
    measure.require_compared([UNTOUCHED, way("a", 1.0), way("b")], 2.0)
    measure.require_compared([UNTOUCHED, failing], 2.0)
    measure.require_compared([UNTOUCHED, way("a")], None)


def test_an_interrupted_measurement_goes_on(tmp_path: Path) -> None:
    slow = {AS_IT_IS: 10.0, "same": 10.0}
    first = [way(AS_IT_IS), way("same")]
    with pytest.raises(IoweirError, match="interrupted after 3 replays, which are kept"):
        measure.with_progress(measured(tmp_path, _Prepared(slow, stop_after=3), first, rounds=3))
    second = [way(AS_IT_IS), way("same")]
    prepared = _Prepared(slow)
    measured(tmp_path, prepared, second, rounds=3).run()
    assert len(prepared.made) == 3
    assert [len(one.seconds) for one in second] == [3, 3]
    assert [one.in_calls for one in second] == [one.seconds for one in second]


def test_a_signal_is_no_failure_of_the_way_that_it_ends(tmp_path: Path) -> None:
    prepared = _Prepared({AS_IT_IS: 10.0, "same": 10.0}, signal_after=3)
    ways = [way(AS_IT_IS), way("same")]
    with pytest.raises(forwarding.SignalError, match="interrupted after 3 replays, which are kept") as caught:
        measure.with_progress(measured(tmp_path, prepared, ways, rounds=3))
    assert caught.value.exit_code == 128 + signal.SIGTERM
    assert [one.out for one in ways] == ["", ""]
    assert prepared.launches == [2, 2]


@pytest.mark.parametrize(
    "text",
    [
        "", "[]", '{"key": "key"}', '{"key": "key", "seconds": {"as it is": ["x"]}}', "[" * 9999,
        f'{{"key": "key", "seconds": {{"as it is": [{10**400}]}}}}',
        '{"key": "key", "seconds": {"as it is": [1.0]}, "in_calls": {"as it is": []}}',
    ],
)  # fmt: skip
def test_a_state_that_makes_no_sense_is_not_used(tmp_path: Path, text: str) -> None:
    (tmp_path / ".plan.toml.measured.json").write_text(text)
    ways = [way(AS_IT_IS)]
    assert turns.State(tmp_path / "plan.toml", "key").load(ways) == 0
    assert ways[0].seconds == []


def test_the_folders_may_have_names_that_are_no_utf8(tmp_path: Path) -> None:
    odd = tmp_path / "\udcff"
    asked = tune.Options(tmp_path / "plan.toml", "gigabit12", odd)
    assert turns.key(asked, replay_run.Options(odd, odd), []) != turns.key(asked, replay_run.Options(odd, tmp_path), [])


def test_a_kernel_without_a_trace_cannot_be_measured(tmp_path: Path) -> None:
    asked = tune.Options(tmp_path / "plan.toml", "gigabit12", kernel="lattice", ranks=2)
    with pytest.raises(IoweirError, match="--measure replays a trace, and --kernel lattice has none"):
        measure.tune_measured(asked, measure.Options())


def test_where_to_replay_is_looked_at_first(tmp_path: Path) -> None:
    """It had been an error of --targets, which nobody had given."""
    asked = tune.Options(tmp_path / "plan.toml", trace=tmp_path / "no trace")
    with pytest.raises(IoweirError, match=r"--directory .*nowhere: there is no such directory"):
        measure.tune_measured(asked, measure.Options(tmp_path / "nowhere"))


def kernel(data: Path) -> list[object]:
    settings = ["data=256 KiB", "transfer=64 KiB", "piece=4 KiB"]
    words = ["--ranks", 2, "--mpi", "mpich", "--api", "independent", "--directory", data]
    return [*runs.IOWEIR, "kernel", "ior-strided", *settings, *words]


def test_a_trace_is_measured_where_its_file_was(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    runs.ioweir("run", "-q", "-o", tmp_path / "trace", "--", *kernel(data))
    words = ("tune", tmp_path / "trace", "-o", tmp_path / "plan.toml", "--measure", "--rounds", 2, "--contenders", 1)
    result = json.loads(runs.ioweir(*words, "--json", "--repeat", 2, "--machine", "gigabit12").stdout)
    found = result["measured"]
    assert found["directory"] == str(data)
    assert found["replays"] == sum(len(row["seconds"]) for row in found["ways"]) >= 2
    assert found["ways"][0]["strategy"] == AS_IT_IS
    assert found["seconds"] > 0
    if "ratio" in found:
        assert found["low"] <= found["ratio"] <= found["high"]
        assert min(found["recorded_in_calls_s"], found["replayed_in_calls_s"]) > 0
    assert (tmp_path / "plan.toml").exists() == (result["output"] is not None)
    if result["output"]:
        assert "MEASURED" in (tmp_path / "plan.toml").read_text()
    assert not (tmp_path / ".plan.toml.measured.json").exists()
    assert list(data.iterdir()) == []


def runners_in(folder: Path) -> list[bytes]:
    """Processes of a replay."""
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = place.read_bytes()
            if b"replay_runner" in words and bytes(folder) in words:
                found.append(words)
    return found


def wait_until(true: Callable[[], object]) -> None:
    until = time.monotonic() + 60
    while not true():
        assert time.monotonic() < until
        time.sleep(0.02)


@pytest.mark.one_of(2)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_replay_and_nothing_is_left(tmp_path: Path, number: signal.Signals) -> None:
    data, temporary = tmp_path / "data", tmp_path / "tmp"
    data.mkdir()
    temporary.mkdir()
    runs.ioweir("run", "-q", "-o", tmp_path / "trace", "--", *kernel(data))
    # The pauses are so long that no replay comes to its end.
    words = ["tune", tmp_path / "trace", "-o", tmp_path / "plan.toml", "--measure", "--machine", "gigabit12"]
    with subprocess.Popen(
        [*runs.IOWEIR, *map(str, words), "--repeat", "2", "--think", "1000"],
        env={**os.environ, **runs.ENVIRONMENT, "TMPDIR": str(temporary)}, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        wait_until(lambda: len(runners_in(data)) > 2 or process.poll() is not None)
        process.send_signal(number)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 128 + number, said
    assert "interrupted after 0 replays" in said
    wait_until(lambda: not runners_in(data))
    assert list(data.iterdir()) == []
    assert list(temporary.iterdir()) == []
    assert not (tmp_path / "plan.toml").exists()


def test_a_child_hears_of_a_signal_that_another_thread_takes() -> None:
    over = threading.Event()
    other = threading.Thread(target=over.wait)  # as those of numerical libraries
    other.start()
    try:
        with forwarding.started(["sh", "-c", "echo ready; exec sleep 60"], os.environ) as child:
            assert child.process.stdout is not None
            assert child.process.stdout.readline() == "ready\n"
            assert other.ident is not None
            signal.pthread_kill(other.ident, signal.SIGINT)
            assert child.process.stdout.read() == ""
    finally:
        over.set()
        other.join()
    assert child.exit_code() == 128 + signal.SIGINT


def test_the_first_signal_ends_work_and_the_next_do_not_disturb_its_end() -> None:
    before = signal.getsignal(signal.SIGTERM)
    steps = []

    def work() -> None:
        with forwarding.ending_in_order():
            try:
                signal.raise_signal(signal.SIGTERM)
            finally:
                signal.raise_signal(signal.SIGINT)
                steps.append("cleaned up")

    with pytest.raises(forwarding.SignalError) as caught:
        work()
    assert steps == ["cleaned up"]
    assert caught.value.exit_code == 128 + signal.SIGTERM
    assert signal.getsignal(signal.SIGTERM) is before


def test_run_tune_runs_twice_or_says_that_nothing_helps(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    done = runs.ioweir("run", "--tune", "-o", tmp_path / "out", "--machine", "gigabit12", "--", *kernel(data))
    assert "verdict: " in done.stderr
    twice = (tmp_path / "out" / "plan.toml").exists()
    assert (tmp_path / "out" / "after").is_dir() is twice
    assert done.stdout.count("ior-strided independent:") == (2 if twice else 1)
    if twice:
        assert "one run a side does not tell a gain from noise" in done.stderr


def test_run_tune_measures_before_the_second_run(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    words = ("run", "--tune", "--measure", "-o", tmp_path / "out", "--machine", "gigabit12", "--", *kernel(data))
    done = runs.ioweir(*words)
    assert "MEASURED by replays" in done.stderr
    twice = (tmp_path / "out" / "plan.toml").exists()
    assert done.stdout.count("ior-strided independent:") == (2 if twice else 1)
    assert ("replays say it is" in done.stderr) is twice
    assert ("nothing was shown to be faster" in done.stderr) is not twice


@pytest.mark.parametrize(("code", "said"), [(0, "no verdict: the second run"), (74, "not all bytes")])
def test_a_verified_run_is_not_compared_with_one_that_was_not(
    code: int, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    codes = iter([0, code])
    found = {"output": "plan.toml", "predicted": {"ratio": 2.0, "ratio_low": 1.0, "ratio_high": 3.0}}
    monkeypatch.setattr(run_tune, "_traced", lambda *_: next(codes))
    monkeypatch.setattr(run_tune, "_planned", lambda *_: {**found, "estimated": []})
    assert run_tune.run_tuned(["true"], run_tune.Options(tmp_path / "out", quiet=True, verify=True)) == code
    told = capfd.readouterr().err
    assert said in told
    assert "verdict: slower" not in told
    assert "Do not use" not in told


def test_the_exit_code_is_the_programs_when_there_is_no_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device", "plan.toml")

    found = {"output": "plan.toml", "predicted": {"ratio": 2.0, "ratio_low": 1.0, "ratio_high": 3.0}}
    monkeypatch.setattr(run_tune, "_traced", lambda *_: 0)
    monkeypatch.setattr(from_trace, "read", lambda _: None)
    monkeypatch.setattr(measure, "storage_of", lambda _: tmp_path)
    for tuned, said in (
        (lambda _: found, "no verdict: "),
        (full, "no plan can be looked for: plan.toml: No space left"),
    ):
        monkeypatch.setattr(tune, "tune", tuned)
        assert run_tune.run_tuned(["true"], run_tune.Options(tmp_path / said[:7], quiet=True)) == 0
        assert said in capfd.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--tune", "--plan", "p.toml"), "--plan does not go with --tune"),
        (("--machine", "gigabit12"), "--machine gigabit12 is for --tune"),
        (("--measure",), "--measure is for --tune"),
    ],
)
def test_options_that_do_not_go_together(words: tuple[str, ...], said: str) -> None:
    assert said in runs.ioweir("run", *words, "--", "true", code=2).stderr


def test_a_program_that_fails_is_not_tuned(tmp_path: Path) -> None:
    done = runs.ioweir("run", "--tune", "-o", tmp_path / "out", "--", "sh", "-c", "exit 7", code=7)
    assert "ended with 7: no plan is looked for" in done.stderr


def hinted(*seconds: float) -> Way:
    return Way("no plan, hints cb_nodes=8", hints=("cb_nodes=8",), seconds=list(seconds))


def test_hints_are_taken_where_no_plan_is_as_fast() -> None:
    plain, clear = way("plain", 0.50, 0.52, 0.51), hinted(0.20, 0.21, 0.20)
    best, reasons = measure.judged([UNTOUCHED, plain, clear])
    assert best is clear
    assert reasons[-1].startswith("hints are no keys of a plan")
    # A plan is applied by one command; hints are for the user to set.
    best, reasons = measure.judged([UNTOUCHED, plain, hinted(0.45, 0.6, 0.3)])
    assert best is plain
    assert "is for the user to set, and was not shown to be faster than plain" in reasons[-2]
    assert measure.judged([UNTOUCHED, hinted(1.5, 1.52, 1.49)])[0] is None


def test_hints_are_replayed_without_a_plan(tmp_path: Path) -> None:
    ways = [way(AS_IT_IS), hinted()]
    prepared = _Prepared({AS_IT_IS: 1.0, "cb_nodes=8": 1.0})
    measured(tmp_path, prepared, ways, rounds=1).run()
    assert sorted(prepared.made) == [AS_IT_IS, "cb_nodes=8"]
    how = replay_run.Options(tmp_path, tmp_path)
    asked = tune.Options(tmp_path / "plan.toml", "gigabit12", tmp_path)
    assert turns.key(asked, how, ways) != turns.key(asked, how, ways[:1])


def test_keys_are_carried_by_the_fastest_plan_that_is_not_shown_to_do_harm() -> None:
    row = {"strategy": "everyone"}
    good = Way("good", rules("good"), picks=[row, None], seconds=[1.05, 1.02, 1.06])
    bad = Way("bad", rules("bad"), picks=[{"strategy": "bad"}, None], seconds=[1.5, 1.52, 1.49])
    log = Way("log", rules("log"), other_form=True, picks=[{"strategy": "log"}, None], seconds=[0.5, 0.5, 0.5])
    first, second = measure._carriers([UNTOUCHED, bad, good, log, hinted(0.1, 0.1, 0.1)], 2)
    assert second is None
    assert first is not None
    assert (first.row, first.how) == (row, "measured")
    assert first.cost_s == pytest.approx(0.05)
    assert measure._carriers([UNTOUCHED, bad, log], 2) == [None, None]


def test_run_tune_says_which_run_shows_what_was_estimated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    ratio = {"ratio": 1.0, "ratio_low": 1.0, "ratio_high": 1.0}
    found = {"output": "plan.toml", "predicted": ratio, "estimated": [{"taken": True}]}
    monkeypatch.setattr(run_tune, "_traced", lambda *_: 0)
    monkeypatch.setattr(run_tune, "verdict", lambda _, expected, how: [how, str(expected == ratio), "last"])
    # Replays have shown no plan to be faster: what is expected is the simulation's.
    monkeypatch.setattr(measure, "tune_measured", lambda *_: {**found, "measured": {"ways": []}})
    options = run_tune.Options(tmp_path / "out", quiet=True, measure=True)
    assert run_tune.run_tuned(["true"], options) == 0
    said = capfd.readouterr().err.splitlines()
    assert said[-4:-2] == ["ioweir: predicted", "ioweir: True"]
    assert "estimated from the trace, not simulated, is not in these ratios" in said[-2]


def test_run_tune_refuses_a_machine_before_the_program_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_tune, "_traced", lambda *_: pytest.fail("the program ran"))
    with pytest.raises(IoweirError, match=r"no machine 'hoper'; did you mean 'hopper'"):
        run_tune.run_tuned(["true"], run_tune.Options(tmp_path / "out", "hoper"))
    assert not (tmp_path / "out").exists()


def test_run_tune_says_of_a_full_disk_where_and_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/full")

    monkeypatch.setattr(run_tune, "_traced", lambda *_: 0)
    monkeypatch.setattr(run_tune, "_planned", full)
    assert run_tune.run_tuned(["true"], run_tune.Options(tmp_path / "out")) == 0
    said = capfd.readouterr().err
    assert "no plan can be looked for: /full: No space left on device; make room" in said
    assert "Errno" not in said


def test_run_tune_names_the_hints_that_replays_have_shown_to_be_faster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    traces: list[Path] = []

    def traced(_words: object, output: Path, _more: object) -> int:
        traces.append(output)
        return 0

    monkeypatch.setattr(run_tune, "_traced", traced)
    measured_hints: dict[str, Any] = {
        "output": None,
        "measured": {"ratio": 2.0, "hints": ["cb_nodes=8"]},
        "estimated": [],
    }
    monkeypatch.setattr(measure, "tune_measured", lambda *_: measured_hints)
    options = run_tune.Options(tmp_path / "out", quiet=True, measure=True)
    assert run_tune.run_tuned(["true"], options) == 0
    assert "verdict: no plan, but the hints cb_nodes=8 were shown to be faster" in capfd.readouterr().err
    assert len(traces) == 1
