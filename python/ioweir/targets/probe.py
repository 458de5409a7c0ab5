"""`ioweir probe`: how fast the storage targets at a path are at this moment, and which of them a new file should use.

Measuring and choosing are the compiled part's (src/probe; Son et al. 2016, section 3.1). Here: options, the cache,
the text.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import time
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ioweir.base import columns, locate
from ioweir.base.compiled import compiled
from ioweir.base.guarded_files import Folder, loads_bounded
from ioweir.base.units import duration, rate, seconds, size
from ioweir.errors import EXIT_USAGE, IoweirError

if TYPE_CHECKING:
    from collections.abc import Mapping

_BAR: Final = 24
_LEAST_BAR: Final = 4
CACHE_VERSION: Final = 1


@dataclass(frozen=True)
class Options:
    """How to probe. Times are in seconds, `bytes` above 0 writes that much to each target instead of for a time."""

    discard_s: float = 0.1
    window_s: float = 0.3
    bytes: int = 0
    repetitions: int = 1
    at_once: int = 64
    confirmations: int = 2


def options_of(
    window: str | None, discard: str | None, amount: str | None, repeats: int, at_once: int, confirmations: int
) -> Options:
    """From the command line's texts; refuses what is no time or size."""
    plain = Options()
    try:
        return Options(
            plain.discard_s if discard is None else duration(discard),
            plain.window_s if window is None else duration(window),
            0 if amount is None else compiled().parse_size(amount),
            repeats,
            at_once,
            confirmations,
        )
    except ValueError as error:
        raise IoweirError(str(error), EXIT_USAGE) from error


def probe(path: Path, options: Options, threshold: float | None, cache: str | None = None) -> dict[str, Any]:
    """Probes the targets in effect at a path, or takes what was found at most `cache` (such as "10m") ago."""
    try:
        described = compiled().describe_targets(str(path))
        share = compiled().default_threshold if threshold is None else threshold
        keep_s = 0.0 if cache is None else duration(cache)
        stored = _cache_file(described, options, share) if keep_s > 0 else None
        found = _cached(stored, keep_s) if stored is not None else None
        if found is None:
            found = _measure(path, options, share)
            if stored is not None:
                _keep(stored, found)
        return _chosen(described, found, options, share, path)
    except ValueError as error:
        raise IoweirError(str(error)) from error


def _measure(path: Path, options: Options, threshold: float) -> dict[str, Any]:
    begin = time.monotonic()
    probed_at = time.time()
    rows = compiled().probe_targets(str(path), **asdict(options), threshold=threshold)
    return {"probed_at": probed_at, "seconds": time.monotonic() - begin, "targets": rows}


def _chosen(
    described: Mapping[str, Any], found: Mapping[str, Any], options: Options, threshold: float, path: Path
) -> dict[str, Any]:
    targets = [
        {"name": place["name"], "directory": place["directory"], **row}
        for place, row in zip(described["targets"], found["targets"], strict=True)
    ]
    usable = [row["bytes_per_second"] for row in targets]
    if not any(usable):
        reasons = "; ".join(f"{row['name']}: {row['problem']}" for row in targets)
        raise IoweirError(f"none of the storage targets at {path} can be used: {reasons}")
    selection = compiled().select_targets(usable, threshold)
    chosen = set(selection["chosen"])
    for number, row in enumerate(targets):
        row["chosen"] = number in chosen
    return {
        "path": str(path),
        "kind": described["kind"],
        "limits": described["limits"],
        "probed_at": datetime.fromtimestamp(found["probed_at"], timezone.utc).isoformat(timespec="milliseconds"),
        "age_s": max(0.0, time.time() - found["probed_at"] - found["seconds"]),
        "seconds": found["seconds"],
        "bytes": sum(row["bytes"] for row in targets),
        "method": asdict(options),
        "threshold": threshold,
        "token_bucket": any(row["token_bucket_rate"] for row in targets),
        "targets": targets,
        "curve": [{**step, "target": targets[step["target"]]["name"]} for step in selection["curve"]],
        "chosen": [row["name"] for row in targets if row["chosen"]],
        "excluded": [row["name"] for row in targets if not row["chosen"]],
    }


# ------------------------------------------------------------------------------------------------------------ cache


