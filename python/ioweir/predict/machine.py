"""Machine files: what a simulated machine is like, each figure with its source, and which figures nobody knows well.

A file has a table a part, as the figures are named ("targets.seek_s" is `seek_s` in `[targets]`), `[sources]` with a
text for a figure or a part, and `[open]` with a range [low, high] or [low, middle, high] for each figure that is not
known: a simulation draws from it, so that its result is a range, too.

Lives here: finding, reading and checking them. Not here: what the figures do (src/sim).
"""

from __future__ import annotations

import difflib
import math
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ioweir.base import toml_text
from ioweir.base.compiled import compiled
from ioweir.base.guarded_files import read_named
from ioweir.errors import EXIT_USAGE, IoweirError, reason

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_TEXTS: Final = ("name", "about")
_UNEXPLAINED: Final = "unexplained"
_GAINS: Final = "gains"
_PLANS: Final = "plans"
_OPENING: Final = "opening"
_RUNS: Final = "runs"
MAPPINGS: Final = ("shared", "grouped", "subfiles", "log")
SHARE_OF_GAINS: Final = 0.8
"""That lie within."""
_TABLES: Final = ("sources", "open", "slow_targets", _OPENING)
_MOST_BYTES: Final = 1 << 20
MOST_UNEXPLAINED: Final = 1000.0
_LEAST_GAIN: Final = 1e-6
LEAST_SLOWDOWN: Final = 0.001
MOST_SLOWDOWN: Final = 1000.0
_MOST_DIGITS: Final = 6
"""Of a target's number."""


@dataclass(frozen=True)
class Figure:
    """A figure that machines have: see `ioweir._core.machine_figures`."""

    name: str
    meaning: str
    default: float
    whole: bool
    switch: bool
    may_be_zero: bool
    least: float
    """Besides 0."""
    most: float
    range: str
    """All of it, for messages."""

    def has(self, value: float) -> bool:
        """Whether a machine may have this value."""
        return self.least <= value <= self.most or (self.may_be_zero and value == 0)

    def nearest(self, value: float) -> float:
        """The value itself, or the end of the range behind which it lies."""
        return value if self.has(value) else min(max(value, self.least), self.most)


@dataclass(frozen=True)
class Opening:
    """How long opening and closing files took when it was measured. All numbers are ratios of times."""

    plans: Mapping[str, tuple[float, float, float]] = field(default_factory=dict)
    """Under a plan over without one, by the plan's mapping (MAPPINGS): low, middle and high."""
    runs: tuple[float, float] = (1.0, 1.0)
    """Of single runs over the typical one: low and high."""

    def under(self, mapping: str) -> tuple[float, float, float]:
        """As `plans`; where nothing was measured a plan changes nothing."""
        return self.plans.get(mapping, (1.0, 1.0, 1.0))


@dataclass(frozen=True)
class Machine:
    """A machine file, read. Figures are seconds, bytes, bytes a second, counts and ratios, as their names say."""

    name: str
    about: str
    figures: Mapping[str, float]
    """Those that the file gives."""
    sources: Mapping[str, str]
    open: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """Lowest and highest value of figures that are not known; between them the middle one, if there are three."""
    slow_targets: Mapping[int, float] = field(default_factory=dict)
    """How many times as long a target takes, by its number."""
    unexplained: float = 0.0
    """Median error of simulated times that the figures were not fitted to, as a share of the time."""
    gains: tuple[float, float, float] | None = None
    """Of plans' gains measured over simulated, that the figures were not fitted to: low, middle and high."""
    plans: float = 1.0
    """By which factor the ratio of two plans' simulated times is off, in the middle one of pairs."""
    opening: Opening = field(default_factory=Opening)

    def slowdown(self) -> list[float]:
        """Of each target up to the last slow one."""
        return [self.slow_targets.get(target, 1.0) for target in range(max(self.slow_targets, default=-1) + 1)]

    def drawn(self, shares: Mapping[str, float]) -> dict[str, float]:
        """The figures, with open ones at a share (0 to 1) of their range: by ratios, for they span powers of ten.

        Half of the shares lie below the middle value of a range that has one.
        """
        figures = dict(self.figures)
        for name, values in self.open.items():
            value = _at(values, shares[name])
            figures[name] = round(value) if _figures()[name].whole else value
        return figures


def _at(values: Sequence[float], share: float) -> float:
    """At a share of a range of two values or three."""
    parts = len(values) - 1
    part = min(int(share * parts), parts - 1)
    low, high = values[part], values[part + 1]
    inside = share * parts - part
    value = low * (high / low) ** inside if low > 0 else low + (high - low) * inside
    return min(max(value, low), high)


def names() -> list[str]:
    """Of the machines in the package."""
    return sorted(path.name.removesuffix(".toml") for path in _folder().iterdir() if path.name.endswith(".toml"))


