"""What a trace takes on disk, while its run goes on and when it has ended, and what Zstandard's levels cost.

Loops of tracer_cost.cpp on two ranks: a regular pattern, and random writes of which none is repeated.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from pathlib import Path
from typing import Any, Final

import launch
import run
import tracer_cost
import zstandard
from ioweir.trace import compressed

RANKS: Final = tracer_cost.RANKS
CALLS: Final = tracer_cost.DISK_CALLS
LEVELS: Final = (1, 3, 6, 9, 12)
PATTERNS: Final = ("regular", "unrepeated")
TITLES: Final = tracer_cost.TITLES

PAGE: Final = """\
# Results: the size of traces

What a trace takes on disk. Repeat with

    make bench-trace-size              # builds, measures, writes build/bench/trace-size.{{json,md}}
    make bench-trace-size RECORD=1     # the same, and into this page

A loop of {calls:,} events a rank, two ranks: regular (4 KiB every 64 KiB), and random (64 B to 4 KiB anywhere in
16 MiB). Random is another place and size in each call and on each rank, so that no compressor finds one again.
"Running": blocks of the file with data, while the program runs. The levels are Zstandard's, without threads; seconds
are processor time to compress and to expand. `ioweir run` takes level {level}, behind the program's end: nothing is
added to its calls.
Bars: 3 B an event on regular patterns, 8 B on random ones.
"""


def measure(kind: str, call: str, pattern: str, scratch: Path) -> dict[str, Any]:
    """One loop: its trace's bytes an event, and of each level bytes and seconds."""
    trace = scratch / "trace"
    shutil.rmtree(trace, ignore_errors=True)
    calls = [str(CALLS), "0"] if call == "posix" else ["0", str(CALLS // 2)]
    launch.run_program("tracer_cost", kind, RANKS, [str(scratch), pattern, *calls], launch.Traced(trace))
    summary = launch.report(trace)
    if summary["dropped"] != 0 or summary["events"] < RANKS * CALLS:
        raise launch.BenchmarkError(
            f"{summary['events']} events, {summary['dropped']} dropped: not what the loop makes"
        )
    content, packed = tracer_cost.node_file(trace)
    running = tracer_cost.bytes_with_data(content)
    levels = {}
    for level in LEVELS:
        begun = time.process_time()
        made = zstandard.ZstdCompressor(level=level, write_checksum=True).compress(content)
        packed_at = time.process_time()
        zstandard.ZstdDecompressor().decompress(made)
        expanded_at = time.process_time()
        levels[level] = {
            "bytes_per_event": len(made) / summary["events"],
            "compress_s": packed_at - begun,
            "expand_s": expanded_at - packed_at,
        }
    ended = packed / summary["events"]
    shutil.rmtree(trace, ignore_errors=True)
    return {
        "mpi": kind, "call": call, "pattern": pattern, "events": summary["events"],
        "running": running / summary["events"], "ended": ended, "levels": levels,
    }  # fmt: skip


def table(rows: list[dict[str, Any]]) -> list[str]:
    """Sizes, and then what each level costs a million events."""
    titles = " | ".join(f"level {level}" for level in LEVELS)
    lines = [
        f"| MPI | call | pattern | running, B an event | ended, B an event | {titles} |",
        "|---|---|---|---|---|" + "---|" * len(LEVELS),
    ]
    for row in rows:
        cells = " | ".join(
            f"{one['bytes_per_event']:.2f}; {one['compress_s'] / row['events'] * 1e6:.2f} s, "
            f"{one['expand_s'] / row['events'] * 1e6:.2f} s"
            for one in row["levels"].values()
        )
        lines.append(
            f"| {launch.KIND_TITLES[row['mpi']]} | {TITLES[row['call']]} | {row['pattern']} | {row['running']:.2f} "
            f"| {row['ended']:.2f} | {cells} |"
        )
    last = "Of each level: bytes an event; seconds to compress and to expand a million events."
    return ["## Bytes an event", "", *lines, "", last]


def main() -> int:
    """Measures all loops."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=launch.ROOT / "build" / "bench", help="directory of the results")
    parser.add_argument("--scratch", type=Path, default=run.TMPFS, help="where the programs write (default: memory)")
    parser.add_argument("--record", type=Path, metavar="PAGE", help="also write the results as a page")
    options = parser.parse_args()
    about = run.machine()
    document: dict[str, Any] = {"date": time.strftime("%Y-%m-%d"), "machine": about}

    def sizes(_: argparse.Namespace, scratch: Path) -> tuple[Any, list[str]]:
        rows = [
            measure(kind, call, pattern, scratch)
            for kind in launch.KINDS
            if launch.available("tracer_cost", kind)
            for call in TITLES
            for pattern in PATTERNS
        ]
        return rows, table(rows)

    try:
        text = run.run_all([("trace_size", sizes)], options, document)
    except launch.BenchmarkError as error:
        print(error, file=sys.stderr)
        return 1
    text += [
        f"{document['date']}: {about['processors']} processors ({about['processor']}), Linux {about['kernel']}, "
        f"Zstandard {'.'.join(map(str, zstandard.ZSTD_VERSION))}, load {about['load_before']:.1f} before."
    ]
    page = PAGE.format(calls=CALLS, level=compressed.LEVEL)
    run.keep("trace-size", page + "\n" + "\n".join(text) + "\n", document, options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
