"""A trace as Python reads it: small tables of processes, files, functions and notes, and the events as numpy columns.

`read(DIR)` opens a trace directory (run.json and one node-*.iowt a node, through ioweir._core). Events are decoded
when they are asked for: all at once (`Trace.events`) or in batches by time (`Trace.batches`). Judges nothing: which
processes count is attribute.py's, sums are sums.py's, what it all means is report/figures.py's.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ioweir.base import locate, spec_names
from ioweir.base.compiled import compiled
from ioweir.base.guarded_files import Folder
from ioweir.base.locate import RUN_FILE
from ioweir.errors import IoweirError
from ioweir.trace import compressed, trace_files
from ioweir.trace.paths import files_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import numpy as np
    import numpy.typing as npt

    from ioweir.trace.counted import Counted

    Column: TypeAlias = npt.NDArray[Any]
    Times: TypeAlias = npt.NDArray[np.int64]

Frame: TypeAlias = tuple[int, int]

NODE_FILES: Final = locate.NODE_FILES
SUMS_FILE: Final = "sums.json"

MPI_IO: Final = spec_names.MPI_IO
POSIX: Final = spec_names.POSIX
STDIO: Final = spec_names.STDIO
LAYERS: Final = spec_names.LAYERS
OPS: Final = spec_names.OPS
DATA_OPS: Final = spec_names.DATA_OPS

FLAG_FAILED: Final = 1
FLAG_SHORT: Final = 2
OPENED_TO_SYNC: Final = -2
"""Offset of an open with O_SYNC or O_DSYNC (spec/records.toml)."""

BATCH_EVENTS: Final = 1 << 20


@dataclass(frozen=True)
class Events:
    """Events as columns: entry i of every column is one call. The arrays share the reader's memory."""

    process: Column
    """Index into Trace.processes."""
    thread: Column
    """Index into Trace.threads."""
    seq: Column
    """Numbers the calls of a thread by entry, from 1."""
    parent: Column
    """`seq` of the call around it in the same thread, 0 without one."""
    function: Column
    """Index into Trace.functions, which begin with 1 (0 is none)."""
    origin: Column
    """0 the application, 1 inside of the MPI library, 2 ioweir's engine."""
    flags: Column
    """FLAG_FAILED: the call failed. FLAG_SHORT: it moved fewer bytes than it was asked for, and no file ended there."""
    path: Column
    """Index into Trace.paths."""
    start_ns: Times
    """After Trace.epoch_ns."""
    duration_ns: Times
    offset: Times
    """The call's own offset argument (of MPI calls: in etypes), -1 where it has none.

    Of MPI_File_seek the place after it; of an open with O_SYNC or O_DSYNC -2.
    """
    bytes: Times
    """Bytes moved, of locks their length; 0 of a failed call."""
    error: Column
    """errno, or MPI's error class, of a failed call."""
    site: Column
    """Index into Trace.sites; 0 where call sites were not recorded."""
    access: Column
    """Index into Trace.accesses; 0 of calls that are not MPI-IO's, or on files whose handle is not known."""

    def __len__(self) -> int:
        return int(self.process.size)


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
    late: bool = False
    """All that is known is that the operation had ended by then."""
    begins: bool = False
    """Asynchronous: what it begins goes on behind its return."""


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
class Clock:
    """How a node's clock relates to the run's, with which it was aligned."""

    aligned: bool = False
    """False: its times are by its own CLOCK_REALTIME."""
    first_offset_ns: int = 0
    last_offset_ns: int = 0
    uncertainty_ns: int = 0


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
class Verdict:
    """What verification found of the writes of a process to one file: see VerifyOutcome in spec/records.toml."""

    process: int
    outcome: str
    path: str = ""
    calls: int = 0
    bytes: int = 0
    offset: int = -1
    text: str = ""


@dataclass(frozen=True)
class EngineWork:
    """What the engine did with one file through one handle of a process: see EngineFigures in spec/records.toml."""

    process: int
    path: str
    figures: Mapping[str, int]


@dataclass(frozen=True)
class WeighedCalls:
    """Who made calls of a kind on a file through a handle of a process: see WeighedRecord in spec/records.toml."""

    process: int
    path: str
    call: str
    chosen: str
    pairs: int
    engine_ns: int
    library_ns: int
    bytes: int
    tried: int
    left: int


