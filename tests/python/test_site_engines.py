"""The engines of `ioweir site show`: DuckDB, Dask on this machine and Dask with two workers, and PyArrow, answer alike.

The oracle is plain Python (site_runs.oracle). Not here: what `ioweir site` does otherwise (test_site.py).
"""

from __future__ import annotations

import importlib.util
import json
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest
from distributed import LocalCluster
from ioweir.errors import IoweirError
from ioweir.site import engines, queries, summary, with_duckdb
from ioweir.site.rows import Collected
from ioweir.site.store import Store
from site_runs import FIRST, RUNS, assert_alike, generated, many, oracle, summarised
from tracing import IOWEIR, run

WORKERS = "dask with workers"


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    """Of two worker processes on the loopback interface."""
    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None
    ) as cluster:
        yield cluster.scheduler_address


@pytest.fixture(scope="module")
def runs() -> list[Collected]:
    """Ten thousand, some without a finding; the last two have the only program and user with quotes in their names."""
    made = many(RUNS - 2, seed=30)
    chance = random.Random(31)
    odd = [generated(number, chance) for number in (RUNS - 2, RUNS - 1)]
    odd = [replace(one, run=replace(one.run, program='o\'dd "name"', user="o'hara")) for one in odd]
    named = [replace(one, findings=[replace(row, program=one.run.program) for row in one.findings]) for one in odd]
    return [*made, *named]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory, runs: list[Collected]) -> Path:
    """Those runs in files of 1,500, of which the last one is stored a second time: two `add` of the same traces."""
    path = tmp_path_factory.mktemp("engines") / "store"
    with Store.make_or_open(path) as opened:
        for at in range(0, RUNS, 1500):
            opened.add(runs[at : at + 1500])
        opened.add(runs[RUNS - 1000 :])
    return path


@pytest.fixture(params=[*engines.ENGINES, WORKERS])
def engine(request: pytest.FixtureRequest) -> tuple[str, str | None]:
    """A name, and the scheduler's address where there are workers."""
    if request.param == WORKERS:
        return engines.DASK, str(request.getfixturevalue("scheduler"))
    return str(request.param), None


def test_all_say_what_plain_python_says(store: Path, runs: list[Collected], engine: tuple[str, str | None]) -> None:
    assert_alike(summarised(store, None, None, None, *engine), oracle(runs))


def test_days_and_users_choose_the_same_runs(
    store: Path, runs: list[Collected], engine: tuple[str, str | None]
) -> None:
    week = [one for one in runs if FIRST + 7 * 86_400 <= one.run.started < FIRST + 14 * 86_400]
    assert 0 < len(week) < RUNS
    assert_alike(summarised(store, "2026-09-14", "2026-09-20", None, *engine), oracle(week))
    one_user = [one for one in runs if one.run.user == "o'hara"]
    assert len(one_user) == 2
    assert_alike(summarised(store, None, None, "o'hara", *engine), oracle(one_user))
    assert_alike(summarised(store, None, None, "nobody", *engine), oracle([]))


def test_an_empty_store_has_no_rows(tmp_path: Path, engine: tuple[str, str | None]) -> None:
    Store.make_or_open(tmp_path / "store").folder.close()
    assert_alike(summarised(tmp_path / "store", None, None, None, *engine), oracle([]))


def test_a_damaged_file_and_a_link_are_named_and_keep_no_other_out(
    tmp_path: Path, runs: list[Collected], engine: tuple[str, str | None]
) -> None:
    place = tmp_path / "store"
    with Store.make_or_open(place) as opened:
        opened.add(runs[:300])
    broken, linked = place / f"runs-2026-09-{'0' * 16}.parquet", place / f"findings-2026-09-{'1' * 16}.parquet"
    broken.write_bytes(b"PAR1 and no more")
    linked.symlink_to("/etc/passwd")
    with Store.open(place) as opened, engines.make(engine[0], opened, queries.Choice(), engine[1]) as made:
        assert_alike(summary.of(made), oracle(runs[:300]))
    assert set(opened.not_read) == {broken.name, linked.name}
    assert "is damaged" in opened.not_read[broken.name]
    assert "symbolic link" in opened.not_read[linked.name]


def test_the_command_takes_each(store: Path, scheduler: str) -> None:
    said = []
    for options in (
        [],
        ["--engine", "duckdb"],
        ["--engine", "arrow"],
        ["--engine", "dask"],
        ["--scheduler", scheduler],
    ):
        said.append(json.loads(run([*IOWEIR, "site", "show", store, "--json", *options]).expect().out))
    assert [one["runs"] for one in said] == [RUNS] * 5
    rows = [[(one["program"], one["worst"], one["users"]) for one in each["programs"]] for each in said]
    assert rows == [rows[0]] * 5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--engine", "spark"], "--engine spark: there are duckdb, dask, arrow"),
        (["--engine", "duckdb", "--scheduler", "tcp://127.0.0.1:1"], "is for Dask: add --engine dask"),
        (["--scheduler", "nowhere://x"], "no Dask scheduler answers there"),
    ],
)
def test_bad_words_are_refused(store: Path, options: list[str], message: str) -> None:
    done = run([*IOWEIR, "site", "show", store, *options])
    assert done.code != 0
    assert message in done.err


def test_a_missing_library_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Store.make_or_open(tmp_path / "store").folder.close()
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "duckdb" else object())
    assert engines.default() == engines.ARROW
    with (
        Store.open(tmp_path / "store") as opened,
        pytest.raises(IoweirError, match=r"needs duckdb: `pip install 'ioweir\[site\]'`"),
    ):
        engines.make(engines.DUCKDB, opened, queries.Choice())


def test_duckdb_opens_no_file(tmp_path: Path) -> None:
    """What a store names cannot make it read anything else."""
    (tmp_path / "other.csv").write_text("a\n1\n")
    Store.make_or_open(tmp_path / "store").folder.close()
    with (
        Store.open(tmp_path / "store") as opened,
        with_duckdb.DuckdbEngine(opened, queries.Choice()) as made,
        pytest.raises(duckdb.Error, match="disabled"),
    ):
        made.answer(queries.Query(f"{tmp_path}/other.csv", ("a",), (queries.Measure("rows", "count"),)))
