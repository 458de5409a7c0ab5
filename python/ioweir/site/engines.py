"""What answers the questions of queries.py: PyArrow here, DuckDB (with_duckdb.py), Dask (with_dask.py).

All three count a run that two `site add` have stored once, as the first of the files says in the order of their names,
with the findings of the same `add`. They answer alike, but for the last digits of sums of fractions.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any, Final, Protocol

from ioweir.errors import EXIT_USAGE, IoweirError
from ioweir.site.queries import Choice, Query, columns

if TYPE_CHECKING:
    import pyarrow as pa

    from ioweir.site.store import Store

ARROW: Final = "arrow"
DUCKDB: Final = "duckdb"
DASK: Final = "dask"
ENGINES: Final = (DUCKDB, DASK, ARROW)
_NEEDS: Final = {ARROW: (), DUCKDB: ("duckdb",), DASK: ("dask", "pandas")}
_NAMES: Final = {"count": "count_all", "distinct": "count_distinct"}


class Engine(Protocol):
    """Answers questions of one store and choice of runs; to be used by `with`."""

    def __enter__(self) -> Engine: ...

    def __exit__(self, *_: object) -> None: ...

    def answer(self, query: Query) -> list[dict[str, Any]]:
        """A row a group, in no order."""
        ...


def default() -> str:
    """DuckDB where it is installed."""
    return DUCKDB if importlib.util.find_spec("duckdb") is not None else ARROW


def make(name: str, store: Store, choice: Choice, scheduler: str | None = None) -> Engine:
    """The engine of that name. IoweirError where there is none, or it is not installed."""
    if name not in ENGINES:
        raise IoweirError(f"--engine {name}: there are {', '.join(ENGINES)}", EXIT_USAGE)
    if scheduler is not None and name != DASK:
        raise IoweirError(f"--scheduler {scheduler} is for Dask: add --engine {DASK}, or leave it out", EXIT_USAGE)
    needed = (*_NEEDS[name], *(("distributed",) if scheduler is not None else ()))
    missing = [library for library in needed if importlib.util.find_spec(library) is None]
    if missing:
        raise IoweirError(
            f"--engine {name} needs {' and '.join(missing)}: `pip install 'ioweir[site]'`, or use --engine {ARROW}",
            EXIT_USAGE,
        )
    if name == ARROW:
        return ArrowEngine(store, choice)
    engine: Engine
    if name == DUCKDB:
        engine = importlib.import_module("ioweir.site.with_duckdb").DuckdbEngine(store, choice)
    else:
        engine = importlib.import_module("ioweir.site.with_dask").DaskEngine(store, choice, scheduler)
    return engine


class ArrowEngine:
    """The whole store in memory; needs nothing that ioweir does not need anyway."""

    def __init__(self, store: Store, choice: Choice) -> None:
        import pyarrow as pa  # noqa: PLC0415
        import pyarrow.compute as pc  # noqa: PLC0415

        runs = pa.concat_tables(columns("runs", part, table) for part, table in store.parts("runs"))
        findings = pa.concat_tables(columns("findings", part, table) for part, table in store.parts("findings"))
        keys = runs.column("run")
        if len(keys.unique()) < len(keys):  # two `add` of one trace at a time; files come in the order of their names
            first: dict[str, int] = {}
            for at, key in enumerate(keys.to_pylist()):
                first.setdefault(key, at)
            runs = runs.take(pa.array(sorted(first.values())))
        if choice.since_us is not None:
            runs = runs.filter(pc.greater_equal(runs.column("started_us"), choice.since_us))
        if choice.end_us is not None:
            runs = runs.filter(pc.less(runs.column("started_us"), choice.end_us))
        if choice.user is not None:
            runs = runs.filter(pc.equal(runs.column("user"), choice.user))
        both = ["run", "part"]
        of_runs = findings.join(runs.select(both), both, join_type="left semi", use_threads=False)
        self._tables = {"runs": runs, "findings": of_runs}

    def __enter__(self) -> ArrowEngine:
        return self

    def __exit__(self, *_: object) -> None:
        self._tables = {}

    def answer(self, query: Query) -> list[dict[str, Any]]:
        """As Engine says."""
        return list(self._table(query).to_pylist())

    def _table(self, query: Query) -> pa.Table:
        table = self._tables[query.of] if isinstance(query.of, str) else self._table(query.of)
        wanted: list[Any] = [
            ([], "count_all") if one.how == "count" else (one.column, _NAMES.get(one.how, one.how))
            for one in query.measures
        ]
        grouped = table.group_by(list(query.by), use_threads=False).aggregate(wanted)
        names = [
            "count_all" if one.how == "count" else f"{one.column}_{_NAMES.get(one.how, one.how)}"
            for one in query.measures
        ]
        return grouped.select([*query.by, *names]).rename_columns(query.names())
