"""The page of `make bench-engine`: ratios of paired rounds, tables, bars, a picture.

Not here: measuring (bench_engine.py, engine_cases.py), statistics (pairs.py).
"""

from __future__ import annotations

from collections.abc import Sequence

import launch
import pairs
from engine_cases import (
    AGGREGATED,
    ALONE,
    AUTO,
    BY_HAND,
    CASES,
    DIRECT,
    DIRECTIONS,
    GROUPED,
    LIBRARY,
    LIBRARY_TITLES,
    ROMIO,
    STRATEGIES,
    Measured,
    beside,
)
from ioweir.base import picture as pictures

TITLES = {ROMIO: "romio321", "posix": "pwrite", "exchange": "Alltoallv + pwrite", "fpp": "file per process"}
# The least that `writers = "auto"` has to reach (docs/internal/design-notes.md, section 6).
BARS = {"posix": 0.9, "best library": 1.0, "exchange": 1.0}


def ratio(measured: Measured, way: str, other: str, direction: str) -> pairs.Interval | None:
    """Speed of a way over that of another, round by round; None where one was not measured."""
    names = (beside(way, other), other)
    ours, theirs = (measured.speeds.get(name, {}).get(direction, []) for name in names)
    if way in measured.not_as_planned or not ours or len(ours) != len(theirs):
        return None
    return pairs.median_interval([a / b for a, b in zip(ours, theirs, strict=True)])


def best_library(measured: Measured, direction: str) -> str:
    """The MPI library's way with the higher median."""
    ways = [way for way in (LIBRARY, ROMIO) if measured.speeds.get(way, {}).get(direction)]
    return max(ways, key=lambda way: pairs.median(measured.speeds[way][direction]))


def _speed(measured: Measured, way: str, direction: str) -> str:
    speeds = measured.speeds.get(way, {}).get(direction, [])
    if way in measured.not_as_planned:
        return "-"
    return f"{pairs.median(speeds):.0f}" if speeds else ""


def _text(interval: pairs.Interval | None) -> str:
    return "not as planned" if interval is None else interval.text(2)


def _name(measured: Measured, direction: str) -> str:
    return f"{launch.KIND_TITLES[measured.mpi]}, {measured.ranks} | {direction}"


def tables(results: Sequence[Measured]) -> list[str]:
    """The figures, a section for each storage and in it a table for each kernel."""
    lines: list[str] = []
    for storage in dict.fromkeys(result.storage for result in results):
        lines += [f"## Files on {storage}", ""]
        for case in CASES:
            rows = [result for result in results if result.storage == storage and result.case == case.name]
            if rows:
                lines += [f"### {case.title}", "", *_case_tables(rows), ""]
    return lines


def _throttled_table(rows: Sequence[Measured]) -> list[str]:
    """Shares of what the targets can do together."""
    lines = [
        "Speed over the sum of the targets' rates:",
        "",
        f"| MPI, ranks | | sum, MiB/s | {' | '.join(STRATEGIES)} |",
        "|---|---|---" + "|---" * len(STRATEGIES) + "|",
    ]
    for row in rows:
        for direction in DIRECTIONS:
            shares = [
                pairs.median_interval([speed / row.nominal_mib_per_s for speed in row.speeds[way][direction]]).text(2)
                if way not in row.not_as_planned else "not as planned"
                for way in STRATEGIES
            ]  # fmt: skip
            lines.append(f"| {_name(row, direction)} | {row.nominal_mib_per_s:.0f} | {' | '.join(shares)} |")
    return lines


def _case_tables(rows: Sequence[Measured]) -> list[str]:
    throttled = [row for row in rows if row.nominal_mib_per_s and not row.failed]
    good = [row for row in rows if not row.failed and not row.nominal_mib_per_s]
    lines = []
    if good:
        lines += [
            "| MPI, ranks | | library | romio321 | pwrite | Alltoallv + pwrite | file per process | ioweir auto | "
            "auto / best library | auto / pwrite | auto / Alltoallv | auto / file per process | "
            "library / alone | grouped / file per process |",
            "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|",
        ]
        for row in good:
            for direction in DIRECTIONS:
                speeds = [_speed(row, way, direction) for way in (LIBRARY, ROMIO, *BY_HAND, AUTO)]
                ratios = [
                    _text(ratio(row, AUTO, other, direction)) for other in (best_library(row, direction), *BY_HAND)
                ]
                ratios.append(_text(ratio(row, LIBRARY, ALONE, direction)))
                ratios.append(_text(ratio(row, GROUPED, "fpp", direction)))
                lines.append(f"| {_name(row, direction)} | {' | '.join([*speeds, *ratios])} |")
        ways = (DIRECT, *AGGREGATED)
        lines += ["", "Each rank by itself (direct) and with aggregators, over the best library of the row:", ""]
        lines += [f"| MPI, ranks | | {' | '.join(ways)} |", "|---|---" + "|---" * len(ways) + "|"]
        for row in good:
            for direction in DIRECTIONS:
                ratios = [_text(ratio(row, way, best_library(row, direction), direction)) for way in ways]
                lines.append(f"| {_name(row, direction)} | {' | '.join(ratios)} |")
    if throttled:
        lines += _throttled_table(throttled)
    for row in rows:
        if row.failed:
            lines += ["", f"{launch.KIND_TITLES[row.mpi]}, {row.ranks} ranks: no figures: {row.failed}"]
    return lines


