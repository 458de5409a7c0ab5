"""Asks the compiled reader for the sums that reports are made of, and gives its rows names.

One pass over the events by time, in C++ (src/analysis/summary.hpp says what each sum is). Which processes count and
which paths are one file is decided by attribute.py and paths.py and handed in; what sums mean is report/figures.py's.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ioweir.base.compiled import compiled
from ioweir.base.spec_names import DATA_OPS, LAYERS, MPI_IO, OPS, POSIX, WAITING
from ioweir.trace.reader import Trace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ioweir.trace.attribute import Attribution


class Row(NamedTuple):
    """Sums of one operation of one layer in one group: the run, a file, a rank."""

    group: int
    slot: int
    calls: int
    failed: int
    bytes: int
    time_ns: int
    span_ns: int
    """Union of the calls' intervals."""
    longest_ns: int
    longest_start_ns: int
    longest_unit: int
    longest_file: int
    sizes: list[tuple[int, int, int, int]]
    """(bin, calls, least, most): bin 0 moved nothing, bin k moved 2^(k-1) .. 2^k - 1 bytes, in fact from least to most.

    Of reads and writes. Bins of other tools are negative: -1 - the least bytes of the bin; what is in them is not known
    (most: -1).
    """
    behind_ns: int = 0
    """Of the time, in which the thread did something else while requests were under way."""


class Amount(NamedTuple):
    """Calls, bytes and time."""

    calls: int
    bytes: int
    time_ns: int


class Less(NamedTuple):
    """Calls that moved fewer bytes than they were asked for, and no file ended there."""

    calls: int = 0
    continued: int = 0
    """Of these: a later call of the thread on the file went on where they had ended."""
    missing: int = 0
    """Bytes of the others."""


class Waited(NamedTuple):
    """What collective MPI-IO calls of a unit waited for, and made others wait for."""

    wait_ns: int = 0
    """For the last rank to come."""
    held_ns: int = 0
    """It was the last: after the one before it."""
    last: int = 0
    """How often that was."""
    meetings: int = 0


Rows = dict[int, Row]
"""By slot."""


@dataclass(frozen=True)
class Sums:
    """Everything that is summed over events."""

    job: Rows
    by_file: dict[int, Rows]
    by_unit: dict[int, Rows]
    by_site: dict[int, Rows]
    """Empty where call sites were not recorded."""
    errors: dict[int, dict[int, int]]
    """By slot and error (errno, MPI's error class): how many calls failed with it."""
    unreported: Sequence[int]
    """By DATA_OPS: POSIX calls of the MPI library that failed inside of MPI-IO calls that returned success."""
    less: dict[int, Less]
    """By slot: calls that moved fewer bytes than they were asked for."""
    unreported_less: Sequence[int]
    """As `unreported`: such calls of POSIX whose rest no call moved."""
    events: int
    counted: int
    """Events that are in the tables."""
    unit_io_ns: Sequence[int]
    """By unit: the union of its time in calls of any layer."""
    outermost: Sequence[Amount]
    """By slot: calls inside of no other."""
    inside: dict[int, dict[int, Amount]]
    """By slot of an outermost call and slot of the calls that it made directly."""
    origins: Sequence[Sequence[Amount]]
    """POSIX calls by origin and operation."""
    parts: Sequence[Sequence[int]]
    """Nanoseconds in POSIX calls inside of MPI-IO calls, by DATA_OPS of the latter and OPS of the former."""
    file_parts: dict[int, Sequence[Sequence[int]]]
    """The same by the MPI-IO call's file."""
    collective: dict[int, Sequence[Amount]]
    """POSIX reads and writes inside of collective MPI-IO calls, by unit and DATA_OPS."""
    by_process: Sequence[Amount]
    """All events of every process image."""
    late_ends: dict[int, int]
    """By file: completions that were found some time after they came."""
    runtime: Amount
    runtime_files: int
    verification: Amount
    last_end_ns: int | None
    """When the last call returned; None without any."""
    behind: Sequence[int] = (0,) * len(DATA_OPS)
    """Of `parts`, by DATA_OPS: in which the thread did something else while requests were under way."""
    waited: dict[int, Waited] = field(default_factory=dict)
    """By unit."""
    shared_io: bool = False
    """In `unit_io_ns` are shares of what several ranks did together."""
    unlisted_io_ns: int = 0
    """Time in calls of ranks that are no units: of logs of very many ranks, whose records do not tell them apart."""
    waited_by_slot: dict[int, dict[int, Waited]] = field(default_factory=dict)
    """By slot of the calls and of those around them, and unit."""


