"""Sums of nodes: what the calls of each rank on each file come to, made once from a node's events, then merged.

A report of very many nodes is made of these and reads no event. A sums file is Zstandard over JSON: columns of equal
length, a row for each layer, operation, file and rank (docs/reference/sums.md). One of several nodes has the same form,
so that sums can be merged step by step. Of a file that very many ranks use the ranks are added up when sums are read.
"""

from __future__ import annotations

import fnmatch
import json
import posixpath
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ioweir.base.guarded_files import loads
from ioweir.base.spec_names import LAYERS, OPS
from ioweir.errors import IoweirError
from ioweir.trace import attribute, compressed
from ioweir.trace.counted import SHARED, Counted, Counts
from ioweir.trace.runtime_files import is_runtime_file
from ioweir.trace.sums import Summation

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy as np
    import numpy.typing as npt

    from ioweir.base.guarded_files import Folder
    from ioweir.trace.reader import Trace

VERSION: Final = 1
SUFFIX: Final = ".sums.zst"
MERGED_NAME: Final = "all" + SUFFIX
MOST_BYTES: Final = 1 << 30
"""Of a sums file, expanded."""
MOST_RANKS_A_FILE: Final = 64
"""Of a file that more ranks use, the ranks are added up."""
UNSEEN: Final = (
    "sums of nodes do not tell which calls made which, nor who waited for whom: the events do (ioweir report of the "
    "trace itself)",
)
_MOST_NUMBER: Final = 1 << 62

_SUMMED: Final = ("calls", "failed", "bytes", "time_ns")
_COLUMNS: Final = ("slot", "file", "rank", "outermost", *_SUMMED, "longest_ns", "first_ns", "last_ns", "size_bins")
_SIZES: Final = ("size_least", "size_calls")


@dataclass(frozen=True)
class NodeSums:
    """Sums of one node or of several. Times are nanoseconds since 1970."""

    hosts: tuple[str, ...]
    ranks: int
    """Of the program."""
    known: tuple[int, ...]
    """The ranks that ran on these nodes and left a trace, whether they made calls or not."""
    layers: tuple[str, ...]
    files: tuple[str, ...]
    columns: dict[str, npt.NDArray[np.int64]]
    """By _COLUMNS, all of one length, and _SIZES, which have an entry for each bin of each row."""
    partial: tuple[str, ...] = ()
    began_ns: int = 0
    """When the first of these ranks started; 0: not known."""
    ended_ns: int = 0
    """When the last one ended."""
    program: str = ""
    """What they run; "": not known."""

    @property
    def rows(self) -> int:
        """How many."""
        return int(self.columns["slot"].size)


def of_trace(trace: Trace, layers: Sequence[str], partial: Sequence[str]) -> NodeSums:
    """Add up the events of a trace, or of one node of it. `layers`: those recorded; `partial`: what is lacking."""
    import numpy as np  # noqa: PLC0415

    who = attribute.attribute_processes(trace.processes)
    if not who.has_ranks:
        raise IoweirError("there is no MPI rank: sums are by rank, and a report of so little needs none")
    files, file_of_path = trace.files
    runtime = [is_runtime_file(name) for name in files]
    verified = bool(trace.run.get("verify", False))
    cells = Summation(trace, who, file_of_path, runtime, verified=verified, cells=True).cells()
    columns = {name: np.array(values, dtype=np.int64) for name, values in cells.items()}
    columns["rank"] = np.array(who.unit_names, dtype=np.int64)[columns.pop("unit")]
    for name in ("first_ns", "last_ns"):
        columns[name] += trace.epoch_ns
    used, columns["file"] = np.unique(columns["file"], return_inverse=True)
    ranks = [process for process, unit in zip(trace.processes, who.units, strict=True) if unit >= 0]
    last_ns = int(columns["last_ns"].max(initial=0))
    ends_ns = [max(process.end_ns, process.mpi_finalize_ns, process.start_ns) + trace.epoch_ns for process in ranks]
    return NodeSums(
        tuple(trace.hosts),
        who.unit_count,
        who.unit_names,
        tuple(layers),
        tuple(files[at] for at in used),
        columns,
        tuple(partial),
        min(process.start_ns for process in ranks) + trace.epoch_ns,
        max(last_ns, *ends_ns),
        next((posixpath.basename(process.executable) for process in ranks if process.executable), ""),
    )


# -------------------------------------------------------------------------------------------------------------- files


