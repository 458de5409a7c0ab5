"""Replays of a trace under several plans in turns, and which of them go on.

A launch starts the ranks once, and carries the recorded I/O out many times: each time in a folder of its own, for
which the launch's plan has rules of its own. So a start is paid once, and what disturbs the machine disturbs all. What
was measured is kept in a file beside the plan, so that an interrupted command goes on where it was.

Lives here: order, rounds, who is left out, what is kept. Not here: which plans (measure.py), a launch (replay/run.py).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import tempfile
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ioweir.base.guarded_files import Folder, loads_bounded, write_named
from ioweir.errors import IoweirError
from ioweir.launch import forwarding
from ioweir.predict import tune
from ioweir.replay import run as replay_run
from ioweir.report import noise

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ioweir.replay.model import Recorded

AS_IT_IS: Final = "as it is"
_STATE_BYTES: Final = 1 << 20
_STATE_SUFFIX: Final = ".measured.json"
_LAUNCH_S: Final = 5.0
"""Further rounds are carried out in one launch up to so long: a start takes about a second."""
_FEWEST, _MOST = 5, 20
"""Rounds, where nobody says how many."""
_ROUNDS_S: Final = 15.0
"""More than the fewest are made up to so long: short replays differ most from run to run."""
_WARM_UP_S: Final = 2.0
"""Longer replays have no use for a turn that is not counted: what is done only once is a small part of them."""
_MOST_TURNS: Final = 500
"""Of a launch: each has words on the runner's command line, and files that are there before it."""
_MOST_KEPT: Final = 2000
"""Times of a way in a kept state. More are not believed, for comparing them takes memory by their number."""
_LEAST_S: Final = 1e-6
"""The runner tells no shorter times."""
_HOPELESS: Final = 3.0
"""Times as long as the fastest in the only run so far."""


@dataclass
class Way:
    """The program as it is, or under one plan."""

    name: str
    rules: tuple[tune.Rule, ...] = ()
    """Of the plan."""
    other_form: bool = False
    predicted: dict[str, float] = field(default_factory=dict)
    picks: tune.Picks = ()
    """Of each kind of files the candidate; of the program as it is none."""
    hints: tuple[str, ...] = ()
    """Of MPI-IO, NAME=VALUE, in the place of a plan."""
    seconds: list[float] = field(default_factory=list)
    in_calls: list[float] = field(default_factory=list)
    """Of each replay the seconds in calls of the rank that spent most there."""
    out: str = ""
    """Why it is in question no more."""


@dataclass
class Watch:
    """For the progress bar."""

    done: int = 0


class State:
    """What was measured, beside the plan, so that an interrupted command can go on."""

    def __init__(self, output: Path, key: str) -> None:
        self._folder = output.parent
        self._name = f".{output.name[:200]}{_STATE_SUFFIX}"
        self._key = key

    def load(self, ways: Sequence[Way]) -> int:
        """How many replays are there already."""
        try:
            with Folder.open(self._folder) as folder:
                found = loads_bounded(folder, self._name, _STATE_BYTES)
            if not isinstance(found, dict) or found.get("key") != self._key:
                return 0
            times, in_calls = ([_times(found[what][way.name]) for way in ways] for what in ("seconds", "in_calls"))
            if list(map(len, times)) != list(map(len, in_calls)):
                return 0
        except (OSError, ValueError, KeyError, TypeError, OverflowError):
            return 0
        for number, way in enumerate(ways):
            way.seconds, way.in_calls = times[number], in_calls[number]
        return sum(len(each) for each in times)

    def save(self, ways: Sequence[Way]) -> None:
        """After each turn."""
        found = {what: {way.name: getattr(way, what) for way in ways} for what in ("seconds", "in_calls")}
        with Folder.open(self._folder) as folder:
            folder.write(self._name, json.dumps({"key": self._key, **found}))

    def forget(self) -> None:
        """At the end."""
        with contextlib.suppress(OSError), Folder.open(self._folder) as folder:
            folder.remove(self._name, missing_ok=True)


def key(asked: tune.Options, how: replay_run.Options, ways: Sequence[Way], recorded: Recorded | None = None) -> str:
    """Of what is measured: other plans, another trace or place are another measurement.

    `recorded`: of the trace, for another run may have been recorded into a directory of the same name.
    """
    assert asked.trace is not None
    words = [] if recorded is None else [str(number) for number in _figures(recorded)]
    words += [str(asked.trace.resolve()), str(how.directory.resolve()), how.think, str(how.mpi), str(how.seed)]
    words += [word for way in ways for word in (tune.rules_text(way.rules), *way.hints)]
    return hashlib.sha256("\0".join(words).encode("utf-8", "surrogateescape")).hexdigest()


