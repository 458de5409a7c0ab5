"""Arrays of a netCDF file as parts in subfiles: where each byte lies, against a walk over elements; and candidates."""

from __future__ import annotations

import itertools
import struct
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path
from typing import Any

import pytest
from ioweir.base.compiled import compiled
from ioweir.errors import IoweirError
from ioweir.loop import measure, turns
from ioweir.predict import gains, netcdf_parts, simulate, tune
from ioweir.predict import machine as machines
from ioweir.predict.candidates import Candidate
from ioweir.predict.kinds import Kind
from ioweir.predict.workload import Recorded
from ioweir.trace import pattern
from traces import Builder, Call

DOUBLE = 8
NC_DOUBLE, NC_DIMENSION, NC_VARIABLE = 6, 10, 11
ABSENT = bytes(8)


@dataclass
class Classic:
    """A netCDF classic file of doubles (CDF-1), as the format's specification has it; the unlimited dimension is 0."""

    dimensions: dict[str, int]
    arrays: dict[str, list[str]]
    records: int = 0
    begins: dict[str, int] = field(default_factory=dict)

    def lengths(self, name: str) -> list[int]:
        """Without the unlimited one."""
        return [length for length in (self.dimensions[one] for one in self.arrays[name]) if length]

    def is_record(self, name: str) -> bool:
        return self.dimensions[self.arrays[name][0]] == 0

    def size(self, name: str) -> int:
        """Of all of it, or of a record."""
        return DOUBLE * prod(self.lengths(name))

    @property
    def record_bytes(self) -> int:
        return sum(self.size(name) for name in self.arrays if self.is_record(name))

    def write(self, path: Path) -> Path:
        at = len(self._header())
        for name in sorted(self.arrays, key=self.is_record):
            self.begins[name] = at
            at += self.size(name)
        at += max(0, self.records - 1) * self.record_bytes
        path.write_bytes(self._header().ljust(at, b"\0"))
        return path

    def _header(self) -> bytes:
        out = b"CDF\x01" + struct.pack(">iii", self.records, NC_DIMENSION, len(self.dimensions))
        for name, length in self.dimensions.items():
            out += _name(name) + struct.pack(">i", length)
        out += ABSENT + struct.pack(">ii", NC_VARIABLE, len(self.arrays))
        ids = list(self.dimensions)
        for name, dimensions in self.arrays.items():
            out += _name(name) + struct.pack(">i", len(dimensions))
            out += struct.pack(f">{len(dimensions)}i", *map(ids.index, dimensions)) + ABSENT
            out += struct.pack(">iii", NC_DOUBLE, self.size(name), self.begins.get(name, 0))
        return out

    def end(self) -> int:
        return max(self.begins[name] + self.size(name) for name in self.arrays)


