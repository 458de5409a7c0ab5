"""`ioweir site`: many runs together. The oracles are plain Python, DuckDB and Dask on the store's own files.

Not here: that all engines answer alike (test_site_engines.py), what is removed (test_site_retention.py), who may read
(test_shared.py), what findings and figures of one run are (test_report.py, tests/findings).
"""

from __future__ import annotations

import datetime
import json
import random
from pathlib import Path
from typing import Any

import dask.dataframe as dd
import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from ioweir.errors import IoweirError
from ioweir.site import summary
from ioweir.site.rows import Collected
from ioweir.site.store import Store
from site_runs import DAY_S, FIRST, RUNS, assert_alike, generated, many, oracle, stored, summarised, traced
from tracing import IOWEIR, run


@pytest.fixture(scope="module")
def runs() -> list[Collected]:
    """Generated, no trace read."""
    return many(RUNS)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory, runs: list[Collected]) -> Path:
    """Those runs, added in three times."""
    path = tmp_path_factory.mktemp("site") / "store"
    with Store.make_or_open(path) as opened:
        for at in range(0, RUNS, 4000):
            opened.add(runs[at : at + 4000])
    return path


def test_figures_are_those_that_plain_python_finds(store: Path, runs: list[Collected]) -> None:
    assert_alike(summarised(store), oracle(runs))


def test_duckdb_and_dask_find_the_same_in_the_files_themselves(store: Path) -> None:
    result = summarised(store)
    expected = {one.program: one.io_node_hours for one in result.programs}
    sql = f"SELECT program, sum(io_s * nodes / 3600) FROM '{store}/runs-*.parquet' GROUP BY program"
    assert dict(duckdb.connect().execute(sql).fetchall()) == pytest.approx(expected)
    frame = dd.read_parquet(f"{store}/runs-*.parquet")
    frame = frame.assign(io_node_hours=frame.io_s * frame.nodes / 3600)
    assert frame.groupby("program").io_node_hours.sum().compute().to_dict() == pytest.approx(expected)
    joined = f"""
        SELECT code, sum(seconds * findings.nodes / 3600) FROM '{store}/findings-*.parquet' AS findings
        JOIN '{store}/runs-*.parquet' AS runs USING (run) GROUP BY code
    """
    costs = {one.code: one.node_hours for one in result.findings}
    assert dict(duckdb.connect().execute(joined).fetchall()) == pytest.approx(costs)


def test_days_and_users_choose_runs(store: Path, runs: list[Collected]) -> None:
    first, last = FIRST + 7 * DAY_S, FIRST + 14 * DAY_S
    result = summarised(store, "2026-09-14", "2026-09-20")
    assert result.runs == sum(first <= one.run.started < last for one in runs)
    assert [week.monday for week in result.weeks] == ["2026-09-14"]
    assert summarised(store, "0001-01-01", "9999-12-31").runs == len(runs)
    assert summarised(store, user="user7").runs == sum(one.run.user == "user7" for one in runs)
    nobody = summarised(store, user="nobody")
    assert (nobody.runs, nobody.programs, nobody.findings) == (0, [], [])
    assert list(summary.to_text(nobody, 10)) == ["0 runs, 0 node hours, of these 0 in I/O (0%)"]


def test_no_line_is_wider_than_a_terminal(store: Path) -> None:
    done = run([*IOWEIR, "site", "show", store, "--top", "5"]).expect()
    lines = done.out.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].startswith("10,000 runs, ")
    assert "and 7 more programs" in done.out


def test_old_months_are_forgotten(runs: list[Collected], tmp_path: Path) -> None:
    with Store.make_or_open(tmp_path / "few") as opened:
        opened.add(runs[:500])
    done = run([*IOWEIR, "site", "forget", tmp_path / "few", "--before", "2026-10"]).expect()
    assert done.out.endswith(" runs forgotten; of 2 files nothing is left\n")
    october = datetime.datetime(2026, 10, 1, tzinfo=datetime.timezone.utc).timestamp()
    kept = [one for one in runs[:500] if one.run.started >= october]
    assert stored(tmp_path / "few", "runs") == sorted(one.run.run for one in kept)
    assert stored(tmp_path / "few", "findings") == sorted(found.run for one in kept for found in one.findings)


def shown(store: Path) -> dict[str, Any]:
    """What `site show --json` prints."""
    return dict(json.loads(run([*IOWEIR, "site", "show", store, "--json"]).expect().out))


def test_traces_are_added_once_and_those_still_written_later(tmp_path: Path) -> None:
    place = tmp_path / "traces"
    traced(place, "a")
    traced(place, "bb")
    going = traced(place, "ccc", state="running")
    (place / "no-trace").mkdir()
    add: list[str | Path] = [*IOWEIR, "site", "add", tmp_path / "store", place]
    assert run(add).expect().out == "2 runs added, 0 were there, 1 are still being written\n"
    assert run(add).expect().out == "0 runs added, 2 were there, 1 are still being written\n"
    (going / "run.json").write_text(json.dumps({**json.loads((going / "run.json").read_text()), "state": "ended"}))
    assert run(add).expect().out == "1 runs added, 2 were there, 0 are still being written\n"
    result = shown(tmp_path / "store")
    assert [(one["program"], one["runs"]) for one in result["programs"]] == [("enigma", 3)]
    assert result["programs"][0]["written_bytes"] == 3 * 2 * 4000 * 64
    assert result["node_hours"] == pytest.approx(3 * 12 / 3600)
    assert "small-requests" in [one["code"] for one in result["findings"]]


