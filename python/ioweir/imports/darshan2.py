"""A log of Darshan 2 (format 2.05, of Darshan 2.2.4 to 2.3.1) as the Python values that darshan_log.py makes of others.

PyDarshan reads version 3 only. A log of version 2 is compressed as a whole: a job record of 4 KiB, then a record of
equal length for each file and rank (Darshan's darshan-log-format.h). Of a name it keeps the last 15 bytes. One set of
bytes and times stands for POSIX and stdio calls together, none for MPI-IO's bytes.
"""

from __future__ import annotations

import bz2
import gzip
import zlib
from typing import IO, TYPE_CHECKING, Any, Final

from ioweir.base.guarded_files import open_named
from ioweir.base.units import size
from ioweir.errors import IoweirError
from ioweir.imports.darshan_log import Log, Module, Record

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

VERSION: Final = "2.05"
MAGIC: Final = 6567223
JOB_BYTES: Final = 4096
NAME_BYTES: Final = 16
MOST_BYTES: Final = 256 << 20
"""Of a log, expanded: two hundred thousand records."""
_JOB_FIELDS: Final = ("magic", "uid", "start_time", "end_time", "nprocs", "jobid")
_METADATA_BYTES: Final = 1024
_COMBINERS: Final = """
    NAMED DUP CONTIGUOUS VECTOR HVECTOR_INTEGER HVECTOR INDEXED HINDEXED_INTEGER HINDEXED INDEXED_BLOCK STRUCT_INTEGER
    STRUCT SUBARRAY DARRAY F90_REAL F90_COMPLEX F90_INTEGER RESIZED
"""
_BINS: Final = "0_100 100_1K 1K_10K 10K_100K 100K_1M 1M_4M 4M_10M 10M_100M 100M_1G 1G_PLUS"
_CALLS: Final = """
    INDEP_OPENS COLL_OPENS INDEP_READS INDEP_WRITES COLL_READS COLL_WRITES SPLIT_READS SPLIT_WRITES NB_READS NB_WRITES
    SYNCS POSIX_READS POSIX_WRITES POSIX_OPENS POSIX_SEEKS POSIX_STATS POSIX_MMAPS POSIX_FREADS POSIX_FWRITES
    POSIX_FOPENS POSIX_FSEEKS POSIX_FSYNCS POSIX_FDSYNCS INDEP_NC_OPENS COLL_NC_OPENS HDF5_OPENS
"""
_ACCESSES: Final = """
    HINTS VIEWS MODE BYTES_READ BYTES_WRITTEN MAX_BYTE_READ MAX_BYTE_WRITTEN CONSEC_READS CONSEC_WRITES SEQ_READS
    SEQ_WRITES RW_SWITCHES MEM_NOT_ALIGNED MEM_ALIGNMENT FILE_NOT_ALIGNED FILE_ALIGNMENT MAX_READ_TIME_SIZE
    MAX_WRITE_TIME_SIZE
"""
_RANKS: Final = "DEVICE SIZE_AT_OPEN FASTEST_RANK FASTEST_RANK_BYTES SLOWEST_RANK SLOWEST_RANK_BYTES"
_TIMES: Final = """
    OPEN_TIMESTAMP READ_START_TIMESTAMP WRITE_START_TIMESTAMP CLOSE_TIMESTAMP READ_END_TIMESTAMP WRITE_END_TIMESTAMP
    POSIX_READ_TIME POSIX_WRITE_TIME POSIX_META_TIME MPI_META_TIME MPI_READ_TIME MPI_WRITE_TIME MAX_READ_TIME
    MAX_WRITE_TIME FASTEST_RANK_TIME SLOWEST_RANK_TIME VARIANCE_RANK_TIME VARIANCE_RANK_BYTES
"""


def _names() -> Iterator[str]:
    yield from _CALLS.split()
    yield from (f"COMBINER_{name}" for name in _COMBINERS.split())
    yield from _ACCESSES.split()
    for kind in ("SIZE_READ", "SIZE_WRITE", "SIZE_READ_AGG", "SIZE_WRITE_AGG", "EXTENT_READ", "EXTENT_WRITE"):
        yield from (f"{kind}_{name}" for name in _BINS.split())
    for what in ("STRIDE", "ACCESS"):
        yield from (f"{what}{i}_{what}" for i in range(1, 5))
        yield from (f"{what}{i}_COUNT" for i in range(1, 5))
    yield from _RANKS.split()


COUNTERS: Final = tuple(_names())
"""Without their CP_, in the order of the record."""
SECONDS: Final = tuple(_TIMES.split())
"""Without their CP_F_."""
RECORD_BYTES: Final = 8 + 8 + NAME_BYTES + 8 * len(COUNTERS) + 8 * len(SECONDS)
UNSEEN: Final = (
    "Darshan 2 keeps the last 15 bytes of a file's name only",
    "Darshan 2 adds up POSIX and stdio calls of a file: bytes, times and sizes stand at the one that opened it",
    "Darshan 2 does not say how many bytes MPI-IO's calls moved",
)

