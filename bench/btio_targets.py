"""BTIO on targets, through logs and into one file, and when its ranks write (Wright et al. 2013, figure 9).

Lives here: the runs, and the picture of one call. Not here: BTIO in memory against the MPI libraries (hdf5_runs.py),
the lab (python/ioweir/targets/lab.py), the page's bars (hdf5_page.py).
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

import hdf5_runs
import ioweir.trace
import launch
import numpy as np
from hdf5_runs import AUTO, EVERYONE, KIND, Figures
from ioweir.base import picture

FILE = "btio.data"
RANKS = (4, 16)
KERNEL = ("btio", "class=B", "writes=24")
"""A gigabyte: on four targets of 24 MB/s eleven seconds."""
QUICK = ("btio", "class=B", "writes=2")
CALLS = ("btio", "class=B", "writes=6")
"""Of which the picture has one."""
LOGS = "logs"
WAYS = {
    "one file over all targets, collective": ("mpiio", "subfiles", AUTO),
    "one file over all targets, independent": ("independent", "subfiles", EVERYONE),
    f"{LOGS}, collective": ("mpiio", "log", EVERYONE),
    f"{LOGS}, independent": ("independent", "log", EVERYONE),
}
"""The runner's mode, the plan's mapping and its writers."""
PICTURES = {
    "ROMIO, one file": (None, {"OMPI_MCA_io": "romio321"}),
    "a plan, one file: `auto`": (f'mapping = "shared"\n{AUTO}', {}),
    "a plan: logs": (f'mapping = "log"\n{EVERYONE}', {}),
}
"""Keys of a rule, and the environment, in memory."""


def rule(keys: str) -> str:
    """Of the plan."""
    return f'[[file]]\nmatch = "*/{FILE}"\n{keys}\n'


def on_targets(place: hdf5_runs.Place, scratch: Path, repeats: int, quick: bool) -> dict[str, list[Figures]]:
    """Each way on each number of ranks, in turn; to when the bytes are on the targets."""
    directories = ", ".join(f'"{target}"' for target in place.targets)
    found: dict[str, list[Figures]] = {}
    for ranks in RANKS:
        print(f"-- BTIO: {len(place.targets)} targets, {ranks} ranks", flush=True)
        rows = [Figures(title) for title in WAYS]
        for _ in range(repeats):
            for row, (mode, mapping, writers) in zip(rows, WAYS.values(), strict=True):
                mapped = f"subfiles:{len(place.targets)}" if mapping == "subfiles" else mapping
                line, row.requests = hdf5_runs.run_step(
                    scratch, place.root, [place.root], KIND, ranks, QUICK if quick else KERNEL,
                    ["--mode", f"{mode}:{FILE}", "--sync", "1"],
                    rule(f'mapping = "{mapped}"\ntargets = [{directories}]\n{writers}'),
                )  # fmt: skip
                row.written.append(line["write_mib_per_s"])
        found[f"class B, {ranks} ranks"] = rows
    return found


def missed(runs: dict[str, list[Figures]], ideal: float) -> list[str]:
    """Logs have to take what the targets can, but for a twentieth."""
    return [
        f"BTIO, {name}, {row.title}: {row.median / ideal:.2f} of what all targets together can take, not 0.95"
        for name, rows in runs.items()
        for row in rows
        if row.title.startswith(LOGS) and row.median < 0.95 * ideal
    ]


def calls(scratch: Path) -> dict[str, list[list[float]]]:
    """By PICTURES: when ranks wrote in one collective call of four, in memory: rank, begin and end in milliseconds."""
    print("-- BTIO: one call", flush=True)
    found = {}
    for title, (keys, environment) in PICTURES.items():
        trace, plan = scratch / "trace", scratch / "plan.toml"
        plan.write_text(rule(keys or ""), encoding="utf-8")
        launch.run_program(
            launch.KERNEL_RUNNER, KIND, RANKS[0], [*CALLS, "--directory", str(scratch), "--mode", f"mpiio:{FILE}"],
            launch.Traced(trace, plan if keys else None, "posix,mpiio"), environment,
        )  # fmt: skip
        found[title] = one_call(trace)
        shutil.rmtree(trace)
    return found


def one_call(directory: Path) -> list[list[float]]:
    """The ranks' writes to storage within the last collective write but one, from when the first rank began it."""
    trace = ioweir.trace.read(directory)
    events = trace.events
    names = {function.id: (function.layer, function.op) for function in trace.functions}
    rank_of = {n: process.rank for n, process in enumerate(trace.processes) if process.rank >= 0}
    in_ranks = np.isin(events.process, list(rank_of))

    def of(layer: str) -> np.ndarray:
        wanted = [number for number, name in names.items() if name == (layer, "write")]
        return np.flatnonzero(in_ranks & np.isin(events.function, wanted))

    ends = events.start_ns + events.duration_ns
    last_but_one = []
    for process in rank_of:
        mine = [int(n) for n in of("MPI-IO") if events.process[n] == process]
        last_but_one.append(sorted(mine, key=lambda n: int(events.start_ns[n]))[-2])
    begin = min(int(events.start_ns[n]) for n in last_but_one)
    end = max(int(ends[n]) for n in last_but_one)
    writes = [n for n in of("POSIX") if begin <= events.start_ns[n] and ends[n] <= end]
    return merged(
        ((rank_of[int(events.process[n])], (int(events.start_ns[n]) - begin) / 1e6, (int(ends[n]) - begin) / 1e6)
         for n in writes), (end - begin) / 1e6 / 1000,
    )  # fmt: skip