def read(name_or_file: str) -> Machine:
    """A machine of the package by its name, else a file. Raises IoweirError that says what is wrong with it."""
    if name_or_file in names():
        text = (_folder() / f"{name_or_file}.toml").read_text(encoding="utf-8")
        return parse(text, name_or_file)
    path = Path(name_or_file)
    if not path.exists() and path.suffix != ".toml" and "/" not in name_or_file:
        near = difflib.get_close_matches(name_or_file, names(), 1)
        hint = f"did you mean '{near[0]}'?" if near else "give a machine file, or one of"
        raise IoweirError(
            f"no machine '{name_or_file}'; {hint} {'' if near else ', '.join(names())}".rstrip(), EXIT_USAGE
        )
    try:
        data = read_named(path)
    except OSError as error:
        raise IoweirError(f"machine file '{path}' cannot be read: {reason(error)}", EXIT_USAGE) from error
    if len(data) > _MOST_BYTES:
        raise IoweirError(f"machine file '{path}' is {len(data)} B long; give at most {_MOST_BYTES} B", EXIT_USAGE)
    try:
        return parse(data.decode("utf-8"), str(path))
    except UnicodeDecodeError as error:
        raise IoweirError(f"machine file '{path}' is no text: {error}", EXIT_USAGE) from error


def parse(text: str, name: str) -> Machine:
    """A machine from the text of its file; `name` for messages."""
    try:
        content = toml_text.loads(text)
    except toml_text.TOMLDecodeError as error:
        raise IoweirError(f"machine file '{name}' is not TOML: {error}", EXIT_USAGE) from error
    figures = dict(_numbers(content, name))
    opened = dict(_ranges(_table(content, "open", name), name))
    sources = {key: str(value) for key, value in _flat(_table(content, "sources", name))}
    slow = dict(_slow(_table(content, "slow_targets", name), name))
    title, about = str(content.get("name", name)), str(content.get("about", ""))
    machine = Machine(
        title,
        about,
        figures,
        sources,
        opened,
        slow,
        _unexplained(content, name),
        _gains(content, name),
        _plans(content, name),
        _opening(_table(content, _OPENING, name), name),
    )
    _check(machine, name)
    return machine


def figures() -> list[Figure]:
    """All figures that a machine has."""
    return list(_figures().values())


@cache
def _figures() -> dict[str, Figure]:
    return {row["name"]: Figure(**row) for row in compiled().machine_figures()}


def _folder() -> Any:
    return resources.files(__package__) / "machines"


def _table(content: Mapping[str, Any], key: str, name: str) -> Mapping[str, Any]:
    table = content.get(key, {})
    if not isinstance(table, dict):
        raise IoweirError(f"machine file '{name}': {key} is no table; write [{key}]", EXIT_USAGE)
    return table


