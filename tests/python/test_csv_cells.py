"""CSV of names that want to be formulas: a spreadsheet sees words, and the names can be had back."""

from __future__ import annotations

import csv
import itertools
import json
import re
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from ioweir.base.csv_cells import guarded, original
from ioweir.exports.run import export
from ioweir.trace import merge
from traces import Builder, Call

if TYPE_CHECKING:
    from pathlib import Path

NAMES = [
    "=HYPERLINK(\"http://x\",\"y\")", "+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "'=1", "''=1", "'plain", "a'=b",
    "a;=1", "a,=1", "a\n-1", "a\t'+1", ";'=1", "\uff1d1", "plain", "", "a=b", "x-1", "ü@v",
]  # fmt: skip
FORMULA = re.compile("[=+@\uff1d\uff0b\uff20\uff0d\t\r\n-]")


def cells(names: list[str]) -> list[str]:
    """As they stand in the file, without its quotes."""
    guarded_table = guarded(pa.table({"file": pa.array(names), "number": pa.array([-1] * len(names))}))
    assert guarded_table.column("number").to_pylist() == [-1] * len(names)
    found: list[str] = guarded_table.column("file").to_pylist()
    return found


@pytest.mark.parametrize(
    ("name", "cell"),
    [("=1+1", "'=1+1"), ("a;-1", "a;'-1"), ("'=1", "''=1"), ("\t=1", "'\t'=1"), ("'plain", "'plain"), ("x-1", "x-1")],
)
def test_what_a_name_becomes(name: str, cell: str) -> None:
    assert cells([name]) == [cell]


def test_no_cell_is_a_formula_wherever_a_spreadsheet_begins_one() -> None:
    for cell in cells(NAMES):
        for part in (cell, *re.split("[;\t\r\n]", cell)[1:]):
            assert not FORMULA.match(part), cell


def test_every_name_can_be_had_back_and_no_two_are_alike() -> None:
    """All words of up to five of these letters."""
    words = ["".join(word) for length in range(6) for word in itertools.product("=';\ta", repeat=length)] + NAMES
    found = cells(words)
    assert [original(cell) for cell in found] == words
    assert len(set(found)) == len(set(words))


def test_hostile_names_of_files_in_exports_and_in_the_master_log(tmp_path: Path) -> None:
    builder = Builder()
    rank = builder.rank(0, 1)
    for at, name in enumerate(NAMES):
        if name:
            builder.add(Call(rank, "pwrite", at, at + 0.5, name, 10, offset=0))
    folder = tmp_path / "trace"
    folder.mkdir()
    builder.write(folder)
    (folder / "run.json").write_text(json.dumps({"wall_s": 100.0, "program": "solver", "state": "ended", "cwd": ""}))
    export(folder, "csv", tmp_path / "out.csv")
    merge.merge(folder, tmp_path / "log.csv")
    for path, column in ((tmp_path / "out.csv", "file"), (tmp_path / "log-files.csv", "path")):
        with path.open(newline="", encoding="utf-8") as file:
            rows = [row[column] for row in csv.DictReader(file)]
        assert not any(FORMULA.match(row) for row in rows)
        names = {original(row).rpartition("/")[2] for row in rows}
        assert {name.rpartition("/")[2] for name in NAMES if name} <= names
