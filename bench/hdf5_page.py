"""The page of docs/results/hdf5.md and its pictures, from figures. Not here: measuring them (hdf5_runs.py)."""

from __future__ import annotations

from collections.abc import Sequence

import bars
import btio_targets
import hdf5_runs
import pairs
import run
from hdf5_runs import Figures, Ladder, Requests, Runs
from ioweir.base.units import rate

SHARE = 0.9
NEVER_SLOWER = 0.97
"""The design's measure (section 6): slower is what has its interval of ratios wholly below."""
SEVERAL_FILES = ("subfiles", "logs", "logs, `hdf5`", "logs, `hdf5`, newest format")
"""How the titles of plans end that write several files."""


INTRODUCTION = f"""\
# Results: HDF5

What the optimisations of Howison et al. 2010 are worth to programs that write through parallel HDF5, one after
another, against a file for each process; data sieving under FLASH-IO (Wright et al. 2013, figure 8); BTIO. Repeat with

    make bench-hdf5              # builds, measures (an hour, root), writes build/bench/hdf5.{{json,md}}, pictures
    make bench-hdf5 RECORD=1     # the same, and into this page
    make bench-hdf5 QUICK=1      # one run each of fewer bytes, five minutes: to see that it works, not to quote

The programs are kernels (`ioweir kernel NAME --api hdf5`), {hdf5_runs.RANKS} ranks on the lab, and in memory
{hdf5_runs.RANKS_IN_MEMORY}. Times are from creating the file to when it is closed, on the lab to when its bytes are on
the devices. *Small* writes are those below
64 KiB: metadata, and what domains cut off. Requests are counted in ioweir's own traces, of the ranks' POSIX calls.
MiB/s: the largest of the repetitions, as the paper has it, and the median. The ceiling is a file for each process on
the same targets, every write as large as the mean. What is behind figures and missed bars: [HDF5: what is behind the
figures](../internal/hdf5-bars.md).
"""


def requests_text(requests: Requests) -> str:
    """Cells of a table."""
    return f"{requests.large:,} | {requests.mean_kib:,.0f} | {requests.small:,} | {requests.small_bytes / 1024:,.1f}"


def runs_text(figures: Figures) -> str:
    """How many."""
    count = len(figures.written)
    return f"{count} run{'' if count == 1 else 's'}"


def share(figures: Figures, of: Figures) -> str:
    """Of the ceiling."""
    return f"{figures.median / of.median:.2f}" if of.median else "-"


def ladder_lines(ladder: Ladder) -> list[str]:
    """One application in one place."""
    return [
        f"### {ladder.application}, {ladder.place}, {ladder.mib:.0f} MiB, {runs_text(ladder.ceiling)}",
        "",
        "| step | MiB/s, most | median | of the ceiling | large writes | their mean, KiB | small writes | their KiB |",
        "|---|---|---|---|---|---|---|---|",
        *(
            f"| {row.title} | {row.most:.1f} | {row.median:.1f} | {share(row, ladder.ceiling)} | "
            f"{requests_text(row.requests)} |"
            for row in [*ladder.steps, *([ladder.by_hand] if ladder.by_hand.written else []), ladder.ceiling]
        ),
        "",
    ]


def lab_lines(runs: Runs) -> list[str]:
    """All applications on the targets."""
    return [
        f"## On {runs.targets} targets of {rate(runs.target_rate)}",
        "",
        "Open MPI. No file system stripes over directories: a plan's "
        f'`mapping = "subfiles:{runs.targets}"` stands in for the stripes of the shared file in every step, baseline '
        "included.",
        "",
        *(line for ladder in runs.on_lab for line in ladder_lines(ladder)),
        "![the ladders](hdf5-ladders.svg)",
        "",
    ]


def ceph_lines(runs: Runs) -> list[str]:
    """All applications on the pools."""
    return [
        f"## On CephFS, {runs.targets} pools of {rate(runs.ceph_rate)}",
        "",
        "Open MPI. The pools of a CephFS on this machine, each with an OSD of its own behind a link of that rate; its "
        "daemons share the processors with the ranks. A file lies in one pool: subfiles as above.",
        "",
        *(line for ladder in runs.on_ceph for line in ladder_lines(ladder)),
    ]


def memory_lines(runs: Runs) -> list[str]:
    """All applications under both MPI libraries."""
    return [
        "## In memory",
        "",
        "Baselines, and all of GCRM's steps but those with a plan, are the MPI library's own.",
        "",
        *(line for ladder in runs.in_memory for line in ladder_lines(ladder)),
    ]


