"""Times, sizes, rates and counts as people read them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence


def seconds(value: float) -> str:
    """A time with three figures that mean something. Example: 0.00123 -> "1.23 ms"."""
    if value == 0:
        return "0 s"
    # A unit ends where three figures would round up to 1,000 of it.
    for factor, unit in ((1e9, "ns"), (1e6, "us"), (1e3, "ms")):
        if abs(value) * factor < 999.5:
            return f"{value * factor:.3g} {unit}"
    return f"{value:.2f} s" if value < 100 else f"{value:.0f} s"


def time_unit(longest: float) -> tuple[str, float]:
    """The unit in which an axis of times up to `longest` is read best, and its seconds. Example: 0.02 -> "ms", 1e-3."""
    units = (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9))
    return next((unit for unit in units if longest >= unit[1]), units[-1])


def size_unit(largest: float) -> tuple[str, float]:
    """The same of bytes. Example: 5e6 -> "MiB", 1048576."""
    units = (("TiB", 1024.0**4), ("GiB", 1024.0**3), ("MiB", 1024.0**2), ("KiB", 1024.0), ("B", 1.0))
    return next((unit for unit in units if largest >= unit[1]), units[-1])


_DURATIONS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def duration(text: str) -> float:
    """Seconds of "300ms", "10m", "1.5 h". Raises ValueError for anything else, a bare number too."""
    word = text.strip()
    number = word.rstrip("usminhd ")
    unit = word[len(number) :].strip()
    try:
        value = float(number) * _DURATIONS[unit]
    except (KeyError, ValueError):
        value = -1.0
    if not 0 <= value < math.inf:
        raise ValueError(f"not a time: '{text}'; write a number and a unit, such as 300ms, 10s, 10m or 1h")
    return value


def size(value: float) -> str:
    """Bytes in binary units. Example: 1536 -> "1.50 KiB"."""
    if value < 1024:
        return f"{value:.0f} B"
    for unit in ("KiB", "MiB", "GiB", "TiB"):
        value /= 1024
        if value < 1024:
            return f"{value:.2f} {unit}" if value < 100 else f"{value:.0f} {unit}"
    return f"{value / 1024:.2f} PiB"


def rate(value: float | None) -> str:
    """A bandwidth, a dash where there is none."""
    return "-" if value is None else f"{size(value)}/s"


def bounds(value: float | Sequence[float | None] | None) -> str:
    """A bandwidth or its two bounds. Example: [None, 2048.0] -> "<= 2.00 KiB/s"."""
    if value is None or isinstance(value, int | float):
        return rate(value)
    lower, upper = value
    if upper is None:
        return "-"
    # A lower bound above the upper one says nothing: it was of other bytes (docs/reference/report.md, Bandwidths).
    return f"<= {rate(upper)}" if lower is None or lower > upper else f"{rate(lower)} .. {rate(upper)}"


def times(ratio: float) -> str:
    """How many times as fast, in words: two decimals, and two digits of what is below a tenth."""
    return f"{ratio:.2f} times as fast" if ratio >= 0.1 else f"{ratio:.2g} times as fast"


def percent(part: float, whole: float | None) -> str:
    """A share. Example: 1, 3 -> "33 %"."""
    return f"{100 * part / whole:.0f} %" if whole else "-"


def plural(noun: str, count: int) -> str:
    """A noun for a count. Example: "process", 2 -> "processes"."""
    return noun if count == 1 else noun + ("es" if noun.endswith("s") else "s")


def few(names: Sequence[str], most: int = 4) -> str:
    """The first of many names. Example: six names -> "a, b, c, d and 2 more"."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more:,} more" if more > 0 else "")


def number_list(numbers: Collection[int], noun: str = "rank", most: int | None = None) -> str:
    """Numbers in words, `most` runs of them at most. Example: {0, 1, 2, 5} -> "ranks 0-2, 5"."""
    ordered = sorted(set(numbers))
    runs: list[tuple[int, int]] = []
    start = 0
    for at in range(1, len(ordered) + 1):
        if at == len(ordered) or ordered[at] != ordered[at - 1] + 1:
            runs.append((ordered[start], ordered[at - 1]))
            start = at
    return run_list(runs, noun, most)


def run_list(runs: Sequence[tuple[int, int]], noun: str = "rank", most: int | None = None) -> str:
    """The same of runs of numbers, each by its first and last. Example: [(0, 2), (5, 5)] -> "ranks 0-2, 5"."""
    total = sum(last - first + 1 for first, last in runs)
    shown = runs if most is None else runs[:most]
    words = ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in shown)
    rest = total - sum(last - first + 1 for first, last in shown)
    return f"{plural(noun, total)} {words}" + (f" and {rest:,} more" if rest else "")


def gaps(numbers: Collection[int], count: int) -> list[tuple[int, int]]:
    """Runs of what is lacking of 0 to count - 1, which may be very many. Example: {1}, 4 -> (0, 0), (2, 3)."""
    found: list[tuple[int, int]] = []
    after = 0
    for number in sorted({one for one in numbers if 0 <= one < count} | {count}):
        if number > after:
            found.append((after, number - 1))
        after = number + 1
    return found
