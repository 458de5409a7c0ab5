"""A Darshan log as Python values: the lines of darshan_child.py, read while it prints them, with bounds.

A log whose reader fails half way is what was read until then, and says so.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from array import array
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from ioweir.base.guarded_files import open_named
from ioweir.base.units import plural, size
from ioweir.errors import IoweirError, reason
from ioweir.imports import darshan_bzip2, darshan_regions
from ioweir.imports.heatmaps import Heatmaps

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MOST_LINES_BYTES: Final = 2 << 30
"""Of what the reader prints: a log of more is not held in memory."""
MOST_RECORDS: Final = 1 << 19
"""Of all modules, that are kept in memory. A job of 100,000 ranks that write files of their own has fewer."""
MOST_NAMES: Final = 1 << 22
_LONGEST_LINE: Final = 64 << 20
_LONGEST_S: Final = 600
_MOST_COUNT: Final = (1 << 63) - 1

_CRASHES: Final = (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE)
_STANDARD_INPUT: Final = "/proc/self/fd/0"

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
    record_bytes: int = 0
    """Of a record of the newest version; those of older ones are shorter. 0: not known."""

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
    heatmaps: Heatmaps = field(default_factory=Heatmaps)
    segments: list[dict[str, Any]] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    stopped: list[str] = field(default_factory=list)
    """Modules at which the library ended with an error before their last record."""
    troubles: list[str] = field(default_factory=list)
    unseen: list[str] = field(default_factory=list)
    """What this version of Darshan does not tell, besides what none does."""
    begun: list[str] = field(default_factory=list)
    """Modules that the reader has come to."""
    kept: int = 0
    """Records."""
    beyond: dict[str, int] = field(default_factory=dict)
    """Of each module the records that are not kept."""

    def keeps(self, module: str) -> bool:
        """Whether there is room for another record; counts it."""
        if self.kept < MOST_RECORDS:
            self.kept += 1
            return True
        self.beyond[module] = self.beyond.get(module, 0) + 1
        return False


def read(path: Path) -> Log:
    """The log at a path; IoweirError where nothing of it can be read."""
    with contextlib.ExitStack() as opened:
        file, name = opened.enter_context(_looked_at(path)), _for_pydarshan(path)
        expanded = darshan_bzip2.as_zlib(path)
        if expanded is not None:
            file, name = opened.enter_context(expanded[0]), _STANDARD_INPUT
        log = Log()
        while _is_to_go_on(log, _read(log, path, file, name)):
            pass
        if expanded is not None:
            log.troubles += expanded[1]
            log.modules = darshan_bzip2.lengths(path, file, log.modules)
    read_ones = {
        name: (len(table.records) + log.beyond.get(name, 0), table.record_bytes)
        for name, table in log.tables.items()
        if table.record_bytes and name not in log.stopped and not log.troubles
    }
    log.troubles += [
        f"left out: {count:,} {plural('record', count)} of {module}; {MOST_RECORDS:,} of all modules together and "
        f"{MOST_NAMES:,} names are kept"
        for module, count in log.beyond.items()
    ]
    _mark(log, path)
    log.troubles += darshan_regions.troubles(path, log.modules, read_ones) or [
        f"{module}: its records are damaged, and those after the damage are missing" for module in log.stopped
    ]
    return log


def _is_to_go_on(log: Log, code: int) -> bool:
    """Whether what the reader has not begun can still be read: damage in one module ended it by a signal."""
    return -code in _CRASHES and 0 < len(log.begun) < len(log.modules)


def _read(log: Log, path: Path, file: IO[bytes], name: str) -> int:
    """Add what PyDarshan reads of modules that are not begun yet; what the reader returned.

    `name`: what it shall open, where `file` is the standard input.
    """
    begun = len(log.begun)
    with subprocess.Popen(
        [sys.executable, "-I", str(CHILD), name, *log.begun],
        stdin=file,
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
        ended = False
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
        where = f"in the records of {log.begun[-1]}" if len(log.begun) > begun else "before the log's end"
        log.troubles.append(f"the reader {why} {where}" + (f": {words[-1]}" if words else ""))
    return code if len(log.begun) > begun else 0


def _mark(log: Log, path: Path) -> None:
    """Say which modules ran out of memory."""
    marked = darshan_regions.ran_out(path, log.modules)
    if marked is None:
        return
    names, others = marked
    for name, module in log.modules.items():
        module["partial_flag"] = name in names
    if others:
        log.troubles.append(
            f"{others:,} of Darshan's modules ran out of memory before {'they' if others > 1 else 'it'} had a record"
        )


def _looked_at(path: Path) -> IO[bytes]:
    """The file, and what can be said before PyDarshan is asked."""
    try:
        file = open_named(path)
        if os.fstat(file.fileno()).st_size:
            return file
        file.close()
    except OSError as error:
        raise IoweirError(f"'{path}' cannot be read: {reason(error)}") from error
    raise IoweirError(f"'{path}' is empty: no Darshan log")


def _for_pydarshan(path: Path) -> str:
    """PyDarshan takes names as UTF-8 only. Of other names it gets the one that the reader's standard input has."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return _STANDARD_INPUT
    return str(path)


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
    if "begin" in row:
        log.begun.append(row["begin"])
    elif "missing" in row:
        log.job["missing"] = row["missing"]
    elif "job" in row:
        log.job = dict(row["job"])
    elif "modules" in row:
        log.modules = dict(row["modules"])
    elif "name" in row:
        if len(log.names) < MOST_NAMES:
            log.names[row["name"]] = row["text"]
        else:
            log.beyond["names"] = log.beyond.get("names", 0) + 1
    elif "columns" in row:
        log.tables[row["columns"]] = Module(row["counters"], row["seconds"], record_bytes=row.get("bytes", 0))
    elif "record" in row:
        made = Record(row["id"], row["rank"], row["file"], row["counters"], row["seconds"])
        if log.keeps(row["record"]):
            log.tables[row["record"]].records.append(made)
    elif "lustre" in row:
        if log.keeps("LUSTRE"):
            log.lustre.append(dict(row))
    elif "heatmap" in row:
        log.heatmaps.add(row)
    elif "dxt" in row:
        if log.keeps(row["dxt"]):
            log.segments.append(_packed(row))
    elif "unread" in row:
        log.unread.append(row["unread"])
    elif "stopped" in row:
        log.stopped.append(row["stopped"])
    elif "trouble" in row:
        log.troubles.append(row["trouble"])
    return "end" in row


def _packed(row: Mapping[str, Any]) -> dict[str, Any]:
    """Segments of DXT in 8 bytes a value: as Python's lists they take four times as much."""
    kinds = {"offset": "q", "length": "q", "start": "d", "end": "d"}
    return {**row, **{name: array(kind, row[name]) for name, kind in kinds.items()}}