_SLOTS: Final = {(layer, op): at for at, (layer, op) in enumerate((layer, op) for layer in LAYERS for op in OPS)}


def slot_of(layer: str, op: str) -> int:
    """Where a layer's operation stands in lists by slot."""
    return _SLOTS[layer, op]


def layer_and_op(slot: int) -> tuple[str, str]:
    """The reverse of slot_of."""
    return LAYERS[slot // len(OPS)], OPS[slot % len(OPS)]


def least_bytes(number: int) -> int:
    """Of a bin of sizes. Example: 13 -> 4096, -101 -> 100."""
    return -1 - number if number < 0 else 1 << number >> 1


class Summation:
    """Sums in the making. `done` may be watched from another thread."""

    def __init__(
        self,
        trace: Trace,
        who: Attribution,
        file_of_path: Sequence[int],
        runtime_file: Sequence[bool],
        *,
        verified: bool,
        cells: bool = False,
    ) -> None:
        self.events = trace.event_count
        self._core = compiled().Summary(
            trace.core,
            layers=list(LAYERS),
            ops=list(OPS),
            mpi_layer=MPI_IO,
            posix_layer=POSIX,
            data_ops=list(DATA_OPS),
            transfer_ops=[*DATA_OPS, "split"],
            wait_layer=WAITING,
            close_op="close" if verified else "",
            unit_of_process=list(who.units),
            units=max(len(who.unit_names), 1),
            file_of_path=list(file_of_path),
            runtime_file=list(runtime_file),
            cells=cells,
        )

    @property
    def done(self) -> int:
        """Events that have been added so far."""
        return int(self._core.done)

    def stop(self) -> None:
        """Make `run` in another thread give up soon."""
        self._core.stop()

    def cells(self) -> dict[str, list[int]]:
        """Add up by file, unit, slot and whether calls are outermost: columns. `cells` has to have been asked for."""
        columns: dict[str, list[int]] = self._core.run()["cells"]
        return columns

    def run(self) -> Sums:
        """Add everything up."""
        raw: dict[str, Any] = self._core.run()
        return Sums(
            job=_by_group(raw["job"]).get(0, {}),
            by_file=_by_group(raw["by_file"]),
            by_unit=_by_group(raw["by_unit"]),
            by_site=_by_group(raw["by_site"]),
            errors=_by_error(raw["errors"]),
            unreported=raw["unreported"],
            less={slot: Less(*sums) for slot, *sums in raw["less"]},
            unreported_less=raw["unreported_less"],
            events=raw["events"],
            counted=raw["counted"],
            unit_io_ns=raw["unit_io_ns"],
            outermost=[Amount(*row) for row in raw["outermost"]],
            inside=_inside(raw["inside"]),
            origins=[[Amount(*row) for row in rows] for rows in raw["origins"]],
            parts=raw["parts"],
            file_parts=raw["file_parts"],
            behind=raw["behind"],
            waited={unit: Waited(*sums) for unit, *sums in raw["waited"]},
            waited_by_slot=_by_slot(raw["waited_by_slot"]),
            collective={unit: [Amount(*row) for row in rows] for unit, rows in raw["collective"].items()},
            by_process=[Amount(*row) for row in raw["by_process"]],
            late_ends=raw["late_ends"],
            runtime=Amount(*raw["runtime"]),
            runtime_files=raw["runtime_files"],
            verification=Amount(*raw["verification"]),
            last_end_ns=raw["last_end_ns"],
        )


def _by_group(rows: Sequence[Sequence[Any]]) -> dict[int, Rows]:
    groups: dict[int, Rows] = {}
    for values in rows:
        row = Row._make(values)
        groups.setdefault(row.group, {})[row.slot] = row
    return groups


def _by_slot(rows: Sequence[tuple[int, Sequence[int]]]) -> dict[int, dict[int, Waited]]:
    result: dict[int, dict[int, Waited]] = {}
    for slot, (unit, *sums) in rows:
        result.setdefault(slot, {})[unit] = Waited(*sums)
    return result


def _by_error(rows: Sequence[tuple[int, int, int]]) -> dict[int, dict[int, int]]:
    result: dict[int, dict[int, int]] = {}
    for slot, error, calls in rows:
        result.setdefault(slot, {})[error] = calls
    return result


def _inside(rows: Sequence[Sequence[int]]) -> dict[int, dict[int, Amount]]:
    result: dict[int, dict[int, Amount]] = {}
    for outer, slot, *amount in rows:
        result.setdefault(outer, {})[slot] = Amount(*amount)
    return result
