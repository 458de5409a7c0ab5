"""A Darshan log as Python values: the lines of darshan_child.py, read while it prints them, with bounds.

A log whose reader fails half way is what was read until then, and says so.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from ioweir.base.guarded_files import open_named
from ioweir.base.units import size
from ioweir.errors import IoweirError, reason
from ioweir.imports import darshan_regions

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MOST_LINES_BYTES: Final = 2 << 30
"""Of what the reader prints: a log of more is not held in memory."""
_LONGEST_LINE: Final = 64 << 20
_LONGEST_S: Final = 600
_MOST_COUNT: Final = (1 << 63) - 1

CHILD: Final = Path(__file__).with_name("darshan_child.py")


@dataclass
class Record:
    """Counters of one module, file and rank."""

    id: int
    rank: int
    file_id: int
    """Of HDF5's and PnetCDF's objects the file's."""
    counters: list[int]
    seconds: list[float]


@dataclass
class Module:
    """All records of a module, and the names of their counters."""

    counters: list[str]
    seconds: list[str]
    records: list[Record] = field(default_factory=list)

    def values(self, record: Record) -> dict[str, float]:
        """Of a record, by name."""
        return {
            **dict(zip(self.counters, record.counters, strict=False)),
            **dict(zip(self.seconds, record.seconds, strict=False)),
        }


@dataclass
class Log:
    """What is in a log."""

    job: dict[str, Any] = field(default_factory=dict)
    modules: dict[str, dict[str, Any]] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    tables: dict[str, Module] = field(default_factory=dict)
    lustre: list[dict[str, Any]] = field(default_factory=list)
    heatmaps: list[dict[str, Any]] = field(default_factory=list)
    segments: list[dict[str, Any]] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    stopped: list[str] = field(default_factory=list)
    """Modules at which the library ended with an error before their last record."""
    troubles: list[str] = field(default_factory=list)
    unseen: list[str] = field(default_factory=list)
    """What this version of Darshan does not tell, besides what none does."""


def read(path: Path) -> Log:
    """The log at a path; IoweirError where nothing of it can be read."""
    _look(path)
    with subprocess.Popen(
        [sys.executable, "-I", str(CHILD), str(path)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        watch = threading.Timer(_LONGEST_S, child.kill)
        watch.daemon = True
        watch.start()
        said: list[bytes] = []
        listener = threading.Thread(target=lambda: said.append(_some(child.stderr)), daemon=True)
        listener.start()
        log, ended = Log(), False
        try:
            for line in _lines(child.stdout):
                ended = _take(log, line) or ended
        except _TooMuchError as error:
            log.troubles.append(str(error))
            child.kill()
        except BaseException:
            child.kill()  # it waits for us to read what it prints, and would never end
            raise
        finally:
            code = child.wait()
            watch.cancel()
            listener.join(timeout=10)
    words = (said[0] if said else b"").decode("utf-8", "replace").strip().splitlines()
    if "missing" in log.job:
        raise IoweirError(
            f"reading Darshan logs needs PyDarshan ({log.job['missing']}): pip install 'ioweir[darshan]', or "
            "pip install darshan"
        )
    if not log.job:
        why = words[0] if words else f"the reader returned {code}"
        raise IoweirError(f"'{path}' cannot be read as a Darshan log: {why.removesuffix('.')}; give a .darshan file")
    if not ended:
        why = f"ended by signal {-code}" if code < 0 else f"returned {code}"
        log.troubles.append(f"the reader {why} before the log's end" + (f": {words[-1]}" if words else ""))
    log.troubles += darshan_regions.troubles(path, log.modules) or [
        f"{module}: its records are damaged, and those after the damage are missing" for module in log.stopped
    ]
    return log


def _look(path: Path) -> None:
    """What can be said before PyDarshan is asked."""
    try:
        with open_named(path) as file:
            head = file.read(1)
    except OSError as error:
        raise IoweirError(f"'{path}' cannot be read: {reason(error)}") from error
    if not head:
        raise IoweirError(f"'{path}' is empty: no Darshan log")


def _some(stream: IO[bytes] | None) -> bytes:
    kept = b""
    while stream is not None and (block := stream.read(1 << 16)):
        kept = (kept + block)[-(1 << 14) :] if len(kept) > 1 << 14 else kept + block
    return kept


class _TooMuchError(Exception):
    pass


def _lines(stream: IO[bytes]) -> Iterator[bytes]:
    total = 0
    while line := stream.readline(_LONGEST_LINE):
        total += len(line)
        if total > MOST_LINES_BYTES or not line.endswith(b"\n"):
            raise _TooMuchError(f"the log holds more than {size(MOST_LINES_BYTES)} of records: the rest is left out")
        yield line


def _take(log: Log, line: bytes) -> bool:
    """Add a line; whether it is the last one."""
    try:
        row: Mapping[str, Any] = json.loads(line)
    except ValueError:
        log.troubles.append("the reader's last line is cut off")
        return False
    if "missing" in row:
        log.job["missing"] = row["missing"]
    elif "job" in row:
        log.job = dict(row["job"])
    elif "modules" in row:
        log.modules = dict(row["modules"])
    elif "name" in row:
        log.names[row["name"]] = row["text"]
    elif "columns" in row:
        log.tables[row["columns"]] = Module(row["counters"], row["seconds"])
    elif "record" in row:
        made = Record(row["id"], row["rank"], row["file"], row["counters"], row["seconds"])
        log.tables[row["record"]].records.append(made)
    elif "lustre" in row:
        log.lustre.append(dict(row))
    elif "heatmap" in row:
        log.heatmaps.append(dict(row))
    elif "dxt" in row:
        log.segments.append(dict(row))
    elif "unread" in row:
        log.unread.append(row["unread"])
    elif "stopped" in row:
        log.stopped.append(row["stopped"])
    elif "trouble" in row:
        log.troubles.append(row["trouble"])
    return "end" in row