_OF_POSIX: Final = {
    "POSIX_OPENS": "POSIX_OPENS", "POSIX_READS": "POSIX_READS", "POSIX_WRITES": "POSIX_WRITES",
    "POSIX_SEEKS": "POSIX_SEEKS", "POSIX_STATS": "POSIX_STATS", "POSIX_MMAPS": "POSIX_MMAPS",
    "POSIX_FSYNCS": "POSIX_FSYNCS", "POSIX_FDSYNCS": "POSIX_FDSYNCS", "POSIX_MODE": "MODE",
    "POSIX_BYTES_READ": "BYTES_READ", "POSIX_BYTES_WRITTEN": "BYTES_WRITTEN",
    "POSIX_MAX_BYTE_READ": "MAX_BYTE_READ", "POSIX_MAX_BYTE_WRITTEN": "MAX_BYTE_WRITTEN",
    "POSIX_CONSEC_READS": "CONSEC_READS", "POSIX_CONSEC_WRITES": "CONSEC_WRITES", "POSIX_SEQ_READS": "SEQ_READS",
    "POSIX_SEQ_WRITES": "SEQ_WRITES", "POSIX_RW_SWITCHES": "RW_SWITCHES", "POSIX_MEM_NOT_ALIGNED": "MEM_NOT_ALIGNED",
    "POSIX_MEM_ALIGNMENT": "MEM_ALIGNMENT", "POSIX_FILE_NOT_ALIGNED": "FILE_NOT_ALIGNED",
    "POSIX_FILE_ALIGNMENT": "FILE_ALIGNMENT", "POSIX_FASTEST_RANK": "FASTEST_RANK",
    "POSIX_FASTEST_RANK_BYTES": "FASTEST_RANK_BYTES", "POSIX_SLOWEST_RANK": "SLOWEST_RANK",
    "POSIX_SLOWEST_RANK_BYTES": "SLOWEST_RANK_BYTES",
    **{f"POSIX_SIZE_{way}_{name}": f"SIZE_{way}_{name}" for way in ("READ", "WRITE") for name in _BINS.split()},
}  # fmt: skip
_OF_STDIO: Final = {
    "STDIO_OPENS": "POSIX_FOPENS", "STDIO_READS": "POSIX_FREADS", "STDIO_WRITES": "POSIX_FWRITES",
    "STDIO_SEEKS": "POSIX_FSEEKS", "STDIO_BYTES_READ": "BYTES_READ", "STDIO_BYTES_WRITTEN": "BYTES_WRITTEN",
    "STDIO_SLOWEST_RANK": "SLOWEST_RANK",
}  # fmt: skip
_OF_MPIIO: Final = {
    **{f"MPIIO_{name}": name for name in COUNTERS[:11]},
    "MPIIO_HINTS": "HINTS", "MPIIO_VIEWS": "VIEWS", "MPIIO_SLOWEST_RANK": "SLOWEST_RANK",
    **{f"MPIIO_SIZE_{way}_AGG_{name}": f"SIZE_{way}_AGG_{name}" for way in ("READ", "WRITE") for name in _BINS.split()},
}  # fmt: skip
_MODULES: Final = {"POSIX": _OF_POSIX, "STDIO": _OF_STDIO, "MPI-IO": _OF_MPIIO}
_SECONDS: Final = {
    prefix: {
        f"{prefix}_F_OPEN_START_TIMESTAMP": "OPEN_TIMESTAMP",
        **{
            f"{prefix}_F_{way}_{end}_TIMESTAMP": f"{way}_{end}_TIMESTAMP"
            for way in ("READ", "WRITE")
            for end in ("START", "END")
        },
        **{f"{prefix}_F_{what}_TIME": f"{own}_{what}_TIME" for what in ("READ", "WRITE", "META")},
        **({f"{prefix}_F_MAX_{way}_TIME": f"MAX_{way}_TIME" for way in ("READ", "WRITE")} if own == "POSIX" else {}),
        f"{prefix}_F_SLOWEST_RANK_TIME": "SLOWEST_RANK_TIME",
    }
    for prefix, own in (("POSIX", "POSIX"), ("STDIO", "POSIX"), ("MPIIO", "MPI"))
}


_MAGIC: Final = (b"\x1f\x8b", b"BZh")


def is_one(path: Path) -> bool:
    """Whether a file is compressed as a whole, as logs of Darshan 2 are."""
    try:
        with open_named(path) as file:
            return file.read(3).startswith(_MAGIC)
    except OSError:
        return False  # darshan_log.py says what is wrong


def read(path: Path) -> Log:
    """The log at a path; IoweirError where it is none of format 2.05."""
    with open_named(path) as file:
        data, trouble = _expanded(file)
    order = next((one for one in ("<", ">") if _integer(data, 8, one) == MAGIC), None)
    version = data[:8].split(b"\0")[0].decode("ascii", "replace")
    if order is not None and version.startswith("3."):
        raise IoweirError(
            f"'{path}' is a log of Darshan 3 that was compressed as a whole: expand it (gunzip, bunzip2), and import "
            "what comes of it"
        )
    if len(data) < JOB_BYTES or order is None:
        why = f": {trouble}" if trouble else ""
        raise IoweirError(f"'{path}' is compressed as a whole, and no log of Darshan 2 is in it{why}")
    if version != VERSION:
        raise IoweirError(
            f"'{path}' has Darshan's format {version}, and of Darshan 2 only {VERSION} is read: darshan-convert of "
            "Darshan 2.3.1 makes that of older ones"
        )
    log = Log(job=_job(data, order), troubles=[trouble] if trouble else [], unseen=[*UNSEEN])
    _take_records(log, data[JOB_BYTES:], order)
    return log


