"""The part of docs/results/targets.md about programs: tables, and which bars were missed.

Not here: what was run (targets_runs.py).
"""

from __future__ import annotations

import statistics

from ioweir.base.units import rate
from targets_runs import (
    CHOSEN,
    FREE,
    GROWTHS,
    KERNEL_MIB,
    LOG_RANKS,
    MOVING,
    RANKS,
    SLOW_AFTER_S,
    SLOW_SHARE,
    SUBFILED,
    TITLES,
    Runs,
    Way,
)


def table(ways: dict[str, Way], ideal: float | None) -> list[str]:
    """Mean and deviation of each way."""
    shares = " | of what the good targets can give | the time between the calls counted, too" if ideal else ""
    lines = [f"| way | runs | MiB/s, mean | standard deviation{shares} |"]
    lines.append("|---|---|---|---|" + ("---|---|" if ideal else ""))
    for name, way in ways.items():
        of_ideal = f" {way.mean / ideal:.2f} | {statistics.mean(way.spans) / ideal:.2f} |" if ideal else ""
        lines.append(f"| {TITLES[name]} | {len(way.written)} | {way.mean:.1f} | {way.deviation:.2f} |{of_ideal}")
    return lines


def aggregator_lines(runs: Runs) -> list[str]:
    """How long each aggregator wrote, and what the rest of the calls' time was."""
    lines = [
        "### Aggregators",
        "",
        "In contention-free order: seconds that each aggregator spent writing and waiting for its target (Son et al., "
        "figure 12), and of the collective calls' time, all ranks together, what was not storage. Most of that is "
        "waiting: for the slowest aggregator, and for a processor. Then time of the processor: copying into buffers, "
        "and telling each other. Bar: 1 per cent, which the paper states for the additional communication. The last "
        "column, without a bar, is of reading back what the page cache still holds, where copying is all there is.",
        "",
        "| way | aggregators, all runs | seconds, mean | standard deviation | exchange and waiting "
        "| exchange, processor | the same, reading from the page cache |",
        "|---|---|---|---|---|---|---|",
    ]
    for free in FREE.values():
        each = runs.aggregators.get(free, [])
        if len(each) > 1:
            lines.append(
                f"| {TITLES[free]} | {len(each)} | {statistics.mean(each):.2f} | {statistics.stdev(each):.2f} | "
                f"{100 * runs.exchange_share[free]:.1f} % | {100 * runs.work_share[free]:.2f} % | "
                f"{100 * runs.reading_share[free]:.2f} % |"
            )
    return [*lines, ""]


def growth_lines(runs: Runs) -> list[str]:
    """A target that turns slow."""
    return [
        "## A target that turns slow",
        "",
        f"{RANKS} ranks add to a file of subfiles on all {runs.targets} targets, 4 MiB a rank and call in stripes of "
        f"1 MiB, in contention-free order. {SLOW_AFTER_S:.0f} s after the file was made one target is slowed to "
        f"{SLOW_SHARE}. Bytes written over what the targets could have taken from the first call to the end of the "
        "last one and its `MPI_File_sync`. The program's own time between calls counts, and the slow target counts as "
        "nothing from then on (bar: 0.8):",
        "",
        "| rule | MiB in all | share |",
        "|---|---|---|",
        *(
            f"| {growth.title} | {growth.each_mib * RANKS} | {share:.2f} |"
            for growth, share in zip(GROWTHS, runs.rebalanced, strict=False)
        ),
        "",
    ]


def lines_of(runs: Runs) -> list[str]:
    """The page's part."""
    fixed, varied = runs.fixed, runs.varied
    return [
        "## Programs: coll_perf on the good targets",
        "",
        f"{RANKS} ranks (Open MPI), {KERNEL_MIB} MiB a file in two collective calls and `MPI_File_sync`, whose time is "
        f"in the figures; opening with its probe is not. {runs.targets} loop devices of {rate(runs.target_rate)}, one "
        f"at {SLOW_SHARE}. No file system stripes over directories: a subfile on each target stands in for the shared "
        f"file's stripes. Bars: 0.9 of the {runs.ideal_mib_per_s:.1f} MiB/s of the seven others. Between its calls the "
        "program prepares the next one's data while the targets go on writing; the last column counts that time, too.",
        "",
        *table(fixed, runs.ideal_mib_per_s),
        "",
        f"Probing took {statistics.median(runs.probe_s):.2f} s (median of {len(runs.probe_s)} files); "
        f"other targets than the fast ones were chosen for {runs.wrong} files of this page's runs.",
        "",
        "This lab's rates are kept by the kernel to the per cent, so that the deviation of the ways without "
        "choice says little. In the next table another target is slow in each run, by a factor of 2 to 9: what a "
        "program meets that does not know. Bar: a third of the deviation of writing to all.",
        "",
        *table(varied, None),
        "",
        f"Deviation: {varied[CHOSEN].deviation / varied[SUBFILED].deviation:.2f} of that of writing to all.",
        "",
        *aggregator_lines(runs),
        *growth_lines(runs),
        "## Programs: BTIO through logs",
        "",
        f'BTIO class B, 12 solutions (509 MB), {LOG_RANKS} ranks, `mapping = "log"` with {runs.targets} aggregators, '
        f"whose logs lie on a target each: {runs.targets} loop devices of {rate(runs.target_rate)}. From the first "
        f"call to the end of `MPI_File_sync` the program has {runs.log_share:.2f} of the sum of their rates (bar: "
        "0.95). Merged by one process the file "
        + (
            "is the same, byte for byte, as the MPI library's."
            if runs.log_right
            else "**differs** from the MPI library's."
        ),
        "",
        "Why bars are met or missed: [targets-bars.md](../internal/targets-bars.md).",
        "",
    ]


def missed_bars(runs: Runs) -> list[str]:
    """Bars that were missed, for a person."""
    missed = []
    if runs.fixed[CHOSEN].mean < 0.9 * runs.ideal_mib_per_s:
        missed.append(f"chosen targets: {runs.fixed[CHOSEN].mean / runs.ideal_mib_per_s:.2f} of the ideal, not 0.9")
    if runs.varied[CHOSEN].deviation > runs.varied[SUBFILED].deviation / 3:
        missed.append("chosen targets: deviation above a third")
    if runs.work_share[FREE[CHOSEN]] > 0.01:
        missed.append(f"exchange: {100 * runs.work_share[FREE[CHOSEN]]:.1f} per cent of collective time, not 1")
    for growth, share in zip(GROWTHS, runs.rebalanced, strict=True):
        if growth.file == MOVING and share < 0.8:
            missed.append(f"{growth.title}, {growth.each_mib * RANKS} MiB: {share:.2f} of what was possible, not 0.8")
    if runs.log_share < 0.95 or not runs.log_right:
        missed.append(f"logs: {runs.log_share:.2f} of the sum, not 0.95, or wrong bytes")
    return missed