def merged(writes: Iterable[tuple[int, float, float]], gap: float) -> list[list[float]]:
    """Writes of a rank that follow each other within less than `gap` as one, by rank and begin."""
    found: list[list[float]] = []
    for rank, begin, end in sorted(writes):
        if found and found[-1][0] == rank and begin - found[-1][2] < gap:
            found[-1][2] = max(found[-1][2], end)
        else:
            found.append([rank, begin, end])
    return found


def lines_of(runs: dict[str, list[Figures]], ideal: float, pictures: dict[str, list[list[float]]]) -> list[str]:
    """The page's part."""
    lines = ["## BTIO through logs", ""]
    if runs:
        lines += [
            f"On the same targets as above, {ideal:.1f} MiB/s together, {KERNEL[2].removeprefix('writes=')} writes of "
            "class B; times to when the bytes are on the targets.",
            "",
            "| run | way | MiB/s, most | median | of all targets | writes |",
            "|---|---|---|---|---|---|",
            *(
                f"| {name} | {row.title} | {row.most:.1f} | {row.median:.1f} | {row.median / ideal:.2f} | "
                f"{row.requests.large + row.requests.small:,} |"
                for name, rows in runs.items()
                for row in rows
            ),
            "",
        ]
    if pictures:
        lines += [
            "When the ranks write in one collective call (class B, four ranks, in memory), as Wright et al.'s",
            "figure 9: into one file some write for all, and wait for each other; into logs all write at once.",
            "",
            "![one call of BTIO](hdf5-btio.svg)",
            "",
        ]
    return lines


def to_svg(pictures: dict[str, list[list[float]]]) -> str:
    """A strip for each way, a row for each rank, all with one scale."""
    longest = max(end for writes in pictures.values() for _, _, end in writes)
    time = {"scale": {"domain": [0, longest], "nice": False}}
    strips = []
    for title, writes in pictures.items():
        ranks = range(max(RANKS[0], *(int(rank) + 1 for rank, _, _ in writes)))
        rows = [
            {"rank": rank, "begin": begin, "end": end, "description": f"rank {rank:.0f}: {begin:.3f} to {end:.3f} ms"}
            for rank, begin, end in writes
        ]
        encoding = {
            "y": picture.axis("rank", "ordinal", "rank", scale={"domain": list(ranks)}),
            "x": picture.axis("begin", "quantitative", "ms", **time),
            "x2": {"field": "end"},
            **picture.described(),
        }
        mark = {"type": "bar", "fill": picture.BLUE}
        strips.append({
            "title": title.replace("`", ""), "width": 620, "height": {"step": 16},
            "data": {"values": rows}, "mark": mark, "encoding": encoding,
        })  # fmt: skip
    return picture.to_svg(
        picture.chart("One collective call of BTIO: when each rank writes", [], {"vconcat": strips, "spacing": 12})
    )
