"""Fitting figures of a machine to cases that were measured: which values explain them, how well, and which are unknown.

A case is simulated with the figures that are tried; the residual is the logarithm of simulated over measured seconds.
Values are found by SciPy's least squares (trust region, soft-L1 loss: a disturbed case counts less) over logarithms of
figures. What the data say of a figure is Laplace's approximation: the inverse of J'J at the solution, together with
the range that the figure had beforehand. A figure whose interval stays wider than MOST_RATIO is not determined; its
range is a profile: how far it can go either way, the others following along the valley, before the misfit shows it.

Lives here: the fit, held-out errors, what is determined. Not here: where cases come from (measured.py, traced.py,
recorded_runs.py), the file (calibrate.py).
"""

from __future__ import annotations

import math
import os
from concurrent import futures
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MOST_RATIO: Final = 3.0
"""Upper over lower end of a 90 % interval: beyond it a figure is said not to be determined."""
FOLDS: Final = 5
_QUANTILE: Final = 1.645
"""Of the normal distribution: 90 % lie within so many standard deviations."""
_LEAST_NOISE: Final = 0.02
"""Standard deviation of a logarithm that is assumed at least: seconds of two runs are never the same."""
_HALVINGS: Final = 7
"""Of the way to the end of a figure's range."""
_STEP: Final = 0.02
"""Of a logarithm, for derivatives: simulated times have small steps in them."""


class Case(Protocol):
    """Something that was measured, and can be simulated."""

    @property
    def group(self) -> str:
        """Repetitions of the same have one name."""

    @property
    def held_with(self) -> str:
        """Cases of which this is the same are held out together: those of a group, and perhaps more."""

    @property
    def seconds(self) -> float:
        """Measured."""

    def simulated_s(self, figures: Mapping[str, float]) -> float:
        """Under these figures."""


@dataclass(frozen=True)
class Free:
    """A figure to be found."""

    name: str
    low: float
    high: float
    start: float


@dataclass(frozen=True)
class Found:
    """What the data say of a figure."""

    name: str
    value: float
    low: float
    high: float
    determined: bool
    strength: float
    """How much a case's time changes with it, root of the mean square of the derivatives: 0 is not at all."""


@dataclass(frozen=True)
class Error:
    """Of times that were held out of the fit: |simulated - measured| over measured."""

    median: float
    p90: float
    cases: int
    ratio_low: float
    ratio_high: float
    """Measured over simulated: of the next case's ratio nine of ten lie between."""


@dataclass(frozen=True)
class Fit:
    """The outcome."""

    found: tuple[Found, ...]
    held_out: Error
    fitted: Error
    held: tuple[tuple[Case, float], ...]
    """Of each case measured over simulated, by a fit that had not seen it; empty where all are of one group."""

    @property
    def values(self) -> dict[str, float]:
        """Of all figures that were free."""
        return {one.name: one.value for one in self.found}


def fit(
    cases: Sequence[Case], free: Sequence[Free], base: Mapping[str, float], near: Mapping[str, float] | None = None
) -> Fit:
    """All cases, then FOLDS times without some of them. `near`: where the search begins, as far as that is known."""
    solution = _solve(cases, free, base, [math.log((near or {}).get(one.name, one.start)) for one in free])
    logs: list[float] = [float(value) for value in solution.x]
    ratios = [_ratio(case, free, base, logs) for case in cases]
    found = _found(cases, free, base, solution)
    held = _held_out(cases, free, base, logs)
    return Fit(found, _error([ratio for _, ratio in held]), _error(ratios), tuple(held))


def misfit(
    cases: Sequence[Case], free: Sequence[Free], base: Mapping[str, float], near: Mapping[str, float] | None = None
) -> tuple[float, dict[str, float]]:
    """What is left of it with the values that explain the cases best, and these. `near`: as for fit()."""
    solution = _solve(cases, free, base, [math.log((near or {}).get(one.name, one.start)) for one in free])
    return float(solution.cost), {one.name: math.exp(value) for one, value in zip(free, solution.x, strict=True)}


def folds(groups: Sequence[str]) -> list[set[str]]:
    """Names dealt over at most FOLDS sets, so that what lies side by side is not held out together."""
    names = list(dict.fromkeys(groups))
    count = min(FOLDS, len(names))
    return [set(names[number::count]) for number in range(count)]


def _figures(base: Mapping[str, float], free: Sequence[Free], logs: Sequence[float]) -> dict[str, float]:
    return {**base, **{one.name: math.exp(value) for one, value in zip(free, logs, strict=True)}}


def _ratio(case: Case, free: Sequence[Free], base: Mapping[str, float], logs: Sequence[float]) -> float:
    """Measured over simulated."""
    return case.seconds / max(case.simulated_s(_figures(base, free, logs)), 1e-12)