def sieving_lines(runs: Runs) -> list[str]:
    """FLASH-IO's configurations."""
    lines = [
        "## FLASH-IO and data sieving",
        "",
        "Two ranks, in memory. *Guarded*: blocks have guard cells in the program's memory, so that neither memory nor "
        "file look like one piece to ROMIO ([a tutorial](../tutorials/data-sieving.md)); OMPIO knows no such hints.",
        "",
    ]
    for name, rows in runs.sieving.items():
        lines += [
            f"### {name}, {runs_text(rows[0])}",
            "",
            "| configuration | MiB/s, most | median | of the original | large writes | small writes | reads | locks |",
            "|---|---|---|---|---|---|---|---|",
            *(
                f"| {row.title} | {row.most:.1f} | {row.median:.1f} | {share(row, rows[0])} | "
                f"{row.requests.large:,} | {row.requests.small:,} | {row.requests.reads:,} | {row.requests.locks:,} |"
                for row in rows
            ),
            "",
        ]
    return [*lines, "![FLASH-IO](hdf5-sieving.svg)", ""]


def btio_lines(runs: Runs) -> list[str]:
    """A row for each library, class and number of ranks."""
    titles = hdf5_runs.BTIO_COLUMNS
    lines = [
        "## BTIO",
        "",
        f"In memory, medians in MiB/s, written / read back (writes of all ranks); {hdf5_runs.processors()} processors, "
        "and MPICH's ranks spin where there are more of them. The share is a plan's, of the best without one: the "
        "median of the ratios, run by run, and their 95 per cent interval (of three runs their extremes).",
        "",
        "| run | " + " | ".join(titles) + " | share, collective | share, independent |",
        "|---|" + "---|" * (len(titles) + 2),
    ]
    for name, rows in runs.btio.items():
        found = {row.title: row for row in rows}
        cells = [btio_cell(found.get(title)) for title in titles]
        shares = [" / ".join(value.text(2) for value in btio_shares(rows, way)) for way in hdf5_runs.BTIO_WAYS]
        lines.append(f"| {name} | {' | '.join([*cells, *shares])} |")
    return [*lines, ""]


def btio_cell(row: Figures | None) -> str:
    """Of a table; the MPI library may not have that way."""
    if row is None:
        return "-"
    return f"{row.median:.0f} / {row.median_read:.0f} ({row.requests.large + row.requests.small:,})"


def btio_shares(rows: Sequence[Figures], way: str) -> tuple[pairs.Interval, pairs.Interval]:
    """Writing and reading with a plan, of the best that the MPI library's own ways have, run by run."""
    planned = next(row for row in rows if row.title == f"{way}, a plan")
    others = [row for row in rows if row.title.startswith(way) and row is not planned]
    written = max(others, key=lambda row: row.median).written
    read = max(others, key=lambda row: row.median_read).read
    return ratios(planned.written, written), ratios(planned.read, read)


def missed_bars(runs: Runs) -> list[str]:
    """For a person."""
    missed = []
    for ladder in [*runs.on_lab, *runs.on_ceph]:
        best = max(row.median for row in ladder.steps[1:])
        if best < SHARE * ladder.ceiling.median:
            missed.append(
                f"{ladder.application}, {ladder.place}: {best / ladder.ceiling.median:.2f} of a file for each process, "
                f"not {SHARE}"
            )
    for ladder in runs.in_memory:
        missed += missed_in_memory(ladder) if ladder.application != hdf5_runs.SMALL_STEPS else []
    for ladder in [*runs.on_lab, *runs.on_ceph, *runs.in_memory]:
        first, last = ladder.steps[0].requests, ladder.steps[2].requests
        if ladder.application.startswith("GCRM") and last.small >= first.small:
            missed.append(f"{ladder.application}, {ladder.place}: {last.small} small writes, {first.small} before")
    for name, rows in runs.btio.items():
        for way in hdf5_runs.BTIO_WAYS:
            for doing, of_best in zip(("written", "read"), btio_shares(rows, way), strict=True):
                if of_best.high < 1:
                    missed.append(f"BTIO, {name}, {way}, {doing}: {of_best.text(2)} of the best without a plan")
    for name, rows in runs.sieving.items():
        missed += missed_by_flash(name, rows)
    return missed + btio_targets.missed(runs.btio_on_lab, runs.ideal)


def missed_by_flash(name: str, rows: Sequence[Figures]) -> list[str]:
    """The design's bars (section 6): against the best of the MPI library's ways, and one file by hand."""
    *_, planned, by_hand = rows
    best, of_best = flash_of_best(rows)
    missed = [f'FLASH-IO, {name}: {of_best.text(2)} of "{best.title}"'] if of_best.high < NEVER_SLOWER else []
    if planned.median < SHARE * by_hand.median:
        missed.append(f"FLASH-IO, {name}: {planned.median / by_hand.median:.2f} of one file by hand, not {SHARE}")
    return missed