@dataclass(frozen=True)
class ChosenFile:
    """By whom one file of a loop was moved, and how long that took: see ChosenRecord in spec/records.toml."""

    process: int
    series: str
    words: str
    step: str
    ranks: int
    number: int
    elapsed_ns: int
    bytes: int
    cut: int


@dataclass(frozen=True)
class Thread:
    """A thread of a process image."""

    process: int
    """Index into Trace.processes."""
    kernel_id: int
    """What gettid() says."""
    events: int


@dataclass(frozen=True)
class Datatype:
    """An MPI datatype that a call or a view used: TypeRecord in docs/reference/trace-format.md."""

    constructor: str = "other"
    """`named` for MPI's own; `other` where too little is known of it."""
    name: str = ""
    """Of a named one."""
    size: int = -1
    """Bytes of data; -1 where that is not known."""
    lower: int = 0
    extent: int = 0
    values: tuple[int, ...] = ()
    types: tuple[int, ...] = ()
    """That it was made from: indexes into Trace.datatypes."""


@dataclass(frozen=True)
class View:
    """A file view."""

    set: bool = False
    """False: the file's bytes, as after MPI_File_open."""
    displacement: int = 0
    """Bytes."""
    etype: int = 0
    """Index into Trace.datatypes."""
    filetype: int = 0
    representation: str = "native"


@dataclass(frozen=True)
class Access:
    """How MPI-IO calls of one process use a file."""

    process: int
    """Index into Trace.processes."""
    path: int
    """Index into Trace.paths."""
    handle: int
    """Number of the open file in its process."""
    view: int | None
    """Index into Trace.views; None where it is not known."""
    memory: int
    """Index into Trace.datatypes; 0 where it is not known."""
    ranks: int
    """Of the communicator that opened the file."""


class Requests:
    """What the MPI-IO calls that moved data asked for: one entry a call in every column.

    Process by process, in the order of the calls. A split collective counts where it ends.
    """

    def __init__(self, core: Any) -> None:
        self._core = core
        self.process: Column = core.process
        self.thread: Column = core.thread
        self.seq: Column = core.seq
        self.access: Column = core.access
        self.path: Column = core.path
        self.function: Column = core.function
        self.write: Column = core.write
        """1 of writes, 0 of reads."""
        self.collective: Column = core.collective
        self.start_ns: Times = core.start_ns
        self.duration_ns: Times = core.duration_ns
        self.bytes: Times = core.bytes

    def __len__(self) -> int:
        return len(self._core)

    def extents(self, number: int, most: int = 1 << 20, *, in_memory: bool = False) -> tuple[Times, Times] | None:
        """Offsets and lengths in bytes of at most so many extents of a request, in the order of its data.

        In the file, or in memory relative to the call's buffer. None where they are not known: of calls that use the
        pointer that ranks share, of types with very many arguments, of representations other than "native".
        """
        found: tuple[Times, Times] | None = self._core.extents(number, most, in_memory)
        return found

    def spans(self) -> tuple[Times, Times, Times]:
        """Of each request the number of extents in the file, its first byte, and the one behind its last.

        -1 where they are not known.
        """
        counts, begins, ends = self._core.spans()
        return counts, begins, ends


