"""What a report holds, by name: what `ioweir report --json` prints is a `Report` (base/json_text.py makes the JSON).

`bytes` and `_bytes` are counts of bytes, `_s` seconds, `_bytes_per_s` bytes a second, `calls` counts of calls. Ranks
are as the program knows them; without MPI they are numbers of processes. docs/reference/report.md has every field.
Figures are made in figures.py, completeness.py, verification.py, engine_work.py and first_lines.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ioweir.base.json_text import to_dict

if TYPE_CHECKING:
    from ioweir.findings.model import Finding
    from ioweir.report.chosen import ChosenSeries

Rate = float | None
"""Bytes a second; None where there is no time or no such call."""


@dataclass
class Calls:
    """Calls that move no bytes. `time_s` is summed, `longest_s` of one call."""

    calls: int = 0
    failed: int = 0
    time_s: float = 0.0
    longest_s: float = 0.0


@dataclass
class Data(Calls):
    """Reads or writes of one layer. `perceived_bytes_per_s` of POSIX is its two bounds."""

    bytes: int = 0
    perceived_bytes_per_s: Rate | list[Rate] = None
    effective_bytes_per_s: Rate = None
    span_bytes_per_s: Rate = None
    span_s: float = 0.0
    sizes: dict[str, int] = field(default_factory=dict)
    """Calls, by the least bytes of a bin: "0" or a power of two."""
    size_ranges: dict[str, list[int]] = field(default_factory=dict)
    """By the same key: the least and the most bytes that a call of the bin moved."""
    asynchronous_s: float = 0.0
    """Of `time_s`: a rank did something else while its requests were under way."""


Operations = dict[str, Calls]
"""By operation; those that move bytes are Data."""


@dataclass
class Made:
    """Calls, and the time in them."""

    calls: int
    time_s: float


@dataclass
class Moved(Made):
    """Calls that move bytes."""

    bytes: int


@dataclass
class Decomposition(Made):
    """Where the time of MPI-IO calls of one kind went."""

    parts: dict[str, float] | None
    """Seconds, by PARTS of figures.py. None where POSIX calls were not recorded, or took longer than the calls."""
    waiting_s: float = 0.0
    """Of "other": for the last rank to come to collective calls."""
    asynchronous_s: float = 0.0
    """Of the other parts: requests were under way while the rank passed on data, waited or copied."""


@dataclass
class Where:
    """Calls with no other call around them; `mean_s` is of all ranks."""

    layer: str
    op: str
    mean_s: float
    calls: int
    bytes: int = 0


@dataclass
class WhereData(Where):
    """Those that move bytes."""


@dataclass
class LateRank:
    """A rank that came last to collective calls. `time_s`: how long after the one before it, summed."""

    rank: int
    calls: int
    time_s: float


@dataclass
class Io:
    """How much of the wall time the ranks spent in I/O, and in what.

    `slowest` is the rank with most I/O that nobody else made it wait for, with the time for which it made the others
    wait: `max_s`. `mean_s` and `share_of_wall` hold all time in calls.
    """

    unit: str
    """What is counted: "rank", or without MPI "process"."""
    mean_s: float
    max_s: float
    slowest: int | None
    share_of_wall: float | None
    where: list[Where]
    waiting_s: float = 0.0
    """Of `mean_s`: in collective calls, until the last rank came."""
    collective_calls: int = 0
    """Of all ranks together, in which they waited for each other."""
    late: list[LateRank] = field(default_factory=list)
    """Most time first."""
    mpi_waiting_s: float = 0.0
    """Waiting in MPI outside of I/O, on an average rank; not in `mean_s`."""


@dataclass
class Step:
    """One of several MPI programs that a script started one after the other. `begin_s` counts from the run's start."""

    program: str
    ranks: int
    begin_s: float
    wall_s: float
    io: Io


@dataclass
class Slowest:
    """The rank that an operation took longest with, as Io.slowest, and the mean time of all in it."""

    rank: int
    time_s: float
    mean_s: float


@dataclass
class Part(Moved):
    """Calls that other calls made."""

    layer: str
    op: str


@dataclass
class Inside(Made):
    """What calls with no call around them were made of, one layer down. `other_s`: time outside of those, if known."""

    layer: str
    op: str
    parts: list[Part]
    other_s: float | None
    waiting_s: float = 0.0
    """Of it: for the last rank to come to collective calls."""


@dataclass
class SlowestStorage:
    """The rank that spent most time at the storage, and the mean of those that touched it."""

    rank: int
    time_s: float
    bytes: int
    mean_time_s: float


@dataclass
class RankStorage(Moved):
    """What one rank moved to or from the storage."""

    rank: int


