"""Cases for a calibration, measured on storage targets: files of pieces of several sizes, written and read.

Each case is what a program does: `pwrite` into the page cache, then `fsync`; or `fdatasync` after each piece; or
reading what the page cache has been told to forget. All targets one by one, then together, in turn and several times,
so that what disturbs one disturbs the others, too.

Lives here: the measurements. Not here: the fit (fitting.py), probing for good targets (src/probe).
"""

from __future__ import annotations

import concurrent.futures
import os
import random
import statistics
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ioweir.base.compiled import compiled
from ioweir.base.guarded_files import Folder
from ioweir.errors import EXIT_USAGE, IoweirError
from ioweir.predict.cases import ExtentCase, Placed

if TYPE_CHECKING:
    from collections.abc import Sequence

KIB, MIB = 1 << 10, 1 << 20
DIRECT: Final = {"client.cache_bytes": 0.0}
_PIECES: Final = (64 * KIB, 256 * KIB, MIB)
_LEAST_BYTES, _MOST_BYTES = 4 * MIB, 64 * MIB
_CASE_S: Final = 0.6
"""So long the largest case of a target should take."""
_SLOW: Final = 1.05
"""A target that takes less than so many times the median's time is as fast as the others."""


@dataclass(frozen=True)
class Trial:
    """What is done to a file."""

    name: str
    pieces: tuple[tuple[int, int], ...]
    """(offset, length), in their order."""
    flush_each: bool = False
    reads: bool = False


def directories(path: Path) -> list[Path]:
    """Of the targets in effect at a path; the path itself where there is a directory and no targets."""
    if not path.is_dir():
        raise IoweirError(
            f"--targets {path}: no directory; name one on the storage that is to be described", EXIT_USAGE
        )
    try:
        described = compiled().describe_targets(str(path))
    except ValueError:
        if not os.access(path, os.W_OK | os.X_OK):
            raise IoweirError(
                f"--targets {path}: you may not write there; name another, or change its rights"
            ) from None
        return [path]
    unusable = [f"{row['name']}: {row['unusable']}" for row in described["targets"] if row["unusable"]]
    if unusable:
        raise IoweirError(f"--targets {path}: {'; '.join(unusable)}. Mend them, or name a directory without them")
    if any(row["token_bucket_rate"] for row in described["targets"]):
        raise IoweirError(
            f"--targets {path}: targets of token buckets limit ioweir only, and cannot be measured so; take a lab of "
            "loop devices, or --runs"
        )
    places = [Path(row["directory"]) for row in described["targets"]]
    if any(not place.is_dir() for place in places):
        raise IoweirError(f"--targets {path}: {described['kind']} gives no directory a target; take --runs or --trace")
    return places


def copying(place: Path) -> float:
    """Bytes a second of one process into the page cache."""
    seconds = []
    content = os.urandom(MIB)
    descriptor = _new_file(place)
    try:
        for at in range(0, _LEAST_BYTES, MIB):
            begin = time.monotonic()
            os.pwrite(descriptor, content, at)
            seconds.append(time.monotonic() - begin)
    finally:
        os.close(descriptor)
    return MIB / max(statistics.median(seconds), 1e-9)


def measure(places: Sequence[Path], repeats: int) -> tuple[list[ExtentCase], list[float]]:
    """Cases of all targets, and how many times as long as the median target each of them takes."""
    amounts = [_amount(place) for place in places]
    took: dict[int, list[float]] = {number: [] for number in range(len(places))}
    rows: list[tuple[str, int | None, Trial, float]] = []
    for repeat in range(repeats):
        for number, place in enumerate(places):
            for trial in _trials(amounts[number], repeat):
                seconds = _run(place, trial)
                rows.append((trial.name, number, trial, seconds))
                if trial.name == "together":
                    took[number].append(seconds / amounts[number])
        if len(places) > 1:
            trial = _trials(min(amounts), repeat)[0]
            rows.append(("all at once", None, trial, _all_at_once(places, trial)))
    slowdown = _slowdown([statistics.median(values) for values in took.values()])
    return [_case(row, slowdown, len(places)) for row in rows], slowdown