def _solve(cases: Sequence[Case], free: Sequence[Free], base: Mapping[str, float], start: Sequence[float]) -> Any:
    import numpy as np  # noqa: PLC0415
    from scipy import optimize  # noqa: PLC0415

    lower = np.log([one.low for one in free])
    upper = np.log([one.high for one in free])
    middle, width = np.log([one.start for one in free]), (upper - lower) / (2 * _QUANTILE)

    def residuals(logs: Any) -> Any:
        clipped = np.clip(logs, lower, upper)
        misfit = [-math.log(_ratio(case, free, base, clipped)) / _LEAST_NOISE for case in cases]
        # The range beforehand weighs as one very uncertain observation: it only decides what the data do not.
        return np.concatenate([misfit, (clipped - middle) / width])

    inside = np.clip(np.asarray(start), lower + 1e-6, upper - 1e-6)
    # Simulations let other threads run: a derivative a processor.
    with futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as processors:
        return optimize.least_squares(
            residuals, inside, bounds=(lower, upper), loss="soft_l1", diff_step=_relative_step(inside), x_scale=width,
            max_nfev=40, workers=processors.map,
        )  # fmt: skip


def _relative_step(logs: Any) -> Any:
    """SciPy takes steps relative to the value; these are logarithms, where an absolute one is meant."""
    import numpy as np  # noqa: PLC0415

    return _STEP / np.maximum(np.abs(logs), 1e-3)


def _found(cases: Sequence[Case], free: Sequence[Free], base: Mapping[str, float], solution: Any) -> tuple[Found, ...]:
    import numpy as np  # noqa: PLC0415

    jacobian = solution.jac[: len(cases)] * _LEAST_NOISE
    misfit = np.asarray([math.log(_ratio(case, free, base, solution.x)) for case in cases])
    # The scale of what is not explained, by its median: a few disturbed cases must not hide what the others say.
    noise = max(_LEAST_NOISE, 1.4826 * float(np.median(np.abs(misfit))))
    widths = np.asarray([math.log(one.high / one.low) / (2 * _QUANTILE) for one in free])
    covariance = np.linalg.inv(jacobian.T @ jacobian / noise**2 + np.diag(widths**-2.0))
    valley = _Valley(cases, free, base, solution.x, noise)
    rows = []
    for number, one in enumerate(free):
        center, half = float(solution.x[number]), _QUANTILE * math.sqrt(covariance[number, number])
        low, high = max(one.low, math.exp(center - half)), min(one.high, math.exp(center + half))
        at_end = min(center - math.log(one.low), math.log(one.high) - center) < _STEP
        determined = high / low <= MOST_RATIO and not at_end
        if not determined:
            direction = covariance[:, number] / covariance[number, number]
            low = math.exp(valley.end(number, direction, math.log(one.low)))
            high = math.exp(valley.end(number, direction, math.log(one.high)))
        strength = float(np.sqrt(np.mean(jacobian[:, number] ** 2)))
        rows.append(Found(one.name, math.exp(center), low, high, determined, strength))
    return tuple(rows)


class _Valley:
    """How far a figure can go from the solution while the others go along, as the covariance says."""

    def __init__(
        self, cases: Sequence[Case], free: Sequence[Free], base: Mapping[str, float], logs: Any, noise: float
    ) -> None:
        self._cases, self._free, self._base, self._logs, self._noise = cases, free, base, logs, noise
        self._least = self._misfit(logs)

    def end(self, number: int, direction: Any, limit: float) -> float:
        """The logarithm at which the misfit has grown by what has a probability of a tenth; at most `limit`."""
        near, far = float(self._logs[number]), limit
        if self._grown(number, direction, far) <= _QUANTILE**2:
            return far
        for _ in range(_HALVINGS):
            middle = (near + far) / 2
            if self._grown(number, direction, middle) <= _QUANTILE**2:
                near = middle
            else:
                far = middle
        return far

    def _grown(self, number: int, direction: Any, value: float) -> float:
        import numpy as np  # noqa: PLC0415

        lower = [math.log(one.low) for one in self._free]
        upper = [math.log(one.high) for one in self._free]
        return self._misfit(np.clip(self._logs + direction * (value - self._logs[number]), lower, upper)) - self._least

    def _misfit(self, logs: Any) -> float:
        """Soft L1, as in the fit; in units of a variance."""
        squares = ((math.log(_ratio(case, self._free, self._base, logs)) / self._noise) ** 2 for case in self._cases)
        return sum(2 * (math.sqrt(1 + square) - 1) for square in squares)


def _held_out(
    cases: Sequence[Case], free: Sequence[Free], base: Mapping[str, float], start: list[float]
) -> list[tuple[Case, float]]:
    """Of each case measured over simulated, by a fit that did not see its group. Empty with a single group."""
    ratios = []
    parts = folds([case.held_with for case in cases])
    if len(parts) < 2:
        return []
    for held in parts:
        rest = [case for case in cases if case.held_with not in held]
        logs = [float(value) for value in _solve(rest, free, base, start).x]
        ratios += [(case, _ratio(case, free, base, logs)) for case in cases if case.held_with in held]
    return ratios


def _error(ratios: Sequence[float]) -> Error:
    import numpy as np  # noqa: PLC0415

    if not ratios:
        return Error(math.nan, math.nan, 0, math.nan, math.nan)
    errors = [abs(1 / ratio - 1) for ratio in ratios]
    low, high = coverage(ratios)
    return Error(float(np.median(errors)), float(np.quantile(errors, 0.9)), len(ratios), low, high)


def coverage(ratios: Sequence[float], share: float = 0.9) -> tuple[float, float]:
    """Between which values the next one lies with this probability: ranks as split conformal prediction counts them."""
    ordered = sorted(ratios)
    count = len(ordered)
    out = (1 - share) / 2
    below = max(0, math.floor(out * (count + 1)) - 1)
    return ordered[below], ordered[count - 1 - below]