@dataclass
class Storage:
    """Which ranks touched storage, in what way, who took longest, and who did it for others."""

    ranks: list[int]
    slowest: SlowestStorage | None
    aggregators: list[int]
    by_rank: list[RankStorage]
    stdio_ranks: list[int]


@dataclass(kw_only=True)
class FileLocks(Calls):
    """Locks of one file."""

    path: str


@dataclass(kw_only=True)
class RankLocks(Calls):
    """Locks that one rank took."""

    rank: int


@dataclass
class LongestLock:
    """The call that waited longest; `start_s` is counted from the run's start."""

    time_s: float
    start_s: float
    rank: int
    path: str


@dataclass
class Locks:
    """Time in calls that take locks, which is the waiting for them."""

    calls: int = 0
    failed: int = 0
    time_s: float = 0.0
    longest: LongestLock | None = None
    by_file: list[FileLocks] = field(default_factory=list)
    by_rank: list[RankLocks] = field(default_factory=list)


@dataclass
class Clock:
    """How a node's clock was aligned; `offset_s`: at the first and the last measurement."""

    host: str
    aligned: bool
    offset_s: list[float]
    uncertainty_s: float


@dataclass
class Place:
    """Where a call stands in the program, as far as it is known; `address` is within the module."""

    function: str | None
    file: str | None
    line: int | None
    module: str | None
    address: int


@dataclass(kw_only=True)
class CallSite(Place):
    """Calls of one layer and operation that one line of the program made."""

    layer: str
    op: str
    where: str
    """The place in words."""
    calls: int = 0
    bytes: int = 0
    time_s: float = 0.0
    chains: list[list[Place]] = field(default_factory=list)
    """The calls that led to it, innermost first."""


@dataclass
class ErrorCount:
    """How many calls failed with one error: errno of POSIX and STDIO, the class of MPI-IO."""

    error: int
    name: str | None
    calls: int


@dataclass
class Failure:
    """An operation of which calls failed or were short."""

    layer: str
    op: str
    calls: int
    failed: int
    usual: bool
    """Of the kind that programs try and are refused as a rule."""
    errors: list[ErrorCount]
    unreported: int
    """Of POSIX: calls that failed inside of MPI-IO calls which returned success."""
    short: int
    """Calls that moved fewer bytes than they were asked for."""
    continued: int
    """Of these: a later call moved the rest."""
    missing_bytes: int
    """What the others did not move."""
    unreported_short: int
    """As `unreported`: short calls whose rest no call moved."""


@dataclass
class Noted:
    """What ioweir says of a file."""

    path: str
    text: str


@dataclass
class PassedThrough(Noted):
    """Why calls went to the MPI library."""

    calls: int


@dataclass
class Checked(Noted):
    """What rank 0 says of the bytes that were read back."""

    bytes: int


@dataclass
class NotCompared:
    """Bytes of a file that nobody compared, of one rank where it is known. `offset`: of the first of them."""

    path: str
    outcome: str
    text: str
    rank: int | None = None
    calls: int = 0
    bytes: int = 0
    offset: int | None = None


@dataclass
class Verify:
    """What `--verify` came to. `result`: None where nobody asked."""

    requested: bool
    result: str | None
    ok: list[Checked]
    mismatch: list[Checked]
    compared_bytes: int
    differing_bytes: int
    left_out: list[NotCompared]


@dataclass
class EngineFile:
    """What the engine did with one file.

    `ranks`: processes that had it open; `bytes`: read and written by them. The others are EngineFigures of
    spec/records.toml, which says what each counts, with seconds in place of nanoseconds.
    """

    path: str
    ranks: int = 0
    bytes: int = 0
    calls: int = 0
    read_bytes: int = 0
    written_bytes: int = 0
    operations: int = 0
    elapsed_s: float = 0.0
    alone_by_choice: int = 0
    exchanges: int = 0
    in_subgroups: int = 0
    rounds: int = 0
    exchange_s: float = 0.0
    exchange_processor_s: float = 0.0
    storage_s: float = 0.0
    messages: int = 0
    sent_bytes: int = 0
    sizes_deferred: int = 0
    sizes_grown: int = 0
    handed_bytes: int = 0
    hand_s: float = 0.0
    room_waits: int = 0
    room_wait_s: float = 0.0
    writer_s: float = 0.0
    too_large: int = 0


@dataclass
class WeighedKind:
    """Calls of one kind on one file that were made by the engine and by the MPI library in turns.

    `chosen`: engine, library, undecided, or plan: the engine, for the plan names its writers, though the library was
    faster. `records`: handles that say so (where calls are collective, of one rank).
    Of a call's time: the medians in the last trial. `tried`: calls that the library made in its turn; `left`: that were
    left to it since.
    """

    path: str
    call: str
    chosen: str
    records: int = 0
    pairs: int = 0
    engine_s: float = 0.0
    library_s: float = 0.0
    tried: int = 0
    left: int = 0


