"""Plans with times, as replays would have found them."""

from __future__ import annotations

from ioweir.loop.turns import AS_IT_IS, Way
from ioweir.predict import tune
from ioweir.predict.candidates import Candidate


def rules(name: str) -> tuple[tune.Rule, ...]:
    return ((f"{name}.*", Candidate(name, {"writers": "everyone"})),)


def way(name: str, *seconds: float, other_form: bool = False) -> Way:
    predicted = {"ratio_low": 1.0, "ratio": 1.0, "ratio_high": 1.0}
    return Way(name, () if name == AS_IT_IS else rules(name), other_form, predicted, seconds=list(seconds))


UNTOUCHED = way(AS_IT_IS, 1.00, 1.02, 0.98)