def _cache_file(described: Mapping[str, Any], options: Options, threshold: float) -> Path:
    """One file for these targets, probed in this way from this machine."""
    places = [(row["name"], row["directory"]) for row in described["targets"]]
    key = json.dumps([CACHE_VERSION, platform.node(), described["kind"], places, asdict(options), threshold])
    directory = locate.cache_folder(os.environ)
    if directory is None:
        raise IoweirError("--cache: no home folder; set XDG_CACHE_HOME, or leave it out", EXIT_USAGE)
    return directory / f"probe-{hashlib.sha256(key.encode()).hexdigest()[:24]}.json"


_MOST_CACHE: Final = 16 << 20


def _cached(file: Path, keep_s: float) -> dict[str, Any] | None:
    try:
        with Folder.open(file.parent) as folder:
            found: dict[str, Any] = loads_bounded(folder, file.name, _MOST_CACHE, own=True)
        age = time.time() - float(found["probed_at"])
    except (OSError, ValueError, KeyError, TypeError):
        return None  # none, or one that was cut short: probe
    return found if 0 <= age <= keep_s else None


def _keep(file: Path, found: Mapping[str, Any]) -> None:
    try:
        file.parent.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            file.parent.mkdir(mode=0o700)
        with Folder.open(file.parent) as folder:
            folder.write(file.name, json.dumps(found), 0o600)
    except OSError as error:
        raise IoweirError(f"the probe's result cannot be kept in {file}: {error}; leave out --cache") from error


# ------------------------------------------------------------------------------------------------------------- text


def how(result: Mapping[str, Any]) -> str:
    """In a few words how the figures came about; whoever shows them shows this too."""
    method = result["method"]
    way = (
        f"{size(method['bytes'])} written to each"
        if method["bytes"]
        else f"windows of {seconds(method['window_s'])} after {seconds(method['discard_s'])}"
    )
    if method["repetitions"] > 1:
        way += f", median of {method['repetitions']}"
    if any(len(row["each"]) > method["repetitions"] for row in result["targets"]):
        way += ", what would be left out probed again"
    written = [row for row in result["targets"] if not row["problem"]]
    flushed = [row["name"] for row in written if not row["direct"]]
    way += ", O_DIRECT" if not flushed else ", flushed after every write"
    if flushed and len(flushed) < len(written):
        way += f" on {', '.join(flushed)}, O_DIRECT on the others"
    if result["token_bucket"]:
        way += "; limited by a token bucket, not by a device"
    return way


def to_text(result: Mapping[str, Any]) -> list[str]:
    """The two curves as a table, and the choice."""
    age = f", {seconds(result['age_s'])} ago" if result["age_s"] >= 1 else ""
    lines = [
        f"{result['path']}: {len(result['targets'])} targets ({result['kind']}), {how(result)}; "
        f"{seconds(result['seconds'])} and {size(result['bytes'])} in all{age}"
    ]
    curve = result["curve"]
    top = max(step["bytes_per_second"] for step in curve)
    peak = max(step["aggregate"] for step in curve)
    wide = max(6, *(len(step["target"]) for step in curve))
    bar = min(_BAR, max(_LEAST_BAR, (columns.COLUMNS - wide - 52) // 2))
    lines.append(
        f"  {'':>3}  {'target':<{wide}}  {'bandwidth':>12} {'':<{bar}}  {'together':>12} {'':<{bar}}  {'slope':>13}"
    )
    for number, step in enumerate(curve, start=1):
        if number == len(result["chosen"]) + 1:
            lines.append(f"  {'-' * (wide + 2 * bar + 50)}")
        slope = ("-" if step["slope"] < 0 else "+") + rate(abs(step["slope"]))
        lines.append(
            f"  {number:>3}  {step['target']:<{wide}}  {rate(step['bytes_per_second']):>12} "
            f"{_bar(step['bytes_per_second'], top, bar)}  {rate(step['aggregate']):>12} "
            f"{_bar(step['aggregate'], peak, bar)}  {slope:>13}"
        )
    lines += [f"  {row['name']}: cannot be used: {row['problem']}" for row in result["targets"] if row["problem"]]
    lines += _remarks(result)
    lines.append(f"use {len(result['chosen'])} of {len(result['targets'])}: {' '.join(result['chosen'])}")
    if result["excluded"]:
        lines.append(f"not: {' '.join(result['excluded'])}")
    return lines


def _remarks(result: Mapping[str, Any]) -> list[str]:
    met = [row["name"] for row in result["targets"] if not row["problem"] and not row["alone"]]
    if not met:
        return []
    return [f"  not locked against other probes, whose writes may be in the figures: {' '.join(met)}"]


def _bar(value: float, top: float, length: int) -> str:
    return ("#" * max(1, round(length * value / top)) if value else "").ljust(length)