@dataclass(frozen=True)
class Trace:
    """A run's trace. Everything is there but the events, which are decoded when they are asked for."""

    core: Any
    """The compiled reader's handle."""
    processes: tuple[Process, ...]
    paths: tuple[str, ...]
    """File names as the program gave them, made absolute; paths[0] is "", unknown."""
    functions: tuple[Function, ...]
    notes: tuple[Note, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    engine_work: tuple[EngineWork, ...] = ()
    weighed_calls: tuple[WeighedCalls, ...] = ()
    chosen_files: tuple[ChosenFile, ...] = ()
    modules: tuple[Module, ...] = ()
    sites: tuple[tuple[Frame, ...], ...] = ((),)
    """The calls that led to an event, innermost first: index into `modules` (-1: unknown) and address in its file."""
    dropped: int = 0
    disabled_processes: int = 0
    """Processes that stopped tracing for want of space."""
    damage: tuple[str, ...] = ()
    left_out_chunks: int = 0
    """Chunks whose checksum does not match."""
    left_out_records: int = 0
    """Records whose times lie outside of the run, or whose sizes or offsets cannot be."""
    unreadable: tuple[str, ...] = ()
    """Nodes of which nothing could be read, and why: figures lack all that ran there."""
    hosts: tuple[str, ...] = ()
    clocks: tuple[Clock, ...] = ()
    """Of each host."""
    run: Mapping[str, Any] = field(default_factory=dict)
    directory: str = ""
    counted: Counted | None = None
    """Sums of calls, of which there are no events or only some: of imported logs."""

    def require_events(self, directory: Path | str, who: str) -> None:
        """An error where there are only sums, which must not be taken for a run without calls."""
        if self.counted is not None and not self.event_count:
            raise IoweirError(f"{directory} holds sums of calls and no events; {who} needs a trace of `ioweir run`")

    @cached_property
    def files(self) -> tuple[list[str], list[int]]:
        """The files' names, and of each of `paths` the file that it names: not to be changed."""
        return files_of(self.paths, str(self.run.get("cwd", "")))

    @property
    def event_count(self) -> int:
        """How many events the trace holds."""
        return int(self.core.event_count)

    @property
    def version(self) -> int:
        """The newest format version of its files."""
        return int(self.core.version)

    @property
    def epoch_ns(self) -> int:
        """Time 0 of the trace: nanoseconds since 1970."""
        return int(self.core.epoch_ns)

    def last_end_ns(self) -> int:
        """When the last call ended; 0 where there is none. Goes through all events."""
        return int(self.core.last_end_ns())

    @cached_property
    def threads(self) -> tuple[Thread, ...]:
        """Every thread that made a call."""
        return tuple(Thread(*row) for row in self.core.threads)

    @cached_property
    def events(self) -> Events:
        """All events, thread by thread, in a thread by the order of their ends. Takes 64 bytes an event."""
        return Events(**{name: getattr(self.core, name) for name in Events.__dataclass_fields__})

    @cached_property
    def datatypes(self) -> tuple[Datatype, ...]:
        """MPI datatypes that calls and views used; datatypes[0] stands for those of which nothing is known."""
        rows = self.core.datatypes
        return tuple(Datatype(**{**row, "values": tuple(row["values"]), "types": tuple(row["types"])}) for row in rows)

    @cached_property
    def views(self) -> tuple[View, ...]:
        """File views; views[0] is that of a file whose view nobody set."""
        return tuple(View(**row) for row in self.core.views)

    @cached_property
    def accesses(self) -> tuple[Access, ...]:
        """How MPI-IO calls used files; accesses[0] is none."""
        return tuple(Access(**row) for row in self.core.accesses)

    def requests(self) -> Requests:
        """What the MPI-IO calls asked for, as extents of files. Goes through all events."""
        return Requests(self.core.requests())

    def batches(self, events: int = BATCH_EVENTS) -> Iterator[Events]:
        """All events of all threads by time of entry, so many at once: for traces that do not fit memory."""
        reader = compiled().Batches(self.core)
        while (columns := reader.next(events)) is not None:
            yield Events(**columns)


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
            begins=bool(row.get("begins", False)),
            late=bool(row.get("late", False)),
        )
        for row in rows
    )


def _process(row: Mapping[str, Any]) -> Process:
    known = Process.__dataclass_fields__
    return Process(**{key: value for key, value in row.items() if key in known})


def _note(row: Mapping[str, Any]) -> Note:
    known = Note.__dataclass_fields__
    return Note(**{key: value for key, value in row.items() if key in known})


def from_core(core: Any, functions: tuple[Function, ...], **more: Any) -> Trace:
    """The tables of what `ioweir._core.read_traces` returned."""
    return Trace(
        core=core,
        processes=tuple(_process(row) for row in core.processes),
        paths=tuple(core.paths),
        functions=functions,
        notes=tuple(_note(row) for row in core.notes),
        verdicts=tuple(Verdict(**row) for row in core.verdicts),
        engine_work=tuple(EngineWork(**row) for row in core.engine_work),
        weighed_calls=tuple(WeighedCalls(**row) for row in core.weighed_calls),
        chosen_files=tuple(ChosenFile(**row) for row in core.chosen_files),
        modules=tuple(Module(row["path"], row["build_id"]) for row in core.modules),
        sites=tuple(core.sites),
        dropped=int(core.dropped),
        disabled_processes=int(core.disabled_processes),
        left_out_chunks=int(core.left_out_chunks),
        left_out_records=int(core.left_out_records),
        hosts=tuple(core.hosts),
        clocks=tuple(Clock(**row) for row in core.clocks),
        damage=tuple(core.damage) + tuple(more.pop("damage", ())),
        **more,
    )