def test_a_damaged_trace_is_named_and_keeps_no_other_out(tmp_path: Path) -> None:
    place = tmp_path / "traces"
    traced(place, "a")
    broken = place / "broken"
    broken.mkdir()
    (broken / "node-x.iowt").write_bytes(b"no trace" * 100)
    done = run([*IOWEIR, "site", "add", tmp_path / "store", place, "--settled", "0s", "--jobs", "2"])
    assert done.code == 1
    assert done.out.startswith("1 runs added, 0 were there, 0 are still being written\n")
    assert f"not read: {broken}: " in done.out
    assert "1 of the traces could not be read" in done.err
    assert [one["program"] for one in shown(tmp_path / "store")["programs"]] == ["enigma"]


def test_anonymised_stores_hold_no_names(tmp_path: Path) -> None:
    trace = traced(tmp_path / "traces", "a")
    run([*IOWEIR, "site", "add", tmp_path / "one", trace, "--anonymise"]).expect()
    run([*IOWEIR, "site", "add", tmp_path / "two", trace, "--anonymise"]).expect()
    names = []
    for store in (tmp_path / "one", tmp_path / "two"):
        content = b"".join(file.read_bytes() for file in store.iterdir())
        assert b"enigma" not in content
        assert trace.owner().encode() not in content
        names.append(shown(store)["programs"][0]["program"])
    assert names[0] != names[1], "each store has digests of its own"


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda store: (store / "site.json").unlink(), "is no store: it has no site.json"),
        (lambda store: (store / "site.json").write_text("[]"), "is damaged"),
        (lambda store: (store / "site.json").write_text("[" * 100_000), "is damaged"),
        (lambda store: (store / "site.json").write_text('{"site_version": 9, "secret": ""}'), "has version 9"),
    ],
)
def test_what_is_no_good_store_is_said(tmp_path: Path, spoil: Any, message: str) -> None:
    with Store.make_or_open(tmp_path / "store") as opened:
        opened.add([generated(1, random.Random(1))])
    spoil(tmp_path / "store")
    with pytest.raises(IoweirError, match=message), Store.open(tmp_path / "store") as opened:
        pytest.fail("it was opened")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda file: file.write_bytes(b"PAR1xx"), "is damaged"),
        (lambda file: file.symlink_to("/etc/passwd"), "symbolic link"),
        (lambda file: pq.write_table(pa.table({"other": [1, 2]}), file), "is damaged"),
    ],
)
def test_a_damaged_file_of_a_store_is_named_and_keeps_no_other_out(tmp_path: Path, spoil: Any, message: str) -> None:
    store = tmp_path / "store"
    run([*IOWEIR, "site", "add", store, traced(tmp_path / "traces", "a")]).expect()
    spoiled = store / "runs-2026-09-0123456789abcdef.parquet"
    spoil(spoiled)
    done = run([*IOWEIR, "site", "show", store])
    assert (done.code, "enigma" in done.out) == (1, True)
    assert str(spoiled) in done.err
    assert message in done.err
    assert "restore them from a copy" in done.err
    done = run([*IOWEIR, "site", "add", store, traced(tmp_path / "more", "bb")])
    assert (done.code, done.out.startswith("1 runs added, 0 were there")) == (1, True)
    assert message in done.err
    spoiled.unlink()
    done = run([*IOWEIR, "site", "show", store, "--json"]).expect()
    assert json.loads(done.out)["programs"][0]["runs"] == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["show", "nowhere"], "cannot be opened"),
        (["add", "store", "nowhere"], "'nowhere' cannot be opened"),
        (["add", "store", "."], "is no trace, and no folder with traces"),
        (["add", "store", ".", "--settled", "soon"], "not a time: 'soon'"),
        (["show", "store", "--since", "yesterday"], "--since 'yesterday' is no day"),
        (["forget", "store", "--before", "2026"], "--before '2026' is no month"),
    ],
)
def test_bad_words_are_refused(tmp_path: Path, words: list[str], message: str) -> None:
    Store.make_or_open(tmp_path / "store")
    done = run([*IOWEIR, "site", *words], cwd=tmp_path)
    assert done.code != 0
    assert message in done.err


def test_two_that_add_one_run_at_a_time_count_it_once(tmp_path: Path) -> None:
    one = next(run for run in (generated(7, random.Random(seed)) for seed in range(50)) if run.findings)
    with Store.make_or_open(tmp_path / "store") as opened:
        opened.add([one])
        opened.add([one])
    result = summarised(tmp_path / "store")
    assert result.runs == 1
    assert sum(code.node_hours for code in result.findings) == pytest.approx(
        sum(found.seconds * found.nodes / 3600 for found in one.findings)
    )