def _amount(place: Path) -> int:
    """Bytes that take about _CASE_S, found by writing a few."""
    trial = Trial("first", tuple((at, MIB) for at in range(0, _LEAST_BYTES, MIB)))
    per_s = _LEAST_BYTES / _run(place, trial)
    room = os.statvfs(place)
    most = min(_MOST_BYTES, room.f_bavail * room.f_frsize // 4)
    if most < _LEAST_BYTES:
        raise IoweirError(f"{place}: {room.f_bavail * room.f_frsize} B are free; {4 * _LEAST_BYTES} B are needed")
    return max(_LEAST_BYTES, min(int(most), int(per_s * _CASE_S))) // MIB * MIB


def _trials(amount: int, repeat: int) -> list[Trial]:
    def sequence(piece: int, total: int) -> tuple[tuple[int, int], ...]:
        return tuple((at, piece) for at in range(0, total, piece))

    half = max(_LEAST_BYTES, amount // 2 // MIB * MIB)
    trials = [Trial("together", sequence(MIB, amount)), Trial("half as much", sequence(MIB, half))]
    for piece in _PIECES:
        few = sequence(piece, min(half, 32 * piece))
        trials.append(Trial(f"flushed, {piece >> 10} KiB", few, flush_each=True))
        scattered = [(2 * at, piece) for at, piece in few]
        random.Random(repeat).shuffle(scattered)
        trials.append(Trial(f"scattered, flushed, {piece >> 10} KiB", tuple(scattered), flush_each=True))
    trials.append(Trial("read", sequence(MIB, half), reads=True))
    trials.append(Trial("read, 64 KiB", sequence(64 * KIB, min(half, 4 * MIB)), reads=True))
    return trials


def _run(place: Path, trial: Trial) -> float:
    """Seconds. The file is gone afterwards."""
    end = max(offset + length for offset, length in trial.pieces)
    content = memoryview(os.urandom(max(length for _, length in trial.pieces)))
    descriptor = _new_file(place)
    try:
        if trial.reads or trial.flush_each:
            _fill(descriptor, end)
        begin = time.monotonic()
        for offset, length in trial.pieces:
            if trial.reads:
                os.pread(descriptor, length, offset)
                continue
            os.pwrite(descriptor, content[:length], offset)
            if trial.flush_each:
                os.fdatasync(descriptor)
        if not trial.reads and not trial.flush_each:
            os.fsync(descriptor)
        return time.monotonic() - begin
    finally:
        os.close(descriptor)


def _new_file(place: Path) -> int:
    """Opened, and without a name: it is gone when it is closed."""
    name = f".ioweir-calibrate-{os.getpid()}-{threading.get_ident()}"
    with Folder.open(place) as folder:
        descriptor = folder.create(name, 0o600)
        folder.remove(name)
    return descriptor


def _fill(descriptor: int, end: int) -> None:
    """The blocks are there, on the device, and not in the page cache."""
    content = os.urandom(MIB)
    for at in range(0, end, MIB):
        os.pwrite(descriptor, content[: min(MIB, end - at)], at)
    os.fsync(descriptor)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)


def _all_at_once(places: Sequence[Path], trial: Trial) -> float:
    with concurrent.futures.ThreadPoolExecutor(len(places)) as pool:
        return max(pool.map(lambda place: _run(place, trial), places))


def _slowdown(seconds: Sequence[float]) -> list[float]:
    middle = statistics.median_low(seconds)
    return [took / middle if max(took / middle, middle / took) > _SLOW else 1.0 for took in seconds]


def _case(row: tuple[str, int | None, Trial, float], slowdown: Sequence[float], targets: int) -> ExtentCase:
    name, number, trial, seconds = row
    if number is None:
        each = sum(length for _, length in trial.pieces)
        calls = [[[(rank * each, each)] for rank in range(targets)]]
        placed = Placed(tuple(range(targets)), tuple(slowdown))
        own = {"files.stripe_bytes": float(each), "files.stripe_count": 0.0}
        return ExtentCase(name, seconds, calls, True, placed, own)
    placed = Placed((number,), tuple(slowdown))
    group = f"{name}, target {number}"
    if trial.flush_each or trial.reads:
        return ExtentCase(group, seconds, [[[piece]] for piece in trial.pieces], not trial.reads, placed, DIRECT)
    return ExtentCase(group, seconds, [[[piece]] for piece in trial.pieces], True, placed)