def read(directory: str | Path, node: str | None = None, *, sums_of_many: bool = False) -> Trace:
    """Read a trace directory. What is damaged is left out and listed.

    A directory that is no trace is an error, and so is one of which no node can be read. `node`: only this node's file.
    `sums_of_many`: of locate.MANY_NODES and more the sums in place of the events, if those of all ranks are there.
    """
    folder = Path(directory)
    if not folder.is_dir():
        what = "is not a directory" if folder.exists() else "does not exist"
        raise IoweirError(
            f"trace directory '{directory}' {what}: give the directory that `ioweir run` wrote (its -o DIR)"
        )
    damage: list[str] = []
    with Folder.open(folder) as opened:
        run = trace_files.read_run(opened, damage)
        names = opened.names()
        nodes = [name for name in compressed.node_files(names) if node in (None, name)]
        counted = None
        of_nodes = False
        many = sums_of_many and node is None and len(nodes) >= locate.MANY_NODES
        if SUMS_FILE in names or many or (not nodes and node is None):
            from ioweir.trace import sums_beside  # noqa: PLC0415 (which needs this module, and few traces need it)

            if SUMS_FILE in names:
                counted = sums_beside.of_a_log(opened, damage)
            if counted is None and not nodes and node is None:
                of_nodes = True
                counted = sums_beside.of_all_nodes(opened, names, damage)
            elif counted is None and many and (counted := sums_beside.of_many_nodes(opened, names, nodes)):
                nodes, of_nodes = [], True
        if run is None and not nodes and counted is None:
            raise IoweirError(
                f"'{directory}' is no trace: it holds neither {RUN_FILE} nor {NODE_FILES}. "
                "Give the directory that `ioweir run` wrote (its -o DIR)"
            )
        core = compiled()
        expected = (
            []
            if node is not None or (of_nodes and counted is not None)
            else trace_files.missing_nodes(run or {}, nodes)
        )
        unreadable = [f"{folder / name}: is missing, and {RUN_FILE} lists it" for name in expected]
        opened_nodes = trace_files.read_nodes(core, opened, nodes, unreadable, damage, trace_files.span_of(run or {}))
        damage.extend(trace_files.cut_off(opened, nodes, unreadable))
    if unreadable and not opened_nodes.hosts:
        raise IoweirError(f"the trace cannot be read: {'; '.join(unreadable)}")
    trace = from_core(
        opened_nodes,
        function_table(core.functions()),
        run=run or {},
        damage=[*damage, *unreadable],
        unreadable=tuple(unreadable),
        directory=str(folder),
    )
    starts_ns = [trace.epoch_ns + process.start_ns for process in trace.processes]
    foreign = trace_files.of_another_run(trace.run, trace.hosts, starts_ns)
    trace = replace(trace, damage=(*trace.damage, *foreign))
    return trace if counted is None else _with_ranks(replace(trace, counted=counted), counted)


load = read


def _with_ranks(trace: Trace, counted: Counted) -> Trace:
    """The ranks that have sums and no events, as processes that ran from start to end."""
    there = {process.rank for process in trace.processes}
    program = counted.program or str((trace.run.get("command") or [""])[0])
    hosts = trace.hosts or counted.hosts or ("unknown",)
    more = [
        Process(
            rank + 1, host=hosts[0], executable=program, rank=rank, ranks=counted.ranks, image=rank + 1,
            end_ns=round(counted.wall_s * 1e9), mpi_init_ns=0, mpi_finalize_ns=0,
        )
        for rank in counted.known_ranks()
        if rank not in there
    ]  # fmt: skip
    clocks = trace.clocks or (Clock(aligned=True),)
    return replace(trace, processes=(*trace.processes, *more), hosts=hosts, clocks=clocks)