def flash_of_best(rows: Sequence[Figures]) -> tuple[Figures, pairs.Interval]:
    """The best of the MPI library's ways, and what a plan has of it."""
    *others, planned, _ = rows
    best = max(others, key=lambda row: row.median)
    return best, ratios(planned.written, best.written)


def narrowly_met_lines(runs: Runs) -> list[str]:
    """What the design's measure allows, for whoever would measure by 1."""
    found = [(name, *flash_of_best(rows)) for name, rows in runs.sieving.items()]
    return [
        f"- met, for the interval is not wholly below {NEVER_SLOWER}: FLASH-IO, {name}: {of_best.text(2)} of "
        f'"{best.title}"'
        for name, best, of_best in found
        if NEVER_SLOWER <= of_best.high < 1
    ]


def ratios(mine: Sequence[float], others: Sequence[float]) -> pairs.Interval:
    """Of runs in turn."""
    return pairs.median_interval([own / other for own, other in zip(mine, others, strict=True)])


def missed_in_memory(ladder: Ladder) -> list[str]:
    """The design's bars (section 6): one file against one by hand, several files against a file for each process."""
    planned = [row for row in ladder.steps if "with a plan" in row.title]
    several = [row for row in planned if row.title.endswith(SEVERAL_FILES)]
    missed = []
    for rows, of, what in (
        ([row for row in planned if row not in several], ladder.by_hand, "one file by hand"),
        (several, ladder.ceiling, "a file for each process"),
    ):
        best = max((row.median for row in rows), default=0.0)
        if rows and of.written and best < SHARE * of.median:
            missed.append(f"{ladder.application}, {ladder.place}: {best / of.median:.2f} of {what}, not {SHARE}")
    return missed


def small_steps_lines(runs: Runs) -> list[str]:
    """What its metadata leave of the bars in memory, which are for the paper's bytes a step."""
    missed = [text for ladder in runs.in_memory for text in missed_in_memory(ladder)
              if ladder.application == hdf5_runs.SMALL_STEPS]  # fmt: skip
    return [f"- beside the bars, with a sixteenth of the paper's bytes in a dataset: {text}" for text in missed]


def parts_of(runs: Runs) -> dict[str, object]:
    """What a whole run has."""
    return {
        "the applications on throttled targets, and so no share of the ceiling": runs.on_lab,
        "the applications on CephFS": runs.on_ceph,
        "the applications in memory": runs.in_memory,
        "FLASH-IO": runs.sieving,
        "BTIO": runs.btio,
        "BTIO through logs on throttled targets": runs.btio_on_lab,
    }


def pictures(runs: Runs) -> dict[str, str]:
    """The ladders on the lab, and FLASH-IO's configurations."""
    found = {}
    if runs.on_lab:
        rows = [
            bars.Bar(f"{ladder.application}: {row.title}", row.median, 0.0)
            for ladder in runs.on_lab
            for row in [*ladder.steps, ladder.ceiling]
        ]
        found["-ladders"] = bars.to_svg(
            "Writing through HDF5, MiB/s", rows, runs.ideal, f"dashed: all targets together, {runs.ideal:.1f} MiB/s"
        )
    rows = [bars.Bar(f"{name}: {row.title}", row.median, 0.0) for name, some in runs.sieving.items() for row in some]
    if rows:
        most = max(row.value for row in rows)
        found["-sieving"] = bars.to_svg("FLASH-IO, MiB/s", rows, most, "dashed: the largest")
    if runs.btio_calls:
        found["-btio"] = btio_targets.to_svg(runs.btio_calls)
    return found


def page(runs: Runs, heading: str, quick: bool) -> str:
    """The page of results."""
    too_small = "too few runs of too few bytes to quote its speeds; counts hold." if quick else ""
    lines = [
        *run.opening(INTRODUCTION, heading, too_small, missed_bars(runs), "- All that were measured are met."),
        *(f"- not measured: {part}" for part, figures in parts_of(runs).items() if not figures),
        *narrowly_met_lines(runs),
        *small_steps_lines(runs),
        "",
        *(lab_lines(runs) if runs.on_lab else []),
        *(ceph_lines(runs) if runs.on_ceph else []),
        *(memory_lines(runs) if runs.in_memory else []),
        *(sieving_lines(runs) if runs.sieving else []),
        *(btio_lines(runs) if runs.btio else []),
        *(
            btio_targets.lines_of(runs.btio_on_lab, runs.ideal, runs.btio_calls)
            if runs.btio_on_lab or runs.btio_calls
            else []
        ),
    ]
    return "\n".join(lines).rstrip() + "\n"