def _name(text: str) -> bytes:
    return struct.pack(">i", len(text)) + text.encode().ljust(-(-len(text) // 4) * 4, b"\0")


PLAIN = Classic({"z": 4, "y": 3, "x": 5}, {"cube": ["z", "y", "x"], "line": ["x"], "flat": ["y", "x"]})
WITH_RECORDS = Classic({"t": 0, "z": 5, "x": 3}, {"fixed": ["z", "x"], "a": ["t", "z"], "b": ["t", "x", "z"]}, 3)


def division(path: Path, subfiles: int, along: str = "") -> netcdf_parts.Division:
    return netcdf_parts.Division(compiled().netcdf_division(str(path), subfiles, along), subfiles)


def walked(file: Classic, path: Path, subfiles: int, along: str) -> dict[int, tuple[int, int]]:
    """Of each element's offset its subfile and place: fixed arrays first, then record by record; element by element."""
    rows = {row["name"]: row for row in compiled().netcdf_division(str(path), subfiles, along)["arrays"]}
    at = [0] * subfiles
    found: dict[int, tuple[int, int]] = {}

    def put(name: str, record: int) -> None:
        row = rows[name]
        lengths = file.lengths(name)
        skipped = 1 if file.is_record(name) else 0
        for number, index in enumerate(itertools.product(*map(range, lengths))):
            offset = file.begins[name] + record * file.record_bytes + DOUBLE * number
            if row["divided"] < 0:
                found[offset] = (subfiles, offset)
                continue
            own = index[row["divided"] - skipped]
            part = sum(own >= bound for bound in row["boundaries"][1:])
            found[offset] = (part, at[part])
            at[part] += DOUBLE

    for name in file.arrays:
        if not file.is_record(name):
            put(name, 0)
    for record in range(file.records):
        for name in file.arrays:
            if file.is_record(name):
                put(name, record)
    return found


@pytest.mark.parametrize("file", [PLAIN, WITH_RECORDS], ids=["plain", "records"])
@pytest.mark.parametrize(("subfiles", "along"), [(2, ""), (3, "x"), (3, ""), (4, "z"), (5, ""), (2, "y")])
def test_each_element_has_its_place(file: Classic, subfiles: int, along: str, tmp_path: Path) -> None:
    path = file.write(tmp_path / "data.nc")
    parts = division(path, subfiles, along)
    expected = walked(file, path, subfiles, along)
    for offset, (part, place) in expected.items():
        assert list(parts.pieces(offset, DOUBLE)) == [(part, place, DOUBLE)], offset
    # An extent is cut where its bytes go elsewhere, and nowhere else do bytes get lost.
    begin, end = min(expected), max(expected) + DOUBLE
    pieces = list(parts.pieces(begin - 3, end - begin + 3))
    assert sum(length for _, _, length in pieces) == end - begin + 3
    at = begin - 3
    for part, place, length in pieces:
        for step in range(length):
            element = at + step - (at + step - begin) % DOUBLE
            if element >= begin:
                its, where = expected[element]
                assert (part, place + step) == (its, where + (at + step - element))
        at += length


def test_arrays_that_are_too_short_stay_whole(tmp_path: Path) -> None:
    path = PLAIN.write(tmp_path / "data.nc")
    parts = division(path, 6)
    assert {part for part, _, _ in parts.pieces(0, PLAIN.end())} == {6}
    assert parts.end == PLAIN.end()


def test_a_file_of_another_kind_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "data.nc").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100))
    for path in (tmp_path / "data.nc", tmp_path / "nothing.nc"):
        with pytest.raises(ValueError, match=r".+"):
            division(path, 2)


