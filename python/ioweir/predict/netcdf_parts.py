"""A plan's `netcdf` table as a simulation: calls on a file that PnetCDF made, its arrays divided over subfiles.

The file's own header says which arrays there are. Each byte of the one file has a place in one of the subfiles, or
stays in the master (docs/explanation/netcdf-subfiles.md). A subfile is simulated as one stripe of a file whose stripes
lie on a target each; the master lies behind them. Where ranks move nothing but parts of their own subfile, each moves
its own bytes; else one rank a subfile collects them.

Limits: in fact each rank of a subfile's group collects from others, and defining the subfiles takes time, too.

Lives here: which divisions are tried, and where bytes lie then. Not here: how arrays are divided (src/ncsub).
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING, Any, Final

from ioweir.base.compiled import compiled
from ioweir.errors import IoweirError
from ioweir.predict.candidates import Candidate, Instead
from ioweir.trace import pattern

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ioweir.predict.workload import Calls, Recorded
    from ioweir.trace.reader import Trace

_MIB: Final = 1 << 20
_BUFFER: Final = "16 MiB"
"""Of the one rank a subfile that collects: the default of a plan's aggregators."""
_REMARK: Final = (
    "netCDF subfiles are simulated as parts of the arrays on a target each, without what defining them takes. They are "
    "made on the storage targets of the file's path, beside the file where there are none"
)
_Piece = tuple[int, int, int]
"""Subfile (their number: the master), place in it, bytes."""


@dataclass(frozen=True)
class _Array:
    begin: int
    """Of its first byte in the file, or in a record."""
    bytes: int
    """Of all of it, or of one record."""
    inner: int = 0
    """Bytes of one index of the dimension along which it is divided; 0: it stays whole."""
    length: int = 0
    boundaries: tuple[int, ...] = ()
    places: tuple[int, ...] = ()
    """Where its part begins in each subfile, or in a record of that."""


