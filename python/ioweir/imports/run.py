"""`ioweir import LOG -o DIR`: which tool wrote the log, and the directory that is made of it."""

from __future__ import annotations

import contextlib
import json
import math
import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ioweir.base.guarded_files import Folder
from ioweir.base.locate import NODE_FILES, RUN_FILE
from ioweir.base.new_folder import whole_folder
from ioweir.base.units import plural, size
from ioweir.errors import IoweirError
from ioweir.imports import darshan, darshan2, darshan_log, dxt, recorder, recorder_events
from ioweir.trace import counted as sums
from ioweir.trace.reader import SUMS_FILE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ioweir.imports.darshan_log import Log


_LATER: Final = 1.01
_LATER_S: Final = 2.0
"""Older versions of Darshan count a job's time in whole seconds, and clocks of nodes differ."""


@dataclass
class Imported:
    """What was made."""

    directory: str
    tool: str
    ranks: int
    files: int
    calls: int
    events: int
    partial: list[str]
    unseen: list[str]


def import_log(log: Path, output: Path) -> Imported:
    """Make a directory of a log. It must not be there yet, or be empty."""
    if recorder.is_recorder(log):
        return _import_recorder(log, output)
    read = darshan2.read(log) if darshan2.is_one(log) else darshan_log.read(log)
    made = darshan.counted(read, str(log))
    with _new(output) as folder:
        return _write(folder, output, read, made)


@contextlib.contextmanager
def _new(output: Path) -> Iterator[Folder]:
    """The directory of a log, which errors that name no file are said of."""
    try:
        with whole_folder(output, (NODE_FILES, SUMS_FILE, RUN_FILE)) as folder:
            yield folder
    except OSError as error:
        if not error.strerror or error.filename:
            raise
        raise OSError(error.errno, error.strerror, str(output)) from error


def _import_recorder(log: Path, output: Path) -> Imported:
    with Folder.open(log) as source:
        trace = recorder.head(source)
        with _new(output) as folder:
            epoch_ns = round(trace.start_s) * 1_000_000_000
            written = recorder_events.write(trace, str(output / "node-0.iowt"), epoch_ns)
            tool = f"Recorder {trace.version[0]}.{trace.version[1]}"
            partial = trace.partial()
            unseen = [*recorder.UNSEEN]
            if written.left_out:
                unseen.append(f"{written.left_out:,} calls of functions that ioweir does not know are left out")
            run = {
                "program": "", "command": [], "cwd": "", "state": "ended", "started": float(round(trace.start_s)),
                "ended": round(trace.start_s) + written.last_s + 1, "wall_s": written.last_s, "exit_code": None,
                "signal": None,
                "imported": {"tool": tool, "log": str(log), "unseen": unseen, "partial": partial},
            }  # fmt: skip
            folder.write(RUN_FILE, json.dumps(run, indent=1))
    return Imported(str(output), tool, trace.ranks, 0, written.events, written.events, partial, unseen)


def _write(folder: Folder, output: Path, log: Log, made: sums.Counted) -> Imported:
    started = _time(log.job.get("start_time_sec")) + _time(log.job.get("start_time_nsec")) / 1e9
    wall_s = _time(log.job.get("run_time"))
    written = dxt.Written()
    if log.segments:
        written = dxt.write(
            log,
            lambda file: log.names.get(file) or f"(name not in the log: {file})",
            lambda number: str(output / f"node-{number}.iowt"),
            round(started) * 1_000_000_000,
        )
    partial = list(made.partial)
    if written.left_out:
        partial.append(
            f"{written.left_out:,} segments of DXT whose ranks, times, sizes or offsets cannot be are left out"
        )
    last_s = max([written.last_s, *(row.last_s for row in made.counts)])
    if wall_s == float(log.job.get("run_time") or 0) and last_s > _LATER * wall_s + _LATER_S:
        partial.append(
            f"the log says that calls ended {last_s:,.0f} s after the start of a job of {wall_s:,.0f} s: one of these "
            "is wrong"
        )
    made, text = _fitting(sums.replace_partial(made, partial))
    folder.write(SUMS_FILE, text)
    folder.write(RUN_FILE, json.dumps(_run(log, started, max(wall_s, 0.0), written.last_s), indent=1))
    return Imported(
        directory=str(output),
        tool=made.tool,
        ranks=made.ranks,
        files=len(made.files),
        calls=sum(row.calls for row in made.counts),
        events=written.events,
        partial=list(made.partial),
        unseen=list(made.unseen),
    )


def _fitting(made: sums.Counted) -> tuple[sums.Counted, str]:
    """As much as `report` reads again, as JSON; what findings alone need goes first."""
    text = _json(made)
    if len(text) > sums.MOST_BYTES:
        records = sum(len(table.rows) for table in made.tables.values())
        why = (
            f"the log is large: the counters of {records:,} records are left out, and with them some findings; figures "
            "have all records"
        )
        made = replace(made, tables={}, heatmaps=(), partial=(*made.partial, why))
        text = _json(made)
    if len(text) > sums.MOST_BYTES:
        raise IoweirError(
            f"'{made.log}' cannot be imported: its sums take {size(len(text))}, and at most {size(sums.MOST_BYTES)} "
            "are read; import logs of shorter runs"
        )
    return made, text


def _json(made: sums.Counted) -> str:
    return json.dumps(sums.to_json(made), default=list, allow_nan=False, separators=(",", ":"))


def _time(value: Any) -> float:
    number = float(value or 0)
    return number if math.isfinite(number) and 0 <= number < darshan.MOST_SECONDS else 0.0


def _run(log: Log, started: float, wall_s: float, last_s: float) -> dict[str, Any]:
    command = str(log.job.get("exe", ""))
    try:
        words = shlex.split(command)
    except ValueError:
        words = command.split()
    return {
        "program": words[0].rpartition("/")[2] if words else "",
        "command": words,
        "cwd": "",
        "state": "ended",
        "started": started,
        "ended": started + max(wall_s, last_s) + 1,
        "wall_s": wall_s,
        "exit_code": None,
        "signal": None,
    }


def to_text(made: Imported) -> list[str]:
    """What there is now, and what it lacks."""
    lines = [
        f"{made.directory}: a log of {made.tool}, {made.ranks:,} {plural('rank', made.ranks)}, {made.calls:,} calls"
        + (f", {made.events:,} events" if made.events else ""),
    ]
    lines += [f"PARTIAL: {why}" for why in made.partial]
    directory = shlex.quote(str(made.directory))
    return [*lines, f"Look at it: ioweir report {directory}; ioweir findings {directory}"]
