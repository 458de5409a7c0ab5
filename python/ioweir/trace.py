"""A trace as typed tables: numpy columns for the events, and small tables of processes, files, functions and notes.

Reads a trace directory (run.json and one node-*.iowt a node, through ioweir._core). Judges nothing:
which processes count is attribute.py's, what it all means is report.py's.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from ioweir.compiled import compiled
from ioweir.errors import IoweirError
from ioweir.locate import RUN_FILE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

Column: TypeAlias = npt.NDArray[Any]
Frame: TypeAlias = tuple[int, int]

NODE_FILES: Final = "node-*.iowt"

MPI_IO: Final = "MPI-IO"
POSIX: Final = "POSIX"

FLAG_FAILED: Final = 1

ORIGIN_APPLICATION: Final = 0
ORIGIN_MPI_LIBRARY: Final = 1
ORIGIN_ENGINE: Final = 2
ORIGIN_TRACER: Final = 3

COLUMN_TYPES: Final[dict[str, Any]] = {
    "process": np.uint32,
    "thread": np.uint32,
    "seq": np.uint32,
    "parent": np.uint32,
    "function": np.uint16,
    "origin": np.uint8,
    "flags": np.uint8,
    "path": np.uint32,
    "start_ns": np.int64,
    "duration_ns": np.int64,
    "offset": np.int64,
    "bytes": np.int64,
    "error": np.int32,
    "site": np.uint32,
}


@dataclass(frozen=True)
class Function:
    """An intercepted function."""

    id: int
    name: str
    layer: str
    op: str
    collective: bool = False
    symbols: tuple[str, ...] = ()
    completes: bool = False
    """Ends an operation that another call began: its time counts, but neither a call nor bytes."""


@dataclass(frozen=True)
class Process:
    """A process image: what one exec (or fork) began. A pid that execs has several."""

    pid: int
    ppid: int = 0
    image: int = 0
    parent_image: int = 0
    """The image it was forked from; 0 when it began by exec."""
    host: str = ""
    executable: str = ""
    rank: int = -1
    ranks: int = 0
    start_ns: int = 0
    end_ns: int = -1
    mpi_library: str = ""
    mpi_init_ns: int = -1
    mpi_finalize_ns: int = -1


@dataclass(frozen=True)
class Module:
    """An executable or library in which call sites lie."""

    path: str
    build_id: str = ""


@dataclass(frozen=True)
class Note:
    """Something the preload said while it ran: a plan applied, calls passed through, a verification's result."""

    process: int
    code: str
    path: str = ""
    value: int = 0
    text: str = ""
    time_ns: int = 0


@dataclass(frozen=True)
class Trace:
    """All events of a run; entry i of every column is event i, in no particular order."""

    process: Column
    thread: Column
    seq: Column
    parent: Column
    function: Column
    origin: Column
    flags: Column
    path: Column
    start_ns: Column
    duration_ns: Column
    offset: Column
    bytes: Column
    error: Column
    site: Column
    """Index into `sites`; 0 where call sites were not recorded."""
    processes: tuple[Process, ...]
    paths: tuple[str, ...]
    functions: tuple[Function, ...]
    notes: tuple[Note, ...] = ()
    modules: tuple[Module, ...] = ()
    sites: tuple[tuple[Frame, ...], ...] = ((),)
    """The calls that led to an event, innermost first: index into `modules` (-1: unknown) and address in its file."""
    dropped: int = 0
    disabled_processes: int = 0
    """Processes that stopped tracing for want of space."""
    damage: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    run: Mapping[str, Any] = field(default_factory=dict)
    directory: str = ""

    @property
    def event_count(self) -> int:
        """How many events the trace holds."""
        return int(self.process.size)


def function_table(rows: Iterable[Mapping[str, Any]]) -> tuple[Function, ...]:
    """The functions as `ioweir._core.functions()` lists them."""
    return tuple(
        Function(
            id=int(row["id"]),
            name=str(row["name"]),
            layer=str(row["layer"]),
            op=str(row["op"]),
            collective=bool(row.get("collective", False)),
            symbols=tuple(row.get("symbols", ())),
            completes=bool(row.get("completes", False)),
        )
        for row in rows
    )


def _process(row: Mapping[str, Any]) -> Process:
    known = Process.__dataclass_fields__
    return Process(**{key: value for key, value in row.items() if key in known})


def _note(row: Mapping[str, Any]) -> Note:
    known = Note.__dataclass_fields__
    return Note(**{key: value for key, value in row.items() if key in known})


def from_core(core: Any, functions: tuple[Function, ...]) -> Trace:
    """The tables of what `ioweir._core.read_trace` returned, without copying the columns."""
    columns: dict[str, Any] = {name: np.asarray(getattr(core, name), dtype=kind) for name, kind in COLUMN_TYPES.items()}
    return Trace(
        **columns,
        processes=tuple(_process(row) for row in core.processes),
        paths=tuple(core.paths),
        functions=functions,
        notes=tuple(_note(row) for row in core.notes),
        modules=tuple(Module(row["path"], row["build_id"]) for row in core.modules),
        sites=tuple(core.sites),
        dropped=int(core.dropped),
        disabled_processes=int(core.disabled_processes),
        damage=tuple(core.damage),
        hosts=tuple(core.hosts),
    )


def load(directory: str | Path) -> Trace:
    """Read a trace directory. What is damaged is left out and listed; a directory that is no trace is an error."""
    folder = Path(directory)
    if not folder.is_dir():
        what = "is not a directory" if folder.exists() else "does not exist"
        raise IoweirError(
            f"trace directory '{directory}' {what}: give the directory that `ioweir run` wrote (its -o DIR)"
        )
    damage: list[str] = []
    run = _read_run(folder, damage)
    nodes = sorted(folder.glob(NODE_FILES))
    if run is None and not nodes:
        raise IoweirError(
            f"'{directory}' is no trace: it holds neither {RUN_FILE} nor {NODE_FILES}. "
            "Give the directory that `ioweir run` wrote (its -o DIR)"
        )
    core = compiled()
    trace = from_core(_read_nodes(core, nodes, damage), function_table(core.functions()))
    return replace(trace, run=run or {}, damage=trace.damage + tuple(damage), directory=str(folder))


def _read_nodes(core: Any, nodes: Sequence[Path], damage: list[str]) -> Any:
    """All nodes at once, on one clock; a file that is no trace file at all is left out and said to be so."""
    names = [str(node) for node in nodes]
    try:
        return core.read_traces(names)
    except ValueError:
        readable: list[str] = []
        for name in names:
            try:
                core.read_traces([name])
                readable.append(name)
            except ValueError as error:
                damage.append(f"{Path(name).name}: {error}")
        return core.read_traces(readable)


def _read_run(folder: Path, damage: list[str]) -> dict[str, Any] | None:
    path = folder / RUN_FILE
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        damage.append(f"{RUN_FILE}: {error}")
        return {}
    if not isinstance(content, dict):
        damage.append(f"{RUN_FILE}: holds no JSON object")
        return {}
    return content
