"""What `ioweir tune --measure` makes of measured times: the plan that it takes, and the gain that it states."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ioweir.loop import measure
from ioweir.loop.turns import AS_IT_IS, Way
from ioweir.predict import machine as machines
from ioweir.report import noise
from ways import UNTOUCHED, way


def test_a_plan_that_is_shown_to_be_faster_is_taken() -> None:
    best, reasons = measure.judged([UNTOUCHED, way("a", 0.50, 0.51, 0.49), way("b", 0.40, 0.41, 0.42)])
    assert best is not None
    assert best.name == "b"
    assert any("2.44 times as fast" in reason and "faster" in reason for reason in reasons)


def test_the_simulation_of_a_calibrated_machine_decides_what_replays_do_not() -> None:
    machine = machines.parse("gains = [0.9, 1.0, 1.1]\nplans = 1.2\n", "calibrated")

    def simulated(ratio: float, name: str, *seconds: float, other_form: bool = False) -> Way:
        made = way(name, *seconds, other_form=other_form)
        return replace(made, predicted=dict.fromkeys(made.predicted, ratio))

    lucky = simulated(1.5, "lucky", 0.40, 0.55, 0.47)
    likely = simulated(2.0, "likely", 0.45, 0.56, 0.50)
    slower = simulated(9.0, "slower", 0.80, 0.81, 0.82)
    assert measure.judged([UNTOUCHED, lucky, likely, slower])[0] is lucky
    best, reasons = measure.judged([UNTOUCHED, lucky, likely, slower], machine)
    assert best is likely
    assert any("likely was not shown to be slower than lucky" in reason for reason in reasons)
    # Another form needs more than the ratio of two plans may be off.
    for ratio, taken in ((2.3, False), (2.5, True)):
        log = simulated(ratio, "log", 0.41, 0.54, 0.48, other_form=True)
        assert measure.judged([UNTOUCHED, likely, log])[0] is likely
        assert (measure.judged([UNTOUCHED, likely, log], machine)[0] is log) == taken


@pytest.mark.parametrize(
    "plan", [way("noisy", 0.3, 1.5, 0.8), way("slower", 1.5, 1.52, 1.49), way("once", 0.1), way("never")]
)
def test_what_is_not_shown_to_be_faster_is_not_taken(plan: Way) -> None:
    best, reasons = measure.judged([UNTOUCHED, plan])
    assert best is None
    assert "no plan was shown to be faster" in reasons[-1]


def test_another_form_must_be_shown_to_be_faster_than_the_same_form() -> None:
    plain = way("plain", 0.50, 0.52, 0.51)
    noisy, clear = (way("log", *times, other_form=True) for times in ((0.45, 0.6, 0.3), (0.20, 0.21, 0.20)))
    assert measure.judged([UNTOUCHED, plain, noisy])[0] is plain
    assert measure.judged([UNTOUCHED, plain, clear])[0] is clear
    # It was left out because it was shown to be slower, and had no further runs.
    few = way("plain", 0.60, 0.61)
    assert measure.judged([UNTOUCHED, few, noisy])[0] is few
    assert measure.judged([UNTOUCHED, replace(few, out="slower than log after 2 runs"), noisy])[0] is noisy


@pytest.mark.parametrize(
    ("recorded", "low", "high"),
    [
        # As in the replays, which say 2 (1.9 to 2.1).
        (1.0, 1.9, 2.1),
        # Twice as long: the plan saves nothing of the other second (2 / (1 / 1.9 + 1)), or all of it.
        (2.0, 2 / (1 / 1.9 + 1), 4.2),
        # Half as long: what the plan saves in the replays the program never spent.
        (0.5, 0.95, 2.1),
    ],
)
def test_the_gain_of_the_program_lies_between_what_the_replays_leave_open(
    monkeypatch: pytest.MonkeyPatch, recorded: float, low: float, high: float
) -> None:
    found = noise.Difference(2.0, 1.9, 2.1, noise.FASTER, [], [], 0.0)
    monkeypatch.setattr(noise, "difference", lambda *_: found)
    untouched = way(AS_IT_IS, 1.0, 1.0)
    untouched.in_calls = [1.0, 1.0]
    gain = measure.gain_of(untouched, way("plan", 0.5, 0.5), recorded)
    assert (gain.ratio, gain.low, gain.high) == pytest.approx((2.0, low, high))
    assert f"in the program {low:.2f} to {high:.2f} times as fast" in gain.text()


def test_of_one_run_each_no_interval_is_said() -> None:
    untouched = way(AS_IT_IS, 1.0)
    untouched.in_calls = [1.0]
    gain = measure.gain_of(untouched, way("plan", 0.5), 1.0)
    assert (gain.ratio, gain.low, gain.high) == (2.0, None, None)