@dataclass
class Reason:
    """Why the engine left calls to the MPI library."""

    text: str
    calls: int
    files: list[str]


@dataclass
class CarriedOut:
    """How far a plan was carried out. `state`: None without one; `by_adapters`: files of its HDF5 and netCDF keys."""

    state: str | None
    reasons: list[Reason]
    moved_bytes: int
    by_adapters: list[str]


@dataclass
class OtherForm:
    """A file whose bytes lie in several when the report is made. `parts`: their directory, or a number of subfiles."""

    path: str
    parts: str


@dataclass
class Plan:
    """What the engine did and did not do. `file`: the plan's; None without one."""

    file: str | None
    applied: list[Noted]
    passed_through: list[PassedThrough]
    engine: list[EngineFile]
    verify: Verify
    carried_out: CarriedOut
    weighed: list[WeighedKind] = field(default_factory=list)
    chosen: list[ChosenSeries] = field(default_factory=list)
    other_form: list[OtherForm] = field(default_factory=list)


@dataclass
class NotCounted:
    """Process images whose I/O is in no figure."""

    executable: str
    reason: str
    images: int = 0
    events: int = 0
    bytes: int = 0


@dataclass
class LeftOut:
    """What is damaged and in no figure."""

    chunks: int
    records: int


@dataclass
class RuntimeFiles:
    """The MPI runtime's own files, which are in no figure."""

    files: int
    events: int
    bytes: int


@dataclass
class LateEnds:
    """Completions of io_uring of which only a time is known by which they had come; `files`: calls, by path."""

    calls: int
    files: dict[str, int]


@dataclass
class Imported:
    """Where the figures come from, if not from a trace of ioweir's: docs/reference/import.md."""

    tool: str
    log: str
    unseen: list[str]
    """What the tool does not record."""
    heatmaps: list[Any]
    """Bytes over time, by rank: `rank`, `layer`, `bin_s`, `write`, `read`."""


@dataclass
class Simulated:
    """That nothing here was measured: `ioweir simulate --trace-out`."""

    machine: str
    what: str
    """The program."""
    plan: str
    strategy: str
    ranks: int
    ranks_written: int
    """Of which there are calls here; the figures are of these alone."""
    sums: dict[str, int]
    """Of all ranks: calls, bytes asked for and moved, storage operations, messages."""


@dataclass
class FileRow:
    """One file."""

    path: str
    layers: dict[str, Operations]
    decomposition: dict[str, Decomposition]


@dataclass
class Report:
    """Everything that `ioweir report --json` prints. `started`: seconds since 1970."""

    report_version: int
    trace: str
    command: list[str]
    program: str
    started: float | None
    wall_s: float
    exit_code: int | None
    signal: int | None
    ranks: int
    processes: int
    hosts: list[str]
    clocks: list[Clock]
    mpi_libraries: list[str]
    events: int
    events_counted: int
    dropped: int
    partial: bool
    partial_reasons: list[str]
    damage: list[str]
    left_out: LeftOut
    unreadable: list[str]
    io: Io
    layers_recorded: list[str]
    layers: dict[str, Operations]
    slowest: dict[str, dict[str, Slowest]]
    decomposition: dict[str, Decomposition]
    inside: list[Inside]
    origins: dict[str, dict[str, Made]]
    """POSIX calls, by origin and operation; those that move bytes are Moved."""
    storage: dict[str, Storage]
    locks: Locks
    call_sites: list[CallSite]
    plan: Plan
    failures: list[Failure]
    messages: list[str]
    not_counted: list[NotCounted]
    runtime_files: RuntimeFiles
    verification: Moved
    """Reads of verification, which are in no figure."""
    late_ends: LateEnds
    files: list[FileRow]
    definitions: dict[str, str]
    steps: list[Step] = field(default_factory=list)
    """Of a script with several MPI programs: all other figures are of all of them together."""
    findings: list[Finding] = field(default_factory=list)
    """What is wrong, most seconds first; filled in by whoever prints it, for it takes all events at once."""
    imported: Imported | None = None
    """Of logs of other tools."""
    simulated: Simulated | None = None
    """Of simulated runs."""

    def __getitem__(self, key: str) -> Any:
        """A part as `--json` has it: `report["files"]`, for programs from when the report was a dictionary."""
        if key not in vars(self):
            raise KeyError(key)
        return to_dict(getattr(self, key))
