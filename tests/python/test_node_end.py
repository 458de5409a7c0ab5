"""Sums that a run of several nodes has when it ends, and reports of very many nodes, which are made of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from ioweir.base import locate
from ioweir.base.guarded_files import Folder
from ioweir.report import merge_sums, node_end
from ioweir.report.figures import build
from ioweir.report.run_findings import findings_of
from ioweir.trace import node_sums, reader
from test_merge_sums import job, report, written
from traces import Call


def names_of(place: Path) -> list[str]:
    """Of the nodes' files."""
    return sorted(path.name for path in place.glob("node-*.iowt"))


def columns_of(place: Path) -> list[tuple[int, ...]]:
    """The rows of merged sums, in an order that does not depend on that of their parts."""
    with Folder.open(place) as folder:
        sums = node_sums.read(folder, node_sums.MERGED_NAME)
    rows = zip(*(sums.columns[name].tolist() for name in ("slot", "rank", "outermost", "calls", "bytes", "time_ns")),
               strict=True)  # fmt: skip
    return sorted(rows)


def test_each_node_has_sums_and_merging_takes_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = written(job(20, 3, 7), tmp_path / "t")
    merge_sums.merge([place], tmp_path / "of events")
    assert node_end.end_nodes(place, names_of(place), compress=False) == []
    assert sorted(path.name for path in place.glob("*.sums.zst")) == [f"node-n{i}.sums.zst" for i in range(3)]

    def forbidden(*_: object) -> None:
        raise AssertionError("an event was read")

    monkeypatch.setattr(reader, "read", forbidden)
    merge_sums.merge([place], tmp_path / "of sums")
    monkeypatch.undo()
    assert columns_of(tmp_path / "of sums") == columns_of(tmp_path / "of events")


@pytest.mark.parametrize("compress", [False, True])
def test_reports_of_many_nodes_read_no_event(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compress: bool) -> None:
    place = written(job(21, 4, 8), tmp_path / "t")
    of_events = report(place)
    assert node_end.end_nodes(place, names_of(place), compress=compress) == []
    assert len(list(place.glob("node-*.iowt.zst"))) == (4 if compress else 0)
    few = reader.read(place, sums_of_many=True)
    assert few.counted is None
    monkeypatch.setattr(locate, "MANY_NODES", 4)
    many = reader.read(place, sums_of_many=True)
    assert many.counted is not None
    assert not many.damage
    result = build(many)
    assert (result.ranks, result.partial) == (8, False)
    assert result.layers["POSIX"]["write"].calls == of_events["layers"]["POSIX"]["write"]["calls"]
    findings_of(many, result)
    assert reader.read(place).counted is None


def test_where_a_rank_is_in_no_sums_the_events_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locate, "MANY_NODES", 2)
    place = written(job(22, 3, 6), tmp_path / "t")
    node_end.end_nodes(place, names_of(place), compress=False)
    assert reader.read(place, sums_of_many=True).counted is not None
    (place / "node-n1.sums.zst").rename(tmp_path / "away")
    assert reader.read(place, sums_of_many=True).counted is None
    (place / "node-n1.sums.zst").write_bytes(b"rubbish")
    assert reader.read(place, sums_of_many=True).counted is None


def test_nodes_that_have_not_ended_get_no_sums(tmp_path: Path) -> None:
    builder = job(23, 2, 4)
    killed = builder.process(pid=9, host="n1", image=71, end_s=None)
    builder.add(Call(killed, "pread", 1, 2, "/etc/config", 100))
    place = written(builder, tmp_path / "t")
    (place / "node-n9.iowt").write_bytes(b"not a trace")
    said = node_end.end_nodes(place, names_of(place), compress=True)
    assert [line.partition(":")[0] for line in said] == ["node-n1.iowt", "node-n9.iowt"]
    assert sorted(path.name for path in place.glob("node-*")) == [
        "node-n0.iowt.zst", "node-n0.sums.zst", "node-n1.iowt", "node-n9.iowt",
    ]  # fmt: skip
