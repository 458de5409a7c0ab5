"""The page of `make bench-partition`: tables, bars that are met or missed, and charts of speed against files."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

import pairs
from ioweir.base import picture
from ioweir.base.units import size
from partition_runs import HAND, LOOP_MS, LOOP_STEPS, OF_RANK, OWN, SHARED, TOTAL, Handed, Results, Storage, Way

PERCEIVED_BAR, LOOP_BAR, SYNC_BAR, HAND_BAR = 0.8, 1.02, 0.95, 0.9
CALLS = {
    "auto": "pwritev (auto)",
    "independent": "write_at",
    "collective": "write_at_all",
    "split": "write_at_all_begin, _end",
}


def verdict(met: bool) -> str:
    """A cell."""
    return "met" if met else "**missed**"


def chart(title: str, unit: str, lines: Mapping[str, Mapping[int, float]]) -> str:
    """Speed against the number of files, each power of two a step; a line for each series."""
    points = [
        {"series": name, "files": files, "speed": speed, "description": f"{name}, {files} files: {speed:.4g} {unit}"}
        for name, series in lines.items()
        for files, speed in sorted(series.items())
    ]
    encoding = {
        "x": picture.axis("files", "ordinal", "number of files", axis={"labelAngle": 0}),
        "y": picture.axis("speed", "quantitative", unit),
        "color": picture.axis("series", "nominal", "", sort=list(lines)),
    }
    layers = [
        {"mark": "line", "encoding": encoding},
        {"mark": {"type": "circle", "size": 45, "opacity": 1}, "encoding": {**encoding, **picture.described()}},
    ]
    content = {"width": 520, "height": 290, "data": {"values": points}, "layer": layers}
    return picture.to_svg(picture.chart(f"{title}, {unit}", [], content))


def sync_chart(storage: Storage) -> str:
    """The paper's figure 4, with 1PFPP at as many files as ranks."""
    lines: dict[str, dict[int, float]] = {}
    for way in storage.speeds:
        if way.name == "syncIO" and way.layout == way.calls == "auto":
            lines.setdefault(f"{way.ranks} ranks", {})[way.files] = storage.speed(way)
        elif way.name == OWN:
            lines.setdefault("a file per process", {})[way.ranks] = storage.speed(way)
    return chart(f"syncIO, {storage.name}", "MiB/s", lines)


def files_chart(title: str, points_of: Mapping[str, Mapping[int, Sequence[float]]]) -> str:
    """Medians against the number of files: the paper's figure 10, and of figure 4 what is read."""
    lines = {
        name: {files: statistics.median(speeds) for files, speeds in points.items()}
        for name, points in points_of.items()
    }
    return chart(title, "MiB/s", lines)


def ratio(storage: Storage, way: Way, other: str = OWN) -> pairs.Interval:
    """Over 1PFPP, or another way with the same ranks, within rounds."""
    (against,) = (one for one in storage.speeds if (one.name, one.ranks) == (other, way.ranks))
    return pairs.median_interval([a / b for a, b in zip(storage.speeds[way], storage.speeds[against], strict=True)])


def sync_lines(storage: Storage) -> list[str]:
    """The table of one storage."""
    of = f"{size(TOTAL)} whatever the number of ranks" if storage.throttled else f"{size(OF_RANK)} of each rank"
    lines = [
        f"### {storage.name[0].upper()}{storage.name[1:]}",
        "",
        f"A checkpoint of {of}.",
        "",
        "| ranks | way | files | MiB/s, useful | with padding | over a file per process [95 %] |",
        "|---|---|---|---|---|---|",
    ]
    titles = {OWN: "a file per process (POSIX)", SHARED: "one plain MPI-IO file",
              HAND: "shared files by hand (pwritev)"}  # fmt: skip
    for way in storage.speeds:
        by_rule = way.layout == way.calls == "auto"
        title = titles.get(way.name, "syncIO" if by_rule else f"syncIO, {way.layout}, {CALLS[way.calls]}")
        files = way.files or (way.ranks if way.name == OWN else 1)
        speed = storage.speed(way)
        lines.append(
            f"| {way.ranks} | {title} | {files} | {speed:.1f} | {speed * (1 + storage.padded[way]):.1f} | "
            f"{ratio(storage, way).text(2)} |"
        )
    return [*lines, ""]


def eighths(storage: Storage) -> list[Way]:
    """syncIO with an eighth of the files that a file per process has."""
    return [
        way for way in storage.speeds
        if way.name == "syncIO" and way.layout == way.calls == "auto" and way.files * 8 == way.ranks
    ]  # fmt: skip