def departures(results: Sequence[Measured]) -> list[str]:
    """Strategies that are not quoted, and why."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for result in results:
        for way, reason in result.not_as_planned.items():
            where = _place(result)
            reasons.setdefault((way, reason), []).append(where)
    if not reasons:
        return []
    lines = ["## Not as planned", "", "By their trace these were not carried out; no figure of theirs is quoted.", ""]
    for (way, reason), places in reasons.items():
        where = places[0] if len(places) == 1 else f"in {len(places)} of {len(results)} comparisons"
        lines.append(f"- `{way}`, {where}: {reason}")
    return [*lines, ""]


def bars(results: Sequence[Measured]) -> list[str]:
    """Where `writers = "auto"` stands to its bars: held or missed by its median, or left open."""
    lines = [
        "## Bars",
        "",
        "ioweir with `writers = \"auto\"` has to reach 0.9 of hand-written pwrite and pread, 1.0 of the "
        "better MPI-IO, and 1.0 of a program's own Alltoallv + pwrite. Missed: the whole interval is below the bar; "
        "open: the bar is in it.",
        "",
    ]  # fmt: skip
    counts = {"held": 0, "open": 0, "missed": 0}
    missed: list[str] = []
    opened: list[str] = []
    for result in results:
        if result.failed or result.nominal_mib_per_s or AUTO in result.not_as_planned:
            continue
        for direction in DIRECTIONS:
            for name, bar in BARS.items():
                other = best_library(result, direction) if name == "best library" else name
                interval = ratio(result, AUTO, other, direction)
                if interval is None:
                    continue
                verdict = "held" if interval.low >= bar else "missed" if interval.high < bar else "open"
                counts[verdict] += 1
                line = f"- {_place(result)}, {direction}: {interval.text(2)} of {_long(other, result.mpi)}, bar {bar}"
                if verdict == "missed":
                    missed.append(line)
                elif verdict == "open":
                    opened.append(line + _calls(result, other, direction))
    of_all = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    lines.append(f"Of {sum(counts.values())} comparisons: {of_all}.")
    if missed:
        lines += ["", "Missed:", "", *missed]
    if opened:
        lines += ["", "Open; where the other side is an MPI library, with the system calls that move the bytes:", ""]
        lines += opened
    return [*lines, ""]


def _calls(result: Measured, other: str, direction: str) -> str:
    """How many reads or writes each side makes; messages are not counted."""
    ours, theirs = (result.posix_calls.get(way, {}).get(direction) for way in (AUTO, other))
    if other not in (LIBRARY, ROMIO) or ours is None or theirs is None:
        return ""
    return f"; {ours} {direction}s by ioweir, {theirs} by the library"


def _place(result: Measured) -> str:
    return f"{result.case}, {launch.KIND_TITLES[result.mpi]}, {result.ranks} ranks, {result.storage}"


def _long(way: str, mpi: str) -> str:
    return LIBRARY_TITLES[mpi] if way == LIBRARY else TITLES[way]


# ------------------------------------------------------------------------------------------------------------ picture

_ROW = 20
_WIDTH = 520
_LOW, _HIGH = 0.125, 32.0
_COLORS = {AUTO: "#111111", DIRECT: "#1a66b3", "even": "#b35a1a", "aligned": "#b38f1a", "cyclic": "#3f8f3f",
           "group-cyclic": "#1a9e9e",
           "cooperative": "#8f3f8f", "contention-free": "#b31a4d", "grouped": "#555555"}  # fmt: skip


def picture(results: Sequence[Measured]) -> str:
    """Ratios to the best MPI library on a logarithmic axis: a row a comparison, a dot a strategy with its interval."""
    dots = [
        dot
        for result in results if not result.failed and not result.nominal_mib_per_s
        for direction in DIRECTIONS
        for dot in _dots(result, direction)
    ]  # fmt: skip
    scale = {"type": "log", "base": 2, "domain": [_LOW, _HIGH], "clamp": True}
    x = pictures.axis("ratio", "quantitative", "speed over the best MPI-IO", scale=scale, axis={"orient": "top"})
    y = pictures.axis("row", "nominal", "", sort=None, axis={"labelLimit": 400})
    colors = {"domain": list(_COLORS), "range": list(_COLORS.values())}
    ways = {
        "y": y,
        "yOffset": {"field": "way", "type": "nominal", "sort": list(STRATEGIES)},
        "color": pictures.axis("way", "nominal", "", scale=colors, legend={"orient": "top"}),
    }
    layers = [
        {"mark": "rule", "encoding": {**ways, "x": {**x, "field": "low"}, "x2": {"field": "high"}}},
        {"mark": {"type": "circle", "opacity": 1}, "encoding": {**ways, "x": x, **pictures.described()}},
    ]
    content = {"width": _WIDTH, "height": {"step": _ROW, "for": "position"}, "data": {"values": dots}, "layer": layers}
    return pictures.to_svg(pictures.chart("Speed with ioweir over the best MPI-IO", [], content))


def _dots(result: Measured, direction: str) -> list[dict[str, object]]:
    """Of one row."""
    storage = result.storage.split(" ", maxsplit=1)[0]
    row = f"{result.case}, {launch.KIND_TITLES[result.mpi]}, {result.ranks} ranks, {storage}, {direction}"
    ratios = {way: ratio(result, way, best_library(result, direction), direction) for way in STRATEGIES}
    return [
        {
            "row": row, "way": way, "ratio": interval.median, "low": interval.low, "high": interval.high,
            "description": f"{row}: {way} {interval.text(2)}",
        }
        for way, interval in ratios.items()
        if interval is not None
    ]  # fmt: skip