def _expanded(file: IO[bytes]) -> tuple[bytes, str]:
    """As much as can be expanded, and why that is not all."""
    is_bzip2 = file.read(3) == b"BZh"
    file.seek(0)
    pieces: list[bytes] = []
    got = 0
    with bz2.BZ2File(file) if is_bzip2 else gzip.GzipFile(fileobj=file) as stream:
        try:
            while got <= MOST_BYTES and (piece := stream.read1(1 << 16)):
                pieces.append(piece)
                got += len(piece)
        except (EOFError, OSError, zlib.error) as error:
            return b"".join(pieces), f"the log is cut off or damaged: {error}"
    more = f"the log holds more than {size(MOST_BYTES)}: the rest is left out" if got > MOST_BYTES else ""
    return b"".join(pieces), more


def _integer(data: bytes, at: int, order: str) -> int:
    return int.from_bytes(data[at : at + 8], "little" if order == "<" else "big", signed=True)


def _job(data: bytes, order: str) -> dict[str, Any]:
    values = {name: _integer(data, 8 + 8 * i, order) for i, name in enumerate(_JOB_FIELDS)}
    fixed = 8 + 8 * len(_JOB_FIELDS) + _METADATA_BYTES
    run_s = values["end_time"] - values["start_time"]
    words = data[fixed:JOB_BYTES].split(b"\0")[0].decode("utf-8", "surrogateescape")
    return {
        "log_ver": VERSION, "uid": values["uid"], "nprocs": values["nprocs"], "jobid": values["jobid"],
        "start_time_sec": values["start_time"],
        "run_time": float(run_s + 1 if run_s >= 0 else run_s),
        "exe": words.splitlines()[0] if words else "",  # mounted file systems follow, a line each
    }  # fmt: skip


def _take_records(log: Log, data: bytes, order: str) -> None:
    import numpy as np  # noqa: PLC0415

    count, left = divmod(len(data), RECORD_BYTES)
    if left:
        log.troubles.append(f"the log ends within a record: {left} bytes of {RECORD_BYTES}")
    kind = np.dtype([
        ("hash", order + "u8"), ("rank", order + "i8"), ("name", f"S{NAME_BYTES}"),
        ("counters", order + "i8", len(COUNTERS)), ("seconds", order + "f8", len(SECONDS)),
    ])  # fmt: skip
    for row in np.frombuffer(data, kind, count):
        name, rank = int(row["hash"]), int(row["rank"])
        counters = dict(zip(COUNTERS, row["counters"].tolist(), strict=True))
        seconds = dict(zip(SECONDS, row["seconds"].tolist(), strict=True))
        log.names[name] = "..." + row["name"].decode("utf-8", "surrogateescape")
        for module, calls in _modules_of(counters):
            prefix = "MPIIO" if module == "MPI-IO" else module
            table = log.tables.get(module)
            if table is None:
                table = log.tables[module] = Module([*calls], [*_SECONDS[prefix]])
                log.modules[module] = {}
            numbers = [counters[of] if _is_own(module, counters, of) else 0 for of in calls.values()]
            times = [seconds[of] if _is_own(module, counters, of) else 0.0 for of in _SECONDS[prefix].values()]
            table.records.append(Record(name, rank, name, numbers, times))


def _modules_of(counters: dict[str, int]) -> Iterator[tuple[str, dict[str, str]]]:
    """Which layers a file's calls were made by."""
    stdio = any(counters[name] > 0 for name in ("POSIX_FOPENS", "POSIX_FREADS", "POSIX_FWRITES"))
    posix = any(counters[name] > 0 for name in ("POSIX_OPENS", "POSIX_READS", "POSIX_WRITES", "POSIX_STATS"))
    for module, there in (
        ("POSIX", posix),
        ("STDIO", stdio),
        ("MPI-IO", any(counters[name] > 0 for name in COUNTERS[:11])),
    ):
        if there:
            yield module, _MODULES[module]


def _is_own(module: str, counters: dict[str, int], of: str) -> bool:
    """What POSIX and stdio calls share is that of the layer that moved bytes; of POSIX where both did."""
    if module == "MPI-IO" or of.startswith(("POSIX_F", "POSIX_S", "POSIX_O", "POSIX_M")):
        return True
    by_posix = counters["POSIX_READS"] + counters["POSIX_WRITES"] > 0 or not (
        counters["POSIX_FREADS"] + counters["POSIX_FWRITES"] > 0
    )
    if of in ("POSIX_READS", "POSIX_WRITES"):
        return module == "POSIX"
    return by_posix == (module == "POSIX")