def handed_lines(handed: Sequence[Handed]) -> list[str]:
    """Perceived speed and the loop."""
    lines = [
        "| delegates | ranks | bytes a worker and checkpoint | perceived, GiB/s | over memcpy [95 %] | "
        "loop with over without checkpoints [95 %] | over memcpy, processor time | loop, processor time |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for one in handed:
        lines.append(
            f"| {one.title} | {one.ranks} | {size(one.bytes_per_checkpoint)} | "
            f"{statistics.median(one.gib_per_s):.2f} | "
            f"{pairs.median_interval(one.perceived).text(2)} | {pairs.median_interval(one.slowdown).text(3)} | "
            f"{pairs.median_interval(one.perceived_processor).text(2)} | "
            f"{pairs.median_interval(one.slowdown_processor).text(3)} |"
        )
    return [*lines, ""]


def by_hand(storage: Storage, processors: int) -> list[tuple[str, str, bool]]:
    """In memory, with a processor for each rank: over the same files written by hand."""
    found = []
    for way in storage.speeds:
        hand = Way(HAND, way.ranks, way.files, total=way.total)
        if storage.throttled or way.ranks > processors or hand not in storage.speeds or way.name != "syncIO":
            continue
        if way.layout == way.calls == "auto":
            value = ratio(storage, way, HAND).median
            bar = f"syncIO, {storage.name}, {way.ranks} ranks, {way.files} files: over the same by hand >= {HAND_BAR}"
            found.append((bar, f"{value:.2f}", value >= HAND_BAR))
    return found


def bars(results: Results) -> list[tuple[str, str, bool]]:
    """What must hold, what was found, and whether it does."""
    found = []
    for one in results.handed:
        if "more ranks" in one.title:
            continue
        fits = one.ranks + (1 if "thread" in one.title else 0) <= results.processors
        for clock, perceived, slowdown in (
            ("", one.perceived, one.slowdown),
            (", processor time", one.perceived_processor, one.slowdown_processor),
        ):
            value = pairs.median(perceived)
            bar = f"rbIO, {one.title}: perceived over memcpy{clock} >= {PERCEIVED_BAR}"
            found.append((bar, f"{value:.2f}", value >= PERCEIVED_BAR))
            value = pairs.median(slowdown)
            bar = f"rbIO, {one.title}: the loop with checkpoints{clock} <= {LOOP_BAR}"
            if fits:
                found.append((bar, f"{value:.3f}", value <= LOOP_BAR))
    for storage in results.storages:
        for way in eighths(storage) if storage.throttled else []:
            value = ratio(storage, way).median
            found.append(
                (f"syncIO, {storage.name}, {way.ranks} ranks, {way.files} files: over a file per process >= {SYNC_BAR}",
                 f"{value:.2f}", value >= SYNC_BAR)
            )  # fmt: skip
    for storage in results.storages:
        found += by_hand(storage, results.processors)
    found.append(("every set that was written is whole", f"{results.lost} are not", results.lost == 0))
    return found


def lines_of(results: Results, name: str) -> tuple[list[str], dict[str, str]]:
    """The page behind its introduction, and its pictures."""
    pictures = dict(results.pictures)
    lines = ["## What must hold", "", "| bar | found | |", "|---|---|---|"]
    lines += [f"| {bar} | {value} | {verdict(met)} |" for bar, value, met in bars(results)]
    lines += [
        "",
        "## By all ranks (syncIO)",
        "",
        "A checkpoint in three fields; from creating the set (or file) until all of it is on storage and the set has "
        "its name. All ways take turns; medians, and medians of ratios within rounds. Padding is to 1 MiB. syncIO by "
        "its own rules where nothing is said, which here is unaligned, by pwritev. By hand: "
        "every rank knows all places and writes each block with one call into the same files, which the kernel's lock "
        "on a file bounds. There is no set that appears whole or not at all. Where ranks share processors, what "
        "they wait for each other is most of a set's time in memory.",
        "",
    ]
    for number, storage in enumerate(results.storages):
        lines += sync_lines(storage)
        lines += [f"![speed by number of files]({name}-files{number}.svg)", ""]
        pictures[f"-files{number}"] = sync_chart(storage)
    lines += [
        "## Handed over (rbIO)",
        "",
        "Perceived speed as the paper defines it: bytes of all workers over the mean time that they are in calls, "
        "against a memcpy of the same bytes by the same workers in the same run. Both go into memory whose pages "
        "are there (a program's first checkpoint is not counted). The loop: "
        f"{LOOP_STEPS} steps of about {LOOP_MS} ms with a sum over all workers in each and a checkpoint every 10, "
        "against the same loop without, with the delegate idle; in memory. Processor time is the workers' own: it "
        "holds what the calls do, but not waiting for a processor.",
        "",
        *handed_lines(results.handed),
    ]
    if results.modes:
        lines += [
            "Actual speed on the slow device, until all of it is on storage:",
            "",
            "| mode | files | MiB/s |",
            "|---|---|---|",
        ]
        for mode, points in results.modes.items():
            lines += [f"| {mode} | {files} | {statistics.median(speeds):.1f} |" for files, speeds in points.items()]
        lines += ["", f"![speed by mode and number of files]({name}-modes.svg)", ""]
        pictures["-modes"] = files_chart("rbIO by mode, slow device", results.modes)
    if results.reads:
        lines += ["Reading a set from the slow device, out of the page cache (the paper's figure 5):", ""]
        lines += ["| reads | files | MiB/s |", "|---|---|---|"]
        for how, points in results.reads.items():
            lines += [f"| {how} | {files} | {statistics.median(speeds):.1f} |" for files, speeds in points.items()]
        lines += ["", f"![speed of reading by number of files]({name}-reads.svg)", ""]
        pictures["-reads"] = files_chart("reading, slow device", results.reads)
    if results.slow_share:
        share = statistics.median(results.slow_share)
        lines += [
            "A loop that writes faster than the slow device takes, with 16 MiB on the delegate and 8 MiB on the "
            f"worker, goes at {100 * share:.0f} % of the device's rate.",
            "",
        ]
    if results.pictures:
        lines += [
            "## When each rank wrote or read",
            "",
            "16 ranks, 2 files, on the slow device; from traces by ioweir.",
            "",
        ]
        titles = {
            "-read-independent": "independent reads (the paper's figure 5)",
            "-read-collective": "collective reads (figure 5)",
            "-sync-unaligned": "syncIO, unaligned (the paper's figure 6)",
            "-sync-aligned": "syncIO, aligned (figure 7)",
            "-rbio-mode1": "rbIO, mode 1 (figure 11)",
            "-rbio-mode2": "rbIO, mode 2 (figure 12)",
        }
        for picture in results.pictures:
            lines += [f"{titles[picture]}:", "", f"![{titles[picture]}]({name}{picture}.svg)", ""]
    return lines, pictures