def _flat(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _numbers(content: Mapping[str, Any], name: str) -> Iterator[tuple[str, float]]:
    others = {
        key: value for key, value in content.items() if key not in (*_TEXTS, *_TABLES, _UNEXPLAINED, _GAINS, _PLANS)
    }
    for key, value in _flat(others):
        yield key, _number(key, value, name)


def _number(key: str, value: Any, name: str) -> float:
    figure = _known(key, name)
    number = (
        isinstance(value, bool) if figure.switch else isinstance(value, (int, float)) and not isinstance(value, bool)
    )
    wanted = "true or false" if figure.switch else "a whole number" if figure.whole else "a number"
    if not number or not _is_finite(value) or (figure.whole and value != int(value)):
        raise IoweirError(
            f"machine file '{name}': {key} = {_said(value)} is not {wanted}; {figure.meaning}", EXIT_USAGE
        )
    if not figure.has(value):
        raise IoweirError(
            f"machine file '{name}': {key} = {_said(value)}; give {figure.range} ({figure.meaning})", EXIT_USAGE
        )
    return float(value)


def _is_finite(value: float) -> bool:
    """Whole numbers of TOML have as many digits as anybody likes."""
    return not isinstance(value, float) or math.isfinite(value)


def _said(value: Any) -> str:
    return f"{value!r:.60}"


def _known(key: str, name: str) -> Figure:
    known = _figures()
    if key not in known:
        near = difflib.get_close_matches(key, known, 1)
        hint = f"; did you mean '{near[0]}'?" if near else f"; there are {', '.join(known)}"
        raise IoweirError(f"machine file '{name}': no figure '{key}'{hint}", EXIT_USAGE)
    return known[key]


def _ranges(table: Mapping[str, Any], name: str) -> Iterator[tuple[str, tuple[float, ...]]]:
    for key, value in _flat(table):
        if not isinstance(value, list) or len(value) not in (2, 3):
            raise IoweirError(
                f"machine file '{name}': open.{key} = {_said(value)}; write [low, high] or [low, middle, high]",
                EXIT_USAGE,
            )
        values = tuple(_number(key, end, name) for end in value)
        if list(values) != sorted(values):
            raise IoweirError(
                f"machine file '{name}': open.{key} = {_said(value)}; write the lower one first", EXIT_USAGE
            )
        if values[0] == 0 < values[-1] and _figures()[key].least > 0:
            raise IoweirError(
                f"machine file '{name}': open.{key} = {_said(value)}; 0 says that there is no bound, or none of them: "
                "write a range above 0",
                EXIT_USAGE,
            )
        yield key, values


def _slow(table: Mapping[str, Any], name: str) -> Iterator[tuple[int, float]]:
    for key, value in table.items():
        if (
            not key.isdecimal()
            or len(key) > _MOST_DIGITS
            or isinstance(value, bool)
            or not isinstance(value, (int, float))
            or not LEAST_SLOWDOWN <= value <= MOST_SLOWDOWN
        ):
            raise IoweirError(
                f"machine file '{name}': slow_targets.{key:.60} = {_said(value)}; write the number of a target, from "
                f"0, and how many times as long it takes, {LEAST_SLOWDOWN:g} to {MOST_SLOWDOWN:g}",
                EXIT_USAGE,
            )
        yield int(key), float(value)


def _unexplained(content: Mapping[str, Any], name: str) -> float:
    value = content.get(_UNEXPLAINED, 0.0)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= MOST_UNEXPLAINED:
        raise IoweirError(
            f"machine file '{name}': {_UNEXPLAINED} = {value!r}; write the error of simulated times as a share from 0 "
            f"to {MOST_UNEXPLAINED:g}, such as 0.1",
            EXIT_USAGE,
        )
    return float(value)


def _gains(content: Mapping[str, Any], name: str) -> tuple[float, float, float] | None:
    if _GAINS not in content:
        return None
    values = content[_GAINS]
    if not _are_factors(values, 3):
        raise IoweirError(
            f"machine file '{name}': {_GAINS} = {_said(values)}; write [low, middle, high], factors of simulated gains "
            f"from {_LEAST_GAIN:g} to {1 / _LEAST_GAIN:g}, such as [0.8, 1.0, 1.3]",
            EXIT_USAGE,
        )
    low, middle, high = map(float, values)
    return low, middle, high


def _plans(content: Mapping[str, Any], name: str) -> float:
    value = content.get(_PLANS, 1.0)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 1 <= value <= 1 / _LEAST_GAIN:
        raise IoweirError(
            f"machine file '{name}': {_PLANS} = {_said(value)}; write by which factor the ratio of two plans' "
            f"simulated times may be off, from 1 to {1 / _LEAST_GAIN:g}, such as 1.2",
            EXIT_USAGE,
        )
    return float(value)


def _opening(table: Mapping[str, Any], name: str) -> Opening:
    plans: dict[str, tuple[float, float, float]] = {}
    runs = (1.0, 1.0)
    for key, values in table.items():
        if key != _RUNS and key not in MAPPINGS:
            raise IoweirError(
                f"machine file '{name}': {_OPENING}.{key:.60} is no mapping; there are {', '.join(MAPPINGS)}, and "
                f"{_RUNS}",
                EXIT_USAGE,
            )
        wanted = 2 if key == _RUNS else 3
        if not _are_factors(values, wanted):
            raise IoweirError(
                f"machine file '{name}': {_OPENING}.{key} = {_said(values)}; write "
                f"{'[low, high]' if key == _RUNS else '[low, middle, high]'}, ratios of times from {_LEAST_GAIN:g} to "
                f"{1 / _LEAST_GAIN:g}",
                EXIT_USAGE,
            )
        if key == _RUNS:
            runs = (float(values[0]), float(values[1]))
        else:
            plans[key] = (float(values[0]), float(values[1]), float(values[2]))
    return Opening(plans, runs)


def _are_factors(values: Any, count: int) -> bool:
    """So many, in order."""
    return (
        isinstance(values, list)
        and len(values) == count
        and all(
            isinstance(one, (int, float)) and not isinstance(one, bool) and _LEAST_GAIN <= one <= 1 / _LEAST_GAIN
            for one in values
        )
        and values == sorted(values)
    )


def _check(machine: Machine, name: str) -> None:
    """Both ends of what is open, by the simulator's own rules."""
    for share in (0.0, 1.0):
        try:
            drawn = machine.drawn(dict.fromkeys(machine.open, share))
        except OverflowError as error:
            raise IoweirError(f"machine file '{name}': a range in [open] has ends too far apart", EXIT_USAGE) from error
        targets = int(drawn.get("targets.count", 1))
        if machine.slow_targets and max(machine.slow_targets) >= targets:
            raise IoweirError(
                f"machine file '{name}': slow_targets.{max(machine.slow_targets)}: the machine has targets 0 to "
                f"{targets - 1}",
                EXIT_USAGE,
            )
        try:
            compiled().check_machine(drawn, machine.slowdown())
        except ValueError as error:
            raise IoweirError(f"machine file '{name}': {error}", EXIT_USAGE) from error