def program(path: Path, file: Classic, ranks: int) -> Recorded:
    """Each array in one call, each rank an equal part of its first dimension, as far as it goes."""
    calls = []
    for name in file.arrays:
        rows, row_bytes = file.lengths(name)[0], file.size(name) // file.lengths(name)[0]
        bounds = [rank * rows // ranks for rank in range(ranks + 1)]
        calls.append([
            [(file.begins[name] + bounds[rank] * row_bytes, (bounds[rank + 1] - bounds[rank]) * row_bytes)]
            if bounds[rank] < bounds[rank + 1] else [] for rank in range(ranks)
        ])  # fmt: skip
    return Recorded("data.nc", str(path), ranks, False, calls, [], 0.0)


def trace_of(path: Path) -> Any:
    builder = Builder()
    rank = builder.rank(0, 1)
    create = Call(rank, "ncmpi_create", 0.0, 1.0, str(path))
    builder.add(create, create.inside("MPI_File_open", 0.1, 0.9, origin="application", offset=9))
    builder.add(Call(rank, "MPI_File_write_at_all", 2.0, 3.0, str(path), 100))
    return builder.trace()


def test_a_file_that_pnetcdf_makes_gets_divisions_along_its_dimensions(tmp_path: Path) -> None:
    path = PLAIN.write(tmp_path / "data.nc")
    asked = program(path, PLAIN, 4)
    found, why = netcdf_parts.proposed(trace_of(path), asked, 3)
    assert why == ""
    assert [one.keys for one in found] == [
        {"writers": "auto", "netcdf": {"subfiles": 3}},
        {"writers": "auto", "netcdf": {"subfiles": 3, "par_dim": "y"}},
        {"writers": "auto", "netcdf": {"subfiles": 3, "par_dim": "x"}},
    ]
    machine = machines.read("gigabit12")
    for one in found:
        assert not one.same_form
        assert not one.replayed
        compiled().check_plan(one.text("*.nc"), "plan.toml")
        assert one.instead is not None
        rule = simulate.PlanRule(one.simulated, "x", 0, "x")
        (run,) = simulate.runs_of(one.instead.program, machine, rule, 1, 1)
        assert run["write"]["bytes"] == sum(length for call in asked.written for mine in call for _, length in mine)
        assert sum(target["bytes"] > 0 for target in run["write"]["targets"]) == 3


def test_where_ranks_keep_to_their_subfiles_nobody_collects(tmp_path: Path) -> None:
    file = Classic({"z": 4, "x": 4}, {"a": ["z", "x"]})
    path = file.write(tmp_path / "data.nc")
    for along, writers in (("", "everyone"), ("x", "aggregators:2")):
        divided, keys = netcdf_parts.simulated(program(path, file, 4), division(path, 2, along))
        assert keys["writers"] == writers
        assert keys["mapping"] == "subfiles:2"
        assert keys["stripe"] == {"size": 1 << 20}
        places = [offset for mine in divided.written[0] for offset, _ in mine]
        assert {offset >> 20 for offset in places} == {0, 1}
    assert [netcdf_parts._keeps(rank, part, 2, 5) for rank in range(2) for part in range(5)] == [
        True, True, True, False, False, False, False, False, True, True
    ]  # fmt: skip


def test_why_there_are_none(tmp_path: Path) -> None:
    path = PLAIN.write(tmp_path / "data.nc")
    asked = program(path, PLAIN, 4)
    trace = trace_of(path)
    assert "one target" in netcdf_parts.proposed(trace, asked, 1)[1]
    assert "no array that can be divided" in netcdf_parts.proposed(trace, replace(asked, ranks=64), 64)[1]
    builder = Builder()
    builder.add(Call(builder.rank(0, 1), "MPI_File_write_at_all", 2.0, 3.0, str(path), 100))
    assert netcdf_parts.proposed(builder.trace(), asked, 3) == ([], "")
    Classic({"z": 4}, {"a": ["z"]}).write(path)
    assert "is not the file that was traced" in netcdf_parts.proposed(trace, asked, 3)[1]
    path.unlink()
    assert "not known" in netcdf_parts.proposed(trace, asked, 3)[1]


def test_what_would_be_cut_too_small_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Along x each row of an array is cut in three: 36 + 3 + 9 pieces."""
    path = PLAIN.write(tmp_path / "data.nc")
    monkeypatch.setattr(pattern, "MOST_EXTENTS", 45)
    found, why = netcdf_parts.proposed(trace_of(path), program(path, PLAIN, 1), 3)
    assert [one.strategy for one in found] == ["netcdf subfiles:3", "netcdf subfiles:3 along y"]
    assert why == "not tried: netcdf subfiles:3 along x: its calls would be cut into more than 45 pieces"


def test_arrays_behind_records_are_refused(tmp_path: Path) -> None:
    path = WITH_RECORDS.write(tmp_path / "data.nc")
    said = compiled().netcdf_division(str(path), 2)
    said["arrays"][0]["begin"] = 10_000
    with pytest.raises(IoweirError, match="behind those with"):
        netcdf_parts.Division(said, 2)


def test_a_division_is_simulated_and_never_replayed() -> None:
    def row(name: str, keys: dict[str, Any], seconds: float) -> dict[str, Any]:
        one = Candidate(name, keys)
        return {
            "strategy": name, "candidate": one, "each": [seconds], "seconds": seconds,
            "predicted": gains.range_of([4 / seconds]), "beside": (0.0, 0.0, 0.0), "other_form": not one.same_form,
        }  # fmt: skip

    asked: Any = Recorded("data.nc", "/data/data.nc", 2, False, [], [], 0.0)
    rows = [row("netcdf", {"writers": "auto", "netcdf": {"subfiles": 3}}, 1.0), row("auto", {"writers": "auto"}, 2.0)]
    part = tune.Part(Kind("*.nc", "data.nc", 1, 1.0, 1.0), asked, [4.0], rows)
    machine: Any = type("M", (), {"name": "none", "open": {}, "unexplained": 0.0, "gains": None, "plans": 1.0})
    found = tune.Simulated(machine, [part], [], "one")
    assert [way.name for way in measure.contenders(found, 2)] == [turns.AS_IT_IS, "auto"]
    (reason,) = measure._not_replayed(found)
    assert reason.startswith("simulated only: netcdf, 1.00 s")
    assert "cannot show it" in reason