class Measuring:
    """Launch by launch."""

    def __init__(
        self, ways: list[Way], how: replay_run.Options, prepared: replay_run.Prepared, state: State, *,
        rounds: int | None, budget_s: float | None, expected_s: float,
    ) -> None:  # fmt: skip
        """`ways`: the program as it is comes first. `rounds`: None: by their time. `expected_s`: of a replay."""
        self.ways = ways
        self.watch = Watch()
        self.spent_s = 0.0
        self._how = how
        self._prepared = prepared
        self._state = state
        self._rounds = rounds
        self._budget_s = budget_s
        self._warms_up = expected_s <= _WARM_UP_S
        self._order = random.Random(how.seed)
        self._began = 0.0

    @property
    def most(self) -> int:
        """Replays that count."""
        return self._most_rounds() * len(self.ways)

    def _most_rounds(self) -> int:
        if self._rounds is not None:
            return self._rounds
        round_s = sum(_expected(way) for way in self.ways if not way.out)
        known = all(way.seconds for way in self.ways if not way.out)
        return min(_MOST, max(_FEWEST, int(_ROUNDS_S / round_s))) if known else _FEWEST

    def run(self) -> None:
        """Until it is known which is best, or rounds or budget are used up."""
        self._began = time.monotonic()
        while not self._ended():
            turns = self._affordable(self._next())
            if not turns:
                break
            try:
                self._launch(turns)
            finally:
                self.spent_s = time.monotonic() - self._began
            self._leave_out()

    def _next(self) -> list[Way]:
        """Of the next launch: what is left of a round, and as many further rounds as are short."""
        left = [way for way in self.ways if not way.out]
        begun = min(len(way.seconds) for way in left)
        turns: list[Way] = []
        took = 0.0
        for number in range(begun, self._most_rounds()):
            # A round that was interrupted is finished first.
            waiting = [way for way in left if len(way.seconds) <= number]
            known = all(way.seconds for way in left)
            took += sum(map(_expected, waiting))
            if turns and (not known or took > _LAUNCH_S or len(turns) >= _MOST_TURNS):
                break
            self._order.shuffle(waiting)
            turns += waiting
        most = min(_MOST_TURNS, self._prepared.room_for_turns())
        return turns[: max(1, most - int(self._warms_up))]

    def _affordable(self, turns: list[Way]) -> list[Way]:
        """As many as the budget has left; of one replay the cost is not known before."""
        if self._budget_s is None:
            return turns
        if not self.ways[0].seconds:
            # Nothing can be compared without it.
            turns = sorted(turns, key=lambda way: way is not self.ways[0])
        if self.watch.done == 0:
            return turns[:1]
        left = self._budget_s - (time.monotonic() - self._began)
        return turns[: max(0, int(left / (self.spent_s / self.watch.done)))]

    def _launch(self, turns: Sequence[Way]) -> None:
        warm_up = [self.ways[0]] if self._warms_up else []
        places = [
            (way, replay_run.Turn(self._prepared.new_name(), way.hints)) for way in [*warm_up, *turns]
        ]  # fmt: skip
        text = "\n".join(tune.rules_text(way.rules, turn.name) for way, turn in places if way.rules)
        told = 0

        def note(done: dict[str, Any]) -> None:
            nonlocal told
            told += 1
            self._note(places[told - 1][0], done, counts=told > len(warm_up))

        os.sync()
        with tempfile.TemporaryDirectory(prefix="ioweir-measure-") as name:
            # All are traced, so that tracing is no difference between them.
            how = replace(self._how, output=Path(name) / "trace")
            if text:
                write_named(Path(name) / "plan.toml", text)
                how = replace(how, plan=Path(name) / "plan.toml")
            try:
                self._prepared.run_turns(how, [turn for _, turn in places], note)
            except forwarding.SignalError:
                raise
            except IoweirError as error:
                if told == len(places):
                    raise
                places[told][0].out = str(error)
        if self.ways[0].out:
            raise IoweirError(f"the replay without a plan cannot be measured: {self.ways[0].out}")

    def _note(self, way: Way, done: dict[str, Any], *, counts: bool) -> None:
        if done["failed"]:
            way.out = way.out or f"{done['failed']} calls failed, the first: {done['first_failure']}"
        elif counts and not way.out:
            way.seconds.append(max(done["seconds"], _LEAST_S))
            way.in_calls.append(max(done["io_s"], _LEAST_S))
            self.watch.done += 1
            self._state.save(self.ways)

    def _leave_out(self) -> None:
        """Plans that are shown to be worse than something else."""
        for way in self.ways[1:]:
            for other in self.ways:
                if way is other or way.out or other.out or not way.seconds or not other.seconds:
                    continue
                if noise.difference(other.seconds, way.seconds).verdict == noise.SLOWER:
                    way.out = f"slower than {other.name} after {_runs(way)}"
                elif _expected(way) > _HOPELESS * _expected(other):
                    way.out = f"takes {_expected(way) / _expected(other):.1f} times as long as {other.name}"

    def _ended(self) -> bool:
        """One plan is left, and it is shown to be faster; or none is left."""
        left = [way for way in self.ways[1:] if not way.out]
        if not left:
            return True
        if len(left) > 1 or not left[0].seconds or not self.ways[0].seconds:
            return False
        return noise.difference(self.ways[0].seconds, left[0].seconds).verdict == noise.FASTER


def _figures(recorded: Recorded) -> list[float]:
    """Of a run that no other run has: what it did, and how many nanoseconds that took."""
    spent = sum(op.end - op.start for rank in recorded.ranks for op in rank.ops)
    moved = [recorded.moved(kind) for kind in ("write", "read")]
    return [len(recorded.ranks), recorded.calls(), *moved, recorded.seconds(), spent]


def _times(found: Any) -> list[float]:
    """Of a file that anybody may have changed."""
    if not isinstance(found, list) or len(found) > _MOST_KEPT:
        raise ValueError("no list of times")
    times = [float(one) for one in found]
    if not all(_LEAST_S <= one < 1e9 for one in times):
        raise ValueError("no times")
    return times


def _expected(way: Way) -> float:
    return noise.median(way.seconds) if way.seconds else 0.0


def _runs(way: Way) -> str:
    return f"{len(way.seconds)} {'run' if len(way.seconds) == 1 else 'runs'}"