class Division:
    """Where each byte of a netCDF file lies when its arrays are divided over subfiles.

    Example: an array of 4 x 2 elements of 8 bytes from byte 100 on, over 2 subfiles along the first dimension: bytes
    100 to 131 are the first 32 of subfile 0, bytes 132 to 163 the first 32 of subfile 1.
    """

    def __init__(self, said: Mapping[str, Any], subfiles: int) -> None:
        self.subfiles = subfiles
        rows = sorted(said["arrays"], key=lambda row: row["begin"])
        records = [row for row in rows if row["record"]]
        self._fixed, self._ends = _laid_out([row for row in rows if not row["record"]], 0, subfiles)
        self._records_begin = records[0]["begin"] if records else 0
        self._of_record, self._steps = _laid_out(records, self._records_begin, subfiles)
        self._record_bytes: int = said["record_bytes"] if records else 0
        if any(array.begin >= self._records_begin for array in self._fixed if records):
            raise IoweirError("arrays without records lie behind those with")
        self._begins = [array.begin for array in self._fixed]
        self._begins_of_record = [array.begin for array in self._of_record]
        self.end: int | None = max((array.begin + array.bytes for array in self._fixed), default=0)
        if records:
            count = said["records"]
            self.end = None if count < 0 else self._records_begin + count * self._record_bytes

    def pieces(self, offset: int, length: int, most: int = pattern.MOST_EXTENTS) -> Iterator[_Piece]:
        """Of an extent of the one file. Raises IoweirError where they are more."""
        while length > 0:
            if (most := most - 1) < 0:
                raise IoweirError(f"its calls would be cut into more than {pattern.MOST_EXTENTS:,} pieces")
            array, record, at, room = self._array_at(offset)
            take = min(length, room)
            if array is None or array.inner == 0:
                yield self.subfiles, offset, take
            else:
                outer, index = divmod(at // array.inner, array.length)
                part = bisect_right(array.boundaries, index) - 1
                first, behind = array.boundaries[part : part + 2]
                begin = (outer * array.length + first) * array.inner
                take = min(take, begin + (behind - first) * array.inner - at)
                place = array.places[part] + outer * (behind - first) * array.inner + at - begin
                if record >= 0:
                    place += self._ends[part] + record * self._steps[part]
                yield part, place, take
            offset, length = offset + take, length - take

    def _array_at(self, offset: int) -> tuple[_Array | None, int, int, int]:
        """The array, its record (-1: it has none), where in it, and how many bytes of it or of a gap there are."""
        if self._record_bytes and offset >= self._records_begin:
            record, at = divmod(offset - self._records_begin, self._record_bytes)
            return _in(self._of_record, self._begins_of_record, at, record, self._record_bytes)
        behind = self._records_begin if self._record_bytes else offset + (1 << 62)
        return _in(self._fixed, self._begins, offset, -1, behind)


def _in(
    arrays: Sequence[_Array], begins: Sequence[int], at: int, record: int, behind: int
) -> tuple[_Array | None, int, int, int]:
    number = bisect_right(begins, at) - 1
    if number >= 0 and at < begins[number] + arrays[number].bytes:
        array = arrays[number]
        return array, record, at - array.begin, array.begin + array.bytes - at
    return None, record, 0, (begins[number + 1] if number + 1 < len(begins) else behind) - at


def _laid_out(rows: Sequence[Mapping[str, Any]], begin: int, subfiles: int) -> tuple[list[_Array], list[int]]:
    """One behind the other, and where each subfile ends."""
    ends = [0] * subfiles
    arrays = []
    for row in rows:
        lengths = row["lengths"][1:] if row["record"] else row["lengths"]
        size = row["element_bytes"] * prod(lengths)
        array = _Array(row["begin"] - begin, size)
        if row["divided"] >= 0:
            divided = row["divided"]
            inner = row["element_bytes"] * prod(row["lengths"][divided + 1 :])
            bounds = tuple(row["boundaries"])
            length = row["lengths"][divided]
            array = replace(array, inner=inner, length=length, boundaries=bounds, places=tuple(ends))
            of_index = size // length if length else 0
            ends = [end + of_index * (bounds[part + 1] - bounds[part]) for part, end in enumerate(ends)]
        arrays.append(array)
    return arrays, ends


def proposed(trace: Trace, program: Recorded, targets: int) -> tuple[list[Candidate], str]:
    """Divisions of a file that the program makes through PnetCDF, and why there are none."""
    if not _is_made_by_pnetcdf(trace, program.path):
        return [], ""
    if targets < 2:
        return [], "netCDF subfiles were not tried: the machine has one target"
    try:
        if compiled().netcdf_subfiles(program.path) > 0:
            return [], "netCDF subfiles were not tried: the file's arrays are divided already"
        asked = [
            (count, along)
            for count in sorted({targets, min(targets, program.ranks)} - {1})
            for along in _dimensions(program.path, count)
        ]
    except ValueError as error:
        return [], f"netCDF subfiles were not tried, for the arrays are not known: {error}"
    found = []
    refused: dict[str, list[str]] = {}
    for count, along in asked:
        try:
            found.append(_candidate(program, count, along))
        except IoweirError as error:
            refused.setdefault(str(error), []).append(_named(count, along))
    if not asked:
        refused["it has no array that can be divided"] = ["netCDF subfiles"]
    return found, "; ".join(f"not tried: {', '.join(names)}: {why}" for why, names in refused.items())


def _named(subfiles: int, along: str) -> str:
    return f"netcdf subfiles:{subfiles}{f' along {along}' if along else ''}"


def _is_made_by_pnetcdf(trace: Trace, path: str) -> bool:
    import numpy as np  # noqa: PLC0415

    made = [function.id for function in trace.functions if function.name == "ncmpi_create"]
    events = trace.events
    return bool((np.isin(events.function, made) & (events.path == trace.paths.index(path))).any())


def _dimensions(path: str, subfiles: int) -> list[str]:
    """The usual one (no name), then the others of the array with most bytes, where they divide arrays otherwise."""
    usual = _divided(path, subfiles, "")
    if not any(usual.values()):
        return []
    rows = compiled().netcdf_division(path, subfiles)["arrays"]
    largest = max(
        (row for row in rows if usual[row["name"]]),
        key=lambda row: row["element_bytes"] * prod(length or 1 for length in row["lengths"]),
    )
    seen = [usual]
    names = [""]
    for name in largest["dimensions"]:
        other = _divided(path, subfiles, name)
        if other not in seen:
            seen.append(other)
            names.append(name)
    return names


def _divided(path: str, subfiles: int, along: str) -> dict[str, str]:
    """Of each array the dimension along which it is divided; empty: it stays whole."""
    return {
        row["name"]: row["dimensions"][row["divided"]] if row["divided"] >= 0 else ""
        for row in compiled().netcdf_division(path, subfiles, along)["arrays"]
    }


def _candidate(program: Recorded, subfiles: int, along: str) -> Candidate:
    division = Division(compiled().netcdf_division(program.path, subfiles, along), subfiles)
    asked = max((offset + length for calls in (program.written, program.read) for call in calls for extents in call
                 for offset, length in extents), default=0)  # fmt: skip
    # The last array is padded to four bytes.
    if division.end is not None and asked > division.end + 3:
        raise IoweirError(f"{program.path} is not the file that was traced: it ends before what was asked for")
    table: dict[str, Any] = {"subfiles": subfiles}
    if along:
        table["par_dim"] = along
    divided, keys = simulated(program, division)
    return Candidate(
        _named(subfiles, along), {"writers": "auto", "netcdf": table}, instead=Instead(divided, keys), remark=_REMARK,
    )  # fmt: skip


def simulated(program: Recorded, division: Division) -> tuple[Recorded, dict[str, Any]]:
    """The program's calls on subfiles that lie behind each other, and the rule for them."""
    parts = {name: _cut(getattr(program, name), division) for name in ("written", "read")}
    every = [piece for calls in parts.values() for call in calls for pieces in call for piece in pieces]
    stripe = max((place + length for _, place, length in every), default=1)
    stripe = -(-stripe // _MIB) * _MIB
    calls: dict[str, Any] = {
        name: [[_as_extents(pieces, stripe) for pieces in call] for call in of_name] for name, of_name in parts.items()
    }
    count = division.subfiles
    aside = any(
        part < count and not _keeps(rank, part, program.ranks, count)
        for of_name in parts.values() for call in of_name for rank, pieces in enumerate(call) for part, _, _ in pieces
    )  # fmt: skip
    writers = {"writers": f"aggregators:{min(count, program.ranks)}", "domains": "cyclic", "buffer": _BUFFER}
    who = writers if aside else {"writers": "everyone"}
    return replace(program, **calls), {"mapping": f"subfiles:{count}", **who, "stripe": {"size": stripe}}


def _cut(calls: Calls, division: Division) -> list[list[list[_Piece]]]:
    cut: list[list[list[_Piece]]] = []
    left = pattern.MOST_EXTENTS
    for call in calls:
        cut.append([])
        for extents in call:
            pieces: list[_Piece] = []
            for offset, length in extents:
                pieces.extend(division.pieces(offset, length, left - len(pieces)))
            left -= len(pieces)
            cut[-1].append(pieces)
    return cut


def _as_extents(pieces: Sequence[_Piece], stripe: int) -> pattern.Extents:
    """In order, neighbours as one."""
    joined: pattern.Extents = []
    for offset, length in sorted((part * stripe + place, length) for part, place, length in pieces):
        if joined and joined[-1][0] + joined[-1][1] == offset:
            joined[-1] = (joined[-1][0], joined[-1][1] + length)
        else:
            joined.append((offset, length))
    return joined


def _keeps(rank: int, part: int, ranks: int, subfiles: int) -> bool:
    """Whether the rank has the subfile open (ncsub::Groups)."""
    if subfiles <= ranks:
        return rank * subfiles // ranks == part
    return part * ranks // subfiles == rank