def write(folder: Folder, name: str, sums: NodeSums) -> None:
    """A sums file."""
    import zstandard  # noqa: PLC0415

    text = json.dumps(
        {
            "node_sums_version": VERSION, "hosts": sums.hosts, "ranks": sums.ranks, "known": sums.known,
            "layers": sums.layers, "files": sums.files, "partial": sums.partial, "began_ns": sums.began_ns,
            "ended_ns": sums.ended_ns, "program": sums.program,
            "columns": {name: sums.columns[name].tolist() for name in (*_COLUMNS, *_SIZES)},
        },
        separators=(",", ":"),
    )  # fmt: skip
    folder.write(
        name, zstandard.ZstdCompressor(level=compressed.LEVEL).compress(text.encode("utf-8", "surrogateescape"))
    )


def name_of(node_file: str) -> str:
    """The name of the sums of a node's file."""
    return compressed.plain_name(node_file).removesuffix(".iowt") + SUFFIX


def names_in(names: Iterable[str]) -> list[str]:
    """The sums files among the names in a directory."""
    return [name for name in names if fnmatch.fnmatch(name, "*" + SUFFIX)]


def read(folder: Folder, name: str) -> NodeSums:
    """A sums file; ValueError says what cannot be, OSError why it cannot be read."""
    content = loads(compressed.expand_small(folder, name, MOST_BYTES).decode("utf-8"))
    if not isinstance(content, dict) or content.get("node_sums_version") != VERSION:
        raise ValueError(f"has no node_sums_version {VERSION}")
    try:
        return _checked(content)
    except (KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ValueError(f"is no sums file: {type(error).__name__}: {error}") from error


def _checked(content: dict[str, Any]) -> NodeSums:
    import numpy as np  # noqa: PLC0415

    files = tuple(map(str, content["files"]))
    columns = {name: np.asarray(content["columns"][name]) for name in (*_COLUMNS, *_SIZES)}
    rows = columns["slot"].size
    columns = {name: column if column.size else column.astype(np.int64) for name, column in columns.items()}
    for name, column in columns.items():
        if column.dtype != np.int64 or column.ndim != 1:
            raise ValueError(f"column {name} is not of whole numbers")
        if name not in _SIZES and column.size != rows:
            raise ValueError(f"column {name} has {column.size} rows, and slot has {rows}")
    limits = {"slot": len(LAYERS) * len(OPS), "file": max(len(files), 1), "outermost": 2, "size_bins": 65}
    for name, column in columns.items():
        most = limits.get(name, _MOST_NUMBER) - 1
        if column.size and (column.min() < 0 or column.max() > most):
            raise ValueError(f"column {name} has a number outside of 0 to {most}")
    if any(columns[name].size != columns["size_bins"].sum() for name in _SIZES):
        raise ValueError("the columns of sizes do not have size_bins entries a row")
    ranks = int(content["ranks"])
    known = tuple(map(int, content["known"]))
    if not 0 < ranks <= 1 << 24 or not all(0 <= rank < ranks for rank in known):
        raise ValueError(f"there are ranks that {ranks} ranks do not have")
    if rows and not np.isin(columns["rank"], known).all():
        raise ValueError("there are rows of ranks that are not known")
    layers = tuple(str(layer) for layer in content["layers"] if layer in LAYERS)
    began_ns, ended_ns = (int(content.get(name, 0)) for name in ("began_ns", "ended_ns"))
    if not 0 <= began_ns <= ended_ns < _MOST_NUMBER:
        raise ValueError(f"ranks that started at {began_ns} ns ended at {ended_ns} ns")
    return NodeSums(
        tuple(map(str, content["hosts"])), ranks, known, layers, files, columns, tuple(map(str, content["partial"])),
        began_ns, ended_ns, str(content.get("program", "")),
    )  # fmt: skip


# ------------------------------------------------------------------------------------------------------------ merging


def merge(parts: Sequence[NodeSums]) -> NodeSums:
    """All rows together, files of one name as one. Nodes without rows lose nothing but their names."""
    import numpy as np  # noqa: PLC0415

    if not parts:
        raise IoweirError("there are no sums to merge")
    worlds = {part.ranks for part in parts}
    if len(worlds) > 1:
        raise IoweirError(
            f"these are sums of different runs: of {', '.join(f'{count:,}' for count in sorted(worlds))} ranks"
        )
    number: dict[str, int] = {}
    for part in parts:
        for name in part.files:
            number.setdefault(name, len(number))
    columns: dict[str, list[npt.NDArray[np.int64]]] = {name: [] for name in (*_COLUMNS, *_SIZES)}
    seen: set[int] = set()
    for part in parts:
        if twice := seen.intersection(part.known):
            raise IoweirError(
                f"rank {min(twice)} is in the sums of {', '.join(part.hosts)} and in others: a node twice, or two runs"
            )
        seen.update(part.known)
        places = np.array([number[name] for name in part.files] or [0], dtype=np.int64)
        for name, column in part.columns.items():
            columns[name].append(places[column] if name == "file" else column)
    return NodeSums(
        tuple(dict.fromkeys(host for part in parts for host in part.hosts)),
        worlds.pop(),
        tuple(sorted(seen)),
        tuple(layer for layer in LAYERS if any(layer in part.layers for part in parts)),
        tuple(number),
        {name: np.concatenate(some) for name, some in columns.items()},
        tuple(dict.fromkeys(words for part in parts for words in part.partial)),
        min((part.began_ns for part in parts if part.began_ns), default=0),
        max(part.ended_ns for part in parts),
        next((part.program for part in parts if part.program), ""),
    )


def counted(sums: NodeSums, source: str) -> Counted:
    """What reports and findings are made of: ranks of much shared files added up. Times from the first call on."""
    import numpy as np  # noqa: PLC0415

    columns = sums.columns
    begin = int(columns["first_ns"].min()) if sums.rows else 0
    outer = columns["outermost"] == 1
    spent = np.bincount(columns["rank"][outer], weights=columns["time_ns"][outer], minlength=1)
    busiest = int(spent.argmax())
    groups, sizes = _folded(sums)
    rows = [
        Counts(
            layer=LAYERS[slot // len(OPS)], op=OPS[slot % len(OPS)], file=file, rank=rank, outermost=bool(outermost),
            calls=calls, failed=failed, bytes=moved, time_s=time_ns / 1e9, longest_s=longest / 1e9,
            first_s=(first - begin) / 1e9, last_s=(last - begin) / 1e9, sizes=sizes[at],
        )
        for at, (slot, file, rank, outermost, calls, failed, moved, time_ns, longest, first, last) in enumerate(
            zip(*groups, strict=True)
        )
    ]  # fmt: skip
    missing = sums.ranks - len(sums.known)
    lacking = [f"{missing:,} of {sums.ranks:,} ranks are in no sums: a node's are missing"]
    return Counted(
        tool="ioweir (sums of nodes)",
        log=source,
        ranks=sums.ranks,
        files=sums.files,
        counts=tuple(rows),
        busiest_s=float(spent[busiest]) / 1e9 if sums.rows else 0.0,
        busiest=busiest if sums.rows else SHARED,
        spent={rank: float(spent[rank]) / 1e9 if rank < spent.size else 0.0 for rank in sums.known},
        layers=sums.layers,
        unseen=UNSEEN,
        partial=(*sums.partial, *(lacking if missing else ())),
        hosts=sums.hosts,
        wall_s=(sums.ended_ns - sums.began_ns) / 1e9 if sums.began_ns else 0.0,
        program=sums.program,
    )


def _folded(sums: NodeSums) -> tuple[list[list[int]], list[tuple[tuple[int, int], ...]]]:
    """Rows as lists of columns, and the sizes of each: those of a much shared file with all its ranks in one."""
    import numpy as np  # noqa: PLC0415

    columns = sums.columns
    rank = columns["rank"].copy()
    pairs = np.unique(np.stack([columns["file"], rank]), axis=1)[0] if sums.rows else rank
    shared = np.flatnonzero(np.bincount(pairs, minlength=1) > MOST_RANKS_A_FILE)
    rank[np.isin(columns["file"], shared)] = SHARED
    keys = np.stack([columns["slot"], columns["file"], rank, columns["outermost"]])
    groups, place = np.unique(keys, axis=1, return_inverse=True)
    place = place.reshape(-1)
    count = groups.shape[1]
    folded = [row.tolist() for row in groups]
    for name in _SUMMED:
        total = np.zeros(count, dtype=np.int64)
        np.add.at(total, place, columns[name])
        folded.append(total.tolist())
    for name, take, start in (
        ("longest_ns", np.maximum, 0), ("first_ns", np.minimum, _MOST_NUMBER), ("last_ns", np.maximum, 0),
    ):  # fmt: skip
        extreme = np.full(count, start, dtype=np.int64)
        take.at(extreme, place, columns[name])
        folded.append(extreme.tolist())
    sizes: list[dict[int, int]] = [{} for _ in range(count)]
    for at, least, calls in zip(
        np.repeat(place, columns["size_bins"]).tolist(), columns["size_least"].tolist(), columns["size_calls"].tolist(),
        strict=True,
    ):  # fmt: skip
        bins = sizes[at]
        bins[least] = bins.get(least, 0) + calls
    return folded, [tuple(sorted(bins.items())) for bins in sizes]
